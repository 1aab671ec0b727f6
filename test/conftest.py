"""How workers share the tests (pytest -n 2 --dist loadfile): what takes long first, and a room's kernels compiled once.

Without workers nothing here has an effect.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from morphit_ros.resources import cache_directory

# Tests have caches of their own, but compile no kernels anew.
os.environ.setdefault("MORPHIT_KERNELS", str(cache_directory("kernels")))

# Rooms with many compiled kernels. Two workers in one of them would compile the same kernels at the same time.
COMPILED_ROOMS = ("cover", "grasping", "spheres", "superovoid")
# How many of the others a test with the mark "slow" takes as long as.
SLOW = 100


def unit(nodeid: str) -> str:
    """What one worker runs as a whole: a room with compiled kernels, otherwise a file."""
    file = nodeid.partition("::")[0]
    room = file.removeprefix("test/").partition("/")[0]
    return room if room in COMPILED_ROOMS else file


@pytest.hookimpl(trylast=True)  # after what -m and -k leave out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long units first: one that comes last leaves the other workers with nothing to do."""
    if not hasattr(config, "workerinput"):
        return
    lengths = Counter[str]()
    for item in items:
        lengths[unit(item.nodeid)] += SLOW if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -lengths[unit(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Files as always with --dist loadfile, but by the units and in the order of this file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class UnitScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    config.option.loadscopereorder = False
    return UnitScheduling(config, log)
