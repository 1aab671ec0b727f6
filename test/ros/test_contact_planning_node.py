"""contact_planning as a process: clear refusals."""

import math
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import PoseStamped, Vector3

from morphit_interfaces.action import Push
from morphit_interfaces.msg import TablePlane
from morphit_interfaces.srv import Segment
from morphit_ros.contact_push.following import FollowConfig
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.ros.contact.server import ContactServer, ContactServerConfig
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, point_rows
from morphit_ros.ros.scene.messages import message_from_objects

pytestmark = pytest.mark.ros


def ask(graph, *, distance=0.08, wait=240.0, feedback=None, **direction):
    goal = Push.Goal(direction=Vector3(**direction), distance=distance)
    return graph.send_goal(interfaces.CONTACT_PUSH, goal, timeout=wait, feedback=feedback)[2]


@pytest.fixture(scope="module")
def node(shared_graph):
    process = shared_graph.start("contact_planning", robot="panda")
    process.wait_for_line("no push asked for yet", timeout=240.0)
    yield process
    assert process.stop() == 0


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"x": 1.0}, "object_pose: got none has come"),
        ({}, "direction"),
        ({"x": 1.0, "z": 1.0}, "direction"),
        ({"x": math.nan}, "direction"),
        ({"x": 1.0, "distance": -0.1}, "distance"),
    ],
)
def test_goals_that_mean_nothing_are_refused(shared_graph, node, goal, words):
    result = ask(shared_graph, **goal)
    assert not result.success
    assert (result.failed_stage, result.stages) == ("plan", ["plan"])
    assert words in result.message


def test_nothing_is_planned_that_is_out_of_reach_or_askew(shared_graph, node):
    poses = shared_graph.publisher(interfaces.OBJECT_POSE)
    message = PoseStamped(header=header("world"))
    message.pose.position.x = 1.5

    def track():
        message.header.stamp = shared_graph.node.get_clock().now().to_msg()
        poses.publish(message)

    def asked(unless, **direction):
        """The answer by what is tracked now: a goal may overtake it."""

        def answered():
            said = ask(shared_graph, **direction).message
            return said if not any(words in said for words in unless) else None

        return shared_graph.wait_until(answered, what="an answer by the newest pose")

    tracker = shared_graph.node.create_timer(0.05, track)
    unknown = ("none has come", "s old")
    assert "reaches" in asked(unknown, x=1.0)
    assert "from the box's faces" in asked(unknown, x=1.0, y=0.5)
    message.header.frame_id = "elsewhere"
    # The last one of the world's frame is believed for a while.
    assert "object_pose" in asked(["reaches"], x=1.0)
    shared_graph.node.destroy_timer(tracker)


def test_an_error_that_nobody_foresaw_stops_the_arm():
    server = mock.create_autospec(ContactServer, instance=True)
    server._node, server._motion, server._diagnostics = mock.Mock(), mock.Mock(), mock.Mock()
    server._answer = mock.Mock(side_effect=RuntimeError("in the middle of a push"), __name__="_answer")
    goal = SimpleNamespace(is_cancel_requested=False, abort=mock.Mock(), execute=lambda end: ended.append(end(goal)))
    server._goal, ended = goal, []
    ContactServer._work(server)
    server._motion.stop.assert_called_once()
    assert "in the middle of a push" in ended[0].message
    assert not ended[0].success
    goal.abort.assert_called_once()
    assert server._goal is None


class Table:
    """A box of 0.12 m by 0.08 m that goes where it is pushed to, and a share of that aside."""

    def __init__(self, at=(0.5, 0.0), yaw=0.3, slips=0.0, others=()):
        self.center, self.yaw, self.slips, self.others = np.array(at), yaw, slips, others
        self.pushes = []
        self.motion, self.segment = mock.Mock(), mock.Mock()
        self.motion.waited.side_effect = lambda *_: self.look()

    def cloud(self, center, size):
        points = np.random.default_rng(0).uniform(-0.5, 0.5, (1500, 3))
        points[:, 2] = 0.5
        x, y, z = (points * [*size, 0.1]).T
        c, s = np.cos(self.yaw), np.sin(self.yaw)
        return PointCloud(np.column_stack([c * x - s * y + center[0], s * x + c * y + center[1], z + 0.05]))

    def look(self):
        clouds = [self.cloud(self.center, (0.12, 0.08)), *(self.cloud(place, (0.04, 0.04)) for place in self.others)]
        objects = message_from_objects(clouds, 0, header("world"))
        table = TablePlane(header=header("world"), found=True)
        return Segment.Response(success=True, objects=objects, table=table)

    def push(self, config, *_):
        way = np.array(config.way)
        self.pushes.append(config)
        push = mock.Mock(config=config, heading=float(np.arctan2(way[1], way[0])))

        def plan():
            self.center = self.center + way + self.slips * np.array([-way[1], way[0]])
            return mock.Mock(success=True)

        push.plan.side_effect = plan
        return push

    def bring(self, direction, distance, **config):
        """What the server answers, with this table's instead of its own arm and plans."""
        server = ContactServer.__new__(ContactServer)
        server._config, server._push = ContactServerConfig(**config), ContactPushConfig()
        server._follow, server._motion, server._segment = FollowConfig(), self.motion, self.segment
        server._draw, server._diagnostics = mock.Mock(), mock.Mock()
        seen = self.look()
        goal = Push.Goal(object=seen.objects.objects[0], scene=seen.objects, table=seen.table, distance=distance)
        goal.direction.x, goal.direction.y = direction
        with mock.patch("morphit_ros.ros.contact.server.ContactPush", self.push):
            return ContactServer._answer(server, mock.Mock(request=goal, is_cancel_requested=False))


