"""The browser scene: what is served and moved, in-place updates, refusals, and a screenshot of the robot."""

from __future__ import annotations

import shutil
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros.display.panel import status_html
from morphit_ros.display.robot_visuals import link_glbs
from morphit_ros.display.scene import LAYERS, ViewerScene
from morphit_ros.display.screenshot import ScreenshotError, screenshot
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.grasping import Gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel

pytest.importorskip("viser")

ARM = """<robot name="arm">
  <material name="red"><color rgba="0.9 0.1 0.1 1"/></material>
  <link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry><material name="red"/></visual></link>
  <link name="tip"><collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <link name="frame"/>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="0.1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="end" type="fixed"><parent link="tip"/><child link="frame"/></joint>
</robot>"""


@pytest.fixture
def scene() -> Iterator[ViewerScene]:
    with ViewerScene(port=0) as viewer:
        yield viewer


def node(scene: ViewerScene, name: str) -> Any:
    """What viser holds under a name, None if nothing."""
    return scene._server.scene._handle_from_node_name.get(f"/{name}")


def test_the_page_is_served_on_loopback(scene: ViewerScene) -> None:
    with urllib.request.urlopen(scene.url, timeout=10) as reply:
        assert reply.status == 200
        assert b"<html" in reply.read().lower()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "example.org", "::", ""])
def test_other_hosts_are_refused(host: str) -> None:
    with pytest.raises(InvalidInputError, match="loopback"):
        ViewerScene(host=host, port=0)


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInputError, match=str(port)):
            ViewerScene(port=port)
    with ViewerScene(port=port) as viewer:
        assert viewer.url == f"http://127.0.0.1:{port}"
    with pytest.raises(InvalidInputError, match="65535"):
        ViewerScene(port=70_000)


def test_nothing_is_printed_and_close_may_be_repeated(capfd: pytest.CaptureFixture[str]) -> None:
    viewer = ViewerScene(port=0)
    viewer.close()
    viewer.close()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(OSError):
        urllib.request.urlopen(viewer.url, timeout=5)


