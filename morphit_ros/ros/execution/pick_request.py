"""An ExecuteGrasp goal as the request of the grasp sequence, in the robot's base frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from morphit_interfaces.action import ExecuteGrasp
from morphit_interfaces.msg import Grasp as GraspMsg
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.motion import ObjectObstacle
from morphit_ros.execution.obstacles import loose_obstacle, object_obstacle, table_obstacle
from morphit_ros.execution.pick import GraspTarget, PickRequest
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform
from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.grasping.messages import grasp_from_message
from morphit_ros.ros.scene.messages import cloud_of, other_things, table_from_message

# A neighbour's spheres bulge by 5 mm on the mean with these; with half as many by 7 mm, and fingers fit beside fewer.
_NEIGHBOUR_SPHERES = 80


def pick_request(
    goal: ExecuteGrasp.Goal,
    T_world_base: Array,
    world_frame: str,
    base_link: str,
    oldest: float,
    reaches: Callable[[Array, Mapping[str, float]], bool],
) -> PickRequest:
    """Candidates, object, other things and table in the base frame.

    Args:
        goal: geometry in the world frame or in the base link.
        T_world_base: (4, 4).
        world_frame: name of the world frame.
        base_link: name of the robot's base.
        oldest: grasps with an earlier stamp are refused [s]; a stamp of zero is none.
        reaches: whether joint positions [rad] bring the gripper to ``T_base_gripper``; positions of pre-grasps that do
            not are left out, since they are another robot's.

    Raises:
        InvalidInputError: old grasps, geometry in another frame, or broken geometry; names what it is.
    """
    stamp = seconds_from_stamp(goal.grasps.header.stamp)
    if 0.0 < stamp < oldest:
        raise InvalidInputError(
            "grasps",
            f"a stamp of {stamp:.3f} s",
            f"one from {oldest:.3f} s on",
            "Plan on a new cloud, or raise max_age.",
        )

    def target(message: GraspMsg) -> GraspTarget:
        grasp = grasp_from_message(message)
        T_base_world = _T_base("grasp", message.header.frame_id, T_world_base, world_frame, base_link)
        T_base_pregrasp = T_base_world @ grasp.T_world_pregrasp
        positions = _positions(goal.grasps.arm_joints, message)
        if positions is not None and not reaches(T_base_pregrasp, positions):
            positions = None
        return GraspTarget(
            T_base_world @ grasp.T_world_gripper, T_base_pregrasp, grasp.aperture, grasp.open_aperture, positions
        )

    cloud = object_in_base(goal, T_world_base, world_frame, base_link)
    obstacle = None if cloud is None else object_obstacle("target", cloud, make_transform())
    table, slab = table_from_message(goal.table), None
    if table is not None:
        T_base_patch = _T_base("table", goal.table.header.frame_id, T_world_base, world_frame, base_link)
        slab = table_obstacle(T_base_patch @ table.T_world_table, table.size)
    candidates = tuple(target(grasp) for grasp in goal.grasps.grasps)
    others = _others(goal, T_world_base, world_frame, base_link)
    return PickRequest(candidates, obstacle, others, table=slab, lift_height=goal.lift_height)


def object_in_base(goal: ExecuteGrasp.Goal, T_world_base: Array, world_frame: str, base_link: str) -> PointCloud | None:
    """The points of the object in the base frame, None if the goal has none; arguments as of `pick_request`.

    Raises:
        InvalidInputError: they are in another frame, or cannot be read.
    """
    if not goal.object.cloud.data:
        return None
    T_base_object = _T_base("object", goal.object.header.frame_id, T_world_base, world_frame, base_link)
    return cloud_of(goal.object).finite().transformed(T_base_object)


def clouds_in_base(goal: ExecuteGrasp.Goal, T_world_base: Array, world_frame: str, base_link: str) -> list[PointCloud]:
    """The object and its neighbours in the base frame, as far as the goal has them; arguments as of `pick_request`.

    Raises:
        InvalidInputError: they are in another frame, or cannot be read.
    """
    target = object_in_base(goal, T_world_base, world_frame, base_link)
    clouds = [] if target is None else [target]
    if goal.scene.objects:
        T_base_scene = _T_base("scene", goal.scene.header.frame_id, T_world_base, world_frame, base_link)
        others = other_things(goal.scene, goal.object).objects.values()
        clouds += [cloud.transformed(T_base_scene) for cloud in others]
    return clouds


def _positions(arm_joints: Sequence[str], message: GraspMsg) -> dict[str, float] | None:
    """Positions of the arm at a pre-grasp, None if they are not known.

    Raises:
        InvalidInputError: names and positions differ in number, or a position is not finite.
    """
    values = message.pregrasp_positions
    if not len(values):
        return None
    if len(values) != len(arm_joints) or not np.isfinite(values).all():
        raise InvalidInputError(
            "pregrasp_positions", list(values), f"a finite one for each of the {len(arm_joints)} arm_joints [rad]"
        )
    return dict(zip(arm_joints, map(float, values), strict=True))


def _others(
    goal: ExecuteGrasp.Goal, T_world_base: Array, world_frame: str, base_link: str
) -> tuple[ObjectObstacle, ...]:
    """What else was seen: an obstacle for each object, and one for all points of no object."""
    scene = goal.scene
    if not (scene.objects or scene.obstacles.data):
        return ()
    T_base_scene = _T_base("scene", scene.header.frame_id, T_world_base, world_frame, base_link)
    others = other_things(scene, goal.object)
    found = [
        object_obstacle(f"object {number}", cloud, T_base_scene, _NEIGHBOUR_SPHERES)
        for number, cloud in others.objects.items()
    ]
    if len(others.loose):
        found.append(loose_obstacle("points of no object", others.loose, T_base_scene))
    return tuple(found)


def _T_base(what: str, frame: str, T_world_base: Array, world_frame: str, base_link: str) -> Array:
    """``T_base_frame`` (4, 4) of one of the two frames that goals may use."""
    if frame == base_link:
        return make_transform()
    if frame != world_frame:
        raise InvalidInputError(f"{what}: frame", repr(frame), f"{world_frame} or {base_link}")
    return invert_transform(T_world_base)
