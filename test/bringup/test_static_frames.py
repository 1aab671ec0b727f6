"""Everything that RViz shows is connected to its fixed frame by what the job publishes on tf2."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from morphit_ros.bringup import NodeDescription, find_job, parse_assignments
from morphit_ros.bringup.static_frames import SIMULATED_CAMERAS, base_publishers
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw, matrix_from_rpy
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.simulation.workcell import WorkcellConfig

ROOT = Path(__file__).parents[2]
# Topic → frames of its messages. A topic that is displayed and not named here fails the test.
LINKS = "the links of the robot"
FRAMES: dict[str, str] = {
    "robot_description": LINKS,
    "robot_description_spheres": LINKS,
    "sphere_markers": LINKS,
    # In the frame of the root link.
    "motion_markers": LINKS,
    **{f"{side}/points": f"{side}_camera_optical_frame" for side in ("left", "right", "third", "fourth")},
    **dict.fromkeys(
        ("scene", "object_cloud", "scene_markers", "grasp_markers", "contact_markers", "object_pose", "overview/image"),
        "world",
    ),
}


@pytest.fixture(autouse=True)
def ros_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, executable in (
        ("robot_state_publisher", "robot_state_publisher"),
        ("tf2_ros", "static_transform_publisher"),
    ):
        program = tmp_path / "lib" / package / executable
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))


def nodes(*words: str) -> tuple[NodeDescription, ...]:
    return find_job("grasp").nodes(parse_assignments(words))


def static_transform(node: NodeDescription) -> tuple[str, str, Array]:
    """Parent, child and pose that static_transform_publisher understands from its command line."""
    words = iter(node.arguments)
    options = dict(zip(words, words, strict=True))
    parent, child = options.pop("--frame-id"), options.pop("--child-frame-id")
    numbers = [float(options.pop(f"--{name}")) for name in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    assert not options
    return parent, child, make_transform(matrix_from_quat_xyzw(numbers[3:]), numbers[:3])


def static_transforms(found: tuple[NodeDescription, ...]) -> dict[str, tuple[str, Array]]:
    """Child → parent and T_parent_child."""
    transforms: dict[str, tuple[str, Array]] = {}
    for node in found:
        if node.executable == "static_transform_publisher":
            parent, child, pose = static_transform(node)
            assert child not in transforms
            transforms[child] = (parent, pose)
    return transforms


def parents(found: tuple[NodeDescription, ...]) -> dict[str, str]:
    """Frame → parent, of all that the job publishes; fails for a frame with two parents."""
    tree = {child: parent for child, (parent, _) in static_transforms(found).items()}
    for node in found:
        if node.executable == "robot_state_publisher":
            for joint in ElementTree.fromstring(node.parameters["robot_description"]).iter("joint"):
                child = joint.find("child").get("link")  # type: ignore[union-attr]
                assert child not in tree
                tree[child] = joint.find("parent").get("link")  # type: ignore[union-attr,index,assignment]
    return tree


def displayed_topics() -> list[str]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "rviz/grasp.rviz").read_text(encoding="utf-8"))
    displays = content["Visualization Manager"]["Displays"]
    return [display[key]["Value"] for display in displays for key in ("Topic", "Description Topic") if key in display]


def test_every_displayed_frame_is_connected_to_the_fixed_frame() -> None:
    found = nodes("cameras:=4")
    tree = parents(found)
    (description,) = (n.parameters["robot_description"] for n in found if n.executable == "robot_state_publisher")
    links = {link.get("name", "") for link in ElementTree.fromstring(description).iter("link")}
    assert len(links) > 8
    for topic in displayed_topics():
        for frame in links if FRAMES[topic] == LINKS else {FRAMES[topic]}:
            root = frame
            while root in tree:
                root = tree[root]
            assert root == "world", f"{topic}: {frame} hangs below {root}"


def test_clouds_come_in_the_frames_that_are_published() -> None:
    pytest.importorskip("rclpy")
    from morphit_ros.nodes.workcell_sim import _optical_frame

    assert {_optical_frame(side) for side in ("left", "right")} <= set(static_transforms(nodes()))


def test_defaults_are_those_of_the_simulation() -> None:
    config = WorkcellConfig()
    assert {name: getattr(config, name) for name in SIMULATED_CAMERAS} == dict(SIMULATED_CAMERAS)


def test_frames_are_where_the_simulation_has_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "workcell_sim:\n  ros__parameters: {base_position: [0.1, 0.2, 0.0], base_yaw: 0.5, "
        "left_camera_position: [0.7, 0.4, 0.5], camera_target: [0.4, 0.0, 0.0]}\n",
        encoding="utf-8",
    )
    transforms = static_transforms(nodes(f"params_file:={path}"))
    parent, T_world_base = transforms["panda_link0"]
    assert parent == "world"
    assert T_world_base == pytest.approx(make_transform(matrix_from_rpy((0, 0, 0.5)), (0.1, 0.2, 0.0)), abs=1e-8)
    _, T_world_left = transforms["left_camera_optical_frame"]
    assert T_world_left[:3, 3] == pytest.approx([0.7, 0.4, 0.5])
    forward = np.array([0.4, 0.0, 0.0]) - [0.7, 0.4, 0.5]
    assert T_world_left[:3, 2] == pytest.approx(forward / np.linalg.norm(forward), abs=1e-8)
    assert transforms["right_camera_optical_frame"][1][:3, 3] == pytest.approx([0.88, -0.32, 0.45])


def test_further_cameras_of_the_simulation_are_where_the_job_puts_them() -> None:
    found = nodes("cameras:=4")
    parameters = {node.node_name: node.parameters for node in found}
    assert parameters["scene_perception"]["cameras"] == 4
    placed = parameters["workcell_sim"]
    transforms = static_transforms(found)
    for side in ("third", "fourth"):
        eye = placed[f"{side}_camera_position"]
        assert transforms[f"{side}_camera_optical_frame"][1][:3, 3] == pytest.approx(eye)
    three = nodes("cameras:=3")
    assert all("fourth_camera_position" not in node.parameters for node in three)
    assert "fourth_camera_optical_frame" not in static_transforms(three)
    assert "third_camera_optical_frame" not in static_transforms(nodes())


def test_base_of_another_robot_is_where_its_file_says() -> None:
    robot = RobotConfiguration.load("ur5e_hande")
    parent, T_world_base = static_transforms(nodes("robot:=ur5e_hande"))["base_link"]
    assert parent == "world"
    expected = make_transform(matrix_from_rpy((0.0, 0.0, robot.base_yaw)), robot.base_position)
    assert T_world_base == pytest.approx(expected, abs=1e-8)
    assert any(robot.base_position)


def test_real_base_is_where_its_argument_says() -> None:
    words = ("sim:=false", "static_frames:=true", "base_pose:=1 2 3 0 0.6 0 0.8")
    ((child, (parent, pose)),) = static_transforms(nodes(*words)).items()
    assert (parent, child) == ("world", "panda_link0")
    assert pose == pytest.approx(make_transform(matrix_from_quat_xyzw([0, 0.6, 0, 0.8]), [1, 2, 3]), abs=1e-8)


@pytest.mark.parametrize("words", [(), ("sim:=false", "static_frames:=true", "base_pose:=0 0 0 0 0 0 1")])
def test_a_cover_is_where_the_link_wears_it(words: tuple[str, ...]) -> None:
    worn = ("cover:=3x3", "cover_link:=panda_link5", "cover_pose:=0.1 0.2 0.3 0 0.6 0 0.8")
    found = find_job("system").nodes(parse_assignments([*worn, *words]))
    parent, pose = static_transforms(found)["cover"]
    assert parent == "panda_link5"
    assert pose == pytest.approx(make_transform(matrix_from_quat_xyzw([0, 0.6, 0, 0.8]), [0.1, 0.2, 0.3]), abs=1e-8)


URDF = """<robot name="r"><link name="{root}"/><link name="base"/><joint name="j" type="fixed">
<parent link="{root}"/><child link="base"/><origin xyz="0 0 0.5" rpy="0 0 1"/></joint></robot>"""


def robot_with_root(root: str, folder: Path) -> RobotConfiguration:
    path = folder / f"{root}.urdf"
    path.write_text(URDF.format(root=root), encoding="utf-8")
    content = yaml.safe_load((ROOT / "config/robots/panda.yaml").read_text(encoding="utf-8"))
    file = folder / f"{root}.yaml"
    file.write_text(yaml.safe_dump({**content, "description": str(path), "base_link": "base"}), encoding="utf-8")
    return RobotConfiguration.load(str(file))


def test_root_of_the_description_is_placed_when_the_base_link_has_a_parent(tmp_path: Path) -> None:
    T_world_base = make_transform(matrix_from_rpy((0.1, 0.2, 0.3)), (1.0, 2.0, 3.0))
    robot = robot_with_root("stand", tmp_path)
    (node,) = base_publishers(robot, T_world_base)
    parent, child, T_world_stand = static_transform(node)
    assert (parent, child) == ("world", "stand")
    T_stand_base = load_robot_description(robot.description).joints["j"].T_parent_child
    assert T_world_stand @ T_stand_base == pytest.approx(T_world_base, abs=1e-7)


def test_description_that_begins_at_the_world_needs_nothing(tmp_path: Path) -> None:
    assert base_publishers(robot_with_root("world", tmp_path), np.eye(4)) == []
