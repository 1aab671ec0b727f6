"""web_viewer as a process: a page on loopback that shows what is published."""

import math
import shutil
import socket
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
pytest.importorskip("viser", reason="needs the browser view")
sys.path.insert(0, str(Path(__file__).parent))

import rclpy
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, TransformStamped
from scenes import CAMERAS, camera_cloud
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from morphit_interfaces.action import GoHome
from morphit_interfaces.msg import BodyDistance, MotionPlan
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import flat_state
from morphit_ros.display.screenshot import opened_page, screenshot
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import (
    header,
    message_from_cloud,
    message_from_joint_state,
    transform_from_matrix,
)
from morphit_ros.ros.core.frames import BaseFrameConfig, CameraFrameConfig
from morphit_ros.ros.cover.messages import description_text
from morphit_ros.ros.scene.system_view import SystemViewer

pytestmark = pytest.mark.ros
needs_chromium = pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), reason="needs Chromium"
)


def start(graph, **parameters):
    process = graph.start("web_viewer", **{"port": 0, **parameters})
    line = process.wait_for_line("view at http://")
    return process, line.rpartition("view at ")[2].strip()


def test_the_page_is_served_on_loopback(graph):
    process, url = start(graph)
    assert url.startswith(("http://127.0.0.1:", "http://localhost:"))
    with urllib.request.urlopen(url, timeout=20.0) as reply:
        assert reply.status == 200
        assert b"<html" in reply.read().lower()
    assert process.stop() == 0


def test_a_port_in_use_is_named(graph):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = graph.start("web_viewer", port=port)
        assert process.wait() == 2
    assert str(port) in process.output
    assert "Traceback" not in process.output


def test_what_cannot_be_shown_is_reported_and_the_rest_goes_on(graph):
    process, _ = start(graph)
    graph.publisher(interfaces.ROBOT_DESCRIPTION).publish(String(data="<robot name='r'><link"))
    process.wait_for_line("robot_description not shown")
    cloud = message_from_cloud(camera_cloud("left", 1.0))
    clouds = graph.publisher(interfaces.LEFT_POINTS)
    clouds.publish(cloud)
    process.wait_for_line("left/points not shown: pose of the left camera")
    # Anybody may publish a status, with values that are no times.
    states = graph.publisher(interfaces.JOB_STATE)
    states.publish(DiagnosticStatus(message="odd", values=[KeyValue(key="speed", value="fast")]))
    process.wait_for_line("job_state not shown")
    pairs = graph.publisher(interfaces.SEPARATION)
    nan = Point(x=math.nan, y=0.0, z=0.0)
    pairs.publish(BodyDistance(link_names=["one", "other"], distance=0.1, nearest_points=[nan, nan]))
    process.wait_for_line("separation/nearest not shown")
    assert process.stop() == 0


def test_a_plan_that_does_not_fit_together_is_reported(graph):
    process, _ = start(graph)
    plans = graph.publisher(interfaces.MOTION_PLAN)
    plans.publish(MotionPlan(success=True, way=[Point(), Point()], clearance=[0.1]))
    process.wait_for_line("motion_plan not shown")
    assert process.stop() == 0


@pytest.mark.parametrize(("frame", "drawn"), [("world", 1), ("cover", 0)])
def test_a_cover_that_the_arm_wears_is_not_drawn_in_the_world(monkeypatch, frame, drawn):
    """There it is drawn with the arm's spheres."""
    shown = []
    monkeypatch.setattr(
        "morphit_ros.ros.cover.view.CoverViewer", lambda page: SimpleNamespace(show_description=shown.append)
    )
    cover = Cover(2, 2, 0.05, (0,)).with_motors(np.array([[0, 2]]))
    page = SimpleNamespace(_world_frame="world", _cover=None, scene=None)
    SystemViewer._show_cover(page, String(data=description_text(cover, flat_state(cover), {"frame": frame})))
    assert len(shown) == drawn


def test_a_push_is_drawn_by_what_its_planner_publishes():
    page = SimpleNamespace(scene=mock.Mock())
    rows = {"object": np.arange(9.0).reshape(3, 3), "way": np.ones((2, 3)), "forces": np.zeros((2, 3))}
    for names in (tuple(rows), ("object",), ()):
        drawn = [Marker(ns=name, points=[Point(x=x, y=y, z=z) for x, y, z in rows[name]]) for name in names]
        SystemViewer._show_contact(page, MarkerArray(markers=[Marker(action=Marker.DELETEALL), *drawn]))
        for name, given in zip(rows, page.scene.set_contact.call_args.args, strict=True):
            np.testing.assert_array_equal(given, rows[name] if name in names else np.zeros((0, 3)))


@pytest.mark.parametrize("picks", [False, True])
def test_a_page_says_what_pushes_do_unless_somebody_tells_the_state_of_a_job(graph, picks):
    node = rclpy.create_node("page")
    page = SystemViewer(
        node, 0, 100, "panda", "world", BaseFrameConfig(), CameraFrameConfig(), (), controls=False, node_timeout=1.0
    )
    try:
        if picks:
            page.topics[interfaces.JOB_STATE](DiagnosticStatus(message="segment"))
        page.scene.set_status = mock.Mock()
        stranger, push = (DiagnosticStatus(name=name, message=f"of {name}") for name in ("/other", "/contact_planning"))
        page._nodes.take = lambda: [stranger, push]
        page._look()
        push.level = DiagnosticStatus.ERROR
        page._look()
        told = [] if picks else [mock.call("of /contact_planning", {}, failed=failed) for failed in (False, True)]
        assert page.scene.set_status.call_args_list == told
    finally:
        page.close()
        node.destroy_node()


