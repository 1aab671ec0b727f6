"""The hand as the grasp sequence sees it, where its fingers turn: opening and force by the robot's table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.execution.arm_and_hand import ArmAndHand
from morphit_ros.execution.contact_watch import ContactWatch, FreeMotion
from morphit_ros.execution.pick import GripperLimits
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.finger_positions import FingerPositions
from morphit_ros.robot.motion_types import JointState, Trajectory

FINGERS = ("knuckle", "other_knuckle")
# 0.1 m/rad of the opening, 0.05 of each finger; the second turns the other way.
ROBOT = replace(
    RobotConfiguration.load("panda"),
    finger_joints=FINGERS,
    finger_positions=FingerPositions(np.array([0.0, 0.04, 0.08]), np.array([[0.8, -0.8], [0.4, -0.4], [0.0, 0.0]])),
)


def hand(positions: dict[str, float], efforts: dict[str, float] | None = None, stamp: float = 1.0) -> ArmAndHand:
    found = ArmAndHand(
        None,  # type: ignore[arg-type]
        ROBOT, GripperLimits(0.0, 0.08, 40.0), SequenceConfig(), "clock", FreeMotion(),
    )  # fmt: skip
    tell(found, positions, efforts, stamp)
    return found


def tell(robot: ArmAndHand, positions: dict[str, float], efforts: dict[str, float] | None, stamp: float) -> None:
    everything = {**dict.fromkeys(ROBOT.arm_joints, 0.0), **positions}
    forces = np.array([(efforts or {}).get(name, 0.0) for name in everything]) if efforts else np.empty(0)
    state = JointState(
        tuple(everything), np.array(list(everything.values())), np.zeros(len(everything)), stamp, forces
    )  # fmt: skip
    assert robot.state.check(stamp, state) == ""


@pytest.mark.parametrize("reported", [FINGERS, FINGERS[:1], FINGERS[1:]])
def test_the_opening_is_that_of_the_table_whoever_reports(reported: tuple[str, ...]) -> None:
    positions = {"knuckle": 0.2, "other_knuckle": -0.2}
    robot = hand({name: positions[name] for name in reported})
    assert robot.aperture == pytest.approx(0.06)
    assert robot.state.values(FINGERS) == pytest.approx([0.2, -0.2])
    assert robot.with_aperture({"x": 1.0}, 0.02) == pytest.approx({"x": 1.0, "knuckle": 0.6, "other_knuckle": -0.6})


def test_torques_of_the_joints_are_told_as_the_force_of_a_finger() -> None:
    positions = {"knuckle": 0.2, "other_knuckle": -0.2}
    assert hand(positions).grip_effort is None
    assert hand(positions, {"knuckle": -1.0, "other_knuckle": 1.0}).grip_effort == pytest.approx(20.0)
    assert hand({"knuckle": 0.2}, {"knuckle": -1.0}).grip_effort == pytest.approx(20.0)


def test_fingers_that_are_pushed_are_noticed_by_metres_not_by_angle() -> None:
    positions = {"knuckle": 0.2, "other_knuckle": -0.2}
    robot = hand(positions)
    still = Trajectory(ROBOT.arm_joints, np.array([0.0, 1.0]), np.zeros((2, 7)), np.zeros((2, 7)))
    bound = robot.config.contact.finger_bound
    for share, noticed in ((0.4, False), (1.5, True)):
        watch = ContactWatch(still, 1.0, ROBOT, robot.state, FreeMotion(), robot.config)
        signs = []
        for _ in range(3):
            # One finger is pressed open by a share of the bound.
            pushed = {**positions, "knuckle": 0.2 - share * bound / 0.05}
            tell(robot, pushed, None, robot.state.stamp + 0.02)
            signs.append(watch.check())
        assert ("displaced" in signs[-1]) is noticed
        tell(robot, positions, None, robot.state.stamp + 0.02)
