"""Neural objects, their materials, pushers and motions to messages and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import Inertia, Pose
from std_msgs.msg import Header
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from morphit_interfaces.msg import MaterialRegion as MaterialRegionMsg, NeuralObject, PusherMotion
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.neural.objects.known_object import KnownObject
from morphit_ros.neural.objects.pusher import Pusher
from morphit_ros.neural.solid.inertia import InertialProperties
from morphit_ros.neural.solid.materials import MaterialRegion
from morphit_ros.ros.core.conversions import (
    array_from_point,
    duration_from_seconds,
    matrix_from_pose,
    matrix_from_transform,
    message_from_cloud,
    seconds_from_stamp,
    transform_from_matrix,
)
from morphit_ros.ros.core.fields import read_fields, write_fields

_UPPER = [(row, column) for row in range(3) for column in range(row, 3)]
# Points of the surface in a message: enough to compare clouds with, and to draw.
SURFACE_POINTS = 3000


@dataclass(frozen=True)
class PlacedObject:
    """A neural object and where it was seen.

    Attributes:
        name: as the goal called it.
        source: objects, recording or field.
        known: the object in its own frame.
        header: stamp of what it was built from; frame of the pose, empty if its place is not known.
        T_frame_object: (4, 4) pose of its own frame.
        doubts: for people.
    """

    name: str
    source: str
    known: KnownObject
    header: Header
    T_frame_object: Array
    doubts: str = ""


def message_from_inertia(inertia: InertialProperties) -> Inertia:
    """Mass, centre and tensor about it."""
    moments = {f"i{'xyz'[row]}{'xyz'[column]}": inertia.inertia[row, column] for row, column in _UPPER}
    return write_fields(Inertia(), m=inertia.mass, com=inertia.center_of_mass, **moments)


def inertia_matrix(message: Inertia) -> Array:
    """The (3, 3) tensor of an inertia message [kg m^2]."""
    return np.array(
        [
            [message.ixx, message.ixy, message.ixz],
            [message.ixy, message.iyy, message.iyz],
            [message.ixz, message.iyz, message.izz],
        ]
    )


def surface_points(known: KnownObject) -> tuple[Array, Array]:
    """Points (N, 3) spread evenly over the solid's surface, with their normals, in the own frame."""
    return sample_surface_evenly(known.solid.surface, SURFACE_POINTS, np.random.default_rng(0))


def message_from_object(placed: PlacedObject) -> NeuralObject:
    """A neural object as others are told of it."""
    known = placed.known
    points, normals = surface_points(known)
    surface = message_from_cloud(PointCloud(points, normals), "", seconds_from_stamp(placed.header.stamp))
    return write_fields(
        NeuralObject(), placed, pose=placed.T_frame_object, inertia=message_from_inertia(known.inertia),
        mass_from=known.source, total_mass_from=known.total_source, center_of_mass_std=known.inertia.center_error,
        confidence=known.confidence, volume=known.inertia.volume, size=known.solid.surface.extents,
        friction=known.friction, surface=surface, content_hash=known.content_hash,
    )  # fmt: skip


def message_from_motion(
    header: Header, name: str, times: Sequence[float], poses: Sequence[Pose]
) -> MultiDOFJointTrajectory:
    """Poses of an object's own frame over time; none: no motion."""
    points = [
        MultiDOFJointTrajectoryPoint(
            transforms=[transform_from_matrix(matrix_from_pose(pose))],
            time_from_start=duration_from_seconds(seconds),
        )
        for seconds, pose in zip(times, poses, strict=True)
    ]
    return MultiDOFJointTrajectory(header=header, joint_names=[name], points=points)


def motion_from_message(message: MultiDOFJointTrajectory) -> tuple[Array, Array]:
    """Times (T,) [s] and poses (T, 4, 4) of a motion of one object.

    Raises:
        InvalidInputError: points of more than one object or of none, a pose that is none.
    """
    if any(len(point.transforms) != 1 for point in message.points):
        raise InvalidInputError("motion", "points with another number of poses", "one pose a time")
    times = [point.time_from_start.sec + point.time_from_start.nanosec * 1e-9 for point in message.points]
    poses = [matrix_from_transform(point.transforms[0]) for point in message.points]
    return np.array(times, dtype=np.float64), np.array(poses).reshape(-1, 4, 4)


