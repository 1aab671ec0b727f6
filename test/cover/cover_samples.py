"""Covers for the tests: small ones made here, the published ones where the data is."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cover.actuation.placement import place_motors
from morphit_ros.cover.files import load_cover
from morphit_ros.cover.goals.targets import HeightTarget
from morphit_ros.cover.kinematics.start import lay_on_surface
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState

ROOT = Path(__file__).resolve().parents[2]


def data_folder() -> Path:
    """The folder of published start states, or a skip."""
    folder = Path(os.environ.get("MORPHIT_DATA", ROOT.parent / "shared" / "data")) / "cover"
    if not folder.is_dir():
        pytest.skip(f"no published covers in {folder}: set MORPHIT_DATA")
    return folder


@cache
def published(name: str) -> tuple[Cover, CoverState]:
    return load_cover(data_folder() / f"{name}.json")


@cache
def bowl(rows: int, cols: int, fixed: tuple[int, ...] = (0,), motors: bool = True) -> tuple[Cover, CoverState]:
    """A cover on a paraboloid, with motors."""
    cover = Cover(rows, cols, fixed_nodes=fixed)
    state = lay_on_surface(cover, HeightTarget("-3*(x**2 + 1.3*y**2) + 2*x*y"))
    return (cover.with_motors(place_motors(cover, [state], nearby=1).motors) if motors else cover), state


def random_rotation(seed: int) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.random(random_state=seed).as_matrix())
