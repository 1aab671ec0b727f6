"""Spheres shared out among links, and as few as a distance allows."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, fit_spheres, measure_spheres
from morphit_ros.spheres.links.budget import counts_for_distance, distribute_spheres, fewest_spheres
from morphit_ros.spheres.links.cache import ShapeFit
from morphit_ros.spheres.links.shape import load_link_shape

QUICK = SphereFitConfig(iterations=60, rounds=2, starts=1, interior_samples=800, surface_samples=800)


@pytest.fixture(autouse=True)
def folder(tmp_path_factory, monkeypatch):
    """One cache for the tests of this file: they fit the same shapes."""
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path_factory.getbasetemp() / "budget"))


def robot(*links: str, scale: float = 1.0) -> RobotDescription:
    """Links a, b, c … each given by its elements: "box 0.1 0.1 0.2", "capsule 0.1 0.2", "sphere 0.1 at 0 0 1"."""
    bodies = []
    for name, text in zip("abcdefghij", links, strict=False):
        elements = []
        for element in filter(None, text.split(";")):
            shape, _, place = element.partition("at")
            kind, *words = shape.split()
            size = [scale * float(word) for word in words]
            attributes = {
                "box": lambda size: f'size="{size[0]} {size[1]} {size[2]}"',
                "capsule": lambda size: f'radius="{size[0]}" length="{size[1]}"',
                "sphere": lambda size: f'radius="{size[0]}"',
            }[kind](size)
            xyz = " ".join(str(scale * float(word)) for word in place.split()) or "0 0 0"
            elements.append(f'<collision><origin xyz="{xyz}"/><geometry><{kind} {attributes}/></geometry></collision>')
        bodies.append(f'<link name="{name}">{"".join(elements)}</link>')
    joints = [
        f'<joint name="{child}" type="fixed"><parent link="a"/><child link="{child}"/></joint>'
        for child in "abcdefghij"[1 : len(links)]
    ]
    return load_robot_description(f'<robot name="r">{"".join(bodies + joints)}</robot>')


def mean_distance(description: RobotDescription, counts: dict[str, int]) -> float:
    """Mean distance between both surfaces over the whole robot [m]."""
    model = fit_robot_spheres(description, counts=counts)
    assert {name: len(link.radii) for name, link in model.links.items()} == counts
    areas = {name: load_link_shape(description.links[name].collisions).exposed_area for name in counts}
    return sum(areas[name] * model.links[name].d_avg for name in counts) / sum(areas.values())


BIG_AND_SMALL = ("box 0.3 0.2 0.5", "", "box 0.06 0.04 0.1", "capsule 0.05 0.3")


@pytest.mark.parametrize("total", [3, 4, 10, 31, 100])
@pytest.mark.parametrize("objective", ["mean", "greatest"])
def test_total_is_kept_and_every_link_gets_some(total, objective):
    counts = distribute_spheres(robot(*BIG_AND_SMALL), total, objective=objective)
    assert list(counts) == ["a", "c", "d"]
    assert sum(counts.values()) == total
    assert min(counts.values()) >= 1
    if total >= 10:
        assert counts["a"] > counts["c"]


@pytest.fixture
def laws(monkeypatch):
    """Stands in for the fit: d_avg and d_max of a shape are its size over the number of spheres, or as the test says.

    Maps a size to a function of the number of spheres, relative to the size.
    """
    own = {}

    def fit(shape, config, seed, cache):
        size = round(float(shape.meshes[0].extents.max()), 6)
        distance = own.get(size, lambda count: 1.0 / count)(config.count)
        return ShapeFit(np.zeros((config.count, 3)), np.ones(config.count), distance, size * distance, None, "")

    monkeypatch.setattr("morphit_ros.spheres.links.budget.fit_shape", fit)
    monkeypatch.setattr("morphit_ros.spheres.links.budget._greatest_distance", lambda points, spheres: 0.0)
    return own


CUBES = "box 0.1 0.1 0.1", "box 0.2 0.2 0.2", "box 0.4 0.4 0.4"


def test_known_laws_have_known_shares(laws):
    # Errors A/n are least in sum where n ~ √A, here as the sides; distances s/n are all the same where n ~ s.
    for objective in ("mean", "greatest"):
        counts = distribute_spheres(robot(*CUBES), 70, objective=objective)
        np.testing.assert_allclose(list(counts.values()), [10, 20, 40], atol=1)


def test_a_step_that_pays_late_is_taken(laws):
    laws[0.4] = lambda count: 1.0 if count < 8 else 0.01
    counts = distribute_spheres(robot(*CUBES), 20)
    assert counts["c"] == 8


@pytest.mark.parametrize("needed", [1, 2, 3, 5, 7, 8, 21, 64])
def test_a_known_law_has_a_known_number_for_a_distance(laws, needed):
    counts = counts_for_distance(robot(*CUBES), 0.4 / (needed - 0.5), most=64)
    assert counts["c"] == needed
    assert counts["b"] == -(-(needed - 0.5) * 0.5 // 1)


def test_spheres_that_do_not_help_go_elsewhere(laws):
    laws[0.2] = lambda count: max(1.0 / count, 0.75)
    counts = distribute_spheres(robot(*CUBES), 52, objective="greatest")
    assert counts["b"] == 2
    np.testing.assert_allclose([counts["a"], counts["c"]], [10, 40], atol=1)


def test_more_spheres_take_none_away():
    description = robot(*BIG_AND_SMALL)
    counts = [distribute_spheres(description, total) for total in (12, 13, 14)]
    # All of these totals measure the errors at the same numbers.
    for fewer, more in itertools.pairwise(counts):
        assert all(more[name] >= fewer[name] for name in fewer)


def test_equal_links_share_equally():
    counts = distribute_spheres(robot(*4 * ["box 0.1 0.2 0.3"]), 22)
    assert sorted(counts.values()) == [5, 5, 6, 6]


def test_sharing_does_not_depend_on_the_unit():
    metres = distribute_spheres(robot(*BIG_AND_SMALL), 25)
    assert distribute_spheres(robot(*BIG_AND_SMALL, scale=1000.0), 25) == metres
    assert distribute_spheres(robot(*BIG_AND_SMALL, scale=0.001), 25) == metres


def test_same_seed_same_counts_for_any_workers():
    description = robot(*BIG_AND_SMALL)
    counts = [distribute_spheres(description, 25, seed=3, cache=False, workers=workers) for workers in (1, 3)]
    assert counts[0] == counts[1]


def test_links_that_are_spheres_need_no_more_than_those():
    links = "sphere 0.2", "sphere 0.1;sphere 0.1 at 1 0 0;sphere 0.15 at 0 1 0", "box 0.1 0.1 0.3"
    counts = distribute_spheres(robot(*links), 20)
    assert counts == {"a": 1, "b": 3, "c": 16}
    assert mean_distance(robot(*links), counts) < mean_distance(robot(*links), {"a": 1, "b": 2, "c": 17})


def test_overlapping_elements_count_once():
    once = distribute_spheres(robot("box 0.1 0.1 0.3", "box 0.1 0.1 0.2"), 20)
    # What is buried in a box adds no surface to it.
    buried = ";".join(["box 0.1 0.1 0.2", *(9 * ["box 0.09 0.09 0.15"])])
    assert distribute_spheres(robot("box 0.1 0.1 0.3", buried), 20) == once


@pytest.mark.parametrize("total", [2, 0, -5, 10**6])
def test_total_out_of_bounds(total):
    with pytest.raises(InvalidInputError, match="total"):
        distribute_spheres(robot(*BIG_AND_SMALL), total)


def test_bad_arguments_of_sharing():
    with pytest.raises(InvalidInputError, match="objective"):
        distribute_spheres(robot(*BIG_AND_SMALL), 10, objective="best")
    with pytest.raises(InvalidInputError, match="source"):
        distribute_spheres(robot(*BIG_AND_SMALL), 10, source="everything")
    with pytest.raises(InvalidInputError, match="link 'b'"):
        distribute_spheres(robot("box 1 1 1", "box 1 0 1"), 10)
    assert distribute_spheres(robot("", ""), 0) == {}


def example_robot(name: str) -> RobotDescription:
    if name == "panda":
        return load_robot_description(RobotConfiguration.load("panda").description)
    try:
        return load_robot_description("package://example-robot-data/robots/ur_description/urdf/ur5_robot.urdf")
    except ResourceNotFoundError as error:
        pytest.skip(f"the package example-robot-data is not installed: {error}")


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_sharing_out_beats_equal_numbers(name):
    description = example_robot(name)
    links = [link for link, content in description.links.items() if content.collisions]
    counts = distribute_spheres(description, 8 * len(links))
    # Measured: 0.89 (Panda) and 0.78 (UR5) of the even distribution's.
    assert mean_distance(description, counts) < 0.93 * mean_distance(description, dict.fromkeys(links, 8))


def test_one_sphere_is_enough_for_a_sphere():
    result = fewest_spheres(sphere_mesh(0.1), 0.002, QUICK)
    np.testing.assert_allclose(result.radii, [0.1], atol=0.002)
    np.testing.assert_allclose(result.centers, np.zeros((1, 3)), atol=0.002)


def test_fewest_spheres_keep_the_distance_and_one_fewer_does_not():
    mesh = capsule_mesh(0.05, 0.4)
    counts = []
    for distance in (0.02, 0.01, 0.005):
        result = fewest_spheres(mesh, distance, QUICK)
        counts.append(len(result.radii))
        assert measure_spheres(mesh, result.centers, result.radii, seed=5).d_max <= 1.02 * distance
        fewer = fit_spheres(mesh, replace(QUICK, count=counts[-1] - 1))
        assert measure_spheres(mesh, fewer.centers, fewer.radii, seed=5).d_max > 0.98 * distance
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    # A chain of spheres of the radius r, a step s apart, misses r − √(r² − s²/4) of a capsule: 10 mm at s = 60 mm,
    # which makes 8 of them; balanced spheres are somewhat thicker and need fewer.
    assert 5 <= counts[1] <= 9


def test_fewest_spheres_of_a_union():
    cube = box_mesh([0.1, 0.1, 0.1])
    pieces = [cube, cube.transformed(make_transform(translation=[0.1, 0, 0]))]
    whole = box_mesh([0.2, 0.1, 0.1])
    few = [len(fewest_spheres(mesh, 0.02, QUICK).radii) for mesh in (pieces, whole)]
    assert abs(few[0] - few[1]) <= 2


def test_fewest_spheres_are_the_same_again():
    first, again = (fewest_spheres(capsule_mesh(0.05, 0.2), 0.012, QUICK, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.centers, again.centers)
    np.testing.assert_array_equal(first.radii, again.radii)


@pytest.mark.parametrize("distance", [0.0, -0.01, float("nan"), float("inf")])
def test_distance_that_is_none(distance):
    with pytest.raises(InvalidInputError, match="d_max"):
        fewest_spheres(box_mesh([0.1, 0.1, 0.1]), distance)
    with pytest.raises(InvalidInputError, match="d_max"):
        counts_for_distance(robot("box 0.1 0.1 0.1"), distance)


def test_distance_out_of_reach_says_what_was_reached():
    box = box_mesh([0.1, 0.1, 0.1])
    best = min(
        measure_spheres(box, result.centers, result.radii).d_max
        for result in (fit_spheres(box, replace(QUICK, count=n)) for n in (1, 2, 4, 6))
    )
    with pytest.raises(InvalidInputError, match="up to 6 spheres") as caught:
        fewest_spheres(box, 1e-5, QUICK, most=6)
    reached = float(caught.value.bound.split("at least ")[1].split(" m")[0])
    assert 0.8 * best < reached < 1.2 * best
    with pytest.raises(InvalidInputError, match="link 'b'"):
        counts_for_distance(robot("sphere 0.1", "box 0.1 0.1 0.1"), 1e-5, QUICK, most=6)
    for most in (0, 10**6):
        with pytest.raises(InvalidInputError, match="most"):
            fewest_spheres(box, 0.01, QUICK, most=most)


def test_counts_for_a_distance_are_kept_by_the_fit(monkeypatch):
    description = robot("box 0.1 0.1 0.3", "", "sphere 0.1;box 0.05 0.05 0.4", "capsule 0.05 0.3", "sphere 0.2")
    counts = counts_for_distance(description, 0.015, QUICK)
    assert list(counts) == ["a", "c", "d", "e"]
    assert counts["e"] == 1
    monkeypatch.setattr("morphit_ros.spheres.links.fit.fit_spheres", None)
    model = fit_robot_spheres(description, QUICK, counts=counts)
    assert all(link.d_max <= 0.015 for link in model.links.values())
    monkeypatch.undo()
    for name in "acd":
        fewer = fit_robot_spheres(description, QUICK, links=[name], counts={name: counts[name] - 1})
        assert fewer.links[name].d_max > 0.9 * 0.015
