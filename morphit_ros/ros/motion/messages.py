"""Requests and answers of the action `plan_motion`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from std_msgs.msg import Header

from morphit_interfaces.action import PlanMotion
from morphit_interfaces.msg import MotionPlan
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.motion.arm_planner import MotionAnswer, MotionRequest, PoseGoal
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core.conversions import matrix_from_pose, message_from_trajectory, point_from_array
from morphit_ros.ros.core.fields import write_fields
from morphit_ros.ros.motion.world import Surroundings


def request_from_message(
    goal: PlanMotion.Goal,
    robot: RobotConfiguration,
    start: Mapping[str, float],
    around: Surroundings,
    T_root_frame: Callable[[str], Array],
) -> MotionRequest:
    """What a goal asks for.

    Args:
        goal: of the action.
        robot: whose arm it is.
        start: position of every joint [rad or m].
        around: what the motion is planned among.
        T_root_frame: as of `surroundings`.

    Raises:
        InvalidInputError: numbers that don't fit the joints' names, a link, frame or pose that is none, or a time that
            is negative.
    """
    names = list(goal.joint_names) or list(robot.arm_joints)
    numbers = np.array(goal.joint_goals, dtype=np.float64)
    if len(numbers) % len(names):
        raise InvalidInputError("joint_goals", f"{len(numbers)} numbers", f"a multiple of {len(names)} joints")
    for name in ("timeout", "improvement_time", "velocity_scaling", "acceleration_scaling"):
        value = getattr(goal, name)
        if not (np.isfinite(value) and value >= 0.0):
            raise InvalidInputError(name, value, "0 or more, finite")
    poses = []
    for index, message in enumerate(goal.pose_goals):
        try:
            pose = T_root_frame(message.header.frame_id) @ matrix_from_pose(message.pose)
        except InvalidInputError as error:
            raise InvalidInputError(f"pose_goals[{index}]: {error.name}", error.value, error.bound) from None
        # The gripper's frame is no link: its pose is the tip's.
        tip = pose if goal.link else pose @ invert_transform(robot.T_tip_gripper)
        poses.append(PoseGoal(goal.link or robot.tip_link, tip))
    return MotionRequest(
        start=start,
        joint_goals=[dict(zip(names, row, strict=True)) for row in numbers.reshape(-1, len(names)).tolist()],
        pose_goals=poses,
        world=around.world,
        carried=around.carried,
        allowed=allowed_pairs(goal),
        timeout=goal.timeout or None,
        improvement=goal.improvement_time,
        velocity_scaling=goal.velocity_scaling or None,
        acceleration_scaling=goal.acceleration_scaling or None,
    )


def allowed_pairs(goal: PlanMotion.Goal) -> list[frozenset[str]]:
    """Pairs that may touch.

    Raises:
        InvalidInputError: lists of different lengths.
    """
    first, second = goal.allowed_1, goal.allowed_2
    if len(first) != len(second):
        raise InvalidInputError("allowed_1, allowed_2", f"{len(first)} and {len(second)} names", "as many of both")
    return [frozenset(pair) for pair in zip(first, second, strict=True)]


def result_from_answer(answer: MotionAnswer, model_hash: str) -> PlanMotion.Result:
    """The result of a goal."""
    found = answer.trajectory is not None
    free = answer.free_configuration
    return write_fields(
        PlanMotion.Result(), success=found, status=answer.status, message=answer.message, goal=answer.goal,
        trajectory=message_from_trajectory(answer.trajectory),
        certificate=answer.verdict.value if answer.verdict is not None else "",
        touching=list(answer.touching or ("", "")), depth=answer.depth,
        free_configuration=np.zeros(0) if free is None else free,
        model_hash=model_hash, length=answer.plan.length if found and answer.plan is not None else 0.0,
        planning_time=answer.planning_time,
        proof_time=answer.plan.proof_time if answer.plan is not None else 0.0,
    )  # fmt: skip


def message_from_answer(
    result: PlanMotion.Result, header: Header, way: tuple[Array, Array], trees: tuple[Array, Array]
) -> MotionPlan:
    """What displays show of an answer.

    Args:
        result: of the goal.
        header: names the root link.
        way: points (N, 3) along it, and clearances there (N,) [m].
        trees: ends of branches (B, 3), two by two [m].
    """
    points, clearance = way
    start_tree, goal_tree = ([point_from_array(row) for row in tree] for tree in trees)
    return MotionPlan(
        header=header, success=result.success, message=result.message or result.status, certificate=result.certificate,
        trajectory=result.trajectory, way=[point_from_array(row) for row in points], clearance=clearance.tolist(),
        start_tree=start_tree, goal_tree=goal_tree,
    )  # fmt: skip
