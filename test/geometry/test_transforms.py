"""Rigid motions: groups, inverses, conversions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    check_transform,
    invert_transform,
    look_at,
    make_transform,
    matrix_from_quat_xyzw,
    matrix_from_rotation_vector,
    matrix_from_rpy,
    quat_xyzw_from_matrix,
    rotation_angle,
    transform_points,
    transform_vectors,
)

ROTATIONS = [
    *Rotation.random(20, random_state=0).as_matrix(),
    np.eye(3),
    *(Rotation.from_rotvec(math.pi * axis).as_matrix() for axis in np.eye(3)),
    Rotation.from_rotvec([1e-10, 0.0, 0.0]).as_matrix(),
]


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_quaternions_round_trip_and_agree_with_scipy(rotation: np.ndarray) -> None:
    quaternion = quat_xyzw_from_matrix(rotation)
    assert quaternion[3] >= 0.0
    np.testing.assert_allclose(matrix_from_quat_xyzw(quaternion), rotation, atol=1e-9)
    expected = Rotation.from_matrix(rotation).as_quat()
    assert abs(abs(quaternion @ expected) - 1.0) < 1e-12


def test_quaternions_are_normalised() -> None:
    np.testing.assert_allclose(matrix_from_quat_xyzw((0.0, 0.0, 0.0, 5.0)), np.eye(3))
    np.testing.assert_allclose(
        matrix_from_quat_xyzw((0.0, 0.0, 3.0, 3.0)), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15
    )


@pytest.mark.parametrize("bad", [(0, 0, 0, 0), (math.nan, 0, 0, 1), (0, 0, 1), (math.inf, 0, 0, 1)])
def test_bad_quaternions_are_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="quat_xyzw"):
        matrix_from_quat_xyzw(bad)


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_inverse_undoes_the_motion(rotation: np.ndarray) -> None:
    transform = make_transform(rotation, (1.0, -2.0, 3.0))
    points = np.random.default_rng(0).normal(size=(4, 5, 3))
    back = transform_points(invert_transform(transform), transform_points(transform, points))
    np.testing.assert_allclose(back, points, atol=1e-9)


def test_vectors_ignore_the_translation() -> None:
    transform = make_transform(ROTATIONS[0], (1.0, 2.0, 3.0))
    difference = transform_points(transform, (1.0, 0.0, 0.0)) - transform_points(transform, (0.0, 0.0, 0.0))
    np.testing.assert_allclose(transform_vectors(transform, (1.0, 0.0, 0.0)), difference)


def test_roll_pitch_yaw_is_fixed_axis_xyz() -> None:
    rpy = np.array([0.3, -0.7, 1.9])
    np.testing.assert_allclose(matrix_from_rpy(rpy), Rotation.from_euler("xyz", rpy).as_matrix(), atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-8, 1e-4, 1.0, math.pi - 1e-9])
def test_rotation_vectors_agree_with_scipy_and_keep_their_angle(angle: float) -> None:
    axis = np.array([1.0, -2.0, 0.5]) / np.linalg.norm([1.0, -2.0, 0.5])
    rotation = matrix_from_rotation_vector(angle * axis)
    np.testing.assert_allclose(rotation, Rotation.from_rotvec(angle * axis).as_matrix(), atol=1e-12)
    assert rotation_angle(rotation) == pytest.approx(angle, rel=1e-6, abs=1e-15)


def test_a_half_turn_has_the_angle_pi() -> None:
    assert rotation_angle(np.diag([1.0, -1.0, -1.0])) == pytest.approx(math.pi)


def test_look_at_is_an_optical_frame() -> None:
    pose = look_at((1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    check_transform(pose, tolerance=1e-12)
    np.testing.assert_allclose(transform_points(pose, (0.0, 0.0, math.sqrt(3.0))), np.zeros(3), atol=1e-12)
    assert pose[2, 1] < 0.0, "y of an optical frame points down"
    assert abs(pose[2, 0]) < 1e-12, "x of an optical frame is level"


def test_look_at_refuses_degenerate_views() -> None:
    for eye, target in (((0, 0, 1), (0, 0, 1)), ((0, 0, 1), (0, 0, 0))):
        with pytest.raises(InvalidInputError, match="look_at"):
            look_at(eye, target)


@pytest.mark.parametrize(
    "bad",
    [
        np.eye(3),
        2.0 * np.eye(4),
        np.diag([1.0, 1.0, -1.0, 1.0]),
        np.full((4, 4), np.nan),
        np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]),
    ],
)
def test_what_is_not_rigid_is_named(bad: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="T_world_camera"):
        check_transform(bad, "T_world_camera")
