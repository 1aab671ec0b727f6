"""cover_control and cover_sim as processes: what moves motors, what stops them, and what is refused.

The test stands between the two: states of the simulation reach the control through it, or don't, or spoiled.
"""

import sys
from copy import deepcopy

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from sensor_msgs.msg import JointState
from shape_msgs.msg import Mesh, MeshTriangle
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import Marker

from morphit_interfaces.msg import CoverTarget
from morphit_ros.ros.core import interfaces

pytestmark = pytest.mark.ros
CHANGE_STATE = interfaces.Service("cover_control/change_state", ChangeState, "")
GET_STATE = interfaces.Service("cover_control/get_state", GetState, "")
# What a transition that succeeds leads to.
LEADS_TO = {
    Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
    Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
}
SEEN = interfaces.Topic("seen/joint_states", JointState, interfaces.STREAM, "what the simulation says")
# A busy machine delays messages by more than the 18 ms that are the default.
PATIENT = {"case": "3x3", "state_timeout": 100.0, "overrun_limit": 200.0, "recovery_states": 5}
SADDLE = "4*x*y"


def words(executable, remappings, **parameters):
    found = [sys.executable, "-m", f"morphit_ros.nodes.{executable}", "--ros-args"]
    for inner, outer in remappings.items():
        found += ["-r", f"{inner}:={outer}"]
    for name, value in parameters.items():
        found += ["-p", f"{name}:={str(value).lower() if isinstance(value, bool) else value}"]
    return found


class Bench:
    """Control and simulation of a 3 x 3 cover."""

    def __init__(self, graph):
        self.graph = graph
        self.spoil = lambda message: None
        graph.run(words("cover_sim", {"cover/joint_states": SEEN.name}, case="3x3", command_timeout=5.0))
        self.control = graph.run(words("cover_control", {}, **PATIENT))
        self.commands, self.diagnostics = graph.latest(interfaces.COVER_COMMANDS), graph.latest(interfaces.DIAGNOSTICS)
        self.states, self.motors = graph.latest(interfaces.COVER_STATE), graph.latest(interfaces.COVER_MOTORS)
        self.targets = graph.publisher(interfaces.COVER_TARGET)
        self.joints = graph.publisher(interfaces.COVER_JOINT_STATES)
        graph.node.create_subscription(SEEN.type, SEEN.name, self._relay, SEEN.quality.profile(depth=1))
        self.relayed = 0

    def _relay(self, message):
        message = self.spoil(message)
        if message is not None:
            self.relayed += 1
            self.joints.publish(message)

    def change(self, transition):
        return self.graph.call(CHANGE_STATE, ChangeState.Request(transition=Transition(id=transition))).success

    def reach(self, transition):
        """Make a transition: again where it fails, for a busy machine delays the states that activation asks for.

        Where its answer was lost and the transition is made already, a second one fails for good.
        """

        def there():
            return self.graph.call(GET_STATE, GetState.Request()).current_state.id == LEADS_TO[transition]

        self.graph.wait_until(lambda: self.change(transition) or there(), what=f"transition {transition}")

    def wait_for_status(self, *texts, level=None, without=None):
        """A status with all texts that is published from now on."""
        self.diagnostics.clear()

        def reported():
            for message in self.diagnostics:
                for status in message.status:
                    said = status.message
                    if status.name != "/cover_control" or (without and without in said):
                        continue
                    if all(text in said for text in texts) and level in (None, status.level):
                        return status
            return None

        return self.graph.wait_until(reported, what=f"a status with {texts}")

    def wait_for_motion(self):
        self.commands.clear()
        self.graph.wait_until(lambda: any(any(c.data) for c in self.commands), what="commands that turn motors")

    def wait_for_last_word(self):
        """Zeros as the newest command: what a status says of it may come before the command does."""
        self.graph.wait_until(lambda: not any(self.commands[-1].data), what="zeros at the end")

    def wait_for_zeros(self, count=3):
        """So many commands in a row that are zero."""
        self.commands.clear()

        def still():
            return len(self.commands) >= count and not any(any(c.data) for c in self.commands[-count:])

        self.graph.wait_until(still, what="commands of zeros")

    def angle(self):
        self.states.clear()
        message = self.graph.wait_until(lambda: self.states and self.states[-1], what="cover/state")
        return float(np.mean(message.angle_errors))

    def follow(self, name, **fields):
        """Publish a target and wait until it is followed, by what the status calls it: not the one before."""
        self.targets.publish(CoverTarget(**fields))
        return self.wait_for_status("following", name, without="refused")


@pytest.fixture(scope="module")
def bench(shared_graph):
    return Bench(shared_graph)


@pytest.fixture
def active(bench):
    """The bench, following a saddle."""
    bench.spoil = lambda message: message
    if not bench.commands:
        # Inactive until now.
        bench.graph.wait_until(lambda: bench.relayed > 3, what="states of the simulation")
        bench.reach(Transition.TRANSITION_CONFIGURE)
        bench.reach(Transition.TRANSITION_ACTIVATE)
    bench.follow(f"z = {SADDLE}", formulas=[SADDLE])
    return bench


