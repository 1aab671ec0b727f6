"""Planners of others on the same trials: clouds are written, grasps read, what does not fit is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from morphit_bench.picks.outcome import Outcome
from morphit_bench.picks.peers import FileMethod, parse_peer, trial_stem
from morphit_bench.picks.pick import PickJob
from morphit_bench.picks.runs import BenchmarkPlan, come_to_rest, run_benchmark, workcell_config, write_clouds
from morphit_bench.picks.trials import draw_trial
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, transform_points
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.simulation.objects import load_object
from morphit_ros.simulation.rendering import available_backend
from morphit_ros.simulation.workcell import Workcell

FRANKA = Gripper.load("franka_hand")
T_WORLD_CAMERA = make_transform(np.diag([1.0, -1.0, -1.0]), (0.4, 0.1, 0.9))
PLAN = BenchmarkPlan(("bottle",), planners=(), settings=("known",), trials=1, robot="", gripper="franka_hand")


def cloud() -> PointCloud:
    """A wall, 4 cm thick, in the world."""
    rng = np.random.default_rng(0)
    points = rng.uniform([-0.05, -0.02, 0.0], [0.05, 0.02, 0.06], (2000, 3))
    points[:, 1] = np.sign(points[:, 1]) * 0.02
    return PointCloud(points + np.array([0.4, 0.1, 0.0]))


def written(folder: Path, stem: str, poses: list[np.ndarray], scores: list[float]) -> None:
    """A trial's cloud, and grasps at poses in the world."""
    (folder / "clouds").mkdir(exist_ok=True)
    to_camera = np.linalg.inv(T_WORLD_CAMERA)
    points = transform_points(to_camera, cloud().points)
    np.savez(folder / "clouds" / f"{stem}.npz", points=points, T_world_camera=T_WORLD_CAMERA)
    grasps = [
        {"T_world_gripper": (to_camera @ pose).tolist(), "score": s} for pose, s in zip(poses, scores, strict=True)
    ]
    (folder / f"{stem}.json").write_text(json.dumps({"grasps": grasps}))


def down(x: float) -> np.ndarray:
    return make_transform(np.diag([1.0, -1.0, -1.0]), (x, 0.1, 0.04))


def test_grasps_come_from_the_cameras_frame_in_the_order_of_their_scores(tmp_path):
    written(tmp_path, "box_0_known", [down(0.38), down(0.42), down(0.7)], [0.2, 0.8, 0.9])
    method = FileMethod(f"file:{tmp_path}", "box_0_known")
    plan = method.plan(cloud(), FRANKA, reachable=lambda grasp: grasp.T_world_gripper[0, 3] > 0.3)
    assert [grasp.score for grasp in plan.grasps] == [0.8, 0.2]
    np.testing.assert_allclose(plan.grasps[0].T_world_gripper, down(0.42), atol=1e-12)
    assert plan.grasps[0].aperture == pytest.approx(0.04)
    assert plan.grasps[0].open_aperture == FRANKA.aperture_max
    np.testing.assert_allclose(plan.grasps[0].T_world_pregrasp[2, 3], 0.14)
    # That beside the object holds nothing.
    assert plan.rejected == {"no point between the pads": 1, "unreachable": 0}
    assert "first look" in method.plan(cloud(), FRANKA).message


def test_what_does_not_fit_the_trial_is_told(tmp_path):
    written(tmp_path, "box_0_known", [down(0.4)], [1.0])
    moved = cloud().transformed(make_transform(None, (0.03, 0.0, 0.0)))
    with pytest.raises(InvalidInputError, match="30 mm off"):
        FileMethod(f"file:{tmp_path}", "box_0_known").plan(moved, FRANKA)
    with pytest.raises(ResourceNotFoundError, match="--clouds"):
        FileMethod(f"file:{tmp_path}", "box_1_known").plan(cloud(), FRANKA)
    (tmp_path / "box_0_known.json").unlink()
    plan = FileMethod(f"file:{tmp_path}", "box_0_known").plan(cloud(), FRANKA)
    assert not plan.success
    assert "no file box_0_known" in plan.message
    with pytest.raises(InvalidInputError, match="such as box_0_known"):
        BenchmarkPlan(("box",), (f"file:{tmp_path}",), ("known",), 1, "", "franka_hand")


