"""Fits and their metrics: counts, invariances, known answers and bad meshes."""

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.spheres import (
    LossWeights,
    SphereFitConfig,
    SphereFitStatus,
    fit as fit_module,
    fit_spheres,
    measure_spheres,
)
from morphit_ros.spheres.configuration import VARIANTS
from morphit_ros.spheres.metrics import even_directions, nearest_gaps

QUICK = SphereFitConfig(count=8, iterations=60, rounds=2, interior_samples=400, surface_samples=400)


def sheet() -> TriangleMesh:
    corners = np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.1, 0], [0, 0.1, 0.0]])
    return TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def test_one_sphere_on_a_sphere_is_that_sphere():
    mesh = sphere_mesh(0.1).transformed(make_transform(translation=[1, 2, 3]))
    result = fit_spheres(mesh, SphereFitConfig(count=1))
    np.testing.assert_allclose(result.centers, [[1, 2, 3]], atol=0.001)
    np.testing.assert_allclose(result.radii, [0.1], atol=0.002)
    assert result.status is SphereFitStatus.FITTED
    assert result.history[-1] < result.history[0]


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("mesh", [box_mesh([0.3, 0.1, 0.05]), sheet()], ids=["box", "sheet"])
def test_count_is_kept_and_spheres_are_sound(mesh, count):
    result = fit_spheres(mesh, replace(QUICK, count=count))
    assert result.centers.shape == (count, 3)
    assert result.radii.shape == (count,)
    assert np.isfinite(result.centers).all()
    assert (result.radii > 0.0).all()


def test_more_spheres_fit_better():
    mesh = box_mesh([0.3, 0.15, 0.1])
    errors = [measure_spheres(mesh, *spheres(mesh, count)).d_avg for count in (2, 8, 32)]
    assert errors[0] > 1.3 * errors[1] > 1.3 * 1.3 * errors[2]


def spheres(mesh, count, **settings):
    result = fit_spheres(mesh, SphereFitConfig(count=count, interior_samples=800, surface_samples=800, **settings))
    return result.centers, result.radii


def test_fit_is_better_than_its_start():
    mesh = box_mesh([0.3, 0.15, 0.1])
    start = measure_spheres(mesh, *spheres(mesh, 12, iterations=1, rounds=0, learning_rate=1e-6))
    end = measure_spheres(mesh, *spheres(mesh, 12))
    assert end.d_avg < 0.75 * start.d_avg
    assert end.inside > start.inside + 0.1
    assert end.outside < 0.2


def test_variants_do_what_they_say():
    mesh = capsule_mesh(0.05, 0.2)
    volume, balanced, surface = (
        measure_spheres(mesh, *spheres(mesh, 10, variant=variant)) for variant in ("volume", "balanced", "surface")
    )
    assert volume.inside > 0.995
    assert surface.outside < 0.01
    assert balanced.d_avg < min(volume.d_avg, surface.d_avg)


def test_contact_spheres_are_touched_where_the_mesh_is():
    mesh = box_mesh([0.1, 0.06, 0.04])
    # Balls of 50 mm, which is not the fit's radius, about the corners.
    directions = even_directions(400)
    balls = np.sign(directions) * [0.05, 0.03, 0.02] + 0.05 * directions
    errors = {
        variant: np.abs(nearest_gaps(balls, *spheres(mesh, 12, variant=variant)) - 0.05).mean() for variant in VARIANTS
    }
    others = [error for variant, error in errors.items() if variant != "contact"]
    assert errors["contact"] < 0.6 * min(others), errors


def test_same_seed_same_spheres_another_seed_others():
    mesh = box_mesh([0.3, 0.15, 0.1])
    first, again, other = fit_spheres(mesh, QUICK, 4), fit_spheres(mesh, QUICK, 4), fit_spheres(mesh, QUICK, 5)
    np.testing.assert_array_equal(first.centers, again.centers)
    np.testing.assert_array_equal(first.radii, again.radii)
    np.testing.assert_array_equal(first.history, again.history)
    assert not np.array_equal(first.centers, other.centers)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1000.0, 1e6])
@pytest.mark.parametrize("count", [1, 8, 30])
def test_scale_and_place_do_not_matter(scale, count):
    mesh = box_mesh([0.3, 0.15, 0.1])
    offset = np.array([3.0, -1.0, 0.0]) * scale
    moved = TriangleMesh(mesh.vertices * scale + offset, mesh.faces)
    config = replace(QUICK, count=count)
    reference, result = fit_spheres(mesh, config), fit_spheres(moved, config)
    np.testing.assert_allclose((result.centers - offset) / scale, reference.centers, atol=1e-8)
    np.testing.assert_allclose(result.radii / scale, reference.radii, rtol=1e-7)


