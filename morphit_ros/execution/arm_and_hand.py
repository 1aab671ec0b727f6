"""The robot of one pick, as the steps of the grasp sequence see it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.pick import Command, CommandGripper, CupLimits, GripperLimits
from morphit_ros.execution.sequence_config import HAND_FORCE, SequenceConfig
from morphit_ros.execution.supervision import StateWatch
from morphit_ros.execution.weighing import Scale
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_backend import MotionBackend


class SequenceStep(Protocol):
    """A part of a stage. It begins with its first `update`."""

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        """What to send now, and whether the step has ended; may raise PickFailed."""


class ArmAndHand:
    """Latest joint state, settings and motion planning.

    Args:
        backend, robot, gripper, config, clock: as of the grasp sequence.
        free_motion: what is known of motions without contact.
        scale: weighs what is lifted, None where nothing is weighed.
    """

    def __init__(
        self,
        backend: MotionBackend,
        robot: RobotConfiguration,
        gripper: GripperLimits | CupLimits,
        config: SequenceConfig,
        clock: str,
        free_motion: FreeMotion,
        scale: Scale | None = None,
    ) -> None:
        self.backend, self.robot, self.config = backend, robot, config
        self._gripper = gripper
        self.free_motion, self.scale = free_motion, scale
        self.state = StateWatch(robot.arm_joints, robot.finger_joints, config, clock, robot)

    @property
    def cup(self) -> CupLimits | None:
        """The suction cup, None where the hand has fingers."""
        return self._gripper if isinstance(self._gripper, CupLimits) else None

    @property
    def gripper(self) -> GripperLimits:
        """What the fingers are capable of; a cup has none."""
        assert isinstance(self._gripper, GripperLimits)
        return self._gripper

    @property
    def aperture(self) -> float:
        """Opening between the pads [m]; 0 of a cup."""
        return float(self.robot.finger_shares(self.state.values(self.robot.finger_joints)).sum())

    @property
    def grip_effort(self) -> float | None:
        """Mean force of the fingers without its sign [N], None where no effort is reported."""
        efforts = self.state.efforts(self.robot.finger_joints)
        if efforts is None or self.robot.finger_positions is None:
            return None if efforts is None else float(np.abs(efforts).mean())
        fingers = self.robot.finger_joints
        known = [self.state.efforts((name,)) for name in fingers]
        torques = [0.0 if effort is None else float(effort[0]) for effort in known]
        forces = self.robot.finger_forces(self.state.values(fingers), torques)
        return float(np.mean([force for force, effort in zip(forces, known, strict=True) if effort is not None]))

    @property
    def resting(self) -> bool:
        """Whether no joint of the arm moves."""
        return bool(self.state.speeds(self.robot.arm_joints).max() <= self.config.rest_speed)

    @property
    def full_force(self) -> float:
        """Closing force of a grasp [N]."""
        return self.config.max_effort or min(self.gripper.max_force, HAND_FORCE)

    def grip(self, aperture: float, force: float | None = None) -> CommandGripper:
        """A command within the gripper's limits; None: the full force."""
        limited = min(max(aperture, self.gripper.aperture_min), self.gripper.aperture_max)
        wanted = self.full_force if force is None else min(force, self.full_force)
        return CommandGripper(limited, max(wanted, self.gripper.min_force))

    def closing_goal(self, contact: float) -> float:
        """Where closing fingers are sent that meet the object at an opening [m]."""
        return max(self.gripper.aperture_min, contact - self.config.close_bias)

    def empty_aperture(self, contact: float, goal: float) -> float:
        """At this opening or less, fingers that were sent to a goal and should meet the object before hold nothing [m].

        Half the margin of what is thinner than twice the margin: a plate must not count as nothing.
        """
        return goal + min(self.config.stall_margin, 0.5 * max(0.0, contact - goal))

    def with_aperture(self, positions: dict[str, float], aperture: float) -> dict[str, float]:
        """Joint positions with the fingers at an opening [m]."""
        if self.cup is not None:
            return positions
        return {**positions, **self.robot.finger_state(min(aperture, self.gripper.aperture_max))}
