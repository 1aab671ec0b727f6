"""A bottle that lies is turned upright by contact_planning: its logic, with doubles of hand, plan and bottle."""

import math
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_interfaces.action import Push
from morphit_ros.contact_push.following import FollowConfig
from morphit_ros.contact_push.objects import BOTTLE_CENTER, CAP_WIDTH
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.contact_push.turning import lying_pose
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.contact.motion import PushError, PushMotion
from morphit_ros.ros.contact.server import ContactServer, ContactServerConfig

pytestmark = pytest.mark.ros


class Clock:
    """A stopwatch that goes on by 0.05 s at each look."""

    def __init__(self, *_):
        self.time = 0.0

    @property
    def elapsed(self):
        self.time += 0.05
        return self.time


class Bottle:
    """A bottle that lies, and a hand that turns it upright unless something goes wrong."""

    def __init__(self, monkeypatch, heading=0.4, spin=2.0):
        self.spin = make_transform(matrix_from_rpy((0.0, 0.0, spin)))
        self.pose = lying_pose(np.array([0.5, -0.05]), heading, BOTTLE_CENTER)
        self.ends, self.gone, self.late = 0.0, 0.0, 0
        self.motion = mock.create_autospec(PushMotion, instance=True, holding=False)
        self.motion.follow.side_effect = self.turn
        self.motion.hold.side_effect = lambda *_: setattr(self.motion, "holding", True)
        self.motion.open.side_effect = lambda *_: setattr(self.motion, "holding", False)
        monkeypatch.setattr("morphit_ros.ros.contact.server.Stopwatch", Clock)
        monkeypatch.setattr("morphit_ros.ros.contact.server.sleep", lambda _: None)
        monkeypatch.setattr(ContactPush, "plan", lambda push: self.plan(push))
        monkeypatch.setattr(ContactPush, "follower", mock.Mock())

    def plan(self, push):
        self.pushed = push
        return mock.Mock(success=True)

    def turn(self, _goal, _follower, measured, _drawn):
        robot = self.pushed.robot
        self.motion.joints.return_value = dict(zip(robot.arm_joints, robot.home, strict=True))
        tilt = matrix_from_rpy((0.0, self.ends, self.pushed.heading))
        goal = self.pushed.planner.goal.positions[7:9]
        self.pose = make_transform(tilt, [*goal, BOTTLE_CENTER])
        self.pose[0, 3] += self.gone
        assert measured().shape == (14,)

    def looked(self):
        self.late -= 1
        if self.late > 0:
            raise InvalidInputError("object_pose", "0.51 s old", "at most 0.5 s")
        return self.pose @ make_transform(translation=[0.0, 0.0, -BOTTLE_CENTER]) @ self.spin

    def bring(self, direction, distance=0.1):
        """What the server answers, with this bottle and hand."""
        node = ContactServer.__new__(ContactServer)
        node._config, node._push = ContactServerConfig(), ContactPushConfig(object="lying_bottle")
        node._follow, node._motion, node._robot = FollowConfig(), self.motion, RobotConfiguration.load("panda")
        node._draw, node._node, node._diagnostics = mock.Mock(), None, mock.Mock()
        node._object = self.looked
        goal = Push.Goal(distance=distance)
        goal.direction.x, goal.direction.y = direction
        return ContactServer._answer(node, mock.Mock(request=goal, is_cancel_requested=False))

    def called(self):
        return [
            call[0] for call in self.motion.method_calls if call[0] in ("approach", "hold", "follow", "open", "leave")
        ]


def test_a_bottle_that_lies_is_held_turned_let_go_of_and_left(monkeypatch):
    bottle = Bottle(monkeypatch)
    result = bottle.bring((math.cos(0.45), math.sin(0.45)))
    assert result.success, result.message
    assert bottle.called() == ["approach", "hold", "follow", "open", "leave"]
    assert list(result.stages) == ["plan", "approach", "grip", "push", "release", "retreat"]
    assert not result.holding
    # About its own axis, not quite where it was told to.
    assert bottle.pushed.config.start == pytest.approx((0.5, -0.05))
    assert bottle.pushed.config.way == pytest.approx((0.1 * math.cos(0.4), 0.1 * math.sin(0.4)))
    assert bottle.motion.hold.call_args.args[2] == pytest.approx(CAP_WIDTH)
    assert bottle.motion.open.call_args.args[2] == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("ends", "gone", "words"), [(0.3, 0.0, "tilted by 17°"), (0.0, 0.03, "0.030 m from its goal"), (0.1, 0.01, "")]
)
def test_a_bottle_has_to_stand_where_it_was_to(monkeypatch, ends, gone, words):
    bottle = Bottle(monkeypatch)
    bottle.ends, bottle.gone = ends, gone
    result = bottle.bring((math.cos(0.4), math.sin(0.4)))
    assert result.success == (not words)
    assert words in result.message


