"""The grasp job as a user starts it: the object is lifted, or the job ends with the cause and leaves nothing behind."""

import contextlib
import importlib.util
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

# Not imported here: this package first chooses what MuJoCo renders with.
WITHOUT_MUJOCO = importlib.util.find_spec("mujoco") is None
# Where the robot moves, or it counts how soon something is said, nothing runs beside it.
pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.skipif(WITHOUT_MUJOCO, reason="needs the simulation: mujoco"),
]
JOB_PATIENCE = 280.0
# Small and few pictures, few spheres: quick on a machine without a graphics card.
QUICK = """
workcell_sim: {ros__parameters: {camera: {width: 320, height: 288}, overview_width: 320, overview_height: 240,
  camera_rate: 1.0, joint_state_rate: 50.0, base_position: BASE}}
scene_perception: {ros__parameters: {base_xyz: BASE}}
grasp_planning: {ros__parameters: {base_xyz: BASE}}
grasp_execution: {ros__parameters: {base_xyz: BASE}}
robot_spheres: {ros__parameters: {count: 10, iterations: 60, interior_samples: 500, surface_samples: 500}}
"""


class Job:
    """`morphit up grasp pick:=true` in a process."""

    def __init__(self, graph, folder: Path, base_x: float = 0.0, **arguments) -> None:
        parameters = folder / "quick.yaml"
        parameters.write_text(QUICK.replace("BASE", f"[{base_x}, 0.0, 0.0]"))
        self.output, self.report_file = folder / "pictures", folder / "report.json"
        given = {
            "pick": "true", "viewer": "false", "output": self.output, "report": self.report_file,
            "params_file": parameters, **arguments,
        }  # fmt: skip
        words = [sys.executable, "-m", "morphit_ros.cli", "up", "grasp"]
        self.process = graph.run([*words, *(f"{name}:={value}" for name, value in given.items())])

    def wait(self) -> int:
        return self.process.wait(JOB_PATIENCE)

    def report(self) -> dict:
        assert self.report_file.exists(), f"no report from the job; it printed:\n{self.process.output}"
        return json.loads(self.report_file.read_text())

    def nodes(self) -> dict[str, int]:
        """Executable → process id of the running nodes of this job, found by its parameter folder."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().decode().split("\0")
                    environment = (entry / "environ").read_bytes().decode().split("\0")
                    ours = f"ROS_DOMAIN_ID={os.environ['ROS_DOMAIN_ID']}" in environment
                    if ours and "morphit_ros.nodes" in words:
                        found[words[words.index("morphit_ros.nodes") + 1]] = int(entry.name)
        return found


@pytest.mark.alone
def test_a_box_is_picked_and_put_into_a_region(graph, tmp_path):
    place = {"place": "region", "place_region": "0.45 -0.25 0.0 0.5", "place_size": "0.25 0.25"}
    job = Job(graph, tmp_path, object="box", **place)
    assert job.wait() == 0, job.process.output
    report = job.report()
    assert report["success"]
    assert report["failed_stage"] == ""
    assert report["object_rise"] >= 0.17
    assert list(report["stages"])[:2] == ["segment", "plan_grasp"]
    assert list(report["stages"])[-1] == "verify"
    assert report["stages"]["verify"] >= 1.0
    assert "PICKED" in job.process.output
    assert list(report["place_stages"]) == ["check", "transfer", "set_down", "release", "retreat"]
    assert re.search(r"held; it weighs 0\.\d{3} ± 0\.\d{3} kg; put down$", report["message"])
    assert report["mass_deviation"] < 0.03
    assert abs(report["mass"] - 0.2) < 4.0 * report["mass_deviation"]
    moved = np.array(report["object_moved"])
    assert abs(moved[2]) < 0.01
    stands = np.array([0.5, 0.0]) + moved[:2]
    aside = (stands - [0.45, -0.25]) @ [[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]]
    assert (np.abs(aside) < 0.125).all()
    from PIL import Image

    pixels = np.asarray(Image.open(job.output / "pick.png").convert("RGB"), dtype=float)
    assert pixels.shape == (240, 320, 3)
    assert pixels.std() > 10.0, "the picture is blank"
    assert job.nodes() == {}


def test_a_killed_node_ends_the_job_by_name(graph, tmp_path):
    job = Job(graph, tmp_path, object="box")
    # The robot is about to move.
    job.process.wait_for_line(" s  plan", JOB_PATIENCE)
    os.kill(job.nodes()["grasp_execution"], signal.SIGKILL)
    assert job.wait() == 1
    assert re.search(r"grasp_execution ended unexpectedly with signal SIGKILL", job.process.output)
    assert "starts again" not in job.process.output
    assert job.nodes() == {}


@pytest.mark.alone
def test_killed_perception_is_started_again_and_the_pick_goes_on_without(graph, tmp_path):
    job = Job(graph, tmp_path, object="box")
    # It has been asked, and is not needed any more.
    job.process.wait_for_line(" s  plan_grasp", JOB_PATIENCE)
    first = job.nodes()["scene_perception"]
    os.kill(first, signal.SIGKILL)
    job.process.wait_for_line("ended unexpectedly with signal SIGKILL; starts again in 0.5 s (1 of 3)", JOB_PATIENCE)
    assert job.wait() == 0, job.process.output
    assert job.report()["success"]
    assert job.nodes() == {}


@pytest.mark.alone
def test_a_pick_that_waits_for_killed_planning_says_so_at_once_and_the_next_one_works(graph, tmp_path):
    job = Job(graph, tmp_path, object="box", pick="false")
    job.process.wait_for_line("panda may move", JOB_PATIENCE)
    # As users ask for it: with a client of its own, in the domain of this test.
    client = [sys.executable, "-m", "morphit_ros.nodes.pick_client", "--ros-args", "-p", "use_sim_time:=true"]
    words = [*client, "-p", f"report:={job.report_file}"]
    planning = job.nodes()["grasp_planning"]
    first = graph.run(words)
    # Looked up before: it plans for a second or two.
    first.wait_for_line(" s  plan_grasp", JOB_PATIENCE)
    os.kill(planning, signal.SIGKILL)
    killed = time.monotonic()
    assert first.wait(JOB_PATIENCE) == 1
    # With the end of the client's process, which takes most of it.
    assert time.monotonic() - killed < 3.0
    assert job.report()["failed_stage"] == "plan_grasp"
    assert "grasp_planning has died" in job.report()["message"]
    job.process.wait_for_line("signal SIGKILL; starts again", JOB_PATIENCE)
    job.process.wait_for_line("ready for franka_hand", JOB_PATIENCE, times=2)
    # A busy machine may take seconds until grasp_execution has heard of the successor. Who asks before that is told
    # again that it has died, and asks again.
    asked = time.monotonic()
    while (second := graph.run(words)).wait(JOB_PATIENCE) and "grasp_planning has died" in job.report()["message"]:
        assert time.monotonic() - asked < 30.0, job.process.output
    assert second.wait() == 0, f"{second.output}\n---\n{job.process.output}"
    # The client's last word came before its end.
    assert "pick_client has died" not in job.process.output
    assert job.process.stop(signal.SIGINT) == 0, job.process.output
    assert job.nodes() == {}


def write_cube(path: Path, edge: float) -> None:
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ]  # fmt: skip
    lines = [f"v {x * edge} {y * edge} {z * edge}" for x, y, z in corners]
    lines += ["f " + " ".join(str(index + 1) for index in face) for face in faces]
    path.write_text("\n".join(lines) + "\n")


def test_an_object_that_is_too_wide_is_named(graph, tmp_path):
    mesh = tmp_path / "cube.obj"
    write_cube(mesh, 0.15)
    job = Job(graph, tmp_path, object=mesh, object_mass=1.0)
    assert job.wait() == 1, job.process.output
    report = job.report()
    assert not report["success"]
    assert report["failed_stage"] == "plan_grasp"
    assert "wide" in report["message"]
    assert job.nodes() == {}


def test_an_object_out_of_reach_is_named(graph, tmp_path):
    # In front of the cameras, but the robot stands a metre away.
    job = Job(graph, tmp_path, base_x=-0.55, object="box")
    assert job.wait() == 1, job.process.output
    report = job.report()
    assert not report["success"]
    # Known before anything is tried with the motion planner.
    assert report["failed_stage"] == "plan_grasp", report["message"]
    assert "'unreachable' removed the last" in report["message"]
    assert job.nodes() == {}
