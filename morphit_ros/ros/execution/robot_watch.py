"""The robot as its driver describes it, held against the robot's file, and its newest joint state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic

import numpy as np
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from std_msgs.msg import Bool, String

from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.execution.command_check import JointLimits
from morphit_ros.geometry.transforms import Array, invert_transform, rotation_angle
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.interfaces import JOINT_STATES, ROBOT_DESCRIPTION, VACUUM
from morphit_ros.ros.core.joint_states import PERIOD, follow_joint_states
from morphit_ros.ros.execution.driver_state import DriverState

# Joint positions that bring the gripper no further than this from where they should are those of the pose [m], [rad].
_DISTANCE, _ANGLE = 0.002, 0.01
# What a cup has sensed longer ago is not known any longer [s].
_VACUUM_AGE = 1.0


class RobotWatch:
    """Follows the robot's description and joint states; says whether motions may be planned with the robot's file.

    Args:
        node: subscribes.
        group: of the subscriptions' callbacks.
        robot: the robot's file.
        on_state: called with each joint state, also with one that is not believed.
        refuse: called with why a joint state cannot be used.
        driven: a driver moves the robot, as of `DriverState`, not the simulation.
        period: wall time between two looks at the joint states [s].

    Attributes:
        driver: what the driver says of the robot.
        state: the newest joint state that is believed, None before the first.
        arm: the newest of those that have all of the arm's joints: grippers may publish on their own.
        model: of the driver's description, None before it has come.
        look: takes the newest joint state now.
        implausible: why the newest joint state is not believed, empty if it is.
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup | None,
        robot: RobotConfiguration,
        on_state: Callable[[JointState], None] = lambda _: None,
        refuse: Callable[[str], None] = lambda _: None,
        driven: bool = False,
        period: float = PERIOD,
    ) -> None:
        self._node, self._robot, self._on_state = node, robot, on_state
        self.driver, self._driven = DriverState(node, group, robot, driven), driven
        self.model: KinematicModel | None = None
        self._limits: JointLimits | None = None
        self._error: MorphitError | None = None
        self.state: JointState | None = None
        self.arm: JointState | None = None
        self.implausible = self._fault = ""
        self._arrival = monotonic()
        # What a cup senses goes with the joint states: the sequence looks at both at once.
        self._vacuum: tuple[bool, float] | None = None
        if not robot.finger_joints:
            VACUUM.subscribe(node, self._on_vacuum, group)
        ROBOT_DESCRIPTION.subscribe(node, self._on_description, group)
        self.look = follow_joint_states(node, self._on_joint_state, group, refuse, period)

    def _on_joint_state(self, state: JointState) -> None:
        whole = set(self._robot.arm_joints) <= set(state.names)
        self._arrival = monotonic() if whole else self._arrival
        self.implausible = self._limits.implausible(state, self.arm) if self._limits is not None else ""
        self._fault = self.implausible or self._fault
        if not self.implausible:
            self.state = state = replace(state, held_up=self.driver.held_up, vacuum=self._sensed())
            self.arm = state if whole else self.arm
        self._on_state(state)

    def _on_vacuum(self, message: Bool) -> None:
        self._vacuum = bool(message.data), monotonic()

    def _sensed(self) -> bool | None:
        """Whether the cup has vacuum; None where nothing has told that lately, or there is no cup."""
        if self._vacuum is None or monotonic() - self._vacuum[1] > _VACUUM_AGE:
            return None
        return self._vacuum[0]

    def not_reported(self) -> str:
        """What the joint states lack (ros2_control sends NaN), and what is off without it; empty if nothing is."""
        state, arm = self.state, self._robot.arm_joints
        if state is None or not set(arm) <= set(state.names):
            return ""
        rows = [state.names.index(name) for name in arm]
        lacking = [
            f"no {what}: {off}"
            for what, values, off in (
                ("velocities", state.velocities, "they are taken from the positions"),
                ("efforts", state.efforts, "contacts are not felt by effort"),
            )
            if len(values) != len(state.names) or not np.isfinite(values[rows]).all()
        ]
        told = [f"{JOINT_STATES.name} have {', and '.join(lacking)}"] if lacking else []
        if self._driven and (silent := self.driver.silent()):
            told.append(f"nothing on {', '.join(silent)}: what the driver says there is not known")
        return "; ".join(told)

    def fault(self) -> str:
        """Why a joint state was not believed since this was asked for the last time, empty if all were."""
        fault, self._fault = self._fault, ""
        return fault

    @property
    def silence(self) -> float:
        """Wall time since the last joint state of the arm [s]."""
        return monotonic() - self._arrival

    def _on_description(self, message: String) -> None:
        known: tuple[KinematicModel, JointLimits] | tuple[None, None] = None, None
        wrong: MorphitError | None = None
        try:
            model = KinematicModel(message.data)
            self._robot.check_description(model.description)
            known = model, JointLimits.of(model, self._robot.arm_joints)
        except ResourceNotFoundError as error:
            # Without its meshes nothing can be said about it; robot_spheres cannot do without them and says so.
            self._node.get_logger().warning(f"{ROBOT_DESCRIPTION.name} is not checked: {error}")
        except MorphitError as error:
            wrong = error
        # Only now: what was known before holds while this one is read, or a goal would meet a robot without either.
        (self.model, self._limits), self._error = known, wrong
        if wrong is not None:
            self._node.get_logger().error(self.problem)

    @property
    def problem(self) -> str:
        """Why this robot is not moved, empty if nothing speaks against it: its description, or what its driver says."""
        return self.misfit or self.driver.problem

    @property
    def misfit(self) -> str:
        """How the robot's description differs from its file, empty if it does not."""
        return f"{ROBOT_DESCRIPTION.name} does not fit the robot's file: {self._error}" if self._error else ""

    def check(self) -> None:
        """Raise the MorphitError that says where the driver's description and the robot's file differ, if they do."""
        if self._error is not None:
            raise self._error

    def check_state(self) -> None:
        """Raise an InvalidInputError if no joint state has come yet."""
        if self.state is None:
            raise InvalidInputError(JOINT_STATES.name, "nothing yet", "a joint state")

    def reaches(self, T_base_gripper: Array, positions: Mapping[str, float]) -> bool:
        """Whether arm joint positions [rad] bring the gripper to a pose; not where no description has come."""
        if self.model is None:
            return False
        try:
            pose = self._robot.gripper_pose(self.model, positions)
        except InvalidInputError:
            # Joints of another robot.
            return False
        offset = invert_transform(T_base_gripper) @ pose
        return float(np.linalg.norm(offset[:3, 3])) <= _DISTANCE and rotation_angle(offset[:3, :3]) <= _ANGLE