def test_a_page_that_only_shows_asks_for_nothing(graph):
    """Nothing that the arm could take for a goal, or for somebody who has one."""
    start(graph)

    def asked():
        # Its publishers may be known before its name is.
        if "web_viewer" not in graph.node.get_node_names():
            return {}
        return dict(graph.node.get_client_names_and_types_by_node("web_viewer", "/"))

    # Clients come before the first publisher of what the page says.
    graph.wait_until(lambda: graph.node.count_publishers("/node_alive"), what="the page on the graph")
    graph.wait_until(asked, what="its clients")
    assert not [name for name in asked() if "/_action/" in name]
    assert not graph.node.count_publishers(interfaces.HEARTBEAT.name)


# What a browser does on its own: the button with a label is clicked; whether it is off.
_CLICK = """(() => { const all = [...document.querySelectorAll("button")];
const found = all.find(b => b.innerText.trim() === LABEL);
if (!found) return "missing"; if (found.disabled) return "off"; found.click(); return "clicked"; })()"""


@needs_chromium
@pytest.mark.slow
def test_buttons_of_the_page_move_and_stop_the_arm(graph):
    goals = []
    server = interfaces.GO_HOME.take(graph.node, goals.append)
    process, url = start(graph, controls=True)
    out = graph.publisher(interfaces.DIAGNOSTICS)
    with opened_page(url, (800, 700)) as page:

        def press(label):
            script = _CLICK.replace("LABEL", f'"{label}"')
            return page.call("Runtime.evaluate", expression=script)["result"].get("value")

        graph.wait_until(lambda: press("Home") in ("off", "clicked"), what="the page's buttons", timeout=120.0)
        assert not goals
        # Nobody has said yet that there is an arm: nothing but a stop can be pressed.
        assert press("Home") == "off" and press("STOP") == "clicked"

        def ready():
            out.publish(DiagnosticArray(status=[DiagnosticStatus(name="/grasp_execution")]))
            return press("Home") == "clicked"

        graph.wait_until(ready, what="a button that can be pressed", timeout=120.0)
        graph.wait_until(lambda: goals, what="the goal")
        assert isinstance(goals[0].request, GoHome.Goal)
        assert press("STOP") == "clicked"
        graph.wait_until(lambda: goals[0].is_cancel_requested, what="the goal taken back")
        goals[0].execute(lambda goal: (goal.canceled(), GoHome.Result(message="stopped"))[1])
        graph.wait_until(lambda: goals[0].status == GoalStatus.STATUS_CANCELED)
        said = "document.body.innerText.includes('go_home stopped')"
        graph.wait_until(lambda: page.call("Runtime.evaluate", expression=said)["result"].get("value"), timeout=120.0)
    server.destroy()
    assert process.stop() == 0


def publish_workcell(graph):
    """A robot at home and two clouds; the publishers, which must live on."""
    panda = RobotConfiguration.load("panda")
    names = (*panda.arm_joints, *panda.finger_joints)
    positions = np.concatenate([panda.home, [0.04, 0.04]])
    publishers = []

    def publish(topic, message):
        publishers.append(graph.publisher(topic))
        publishers[-1].publish(message)

    publish(interfaces.ROBOT_DESCRIPTION, String(data=load_robot_description(panda.description).xml))
    publish(interfaces.JOINT_STATES, message_from_joint_state(JointState(names, positions, np.zeros(9), 1.0)))
    for camera, extrinsics, points in (
        ("left", interfaces.LEFT_EXTRINSICS, interfaces.LEFT_POINTS),
        ("right", interfaces.RIGHT_EXTRINSICS, interfaces.RIGHT_POINTS),
    ):
        pose = transform_from_matrix(CAMERAS[camera])
        publish(extrinsics, TransformStamped(header=header("world"), transform=pose))
        publish(points, message_from_cloud(camera_cloud(camera, 1.0)))
    publish(interfaces.JOB_STATE, DiagnosticStatus(message="approach", values=[KeyValue(key="plan", value="0.5")]))
    return publishers


@needs_chromium
@pytest.mark.slow
@pytest.mark.usefixtures("plain_drawing")
def test_the_view_shows_the_robot(graph, tmp_path):
    from PIL import Image

    process, url = start(graph)

    def picture(name):
        path = screenshot(url, tmp_path / name)
        return np.asarray(Image.open(path).convert("RGB"), dtype=np.int64)

    empty = picture("empty.png")
    publishers = publish_workcell(graph)
    shown = picture("shown.png")
    assert shown.std() > 5.0, "the page is blank"
    changed = np.abs(shown - empty).max(axis=2) > 40
    # The Panda is white, the clouds are not; the panel with its white letters is on the right.
    left = slice(0, int(0.7 * shown.shape[1]))
    white = (shown.min(axis=2) > 150) & changed
    assert white[:, left].mean() > 0.03, "the robot is not to be seen"
    coloured = (np.ptp(shown, axis=2) > 80) & changed
    assert coloured[:, left].mean() > 0.03, "the clouds are not to be seen"
    assert "not shown" not in process.output
    assert len(publishers) == 7
    assert process.stop() == 0
