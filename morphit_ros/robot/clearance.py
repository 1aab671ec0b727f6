"""The distance functions that planners of grasps and of motions may be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from morphit_ros.geometry.transforms import Array


class ClearanceFunction(Protocol):
    """How far an open gripper is from what it must not touch, whatever the shapes behind the answer are."""

    def __call__(self, T_world_gripper: Array, open_aperture: float) -> float:
        """Signed distance of palm and open fingers to the nearest of it [m], negative in penetration.

        Args:
            T_world_gripper: (4, 4).
            open_aperture: opening between the pads [m].
        """
        ...


class StateClearance(Protocol):
    """How far a robot, with what it holds, is from what it must not touch, whatever shapes are behind the answer."""

    def __call__(self, states: Sequence[Mapping[str, float]]) -> Array:
        """Signed distances (N,) to the nearest of it [m], negative in penetration, infinite where there is nothing.

        Args:
            states: of each, joint name → position [rad or m].
        """
        ...
