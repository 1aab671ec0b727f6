"""Which density is the surface: two levels, samples, silhouettes, and data that can't tell."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, ball_depths

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import look_at, make_transform
from morphit_ros.neural.fields.analytic import BoxField, SphereField
from morphit_ros.neural.fields.composition import TransformedField
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.silhouette_hull import HullThreshold
from morphit_ros.neural.solid.silhouettes import silhouette_threshold
from morphit_ros.neural.solid.thresholds import (
    Threshold,
    likelihood_threshold,
    two_level_threshold,
)
from morphit_ros.neural.views.depth_samples import free_and_occupied
from morphit_ros.neural.views.posed_views import PosedDepths

# Densities fall from 200 to zero over 20 mm: each threshold is another radius.
SOFT = SphereField(0.05, edge=0.02, peak=200.0)
PIXELS, FOCAL = 80, 140.0


def radius_at(threshold):
    """Where the soft ball's density is that."""
    radii = np.linspace(0.04, 0.06, 20001)
    values = SOFT.density(np.stack([radii, 0.0 * radii, 0.0 * radii], axis=1))
    return float(np.interp(-threshold, -values, radii))


def ball_views(radius, count=6, shift=0.0):
    """Views with exact masks of a ball of a radius, its centre moved by `shift` along x."""
    rng = np.random.default_rng(0)
    eyes = rng.normal(size=(count, 3))
    eyes *= 0.3 / np.linalg.norm(eyes, axis=1, keepdims=True)
    poses = np.stack([look_at(eye, np.zeros(3)) for eye in eyes])
    rows, columns = np.mgrid[0:PIXELS, 0:PIXELS]
    middle = 0.5 * (PIXELS - 1)
    rays = np.stack([(columns - middle) / FOCAL, (rows - middle) / FOCAL, np.ones_like(rows)], axis=-1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    masks = []
    for pose in poses:
        center = pose[:3, :3].T @ (np.array([shift, 0.0, 0.0]) - pose[:3, 3])
        along = rays @ center
        masks.append(center @ center - along**2 < radius**2)
    intrinsics = np.tile([FOCAL, FOCAL, middle, middle], (count, 1))
    return SimpleNamespace(masks=np.array(masks), intrinsics=intrinsics, T_world_camera=poses)


@pytest.mark.parametrize("radius", [0.045, 0.05, 0.055])
def test_silhouettes_find_the_radius_to_a_tenth_of_a_pixel(radius):
    chosen = silhouette_threshold(SOFT, ball_views(radius))
    pixel = 0.3 / FOCAL
    assert radius_at(chosen.value) == pytest.approx(radius, abs=0.1 * pixel)
    assert chosen.agreement > 0.99
    assert radius_at(chosen.highest) < radius < radius_at(chosen.lowest)


def test_a_sharp_field_takes_the_middle_of_the_thresholds_that_match():
    field = SphereField(0.05, edge=1e-4, peak=100.0)
    chosen = silhouette_threshold(field, ball_views(0.05))
    assert chosen.lowest < chosen.value < chosen.highest and chosen.agreement > 0.98
    assert 5.0 < chosen.value < 95.0


def test_silhouettes_of_another_object_are_refused():
    with pytest.raises(InvalidInputError, match="intersection over union"):
        silhouette_threshold(SOFT, ball_views(0.02, shift=0.08))


def test_views_without_masks_are_refused():
    views = ball_views(0.05)
    views.masks = None
    with pytest.raises(InvalidInputError, match="masks"):
        silhouette_threshold(SOFT, views)


@pytest.mark.parametrize("true_radius", [0.045, 0.05, 0.056])
def test_samples_find_the_density_at_which_they_part(true_radius):
    rng = np.random.default_rng(1)
    points = rng.uniform(-0.07, 0.07, (6000, 3))
    radii = np.linalg.norm(points, axis=1)
    near = (radii > true_radius - 0.008) & (radii < true_radius + 0.008)
    occupied = radii < true_radius
    chosen = likelihood_threshold(SOFT, points[near & ~occupied], points[near & occupied])
    assert radius_at(chosen.value) == pytest.approx(true_radius, abs=8e-4)
    assert chosen.agreement > 0.9
    assert chosen.lowest < chosen.value < chosen.highest


def test_noisy_samples_give_a_wider_range():
    rng = np.random.default_rng(2)
    points = rng.uniform(-0.07, 0.07, (3000, 3))
    exact = np.linalg.norm(points, axis=1) < 0.05
    noisy = np.linalg.norm(points + rng.normal(scale=0.01, size=points.shape), axis=1) < 0.05
    sure, unsure = (likelihood_threshold(SOFT, points[~inside], points[inside]) for inside in (exact, noisy))
    assert sure.agreement > unsure.agreement > 0.8
    for chosen, inside in ((sure, exact), (unsure, noisy)):
        density = SOFT.density(points)
        for edge, direction in ((chosen.lowest, -1.0), (chosen.highest, 1.0)):
            # Up to one percent fewer samples are explained at the ends of the range, more beyond.
            lost = [
                chosen.agreement - 0.5 * ((density > at)[inside].mean() + (density <= at)[~inside].mean())
                for at in (edge, edge + 0.03 * direction * SOFT.density(np.zeros((1, 3)))[0])
            ]
            assert lost[0] < 0.011
            assert lost[1] > 0.0
    assert unsure.highest / unsure.lowest > sure.highest / sure.lowest


def test_samples_that_say_nothing_are_refused():
    points = np.random.default_rng(3).uniform(-0.06, 0.06, (500, 3))
    with pytest.raises(InvalidInputError, match="tells apart"):
        likelihood_threshold(SOFT, points[::2], points[1::2])
    inside = np.linalg.norm(points, axis=1) < 0.05
    with pytest.raises(InvalidInputError, match="tells apart"):
        likelihood_threshold(SOFT, points[inside], points[~inside])
    for empty in (np.zeros((0, 3)), np.full((3, 3), np.nan), np.zeros(3)):
        with pytest.raises(InvalidInputError, match="occupied"):
            likelihood_threshold(SOFT, points, empty)


def test_two_levels_give_the_density_halfway():
    field = BoxField((0.1, 0.06, 0.04), edge=0.004, peak=7.0)
    points = np.random.default_rng(4).uniform(*(1.2 * field.bounds), (40_000, 3))
    assert two_level_threshold(field.density(points)).value == pytest.approx(3.5, rel=1e-3)
    assert two_level_threshold(np.array([0.0, 0.0, 2.0])).value == pytest.approx(1.0)


@pytest.mark.parametrize(
    "densities",
    [np.zeros(5), np.ones((3, 3)), [0.7, 0.7 - 2e-16, 0.7 + 1e-16], np.array([]), np.array([np.nan, 1.0]), [-1.0, 0.0]],
)
def test_densities_that_show_nothing_are_refused(densities):
    with pytest.raises(InvalidInputError, match="field"):
        two_level_threshold(np.array(densities))


@pytest.mark.parametrize("numbers", [(0.0,), (np.nan,), (1.0, 2.0, 3.0), (1.0, -1.0, 2.0), (1.0, 0.5, np.inf)])
def test_a_threshold_is_a_positive_number_in_its_range(numbers):
    with pytest.raises(InvalidInputError, match="threshold"):
        Threshold(*numbers)


@pytest.mark.parametrize("agreement", [-0.1, 1.1, np.nan])
def test_an_agreement_is_a_share(agreement):
    with pytest.raises(InvalidInputError, match="agreement of the threshold"):
        Threshold(1.0, agreement=agreement)
    # A sum of weights that is one but for rounding.
    assert Threshold(1.0, agreement=1.0 + 1e-15).agreement == 1.0


HULL = VolumeMoments(1e-4, np.zeros(3), 1e-8 * np.eye(3))


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"pixel": -1.0}, "pixel"),
        ({"pixel": np.nan}, "pixel"),
        ({"hull": HULL._replace(volume=-1.0)}, "volume of the hull"),
        ({"hull": HULL._replace(volume=np.inf)}, "volume of the hull"),
        ({"hull": HULL._replace(center=np.zeros(2))}, "centre of the hull"),
        ({"hull": HULL._replace(center=np.array([0.0, np.nan, 0.0]))}, "centre of the hull"),
        ({"hull": HULL._replace(second_moment=np.zeros(3))}, "second moment of the hull"),
        ({"hull": HULL._replace(second_moment=np.full((3, 3), np.inf))}, "second moment of the hull"),
        ({"hull": HULL._replace(second_moment=1e-8 * np.triu(np.ones((3, 3))))}, "symmetric"),
        ({"hull": HULL._replace(second_moment=1e308 * np.diag([1.0, -1.0, 1.0]))}, "without negative moments"),
        ({"hull": HULL, "lowest": 2.0}, "threshold"),
    ],
)
def test_a_hull_is_of_a_body(numbers, words):
    with pytest.raises(InvalidInputError, match=words):
        HullThreshold(1.0, **numbers)
    assert HullThreshold(1.0, hull=HULL, pixel=0.001).hull.volume == 1e-4


