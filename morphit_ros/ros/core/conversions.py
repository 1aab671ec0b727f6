"""Messages to the core's data types and back."""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, Vector3, Wrench, WrenchStamped
from sensor_msgs.msg import Image, JointState as JointStateMsg, PointCloud2, PointField
from shape_msgs.msg import Mesh, MeshTriangle
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from morphit_ros.budgets import MOST_MESSAGE_FACES, check_count
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.cloud_message import cloud_from_message as cloud_from_message
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw, quat_xyzw_from_matrix
from morphit_ros.robot.motion_types import JointState, Trajectory

if TYPE_CHECKING:
    from morphit_ros.geometry.mesh import TriangleMesh


def seconds_from_stamp(stamp: Time) -> float:
    """A stamp as seconds."""
    return stamp.sec + stamp.nanosec * 1e-9


def stamp_from_seconds(seconds: float) -> Time:
    """Seconds as a stamp, to the nanosecond."""
    nanoseconds = round(seconds * 1e9)
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def duration_from_seconds(seconds: float) -> Duration:
    """Seconds as a duration, to the nanosecond."""
    nanoseconds = round(seconds * 1e9)
    return Duration(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def header(frame: str, seconds: float | None = None) -> Header:
    """A header; without a time its stamp is zero."""
    return Header(frame_id=frame, stamp=stamp_from_seconds(seconds or 0.0))


def point_from_array(values: Iterable[float]) -> Point:
    x, y, z = (float(value) for value in values)
    return Point(x=x, y=y, z=z)


def vector_from_array(values: Iterable[float]) -> Vector3:
    x, y, z = (float(value) for value in values)
    return Vector3(x=x, y=y, z=z)


def array_from_point(point: Point | Vector3) -> Array:
    """A point or vector message as (3,)."""
    return np.array([point.x, point.y, point.z])


def point_rows(points: Sequence[Point | Vector3]) -> Array:
    """Points or vectors as (N, 3)."""
    return np.array([(point.x, point.y, point.z) for point in points], dtype=np.float64).reshape(-1, 3)


def mesh_from_message(message: Mesh) -> TriangleMesh:
    """A mesh message as a TriangleMesh.

    Raises:
        InvalidInputError: too many triangles or vertices, an index of no vertex, or a vertex that is not finite.
    """
    # Each is an object of Python: looking at a million of them takes longer than anybody waits for an answer.
    check_count("mesh triangles", len(message.triangles), MOST_MESSAGE_FACES, "Simplify the mesh.")
    check_count("mesh vertices", len(message.vertices), 3 * MOST_MESSAGE_FACES, "Leave out vertices of no triangle.")
    # Its kernels need a compiler, which not every node loads at its start.
    from morphit_ros.geometry.mesh import TriangleMesh

    faces = np.array([triangle.vertex_indices for triangle in message.triangles], dtype=np.int64).reshape(-1, 3)
    return TriangleMesh(point_rows(message.vertices), faces)


def message_from_mesh(mesh: TriangleMesh) -> Mesh:
    """The inverse of `mesh_from_message`."""
    triangles = [MeshTriangle(vertex_indices=face) for face in mesh.faces.astype(np.uint32)]
    return Mesh(triangles=triangles, vertices=[point_from_array(vertex) for vertex in mesh.vertices])


def numbers_from_poses(poses: Sequence[Pose]) -> Array:
    """Poses as (N, 7): position, then quaternion x, y, z, w; nothing in it has been checked."""
    pairs = [(pose.position, pose.orientation) for pose in poses]
    return np.array([(p.x, p.y, p.z, q.x, q.y, q.z, q.w) for p, q in pairs], dtype=np.float64).reshape(-1, 7)


def pose_from_matrix(transform: Array) -> Pose:
    """A (4, 4) transform as a pose."""
    x, y, z, w = quat_xyzw_from_matrix(transform[:3, :3]).tolist()
    return Pose(position=point_from_array(transform[:3, 3]), orientation=Quaternion(x=x, y=y, z=z, w=w))


def matrix_from_pose(pose: Pose) -> Array:
    """A pose as a (4, 4) transform.

    Raises:
        InvalidInputError: the quaternion is zero or something is not finite.
    """
    return _rigid(array_from_point(pose.position), pose.orientation)


def transform_from_matrix(transform: Array) -> Transform:
    """A (4, 4) transform as a message."""
    pose = pose_from_matrix(transform)
    return Transform(translation=vector_from_array(transform[:3, 3]), rotation=pose.orientation)


def matrix_from_transform(transform: Transform) -> Array:
    """A transform message as (4, 4).

    Raises:
        InvalidInputError: the quaternion is zero or something is not finite.
    """
    return _rigid(array_from_point(transform.translation), transform.rotation)


def _rigid(translation: Array, rotation: Quaternion) -> Array:
    if not np.isfinite(translation).all():
        raise InvalidInputError("position", translation.tolist(), "finite numbers")
    return make_transform(matrix_from_quat_xyzw([rotation.x, rotation.y, rotation.z, rotation.w]), translation)


def message_from_cloud(cloud: PointCloud, frame: str = "", seconds: float | None = None) -> PointCloud2:
    """A PointCloud as an unorganised float32 message, with normals where it has them."""
    blocks = [cloud.points] if cloud.normals is None else [cloud.points, cloud.normals]
    names = ["x", "y", "z"] if cloud.normals is None else ["x", "y", "z", "normal_x", "normal_y", "normal_z"]
    data = np.concatenate(blocks, axis=1).astype(np.float32)
    return PointCloud2(
        header=header(frame or cloud.frame, cloud.stamp if seconds is None else seconds),
        height=1,
        width=len(cloud),
        fields=[
            PointField(name=name, offset=4 * index, datatype=PointField.FLOAT32, count=1)
            for index, name in enumerate(names)
        ],
        is_bigendian=False,
        point_step=4 * len(names),
        row_step=4 * len(names) * len(cloud),
        # An array of bytes is taken over as it is; an ndarray would be checked element by element (0.2 s).
        data=array.array("B", data.tobytes()),
        is_dense=bool(np.isfinite(data).all()),
    )


def message_from_image(rgb: np.ndarray, frame: str, seconds: float) -> Image:
    """An RGB picture (H, W, 3) uint8 as a message."""
    height, width, _ = rgb.shape
    return Image(
        header=header(frame, seconds), height=height, width=width, encoding="rgb8", is_bigendian=0, step=3 * width,
        data=array.array("B", np.ascontiguousarray(rgb, dtype=np.uint8).tobytes()),
    )  # fmt: skip


def image_from_message(message: Image) -> np.ndarray:
    """An rgb8 image message as (H, W, 3) uint8.

    Raises:
        InvalidInputError: another encoding, or not the data of the rows that it claims.
    """
    if message.encoding != "rgb8":
        raise InvalidInputError("image encoding", message.encoding, "rgb8")
    if message.step < 3 * message.width or len(message.data) != message.height * message.step:
        bound = f"{message.height} rows of {message.width} pixels of 3 bytes"
        raise InvalidInputError("image data", f"{len(message.data)} bytes, step {message.step}", bound)
    rows = np.frombuffer(message.data, dtype=np.uint8).reshape(message.height, message.step)
    return rows[:, : 3 * message.width].reshape(message.height, message.width, 3)


def joint_state_from_message(message: JointStateMsg) -> JointState:
    """A joint state; velocities that the publisher leaves out are NaN (unknown), efforts are left out.

    Raises:
        InvalidInputError: names and positions differ in number, or a position is not finite.
    """
    positions = np.array(message.position)
    if len(positions) != len(message.name):
        raise InvalidInputError(
            "joint state", f"{len(positions)} positions", f"one for each of {len(message.name)} names"
        )
    if not np.isfinite(positions).all():
        raise InvalidInputError("joint state", positions.tolist(), "finite positions")
    complete = len(message.velocity) == len(positions)
    velocities = np.array(message.velocity) if complete else np.full(len(positions), np.nan)
    efforts = np.array(message.effort) if len(message.effort) == len(positions) else np.empty(0)
    return JointState(tuple(message.name), positions, velocities, seconds_from_stamp(message.header.stamp), efforts)


def message_from_joint_state(state: JointState) -> JointStateMsg:
    return JointStateMsg(
        header=header("", state.stamp),
        name=list(state.names),
        position=state.positions.tolist(),
        velocity=state.velocities.tolist(),
        effort=state.efforts.tolist(),
    )


def message_from_wrench(wrench: Array, frame: str, stamp: float) -> WrenchStamped:
    """Force [N] and torque [N m] (6,) in a frame."""
    force, torque = (Vector3(x=part[0], y=part[1], z=part[2]) for part in (wrench[:3].tolist(), wrench[3:].tolist()))
    return WrenchStamped(header=header(frame, stamp), wrench=Wrench(force=force, torque=torque))


def trajectory_from_message(message: JointTrajectory) -> Trajectory | None:
    """A trajectory, or None for an empty one, which means stop.

    Raises:
        InvalidInputError: lengths differ, times do not increase, or positions are not finite.
    """
    if not message.points:
        return None
    count = len(message.joint_names)
    for index, point in enumerate(message.points):
        if len(point.positions) != count:
            raise InvalidInputError(
                f"trajectory point {index}", f"{len(point.positions)} positions", f"{count}, one a joint"
            )
    times = np.array([p.time_from_start.sec + p.time_from_start.nanosec * 1e-9 for p in message.points])
    positions = np.array([point.positions for point in message.points])
    if all(len(point.velocities) == count for point in message.points):
        velocities = np.array([point.velocities for point in message.points])
    elif len(times) > 1 and (np.diff(times) > 0.0).all():
        velocities = np.gradient(positions, times, axis=0)
    else:
        velocities = np.zeros_like(positions)
    start = seconds_from_stamp(message.header.stamp)
    return Trajectory(tuple(message.joint_names), times, positions, velocities, start)


def message_from_trajectory(trajectory: Trajectory | None) -> JointTrajectory:
    """A trajectory; None becomes the empty one, which means stop."""
    if trajectory is None:
        return JointTrajectory()
    return JointTrajectory(
        header=header("", trajectory.start),
        joint_names=list(trajectory.joint_names),
        points=[
            JointTrajectoryPoint(
                positions=positions.tolist(),
                velocities=velocities.tolist(),
                time_from_start=duration_from_seconds(float(time)),
            )
            for time, positions, velocities in zip(
                trajectory.times, trajectory.positions, trajectory.velocities, strict=True
            )
        ],
    )
