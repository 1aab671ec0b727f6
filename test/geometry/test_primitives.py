"""Meshes of round primitives lie inside or outside of the true shape, and close to it."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import capsule_mesh, cylinder_mesh, sphere_mesh


def depth_below_sphere(points, radius):
    return radius - np.linalg.norm(points, axis=1)


def depth_below_capsule(points, radius, length):
    z = points[:, 2] - np.clip(points[:, 2], -length / 2, length / 2)
    return radius - np.hypot(np.hypot(points[:, 0], points[:, 1]), z)


def depth_below_wall(points, radius, length):
    wall = points[np.abs(points[:, 2]) < 0.499 * length]
    return radius - np.hypot(wall[:, 0], wall[:, 1])


@pytest.mark.parametrize("segments", [8, 48, 100])
def test_enclosing_and_inscribed_meshes(segments):
    rng = np.random.default_rng(0)
    slack = 2.0 * (np.pi / segments) ** 2
    cases = [
        (lambda e: sphere_mesh(0.3, segments, e), lambda p: depth_below_sphere(p, 0.3)),
        (lambda e: capsule_mesh(0.3, 0.5, segments, e), lambda p: depth_below_capsule(p, 0.3, 0.5)),
        (lambda e: cylinder_mesh(0.3, 0.5, segments, e), lambda p: depth_below_wall(p, 0.3, 0.5)),
    ]
    for mesh, depth in cases:
        inscribed = depth(sample_surface(mesh(False), 20000, rng)[0])
        enclosing = depth(sample_surface(mesh(True), 20000, rng)[0])
        assert inscribed.min() > -1e-12
        assert inscribed.max() < 0.3 * slack
        assert enclosing.max() < 1e-12
        assert enclosing.min() > -0.3 * slack


def test_segments_are_a_multiple_of_four():
    with pytest.raises(InvalidInputError, match="segments"):
        sphere_mesh(1.0, 30)
