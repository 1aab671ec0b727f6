"""push_to and clear_table as a process: what is too wide, people who come near, and who takes a task back."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from action_msgs.msg import GoalStatus
from py_trees.behaviours import Failure
from py_trees.decorators import Retry
from std_msgs.msg import Float64

from morphit_interfaces.action import ClearTable, Pick, Place, Push, PushTo, Recover
from morphit_interfaces.srv import Segment
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.execution.place_region import region_pose
from morphit_ros.ros.scene.messages import message_from_objects, object_name, wanted_number
from morphit_ros.ros.tasks.server import state_text

pytestmark = pytest.mark.ros
WIDE, NARROW = 0.12, 0.04


class Bench:
    """Stands in for perception and grasp_execution: boxes (x, y, width) that pushes move by a share of the way."""

    def __init__(self, graph, boxes, share=0.9, refuses=False, slow=False, push_fails=0, beside=None):
        self.graph, self.boxes = graph, [list(box) for box in boxes]
        # In the order of the boxes; moved to others where they change their places unseen.
        self.numbers = [7 * index + 3 for index in range(len(boxes))]
        self.share, self.refuses, self.slow, self.push_fails = share, refuses, slow, push_fails
        self.pushed, self.picks, self.pushes, self.recovered, self.waiting, self.held = [], [], [], 0, [], 0
        # How far along x from its middle what is picked hangs, as weighed [m]; None: nothing is weighed.
        self.beside, self.placed = beside, []
        interfaces.SEGMENT.serve(graph.node, self._see)
        self.servers = [
            interfaces.PICK.take(graph.node, self._pick),
            interfaces.PLACE.take(graph.node, self._place),
            interfaces.PUSH.take(graph.node, lambda goal: self.push(goal)),
            interfaces.RECOVER.take(graph.node, self._recover),
            interfaces.PLAN_GRASP.take(graph.node, lambda goal: None),
        ]
        graph.start("task_execution", base_xyz="[0.2, 0.0, 0.0]")
        # What the hand does where it is asked to push.
        self.push = self._push
        self.states = graph.latest(interfaces.TASK_STATE, depth=200)
        self.scaling = graph.publisher(interfaces.SPEED_SCALING)

    def close(self):
        for server in self.servers:
            server.destroy()

    def _see(self, _, response):
        clouds = []
        for x, y, width in self.boxes:
            half = 0.5 * width
            points = np.random.default_rng(0).uniform((-half, -half, 0.0), (half, half, 0.05), (4000, 3))
            clouds.append(PointCloud(points + np.array([x, y, 0.0]), frame="world"))
        response.success, response.table.found = bool(clouds), True
        response.table.header = header("world")
        response.objects = message_from_objects(clouds, 0 if clouds else None, header("world"), numbers=self.numbers)
        return response

    def _pick(self, goal):
        index = self.numbers.index(wanted_number(Segment.Request(rule=goal.request.rule, point=goal.request.point)))
        self.picks.append(tuple(self.boxes[index]))
        if self.slow:
            self.waiting.append(goal)
            return
        wide = self.boxes[index][2] > 0.08
        mode = "no_grasp" if wide else "success"
        result = Pick.Result(success=not wide, failed_stage="plan_grasp" if wide else "", failure_mode=mode)
        if self.beside is not None:
            result.mass, result.center_deviation = 0.3, 0.001
            result.center_of_mass.header.frame_id = "panda_link0"
            result.center_of_mass.point.x = self.boxes[index][0] + self.beside - 0.2
            result.center_of_mass.point.y = self.boxes[index][1]
        if not wide:
            self.boxes.pop(index)
            self.held = self.numbers.pop(index)
        settle(goal, result)

    def _place(self, goal):
        region = goal.request.region.pose.position
        self.placed.append(goal.request)
        self.boxes.append([region.x, region.y + 0.05 * len(self.boxes), NARROW])
        self.numbers.append(self.held)
        settle(goal, Place.Result(success=True))

    def _push(self, goal):
        request = goal.request
        index = self.numbers.index(request.object.id)
        self.pushes.append((np.array(self.boxes[index][:2]), request.distance))
        self.pushed.append(request.object.id)
        if self.refuses:
            settle(goal, Push.Result(failed_stage="request", message="push: got no way"))
            return
        if self.push_fails:
            self.push_fails -= 1
            settle(goal, Push.Result(failed_stage="push", message="unexpected contact"))
            return
        way = np.array([request.direction.x, request.direction.y])
        step = self.share * request.distance * way / np.linalg.norm(way)
        self.boxes[index][0] += step[0]
        self.boxes[index][1] += step[1]
        settle(goal, Push.Result(success=True))

    def _recover(self, goal):
        self.recovered += 1
        settle(goal, Recover.Result(success=True))

    def ask(self, action, goal):
        """Handle of an accepted goal."""
        handle = self.graph.start_goal(action, goal)
        assert handle.accepted
        return handle

    def result(self, handle):
        answer = handle.get_result_async()
        self.graph.wait_until(answer.done, what="a result", timeout=60.0)
        return answer.result()


@pytest.fixture
def bench(graph):
    made = []

    def make(boxes, **options):
        made.append(Bench(graph, boxes, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def push_goal(x, y, to_x, to_y, tolerance=0.0, frame="world", name=""):
    goal = PushTo.Goal(tolerance=tolerance)
    goal.point.header.frame_id, goal.goal.header.frame_id = name or frame, frame
    goal.point.point.x, goal.point.point.y, goal.goal.point.x, goal.goal.point.y = x, y, to_x, to_y
    return goal


def clear_goal(aside=(0.5, 0.5)):
    goal = ClearTable.Goal(region=region_pose((0.3, -0.45, 0.0, 0.0), "world"), region_size=[0.5, 0.3])
    if aside:
        goal.push_to.header.frame_id = "world"
        goal.push_to.point.x, goal.push_to.point.y = aside
    return goal


def test_an_object_is_pushed_until_it_is_there(bench):
    here = bench([(0.5, 0.0, WIDE), (0.3, 0.3, NARROW)])
    answer = here.result(here.ask(interfaces.PUSH_TO, push_goal(0.5, 0.0, 0.5, 0.3, tolerance=0.03)))
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert answer.result.success and answer.result.pushes == len(here.pushes) >= 3
    assert np.hypot(here.boxes[0][0] - 0.5, here.boxes[0][1] - 0.3) <= 0.03
    # No push is longer than one that keeps its way.
    assert max(distance for _, distance in here.pushes) <= 0.12 + 1e-9


def test_a_push_that_fails_on_its_way_is_followed_by_a_rise_and_another_look(bench):
    here = bench([(0.5, 0.0, WIDE)], push_fails=1)
    answer = here.result(here.ask(interfaces.PUSH_TO, push_goal(0.5, 0.0, 0.5, 0.1)))
    assert answer.result.success and here.recovered == 1 and len(here.pushes) == answer.result.pushes + 1


def test_pushes_go_past_what_is_in_the_way(bench):
    here = bench([(0.5, 0.0, WIDE), (0.5, 0.2, NARROW)])
    answer = here.result(here.ask(interfaces.PUSH_TO, push_goal(0.5, 0.0, 0.5, 0.4)))
    assert answer.result.success
    places = [place for place, _ in here.pushes] + [np.array(here.boxes[0][:2])]
    half = 0.5 * (WIDE + NARROW)
    for place in places:
        assert np.abs(place - [0.5, 0.2]).max() - half > 0.02
    assert max(abs(place[0] - 0.5) for place in places) > 0.05


def test_with_no_way_past_there_is_no_push(bench):
    walled = bench([(0.5, 0.0, WIDE), *((x, 0.13, NARROW) for x in np.arange(0.2, 0.81, 0.05))])
    answer = walled.result(walled.ask(interfaces.PUSH_TO, push_goal(0.5, 0.0, 0.5, 0.4)))
    assert not answer.result.success and "no free way" in answer.result.message
    # It kept away from the wall.
    assert walled.boxes[0][1] + 0.5 * WIDE < 0.13 - 0.5 * NARROW - 0.02


def test_a_push_follows_its_object_by_its_name_and_not_what_comes_to_lie_there(bench):
    here = bench([(0.5, 0.0, WIDE), (0.3, 0.0, WIDE)])
    second = here.numbers[1]
    goal = push_goal(0.0, 0.0, 0.5, 0.35, name=f"object_{second}")
    # After the first push the other one lies where the object is looked for, and it lies farther away.
    pushed = here._push

    def push(goal):
        pushed(goal)
        if len(here.pushes) == 1:
            here.boxes[0][:2], here.boxes[1][:2] = here.boxes[1][:2], [0.1, 0.3]

    here.push = push
    answer = here.result(here.ask(interfaces.PUSH_TO, goal))
    assert answer.result.success, answer.result.message
    assert np.hypot(here.boxes[1][0] - 0.5, here.boxes[1][1] - 0.35) <= 0.05
    assert len(here.pushes) == answer.result.pushes
    assert set(here.pushed) == {second}


def test_an_object_that_a_push_gave_another_name_is_what_is_new_where_it_should_be(bench):
    here = bench([(0.5, 0.0, WIDE), (0.62, -0.2, NARROW)])
    pushed = here._push

    def push(goal):
        pushed(goal)
        here.numbers[0] += 100

    here.push = push
    answer = here.result(here.ask(interfaces.PUSH_TO, push_goal(0.5, 0.0, 0.5, 0.2)))
    assert answer.result.success, answer.result.message
    # Gone altogether, its neighbour is not taken for it.
    here.push = lambda goal: (pushed(goal), here.boxes.pop(0), here.numbers.pop(0))
    answer = here.result(here.ask(interfaces.PUSH_TO, push_goal(*here.boxes[0][:2], 0.62, -0.05)))
    assert not answer.result.success and "none is new" in answer.result.message


@pytest.mark.parametrize(
    ("goal", "options", "words"),
    [
        (push_goal(0.0, 0.0, 0.5, 0.3, name="object_99"), {}, "object_99 is not seen"),
        (push_goal(0.5, 0.0, 0.5, 0.3), {"refuses": True}, "no way"),
        (push_goal(0.5, 0.0, 0.5, 0.3), {"share": 0.0}, "after 15 pushes"),
        (push_goal(0.2, -0.4, 0.5, 0.3), {}, "no object within 0.15 m"),
        (push_goal(0.5, 0.0, 0.5, 0.3, frame="elsewhere"), {}, "the frame of the objects, 'world'"),
        (push_goal(0.5, 0.0, 0.5, 0.3, frame=""), {}, "both in the frame of the objects"),
    ],
)
def test_what_cannot_be_pushed_there_ends_with_its_reason(bench, goal, options, words):
    here = bench([(0.5, 0.0, WIDE)], **options)
    answer = here.result(here.ask(interfaces.PUSH_TO, goal))
    assert answer.status == GoalStatus.STATUS_ABORTED and words in answer.result.message


def test_what_is_too_wide_is_pushed_to_its_place_after_the_rest_was_picked(bench):
    here = bench([(0.5, 0.1, WIDE), (0.4, -0.1, NARROW)])
    answer = here.result(here.ask(interfaces.CLEAR_TABLE, clear_goal()))
    result = answer.result
    assert (result.success, result.cleared, result.moved, result.left) == (True, 1, 1, 0)
    # Tried once, and known from then on wherever it is.
    assert [box[2] for box in here.picks].count(WIDE) == 1
    assert len(here.pushes) == result.pushes >= 3
    tree = [{pair.key: pair.value for pair in state.values} for state in here.states]
    reasons = [text for state in tree for text in state.values()]
    assert any("too wide for the hand, 0.12" in text for text in reasons)


def test_what_was_seen_as_one_with_its_neighbour_is_not_too_wide_when_that_has_gone(bench):
    here = bench([(0.5, 0.1, WIDE), (0.5, -0.02, NARROW)])
    place = here._place

    def put_away(goal):
        here.boxes = [(x, y, NARROW) for x, y, _ in here.boxes]
        place(goal)

    here._place = put_away
    here.servers[1].destroy()
    here.servers[1] = interfaces.PLACE.take(here.graph.node, lambda goal: here._place(goal))
    result = here.result(here.ask(interfaces.CLEAR_TABLE, clear_goal())).result
    assert here.picks[0][2] == WIDE
    assert (result.success, result.cleared, result.pushes) == (True, 2, 0)


@pytest.mark.parametrize("beside", [None, 0.1])
def test_what_was_weighed_goes_over_a_bin_by_its_centre(bench, beside):
    """The centre is told in the base link, which stands 0.2 m beside the world's origin here."""
    here = bench([(0.5, 0.2, NARROW)], beside=beside)
    goal = clear_goal(aside=None)
    goal.region.pose.position.z = 0.2
    assert here.result(here.ask(interfaces.CLEAR_TABLE, goal)).result.success
    (placed,) = here.placed
    expected = NARROW + 0.03 + (0.0 if beside is None else 2.0 * beside - 0.004)
    assert max(placed.region_size) == pytest.approx(expected, abs=0.003)


