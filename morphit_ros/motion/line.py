"""Straight lines of the tip: joint positions along them, without jumps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array, make_transform, rotation_angle
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel

# Tight, so that differences of neighbouring positions are accelerations and not noise.
_EXACT = IKConfig(position_tolerance=1e-7, rotation_tolerance=1e-6, restarts=0)


@dataclass(frozen=True)
class LineTrace:
    """Joint positions along a line, up to where it could be followed.

    Attributes:
        positions: (N, J) [rad], the first is the start.
        lengths: (N,) way up to each position [m]; turning counts as way by `turn_radius`.
        problem: why the line ends early, empty if it is complete.
        total: length of the whole line [m].
    """

    positions: Array
    lengths: Array
    problem: str
    total: float


def trace_line(
    kinematics: KinematicModel,
    joints: Sequence[str],
    tip_link: str,
    start: Mapping[str, float],
    T_root_tip: Array,
    blocked: Callable[[Mapping[str, float]], str],
    step: float,
    largest_joint_step: float,
    turn_radius: float,
) -> LineTrace:
    """Follow a straight line from the start's pose to `T_root_tip`; the orientation turns evenly.

    Args:
        kinematics: the robot.
        joints: the arm's joints.
        tip_link: link that follows the line.
        start: all joint positions.
        T_root_tip: (4, 4) end of the line.
        blocked: why positions are not allowed, empty if they are.
        step: distance between positions [m].
        largest_joint_step: a joint that moves further in one step jumps to another solution [rad].
        turn_radius: way that one radian of turning counts as [m].
    """
    from scipy.spatial.transform import Rotation

    T_start = kinematics.link_pose(start, tip_link)
    rng = np.random.default_rng(0)
    turn = Rotation.from_matrix(T_start[:3, :3].T @ T_root_tip[:3, :3]).as_rotvec()
    shift = T_root_tip[:3, 3] - T_start[:3, 3]
    angle = rotation_angle(T_start[:3, :3].T @ T_root_tip[:3, :3])
    total = max(float(np.linalg.norm(shift)), angle * turn_radius)
    count = max(2, math.ceil(total / step))
    current = dict(start)
    rows = [np.array([start[name] for name in joints])]
    problem = ""
    if total < 1e-6:
        return LineTrace(np.array(rows), np.zeros(1), "", total)
    for index in range(1, count + 1):
        fraction = index / count
        rotation = T_start[:3, :3] @ Rotation.from_rotvec(fraction * turn).as_matrix()
        pose = make_transform(rotation, T_start[:3, 3] + fraction * shift)
        # No restarts: a solution far from the last position would be no use.
        result = inverse_kinematics(kinematics, pose, tip_link, joints, current, rng, _EXACT)
        row = np.array([result.positions[name] for name in joints])
        jump = np.abs(row - rows[-1])
        if result.status is not IKStatus.SUCCEEDED:
            problem = _out_of_reach(kinematics, joints, row, result.residual)
        elif jump.max() > largest_joint_step:
            name = joints[int(jump.argmax())]
            problem = f"{name} would jump by {jump.max():.2f} rad (near a singular position)"
        else:
            current |= result.positions
            problem = blocked(current)
        if problem:
            break
        rows.append(row)
    lengths = np.arange(len(rows), dtype=np.float64) * (total / count)
    return LineTrace(np.array(rows), lengths, problem, total)


def _out_of_reach(kinematics: KinematicModel, joints: Sequence[str], row: Array, residual: tuple[float, float]) -> str:
    lower, upper, _ = kinematics.limits(joints)
    stopped = [
        f"{name} is at its {'lower' if value - low < high - value else 'upper'} limit"
        for name, value, low, high in zip(joints, row, lower, upper, strict=True)
        if min(value - low, high - value) < 1e-6
    ]
    reason = ", ".join(stopped) or "beyond the arm's reach"
    return f"{reason} ({1000.0 * residual[0]:.1f} mm and {math.degrees(residual[1]):.1f}° short)"
