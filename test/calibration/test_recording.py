"""Recordings as folders of plain files, and the file that the grasp job takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from morphit_ros.bringup import find_job, parse_assignments
from morphit_ros.calibration.recording import read_recording, write_pose
from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import save_point_cloud
from morphit_ros.geometry.transforms import look_at, make_transform, matrix_from_rpy
from morphit_ros.robot.camera_file import CameraFile, read_camera_file, write_camera_file

CLOUD = np.array([[0.0, 0.0, 1.0], [0.1, 0.0, 1.0], [0.0, 0.1, 1.5]])
POSES = [{"a": 0.25, "b": -1.0}, {"a": 0.5, "b": 2.0}]


def recording(folder: Path) -> Path:
    for number in range(2):
        write_pose(folder, number, POSES[: number + 1], {"left": CLOUD + number})
    return folder


def test_a_recording_comes_back(tmp_path: Path) -> None:
    found = read_recording(recording(tmp_path))
    assert list(found.positions) == POSES and set(found.clouds) == {"left"}
    np.testing.assert_array_equal(found.clouds["left"][1], CLOUD + 1)


def test_clouds_of_other_programs_are_read(tmp_path: Path) -> None:
    recording(tmp_path)
    (tmp_path / "left_001.npz").unlink()
    save_point_cloud(PointCloud(CLOUD), tmp_path / "left_001.ply")
    np.testing.assert_allclose(read_recording(tmp_path).clouds["left"][1], CLOUD)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,x\n", "line 2"),
        ("a,b\n1\n", "line 2"),
        ("a,a\n1,2\n", "each once"),
        ("a,b\n1,nan\n", "finite"),
        ("", "joint"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, text: str, words: str) -> None:
    recording(tmp_path)
    (tmp_path / "joints.csv").write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        read_recording(tmp_path)


def test_a_missing_cloud_is_named(tmp_path: Path) -> None:
    recording(tmp_path)
    (tmp_path / "left_000.npz").unlink()
    with pytest.raises(ResourceNotFoundError, match="left_000"):
        read_recording(tmp_path)
    with pytest.raises(ResourceNotFoundError, match=r"joints\.csv"):
        read_recording(tmp_path / "nowhere")


def camera_file(path: Path, robot: str = "ur3e_hande", base: str = "base_link") -> CameraFile:
    left, right = look_at((0.9, 0.3, 0.5), (0.4, 0.0, 0.1)), look_at((0.9, -0.3, 0.5), (0.4, 0.0, 0.1))
    content = CameraFile(robot, base, {"left": left, "right": right}, {"left": {"residual": 0.001}})
    write_camera_file(path, content)
    return content


def test_the_old_camera_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "cameras.yaml"
    content = camera_file(path)
    first = path.read_text()
    found = read_camera_file(path)
    np.testing.assert_allclose(found.T_base_camera["left"], content.T_base_camera["left"], atol=1e-8)
    assert write_camera_file(path, content) == tmp_path / "cameras.yaml.1"
    assert write_camera_file(path, content) == tmp_path / "cameras.yaml.2"
    assert (tmp_path / "cameras.yaml.1").read_text() == first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("robot: a\nbase_link: b\n", "keys robot"),
        ("robot: a\nbase_link: b\ncameras: {top: {pose: [0,0,0,0,0,0,1]}}\n", "top"),
        ("robot: a\nbase_link: b\ncameras: {left: {pose: [0,0,0,0,0,0,2]}}\n", "length 1"),
        ("robot: a\nbase_link: b\ncameras: {left: {pose: [880,0,0,0,0,0,1]}}\n", "20 m"),
        ("robot: a\nbase_link: b\ncameras: {left: {pose: [0,0,0,0,0,1]}}\n", "x y z"),
    ],
)
def test_a_camera_file_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        read_camera_file(tmp_path / "c.yaml")


def parameters(*words: str) -> dict[str, object]:
    nodes = {node.executable: node for node in find_job("grasp").nodes(parse_assignments(words))}
    assert nodes["scene_perception"].parameters["left_extrinsics"] == nodes["web_viewer"].parameters["left_extrinsics"]
    return dict(nodes["scene_perception"].parameters)


def test_the_grasp_job_takes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    path = tmp_path / "cameras.yaml"
    content = camera_file(path)
    given = (f"camera_file:={path}", "robot:=ur3e_hande", "sim:=false")
    found = parameters(*given, "base_pose:=0.5 0 0.1 0 0 0.7071067811865476 0.7071067811865476")
    T_world_base = make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 2)), (0.5, 0.0, 0.1))
    np.testing.assert_allclose(found["left_extrinsics"][:3], (T_world_base @ content.T_base_camera["left"])[:3, 3])
    # In simulation the base stands where the robot's file says.
    simulated = parameters(f"camera_file:={path}", "robot:=ur3e_hande")
    np.testing.assert_allclose(simulated["left_extrinsics"][:3], [0.9 + 0.24, 0.3, 0.5], atol=1e-8)
    for more, words in (
        (("base_source:=tf",), "base_source:=tf"),
        (("base_pose:=0 0 0 0 0 0 1", "left_extrinsics:=0 0 0 0 0 0 1"), "left_extrinsics"),
        (("base_pose:=0 0 0 0 0 0 1", "robot:=panda"), "of ur3e_hande"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            parameters(*given, *more)


def test_the_command_writes_nothing_where_a_camera_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    still = np.column_stack([rng.uniform(-0.3, 0.3, (4000, 2)), np.full(4000, 1.0)])
    joints = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint",
              "wrist_3_joint", "robotiq_hande_left_finger_joint", "robotiq_hande_right_finger_joint")  # fmt: skip
    rows = [dict.fromkeys(joints, 0.0) for _ in range(6)]
    for number in range(6):
        write_pose("rec", number, rows[: number + 1], {"left": still})
    assert main(["calibrate", "solve", "rec", "--robot", "ur3e_hande"]) == 1
    told = capsys.readouterr()
    assert "left camera: REFUSED" in told.out and "record more poses" in told.out
    assert not (tmp_path / "cameras.yaml").exists() and "was not written" in told.err