@pytest.mark.parametrize(("slips", "most"), [(0.0, 2), (0.15, 4)])
def test_a_seen_box_is_pushed_along_its_sides_and_looked_at_until_it_is_at_its_goal(slips, most):
    table = Table(slips=slips)
    result = table.bring((0.1, 0.2), 0.18)
    assert result.success, result.message
    assert list(result.stages) == ["plan", "approach", "push", "retreat", "look"]
    goal = np.array([0.5, 0.0]) + 0.18 * np.array([0.1, 0.2]) / np.hypot(0.1, 0.2)
    assert np.linalg.norm(table.center - goal) <= 0.02
    assert 2 <= len(table.pushes) <= most
    for config in table.pushes:
        turn = np.arctan2(config.way[1], config.way[0]) - 0.3
        assert abs((turn + np.pi / 4) % (np.pi / 2) - np.pi / 4) < 0.03
        assert np.hypot(*config.way) <= 0.14 + 1e-9
        assert config.size[0] == pytest.approx(0.12 if abs(np.cos(turn)) > 0.5 else 0.08, abs=0.003)
    assert table.motion.go_back.call_count == len(table.pushes)


def test_a_box_that_never_arrives_is_not_pushed_for_ever():
    table = Table(slips=3.0)
    result = table.bring((1.0, 0.0), 0.1, pushes=2)
    assert (result.success, result.failed_stage, len(table.pushes)) == (False, "push", 2)
    assert "after 2 pushes, at most 0.02 m" in result.message


def test_nothing_moves_where_something_else_stands_in_the_way():
    table = Table(others=[(0.65, 0.05)])
    result = table.bring((1.0, 0.3), 0.1)
    assert (result.success, result.failed_stage) == (False, "plan")
    assert "on the way" in result.message
    table.motion.approach.assert_not_called()
    table.motion.go.assert_not_called()


def test_a_table_at_another_height_is_refused():
    table = Table()
    look = table.look
    table.look = lambda: _raised(look())
    assert "table" in table.bring((1.0, 0.0), 0.1).message
    table.motion.approach.assert_not_called()


def _raised(scene):
    scene.table.pose.position.z = 0.05
    return scene


def test_displays_see_the_object_where_it_is_and_the_forces_of_that_time(monkeypatch):
    monkeypatch.setattr("morphit_ros.ros.contact.server.ros_time", lambda _node: 3.0)
    server = ContactServer.__new__(ContactServer)
    server._config, server._node, server._markers = ContactServerConfig(), None, mock.Mock()
    server._pose = 3.0, make_transform(matrix_from_rpy((0.0, 0.0, 0.5)), [0.4, 0.1, 0.02])
    # Nine coordinates, the last three those of the object's middle; one contact, where the first three are.
    positions = np.arange(5)[:, None] + np.linspace(0.0, 0.8, 9)
    plan = SimpleNamespace(
        times=0.1 * np.arange(5), positions=positions, solution=SimpleNamespace(forces=10.0 * np.arange(1, 5)[:, None])
    )
    push = SimpleNamespace(
        system=SimpleNamespace(columns=lambda _name: [slice(6, 9)]),
        contact_forces=lambda row, forces: (row[None, :3], forces[0] * np.array([[0.0, 0.0, 1.0]])),
    )
    follower = SimpleNamespace(plan=plan, trajectory=SimpleNamespace(start=0.2))

    def drawn(*arguments):
        server._draw(*arguments)
        message = server._markers.publish.call_args.args[0]
        assert {marker.header.frame_id for marker in message.markers if marker.ns} <= {"world"}
        return {marker.ns: point_rows(marker.points) for marker in message.markers if marker.ns}

    asked = ContactPushConfig(size=(0.2, 0.12, 0.08))
    shown = drawn(asked, push, follower, 0.41)
    np.testing.assert_allclose(shown["object"].mean(axis=0), [0.4, 0.1, 0.06])
    ahead = (shown["object"] - [0.4, 0.1, 0.0]) @ [np.cos(0.5), np.sin(0.5), 0.0]
    assert np.ptp(ahead) == pytest.approx(0.2)
    np.testing.assert_allclose(shown["way"], positions[:, 6:9])
    # Two steps and a bit after its beginning: in the third, which ends at the fourth positions.
    np.testing.assert_allclose(shown["forces"], [positions[3, :3], positions[3, :3] + [0.0, 0.0, 0.02 * 30.0]])
    for time, step in ((0.0, 1), (9.0, 4)):
        np.testing.assert_allclose(drawn(asked, push, follower, time)["forces"][0], positions[step, :3])
    # Of what perception shows, only what is planned; with nothing planned, only the object.
    assert set(drawn(None, push, follower)) == {"way", "forces"}
    assert set(drawn(asked)) == {"object"}