def test_what_is_too_wide_is_known_by_its_name_and_not_what_lies_where_it_lay(bench):
    here = bench([(0.5, 0.1, WIDE), (0.4, -0.1, NARROW)])
    pushed = here._push

    def push(goal):
        pushed(goal)
        if len(here.pushes) == 1:
            # A second wide one has come to where the first one is looked for, which lies elsewhere.
            here.boxes.append([*here.boxes[here.numbers.index(here.pushed[0])][:2], WIDE])
            here.boxes[here.numbers.index(here.pushed[0])][:2] = [0.75, 0.0]
            here.numbers.append(50)

    here.push = push
    goal = clear_goal()
    goal.push_tolerance = 0.2
    result = here.result(here.ask(interfaces.CLEAR_TABLE, goal)).result
    assert (result.success, result.cleared, result.moved) == (True, 1, 2)
    # It is tried as well, once.
    assert [box[2] for box in here.picks].count(WIDE) == 2


def test_without_a_place_for_it_what_is_too_wide_is_left_and_told(bench):
    here = bench([(0.5, 0.1, WIDE)], refuses=True)
    result = here.result(here.ask(interfaces.CLEAR_TABLE, clear_goal(aside=None))).result
    assert not result.success and result.left == 1
    # By name and place, with the reason: another gripper may take it.
    name = object_name(here.numbers[0])
    assert f"1 left that could not be picked ({name} at 0.50 0.10 m: too wide for the hand, 0.12" in result.message