def test_inverted_mesh_gives_the_same_spheres():
    mesh = box_mesh([0.3, 0.15, 0.1])
    inverted = TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    reference, result = fit_spheres(mesh, QUICK), fit_spheres(inverted, QUICK)
    measures = [measure_spheres(mesh, r.centers, r.radii) for r in (reference, result)]
    assert measures[1].d_avg == pytest.approx(measures[0].d_avg, rel=0.2)
    assert measures[1].inside == pytest.approx(measures[0].inside, abs=0.05)


def test_open_and_disconnected_meshes_are_covered():
    closed = capsule_mesh(0.05, 0.2)
    opened = TriangleMesh(closed.vertices, closed.faces[200:])
    two = concatenate_meshes([closed, closed.transformed(make_transform(translation=[0.5, 0, 0]))])
    assert measure_spheres(closed, *spheres(opened, 10)).inside > 0.85
    assert measure_spheres(two, *spheres(two, 16)).inside > 0.93


def test_sheet_is_covered_and_says_so():
    result = fit_spheres(sheet(), SphereFitConfig(count=20))
    assert result.status is SphereFitStatus.NO_VOLUME
    metrics = measure_spheres(sheet(), result.centers, result.radii)
    assert np.isnan(metrics.inside)
    assert metrics.d_avg < 0.02


def test_extreme_settings_stay_finite():
    config = SphereFitConfig(count=6, iterations=80, learning_rate=1.0, interior_samples=50, surface_samples=50)
    result = fit_spheres(box_mesh([0.3, 0.15, 0.1]), config)
    assert np.isfinite(result.centers).all()
    assert (result.radii > 0.0).all()
    assert np.isfinite(result.history).all()


def test_bad_input():
    point = TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="area"):
        fit_spheres(point)
    for bad in ({"count": 0}, {"count": -3}, {"variant": "best"}, {"iterations": 0}, {"learning_rate": float("nan")}):
        with pytest.raises(InvalidInputError):
            SphereFitConfig(**bad)


def test_metrics_of_known_spheres():
    mesh = sphere_mesh(0.1, 96)
    exact = measure_spheres(mesh, [[0, 0, 0]], [0.1])
    assert exact.d_max < 0.0004
    assert exact.inside == pytest.approx(1.0, abs=0.001)
    assert exact.outside < 0.02
    # A sphere that leaves the mesh's box is counted whole: 8 = 2³ times the volume.
    large = measure_spheres(mesh, [[0, 0, 0]], [0.2])
    assert large.d_avg == pytest.approx(0.1, abs=0.001)
    assert large.outside == pytest.approx(7.0, rel=0.03)
    apart = measure_spheres(mesh, [[1.0, 0, 0]], [0.1])
    assert (apart.inside, apart.outside) == (0.0, pytest.approx(1.0, rel=0.2))


@pytest.mark.parametrize(
    ("centers", "radii"),
    [([], []), ([[0, 0, 0]], [0.0]), ([[0, 0, np.nan]], [1.0]), ([[0, 0, 0]], [1.0, 2.0]), ([[0, 0]], [1.0])],
)
def test_metrics_refuse_bad_spheres(centers, radii):
    with pytest.raises(InvalidInputError):
        measure_spheres(sphere_mesh(0.1), centers, radii)


def test_union_of_meshes_is_one_shape():
    left = box_mesh([0.2, 0.1, 0.1])
    right = left.transformed(make_transform(translation=[0.1, 0, 0]))
    whole = box_mesh([0.3, 0.1, 0.1]).transformed(make_transform(translation=[0.05, 0, 0]))
    result = fit_spheres([left, right], SphereFitConfig(count=12))
    same = measure_spheres(whole, result.centers, result.radii)
    direct = measure_spheres(whole, *spheres(whole, 12))
    assert same.d_avg < 1.15 * direct.d_avg
    assert same.inside > direct.inside - 0.03


def test_warm_start_keeps_its_count_and_its_quality():
    mesh = box_mesh([0.3, 0.15, 0.1])
    before = fit_spheres(mesh, SphereFitConfig(count=12))
    for count in (5, 12, 13, 40):
        after = fit_spheres(mesh, SphereFitConfig(count=count), initial=(before.centers, before.radii))
        cold = measure_spheres(mesh, *spheres(mesh, count))
        assert len(after.radii) == count
        assert measure_spheres(mesh, after.centers, after.radii).d_avg < 1.2 * cold.d_avg


