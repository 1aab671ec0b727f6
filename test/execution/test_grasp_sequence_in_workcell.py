"""The grasp sequence on the simulated workcell: each failure is provoked by physics and noticed as what it is."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

# Not imported here: this package first chooses what MuJoCo renders with.
if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import FailureMode, PickOutcome
from morphit_ros.execution.pick import (
    CommandGripper,
    GraspTarget,
    GripperLimits,
    PickRequest,
    PickStage,
    SendTrajectory,
    StopArm,
)
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import ProbeConfig, SequenceConfig
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.motion.embedded import EmbeddedBackend
from morphit_ros.robot.motion_backend import TableObstacle
from morphit_ros.simulation import workcell as workcell_module
from morphit_ros.simulation.robot_model import SURROUNDINGS_CONTACT
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

PERIOD = 0.02
LIMITS = GripperLimits(0.0, 0.08, 40.0)
# The tea box is 55 × 90 × 120 mm; the fingers close along its short side.
WIDTH = 0.055
RETREATED = [PickStage.RELEASE, PickStage.RETREAT]


@pytest.fixture(scope="module")
def backend(panda_urdf, panda_srdf, panda):
    return EmbeddedBackend(panda_urdf, panda_srdf, panda, seed=0)


@pytest.fixture
def make_workcell(monkeypatch):
    """A workcell with the box, and fixed blocks (centre, half size) that nobody is told about."""

    def make(blocks=(), **config):
        add_object = workcell_module.add_object

        def add_with_blocks(spec, *arguments):
            add_object(spec, *arguments)
            for center, half in blocks:
                spec.worldbody.add_geom(type=6, size=half, pos=center, **SURROUNDINGS_CONTACT)

        with monkeypatch.context() as patch:
            patch.setattr(workcell_module, "add_object", add_with_blocks)
            return Workcell(WorkcellConfig(**{"object": "box", **config}))

    return make


@pytest.fixture
def make_sequence(backend, panda):
    def make(free_motion=None, **settings):
        return GraspSequence(backend, panda, LIMITS, SequenceConfig(**settings), "simulated clock", free_motion)

    return make


def grasp(x=0.5, y=0.0, z=0.085, aperture=WIDTH, turn=np.pi / 2.0):
    pose = make_transform(matrix_from_rpy([np.pi, 0.0, turn]), [x, y, z])
    before = pose.copy()
    before[2, 3] += 0.1
    return GraspTarget(pose, before, aperture, 0.078)


def request(*grasps, **fields):
    table = TableObstacle(make_transform(translation=[0.5, 0.0, 0.0]), np.array([0.7, 1.2]))
    return PickRequest(grasps or (grasp(),), table=table, **fields)


def run(workcell, sequence, pick, disturb=lambda update: None, efforts=True, limit=60.0):
    """Drive until the end; the last update, and the largest height of the object on the way."""
    state = workcell.joint_state if efforts else lambda: replace(workcell.joint_state(), efforts=np.empty(0))
    sequence.start(pick, state(), workcell.time)
    end, height = workcell.time + limit, 0.0
    while workcell.time < end:
        update = sequence.update(workcell.time, state())
        for command in update.commands:
            if isinstance(command, SendTrajectory):
                workcell.command_trajectory(command.trajectory)
            elif isinstance(command, CommandGripper):
                workcell.command_gripper(command.aperture, command.max_effort)
            elif isinstance(command, StopArm):
                workcell.stop_motion()
        if update.finished:
            return update, height
        disturb(update)
        workcell.step(PERIOD)
        height = max(height, float(workcell.object_pose()[2, 3]))
    raise AssertionError(f"not finished after {limit} s in {update.stage}")


def stages(update):
    return [stage for stage, _ in update.durations]


@pytest.mark.parametrize("efforts", [True, False])
def test_nothing_is_noticed_where_nothing_is_wrong(make_workcell, make_sequence, efforts):
    """Twice with what the first pick taught about free motion, at places that take other motions."""
    free_motion = FreeMotion()
    for x, y in ((0.5, 0.0), (0.42, -0.25)):
        workcell = make_workcell(object_x=x, object_y=y)
        update, height = run(workcell, make_sequence(free_motion), request(grasp(x, y)), efforts=efforts)
        assert update.success, update.message
        assert update.mode is FailureMode.SUCCESS
        assert len(update.attempts) == 1
        assert height == pytest.approx(0.2, abs=0.005)
    assert (free_motion.effort_gain is not None) is efforts


@pytest.mark.parametrize("efforts", [True, False])
def test_a_finger_that_lands_on_a_shifted_object(make_workcell, make_sequence, efforts):
    workcell = make_workcell(object_x=0.53)
    sequence = make_sequence()
    update, _ = run(workcell, sequence, request(grasp(0.5), grasp(0.53)), efforts=efforts)
    assert update.mode is FailureMode.CONTACT_APPROACH
    assert update.mode.outcome is PickOutcome.CONTACT_ABORT
    assert stages(update)[-1] is PickStage.RETREAT
    # The object may have moved: nothing is tried blindly, and what was seen since is picked.
    assert len(update.attempts) == 1
    assert update.ready
    now = workcell.object_pose()[:3, 3]
    assert np.linalg.norm(now - [0.53, 0.0, 0.0]) < 0.01, "stopped before it was pushed away"
    assert run(workcell, sequence, request(grasp(*now[:2])), efforts=efforts)[0].success


def test_an_obstacle_in_the_way_of_a_finger(make_workcell, make_sequence):
    workcell = make_workcell(blocks=[((0.558, 0.0, 0.06), (0.01, 0.03, 0.06))])
    update, _ = run(workcell, make_sequence(), request())
    assert update.mode is FailureMode.CONTACT_APPROACH
    assert update.ready
    # Back at the pre-grasp.
    tip = workcell.link_pose(workcell.robot.tip_link)[:3, 3]
    np.testing.assert_allclose(tip, [0.5, 0.0, 0.185], atol=0.003)


def test_an_obstacle_on_the_way_to_the_pregrasp(make_workcell, make_sequence):
    start = make_workcell().joint_state().positions[:7]
    workcell = make_workcell(object_x=0.6, object_y=0.3, blocks=[((0.45, 0.2, 0.45), (0.15, 0.02, 0.3))])
    update, _ = run(workcell, make_sequence(), request(grasp(0.45, 0.4)))
    assert update.mode is FailureMode.CONTACT_PREGRASP, update.message
    assert update.ready
    np.testing.assert_allclose(workcell.joint_state().positions[:7], start, atol=0.03)


def test_a_grasp_beside_the_object_and_the_next_one_on_it(make_workcell, make_sequence):
    workcell = make_workcell(object_x=0.45, object_y=0.2)
    candidates = request(grasp(0.5, -0.1), grasp(0.505, -0.1), grasp(0.45, 0.2))
    update, height = run(workcell, make_sequence(), candidates)
    assert update.success, update.message
    assert [record.mode for record in update.attempts] == [FailureMode.CLOSED_ON_NOTHING, FailureMode.SUCCESS]
    assert update.grasp_index == 2
    assert height > 0.19


def test_fingers_that_close_on_another_body(make_workcell, make_sequence):
    workcell = make_workcell(object_x=0.45, object_y=0.3, blocks=[((0.5, 0.0, 0.05), (0.035, 0.02, 0.05))])
    update, _ = run(workcell, make_sequence(), request())
    assert update.mode is FailureMode.PROBE_TOO_WIDE
    assert update.mode.outcome is PickOutcome.MISGRASP
    assert stages(update)[-2:] == RETREATED
    assert update.ready
    # Without the probe the same would have been taken for the object.
    blind, _ = run(workcell, make_sequence(probe=ProbeConfig(enabled=False)), request())
    assert PickStage.TEST_LIFT in stages(blind)


def test_a_slippery_object_is_noticed_at_the_table(make_workcell, make_sequence):
    """Friction 0.05 holds 4 N with 40 N; the box weighs 10 N and is held near its top."""
    workcell = make_workcell(friction=0.05, object_mass=1.0)
    update, height = run(workcell, make_sequence(), request(grasp(z=0.105)))
    assert update.mode.outcome is PickOutcome.MISGRASP
    assert update.mode in (FailureMode.SLIPPED, FailureMode.LOST)
    assert update.failed_stage is PickStage.TEST_LIFT
    assert height < 0.03, "it was not dropped from the height of the lift"
    assert update.ready
    # Nothing is in the hand's way now: it may look and try again.
    again, _ = run(workcell, make_sequence(), request(grasp(z=0.105)))
    assert again.failed_stage is PickStage.TEST_LIFT


def test_an_object_that_is_pulled_out_high_above_the_table(make_workcell, make_sequence):
    """Something pulls the box down through the fingers; it is noticed and the hand opens and goes up."""
    workcell = make_workcell()
    body = workcell._model.body("object").id

    def pull(update):
        pulled = update.stage is PickStage.LIFT and workcell.object_pose()[2, 3] > 0.08
        workcell._data.xfrc_applied[body, 2] = -120.0 if pulled else 0.0

    update, height = run(workcell, make_sequence(), request(grasp(z=0.105)), pull)
    assert update.mode in (FailureMode.SLIPPED, FailureMode.LOST)
    assert update.failed_stage is PickStage.LIFT
    assert height > 0.05
    assert update.ready


def test_an_object_that_moves_away_before_the_approach_is_not_approached(make_workcell, make_sequence):
    workcell = make_workcell()

    def displacement():
        return float(np.linalg.norm(workcell.object_pose()[:3, 3] - [0.5, 0.0, 0.0]))

    address = workcell._model.joint("object").qposadr[0]

    def shift(update):
        if update.stage is PickStage.PREGRASP:
            workcell._data.qpos[address : address + 2] = [0.53, 0.0]

    sequence = make_sequence()
    update, _ = run(workcell, sequence, request(displacement=displacement), shift)
    assert update.mode is FailureMode.OBJECT_MOVED
    assert PickStage.CLOSE not in stages(update)
    assert update.ready
    assert run(workcell, sequence, request(grasp(0.53)))[0].success
