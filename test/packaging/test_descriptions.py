"""The workcell descriptions expand, and are one tree; the RViz configuration can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.packages import resolve_uri

ROOT = Path(__file__).parents[2]
PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"


def expanded(name: str, *words: str) -> ElementTree.Element:
    prefix = resolve_uri(PANDA, ()).parents[5]
    assert (prefix / "share/ament_index").is_dir()
    result = subprocess.run(
        [sys.executable, "-c", "import xacro; xacro.main()", str(ROOT / "urdf" / name), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AMENT_PREFIX_PATH": str(prefix)},
    )
    assert result.returncode == 0, result.stderr
    return ElementTree.fromstring(result.stdout)


def tree(robot: ElementTree.Element) -> dict[str, str]:
    """Link → parent; fails unless the links are one tree below 'world'."""
    links = [link.get("name", "") for link in robot.findall("link")]
    assert len(links) == len(set(links))
    parents = {
        joint.find("child").get("link"): joint.find("parent").get("link")  # type: ignore[union-attr]
        for joint in robot.findall("joint")
    }
    assert [link for link in links if link not in parents] == ["world"]
    assert set(parents) | set(parents.values()) <= set(links)
    return parents  # type: ignore[return-value]


def joint_transform(robot: ElementTree.Element, child: str) -> np.ndarray:
    for joint in robot.findall("joint"):
        if joint.find("child").get("link") == child:  # type: ignore[union-attr]
            origin = joint.find("origin")
            numbers = {key: [float(x) for x in origin.get(key, "0 0 0").split()] for key in ("xyz", "rpy")}  # type: ignore[union-attr]
            return make_transform(matrix_from_rpy(numbers["rpy"]), numbers["xyz"])
    raise AssertionError(child)


CELLS: list[tuple[str, tuple[str, ...], str]] = [
    ("panda_workcell.urdf.xacro", (), "panda_hand_tcp"),
    ("ur3e_hande_workcell.urdf.xacro", ("vendor:=false",), "robotiq_hande_end"),
    ("ur5e_hande_workcell.urdf.xacro", ("vendor:=false", "base_xyz:=0.1 0 0"), "robotiq_hande_end"),
]


@pytest.mark.parametrize(("name", "words", "tip"), CELLS)
def test_workcell_is_one_tree_from_world_to_the_gripper(name: str, words: tuple[str, ...], tip: str) -> None:
    parents = tree(expanded(name, *words))
    link, chain = tip, []
    while link != "world":
        link = parents[link]
        chain.append(link)
    assert len(chain) > 7
    assert {"table", "left_camera_optical_frame", "right_camera_optical_frame"} <= set(parents)


@pytest.mark.parametrize("side", ["left", "right"])
def test_cameras_of_the_panda_look_where_those_of_the_simulation_look(side: str) -> None:
    from morphit_ros.simulation.workcell import WorkcellConfig

    robot = expanded("panda_workcell.urdf.xacro")
    T_world_optical = joint_transform(robot, f"{side}_camera_link") @ joint_transform(
        robot, f"{side}_camera_optical_frame"
    )
    config = WorkcellConfig()
    assert T_world_optical[:3, 3] == pytest.approx(getattr(config, f"{side}_camera_position"))
    to_target = np.array(config.camera_target) - T_world_optical[:3, 3]
    # z of an optical frame points forward, y down.
    assert T_world_optical[:3, 2] == pytest.approx(to_target / np.linalg.norm(to_target), abs=1e-4)
    assert T_world_optical[2, 1] < 0.0


def test_missing_vendor_package_is_named() -> None:
    with pytest.raises(AssertionError, match="franka_description"):
        expanded("panda_workcell.urdf.xacro", "vendor:=true")
    with pytest.raises(AssertionError, match="ur_description"):
        expanded("ur3e_hande_workcell.urdf.xacro")


# The interface of the makers' macros that ours call, with empty arms and hands behind it.
UR_MACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="ur_robot" params="name tf_prefix
  parent *origin joint_limits_parameters_file kinematics_parameters_file physical_parameters_file
  visual_parameters_file">
  <link name="base_link"/><link name="tool0"/><link name="${name} ${kinematics_parameters_file}"/>
  <joint name="a" type="fixed"><parent link="${parent}"/><child link="base_link"/>
    <xacro:insert_block name="origin"/></joint>
  <joint name="b" type="fixed"><parent link="base_link"/><child link="tool0"/></joint>
  <joint name="c" type="fixed"><parent link="base_link"/><child link="${name} ${kinematics_parameters_file}"/></joint>
  </xacro:macro></robot>"""
