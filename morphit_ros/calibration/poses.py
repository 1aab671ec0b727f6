"""Poses of an arm that show it to the cameras from many sides: to be visited for a calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.calibration.robot_surface import PosedSurface, RobotSurface
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.robot.configuration import RobotConfiguration

# Above the table, and between links that are not neighbours [m].
_CLEARANCE = 0.04
_TRIES = 8000


def draw_poses(
    robot: RobotConfiguration,
    surface: RobotSurface,
    count: int,
    seed: int = 0,
    middle: Sequence[float] = (),
    reach: float = 0.25,
    table_height: float = 0.0,
) -> Array:
    """Positions of the arm's joints, each pose above the table, with the hand near a place, free of self-contact.

    Nobody has planned the ways between them.

    Args:
        robot, surface: the arm; its base stands upright on the table.
        count: number of poses.
        seed: of the draws.
        middle: where the hand is to be, (3,) in the base [m]; empty: where it is at home.
        reach: how far from there [m].
        table_height: in the base [m].

    Returns:
        (count, J), in the order of ``robot.arm_joints``.

    Raises:
        InvalidInputError: not so many were found.
    """
    rng = np.random.default_rng(seed)
    kinematics = surface.kinematics
    lower, upper, _ = kinematics.limits(robot.arm_joints)
    # Not all of the joints' ranges: what is 60° about the home keeps the hand in view and the wrist turning.
    low, high = np.maximum(lower + 0.05, robot.home - 1.3), np.minimum(upper - 0.05, robot.home + 1.3)
    far = _far_links(robot, surface)
    fingers = dict.fromkeys(robot.finger_joints, 0.0)
    at_home = fingers | dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    target = _tip(robot, surface, at_home) if not len(middle) else np.asarray(middle, dtype=np.float64)
    found: list[Array] = []
    for _ in range(_TRIES):
        if len(found) == count:
            return np.array(found)
        values = rng.uniform(low, high)
        positions = fingers | dict(zip(robot.arm_joints, values.tolist(), strict=True))
        if np.linalg.norm(_tip(robot, surface, positions) - target) > reach:
            continue
        posed = surface.at(positions)
        if _is_clear(posed, far, table_height, surface):
            found.append(values)
    bound = f"{count} poses with the hand within {reach:g} m of {np.round(target, 2).tolist()}"
    raise InvalidInputError("poses", f"{len(found)} found", bound, "Choose another middle, or a greater reach.")


def _tip(robot: RobotConfiguration, surface: RobotSurface, positions: dict[str, float]) -> Array:
    poses = surface.kinematics.forward_kinematics(positions)
    T_base_tip = invert_transform(poses[robot.base_link]) @ poses[robot.tip_link] @ robot.T_tip_gripper
    return transform_points(T_base_tip, np.zeros(3))


def _far_links(robot: RobotConfiguration, surface: RobotSurface) -> list[tuple[int, int]]:
    """Pairs of rows of links that are three and more moving joints apart."""
    depth = {}
    for row, name in enumerate(surface.link_names):
        joint, moving = surface.kinematics.description.parent_joint(name), 0
        while joint is not None:
            moving += joint.name in robot.arm_joints
            joint = surface.kinematics.description.parent_joint(joint.parent)
        depth[row] = moving
    return [(a, b) for a in depth for b in depth if depth[b] - depth[a] >= 3]


def _is_clear(posed: PosedSurface, far: Sequence[tuple[int, int]], table_height: float, surface: RobotSurface) -> bool:
    from scipy.spatial import cKDTree

    moving = posed.links > 1
    if posed.points[moving, 2].min() < table_height + _CLEARANCE:
        return False
    thin = posed.points[::20], posed.links[::20]
    trees = {row: cKDTree(thin[0][thin[1] == row]) for row in range(len(surface.link_names)) if (thin[1] == row).any()}
    return not any(a in trees and b in trees and trees[a].count_neighbors(trees[b], _CLEARANCE) for a, b in far)
