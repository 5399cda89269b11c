"""
Builds all.

>> pip install -r requirements.txt
"""
import logging
import pip
import pkg_resources
try:
    from setuptools import setup
except ImportError:
    from distutils.core import setup


def _parse_requirements(file_path):
    pip_version = list(map(int, pkg_resources.get_distribution('pip').version.split('.')[:2]))
    if pip_version >= [6, 0]:
        raw = pip.req.parse_requirements(file_path, session=pip.download.PipSession())
    else:
        raw = pip.req.parse_requirements(file_path)
    return [str(i.req) for i in raw]


try:
    install_reqs = _parse_requirements("requirements.txt")
except Exception:
    logging.warning('no requirements file')
    install_reqs = []

setup(
    name='mask-rcnn',
    version='2.1',
    packages=["mrcnn"],
    install_requires=install_reqs,
    python_requires='>=3.4',
)
