"""Rows about where base and cameras stand: whether it is known, connected, plausible, and the same in all sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from morphit_ros.calibration.plausible import plausibility
from morphit_ros.calibration.robot_surface import RobotSurface
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_quat_xyzw,
    matrix_from_rpy,
    rotation_angle,
)
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.ros.core.conversions import (
    cloud_from_message,
    joint_state_from_message,
    matrix_from_transform,
    seconds_from_stamp,
)
from morphit_ros.ros.core.interfaces import EXTRINSICS, JOINT_STATES, POINTS
from morphit_ros.ros.setup.expected import ExpectedNode
from morphit_ros.ros.setup.listening import Listener
from morphit_ros.ros.setup.rows import BAD, NOTE, OK, Row
from morphit_ros.ros.setup.tf_frames import FrameTree

_USER = "scene_perception"
# Two sources of one pose may differ by so much [m], [rad].
_SAME, _SAME_ANGLE = 0.005, 0.01
# A camera that looks at an arm's workspace is no farther from the base [m]; nor is what it sees in the mean.
_FAR, _FAR_VIEW = 4.0, 3.0
# Of the robot in view, so much may look transparent by what the model has and the robot lacks.
_SEEN_THROUGH, _WORTH_LOOKING = 0.12, 0.02
# Cloud and joints belong together if their stamps are no farther apart, and the arm is at rest [s], [rad/s].
_TOGETHER, _AT_REST = 1.0, 0.02
_CALIBRATE = "calibrate (morphit calibrate), and give the job the file: camera_file:="


def subscribe_to_frames(listener: Listener, nodes: Sequence[ExpectedNode]) -> FrameTree | None:
    """Begin to listen to tf and extrinsics; None where tf2_msgs is not installed."""
    for node in nodes:
        if node.described.executable == _USER:
            for topic in EXTRINSICS.values():
                listener.listen_to(node.resolved(topic.name), topic.type)
    try:
        from tf2_msgs.msg import TFMessage
    except ImportError:
        return None
    tree = FrameTree()
    for name in ("/tf", "/tf_static"):
        listener.listen_to(name, TFMessage, tree.take)
    return tree


def frame_rows(
    robot: RobotConfiguration,
    description: RobotDescription | None,
    nodes: Sequence[ExpectedNode],
    listener: Listener,
    tree: FrameTree | None,
) -> Iterator[Row]:
    """Base and cameras, as far as a node of this job uses them."""
    user = next((node for node in nodes if node.described.executable == _USER), None)
    if user is None:
        return
    world = str(user.parameter("world_frame", "world"))
    if tree is None and "tf" in (user.parameter("base_source"), user.parameter("camera_source")):
        yield Row(
            BAD,
            "frames",
            "/tf",
            "tf2_msgs is not installed here, and poses are to come from tf",
            "install ros-jazzy-tf2-msgs and ros-jazzy-tf2-ros-py",
        )
    for child, parents in (tree.doubled if tree is not None else {}).items():
        yield Row(
            BAD,
            "frames",
            child,
            f"{' and '.join(sorted(parents))} are both said to carry it on /tf",
            "two publishers contradict each other: end one",
        )
    for words in (tree.broken if tree is not None else [])[:5]:
        yield Row(BAD, "frames", "/tf", words, "mend its publisher")
    T_world_base, row = _base(robot, user, world, tree)
    yield row
    surface = _surface(robot, description)
    for camera in list(POINTS)[: int(user.parameter("cameras", 2))]:
        yield from _camera_rows(camera, robot, user, world, tree, listener, T_world_base, surface)


def _base(
    robot: RobotConfiguration, user: ExpectedNode, world: str, tree: FrameTree | None
) -> tuple[Array | None, Row]:
    in_tree = tree.look_up(world, robot.base_link) if tree is not None else None
    if user.parameter("base_source") == "tf":
        if in_tree is None:
            return None, Row(
                BAD,
                "frames",
                robot.base_link,
                f"/tf does not connect it with {world}",
                "publish that transform (static_transform_publisher), or give base_pose:='x y z qx qy qz qw'",
            )
        return in_tree, Row(OK, "frames", robot.base_link, f"in {world} at {_place(in_tree)}, by /tf")
    pose = make_transform(
        matrix_from_rpy(np.array(user.parameter("base_rpy", (0.0, 0.0, 0.0)), dtype=np.float64)),
        np.array(user.parameter("base_xyz", (0.0, 0.0, 0.0)), dtype=np.float64),
    )
    if in_tree is not None and (difference := _difference(in_tree, pose)):
        return pose, Row(
            BAD,
            "frames",
            robot.base_link,
            f"parameters and /tf differ by {difference}",
            "one of the two is wrong: base_pose, or the publisher of the frame",
        )
    return pose, Row(OK, "frames", robot.base_link, f"in {world} at {_place(pose)}, by parameters")


def _camera_rows(
    camera: str,
    robot: RobotConfiguration,
    user: ExpectedNode,
    world: str,
    tree: FrameTree | None,
    listener: Listener,
    T_world_base: Array | None,
    surface: RobotSurface | None,
) -> Iterator[Row]:
    subject = f"{camera} camera"
    heard = listener.heard.get(user.resolved(POINTS[camera].name))
    cloud = heard.newest if heard is not None else None
    frame = cloud.header.frame_id.lstrip("/") if cloud is not None else ""
    in_tree = tree.look_up(world, frame) if tree is not None and frame else None
    source, pose, problem = _pose(camera, user, world, frame, in_tree, listener)
    if problem is not None:
        yield problem
        return
    if pose is None:
        yield Row(NOTE, "frames", subject, "pose not given: the clouds are registered with each other", _CALIBRATE)
        return
    if source != "tf" and in_tree is not None and (difference := _difference(in_tree, pose)):
        yield Row(
            BAD,
            "frames",
            subject,
            f"{source} and /tf differ by {difference}",
            "one of the two is old: take the transform off /tf, or calibrate again",
        )
    if T_world_base is None:
        return
    T_base_camera = invert_transform(T_world_base) @ pose
    far = float(np.linalg.norm(T_base_camera[:3, 3]))
    found = f"in {world} at {_place(pose)}, by {source}"
    if far > _FAR or far < 0.05:
        yield Row(
            BAD,
            "frames",
            subject,
            f"{found}: {far:.2f} m from the robot's base",
            f"metres, T_world_camera? {_CALIBRATE}",
        )
        return
    yield _judged_by_cloud(subject, found, robot, user, cloud, T_base_camera, surface, listener)


def _pose(
    camera: str, user: ExpectedNode, world: str, frame: str, in_tree: Array | None, listener: Listener
) -> tuple[str, Array | None, Row | None]:
    """Where a camera's pose comes from, the pose, and what is wrong with it."""
    subject = f"{camera} camera"
    given = user.parameter(f"{camera}_extrinsics")
    if given is not None and len(given) == 7:
        values = np.array(given, dtype=np.float64)
        try:
            return "parameters", make_transform(matrix_from_quat_xyzw(values[3:]), values[:3]), None
        except MorphitError as error:
            return "", None, Row(BAD, "frames", subject, str(error), _CALIBRATE)
    source = user.parameter("camera_source")
    if source == "none":
        return "", None, None
    if source == "tf":
        if in_tree is None and frame:
            return (
                "",
                None,
                Row(
                    BAD,
                    "frames",
                    subject,
                    f"/tf does not connect its frame {frame} with {world}",
                    f"publish it, or {_CALIBRATE}",
                ),
            )
        return (
            "tf",
            in_tree,
            None
            if in_tree is not None
            else Row(BAD, "frames", subject, "its frame is not known before a cloud comes", "see the topics"),
        )
    topic = user.resolved(EXTRINSICS[camera].name)
    heard = listener.heard.get(topic)
    if heard is None or heard.newest is None:
        return "", None, Row(BAD, "frames", subject, f"nobody says where it stands (on {topic})", _CALIBRATE)
    message: Any = heard.newest
    if message.header.frame_id != world:
        return (
            "",
            None,
            Row(
                BAD,
                "frames",
                subject,
                f"{topic} is in {message.header.frame_id!r}, not in {world}",
                f"publish T_{world}_{camera}",
            ),
        )
    try:
        return topic, matrix_from_transform(message.transform), None
    except MorphitError as error:
        return "", None, Row(BAD, "frames", subject, f"{topic}: {error}", _CALIBRATE)


