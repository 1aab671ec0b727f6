"""DISF: known answers, agreement with the NumPy reference, optimality, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import linregress

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.grasping import DisfConfig, GraspFitStatus, Gripper, fit_disf
from morphit_ros.grasping.fitting.disf import closing_rotation
from morphit_ros.grasping.fitting.energies import measure_energies
from morphit_ros.grasping.fitting.matching import facing_pairs

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
    assert result.status is GraspFitStatus.CONVERGED
    assert result.aperture == pytest.approx(0.040, abs=1e-4)
    # The approach weight holds the start's tilt back; the closing direction about z is free to align.
    aligned = fit_disf(BOX, FRANKA, start((0.0, 0.0, 0.15), (0.005, 0.006, 0.004)), 0.075)
    assert abs(aligned.T_world_gripper[1, 1]) == pytest.approx(1.0, abs=1e-6)
    assert aligned.T_world_gripper[1, 3] == pytest.approx(0.0, abs=1e-4)
    # Along x and z the box looks the same: the fit must not slide off.
    np.testing.assert_allclose(aligned.T_world_gripper[[0, 2], 3], [0.005, 0.004], atol=2e-3)


@pytest.mark.parametrize("name, slack", [("franka_hand", 0.003), ("umi", 0.0535)])
def test_sphere_is_gripped_across_its_centre(name, slack):
    # On a sphere, matching and moving creep towards the centre: only many rounds reach the end.
    config = DisfConfig(max_rounds=100, translation_tolerance=0.0, rotation_tolerance=0.0)
    # With fewer points their own scatter decides where it ends.
    ball = sampled(sphere_mesh(0.025), 20000)
    for start_z in (-0.003, -slack - 0.006):
        result = fit_disf(ball, Gripper.load(name), start(shift=(0.004, 0.003, start_z)), 0.07, config)
        assert result.status.usable
        axis, origin = result.T_world_gripper[:3, 1], result.T_world_gripper[:3, 3]
        off = origin - (origin @ axis) * axis
        # Across the pads exactly; along them, the equator comes well onto the pads, not to their middle.
        assert abs(off[0]) < 1e-3
        assert abs(off[2]) < max(slack, 0.003) + 1e-3
        assert 0.040 < result.aperture < 0.0505


def test_cylinder_is_gripped_across_its_axis():
    result = fit_disf(
        sampled(cylinder_mesh(0.02, 0.1), 5000), FRANKA, start((0.0, 0.0, 0.4), (0.003, -0.002, 0.01)), 0.07
    )
    assert result.status.usable
    assert abs(result.T_world_gripper[2, 1]) < 0.02
    assert np.linalg.norm(result.T_world_gripper[:2, 3]) < 2e-3


def met_by_pads(cloud, gripper, pose, opening, config):
    """Finger, pad point and object point of each pair, by loops over the definition."""
    local = (cloud.points - pose[:3, 3]) @ pose[:3, :3]
    facing = cloud.normals @ pose[:3, 1]
    half = np.array([gripper.pad_width, opening, gripper.pad_height]) / 2.0
    pairs = []
    for finger, side in ((1, 1.0), (2, -1.0)):
        met = {}
        for i in np.flatnonzero((np.abs(local) <= half).all(axis=1) & (side * facing >= config.cosine_limit)):
            k = int(((gripper.pad_points[:, [0, 2]] - local[i, [0, 2]]) ** 2).sum(axis=1).argmin())
            if k not in met or side * local[i, 1] > side * local[met[k], 1]:
                met[k] = i
        pairs += [(finger, k, int(met[k])) for k in sorted(met)]
    return np.array(pairs).reshape(-1, 3)


def fit_plainly(cloud, gripper, pose, opening, config, approach):
    """DISF matrix by matrix: Wahba's problem by SVD, translation and aperture by least squares over the pairs."""
    R, t, aperture = pose[:3, :3].copy(), pose[:3, 3].copy(), opening
    app, settled, rounds = np.asarray(approach) / np.linalg.norm(approach), False, 0
    while True:
        pairs = met_by_pads(cloud, gripper, make_transform(R, t), opening, config)
        if settled or rounds == config.max_rounds:
            return make_transform(R, t), aperture, rounds, pairs, settled
        rounds += 1
        side = np.where(pairs[:, 0] == 1, 1.0, -1.0)
        q, n_q = cloud.points[pairs[:, 2]], cloud.normals[pairs[:, 2]]
        n_p = np.outer(-side, R[:, 1])
        H = -(config.alpha**2) * n_p.T @ n_q + config.beta**2 * np.outer(R[:, 2], app)
        U, _, Vt = np.linalg.svd(H)
        turn = Vt.T @ np.diag([1.0, 1.0, np.linalg.det(Vt.T @ U.T)]) @ U.T
        R = turn @ R
        local, n = (q - t) @ R, n_q @ R
        a = 0.5 * side * n[:, 1]
        # Unknowns: shift along y, aperture.
        system = np.array([[1.0, 0.5 * side.mean()], [a @ n[:, 1], a @ a]])
        _, new = np.linalg.solve(system, [local[:, 1].mean(), (a * n[:, 1]) @ local[:, 1]])
        new = float(np.clip(new, gripper.aperture_min, gripper.aperture_max))
        shift = np.array([0.0, local[:, 1].mean() - 0.5 * side.mean() * new, 0.0])
        for axis, covering in ((0, True), (2, False)):
            values = np.unique(gripper.pad_points[:, axis])
            fit = linregress(local[:, axis], n[:, axis])
            middle = 0.5 * (local[:, axis].min() + local[:, axis].max())
            if fit.slope > 5.0 and fit.slope > 6.0 * fit.stderr:
                straight = -fit.intercept / fit.slope
                slack = 0.0 if covering else max(gripper.pad_height / 2 - 0.006, 0.0)
                shift[axis] = straight - np.clip(straight, -slack, slack)
            elif covering and abs(middle) > values[1] - values[0]:
                shift[axis] = middle
            shift[axis] = np.clip(shift[axis], -0.25 * gripper.pad_width, 0.25 * gripper.pad_width)
        t = t + R @ shift
        angle = math.acos(np.clip((np.trace(turn) - 1.0) / 2.0, -1.0, 1.0))
        moved = max(np.linalg.norm(shift), 0.5 * abs(new - aperture))
        aperture = new
        settled = moved <= config.translation_tolerance and angle <= config.rotation_tolerance


