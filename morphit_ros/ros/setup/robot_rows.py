"""Rows about the robot: its description, joint states, controllers and what its driver says."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from morphit_ros.errors import MorphitError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core.conversions import joint_state_from_message
from morphit_ros.ros.core.interfaces import JOINT_STATES, ROBOT_DESCRIPTION
from morphit_ros.ros.execution.driver_state import driver_topics
from morphit_ros.ros.execution.robot_commands import CommandConfig, controller_actions, offered_action
from morphit_ros.ros.setup.expected import ExpectedNode
from morphit_ros.ros.setup.listening import Listener
from morphit_ros.ros.setup.rows import BAD, NOTE, OK, Row

# A calibrated description differs from the robot's file by millimetres; another robot by much more [m].
_CALIBRATED, _ANOTHER = 0.0005, 0.03
# Positions may lie beyond limits by the sensors' errors [rad or m].
_SLACK = 0.01


def published_description(nodes: Sequence[ExpectedNode], listener: Listener) -> RobotDescription | None:
    """What comes on robot_description; None where that is nothing that can be read."""
    text = _newest(nodes, listener, ROBOT_DESCRIPTION.name)
    try:
        return load_robot_description(text.data) if text is not None else None
    except MorphitError:
        return None


def description_rows(robot: RobotConfiguration, nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """The description that is published against the robot's file."""
    text = _newest(nodes, listener, ROBOT_DESCRIPTION.name)
    if text is None:
        return
    subject = ROBOT_DESCRIPTION.name
    try:
        published = load_robot_description(text.data)
        robot.check_description(published)
    except MorphitError as error:
        yield Row(
            BAD,
            "robot",
            subject,
            f"does not fit robot {robot.name}: {error}",
            "give the job the robot's own file (robot:=…), or the driver the description of arm and gripper",
        )
        return
    yield Row(OK, "robot", subject, f"'{published.name}' has what robot {robot.name} names")
    try:
        own = load_robot_description(robot.description)
        shift = _tip_shift(robot, published, own)
    except MorphitError:
        return
    if shift > _ANOTHER:
        yield Row(
            BAD,
            "robot",
            "kinematics",
            f"with the joints at home the tip is {1e3 * shift:.0f} mm from where "
            f"{robot.description.rpartition('/')[2]} has it",
            "is it this robot, with this gripper?",
        )
    else:
        kind = "calibrated: " if shift > _CALIBRATED else ""
        yield Row(OK, "robot", "kinematics", f"{kind}the tip is {1e3 * shift:.1f} mm from that of the robot's file")


def _tip_shift(robot: RobotConfiguration, first: RobotDescription, second: RobotDescription) -> float:
    places = []
    for description in (first, second):
        model = KinematicModel(description)
        joints = dict.fromkeys(model.joint_names, 0.0) | dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
        poses = model.forward_kinematics(joints)
        places.append((np.linalg.inv(poses[robot.base_link]) @ poses[robot.tip_link])[:3, 3])
    return float(np.linalg.norm(places[0] - places[1]))


def joint_rows(
    robot: RobotConfiguration, description: RobotDescription | None, nodes: Sequence[ExpectedNode], listener: Listener
) -> Iterator[Row]:
    """Names, units and limits of joint_states."""
    message = _newest(nodes, listener, JOINT_STATES.name)
    if message is None:
        return
    subject = JOINT_STATES.name
    try:
        state = joint_state_from_message(message)
    except MorphitError as error:
        yield Row(
            BAD,
            "joints",
            subject,
            f"cannot be used: {error}",
            "look at the driver: ros2 topic echo --once /joint_states",
        )
        return
    positions = state.as_dict()
    missing = [name for name in (*robot.arm_joints, *robot.finger_joints) if name not in positions]
    if missing:
        yield Row(
            BAD,
            "joints",
            subject,
            f"without {', '.join(missing)}; has {', '.join(positions)}",
            "joints of the arm: is it this robot? of the fingers: start the gripper's driver",
        )
    else:
        yield Row(
            OK,
            "joints",
            subject,
            f"{len(robot.arm_joints)} joints of the arm, {len(robot.finger_joints)} of the fingers",
        )
    if len(message.velocity) != len(message.name):
        yield Row(NOTE, "joints", "velocities", "not published: whether the arm stands still is told from positions")
    else:
        yield Row(
            OK, "joints", "velocities", f"published, the fastest {np.abs(state.velocities).max():.3f} rad/s or m/s"
        )
    yield from _position_rows(robot, description, positions)


