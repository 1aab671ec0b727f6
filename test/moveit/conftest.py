"""The C++ geometry of morphit_moveit for all tests of it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from core_library import Core, compiled


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(tmp_path_factory.mktemp("core"))


@pytest.fixture
def geometry(core: ctypes.CDLL) -> Iterator[Core]:
    made = Core(core)
    yield made
    made.close()
