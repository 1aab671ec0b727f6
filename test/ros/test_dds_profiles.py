"""The profiles of Fast DDS that nodes start with: Fast DDS takes them, and what a network lost is sent again soon."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_ros.resources import resource

_NAMESPACE = {"dds": "http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"}
_PUBLISH = """
import rclpy
from std_msgs.msg import String
rclpy.init()
rclpy.create_node("profile").create_publisher(String, "words", 1).publish(String())
"""


@pytest.mark.parametrize("name", ["fastdds.xml", "fastdds_motion.xml", "fastdds_motion_local.xml"])
class TestProfile:
    def test_fast_dds_takes_it(self, name: str) -> None:
        environment = {**os.environ, "FASTRTPS_DEFAULT_PROFILES_FILE": str(resource(f"config/{name}"))}
        result = subprocess.run(
            [sys.executable, "-c", _PUBLISH], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        assert "XMLPARSER" not in result.stdout + result.stderr

    def test_a_lost_message_is_missed_before_an_arm_is_off_its_trajectory(self, name: str) -> None:
        root = ElementTree.parse(resource(f"config/{name}")).getroot()
        (writer,) = root.findall(".//dds:data_writer", _NAMESPACE)
        assert writer.get("is_default_profile") == "true"
        period = writer.find("dds:times/dds:heartbeatPeriod", _NAMESPACE)
        seconds, nanoseconds = (float(period.findtext(f"dds:{unit}", "0", _NAMESPACE)) for unit in ("sec", "nanosec"))
        assert 0.0 < seconds + 1e-9 * nanoseconds <= 0.1
