from setuptools import setup

setup(name="seg-2", version="1.0", python_requires=">=3.10.0", install_requires=["torch>=2.3.1", "tqdm"],
      extras_require={"demo": ["Flask>=3.0.3"]}, packages=["seg"])
