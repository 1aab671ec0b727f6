"""Follows what a robot's driver publishes of the robot's state, on the topics that the robot's file names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from morphit_ros.errors import MissingDependencyError
from morphit_ros.execution.driver_state import (
    HeldUp,
    franka_problem,
    program_problem,
    ur_mode_problem,
    ur_safety_problem,
)
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.interfaces import SPEED_SCALING


@dataclass(frozen=True)
class _Kind:
    """Of a state: its message type, the first of `types` that the package has, and what it says against motion.

    Those that are sent on each change only are latched; others are streams.
    """

    package: str
    types: tuple[str, ...]
    problem: Callable[[Any], str] = lambda _: ""
    latched: bool = True


# By name in the robot's file; what says more comes first.
_KINDS = {
    "safety_mode": _Kind("ur_dashboard_msgs", ("SafetyMode",), ur_safety_problem),
    "robot_mode": _Kind("ur_dashboard_msgs", ("RobotMode",), ur_mode_problem),
    "program_running": _Kind("std_msgs", ("Bool",), program_problem),
    # Before 1.0 franka_ros2 had FrankaState, in which mode and errors are the same.
    "franka_state": _Kind("franka_msgs", ("FrankaRobotState", "FrankaState"), franka_problem, latched=False),
    "speed_scaling": _Kind("std_msgs", ("Float64",), latched=False),
}


def driver_topics(robot: RobotConfiguration) -> list[tuple[str, str, tuple[str, ...], bool]]:
    """Of each state that the robot's file names: its topic, package and message types, and whether it is latched."""
    return [
        (robot.driver_state[name], kind.package, kind.types, kind.latched)
        for name, kind in _KINDS.items()
        if name in robot.driver_state
    ]


class _Newest:
    """The newest message of a topic, decoded when it is asked for: Franka's come a thousand times a second."""

    def __init__(self, node: Node, group: CallbackGroup | None, topic: str, kind: _Kind, message_type: Any) -> None:
        self.topic, self._type = topic, message_type
        self._raw = self._decoded = b""
        self._message: Any = None
        profile = QoSProfile(
            depth=1,
            reliability=ReliabilityPolicy.RELIABLE if kind.latched else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if kind.latched else DurabilityPolicy.VOLATILE,
        )
        node.create_subscription(message_type, topic, self._receive, profile, callback_group=group, raw=True)

    def _receive(self, raw: bytes) -> None:
        self._raw = raw

    def get(self) -> Any:
        """The message; None before the first."""
        raw = self._raw
        if raw is not self._decoded:
            self._message, self._decoded = deserialize_message(raw, self._type), raw
        return self._message


class DriverState:
    """Why the robot must not be moved, as its driver says, and how much slower than commanded it moves.

    Args:
        node: subscribes.
        group: of the subscriptions' callbacks.
        robot: names the topics.
        driven: a driver moves the robot, so that the message types must be known; otherwise, as in the simulation,
            topics whose types are not installed are left out.

    Raises:
        MissingDependencyError: a message package is not installed.
    """

    def __init__(self, node: Node, group: CallbackGroup | None, robot: RobotConfiguration, driven: bool) -> None:
        self._node, self._held_up = node, HeldUp()
        self._sources: dict[str, _Newest] = {}
        for name, kind in _KINDS.items():
            topic = robot.driver_state.get(name)
            if name == "speed_scaling" and not driven:
                # Every simulated controller says so, whatever the robot's driver would.
                topic = topic or SPEED_SCALING.name
            message_type = _message_type(kind, topic, driven) if topic else None
            if topic and message_type is not None:
                self._sources[name] = _Newest(node, group, topic, kind, message_type)

    @property
    def problem(self) -> str:
        """Why the robot must not be moved, empty if nothing is said against it."""
        heard = ((_KINDS[name], source.get()) for name, source in self._sources.items())
        return next(filter(None, (kind.problem(message) for kind, message in heard if message is not None)), "")

    @property
    def held_up(self) -> float:
        """Time by which scaled controllers have fallen behind so far [s]; differences of it count."""
        now, source = ros_time(self._node), self._sources.get("speed_scaling")
        if source is not None and (message := source.get()) is not None:
            self._held_up.scale(message.data, now)
        return self._held_up.until(now)

    def silent(self) -> list[str]:
        """Topics on which nothing has come yet."""
        return [source.topic for source in self._sources.values() if source.get() is None]


def _message_type(kind: _Kind, topic: str, driven: bool) -> Any:
    try:
        messages = importlib.import_module(f"{kind.package}.msg")
    except ImportError as error:
        if not driven:
            return None
        raise MissingDependencyError(
            kind.package, f"topic {topic} of the robot's driver",
            f"Install ros-jazzy-{kind.package.replace('_', '-')}, or take the topic out of driver_state in the robot's "
            "file: then its stops show by what the arm does.",
        ) from error  # fmt: skip
    return next(filter(None, (getattr(messages, name, None) for name in kind.types)), None)