HANDE_MACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="robotiq_hande_gripper" params="
  name prefix parent grip_pos_min grip_pos_max tty_port baudrate parity data_bits stop_bit slave_id use_fake_hardware">
  <link name="robotiq_hande_end"/><link name="${tty_port} ${use_fake_hardware}"/>
  <joint name="d" type="fixed"><parent link="${parent}"/><child link="robotiq_hande_end"/></joint>
  <joint name="e" type="fixed"><parent link="${parent}"/><child link="${tty_port} ${use_fake_hardware}"/></joint>
  </xacro:macro></robot>"""


@pytest.fixture
def makers_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for package, file, text in (
        ("ur_description", "ur_macro.xacro", UR_MACRO),
        ("robotiq_hande_description", "robotiq_hande_gripper.xacro", HANDE_MACRO),
    ):
        for path, content in (
            (f"share/ament_index/resource_index/packages/{package}", ""),
            (f"share/{package}/package.xml", ""),
            (f"share/{package}/urdf/{file}", text),
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content, encoding="utf-8")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["ur3e_hande", "ur5e_hande"])
def test_makers_descriptions_are_used_where_they_are_installed(name: str, makers_packages: Path) -> None:
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description

    robot = RobotConfiguration.load(name)
    assert robot.description.endswith(f"{name}_vendor.urdf.xacro")
    description = load_robot_description(robot.description)
    assert description.name == name
    assert description.root_link == "mount"
    kind = name.removesuffix("_hande")
    assert f"{kind} {makers_packages}/share/ur_description/config/{kind}/default_kinematics.yaml" in description.links
    assert description.parent_joint("robotiq_hande_end").parent == "tool0"  # type: ignore[union-attr]


def test_calibration_and_gripper_port_reach_the_makers_macros(makers_packages: Path) -> None:
    import xacro

    words = {"kinematics_params": "/calibration.yaml", "gripper_port": "/dev/ttyUSB0", "use_fake_hardware": "false"}
    words |= {"base_xyz": "1 2 3"}
    text = xacro.process_file(str(ROOT / "urdf/ur3e_hande_workcell.urdf.xacro"), mappings=words).toxml()
    robot = ElementTree.fromstring(text)
    parents = tree(robot)
    assert {"ur3e /calibration.yaml", "/dev/ttyUSB0 False"} <= set(parents)
    assert joint_transform(robot, "base_link")[:3, 3] == pytest.approx([1.0, 2.0, 3.0])


def test_rviz_displays_have_explicit_quality_of_service() -> None:
    import yaml

    content: dict[str, Any] = yaml.safe_load((ROOT / "rviz/grasp.rviz").read_text(encoding="utf-8"))
    manager = content["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "world"
    topics = {}
    for display in manager["Displays"]:
        for key in ("Topic", "Description Topic"):
            if key in display:
                topic = display[key]
                topics[topic["Value"]] = (topic["Reliability Policy"], topic["Durability Policy"])
                assert not topic["Value"].startswith("/"), "names are relative"
    latched = ("Reliable", "Transient Local")
    for name in ("robot_description", "robot_description_spheres", "sphere_markers", "scene", "object_cloud"):
        assert topics[name] == latched
    for name in ("scene_markers", "grasp_markers"):
        assert topics[name] == latched
    for name in ("left/points", "right/points"):
        assert topics[name] == ("Reliable", "Volatile")
