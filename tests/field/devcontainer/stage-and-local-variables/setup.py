from setuptools import setup

setup(name="ocr_gdd", version="0.1", install_requires=["torch"])
