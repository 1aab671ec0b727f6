"""Where an object can be put: standing as it stood, inside of the region, clear of what is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.held import HeldGrasp, Surroundings
from morphit_ros.execution.obstacles import object_obstacle
from morphit_ros.execution.places import PlaceRegion, balanced, free_places, standing_on_table
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
    rotation_angle,
    transform_points,
)
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

# Of a block that was grasped from above and aside [m].
SIZE = np.array([0.04, 0.08, 0.12])
T_BASE_GRASP = make_transform(matrix_from_rpy((2.9, 0.2, 0.7)), (0.5, 0.1, 0.09))


def block(seed: int = 0, gap: float = 0.004) -> Array:
    """Points (N, 3) on a block that stands on the table at its own heading, its underside not seen."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.5, 0.5, (4000, 3)) * SIZE
    side = rng.integers(0, 3, len(points))
    rows = np.arange(len(points))
    points[rows, side] = np.sign(points[rows, side]) * 0.5 * SIZE[side]
    corners = np.stack(np.meshgrid(*([[-0.5, 0.5]] * 3)), axis=-1).reshape(-1, 3) * SIZE
    points = np.concatenate([points, corners])
    points[:, 2] = np.maximum(points[:, 2], -0.5 * SIZE[2] + gap)
    pose = make_transform(matrix_from_rpy((0.0, 0.0, 0.4)), (0.5, 0.1, 0.5 * SIZE[2]))
    return transform_points(pose, points)


def held(
    points: Array | None = None, obstacles: tuple[ObjectObstacle, ...] = (), turned: Array | None = None
) -> HeldGrasp:
    """The block in the hand; `turned`: all of the world with another frame of the base."""
    T = np.eye(4) if turned is None else turned
    table = TableObstacle(T @ make_transform(translation=(0.5, 0.0, 0.0)), np.array([0.8, 1.0]))
    T_base_gripper = T @ T_BASE_GRASP
    world = block() if points is None else points
    around = Surroundings(
        table, tuple(ObjectObstacle(o.name, transform_points(T, o.centers), o.radii) for o in obstacles)
    )
    own = transform_points(invert_transform(T_BASE_GRASP), world)
    return HeldGrasp(T_base_gripper, T_base_gripper, 0.04, 0.01, 0.08, own, around)


def region(x: float, y: float, width: float, depth: float, yaw: float = 0.0, z: float = 0.0) -> PlaceRegion:
    return PlaceRegion(make_transform(matrix_from_rpy((0.0, 0.0, yaw)), (x, y, z)), np.array([width, depth]))


def moved(grasp: HeldGrasp, place: Array) -> Array:
    """How a place moves the object (4, 4), in the base frame."""
    return np.asarray(place @ invert_transform(grasp.T_base_gripper))


@pytest.mark.parametrize("yaw", [0.0, 0.6, -2.0])
def test_it_stands_as_it_stood_inside_of_the_region(yaw: float) -> None:
    grasp, where = held(), region(0.45, -0.25, 0.2, 0.16, yaw)
    places = free_places(grasp, where)
    assert len(places) > 3
    headings = set()
    for place in places:
        change = moved(grasp, place)
        # Upright, and as high as before.
        np.testing.assert_allclose(change[:3, 2], [0.0, 0.0, 1.0], atol=1e-9)
        assert change[2, 3] == pytest.approx(0.0, abs=1e-9)
        points = transform_points(invert_transform(where.T_base_region) @ place, grasp.points)
        assert (np.abs(points[:, :2]) <= 0.5 * where.size + 1e-6).all()
        headings.add(round(np.degrees(rotation_angle(change[:3, :3]))))
    # The first is in the middle, with the heading it has where that fits.
    points = transform_points(invert_transform(where.T_base_region) @ places[0], grasp.points)[:, :2]
    np.testing.assert_allclose(points.min(axis=0) + points.max(axis=0), 0.0, atol=2.1 * where.size.max() / 9)
    assert len(headings) > 1


