"""The simulated force sensor between arm and hand."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_ros.execution.weighing import wrench_scale
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_masses import GRAVITY
from morphit_ros.simulation.robot_model import PREFIX
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig


@pytest.mark.parametrize("name", ["panda", "ur3e_hande"])
def test_it_weighs_what_pulls_at_a_finger(name: str) -> None:
    robot = RobotConfiguration.load(name)
    kinematics = KinematicModel(load_robot_description(robot.description))
    with Workcell(WorkcellConfig(robot=name)) as cell:
        scale = wrench_scale(kinematics, robot, cell.wrist_link, lambda _: None)
        cell.step(0.5)

        def readings() -> list[Any]:
            found = []
            for _ in range(40):
                cell.step(0.01)
                found.append(cell.wrench())
            return found

        # The hand's own weight is no load.
        empty = readings()
        assert np.linalg.norm(np.mean(empty, axis=0)[:3]) > 5.0
        scale.tare(empty, cell.joint_state().as_dict())
        nothing = scale.load(readings(), cell.joint_state().as_dict())
        assert nothing is None or nothing.mass < 0.05
        model, data = cell._model, cell._data
        finger = model.body(PREFIX + kinematics.description.joints[robot.finger_joints[0]].child).id
        place = data.xipos[finger].copy()
        data.xfrc_applied[finger, :3] = (0.0, 0.0, -0.5 * GRAVITY)
        cell.step(0.5)
        positions = cell.joint_state().as_dict()
        load = scale.load(readings(), positions)
        assert load is not None
        assert load.mass == pytest.approx(0.5, abs=0.05) and load.mass_deviation < 0.05
        T_world_gripper = cell.T_world_base @ robot.gripper_pose(kinematics, positions)
        center = transform_points(T_world_gripper, load.center[None])[0]
        assert np.linalg.norm((center - place)[:2]) < 0.012


def test_noise_is_as_told_and_the_same_at_the_same_time() -> None:
    with Workcell(WorkcellConfig(force_noise=2.0, torque_noise=0.1)) as cell:
        cell.step(0.5)
        assert np.array_equal(cell.wrench(), cell.wrench())
        found = []
        for _ in range(100):
            cell.step(0.01)
            found.append(cell.wrench())
        spread = np.std(found, axis=0)
        assert np.all(np.abs(spread[:3] / 2.0 - 1.0) < 0.3) and np.all(np.abs(spread[3:] / 0.1 - 1.0) < 0.3)
