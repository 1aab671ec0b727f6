"""Contacts by efforts: what a joint's own motion explains is no contact, and the same change without it is one."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.execution.arm_and_hand import ArmAndHand
from morphit_ros.execution.contact_watch import ContactWatch, FreeMotion
from morphit_ros.execution.pick import GripperLimits
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState, Trajectory

ROBOT = RobotConfiguration.load("panda")
# Of the joints [kg m²]: an arm that is stretched out turns heavily about its base.
INERTIA = np.array([2.5, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1])
PERIOD, ACCELERATION = 0.02, 6.0


def swing(joint: int) -> Trajectory:
    """A joint speeds up and slows down again."""
    times = np.arange(0.0, 0.6 + 1e-9, PERIOD)
    rates = np.zeros((len(times), 7))
    rates[:, joint] = ACCELERATION * np.minimum(times, 0.6 - times)
    positions = np.zeros_like(rates)
    positions[1:] = np.cumsum(0.5 * PERIOD * (rates[1:] + rates[:-1]), axis=0)
    return Trajectory(ROBOT.arm_joints, times, positions, rates)


class Arm:
    """Follows its trajectories and reports the efforts that they take."""

    def __init__(self) -> None:
        self.hand = ArmAndHand(
            None,  # type: ignore[arg-type]
            ROBOT, GripperLimits(0.0, 0.08, 40.0), SequenceConfig(), "clock", FreeMotion(),
        )  # fmt: skip
        self.now, self.free = 1.0, FreeMotion()

    def tell(self, trajectory: Trajectory, elapsed: float, push: float) -> None:
        names = (*ROBOT.arm_joints, *ROBOT.finger_joints)
        positions = np.append(trajectory.sample(elapsed), [0.02] * len(ROBOT.finger_joints))
        slope = (trajectory.sample(elapsed + PERIOD) - 2.0 * trajectory.sample(elapsed)) + trajectory.sample(
            max(elapsed - PERIOD, 0.0)
        )
        efforts = np.append(INERTIA * slope / PERIOD**2, [0.0] * len(ROBOT.finger_joints))
        efforts[0] += push
        state = JointState(names, positions, np.zeros(len(names)), self.now, efforts)
        assert self.hand.state.check(self.now, state) == ""
        self.now += PERIOD

    def follow_scaled(self, trajectory: Trajectory, slower: int, faster: int) -> str:
        """The sign of a contact while its controller slows it down to a stand, and lets it go on.

        Args:
            slower, faster: after so many periods that is said; negative: never.
        """
        self.tell(trajectory, 0.0, 0.0)
        watch = ContactWatch(trajectory, self.now - PERIOD, ROBOT, self.hand.state, self.free, self.hand.config)
        fingers = [0.02] * len(ROBOT.finger_joints)
        names = (*ROBOT.arm_joints, *ROBOT.finger_joints)
        times = np.arange(0.0, 1.6, PERIOD)
        ramps = np.array([0.28, 0.32, 0.8, 0.84])
        scales = np.interp(times, ramps, [1.0, 0.0, 0.0, 1.0])
        told = np.interp(times, ramps + PERIOD * np.array([slower, slower, faster, faster]), [1.0, 0.0, 0.0, 1.0])
        progress, late = (np.append(0.0, np.cumsum(values[1:])) * PERIOD for values in (scales, 1.0 - told))
        places = np.array([trajectory.sample(time) for time in progress])
        for index in range(1, len(times)):
            slope = places[index] - 2.0 * places[index - 1] + places[max(index - 2, 0)]
            efforts = np.append(INERTIA * slope / PERIOD**2, np.zeros_like(fingers))
            held_up = float(late[index]) if slower >= 0 else 0.0
            positions = np.append(places[index], fingers)
            state = JointState(names, positions, np.zeros(len(names)), self.now, efforts, held_up=held_up)
            assert self.hand.state.check(self.now, state) == ""
            self.now += PERIOD
            if sign := watch.check():
                return sign
        return ""

    def follow(self, trajectory: Trajectory, push: float = 0.0) -> str:
        """The sign of a contact on the way; from its middle on the first joint is pushed [N m]."""
        self.tell(trajectory, 0.0, 0.0)
        begin = self.now - PERIOD
        watch = ContactWatch(trajectory, begin, ROBOT, self.hand.state, self.free, self.hand.config)
        for elapsed in trajectory.times[1:]:
            self.tell(trajectory, float(elapsed), push if elapsed > 0.3 else 0.0)
            if sign := watch.check():
                return sign
        self.free.learn(watch)
        return ""


def test_a_joint_that_has_hardly_moved_before_may_be_heavier() -> None:
    arm = Arm()
    assert arm.follow(swing(3)) == ""
    assert arm.follow(swing(0)) == ""


def test_one_motion_tells_less_than_many() -> None:
    def noticed(motions: int) -> bool:
        arm = Arm()
        for _ in range(motions):
            assert arm.follow(swing(3)) == ""
        # Between the bound after many motions and the one after a single one.
        return bool(arm.follow(swing(3), 14.0))

    assert [noticed(motions) for motions in (1, 2, 8)] == [False, False, True]


@pytest.mark.parametrize("first", [3, 0])
def test_the_same_effort_is_a_contact_where_another_joint_moves(first: int) -> None:
    arm = Arm()
    assert arm.follow(swing(3)) == ""
    if first == 0:
        assert arm.follow(swing(0)) == ""
        # What the heavy joint takes is known now, and no more than a multiple of that is free.
        assert "panda_joint1" in arm.follow(swing(0), 150.0)
    else:
        assert "panda_joint1" in arm.follow(swing(3), 25.0)


@pytest.mark.parametrize(("slower", "faster"), [(0, 0), (1, 1), (0, 3)])
def test_an_arm_that_is_slowed_down_for_somebody_feels_no_contact(slower: int, faster: int) -> None:
    arm = Arm()
    for _ in range(8):
        assert arm.follow(swing(0)) == ""
    assert arm.follow_scaled(swing(0), slower, faster) == ""


def test_an_arm_that_stands_and_says_nothing_has_met_something() -> None:
    arm = Arm()
    for _ in range(8):
        assert arm.follow(swing(0)) == ""
    assert "panda_joint1" in arm.follow_scaled(swing(0), -1, -1)
