"""Starts of the published planners: frames, the paper's rows, generic starts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from morphit_bench.grasping import (
    SURFACES,
    GenericConfig,
    GenericProtocol,
    PaperProtocol,
    prepare_surface,
)
from morphit_bench.grasping.frames import gripper_pose, upright_to_published
from morphit_bench.grasping.methods import PublishedMethod
from morphit_bench.grasping.start_table import OBSERVED, START_TABLE
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import (
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
)
from morphit_ros.grasping import Gripper

FRANKA = Gripper.load("franka_hand")
# An upright object on a table of height 0.7 m whose file has z down, as the known shapes have.
T_WORLD_UPRIGHT = make_transform(matrix_from_rotation_vector((math.pi, 0.0, 0.0)), (0.4, 0.1, 0.7))


def surface(size, center=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), seed=0) -> PointCloud:
    points, _ = sample_surface_evenly(box_mesh(size), 2500, np.random.default_rng(seed))
    pose = make_transform(matrix_from_rotation_vector(turn), center)
    return prepare_surface(PointCloud(transform_points(pose, points)), SURFACES["known"])


def duck_like() -> PointCloud:
    """A body on the table and a head above it, where the paper grasps, in the published frame: z down."""
    rng = np.random.default_rng(0)
    body = sample_surface_evenly(box_mesh([0.10, 0.074, 0.05]), 2000, rng)[0] + (0.05, 0.037, -0.025)
    head = sample_surface_evenly(box_mesh([0.05, 0.044, 0.05]), 1000, rng)[0] + (0.067, 0.037, -0.078)
    return PointCloud(np.concatenate([body, head]))


def test_our_fingers_are_theirs():
    T_world_published = make_transform(matrix_from_rotation_vector((0.3, -0.2, 0.9)), (0.1, 0.2, 0.3))
    ours = gripper_pose(T_world_published)
    # Finger 1: at y = −d/2 of the published frame, y = +d/2 of ours, and both approach along z.
    first = transform_points(T_world_published, np.array([[0.004, -0.04, 0.003]]))
    np.testing.assert_allclose(transform_points(ours, np.array([[-0.004, 0.04, 0.003]])), first, atol=1e-12)
    np.testing.assert_allclose(ours[:3, 2], T_world_published[:3, 2], atol=1e-12)
    assert np.linalg.det(ours[:3, :3]) == pytest.approx(1.0)


@pytest.mark.parametrize("gripper_name", ["franka_hand", "hande", "umi"])
@pytest.mark.parametrize("name", ["T", "RubberDuck", "Hammer"])
def test_paper_starts_on_upright_objects_come_from_above_the_table(name, gripper_name):
    cloud = PointCloud(transform_points(T_WORLD_UPRIGHT, duck_like().points))
    start = PaperProtocol(name, T_WORLD_UPRIGHT).starts(cloud, Gripper.load(gripper_name), None, None, 0)[0]
    position, approach = start.T_world_gripper[:3, 3], start.T_world_gripper[:3, 2]
    assert 0.7 < position[2] < 0.7 + 0.12
    np.testing.assert_allclose(approach, (0.0, 0.0, -1.0), atol=1e-9)
    palm, pregrasp = position - 0.1 * approach, position - 0.22 * approach
    assert pregrasp[2] > palm[2] > position[2]
    assert start.approach[2] < -0.9
    assert np.linalg.norm(start.approach) == pytest.approx(1.0)
    assert start.aperture == Gripper.load(gripper_name).aperture_max


def test_paper_grasp_of_a_duck_holds_its_head_with_the_palm_above():
    cloud = PointCloud(transform_points(T_WORLD_UPRIGHT, duck_like().points))
    method = PublishedMethod("disf", protocol=PaperProtocol("RubberDuck", T_WORLD_UPRIGHT), surface=SURFACES["known"])
    plan = method.plan(cloud, FRANKA)
    assert plan.success and plan.candidates == 1
    pose = plan.grasps[0].T_world_gripper
    assert pose[2, 3] == pytest.approx(0.778, abs=0.01)
    assert plan.grasps[0].T_world_pregrasp[2, 3] > pose[2, 3] + 0.19
    assert plan.grasps[0].aperture == pytest.approx(0.044, abs=2e-3)


@pytest.mark.parametrize("name", [name for name in START_TABLE if START_TABLE[name].get("franka_hand")])
def test_paper_starts_move_with_the_object(name):
    motion = make_transform(matrix_from_rotation_vector((0.2, 0.5, -0.9)), (0.3, 0.2, 0.6))
    cloud = surface([0.05, 0.16, 0.03], center=(0.0, 0.0, 0.015))
    here = PaperProtocol(name, np.eye(4)).starts(cloud, FRANKA, None, None, 0)[0]
    there = PaperProtocol(name, motion).starts(cloud.transformed(motion), FRANKA, None, None, 5)[0]
    np.testing.assert_allclose(there.T_world_gripper, motion @ here.T_world_gripper, atol=1e-9)
    np.testing.assert_allclose(there.approach, motion[:3, :3] @ here.approach, atol=1e-9)
    np.testing.assert_allclose(there.origin, transform_points(motion, here.origin[None])[0], atol=1e-9)


def test_ycb_rows_start_at_the_nearest_of_so_many_centres():
    # Upright bottle of 19 cm: the row asks for the lower of two centres (t0 lies 45 mm above the table).
    bottle = surface([0.05, 0.08, 0.19], center=(0.2, -0.1, 0.095))
    start = PaperProtocol("mustard_bottle", np.eye(4)).starts(bottle, FRANKA, None, None, 0)[0]
    np.testing.assert_allclose(start.T_world_gripper[:3, 3], (0.2, -0.1, 0.0475), atol=0.01)
    np.testing.assert_allclose(start.T_world_gripper[:3, 2], (0.0, 0.0, -1.0), atol=1e-9)
    np.testing.assert_allclose(start.approach, np.array([1.0, -1.0, 0.0]) / math.sqrt(2.0), atol=1e-9)
    # The published frame: on the table, in the middle of the footprint.
    np.testing.assert_allclose(start.origin, (0.2, -0.1, 0.0), atol=1e-3)


def test_observed_rows_put_the_highest_z_at_zero():
    cloud = duck_like()
    raised = PointCloud(cloud.points + np.array([0.0, 0.0, 0.01]))
    hande = Gripper.load("hande")
    here = PaperProtocol("observed/RubberDuck", np.eye(4)).starts(cloud, hande, None, None, 0)[0]
    there = PaperProtocol("observed/RubberDuck", np.eye(4)).starts(raised, hande, None, None, 0)[0]
    np.testing.assert_allclose(there.T_world_gripper[:3, 3] - here.T_world_gripper[:3, 3], (0, 0, 0.01), atol=1e-9)


def test_every_row_is_complete():
    for name, rows in START_TABLE.items():
        for gripper_name, row in rows.items():
            Gripper.load(gripper_name)
            assert row.t0[2] < 0.0, f"{name}: above the table is negative z"
            assert np.linalg.norm(row.n_app) > 0.1
            assert 0 <= row.clusters <= 15
        if name.startswith(OBSERVED):
            assert set(rows) == {"hande"}


def test_unknown_objects_and_grippers_are_named():
    with pytest.raises(ResourceNotFoundError, match=r"teapot.*The paper has them for T, RubberDuck"):
        PaperProtocol("teapot", np.eye(4)).starts(duck_like(), FRANKA, None, None, 0)
    with pytest.raises(ResourceNotFoundError, match=r"franka_hand.*has it for hande"):
        PaperProtocol("observed/T", np.eye(4)).starts(duck_like(), FRANKA, None, None, 0)
    with pytest.raises(InvalidInputError, match="T_world_model"):
        PaperProtocol("T", np.diag([2.0, 2.0, 2.0, 1.0]))


def test_generic_starts_close_across_the_object_from_above():
    cloud = surface([0.03, 0.20, 0.03], center=(0.3, 0.0, 0.015), turn=(0.0, 0.0, 0.6))
    starts = GenericProtocol().starts(cloud, FRANKA, np.array([0.0, 0.0, 1.0]), None, 0)
    assert len(starts) == 2 * 7  # 0.2 m at 0.03 m a centre, two closing directions each
    across = np.array([math.cos(0.6), math.sin(0.6), 0.0])
    for start in starts[::2]:
        assert abs(start.T_world_gripper[:3, 1] @ across) > 0.99
        np.testing.assert_allclose(start.T_world_gripper[:3, 2], (0.0, 0.0, -1.0), atol=1e-12)
    for start in starts[1::2]:
        assert abs(start.T_world_gripper[:3, 1] @ across) < 0.1
    centroid = cloud.points.mean(axis=0)
    distances = [np.linalg.norm(start.T_world_gripper[:3, 3] - centroid) for start in starts]
    assert (np.diff(distances) >= -1e-12).all()
    low, high = cloud.points.min(axis=0), cloud.points.max(axis=0)
    for start in starts:
        assert ((start.T_world_gripper[:3, 3] > low) & (start.T_world_gripper[:3, 3] < high)).all()
        np.testing.assert_allclose(
            start.T_world_gripper @ invert_transform(start.T_world_gripper), np.eye(4), atol=1e-9
        )


def test_generic_starts_follow_seed_size_and_direction():
    small = surface([0.03, 0.025, 0.02])
    long = surface([0.03, 0.9, 0.03])
    assert len(GenericProtocol().starts(small, FRANKA, None, None, 0)) == 2
    assert len(GenericProtocol().starts(long, FRANKA, None, None, 0)) == 30  # 15 centres at most
    assert len(GenericProtocol(GenericConfig(attempts="first")).starts(long, FRANKA, None, None, 0)) == 1
    first, again, other = (GenericProtocol().starts(long, FRANKA, None, None, seed) for seed in (3, 3, 4))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.T_world_gripper, b.T_world_gripper)
    assert any(not np.array_equal(a.T_world_gripper, b.T_world_gripper) for a, b in zip(first, other, strict=True))
    side = GenericProtocol().starts(long, FRANKA, np.array([0.0, 0.0, 1.0]), (0.0, 3.0, 0.0), 0)[0]
    np.testing.assert_allclose(side.T_world_gripper[:3, 2], (0.0, 1.0, 0.0), atol=1e-12)
    with pytest.raises(InvalidInputError, match="approach"):
        GenericProtocol().starts(long, FRANKA, None, (0.0, 0.0, 0.0), 0)


def test_upright_frame_puts_the_lowest_point_on_the_table():
    top, bottom = transform_points(upright_to_published(0.02), np.array([[0.1, 0.2, 0.22], [0.1, 0.2, 0.02]]))
    np.testing.assert_allclose(bottom, (0.1, -0.2, 0.0), atol=1e-12)
    np.testing.assert_allclose(top, (0.1, -0.2, -0.2), atol=1e-12)
