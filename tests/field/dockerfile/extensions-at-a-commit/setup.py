from setuptools import setup

setup(name="nemo_toolkit", version="1.12.0", install_requires=["tqdm"], extras_require={"all": ["editdistance"]})
