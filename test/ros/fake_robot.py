"""A Panda that does at once what it is told: follows joint_trajectory, closes on an object of 50 mm."""

from __future__ import annotations

import numpy as np

from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_joint_state, trajectory_from_message

_PERIOD = 0.02
_FINGER_SPEED = 0.1


class FakeRobot:
    """Driven by a timer of the test's node, so it lives while the test waits.

    Attributes:
        silent: whether its joint states have stopped.
        object_width: where closing fingers stop [m].
        trajectories, stops: how many it was sent.
        gripper_commands: (aperture, effort) in order.
    """

    def __init__(self, graph, object_width: float = 0.05) -> None:
        self._node = graph.node
        self._configuration = RobotConfiguration.load("panda")
        self.object_width = object_width
        self.arm = self._configuration.home.copy()
        self.aperture = self._wanted = 0.08
        self.silent = False
        self.trajectories = self.stops = 0
        self.gripper_commands: list[tuple[float, float]] = []
        self._trajectory = None
        self._begin = 0.0
        self._states = self._node.create_publisher(
            interfaces.JOINT_STATES.type, interfaces.JOINT_STATES.name, interfaces.JOINT_STATES.quality.profile()
        )
        for topic, callback in (
            (interfaces.JOINT_TRAJECTORY, self._on_trajectory),
            (interfaces.GRIPPER_COMMAND, self._on_gripper),
        ):
            self._node.create_subscription(topic.type, topic.name, callback, topic.quality.profile())
        self._node.create_timer(_PERIOD, self._step)

    @property
    def moving(self) -> bool:
        return self._trajectory is not None

    def _now(self) -> float:
        return self._node.get_clock().now().nanoseconds * 1e-9

    def _on_trajectory(self, message) -> None:
        self._trajectory = trajectory_from_message(message)
        self._begin = self._now()
        if self._trajectory is None:
            self.stops += 1
        else:
            self.trajectories += 1

    def _on_gripper(self, message) -> None:
        self.gripper_commands.append((message.aperture, message.max_effort))
        self._wanted = message.aperture

    def _step(self) -> None:
        velocities = np.zeros(len(self.arm))
        if self._trajectory is not None:
            elapsed = self._now() - self._begin
            self.arm = self._trajectory.sample(elapsed)
            velocities = (self.arm - self._trajectory.sample(elapsed - _PERIOD)) / _PERIOD
            if elapsed > self._trajectory.duration:
                self._trajectory, velocities = None, np.zeros(len(self.arm))
        # Closing fingers stop at the object.
        wanted = max(self._wanted, self.object_width) if self._wanted < self.aperture else self._wanted
        self.aperture += float(np.clip(wanted - self.aperture, -_FINGER_SPEED * _PERIOD, _FINGER_SPEED * _PERIOD))
        if self.silent:
            return
        names = (*self._configuration.arm_joints, *self._configuration.finger_joints)
        fingers = np.full(2, self.aperture / 2.0)
        self._states.publish(
            message_from_joint_state(
                JointState(
                    names, np.concatenate([self.arm, fingers]), np.concatenate([velocities, np.zeros(2)]), self._now()
                )
            )
        )
