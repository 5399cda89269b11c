import setuptools
setuptools.setup(name="molecule_generation", install_requires=["dpu-utils>=0.2.13"])
