"""A hand that has put something down is weighed: what stayed on a finger is told, an empty hand never is."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_grasp_sequence import LIMITS, FakeBackend, FakeRobot, run

from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.handling import HandRequest, HandSequence, HandStage
from morphit_ros.execution.held import HeldGrasp
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Load, Scale, effort_scale, wrench_scale
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel

POSE = make_transform(matrix_from_rpy((np.pi, 0.0, 0.0)), (0.3, 0.1, 0.08))
STAGES = HandStage.TRANSFER, HandStage.SET_DOWN, HandStage.RELEASE, HandStage.RETREAT
OPEN, CLOSED = 0.07, 0.04
# Of the arm's efforts in the simulation [N m].
NOISE = 0.02
LOADED = HandStage.CHECK, HandStage.TRANSFER, HandStage.SET_DOWN


def matrix_at(positions) -> np.ndarray:
    """Readings (7, 4) of a unit mass and unit first moments, other ones at each place as an arm's are."""
    base, change = np.random.default_rng(0).normal(size=(2, 7, 4)) * np.array([3.0, 10.0, 10.0, 10.0])
    return base + 0.2 * change * np.sin(3.0 * sum(positions.values()))


@pytest.fixture
def place(panda):
    """Puts down what was weighed, [kg]; of it `left` stays on the hand, and `lost` it is gone before; the end."""

    def put(mass, left, weighed=True, scaled=True, noise=NOISE, seed=0, lost=False, aperture=CLOSED):
        robot, rng = FakeRobot(panda.arm_joints, panda.finger_joints), np.random.default_rng(seed)
        robot.finger_effort = 40.0
        robot.aperture = robot.goal = 0.0 if lost else aperture
        bias = np.linspace(-1.0, 1.0, 7)

        def feel(robot, update):
            carried = 0.0 if lost else mass if update.stage in LOADED else left
            at = dict(zip(panda.arm_joints, robot.arm.tolist(), strict=True))
            pull = matrix_at(at) @ (carried * np.array([1.0, 0.02, 0.0, 0.0]))
            robot.arm_effort = bias + pull + rng.normal(0.0, noise, 7)

        scale = Scale(lambda state: state.efforts(panda.arm_joints), matrix_at, lambda positions: POSE)
        load = Load(mass, np.array([0.02, 0.0, 0.0]), POSE, 0.003, 0.003)
        held = HeldGrasp(make_transform(), make_transform(translation=(0.0, -0.05, 0.0)), aperture, 0.012, OPEN)
        backend = FakeBackend(panda.arm_joints)
        hand = HandSequence(
            backend, panda, LIMITS, SequenceConfig(), "clock", FreeMotion(), scale if scaled else None
        )  # fmt: skip
        request = HandRequest(
            STAGES, lambda _: make_transform(translation=robot.arm[:3]), replace(held, load=load if weighed else None),
            places=(make_transform(translation=(0.3, 0.1, 0.2)),),
        )  # fmt: skip
        feel(robot, type("Update", (), {"stage": HandStage.CHECK}))
        return run(hand, robot, request, feel), hand

    return put


@pytest.mark.parametrize("left", [0.3, 0.25])
def test_what_stayed_on_the_hand_is_told(place, left):
    updates, hand = place(0.3, left)
    last = updates[-1]
    assert last.mode is FailureMode.NOT_EMPTY
    assert last.failed_stage is HandStage.RETREAT
    assert f"carries {left:.2f}"[:-1] in last.message and "of the 0.300 ± 0.003 kg that it held" in last.message
    assert hand.put_down is not None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mass", [0.01, 0.03, 0.3, 0.9])
def test_an_empty_hand_is_empty(place, mass, seed):
    last = place(mass, 0.0, seed=seed)[0][-1]
    assert last.success, last.message


@pytest.mark.parametrize(("left", "success"), [(0.3, False), (0.0, True)])
def test_what_stayed_on_the_open_hand_may_be_placed_again(place, left, success):
    assert place(0.3, left, aperture=OPEN)[0][-1].success is success


@pytest.mark.parametrize(
    "arguments",
    [{"mass": 0.03, "left": 0.03, "noise": 0.3}, {"lost": True}, {"weighed": False}, {"scaled": False}, {"left": 0.1}],
    ids=["too noisy", "lost on the way", "not weighed", "nothing weighs", "less than half: it may be in our readings"],
)
def test_of_what_is_not_sure_nothing_is_said(place, arguments):
    last = place(**{"mass": 0.3, "left": 0.3, **arguments})[0][-1]
    assert last.success, last.message


def test_without_weighing_it_takes_no_longer(place):
    times = [len(place(0.3, 0.0, scaled=scaled, weighed=weighed)[0]) for scaled, weighed in
             ((False, True), (True, False), (True, True))]  # fmt: skip
    assert times[0] == times[1] < times[2]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_of_either_sign_of_a_force_sensor(panda, sign, share):
    kinematics = KinematicModel(load_robot_description(panda.description))
    scale = wrench_scale(kinematics, panda, panda.tip_link, lambda state: None)
    home = dict(zip(panda.arm_joints, panda.home.tolist(), strict=True))
    pull = sign * scale._matrix(home) @ (0.4 * np.array([1.0, 0.0, 0.0, 0.0]))
    load = Load(0.4, np.zeros(3), scale._pose(home), 0.01, 0.01)
    scale.tare([pull + 2.0] * 9, home)
    left = scale.left(load, [share * pull + 2.0] * 9, home)
    assert (left is None) if share == 0.0 else left.mass == pytest.approx(0.4 * share, rel=1e-6)


def test_what_hangs_elsewhere_after_the_way_back_is_weighed_as_it_is(panda):
    """The efforts of one load at two places differ by what is no load's: 0.1 m to the side."""
    kinematics = KinematicModel(load_robot_description(panda.description))
    scale = effort_scale(kinematics, panda)
    above = dict(zip(panda.arm_joints, panda.home.tolist(), strict=True))
    aside = {**above, panda.arm_joints[1]: above[panda.arm_joints[1]] + 0.15}
    load = Load(0.3, np.zeros(3), scale._pose(above), 0.003, 0.003)
    carried = 0.3 * np.array([1.0, 0.0, 0.0, 0.0])
    scale.tare([scale._matrix(above) @ carried] * 9, above)
    left = scale.left(load, [scale._matrix(aside) @ carried] * 9, aside)
    assert left is not None and left.mass == pytest.approx(0.3, rel=1e-6)
    assert scale.left(load, [np.zeros(7)] * 9, aside) is None
    assert scale.left(load, [np.zeros(7)] * 3, aside) is None
