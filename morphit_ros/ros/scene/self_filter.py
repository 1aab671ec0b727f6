"""The robot's spheres in the world at the time of a cloud, so that it does not see itself as an object."""

from __future__ import annotations

from collections import deque

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.memory.tracks import Carried
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.conversions import point_rows
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.frames import BaseFrame
from morphit_ros.ros.core.interfaces import JOINT_STATES, ROBOT_DESCRIPTION, SPHERE_MODEL
from morphit_ros.ros.core.joint_states import follow_joint_states
from morphit_ros.ros.spheres.messages import link_spheres_from_message
from morphit_ros.spheres.objects.plates import COVER

# Between two looks at the joint states, of which all are kept for a while [s].
_LOOK_PERIOD = 0.1


class SelfFilter:
    """Follows joint states, description and sphere model of a robot.

    Args:
        node: subscribes.
        robot: names the base link.
        base: where that stands in the world.
        diagnostics: told which sphere model is used.

    Attributes:
        carried: what the hand took last by the sphere model, and where it let go of it; None before that.
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
        self.carried: Carried | None = None
        self._T_taken: Array | None = None
        self._carrier = ""
        # A model that came before what is needed to follow what it holds.
        self._waiting: SphereModel | None = None
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
            self._follow_hand(message)
        except MorphitError as error:
            self._node.get_logger().error(f"sphere model refused, the last one is kept: {error}")

    def _follow_hand(self, message: SphereModel) -> None:
        """Where what is held was when it came into the model, and how far it had gone when it left it."""
        self._waiting = None
        held = [link for link in message.links if link.object_id not in ("", COVER)]
        if bool(held) is (self._T_taken is not None):
            return
        # Description, model and joint states come in any order where this begins while something is held.
        self._waiting = message
        self._look()
        if self._kinematics is None or not self._states:
            return
        try:
            poses = self._T_world_links(self._states[-1])
        except MorphitError:
            return
        self._waiting = None
        if not held:
            assert self.carried is not None and self._T_taken is not None
            T_now_taken = poses[self._carrier] @ invert_transform(self._T_taken)
            self.carried, self._T_taken = self.carried._replace(T_now_taken=T_now_taken), None
        elif held[0].link_name in poses:
            self._carrier = held[0].link_name
            self._T_taken = poses[self._carrier]
            spheres = [sphere for link in held for sphere in link.spheres]
            centers = transform_points(self._T_taken, point_rows([sphere.center for sphere in spheres]))
            self.carried = Carried(centers, np.array([sphere.radius for sphere in spheres]))

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
        if self._waiting is not None:
            self._follow_hand(self._waiting)
        self._look()
        states = list(self._states)
        state = min(states, key=lambda candidate: abs(candidate.stamp - stamp), default=None)
        if state is None or abs(state.stamp - stamp) > self._LARGEST_GAP:
            seen = "none" if state is None else f"the nearest at {state.stamp:.3f} s"
            raise InvalidInputError(
                JOINT_STATES.name, seen, f"one within {self._LARGEST_GAP:g} s of the cloud at {stamp:.3f} s",
                "Check that joint states are published and that the clocks agree.",
            )  # fmt: skip
        poses = self._T_world_links(state, stamp)
        centers = [transform_points(poses[link], spheres[0]) for link, spheres in self._spheres.items()]
        return np.concatenate(centers), np.concatenate([radii for _, radii in self._spheres.values()])

    def _T_world_links(self, state: JointState, stamp: float = 0.0) -> dict[str, Array]:
        """Link → (4, 4) at a state of the joints, with the base where it stood at a time [s]; 0: where it is."""
        assert self._kinematics is not None
        transforms = self._kinematics.forward_kinematics(state.as_dict())
        base_link = self._robot.base_link
        T_world_root = self._base.T_world_base(base_link, stamp) @ np.linalg.inv(transforms[base_link])
        return {link: T_world_root @ T_root_link for link, T_root_link in transforms.items()}
