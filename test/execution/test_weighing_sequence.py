"""What the grasp sequence does with what it weighs, on the robot in memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_grasp_sequence import LIMITS, PERIOD, FakeBackend, FakeRobot, grasp, request, run

from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.pick import PickStage
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig, WeighConfig
from morphit_ros.execution.weighing import Scale
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy

# Readings of a unit mass, and of unit first moments along x, y, z of a gripper that points down.
MATRIX = np.random.default_rng(0).normal(size=(7, 4)) * np.array([5.0, 10.0, 10.0, 10.0])
POSE = make_transform(matrix_from_rpy((np.pi, 0.0, 0.0)), (0.3, 0.1, 0.08))
TORSION = 0.3


# Readings that no load explains.
NO_WEIGHT = np.linalg.svd(MATRIX)[0][:, -1]


def efforts(mass, x, no_weight=0.0):
    """Of a load whose weight pulls x [m] along the gripper's x axis beside the grasp, and what is no load [N m]."""
    return MATRIX @ np.array([mass, mass * x, 0.0, 0.0]) + no_weight * NO_WEIGHT


@pytest.fixture
def weigh(panda):
    """A pick of an object whose loads at the test lift and after the lift are told; its updates and its robot."""

    def pick(first, then=None, torsion=TORSION, **arguments):
        robot = FakeRobot(panda.arm_joints, panda.finger_joints)
        robot.finger_effort = 40.0
        scale = Scale(lambda state: state.efforts(panda.arm_joints), lambda positions: MATRIX, lambda positions: POSE)
        # Biased as sensors are; the first motions would be contacts otherwise.
        bias = np.linspace(-1.0, 1.0, 7)
        robot.arm_effort = bias

        def load(robot, update):
            if update.stage is PickStage.TEST_LIFT:
                robot.arm_effort = bias + efforts(*first)
            elif update.stage in (PickStage.LIFT, PickStage.VERIFY):
                robot.arm_effort = bias + efforts(*(then or first))
            else:
                robot.arm_effort = bias

        sequence = GraspSequence(
            FakeBackend(panda.arm_joints), panda, LIMITS, SequenceConfig(weigh=WeighConfig(share=0.5)), "clock",
            scale=scale,
        )  # fmt: skip
        target = replace(grasp(), torsion=torsion)
        return run(sequence, robot, request(target, **{"recenter": True, "regrasps": 0, **arguments}), load)[-1], robot

    return pick


def test_what_is_lifted_is_weighed(weigh):
    last, _ = weigh((0.4, 0.02))
    assert last.success, last.message
    assert last.load.mass == pytest.approx(0.4, rel=1e-6)
    assert last.load.center == pytest.approx([0.02, 0.0, 0.0], abs=1e-6)
    assert "0.400 ± 0.000 kg, 20 ± " in last.message


def test_a_weight_far_beside_the_grasp_is_set_down(weigh):
    # 0.4 kg · 9.81 · 0.05 m = 0.196 N m, over half of 0.3.
    last, robot = weigh((0.4, 0.05))
    assert last.mode is FailureMode.OFF_CENTER
    assert last.failed_stage is PickStage.TEST_LIFT
    assert "0.20 N m about the pads' normal, over 0.5 of the 0.30 that they hold" in last.message
    assert last.ready
    assert last.load.mass == pytest.approx(0.4, rel=1e-6)
    # Lower than it was lifted, and let go of.
    assert robot.released_at == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize(
    ("first", "arguments"),
    [
        ((0.4, 0.03), {}),
        ((0.4, 0.05, 0.5), {}),
        ((0.4, 0.05), {"recenter": False}),
        ((0.4, 0.05), {"torsion": None}),
    ],
    ids=["within the share", "not sure", "nobody would plan again", "nothing is known of the pads"],
)
def test_otherwise_it_goes_up(weigh, first, arguments):
    last, _ = weigh(first, **arguments)
    assert last.success, last.message


def test_a_load_that_grows_has_turned_in_the_hand(weigh):
    last, robot = weigh((0.1, 0.06), (0.4, 0.02))
    assert last.mode is FailureMode.TURNED
    assert last.failed_stage is PickStage.VERIFY
    assert "turned in the hand: 0.400 ± 0.000 kg" in last.message
    assert "on the test lift 0.100 ± 0.000 kg, 60 ± " in last.message
    assert last.load.resting.mass == pytest.approx(0.1, rel=1e-6)
    assert robot.released_at == pytest.approx(0.05, abs=2e-3)


