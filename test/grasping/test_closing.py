"""Where closing fingers touch a cloud, and what they press."""

from __future__ import annotations

import math

import numpy as np
import pytest

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.grasping import Gripper
from morphit_ros.grasping.checking.closing import close_copies, close_fingers
from morphit_ros.grasping.checking.pad_contacts import (  # fmt: skip
    AREA,
    HEIGHT,
    MEAN_X,
    MEAN_Z,
    NORMAL_X,
    NORMAL_Z,
    SEEN,
    SPREAD_X,
    SPREAD_Z,
)

FRANKA = Gripper.load("franka_hand")
PAD_AREA = FRANKA.pad_width * FRANKA.pad_height


def sampled(mesh, count=6000, seed=0):
    return sample_surface_evenly(mesh, count, np.random.default_rng(seed))


def close(points, normals, pose, opening=0.08, observed=None, spacing=0.002, compliance=0.002):
    observed = np.ones(len(points)) if observed is None else observed
    return close_fingers(
        points, normals, observed, pose[None, :3, :3], pose[None, :3, 3], np.array([opening]), FRANKA, spacing,
        compliance,
    )  # fmt: skip


def test_a_box_is_met_flat_by_whole_pads():
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    contacts = close(points, normals, make_transform(translation=(0.0, 0.003, 0.0)))
    assert contacts.touched[0]
    assert contacts.apertures[0] == pytest.approx(0.040, abs=1e-6)
    # Seen from the gripper, which stands 3 mm towards finger 1, the box is 3 mm towards finger 2.
    assert contacts.shifts[0] == pytest.approx(-0.003, abs=1e-6)
    assert contacts.angles[0].max() < 1e-6
    assert contacts.overlap[0] > 0.97 * PAD_AREA
    np.testing.assert_allclose(contacts.fingers[0, :, [MEAN_X, MEAN_Z]], 0.0, atol=5e-4)
    # Of a uniform distribution over the pad.
    np.testing.assert_allclose(contacts.fingers[0, :, [SPREAD_X, SPREAD_Z]], 0.018 / math.sqrt(12.0), atol=7e-4)


def test_pads_that_hang_over_an_edge_press_less_and_off_centre():
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    contacts = close(points, normals, make_transform(translation=(0.03, 0.0, 0.0)))
    assert contacts.overlap[0] == pytest.approx(0.5 * PAD_AREA, rel=0.25)
    assert contacts.fingers[0, 0, MEAN_X] == pytest.approx(-0.0045, abs=1.2e-3)


def test_a_finger_stops_at_the_first_thing_it_meets():
    # A step: half of the pad meets a plateau that stands 4 mm out.
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    step, step_normals = sampled(box_mesh([0.02, 0.008, 0.05]), 3000)
    cloud = np.concatenate([points, step + np.array([0.01, 0.02, 0.0])])
    contacts = close(cloud, np.concatenate([normals, step_normals]), np.eye(4))
    assert contacts.fingers[0, 0, HEIGHT] == pytest.approx(0.024, abs=1e-4)
    assert contacts.fingers[0, 1, HEIGHT] == pytest.approx(0.020, abs=1e-4)
    assert contacts.fingers[0, 0, AREA] < 0.65 * contacts.fingers[0, 1, AREA]
    assert contacts.overlap[0] == pytest.approx(contacts.fingers[0, 0, AREA], rel=0.1)


def test_two_stray_points_do_not_stop_a_finger():
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    stray = np.array([[0.001, 0.032, 0.002], [-0.004, 0.031, -0.003]])
    cloud = np.concatenate([points, stray])
    contacts = close(cloud, np.concatenate([normals, [[0.0, 1.0, 0.0]] * 2]), np.eye(4), spacing=0.0009)
    assert contacts.apertures[0] < 0.0425


def test_slanted_surfaces_have_slanted_normals():
    turn = matrix_from_rotation_vector((0.0, 0.0, math.radians(20.0)))
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    contacts = close(points, normals, make_transform(turn), compliance=0.008)
    np.testing.assert_allclose(np.degrees(contacts.angles[0]), 20.0, atol=1.5)
    assert contacts.fingers[0, 0, NORMAL_X] == pytest.approx(math.sin(math.radians(20.0)), abs=0.03)
    assert abs(contacts.fingers[0, 0, NORMAL_Z]) < 0.03


def test_a_thin_wall_is_met_by_either_finger_on_its_own_side():
    points, normals = sampled(box_mesh([0.06, 0.003, 0.05]))
    contacts = close(points, normals, np.eye(4), opening=0.03)
    assert contacts.apertures[0] == pytest.approx(0.003, abs=1e-6)
    assert contacts.angles[0].max() < 0.01


