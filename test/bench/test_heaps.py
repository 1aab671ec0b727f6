"""Heaps: what is drawn, what counts, and how it is told."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_bench.picks.heap_report import heap_summary, heap_table
from morphit_bench.picks.heaps import HeapAttempt, HeapClearing, HeapPlan, HeapResult, draw_heap
from morphit_bench.picks.pick import PickJob
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.grasping import Grasp, GraspPlan
from morphit_ros.grasping.suction.cup import SuctionCup
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
    work = HeapClearing(job, cell, plan)
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
    work = HeapClearing(job, cell, HeapPlan(("box",), 2))
    assert work._out_of_reach(0) == ""
    assert work._out_of_reach(1)


def test_a_cup_holds_while_there_is_vacuum_and_pushes_nothing() -> None:
    robot, cup = RobotConfiguration.load("panda_cup"), SuctionCup.load("cup_30")
    job: Any = SimpleNamespace(robot=robot, gripper=cup)
    with Workcell(WorkcellConfig(object="box", others="box"), job.robot) as real:
        cell: Any = Standing(real)
        cell.config = real.config
    work = HeapClearing(job, cell, HeapPlan(("box",), 2))
    held: Any = None
    for vacuum in (True, False):
        cell.joint_state = lambda vacuum=vacuum: SimpleNamespace(vacuum=vacuum)
        assert work._holds(held) is vacuum
    up = np.array([0.0, 0.0, 1.0])
    assert work._clearing.choose_push({0: np.array([[0.5, 0.0, 0.0]])}, up) is None
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
    work = HeapClearing(job, cell, HeapPlan(("box",), 2))
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
    assert "| 7 | 2 | 1 | 3 | 1 | 20 |" in table and "heap 7, mug" in table
    assert heap_summary([])["cleared"] == "0 of 0, – (0–100)"
    assert np.isfinite(heap_summary([])["picks_per_hour"])