def test_is_inactive_until_it_is_told_and_only_with_a_state(bench):
    motors = bench.graph.wait_until(lambda: bench.motors, what="the list of motors")[-1]
    assert len(motors.name) == 12
    assert all(name.startswith("joint_") for name in motors.name)
    bench.reach(Transition.TRANSITION_CONFIGURE)
    assert not bench.change(Transition.TRANSITION_ACTIVATE)
    bench.wait_for_status("inactive")
    assert not bench.commands
    # What is published while inactive is examined as well, and kept if it can be used.
    bench.targets.publish(CoverTarget(formulas=["log(x - 9)"]))
    assert "not finite" in bench.wait_for_status("target refused").message
    bench.spoil = lambda message: message
    bench.relayed = 0
    bench.graph.wait_until(lambda: bench.relayed > 3, what="states of the simulation")
    bench.reach(Transition.TRANSITION_ACTIVATE)
    bench.wait_for_motion()
    assert "target of 3x3" in bench.wait_for_status("following").message


def test_follows_its_target(active):
    before = active.angle()
    assert before > np.radians(5.0)
    active.graph.wait_until(lambda: active.angle() < 0.6 * before, what="half of the way to the target")
    status = active.wait_for_status("following")
    values = {pair.key: pair.value for pair in status.values}
    assert int(values["degrees of freedom"]) == 12
    for name in ("angle error 90 % [deg]", "position error 90 % [mm]", "condition", "saturated axes", "missed share"):
        assert float(values[name]) >= 0.0
    assert float(values["step time median [s]"]) > 0.0
    assert all(max(map(abs, command.data)) <= np.radians(5.0) + 1e-12 for command in active.commands)
    assert all(len(command.data) == 12 for command in active.commands)


def test_markers_are_few_lists(active):
    arrays = active.graph.latest(interfaces.COVER_MARKERS)
    markers = active.graph.wait_until(lambda: arrays and arrays[-1].markers, what="markers")
    kinds = {marker.ns: (marker.type, len(marker.points)) for marker in markers}
    assert kinds["plates"] == (Marker.TRIANGLE_LIST, 54)
    assert kinds["normals"] == (Marker.LINE_LIST, 18)
    assert kinds["motors"] == (Marker.LINE_LIST, 24)
    assert kinds["target"][0] == Marker.TRIANGLE_LIST
    assert kinds["target"][1] > 100
    assert len(markers[0].colors) == 18


def test_stops_with_the_states_and_goes_on_with_them(active):
    active.spoil = lambda message: None
    active.wait_for_zeros()
    active.wait_for_status("states have stopped", level=DiagnosticStatus.WARN)
    active.spoil = lambda message: message
    active.wait_for_motion()
    active.wait_for_status("following")


def shorter(message):
    message.position = message.position[:-1]
    return message


def renamed(message):
    message.name = [f"of_another_{name}" for name in message.name]
    return message


def doubled(message):
    message.name = [*message.name[:-1], message.name[0]]
    return message


def changed(value):
    def change(message):
        message.position[2] += value
        return message

    return change


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (shorter, "positions for"),
        (renamed, "12 of 12 motors missing, such as joint_"),
        (doubled, "a name twice"),
        (changed(np.nan), "not finite"),
        (changed(0.2), "off every closed configuration"),
        (changed(7.0), "joint angles"),
    ],
    ids=["length", "name", "twice", "nan", "open", "turn"],
)
def test_inconsistent_states_stop_it(active, spoil, reason):
    active.spoil = lambda message: spoil(deepcopy(message))
    status = active.wait_for_status("inconsistent state", level=DiagnosticStatus.WARN)
    assert reason in next(pair.value for pair in status.values if pair.key == "reason")
    active.wait_for_zeros()
    active.spoil = lambda message: message
    active.wait_for_motion()


def test_old_stamps_are_no_sign_of_life(active):
    kept = []

    def repeated(message):
        kept.append(message)
        return kept[0]

    active.spoil = repeated
    active.wait_for_zeros()
    active.wait_for_status("states have stopped")


