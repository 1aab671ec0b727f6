"""Readings of a force sensor on their way to the scale."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

import time

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_wrench
from morphit_ros.ros.execution.wrench_input import WrenchInput

pytestmark = pytest.mark.ros


def test_the_newest_reading_counts_while_it_is_new_and_in_a_frame_that_the_hand_hangs_on(graph):
    robot = RobotConfiguration.load("panda")
    kinematics = KinematicModel(load_robot_description(robot.description))
    sensor = WrenchInput(graph.node, None)
    with pytest.raises(InvalidInputError, match="no message"):
        sensor.scale(kinematics, robot)
    publisher = graph.publisher(interfaces.WRENCH)
    values = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])

    def read(frame, wrench):
        publisher.publish(message_from_wrench(wrench, frame, 1.0))
        try:
            return sensor.scale(kinematics, robot).read(None)
        except InvalidInputError as error:
            return error

    graph.wait_until(lambda: np.array_equal(read("panda_link8", values), values), what="a reading")
    time.sleep(0.3)
    assert sensor.scale(kinematics, robot).read(None) is None
    graph.wait_until(lambda: read("panda_link8", np.full(6, np.nan)) is None, what="a reading that is none")
    graph.wait_until(lambda: "moves with the hand" in str(read("panda_link3", values)), what="a refusal")