def test_a_region_without_size_is_a_place_and_the_heading_stays() -> None:
    grasp = held()
    [place] = free_places(grasp, region(0.4, -0.3, 0.0, 0.0, 1.0))
    change = moved(grasp, place)
    np.testing.assert_allclose(change[:3, :3], np.eye(3), atol=1e-9)
    points = transform_points(place, grasp.points) - [0.4, -0.3, 0.0]
    along = points @ matrix_from_rpy((0.0, 0.0, 1.0))
    np.testing.assert_allclose((along.min(axis=0) + along.max(axis=0))[:2], 0.0, atol=1e-9)


def test_nothing_depends_on_the_frame_of_the_base() -> None:
    """A robot on a wall: its base's z is not the vertical."""
    turn = make_transform(matrix_from_rpy((0.3, -1.2, 2.0)), (0.2, -0.4, 0.9))
    where = region(0.45, -0.25, 0.4, 0.3, 0.6)
    blocker = ObjectObstacle("cup", np.array([[0.45, -0.25, 0.04]]), np.array([0.03]))
    usual = free_places(held(obstacles=(blocker,)), where)
    tilted = free_places(held(obstacles=(blocker,), turned=turn), PlaceRegion(turn @ where.T_base_region, where.size))
    np.testing.assert_allclose(tilted, [turn @ place for place in usual], atol=1e-9)


def test_what_stands_there_is_left_alone() -> None:
    blocker = ObjectObstacle("cup", np.array([[0.45, -0.25, 0.04]]), np.array([0.04]))
    grasp, where = held(obstacles=(blocker,)), region(0.45, -0.25, 0.4, 0.3)
    places = free_places(grasp, where)
    assert places
    for place in places:
        gaps = np.linalg.norm(transform_points(place, grasp.points) - blocker.centers[0], axis=1) - blocker.radii[0]
        assert gaps.min() > 0.015 - 1e-9
    # The free one without it is the middle, where it stands.
    middle = transform_points(free_places(held(), where)[0], grasp.points)
    assert np.linalg.norm(middle - blocker.centers[0], axis=1).min() < 0.1
    with pytest.raises(InvalidInputError, match="the place within 15 mm of what stands there"):
        free_places(grasp, region(0.45, -0.25, 0.0, 0.0))
    full = ObjectObstacle("crowd", np.array([[0.45, -0.25, 0.05]]), np.array([0.4]))
    with pytest.raises(InvalidInputError, match="every place in it within 15 mm"):
        free_places(held(obstacles=(full,)), where)


def test_the_middle_is_a_place_however_tightly_it_fits() -> None:
    grasp = held()
    sides = np.ptp(grasp.points @ T_BASE_GRASP[:3, :3].T, axis=0)[:2]
    for more in (0.002, 0.02, 0.04):
        where = region(0.4, -0.3, *(sides + more))
        points = transform_points(free_places(grasp, where)[0], grasp.points)
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        np.testing.assert_allclose(middle[:2], [0.4, -0.3], atol=1e-6)


def thing(size: tuple[float, float, float], heading: float, shape: str) -> Array:
    """Points (N, 3) of a box of this size, or of the round or T-shaped thing in it, that stands beside the region."""
    unit = np.stack(np.meshgrid(*([np.linspace(-0.5, 0.5, 7)] * 3)), axis=-1).reshape(-1, 3)
    if shape == "round":
        unit = unit[np.linalg.norm(unit[:, :2], axis=1) <= 0.501]
    elif shape == "T":
        unit = unit[(np.abs(unit[:, 1]) < 0.2) | (unit[:, 0] > 0.2)]
    pose = make_transform(matrix_from_rpy((0.0, 0.0, heading)), (0.5, 0.1, 0.5 * size[2]))
    return transform_points(pose, unit * size)


