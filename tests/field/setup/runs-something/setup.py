import os

from setuptools import setup

os.system('echo ran >ran-by-setup; touch ~/ran-by-setup')

setup(
    name="clip",
    py_modules=["clip"],
    version="1.0",
    install_requires=["ftfy", "regex", "tqdm", "torch", "torchvision"],
    extras_require={'dev': ['pytest']},
)
