"""The interface that all grasp planners share."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.grasping import (
    SURFACES,
    CmaEsConfig,
    GenericConfig,
    GenericProtocol,
    PublishedConfig,
    VisfConfig,
)
from morphit_bench.grasping.methods import METHODS, MorphitMethod, PublishedMethod, grasp_method
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping import Gripper, PlannerConfig

FRANKA = Gripper.load("franka_hand")
TABLE = SupportPlane(make_transform(None, (0.0, 0.0, 0.7)))
PUBLISHED = [name for name in METHODS if name not in ("morphit", "gpd")]
OPTIONS = {
    "morphit": {"config": PlannerConfig(pairs=200, max_starts=300)},
    "cma_es": {"config": CmaEsConfig(max_evaluations=900), "surface": SURFACES["known"]},
    "gpd": {},
    "disf": {"surface": SURFACES["known"]},
    "visf": {"surface": SURFACES["known"]},
}


def box_on_table(size=(0.10, 0.04, 0.06), seed=0) -> PointCloud:
    points, normals = sample_surface_evenly(box_mesh(size), 2500, np.random.default_rng(seed))
    return PointCloud(points + np.array([0.3, 0.1, 0.7 + size[2] / 2]), normals)


def method(name):
    if name == "cma_es":
        pytest.importorskip("cma", reason="the CMA-ES baseline needs the package cma")
    return grasp_method(name, **OPTIONS[name])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_grasps_a_box_on_a_table(name):
    planner = method(name)
    assert planner.name == name
    plan = planner.plan(box_on_table(), FRANKA, TABLE, seed=2)
    assert plan.success and plan.candidates >= 1
    assert all(seconds >= 0.0 for seconds in plan.timings.values())
    best = plan.grasps[0]
    closing, approach = best.T_world_gripper[:3, 1], best.T_world_gripper[:3, 2]
    assert abs(closing[1]) > 0.95
    assert best.aperture == pytest.approx(0.04, abs=3e-3)
    assert FRANKA.aperture_min <= best.aperture <= best.open_aperture <= FRANKA.aperture_max
    # The palm is above the object: the pre-grasp lies higher, straight back along the approach.
    assert best.T_world_pregrasp[2, 3] > best.T_world_gripper[2, 3] > 0.7
    back = best.T_world_gripper[:3, 3] - best.T_world_pregrasp[:3, 3]
    np.testing.assert_allclose(back, np.linalg.norm(back) * approach, atol=1e-12)
    energies = () if name == "gpd" else ("E_geom", "E_com")
    for key in (*energies, "contacts_1", "contacts_2"):
        assert np.isfinite(best.metrics[key])
    assert len(best.contact_points) == len(best.contact_fingers)
    assert set(best.contact_fingers) == {1, 2}


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_grasps(name):
    first, second = (method(name).plan(box_on_table(), FRANKA, TABLE, seed=4) for _ in range(2))
    assert len(first.grasps) == len(second.grasps) > 0
    for a, b in zip(first.grasps, second.grasps, strict=True):
        np.testing.assert_array_equal(a.T_world_gripper, b.T_world_gripper)


@pytest.mark.parametrize("name", METHODS)
def test_unreachable_grasps_are_counted(name):
    asked = []
    plan = method(name).plan(box_on_table(), FRANKA, TABLE, reachable=lambda grasp: bool(asked.append(grasp)))
    assert not plan.success and asked
    assert plan.rejected["unreachable"] == len(asked)
    assert plan.message


@pytest.mark.parametrize("name", METHODS)
def test_clouds_without_points_are_refused(name):
    for points in (np.empty((0, 3)), np.full((50, 3), np.nan)):
        with pytest.raises(InvalidInputError, match="finite points"):
            method(name).plan(PointCloud(points), FRANKA, TABLE)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_methods_give_one_grasp_backed_off_by_the_papers_distance(name):
    plan = method(name).plan(box_on_table(), FRANKA, TABLE)
    assert len(plan.grasps) == 1
    grasp = plan.grasps[0]
    back = grasp.T_world_gripper[:3, 3] - grasp.T_world_pregrasp[:3, 3]
    assert np.linalg.norm(back) == pytest.approx(0.22)
    assert grasp.open_aperture == FRANKA.aperture_max
    near = PublishedMethod(name, pregrasp_distance=0.05, **OPTIONS[name]).plan(box_on_table(), FRANKA, TABLE)
    assert np.linalg.norm(near.grasps[0].T_world_pregrasp[:3, 3] - grasp.T_world_gripper[:3, 3]) == pytest.approx(0.05)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_methods_need_no_normals_and_ignore_points_that_are_not_finite(name):
    cloud = box_on_table()
    broken = PointCloud(np.concatenate([cloud.points, np.full((40, 3), np.nan)]))
    clean, plan = (method(name).plan(c, FRANKA, TABLE, seed=1) for c in (PointCloud(cloud.points), broken))
    np.testing.assert_allclose(plan.grasps[0].T_world_gripper, clean.grasps[0].T_world_gripper, atol=1e-9)


def test_an_object_that_is_too_wide_has_no_correspondences():
    plan = method("disf").plan(box_on_table((0.3, 0.3, 0.1)), FRANKA, TABLE)
    assert not plan.success
    assert sum(plan.rejected.values()) == plan.candidates > 1
    assert "correspondences" in plan.message


def test_further_starts_are_tried_unless_only_the_first_is_asked_for():
    # Two bricks 30 cm apart: the centre nearest to the centroid of all points may lie beside both.
    cloud = box_on_table((0.3, 0.03, 0.03))
    gap = cloud.select(np.abs(cloud.points[:, 0] - 0.3) > 0.09)
    one = GenericProtocol(GenericConfig(cluster_size=0.3, attempts="first"))
    many = GenericProtocol(GenericConfig(cluster_size=0.05))
    assert not PublishedMethod("disf", protocol=one, surface=SURFACES["known"]).plan(gap, FRANKA, TABLE).success
    assert PublishedMethod("disf", protocol=many, surface=SURFACES["known"]).plan(gap, FRANKA, TABLE).success


def test_methods_and_options_that_do_not_exist_are_named():
    with pytest.raises(ResourceNotFoundError, match="Known: morphit, gpd, disf, visf, cma_es"):
        grasp_method("luck")
    with pytest.raises(ResourceNotFoundError, match="Known: disf, visf, cma_es"):
        PublishedMethod("morphit")
    with pytest.raises(InvalidInputError, match="VisfConfig for 'visf'"):
        PublishedMethod("visf", PublishedConfig())
    with pytest.raises(InvalidInputError, match="PublishedConfig for 'disf'"):
        PublishedMethod("disf", VisfConfig())
    for distance in (-0.1, float("nan")):
        with pytest.raises(InvalidInputError, match="pregrasp_distance"):
            PublishedMethod("disf", pregrasp_distance=distance)
    with pytest.raises(InvalidInputError, match="seed"):
        method("disf").plan(box_on_table(), FRANKA, TABLE, seed=-1)
    assert isinstance(grasp_method("morphit"), MorphitMethod)
