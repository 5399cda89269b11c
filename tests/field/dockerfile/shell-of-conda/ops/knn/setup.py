from setuptools import setup

setup(name="knn-ops", version="0.1")
