"""Exact clearance of an open gripper to objects as superovoids: a `ClearanceFunction` for grasping and execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, make_transform
from morphit_ros.superovoid.distances.batch import min_distances
from morphit_ros.superovoid.distances.packing import Shape, ShapeTable
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Box


class BoxLike(Protocol):
    """A box in the gripper's frame, as gripper data describe palm and fingers."""

    @property
    def center(self) -> Array:
        """(3,) [m]."""

    @property
    def size(self) -> Array:
        """(3,) full lengths [m]."""


class ObjectClearance:
    """Signed distance between a gripper made of boxes and objects that stand still.

    It holds no state between calls and may be asked from several threads.

    Args:
        boxes: palm and fingers at an aperture [m], in the gripper's frame.
        objects: superovoids in the world's frame.
        others: further shapes, with their poses ``T_world_shape`` (4, 4), such as the table as a half-space.

    Raises:
        InvalidInputError: nothing to keep clear of, or a pose that is no rigid motion.
    """

    def __init__(
        self,
        boxes: Callable[[float], Sequence[BoxLike]],
        objects: Sequence[PlacedSuperovoid],
        others: Sequence[tuple[Shape, Array]] = (),
    ) -> None:
        if not objects and not others:
            raise InvalidInputError("objects", "none", "at least one shape to keep clear of")
        self._boxes = boxes
        shapes: list[Shape] = [placed.shape for placed in objects]
        shapes += [shape for shape, _ in others]
        poses = [placed.T_link_shape for placed in objects]
        poses += [check_transform(pose, "T_world_shape") for _, pose in others]
        self._table = ShapeTable.of(shapes)
        self._poses = np.array(poses)

    def __call__(self, T_world_gripper: Array, open_aperture: float) -> float:
        """Signed distance [m] at a pose (4, 4) and an opening [m].

        Raises:
            InvalidInputError: a pose that is no rigid motion, or not finite.
        """
        pose = check_transform(T_world_gripper, "T_world_gripper")
        boxes = self._boxes(open_aperture)
        placed = np.array([pose @ make_transform(translation=box.center) for box in boxes])
        shapes = [Box((float(box.size[0]), float(box.size[1]), float(box.size[2]))) for box in boxes]
        grid = np.indices((len(shapes), len(self._table))).reshape(2, -1).T
        result = min_distances(shapes, placed, self._table, self._poses, grid, nearest_only=True)
        return float(result.distances[result.nearest])