def test_what_is_not_between_the_fingers_is_not_touched():
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    contacts = close(points, normals, make_transform(translation=(0.2, 0.0, 0.0)))
    assert not contacts.touched[0]
    assert contacts.overlap[0] == 0.0
    assert np.allclose(contacts.angles, math.pi / 2)
    # Wider than the opening: nothing of its sides is between them.
    assert not close(points, normals, np.eye(4), opening=0.039).touched[0]


def test_share_seen_is_that_of_the_patch():
    points, normals = sampled(box_mesh([0.06, 0.04, 0.05]))
    contacts = close(points, normals, np.eye(4), observed=(points[:, 1] > 0.0).astype(float))
    np.testing.assert_allclose(contacts.fingers[0, :, SEEN], [1.0, 0.0])


def test_contacts_move_with_gripper_and_object():
    points, normals = sampled(cylinder_mesh(0.02, 0.1))
    pose = make_transform(matrix_from_rotation_vector((0.1, -0.2, 0.3)), (0.002, 0.003, 0.01))
    motion = make_transform(matrix_from_rotation_vector((1.1, 0.4, -2.0)), (0.3, 0.1, -0.6))
    here = close(points, normals, pose)
    there = close(points @ motion[:3, :3].T + motion[:3, 3], normals @ motion[:3, :3].T, motion @ pose)
    np.testing.assert_allclose(there.fingers, here.fingers, atol=1e-9)
    np.testing.assert_allclose(there.overlap, here.overlap)


def test_half_a_turn_exchanges_the_fingers():
    points, normals = sampled(cylinder_mesh(0.02, 0.1))
    pose = make_transform(matrix_from_rotation_vector((0.1, -0.2, 0.3)), (0.002, 0.003, 0.01))
    here, turned = close(points, normals, pose), close(points, normals, pose @ np.diag([-1.0, -1.0, 1.0, 1.0]))
    np.testing.assert_allclose(turned.fingers[0, ::-1, [HEIGHT, AREA]], here.fingers[0, :, [HEIGHT, AREA]], atol=1e-9)


def test_copies_are_the_poses_moved_in_the_grippers_frame():
    points, normals = sampled(cylinder_mesh(0.02, 0.1))
    pose = make_transform(matrix_from_rotation_vector((0.1, -0.2, 0.3)), (0.002, 0.003, 0.01))
    rng = np.random.default_rng(0)
    turns = np.array([matrix_from_rotation_vector(rng.uniform(-0.15, 0.15, 3)) for _ in range(5)])
    shifts, depths = rng.uniform(-0.005, 0.005, (5, 3)), rng.uniform(0.001, 0.004, 5)
    observed = rng.random(len(points))
    poses = np.repeat(pose[None], 2, axis=0)
    poses[1, :3, 3] += 0.004
    openings = np.array([0.08, 0.06])
    copies = close_copies(
        points, normals, observed, poses[:, :3, :3], poses[:, :3, 3], openings, turns, shifts, depths, FRANKA, 0.002,
        max_cells=200,
    )  # fmt: skip
    for s in range(2):
        for k in range(5):
            moved = poses[s] @ make_transform(turns[k], shifts[k])
            alone = close(points, normals, moved, openings[s], observed, compliance=depths[k])
            np.testing.assert_allclose(copies.fingers[5 * s + k], alone.fingers[0], atol=1e-9)
            assert copies.overlap[5 * s + k] == pytest.approx(alone.overlap[0])


def test_a_pad_that_bears_on_both_rims_of_a_hollow_holds_between_them():
    # A cup's wall: inside the pad touches with its two edges, outside its middle is touched.
    angle = np.linspace(-0.5, 0.5, 121)
    rise = np.linspace(-0.02, 0.02, 61)
    angle, rise = (part.ravel() for part in np.meshgrid(angle, rise))
    radial = np.column_stack([np.sin(angle), np.cos(angle), np.zeros_like(angle)])
    walls = [0.030 * radial, 0.026 * radial]
    points = np.concatenate([wall + np.outer(rise, [0, 0, 1]) - [0.0, 0.028, 0.0] for wall in walls])
    normals = np.concatenate([radial, -radial])
    contacts = close(points, normals, np.eye(4), opening=0.02, spacing=0.001, compliance=5e-4)
    outside, inside = contacts.fingers[0]
    assert outside[SPREAD_X] < 0.004 < 0.007 < inside[SPREAD_X]
    assert contacts.overlap[0] == pytest.approx(outside[AREA], rel=0.05)
    # One rim alone bears nothing beside it.
    half = points[:, 0] > 0.004
    both = np.concatenate([points[: len(points) // 2], points[len(points) // 2 :][half[len(points) // 2 :]]])
    rest = np.concatenate([normals[: len(points) // 2], normals[len(points) // 2 :][half[len(points) // 2 :]]])
    assert close(both, rest, np.eye(4), opening=0.02, spacing=0.001, compliance=5e-4).overlap[0] < 0.2 * outside[AREA]