def test_a_hull_stays_however_the_field_is_cut():
    moved = HullThreshold(0.5, 0.4, 0.6, 0.9, HULL, 0.001).at(Threshold(2.0, 1.0, 3.0, 0.7))
    assert (moved.value, moved.range, moved.agreement, moved.pixel) == (2.0, (1.0, 3.0), 0.7, 0.001)
    assert moved.hull is not None and moved.hull.volume == HULL.volume
    assert HullThreshold(0.5, 0.4, 0.6).at(Threshold(0.3)).range == (0.3, 0.3)


def test_depths_sample_both_sides_of_the_surface_alike():
    free, occupied = free_and_occupied(ball_depths(4), distance=0.004)
    outside = np.linalg.norm(free - BALL_CENTER, axis=1) - BALL_RADIUS
    inside = BALL_RADIUS - np.linalg.norm(occupied - BALL_CENTER, axis=1)
    # Along a slanted ray the surface is nearer than the distance.
    assert outside.min() > -1e-6 and 0.0035 < outside.max() <= 0.004
    assert inside.min() > -0.001 and 0.0035 < inside.max() <= 0.004
    assert len(occupied) > 0.95 * len(free)
    np.testing.assert_array_equal(free, free_and_occupied(ball_depths(4), distance=0.004)[0])
    assert (free[:50] != free_and_occupied(ball_depths(4), distance=0.004, seed=1)[0][:50]).any()


