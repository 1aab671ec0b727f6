"""A Panda that does at once what it is told: follows joint_trajectory, closes on an object of 50 mm."""

from __future__ import annotations

import numpy as np

from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_joint_state, trajectory_from_message

_PERIOD = 0.02
_FINGER_SPEED = 0.1
# By this share of its speed the arm is faster where it makes up for a trajectory that came late.
_HURRY = 0.3


class FakeRobot:
    """Driven by a timer of the test's node, so it lives while the test waits.

    Attributes:
        silent: whether its joint states have stopped.
        report: from the true positions of the arm (J,) those that it reports.
        spoil: changes the message of a joint state before it is sent.
        object_width: where closing fingers stop [m].
        is_free: whether nothing fixed keeps the arm from positions (J,); where something does, it stays before it.
        trajectories, stops: how many it was sent.
        begins: where the arm was when each trajectory came (J,).
        gripper_commands: (aperture, effort) in order.
        scale: how fast the time of a trajectory passes, as the slider of a teach pendant says [%].
    """

    def __init__(self, graph, object_width: float = 0.05) -> None:
        self._node = graph.node
        self._configuration = RobotConfiguration.load("panda")
        self.object_width = object_width
        self.arm = self._configuration.home.copy()
        self.aperture = self._wanted = 0.08
        self.silent = False
        self.scale, self._elapsed, self._behind = 100.0, 0.0, 0.0
        self.report = lambda arm: arm
        self.spoil = lambda message: None
        self.is_free = lambda arm: True
        self.trajectories = self.stops = 0
        self.gripper_commands: list[tuple[float, float]] = []
        self.begins: list[np.ndarray] = []
        self._trajectory = None
        self._last = 0.0
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
        # As a controller takes it: from its stamp on, or from now. A test may give the nodes another clock than this.
        # Where it comes late, the arm makes up for that, but no arm does at once.
        now, start = self._now(), self._trajectory.start if self._trajectory is not None else 0.0
        late = now - start if abs(now - start) < 5.0 else 0.0
        self._elapsed, self._behind, self._last = min(late, 0.0), max(late, 0.0), now
        if self._trajectory is None:
            self.stops += 1
        else:
            self.trajectories += 1
            self.begins.append(self.arm.copy())

    def _on_gripper(self, message) -> None:
        self.gripper_commands.append((message.aperture, message.max_effort))
        self._wanted = message.aperture

    def _step(self) -> None:
        velocities = np.zeros(len(self.arm))
        if self._trajectory is not None:
            now = self._now()
            passed = (now - self._last) * self.scale / 100.0
            caught_up = min(self._behind, _HURRY * passed)
            self._elapsed, self._behind, self._last = self._elapsed + passed + caught_up, self._behind - caught_up, now
            elapsed = self._elapsed
            arm = self._trajectory.sample(elapsed)
            if self.is_free(arm):
                self.arm = arm
                velocities = (arm - self._trajectory.sample(elapsed - _PERIOD)) / _PERIOD * self.scale / 100.0
            if elapsed > self._trajectory.duration:
                self._trajectory, velocities = None, np.zeros(len(self.arm))
        # Closing fingers stop at the object.
        wanted = max(self._wanted, self.object_width) if self._wanted < self.aperture else self._wanted
        self.aperture += float(np.clip(wanted - self.aperture, -_FINGER_SPEED * _PERIOD, _FINGER_SPEED * _PERIOD))
        if self.silent:
            return
        names = (*self._configuration.arm_joints, *self._configuration.finger_joints)
        fingers = np.full(2, self.aperture / 2.0)
        message = message_from_joint_state(
            JointState(
                names,
                np.concatenate([self.report(self.arm), fingers]),
                np.concatenate([velocities, np.zeros(2)]),
                self._now(),
            )
        )
        self.spoil(message)
        self._states.publish(message)
