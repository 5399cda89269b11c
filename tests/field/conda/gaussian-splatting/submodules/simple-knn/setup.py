from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension, BuildExtension

setup(
    name="simple_knn",
    ext_modules=[CUDAExtension(name="simple_knn._C", sources=["spatial.cu", "ext.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