def _judged_by_cloud(
    subject: str,
    found: str,
    robot: RobotConfiguration,
    user: ExpectedNode,
    cloud: Any,
    T_base_camera: Array,
    surface: RobotSurface | None,
    listener: Listener,
) -> Row:
    heard = listener.heard.get(user.resolved(JOINT_STATES.name))
    if cloud is None or surface is None or heard is None or heard.newest is None:
        return Row(OK, "frames", subject, f"{found}; not compared with the robot: cloud, joints or description missing")
    try:
        state = joint_state_from_message(heard.newest)
        apart = abs(state.stamp - seconds_from_stamp(cloud.header.stamp))
        if apart > _TOGETHER or np.abs(np.nan_to_num(state.velocities)).max(initial=0.0) > _AT_REST:
            return Row(OK, "frames", subject, f"{found}; not compared with the robot, which moves or has other stamps")
        seen = plausibility(cloud_from_message(cloud).points, state.as_dict(), surface, T_base_camera)
    except MorphitError as error:
        return Row(OK, "frames", subject, f"{found}; not compared with the robot: {error}")
    if seen is None:
        return Row(
            BAD,
            "frames",
            subject,
            "its cloud has no points with z > 0",
            "clouds must be in the optical frame: z forward, x right, y down (REP 103)",
        )
    if seen.distance > _FAR_VIEW:
        return Row(
            BAD, "frames", subject, f"{found}: it would look at a place {seen.distance:.1f} m from the base", _CALIBRATE
        )
    if seen.in_view > _WORTH_LOOKING and seen.seen_through > _SEEN_THROUGH:
        return Row(
            BAD,
            "frames",
            subject,
            f"{found}: it looks through {seen.seen_through:.0%} of the robot in its view, so it does not stand there",
            _CALIBRATE,
        )
    if seen.in_view <= _WORTH_LOOKING:
        return Row(OK, "frames", subject, f"{found}; the robot is not in its view")
    return Row(
        OK,
        "frames",
        subject,
        f"{found}; {seen.in_view:.0%} of the robot in view, {seen.seen_through:.0%} of it seen through",
    )


def _surface(robot: RobotConfiguration, description: RobotDescription | None) -> RobotSurface | None:
    if description is None:
        return None
    try:
        return RobotSurface(description, robot.base_link, spacing=0.01)
    except MorphitError:
        return None


def _difference(first: Array, second: Array) -> str:
    """How far two poses (4, 4) are apart, empty if they are the same."""
    shift = float(np.linalg.norm(first[:3, 3] - second[:3, 3]))
    angle = rotation_angle(first[:3, :3].T @ second[:3, :3])
    return f"{1e3 * shift:.0f} mm and {np.degrees(angle):.1f}°" if shift > _SAME or angle > _SAME_ANGLE else ""


def _place(pose: Array) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in pose[:3, 3]) + ") m"
