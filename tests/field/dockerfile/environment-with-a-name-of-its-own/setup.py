from setuptools import setup

setup(name="chatlab", version="1.0", install_requires=["requests"], extras_require={"sql": ["SQLAlchemy~=1.2.0"]})
