import pytorch3d
