"""Settings and answers of the reachability check."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class ReachabilityConfig(Config):
    """Settings of the reachability check."""

    attempts: int = parameter(12, "Starts of the inverse kinematics for a pose", minimum=1, maximum=1000)
    library: int = parameter(4000, "Joint positions that starts are chosen from", minimum=1, maximum=1_000_000)
    iterations: int = parameter(40, "Steps of one start", minimum=1, maximum=1000)
    position_tolerance: float = parameter(1e-4, "Accepted distance to a pose [m]", minimum=1e-7, maximum=0.01)
    rotation_tolerance: float = parameter(1e-3, "Accepted angle to a pose [rad]", minimum=1e-6, maximum=0.1)
    line_step: float = parameter(0.01, "Distance of checks along the approach [m]", minimum=1e-3, maximum=0.05)
    lift_step: float = parameter(0.02, "Distance of checks along the lift [m]", minimum=1e-3, maximum=0.05)
    joint_rate: float = parameter(
        40.0, "A joint that moves more for each metre of a straight line jumps [rad/m]", minimum=1.0, maximum=1000.0
    )
    turn_radius: float = parameter(
        0.2, "Way that a radian of turning counts as along a line [m]", minimum=0.01, maximum=2.0
    )
    lift_height: float = parameter(0.2, "Height of the lift after the grasp, 0 for none [m]", minimum=0.0, maximum=1.0)
    limit_margin: float = parameter(0.03, "Kept free at both ends of a joint's range [rad]", minimum=0.0, maximum=0.2)
    touch_clearance: float = parameter(
        0.005, "How much lower the table is for links that may touch objects [m]", minimum=0.0, maximum=0.05
    )
    palm_depth: float = parameter(
        0.01,
        "Depth to which the palm's spheres may enter the target: they bulge, and planning kept its boxes clear [m]",
        minimum=0.0,
        maximum=0.1,
    )
    target_spacing: float = parameter(0.005, "Grid of the target's points [m]", minimum=1e-3, maximum=0.05)
    obstacle_spacing: float = parameter(0.01, "Grid of the obstacles' points [m]", minimum=1e-3, maximum=0.05)
    obstacle_clearance: float = parameter(
        0.003, "Kept between the robot and other things [m]", minimum=0.0, maximum=0.05
    )
    flip: bool = parameter(True, "Try the gripper turned by 180° about its approach as well")


class ReachStatus(enum.Enum):
    """Outcome for one grasp: of several attempts, how far the best one came."""

    REACHABLE = "reachable"
    NO_IK = "out of the arm's reach"
    JOINT_LIMITS = "reached only beyond the joint limits"
    COLLISION_TABLE = "collision with the table"
    COLLISION_OBJECT = "collision with the object"
    COLLISION_OBSTACLE = "collision with another object"
    COLLISION_SELF = "collision of the robot with itself"
    APPROACH_DISCONTINUOUS = "the straight approach or lift leaves the reachable set"


@dataclass(frozen=True)
class ReachResult:
    """Answer for one grasp.

    Attributes:
        status: outcome.
        flipped: whether the gripper has to be turned by 180° about its approach.
        positions, pregrasp_positions: (J,) arm joints at the grasp and at the pre-grasp [rad], NaN if not reachable.
        limit_margin: least distance of a joint to its limit on approach and lift [rad].
        manipulability: √det(J Jᵀ) at the grasp.
    """

    status: ReachStatus
    flipped: bool
    positions: Array
    pregrasp_positions: Array
    limit_margin: float
    manipulability: float

    @property
    def reachable(self) -> bool:
        return self.status is ReachStatus.REACHABLE


@dataclass(frozen=True)
class ReachResults:
    """Answers for S grasps; attributes as of `ReachResult`, one row each.

    Attributes:
        statuses: S outcomes.
        reachable, flipped: (S,).
        positions, pregrasp_positions: (S, J).
        limit_margins, manipulabilities: (S,).
    """

    statuses: tuple[ReachStatus, ...]
    flipped: NDArray[np.bool_]
    positions: Array
    pregrasp_positions: Array
    limit_margins: Array
    manipulabilities: Array

    @property
    def reachable(self) -> NDArray[np.bool_]:
        return np.array([status is ReachStatus.REACHABLE for status in self.statuses], dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.statuses)

    def __getitem__(self, row: int) -> ReachResult:
        return ReachResult(
            self.statuses[row],
            bool(self.flipped[row]),
            self.positions[row],
            self.pregrasp_positions[row],
            float(self.limit_margins[row]),
            float(self.manipulabilities[row]),
        )