# Length, width and height [m], and shape, of what is put into one region, one after the other.
THINGS = (
    ((0.056, 0.09, 0.12), "box"), ((0.064, 0.064, 0.215), "round"), ((0.108, 0.078, 0.095), "box"),
    ((0.224, 0.106, 0.025), "T"), ((0.12, 0.11, 0.04), "T"), ((0.076, 0.076, 0.205), "round"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4, 8))
def test_what_comes_first_leaves_room_for_what_comes_last(seed: int) -> None:
    """Six things in any order and heading: none is refused for want of room, and they stand apart."""
    rng = np.random.default_rng(seed)
    where, there, apart = region(0.3, -0.45, 0.56, 0.36), [], []
    for number in rng.permutation(len(THINGS)):
        size, shape = THINGS[number]
        obstacles = tuple(object_obstacle(f"thing {index}", points, np.eye(4)) for index, points in enumerate(there))
        grasp = held(thing(size, rng.uniform(-np.pi, np.pi), shape), obstacles)
        placed = transform_points(free_places(grasp, where)[0], grasp.points)
        apart += [cKDTree(other).query(placed)[0].min() for other in there]
        there.append(placed)
    assert min(apart) > 0.025


def test_places_with_room_for_the_hand_come_first() -> None:
    """And are not all the same: where one cannot be reached another may be."""
    blocker = ObjectObstacle("cup", np.array([[0.45, -0.25, 0.04]]), np.array([0.02]))
    grasp, where = held(obstacles=(blocker,)), region(0.45, -0.25, 0.5, 0.5)
    places = free_places(grasp, where)
    gaps = [
        np.linalg.norm(transform_points(place, grasp.points) - blocker.centers[0], axis=1).min() - 0.02
        for place in places
    ]
    assert gaps[0] > 0.08
    assert len(places) == 12
    for index, place in enumerate(places):
        for other in places[:index]:
            turned = rotation_angle(place[:3, :3].T @ other[:3, :3])
            assert np.linalg.norm(place[:3, 3] - other[:3, 3]) > 0.05 or turned > 0.5


def test_a_low_thing_is_put_where_the_hand_meets_nothing_either() -> None:
    """The palm over a flat bar reaches to both sides of it, lower than what stands there."""
    palm = np.array([[0.0, 0.0, -0.1]]), np.array([[0.06, 0.24, 0.07]])
    grid = np.stack(np.meshgrid(np.linspace(-0.09, 0.09, 10), [-0.015, 0.0, 0.015], [-0.01, 0.01]), axis=-1)
    from_above = make_transform(matrix_from_rpy((np.pi, 0.0, 0.0)), (0.5, 0.1, 0.03))
    column = np.stack([np.zeros(9), np.zeros(9), np.linspace(0.02, 0.18, 9)], axis=1)
    columns = tuple(
        ObjectObstacle(f"bottle {x} {y}", column + np.array([x, y, 0.0]), np.full(9, 0.03))
        for x, y in ((0.3, -0.4), (0.5, -0.4), (0.5, -0.2))
    )
    grasp = replace(held(obstacles=columns), T_base_gripper=from_above, points=grid.reshape(-1, 3))
    where = region(0.4, -0.3, 0.36, 0.36)

    def meets(place: Array) -> bool:
        spheres = transform_points(invert_transform(place), np.concatenate([item.centers for item in columns]))
        beyond = np.maximum(np.abs(spheres - palm[0]) - 0.5 * palm[1], 0.0)
        return bool((np.linalg.norm(beyond, axis=1) < 0.03).any())

    assert any(meets(place) for place in free_places(grasp, where)[:6])
    places = free_places(grasp, where, palm)
    assert len(places) >= 6 and not any(meets(place) for place in places[:6])
    # Where it would meet something anyway that is for the arm's planner to say.
    wide = palm[0], np.array([[0.6, 0.6, 0.07]])
    assert len(free_places(grasp, where, wide)) == len(places)


