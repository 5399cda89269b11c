from setuptools import setup

setup(
    name="diff_gaussian_rasterization",
    packages=["diff_gaussian_rasterization"],
)
