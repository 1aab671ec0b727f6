"""Configurations from joint angles and from poses: the one that was read, whatever else has the same angles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cover_samples import bowl

from morphit_ros.cover.actuation.motors import joint_vectors, motor_angles
from morphit_ros.cover.control.estimation import ClosureEstimator
from morphit_ros.cover.control.limits import fill_joint_rates
from morphit_ros.cover.control.tracking import (
    JointTracker,
    PoseTracker,
    axis_named,
    axis_names,
    fill_angle_rates,
    fold_axes,
    read_joints,
)
from morphit_ros.cover.goals.targets import HeightTarget
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.simulation import states_on_course
from morphit_ros.cover.state import CoverState, worst_gap
from morphit_ros.errors import InvalidInputError


def all_axes(cover: Cover) -> np.ndarray:
    return np.array([(joint, axis) for joint in range(cover.joint_count) for axis in range(3)])


def moved(cover: Cover, state: CoverState, seconds: float, seed: int = 0) -> CoverState:
    plant = CoverPlant(cover, state)
    rates = np.random.default_rng(seed).uniform(-0.08, 0.08, len(cover.motors))
    for _ in range(round(seconds / 0.05)):
        assert plant.step(rates, 0.05)
    return plant.state


def test_angles_are_those_of_the_joints_and_their_rates_finite_differences() -> None:
    cover, state = bowl(3, 4)
    axes = all_axes(cover)
    assert np.allclose(
        JointTracker(cover, axes).angles(state.rotations), joint_vectors(cover, state.rotations).ravel(), atol=1e-12
    )
    space = NullSpaceSolver(cover).solve(state.rotations)
    matrix = np.empty((len(axes), space.basis.shape[1]))
    angles, rows = np.empty(len(axes)), np.empty((len(axes), 3))
    read_joints(state.rotations, cover.joints, np.ascontiguousarray(cover.joint_frames), axes, angles, rows)
    fill_angle_rates(rows, axes, cover.joints, space.basis, matrix)
    from morphit_ros.cover.state import rotate

    for motion, rates in zip(space.basis.T, matrix.T, strict=True):
        ends = []
        for sign in (1.0, -1.0):
            turned = np.empty_like(state.rotations)
            rotate(state.rotations, 1e-6 * sign * np.ascontiguousarray(motion), turned)
            ends.append(joint_vectors(cover, turned).ravel())
        assert np.allclose((ends[0] - ends[1]) / 2e-6, rates, atol=1e-7)
    # At the flat joint both kinds of rates are the same.
    relative = np.empty((3 * cover.joint_count, space.basis.shape[1]))
    flat = np.ascontiguousarray(np.tile(np.eye(3), (cover.node_count, 1, 1)))
    frames = np.ascontiguousarray(cover.joint_frames)
    fill_joint_rates(flat, cover.joints, frames, space.basis, 1.0, relative)
    read_joints(flat, cover.joints, frames, axes, angles, rows)
    fill_angle_rates(rows, axes, cover.joints, space.basis, matrix)
    assert np.allclose(matrix, relative, atol=1e-12)


@pytest.mark.parametrize("size", [(3, 3), (4, 5), (1, 4)])
def test_finds_the_configuration_again(size: tuple[int, int]) -> None:
    cover, state = bowl(*size)
    there = moved(cover, state, 3.0)
    tracker = JointTracker(cover, all_axes(cover))
    found = tracker.estimate(tracker.angles(there.rotations), state)
    assert found.success, found.message
    assert found.residual < 1e-7
    assert np.allclose(found.state.rotations, there.rotations, atol=1e-6)
    assert worst_gap(cover, found.state) < 1e-8


@pytest.mark.parametrize(("size", "target"), [((3, 3), "3*(x**2 + y**2)"), ((4, 4), "4*x*y")])
def test_finds_it_seconds_later_beyond_flat_shapes(size: tuple[int, int], target: str) -> None:
    """There joints close slowly: a search over all of the way at once ends nowhere."""
    cover, state = bowl(*size)
    tracker = JointTracker(cover, all_axes(cover))
    states = states_on_course(cover, state, HeightTarget(target), 3.0, 6)
    assert len(states) == 7
    for first, later in itertools.combinations(states, 2):
        found = tracker.estimate(tracker.angles(later.rotations), first)
        assert found.success, found.message
        assert np.allclose(found.state.rotations, later.rotations, atol=1e-5)


def test_agrees_with_the_estimator_where_motors_tell() -> None:
    cover, state = bowl(3, 3)
    there = moved(cover, state, 0.5)
    angles = motor_angles(cover, there.rotations)
    known = ClosureEstimator(cover).estimate(angles, state)
    found = JointTracker(cover, cover.motors).estimate(angles, state)
    assert known.success
    assert found.success
    assert np.allclose(found.state.rotations, known.state.rotations, atol=1e-6)


def test_fixed_nodes_that_are_no_neighbours() -> None:
    cover, state = bowl(3, 4, (0, 11))
    assert cover.fixed_bridges
    there = moved(cover, state, 1.0)
    tracker = JointTracker(cover, all_axes(cover))
    found = tracker.estimate(tracker.angles(there.rotations), state)
    assert found.success, found.message
    assert np.allclose(found.state.rotations, there.rotations, atol=1e-5)


def test_errors_of_encoders_are_shared_out_and_loops_stay_closed() -> None:
    cover, state = bowl(4, 4)
    tracker = JointTracker(cover, all_axes(cover))
    noise = np.random.default_rng(1).normal(0.0, 5e-4, len(tracker.axes))
    found = tracker.estimate(tracker.angles(state.rotations) + noise, state)
    assert found.success
    assert found.residual < 3e-3
    assert worst_gap(cover, found.state) < 1e-8
    off = np.abs(tracker.angles(found.state.rotations) - tracker.angles(state.rotations))
    assert off.std() < noise.std()


def test_what_fits_no_closed_cover_is_said() -> None:
    cover, state = bowl(3, 3)
    tracker = JointTracker(cover, all_axes(cover))
    angles = tracker.angles(state.rotations)
    angles[4] += 0.2
    found = tracker.estimate(angles, state)
    assert not found.success
    assert "off every closed configuration" in found.message
    assert found.state is state
    far = tracker.estimate(angles + 7.0, state)
    assert not far.success
    for bad in (angles[:-1], np.full_like(angles, np.nan)):
        with pytest.raises(InvalidInputError, match="angles"):
            tracker.estimate(bad, state)


def test_too_few_axes_or_unknown_ones() -> None:
    cover, _ = bowl(3, 3)
    with pytest.raises(InvalidInputError, match="at least 12"):
        JointTracker(cover, cover.motors[:-1])
    with pytest.raises(InvalidInputError):
        JointTracker(cover, [*cover.motors[:-1].tolist(), (99, 2)])
    with pytest.raises(InvalidInputError):
        JointTracker(cover, [*cover.motors.tolist(), cover.motors[0].tolist()])


def test_axes_that_do_not_tell_the_configuration() -> None:
    # The flat cover: all folds of a joint line at once, or none, have the same angles to first order.
    cover, _ = bowl(3, 3)
    flat = CoverState(np.ascontiguousarray(np.tile(np.eye(3), (9, 1, 1))), np.zeros(3))
    tracker = JointTracker(cover, fold_axes(cover))
    found = tracker.estimate(tracker.angles(flat.rotations) + 1e-3, flat)
    assert not found.success
    assert "do not tell" in found.message


def test_poses_with_small_gaps_are_closed_and_wide_ones_refused() -> None:
    cover, state = bowl(4, 4)
    rng = np.random.default_rng(3)
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_rotvec(rng.normal(0.0, 1e-3, (16, 3))).as_matrix()
    positions = state.positions(cover) + rng.normal(0.0, 2e-5, (16, 3))
    tracker = PoseTracker(cover, tolerance=1e-3)
    found = tracker.estimate(positions, turns @ state.rotations, state)
    assert found.success, found.message
    assert 1e-6 < found.residual < 1e-3
    assert worst_gap(cover, found.state) < 1e-8
    assert np.allclose(found.state.rotations, state.rotations, atol=2e-2)
    positions = state.positions(cover)
    positions[5, 2] += 0.01
    wide = tracker.estimate(positions, state.rotations, state)
    assert not wide.success
    assert "10.00 mm open" in wide.message


def test_names_of_axes_are_those_of_the_motors() -> None:
    cover, _ = bowl(3, 3)
    named = axis_named(cover)
    assert [named[label] for label in cover.motor_labels] == [tuple(motor) for motor in cover.motors.tolist()]
    assert axis_names(cover, cover.motors) == cover.motor_labels
    assert len(named) == 3 * cover.joint_count
