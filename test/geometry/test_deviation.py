"""How far solids and models are apart at most: known answers, motion, dense samples, proofs that must fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.cube_parts import CubeParts
from morphit_ros.geometry.deviation import measure_deviation, parts_outside
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector


class Balls:
    """Balls as bodies."""

    def __init__(self, centers: list, radii: list) -> None:
        self.centers, self.radii = np.array(centers, dtype=float), np.array(radii, dtype=float)
        self.convex = [True] * len(radii)

    @property
    def bounds(self) -> Array:
        return np.stack([
            (self.centers - self.radii[:, None]).min(axis=0), (self.centers + self.radii[:, None]).max(axis=0)
        ])  # fmt: skip

    def surface_points(self) -> Array:
        return self.centers + self.radii[:, None] * np.array([1.0, 0.0, 0.0])

    def farthest(self, k: int, points: Array) -> Array:
        return np.maximum(np.linalg.norm(points - self.centers[k], axis=1) - self.radii[k], 0.0)

    def holds(self, k: int, points: Array) -> np.ndarray:
        return self.farthest(k, points) <= 0.0

    def planes(self, k: int, points: Array) -> tuple[Array, Array]:
        ways = points - self.centers[k]
        lengths = np.linalg.norm(ways, axis=1)
        ways[lengths == 0.0, 0] = 1.0
        normals = ways / np.linalg.norm(ways, axis=1, keepdims=True)
        return normals, self.radii[k] - lengths


def cube() -> Solid:
    return Solid([box_mesh((2.0, 2.0, 2.0))])


class TestKnownAnswers:
    def test_ball_in_a_cube(self) -> None:
        found = measure_deviation(cube(), Balls([[0, 0, 0]], [1.0]))
        assert found.solid_to_model == pytest.approx(math.sqrt(3.0) - 1.0, rel=1e-6)
        assert found.model_to_solid < 5e-3

    def test_ball_around_a_cube(self) -> None:
        found = measure_deviation(cube(), Balls([[0, 0, 0]], [1.8]))
        assert found.solid_to_model < 1e-6
        # Farthest above the middle of a face.
        assert 0.8 <= found.model_to_solid <= 0.8 * 1.03
        assert found.reached[1] <= 0.8 + 1e-9

    def test_what_is_proven_already_is_not_looked_for(self) -> None:
        assert measure_deviation(cube(), Balls([[0, 0, 0]], [1.8]), contained=True).solid_to_model == 0.0

    def test_cavity_between_the_bodies_counts(self) -> None:
        """Balls on the corners and faces cover the surface; the middle of the cube is in none."""
        corners = [[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if (x, y, z) != (0, 0, 0)]
        found = measure_deviation(cube(), Balls(corners, [0.75] * 26))
        assert found.solid_to_model == pytest.approx(0.25, abs=0.01)
        outside = np.concatenate(parts_outside(cube(), Balls(corners, [0.75] * 26)))
        assert (np.linalg.norm(outside, axis=1) < 0.6).any()

    def test_far_points_are_far(self) -> None:
        balls = Balls([[0, 0, 0], [0.5, 0, 0]], [1.0, 1.0])
        found = measure_deviation(cube(), balls)
        distances = np.minimum(balls.farthest(0, found.far_in_solid), balls.farthest(1, found.far_in_solid))
        assert len(found.far_in_solid) > 0
        assert (distances >= 0.59 * found.reached[0]).all()
        assert (found.far_in_model[:, 0] > 1.0).all()

    def test_enclosing_solid_is_what_must_be_near(self) -> None:
        ball = Balls([[0, 0, 0]], [0.1])
        inner, outer = Solid([sphere_mesh(0.1, 12)]), Solid([sphere_mesh(0.1, 12, enclosing=True)])
        alone, between = measure_deviation(inner, ball), measure_deviation(inner, ball, outer)
        assert alone.solid_to_model < 1e-6
        assert between.solid_to_model == pytest.approx(0.1 / math.cos(math.pi / 12) ** 2 - 0.1, rel=0.2)
        assert between.model_to_solid == alone.model_to_solid


class TestBounds:
    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 10**6))
    def test_no_sample_is_farther_and_the_bound_is_near(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        mesh = cylinder_mesh(0.2, 1.0).transformed(
            make_transform(matrix_from_rotation_vector(rng.normal(size=3)), rng.normal(size=3))
        )
        centers = mesh.vertices[rng.integers(0, len(mesh.vertices), 4)] * 0.5 + 0.5 * mesh.vertices.mean(axis=0)
        balls = Balls(centers.tolist(), rng.uniform(0.1, 0.4, 4).tolist())
        solid = Solid([mesh])
        found = measure_deviation(solid, balls)
        on_solid = sample_surface(mesh, 20_000, rng)[0]
        there = np.min([balls.farthest(k, on_solid) for k in range(4)], axis=0).max()
        ways = rng.normal(size=(20_000, 3))
        ways *= (rng.random(20_000) ** (1 / 3) / np.linalg.norm(ways, axis=1))[:, None]
        owner = rng.integers(0, 4, 20_000)
        in_model = balls.centers[owner] + ways * balls.radii[owner, None]
        outside = in_model[~solid.contains(in_model)]
        back = solid.surface_distances(outside).max(initial=0.0)
        slack = 3e-3
        assert there <= found.solid_to_model <= there * 1.06 + slack + 0.03
        assert back <= found.model_to_solid <= back * 1.06 + slack + 0.03
        assert found.reached[0] <= found.solid_to_model
        assert found.reached[1] <= found.model_to_solid

    def test_moved_and_scaled(self) -> None:
        centers, radii = [[0.3, 0, 0], [-0.9, 0.2, 0.1]], [0.9, 0.8]
        first = measure_deviation(cube(), Balls(centers, radii))
        motion = make_transform(matrix_from_rotation_vector([0.3, -0.2, 0.5]), [3.0, -1.0, 2.0])
        mesh = box_mesh((2.0, 2.0, 2.0)).transformed(motion)
        small = TriangleMesh(1e-3 * mesh.vertices, mesh.faces)
        moved = np.array(centers) @ motion[:3, :3].T + motion[:3, 3]
        again = measure_deviation(Solid([small]), Balls((1e-3 * moved).tolist(), [1e-3 * r for r in radii]))
        assert 1e3 * again.solid_to_model == pytest.approx(first.solid_to_model, rel=0.03)
        assert 1e3 * again.model_to_solid == pytest.approx(first.model_to_solid, rel=0.03)


class TestContainment:
    def test_proven_where_balls_overlap(self) -> None:
        balls = Balls([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)], [0.87] * 8)
        assert len(parts_outside(cube(), balls)) == 0

    def test_refuted_by_the_smallest_gap(self) -> None:
        """The corner of the cube sticks out by a ten-thousandth."""
        balls = Balls([[0, 0, 0]], [math.sqrt(3.0) - 1e-4])
        outside = np.concatenate(parts_outside(cube(), balls))
        assert np.abs(np.abs(outside) - 1.0).max() < 1e-3

    def test_a_body_that_is_not_convex_holds_nothing(self) -> None:
        balls = Balls([[0, 0, 0]], [2.0])
        balls.convex = [False]
        assert len(parts_outside(cube(), balls)) > 0


class TestParts:
    def test_parts_fill_the_solid(self) -> None:
        """Hulls of the parts' corners lie in their cubes, and together have the solid's volume."""
        from scipy.spatial import ConvexHull

        parts = CubeParts.whole(Solid([box_mesh((1.0, 0.7, 0.3))]))
        for _ in range(3):
            parts = parts.divided(np.arange(len(parts.cubes)))
        volume = 0.0
        for k, center in enumerate(parts.cubes):
            own = parts.points[parts.owners == k]
            assert (np.abs(own - center) <= parts.half * (1.0 + 1e-6)).all()
            if np.ptp(own, axis=0).min() > 1e-6:
                volume += ConvexHull(own).volume
        assert volume == pytest.approx(0.21, rel=1e-6)

    def test_maxima_of_each_cube(self) -> None:
        parts = CubeParts.whole(cube()).divided(np.arange(1))
        values = np.arange(len(parts.points), dtype=float)
        expected = [values[parts.owners == k].max() for k in range(len(parts.cubes))]
        assert parts.maxima(values).tolist() == expected


def test_no_mesh_and_no_area_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="meshes"):
        Solid([])
    flat = TriangleMesh(np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="area"):
        Solid([flat])
