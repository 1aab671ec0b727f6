"""Messages of morphing covers: states that are read, targets, commands, what displays need."""

from __future__ import annotations

import array
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, PoseArray, Quaternion
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from morphit_interfaces.msg import CoverTarget
from morphit_ros.cover.control.supervision import Measurement
from morphit_ros.cover.control.tracking import axis_named
from morphit_ros.cover.files import cover_content, read_cover
from morphit_ros.cover.goals.surfaces import HeightMapTarget, MeshTarget
from morphit_ros.cover.goals.targets import HeightTarget, ParametricTarget, SurfaceTarget, grid_parameters
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import matrices_of_quats, quats_of_matrices
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import (
    duration_from_seconds,
    mesh_from_message,
    numbers_from_poses,
    seconds_from_stamp,
)

# A formula that is longer is not written by anybody [characters].
_LONGEST_FORMULA = 4000
_MOST_HEIGHTS = 4_000_000


class JointReader:
    """Joint states of a cover as measurements: axes by name, in any order; names of other devices are ignored.

    Args:
        cover: whose motors all have to be in a message.
    """

    def __init__(self, cover: Cover) -> None:
        self._axes = axis_named(cover)
        self._motors = cover.motor_labels
        self._names: Sequence[str] = ()
        self._places = np.empty(0, dtype=np.int64)
        self._found: np.ndarray = np.empty((0, 2), dtype=np.int64)
        self._problem = "no names"

    def read(self, message: JointStateMsg) -> Measurement:
        """What a message says, or what is wrong with it."""
        # The same names as the last time, almost always.
        if message.name != self._names:
            self._learn(list(message.name))
        if self._problem:
            return Measurement(problem=self._problem)
        if len(message.position) != len(self._names):
            return Measurement(problem=f"{len(message.position)} positions for {len(self._names)} names")
        angles = np.frombuffer(message.position, dtype=np.float64)[self._places]
        if not np.isfinite(angles).all():
            bad = self._names[int(self._places[int(np.flatnonzero(~np.isfinite(angles))[0])])]
            return Measurement(problem=f"position of {bad} is not finite")
        return Measurement(angles=angles, axes=self._found)

    def _learn(self, names: list[str]) -> None:
        self._names, self._problem = names, ""
        missing = sorted(set(self._motors) - set(names))
        if len(set(names)) != len(names):
            self._problem = "a name twice"
        elif missing:
            self._problem = f"{len(missing)} of {len(self._motors)} motors missing, such as {missing[0]}"
        self._places = np.array([place for place, name in enumerate(names) if name in self._axes], dtype=np.int64)
        self._found = np.array([self._axes[names[place]] for place in self._places], dtype=np.int64).reshape(-1, 2)


def poses_measurement(message: PoseArray, cover: Cover, frame: str) -> Measurement:
    """What a message with the poses of all nodes says, in the frame that targets are given in."""
    if message.header.frame_id not in ("", frame):
        return Measurement(problem=f"poses in frame '{message.header.frame_id}', not '{frame}'")
    if len(message.poses) != cover.node_count:
        return Measurement(problem=f"{len(message.poses)} poses for {cover.node_count} nodes")
    values = numbers_from_poses(message.poses)
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0]) + 1
        return Measurement(problem=f"pose of node {bad} is not finite")
    lengths = np.linalg.norm(values[:, 3:], axis=1)
    if float(np.abs(lengths - 1.0).max()) > 1e-3:
        bad = int(np.abs(lengths - 1.0).argmax()) + 1
        return Measurement(problem=f"quaternion of node {bad} has length {lengths[bad - 1]:.3g}")
    return Measurement(positions=values[:, :3], rotations=matrices_of_quats(values[:, 3:] / lengths[:, None]))


def follow_states(
    node: Node, source: str, cover: Cover, frame: str, receive: Callable[[Measurement, float], None]
) -> None:
    """Hand on each state of a cover as a measurement with its stamp [s].

    Args:
        node: subscribes.
        source: where states come from: joint_states or poses.
        cover, frame: as of `JointReader` and `poses_measurement`.
        receive: called in the executor's thread.
    """
    topic, read = interfaces.COVER_JOINT_STATES, JointReader(cover).read
    if source == "poses":
        topic, read = interfaces.COVER_NODE_POSES, lambda message: poses_measurement(message, cover, frame)
    topic.subscribe(node, lambda message: receive(read(message), seconds_from_stamp(message.header.stamp)), depth=1)


def pose_array(state: CoverState, cover: Cover, frame: str, stamp: Time) -> PoseArray:
    """The poses of all nodes, row by row."""
    positions = state.positions(cover).tolist()
    quaternions = quats_of_matrices(state.rotations).tolist()
    poses = [
        Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=x, y=y, z=z, w=w))
        for (px, py, pz), (x, y, z, w) in zip(positions, quaternions, strict=True)
    ]
    return PoseArray(header=Header(frame_id=frame, stamp=stamp), poses=poses)


