"""The protocol between the grasp sequence and whatever plans motions.

A backend owns a collision model of robot and world. It is called from one thread. A failed
plan is a result with a status, not an exception.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.solids import Solid


class MotionBackendError(MorphitError):
    """A motion backend that did not start, or broke; not a plan that failed."""


class MotionStatus(enum.Enum):
    """Outcome of a planning request."""

    SUCCEEDED = "succeeded"
    START_IN_COLLISION = "the start is in collision"
    GOAL_IN_COLLISION = "every inverse kinematics solution of the goal is in collision"
    UNREACHABLE = "the goal has no inverse kinematics solution within the joint limits"
    NO_PATH = "no collision-free path was found in the time allowed"
    PATH_BLOCKED = "the straight line is blocked or leaves the reachable set"
    FAILED = "the planner failed"


@dataclass(frozen=True)
class MotionResult:
    """A trajectory, or why there is none.

    Attributes:
        status: outcome.
        trajectory: None unless the status is SUCCEEDED.
        message: details for people: which joint, which pair, how far along the line.
        planning_time: [s].
        proven: whether the backend has proven that its model of the robot touches nothing between the samples either.
        covered: whether that model contains the robot's links, so that they touch nothing.
    """

    status: MotionStatus
    trajectory: Trajectory | None = None
    message: str = ""
    planning_time: float = 0.0
    proven: bool = False
    covered: bool = False


@dataclass(frozen=True)
class TableObstacle:
    """A slab below the upper face z = 0 of ``T_base_table``; `size` (2,) along x and y [m]."""

    T_base_table: Array
    size: Array
    thickness: float = 0.05


@dataclass(frozen=True)
class ObjectObstacle:
    """An object as spheres: `centers` (N, 3) and `radii` (N,) [m] in the base frame."""

    name: str
    centers: Array
    radii: Array


class MotionBackend(Protocol):
    """Plans collision-free motions of one arm. Poses are of the gripper frame, in the base link's frame.

    `start` maps joint names to positions [rad], in any order; joints of other devices are ignored.
    """

    def set_world(
        self, table: TableObstacle | None, objects: Sequence[ObjectObstacle], solids: Sequence[Solid] = ()
    ) -> None:
        """Replace all obstacles; solids in the base frame. Detaches what was attached."""

    def plan_to_pose(self, start: Mapping[str, float], T_base_gripper: Array) -> MotionResult:
        """Any collision-free path to the pose."""

    def plan_to_joints(self, start: Mapping[str, float], goal: Mapping[str, float]) -> MotionResult:
        """A collision-free path to arm joint positions [rad]."""

    def plan_straight(
        self, start: Mapping[str, float], T_base_gripper: Array, speed: float, allow_contact: Sequence[str] = ()
    ) -> MotionResult:
        """A straight line of the gripper frame at `speed` [m/s]; may touch the objects named in `allow_contact`.

        Those of them that are attached may touch the table.
        """

    def attach(self, object_name: str, T_base_gripper: Array) -> None:
        """Make an object of the world part of the gripper, which may touch it, from the pose of the gripper given."""

    def detach(self, object_name: str) -> None:
        """Forget an attached object."""

    def close(self) -> None:
        """Release processes and handles."""
