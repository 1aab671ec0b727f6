"""Inverse dynamics against Pinocchio's; the cost's gradient and the efforts' Jacobians against differences."""

from __future__ import annotations

import numpy as np
import pytest
from plan_samples import STEPS, crowded_system, crowded_trajectory, drawn_inertia, drawn_pose

from morphit_ros.contact_planning import banded, tree as trees
from morphit_ros.contact_planning.system import ContactSystem, SystemBuilder
from morphit_ros.contact_planning.transcription import evaluate, evaluation_arrays
from morphit_ros.geometry.transforms import Array

_STEP = 1e-6
GRAVITY = (0.3, -0.2, -9.81)


def dense(band: Array) -> Array:
    """The matrix of a lower band."""
    rows, width = band.shape
    matrix = np.zeros((rows, rows))
    for i in range(rows):
        for j in range(max(0, i - width + 1), i + 1):
            matrix[i, j] = matrix[j, i] = band[i, width - 1 + j - i]
    return matrix


@pytest.mark.parametrize("seed", range(3))
def test_inverse_dynamics_is_pinocchios(seed):
    """Efforts and all three derivatives, of revolute, prismatic and free joints, and moves between configurations."""
    pinocchio = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(seed)
    builder, model = SystemBuilder(gravity=GRAVITY), pinocchio.Model()
    model.gravity.linear = np.array(GRAVITY)
    rows = {"world": 0}
    for name, parent, kind in (("a", "world", "revolute"), ("b", "a", "prismatic"), ("c", "b", "revolute"),
                               ("d", "a", "revolute")):  # fmt: skip
        inertia, pose, axis = drawn_inertia(rng), drawn_pose(rng), rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        builder.add_body(name, parent, kind, pose, inertia, axis=axis)
        joint = pinocchio.JointModelRevoluteUnaligned if kind == "revolute" else pinocchio.JointModelPrismaticUnaligned
        rows[name] = model.addJoint(rows[parent], joint(axis), pinocchio.SE3(pose), name)
        body = pinocchio.Inertia(inertia.mass, inertia.center, inertia.matrix)
        model.appendBodyToJoint(rows[name], body, pinocchio.SE3.Identity())
    inertia = drawn_inertia(rng)
    builder.add_free_body("o", inertia)
    place = model.addJoint(0, pinocchio.JointModelTranslation(), pinocchio.SE3.Identity(), "o place")
    turn = model.addJoint(place, pinocchio.JointModelSpherical(), pinocchio.SE3.Identity(), "o")
    body = pinocchio.Inertia(inertia.mass, inertia.center, inertia.matrix)
    model.appendBodyToJoint(turn, body, pinocchio.SE3.Identity())
    system, data = builder.build([]), model.createData()
    q, other = (pinocchio.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq)) for _ in range(2))
    v, a = rng.normal(size=(2, model.nv))
    motion = trees.motion_arrays(system.tree)
    trees.place(system.tree, q, motion)
    trees.move_bodies(system.tree, motion, v, a)
    efforts, (by_q, by_v, by_a) = np.zeros(model.nv), np.zeros((3, model.nv, model.nv))
    trees.inverse_dynamics(system.tree, v, efforts, motion, by_q, by_v, by_a, True)
    np.testing.assert_allclose(efforts, pinocchio.rnea(model, data, q, v, a), atol=1e-11)
    expected = pinocchio.computeRNEADerivatives(model, data, q, v, a)
    np.testing.assert_allclose(by_q, expected[0], atol=1e-11)
    np.testing.assert_allclose(by_v, expected[1], atol=1e-11)
    np.testing.assert_allclose(np.triu(by_a), np.triu(expected[2]), atol=1e-11)
    np.testing.assert_allclose(by_a, by_a.T, atol=1e-12)
    np.testing.assert_allclose(system.difference(other, q), pinocchio.difference(model, q, other), atol=1e-12)
    np.testing.assert_allclose(system.moved(q, v), pinocchio.integrate(model, q, v), atol=1e-12)


