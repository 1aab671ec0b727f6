"""The C++ superovoids of morphit_moveit, against the Python ones, whose distances are certified."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from core_library import EYE, Array, Core, random_rotation
from scipy.spatial.transform import Rotation

from morphit_ros.geometry.transforms import make_transform, transform_points
from morphit_ros.superovoid import Superovoid, min_distance
from morphit_ros.superovoid.distances.primitives import Box, ConvexMesh, Cylinder, Sphere
from morphit_ros.superovoid.distances.support import may_be_dented, support_point

# The core's distances are less than this too small [m].
TOLERANCE = 1e-6


def draw(rng: np.random.Generator, kind: int) -> Array:
    """Seven numbers: an untapered shape, one of equal tapering, a tapered ellipsoid, or any."""
    axes, squareness, tapering = rng.uniform(0.03, 0.3, 3), rng.uniform(0.1, 1.9, 2), rng.uniform(-0.5, 0.5, 2)
    if kind == 0:
        tapering[:] = 0.0
    elif kind == 1:
        tapering[1] = tapering[0]
    elif kind == 2:
        squareness[:] = 1.0
    return np.concatenate([axes, squareness, tapering])


def pose(rng: np.random.Generator, spread: float) -> Array:
    return make_transform(random_rotation(rng), rng.normal(size=3) * spread)


def row(numbers: Array, at: Array = EYE) -> Array:
    return np.concatenate([numbers, at.ravel()])[None]


def check_meeting(meeting: Array) -> None:
    distance, first, second, normal = meeting[0], meeting[1:4], meeting[4:7], meeting[7:]
    assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-9)
    assert normal @ (second - first) == pytest.approx(distance, abs=2 * TOLERANCE)


@pytest.mark.parametrize("kind", range(4))
def test_support_points_are_those_of_python(geometry: Core, kind: int) -> None:
    rng = np.random.default_rng(kind)
    dented = 0
    for _ in range(60):
        numbers = draw(rng, kind)
        directions = rng.normal(size=(100, 3)) * 10.0 ** rng.uniform(-6, 6, (100, 1))
        directions[:12] = np.concatenate([np.eye(3), -np.eye(3), [[1, 1, 0], [0, 1, -1], [1, 0, 1], [0, 1e-9, 1],
                                                                  [1e-9, 0, -1], [1, 1, 1e-12]]])  # fmt: skip
        points, _ = geometry.superovoid(numbers, directions, directions)
        unit = directions / np.linalg.norm(directions, axis=1)[:, None]
        wanted = [support_point(numbers, *direction)[0] for direction in unit]
        np.testing.assert_allclose((points * unit).sum(axis=1), wanted, rtol=0.0, atol=1e-9)
        # In directions where several points are as far, any of the hull will do.
        assert (Superovoid.from_parameters(numbers).levels(points) <= 1.0 + 1e-7).all()
        dented += may_be_dented(numbers)
    assert kind in (0, 2) or dented >= 5


def test_peaks_beside_a_dent_are_all_seen(geometry: Core) -> None:
    """Sections with two peaks of nearly the same height, found among random pairs."""
    cases = [
        ([0.1200163, 0.21632639, 0.10505815, 1.62238531, 1.62166483, 0.4243751, 0.44822984],
         [0.55566317, -0.33682333, -0.76012399]),
        ([0.18165126732880316, 0.2212502506883335, 0.07997664166415103, 1.722667847666196, 0.8402362142935546,
          0.3611731515682991, -0.24762939345310275], [-0.690375089280313, -0.6836175451546121, 0.23674730844928818]),
        ([0.06894991984323826, 0.18075078750435938, 0.2723990963866649, 1.8662900881930298, 1.4480116794295497,
          -0.4586383848415422, 0.3050309158134543], [-0.9207744839863929, -0.3793682609528439, -0.09085192469731704]),
        ([0.053668308510463406, 0.2119894375913759, 0.27177813850495347, 0.5687613808726568, 0.6135092912618394,
          0.28579787726879646, -0.4487454582507666], [0.8425831166149939, 0.5204578262336319, 0.13848228300951082]),
    ]  # fmt: skip
    for numbers, direction in cases:
        points, _ = geometry.superovoid(np.array(numbers), np.array([direction]), np.array([direction]))
        wanted = support_point(np.array(numbers), *direction)[0]
        assert points[0] @ direction == pytest.approx(wanted, abs=1e-9)


def test_containment_is_that_of_python(geometry: Core) -> None:
    rng = np.random.default_rng(5)
    for kind in (0, 1, 2, 3) * 5:
        numbers = draw(rng, kind)
        points = rng.uniform(-0.4, 0.4, (300, 3))
        shape = Superovoid.from_parameters(numbers)
        _, inside = geometry.superovoid(numbers, points, points)
        levels = shape.levels(points)
        clear = (np.abs(levels - 1.0) > 1e-9) & (np.abs(points[:, 2]) <= numbers[2])
        np.testing.assert_array_equal(inside[clear], levels[clear] < 1.0)
        assert not inside[np.abs(points[:, 2]) > numbers[2]].any()


@pytest.mark.parametrize(
    ("index", "value", "words"),
    [(0, 0.0, "semi-axis"), (2, np.nan, "semi-axis"), (3, 0.05, "squareness"), (4, 2.0, "squareness"),
     (5, 0.6, "tapering"), (6, np.inf, "tapering")],
)  # fmt: skip
def test_numbers_out_of_bounds_are_refused(geometry: Core, index: int, value: float, words: str) -> None:
    numbers = np.array([0.1, 0.1, 0.1, 1.0, 1.0, 0.0, 0.0])
    numbers[index] = value
    with pytest.raises(ValueError, match=words):
        geometry.superovoid(numbers, np.eye(3), np.eye(3))


@pytest.mark.parametrize("other", ["superovoid", "ball", "cuboid", "cylinder", "hull"])
@pytest.mark.parametrize("spread", [0.05, 0.3])
def test_distances_are_those_of_python(geometry: Core, other: str, spread: float) -> None:
    """Far apart, and so near that most pairs overlap."""
    rng = np.random.default_rng(7)
    overlapping = 0
    for index in range(60):
        numbers, at_a, at_b = draw(rng, index % 4), pose(rng, spread), pose(rng, spread)
        first = Superovoid.from_parameters(numbers)
        if other == "superovoid":
            others = draw(rng, (index // 4) % 4)
            second = Superovoid.from_parameters(others)
            meeting, bound = geometry.superovoids_and_superovoids(row(numbers), at_a, row(others), at_b, 0.0)
        else:
            sizes = rng.uniform(0.05, 0.4, 3)
            if other == "ball":
                second, solid = Sphere(sizes[0]), geometry.solid(0, sizes[0])
            elif other == "cuboid":
                second, solid = Box(tuple(sizes)), geometry.solid(1, *sizes)
            elif other == "cylinder":
                second, solid = Cylinder(sizes[0], sizes[1]), geometry.solid(2, sizes[0], sizes[1])
            else:
                # A hull's surface counts alone, and what is wholly within it as deep as its middle: apart is exact.
                hull = trimesh.convex.convex_hull(rng.normal(size=(20, 3)) * 0.15)
                second, solid = ConvexMesh(hull.vertices), geometry.mesh(hull)
            meeting, bound = geometry.superovoids_and_solid(row(numbers), at_a, 0.0, solid, at_b)
        wanted = min_distance(first, at_a, second, at_b)
        assert meeting is not None
        check_meeting(meeting)
        overlapping += wanted.distance < 0.0
        if other == "hull" and wanted.distance < 0.0:
            assert meeting[0] < 0.0
            continue
        assert wanted.lower_bound - 1.1 * TOLERANCE <= meeting[0] <= wanted.upper_bound + 1e-8
        assert bound <= max(meeting[0], 0.0) + 1e-9 or bound <= 0.0
        if wanted.distance > 1e-3:
            # Directions to two points of a ball of the tolerance differ by the root of it.
            np.testing.assert_allclose(
                meeting[7:], wanted.normal, atol=2.0 * np.sqrt(2.0 * TOLERANCE / wanted.distance)
            )
    assert overlapping > 10 if spread < 0.1 else overlapping < 30


@pytest.mark.parametrize("other", ["superovoid", "cuboid", "cylinder"])
def test_placements_in_a_plane_of_symmetry_are_those_of_python(geometry: Core, other: str) -> None:
    """As of a robot at rest: all support points lie in the plane, and four of them are flat."""
    rng = np.random.default_rng(18)
    apart = 0
    for index in range(80):
        numbers, sizes = draw(rng, index % 4), rng.uniform(0.05, 0.4, 3)
        places = []
        for _ in range(2):
            angle = float(rng.choice([0.0, rng.uniform(-np.pi, np.pi)]))
            turn = Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix()
            places.append(make_transform(turn, rng.uniform(-0.4, 0.4, 3) * [1.0, 0.0, 1.0]))
        if other == "superovoid":
            others = draw(rng, (index // 4) % 4)
            shape = Superovoid.from_parameters(others)
            meeting, _ = geometry.superovoids_and_superovoids(row(numbers), places[0], row(others), places[1], 0.0)
        else:
            solid = geometry.solid(1, *sizes) if other == "cuboid" else geometry.solid(2, sizes[0], sizes[1])
            shape = Box(tuple(sizes)) if other == "cuboid" else Cylinder(sizes[0], sizes[1])
            meeting, _ = geometry.superovoids_and_solid(row(numbers), places[0], 0.0, solid, places[1])
        wanted = min_distance(Superovoid.from_parameters(numbers), places[0], shape, places[1])
        check_meeting(meeting)
        assert wanted.lower_bound - 1.1 * TOLERANCE <= meeting[0] <= wanted.upper_bound + 1e-8
        apart += wanted.distance > 0.0
    assert 15 < apart < 65


def test_distances_to_cones_are_those_of_fine_pyramids(geometry: Core) -> None:
    rng = np.random.default_rng(17)
    apart = 0
    for index in range(60):
        numbers, at, where = draw(rng, index % 4), pose(rng, 0.25), pose(rng, 0.25)
        radius, length = rng.uniform(0.05, 0.4, 2)
        angles = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
        rim = np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.full(400, -0.5 * length)])
        pyramid = ConvexMesh([*rim, [0.0, 0.0, 0.5 * length]])
        meeting, _ = geometry.superovoids_and_solid(row(numbers), at, 0.0, geometry.solid(3, radius, length), where)
        wanted = min_distance(Superovoid.from_parameters(numbers), at, pyramid, where)
        check_meeting(meeting)
        assert wanted.lower_bound - 2e-5 <= meeting[0] <= wanted.upper_bound + 1e-8 or wanted.distance < 0.0
        assert wanted.distance >= 0.0 or meeting[0] < 0.0
        apart += wanted.distance > 0.0
    assert apart > 20


@pytest.mark.parametrize("kind", [2, 3])
def test_on_the_axis_of_a_cylinder_or_cone_distances_are_the_gap(geometry: Core, kind: int) -> None:
    """Where no direction across is better than another."""
    solid = geometry.solid(kind, 0.2, 0.5)
    for numbers in ([0.1, 0.2, 0.3, 1.0, 1.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.6, 1.4, 0.2, -0.3]):
        for height, gap in ((1.0, 0.45), (-1.0, 0.45), (0.5, -0.05), (-0.5, -0.05)):
            at = make_transform(np.eye(3), [0.0, 0.0, height])
            meeting, _ = geometry.superovoids_and_solid(row(np.array(numbers)), at, 0.0, solid, EYE)
            check_meeting(meeting)
            # A tip in the shape may be drawn out by a shorter way aside.
            assert meeting[0] == pytest.approx(gap, abs=2 * TOLERANCE) or (gap < 0.0 and 0.0 > meeting[0] > gap)


def test_unions_take_the_nearest_of_all_pairs_and_growth_is_a_margin(geometry: Core) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        pieces = [(draw(rng, k), pose(rng, 0.1)) for k in range(3)]
        rows = np.concatenate([row(*piece) for piece in pieces])
        at, where = pose(rng, 0.3), pose(rng, 0.6)
        solid = geometry.solid(1, 0.2, 0.1, 0.3)
        single = [geometry.superovoids_and_solid(row(*piece), at, 0.0, solid, where)[0][0] for piece in pieces]
        meeting, bound = geometry.superovoids_and_solid(rows, at, 0.0, solid, where)
        assert meeting[0] == pytest.approx(min(single), abs=2 * TOLERANCE)
        grown, grown_bound = geometry.superovoids_and_solid(rows, at, 0.02, solid, where)
        check_meeting(grown)
        assert grown[0] == pytest.approx(meeting[0] - 0.02, abs=2 * TOLERANCE)
        assert grown_bound == pytest.approx(bound - 0.02)
        assert bound <= 0.0 or bound <= meeting[0] + 1e-9
        # A limit that is met finds nothing; one that is not, the same.
        assert geometry.superovoids_and_solid(rows, at, 0.0, solid, where, meeting[0] - 1e-5)[0] is None
        again, _ = geometry.superovoids_and_solid(rows, at, 0.0, solid, where, meeting[0] + 1e-5)
        np.testing.assert_allclose(again[0], meeting[0], atol=TOLERANCE)


def test_of_two_unions_each_pair_counts(geometry: Core) -> None:
    rng = np.random.default_rng(16)
    for _ in range(40):
        pieces = [[(draw(rng, k), pose(rng, 0.2)) for k in range(3)] for _ in range(2)]
        first, second = (np.concatenate([row(*piece) for piece in each]) for each in pieces)
        at, where = pose(rng, 0.3), pose(rng, 0.3)
        single = [
            geometry.superovoids_and_superovoids(row(*a), at, row(*b), where, 0.01)[0][0]
            for a in pieces[0] for b in pieces[1]
        ]  # fmt: skip
        meeting, bound = geometry.superovoids_and_superovoids(first, at, second, where, 0.01)
        check_meeting(meeting)
        assert meeting[0] == pytest.approx(min(single), abs=2 * TOLERANCE)
        assert bound <= 0.0 or bound <= meeting[0] + 1e-9


@pytest.mark.parametrize("gap", [1e-5, 1e-4, 1e-3, -1e-4])
def test_narrow_gaps_are_told(geometry: Core, gap: float) -> None:
    rng = np.random.default_rng(20)
    for index in range(40):
        numbers, others = draw(rng, index % 4), draw(rng, (index // 4) % 4)
        at, where = pose(rng, 0.3), pose(rng, 0.3)
        meeting, _ = geometry.superovoids_and_superovoids(row(numbers), at, row(others), where, 0.0)
        where[:3, 3] += (gap - meeting[0]) * meeting[7:]
        near, _ = geometry.superovoids_and_superovoids(row(numbers), at, row(others), where, 0.0)
        check_meeting(near)
        # Out of a deep penetration they move the shortest way; a shallow one that is left may have a shorter one.
        assert near[0] == pytest.approx(gap, abs=3 * TOLERANCE) or (gap < 0.0 and gap < near[0] < 0.0)


def test_of_a_mesh_each_triangle_counts_and_not_its_hull(geometry: Core) -> None:
    """In a tray, whose hull holds the shape: the nearest triangle, by all of them."""
    rng = np.random.default_rng(11)
    outer, inner = trimesh.creation.box((0.6, 0.5, 0.2)), trimesh.creation.box((0.56, 0.46, 0.2))
    tray = trimesh.boolean.difference([outer, inner.apply_translation((0.0, 0.0, 0.02))], engine="manifold")
    solid = geometry.mesh(tray)
    checked = 0
    for kind in (0, 1, 2, 3) * 8:
        numbers, where = draw(rng, kind), pose(rng, 0.3)
        numbers[:3] *= 0.2
        at = where @ make_transform(random_rotation(rng), rng.uniform([-0.2, -0.15, -0.02], [0.2, 0.15, 0.12]))
        meeting, _ = geometry.superovoids_and_solid(row(numbers), at, 0.0, solid, where)
        shape = Superovoid.from_parameters(numbers)
        hull = min_distance(shape, at, ConvexMesh(tray.vertices), where).distance
        # As thin tetrahedra: Python has no flat shapes.
        tips = tray.triangles_center + 1e-8 * tray.face_normals
        solids = [ConvexMesh([*face, tip]) for face, tip in zip(tray.triangles, tips, strict=True)]
        faces = [min_distance(shape, at, face, where).distance for face in solids]
        if min(faces) <= 0.0:
            assert meeting[0] < TOLERANCE
            continue
        assert meeting[0] == pytest.approx(min(faces), abs=2 * TOLERANCE)
        check_meeting(meeting)
        checked += hull < 0.0
    assert checked > 10


def test_what_a_closed_mesh_has_swallowed_is_inside(geometry: Core) -> None:
    ball = trimesh.creation.icosphere(3, 0.5)
    numbers = np.array([0.05, 0.04, 0.06, 1.0, 1.0, 0.0, 0.0])
    at = make_transform(np.eye(3), [0.2, 0.0, 0.0])
    rng = np.random.default_rng(19)
    for where in (EYE, pose(rng, 1.0), pose(rng, 1.0)):
        meeting, _ = geometry.superovoids_and_solid(row(numbers), where @ at, 0.0, geometry.mesh(ball), where)
        check_meeting(meeting)
        assert meeting[0] == pytest.approx(-0.3, abs=0.01)
        assert meeting[7:] @ where[:3, :3] @ [-1.0, 0.0, 0.0] == pytest.approx(1.0, abs=0.05)
        np.testing.assert_allclose(meeting[1:4], (where @ at)[:3, 3], atol=1e-9)
        np.testing.assert_allclose(meeting[4:7], where[:3, :3] @ [0.5, 0.0, 0.0] + where[:3, 3], atol=0.1)
    # Turned inside out a mesh has no inside.
    shell, _ = geometry.superovoids_and_solid(row(numbers), at, 0.0, geometry.mesh(ball.copy().invert() or ball), EYE)
    assert shell is not None


def test_extreme_placements_have_answers(geometry: Core) -> None:
    """The same place, touching, and very far away."""
    numbers = np.array([0.1, 0.2, 0.3, 0.5, 1.5, 0.2, -0.3])
    same, _ = geometry.superovoids_and_superovoids(row(numbers), EYE, row(numbers), EYE, 0.0)
    check_meeting(same)
    assert same[0] == pytest.approx(min_distance(*(Superovoid.from_parameters(numbers), EYE) * 2).distance, abs=1e-5)
    ball = np.array([0.1, 0.1, 0.1, 1.0, 1.0, 0.0, 0.0])
    beside = make_transform(np.eye(3), [0.2, 0.0, 0.0])
    touching, _ = geometry.superovoids_and_superovoids(row(ball), EYE, row(ball), beside, 0.0)
    assert touching[0] == pytest.approx(0.0, abs=2 * TOLERANCE)
    far = make_transform(np.eye(3), [1e4, 0.0, 0.0])
    away, _ = geometry.superovoids_and_superovoids(row(ball), EYE, row(ball), far, 0.0)
    assert away[0] == pytest.approx(1e4 - 0.2, abs=1e-3)
    assert geometry.superovoids_and_superovoids(row(ball), EYE, row(ball), far, 0.0, limit=1.0)[0] is None


def test_corners_in_different_superovoids_do_not_cover_a_triangle(geometry: Core) -> None:
    solid = geometry.mesh(trimesh.Trimesh([[-0.3, 0, 0], [0.3, 0, 0], [0, 0.1, 0]], [[0, 1, 2]], process=False))
    balls = [(0.1, [-0.3, 0, 0]), (0.1, [0.3, 0, 0]), (0.02, [0, 0.1, 0])]
    rows = [row(np.array([r, r, r, 1, 1, 0, 0]), make_transform(np.eye(3), c)) for r, c in balls]
    # Least covered is the point of the long edge that is as far from the third as from another.
    assert 0.08 <= geometry.superovoids_growth(np.concatenate(rows), solid) <= 0.12


@pytest.mark.parametrize("name", ["mesh", "cylinder", "cuboid", "ball"])
def test_grown_superovoids_contain_the_shape_and_not_much_more_was_needed(geometry: Core, name: str) -> None:
    rng = np.random.default_rng(13)
    for index in range(4):
        rows = np.concatenate([row(draw(rng, k), pose(rng, 0.05)) for k in range(1 + index % 3)])
        rows[:, :3] = np.clip(rows[:, :3], 0.08, 0.2)
        sizes, where = rng.uniform(0.1, 0.25, 3), pose(rng, 0.03)
        if name == "mesh":
            mesh = trimesh.convex.convex_hull(rng.normal(size=(30, 3)) * 0.1)
            solid = geometry.mesh(mesh)
        elif name == "cylinder":
            mesh, solid = trimesh.creation.cylinder(sizes[0], sizes[1]), geometry.solid(2, sizes[0], sizes[1])
        elif name == "cuboid":
            mesh, solid = trimesh.creation.box(sizes), geometry.solid(1, *sizes)
        else:
            mesh, solid = trimesh.creation.icosphere(3, sizes[0]), geometry.solid(0, sizes[0])
        growth = geometry.superovoids_growth(rows, solid, where)
        points = transform_points(where, mesh.subdivide_to_size(0.02).vertices)
        away = np.min(
            [
                [max(min_distance(Superovoid.from_parameters(one[:7]), one[7:].reshape(4, 4), Sphere(1e-9),
                                  make_transform(np.eye(3), point)).distance, 0.0) for point in points]
                for one in rows
            ], axis=0,
        )  # fmt: skip
        assert away.max() <= growth + 1e-8
        # No point of the surface is farther from one of these than two thirds of an edge.
        assert growth <= away.max() + 0.014
    assert geometry.superovoids_growth(np.empty((0, 23)), geometry.solid(1, 0.1, 0.1, 0.1)) == np.inf
