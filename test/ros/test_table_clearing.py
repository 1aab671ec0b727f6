"""Clearing a table: what is asked of the nodes, one after the other, and how it ends."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

import json
import sys

import numpy as np

from morphit_interfaces.action import Pick, Place, Push, Recover
from morphit_interfaces.srv import Segment
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.scene.messages import message_from_objects, wanted_number

pytestmark = pytest.mark.ros
CLIENT = [
    sys.executable, "-m", "morphit_ros.nodes.pick_client", "--ros-args", "-p", "place:=region",
    "-p", "region:=[0.4, -0.4, 0.0, 0.0]", "-p", "region_size:=[0.3, 0.3]", "-p", "clear:=true",
]  # fmt: skip


class Cell:
    """Stands in for perception and for grasp_execution, with cubes at places (x, y)."""

    def __init__(
        self,
        graph,
        places,
        blind=0,
        fails=(),
        place_fails=0,
        drops=False,
        stuck=False,
        freed=False,
        refuses=0,
        faults=0,
        falls=(),
    ):
        self.places, self.blind, self.fails = list(map(list, places)), blind, fails
        # Of the places, in their order.
        self.numbers = [7 * index + 3 for index in range(len(places))]
        # How many places into the region fail, whether the object is lost by it, whether it cannot be put back either.
        self.place_fails, self.drops, self.stuck, self.recovered = place_fails, drops, stuck, []
        self.picked, self.held, self.looks, self.placed = [], None, 0, 0
        # Pushes that were asked for: where the object was, whether it was to be tipped; whether one helps.
        self.pushed, self.freed = [], freed
        # Regions that were asked for; how many of them have no room; how many picks end with a fault.
        self.regions, self.refuses, self.faults = [], refuses, faults
        # Of the places: what falls off the table in the pick.
        self.falls = falls
        interfaces.SEGMENT.serve(graph.node, self._see)
        self.servers = [
            interfaces.PICK.take(graph.node, self._pick),
            interfaces.PLACE.take(graph.node, self._place),
            interfaces.RECOVER.take(graph.node, self._recover),
            interfaces.PUSH.take(graph.node, self._push),
            interfaces.PLAN_GRASP.take(graph.node, lambda goal: None),
        ]

    def _see(self, _, response):
        self.looks += 1
        if self.looks <= self.blind:
            response.message = "nothing received"
            return response
        cube = np.random.default_rng(0).uniform((-0.02, -0.02, 0.0), (0.02, 0.02, 0.04), (200, 3))
        clouds = [PointCloud(cube + np.array([*place, 0.0]), frame="world") for place in self.places]
        response.success, response.table.found = bool(clouds), True
        response.objects = message_from_objects(clouds, 0 if clouds else None, header("world"), numbers=self.numbers)
        return response

    def _pick(self, goal):
        index = self.numbers.index(wanted_number(Segment.Request(rule=goal.request.rule, point=goal.request.point)))
        self.picked.append(tuple(self.places[index]))
        if self.faults > 0:
            self.faults -= 1
            settle(goal, Pick.Result(failed_stage="open", message="no response", failure_mode="robot_fault"))
            return
        falls = tuple(self.places[index]) in self.falls
        failed = falls or tuple(self.places[index]) in self.fails
        if falls:
            del self.places[index], self.numbers[index]
        if not failed:
            self.held = self.places.pop(index), self.numbers.pop(index)
        settle(goal, Pick.Result(success=not failed, failed_stage="lift" if failed else "", message="gone",
                                 failure_mode="slipped" if failed else "success"))  # fmt: skip

    def _place(self, goal):
        if not goal.request.region.header.frame_id:
            # Back to where it was.
            if not self.stuck:
                self._lies(self.picked[-1])
            settle(goal, Place.Result(success=not self.stuck, holding=self.stuck))
            return
        middle = goal.request.region.pose.position
        self.regions.append(((middle.x, middle.y, middle.z), list(goal.request.region_size)))
        if len(self.regions) <= self.refuses:
            settle(goal, Place.Result(failed_stage="request", message="region: no room", holding=True))
            return
        assert goal.request.height == pytest.approx(0.03 if goal.request.region.pose.position.z > 0.1 else 0.1)
        failed = self.place_fails > 0
        self.place_fails -= failed
        if not failed:
            self.placed += 1
            self._lies((0.3 + 0.05 * self.placed, -0.4))
        elif self.drops:
            self._lies(self.picked[-1])
        settle(goal, Place.Result(success=not failed, failed_stage="transfer", message="no way",
                                  holding=failed and not self.drops))  # fmt: skip

    def _lies(self, place):
        self.places.append(list(place))
        self.numbers.append(self.held[1])

    def _push(self, goal):
        assert goal.request.table.found and len(goal.request.scene.objects) == len(self.places)
        index = self.numbers.index(goal.request.object.id)
        self.pushed.append((tuple(self.places[index]), goal.request.tip))
        if self.freed:
            self.places[index][1] += 0.08
        settle(goal, Push.Result(success=True))

    def _recover(self, goal):
        self.recovered.append(goal.request.open)
        if goal.request.open and self.stuck:
            self._lies(self.picked[-1])
        settle(goal, Recover.Result(success=True))


@pytest.fixture
def clear(graph, tmp_path):
    made = []

    def run(status, *arguments, words=(), robot="panda", **options):
        cell = Cell(graph, *arguments, **options)
        made.extend(cell.servers)
        graph.start("task_execution", robot=robot)
        client = graph.run([*CLIENT, *words, "-p", f"report:={tmp_path / 'report.json'}"])
        graph.wait_until(lambda: (tmp_path / "report.json").exists(), what="the report")
        assert client.wait() == status, client.output
        return cell, json.loads((tmp_path / "report.json").read_text())

    yield run
    for server in made:
        server.destroy()


def test_all_that_is_outside_of_the_region_is_put_into_it(clear):
    cell, report = clear(0, [(0.5, 0.0), (0.3, 0.2), (0.45, -0.35), (0.6, 0.1)], blind=2)
    # The third stands in it from the start.
    assert sorted(cell.picked) == [(0.3, 0.2), (0.5, 0.0), (0.6, 0.1)]
    assert (report["success"], report["cleared"], report["attempts"]) == (True, 3, 3)
    assert "the table is clear" in report["message"]
    assert report["picks_per_hour"] == pytest.approx(3600.0 * 3 / report["duration"])


def test_what_cannot_be_picked_is_tried_again_and_told(clear):
    cell, report = clear(1, [(0.5, 0.0), (0.3, 0.2)], fails=[(0.5, 0.0)])
    assert cell.picked.count((0.3, 0.2)) == 1
    # Twice at most after each success and each push, of which there are six at most: aside first, then over.
    assert 14 <= cell.picked.count((0.5, 0.0)) <= 16
    assert [tip for _, tip in cell.pushed] == [False, *[True] * 5]
    assert (report["success"], report["cleared"]) == (False, 1)
    assert "1 left that could not be picked" in report["message"]


def test_a_table_is_not_called_clear_when_something_has_fallen_off_it(clear):
    cell, report = clear(1, [(0.5, 0.0), (0.3, 0.2), (0.45, -0.35)], falls=[(0.3, 0.2)])
    assert len(cell.places) == 2 and cell.picked.count((0.3, 0.2)) == 1
    assert (report["success"], report["cleared"], report["left"], report["lost"]) == (False, 1, 0, 1)
    said = "1 neither put away nor seen any more (object_10 at 0.30 0.20 m: not picked, lift: gone)"
    assert report["message"].startswith(said)


def test_a_suction_cup_pushes_nothing(clear):
    cell, report = clear(1, [(0.5, 0.0), (0.3, 0.2)], robot="panda_cup", fails=[(0.5, 0.0)])
    assert cell.pushed == [] and cell.picked.count((0.5, 0.0)) in (2, 3)
    assert (report["success"], report["cleared"]) == (False, 1)


def test_what_cannot_be_picked_as_it_lies_is_pushed_first(clear):
    cell, report = clear(0, [(0.5, 0.0), (0.3, 0.2)], fails=[(0.5, 0.0)], freed=True)
    assert cell.pushed == [((0.5, 0.0), False)]
    assert (report["success"], report["cleared"], report["pushes"]) == (True, 2, 1)


@pytest.mark.parametrize("bin_there", [True, False])
def test_over_a_bin_it_is_let_go_of_elsewhere_where_one_place_has_no_room(clear, bin_there):
    words = ["-p", f"region:=[0.4, -0.4, {0.2 if bin_there else 0.0}, 0.0]"]
    cell, report = clear(0, [(0.5, 0.0)], words=words, refuses=int(bin_there))
    assert report["cleared"] == report["attempts"] == 1
    if not bin_there:
        assert cell.regions == [((0.4, -0.4, 0.0), [0.3, 0.3])]
        return
    (first, size), (second, _) = cell.regions
    assert first == pytest.approx((0.4, -0.4, 0.2)) and size == pytest.approx([0.07, 0.07], abs=0.002)
    assert np.hypot(*np.subtract(first, second)[:2]) > 0.07


@pytest.mark.parametrize("drops", [False, True])
def test_after_a_place_that_fails_it_goes_on_with_an_empty_hand(clear, drops):
    cell, report = clear(0, [(0.5, 0.0), (0.3, 0.2)], place_fails=1, drops=drops)
    assert (report["success"], report["cleared"], report["attempts"]) == (True, 2, 3)
    # What the hand still holds is put back; what it has lost is looked for anew.
    assert cell.recovered == [True] * drops


def test_what_can_neither_be_put_away_nor_back_is_dropped_and_a_third_time_in_a_row_is_the_end(clear):
    cell, report = clear(1, [(0.5, 0.0), (0.3, 0.2)], place_fails=9, stuck=True)
    assert len(cell.picked) == 3 and cell.recovered == [True, True]
    assert "could not put it down, transfer: no way" in report["message"]


@pytest.mark.parametrize("faults", [2, 3])
def test_it_recovers_from_faults_unless_they_come_again_and_again(clear, faults):
    cell, report = clear(int(faults > 2), [(0.5, 0.0)], faults=faults)
    assert cell.recovered == [True, True]
    assert report["cleared"] == int(faults == 2)
    assert faults == 2 or "open: no response" in report["message"]
