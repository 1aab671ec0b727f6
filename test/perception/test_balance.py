"""What would balance on a neck is one thing with what is below; what lies, leans or stands on something is not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.perception.configuration import ObjectConfig, PerceptionConfig
from morphit_ros.perception.scene import LOOSE, Table
from morphit_ros.perception.segmentation.balance import join_balanced
from morphit_ros.perception.segmentation.objects import find_objects

RNG = np.random.default_rng(11)


def turned(radius, bottom, top, count=1500) -> np.ndarray:
    """The side of a round body about the vertical, of a radius that is a function of the height."""
    z, angle = RNG.uniform(bottom, top, count), RNG.uniform(0.0, 2.0 * np.pi, count)
    radii = np.vectorize(radius)(z) if callable(radius) else np.full(count, radius)
    return np.column_stack([radii * np.cos(angle), radii * np.sin(angle), z])


def box(low, high, count=1500) -> np.ndarray:
    """Points of the sides and the top of a box."""
    low, high = np.array(low), np.array(high)
    points = RNG.uniform(low, high, (count, 3))
    face = RNG.integers(0, 5, count)
    for k, (axis, end) in enumerate(((0, low), (0, high), (1, low), (1, high), (2, high))):
        points[face == k, axis] = end[axis]
    return points


def moved(points: np.ndarray, x: float, y: float, z: float = 0.0) -> np.ndarray:
    return points + np.array([x, y, z])


# A glass, of whose foot the upper side is seen.
FOOT = np.concatenate([turned(radius, 0.006, 0.008, 60) for radius in (0.006, 0.012, 0.018, 0.024, 0.03)])
STEM = turned(0.005, 0.008, 0.085, 150)
BOWL = turned(lambda z: 0.03 + 0.1 * min(z - 0.1, 0.08), 0.102, 0.2)
BALL = turned(lambda z: np.sqrt(max(0.021**2 - (z - 0.081) ** 2, 0.0)), 0.06, 0.102)
POST = turned(0.008, 0.005, 0.1)


def joined(*parts: np.ndarray) -> list[list[int]]:
    ends = np.cumsum([0, *map(len, parts)])
    rows = [np.arange(start, end) for start, end in pairwise(ends)]
    return join_balanced(np.concatenate(parts), rows)


@pytest.mark.parametrize("at", [(0.0, 0.0), (0.5, -0.3)])
def test_a_glass_is_one_thing_however_it_comes_in_pieces(at):
    bowl, stem, foot = (moved(part, *at) for part in (BOWL, STEM, FOOT))
    assert joined(bowl, np.concatenate([stem, foot])) == [[0, 1]]
    (whole,) = joined(bowl, stem, foot)
    assert sorted(whole) == [0, 1, 2]
    # In any order, with others beside it.
    other = moved(box((0.06, -0.05, 0.005), (0.1, 0.05, 0.2)), *at)
    groups = joined(foot, other, stem, bowl)
    assert sorted(map(sorted, groups)) == [[0, 2, 3], [1]]


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        # A ball on a box, a can on a can, a box that juts out from another one, a board on two posts.
        (BALL, [box((-0.04, -0.06, 0.005), (0.04, 0.06, 0.06))]),
        (turned(0.033, 0.105, 0.2), [turned(0.033, 0.005, 0.1)]),
        (box((-0.02, -0.02, 0.06), (0.1, 0.02, 0.1)), [box((-0.05, -0.03, 0.005), (0.03, 0.03, 0.06))]),
        (box((-0.1, -0.04, 0.1), (0.1, 0.04, 0.12)), [moved(POST, x, 0.0) for x in (-0.08, 0.08)]),
    ],
)  # fmt: skip
def test_what_lies_or_stands_on_something_is_a_thing_of_its_own(upper, lower):
    assert joined(upper, *lower) == [[index] for index in range(1 + len(lower))]


def test_what_is_hidden_below_is_not_made_up():
    # The top of a bottle behind a box that hides the rest of it, and a bowl above a foot with nothing between.
    assert joined(turned(0.03, 0.13, 0.2), box((0.04, -0.05, 0.005), (0.1, 0.05, 0.12))) == [[0], [1]]
    assert joined(BOWL, FOOT) == [[0], [1]]
    assert joined(BOWL, STEM[STEM[:, 2] < 0.06]) == [[0], [1]]


def test_what_ends_in_a_point_above_the_side_of_something_leans_on_what_is_not_seen():
    point = turned(lambda z: 0.5 * (z - 0.06) + 0.003, 0.06, 0.15)
    assert joined(point, box((-0.15, -0.03, 0.005), (0.01, 0.03, 0.06))) == [[0], [1]]


def test_what_leans_on_a_narrow_thing_with_its_hidden_end_on_the_table_is_none_with_that():
    rod = np.column_stack([RNG.uniform(0.0, 0.15, 800), RNG.uniform(-0.006, 0.006, 800), np.zeros(800)])
    rod[:, 2] = 0.06 + 0.5 * rod[:, 0]
    assert joined(rod, turned(0.006, 0.005, 0.06)) == [[0], [1]]


def test_a_foot_with_too_few_points_for_an_object_belongs_to_its_bowl():
    table = Table(make_transform(translation=(0.0, 0.0, 0.7)), np.array([1.0, 1.0]), 0.001)
    stray = np.array([[0.3, 0.3, 0.02], [0.301, 0.3, 0.02]])
    thin = np.concatenate([STEM[:60], FOOT[:90]])
    points = moved(np.concatenate([BOWL, thin, stray]), 0.0, 0.0, 0.7)
    cloud = PointCloud(points, np.tile([0.0, 0.0, 1.0], (len(points), 1)))
    objects = find_objects(cloud, table, PerceptionConfig(objects=ObjectConfig(link_distance=0.015)))
    assert [len(found) for found in objects.clouds] == [len(BOWL) + len(thin)]
    assert (objects.labels[-2:] == LOOSE).all() and objects.too_small == (1, 2)
    assert objects.extents[0].extents[2] == pytest.approx(np.ptp(points[:-2, 2]))
