"""The solid in a field: known volumes, hollows, pieces, and fields that show no object."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, transform_points
from morphit_ros.neural.fields.analytic import BoxField, SphereField
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.solid.extraction import SolidConfig, extract_solid
from morphit_ros.neural.solid.inertia import inertial_properties

COARSE = SolidConfig(resolution=32, thinnest=8)


class FunctionField:
    """A density given as a function of points (N, 3)."""

    def __init__(self, function, bounds=((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))):
        self.function = function
        self.bounds = np.array(bounds)

    def density(self, points):
        return np.asarray(self.function(points), dtype=np.float64)

    def gradient(self, points):
        step = 1e-6 * np.eye(3)
        return np.stack([(self.density(points + d) - self.density(points - d)) / 2e-6 for d in step], axis=1)


def hollow_ball(outer=0.06, inner=0.05, hole=0.0):
    """A shell with a hole of a radius on top."""

    def density(points):
        distance = np.linalg.norm(points, axis=1)
        open_side = (np.hypot(points[:, 0], points[:, 1]) < hole) & (points[:, 2] > 0.0)
        return ((distance < outer) & (distance > inner) & ~open_side) * 40.0

    return FunctionField(density)


@pytest.mark.parametrize("edge", [1e-7, 1e-3])
def test_a_box_has_its_volume_center_and_moments(edge):
    solid = extract_solid(BoxField((0.1, 0.06, 0.04), edge=edge))
    assert solid.volume == pytest.approx(2.4e-4, rel=1e-3)
    np.testing.assert_allclose(solid.moments.center, 0.0, atol=1e-9)
    second = 2.4e-4 * np.diag(np.square([0.1, 0.06, 0.04])) / 12.0
    np.testing.assert_allclose(solid.moments.second_moment, second, rtol=3e-3, atol=1e-3 * second[0, 0])


def test_occupancy_surface_and_moments_are_one_body():
    solid = extract_solid(SphereField(0.05), config=COARSE)
    cell = solid.spacing**3
    assert solid.occupancy.sum() * cell == pytest.approx(solid.volume, rel=1e-9)
    assert solid.surface.volume == pytest.approx(solid.volume, rel=1e-9)
    np.testing.assert_allclose(solid.surface.center_of_mass, solid.moments.center, atol=1e-9)
    assert solid.occupancy.min() >= 0.0 and solid.occupancy.max() == 1.0
    # Its vertices are where the field passes the threshold, and each edge joins two faces, once in each direction.
    np.testing.assert_allclose(np.linalg.norm(solid.surface.vertices, axis=1), 0.05, atol=1e-5)
    faces = solid.surface.faces
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    codes, back = edges @ [len(solid.surface.vertices), 1], edges @ [1, len(solid.surface.vertices)]
    assert len(np.unique(codes)) == len(codes)
    assert set(codes) == set(back)


def test_the_error_falls_with_the_square_of_the_cell():
    true = 4.0 / 3.0 * np.pi * 0.05**3
    errors = [
        abs(extract_solid(SphereField(0.05), config=SolidConfig(resolution=n)).volume / true - 1.0)
        for n in (24, 48, 96)
    ]
    assert errors[1] < errors[0] / 3.0 and errors[2] < errors[1] / 3.0


def test_moving_the_field_moves_the_solid():
    T = make_transform(matrix_from_rotation_vector([0.3, -0.8, 0.5]), [0.4, -0.1, 0.2])
    moved = extract_solid(TransformedField(BoxField((0.1, 0.06, 0.04)), T))
    still = extract_solid(BoxField((0.1, 0.06, 0.04)))
    assert moved.volume == pytest.approx(still.volume, rel=1e-3)
    np.testing.assert_allclose(moved.moments.center, T[:3, 3], atol=1e-5)
    turned = T[:3, :3] @ still.moments.second_moment @ T[:3, :3].T
    np.testing.assert_allclose(moved.moments.second_moment, turned, atol=3e-3 * np.linalg.norm(turned))


def test_a_hollow_is_filled_unless_told_otherwise():
    filled = extract_solid(hollow_ball(), 20.0, COARSE)
    assert filled.volume == pytest.approx(4.0 / 3.0 * np.pi * 0.06**3, rel=5e-3)
    assert filled.filled_volume == pytest.approx(4.0 / 3.0 * np.pi * 0.05**3, rel=0.1)
    kept = extract_solid(hollow_ball(), 20.0, SolidConfig(resolution=32, thinnest=8, fill=False))
    assert kept.volume == pytest.approx(4.0 / 3.0 * np.pi * (0.06**3 - 0.05**3), rel=2e-2)
    assert kept.filled_volume == 0.0


def test_a_hollow_behind_a_gap_is_filled_when_gaps_are_closed():
    config = SolidConfig(resolution=40, thinnest=8, gap=0.15)
    field = hollow_ball(hole=0.006)
    assert extract_solid(field, 20.0, COARSE).filled_volume == 0.0
    closed = extract_solid(field, 20.0, config)
    assert closed.volume == pytest.approx(4.0 / 3.0 * np.pi * 0.06**3, rel=0.02)


def test_closing_gaps_leaves_concave_corners_as_they_are():
    union = UnionField(
        [
            BoxField((0.1, 0.04, 0.04)),
            TransformedField(BoxField((0.04, 0.04, 0.1)), make_transform(None, [-0.03, 0.0, 0.03])),
        ]
    )
    plain = extract_solid(union, config=COARSE)
    closed = extract_solid(union, config=SolidConfig(resolution=32, thinnest=8, gap=0.15))
    assert closed.volume == pytest.approx(plain.volume, rel=1e-9)


def test_only_the_largest_piece_counts():
    crumb = TransformedField(SphereField(0.01), make_transform(None, [0.1, 0.0, 0.0]))
    both = extract_solid(UnionField([SphereField(0.05), crumb]), config=COARSE)
    alone = extract_solid(SphereField(0.05), config=COARSE)
    assert both.volume == pytest.approx(alone.volume, rel=2e-3)
    assert both.moments.center == pytest.approx(np.zeros(3), abs=1e-5)


def test_a_piece_in_the_grid_of_the_object_is_dropped_too():
    # A crumb in the hole of a bracket, within the box of the object.
    bracket = UnionField(
        [
            BoxField((0.1, 0.02, 0.02)),
            TransformedField(BoxField((0.02, 0.02, 0.08)), make_transform(None, [0.04, 0.0, 0.03])),
        ]
    )
    crumb = TransformedField(SphereField(0.008), make_transform(None, [-0.02, 0.0, 0.05]))
    solid = extract_solid(UnionField([bracket, crumb]), config=SolidConfig(resolution=48))
    assert solid.dropped_volume == pytest.approx(4.0 / 3.0 * np.pi * 0.008**3, rel=0.1)
    assert solid.volume == pytest.approx(extract_solid(bracket, config=SolidConfig(resolution=48)).volume, rel=1e-3)


def test_a_thin_plate_is_found_and_resolved():
    plate = TransformedField(BoxField((0.1, 0.1, 0.002), edge=2e-4), make_transform(None, [0.0, 0.0, 0.0003]))
    wide = FunctionField(plate.density)
    assert extract_solid(wide, config=SolidConfig(max_nodes=500_000)).volume == pytest.approx(2e-5, rel=1e-2)


def test_cells_know_what_they_hold():
    solid = extract_solid(SphereField(0.05), config=COARSE)
    points = np.array([[0.0, 0.0, 0.0], [0.045, 0.0, 0.0], [0.055, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert solid.contains(points).tolist() == [True, True, False, False]
    centers = solid.cell_centers[solid.occupancy == 1.0]
    assert (np.linalg.norm(centers, axis=1) < 0.05).all()


def test_the_same_field_gives_the_same_solid():
    first, second = (extract_solid(SphereField(0.05), config=COARSE) for _ in range(2))
    assert np.array_equal(first.surface.vertices, second.surface.vertices)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_constant_field_is_refused(value):
    with pytest.raises(InvalidInputError, match="constant density"):
        extract_solid(FunctionField(lambda points: np.full(len(points), value)))


def test_a_field_below_the_threshold_is_refused_with_its_highest_density():
    with pytest.raises(InvalidInputError, match=r"at most 1.*threshold, 5.*lower threshold"):
        extract_solid(SphereField(0.05), 5.0)


def test_an_object_that_goes_on_beyond_the_bounds_is_refused_with_the_side():
    field = FunctionField(lambda points: (points[:, 2] < 0.02) * 30.0)
    with pytest.raises(InvalidInputError, match=r"density of 30 at its lower \w bound.*threshold.*larger bounds"):
        extract_solid(field, 10.0)
    ball = SphereField(0.05)
    cropped = FunctionField(ball.density, bounds=((-0.1, -0.1, -0.1), (0.1, 0.1, 0.04)))
    with pytest.raises(InvalidInputError, match="upper z bound"):
        extract_solid(cropped, 0.5)


def test_what_touches_the_bounds_apart_from_the_object_does_not_matter():
    ball = SphereField(0.05)
    field = FunctionField(lambda points: np.maximum(ball.density(points), (points[:, 2] < -0.095) * 1.0))
    assert extract_solid(field, 0.5, COARSE).moments.center == pytest.approx(np.zeros(3), abs=1e-5)


def test_a_field_that_is_not_finite_is_refused():
    field = FunctionField(lambda points: np.where(points[:, 0] > 0.0, np.nan, 1.0))
    with pytest.raises(InvalidInputError, match="not finite"):
        extract_solid(field)


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.nan, np.inf])
def test_a_threshold_that_is_not_positive_is_refused(threshold):
    with pytest.raises(InvalidInputError, match="threshold"):
        extract_solid(SphereField(0.05), threshold)


def test_noise_in_the_density_hardly_moves_the_center():
    ball = SphereField(0.05, edge=0.01)

    def noisy(points):
        waves = np.sin(points @ np.array([[900.0, 0.0, 300.0], [0.0, 800.0, -700.0], [500.0, 600.0, 0.0]]).T).prod(
            axis=1
        )
        return np.maximum(ball.density(points) + 0.2 * waves, 0.0)

    solid = extract_solid(FunctionField(noisy), 0.5)
    assert solid.volume == pytest.approx(4.0 / 3.0 * np.pi * 0.05**3, rel=0.02)
    assert transform_points(np.eye(4), solid.moments.center[None])[0] == pytest.approx(np.zeros(3), abs=2e-4)


def pan(wall):
    """A pan of 20 cm with a rod of 1 cm as its handle, in wide bounds."""

    def density(points):
        radius, height = np.hypot(points[:, 0], points[:, 1]), points[:, 2]
        shell = (radius < 0.1) & (height > 0.0) & (height < 0.03) & ((radius > 0.1 - wall) | (height < wall))
        rod = (np.hypot(points[:, 1], height - 0.02) < 0.005) & (points[:, 0] > 0.099) & (points[:, 0] < 0.25)
        return (shell | rod) * 1.0

    return FunctionField(density, bounds=((-0.25, -0.25, -0.2), (0.4, 0.25, 0.2)))


def test_the_thin_wall_and_the_handle_of_a_pan_are_not_lost():
    wall = 0.0025
    solid = extract_solid(pan(wall), 0.5, SolidConfig(max_nodes=1_500_000))
    shell = np.pi * (0.1**2 * wall + (0.1**2 - (0.1 - wall) ** 2) * (0.03 - wall))
    rod = np.pi * 0.005**2 * 0.15
    assert solid.volume == pytest.approx(shell + rod, rel=0.03)
    assert solid.surface.bounds[1, 0] == pytest.approx(0.25, abs=0.002)
    assert solid.lost_volume < 0.01 * solid.volume and solid.dropped_volume < 0.01 * solid.volume


def test_what_a_thin_wall_loses_is_within_the_error():
    wall = 0.001
    volume = np.pi * (0.1**2 * wall + (0.1**2 - (0.1 - wall) ** 2) * (0.03 - wall)) + np.pi * 0.005**2 * 0.15
    found = inertial_properties(pan(wall), density=1.0, threshold=0.5, config=SolidConfig(max_nodes=1_500_000))
    assert 0.05 * volume < abs(found.mass - volume) < found.mass_error
    assert "thinner than a cell" in found.remarks[0]


def test_parts_thinner_than_every_cell_are_refused_with_the_cell_and_the_remedy():
    with pytest.raises(InvalidInputError, match=r"mm.*resolution \(now 32\).*refinements \(0\)"):
        extract_solid(pan(0.0005), 0.5, SolidConfig(resolution=32, thinnest=4, refinements=0))
