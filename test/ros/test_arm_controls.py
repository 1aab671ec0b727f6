"""What buttons ask of the arm: one goal at a time, with the chosen target, and a stop for everybody's goals."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

import numpy as np
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.action import GoalResponse

from morphit_interfaces.action import GoHome, Pick
from morphit_interfaces.msg import SphereModel
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.diagnostics import Diagnostics, model_key
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.core.job_nodes import JobNodes
from morphit_ros.ros.execution import arm_controls
from morphit_ros.ros.execution.arm_controls import ArmControls

pytestmark = pytest.mark.ros
ARM = (
    interfaces.PICK, interfaces.PLACE, interfaces.GO_HOME, interfaces.RELEASE, interfaces.RECOVER,
    interfaces.EXECUTE_GRASP,
)  # fmt: skip


class Arm:
    """Takes goals as grasp_execution does, one at a time, and ends them when told to or when they are taken back."""

    def __init__(self, graph):
        self.graph, self.goals, self.running = graph, [], None
        self.servers = [action.take(graph.node, self._take, self._accept) for action in ARM]
        self.others = [interfaces.PLAN_GRASP.take(graph.node, self._take)]
        interfaces.SEGMENT.serve(graph.node, lambda _, response: response)
        graph.node.create_timer(0.05, self._look)

    def _accept(self, _request):
        return GoalResponse.ACCEPT if self.running is None else GoalResponse.REJECT

    def _take(self, goal):
        self.goals.append(goal)
        self.running = goal

    def _look(self):
        if self.running is not None and self.running.is_cancel_requested:
            self.end(False, "cancelled by the client")

    def end(self, success, message=""):
        goal, self.running = self.running, None
        kind = {Pick.Goal: Pick, GoHome.Goal: GoHome}[type(goal.request)]
        settle(goal, kind.Result(success=success, message=message, failed_stage="" if success else "approach"))


@pytest.fixture
def arm(graph):
    made = Arm(graph)
    yield made
    for server in (*made.servers, *made.others):
        server.destroy()


@pytest.fixture
def controls(graph, arm):
    told = []
    lives = NodeWatch(graph.node, ("grasp_execution",), 1.0)
    made = ArmControls(graph.node, lives, told.append, "world")
    made.told = told
    graph.wait_until(lambda: not any(request._missing() for request in made._requests.values()), what="all servers")
    graph.wait_until(lambda: all(client.service_is_ready() for client in made._cancels), what="ways to take back")
    return made


def said(graph, controls, text):
    return graph.wait_until(lambda: [a for a in controls.told if text in a.text], what=f"an answer with {text!r}")[-1]


def test_nobody_to_stop_is_said(graph):
    told = []
    controls = ArmControls(graph.node, NodeWatch(graph.node, ("grasp_execution",), 1.0), told.append, "world")
    controls.stop()
    graph.wait_until(lambda: told)
    assert told[-1].failed and "nobody to stop" in told[-1].text


def test_a_pick_is_for_what_was_chosen_and_may_be_asked_for_again(graph, arm, controls):
    beats = graph.latest(interfaces.HEARTBEAT)
    controls.choose(np.array([0.5, 0.1, 0.02]))
    controls.ask("pick")
    graph.wait_until(lambda: arm.running)
    request = arm.running.request
    assert request.rule == Pick.Goal.RULE_NEAREST and request.point.header.frame_id == "world"
    assert (request.point.point.x, request.point.point.y, request.point.point.z) == (0.5, 0.1, 0.02)
    graph.wait_until(lambda: len(beats) > 5, what="a heart that beats while its goal runs")
    # One thing at a time.
    controls.ask("go_home")
    assert said(graph, controls, "has not ended").failed
    arm.end(True)
    assert not said(graph, controls, "pick done").failed
    graph.wait_until(lambda: beats[-1].level == DiagnosticStatus.STALE, what="leave taken by the heart")
    assert not controls.running
    controls.choose(None)
    controls.ask("pick")
    graph.wait_until(lambda: len(arm.goals) == 2 and arm.running)
    assert arm.running.request.rule == Pick.Goal.RULE_DEFAULT
    arm.end(True)
    # An object is asked for by its name, wherever it is by then.
    graph.wait_until(lambda: not controls.running)
    controls.choose(np.array([0.5, 0.1, 0.02]), "object_3")
    controls.ask("pick")
    graph.wait_until(lambda: len(arm.goals) == 3 and arm.running)
    request = arm.running.request
    assert request.rule == Pick.Goal.RULE_NEAREST and request.point.header.frame_id == "object_3"
    assert (request.point.point.x, request.point.point.y, request.point.point.z) == (0.0, 0.0, 0.0)
    arm.end(False, "no way to it")
    assert said(graph, controls, "pick failed in approach: no way to it").failed


def test_a_stop_takes_back_everybodys_goals(graph, arm, controls):
    handle = graph.start_goal(interfaces.GO_HOME, GoHome.Goal())
    assert handle.accepted
    controls.stop()
    status, _ = graph.result(handle)
    assert status == GoalStatus.STATUS_CANCELED
    assert not said(graph, controls, "stop was sent").failed
    controls.ask("go_home")
    graph.wait_until(lambda: len(arm.goals) == 2)
    controls.stop()
    assert said(graph, controls, "go_home stopped").failed
    assert arm.running is None and not controls.running


def test_a_stop_right_after_a_press_leaves_nothing_running(graph, arm, controls):
    controls.ask("go_home")
    controls.stop()
    graph.wait_until(lambda: not controls.running and len(controls.told) > 2, what="the end of what was pressed")
    graph.wait_until(lambda: arm.running is None, what="an arm at rest")


def test_an_arm_that_is_busy_is_told_of_soon(graph, arm, controls):
    graph.start_goal(interfaces.GO_HOME, GoHome.Goal())
    controls.ask("go_home")
    assert said(graph, controls, "has nothing else to do").failed
    arm.end(True)


def test_what_is_pressed_is_what_can_be_asked_for():
    from morphit_ros.display.job_panel import ASKED

    assert set(ASKED) == set(arm_controls._ACTIONS)


def status(name, level=DiagnosticStatus.OK, message="", **values):
    from diagnostic_msgs.msg import KeyValue

    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticStatus(name=f"/{name}", level=level, message=message, values=pairs)


def test_a_job_says_whom_it_waits_for_and_who_computes_with_an_old_model(graph, monkeypatch):
    nodes = JobNodes(graph.node, ["one", "other"], 1e3)
    lives = graph.publisher(interfaces.NODE_ALIVE)
    out = graph.publisher(interfaces.DIAGNOSTICS)
    assert nodes.waiting() == "one is starting"
    for name in ("one", "other"):
        lives.publish(DiagnosticStatus(name=f"/{name}"))
    graph.wait_until(lambda: nodes.take() or nodes.lives.heard("other"))

    def say(*statuses):
        out.publish(DiagnosticArray(status=list(statuses)))
        heard = []
        graph.wait_until(lambda: heard.extend(nodes.take()) or len(heard) >= len(statuses))

    say(status("one"), status("other", DiagnosticStatus.WARN, "waits for clouds"), status("stranger"))
    assert nodes.waiting() == "other waits for clouds"
    assert nodes.rows() == [("other", "waits for clouds", "doubt")]
    # A node that works, with a remark, is not waited for.
    say(status("other", DiagnosticStatus.WARN, "no efforts", state="active"))
    assert nodes.waiting() == "" and nodes.is_ready("other")
    monkeypatch.setattr("morphit_ros.ros.core.job_nodes._ADOPTION", -1.0)
    key = model_key(interfaces.SPHERE_MODEL.name)
    say(status("one", **{key: "aaaa"}), status("other", **{key: "bbbb"}))
    nodes.model(interfaces.SPHERE_MODEL.name, "bbbb")
    assert nodes.rows() == [("one", "computes with sphere_model aaaa, the newest is bbbb", "doubt")]
    say(status("one", **{key: "bbbb"}))
    assert nodes.rows() == []


def test_the_model_is_said_with_every_status(graph):
    heard = graph.latest(interfaces.DIAGNOSTICS)
    diagnostics = Diagnostics(graph.node)
    diagnostics.computes_with(interfaces.SPHERE_MODEL.name, "cccc")
    diagnostics.report(DiagnosticStatus.OK, "fine", {"x": 1.0})
    diagnostics.computes_with(interfaces.SPHERE_MODEL.name, SphereModel(content_hash="dddd").content_hash)

    def hashes():
        return [pair.value for array in heard for pair in array.status[0].values if pair.key.startswith("hash of")]

    graph.wait_until(lambda: "dddd" in hashes(), what="the newer hash, repeated with the same words")
    assert hashes()[0] == "cccc"
