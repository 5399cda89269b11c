import os
import subprocess
import sys
from setuptools import setup, find_packages, Extension

if sys.version_info < (3, 6):
    sys.exit("Python >= 3.6 is required.")


def write_version_py():
    version = "1.0.0a0"
    try:
        sha = subprocess.check_output(["git", "rev-parse", "HEAD"]).decode("ascii").strip()
        version += "+" + sha[:7]
    except Exception:
        pass
    with open(os.path.join("fairseq", "version.py"), "w") as f:
        f.write("__version__ = '{}'\n".format(version))
    return version


version = write_version_py()


class NumpyExtension(Extension):
    @property
    def include_dirs(self):
        import numpy

        return [numpy.get_include()]


def do_setup(package_data):
    setup(
        name="fairseq",
        version=version,
        setup_requires=[
            "cython",
            "numpy",
            "setuptools>=18.0",
        ],
        install_requires=[
            "cffi",
            "cython",
            "hydra-core",
            "numpy",
            "sacrebleu>=1.4.12",
            "torch",
            "tqdm",
        ],
        packages=find_packages(exclude=["tests", "tests.*"]),
        package_data=package_data,
        ext_modules=[NumpyExtension("fairseq.fast", sources=["fairseq/fast.pyx"])],
        zip_safe=False,
    )


do_setup({})
