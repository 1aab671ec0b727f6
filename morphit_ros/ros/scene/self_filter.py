"""The robot's spheres in the world at the time of a cloud, so that it does not see itself as an object."""

from __future__ import annotations

from collections import deque

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.frames import BaseFrame
from morphit_ros.ros.core.interfaces import JOINT_STATES, ROBOT_DESCRIPTION, SPHERE_MODEL
from morphit_ros.ros.core.joint_states import follow_joint_states
from morphit_ros.ros.spheres.messages import link_spheres_from_message

# Between two looks at the joint states, of which all are kept for a while [s].
_LOOK_PERIOD = 0.1


class SelfFilter:
    """Follows joint states, description and sphere model of a robot.

    Args:
        node: subscribes.
        robot: names the base link.
        base: where that stands in the world.
        diagnostics: told which sphere model is used.
    """

    # Joint states are kept this long; a cloud older than that cannot be matched.
    _HISTORY = 3.0
    _LARGEST_GAP = 0.2

    def __init__(self, node: Node, robot: RobotConfiguration, base: BaseFrame, diagnostics: Diagnostics) -> None:
        self._node = node
        self._robot = robot
        self._base, self._diagnostics = base, diagnostics
        self._states: deque[JointState] = deque()
        self._spheres: dict[str, tuple[Array, Array]] | None = None
        self._kinematics: KinematicModel | None = None
        self._look = follow_joint_states(node, self._on_joint_state, period=_LOOK_PERIOD, every=True)
        SPHERE_MODEL.subscribe(node, self._on_sphere_model)
        ROBOT_DESCRIPTION.subscribe(node, self._on_description)

    def _on_joint_state(self, state: JointState) -> None:
        if self._states and state.stamp < self._states[-1].stamp:
            self._states.clear()  # the clock was set back: a simulation started anew
        self._states.append(state)
        while self._states[-1].stamp - self._states[0].stamp > self._HISTORY:
            self._states.popleft()

    def _on_sphere_model(self, message: SphereModel) -> None:
        try:
            self._spheres = link_spheres_from_message(message)
            self._diagnostics.computes_with(SPHERE_MODEL.name, message.content_hash)
        except MorphitError as error:
            self._node.get_logger().error(f"sphere model refused, the last one is kept: {error}")

    def _on_description(self, message: String) -> None:
        try:
            self._kinematics = KinematicModel(message.data)
        except MorphitError as error:
            self._node.get_logger().error(f"robot description refused, the last one is kept: {error}")

    def spheres(self, stamp: float) -> tuple[Array, Array]:
        """Centres (K, 3) in the world and radii (K,) [m] at a time [s].

        Raises:
            InvalidInputError: description, model or a joint state close to that time is not there; names which.
        """
        if self._spheres is None or self._kinematics is None:
            missing = SPHERE_MODEL.name if self._spheres is None else ROBOT_DESCRIPTION.name
            raise InvalidInputError(
                missing, "nothing yet", "the robot's shape", "Start robot_spheres, or set self_filter to false."
            )
        self._look()
        states = list(self._states)
        state = min(states, key=lambda candidate: abs(candidate.stamp - stamp), default=None)
        if state is None or abs(state.stamp - stamp) > self._LARGEST_GAP:
            seen = "none" if state is None else f"the nearest at {state.stamp:.3f} s"
            raise InvalidInputError(
                JOINT_STATES.name, seen, f"one within {self._LARGEST_GAP:g} s of the cloud at {stamp:.3f} s",
                "Check that joint states are published and that the clocks agree.",
            )  # fmt: skip
        transforms = self._kinematics.forward_kinematics(state.as_dict())
        base_link = self._robot.base_link
        T_base_root = np.linalg.inv(transforms[base_link])
        T_world_root = self._base.T_world_base(base_link, stamp) @ T_base_root
        centers = [
            transform_points(T_world_root @ transforms[link], spheres[0]) for link, spheres in self._spheres.items()
        ]
        return np.concatenate(centers), np.concatenate([radii for _, radii in self._spheres.values()])
