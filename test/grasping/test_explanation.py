"""An empty plan names its cause: with value, bound and remedy, whatever stage happened to be the last."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps

FRANKA = Gripper.load("franka_hand")


def surface(mesh: TriangleMesh, inwards: bool = False) -> PointCloud:
    points, normals = sample_surface(mesh, 3000, np.random.default_rng(0))
    return PointCloud(points, -normals if inwards else normals)


def table_at(height: float) -> SupportPlane:
    return SupportPlane(make_transform(None, (0.0, 0.0, height)))


@pytest.mark.parametrize("standing", [False, True])
@pytest.mark.parametrize("normals", [False, True])
def test_too_wide(standing, normals):
    cloud = surface(box_mesh([0.2, 0.2, 0.2]))
    plan = plan_grasps(
        cloud if normals else PointCloud(cloud.points), FRANKA, table=table_at(-0.1) if standing else None
    )
    assert not plan.success
    assert "object wider (0.200 m) than the gripper opens (0.080 m" in plan.message
    assert "wider gripper" in plan.message
    assert "point outwards" not in plan.message


def test_all_would_touch_the_table():
    # Its top is lower than fingers may come to the table.
    cloud = surface(box_mesh([0.06, 0.04, 0.004]))
    plan = plan_grasps(cloud, FRANKA, table=table_at(0.0015))
    assert not plan.success
    assert "'table'" in plan.message
    assert "rises 0.5 mm above it" in plan.message
    assert "Lower table_clearance, or correct the table's height" in plan.message


def test_too_thin():
    plan = plan_grasps(surface(cylinder_mesh(0.001, 0.08)), FRANKA, PlannerConfig(normals="given", min_width=0.004))
    assert not plan.success
    assert "object thinner (2.0 mm) than the gripper may close to (4.0 mm)" in plan.message
    assert "Lower min_width" in plan.message


def test_a_gripper_that_does_not_close_far_enough_is_told_so():
    from dataclasses import replace

    plan = plan_grasps(surface(box_mesh([0.02, 0.02, 0.08])), replace(FRANKA, aperture_min=0.03))
    assert not plan.success
    assert "than the gripper may close to (30.0 mm). Use a gripper that closes further." in plan.message


def test_normals_inward():
    config = PlannerConfig(normals="given")
    plan = plan_grasps(surface(box_mesh([0.06, 0.05, 0.05]), inwards=True), FRANKA, config, table=table_at(-0.025))
    assert not plan.success
    assert "0% of the normals point outwards" in plan.message
    assert "set normals to 'estimate'" in plan.message


def test_out_of_reach():
    cloud = surface(box_mesh([0.06, 0.05, 0.05]))
    plan = plan_grasps(cloud, FRANKA, table=table_at(-0.025), reachable=lambda grasp: False)
    assert not plan.success
    assert f"the robot reaches none of {plan.rejected['unreachable']} grasps" in plan.message
    assert "Move the object or the robot" in plan.message


def test_surrounded():
    wall = np.random.default_rng(0).uniform([-0.1, -0.1, -0.025], [0.1, 0.1, 0.12], (20000, 3))
    wall = wall[(np.abs(wall[:, :2]) > [0.034, 0.029]).any(axis=1)]
    plan = plan_grasps(surface(box_mesh([0.06, 0.05, 0.05])), FRANKA, table=table_at(-0.025), obstacles=wall)
    assert not plan.success
    assert "'obstacles': palm or fingers would hit what is around the object" in plan.message
    assert "Clear its surroundings" in plan.message


def test_one_side_only():
    cloud = surface(box_mesh([0.06, 0.05, 0.05]))
    plan = plan_grasps(cloud.select(cloud.normals[:, 1] > 0.5), FRANKA, PlannerConfig(normals="given", complete=False))
    assert not plan.success
    assert "no surface faces away from a seen one within 35°" in plan.message
    assert "more sides" in plan.message


def test_slippery():
    # A wedge of 30°: its sides slip at any friction below tan 15°.
    leaning = np.radians(15.0)
    points = np.random.default_rng(0).uniform([-0.03, -1.0, 0.0], [0.03, 1.0, 0.03], (3000, 3))
    side = np.sign(points[:, 1])
    points[:, 1] = side * (0.012 + np.tan(leaning) * points[:, 2])
    normals = np.column_stack([np.zeros(3000), side * np.cos(leaning), np.full(3000, -np.sin(leaning))])
    config = PlannerConfig(normals="given", friction=0.1, smoothing_radius=0.0, complete=False)
    plan = plan_grasps(PointCloud(points, normals), FRANKA, config)
    assert not plan.success
    assert "more slanted than friction 0.1 holds, 6°" in plan.message
    assert "Raise friction" in plan.message
