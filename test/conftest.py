"""In which order workers take the tests (pytest -n 2 --dist loadfile), and where compiled kernels are.

Without workers the order is pytest's own.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from types import ModuleType

import pytest

from morphit_ros.resources import cache_directory

# Tests have caches of their own, but compile no kernels anew.
os.environ.setdefault("MORPHIT_KERNELS", str(cache_directory("kernels")))

# Folders whose tests render off screen, which takes long: they come first.
RENDERING = ("bench", "display", "simulation")
# How many of the others a test with the mark "slow" takes as long as.
SLOW = 100


@pytest.fixture(scope="session")
def mujoco() -> ModuleType:
    """The module mujoco, imported by this package first: it chooses what MuJoCo renders with, once for a process."""
    if importlib.util.find_spec("mujoco") is None:
        pytest.skip("needs the simulation: mujoco")
    from morphit_ros.simulation.rendering import import_mujoco

    return import_mujoco()


@pytest.fixture
def plain_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Browsers draw WebGL without smoothing its edges, which is a third of the work where there is no GPU."""
    from morphit_ros.display import screenshot

    monkeypatch.setattr(screenshot, "_FLAGS", (*screenshot._FLAGS, "--webgl-antialiasing-mode=none"))


def file_of(nodeid: str) -> str:
    """What one worker runs as a whole."""
    return nodeid.partition("::")[0]


def renders(file: str) -> bool:
    return file.removeprefix("test/").partition("/")[0] in RENDERING


@pytest.hookimpl(trylast=True)  # after what -m and -k leave out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What renders, then long files first: one that comes last leaves the other workers with nothing to do."""
    if not hasattr(config, "workerinput"):
        return
    lengths = Counter[str]()
    for item in items:
        lengths[file_of(item.nodeid)] += SLOW if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: (not renders(file_of(item.nodeid)), -lengths[file_of(item.nodeid)]))


def pytest_configure(config: pytest.Config) -> None:
    # The order of this file, rather than that of the number of tests.
    config.option.loadscopereorder = False
