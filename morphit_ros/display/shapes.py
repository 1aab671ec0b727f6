"""Triangles and lines of the simple shapes that pictures and scenes are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import Array


class BoxLike(Protocol):
    """An axis-aligned box: centre (3,) and full size (3,) [m], as grippers describe theirs."""

    @property
    def center(self) -> Array: ...

    @property
    def size(self) -> Array: ...


class GripperLike(Protocol):
    """What is drawn of a gripper: its collision boxes, in the gripper frame."""

    @property
    def palm_boxes(self) -> Sequence[BoxLike]: ...

    def collision_boxes(self, aperture: float) -> Sequence[BoxLike]: ...


# Corner i has the signs of the bits of i: bit 2 is x, bit 1 is y, bit 0 is z.
_SIGNS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_EDGES = np.array([[i, i | bit] for bit in (1, 2, 4) for i in range(8) if not i & bit])


def placed_box(box: BoxLike) -> TriangleMesh:
    """The twelve triangles of a box where it is [m]."""
    mesh = box_mesh(box.size)
    return TriangleMesh(mesh.vertices + box.center, mesh.faces)


def box_edges(box: BoxLike) -> Array:
    """The twelve edges (12, 2, 3) of a box [m]."""
    return (box.center + _SIGNS * box.size)[_EDGES]


def cone_triangles(base: ArrayLike, tip: ArrayLike, radius: float, sides: int = 20) -> Array:
    """Triangles (2 * sides, 3, 3) of a closed cone from its base centre (3,) to its tip (3,) [m]."""
    start, end = np.asarray(base, dtype=np.float64), np.asarray(tip, dtype=np.float64)
    axis = (end - start) / np.linalg.norm(end - start)
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    angles = np.linspace(0.0, 2.0 * np.pi, sides + 1)[:, None]
    rim = start + radius * (np.cos(angles) * first + np.sin(angles) * np.cross(axis, first))
    mantle = np.stack([rim[:-1], rim[1:], np.broadcast_to(end, (sides, 3))], axis=1)
    bottom = np.stack([rim[1:], rim[:-1], np.broadcast_to(start, (sides, 3))], axis=1)
    return np.concatenate([mantle, bottom])


def gripper_fork(gripper: GripperLike, aperture: float) -> Array:
    """A gripper as four line segments (4, 2, 3) [m] in its frame: stem, crossbar and the two fingers.

    The fingers reach from the palm to their tips at y = ±aperture/2.
    """
    boxes = gripper.collision_boxes(aperture)
    tip = max(float(box.center[2] + box.size[2] / 2.0) for box in boxes)
    palm = max(float(box.center[2] + box.size[2] / 2.0) for box in gripper.palm_boxes)
    stem = min(float(box.center[2] - box.size[2] / 2.0) for box in gripper.palm_boxes)
    half = aperture / 2.0
    return np.array(
        [
            [[0.0, 0.0, stem], [0.0, 0.0, palm]],
            [[0.0, -half, palm], [0.0, half, palm]],
            [[0.0, half, palm], [0.0, half, tip]],
            [[0.0, -half, palm], [0.0, -half, tip]],
        ]
    )