def rates_message(rates: Array) -> Float64MultiArray:
    """A command [rad/s] as forward_command_controller takes it; its layout may be empty."""
    return Float64MultiArray(data=array.array("d", rates.tobytes()))


def rates_from_message(message: Float64MultiArray, cover: Cover) -> Array:
    """The rates (M,) of a command [rad/s].

    Raises:
        InvalidInputError: not one finite number a motor.
    """
    rates = np.array(message.data, dtype=np.float64)
    if rates.shape != (len(cover.motors),) or not np.isfinite(rates).all():
        raise InvalidInputError("command", f"{len(rates)} numbers", f"{len(cover.motors)} finite rates, one a motor")
    return rates


def trajectory_message(names: Sequence[str], angles: Array, rates: Array, period: float) -> JointTrajectory:
    """A command as one point a period ahead; the header's zero stamp means now."""
    point = JointTrajectoryPoint(
        positions=array.array("d", (angles + period * rates).tobytes()), velocities=array.array("d", rates.tobytes()),
        time_from_start=duration_from_seconds(period),
    )  # fmt: skip
    return JointTrajectory(joint_names=list(names), points=[point])


def description_text(cover: Cover, state: CoverState, extra: dict[str, Any] | None = None) -> str:
    """Cover and start configuration as the JSON of cover files, with more entries."""
    return json.dumps({**cover_content(cover, state), **(extra or {})})


def cover_from_description(text: str) -> tuple[Cover, CoverState, dict[str, Any]]:
    """Cover, start configuration and the whole object of a description.

    Raises:
        InvalidInputError: no JSON object of a cover.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("cover description", str(error)[:80], "a JSON object of a cover") from None
    cover, state = read_cover(content)
    return cover, state, content


def target_from_message(message: CoverTarget, cover: Cover, frame: str) -> tuple[SurfaceTarget, str]:
    """The target of a message, and what to call it.

    Raises:
        InvalidInputError: an unknown kind or frame, or fields that make no target; says what.
    """
    if message.header.frame_id not in ("", frame):
        raise InvalidInputError("target frame", repr(message.header.frame_id), f"'{frame}'", "Transform it first.")
    if message.kind == CoverTarget.HEIGHT:
        return _height_target(message.formulas, message.until)
    if message.kind == CoverTarget.PARAMETRIC:
        formulas = [_checked_formula(text) for text in message.formulas]
        return ParametricTarget(formulas, grid_parameters(cover)), _short(f"X = ({', '.join(formulas)})")
    if message.kind == CoverTarget.HEIGHT_MAP:
        return _height_map(message), f"height map of {len(message.heights)} heights"
    if message.kind == CoverTarget.MESH:
        return MeshTarget(mesh_from_message(message.mesh)), f"mesh of {len(message.mesh.triangles)} triangles"
    raise InvalidInputError("target kind", message.kind, "HEIGHT 0, PARAMETRIC 1, HEIGHT_MAP 2 or MESH 3")


def formula_target(text: str, cover: Cover) -> tuple[SurfaceTarget, str]:
    """A target as typed: z = f(x, y, t), or three formulas of u, v, t with semicolons between.

    Raises:
        InvalidInputError: a formula that is not allowed, or a wrong number of them.
    """
    formulas = [part.strip() for part in text.split(";")]
    kind = CoverTarget.HEIGHT if len(formulas) == 1 else CoverTarget.PARAMETRIC
    return target_from_message(CoverTarget(kind=kind, formulas=formulas), cover, "")


def _height_target(formulas: Sequence[str], until: Sequence[float]) -> tuple[SurfaceTarget, str]:
    if not formulas or len(until) != len(formulas) - 1:
        raise InvalidInputError(
            "target", f"{len(formulas)} formulas, {len(until)} end times", "formulas, and an end for all but the last"
        )  # fmt: skip
    texts = [_checked_formula(text) for text in formulas]
    target = HeightTarget(list(zip([*until, np.inf], texts, strict=True)))
    return target, _short(f"z = {texts[0]}") + (f" and {len(texts) - 1} more phases" if len(texts) > 1 else "")


def _checked_formula(text: str) -> str:
    if len(text) > _LONGEST_FORMULA:
        raise InvalidInputError("formula", f"{len(text)} characters", f"at most {_LONGEST_FORMULA}")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 70 else f"{text[:67]}..."


def _height_map(message: CoverTarget) -> HeightMapTarget:
    count, columns = len(message.heights), int(message.columns)
    if columns < 1 or count % columns or count > _MOST_HEIGHTS:
        raise InvalidInputError(
            "height map", f"{count} heights in rows of {columns}", f"whole rows, at most {_MOST_HEIGHTS} heights"
        )
    corner = message.corner
    heights = np.frombuffer(message.heights, dtype=np.float64).reshape(-1, columns) + corner.z
    return HeightMapTarget(heights, (corner.x, corner.y), message.spacing)
