"""Every density field keeps the protocol; analytic ones know their integrals."""

from __future__ import annotations

import numpy as np
import pytest
from field_samples import BOUNDS, EVERY_FIELD, FIELDS, network, points_around

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.analytic import BoxField, CapsuleField, SphereField
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.fields.grid import GridField, grid_nodes
from morphit_ros.neural.fields.network import DenseNetwork, NetworkField
from morphit_ros.neural.fields.sampled import SampledField


@EVERY_FIELD
def test_gradient_is_that_of_the_density(field: DensityField) -> None:
    points = points_around(field, 3000, -1e-3)
    step = 1e-6
    steps = step * np.eye(3)
    differences = np.stack(
        [(field.density(points + d) - field.density(points - d)) / (2 * step) for d in steps], axis=1
    )
    gradient = field.gradient(points)
    scale = np.abs(differences).max()
    assert scale > 1.0
    # Grids have kinks between cells, unions where one field takes over: a difference across one is neither side's.
    wrong = np.linalg.norm(differences - gradient, axis=1) > 1e-4 * scale
    assert wrong.sum() <= 2


@EVERY_FIELD
def test_zero_out_of_bounds_and_nowhere_negative(field: DensityField) -> None:
    low, high = field.bounds
    points = points_around(field, 3000, 0.5 * float((high - low).max()))
    outside = ((points < low) | (points > high)).any(axis=1)
    assert outside.sum() > 500
    assert (field.density(points[outside]) == 0.0).all()
    assert (field.gradient(points[outside]) == 0.0).all()
    inside = field.density(points[~outside])
    assert (inside >= 0.0).all()
    assert inside.max() > 0.0


@EVERY_FIELD
def test_many_points_at_once_are_as_one_by_one(field: DensityField) -> None:
    points = points_around(field, 20000, 0.01)
    densities, gradients = field.density(points), field.gradient(points)
    chosen = np.arange(0, 20000, 997)
    one_by_one = np.concatenate([field.density(points[i : i + 1]) for i in chosen])
    np.testing.assert_allclose(one_by_one, densities[chosen], rtol=1e-12, atol=1e-12)
    one_by_one = np.concatenate([field.gradient(points[i : i + 1]) for i in chosen])
    np.testing.assert_allclose(one_by_one, gradients[chosen], rtol=1e-10, atol=1e-8)


@EVERY_FIELD
def test_no_points_and_bad_points(field: DensityField) -> None:
    assert field.density(np.zeros((0, 3))).shape == (0,)
    assert field.gradient(np.zeros((0, 3))).shape == (0, 3)
    for bad in (np.zeros(3), np.zeros((4, 2)), np.array([[0.0, np.nan, 0.0]])):
        with pytest.raises(InvalidInputError, match="points"):
            field.density(bad)
        with pytest.raises(InvalidInputError, match="points"):
            field.gradient(bad)


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "box", "cylinder", "capsule"])
def test_integrals_of_analytic_shapes(name: str) -> None:
    field = FIELDS[name]
    count = 80
    low, high = field.bounds
    # Midpoints of cells: nothing lies on the box's faces.
    cell = (high - low) / count
    nodes = grid_nodes(np.stack([low + cell / 2, high - cell / 2]), (count, count, count))
    densities = field.density(nodes) * np.prod(cell)
    assert densities.sum() == pytest.approx(field.integral, rel=2e-4)  # type: ignore[attr-defined]
    moment = np.einsum("n,ni,nj->ij", densities, nodes, nodes)
    expected = field.second_moment  # type: ignore[attr-defined]
    assert np.abs(moment - expected).max() < 5e-4 * expected.max()


def test_grid_reproduces_what_is_trilinear() -> None:
    field = GridField.sampled(FIELDS["sphere"], (30, 31, 32))
    nodes = grid_nodes(field.bounds, (30, 31, 32))
    np.testing.assert_allclose(field.density(nodes), FIELDS["sphere"].density(nodes), atol=1e-12)

    def plane(points: np.ndarray) -> np.ndarray:
        return 3.0 + points @ [1.0, -2.0, 0.5] + 4.0 * points[:, 0] * points[:, 1]

    field = GridField(plane(grid_nodes(BOUNDS, (3, 4, 2))).reshape(3, 4, 2), BOUNDS)
    points = points_around(field, 100)
    np.testing.assert_allclose(field.density(points), plane(points), rtol=1e-12)


def test_samples_are_met_and_emptiness_is_empty() -> None:
    points = grid_nodes(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), (6, 6, 6))
    values = 2.0 + points[:, 0]
    field = SampledField(points, values, radius=0.25)
    assert np.abs(field.density(points) - values).max() < 0.06
    middle = points_around(field, 500)
    middle = middle[((middle > 0.1) & (middle < 0.9)).all(axis=1)]
    assert np.abs(field.density(middle) - (2.0 + middle[:, 0])).max() < 0.15
    assert (field.density(np.array([[1.3, 0.5, 0.5], [0.5, 0.5, -0.26]])) == 0.0).all()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SphereField(-1.0), "radius"),
        (lambda: SphereField(0.1, edge=0.2), "edge"),
        (lambda: SphereField(0.1, peak=0.0), "peak"),
        (lambda: BoxField((0.1, 0.1, np.nan)), "size"),
        (lambda: CapsuleField(0.1, 0.0), "length"),
        (lambda: UnionField([]), "fields"),
        (lambda: TransformedField(SphereField(0.1), 2.0 * np.eye(4)), "T_parent_field"),
        (lambda: GridField(np.zeros((1, 2, 2)), BOUNDS), "values"),
        (lambda: GridField(np.full((2, 2, 2), -1.0), BOUNDS), "values"),
        (lambda: GridField(np.full((2, 2, 2), np.nan), BOUNDS), "values"),
        (lambda: GridField(np.zeros((2, 2, 2)), BOUNDS[::-1]), "bounds"),
        (lambda: NetworkField(network(13, 1, "sigmoid"), BOUNDS), "network"),
        (lambda: DenseNetwork([np.zeros((3, 2))], [np.zeros(2)]), "weights"),
        (lambda: DenseNetwork([np.zeros((3, 2)), np.zeros((3, 1))], [np.zeros(2), np.zeros(1)]), "layer 1"),
        (lambda: SampledField(np.zeros((0, 3)), np.zeros(0)), "points"),
        (lambda: SampledField(np.zeros((2, 3)), np.array([1.0, -1.0]), 0.1), "densities"),
        (lambda: SampledField(np.zeros((1, 3)), np.ones(1)), "radius"),
        (lambda: SampledField(np.zeros((9, 3)), np.ones(9)), "radius"),
    ],
)
def test_bad_numbers_are_named(make, name: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.name == name
