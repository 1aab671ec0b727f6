"""Compile the kernels before the first cloth has to wait for them."""

from __future__ import annotations

from morphit_ros.cloth.cloth import simulate_cloth
from morphit_ros.cloth.config import ClothConfig
from morphit_ros.cloth.scene import drawn_shapes
from morphit_ros.geometry.height_map import height_map_of_mesh


def warm_up() -> float:
    """Let a small cloth fall for a step: its greatest height [m]. A minute without numba's cache."""
    config = ClothConfig(rows=8, cols=8, clearance=0.0, substeps=2)
    cloth = simulate_cloth(drawn_shapes(3, 0.08), config, 1)
    return float(height_map_of_mesh(cloth.mesh(), 0.01).heights.max())
