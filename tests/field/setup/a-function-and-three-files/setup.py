#!/usr/bin/env python
import pathlib

import pkg_resources
from setuptools import setup


def parse_requirements(path: str) -> "list[str]":
    with pathlib.Path(path).open() as requirements:
        return [str(one) for one in pkg_resources.parse_requirements(requirements)]


setup(
    name="pdtool",
    install_requires=parse_requirements("requirements/requirements.txt"),
    extras_require={
        "tests": parse_requirements("requirements/requirements-tests.txt"),
        "build": parse_requirements("requirements/requirements-build.txt"),
    },
)