def regions_from_messages(
    messages: Sequence[MaterialRegionMsg], frame: str, T_frame_object: Array
) -> tuple[MaterialRegion, ...]:
    """Material regions in the object's own frame.

    Args:
        messages: with poses in the object's own frame or in `frame`.
        frame: that the object is posed in, empty if its place is not known.
        T_frame_object: (4, 4) pose of its own frame there.

    Raises:
        InvalidInputError: another frame, a bad pose or size, a density that is negative or not finite.
    """
    regions = []
    for number, message in enumerate(messages):
        given = message.header.frame_id
        if given and given != frame:
            bound = f"'{frame}' or the object's own (empty)" if frame else "the object's own (empty)"
            raise InvalidInputError(f"materials[{number}]: frame", repr(given), bound)
        pose = matrix_from_pose(message.pose)
        T_field_box = invert_transform(T_frame_object) @ pose if given else pose
        try:
            regions.append(MaterialRegion(T_field_box, array_from_point(message.size), message.density))
        except InvalidInputError as error:
            raise InvalidInputError(f"materials[{number}]: {error.name}", error.value, error.bound) from None
    return tuple(regions)


def pusher_from_message(message: PusherMotion) -> Pusher | None:
    """A pusher, None for a radius of zero.

    Raises:
        InvalidInputError: a negative radius or mass, times that do not increase from zero, values that are not finite,
            numbers of times, positions and forces that differ.
    """
    for name in ("radius", "mass"):
        value = getattr(message, name)
        if not (np.isfinite(value) and value >= 0.0):
            raise InvalidInputError(f"pusher {name}", value, "a number from 0 up")
    if message.radius == 0.0:
        return None
    times = _checked_times(message.times, "pusher times", least=1)
    read = read_fields(message, Pusher)
    positions = read["positions"]
    forces = read["forces"] if len(message.forces) else np.zeros_like(positions)
    if len(positions) != len(times) or len(forces) != len(times):
        found = f"{len(times)} times, {len(positions)} positions, {len(forces)} forces"
        raise InvalidInputError("pusher", found, "as many positions as times, and as many forces or none")
    if not (np.isfinite(positions).all() and np.isfinite(forces).all()):
        raise InvalidInputError("pusher", "positions or forces that are not finite", "finite numbers")
    return Pusher(float(message.radius), times, positions, float(message.mass), forces)


def _checked_times(values: Sequence[float], name: str, least: int) -> Array:
    times = np.array(values, dtype=np.float64)
    if len(times) < least or not np.isfinite(times).all() or (np.diff(times) <= 0.0).any() or times[0] < 0.0:
        found = (
            f"{len(times)} values" if len(times) < least else "values that are not finite, negative or not increasing"
        )
        raise InvalidInputError(name, found, f"{least} or more finite times [s] from 0 up, increasing")
    return times


def track_from_messages(times: Sequence[float], poses: Sequence[Pose]) -> tuple[Array, Array]:
    """Times (T,) [s] and poses (T, 4, 4) of an observed motion.

    Raises:
        InvalidInputError: fewer than three, numbers that differ, times that do not increase, a pose that is none.
    """
    if len(times) != len(poses):
        raise InvalidInputError("track", f"{len(times)} times, {len(poses)} poses", "as many of both")
    seconds = _checked_times(times, "track times", least=3)
    matrices = []
    for number, pose in enumerate(poses):
        try:
            matrices.append(matrix_from_pose(pose))
        except InvalidInputError as error:
            remedy = "Leave out the frames in which the object was lost."
            raise InvalidInputError(f"track poses[{number}]: {error.name}", error.value, error.bound, remedy) from None
    return seconds, np.array(matrices)


def place_of_center(placed: PlacedObject) -> Array:
    """(3,) centre of mass in the frame that the object is posed in [m]."""
    return transform_points(placed.T_frame_object, placed.known.inertia.center_of_mass[None])[0]
