"""Rendered scenes that several test files share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from raycast_scenes import TableScene, View, camera_pair


@pytest.fixture(scope="session")
def four_objects() -> tuple[TableScene, View, View]:
    """A box, a ball, a cup and a T-block as two cameras 60° apart see them."""
    scene = TableScene.of(
        ["box", "ball", "cup", "t_block"],
        [(0.1, 0.12, 0.4), (-0.14, 0.12, 0.0), (-0.05, -0.05, 0.0), (0.15, -0.1, 1.0)],
    )
    left, right = camera_pair(60.0)
    return scene, scene.render(left, seed=1), scene.render(right, seed=2)
