import einops, h5py, tqdm, yaml  # noqa: E401
