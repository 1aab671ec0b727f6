"""grasp_execution with MoveIt in a process of its own: what happens there does not end the node."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from fake_robot import FakeRobot
from std_msgs.msg import String

from morphit_interfaces.action import GoHome
from morphit_interfaces.msg import LinkSpheres, Sphere, SphereModel
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.ros.core import interfaces

pytestmark = pytest.mark.ros
DOUBLE = Path(__file__).parents[1] / "motion/moveit_double"


class MoveIt:
    """The stand-in of moveit_py, and a Python that finds it: the node itself has the true message packages."""

    def __init__(self, folder):
        self.folder = folder
        self.python = folder / "python"
        lines = ["#!/bin/sh", f"export PYTHONPATH={DOUBLE} PYTHONDONTWRITEBYTECODE=1 MOVEIT_DOUBLE={folder}"]
        self.python.write_text("\n".join([*lines, f'exec {sys.executable} "$@"\n']), encoding="utf-8")
        self.python.chmod(0o755)
        self.parameters = folder / "moveit.yaml"
        limits = {"robot_description_planning": {"cartesian_limits": {"max_trans_vel": 0.62}}}
        self.parameters.write_text(json.dumps(limits), encoding="utf-8")
        self.order()

    def order(self, **orders):
        (self.folder / "orders.json").write_text(json.dumps({"true_path": True, **orders}), encoding="utf-8")

    @property
    def told(self):
        return json.loads((self.folder / "told.json").read_text(encoding="utf-8"))


@pytest.fixture
def moveit(tmp_path):
    return MoveIt(tmp_path)


def start(graph, moveit):
    robot = FakeRobot(graph)
    robot.arm[0] += 0.2
    told = graph.latest(interfaces.DIAGNOSTICS)
    process = graph.start(
        "grasp_execution", backend="moveit", moveit_parameters=moveit.parameters, moveit__python=moveit.python,
        moveit__answer_time=1.0, moveit__planning_time=1.0, autostart=True, state_timeout=5.0, tracking_bound=0.5,
        silence_timeout=10.0, tracking_delay=1.5,
    )  # fmt: skip
    xml = load_robot_description(RobotConfiguration.load("panda").description).xml
    graph.publisher(interfaces.ROBOT_DESCRIPTION).publish(String(data=xml))
    return robot, process, lambda words: any(words in s.message for m in told for s in m.status)


def test_the_way_home_by_another_process_that_may_die(graph, moveit):
    robot, node, said = start(graph, moveit)
    graph.wait_until(lambda: said("may move"), what="the activation")
    first = moveit.told["pid"]
    for order, reason in (({"plan": "SIGSEGV"}, "ended by SIGSEGV"), ({"plan": 60.0}, "did not answer request 'plan'")):
        moveit.order(**order)
        _, _, result = graph.send_goal(interfaces.GO_HOME, GoHome.Goal())
        assert not result.success
        assert reason in result.message
        assert robot.trajectories == 0
    moveit.order()
    _, _, result = graph.send_goal(interfaces.GO_HOME, GoHome.Goal())
    assert result.success, result.message
    assert moveit.told["pid"] != first
    np.testing.assert_allclose(robot.arm, RobotConfiguration.load("panda").home, atol=0.01)
    assert node.stop() == 0


def test_a_python_whose_arrays_crash_is_refused_with_the_reason(graph, moveit):
    moveit.order(array="SIGSEGV")
    _, node, said = start(graph, moveit)
    graph.wait_until(lambda: said("no motion planning for this robot"), what="the refusal")
    assert said("ended by SIGSEGV at the first array")
    assert said(f"NumPy {np.__version__}")
    assert node.stop() == 0


def test_moveit_plans_with_what_the_robot_wears(graph, moveit):
    robot, _, said = start(graph, moveit)
    graph.wait_until(lambda: said("may move"), what="the activation")
    models = graph.publisher(interfaces.SPHERE_MODEL)
    # Further at once would be a jump, which stops everything.
    for radius, x in ((0.04, 0.03), (0.05, -0.03)):
        cover = LinkSpheres(link_name="panda_link5", object_id="cover", spheres=[Sphere(radius=radius)])
        models.publish(SphereModel(links=[cover]))

        def goes_home(x=x):
            robot.arm[0] += x
            _, _, result = graph.send_goal(interfaces.GO_HOME, GoHome.Goal())
            assert result.success, result.message
            return moveit.told["attached"].get("cover")

        # The model may come after a goal that is sent right behind it.
        seen = []
        graph.wait_until(lambda: seen.append(goes_home()) or has(seen[-1], radius), what="the plates")  # noqa: B023
        assert seen[-1]["link_name"] == "panda_link5"
        assert set(seen[-1]["touch_links"]) >= {"panda_link4", "panda_link5", "panda_link6"}


def has(cover, radius):
    return cover is not None and [shape["dimensions"] for shape in cover["object"]["primitives"]] == [[radius]]
