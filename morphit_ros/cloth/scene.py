"""Shapes for a cloth to fall over: drawn by a seed, or from a file of superovoids, and written to one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from morphit_ros.cloth.config import MOST_SHAPES
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.robots.model_file import load_model, save_model
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.shapes.superovoid import (
    LARGEST_SQUARENESS,
    LARGEST_TAPERING,
    SMALLEST_SQUARENESS,
    Superovoid,
)

# Semi-axes of drawn shapes, as shares of the side of what they stand on; how far from its middle, likewise.
_SEMI_AXES, _REACH = (0.05, 0.15), 0.34
_NAME = "scene"


def drawn_shapes(count: int, extent: float, seed: int = 0) -> list[PlacedSuperovoid]:
    """Shapes of all squareness, half of them tapered, that stand in the floor around the origin.

    Args:
        count: how many, up to 60.
        extent: side of the square that they stand on [m].
        seed: of the draw.

    Raises:
        InvalidInputError: a number out of range, or no positive extent.
    """
    if not 0 <= count <= MOST_SHAPES:
        raise InvalidInputError("count", count, f"from 0 to {MOST_SHAPES}")
    if not (np.isfinite(extent) and extent > 0.0):
        raise InvalidInputError("extent", extent, "a positive length [m]")
    rng = np.random.default_rng(seed)
    return [_drawn(rng, extent) for _ in range(count)]


def _drawn(rng: np.random.Generator, extent: float) -> PlacedSuperovoid:
    axes = extent * rng.uniform(*_SEMI_AXES, 3)
    squareness = rng.uniform(SMALLEST_SQUARENESS, LARGEST_SQUARENESS, 2)
    tapering = rng.uniform(-LARGEST_TAPERING, LARGEST_TAPERING, 2) * rng.integers(0, 2)
    place = [*extent * rng.uniform(-_REACH, _REACH, 2), rng.uniform(0.2, 1.0) * axes[2]]
    turn: Array = matrix_from_rpy([*rng.uniform(-0.5, 0.5, 2), rng.uniform(-np.pi, np.pi)])
    return PlacedSuperovoid(Superovoid(tuple(axes), tuple(squareness), tuple(tapering)), make_transform(turn, place))


def load_shapes(name_or_path: str | Path) -> list[PlacedSuperovoid]:
    """The superovoids of a file, as `superovoid.load_model` reads it, all in the frame of the world.

    Raises:
        ResourceNotFoundError, InvalidInputError: as of `load_model`, or more than 60 shapes.
    """
    model = load_model(name_or_path)
    shapes = [placed for link in model.links.values() for placed in link.shapes]
    if len(shapes) > MOST_SHAPES:
        raise InvalidInputError(str(name_or_path), f"{len(shapes)} shapes", f"at most {MOST_SHAPES}")
    return shapes


def save_shapes(shapes: Sequence[PlacedSuperovoid], path: str | Path) -> None:
    """Write shapes in the frame of the world, as `load_shapes` reads them; complete or not at all."""
    links = {_NAME: LinkSuperovoids(_NAME, tuple(shapes))} if shapes else {}
    save_model(RobotSuperovoids(_NAME, links), path, "Shapes under a cloth, in the world: morphit cloth --shapes FILE.")
