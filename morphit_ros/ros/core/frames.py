"""Where the cameras and the robot's base stand in the world: from messages, parameters or tf2.

A transform that is not known is an error that is counted and reported; it is never replaced by identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from geometry_msgs.msg import TransformStamped
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw, matrix_from_rpy
from morphit_ros.ros.core.conversions import matrix_from_transform, stamp_from_seconds
from morphit_ros.ros.core.interfaces import EXTRINSICS

_ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class BaseFrameConfig(Config):
    """Where the robot's base stands in the world."""

    base_source: str = parameter(
        "parameters", "Pose of the robot's base: these parameters, or tf2", choices=("parameters", "tf")
    )
    base_xyz: tuple[float, ...] = parameter(_ORIGIN, "Robot base in the world, base_source=parameters [m]", length=3)
    base_rpy: tuple[float, ...] = parameter(_ORIGIN, "Robot base, roll pitch yaw [rad]", length=3)


@dataclass(frozen=True)
class CameraFrameConfig(Config):
    """Where the poses of the cameras come from."""

    camera_source: str = parameter(
        "topic",
        "Camera poses that are not given below: latched extrinsics topics, tf2, or none (register the clouds)",
        choices=("topic", "tf", "none"),
    )
    left_extrinsics: tuple[float, ...] = parameter(
        (), "T_world_left of the optical frame, x y z qx qy qz qw [m]; empty: see camera_source"
    )
    right_extrinsics: tuple[float, ...] = parameter(
        (), "T_world_right of the optical frame, x y z qx qy qz qw [m]; empty: see camera_source"
    )
    third_extrinsics: tuple[float, ...] = parameter((), "The same of a third camera, where there is one")
    fourth_extrinsics: tuple[float, ...] = parameter((), "The same of a fourth camera, where there is one")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (f"{camera}_extrinsics" for camera in EXTRINSICS):
            if len(getattr(self, name)) not in (0, 7):
                raise InvalidInputError(
                    name, f"{len(getattr(self, name))} numbers", "7 numbers x y z qx qy qz qw, or none"
                )


class UnknownTransformError(InvalidInputError):
    """A transform that is needed and not known (yet)."""


# At the stamp of a measurement a transform is there or late by the driver's latency.
_TF_TIMEOUT = 0.2


class TransformTree:
    """Look-ups in tf2.

    Args:
        node: whose clock and context are used.
        timeout: longest wait for a transform [s].

    Raises:
        MissingDependencyError: tf2_ros is not installed.
    """

    def __init__(self, node: Node, timeout: float) -> None:
        try:
            from tf2_ros import Buffer, TransformListener
        except ImportError as error:
            raise MissingDependencyError(
                "tf2_ros", "a pose from tf", "Install ros-jazzy-tf2-ros-py, or take the pose from parameters or topics."
            ) from error
        self._timeout = timeout
        # A node and a thread of its own, so that a look-up that waits can be answered. (With the node that asks,
        # the listener's executor would take it away from the node's own.)
        listener = Node(f"{node.get_name()}_transform_listener", context=node.context, use_global_arguments=False)
        self._buffer = Buffer(node=listener)
        self._listener = TransformListener(self._buffer, listener, spin_thread=True)

    def look_up(self, target: str, source: str, stamp: float) -> Array:
        """``T_target_source`` at a time [s]; 0 means the latest.

        Raises:
            UnknownTransformError: no answer in time; carries what tf2 says.
        """
        from tf2_ros import TransformException

        try:
            found = self._buffer.lookup_transform(
                target, source, Time.from_msg(stamp_from_seconds(stamp)), Duration(seconds=self._timeout)
            )
        except TransformException as error:
            raise UnknownTransformError(
                f"transform from {source} to {target} at {stamp:.3f} s", str(error),
                f"an answer within {self._timeout:g} s",
                "Check that both frames are published and that the clocks agree.",
            ) from error  # fmt: skip
        return matrix_from_transform(found.transform)


class BaseFrame:
    """Pose of the robot's base in the world frame."""

    def __init__(self, node: Node, world_frame: str, config: BaseFrameConfig) -> None:
        self._world_frame = world_frame
        self._tree = TransformTree(node, _TF_TIMEOUT) if config.base_source == "tf" else None
        self._fixed = make_transform(matrix_from_rpy(config.base_rpy), config.base_xyz)

    def T_world_base(self, base_link: str, stamp: float = 0.0) -> Array:
        """(4, 4).

        Raises:
            UnknownTransformError: tf2 does not know it.
        """
        if self._tree is None:
            return self._fixed
        return self._tree.look_up(self._world_frame, base_link, stamp)


class CameraFrames:
    """Poses of the cameras in the world frame.

    Args:
        node: subscribes to the extrinsics, or listens to tf2.
        world_frame: name of the world frame.
        config: the source.

    Attributes:
        failures: number of look-ups that failed.
    """

    def __init__(self, node: Node, world_frame: str, config: CameraFrameConfig) -> None:
        self._node = node
        self._world_frame = world_frame
        self._source = config.camera_source
        self._known: dict[str, Array] = {}
        self._tree: TransformTree | None = None
        self.failures = 0
        if self._source == "tf":
            self._tree = TransformTree(node, _TF_TIMEOUT)
        for camera, topic in EXTRINSICS.items():
            pose = getattr(config, f"{camera}_extrinsics")
            if pose:
                self._known[camera] = make_transform(matrix_from_quat_xyzw(pose[3:]), pose[:3])
            elif self._source == "topic":
                topic.subscribe(node, partial(self._receive, camera))

    def _receive(self, camera: str, message: TransformStamped) -> None:
        try:
            if message.header.frame_id != self._world_frame:
                raise InvalidInputError("frame", repr(message.header.frame_id), f"the world frame {self._world_frame}")
            self._known[camera] = matrix_from_transform(message.transform)
        except InvalidInputError as error:
            self._node.get_logger().error(f"{EXTRINSICS[camera].name} ignored: {error}", throttle_duration_sec=5.0)

    def T_world_camera(self, camera: str, frame: str, stamp: float) -> Array | None:
        """Pose of a camera when its cloud was taken; None if the clouds are to be registered without it.

        Args:
            camera: of `EXTRINSICS`.
            frame: frame of its cloud, for tf2.
            stamp: time of its cloud [s], for tf2.

        Raises:
            UnknownTransformError: it is not known; names frame, source and remedy.
        """
        if camera in self._known:
            return self._known[camera]
        if self._source == "none":
            return None
        try:
            if self._tree is not None:
                return self._tree.look_up(self._world_frame, frame, stamp)
            raise UnknownTransformError(
                f"pose of the {camera} camera", "nothing yet",
                f"a transform from {self._world_frame} on {EXTRINSICS[camera].name}",
                f"Publish it latched, give {camera}_extrinsics, or set camera_source to tf.",
            )  # fmt: skip
        except UnknownTransformError:
            self.failures += 1
            raise