def test_links_and_spheres_follow_the_joints(scene: ViewerScene) -> None:
    T_world_root = make_transform(matrix_from_rpy((0, 0, 1.0)), (1.0, 2.0, 3.0))
    scene.set_robot(ARM, T_world_root)
    np.testing.assert_allclose(node(scene, "robot").position, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(node(scene, "robot").wxyz, (np.cos(0.5), 0, 0, np.sin(0.5)))
    # Zero is outside the limits of the joint.
    np.testing.assert_allclose(node(scene, "robot/tip").position, (0, 0, 0.1))
    scene.set_robot_spheres({"tip": ([[0, 0, 0.01], [0, 0, 0.02]], [0.05, 0.04])})
    scene.set_joints({"lift": 0.5, "wheel_of_another_device": 3.0})
    for name in ("robot/tip", "spheres/tip"):
        np.testing.assert_allclose(node(scene, name).position, (0, 0, 0.5))
    np.testing.assert_allclose(node(scene, "spheres/tip").batched_scales, [0.05, 0.04])
    assert node(scene, "robot/frame") is None


def test_the_panda_stands_where_its_kinematics_says(scene: ViewerScene) -> None:
    config = RobotConfiguration.load("panda")
    description = load_robot_description(config.description)
    home = dict(zip(config.arm_joints, config.home.tolist(), strict=True)) | dict.fromkeys(config.finger_joints, 0.02)
    scene.set_robot(description)
    scene.set_joints(home)
    hand = KinematicModel(description).forward_kinematics(home)["panda_hand"]
    np.testing.assert_allclose(node(scene, "robot/panda_hand").position, hand[:3, 3], atol=1e-9)


def test_the_same_robot_is_not_loaded_again_and_another_takes_its_place(scene: ViewerScene) -> None:
    scene.set_robot(ARM)
    first = node(scene, "robot/tip")
    scene.set_joints({"lift": 0.7})
    scene.set_robot(ARM)
    assert node(scene, "robot/tip") is first
    np.testing.assert_allclose(first.position, (0, 0, 0.7))
    scene.set_robot_spheres({"tip": ([[0, 0, 0]], [0.05])})
    scene.set_robot(ARM.replace('"tip"', '"top"'))
    assert node(scene, "robot/tip") is None
    assert node(scene, "spheres/tip") is None
    assert node(scene, "robot/top") is not None


def test_robot_input_is_checked(scene: ViewerScene) -> None:
    for call in (lambda: scene.set_joints({"lift": 0.2}), lambda: scene.set_robot_spheres({})):
        with pytest.raises(InvalidInputError, match="set_robot"):
            call()
    with pytest.raises(InvalidInputError):
        scene.set_robot("<robot>")
    scene.set_robot(ARM)
    with pytest.raises(InvalidInputError):
        scene.set_joints({"lift": float("nan")})
    np.testing.assert_allclose(node(scene, "robot/tip").position, (0, 0, 0.1))
    with pytest.raises(InvalidInputError, match="elbow"):
        scene.set_robot_spheres({"elbow": ([[0, 0, 0]], [0.1])})
    for radii in ([-0.1], [0.1, 0.2], [np.nan]):
        with pytest.raises(InvalidInputError, match="radii"):
            scene.set_robot_spheres({"tip": ([[0, 0, 0]], radii)})


def test_a_failed_robot_leaves_the_old_one(scene: ViewerScene, tmp_path: Path) -> None:
    broken = tmp_path / "broken.stl"
    broken.write_text("not a mesh")
    scene.set_robot(ARM)
    visual = f'<visual><geometry><mesh filename="{broken}"/></geometry></visual>'
    with pytest.raises(InvalidInputError, match=r"broken\.stl"):
        scene.set_robot(ARM.replace('<link name="frame"/>', f'<link name="frame">{visual}</link>'))
    assert node(scene, "robot/tip") is not None


def test_meshes_keep_units_scale_mirroring_and_colours(tmp_path: Path) -> None:
    import io

    import trimesh

    box = trimesh.creation.box((10.0, 20.0, 30.0))
    text = trimesh.exchange.dae.export_collada(box).decode()
    path = tmp_path / "centimetres.dae"
    assert "</asset>" in text
    path.write_text(text.replace("</asset>", '<unit name="centimeter" meter="0.01"/></asset>'))
    urdf = f"""<robot name="r"><link name="a"><visual><origin xyz="0 0 1"/>
      <geometry><mesh filename="{path}" scale="-1 1 2"/></geometry>
      <material name="m"><color rgba="0 0 1 1"/></material></visual></link>
      <link name="b"><visual><geometry><mesh filename="package://nowhere/x.dae"/></geometry></visual>
      <collision><geometry><box size="1 2 3"/></geometry></collision></link>
      <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>"""
    glbs = link_glbs(load_robot_description(urdf))
    first = trimesh.load(io.BytesIO(glbs["a"]), file_type="glb", force="scene")
    np.testing.assert_allclose(first.bounds, [[-0.05, -0.1, 0.7], [0.05, 0.1, 1.3]], atol=1e-6)
    mesh = first.to_mesh()
    assert mesh.volume > 0.0, "the mirrored mesh is inside out"
    (part,) = first.geometry.values()
    np.testing.assert_allclose(part.visual.material.baseColorFactor, (0, 0, 255, 255))
    second = trimesh.load(io.BytesIO(glbs["b"]), file_type="glb", force="scene")
    np.testing.assert_allclose(second.extents, (1, 2, 3), atol=1e-6)


def test_clouds_are_thinned_updated_in_place_and_cleared(scene: ViewerScene) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(100_000, 3))
    points[::2] = np.nan
    scene.set_cloud("left", points)
    shown = node(scene, "clouds/left/points")
    assert shown.points.shape == (30_000, 3)
    assert np.isfinite(shown.points).all()
    before = shown.points.copy()
    scene.set_cloud("left", points)
    np.testing.assert_array_equal(shown.points, before)
    scene.set_cloud("left", [[1, 2, 3]], [[9, 8, 7]])
    assert node(scene, "clouds/left/points") is shown
    np.testing.assert_allclose(shown.points, [[1, 2, 3]])
    np.testing.assert_array_equal(shown.colors, [[9, 8, 7]])
    scene.set_cloud("left", np.empty((0, 3)))
    assert node(scene, "clouds/left/points") is None
    scene.set_cloud("right", [[0, 0, 0]])
    scene.clear("clouds/left")
    scene.clear("clouds/left")
    assert node(scene, "clouds/left") is None
    assert node(scene, "clouds/right/points") is not None
    scene.clear("clouds")
    assert node(scene, "clouds/right") is None
    for name in ("", "a/b", "a b"):
        with pytest.raises(InvalidInputError, match="name"):
            scene.set_cloud(name, [[0, 0, 0]])
    with pytest.raises(InvalidInputError, match="points"):
        scene.set_cloud("left", [[0, 0]])


