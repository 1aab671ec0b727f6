"""What the probe calls of `moveit.core`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from moveit.orders import misbehave, order


class RobotModel:
    def __init__(self, urdf_xml_path, srdf_xml_path):
        assert Path(urdf_xml_path).read_text(encoding="utf-8").startswith("<robot")
        assert "<group" in Path(srdf_xml_path).read_text(encoding="utf-8")


class RobotState:
    def __init__(self, robot_model, /):
        assert isinstance(robot_model, RobotModel)
        self._positions = {}

    def set_joint_group_positions(self, joint_model_group_name, position_values):
        misbehave("array")
        self._positions[joint_model_group_name] = position_values * order("array_factor", 1.0)

    def get_joint_group_positions(self, joint_model_group_name):
        return self._positions[joint_model_group_name]


robot_model, robot_state = SimpleNamespace(RobotModel=RobotModel), SimpleNamespace(RobotState=RobotState)
