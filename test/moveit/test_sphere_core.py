"""The C++ geometry of morphit_moveit's sphere detectors, against NumPy, trimesh and brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import trimesh
from core_library import EYE, Array, Core, random_rotation

from morphit_ros.geometry.transforms import make_transform, transform_points

FREE, UNDECIDED, COLLIDING = 0, 1, 2


def cylinder_distance(points: Array, radius: float, length: float) -> Array:
    flat = np.column_stack([np.hypot(points[:, 0], points[:, 1]) - radius, np.abs(points[:, 2]) - length / 2])
    return np.minimum(flat.max(axis=1), 0.0) + np.linalg.norm(np.maximum(flat, 0.0), axis=1)


def box_distance(points: Array, sizes: Array) -> Array:
    excess = np.abs(points) - 0.5 * sizes
    return np.minimum(excess.max(axis=1), 0.0) + np.linalg.norm(np.maximum(excess, 0.0), axis=1)


def cone_distance(points: Array, radius: float, length: float) -> Array:
    """By dense points of the outline, which is exact to their spacing."""
    corners = np.array([[0.0, length / 2], [radius, -length / 2], [0.0, -length / 2]])
    share = np.linspace(0.0, 1.0, 4001)[:, None]
    outline = np.concatenate([a + share * (b - a) for a, b in pairwise(corners)])
    flat = np.column_stack([np.hypot(points[:, 0], points[:, 1]), points[:, 2]])
    away = np.array([np.linalg.norm(outline - point, axis=1).min() for point in flat])
    inside = (flat[:, 1] > -length / 2) & (flat[:, 0] < radius * (0.5 - flat[:, 1] / length))
    return np.where(inside, -away, away)


SHAPES = {
    "ball": (0, (0.3,), lambda p: np.linalg.norm(p, axis=1) - 0.3),
    "cuboid": (1, (0.4, 0.2, 0.7), lambda p: box_distance(p, np.array([0.4, 0.2, 0.7]))),
    "cylinder": (2, (0.2, 0.6), lambda p: cylinder_distance(p, 0.2, 0.6)),
    "flat cylinder": (2, (0.5, 0.01), lambda p: cylinder_distance(p, 0.5, 0.01)),
    "cone": (3, (0.25, 0.5), lambda p: cone_distance(p, 0.25, 0.5)),
    "slender cone": (3, (0.03, 0.5), lambda p: cone_distance(p, 0.03, 0.5)),
    "plane": (4, (0.6, 0.0, 0.8, 0.0), lambda p: np.abs(p @ [0.6, 0.0, 0.8])),
    "shifted plane": (4, (1.5, 0.0, 2.0, 0.5), lambda p: np.abs(p @ [0.6, 0.0, 0.8] + 0.2)),
}


def some_points(seed: int, count: int = 400) -> Array:
    """In the middle, around and inside, on the axes, and far away."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.6, 0.6, (count, 3))
    points[: count // 8, :2] = 0.0
    points[count // 8 : count // 4, 2] = 0.0
    points[0] = 0.0
    points[-5:] *= 1e3
    return points


def check_answers(answers: Array, points: Array, wanted: Array, accuracy: float) -> None:
    np.testing.assert_allclose(answers[:, 0], wanted, atol=accuracy)
    np.testing.assert_allclose(np.linalg.norm(answers[:, 4:7], axis=1), 1.0, atol=1e-9)
    # The nearest point lies that far, along the normal.
    scale = 1.0 + np.abs(wanted)
    np.testing.assert_allclose(
        (points - answers[:, 1:4]) / scale[:, None], (answers[:, :1] * answers[:, 4:7]) / scale[:, None], atol=1e-9
    )
    np.testing.assert_array_equal(answers[:, 9] > 0.0, answers[:, 0] < 0.0)


@pytest.mark.parametrize("name", SHAPES)
def test_solids_know_their_distance(geometry: Core, name: str) -> None:
    kind, sizes, reference = SHAPES[name]
    solid, points = geometry.solid(kind, *sizes), some_points(1)
    wanted = reference(points)
    check_answers(geometry.ask(solid, points), points, wanted, 2e-4 if "cone" in name else 1e-12 * 1e3)
    for beyond in (-0.05, 0.0, 0.05, 0.3):
        answers = geometry.ask(solid, points, beyond)
        exact = answers[:, 0]
        near = exact < beyond
        np.testing.assert_allclose(answers[near, 7], exact[near], atol=1e-9)
        assert (answers[~near, 7] >= beyond - 1e-12).all()
        np.testing.assert_array_equal(answers[:, 8] > 0.0, near)


def meshes() -> dict[str, trimesh.Trimesh]:
    ring = trimesh.creation.annulus(0.2, 0.4, 0.3, sections=16)
    return {
        "box": trimesh.creation.box((0.4, 0.3, 0.6)),
        "icosphere": trimesh.creation.icosphere(2, 0.35),
        "ring": ring,
        "spikes": spikes(),
        "fan": fan(),
        # Its rim are triangles 1e-5 times as high as they are long.
        "sheet": trimesh.creation.box((0.4, 0.3, 4e-6)),
    }


def spikes() -> trimesh.Trimesh:
    """A star with acute edges and corners, hollow and not, around the origin."""
    ball = trimesh.creation.icosphere(1, 1.0)
    radii = np.random.default_rng(4).uniform(0.1, 0.6, len(ball.vertices))
    return trimesh.Trimesh(ball.vertices * radii[:, None], ball.faces, process=False)


def fan() -> trimesh.Trimesh:
    """A narrow tent of three sides, one of them of many triangles: at the tip they say no more than the others."""
    front = np.column_stack([np.linspace(-0.3, 0.3, 31), np.full(31, -0.05), np.zeros(31)])
    vertices = np.concatenate([[[0.0, 0.0, 0.6], [0.0, 0.05, 0.0]], front])
    edges = [*pairwise(range(2, 33)), (32, 1), (1, 2)]
    sides, floor = [[a, b, 0] for a, b in edges], [[b, a, 1] for a, b in edges if 1 not in (a, b)]
    return trimesh.Trimesh(vertices, sides + floor, process=False)


@pytest.mark.parametrize("name", meshes())
def test_closed_meshes_have_an_inside(geometry: Core, name: str) -> None:
    mesh, points = meshes()[name], some_points(2)
    assert mesh.is_watertight and mesh.volume > 0.0
    # Most random points are nearest to faces: some around corners and edges, nearer than neighbours are.
    rng, tips = np.random.default_rng(12), mesh.vertices[:60]
    edges = mesh.vertices[mesh.edges_unique[:60]].mean(axis=1)
    points = np.concatenate([points, *(p + rng.uniform(-0.03, 0.03, p.shape) for p in (tips, tips, edges, edges))])
    solid = geometry.mesh(mesh)
    away = trimesh.proximity.closest_point(mesh, points)[1]
    wanted = np.where(mesh.contains(points), -away, away)
    answers = geometry.ask(solid, points)
    check_answers(answers, points, wanted, 1e-7)
    for beyond in (-0.05, 0.0):
        below = geometry.ask(solid, points, beyond)[:, 7]
        np.testing.assert_allclose(below[wanted < beyond], wanted[wanted < beyond], atol=1e-7)
        assert (below[wanted >= beyond] >= beyond - 1e-7).all()
    for beyond in (0.02, 0.2):
        answers = geometry.ask(solid, points, beyond)
        near = away < beyond
        np.testing.assert_allclose(answers[near, 7], wanted[near], atol=1e-7)
        assert (answers[~near, 7] >= beyond).all()
        # Of a mesh the surface is touched.
        np.testing.assert_array_equal(answers[:, 8] > 0.0, near)


def test_open_and_inverted_meshes_are_surfaces(geometry: Core) -> None:
    box, points = trimesh.creation.box((0.4, 0.3, 0.6)), some_points(3)
    away = trimesh.proximity.closest_point(box, points)[1]
    inverted = trimesh.Trimesh(box.vertices, box.faces[:, ::-1], process=False)
    answers = geometry.ask(geometry.mesh(inverted), points)
    np.testing.assert_allclose(answers[:, 0], away, atol=1e-7)
    assert not answers[:, 9].any()
    opened = trimesh.Trimesh(box.vertices, box.faces[1:], process=False)
    answers = geometry.ask(geometry.mesh(opened), points)
    np.testing.assert_allclose(answers[:, 0], trimesh.proximity.closest_point(opened, points)[1], atol=1e-7)
    # Corners that are repeated, as in STL files, are one.
    soup = trimesh.Trimesh(box.triangles.reshape(-1, 3), np.arange(3 * len(box.faces)).reshape(-1, 3), process=False)
    assert (geometry.ask(geometry.mesh(soup), np.zeros((1, 3)))[0, 0]) == pytest.approx(-0.15)


def test_a_triangle_without_area_does_not_open_a_mesh(geometry: Core) -> None:
    box, points = trimesh.creation.box((0.4, 0.3, 0.6)), some_points(3)
    corners = np.concatenate([box.vertices, box.vertices[:2].mean(axis=0, keepdims=True)])
    flat = [[0, 0, 1], [0, 1, 0], [3, 3, 3], [0, 8, 1]]
    solid = geometry.mesh(trimesh.Trimesh(corners, [*box.faces, *flat], process=False))
    check_answers(geometry.ask(solid, points), points, box_distance(points, np.array([0.4, 0.3, 0.6])), 1e-7)


def test_on_a_corner_the_normal_is_between_the_faces(geometry: Core) -> None:
    box = trimesh.creation.box((0.4, 0.3, 0.6))
    answers = geometry.ask(geometry.mesh(box), box.vertices)
    np.testing.assert_allclose(answers[:, 0], 0.0, atol=1e-15)
    np.testing.assert_allclose(answers[:, 4:7], np.sign(box.vertices) / np.sqrt(3.0), atol=1e-9)


@pytest.mark.parametrize(("kind", "sizes"), [(2, (0.3, 0.0)), (2, (0.0, 0.4)), (3, (0.3, 0.0)), (3, (0.0, 0.4)),
                                             (2, (0.0, 0.0)), (3, (0.0, 0.0))])  # fmt: skip
def test_flat_cylinders_and_cones_have_no_inside(geometry: Core, kind: int, sizes: tuple[float, float]) -> None:
    """Discs, lines and points, also seen along themselves."""
    points = some_points(5)
    answers = geometry.ask(geometry.solid(kind, *sizes), points)
    wanted = np.maximum(cylinder_distance(points, *sizes), 0.0)
    np.testing.assert_allclose(answers[:, 0], wanted, atol=1e-12 * 1e3)
    np.testing.assert_allclose(np.linalg.norm(answers[:, 4:7], axis=1), 1.0, atol=1e-9)


def test_meshes_that_cannot_be_used_are_refused(geometry: Core) -> None:
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match="vertex 1 of a mesh is not finite"):
        geometry.mesh(trimesh.Trimesh([corners[0], [np.nan, 0, 0], corners[2]], [[0, 1, 2]], process=False))
    with pytest.raises(ValueError, match="no triangle with an area"):
        geometry.mesh(trimesh.Trimesh(corners[[0, 1, 1]], [[0, 1, 2]], process=False))

    class Broken:
        vertices, faces = corners, np.array([[0, 1, 7]])

    with pytest.raises(ValueError, match="names vertex 7 of a mesh with 3"):
        geometry.mesh(Broken())  # type: ignore[arg-type]


def uncovered(spheres: Array, points: Array) -> float:
    return float((np.linalg.norm(points[:, None] - spheres[None, :, :3], axis=2) - spheres[:, 3]).min(axis=1).max())


@pytest.mark.parametrize("seed", range(4))
def test_growth_is_what_the_spheres_lack(geometry: Core, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pose = make_transform(random_rotation(rng), rng.uniform(-1, 1, 3))
    mesh = trimesh.creation.cylinder(0.1, 0.5, sections=24)
    spheres = np.column_stack([rng.uniform([-0.05, -0.05, -0.25], [0.05, 0.05, 0.25], (12, 3)), np.full(12, 0.1)])
    spheres = np.column_stack([transform_points(pose, spheres[:, :3]), spheres[:, 3], np.zeros(12)])
    for solid, points, tolerance in (
        (geometry.mesh(mesh), trimesh.sample.sample_surface(mesh, 60000, seed=seed)[0], 1e-4),
        (geometry.solid(2, 0.1, 0.5), trimesh.sample.volume_mesh(mesh, 60000), 5e-4),
    ):
        lacking = uncovered(spheres, transform_points(pose, np.concatenate([points, mesh.vertices])))
        growth = geometry.growth(spheres, solid, pose)
        assert max(lacking, 0.0) <= growth <= max(lacking, 0.0) + tolerance + 0.003
    assert geometry.growth(np.empty((0, 5)), solid, pose) == np.inf
    whole = np.array([[*pose[:3, 3], 0.4, 0.0]])
    assert geometry.growth(whole, solid, pose) <= 5e-4


@pytest.mark.parametrize("name", ["ball", "cuboid", "cylinder", "cone"])
def test_growth_covers_the_inside_of_solids_too(geometry: Core, name: str) -> None:
    """By spheres along the surface that leave the middle out, and by some anywhere."""
    rng = np.random.default_rng(9)
    solid = geometry.solid(SHAPES[name][0], *SHAPES[name][1])
    points = rng.uniform(-0.35, 0.35, (20000, 3))
    answers = geometry.ask(solid, points)
    within = np.concatenate([points[answers[:, 0] < 0.0], answers[:, 1:4]])
    for radius in (0.03, 0.08, 0.25, 0.6):
        pose = make_transform(random_rotation(rng), rng.uniform(-1, 1, 3))
        centers = answers[:200, 1:4] if radius < 0.1 else rng.uniform(-0.2, 0.2, (3, 3))
        spheres = np.array([[*center, radius, 0.0] for center in transform_points(pose, centers)])
        lacking = max(uncovered(spheres, transform_points(pose, within)), 0.0)
        # The sampled points are so dense.
        assert lacking <= geometry.growth(spheres, solid, pose) <= lacking + 5e-4 + 0.02


@pytest.mark.parametrize("name", ["ball", "cone", "slender cone"])
def test_growth_reaches_what_lies_farthest(geometry: Core, name: str) -> None:
    """Along the axis: the tip of a cone, which is a corner of each cell that it is in, and the pole of a ball."""
    kind, sizes, _ = SHAPES[name]
    tip = 0.5 * sizes[-1] if kind == 3 else sizes[0]
    rng = np.random.default_rng(14)
    for distance in (0.4, 0.5, 1.0):
        # The ball's or cone's frame lies elsewhere; all but the tip is nearer to the one sphere.
        pose = make_transform(random_rotation(rng), rng.uniform(-1, 1, 3))
        center = transform_points(pose, np.array([[0.0, 0.0, tip - distance]]))[0]
        growth = geometry.growth(np.array([[*center, 0.25, 0.0]]), geometry.solid(kind, *sizes), pose)
        assert distance - 0.25 <= growth <= distance - 0.25 + 5e-4 + 1e-9
    away = make_transform(np.eye(3), [1.0, 0.0, 0.0])
    assert geometry.growth(np.array([[0.0, 0.0, 0.0, 0.5, 0.0]]), geometry.solid(kind, *sizes), away) > 0.45


def test_corners_in_different_spheres_do_not_cover_a_triangle(geometry: Core) -> None:
    solid = geometry.mesh(trimesh.Trimesh([[-0.3, 0, 0], [0.3, 0, 0], [0, 0.1, 0]], [[0, 1, 2]], process=False))
    spheres = np.array([[-0.3, 0, 0, 0.1, 0], [0.3, 0, 0, 0.1, 0], [0, 0.1, 0, 0.02, 0]])
    # Least covered is the point of the long edge that is as far from the third sphere as from another.
    assert 0.08 <= geometry.growth(spheres, solid) <= 0.12


@pytest.mark.parametrize("count", [1, 5, 9, 16, 60])
@pytest.mark.parametrize("name", ["ball", "cuboid", "cylinder", "cone", "slender cone", "mesh"])
def test_plain_covers_contain_the_shape(geometry: Core, name: str, count: int) -> None:
    rng = np.random.default_rng(count)
    pose = make_transform(random_rotation(rng), rng.uniform(-1, 1, 3))
    mesh = meshes()["ring"]
    solid = geometry.mesh(mesh) if name == "mesh" else geometry.solid(SHAPES[name][0], *SHAPES[name][1])
    points = rng.uniform(-0.5, 0.5, (20000, 3))
    answers = geometry.ask(solid, points)
    # Those within, and the nearest of the surface.
    points = np.concatenate([points[answers[:, 0] <= 0.0], answers[:, 1:4]])
    if name == "mesh":
        points = trimesh.sample.sample_surface(mesh, 5000, seed=1)[0]
    cover = geometry.cover(solid, count, pose)
    assert 1 <= len(cover) <= count
    assert uncovered(cover, transform_points(pose, points)) <= 1e-9
    # The balls within are within, and no larger than the spheres.
    depth = -geometry.ask(solid, transform_points(np.linalg.inv(pose), cover[:, :3]))[:, 0]
    np.testing.assert_allclose(cover[:, 4], np.clip(depth, 0.0, cover[:, 3]), atol=1e-9)


def random_body(rng: np.random.Generator) -> Array:
    count = int(rng.integers(1, 30))
    radii = rng.uniform(0.02, 0.1, count)
    # Of some no ball within is known.
    inner = radii * np.maximum(rng.uniform(-0.5, 1.0, count), 0.0)
    return np.column_stack([rng.uniform(-0.2, 0.2, (count, 3)), radii, inner])


def check_meeting(meeting: Array | None, gap: float, limit: float) -> None:
    """There is a meeting where the least gap is below the limit; it has that distance, along its normal."""
    assert (meeting is not None) == (gap < limit)
    if meeting is not None:
        assert meeting[0] == pytest.approx(gap, abs=1e-9)
        np.testing.assert_allclose(meeting[4:7] - meeting[1:4], meeting[0] * meeting[7:10], atol=1e-9)


@pytest.mark.parametrize("name", [*SHAPES, "ring", "icosphere", "spikes"])
@pytest.mark.parametrize("decide", [True, False])
def test_verdicts_on_solids_are_those_of_all_spheres(geometry: Core, name: str, decide: bool) -> None:
    rng = np.random.default_rng(7)
    solid = geometry.mesh(meshes()[name]) if name in meshes() else geometry.solid(SHAPES[name][0], *SHAPES[name][1])
    is_mesh, told = name in meshes(), set()
    for _ in range(300):
        spheres, growth = random_body(rng), float(rng.choice([0.0, 0.03]))
        at = make_transform(random_rotation(rng), rng.uniform(-0.45, 0.45, 3))
        pose = make_transform(random_rotation(rng), rng.uniform(-0.1, 0.1, 3))
        distances = geometry.ask(solid, transform_points(np.linalg.inv(pose) @ at, spheres[:, :3]))[:, 0]
        gaps = distances - spheres[:, 3] - growth
        surface = np.abs(distances) if is_mesh else distances
        limit, trust = float(rng.choice([np.inf, 0.05, 0.0, -0.02])), bool(rng.random() < 0.7)
        verdict, meeting, touching = geometry.against_solid(spheres, at, solid, pose, growth, decide, limit, trust)
        if decide:
            assert verdict == (UNDECIDED if gaps.min() < 0.0 else FREE)
        else:
            touched = (surface < spheres[:, 3] + growth).any()
            # Where no ball is known to be within the body, the middle of a sphere says nothing of the body.
            sure = trust and ((surface < spheres[:, 4]) & (spheres[:, 4] > 0.0)).any()
            assert verdict == (COLLIDING if sure else UNDECIDED if touched else FREE)
        told.add(verdict)
        assert touching == (gaps < 0.0).sum()
        check_meeting(meeting, gaps.min(), limit)
    assert told == ({FREE, UNDECIDED} if decide else {FREE, UNDECIDED, COLLIDING})


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_part_that_a_mesh_has_swallowed_is_seen_beside_one_that_it_has_not(geometry: Core, order: list[int]) -> None:
    """The surface passes between two spheres and touches neither."""
    solid = geometry.mesh(trimesh.creation.box((0.4, 0.3, 0.6)))
    spheres = np.array([[0.177, 0, 0, 0.02, 0.01], [0.225, 0, 0, 0.02, 0.01]])[order]
    verdict, meeting, touching = geometry.against_solid(spheres, EYE, solid, EYE, 0.0, True, 0.0)
    assert verdict == UNDECIDED and touching == 1
    assert meeting is not None and meeting[0] == pytest.approx(-0.023 - 0.02)
    assert geometry.against_solid(spheres, EYE, solid, EYE, 0.0, False, 0.0)[0] == FREE


def test_verdicts_on_bodies_are_those_of_all_pairs(geometry: Core) -> None:
    rng = np.random.default_rng(8)
    told = set()
    for _ in range(1500):
        a, b, growth = random_body(rng), random_body(rng), float(rng.choice([0.0, 0.02]))
        at_a = make_transform(random_rotation(rng), rng.uniform(-0.3, 0.3, 3))
        at_b = make_transform(random_rotation(rng), rng.uniform(-0.3, 0.3, 3))
        places = transform_points(at_a, a[:, :3]), transform_points(at_b, b[:, :3])
        between = np.linalg.norm(places[0][:, None] - places[1][None], axis=2)
        gaps = between - a[:, None, 3] - b[None, :, 3] - 2.0 * growth
        limit = float(rng.choice([np.inf, 0.05, 0.0]))
        trust, matters = bool(rng.random() < 0.7), bool(rng.random() < 0.8)
        verdict, meeting, touching = geometry.against_body(a, at_a, b, at_b, growth, limit, trust, matters)
        known = (a[:, None, 4] > 0.0) & (b[None, :, 4] > 0.0)
        sure = trust and (known & (between < a[:, None, 4] + b[None, :, 4])).any()
        touched = matters and gaps.min() < 0.0
        assert verdict == (FREE if not touched else COLLIDING if sure else UNDECIDED)
        told.add(verdict)
        assert touching == (gaps < 0.0).sum()
        check_meeting(meeting, gaps.min(), limit)
    assert told == {FREE, UNDECIDED, COLLIDING}


def test_bodies_side_by_side_touch_as_they_grow(geometry: Core) -> None:
    """Where only a sphere at the end comes near the other body, and only by the growth of both."""
    rng = np.random.default_rng(10)
    row = np.array([[0.1 * k, 0.0, 0.0, 0.05, 0.0] for k in range(10)])
    for _ in range(50):
        at = make_transform(random_rotation(rng), rng.uniform(-1, 1, 3))
        beside = at @ make_transform(np.eye(3), [0.0, 0.0, 0.13])
        for a, b in ((row, row[:1]), (row[:1], row), (row, row)):
            assert geometry.against_body(a, at, b, beside, 0.01, np.inf)[0] == FREE
            assert geometry.against_body(a, at, b, beside, 0.016, np.inf)[0] == UNDECIDED


def check_deepest(found: Array, gaps: Array, wanted: int) -> None:
    """As many of the deepest as were wanted, the deepest first, each along its normal."""
    np.testing.assert_allclose(found[:, 0], np.sort(gaps[gaps < 0.0])[:wanted], atol=1e-9)
    np.testing.assert_allclose(found[:, 4:7] - found[:, 1:4], found[:, :1] * found[:, 7:10], atol=1e-9)


def test_the_deepest_meetings_are_told(geometry: Core) -> None:
    rng = np.random.default_rng(11)
    solid, cut = geometry.solid(1, 0.4, 0.2, 0.7), 0
    for _ in range(100):
        a, b, growth, wanted = random_body(rng), random_body(rng), 0.01, int(rng.integers(1, 6))
        at_a, at_b = (make_transform(random_rotation(rng), rng.uniform(-0.2, 0.2, 3)) for _ in range(2))
        places = transform_points(at_a, a[:, :3]), transform_points(at_b, b[:, :3])
        gaps = box_distance(transform_points(np.linalg.inv(at_b), places[0]), np.array([0.4, 0.2, 0.7]))
        gaps -= a[:, 3] + growth
        check_deepest(geometry.deepest_in_solid(a, at_a, solid, at_b, growth, wanted), gaps, wanted)
        cut += (gaps < 0.0).sum() > wanted
        gaps = np.linalg.norm(places[0][:, None] - places[1][None], axis=2) - a[:, None, 3] - b[None, :, 3] - 2 * growth
        check_deepest(geometry.deepest_in_body(a, at_a, b, at_b, growth, wanted), gaps.ravel(), wanted)
        cut += (gaps < 0.0).sum() > wanted
    assert cut > 50


def test_a_ball_touches_a_body_where_it_touches_one_of_its_spheres(geometry: Core) -> None:
    rng = np.random.default_rng(12)
    touched = 0
    for _ in range(500):
        spheres, growth, radius = random_body(rng), float(rng.choice([0.0, 0.03])), float(rng.uniform(0.0, 0.2))
        at, center = make_transform(random_rotation(rng), rng.uniform(-0.3, 0.3, 3)), rng.uniform(-0.4, 0.4, 3)
        away = np.linalg.norm(transform_points(at, spheres[:, :3]) - center, axis=1) - spheres[:, 3] - growth
        assert geometry.touches(spheres, at, growth, center, radius) == (away.min() < radius)
        touched += away.min() < radius
    assert 100 < touched < 400
