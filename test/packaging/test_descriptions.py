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
UR3 = "package://example-robot-data/robots/ur_description/urdf/ur3_robot.urdf"


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
    (
        "ur3e_hande_workcell.urdf.xacro",
        ("vendor_gripper:=false", "arm_has_world:=true", f"arm_file:={UR3}"),
        "robotiq_hande_end",
    ),
]


@pytest.mark.parametrize(("name", "words", "tip"), CELLS)
def test_workcell_is_one_tree_from_world_to_the_gripper(name: str, words: tuple[str, ...], tip: str) -> None:
    parents = tree(expanded(name, *(word.replace(UR3, str(resolve_uri(UR3, ()))) for word in words)))
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
