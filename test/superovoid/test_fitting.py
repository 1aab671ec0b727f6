"""One superovoid fitted to points and meshes: recovers, moves along, contains, and refuses what has no answer."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
)
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits import gauge
from morphit_ros.superovoid.fits.config import SuperovoidFitConfig
from morphit_ros.superovoid.fits.errors import measure_fit, union_distances
from morphit_ros.superovoid.fits.fit import fit_superovoid
from morphit_ros.superovoid.fits.gauge import CLOSEST, RADIAL
from morphit_ros.superovoid.fits.samples import outer_points, sample_fit_surface
from morphit_ros.superovoid.shapes.superovoid import Superovoid

TAPERED = Superovoid((0.03, 0.02, 0.05), (0.6, 0.8), (0.3, -0.2))
POSE = make_transform(matrix_from_rotation_vector([0.4, -1.1, 0.7]), [0.3, -0.2, 0.5])


def surface(shape: Superovoid, count: int = 1500, seed: int = 0) -> Array:
    """Points on the surface along rays from the centre."""
    rays = np.random.default_rng(seed).normal(size=(count, 3)) * shape.semi_axes
    scales = [gauge.radial_scale(shape.parameters, *ray) for ray in rays]
    return rays * np.array(scales)[:, None]


def gap(result: PlacedSuperovoid, points: Array) -> float:
    """Greatest distance of points from the surface."""
    return float(np.abs(union_distances([result], points)).max())


def random_shape(rng: np.random.Generator) -> Superovoid:
    return Superovoid(rng.uniform(0.01, 0.05, 3), rng.uniform(0.3, 1.7, 2), rng.uniform(-0.45, 0.45, 2))


class TestKernels:
    @pytest.mark.parametrize("kind", [RADIAL, CLOSEST])
    def test_derivatives_of_the_distance_are_those_of_finite_differences(self, kind: int) -> None:
        rng = np.random.default_rng(1)
        worst = []
        for _ in range(200):
            numbers = np.concatenate([rng.uniform(0.5, 2, 3), rng.uniform(0.4, 1.6, 2), rng.uniform(-0.4, 0.4, 2)])
            point = rng.normal(size=3)
            row = np.zeros(13)
            gauge.residual(kind, numbers, *point, row)
            numerical = np.zeros(13)
            for k in range(13):
                values = []
                for step in (1e-6, -1e-6):
                    changed, moved = numbers.copy(), point.copy()
                    if k < 3:
                        changed[k] *= np.exp(step)
                    elif k < 7:
                        changed[k] += step
                    elif k < 10:
                        moved = point - np.cross(np.eye(3)[k - 7] * step, point)
                    else:
                        moved[k - 10] -= step
                    values.append(gauge.residual(kind, changed, *moved, np.zeros(13)))
                numerical[k] = (values[0] - values[1]) / 2e-6
            worst.append(np.abs(numerical - row).max())
        # At ridges and on the medial axis the search for a foot ends early, or there are two of them.
        assert np.mean(np.array(worst) < 1e-3) >= (1.0 if kind == RADIAL else 0.95)

    def test_distances_of_far_points_are_left_out_only_where_they_are_far(self) -> None:
        rng = np.random.default_rng(4)
        left_out = 0
        for _ in range(40):
            numbers = np.concatenate([rng.uniform(0.2, 2, 3), rng.uniform(0.2, 1.8, 2), rng.uniform(-0.5, 0.5, 2)])
            if rng.random() < 0.3:
                numbers[5:] = 0.0
            points, limits = rng.normal(size=(200, 3)) * 2.0, rng.uniform(-0.1, 1.0, 200)
            true, out, exact = np.empty(200), np.empty(200), np.empty(200, dtype=np.bool_)
            gauge.distances(numbers, np.eye(3), np.zeros(3), points, true)
            gauge.limited_distances(numbers, np.eye(3), np.zeros(3), points, limits, out, exact)
            assert (out[exact] == true[exact]).all()
            assert (np.maximum(limits, 0.0) < out)[~exact].all()
            assert (out <= true)[~exact].all()
            assert exact[true < 0.0].all()
            left_out += int((~exact).sum())
        assert left_out > 1000

    def test_gauge_is_one_on_the_surface_and_agrees_with_the_implicit_function(self) -> None:
        points = np.random.default_rng(0).normal(size=(100, 3)) * 0.03
        values = np.array([gauge.gauge(TAPERED.parameters, *point) for point in points])
        assert values ** (2.0 / TAPERED.squareness[1]) == pytest.approx(TAPERED.implicit(points), rel=1e-9)
        on_it = surface(TAPERED, 50)
        assert TAPERED.implicit(on_it) == pytest.approx(1.0, abs=1e-9)

    def test_distance_is_never_below_the_true_one_and_nearly_always_it(self) -> None:
        rng = np.random.default_rng(2)
        shape = Superovoid((1.0, 0.7, 1.3), (0.7, 1.1), (0.2, 0.2))
        points = rng.normal(size=(300, 3)) * 1.2
        closest = np.linalg.norm(surface(shape, 20_000)[None, :, :] - points[:, None, :], axis=2).min(axis=1)
        found = np.abs([gauge.closest_foot(shape.parameters, *point)[0] for point in points])
        outside = shape.implicit(points) > 1.0
        # Points drawn on the surface are at most so far from the closest one.
        assert (found[outside] <= closest[outside] + 1e-6).all()
        assert (found >= closest - 0.02).all()


class TestRecovery:
    def test_its_own_points_give_back_the_shape_to_rounding(self) -> None:
        rng = np.random.default_rng(3)
        for _ in range(8):
            shape = random_shape(rng)
            points = transform_points(POSE, surface(shape))
            result = fit_superovoid(points)
            assert result.status == "converged"
            assert result.errors.max < 1e-6 * shape.size
            assert result.shape.volume == pytest.approx(shape.volume, rel=1e-5)

    def test_numbers_come_back_in_one_order_of_axes(self) -> None:
        result = fit_superovoid(
            transform_points(POSE, surface(Superovoid((0.02, 0.03, 0.05), (0.6, 0.8), (0.2, -0.3))))
        )
        a1, a2, _ = result.shape.semi_axes
        assert a1 >= a2
        assert sum(result.shape.tapering) >= 0.0
        assert result.shape.parameters == pytest.approx([0.03, 0.02, 0.05, 0.6, 0.8, 0.3, -0.2], abs=1e-5)

    def test_noise_leaves_a_fraction_of_itself(self) -> None:
        noise = 0.002 * TAPERED.size
        points = surface(TAPERED) + np.random.default_rng(1).normal(size=(1500, 3)) * noise
        distances = union_distances([fit_superovoid(points).placed], surface(TAPERED, 500, 9))
        assert np.sqrt(np.mean(distances**2)) < 0.3 * noise

    @pytest.mark.parametrize("share", [0.1, 0.25])
    def test_strays_do_not_matter(self, share: float) -> None:
        rng = np.random.default_rng(0)
        points = surface(TAPERED)
        strays = int(share * len(points))
        points[:strays] = rng.uniform(-1.5, 1.5, (strays, 3)) * TAPERED.size
        assert gap(fit_superovoid(points).placed, surface(TAPERED, 500, 9)) < 1e-3 * TAPERED.size

    def test_half_of_the_surface_tells_the_rest(self) -> None:
        points = surface(TAPERED, 2500)
        seen = points[TAPERED.normals(points) @ np.ones(3) > 0.0]
        seen = seen + np.random.default_rng(0).normal(size=seen.shape) * 2e-4 * TAPERED.size
        assert len(seen) < 0.7 * len(points)
        assert gap(fit_superovoid(seen).placed, points) < 0.01 * TAPERED.size

    def test_families_keep_their_numbers(self) -> None:
        points = surface(TAPERED)
        ellipsoid = fit_superovoid(points, SuperovoidFitConfig(family="ellipsoid")).shape
        assert (ellipsoid.squareness, ellipsoid.tapering) == ((1.0, 1.0), (0.0, 0.0))
        assert fit_superovoid(points, SuperovoidFitConfig(family="superellipsoid")).shape.tapering == (0.0, 0.0)
        convex = fit_superovoid(points, SuperovoidFitConfig(convex=True)).shape
        assert convex.tapering[0] == convex.tapering[1] != 0.0
        assert convex.convexity().convex

    def test_mesh_of_a_superovoid(self) -> None:
        mesh = TAPERED.mesh(1e-4).transformed(POSE)
        result = fit_superovoid(mesh)
        assert result.errors.max < 2e-4
        assert result.errors.inside > 0.98
        assert result.errors.outside < 0.02
        assert result.shape.parameters == pytest.approx(TAPERED.parameters, abs=0.03)


class TestInvariance:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
    def test_fit_moves_and_grows_with_the_mesh(self, scale: float) -> None:
        # Without symmetry, or its own axes could point either way and other places be sampled.
        knob = cylinder_mesh(0.02, 0.1).transformed(make_transform(translation=[0.02, 0.03, 0.12]))
        mesh = concatenate(box_mesh((0.05, 0.08, 0.3)), knob)
        plain = fit_superovoid(mesh)
        moved = fit_superovoid(mesh.scaled(scale).transformed(POSE))
        # Rounding decides at which of the steps of a flat valley the descent has had enough.
        assert moved.errors.rms == pytest.approx(scale * plain.errors.rms, rel=0.01)
        assert moved.shape.semi_axes == pytest.approx(scale * np.array(plain.shape.semi_axes), rel=0.02)
        back = transform_points(invert_transform(POSE), moved.T_mesh_shape[:3, 3]) / scale
        assert back == pytest.approx(plain.T_mesh_shape[:3, 3], abs=1e-3)

    def test_same_seed_same_result(self) -> None:
        points = surface(TAPERED) + np.random.default_rng(0).normal(size=(1500, 3)) * 1e-3
        first, second = fit_superovoid(points, seed=4), fit_superovoid(points, seed=4)
        assert first.shape == second.shape
        assert (first.T_mesh_shape == second.T_mesh_shape).all()


class TestOuter:
    @pytest.mark.parametrize("mesh", [box_mesh((0.1, 0.2, 0.3)), cylinder_mesh(0.05, 0.3), sphere_mesh(0.2)])
    def test_holds_every_vertex_and_face_with_proof(self, mesh: TriangleMesh) -> None:
        moved = mesh.transformed(POSE)
        result = fit_superovoid(moved, SuperovoidFitConfig(mode="outer"))
        assert result.containment == "proven"
        assert result.placed.contains(moved.vertices).all()
        assert result.placed.contains(sample_surface(moved, 2000, np.random.default_rng(0))[0]).all()
        assert result.errors.inside == 1.0

    def test_is_tight(self) -> None:
        shape = Superovoid((0.04, 0.02, 0.06), (0.5, 0.9), (0.2, 0.2))
        result = fit_superovoid(shape.mesh(2e-5), SuperovoidFitConfig(mode="outer"))
        assert result.shape.volume == pytest.approx(shape.volume, rel=0.01)

    def test_box_is_held_by_less_than_its_smallest_ellipsoid(self) -> None:
        result = fit_superovoid(box_mesh((0.1, 0.2, 0.3)), SuperovoidFitConfig(mode="outer"))
        smallest_ellipsoid = np.pi * np.sqrt(3.0) / 2.0 * 0.1 * 0.2 * 0.3
        assert result.shape.volume < 0.6 * smallest_ellipsoid

    def test_balanced_claims_nothing(self) -> None:
        result = fit_superovoid(box_mesh((0.1, 0.2, 0.3)))
        assert result.containment == "none"
        assert not result.placed.contains(box_mesh((0.1, 0.2, 0.3)).vertices).all()


class TestSamples:
    def test_walls_of_a_cavity_and_buried_parts_are_not_seen(self) -> None:
        shell = TriangleMesh(*_hollow(sphere_mesh(1.0), sphere_mesh(0.6)))
        points = sample_fit_surface(shell, 1000, np.random.default_rng(0))
        radii = np.linalg.norm(points.points * points.scale, axis=1)
        assert (radii > 0.8).all()
        buried = fit_superovoid([sphere_mesh(1.0), box_mesh((0.8, 0.8, 0.8))])
        assert buried.shape.semi_axes == pytest.approx((1.0, 1.0, 1.0), rel=0.02)

    def test_inverted_mesh_is_the_same_shape(self) -> None:
        box = box_mesh((0.1, 0.2, 0.3))
        inverted = TriangleMesh(box.vertices, box.faces[:, ::-1])
        assert fit_superovoid(inverted).errors.rms == pytest.approx(fit_superovoid(box).errors.rms, rel=1e-6)

    def test_surface_that_hides_itself_counts_as_a_whole(self) -> None:
        points = np.random.default_rng(0).normal(size=(50, 3))
        assert outer_points(points, np.zeros((50, 3)), 0.1).all()

    def test_errors_of_a_known_offset(self) -> None:
        ball = PlacedSuperovoid(Superovoid.sphere(0.1), np.eye(4))
        errors = measure_fit([ball], 1.2 * surface(ball.shape, 200), [sphere_mesh(0.12)])
        assert (errors.mean, errors.rms, errors.max) == pytest.approx((0.02, 0.02, 0.02))
        assert errors.inside == pytest.approx((0.1 / 0.12) ** 3, abs=0.02)
        assert errors.outside == 0.0


class TestBadInput:
    @pytest.mark.parametrize(
        ("points", "named"),
        [
            (np.zeros((1, 3)), "1 finite points"),
            (np.random.default_rng(0).normal(size=(12, 3)), "12 finite points"),
            (np.zeros((50, 3)), "in one place"),
            (np.linspace(0, 1, 50)[:, None] * [1.0, 2.0, 3.0], "on a line"),
            (np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1.0, 0.0], "in a plane"),
            (np.full((50, 3), np.nan), "not finite"),
            (np.full((50, 3), np.inf), "not finite"),
            (np.zeros((50, 2)), "(50, 2)"),
            (np.empty((0, 3)), "0 finite points"),
        ],
    )
    def test_points_without_a_shape(self, points: Array, named: str) -> None:
        with pytest.raises(InvalidInputError, match=r"got .*expected") as raised:
            fit_superovoid(points)
        assert named in str(raised.value)

    def test_flat_mesh(self) -> None:
        square = TriangleMesh(
            np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])
        )
        with pytest.raises(InvalidInputError, match="in a plane"):
            fit_superovoid(square)

    def test_holes_of_a_depth_image_are_left_out(self) -> None:
        points = surface(TAPERED)
        holes = np.concatenate([points, np.full((100, 3), np.nan)])
        assert fit_superovoid(PointCloud(holes)).errors.max < 1e-6
        with pytest.raises(InvalidInputError, match="0 finite points"):
            fit_superovoid(PointCloud(np.full((100, 3), np.nan)))

    @pytest.mark.parametrize(("seed", "surface_given"), [(-1, box_mesh((1, 1, 1))), (0, []), (0, "a.step"), (0, [1])])
    def test_arguments(self, seed: int, surface_given: object) -> None:
        with pytest.raises(InvalidInputError):
            fit_superovoid(surface_given, seed=seed)  # type: ignore[arg-type]

    def test_too_small_for_a_superovoid(self) -> None:
        with pytest.raises(InvalidInputError, match="semi_axes"):
            fit_superovoid(box_mesh((1.0, 1.0, 1.0)).scaled(1e-10))

    def test_config(self) -> None:
        for values in ({"mode": "inner"}, {"family": "cube"}, {"max_tapering": 0.6}, {"min_squareness": 0.0}):
            with pytest.raises(InvalidInputError, match=next(iter(values))):
                SuperovoidFitConfig(**values)  # type: ignore[arg-type]


def concatenate(*meshes: TriangleMesh) -> TriangleMesh:
    from morphit_ros.geometry.mesh import concatenate_meshes

    return concatenate_meshes(list(meshes))


def _hollow(outer: TriangleMesh, inner: TriangleMesh) -> tuple[Array, Array]:
    faces = np.concatenate([outer.faces, inner.faces[:, ::-1] + len(outer.vertices)])
    return np.concatenate([outer.vertices, inner.vertices]), faces