def test_nothing_moves_for_a_bottle_that_stands_or_points_elsewhere(monkeypatch):
    bottle = Bottle(monkeypatch)
    result = bottle.bring((math.cos(0.4 + math.pi), math.sin(0.4 + math.pi)))
    assert (result.success, result.failed_stage) == (False, "plan")
    assert "180° from where the bottle's foot points" in result.message
    assert "(0.921, 0.389)" in result.message
    bottle.pose = make_transform(translation=[0.5, 0.0, BOTTLE_CENTER])
    assert "lies on the table" in bottle.bring((1.0, 0.0)).message
    assert bottle.called() == []


@pytest.mark.parametrize(("late", "words"), [(12, ""), (1000, "not at rest 5 s after it was let go of: object_pose")])
def test_a_pose_that_comes_late_is_waited_for_after_the_hand_has_opened(monkeypatch, late, words):
    bottle = Bottle(monkeypatch)
    bottle.motion.open.side_effect = lambda *_: setattr(bottle, "late", late)
    result = bottle.bring((math.cos(0.4), math.sin(0.4)))
    assert result.message.startswith(words)
    assert (result.success, result.failed_stage) == (not words, "release" if words else "")


@pytest.mark.parametrize("fails", ["hold", "follow", "open"])
def test_a_turn_that_fails_stops_the_arm_and_says_whether_the_hand_holds(monkeypatch, fails):
    bottle = Bottle(monkeypatch)
    before = getattr(bottle.motion, fails).side_effect

    def failing(*args):
        if fails == "hold":
            before(*args)
        raise PushError(fails, "something is wrong")

    getattr(bottle.motion, fails).side_effect = failing
    result = bottle.bring((math.cos(0.4), math.sin(0.4)))
    assert (result.success, result.failed_stage, result.message) == (False, fails, "something is wrong")
    assert bottle.called()[-1] == fails
    assert result.holding
    bottle.motion.stop.assert_called_once()


@pytest.fixture
def hand(monkeypatch):
    """A hand whose fingers come to rest where `stops` says, 5 mm a look."""
    monkeypatch.setattr("morphit_ros.ros.contact.motion.Stopwatch", Clock)
    hand = PushMotion.__new__(PushMotion)
    hand._node, hand._ending, hand.holding = None, mock.Mock(), False
    hand._ending.is_set.return_value = False
    hand._robot, hand._commands, hand._state = RobotConfiguration.load("panda"), mock.Mock(), mock.Mock()
    hand._commands.problem.return_value = hand._commands.blocked.return_value = ""
    hand.now = hand.stops = 0.08

    def positions(fingers):
        hand.now += min(max(hand.stops - hand.now, -0.005), 0.005)
        return dict.fromkeys(fingers, 0.5 * hand.now)

    hand._state.positions.side_effect = positions
    return hand


GOAL = SimpleNamespace(is_cancel_requested=False)


def test_a_hand_holds_what_is_as_wide_as_it_should_be(hand):
    hand.stops = 0.029
    hand.hold(GOAL, "grip", CAP_WIDTH)
    assert hand.now == pytest.approx(0.029)
    assert hand.holding
    hand._commands.grip.assert_called_once_with(0.0, 20.0)
    hand.stops = 0.08
    hand.open(GOAL, "release", 0.08)
    assert hand.now == pytest.approx(0.08)
    assert not hand.holding


@pytest.mark.parametrize(("stops", "words"), [(0.0, "0 mm apart, not 28"), (0.08, "80 mm apart, not 28")])
def test_a_hand_that_closes_on_nothing_or_not_at_all_holds_nothing(hand, stops, words):
    hand.stops = stops
    with pytest.raises(PushError, match=words):
        hand.hold(GOAL, "grip", CAP_WIDTH)


def test_fingers_that_nobody_measures_end_a_grip(hand):
    hand._state.positions.side_effect = InvalidInputError("joint_states", "'finger' 2 s old", "at most 0.5 s")
    with pytest.raises(InvalidInputError, match="2 s old"):
        hand.hold(GOAL, "grip", CAP_WIDTH)
    cancelled = SimpleNamespace(is_cancel_requested=True)
    with pytest.raises(PushError, match="cancelled"):
        hand.open(cancelled, "release", 0.08)
