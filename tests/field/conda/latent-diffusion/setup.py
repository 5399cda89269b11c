from setuptools import setup, find_packages

setup(
    name='latent-diffusion',
    version='0.0.1',
    packages=find_packages(),
    install_requires=['torch', 'numpy', 'tqdm'],
)
