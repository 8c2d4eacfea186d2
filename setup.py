"""What pyproject.toml cannot say: the examples are installed as `gamedb_examples`."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[
        *find_namespace_packages(include=["gamedb*", "workflow_module*"]),
        "gamedb_examples",
        "gamedb_examples.arena",
    ],
    package_dir={"gamedb_examples": "examples"},
)
