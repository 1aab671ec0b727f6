"""Groups of points: nothing within reach is passed over, and a kernel that uses them finds what a full look finds."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.grasping import Gripper
from morphit_ros.grasping.checking.blocks import gather_box, group_points, one_block
from morphit_ros.grasping.checking.sweeps import approach_hits, gripper_boxes


def scattered(seed: int, count: int = 2000) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.08, 0.08, (count, 3))


def test_groups_hold_every_point_once_within_their_balls() -> None:
    points = scattered(0)
    blocks = group_points(points)
    np.testing.assert_array_equal(np.sort(blocks.order), np.arange(len(points)))
    np.testing.assert_array_equal(blocks.points, points[blocks.order])
    group = np.repeat(np.arange(len(blocks.radii)), np.diff(blocks.starts))
    distances = np.linalg.norm(blocks.points - blocks.centers.T[group], axis=1)
    assert (distances <= blocks.radii[group]).all()
    assert blocks.radii.max() < 0.01


@pytest.mark.parametrize("grouped", [group_points, one_block])
def test_all_points_of_a_box_are_gathered(grouped) -> None:
    points = scattered(1)
    rotation, translation = matrix_from_rotation_vector((0.4, -0.7, 0.2)), np.array([0.01, -0.02, 0.015])
    reach = np.array([0.012, 0.04, 0.02])
    rows = np.empty(len(points), np.int64)
    blocks = grouped(points)
    found = blocks.order[rows[: gather_box(blocks, rotation, translation, reach, rows)]]
    inside = (np.abs((points - translation) @ rotation) <= reach).all(axis=1)
    assert inside.any()
    assert set(np.flatnonzero(inside)) <= set(found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", ["franka_hand", "umi"])
def test_hits_and_clearance_are_those_of_all_points_and_boxes(name: str) -> None:
    boxes, rng = gripper_boxes(Gripper.load(name)), np.random.default_rng(2)
    points = 0.3 * scattered(3)
    rotations = np.array([matrix_from_rotation_vector(turn) for turn in rng.uniform(-1.5, 1.5, (40, 3))])
    translations = rng.uniform(-0.06, 0.06, (40, 3))
    apertures = rng.uniform(0.03, 0.08, 40)
    hits = approach_hits(points, rotations, translations, apertures, boxes, 0.1, reach=0.01)
    for s in range(40):
        local = (points - translations[s]) @ rotations[s]
        lower, upper = [*boxes.palm_lower], [*boxes.palm_upper]
        for low, high in zip(boxes.finger_lower[0], boxes.finger_upper[0], strict=True):
            opening = np.array([0.0, 0.5 * apertures[s], 0.0])
            lower += [low + opening, (low + opening) * [1, 0, 1] - (high + opening) * [0, 1, 0]]
            upper += [high + opening, (high + opening) * [1, 0, 1] - (low + opening) * [0, 1, 0]]
        swept = np.array(lower) - [0.0, 0.0, 0.1]
        gaps = np.maximum(np.maximum(swept[:, None] - local, local - np.array(upper)[:, None]), 0.0)
        nearest = np.linalg.norm(gaps, axis=2).min(axis=0)
        assert hits.inside[s] == (nearest == 0.0).sum()
        assert hits.clearance[s] == pytest.approx(min(nearest.min(), 0.01), abs=1e-12)
    assert 0 < (hits.inside == 0).sum() < 40
    assert ((hits.clearance > 0.0) & (hits.clearance < 0.01)).any()
