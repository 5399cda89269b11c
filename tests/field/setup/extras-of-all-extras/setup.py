import torch
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

_dc = torch.cuda.get_device_capability()
_dc = f"{_dc[0]}{_dc[1]}"
ext_modules = [
    CUDAExtension(
        "blocks_ops",
        ["csrc/ops.cu"],
        include_dirs=["csrc"],
        extra_compile_args={"nvcc": ["--optimize=2", f"--generate-code=arch=compute_{_dc},code=sm_{_dc}"]},
    )
]

install_requires=[
    "triton==2.1.0",
    'stanford-stk @ git+https://git.example/lab/stk.git@setup_deps',
]

extra_deps = {}

extra_deps["gg"] = [
    "grouped_gemm",
]

extra_deps['all'] = set(dep for deps in extra_deps.values() for dep in deps)

setup(
    name="blocks",
    version="0.5.0",
    packages=find_packages(),
    ext_modules=ext_modules,
    cmdclass={"build_ext": BuildExtension},
    install_requires=install_requires,
    extras_require=extra_deps,
)
