"""DISF: known answers, agreement with the NumPy reference, optimality, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.grasping import DisfConfig, FitStatus, Gripper, fit_disf
from morphit_ros.grasping.cma_es import CmaEsConfig, fit_cma_es
from morphit_ros.grasping.correspondences import CorrespondenceConfig, find_correspondences
from morphit_ros.grasping.disf import measure_energies, optimal_rotation
from morphit_ros.grasping.reference import find_correspondences_numpy, fit_disf_numpy
from morphit_ros.grasping.visf import fit_visf

FRANKA = Gripper.load("franka_hand")


def sampled(mesh: TriangleMesh, count: int = 2500, seed: int = 0, noise: float = 0.0) -> PointCloud:
    rng = np.random.default_rng(seed)
    points, normals = sample_surface_evenly(mesh, count, rng)
    return PointCloud(points + rng.normal(0.0, noise, points.shape) if noise else points, normals)


BOX = sampled(box_mesh([0.06, 0.04, 0.05]))


def start(turn=(0.0, 0.0, 0.0), shift=(0.0, 0.0, 0.0)):
    return make_transform(matrix_from_rotation_vector(turn), shift)


@pytest.mark.parametrize("name, count", [("franka_hand", 100), ("hande", 132), ("umi", 854)])
def test_canonical_surface_has_the_papers_number_of_points(name, count):
    gripper = Gripper.load(name)
    assert len(gripper.pad_points) == count
    half = [gripper.pad_width / 2, 0.0, gripper.pad_height / 2]
    np.testing.assert_allclose(gripper.pad_points.max(axis=0), half, atol=1e-12)
    np.testing.assert_allclose(gripper.pad_points.min(axis=0), [-v for v in half], atol=1e-12)


@pytest.mark.parametrize("name", ["franka_hand", "hande", "umi"])
def test_no_finger_box_stands_in_front_of_its_pad(name):
    for box in Gripper.load(name).finger_boxes:
        inner = box.center[1] - box.size[1] / 2
        # Parts beside the pad's height (carriages) may reach further in, parts at its height may not.
        at_pad = abs(box.center[2]) < Gripper.load(name).pad_height / 2
        assert inner >= (-1e-9 if at_pad else -0.006)


def test_box_is_met_flat_and_as_wide_as_it_is():
    result = fit_disf(BOX, FRANKA, start((0.1, 0.0, 0.15), (0.005, 0.006, 0.004)), 0.075)
    assert result.status is FitStatus.CONVERGED
    assert result.aperture == pytest.approx(0.040, abs=1e-4)
    # The approach weight holds the start's tilt back; the closing direction about z is free to align.
    aligned = fit_disf(BOX, FRANKA, start((0.0, 0.0, 0.15), (0.005, 0.006, 0.004)), 0.075)
    assert abs(aligned.T_world_gripper[1, 1]) == pytest.approx(1.0, abs=1e-6)
    assert aligned.T_world_gripper[1, 3] == pytest.approx(0.0, abs=1e-4)
    # Along x and z the box looks the same: the fit must not slide off.
    np.testing.assert_allclose(aligned.T_world_gripper[[0, 2], 3], [0.005, 0.004], atol=2e-3)


def test_sphere_is_gripped_across_its_centre():
    # On a sphere, matching and moving creep towards the centre: only many rounds reach the end.
    config = DisfConfig(max_rounds=100, translation_tolerance=0.0, rotation_tolerance=0.0)
    pose = start((0.0, 0.0, 0.0), (0.004, 0.003, -0.003))
    # With fewer points their own scatter decides where it ends.
    result = fit_disf(sampled(sphere_mesh(0.025), 20000), FRANKA, pose, 0.07, config)
    assert result.status.usable
    axis, origin = result.T_world_gripper[:3, 1], result.T_world_gripper[:3, 3]
    assert np.linalg.norm(np.cross(origin, axis)) < 1.0e-3
    assert 0.040 < result.aperture < 0.0505


def test_cylinder_is_gripped_across_its_axis():
    result = fit_disf(
        sampled(cylinder_mesh(0.02, 0.1), 5000), FRANKA, start((0.0, 0.0, 0.4), (0.003, -0.002, 0.01)), 0.07
    )
    assert result.status.usable
    assert abs(result.T_world_gripper[2, 1]) < 0.02
    assert np.linalg.norm(result.T_world_gripper[:2, 3]) < 2e-3


@pytest.mark.parametrize("normal_filter, rounds, seed", list(itertools.product(["pad", "paper"], [1, 8], range(4))))
def test_kernel_agrees_with_the_reference(normal_filter, rounds, seed):
    rng = np.random.default_rng(seed)
    cloud = sampled(cylinder_mesh(0.022, 0.07), 1500, seed, noise=5e-4)
    pose = start(rng.uniform(-0.3, 0.3, 3), rng.uniform(-0.008, 0.008, 3))
    config = DisfConfig(max_rounds=rounds, matching=CorrespondenceConfig(normal_filter=normal_filter))
    fast = fit_disf(cloud, FRANKA, pose, 0.07, config, approach=(0.1, 0.0, 1.0))
    plain = fit_disf_numpy(cloud, FRANKA, pose, 0.07, config, approach=(0.1, 0.0, 1.0))
    assert fast.status is plain.status
    assert fast.iterations == plain.iterations
    np.testing.assert_allclose(fast.T_world_gripper, plain.T_world_gripper, atol=1e-9)
    assert fast.aperture == pytest.approx(plain.aperture, abs=1e-9)
    np.testing.assert_array_equal(fast.correspondences.object_index, plain.correspondences.object_index)
    np.testing.assert_array_equal(fast.correspondences.pad_index, plain.correspondences.pad_index)


@pytest.mark.parametrize("name, aperture", [("franka_hand", 0.03), ("hande", 0.05), ("umi", 0.08)])
def test_correspondences_are_the_nearest_ones(name, aperture):
    gripper = Gripper.load(name)
    cloud = sampled(box_mesh([0.05, 0.028, 0.09]), 1200, 3, noise=1e-3)
    for config in (CorrespondenceConfig(), CorrespondenceConfig(normal_filter="paper", min_opposing_angle=100.0)):
        pose = start((0.2, -0.1, 0.3), (0.004, 0.002, 0.01))
        fast = find_correspondences(cloud.points, cloud.normals, gripper, pose, aperture, 0.08, config)
        plain = find_correspondences_numpy(cloud.points, cloud.normals, gripper, pose, aperture, 0.08, config)
        assert len(fast.finger) > 20
        np.testing.assert_array_equal(fast.object_index, plain.object_index)
        np.testing.assert_array_equal(fast.pad_index, plain.pad_index)
        np.testing.assert_array_equal(fast.finger, plain.finger)


def test_rotation_is_optimal():
    rng = np.random.default_rng(5)
    normal = rng.normal(size=3)
    n_p = np.repeat([[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]], 20, axis=0)
    n_q = -n_p + 0.3 * rng.normal(size=n_p.shape) + 0.2 * normal
    n_z, n_app = np.array([0.0, 0.0, 1.0]), np.array([0.3, 0.1, 0.9]) / np.linalg.norm([0.3, 0.1, 0.9])

    def energy(rotation):
        aligned = np.einsum("ij,ij->i", n_p @ rotation.T, n_q)
        return 0.1**2 * (1.0 + aligned).sum() + 0.85**2 * (1.0 - (rotation @ n_z) @ n_app)

    turn = optimal_rotation(n_p.T @ n_q, n_z, n_app, 0.1, 0.85)
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)
    best = min(
        minimize(lambda w: energy(matrix_from_rotation_vector(w)), rng.uniform(-2, 2, 3), method="BFGS").fun
        for _ in range(6)
    )
    assert energy(turn) == pytest.approx(best, abs=1e-8)


def test_translation_and_aperture_are_the_fixed_point_of_the_alternation():
    cloud = sampled(sphere_mesh(0.025), 3000, 2, noise=1e-3)
    config = DisfConfig(max_rounds=1)
    pose = start((0.05, 0.0, 0.1), (0.004, 0.005, 0.002))
    result = fit_disf(cloud, FRANKA, pose, 0.07, config)
    pairs = result.correspondences
    side = np.where(pairs.finger == 1, 1.0, -1.0)
    q, n = cloud.points[pairs.object_index], cloud.normals[pairs.object_index]
    R, aperture = result.T_world_gripper[:3, :3], 0.07
    t = pose[:3, 3]
    for _ in range(500):
        pad = FRANKA.pad_points[pairs.pad_index] + np.outer(side * aperture / 2, (0, 1, 0))
        t = t + (q - (pad @ R.T + t)).mean(axis=0)
        b = np.einsum("ij,ij->i", pad @ R.T + t - q, n)
        a = 0.5 * side * (n @ R[:, 1])
        aperture = float(np.clip(aperture - (a @ b) / (a @ a), 0.0, 0.08))
    np.testing.assert_allclose(result.T_world_gripper[:3, 3], t, atol=1e-9)
    assert result.aperture == pytest.approx(aperture, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_fit_lowers_the_energy_over_its_correspondences(seed):
    rng = np.random.default_rng(seed)
    pose = start(rng.uniform(-0.3, 0.3, 3), rng.uniform(-0.006, 0.006, 3))
    result = fit_disf(BOX, FRANKA, pose, 0.07, DisfConfig(max_rounds=1), approach=(0, 0, 1))
    before = measure_energies(
        BOX.points, BOX.normals, FRANKA, pose, 0.07, result.correspondences, np.array([0.0, 0, 1]), 0.1
    )
    after = result.energies
    assert after.E_geom + 0.85**2 * after.E_a < before.E_geom + 0.85**2 * before.E_a


def test_moving_cloud_and_start_moves_the_result():
    motion = start((0.7, -1.1, 0.4), (0.5, -0.3, 0.2))
    pose = start((0.1, 0.05, 0.2), (0.003, 0.004, 0.0))
    here = fit_disf(BOX, FRANKA, pose, 0.07)
    there = fit_disf(BOX.transformed(motion), FRANKA, motion @ pose, 0.07)
    np.testing.assert_allclose(there.T_world_gripper, motion @ here.T_world_gripper, atol=1e-7)
    assert there.aperture == pytest.approx(here.aperture, abs=1e-8)


def test_aperture_stays_within_the_gripper():
    wide = sampled(box_mesh([0.06, 0.085, 0.05]))
    result = fit_disf(wide, FRANKA, start(), 0.095)
    assert result.status.usable
    assert result.aperture == FRANKA.aperture_max


def test_one_side_of_an_object_is_no_grasp():
    half = BOX.select(BOX.points[:, 1] > 0.0)
    assert fit_disf(half, FRANKA, start(), 0.07).status is FitStatus.ONE_SIDED
    assert fit_disf(BOX, FRANKA, start(shift=(0.3, 0.0, 0.0)), 0.07).status is FitStatus.NO_CONTACT


def test_fingers_of_a_lopsided_cloud_meet_both_sides():
    # Four times the points on one side: centroids alone would pull the gripper to that side.
    rng = np.random.default_rng(1)
    sparse = BOX.points[:, 1] > -0.019
    cloud = BOX.select(sparse | (rng.random(len(BOX)) < 0.25))
    result = fit_disf(cloud, FRANKA, start(shift=(0.0, 0.004, 0.0)), 0.07)
    assert result.correspondences.count(1) > 2 * result.correspondences.count(2) > 0
    assert result.aperture == pytest.approx(0.040, abs=2e-4)
    assert result.T_world_gripper[1, 3] == pytest.approx(0.0, abs=2e-4)


def test_refreshed_correspondences_reach_more_of_the_surface_than_the_first():
    pose = start((0.0, 0.0, 0.45), (0.0, 0.008, 0.0))
    first = fit_disf(BOX, FRANKA, pose, 0.08, DisfConfig(max_rounds=1))
    refreshed = fit_disf(BOX, FRANKA, pose, 0.08)
    assert len(refreshed.correspondences.finger) > len(first.correspondences.finger)


@pytest.mark.parametrize("fit, tolerance", [(fit_visf, 1e-3), (fit_cma_es, 1.5e-3)])
def test_baselines_find_the_box(fit, tolerance):
    if fit is fit_cma_es:
        pytest.importorskip("cma", reason="the CMA-ES baseline needs the package cma")
    result = fit(BOX, FRANKA, start((0.0, 0.0, 0.1), (0.0, 0.003, 0.0)), 0.07)
    assert result.status.usable
    assert result.aperture == pytest.approx(0.040, abs=tolerance)
    assert abs(result.T_world_gripper[1, 1]) > math.cos(0.05)


def test_baseline_that_left_the_object_says_so():
    from morphit_ros.grasping.visf import status_at_end

    matching = CorrespondenceConfig()
    for shift, expected in ((0.0, FitStatus.CONVERGED), (0.5, FitStatus.DIVERGED)):
        found = status_at_end(
            FitStatus.CONVERGED, BOX.points, BOX.normals, FRANKA, start(shift=(shift, 0.0, 0.0)), 0.04, matching
        )
        assert found is expected


def test_cma_es_repeats_with_its_seed():
    pytest.importorskip("cma", reason="the CMA-ES baseline needs the package cma")
    config = CmaEsConfig(max_evaluations=200, seed=7)
    first, second = (fit_cma_es(BOX, FRANKA, start(), 0.06, config) for _ in range(2))
    np.testing.assert_array_equal(first.T_world_gripper, second.T_world_gripper)


NAN_POINTS = BOX.points.copy()
NAN_POINTS[3, 1] = np.nan


@pytest.mark.parametrize(
    "cloud, pose, aperture, approach, word",
    [
        (PointCloud(np.empty((0, 3)), np.empty((0, 3))), np.eye(4), 0.05, None, "at least 1 point"),
        (PointCloud(BOX.points), np.eye(4), 0.05, None, "normals"),
        (PointCloud(NAN_POINTS, BOX.normals), np.eye(4), 0.05, None, "finite"),
        (BOX, np.diag([1.0, 1.0, -1.0, 1.0]), 0.05, None, "T_world_gripper_start"),
        (BOX, np.diag([2.0, 2.0, 2.0, 1.0]), 0.05, None, "T_world_gripper_start"),
        (BOX, np.eye(3), 0.05, None, "T_world_gripper_start"),
        (BOX, np.eye(4), -0.01, None, "aperture_start"),
        (BOX, np.eye(4), math.nan, None, "aperture_start"),
        (BOX, np.eye(4), 50.0, None, "metres"),
        (BOX, np.eye(4), 0.05, (0.0, 0.0, 0.0), "approach"),
    ],
)
@pytest.mark.parametrize("fit", [fit_disf, fit_visf])
def test_unusable_input_is_named(fit, cloud, pose, aperture, approach, word):
    with pytest.raises(InvalidInputError, match=word):
        fit(cloud, FRANKA, pose, aperture, approach=approach)


def test_gripper_with_crossed_limits_is_refused(tmp_path):
    from morphit_ros.resources import resource

    text = resource("config/grippers/hande.yaml").read_text(encoding="utf-8")
    path = tmp_path / "crossed.yaml"
    path.write_text(text.replace("aperture: [0.0, 0.05]", "aperture: [0.06, 0.05]"), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="0 <= min < max"):
        Gripper.load(path)