TRIANGLE = Mesh(
    vertices=[Point(x=-1.0, y=-1.0), Point(x=2.0, y=-1.0), Point(y=2.0)],
    triangles=[MeshTriangle(vertex_indices=[0, 1, 2])],
)
FLAT_LINE = Mesh(vertices=[Point(), Point(x=1.0), Point(x=2.0)], triangles=TRIANGLE.triangles)
OUT_OF_RANGE = Mesh(vertices=[Point()], triangles=TRIANGLE.triangles)
MAP = {"kind": CoverTarget.HEIGHT_MAP, "spacing": 0.1, "corner": Point(x=-0.3, y=-0.3)}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"formulas": ["x*wind"]}, "wind"),
        ({"formulas": ["__import__('os').system('true')"]}, "expected a function of"),
        ({"formulas": ["x**99999"]}, "16"),
        ({"formulas": ["(" * 10_000 + "x" + ")" * 10_000]}, "characters"),
        ({"formulas": ["sin(" * 100 + "x" + ")" * 100]}, "nested"),
        ({"formulas": ["1/(x - x)"]}, "not finite at node"),
        ({"formulas": ["x/(t - 20)"]}, "not finite at t = 20"),
        ({"formulas": ["x + 0.05"]}, "fixed node"),
        ({"formulas": ["0.002*t"]}, "from the father node at t ="),
        ({"formulas": []}, "0 formulas"),
        ({"formulas": ["x", "y"], "until": [np.nan]}, "increase"),
        ({"formulas": [SADDLE], "kind": 9}, "kind"),
        ({"formulas": ["u", "v"], "kind": CoverTarget.PARAMETRIC}, "three"),
        ({"formulas": ["u", "-v", "0*u"], "kind": CoverTarget.PARAMETRIC}, "180 degrees away"),
        ({**MAP, "heights": [0.0] * 9, "columns": 3}, "at least 4 x 4"),
        ({**MAP, "heights": [0.0] * 18, "columns": 4}, "whole rows"),
        ({**MAP, "heights": [np.nan] * 16, "columns": 4}, "finite heights"),
        ({**MAP, "heights": [0.0] * 16, "columns": 4, "spacing": 0.0}, "spacing"),
        ({"kind": CoverTarget.MESH}, "faces"),
        ({"kind": CoverTarget.MESH, "mesh": FLAT_LINE}, "area"),
        ({"kind": CoverTarget.MESH, "mesh": OUT_OF_RANGE}, "indices in"),
    ],
)  # fmt: skip
def test_bad_targets_are_refused_and_the_last_one_is_kept(active, fields, reason):
    active.targets.publish(CoverTarget(**fields))
    # On a loaded machine the states may have stopped for a moment: it follows again then.
    status = active.wait_for_status("target refused", "following", level=DiagnosticStatus.WARN)
    assert reason in status.message
    assert f"the last one is kept (z = {SADDLE}" in status.message
    active.wait_for_motion()


def test_a_target_in_another_frame_is_refused(active):
    message = CoverTarget(formulas=["0*x"])
    message.header.frame_id = "thigh"
    active.targets.publish(message)
    assert "'thigh'" in active.wait_for_status("target refused").message


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"formulas": ["3*x*y", "2*x*y"], "until": [2.0]}, "1 more phases"),
        ({"formulas": ["u", "v", "-2*(u*u + v*v)"], "kind": CoverTarget.PARAMETRIC}, "X = (u, v,"),
        ({**MAP, "heights": [0.0] * 64, "columns": 8}, "height map of 64"),
        ({"kind": CoverTarget.MESH, "mesh": TRIANGLE}, "mesh of 1"),
        ({"formulas": ["0.4*sin(3*x)*cos(2*y)"]}, "passage of"),
    ],
)  # fmt: skip
def test_targets_of_all_kinds_are_followed(active, fields, name):
    active.follow(name, **fields)


def test_a_target_out_of_reach_is_told_of_before_the_cover_moves_to_it(active):
    """With how near it comes; the commands go on while that is found out.

    On a busy machine the forecast's time can end before its search does: then it is the best "so far".
    """
    steep = "1e6*x*y"
    active.diagnostics.clear()
    active.targets.publish(CoverTarget(formulas=[steep]))
    status = active.wait_for_status("following", steep, "out of reach", "forecast: best", level=DiagnosticStatus.WARN)
    # No report of it before without that.
    for message in active.diagnostics:
        for said in message.status:
            assert f"following z = {steep}" not in said.message or "forecast: best" in said.message
    values = {pair.key: pair.value for pair in status.values}
    assert values["forecast"].startswith("out of reach, best")
    assert values["step"] == "target out of reach"
    active.states.clear()
    state = active.graph.wait_until(lambda: active.states and active.states[-1], what="cover/state")
    assert "out of reach: forecast: best" in state.status
    active.follow(f"z = {SADDLE}", formulas=[SADDLE])
    values = {pair.key: pair.value for pair in active.wait_for_status("following", level=DiagnosticStatus.OK).values}
    assert values["forecast"].startswith("within reach, best")


def test_the_simulation_holds_still_without_commands_that_it_understands(active):
    orders = active.graph.publisher(interfaces.COVER_COMMANDS)

    def refused():
        # Again and again: the first may leave before the simulation knows of its sender.
        orders.publish(Float64MultiArray(data=[0.1] * 5))
        statuses = [s for m in active.diagnostics for s in m.status if s.name == "/cover_sim"]
        return any(pair.key == "refused" and int(pair.value) > 0 for s in statuses for pair in s.values)

    active.diagnostics.clear()
    active.graph.wait_until(refused, what="a refused command")


def test_deactivated_it_says_stop_and_nothing_more(active):
    active.wait_for_motion()
    active.reach(Transition.TRANSITION_DEACTIVATE)
    active.wait_for_status("inactive")
    active.wait_for_last_word()
    count = len(active.commands)
    active.wait_for_status("inactive")
    assert len(active.commands) == count
    active.reach(Transition.TRANSITION_ACTIVATE)
    active.wait_for_motion()


def test_ended_it_says_stop(active):
    active.wait_for_motion()
    assert active.control.stop() == 0
    active.wait_for_last_word()
    assert "Traceback" not in active.control.output