def _position_rows(
    robot: RobotConfiguration, description: RobotDescription | None, positions: dict[str, float]
) -> Iterator[Row]:
    if description is None:
        return
    beyond = []
    for name in (*robot.arm_joints, *robot.finger_joints):
        joint = description.joints.get(name)
        if joint is None or name not in positions:
            continue
        value = positions[name]
        if not joint.lower - _SLACK <= value <= joint.upper + _SLACK:
            beyond.append((name, value, joint))
    if not beyond:
        yield Row(OK, "joints", "positions", "within the limits of the description")
        return
    arm = [(name, value, joint) for name, value, joint in beyond if name in robot.arm_joints]
    in_degrees = bool(arm) and all(
        joint.lower - _SLACK <= math.radians(value) <= joint.upper + _SLACK for _, value, joint in arm
    )
    words = ", ".join(
        f"{name} {value:.3g} of [{joint.lower:.3g}, {joint.upper:.3g}]" for name, value, joint in beyond[:4]
    )
    remedy = "is it this robot, and are its joints' zeros set?"
    if in_degrees:
        remedy = "these look like degrees: joint_states are in radians (REP 103)"
    elif not arm and all(joint.lower - _SLACK <= 1e-3 * value <= joint.upper + _SLACK for _, value, joint in beyond):
        remedy = "these look like millimetres: joint_states are in metres (REP 103)"
    yield Row(BAD, "joints", "positions", f"beyond the limits: {words}", remedy)


def controller_rows(robot: RobotConfiguration, nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Actions of ros2_control's controllers, where the job commands those."""
    wanted = {"arm": "FollowJointTrajectory", "gripper": _gripper_action_type(nodes)}
    for part, action in controller_actions(robot).items():
        name = _resolved(nodes, action)
        offered = offered_action(listener.node, name)
        if offered == wanted[part]:
            yield Row(OK, "controllers", part, f"action {name}, {offered}")
        elif offered:
            remedy = "name the right action under moveit in the robot's file"
            if part == "gripper":
                remedy += ", or set gripper_action_type of grasp_execution in a params_file"
            yield Row(BAD, "controllers", part, f"action {name} is a {offered}, not a {wanted[part]}", remedy)
        else:
            yield Row(
                BAD,
                "controllers",
                part,
                f"no server of the action {name}",
                "start and activate the controller (ros2 control list_controllers), or name yours under moveit in the "
                "robot's file",
            )


def _gripper_action_type(nodes: Sequence[ExpectedNode]) -> str:
    found = (node.parameter("gripper_action_type") for node in nodes if node.described.executable == "grasp_execution")
    return next(filter(None, found), CommandConfig().gripper_action_type)


def driver_rows(robot: RobotConfiguration, nodes: Sequence[ExpectedNode], listener: Listener) -> Iterator[Row]:
    """Topics on which the driver tells of its robot."""
    for topic, package, _, latched in driver_topics(robot):
        name = _resolved(nodes, topic)
        publishers = listener.node.get_publishers_info_by_topic(name)
        if not publishers:
            yield Row(
                BAD,
                "driver",
                name,
                "nobody publishes it: its stops would not be known",
                "start the driver's broadcaster, or take the topic out of driver_state in the robot's file",
            )
        elif name not in listener.heard:
            yield Row(
                BAD,
                "driver",
                name,
                f"{package} is not installed here",
                f"install ros-jazzy-{package.replace('_', '-')}",
            )
        elif listener.heard[name].newest is None:
            when = "latched, yet nothing came" if latched else "silent"
            yield Row(BAD, "driver", name, when, "is the driver connected to its robot?")
        else:
            yield Row(OK, "driver", name, f"from {publishers[0].node_name}")


def subscribe_to_driver(robot: RobotConfiguration, nodes: Sequence[ExpectedNode], listener: Listener) -> None:
    """Begin to listen to the driver's topics, as far as their types are installed."""
    for topic, package, types, _ in driver_topics(robot):
        try:
            messages = importlib.import_module(f"{package}.msg")
        except ImportError:
            continue
        kind = next(filter(None, (getattr(messages, name, None) for name in types)), None)
        if kind is not None:
            listener.listen_to(_resolved(nodes, topic), kind)


def _resolved(nodes: Sequence[ExpectedNode], topic: str) -> str:
    return nodes[0].resolved(topic) if nodes else f"/{topic}"


def _newest(nodes: Sequence[ExpectedNode], listener: Listener, topic: str) -> Any:
    names = {node.resolved(topic) for node in nodes}
    return next((heard.newest for name in names if (heard := listener.heard.get(name)) and heard.newest), None)