@pytest.mark.parametrize("name, rounds, seed", list(itertools.product(["franka_hand", "umi"], [1, 8], range(3))))
def test_kernel_agrees_with_the_definition(name, rounds, seed):
    rng = np.random.default_rng(seed)
    gripper = Gripper.load(name)
    cloud = sampled(cylinder_mesh(0.022, 0.07), 1500, seed, noise=5e-4)
    pose = start(rng.uniform(-0.3, 0.3, 3), rng.uniform(-0.008, 0.008, 3))
    config = DisfConfig(max_rounds=rounds)
    fast = fit_disf(cloud, gripper, pose, 0.07, config, approach=(0.1, 0.0, 1.0))
    plain, aperture, done, pairs, settled = fit_plainly(cloud, gripper, pose, 0.07, config, (0.1, 0.0, 1.0))
    assert (fast.status is GraspFitStatus.CONVERGED) == settled
    assert fast.iterations == done
    np.testing.assert_allclose(fast.T_world_gripper, plain, atol=1e-9)
    assert fast.aperture == pytest.approx(aperture, abs=1e-9)
    np.testing.assert_array_equal(fast.correspondences.finger, pairs[:, 0])
    np.testing.assert_array_equal(fast.correspondences.pad_index, pairs[:, 1])
    np.testing.assert_array_equal(fast.correspondences.object_index, pairs[:, 2])


def test_points_further_away_than_the_margin_are_gathered_again():
    # The box is met at a corner only; the fit has to travel three times the margin of what it gathered first.
    cloud = sampled(box_mesh([0.12, 0.03, 0.1]), 4000)
    config = DisfConfig(max_rounds=40)
    far = fit_disf(cloud, FRANKA, start(shift=(0.064, 0.0, 0.0)), 0.05, config)
    plain = fit_plainly(cloud, FRANKA, start(shift=(0.064, 0.0, 0.0)), 0.05, config, (0.0, 0.0, 1.0))[0]
    np.testing.assert_allclose(far.T_world_gripper, plain, atol=1e-9)


