"""Grasps of other planners: the files that their programs write, in our gripper's frame, and graspnetAPI's rows."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from morphit_bench.grasping.grasp_files import CONTACT_GRASPNET_DEPTH, GRASPGEN_DEPTH, read_grasps
from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.grasping import Gripper

FRANKA, HANDE = Gripper.load("franka_hand"), Gripper.load("hande")
APPROACH, CLOSING = np.array([0.0, 0.6, -0.8]), np.array([1.0, 0.0, 0.0])
MIDDLE = np.array([0.3, -0.2, 0.5])
"""Between the pads of the grasp that all files hold."""


def hand_by_z(depth: float) -> np.ndarray:
    """A hand as Contact-GraspNet and GraspGen have it: z along the approach, x along the closing direction."""
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([CLOSING, np.cross(APPROACH, CLOSING), APPROACH])
    pose[:3, 3] = MIDDLE - depth * APPROACH
    return pose


def check(poses: np.ndarray, row: int = 0) -> None:
    np.testing.assert_allclose(poses[row, :3, 2], APPROACH, atol=1e-6)
    np.testing.assert_allclose(poses[row, :3, 1], CLOSING, atol=1e-6)
    np.testing.assert_allclose(poses[row, :3, 3], MIDDLE, atol=1e-6)
    assert np.linalg.det(poses[row, :3, :3]) == pytest.approx(1.0)


def other() -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = 1.0
    return pose


def test_contact_graspnets_files_as_its_inference_saves_them(tmp_path):
    hands = {1: np.array([other()]), 4: np.array([hand_by_z(CONTACT_GRASPNET_DEPTH)])}
    contacts = {1: np.ones((1, 3)), 4: np.array([MIDDLE - 0.02 * CLOSING])}
    scores = {1: np.array([0.2], np.float32), 4: np.array([0.9], np.float32)}
    file = tmp_path / "predictions_7.npz"
    np.savez(file, pred_grasps_cam=hands, scores=scores, contact_pts=contacts)
    read = read_grasps(file, FRANKA)
    check(read.poses)
    np.testing.assert_allclose(read.scores, [0.9, 0.2])
    assert read.openings[0] == pytest.approx(0.04 + 0.005)
    np.savez(file, pred_grasps_cam={}, scores={}, contact_pts={})
    assert read_grasps(file, FRANKA).poses.shape == (0, 4, 4)


def test_pickles_that_run_something_are_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    file = tmp_path / "evil.npz"
    np.savez(file, pred_grasps_cam={1: Evil()}, scores={1: 0.0}, contact_pts={1: 0.0})
    with pytest.raises(InvalidInputError, match="mkdir is no part of an array"):
        read_grasps(file, FRANKA)
    assert not (tmp_path / "evil").exists()
    with pytest.raises(FileExistsError):
        (tmp_path / "evil").mkdir()
        pickle.loads(pickle.dumps(Evil()))


def test_isaac_grasp_files_as_graspgen_saves_them(tmp_path):
    def entry(pose, confidence):
        x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat().tolist()
        return {"confidence": confidence, "position": pose[:3, 3].tolist(), "orientation": {"w": w, "xyz": [x, y, z]}}

    grasps = {"grasp_0": entry(other(), 0.1), "grasp_1": entry(hand_by_z(GRASPGEN_DEPTH), 0.8)}
    file = tmp_path / "mug.yml"
    file.write_text(yaml.safe_dump({"format": "isaac_grasp", "format_version": 1.0, "grasps": grasps}))
    read = read_grasps(file, FRANKA)
    check(read.poses)
    np.testing.assert_allclose(read.scores, [0.8, 0.1])
    assert np.isnan(read.openings).all()
    # Another hand of theirs is told by its depth.
    grasps["grasp_1"] = entry(hand_by_z(0.195), 0.8)
    file.write_text(yaml.safe_dump({"format": "isaac_grasp", "format_version": 1.0, "grasps": grasps}))
    check(read_grasps(file, HANDE, depth=0.195).poses)


def test_json_files_of_graspgens_data_and_of_ours(tmp_path):
    file = tmp_path / "grasps.json"
    transforms = [other().tolist(), hand_by_z(GRASPGEN_DEPTH).tolist()]
    file.write_text(
        json.dumps({"object": {}, "grasps": {"transforms": transforms, "object_in_gripper": [False, True]}})
    )
    read = read_grasps(file, FRANKA)
    check(read.poses)
    np.testing.assert_array_equal(read.scores, [1.0, 0.0])
    ours = hand_by_z(0.0)
    ours[:3, :3] = np.column_stack([np.cross(CLOSING, APPROACH), CLOSING, APPROACH])
    file.write_text(json.dumps({"grasps": [{"T_world_gripper": ours.tolist(), "open_aperture": 0.06, "score": 0.5}]}))
    read = read_grasps(file, FRANKA)
    check(read.poses)
    assert read.openings[0] == 0.06
    file.write_text(json.dumps({"grasps": []}))
    assert len(read_grasps(file, FRANKA).scores) == 0


def test_rows_of_graspnet_end_at_the_fingertips(tmp_path):
    third = np.cross(APPROACH, CLOSING)
    depth, tip = 0.03, 0.00925
    target = MIDDLE + (tip - depth) * APPROACH
    axes = np.column_stack([APPROACH, CLOSING, third])
    row = np.concatenate([[0.7, 0.06, 0.02, depth], axes.ravel(), target, [5]])
    np.save(tmp_path / "a.npy", np.stack([row, row]).astype(np.float32))
    read = read_grasps(tmp_path / "a.npy", FRANKA)
    check(read.poses, 1)
    np.testing.assert_allclose(read.openings, 0.06, atol=1e-6)


def test_the_command_writes_rows_that_graspnet_would_place_where_the_hand_is(tmp_path):
    points, _ = sample_surface_evenly(box_mesh((0.1, 0.04, 0.06)), 2500, np.random.default_rng(0))
    np.savez(tmp_path / "box.npz", points=points)
    words = ["grasp", "--cloud", str(tmp_path / "box.npz"), "--gripper", "franka_hand", "--up", "0", "0", "1"]
    files = ["--graspnet", str(tmp_path / "g.npy"), "--json", str(tmp_path / "g.json")]
    assert main([*words, *files, "--set", "suppression_distance=0.001", "--set", "suppression_angle=1"]) == 0
    rows = np.load(tmp_path / "g.npy", allow_pickle=False)
    grasps = json.loads((tmp_path / "g.json").read_text())["grasps"]
    assert rows.shape == (50, 17)
    assert len(grasps) == 50
    for row, grasp in zip(rows, grasps, strict=True):
        pose = np.array(grasp["T_world_gripper"])
        assert (row[0], row[1]) == (grasp["score"], grasp["open_aperture"])
        axes = row[4:13].reshape(3, 3)
        np.testing.assert_allclose(axes[:, 0], pose[:3, 2], atol=1e-12)
        np.testing.assert_allclose(axes[:, 1], pose[:3, 1], atol=1e-12)
        np.testing.assert_allclose(np.cross(axes[:, 0], axes[:, 1]), axes[:, 2], atol=1e-12)
        # By graspnetAPI's own account of a hand: fingers end at the depth, the palm is 2 cm behind the translation.
        np.testing.assert_allclose(row[13:16] + row[3] * axes[:, 0], pose[:3, 3] + 0.00925 * pose[:3, 2], atol=1e-12)
        np.testing.assert_allclose(row[13:16] - 0.02 * axes[:, 0], pose[:3, 3] - 0.037 * pose[:3, 2], atol=1e-12)
    read = read_grasps(tmp_path / "g.npy", FRANKA)
    found = {pose.round(6).tobytes() for pose in read.poses}
    assert found == {np.array(grasp["T_world_gripper"]).round(6).tobytes() for grasp in grasps}


@pytest.mark.parametrize(
    ("name", "write", "says"),
    [
        ("a.txt", lambda path: path.write_text("x"), "one of .npy, .npz"),
        ("a.npy", lambda path: np.save(path, np.zeros((3, 16))), r"shape \(3, 16\)"),
        ("a.npz", lambda path: np.savez(path, poses=np.zeros((1, 4, 4))), "KeyError: 'pred_grasps_cam'"),
        ("b.npz", lambda path: path.write_bytes(b"PK nothing"), "BadZipFile"),
        ("a.yaml", lambda path: path.write_text("format: other\ngrasps: {}"), "format 'other'"),
        ("a.json", lambda path: path.write_text("{}"), "KeyError"),
        ("b.json", lambda path: path.write_text('{"grasps": [{"T_world_gripper": 3, "score": 1}]}'), "b.json"),
        (
            "c.json",
            lambda path: path.write_text(json.dumps({"grasps": [{"T_world_gripper": [[2.0] * 4] * 4, "score": 1}]})),
            "a pose or a score that is none",
        ),
    ],
)
def test_files_that_are_none_of_these_are_named(tmp_path: Path, name, write, says):
    write(tmp_path / name)
    with pytest.raises(InvalidInputError, match=says):
        read_grasps(tmp_path / name, FRANKA)
    with pytest.raises(ResourceNotFoundError, match="nowhere"):
        read_grasps(tmp_path / "nowhere.npy", FRANKA)