def test_object_table_and_grasps_replace_what_was_there(scene: ViewerScene) -> None:
    gripper = Gripper.load("franka_hand")
    scene.set_object([[0, 0, 0.1]], [[0, 0, 1]])
    np.testing.assert_allclose(node(scene, "normals/lines").points, [[[0, 0, 0.1], [0, 0, 0.108]]], atol=1e-6)
    scene.set_object([[0, 0, 0.1]])
    assert node(scene, "normals/lines") is None
    scene.set_table(make_transform(translation=(0.5, 0, 0.3)), (1.0, 0.8), thickness=0.1)
    np.testing.assert_allclose(node(scene, "table/slab").position, (0.5, 0, 0.25))
    poses = [make_transform(translation=(x, 0, 0)) for x in (0.1, 0.2, 0.3)]
    scene.set_grasps([(pose, 0.04, score) for pose, score in zip(poses, (1.0, 3.0, 2.0), strict=True)], gripper)
    best = node(scene, "grasps/best")
    np.testing.assert_allclose(best.position, (0.2, 0, 0))
    assert len(node(scene, "grasps/others").points) == 2 * 4
    width = np.ptp(best.vertices[8:, 1])
    scene.set_grasps([(poses[0], 0.06, 1.0)], gripper)
    assert node(scene, "grasps/best") is best
    assert node(scene, "grasps/others") is None
    assert np.ptp(best.vertices[8:, 1]) - width == pytest.approx(0.02, abs=1e-6)
    scene.set_grasps([], gripper)
    assert node(scene, "grasps/best") is None
    with pytest.raises(InvalidInputError, match="T_world_gripper"):
        scene.set_grasps([(np.zeros((4, 4)), 0.04, 1.0)], gripper)
    with pytest.raises(InvalidInputError, match="score"):
        scene.set_grasps([(poses[0], 0.04, float("nan"))], gripper)
    with pytest.raises(InvalidInputError, match="size"):
        scene.set_table(np.eye(4), (1.0, -1.0))


def test_the_nearest_pair_is_a_line_that_moves_and_turns_red(scene: ViewerScene) -> None:
    scene.set_nearest_pair([[0, 0, 0.1], [0, 0.2, 0.1]], 0.2)
    line = node(scene, "distances/closest_points")
    np.testing.assert_allclose(line.points, [[[0, 0, 0.1], [0, 0.2, 0.1]]], atol=1e-6)
    green = np.array(line.colors).reshape(-1, 3)[0]
    scene.set_nearest_pair([[0, 0, 0.1], [0, 0.1, 0.1]], -0.01)
    line = node(scene, "distances/closest_points")
    np.testing.assert_allclose(line.points[0, 1], [0, 0.1, 0.1], atol=1e-6)
    red = np.array(line.colors).reshape(-1, 3)[0]
    assert green[1] > green[0]
    assert red[0] > red[1]
    scene.clear("distances")
    assert node(scene, "distances/closest_points") is None
    with pytest.raises(InvalidInputError, match="points"):
        scene.set_nearest_pair([[0, 0, 0.1], [0, np.nan, 0.1]], 0.1)


