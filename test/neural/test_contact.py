"""Gaps of all shapes, contact parameters and the longest steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from contact_samples import difference

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.contact.density_shape import DensityShape
from morphit_ros.neural.contact.gaps import gap
from morphit_ros.neural.contact.leaves import group_points
from morphit_ros.neural.contact.parameters import ContactParameters, largest_explicit_step, largest_implicit_step
from morphit_ros.neural.contact.shapes import (
    ContactBox,
    ContactCapsule,
    ContactHalfSpace,
    ContactPolytope,
    ContactShape,
    ContactSphere,
    SphereSet,
)
from morphit_ros.neural.fields.analytic import SphereField

CUBE = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.2, 0.2) for z in (-0.1, 0.1)])
SHAPES = {
    "half-space": ContactHalfSpace(),
    "sphere": ContactSphere(0.4),
    "capsule": ContactCapsule(0.2, 0.6),
    "box": ContactBox(np.array([0.6, 0.4, 0.2])),
    "convex mesh": ContactPolytope.from_vertices(CUBE),
    "spheres": SphereSet(np.array([[0.3, 0.0, 0.0], [-0.3, 0.1, 0.0]]), np.array([0.2, 0.3])),
    "density": DensityShape.from_field(SphereField(0.3, edge=0.01), 0.5, 0.04, center_of_mass=(0.02, 0.0, 0.0)),
}
POINTS = np.random.default_rng(1).uniform(-0.6, 0.6, (40, 3))


def gap_of(shape: ContactShape, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
    normal, curvature = np.empty(3), np.empty((3, 3))
    numbers = shape.numbers()
    count = len(numbers) // 4 if isinstance(shape, ContactPolytope | SphereSet) else len(numbers)
    value, steepness = gap(shape.kind, numbers, 0, count, np.array(point), normal, curvature)
    return value, normal, curvature, steepness


@pytest.mark.parametrize("name", SHAPES)
def test_normal_and_curvature_are_derivatives_of_the_gap(name):
    shape = SHAPES[name]
    points = POINTS[np.abs(POINTS).max(axis=1) < 0.4] if name == "density" else POINTS
    for point in points:
        _, normal, curvature, steepness = gap_of(shape, point)
        if steepness == 0.0:
            continue
        by_point = difference(lambda y: np.array([gap_of(shape, y)[0]]), point, 1e-4)[0]
        np.testing.assert_allclose(by_point, steepness * normal, atol=2e-6)
        assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(difference(lambda y: gap_of(shape, y)[1], point, 1e-4), curvature, atol=2e-4)


def test_known_distances():
    assert gap_of(SHAPES["half-space"], np.array([5.0, 3.0, -0.2]))[0] == -0.2
    assert gap_of(SHAPES["sphere"], np.array([0.0, 0.0, 1.0]))[0] == pytest.approx(0.6)
    assert gap_of(SHAPES["capsule"], np.array([0.0, 0.4, 0.5]))[0] == pytest.approx(math.hypot(0.4, 0.2) - 0.2)
    assert gap_of(SHAPES["box"], np.array([0.6, 0.6, 0.0]))[0] == pytest.approx(0.5)
    assert gap_of(SHAPES["box"], np.array([0.0, 0.0, 0.06]))[0] == pytest.approx(-0.04)
    assert gap_of(SHAPES["convex mesh"], np.array([0.0, 0.1, 0.2]))[0] == pytest.approx(0.1)
    assert gap_of(SHAPES["spheres"], np.array([0.6, 0.0, 0.0]))[0] == pytest.approx(0.1)


def test_density_shape_is_the_distance_to_its_level_set():
    center = np.array([-0.02, 0.0, 0.0])
    for point in POINTS[np.linalg.norm(POINTS, axis=1) < 0.5]:
        radius = np.linalg.norm(point - center)
        if 0.15 < radius < 0.42:
            assert gap_of(SHAPES["density"], point)[0] == pytest.approx(radius - 0.3, abs=0.004)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ContactSphere(-1.0),
        lambda: ContactSphere(math.nan),
        lambda: ContactCapsule(0.1, 0.0),
        lambda: ContactBox(np.array([1.0, -1.0, 1.0])),
        lambda: ContactPolytope(np.eye(3), np.ones(3)),
        lambda: ContactPolytope.from_vertices(np.zeros((5, 3))),
        lambda: SphereSet(np.zeros((0, 3)), np.zeros(0)),
        lambda: SphereSet(np.zeros((1, 3)), np.array([-0.1])),
        lambda: DensityShape(np.ones((8, 8, 8)), np.zeros(3), 0.1),
        lambda: DensityShape(-np.ones((8, 8, 8)), np.zeros(3), 0.1),
        lambda: DensityShape.from_field(SphereField(0.3), 5.0, 0.05),
        lambda: DensityShape.from_field(SphereField(0.3), 0.5, 1e-6),
        lambda: ContactParameters(friction=-0.1),
        lambda: ContactParameters(spring=-1.0),
        lambda: ContactParameters(damper=math.nan),
    ],
)
def test_bad_input_is_refused(make):
    with pytest.raises(InvalidInputError):
        make()


def test_parameters_scale_with_the_root_of_the_size():
    small, unit = ContactParameters().scaled(0.04), ContactParameters().scaled(1.0)
    np.testing.assert_allclose(small[:3] / unit[:3], [1.0, 1.0, 5.0], rtol=1e-12)
    assert small[6] == pytest.approx(0.04 * unit[6])
    assert ContactParameters(size=1.0).scaled(0.04)[2] == unit[2]


def test_longest_explicit_step_is_the_root_of_its_bound():
    parameters = ContactParameters(spring=1e5, damper=1e6)
    step = largest_explicit_step(parameters, 1.0, 0.4)
    assert step**2 * 1e5 / 0.4 == pytest.approx(2.0 * (2.0 + step * 9.81 * 1e6 / 1e5))
    assert largest_implicit_step(1.0) == pytest.approx(0.1 / math.sqrt(9.81))


def test_leaves_hold_every_point_once():
    points = np.random.default_rng(3).normal(size=(333, 3))
    leaves = group_points(points)
    assert sorted(leaves.order) == list(range(333))
    for center, radius, first, last in zip(
        leaves.centers, leaves.radii, leaves.first[:-1], leaves.first[1:], strict=True
    ):
        assert 0 < last - first <= 16
        assert np.linalg.norm(points[leaves.order[first:last]] - center, axis=1).max() <= radius
