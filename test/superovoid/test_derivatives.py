"""Derivatives of distances against central differences, by twists and by joints."""

from __future__ import annotations

import numpy as np
import pytest
from distance_pairs import random_convex_superovoid, random_pose, random_superellipsoid
from scipy.spatial.transform import Rotation

from morphit_ros.errors import InvalidInputError
from morphit_ros.superovoid import Box, Capsule, Sphere, distance_derivative, joint_derivative, min_distance

STEP = 1e-6


def twisted(pose: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """A pose moved by a twist (linear of its origin, angular), world's frame."""
    result = pose.copy()
    result[:3, :3] = Rotation.from_rotvec(twist[3:]).as_matrix() @ pose[:3, :3]
    result[:3, 3] += twist[:3]
    return result


@pytest.mark.parametrize("near, far", [(2.6, 5.0), (0.6, 0.9)], ids=["separated", "penetrating"])
def test_twists(near: float, far: float) -> None:
    rng = np.random.default_rng(0)
    for k in range(12):
        a = random_superellipsoid(rng)
        b = [random_convex_superovoid(rng), Capsule(0.2, 0.5), Box((0.5, 0.7, 0.9)), Sphere(0.4)][k % 4]
        A, B = random_pose(rng, 1.0), np.eye(4)
        B = A @ random_pose(rng, far, near)
        result = min_distance(a, A, b, B)
        derivative = distance_derivative(result, A[:3, 3], B[:3, 3])
        for axis in range(6):
            twist = np.zeros(6)
            twist[axis] = STEP
            ends = [
                (
                    min_distance(a, twisted(A, s * twist), b, B).distance,
                    min_distance(a, A, b, twisted(B, s * twist)).distance,
                )
                for s in (1.0, -1.0)
            ]
            by_a, by_b = (np.array(ends[0]) - ends[1]) / (2.0 * STEP)
            tolerance = 1e-5 if result.distance > 0.0 else 2e-4
            assert derivative.by_twist_a[axis] == pytest.approx(by_a, abs=tolerance)
            assert derivative.by_twist_b[axis] == pytest.approx(by_b, abs=tolerance)


def test_joints() -> None:
    # A planar arm of two joints carries the first shape.
    rng = np.random.default_rng(1)
    a, b, B = random_superellipsoid(rng), random_convex_superovoid(rng), random_pose(rng, 5.0, 5.0)

    def pose(q: np.ndarray) -> np.ndarray:
        T = np.eye(4)
        T[:3, :3] = Rotation.from_rotvec([0.0, 0.0, q.sum()]).as_matrix()
        elbow = np.array([np.cos(q[0]), np.sin(q[0]), 0.0])
        T[:3, 3] = elbow + 0.7 * T[:3, 0]
        return T

    q = np.array([0.3, 0.8])
    origin = pose(q)[:3, 3]
    elbow = np.array([np.cos(q[0]), np.sin(q[0]), 0.0])
    z = np.array([0.0, 0.0, 1.0])
    jacobian = np.stack([np.r_[np.cross(z, origin), z], np.r_[np.cross(z, origin - elbow), z]], axis=1)
    result = min_distance(a, pose(q), b, B)
    derivative = joint_derivative(result, jacobian, None, reference_a=origin)
    for k in range(2):
        step = np.zeros(2)
        step[k] = STEP
        ends = [min_distance(a, pose(q + s * step), b, B).distance for s in (1.0, -1.0)]
        assert derivative[k] == pytest.approx((ends[0] - ends[1]) / (2.0 * STEP), abs=1e-6)
    # Both shapes on the same body: the distance doesn't change.
    both = joint_derivative(result, jacobian, jacobian, origin, origin)
    assert both == pytest.approx(np.zeros(2), abs=1e-9)


def test_bad_input() -> None:
    result = min_distance(Sphere(0.1), np.eye(4), Box((1.0, 1.0, 1.0)), random_pose(np.random.default_rng(2), 3.0, 3.0))
    with pytest.raises(InvalidInputError, match="jacobian_a"):
        joint_derivative(result, np.zeros((3, 2)), None)
    with pytest.raises(InvalidInputError, match="Jacobian"):
        joint_derivative(result, None, None)
    with pytest.raises(InvalidInputError, match="reference_a"):
        distance_derivative(result, [0.0, np.nan, 0.0])
