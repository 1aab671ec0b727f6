"""A command begins when a robot description has come, with that as its parameter; until then a signal ends the wait."""

import json
import signal
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from std_msgs.msg import String

from morphit_ros.ros.core.endpoints import Quality, Topic

pytestmark = pytest.mark.ros

# In the words that YAML and command lines trip over.
TEXT = "<?xml version='1.0'?>\n<robot name=\"r: {a} # 'ü'\">\n\t<link name='x'/>\n</robot>\n" + "<!-- long -->" * 20000
# A shell first: Python ignores SIGPIPE whatever it was started with.
PROGRAM = """#!/bin/sh
grep SigIgn /proc/$$/status
exec {python} {script} "$@"
"""
SCRIPT = """
import json, rclpy
rclpy.init()
node = rclpy.create_node("group", automatically_declare_parameters_from_overrides=True)
found = {name: node.get_parameter(name).value for name in ("other", "robot_description")}
print("began", json.dumps({"name": node.get_fully_qualified_name(), **found}), flush=True)
"""
ARGUMENTS = ["--ros-args", "-r", "__ns:=/cell", "-r", "robot_description:=described", "-p", "other:=7"]


@pytest.fixture
def waiting(graph, tmp_path):
    program = tmp_path / "group"
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    program.write_text(PROGRAM.format(python=sys.executable, script=script))
    program.chmod(0o755)
    words = [sys.executable, "-m", "morphit_ros.ros.core.await_description", str(program), *ARGUMENTS]
    process = graph.run(words)
    process.wait_for_line("waiting for /cell/described")
    return process


def test_a_late_description_is_handed_over_whole(graph, waiting):
    publisher = graph.publisher(Topic("/cell/described", String, Quality.LATCHED, ""))
    publisher.publish(String(data=TEXT))
    found = json.loads(waiting.wait_for_line("began").removeprefix("began "))
    assert waiting.wait() == 0
    assert found == {"name": "/cell/group", "other": 7, "robot_description": TEXT}
    # Of what Python ignores it must not know, whatever else whoever runs this test has it ignore.
    ignored = int(waiting.wait_for_line("SigIgn").split()[1], 16)
    assert not any(ignored >> (number - 1) & 1 for number in (signal.SIGPIPE, signal.SIGXFSZ))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(waiting, number):
    assert waiting.stop(number) == 0
    assert "began" not in waiting.output
    assert "Traceback" not in waiting.output
