"""Many rotations at once: against matrices and differences."""

import numpy as np
import pytest

from morphit_ros.geometry.rotations import (
    aligned_quats,
    cross_matrices,
    inverse_right_jacobians,
    invert_quats,
    multiply_quats,
    quats_of_matrices,
    quats_of_rotation_vectors,
    right_jacobian,
    rotate_by_quats,
    rotation_vectors,
)
from morphit_ros.geometry.transforms import matrix_from_quat_xyzw, matrix_from_rotation_vector

VECTORS = np.random.default_rng(0).uniform(-1.5, 1.5, (4, 3, 3))


def matrices(quats):
    return np.array([[matrix_from_quat_xyzw(quat) for quat in row] for row in quats])


def test_quaternions_do_what_matrices_do():
    first, second = quats_of_rotation_vectors(VECTORS), quats_of_rotation_vectors(VECTORS[::-1, ::-1] + 0.2)
    expected = [[matrix_from_rotation_vector(vector) for vector in row] for row in VECTORS]
    assert matrices(first) == pytest.approx(np.array(expected))
    assert matrices(multiply_quats(first, second)) == pytest.approx(matrices(first) @ matrices(second))
    assert matrices(invert_quats(first)) == pytest.approx(matrices(first).swapaxes(-1, -2))
    assert rotate_by_quats(first, VECTORS[0, 0]) == pytest.approx(matrices(first) @ VECTORS[0, 0])
    assert multiply_quats(first[0, 0], second[0, 0]) == pytest.approx(multiply_quats(first, second)[0, 0])


def test_rotation_vectors_are_the_short_way_round():
    quats = quats_of_rotation_vectors(VECTORS)
    assert rotation_vectors(quats) == pytest.approx(VECTORS)
    assert rotation_vectors(-quats) == pytest.approx(VECTORS)
    tiny = 1e-9 * VECTORS
    assert rotation_vectors(quats_of_rotation_vectors(tiny)) == pytest.approx(tiny, rel=1e-9, abs=0.0)
    assert quats_of_rotation_vectors(np.zeros(3)) == pytest.approx([0.0, 0.0, 0.0, 1.0])


def test_signs_follow_their_neighbours():
    quats = quats_of_rotation_vectors(np.outer(np.linspace(0.0, 6.0, 20), [0.6, 0.0, 0.8]))
    mixed = quats * np.where(np.arange(20) % 3 == 1, -1.0, 1.0)[:, None]
    assert np.array_equal(aligned_quats(mixed), quats)


def test_cross_matrices_are_cross_products():
    others = VECTORS[::-1]
    assert (cross_matrices(VECTORS) @ others[..., None])[..., 0] == pytest.approx(np.cross(VECTORS, others))
    assert cross_matrices(VECTORS[0, 0]).shape == (3, 3)


def test_right_jacobians_equal_differences():
    rng = np.random.default_rng(1)
    for vector in (np.zeros(3), 1e-6 * np.ones(3), rng.normal(size=3), 1.7 * np.array([0.6, 0.0, 0.8])):
        inverse = inverse_right_jacobians(vector[None])[0]
        quat = quats_of_rotation_vectors(vector)
        for column in range(3):
            move = quats_of_rotation_vectors(1e-6 * np.eye(3)[column])
            ahead = rotation_vectors(multiply_quats(quat, move))
            back = rotation_vectors(multiply_quats(quat, invert_quats(move)))
            assert inverse[:, column] == pytest.approx((ahead - back) / 2e-6, abs=1e-8)
        assert right_jacobian(vector) @ inverse == pytest.approx(np.eye(3))


def test_quaternions_of_matrices_at_every_angle():
    axes = np.random.default_rng(2).normal(size=(40, 3))
    axes = np.concatenate([np.eye(3), -np.eye(3), axes / np.linalg.norm(axes, axis=1, keepdims=True)])
    for angle in (0.0, 1e-9, 1e-3, 1.0, 2.0, 3.0, np.pi - 1e-9, np.pi):
        rotations = np.array([matrix_from_rotation_vector(angle * axis) for axis in axes])
        quats = quats_of_matrices(rotations)
        assert np.array([matrix_from_quat_xyzw(quat) for quat in quats]) == pytest.approx(rotations, abs=1e-14)
        assert np.linalg.norm(quats, axis=1) == pytest.approx(1.0, abs=1e-15)
        largest = np.take_along_axis(quats, np.abs(quats).argmax(axis=1)[:, None], axis=1)
        assert (largest > 0.0).all()
        if angle < 3.1:
            assert rotation_vectors(quats) == pytest.approx(angle * axes, abs=1e-14)
    assert quats_of_matrices(np.empty((0, 3, 3))).shape == (0, 4)
