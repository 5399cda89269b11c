import os

from setuptools import find_packages, setup

with open(os.path.join("stable_baselines3", "version.txt")) as file_handler:
    __version__ = file_handler.read().strip()


long_description = """

# Learning

```python
import gym
model.learn(total_timesteps=10_000)
```

"""  # noqa:E501


setup(
    name="stable_baselines3",
    packages=[package for package in find_packages() if package.startswith("stable_baselines3")],
    install_requires=[
        "gym==0.21",  # held back: 0.22 changed much
        "numpy",
        "torch>=1.11",
        "typing_extensions>=4.0,<5",
        # For models on disk
        "cloudpickle",
        # gym and flake8 do not go with importlib-metadata>5.0
        "importlib-metadata~=4.13",
    ],
    extras_require={
        "tests": ["pytest"],
        "extra": ["opencv-python"],
    },
    long_description=long_description,
    version=__version__,
    python_requires=">=3.7",
)