def test_layers_are_shown_hidden_and_refused(scene: ViewerScene) -> None:
    assert not node(scene, "normals").visible
    for layer in LAYERS:
        for visible in (True, False):
            scene.show(layer, visible)
            assert node(scene, layer).visible is visible
        scene.clear(layer)
    for call in (lambda: scene.show("robots", True), lambda: scene.clear("robots")):
        with pytest.raises(InvalidInputError, match="grasps"):
            call()
    with pytest.raises(InvalidInputError, match="layer"):
        ViewerScene(port=0, hidden=["everything"])


def test_status_escapes_what_it_is_told() -> None:
    text = status_html("<script>", {"plan & move": 0.5}, ["{old}"] * 9 + ["<b>new</b>"])
    assert "<script>" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;new" in text
    assert "0.50 s" in text
    assert text.count("{old}") == 5


def test_screenshot_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match="apt-get install chromium"):
        screenshot("http://127.0.0.1:1", tmp_path / "a.png", chromium="no-such-browser")
    with pytest.raises(InvalidInputError, match="url"):
        screenshot("file:///etc/hostname", tmp_path / "a.png")
    with pytest.raises(InvalidInputError, match="timeout"):
        screenshot("http://127.0.0.1:1", tmp_path / "a.png", timeout=0.0)
    with pytest.raises(ScreenshotError, match="failed"):
        screenshot("http://127.0.0.1:1", tmp_path / "a.png", chromium="true")
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    with pytest.raises(ScreenshotError, match="longer than"):
        screenshot("http://127.0.0.1:1", tmp_path / "a.png", chromium=sleeper, timeout=0.3)
    assert not (tmp_path / "a.png").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.usefixtures("plain_drawing")
def test_a_browser_shows_the_robot(scene: ViewerScene, tmp_path: Path) -> None:
    from PIL import Image

    def look(name: str) -> np.ndarray:
        path = screenshot(scene.url, tmp_path / f"{name}.png", size=(600, 400), timeout=240.0)
        return np.asarray(Image.open(path).convert("RGB")).astype(int)

    with pytest.raises(ScreenshotError, match="cannot be opened"):
        screenshot("http://127.0.0.1:1", tmp_path / "none.png", timeout=240.0)
    config = RobotConfiguration.load("panda")
    home = dict(zip(config.arm_joints, config.home.tolist(), strict=True))
    points = np.random.default_rng(0).uniform((0.45, -0.05, 0.0), (0.55, 0.05, 0.1), (2000, 3))
    scene.set_table(make_transform(translation=(0.5, 0, 0)), (0.6, 0.8))
    scene.set_object(points)
    scene.set_status("planning", {"perceive": 0.2}, ["one object"])
    without = look("without")
    scene.set_robot(load_robot_description(config.description))
    scene.set_joints(home)
    with_robot = look("with")
    assert np.ptp(without.reshape(-1, 3), axis=0).min() > 100, "the page is blank"
    changed = np.abs(with_robot - without).max(axis=2) > 40
    assert changed.mean() > 0.02
    # The Panda is white and light grey, and stands left of the object, which did not move.
    robot = with_robot[changed]
    assert ((robot.min(axis=1) > 110) & (np.ptp(robot, axis=1) < 40)).mean() > 0.5
    orange = (with_robot[..., 0] - with_robot[..., 2] > 100) & (with_robot[..., 0] > 150)
    assert orange.sum() > 50
    assert np.nonzero(changed)[1].mean() < np.nonzero(orange)[1].mean()
