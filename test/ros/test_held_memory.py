"""What grasp_execution knows of the thing in its hand: that it has turned there, told once and kept on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "execution"))
from test_turned_in_the_hand import downwards, grasp, hammer, turned

from morphit_ros.execution.held import HeldGrasp
from morphit_ros.execution.pick import GraspTarget, PickRequest, PickStage
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.grasping.suction.cup import load_gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.execution.held_memory import HeldMemory

CENTER = np.array([0.55, 0.1, 0.015])


@pytest.fixture
def memory(panda: RobotConfiguration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeldMemory:
    monkeypatch.setenv("MORPHIT_STATE", str(tmp_path))
    node: Any = SimpleNamespace(get_fully_qualified_name=lambda: "/grasp_execution")
    return HeldMemory(node, panda, load_gripper(panda.gripper), SequenceConfig(), recall=False)


def job(stage: PickStage, load: Load | None = None) -> Any:
    return SimpleNamespace(
        stage=stage.value, finished=False, failed=False, put_down=None, grasp_index=0, message="", mode=None,
        weighed_now=load is not None, load=load,
    )  # fmt: skip


def lifted(memory: HeldMemory, panda: RobotConfiguration, load: Load) -> list[bool]:
    """What each stage says of a pick that ends with this load in the hand."""
    pose, names = grasp(), (*panda.arm_joints, *panda.finger_joints)
    state = JointState(names, np.full(len(names), 0.01), np.zeros(len(names)), 1.0)
    memory.expect(PickRequest((GraspTarget(pose, pose, 0.02, 0.06),)), PointCloud(hammer()))
    stages = [job(PickStage.CLOSE), job(PickStage.ATTACH), job(PickStage.LIFT), job(PickStage.VERIFY, load)]
    return [memory.follow(each, state) for each in (*stages, stages[-1])]


def test_that_it_has_turned_is_told_once_and_kept(memory: HeldMemory, panda: RobotConfiguration) -> None:
    angle = downwards(grasp(), CENTER, np.radians(65.0))
    load = turned(grasp(), CENTER, angle, np.array([0.575, 0.1, 0.0]))
    assert lifted(memory, panda, load) == [False, False, False, True, False]
    assert memory.held is not None and memory.held.turn == pytest.approx(angle, abs=0.3)
    assert HeldGrasp.from_json(memory._path.read_text(encoding="utf-8")).turn == memory.held.turn


def test_of_what_has_not_turned_nothing_is_told(memory: HeldMemory, panda: RobotConfiguration) -> None:
    load = turned(grasp(), CENTER, 0.0, np.array([0.575, 0.1, 0.0]))
    plain = Load(load.mass, load.center, load.T_base_gripper, 0.002, 0.002)
    assert not any(lifted(memory, panda, plain))
    assert memory.held is not None and memory.held.load is plain and memory.held.turn == 0.0
