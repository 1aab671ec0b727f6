"""Pushes in physics: what a hand that flies does to objects on a table."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_bench.picks.pick import PickJob
from morphit_bench.picks.place import push_aside
from morphit_ros.execution.held import Surroundings
from morphit_ros.execution.obstacles import object_obstacle, table_obstacle
from morphit_ros.execution.pushing import pushes
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig


def pushed(name: str, direction: tuple[float, float], distance: float, tip: bool = False) -> tuple[Array, Array]:
    """Poses of an object before and after a push."""
    job = PickJob.flying("franka_hand")
    with Workcell(WorkcellConfig(object=name, friction=0.5), job.robot) as cell:
        before = cell.object_pose()
        T_base_world = invert_transform(cell.T_world_base)
        points = sample_surface(cell.object.mesh, 2000, np.random.default_rng(0))[0]
        points = transform_points(T_base_world @ before, points)
        center = (*cell.config.table_center, 0.0)
        table = table_obstacle(T_base_world @ make_transform(translation=center), cell.config.table_size)
        along = T_base_world[:3, :3] @ np.array([*direction, 0.0])
        around = Surroundings(table, (object_obstacle("it", points, np.eye(4)),))
        ways = pushes(points, np.empty((0, 3)), around, job.fingers, distance, along, tip)
        update, durations = push_aside(job, cell, ways, "it", around)
        assert update.success, update.message
        assert set(durations) >= {"close", "transfer", "lower", "push", "retreat"}
        cell.step(1.0)
        return before, cell.object_pose()


def test_a_box_goes_as_far_as_it_is_pushed_and_stays_upright() -> None:
    before, after = pushed("t_block", (0.0, 1.0), 0.08)
    moved = (after - before)[:3, 3]
    assert moved[1] == pytest.approx(0.08, abs=0.02) and abs(moved[0]) < 0.03 and abs(moved[2]) < 0.003


def test_a_bottle_is_tipped_over_by_a_high_push() -> None:
    before, after = pushed("bottle", (0.0, 1.0), 0.15, tip=True)
    assert before[2, 2] > 0.99 and after[2, 2] < 0.5
