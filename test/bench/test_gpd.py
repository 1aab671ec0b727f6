"""GPD's sampler: frames of known surfaces, hands that touch nothing and hold something, pushed as far as they go."""

from __future__ import annotations

import math

import numpy as np
import pytest

from morphit_bench.grasping.camera_clouds import eyes_around, seen_cloud
from morphit_bench.grasping.closing import closed_grasp, whole_object
from morphit_bench.grasping.gpd import GpdConfig, GpdMethod, antipodal_shares, local_frames, pushed_hands
from morphit_ros.execution.sequence_config import ProbeConfig
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points
from morphit_ros.grasping import Gripper

FRANKA, TABLE = Gripper.load("franka_hand"), SupportPlane(np.eye(4))


def standing(mesh, height: float) -> tuple[np.ndarray, np.ndarray]:
    points, normals = sample_surface_evenly(mesh, 4000, np.random.default_rng(0))
    return points + np.array([0.0, 0.0, height / 2]), normals


def pole() -> tuple[np.ndarray, np.ndarray]:
    return standing(cylinder_mesh(0.02, 0.2), 0.2)


def sides(points: np.ndarray) -> np.ndarray:
    return np.flatnonzero((points[:, 2] > 0.08) & (points[:, 2] < 0.14))[:40]


def inside(hand: np.ndarray, points: np.ndarray) -> int:
    local = transform_points(np.linalg.inv(hand), points)
    boxes = FRANKA.collision_boxes(FRANKA.aperture_max)
    return int(sum((np.abs(local - box.center) < 0.5 * box.size).all(axis=1).sum() for box in boxes))


def test_local_frames_of_a_cylinder_are_its_normal_and_its_axis():
    points, normals = pole()
    rows = sides(points)
    frames = local_frames(points, normals, rows, 0.01)
    np.testing.assert_allclose(np.abs(frames[:, 2, 2]), 1.0, atol=0.01)
    np.testing.assert_allclose(np.einsum("ij,ij->i", frames[:, :, 0], normals[rows]), 1.0, atol=0.02)
    np.testing.assert_allclose(np.linalg.det(frames), 1.0)


def test_hands_close_across_the_axis_touch_nothing_and_cannot_go_further():
    points, normals = pole()
    rows, config = sides(points), GpdConfig()
    frames = local_frames(points, normals, rows, config.radius)
    hands = pushed_hands(points[rows], frames, points, FRANKA, None, config)
    assert len(hands) > 2 * len(rows)
    assert np.abs(hands[:, 2, 1]).max() < 0.05
    palm, tip = -0.037, 0.00925
    for row, frame in zip(rows[:6], frames[:6], strict=True):
        for hand in pushed_hands(points[[row]], frame[None], points, FRANKA, None, config):
            assert inside(hand, points) == 0
            bite = tip - transform_points(np.linalg.inv(hand), points[row])[2]
            assert bite > config.bite - 1e-9
            further = hand.copy()
            further[:3, 3] += config.step * hand[:3, 2]
            # What stopped it: the next step hits, or would have the sample in the palm.
            assert inside(further, points) > 0 or bite + config.step > tip - palm
    # Hands come from outside: the palm is before the pole's axis.
    palms = hands[:, :3, 3] + palm * hands[:, :3, 2]
    assert (np.einsum("hi,hi->h", hands[:, :2, 2], palms[:, :2]) < -0.015).all()


def test_the_table_and_what_is_around_are_kept_clear_of():
    points, normals = standing(box_mesh((0.1, 0.04, 0.03)), 0.03)
    cloud = PointCloud(points, normals)
    wall = np.random.default_rng(0).uniform([-0.1, 0.03, 0.0], [0.1, 0.09, 0.1], (20000, 3))
    free, crowded = (GpdMethod().plan(cloud, FRANKA, TABLE, obstacles=around) for around in (None, wall))
    assert free.success
    for grasp in (*free.grasps, *crowded.grasps):
        for box in FRANKA.collision_boxes(FRANKA.aperture_max):
            turn = grasp.T_world_gripper[2, :3]
            assert grasp.T_world_gripper[2, 3] + box.center @ turn - 0.5 * box.size @ np.abs(turn) > 0.0
    assert any(inside(grasp.T_world_gripper, wall) for grasp in free.grasps)
    assert not any(inside(grasp.T_world_gripper, wall) for grasp in crowded.grasps)


def test_both_sides_of_a_box_are_ranked_above_its_edges():
    points, normals = standing(box_mesh((0.1, 0.04, 0.06)), 0.06)
    down = np.diag([1.0, -1.0, -1.0])
    straight, askew = (
        make_transform(turn @ down, (0.0, 0.0, 0.05)) for turn in (np.eye(3), matrix_from_rpy([0, 0, 0.6]))
    )
    shares = antipodal_shares(points, normals, np.array([straight, askew]), FRANKA, math.radians(20.0))
    assert shares[0] > 0.25
    assert shares[1] == 0.0
    seen = points[normals[:, 1] > -0.5], normals[normals[:, 1] > -0.5]
    assert 0.0 < antipodal_shares(*seen, straight[None], FRANKA, math.radians(20.0))[0] <= 0.01


def test_grasps_are_closed_on_what_is_between_the_fingers():
    points, normals = standing(box_mesh((0.1, 0.04, 0.06)), 0.06)
    best = GpdMethod().plan(PointCloud(points, normals), FRANKA, TABLE).grasps[0]
    assert best.aperture == pytest.approx(0.04, abs=2e-3)
    assert best.open_aperture == FRANKA.aperture_max
    local = transform_points(np.linalg.inv(best.T_world_gripper), best.contact_points)
    assert local[best.contact_fingers == 1, 1].min() > local[best.contact_fingers == 2, 1].max()


def test_fingers_are_expected_to_stop_at_sides_that_no_camera_saw():
    mesh = box_mesh((0.1, 0.04, 0.06)).transformed(make_transform(None, (0.0, 0.0, 0.03)))
    seen = seen_cloud(mesh, eyes_around(mesh, [90.0]))
    hand = make_transform(np.diag([1.0, -1.0, -1.0]), (0.0, 0.0, 0.03))
    side = seen.select(seen.points[:, 2] < 0.057)
    blind = closed_grasp(side.points, FRANKA, hand, math.nan, 0.5)
    assert blind.aperture < 0.01
    whole = closed_grasp(whole_object(seen, TABLE, None, None), FRANKA, hand, math.nan, 0.5)
    # Execution bears fingers that stop so much before they are expected.
    assert whole.aperture == pytest.approx(0.04, abs=ProbeConfig().too_wide)