def test_depths_choose_the_density_at_the_surface_they_measured():
    for radius in (0.047, 0.05, 0.053):
        # The field's ball is the soft one; the depths are of a ball of another size.
        field = TransformedField(SOFT, make_transform(translation=BALL_CENTER))
        views = ball_depths(6)
        grown = PosedDepths(
            views.depth + np.float32(BALL_RADIUS - radius), views.intrinsics, views.T_world_camera, views.masks
        )
        chosen = likelihood_threshold(field, *free_and_occupied(grown, 0.006))
        assert radius_at(chosen.value) == pytest.approx(radius, abs=0.0015)
        assert chosen.agreement > 0.85


def test_what_another_view_sees_through_is_not_inside():
    # Two opposed views: behind what is thinner than the distance lies the other's free space.
    views = ball_depths(2)
    free, kept = free_and_occupied(views, distance=0.16)
    # The cameras look along x; a quarter of the distance is tolerated.
    across, along = np.linalg.norm(kept[:, 1:] - BALL_CENTER[1:], axis=1), np.abs(kept[:, 0] - BALL_CENTER[0])
    assert BALL_RADIUS < along[across < 0.5 * BALL_RADIUS].max() < BALL_RADIUS + 0.045
    assert len(kept) < 0.95 * len(free)
    for distance in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidInputError, match="distance"):
            free_and_occupied(views, distance)
