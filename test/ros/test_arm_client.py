"""`morphit arm` beside a grasp_execution whose robot follows exactly: what is asked for happens."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from test_grasp_execution_node import Cell, spherized_panda

from morphit_ros.robot.configuration import RobotConfiguration

__all__ = ["spherized_panda"]
pytestmark = pytest.mark.ros
HOME = RobotConfiguration.load("panda").home


@pytest.fixture
def cell(graph, spherized_panda):
    cell = Cell(graph, spherized_panda, autostart=True)
    cell.wait_for_report("may move")
    return cell


def start(*words):
    """The command as a process; what it prints is one stream."""
    command = [sys.executable, "-m", "morphit_ros.cli", "arm", *words]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def run(cell, *words):
    """Its exit status and what it printed, while the robot goes on."""
    process = start(*words)
    try:
        cell.graph.wait_until(lambda: process.poll() is not None, what=f"the end of {words}", timeout=60.0)
    finally:
        process.kill()
        output = process.communicate()[0]
    return process.returncode, output


def test_the_arm_goes_home_and_the_hand_opens(cell):
    cell.robot.arm = HOME + np.array([0.3, *[0.0] * 6])
    status, output = run(cell, "home")
    assert status == 0, output
    assert "home" in output
    assert "done; nothing is known to be held" in output
    np.testing.assert_allclose(cell.robot.arm, HOME, atol=1e-3)
    cell.robot.aperture = cell.robot._wanted = 0.03
    status, output = run(cell, "release", "--aperture", "0.05")
    assert status == 0, output
    assert cell.robot.gripper_commands[-1][0] == pytest.approx(0.05)


def test_what_cannot_be_is_said_with_its_stage(cell):
    status, output = run(cell, "place")
    assert status == 1
    assert "FAILED" in output
    assert "nothing is known to be held, expected an object" in output


def test_whoever_asked_and_goes_stops_the_arm(cell):
    cell.robot.arm = HOME + np.array([0.45, *[0.0] * 6])
    process = start("home")
    try:
        cell.graph.wait_until(lambda: cell.robot.moving, what="the motion", timeout=60.0)
        # It is held up, or it might be at home before it is told to stop.
        cell.robot.scale = 0.0
        process.send_signal(signal.SIGINT)
        cell.graph.wait_until(lambda: not cell.robot.moving, what="the stop")
        cell.robot.scale = 100.0
        cell.graph.wait_until(lambda: process.poll() is not None, what="the end of the process")
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert np.abs(cell.robot.arm - HOME).max() > 0.05
    place, end = cell.robot.arm.copy(), time.monotonic() + 0.3
    cell.graph.wait_until(lambda: time.monotonic() > end)
    np.testing.assert_array_equal(cell.robot.arm, place)


def test_without_a_server_it_ends_soon_and_says_so(graph):
    process = start("home", "--server-timeout", "2")
    assert "not there within 2 s: go_home" in process.communicate(timeout=30.0)[0]
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [(("home", "--open"), "recover"), (("release", "--height", "0.1"), "place"), (("home", "--frame", "x"), "place")],
)
def test_options_of_other_actions_are_refused_before_anything_starts(words, text):
    process = start(*words)
    output = process.communicate(timeout=30.0)[0]
    assert process.returncode == 2
    assert text in output
