"""In which order workers take the tests (pytest -n 2 --dist loadfile), and where compiled kernels are.

Without workers the order is pytest's own.
"""

from __future__ import annotations

import importlib.util
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from morphit_ros.geometry.transforms import matrix_from_rpy
from morphit_ros.resources import cache_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.packages import resolve_uri

# Tests have caches of their own, but compile no kernels anew.
os.environ.setdefault("MORPHIT_KERNELS", str(cache_directory("kernels")))

# Folders whose tests start nodes and browsers and wait for what they do. One worker runs them all: two graphs of nodes
# at once on two cores leave some of them without a processor for longer than a robot may be silent.
WAITING = ("ros", "bringup", "display", "examples")
# Folders whose tests render off screen, which takes long: they come first.
RENDERING = ("bench", "simulation")
# How many of the others a test with the mark "slow" takes as long as.
SLOW = 100


@pytest.fixture(scope="session")
def mujoco() -> ModuleType:
    """The module mujoco, imported by this package first: it chooses what MuJoCo renders with, once for a process."""
    if importlib.util.find_spec("mujoco") is None:
        pytest.skip("needs the simulation: mujoco")
    from morphit_ros.simulation.rendering import import_mujoco

    return import_mujoco()


_DESCRIPTION = "package://example-robot-data/robots/panda_description"


def _add_sphere(link: ElementTree.Element, center: np.ndarray, radius: float) -> None:
    collision = ElementTree.SubElement(link, "collision")
    ElementTree.SubElement(collision, "origin", xyz=" ".join(f"{v:.6f}" for v in center), rpy="0 0 0")
    ElementTree.SubElement(ElementTree.SubElement(collision, "geometry"), "sphere", radius=f"{radius:.6f}")


@pytest.fixture(scope="session")
def panda_urdf() -> str:
    """The Panda with its capsules cut into spheres."""
    root = ElementTree.fromstring(resolve_uri(f"{_DESCRIPTION}/urdf/panda_collision.urdf").read_text())
    for link in root.findall("link"):
        for collision in link.findall("collision"):
            link.remove(collision)
            origin, shape = collision.find("origin"), collision.find("geometry")[0]
            center = np.array([float(v) for v in origin.get("xyz").split()]) if origin is not None else np.zeros(3)
            rpy = [float(v) for v in (origin.get("rpy") or "0 0 0").split()] if origin is not None else [0.0, 0.0, 0.0]
            axis = matrix_from_rpy(rpy)[:, 2]
            if shape.tag == "sphere":
                _add_sphere(link, center, float(shape.get("radius")))
            elif shape.tag == "cylinder":
                half = float(shape.get("length")) / 2.0
                for offset in np.linspace(-half, half, 4):
                    _add_sphere(link, center + offset * axis, float(shape.get("radius")))
            else:
                size = np.array([float(v) for v in shape.get("size").split()])
                for offset in np.linspace(-0.4, 0.4, 4):
                    _add_sphere(link, center + offset * size[2] * axis, 0.5 * size[:2].min())
    return ElementTree.tostring(root, encoding="unicode")


@pytest.fixture(scope="session")
def panda_srdf() -> str:
    return resolve_uri(f"{_DESCRIPTION}/srdf/panda.srdf").read_text()


@pytest.fixture(scope="session")
def panda() -> RobotConfiguration:
    return RobotConfiguration.load("panda")


@pytest.fixture
def plain_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Browsers draw WebGL without smoothing its edges, which is a third of the work where there is no GPU."""
    from morphit_ros.display import screenshot

    monkeypatch.setattr(screenshot, "_FLAGS", (*screenshot._FLAGS, "--webgl-antialiasing-mode=none"))


def file_of(nodeid: str) -> str:
    """What one worker runs as a whole."""
    return nodeid.partition("::")[0]


def folder_of(file: str) -> str:
    return file.removeprefix("test/").partition("/")[0]


def pytest_itemcollected(item: pytest.Item) -> None:
    # `make test` finds the files of those that run alone by this text.
    if item.get_closest_marker("alone") and "mark.alone" not in item.path.read_text(encoding="utf-8"):
        raise pytest.UsageError(f"{item.nodeid} is marked alone, and {item.path.name} has no 'mark.alone'")


@pytest.hookimpl(trylast=True)  # after what -m and -k leave out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What waits, what renders, then long files: one that comes last leaves the other workers with nothing to do."""
    if not hasattr(config, "workerinput"):
        return
    lengths = Counter[str]()
    for item in items:
        lengths[file_of(item.nodeid)] += SLOW if item.get_closest_marker("slow") else 1

    def rank(item: pytest.Item) -> tuple[bool, bool, int]:
        file = file_of(item.nodeid)
        return folder_of(file) not in WAITING, folder_of(file) not in RENDERING, -lengths[file]

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files stay whole, and those that wait on one worker."""
    from xdist.scheduler import LoadFileScheduling

    class OneGraphAtATime(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = file_of(nodeid)
            return "waiting" if folder_of(file) in WAITING else file

    return OneGraphAtATime(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    # The order of this file, rather than that of the number of tests.
    config.option.loadscopereorder = False