@pytest.mark.parametrize("name, opening", [("franka_hand", 0.03), ("hande", 0.05), ("umi", 0.08)])
def test_pairs_are_the_outermost_facing_points(name, opening):
    gripper, config = Gripper.load(name), DisfConfig(min_opposing_angle=110.0)
    cloud = sampled(box_mesh([0.05, 0.028, 0.09]), 1200, 3, noise=1e-3)
    pose = start((0.2, -0.1, 0.3), (0.004, 0.002, 0.01))
    fast = facing_pairs(cloud.points, cloud.normals, gripper, pose, opening, config.cosine_limit)
    plain = met_by_pads(cloud, gripper, pose, opening, config)
    assert len(plain) > 20
    np.testing.assert_array_equal(np.stack([fast.finger, fast.pad_index, fast.object_index], axis=1), plain)


@pytest.mark.parametrize("seed", range(6))
def test_rotation_is_optimal(seed):
    rng = np.random.default_rng(seed)
    s, n_app = 20.0 * rng.normal(size=3), rng.normal(size=3)
    n_app /= np.linalg.norm(n_app)

    def gain(turn):
        return 0.1**2 * turn[:, 1] @ s + 0.85**2 * turn[:, 2] @ n_app

    turn = np.empty((3, 3))
    closing_rotation(s, n_app, 0.1, 0.85, turn)
    np.testing.assert_allclose(turn.T @ turn, np.eye(3), atol=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1.0)
    best = max(
        -minimize(lambda w: -gain(matrix_from_rotation_vector(w)), rng.uniform(-2, 2, 3), method="BFGS").fun
        for _ in range(8)
    )
    assert gain(turn) == pytest.approx(best, abs=1e-8)


def test_rotation_of_surfaces_that_face_the_approach_is_a_rotation():
    for s in (np.array([0.0, 0.0, 30.0]), np.zeros(3), np.array([20.0, 0.0, 0.0])):
        turn = np.empty((3, 3))
        closing_rotation(s, np.array([0.0, 0.0, 1.0]), 0.1, 0.85, turn)
        np.testing.assert_allclose(turn.T @ turn, np.eye(3), atol=1e-12)
        assert np.linalg.det(turn) == pytest.approx(1.0)


def test_translation_and_aperture_are_the_fixed_point_of_the_alternation():
    cloud = sampled(sphere_mesh(0.025), 3000, 2, noise=1e-3)
    pose = start((0.05, 0.0, 0.1), (0.004, 0.005, 0.002))
    config = DisfConfig(max_rounds=1)
    met = met_by_pads(cloud, FRANKA, pose, 0.07, config)
    result = fit_disf(cloud, FRANKA, pose, 0.07, config)
    side = np.where(met[:, 0] == 1, 1.0, -1.0)
    R = result.T_world_gripper[:3, :3]
    q, n = (cloud.points[met[:, 2]] - pose[:3, 3]) @ R, cloud.normals[met[:, 2]] @ R
    y, aperture = 0.0, 0.07
    for _ in range(500):
        p = y + 0.5 * side * aperture
        y += (q[:, 1] - p).mean()
        a, b = 0.5 * side * n[:, 1], (y + 0.5 * side * aperture - q[:, 1]) * n[:, 1]
        aperture = float(np.clip(aperture - (a @ b) / (a @ a), 0.0, 0.08))
    moved = (result.T_world_gripper[:3, 3] - pose[:3, 3]) @ R
    assert moved[1] == pytest.approx(y, abs=1e-9)
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
    assert fit_disf(half, FRANKA, start(), 0.07).status is GraspFitStatus.ONE_SIDED
    assert fit_disf(BOX, FRANKA, start(shift=(0.3, 0.0, 0.0)), 0.07).status is GraspFitStatus.NO_CONTACT


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
    # Half of the pads hang over the end of the box.
    pose = start((0.0, 0.0, 0.2), (0.03, 0.004, 0.0))
    first = facing_pairs(BOX.points, BOX.normals, FRANKA, pose, 0.08, DisfConfig().cosine_limit)
    refreshed = fit_disf(BOX, FRANKA, pose, 0.08)
    assert len(refreshed.correspondences.finger) > 1.3 * len(first.finger)


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
def test_unusable_input_is_named(cloud, pose, aperture, approach, word):
    with pytest.raises(InvalidInputError, match=word):
        fit_disf(cloud, FRANKA, pose, aperture, approach=approach)


def test_gripper_with_crossed_limits_is_refused(tmp_path):
    from morphit_ros.resources import resource

    text = resource("config/grippers/hande.yaml").read_text(encoding="utf-8")
    path = tmp_path / "crossed.yaml"
    path.write_text(text.replace("aperture: [0.0, 0.05]", "aperture: [0.06, 0.05]"), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="0 <= min < max"):
        Gripper.load(path)
