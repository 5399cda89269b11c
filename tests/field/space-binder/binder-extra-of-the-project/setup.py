from setuptools import setup

setup(name="bluegraph", version="0.1", install_requires=["pandas"], extras_require={"cord19kg": ["dash==2.0.0"]})
