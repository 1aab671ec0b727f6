"""Planning: what a plan guarantees, what an empty plan says, reproducibility, bad input."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface
from morphit_ros.geometry.outward_normals import estimate_outward_normals, normals_point_outwards
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, transform_points
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.completion import extrude_to_table
from morphit_ros.grasping.scoring.quality import diverse_top

FRANKA = Gripper.load("franka_hand")
TABLE = SupportPlane(np.eye(4))


def on_table(mesh: TriangleMesh, count: int = 2000, seed: int = 0, noise: float = 0.0) -> PointCloud:
    """Surface points of a mesh that stands on z = 0, without its underside."""
    rng = np.random.default_rng(seed)
    points, normals = sample_surface(mesh, count, rng)
    points = points - [0.0, 0.0, mesh.bounds[0][2]]
    if noise:
        points = points + rng.normal(0.0, noise, points.shape)
    keep = points[:, 2] > 0.004
    return PointCloud(points[keep], normals[keep])


def hammer() -> TriangleMesh:
    head = box_mesh([0.03, 0.09, 0.03]).transformed(make_transform(None, (0.1, 0.0, 0.0)))
    return concatenate_meshes([box_mesh([0.2, 0.02, 0.02]), head])


SHAPES = {
    "box": box_mesh([0.07, 0.04, 0.06]),
    "cylinder": cylinder_mesh(0.025, 0.10),
    "ball": sphere_mesh(0.022),
    "flat bar": box_mesh([0.15, 0.025, 0.012]),
    "hammer": hammer(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_grasp_of_a_plan_keeps_what_plans_promise(name):
    cloud = on_table(SHAPES[name], noise=5e-4)
    config = PlannerConfig()
    plan = plan_grasps(cloud, FRANKA, config, table=TABLE, seed=1)
    assert plan.success, plan.message
    assert len(plan.grasps) <= config.max_grasps
    scores = [grasp.score for grasp in plan.grasps]
    assert scores == sorted(scores, reverse=True)
    for grasp in plan.grasps:
        rotation, origin = grasp.T_world_gripper[:3, :3], grasp.T_world_gripper[:3, 3]
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-9)
        np.testing.assert_allclose(
            grasp.T_world_pregrasp[:3, 3], origin - config.pregrasp_distance * rotation[:, 2], atol=1e-12
        )
        assert FRANKA.aperture_min <= grasp.aperture < grasp.open_aperture <= FRANKA.aperture_max
        assert set(grasp.contact_fingers) == {1, 2}
        assert len(grasp.contact_points) == len(grasp.contact_fingers)
        # Independently of the planner's own kernels: no box below the table, no point inside a box on the way.
        local = (cloud.points - origin) @ rotation
        for box in FRANKA.collision_boxes(grasp.open_aperture):
            corners = box.center + 0.5 * box.size * np.array(
                [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
            )
            assert transform_points(grasp.T_world_gripper, corners)[:, 2].min() >= config.table_clearance - 1e-9
            low, high = box.center - box.size / 2, box.center + box.size / 2
            low = low - [0.0, 0.0, config.pregrasp_distance]
            assert ((local > low) & (local < high)).all(axis=1).sum() <= config.allowed_hits


def test_best_grasp_of_a_box_spans_its_graspable_side():
    plan = plan_grasps(on_table(box_mesh([0.12, 0.04, 0.05]), 3000), FRANKA, table=TABLE)
    best = plan.grasps[0]
    assert best.aperture == pytest.approx(0.040, abs=1e-3)
    assert abs(best.T_world_gripper[1, 1]) > 0.99
    assert abs(best.T_world_gripper[0, 3]) < 0.015


def test_flat_bar_is_gripped_low_from_above():
    best = plan_grasps(on_table(SHAPES["flat bar"]), FRANKA, table=TABLE).grasps[0]
    assert best.T_world_gripper[2, 2] < -0.7
    # The pads' lower edge is below the top of the bar.
    assert best.T_world_gripper[2, 3] - FRANKA.pad_height / 2 < 0.008


def test_given_center_of_mass_draws_the_grasp():
    cloud = on_table(box_mesh([0.2, 0.03, 0.03]), 3000)
    for x in (-0.07, 0.07):
        best = plan_grasps(cloud, FRANKA, table=TABLE, center_of_mass=(x, 0.0, 0.015)).grasps[0]
        assert abs(best.T_world_gripper[0, 3] - x) < 0.03


def test_unseen_side_is_completed_on_a_table():
    box = on_table(box_mesh([0.10, 0.05, 0.06]), 4000)
    seen = box.select((box.normals[:, 1] > -0.5) & (box.normals[:, 0] > -0.5))
    plan = plan_grasps(seen, FRANKA, table=TABLE)
    assert plan.success
    assert abs(plan.grasps[0].aperture - 0.05) < 0.004
    assert plan_grasps(seen, FRANKA, PlannerConfig(complete=False), table=TABLE).success is False


def test_same_seed_same_plan_and_other_seed_another():
    cloud = on_table(SHAPES["cylinder"], noise=5e-4)
    first, again, other = (plan_grasps(cloud, FRANKA, table=TABLE, seed=s) for s in (3, 3, 4))
    assert [g.score for g in first.grasps] == [g.score for g in again.grasps]
    np.testing.assert_array_equal(first.grasps[0].T_world_gripper, again.grasps[0].T_world_gripper)
    assert [g.score for g in first.grasps] != [g.score for g in other.grasps]


@pytest.mark.parametrize("with_table", [True, False])
def test_moving_the_scene_moves_the_plan(with_table):
    motion = make_transform(matrix_from_rotation_vector((0.4, -0.9, 1.3)), (0.4, -0.2, 0.7))
    cloud = on_table(SHAPES["box"], 1500)
    here = plan_grasps(cloud, FRANKA, table=TABLE if with_table else None)
    there = plan_grasps(cloud.transformed(motion), FRANKA, table=SupportPlane(motion) if with_table else None)
    assert here.success
    assert len(here.grasps) == len(there.grasps)
    assert there.grasps[0].score == pytest.approx(here.grasps[0].score, abs=1e-6)
    np.testing.assert_allclose(there.grasps[0].T_world_gripper, motion @ here.grasps[0].T_world_gripper, atol=1e-5)


def test_too_wide_an_object_is_called_so():
    plan = plan_grasps(on_table(box_mesh([0.13, 0.112, 0.12]), 3000), FRANKA, table=TABLE)
    assert not plan.success
    assert "object wider (0.112 m) than the gripper opens (0.080 m)" in plan.message
    assert plan.rejected["too wide"] > 0


def test_empty_plan_names_the_stage_that_emptied_it():
    cloud = on_table(SHAPES["box"])
    plan = plan_grasps(cloud, FRANKA, table=TABLE, reachable=lambda grasp: False)
    assert not plan.success
    assert "'unreachable': the robot reaches none of" in plan.message
    assert list(plan.rejected)[-1] == "unreachable"
    one_sided = on_table(SHAPES["box"]).select(on_table(SHAPES["box"]).normals[:, 1] > 0.5)
    plan = plan_grasps(one_sided, FRANKA, PlannerConfig(normals="given"))
    assert not plan.success
    assert "No grasp" in plan.message
    assert "Removed:" in plan.message


def test_reachability_is_asked_in_the_order_of_the_ranking():
    asked = []
    plan = plan_grasps(
        on_table(SHAPES["box"]), FRANKA, PlannerConfig(max_grasps=3), table=TABLE,
        reachable=lambda grasp: asked.append(grasp.score) or len(asked) > 2,
    )  # fmt: skip
    assert asked == sorted(asked, reverse=True)
    assert plan.rejected["unreachable"] == 2
    assert [g.score for g in plan.grasps] == asked[2:5]


def test_a_distance_function_drops_what_is_too_near_and_is_reported():
    cloud = on_table(box_mesh([0.04, 0.06, 0.08]))
    free = plan_grasps(cloud, FRANKA, table=TABLE)
    # Something at the side that the best grasp comes to: a plane through it, all on one side of it is free.
    edge = float(free.grasps[0].T_world_gripper[0, 3])

    def clearance(pose, aperture):
        return float(pose[0, 3] - edge) if aperture > 0.0 else np.nan

    plan = plan_grasps(cloud, FRANKA, PlannerConfig(min_clearance=0.002), table=TABLE, clearance=clearance)
    assert plan.rejected["clearance"] > 0
    for grasp in plan.grasps:
        assert grasp.metrics["clearance"] == grasp.T_world_gripper[0, 3] - edge
        assert grasp.metrics["clearance"] >= 0.002
    none = plan_grasps(cloud, FRANKA, table=TABLE, clearance=lambda pose, aperture: np.nan)
    assert not none.grasps
    assert "'clearance': by the distance function" in none.message


def test_preferred_approach_is_followed():
    cloud = PointCloud(*sample_surface(cylinder_mesh(0.02, 0.15), 2500, np.random.default_rng(0)))
    config = PlannerConfig(max_approach_tilt=30.0)
    plan = plan_grasps(cloud, FRANKA, config, approach=(1.0, 0.0, 0.0))
    assert plan.success
    for grasp in plan.grasps:
        assert grasp.T_world_gripper[0, 2] > np.cos(np.radians(35.0))


def test_progress_reaches_the_end():
    seen = []
    plan_grasps(on_table(SHAPES["ball"]), FRANKA, table=TABLE, progress=lambda stage, share: seen.append(share))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_wrong_normals_are_noticed_and_mended():
    points, normals = sample_surface(box_mesh([0.07, 0.04, 0.06]), 2000, np.random.default_rng(0))
    for bad in (None, -normals, normals * np.random.default_rng(1).choice([-1.0, 1.0], size=(2000, 1))):
        plan = plan_grasps(PointCloud(points, bad), FRANKA)
        assert plan.success
        assert "estimated" in plan.message
    assert plan_grasps(PointCloud(points, normals), FRANKA).message == ""


def test_one_noisy_layer_is_not_gripped():
    # One side of a box only, with normals of both signs: every apparent pair is within the noise.
    rng = np.random.default_rng(0)
    layer = rng.uniform(-0.04, 0.04, (2000, 3)) * [1.0, 1.0, 0.0] + rng.normal(0.0, 7e-4, (2000, 3)) * [0.0, 0.0, 1.0]
    signs = rng.choice([-1.0, 1.0], size=(2000, 1))
    plan = plan_grasps(PointCloud(layer, signs * [0.0, 0.0, 1.0]), FRANKA, PlannerConfig(normals="estimate"))
    assert all(grasp.aperture >= PlannerConfig().min_width_estimated for grasp in plan.grasps)


def test_estimated_normals_point_outwards_also_inside_a_concavity():
    u_shape = concatenate_meshes(
        [
            box_mesh([0.10, 0.04, 0.02]),
            box_mesh([0.02, 0.04, 0.06]).transformed(make_transform(None, (0.04, 0.0, 0.04))),
            box_mesh([0.02, 0.04, 0.06]).transformed(make_transform(None, (-0.04, 0.0, 0.04))),
        ]
    )
    points, normals = sample_surface(u_shape, 4000, np.random.default_rng(0))
    inner = (np.abs(points[:, 0]) < 0.0301) & (np.abs(normals[:, 0]) > 0.9) & (points[:, 2] > 0.02)
    estimated = estimate_outward_normals(points)
    agree = np.einsum("ij,ij->i", estimated, normals) > 0.5
    assert agree[inner].mean() > 0.9
    assert agree.mean() > 0.85
    assert normals_point_outwards(points, estimated)
    assert not normals_point_outwards(points, -normals)


def test_completion_of_half_a_cylinder_finds_axis_and_sides():
    full = on_table(cylinder_mesh(0.03, 0.1), 6000)
    seen = full.select(full.normals[:, 1] > -0.2)
    completion = extrude_to_table(seen.points, seen.normals, np.eye(4))
    np.testing.assert_allclose(completion.center_of_mass, [0.0, 0.0, 0.05], atol=3e-3)
    hidden = completion.points[completion.points[:, 1] < -0.015]
    assert len(hidden) > 50
    np.testing.assert_allclose(np.linalg.norm(hidden[:, :2], axis=1), 0.03, atol=3e-3)
    # Where the side was seen nothing is made up.
    assert (completion.points[:, 1] > 0.015).sum() == 0


def test_near_duplicates_are_suppressed():
    rotations = np.repeat(np.eye(3)[None], 4, axis=0)
    rotations[3] = matrix_from_rotation_vector((0.0, 0.0, 1.0))
    translations = np.array([[0.0, 0, 0], [0.001, 0, 0], [0.05, 0, 0], [0.001, 0, 0]])
    chosen = diverse_top(rotations, translations, np.array([0.5, 0.9, 0.1, 0.2]), 10, 0.01, 0.4)
    assert chosen.tolist() == [1, 3, 2]
    # Half a turn about the approach gives the same grasp.
    rotations[3] = np.diag([-1.0, -1.0, 1.0])
    assert diverse_top(rotations, translations, np.array([0.5, 0.9, 0.1, 0.2]), 10, 0.01, 0.4).tolist() == [1, 2]


def test_obstacles_are_kept_clear_of():
    box = on_table(box_mesh([0.10, 0.04, 0.06]), 3000)
    free = plan_grasps(box, FRANKA, table=TABLE)
    # Walls along both long sides, too close for a finger, but for the end at +x.
    x, z = np.meshgrid(np.arange(-0.06, 0.02, 0.004), np.arange(0.0, 0.2, 0.004))
    wall = np.column_stack([x.ravel(), np.full(x.size, 0.026), z.ravel()])
    walls = np.concatenate([wall, wall * [1.0, -1.0, 1.0]])
    crowded = plan_grasps(box, FRANKA, table=TABLE, obstacles=walls)
    assert abs(free.grasps[0].T_world_gripper[0, 3]) < 0.02
    assert crowded.success
    for grasp in crowded.grasps:
        local = (walls - grasp.T_world_gripper[:3, 3]) @ grasp.T_world_gripper[:3, :3]
        for part in FRANKA.collision_boxes(grasp.open_aperture):
            inside = np.abs(local - part.center) < 0.5 * part.size
            # Walls are thinned to one point in 4 mm.
            assert inside.all(axis=1).sum() <= 6 * PlannerConfig().allowed_hits
    with pytest.raises(InvalidInputError, match="obstacles"):
        plan_grasps(box, FRANKA, obstacles=np.zeros((3, 2)))


def test_robust_grasps_are_preferred():
    # A bar whose one half is bevelled to a ridge: as wide, but only its flat half bears errors of the pose.
    flat = box_mesh([0.06, 0.03, 0.03]).transformed(make_transform(translation=(-0.03, 0.0, 0.0)))
    ridge = box_mesh([0.06, 0.0212, 0.0212]).transformed(
        make_transform(matrix_from_rotation_vector((np.pi / 4, 0.0, 0.0)), (0.03, 0.0, 0.0))
    )
    cloud = PointCloud(*sample_surface(concatenate_meshes([flat, ridge]), 5000, np.random.default_rng(0)))
    plan = plan_grasps(cloud, FRANKA, center_of_mass=(0.0, 0.0, 0.0))
    assert plan.success
    assert plan.grasps[0].T_world_gripper[0, 3] < 0.0
    assert plan.grasps[0].metrics["term_robust"] > 0.5


def test_threads_do_not_change_the_plan():
    cloud = on_table(SHAPES["hammer"], 3000)
    one, two = (plan_grasps(cloud, FRANKA, PlannerConfig(workers=n), table=TABLE) for n in (1, 3))
    assert [g.score for g in one.grasps] == [g.score for g in two.grasps]
    np.testing.assert_array_equal(one.grasps[0].T_world_gripper, two.grasps[0].T_world_gripper)


@pytest.mark.parametrize(
    "points, word",
    [
        (np.empty((0, 3)), "0 finite points"),
        (np.full((200, 3), np.nan), "0 finite points of 200"),
        (np.zeros((10, 3)), "at least 30"),
        (np.zeros((100, 3)), "coincide"),
        (np.random.default_rng(0).uniform(0, 80, (500, 3)), "millimetres"),
    ],
)
def test_unusable_clouds_are_named(points, word):
    with pytest.raises(InvalidInputError, match=word):
        plan_grasps(PointCloud(points), FRANKA)


def test_bad_directions_and_normals_are_named():
    cloud = on_table(SHAPES["box"])
    with pytest.raises(InvalidInputError, match="approach"):
        plan_grasps(cloud, FRANKA, approach=(0.0, 0.0, 0.0))
    with pytest.raises(InvalidInputError, match="center_of_mass"):
        plan_grasps(cloud, FRANKA, center_of_mass=(np.nan, 0.0, 0.0))
    with pytest.raises(InvalidInputError, match="normals"):
        plan_grasps(PointCloud(cloud.points), FRANKA, PlannerConfig(normals="given"))
    with pytest.raises(InvalidInputError, match="friction"):
        PlannerConfig(friction=-1.0)


def test_points_that_are_nan_are_left_out():
    cloud = on_table(SHAPES["box"])
    holes = PointCloud(
        np.vstack([cloud.points, np.full((50, 3), np.nan)]), np.vstack([cloud.normals, np.zeros((50, 3))])
    )
    plain, holed = plan_grasps(cloud, FRANKA, table=TABLE), plan_grasps(holes, FRANKA, table=TABLE)
    np.testing.assert_array_equal(plain.grasps[0].T_world_gripper, holed.grasps[0].T_world_gripper)


def test_flat_cloud_gives_an_answer():
    flat = np.random.default_rng(0).uniform(-0.05, 0.05, (400, 3)) * [1.0, 1.0, 0.0]
    plan = plan_grasps(PointCloud(flat), FRANKA)
    assert not plan.success
    assert "No grasp" in plan.message


@pytest.mark.parametrize("name", ["franka_hand", "hande", "umi"])
def test_recorded_clouds_have_grasps(name):
    folder = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "grasp" / "observed"
    if not folder.is_dir():
        pytest.skip(f"no recorded clouds at {folder}; set MORPHIT_DATA")
    import open3d

    # Without completed sides, so that what is touched was seen.
    gripper, config = Gripper.load(name), PlannerConfig(complete=False)
    files = sorted(folder.glob("*.ply"))
    assert files
    for file in files:
        recorded = open3d.io.read_point_cloud(str(file))
        cloud = PointCloud(np.asarray(recorded.points), np.asarray(recorded.normals))
        assert plan_grasps(cloud, gripper).success, file.name
        plan = plan_grasps(cloud, gripper, config)
        assert plan.success, f"{file.name}: {plan.message}"
        # Their normals have mixed signs: no grasp may pinch one layer of noise.
        assert min(grasp.aperture for grasp in plan.grasps) >= config.min_width_estimated, file.name
        # Of all points, not only of the thinned ones that were planned with: palm and fingers are free at contact, both
        # pads meet something.
        gaps = []
        for grasp in plan.grasps:
            assert set(grasp.contact_fingers) == {1, 2}
            local = (cloud.points - grasp.T_world_gripper[:3, 3]) @ grasp.T_world_gripper[:3, :3]
            before_pads = (np.abs(local[:, 0]) <= gripper.pad_width / 2) & (
                np.abs(local[:, 2]) <= gripper.pad_height / 2
            )
            along = local[before_pads, 1]
            gaps.append(max(np.sort(np.abs(side * along - 0.5 * grasp.aperture))[2] for side in (1.0, -1.0)))
            hit = np.zeros(len(local), dtype=bool)
            for box in gripper.collision_boxes(grasp.aperture):
                hit |= (np.abs(local - box.center) < 0.5 * box.size - config.contact_tolerance).all(axis=1)
            assert hit.mean() < 0.004, f"{file.name}: {hit.sum()} points inside the gripper"
        assert min(gaps) < 0.002, f"{file.name}: nearest contacts {min(gaps)}"
