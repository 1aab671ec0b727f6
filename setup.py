"""Packaging for colcon (ament_python) and for pip.

Nodes are installed as files of scripts/ into lib/morphit_ros, where ros2 run and ros2 launch look
with colcon as well as with pip. Only `morphit` is a console script: pip puts it into bin/, colcon
(see setup.cfg) into lib/morphit_ros.
"""

import runpy
from pathlib import Path

from setuptools import Distribution, find_packages, setup

NAME = "morphit_ros"
SHARE = Path("share") / NAME
# By its path: the package itself cannot be imported yet.
DEPENDENCIES = runpy.run_path(str(Path(__file__).parent / NAME / "dependencies.py"))
requirements = DEPENDENCIES["requirements"]


class DataDistribution(Distribution):
    """Has its data files installed by `pip install --editable` too.

    setuptools would do that if the distribution said that it has "data"; the method it has is called has_data_files.
    """

    def has_data(self) -> bool:
        return bool(self.data_files)


def data_tree(folder: str) -> list[tuple[str, list[str]]]:
    """Every file below a folder, to the same place below share/morphit_ros."""
    found: dict[Path, list[str]] = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.setdefault(path.parent, []).append(str(path))
    return [(str(SHARE / parent), files) for parent, files in found.items()]


setup(
    distclass=DataDistribution,
    name=NAME,
    version="0.1.0",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={"": ["py.typed", "*.pyi", "*.html"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (str(SHARE), ["package.xml"]),
        (f"lib/{NAME}", sorted(str(path) for path in Path("scripts").iterdir())),
        *(entry for folder in ("launch", "config", "urdf", "rviz") for entry in data_tree(folder)),
    ],
    install_requires=requirements(),
    # colcon test runs pytest where "test" asks for it.
    extras_require={name: requirements(name) for name in (*DEPENDENCIES["EXTRAS"], "all")} | {"test": ["pytest"]},
    python_requires=">=3.11",
    zip_safe=True,
    maintainer="morphit_ros maintainers",
    maintainer_email="maintainers@morphit-ros.example.org",
    description="A sense of shape for robots: spheres, superovoids, grasps, morphing covers, neural objects.",
    license="Apache-2.0",
    entry_points={"console_scripts": ["morphit = morphit_ros.cli:main"]},
)