def test_a_peers_name_has_a_folder_and_may_have_a_depth(tmp_path):
    odd = tmp_path / "a@b"
    odd.mkdir()
    assert parse_peer(f"file:{tmp_path}@0.195") == (tmp_path, 0.195)
    assert parse_peer(f"file:{odd}") == (odd, None)
    for name in ("file:", f"file:{tmp_path}/none", f"file:{tmp_path}@inf"):
        with pytest.raises(InvalidInputError, match="file:FOLDER of grasps"):
            parse_peer(name)


@pytest.mark.usefixtures("mujoco")
def test_clouds_of_trials_are_what_a_planner_is_given_and_grasps_on_them_pick(tmp_path):
    paths: list[Path | None] = []
    assert write_clouds(PLAN, tmp_path, lambda path, message: paths.append(path)) == 1
    stem = trial_stem("bottle", 0, "known")
    assert paths == [tmp_path / "clouds" / f"{stem}.npz"]
    with np.load(paths[0], allow_pickle=False) as arrays:
        seen = dict(arrays)
    assert seen["points"].shape == seen["normals"].shape == (3000, 3)
    assert (seen["xyz"][:, 2] > 0.2).all(), "the camera looks along z"
    trial = draw_trial("bottle", 0, PLAN.ranges)
    with Workcell(workcell_config(trial), PickJob.flying("franka_hand").robot, load_object("bottle")) as workcell:
        come_to_rest(workcell)
        pose = workcell.object_pose()
    points = transform_points(seen["T_world_camera"], seen["points"].astype(float))
    np.testing.assert_allclose(points.mean(axis=0)[:2], pose[:2, 3], atol=2e-3)
    assert points[:, 2].min() == pytest.approx(pose[2, 3], abs=1e-3)
    table = transform_points(seen["T_world_camera"], seen["xyz"][3000:].astype(float))
    np.testing.assert_allclose(table[:, 2], 0.0, atol=1e-5)
    # A peer that works in the camera's frame alone; the table is what it sees of it.
    up = np.linalg.inv(seen["T_world_camera"])[:3, 2]
    support = SupportPlane(np.linalg.inv(seen["T_world_camera"]))
    assert support.T_world_table[:3, 2] @ up == pytest.approx(1.0)
    made = plan_grasps(PointCloud(seen["points"], seen["normals"]), FRANKA, PlannerConfig(rounds=1), table=support)
    grasps = [
        {"T_world_gripper": g.T_world_gripper.tolist(), "open_aperture": g.open_aperture, "score": g.score}
        for g in made.grasps
    ]
    (tmp_path / f"{stem}.json").write_text(json.dumps({"grasps": grasps}))
    plan = BenchmarkPlan(("bottle",), (f"file:{tmp_path}",), ("known",), 1, "", "franka_hand")
    record = run_benchmark(plan, tmp_path / "out")[0]
    assert record.planner == f"file:{tmp_path}"
    assert record.result.kind is Outcome.SUCCESS, record.result.message


@pytest.mark.usefixtures("mujoco")
@pytest.mark.skipif(available_backend() is None, reason="nothing renders depth images here")
def test_observed_clouds_are_in_the_frame_of_the_camera_that_saw_them(tmp_path):
    plan = BenchmarkPlan(("box",), (), ("observed",), 1, "", "franka_hand")
    assert write_clouds(plan, tmp_path) == 1
    with np.load(tmp_path / "clouds" / "box_0_observed.npz", allow_pickle=False) as arrays:
        points, T_world_camera = arrays["points"].astype(float), arrays["T_world_camera"]
    world = transform_points(T_world_camera, points)
    assert -0.01 < world[:, 2].min() < 0.02
    assert 0.2 < np.median(points[:, 2]) < 2.0
