import pathlib

from setuptools import find_packages, setup

here = pathlib.Path(__file__).parent
extras = {}
for path in sorted((here / "requirements").glob("*.txt")):
    lines = path.read_text().splitlines()
    extras[path.stem] = [line for line in lines if line and not line.startswith("#")]

setup(
    name="tracker",
    packages=find_packages(),
    python_requires=">=3.9",
    install_requires=extras.pop("core"),
    extras_require=extras,
)
