"""Exact clearance of an open gripper to convex objects: a `ClearanceFunction` for grasping and execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, make_transform
from morphit_ros.superovoid.distances.batch import min_distances
from morphit_ros.superovoid.distances.packing import Shape, ShapeTable
from morphit_ros.superovoid.distances.primitives import Box


class BoxLike(Protocol):
    """A box in the gripper's frame, as gripper data describe palm and fingers."""

    @property
    def center(self) -> Array:
        """(3,) [m]."""

    @property
    def size(self) -> Array:
        """(3,) full lengths [m]."""


# A hand's shapes at an opening [m], each with its pose ``T_gripper_shape`` (4, 4).
HandShapes = Callable[[float], Sequence[tuple[Shape, Array]]]


def hand_of_boxes(boxes: Callable[[float], Sequence[BoxLike]]) -> HandShapes:
    """Palm and fingers as gripper data have them, in the gripper's frame at an opening [m]."""

    def shapes(aperture: float) -> list[tuple[Shape, Array]]:
        return [
            (Box((float(box.size[0]), float(box.size[1]), float(box.size[2]))), make_transform(translation=box.center))
            for box in boxes(aperture)
        ]

    return shapes


class ObjectClearance:
    """Signed distance between a gripper and objects that stand still.

    It holds no state between calls and may be asked from several threads.

    Args:
        hand: shapes of palm and fingers.
        objects: convex shapes with their poses ``T_world_shape`` (4, 4), such as the table as a half-space.

    Raises:
        InvalidInputError: nothing to keep clear of, or a pose that is no rigid motion.
    """

    def __init__(self, hand: HandShapes, objects: Sequence[tuple[Shape, Array]]) -> None:
        if not objects:
            raise InvalidInputError("objects", "none", "at least one shape to keep clear of")
        self._hand = hand
        self._table = ShapeTable.of([shape for shape, _ in objects])
        self._poses = np.array([check_transform(pose, "T_world_shape") for _, pose in objects])

    def __call__(self, T_world_gripper: Array, open_aperture: float) -> float:
        """Signed distance [m] at a pose (4, 4) and an opening [m].

        Raises:
            InvalidInputError: a pose that is no rigid motion, or not finite.
        """
        pose = check_transform(T_world_gripper, "T_world_gripper")
        shapes, poses = zip(*self._hand(open_aperture), strict=True)
        placed = np.array([pose @ T_gripper_shape for T_gripper_shape in poses])
        grid = np.indices((len(shapes), len(self._table))).reshape(2, -1).T
        result = min_distances(list(shapes), placed, self._table, self._poses, grid, nearest_only=True)
        return float(result.distances[result.nearest])
