"""Collisions of the gripper's boxes on straight ways, against plain arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, transform_points
from morphit_ros.grasping import Gripper
from morphit_ros.grasping.checking.sweeps import approach_hits, closing_hits, gripper_boxes, lowest_heights

GRIPPERS = ("franka_hand", "hande", "umi")


def poses(count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array(
        [
            make_transform(matrix_from_rotation_vector(rng.normal(size=3)), rng.uniform(-0.05, 0.05, 3))
            for _ in range(count)
        ]
    )


def boxes_at(gripper, aperture):
    boxes = gripper.collision_boxes(aperture)
    return np.array([b.center - b.size / 2 for b in boxes]), np.array([b.center + b.size / 2 for b in boxes])


@pytest.mark.parametrize("name", GRIPPERS)
def test_approach_counts_and_distances_agree_with_plain_arithmetic(name):
    gripper = Gripper.load(name)
    points = np.random.default_rng(0).uniform(-0.15, 0.15, (400, 3))
    T = poses(6)
    apertures = np.linspace(0.01, gripper.aperture_max, len(T))
    hits = approach_hits(points, T[:, :3, :3], T[:, :3, 3], apertures, gripper_boxes(gripper), 0.05, reach=0.02)
    assert hits.inside.sum() > 0
    for s, aperture in enumerate(apertures):
        lower, upper = boxes_at(gripper, aperture)
        lower[:, 2] -= 0.05
        local = (points - T[s, :3, 3]) @ T[s, :3, :3]
        gaps = np.maximum(np.maximum(lower - local[:, None], local[:, None] - upper), 0.0)
        distances = np.linalg.norm(gaps, axis=2).min(axis=1)
        assert hits.inside[s] == (distances == 0.0).sum()
        assert hits.clearance[s] == pytest.approx(min(distances.min(), 0.02))


def test_shrinking_takes_off_all_sides_and_counting_stops():
    gripper = Gripper.load("franka_hand")
    box = gripper.palm_boxes[0]
    edge = box.center + box.size / 2 - [1e-3, 1e-3, 1e-3]
    points = np.repeat(edge[None], 9, axis=0)
    at = (np.eye(3)[None], np.zeros((1, 3)), np.array([0.05]), gripper_boxes(gripper))
    assert approach_hits(points, *at, 0.0).inside[0] == 9
    assert approach_hits(points, *at, 0.0, shrink=0.002).inside[0] == 0
    assert approach_hits(points, *at, 0.0, stop_at=4).inside[0] == 4


@pytest.mark.parametrize("name", GRIPPERS)
def test_closing_sweeps_from_open_to_just_before_the_pads(name):
    gripper = Gripper.load(name)
    box = gripper.finger_boxes[0]
    x, z = box.center[0], box.center[2]
    y = np.linspace(-0.06, 0.06, 2401)
    points = np.column_stack([np.full_like(y, x), y, np.full_like(y, z)])
    opening, aperture, tolerance = 0.045, 0.020, 0.002
    one = (np.eye(3)[None], np.zeros((1, 3)))
    counted = [
        closing_hits(
            p[None], *one, np.array([opening]), np.array([aperture]), gripper_boxes(gripper), tolerance
        ).inside[0]
        for p in points
    ]
    met = np.abs(y)[np.array(counted) > 0]
    assert met.min() == pytest.approx(aperture / 2 + tolerance, abs=1e-4)
    backs = [b.center[1] + b.size[1] / 2 for b in gripper.finger_boxes if abs(b.center[2] - z) < b.size[2] / 2]
    assert met.max() == pytest.approx(opening / 2 + max(backs), abs=1e-4)


@pytest.mark.parametrize("name", GRIPPERS)
def test_lowest_height_is_that_of_the_lowest_corner(name):
    gripper = Gripper.load(name)
    T, table = poses(5, 1), poses(1, 2)[0]
    apertures = np.linspace(0.0, gripper.aperture_max, len(T))
    heights = lowest_heights(gripper_boxes(gripper), T[:, :3, :3], T[:, :3, 3], apertures, table)
    for s, aperture in enumerate(apertures):
        lower, upper = boxes_at(gripper, aperture)
        corners = [
            np.where(choice, low, high)
            for low, high in zip(lower, upper, strict=True)
            for choice in itertools.product([True, False], repeat=3)
        ]
        world = transform_points(T[s], np.array(corners))
        assert heights[s] == pytest.approx(((world - table[:3, 3]) @ table[:3, 2]).min())
