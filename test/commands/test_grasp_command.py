"""`morphit grasp` on recorded clouds: what it offers is executable; options that cannot be meant are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from morphit_bench.grasping.camera_clouds import eyes_around, seen_cloud
from morphit_ros.cli import main, make_parser
from morphit_ros.commands.grasp import planned
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping import Grasp, Gripper

GRIPPERS = ("franka_hand", "hande", "umi")
# Of a hand's frame over a table, as the DISF authors recorded their clouds: z down.
T_HAND_TABLE = make_transform(np.diag([1.0, -1.0, -1.0]), (0.02, -0.03, 0.005))


def carton() -> TriangleMesh:
    """High enough that a hand from below is as good as one from above, where nothing is known of a table."""
    return box_mesh([0.035, 0.05, 0.12]).transformed(make_transform(None, (0.0, 0.0, 0.06)))


def save(cloud: PointCloud, path: Path) -> Path:
    np.savez(path, points=cloud.points)
    return path


def lowest_on_approach(grasp: Grasp, gripper: Gripper, up: np.ndarray) -> float:
    """Along `up` [m]: of all corners of palm and fingers, at the grasp and before it."""
    heights = []
    for pose in (grasp.T_world_gripper, grasp.T_world_pregrasp):
        for box in gripper.collision_boxes(grasp.open_aperture):
            reach = 0.5 * np.abs(box.size * (pose[:3, :3].T @ up)).sum()
            heights.append((pose[:3, 3] + pose[:3, :3] @ box.center) @ up - reach)
    return min(heights)


@pytest.mark.parametrize("name", GRIPPERS)
def test_hands_stay_above_the_table_without_being_told_of_one(tmp_path, name):
    mesh = carton()
    cloud = seen_cloud(mesh, eyes_around(mesh, [40.0, 220.0])).transformed(T_HAND_TABLE)
    file = save(cloud, tmp_path / "carton.npz")
    done = planned(make_parser().parse_args(["grasp", "--cloud", str(file), "--gripper", name]))
    assert done.plan.success, done.plan.message
    up, origin = T_HAND_TABLE[:3, 2], T_HAND_TABLE[:3, 3]
    for grasp in done.plan.grasps:
        assert lowest_on_approach(grasp, done.gripper, up) > origin @ up


@pytest.mark.parametrize("name", GRIPPERS)
def test_hands_stay_above_the_tables_of_recorded_clouds(name):
    folder = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "grasp" / "observed"
    if not folder.is_dir():
        pytest.skip(f"no recorded clouds at {folder}; set MORPHIT_DATA")
    up = np.array([0.0, 0.0, -1.0])
    files = sorted(folder.glob("*.ply"))
    assert files
    for file in files:
        done = planned(make_parser().parse_args(["grasp", "--cloud", str(file), "--gripper", name]))
        assert done.plan.success, f"{file.name}: {done.plan.message}"
        base = float(np.quantile(done.around.cloud.points @ up, 0.005))
        marks = [grasp.on_seen_sides for grasp in done.plan.grasps]
        assert marks == sorted(marks, reverse=True)
        assert marks[0]
        for grasp in done.plan.grasps:
            assert lowest_on_approach(grasp, done.gripper, up) > base, file.name


def test_what_was_found_is_printed_and_written(tmp_path, capsys):
    mesh = carton()
    file = save(seen_cloud(mesh, eyes_around(mesh, [40.0, 220.0])).transformed(T_HAND_TABLE), tmp_path / "s.npz")
    words = ["grasp", "--cloud", str(file), "--gripper", "hande"]
    assert main([*words, "--json", str(tmp_path / "plan.json")]) == 0
    assert "table: up is 0 0 -1, at " in capsys.readouterr().out
    content = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    np.testing.assert_allclose(np.array(content["T_cloud_table"])[:3, 2], [0.0, 0.0, -1.0])
    assert "base of the object" in content["table_known_by"]
    assert {grasp["on_seen_sides"] for grasp in content["grasps"]} <= {True, False}
    assert all(0.0 <= grasp["metrics"]["seen"] <= 1.0 for grasp in content["grasps"])
    assert main([*words, "--no-table", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["T_cloud_table"] is None


def test_the_table_may_be_told_in_four_ways(tmp_path):
    mesh = box_mesh([0.04, 0.05, 0.1]).transformed(make_transform(None, (0.0, 0.0, 0.15)))
    points, _ = sample_surface(mesh, 3000, np.random.default_rng(0))
    file = str(save(PointCloud(points), tmp_path / "box.npz"))
    for words, height in (
        (["--up", "0", "0", "2"], 0.1),
        (["--table", "0", "0", "-1", "0.09"], 0.09),
        (["--table-height", "0.08"], 0.08),
        (["--viewpoint", "0.3", "0", "0.6"], 0.1),
    ):
        options = make_parser().parse_args(["grasp", "--cloud", file, "--gripper", "hande", *words])
        table = planned(options).around.table
        np.testing.assert_allclose(table.T_world_table[:3, 2], [0.0, 0.0, 1.0], atol=1e-12)
        assert table.T_world_table[2, 3] == pytest.approx(height, abs=1e-3)
    options = make_parser().parse_args(["grasp", "--cloud", file, "--gripper", "hande", "--no-table"])
    assert planned(options).around.table is None


def test_obstacles_and_approach_are_heeded(tmp_path):
    mesh = box_mesh([0.04, 0.05, 0.1]).transformed(make_transform(None, (0.0, 0.0, 0.05)))
    points, _ = sample_surface(mesh, 3000, np.random.default_rng(0))
    file = str(save(PointCloud(points), tmp_path / "box.npz"))
    lid = np.random.default_rng(0).uniform((-0.2, -0.2, 0.14), (0.2, 0.2, 0.15), (20000, 3))
    other = str(save(PointCloud(lid), tmp_path / "lid.npz"))
    words = ["grasp", "--cloud", file, "--gripper", "franka_hand", "--up", "0", "0", "1"]
    free = planned(make_parser().parse_args(words)).plan.grasps[0]
    assert free.T_world_gripper[2, 2] < -0.7
    covered = planned(make_parser().parse_args([*words, "--obstacles", other])).plan
    assert all(grasp.T_world_gripper[2, 2] > -0.5 for grasp in covered.grasps)
    asked = planned(make_parser().parse_args([*words, "--approach", "2", "0", "0"])).plan.grasps[0]
    for grasp, direction in ((asked, np.array([1.0, 0.0, 0.0])), (free, np.array([0.0, 0.0, -1.0]))):
        along = grasp.T_world_gripper[:3, 2] @ direction
        assert grasp.metrics["term_approach"] == pytest.approx(0.5 * (1.0 + along))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--up", "0", "0", "0"], "--up: got 0 0 0, expected a direction"),
        (["--approach", "0", "0", "0"], "--approach: got 0 0 0, expected a direction"),
        (["--mass", "-0.2"], "--mass: got -0.2, expected in [0, 100]"),
        (["--table", "0", "0", "0", "1"], "--table A B C: got 0 0 0"),
        (["--table", "0", "0", "1", "inf"], "--table: got 0 0 1 inf, expected finite numbers"),
        (["--table", "0", "0", "1", "0", "--no-table"], "--table, --no-table: got 2 of them, expected one of them"),
        (["--up", "0", "0", "1", "--no-table"], "--up: got --no-table as well"),
        (["--viewpoint", "0", "nan", "1"], "--viewpoint 1: got 0 nan 1, expected finite numbers"),
        (["--unseen", "dark"], "--unseen: got 'dark'"),
        ([], "Say --up X Y Z"),
        (["--up", "0", "0", "1", "--obstacles", "nowhere.ply"], "nowhere.ply"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, capsys, words, says):
    points, _ = sample_surface(box_mesh([0.04, 0.05, 0.1]), 3000, np.random.default_rng(0))
    file = save(PointCloud(points), tmp_path / "box.npz")
    assert main(["grasp", "--cloud", str(file), "--gripper", "hande", *words]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
