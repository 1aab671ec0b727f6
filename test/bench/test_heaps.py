"""Heaps: what is drawn, what counts, and how it is told."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_bench.picks.heap_report import heap_summary, heap_table
from morphit_bench.picks.heaps import HeapAttempt, HeapClearing, HeapPlan, HeapResult, HeapTurn, draw_heap
from morphit_bench.picks.pick import PickJob
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.failed_grasps import Failed
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.grasping import Grasp, GraspPlan
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.memory.thing import Weight
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.simulation.objects import OWN_OBJECTS
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

PLAN = HeapPlan(tuple(OWN_OBJECTS), 4)


def test_a_heap_depends_on_its_number_alone_and_repeats_no_object_while_they_last() -> None:
    config, items = draw_heap(PLAN, 3)
    again, same = draw_heap(PLAN, 3)
    assert config == again and config.heap and 0.4 <= config.friction <= 0.8
    assert [(item.name, item.mass) for item in items] == [(item.name, item.mass) for item in same]
    assert len({item.name for item in items}) == 4
    assert [item.name for item in draw_heap(PLAN, 4)[1]] != [item.name for item in items] or draw_heap(PLAN, 4)[
        0
    ] != config
    assert len(draw_heap(HeapPlan(("box", "mug"), 5), 0)[1]) == 5
    with pytest.raises(InvalidInputError, match="count"):
        HeapPlan(("box",), 0)


class Standing:
    """A workcell whose objects are where they are put."""

    def __init__(self, cell: Workcell) -> None:
        self.objects, self.T_world_base = cell.objects, cell.T_world_base
        self.at: list[Array] = cell.poses()

    def poses(self) -> list[Array]:
        return [pose.copy() for pose in self.at]


def test_what_counts_is_where_the_objects_are() -> None:
    job = PickJob.flying("franka_hand")
    plan = HeapPlan(("box",), 3)
    with Workcell(WorkcellConfig(object="box", others="t_block t_block"), job.robot) as real:
        cell: Any = Standing(real)
    work = HeapClearing([job], cell, plan)
    x, y = plan.region[:2]

    def outcome(*moves: tuple[int, tuple[float, float, float]]) -> HeapAttempt:
        before, inside = cell.poses(), work._inside()
        for index, place in moves:
            cell.at[index] = make_transform(cell.at[index][:3, :3], place)
        return work._judged(HeapAttempt("box", 1.0, False), before, inside, "box")

    nothing = outcome()
    assert not nothing.success and nothing.stage == "result"
    # Nearly there is not there.
    assert not outcome((0, (x, y + 0.16, 0.0))).success
    done = outcome((0, (x, y, 0.0)), (1, tuple(cell.at[1][:3, 3] + [0.04, 0.0, 0.0])))
    assert done.success and done.pushed == [] and done.fallen == []
    pushed = outcome((1, tuple(cell.at[1][:3, 3] + [0.06, 0.0, 0.0])))
    assert pushed.pushed == ["t_block"] and not pushed.success
    off = outcome((1, (1.3, 0.0, -0.7)))
    assert off.fallen == ["t_block"] and off.pushed == []
    # It does not fall twice, and what is in the region is not cleared again.
    assert outcome().fallen == [] and not outcome((0, (x + 0.06, y, 0.0))).success


def test_what_no_grasp_holds_as_it_lies_is_told_apart() -> None:
    job = PickJob.flying("franka_hand")
    with Workcell(WorkcellConfig(object="box", others="box"), job.robot) as real:
        cell: Any = Standing(real)
        cell.config = real.config
    # 55 × 90 × 120 mm: between the fingers as it stands, 90 mm wide and 55 mm high when it lies.
    cell.at[1] = make_transform(matrix_from_rpy((0.0, 0.5 * np.pi, 0.0)), (0.6, 0.0, 0.0275))
    work = HeapClearing([job], cell, HeapPlan(("box",), 2))
    assert work._out_of_reach(0) == ""
    assert work._out_of_reach(1)


def test_a_cup_holds_while_there_is_vacuum_and_pushes_nothing() -> None:
    robot, cup = RobotConfiguration.load("panda_cup"), SuctionCup.load("cup_30")
    job: Any = SimpleNamespace(robot=robot, gripper=cup)
    with Workcell(WorkcellConfig(object="box", others="box"), job.robot) as real:
        cell: Any = Standing(real)
        cell.config = real.config
    work = HeapClearing([job], cell, HeapPlan(("box",), 2))
    held: Any = None
    for vacuum in (True, False):
        cell.joint_state = lambda vacuum=vacuum: SimpleNamespace(vacuum=vacuum)
        assert work._holds(held) is vacuum
    up = np.array([0.0, 0.0, 1.0])
    assert work._tool.clearing.choose_push({0: np.array([[0.5, 0.0, 0.0]])}, up) is None
    # As it lies too wide for fingers, and no matter for a cup.
    cell.at[1] = make_transform(matrix_from_rpy((0.0, 0.5 * np.pi, 0.0)), (0.6, 0.0, 0.0275))
    assert work._out_of_reach(1) == ""


class Chosen(Exception):
    """The grasps that would be executed, by their share of sides that were seen."""


def test_grasps_on_hidden_sides_beside_something_are_not_made_at_once() -> None:
    def grasp(seen: float) -> Grasp:
        pose, nothing = make_transform(), np.empty((0, 3))
        return Grasp(pose, pose, 0.04, 0.08, 1.0, {"seen": seen}, nothing, np.empty(0, dtype=np.int64))

    class Job:
        robot = PickJob.flying("franka_hand").robot
        grasps: tuple[float, ...] = ()

        def plan(self, *_: Any) -> GraspPlan:
            return GraspPlan([grasp(seen) for seen in self.grasps], {}, 1)

        def request(self, cell: Any, view: Any, plan: GraspPlan, *_: Any) -> Any:
            raise Chosen([grasp.metrics["seen"] for grasp in plan.grasps])

    job: Any = Job()
    with Workcell(WorkcellConfig(object="box"), job.robot) as real:
        cell: Any = Standing(real)
    work = HeapClearing([job], cell, HeapPlan(("box",), 2))
    points = np.random.default_rng(0).uniform(-0.02, 0.02, (50, 3))

    def outcome(gap: float, *seen: float) -> Any:
        job.grasps, clouds = seen, [points, points + np.array([0.04 + gap, 0.0, 0.0])]
        everything = PointCloud(np.concatenate(clouds))
        scene: Any = SimpleNamespace(
            objects=[PointCloud(cloud) for cloud in clouds], table=None, cloud=everything,
            labels=np.repeat([0, 1], 50), obstacle_points=lambda chosen: clouds[1 - chosen],
        )  # fmt: skip
        try:
            return work._attempt(scene, 4, np.zeros((2, 3)), 0.0, {4: clouds[0], 7: clouds[1]})[0].stage
        except Chosen as chosen:
            return chosen.args[0]

    assert outcome(0.01, 0.0, 1.0) == [1.0]
    assert outcome(0.01, 0.0) == "put off"
    # What stands alone goes down to the table where it is not seen.
    assert outcome(0.1, 0.0, 1.0) == [0.0, 1.0]


def test_the_report_counts_and_survives_json() -> None:
    good = HeapAttempt("box", 1.0, True, executed=True, durations={"lift": 2.0}, computing={"see": 0.5})
    bad = HeapAttempt("mug", 0.6, False, "lift", "slipped: 3 mm", True, ["box"], ["ball"], {"lift": 1.0})
    vain = HeapAttempt("mug", 0.6, False, "plan_grasp", "No grasp: 'table': it is in the way")
    result = HeapResult(7, ["box", "mug"], ["box"], ["mug"], [good, bad, vain], "1 left that could not be picked", 20.0)
    assert HeapResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    summary = heap_summary([result])
    assert summary["cleared"].startswith("1 of 2, 50 %")
    assert summary["cleared, of those that a grasp exists for as they lie"].startswith("1 of 2, 50 %")
    flat = heap_summary([replace(result, out_of_reach={"mug": "too wide: 107 mm, franka_hand opens 80 mm"})])
    assert flat["cleared"].startswith("1 of 2, 50 %")
    assert flat["cleared, of those that a grasp exists for as they lie"].startswith("1 of 1, 100 %")
    assert summary["attempts succeeded, of those executed"].startswith("1 of 2")
    assert summary["attempts succeeded, of all"].startswith("1 of 3")
    assert summary["objects thrown off the table"] == 1
    assert summary["executed attempts that pushed a neighbour by more than 5 cm"] == 1
    assert summary["picks_per_hour"] == 180.0
    # Half a second of computing in one pick.
    assert summary["picks_per_hour_with_computing"] == pytest.approx(3600.0 / 20.5, abs=0.1)
    assert summary["seconds a successful pick, by stage"] == {"lift": 2.0}
    table = heap_table([result], "clutter")
    assert "| 7 | 2 | 1 | 3 | 1 |  | 20 | mug |" in table and "mug (60 % of the cloud) at lift" in table
    assert summary["tools"] == {}
    assert heap_summary([])["cleared"] == "0 of 0, – (0–100)"
    assert np.isfinite(heap_summary([])["picks_per_hour"])


def test_the_report_tells_the_tools_apart_and_counts_their_changes() -> None:
    good = HeapAttempt("box", 1.0, True, executed=True, tool="panda")
    bad = HeapAttempt("plate", 1.0, False, "lift", "slipped", True, tool="panda")
    plate = HeapAttempt("plate", 1.0, True, executed=True, tool="panda_cup")
    turns = [HeapTurn("panda", 24.0, ["box"]), HeapTurn("panda_cup", 9.0, ["plate"]), HeapTurn("panda", 0.0, [])]
    left, names = ["mug"], ["box", "plate", "mug"]
    result = HeapResult(3, names, names[:2], left, [good, bad, plate], "1 left", 24.0 + 9.0 + 2 * 20.0, turns=turns)
    assert HeapResult.from_json(json.loads(json.dumps(result.to_json()))) == result and result.changes == 2
    summary = heap_summary([result])
    assert summary["changes of the tool"] == 2 and summary["left on the table"] == {"mug": 1}
    hand, cup = summary["tools"]["panda"], summary["tools"]["panda_cup"]
    assert hand.startswith("cleared 1 in 2 turns;") and "1 of 2, 50 %" in hand and "150 picks an hour" in hand
    assert cup.startswith("cleared 1 in 1 turns;") and "1 of 1, 100 % (21–100)" in cup and "400 picks an hour" in cup
    # In total the changes count.
    assert summary["picks_per_hour"] == round(3600.0 * 2 / 73.0, 1)
    assert "| panda 1, panda_cup 1, panda 0 | 73 | mug |" in heap_table([result], "clutter")


class Tabletop:
    """A workcell that says where its objects are and lets tools be changed."""

    def __init__(self, cell: Workcell) -> None:
        self.objects, self.T_world_base, self.config = cell.objects, cell.T_world_base, cell.config
        self.at, self.time, self.robots = cell.poses(), 0.0, list[str]()

    def poses(self) -> list[Array]:
        return [pose.copy() for pose in self.at]

    def step(self, seconds: float) -> None:
        self.time += seconds

    def exchange_robot(self, robot: RobotConfiguration) -> None:
        self.robots.append(robot.name)


class Turns(HeapClearing):
    """Each object is known by its index and seen as it lies; `picks` says which tool picks it once what lies on it is
    gone, `pushes` which one must have been pushed before."""

    def prepare(self, picks: dict[int, str], below: dict[int, int], pushes: set[int]) -> None:
        self.picks, self.below, self.to_push = picks, below, pushes
        # What a tool sees hidden sides of only is put off twice.
        self.hidden: dict[tuple[str, int], int] = {}
        self.tried: list[tuple[str, int]] = []
        self.pushed: list[tuple[str, int]] = []
        self._gone: set[int] = set()

    def _look(self) -> Any:
        left = [index for index in range(len(self._workcell.objects)) if index not in self._gone]
        clouds = [PointCloud(BALL + self._workcell.poses()[index][:3, 3]) for index in left]
        self._tracks: Any = SimpleNamespace(tracks=[SimpleNamespace(number=index, index=index) for index in left])
        return SimpleNamespace(objects=clouds, left=left), np.zeros((2, 3)), 0.0

    def _attempt(self, scene: Any, number: int, *_: Any) -> Any:
        cell: Any = self._workcell
        name = self._tool.job.robot.name
        if self.hidden.get((name, number), 0):
            self.hidden[name, number] -= 1
            return HeapAttempt(str(number), 1.0, False, "put off", tool=name), "", None
        self.tried.append((name, number))
        cell.time += 10.0
        free = self.below.get(number) is None or self.below[number] in self._gone
        good = self.picks.get(number) == name and free and number not in self.to_push
        if good:
            self._gone.add(number)
            cell.at[number] = make_transform(translation=self._plan.region[:3])
        return HeapAttempt(str(number), 1.0, good, "" if good else "lift", executed=True, tool=name), "", None

    def _push(self, scene: Any, chosen: int, tip: bool) -> Any:
        number = scene.left[chosen]
        self.pushed.append((self._tool.job.robot.name, number))
        if number not in self.to_push:
            return str(number), 0.0, "no room"
        self._workcell.step(6.0)
        self.to_push.remove(number)
        return str(number), 0.05, ""


BALL = np.random.default_rng(1).uniform(-0.02, 0.02, (200, 3))


def turns_of(
    count: int,
    picks: dict[int, str],
    below: dict[int, int],
    pushes: set[int],
    robots: tuple[str, ...],
    hidden: Sequence[tuple[str, int]] = (),
) -> tuple[Any, HeapResult]:
    jobs: Any = [SimpleNamespace(robot=RobotConfiguration.load(name), gripper=None) for name in robots]
    plan = HeapPlan(("golf_ball",), count, robots, change=20.0, attempts=100.0)
    with Workcell(WorkcellConfig(object="golf_ball", others=" ".join(["golf_ball"] * (count - 1)))) as real:
        cell: Any = Tabletop(real)
    # Apart enough that what is taken makes no room for the others, but for what lies below it.
    places = [(0.3 + 0.2 * (index % 3), -0.2 + 0.2 * (index // 3), 0.0) for index in range(count)]
    for index in range(count):
        cell.at[index] = make_transform(translation=places[index])
    for lower, upper in below.items():
        cell.at[upper] = cell.at[lower] @ make_transform(translation=(0.0, 0.0, 0.05))
    work = Turns(jobs, cell, plan)
    work._out_of_reach = lambda index: ""  # type: ignore[method-assign]
    work.prepare(dict(picks), below, set(pushes))
    work.hidden = dict.fromkeys(hidden, 2)
    return work, work.run()


def test_tools_take_turns_until_none_picks_anything() -> None:
    # Object 0 lies below 1, which only the cup takes; nothing takes 3.
    picks = {0: "panda", 1: "panda_cup", 2: "panda"}
    work, result = turns_of(4, picks, {0: 1}, set(), ("panda", "panda_cup"))
    cleared = [(turn.tool, len(turn.cleared)) for turn in result.turns]
    assert cleared[:3] == [("panda", 1), ("panda_cup", 1), ("panda", 1)]
    assert result.left == ["golf_ball"] and len(result.cleared) == 3 and "1 left" in result.end
    # Twice each tool at most, where nothing beside it has changed: what failed is remembered for each tool.
    assert work.tried.count(("panda", 3)) == 2 and work.tried.count(("panda_cup", 3)) == 2
    # A cup pushes nothing.
    assert {name for name, _ in work.pushed} == {"panda"}
    assert result.changes == len(result.turns) - 1 == len(work._workcell.robots)
    assert result.seconds == pytest.approx(sum(turn.seconds for turn in result.turns) + 20.0 * result.changes)
    assert sum(turn.seconds for turn in result.turns) == pytest.approx(10.0 * len(work.tried))


def test_tools_are_those_of_one_arm_each_named_once() -> None:
    for robots, change in (((), 20.0), (("panda", "panda"), 20.0), (("panda",), -1.0)):
        with pytest.raises(InvalidInputError):
            HeapPlan(("box",), 1, robots, change)
    with pytest.raises(InvalidInputError, match="one place"):
        turns_of(1, {}, {}, set(), ("panda", "ur3e_hande"))


def test_no_tool_is_changed_where_one_is_enough_or_there_is_one_only() -> None:
    _, result = turns_of(3, dict.fromkeys(range(3), "panda"), {}, set(), ("panda", "panda_cup"))
    assert result.changes == 0 and result.end == "the table is clear" and result.seconds == 30.0
    work, result = turns_of(2, {0: "panda"}, {}, set(), ("panda",))
    assert [turn.tool for turn in result.turns] == ["panda"] and work.pushed and "1 left" in result.end


def test_what_was_put_off_is_handed_over_before_it_is_tried() -> None:
    both = ("panda", "panda_cup")
    work, result = turns_of(2, {0: "panda", 1: "panda_cup"}, {}, set(), both, [("panda", 1)])
    assert work.tried == [("panda", 0), ("panda_cup", 1)] and result.end == "the table is clear"
    # Where the next one does not take it, it is tried before anything is pushed.
    work, result = turns_of(2, {0: "panda", 1: "panda"}, {}, set(), both, [("panda", 1)])
    assert work.tried == [("panda", 0), ("panda_cup", 1), ("panda_cup", 1), ("panda", 1)] and not work.pushed
    # One tool alone tries it at once.
    work, result = turns_of(2, {0: "panda", 1: "panda"}, {}, set(), both[:1], [("panda", 1)])
    assert work.tried == [("panda", 0), ("panda", 1)] and result.end == "the table is clear"


def test_what_was_pushed_is_a_new_chance_for_the_other_tool() -> None:
    work, result = turns_of(2, {0: "panda", 1: "panda_cup"}, {}, {1}, ("panda", "panda_cup"))
    assert result.end == "the table is clear"
    assert [turn.tool for turn in result.turns] == ["panda", "panda_cup", "panda", "panda_cup"]
    # Not before both have tried.
    assert ("panda", 1) in work.pushed and work.tried.index(("panda_cup", 1)) < len(work.tried) - 1


def test_what_a_tool_has_weighed_is_known_to_the_next_and_its_failed_grasps_are_not() -> None:
    jobs: Any = [SimpleNamespace(robot=RobotConfiguration.load(name)) for name in ("panda", "panda_cup")]
    with Workcell(WorkcellConfig(object="box")) as real:
        cell: Any = Standing(real)
    work = HeapClearing(jobs, cell, HeapPlan(("box",), 1, ("panda", "panda_cup")))
    hand, cup = work._tools
    weight = Weight(0.2, 0.01, np.zeros(3), np.eye(3))
    cup.failed.remember(5, BALL, "base", Failed([np.eye(4)], 1))
    work._remember(5, BALL, Failed([make_transform(translation=(0.0, 0.0, 0.1))], 0, weight))
    known = cup.failed.at(5, BALL, "base")
    assert known.weighed.mass == 0.2 and known.put_off == 1
    np.testing.assert_allclose(known.grasps, [np.eye(4)], atol=1e-9)
    assert len(hand.failed.at(5, BALL, "base").grasps) == 1
    # What was beside it is seen otherwise once it is gone, whichever tool took it.
    work._remember(6, BALL + np.array([0.1, 0.0, 0.0]), None)
    assert cup.failed.at(5, BALL, "base").put_off == 0
