"""Targets: normals, their rates, offsets, and what cannot be a target."""

from __future__ import annotations

import numpy as np
import pytest
from cover_samples import bowl

from morphit_ros.cover.goals.surfaces import (
    HeightMapTarget,
    MeshTarget,
    PassageTarget,
    fitted_surface,
    plan_passage,
)
from morphit_ros.cover.goals.targets import (
    HeightTarget,
    ParametricTarget,
    SurfaceTarget,
    examine_target,
    grid_parameters,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.triangle_tree import TriangleTree

POINTS = np.random.default_rng(0).uniform(-0.2, 0.2, (12, 3))
FORMULA = "(cos(t/8 + 10*x - 20*y) - cos(t/8))/40 + x*y*t"


def targets() -> dict[str, SurfaceTarget]:
    parameters = POINTS[:, :2] + 0.5
    return {
        "height": HeightTarget(FORMULA),
        "parametric": ParametricTarget(["u*cos(v + t)", "u*sin(v + t)", "u*v + t*u"], parameters),
        "passage": PassageTarget(HeightTarget("x**2 - y"), HeightTarget(FORMULA), 4.0, start=0.5),
    }


@pytest.mark.parametrize("name", ["height", "parametric", "passage"])
def test_rates_are_derivatives_by_time(name: str) -> None:
    target, step = targets()[name], 1e-6
    here = target.sample(POINTS, 2.0)
    ends = [target.sample(POINTS, 2.0 + sign * step) for sign in (1.0, -1.0)]
    np.testing.assert_allclose(here.normal_rates, (ends[0].normals - ends[1].normals) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(here.normals, axis=1), 1.0, atol=1e-12)


def test_parametric_velocity_is_that_of_the_point() -> None:
    target = targets()["parametric"]
    step = 1e-6
    ends = [POINTS - target.sample(POINTS, 1.0 + sign * step).offsets for sign in (1.0, -1.0)]
    np.testing.assert_allclose(target.sample(POINTS, 1.0).velocities, (ends[0] - ends[1]) / (2 * step), atol=1e-7)


def test_offset_of_a_plane_is_the_distance() -> None:
    sample = HeightTarget("x + 0.1").sample(np.array([[0.0, 0.0, 0.3]]), 0.0)
    np.testing.assert_allclose(sample.normals, [[-np.sqrt(0.5), 0.0, np.sqrt(0.5)]])
    np.testing.assert_allclose(sample.offsets, sample.normals * 0.2 * np.sqrt(0.5))
    assert sample.distances[0] == pytest.approx(0.2)


def test_phases_follow_each_other() -> None:
    target = HeightTarget([(10.0, "x"), (15.0, "y"), (np.inf, "1")])
    values = [target.heights([2.0], [3.0], time)[0, 0] for time in (0.0, 10.0, 10.01, 15.0, 99.0)]
    assert values == [2.0, 2.0, 3.0, 3.0, 1.0]
    with pytest.raises(InvalidInputError, match="increase"):
        HeightTarget([(10.0, "x"), (5.0, "y")])


def test_height_map_agrees_with_its_function() -> None:
    xs, ys = np.meshgrid(np.arange(-0.3, 0.31, 0.02), np.arange(-0.3, 0.31, 0.02))
    target = HeightMapTarget(0.1 * np.sin(5 * xs) * np.cos(4 * ys), (-0.3, -0.3), 0.02)
    exact = HeightTarget("0.1*sin(5*x)*cos(4*y)").sample(POINTS, 0.0)
    found = target.sample(POINTS, 0.0)
    np.testing.assert_allclose(found.normals, exact.normals, atol=2e-4)
    np.testing.assert_allclose(found.offsets, exact.offsets, atol=2e-5)
    # Outside, the border's slope goes on.
    outside = target.heights([0.5, 0.6], [0.0, 0.0], 0.0)
    assert outside[1, 0] - outside[0, 0] == pytest.approx(0.1 * outside[0, 1], rel=1e-9)
    with pytest.raises(InvalidInputError, match="4 x 4"):
        HeightMapTarget(np.zeros((3, 9)), (0.0, 0.0), 0.1)
    with pytest.raises(InvalidInputError, match="finite"):
        HeightMapTarget(np.full((5, 5), np.nan), (0.0, 0.0), 0.1)


def test_mesh_target_of_a_sphere() -> None:
    directions = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    sample = MeshTarget(sphere_mesh(0.5, segments=64)).sample(0.6 * directions, 0.0)
    np.testing.assert_allclose(sample.normals, directions, atol=0.02)
    np.testing.assert_allclose(sample.distances, 0.1, atol=2e-3)


def test_mesh_target_finds_the_closest_point_of_uneven_faces() -> None:
    # A large and a small triangle: the centre of the large one is far from its corner.
    vertices = np.array([[0, 0, 0], [10, 0, 0], [0, 10, 0], [0, 0, -1], [0.1, 0, -1], [0, 0.1, -1]], dtype=float)
    mesh = TriangleMesh(vertices, np.array([[0, 1, 2], [3, 4, 5]]))
    sample = MeshTarget(mesh).sample(np.array([[0.02, 0.02, -0.1], [-3.0, -4.0, 0.0], [20.0, 0.0, 0.0]]), 0.0)
    np.testing.assert_allclose(sample.distances, [0.1, 5.0, 10.0], atol=1e-12)


def closest_by_projection(point: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """The point of a triangle closest to another by projections onto plane, edges and corners: slow, plain."""
    a, b, c = triangle
    candidates = [a, b, c]
    for start, end in ((a, b), (b, c), (c, a)):
        share = (point - start) @ (end - start) / ((end - start) @ (end - start))
        if 0.0 <= share <= 1.0:
            candidates.append(start + share * (end - start))
    foot, *_ = np.linalg.lstsq(np.stack([b - a, c - a], axis=1), point - a, rcond=None)
    if foot.min() >= 0.0 and foot.sum() <= 1.0:
        candidates.append(a + foot[0] * (b - a) + foot[1] * (c - a))
    return min(candidates, key=lambda candidate: float(np.linalg.norm(candidate - point)))


@pytest.mark.parametrize("count", [1, 8, 9, 100])
def test_closest_points_of_a_mesh_are_those_of_brute_force(count: int) -> None:
    generator = np.random.default_rng(count)
    triangles = generator.uniform(-0.3, 0.3, (count, 1, 3)) + generator.normal(0.0, 0.1, (count, 3, 3))
    triangles[0, 2] = triangles[0, 1] + 1e-7  # a needle
    tree = TriangleTree(triangles)
    points = np.concatenate([generator.uniform(-0.5, 0.5, (12, 3)), triangles[0], triangles[:1].mean(axis=1)])
    expected = [min(np.linalg.norm(point - closest_by_projection(point, t)) for t in triangles) for point in points]
    for guesses in (None, generator.integers(0, count, len(points))):
        faces, weights = tree.query(points, guesses)
        assert weights.min() >= 0.0
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
        found = np.einsum("nc,ncx->nx", weights, triangles[faces])
        np.testing.assert_allclose(np.linalg.norm(found - points, axis=1), expected, atol=1e-9)


def test_a_mesh_sampled_again_elsewhere_is_as_if_sampled_first() -> None:
    mesh = sphere_mesh(0.5, segments=32)
    used = MeshTarget(mesh)
    for turn in range(3):
        positions = np.roll(POINTS, turn, axis=0) * (1.0 + turn)
        again, first = used.sample(positions, 0.0), MeshTarget(mesh).sample(positions, 0.0)
        np.testing.assert_allclose(again.distances, first.distances, atol=1e-12)
        np.testing.assert_allclose(again.normals, first.normals, atol=1e-9)


def test_passage_begins_and_ends_where_it_should() -> None:
    first, last = HeightTarget("0.2*x**2"), HeightTarget("0.1 - y")
    passage = PassageTarget(first, last, 3.0, start=1.0)
    for time, expected in ((0.0, first), (1.0, first), (4.0, last), (9.0, last)):
        np.testing.assert_allclose(
            passage.sample(POINTS, time).normals, expected.sample(POINTS, time).normals, atol=1e-12
        )


def test_planned_passage_is_as_slow_as_joints() -> None:
    cover, state = bowl(4, 4)
    positions = state.positions(cover)
    planned = plan_passage(positions, HeightTarget("x + 8*x*y"), rate_limit=0.1)
    before, after = planned.target.sample(positions, 0.0), planned.target.sample(positions, planned.duration)
    angles = np.arccos(np.clip((before.normals * after.normals).sum(axis=1), -1.0, 1.0))
    assert planned.duration == pytest.approx(angles.max() / 0.1)
    assert np.abs(fitted_surface(positions).sample(positions, 0.0).distances).max() < 1e-3


def test_examined_targets() -> None:
    cover, state = bowl(3, 3)
    positions = state.positions(cover)
    assert examine_target(cover, positions, HeightTarget("x*y")).finite
    with pytest.raises(InvalidInputError, match="not finite at node"):
        examine_target(cover, positions, HeightTarget("sqrt(0.01 - x)"))
    with pytest.raises(InvalidInputError, match="fixed node"):
        examine_target(cover, positions, HeightTarget("x*y + 0.1"))


def test_parameters_of_other_covers_are_refused() -> None:
    cover, state = bowl(3, 3)
    target = ParametricTarget(["u", "v", "0"], grid_parameters(cover)[:-1])
    with pytest.raises(InvalidInputError, match="parameters"):
        target.sample(state.positions(cover), 0.0)
    with pytest.raises(InvalidInputError, match="three"):
        ParametricTarget(["u", "v"], grid_parameters(cover))
