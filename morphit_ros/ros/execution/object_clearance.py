"""The distance function of the open gripper that planning and execution may use besides points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.grasping import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.robot.clearance import ClearanceFunction
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.scene.messages import TablePatch
from morphit_ros.ros.scene.world_objects import seen_objects

if TYPE_CHECKING:
    from morphit_ros.superovoid.distances.packing import Shape
    from morphit_ros.superovoid.robots.clearance import HandShapes

# A superovoid has 13 numbers to find; clouds with fewer points are left to the checks against points.
_LEAST_POINTS = 30
_NO_POINTS = np.empty((0, 3))


@dataclass(frozen=True)
class ClearanceConfig(Config):
    """What the open gripper is kept clear of."""

    clearance: str = parameter(
        "points",
        "Distance function of the open gripper: points (those of the clouds alone), superovoids (in addition the exact "
        "distance to a superovoid, which is fitted to each object anew), world (in addition the certified distance of "
        "the hand's superovoids to what stands in world_objects, as monitors, planned motions and the page have it)",
        choices=("points", "superovoids", "world"),
    )


@dataclass(frozen=True)
class ExecutedClearanceConfig(ClearanceConfig):
    """The same for grasps that come ready planned."""

    min_clearance: float = parameter(
        0.0,
        "Grasps that superovoids put nearer than this are not executed; negative for shapes that bulge beyond the "
        "object [m]",
        minimum=-0.05,
        maximum=0.1,
    )


def known_hand(config: ClearanceConfig, robot: str) -> HandShapes | None:
    """The hand of a robot as superovoids, where the configuration asks for it.

    Args:
        config: which distance function.
        robot: name in config/robots or a YAML file.

    Raises:
        InvalidInputError: no robot, or none of the links that touch what it holds has superovoids.
        ResourceNotFoundError: no such robot, or no superovoids for it.
    """
    if config.clearance != "world":
        return None
    if not robot:
        raise InvalidInputError("robot", "none", "a robot, whose hand is kept clear with clearance world")
    from morphit_ros.robot.description import load_robot_description
    from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig

    file = RobotConfiguration.load(robot)
    body = RobotBody(RobotBodyConfig(), robot).described(load_robot_description(file.description))
    assert body.superovoids is not None
    links, kinematics = body.superovoids.links, body.known.model
    hand = [(name, placed) for name in file.touch_links if name in links for placed in links[name].shapes]
    if not hand:
        raise InvalidInputError("touch_links", list(file.touch_links), f"a link with superovoids: {', '.join(links)}")
    home = dict.fromkeys(kinematics.joint_names, 0.0)

    def shapes(aperture: float) -> list[tuple[Shape, Array]]:
        poses = kinematics.forward_kinematics(home | file.finger_state(aperture))
        T_gripper_root = invert_transform(poses[file.tip_link] @ file.T_tip_gripper)
        return [(placed.shape, T_gripper_root @ poses[name] @ placed.T_link_shape) for name, placed in hand]

    return shapes


def object_clearance(
    config: ClearanceConfig,
    gripper: Gripper | SuctionCup,
    objects: Sequence[PointCloud],
    table: TablePatch | None,
    loose: Array = _NO_POINTS,
    hand: HandShapes | None = None,
) -> ClearanceFunction | None:
    """What the configuration asks for, in the frame of the clouds; None where points are enough.

    Args:
        config: which.
        gripper: its boxes are kept clear.
        objects: the object to grasp and its neighbours.
        table: in the same frame; None if there is none.
        loose: (N, 3) points of no object [m], which count in the world.
        hand: of `known_hand`, instead of the gripper's boxes.

    Raises:
        InvalidInputError: no cloud that a superovoid can be fitted to, or with `hand` nothing at all.
    """
    if config.clearance == "points":
        return None
    from morphit_ros.superovoid import HalfSpace, ObjectClearance, fit_superovoid, hand_of_boxes

    if hand is not None:
        from morphit_ros.ros.distance.messages import objects_from_messages

        clouds = {str(number): cloud for number, cloud in enumerate(objects)}
        seen = objects_from_messages(seen_objects(table, clouds, loose, np.eye(4)))
        placed = [(each.shape, item.T_frame_object @ each.T_object_shape) for item in seen for each in item.shapes]
        return ObjectClearance(hand, placed)
    large = [cloud.points for cloud in objects if len(cloud) >= _LEAST_POINTS]
    if not large:
        most = max((len(cloud) for cloud in objects), default=0)
        raise InvalidInputError("object cloud", f"{most} points", f"{_LEAST_POINTS} or more for a superovoid")
    fitted = [fit_superovoid(points).placed for points in large]
    shapes: list[tuple[Shape, Array]] = [(each.shape, each.T_link_shape) for each in fitted]
    if table is not None:
        shapes.append((HalfSpace(), table.T_world_table))
    return ObjectClearance(hand_of_boxes(gripper.collision_boxes), shapes)
