"""Objects whose mass and centre of mass are known: what hard pads hold counts, and light ones are ranked as before."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.candidates import make_starts
from morphit_ros.grasping.completion import AutoCompletion
from morphit_ros.grasping.completion.known_mass import KnownMass
from morphit_ros.grasping.fitting.starts import antipodal_pairs, turned_little
from morphit_ros.grasping.rejections import Rejections
from morphit_ros.grasping.scene import prepare_scene

HAND = Gripper.load("franka_hand")
TABLE = SupportPlane(make_transform(), np.array([1.0, 1.0]))
UP = np.array([0.0, 0.0, 1.0])
CENTER = (0.02, 0.0, 0.03)


def drill():
    """A round body that lies along x, 60 mm wide, with a flat handle of 34 mm that begins 30 mm beside its axis."""
    rng = np.random.default_rng(0)
    body, normals = sample_surface_evenly(cylinder_mesh(0.03, 0.12, 128), 2000, rng)
    body, normals = body[:, [2, 0, 1]], normals[:, [2, 0, 1]]
    handle, sides = sample_surface_evenly(box_mesh(np.array([0.034, 0.10, 0.05])), 1500, rng)
    handle += [0.0, 0.072, 0.0]
    outside = np.hypot(handle[:, 1], handle[:, 2]) > 0.03
    points = np.concatenate([body, handle[outside]])
    points[:, 2] += 0.03
    return PointCloud(points, np.concatenate([normals, sides[outside]]))


def plan(mass, center=CENTER, **options):
    config = PlannerConfig(mass=mass, normals="given", complete=False, rounds=2, workers=1)
    return plan_grasps(drill(), HAND, config, TABLE, center_of_mass=np.array(center), **options)


def test_a_heavy_thing_is_gripped_where_hard_pads_hold_it():
    """The best contact is where the weight turns the object in hard pads."""
    for seed in range(2):
        best = plan(0.9, seed=seed).grasps[0].metrics
        # Without it is 0.95 and 0.97.
        assert best["hard_load"] < 0.8
        assert best["torque"] < 0.8 * best["torsion"]


def test_torque_is_that_of_the_weight_about_the_closing_direction():
    center = np.array(CENTER)
    for grasp in plan(0.9).grasps[:5]:
        pose = grasp.T_world_gripper
        torque = np.cross(center - pose[:3, 3], -9.81 * 0.9 * UP) @ pose[:3, 1]
        # The middle of the patches is within a pad of the gripper's.
        assert grasp.metrics["torque"] == pytest.approx(abs(torque), abs=9.81 * 0.9 * 0.5 * HAND.pad_width)


def test_a_light_thing_is_ranked_as_if_nobody_had_weighed_it():
    weighed = plan(0.02)
    config = PlannerConfig(assumed_mass=0.02, normals="given", complete=False, rounds=2, workers=1)
    guessed = plan_grasps(drill(), HAND, config, TABLE, center_of_mass=np.array(CENTER))
    assert max(grasp.metrics["hard_load"] for grasp in weighed.grasps) < 0.5
    assert [grasp.score for grasp in weighed.grasps] == [grasp.score for grasp in guessed.grasps]
    assert "hard_load" not in guessed.grasps[0].metrics


def test_what_nobody_has_weighed_is_gripped_where_the_assumed_weight_is_held():
    turned = {}
    for mass, counts in ((0.02, True), (0.9, True), (0.9, False)):
        config = PlannerConfig(
            assumed_mass=mass, assumed_load=counts, normals="given", complete=False, rounds=1, workers=1
        )
        grasps = plan_grasps(drill(), HAND, config, TABLE, center_of_mass=np.array(CENTER)).grasps
        pose = grasps[0].T_world_gripper
        turned[mass, counts] = abs(np.cross(np.array(CENTER) - pose[:3, 3], UP) @ pose[:3, 1])
    # Its handle is 70 mm from the centre.
    assert turned[0.9, True] < 0.5 * turned[0.02, True]
    # Not in heaps, where that centre is a guess.
    assert turned[0.9, True] < 0.9 * turned[0.9, False]


def test_a_completion_that_knows_mass_and_centre_counts_as_weighed():
    told = KnownMass(np.array(CENTER), 1.0, AutoCompletion(), 0.9)
    config = PlannerConfig(normals="given", complete=False, rounds=1, workers=1)
    assert "hard_load" in plan_grasps(drill(), HAND, config, TABLE, completion=told).grasps[0].metrics


def test_a_plan_says_that_nothing_holds_the_weight():
    found = plan(3.0, (0.0, 0.3, 0.03))
    assert found.grasps[0].metrics["hard_load"] > 1.0
    assert "'hard_load'" in found.message
    assert "at most 1" in found.message
    assert "Grip nearer the centre of mass" in found.message
    nearest = min(grasp.metrics["lever"] for grasp in found.grasps)
    assert float(found.message.partition("place that fits is ")[2].split()[0]) <= 1e3 * nearest + 0.5
    assert plan(0.05).message == ""


def test_seeds_are_drawn_where_the_weight_turns_little():
    points = np.array([[0.0, 0.02, 0.0], [0.0, -0.02, 0.0], [0.1, 0.02, 0.0], [0.02, 0.0, 0.0], [0.2, 0.0, 0.0]])
    normals = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    likely = turned_little(points, normals, np.zeros(3), UP, 9.0, 0.1, 0.08)
    # Level with the centre, or with it between the fingers, nothing turns; beside it, or beyond their reach, it does.
    assert likely[[0, 1, 3]] == pytest.approx(1.0)
    assert likely[2] == pytest.approx(1.0 / (1.0 + 81.0))
    assert likely[4] == pytest.approx(1.0 / (1.0 + (90.0 * 0.12) ** 2))


def test_every_second_seed_is_drawn_by_how_likely_it_is():
    cloud = drill()
    likely = np.zeros(len(cloud.points))
    side = np.linalg.norm(cloud.points - [0.05, 0.03, 0.03], axis=1).argmin()
    likely[side] = 2.0
    pairs = antipodal_pairs(
        cloud.points, cloud.normals, 400, 0.005, 0.077, np.radians(35.0), np.random.default_rng(0), UP, likely=likely
    )
    assert (pairs.first == side).mean() > 0.4


def test_starts_of_heavy_things_are_near_the_centre_and_those_of_light_ones_as_before():
    twists = {}
    for mass in (0.0, 0.02, 0.9):
        config, rng = PlannerConfig(mass=mass, normals="given", complete=False), np.random.default_rng(0)
        scene = prepare_scene(drill(), config, TABLE, None, CENTER, rng)
        starts, _ = make_starts(scene, HAND, config, rng, Rejections())
        arms = scene.center_of_mass - starts.translations
        twists[mass] = np.abs(np.einsum("ij,ij->i", np.cross(arms, UP), starts.rotations[:, :, 1]))
    assert twists[0.02] == pytest.approx(twists[0.0])
    assert np.median(twists[0.9]) < 0.75 * np.median(twists[0.0])