@pytest.mark.parametrize("count", [3, 6, 20])
def test_locked_spheres_stay_exactly(count):
    mesh = box_mesh([0.3, 0.15, 0.1])
    rng = np.random.default_rng(1)
    centers, radii = rng.uniform(-0.1, 0.1, (6, 3)), rng.uniform(0.01, 0.03, 6)
    mask = np.array([False, True, False, True, True, False])
    result = fit_spheres(mesh, replace(QUICK, count=count), initial=(centers, radii), locked=mask)
    assert len(result.radii) == count
    np.testing.assert_array_equal(result.centers[:3], centers[mask])
    np.testing.assert_array_equal(result.radii[:3], radii[mask])
    if count > 3:
        # The others go where the locked ones are not.
        alone = measure_spheres(mesh, centers[mask], radii[mask]).d_avg
        assert measure_spheres(mesh, result.centers, result.radii).d_avg < 0.7 * alone


def test_all_locked_returns_them():
    mesh = box_mesh([0.3, 0.15, 0.1])
    centers, radii = np.array([[0.0, 0, 0], [0.1, 0, 0]]), np.array([0.05, 0.04])
    result = fit_spheres(mesh, replace(QUICK, count=2), initial=(centers, radii), locked=[True, True])
    np.testing.assert_array_equal(result.centers, centers)
    np.testing.assert_array_equal(result.radii, radii)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"locked": [True]}, "locked"),
        ({"initial": ([[0, 0, 0]], [0.1]), "locked": [True, False]}, "locked"),
        ({"initial": (np.zeros((9, 3)), np.ones(9)), "locked": np.ones(9, dtype=bool)}, "locked"),
        ({"initial": ([[0, 0, np.nan]], [0.1])}, "spheres"),
        ({"initial": ([[0, 0, 0]], [-0.1])}, "spheres"),
    ],
)
def test_bad_starts(arguments, named):
    with pytest.raises(InvalidInputError, match=named):
        fit_spheres(box_mesh([1, 1, 1]), QUICK, **arguments)


def test_weights_choose_what_is_fitted():
    mesh = box_mesh([0.3, 0.15, 0.1])
    heavy = fit_spheres(mesh, SphereFitConfig(count=8, weights=LossWeights(mass=50.0)))
    plain = fit_spheres(mesh, SphereFitConfig(count=8))

    def mass_error(result):
        return abs(np.sum(4.0 / 3.0 * np.pi * result.radii**3) / mesh.volume - 1.0)

    assert mass_error(heavy) < 0.25 * mass_error(plain)
    with pytest.raises(InvalidInputError, match="all zero"):
        SphereFitConfig(weights=LossWeights.only())


def test_peak_weight_lowers_the_greatest_distance():
    mesh = cylinder_mesh(0.05, 0.3)
    without, with_peak = (
        measure_spheres(mesh, *spheres(mesh, 8, weights=LossWeights(peak=weight))) for weight in (0.0, 300.0)
    )
    assert with_peak.d_max < 0.85 * without.d_max


@pytest.mark.parametrize("variant", ["balanced", "volume"])
def test_cover_is_proven_from_a_warm_start_of_another_count_as_well(variant):
    mesh = box_mesh([0.3, 0.15, 0.1])
    points, _ = sample_surface(mesh, 20000, np.random.default_rng(0))
    before = fit_spheres(mesh, SphereFitConfig(count=6))
    config = SphereFitConfig(count=9, variant=variant, cover=True)
    for start in (None, (before.centers, before.radii)):
        result = fit_spheres(mesh, config, initial=start)
        assert result.status is SphereFitStatus.FITTED
        assert len(result.radii) == 9
        assert 0.0 < result.cover_margin < 0.01
        assert nearest_gaps(points, result.centers, result.radii).max() <= -result.cover_margin
    assert fit_spheres(mesh, QUICK).cover_margin is None


def test_of_several_seeds_the_one_of_least_loss_is_taken_and_the_first_is_the_fit_of_one(monkeypatch):
    config = SphereFitConfig(count=4, starts=1, rounds=1)
    several, again = (fit_spheres(box_mesh([0.3, 0.1, 0.05]), replace(config, seeds=5), seed=2) for _ in range(2))
    np.testing.assert_array_equal(several.radii, again.radii)
    losses, search = [], fit_module._search

    def noted(*arguments):
        found = search(*arguments)
        losses.append((found.loss, found.radii))
        return found

    monkeypatch.setattr(fit_module, "_search", noted)
    chosen = fit_spheres(box_mesh([0.3, 0.1, 0.05]), replace(config, seeds=5), seed=2)
    alone = fit_spheres(box_mesh([0.3, 0.1, 0.05]), config, seed=2)
    *searches, single = losses
    assert len({loss for loss, _ in searches}) == 5
    assert single[0] in {loss for loss, _ in searches}
    # In the fit's frame lengths are larger by one factor.
    best = min(searches, key=lambda one: one[0])[1]
    np.testing.assert_allclose(chosen.radii / chosen.radii[0], best / best[0], rtol=1e-9)
    assert len(alone.history) > 0