def test_a_load_that_comes_nearer_to_the_pads_has_turned_in_the_hand(weigh):
    last, _ = weigh((0.4, 0.03), (0.4, 0.015))
    assert last.mode is FailureMode.TURNED
    assert last.load.resting.lever == pytest.approx(0.03, abs=1e-6)


def test_without_another_attempt_a_turned_object_stays_in_the_hand(weigh):
    last, _ = weigh((0.1, 0.06), (0.4, 0.02), recenter=False)
    assert last.success, last.message
    assert last.load.resting is not None


def test_the_empty_hand_is_read_before_the_approach_only_where_something_weighs(weigh, panda):
    with_scale, _ = weigh((0.2, 0.0))
    robot = FakeRobot(panda.arm_joints, panda.finger_joints)
    sequence = GraspSequence(FakeBackend(panda.arm_joints), panda, LIMITS, SequenceConfig(), "clock")
    without = run(sequence, robot, request())[-1]
    spent = [dict(last.durations)[PickStage.PREGRASP] for last in (with_scale, without)]
    assert spent[0] - spent[1] == pytest.approx(WeighConfig().tare_time, abs=0.05)


def test_a_state_that_is_looked_at_twice_is_one_reading(panda):
    taken = []
    scale = Scale(lambda state: state.efforts(panda.arm_joints), lambda positions: MATRIX, lambda positions: POSE)
    scale.tare = lambda readings, positions: taken.append(len(readings))
    for slow in (False, True):
        robot = FakeRobot(panda.arm_joints, panda.finger_joints)
        robot.finger_effort = 40.0
        old = robot.state()

        def state(robot=robot, slow=slow):
            # A driver that is half as fast as whoever looks.
            nonlocal old
            old = robot.state() if not slow or round(robot.now / PERIOD) % 2 else old
            return old

        sequence = GraspSequence(FakeBackend(panda.arm_joints), panda, LIMITS, SequenceConfig(), "clock", scale=scale)
        sequence.start(request(), state(), robot.now)
        while len(taken) < 1 + slow:
            robot.take(sequence.update(robot.now, state()).commands)
            robot.step()
    assert taken[1] == pytest.approx(taken[0] / 2, abs=1)


def test_a_driver_that_speaks_seldom_is_waited_for(panda):
    """At 10 Hz the times to look bring two and three readings: too few to tell a load from their noise."""
    robot, states = FakeRobot(panda.arm_joints, panda.finger_joints), []
    robot.finger_effort = 40.0
    scale = Scale(lambda state: state.efforts(panda.arm_joints), lambda positions: MATRIX, lambda positions: POSE)
    sequence = GraspSequence(FakeBackend(panda.arm_joints), panda, LIMITS, SequenceConfig(), "clock", scale=scale)
    sequence.start(request(), robot.state(), robot.now)
    lifted = (PickStage.TEST_LIFT, PickStage.LIFT, PickStage.VERIFY)
    update = None
    while update is None or not update.finished:
        if len(states) % 5 == 0:
            old = robot.state()
        states.append(old)
        update = sequence.update(robot.now, old)
        robot.take(update.commands)
        robot.step()
        robot.arm_effort = efforts(0.4, 0.02) if update.stage in lifted else np.zeros(7)
    assert update.success, update.message
    assert update.load is not None
    assert update.load.mass == pytest.approx(0.4, rel=1e-6)


def test_a_driver_that_tells_nothing_to_weigh_by_is_not_waited_for(panda):
    spent = []
    for read in (lambda state: None, lambda state: np.zeros(7)):
        robot = FakeRobot(panda.arm_joints, panda.finger_joints)
        robot.finger_effort = 40.0
        scale = Scale(read, lambda positions: MATRIX, lambda positions: POSE)
        sequence = GraspSequence(FakeBackend(panda.arm_joints), panda, LIMITS, SequenceConfig(), "clock", scale=scale)
        last = run(sequence, robot, request())[-1]
        assert last.success, last.message
        spent.append(dict(last.durations))
    assert spent[0] == spent[1]