def test_nothing_is_begun_while_somebody_is_near(bench):
    here = bench([(0.4, -0.1, NARROW)])
    reports = here.graph.latest(interfaces.DIAGNOSTICS, depth=50)

    def heard():
        here.scaling.publish(Float64(data=0.0))
        said = [status.message for message in reports for status in message.status]
        return any("somebody is near" in text for text in said)

    here.graph.wait_until(heard, what="that somebody is near")
    handle = here.ask(interfaces.CLEAR_TABLE, clear_goal())
    here.graph.wait_until(
        lambda: any("somebody is near" in state.message for state in here.states), what="the task that waits"
    )
    assert not here.picks
    here.scaling.publish(Float64(data=100.0))
    result = here.result(handle).result
    assert result.success and result.cleared == 1 and result.waited > 0.0


def test_a_task_that_is_taken_back_takes_back_what_it_asked_for(bench):
    here = bench([(0.4, -0.1, NARROW)], slow=True)
    handle = here.ask(interfaces.CLEAR_TABLE, clear_goal())
    here.graph.wait_until(lambda: here.waiting, what="the pick")
    handle.cancel_goal_async()
    here.graph.wait_until(lambda: here.waiting[0].is_cancel_requested, what="the pick to be taken back")
    settle(here.waiting[0], Pick.Result(failure_mode="cancelled"))
    answer = here.result(handle)
    assert answer.status == GoalStatus.STATUS_CANCELED and "taken back" in answer.result.message