def test_another_height_counts_and_that_of_the_table_is_measured_better() -> None:
    grasp = held()
    for z, rise in ((0.3, 0.3), (0.015, 0.0), (-0.2, -0.2)):
        [place] = free_places(grasp, region(0.4, -0.3, 0.0, 0.0, z=z))
        assert moved(grasp, place)[2, 3] == pytest.approx(rise, abs=1e-9)


def test_regions_that_do_not_do_say_why() -> None:
    grasp = held()
    with pytest.raises(InvalidInputError, match=r"region_size: got 30 × 200 mm, expected at least \d+ × \d+ mm"):
        free_places(grasp, region(0.4, -0.3, 0.03, 0.2))
    leaning = PlaceRegion(make_transform(matrix_from_rpy((0.2, 0.0, 0.0)), (0.4, -0.3, 0.0)), np.array([0.2, 0.2]))
    with pytest.raises(InvalidInputError, match=r"leaning by 11\.5°"):
        free_places(grasp, leaning)
    with pytest.raises(InvalidInputError, match="unknown shape"):
        free_places(held(np.empty((0, 3))), region(0.4, -0.3, 0.2, 0.2))
    for size in ([-0.1, 0.2], [np.nan, 0.1], [0.1, 0.1, 0.1]):
        with pytest.raises(InvalidInputError, match="region_size"):
            PlaceRegion(np.eye(4), np.array(size))


def test_a_pose_over_the_table_is_lowered_until_the_object_stands() -> None:
    grasp = held()
    over = T_BASE_GRASP.copy()
    over[:3, 3] += (-0.1, -0.2, 0.07)
    stands = standing_on_table(grasp, over)
    assert moved(grasp, stands)[2, 3] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(stands[:2], over[:2])
    beside = over.copy()
    beside[0, 3] += 3.0
    np.testing.assert_array_equal(standing_on_table(grasp, beside), beside)
    np.testing.assert_array_equal(standing_on_table(held(np.empty((0, 3))), over), over)


def test_over_a_bin_the_weighed_centre_is_over_its_middle() -> None:
    aside = np.array([0.06, -0.03, 0.0])
    center = transform_points(invert_transform(T_BASE_GRASP), block().mean(axis=0)[None] + aside)[0]
    # Lifted straight up since.
    lifted = T_BASE_GRASP.copy()
    lifted[2, 3] += 0.2
    grasp = replace(held(), load=Load(0.5, center, lifted, 0.01, 0.0))
    above, on_table = region(0.45, -0.25, 0.3, 0.3, z=0.2), region(0.45, -0.25, 0.3, 0.3)
    middle = np.append(block().mean(axis=0) + aside, 1.0)
    over = (moved(grasp, free_places(grasp, above)[0]) @ middle)[:2]
    assert np.linalg.norm(over - [0.45, -0.25]) < 0.01
    # On the table it stands where its seen middle is; so it does where nothing was weighed.
    assert np.allclose(free_places(grasp, on_table), free_places(held(), on_table))
    unweighed = (moved(held(), free_places(held(), above)[0]) @ middle)[:2]
    assert np.linalg.norm(unweighed - [0.45, -0.25]) > 0.05


def test_an_object_goes_on_behind_its_centre_as_far_as_before_it() -> None:
    up = T_BASE_GRASP[:3, 2]
    points = block()
    center = points.mean(axis=0) + np.array([0.1, 0.0, 0.02])
    whole = balanced(points, center, 0.0, up)
    assert len(whole) == 2 * len(points) and np.array_equal(whole[: len(points)], points)
    # Each with its partner: as high, and with the vertical half-way.
    assert np.allclose(whole[len(points) :] @ up, points @ up)
    half = 0.5 * (whole[len(points) :] + points) - center
    assert np.linalg.norm(half - np.outer(half @ up, up), axis=1).max() < 1e-9
