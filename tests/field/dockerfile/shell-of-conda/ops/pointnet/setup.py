from setuptools import setup

setup(name="pointnet_ops", version="0.1")