def test_one_task_at_a_time(bench):
    here = bench([(0.4, -0.1, NARROW)], slow=True)
    handle = here.ask(interfaces.CLEAR_TABLE, clear_goal())
    here.graph.wait_until(lambda: here.waiting, what="the pick")
    assert not here.graph.start_goal(interfaces.PUSH_TO, push_goal(0.4, -0.1, 0.5, 0.1)).accepted
    settle(here.waiting[0], Pick.Result(failure_mode="bad_request", failed_stage="lift", message="no such height"))
    answer = here.result(handle)
    assert answer.status == GoalStatus.STATUS_ABORTED and "no such height" in answer.result.message


def test_a_region_without_a_size_is_refused(bench):
    here = bench([(0.4, -0.1, NARROW)])
    goal = clear_goal()
    goal.region_size = [0.0, 0.0]
    answer = here.result(here.ask(interfaces.CLEAR_TABLE, goal))
    assert answer.status == GoalStatus.STATUS_ABORTED and "of some size" in answer.result.message


@pytest.mark.parametrize(
    ("failed", "told"), [(0, "invalid"), (2, "running: 2 of 4 failed"), (4, "failure: 4 of 4 failed")]
)
def test_the_page_says_how_many_places_failed(failed, told):
    places = Retry("into the region", Failure("place"), num_failures=4)
    for _ in range(failed):
        places.tick_once()
    assert state_text(places) == told