def test_quaternions_of_opposite_sign_are_the_same_turn():
    system = crowded_system()
    first, second = system.neutral(), system.neutral()
    second[6:10] = -np.array([0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    np.testing.assert_allclose(system.difference(second, first)[6:], [0.0, 0.0, 0.4], atol=1e-14)


def perturbed(system: ContactSystem, positions: Array, row: int, column: int, step: float) -> Array:
    """Positions with one coordinate of one time moved."""
    moved, way = positions.copy(), np.zeros(system.velocity_count)
    way[column] = step
    moved[row] = system.moved(positions[row], way)
    return moved


@pytest.mark.parametrize("seed", range(4))
def test_gradient_is_that_of_differences(seed):
    system = crowded_system()
    task, positions = crowded_trajectory(system, seed)
    evaluation = evaluation_arrays(system.tree, system.contacts, STEPS)
    evaluate(system.tree, system.contacts, task, positions, evaluation, True)
    # Forces between shapes, or the test would say little.
    assert (evaluation.forces > 1e-3).sum() >= 3
    gradient = evaluation.gradient.copy()
    expected = np.empty_like(gradient)
    for row, column in np.ndindex(gradient.shape):
        both = [
            evaluate(
                system.tree, system.contacts, task, perturbed(system, positions, row, column, step), evaluation, False
            )
            for step in (_STEP, -_STEP)
        ]
        expected[row, column] = (both[0] - both[1]) / (2.0 * _STEP)
    assert np.abs(gradient - expected).max() <= 1e-6 * np.abs(gradient).max()


def test_shapes_that_are_far_apart_draw_each_other():
    """No pair is near enough for a force; the gradient is that of gaps alone."""
    system = crowded_system()
    task, positions = crowded_trajectory(system, 0)
    law = task.law.copy()
    law[1] = 1e-4
    task = task._replace(law=law)
    positions[:, 3:6] += 3.0
    evaluation = evaluation_arrays(system.tree, system.contacts, STEPS)
    evaluate(system.tree, system.contacts, task, positions, evaluation, True)
    drawn = evaluation.gradient[:, 3:6].copy()
    assert not evaluation.forces.any()
    evaluate(
        system.tree, system.contacts, task._replace(attraction=np.zeros_like(task.attraction)), positions, evaluation,
        True,
    )  # fmt: skip
    gaps = np.array([system.gaps(row) for row in positions])
    for k in range(3):
        slopes = [
            np.array([system.gaps(system.moved(row, step * np.eye(9)[3 + k])) for row in positions])
            for step in (_STEP, -_STEP)
        ]
        pull = (task.attraction * np.maximum(gaps, 0.0) * (slopes[0] - slopes[1]) / (2.0 * _STEP)).sum(axis=1)
        np.testing.assert_allclose(drawn[:, k] - evaluation.gradient[:, 3 + k], pull, rtol=1e-5, atol=1e-6)


def test_hessian_is_that_of_the_efforts_jacobian():
    """With weights of efforts alone, band = Jᵀ R J of the Jacobian by differences; blocks beyond two steps are zero."""
    system = crowded_system()
    task, positions = crowded_trajectory(system, 0)
    none = np.zeros_like(task.effort_weights)
    task = task._replace(position_weights=none, velocity_weights=none, limit_weight=0.0, overlap_weight=0.0,
                         attraction=np.zeros_like(task.attraction))  # fmt: skip
    evaluation = evaluation_arrays(system.tree, system.contacts, STEPS)
    evaluate(system.tree, system.contacts, task, positions, evaluation, True)
    hessian = dense(evaluation.band)
    columns = []
    for row, column in np.ndindex(none.shape):
        both = []
        for step in (_STEP, -_STEP):
            moved = perturbed(system, positions, row, column, step)
            evaluate(system.tree, system.contacts, task, moved, evaluation, False)
            both.append(evaluation.efforts.ravel().copy())
        columns.append((both[0] - both[1]) / (2.0 * _STEP))
    jacobian = np.array(columns).T
    expected = jacobian.T @ (task.effort_weights.ravel()[:, None] * jacobian)
    assert np.abs(hessian - expected).max() <= 1e-6 * np.abs(expected).max()


def test_banded_solver_is_a_dense_one():
    rng = np.random.default_rng(0)
    band = rng.normal(size=(24, 9))
    band[:, -1] = 40.0
    matrix, vector = dense(band), rng.normal(size=24)
    factor, solution, product = np.zeros_like(band), vector.copy(), np.empty(24)
    assert banded.factorise(band, factor)
    banded.solve(factor, solution)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, vector), atol=1e-13)
    banded.multiply(band, vector, product)
    np.testing.assert_allclose(product, matrix @ vector, atol=1e-12)
    band[11, -1] = -1.0
    assert not banded.factorise(band, factor)


def test_spheres_of_a_body_share_one_contact():
    """A plate of many spheres rests on the floor by the force of one, wherever they are."""
    from morphit_ros.contact_planning.system import Inertia

    forces = []
    for count in (1, 4, 25):
        builder = SystemBuilder()
        builder.add_free_body("plate", Inertia.ball(1.0, 0.1))
        rows = builder.add_spheres(
            "plate", np.column_stack([np.linspace(-0.1, 0.1, count), *np.zeros((2, count))]), [0.05] * count
        )
        floor = builder.add_half_space()
        system = builder.build([(row, floor) for row in rows])
        task, _ = crowded_trajectory(crowded_system(), 0)
        start = system.neutral()
        start[2] = 0.05
        shape = (1, 6)
        task = task._replace(position=start, velocity=np.zeros(6), goals=start[None], attraction=np.zeros(count),
                             lower=system.lower,
                             upper=system.upper, position_weights=np.zeros(shape), velocity_weights=np.zeros(shape),
                             effort_weights=np.ones(shape), efforts=np.zeros(shape))  # fmt: skip
        evaluation = evaluation_arrays(system.tree, system.contacts, 1)
        evaluate(system.tree, system.contacts, task, start[None], evaluation, False)
        forces.append(9.81 - evaluation.efforts[0, 2])
    np.testing.assert_allclose(forces, 200.0 * 0.05 * np.log(2.0), rtol=1e-12)
