"""morphit check tells what is missing, of the wrong quality, unit or clock, with the remedy; the rest is not blamed."""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from morphit_ros.bringup import find_job
from morphit_ros.bringup.domains import own_domain
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import look_at
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_cloud, message_from_joint_state, transform_from_matrix
from morphit_ros.ros.setup.check import running_arguments
from morphit_ros.ros.setup.expected import ExpectedNode
from morphit_ros.ros.setup.listening import Heard
from morphit_ros.ros.setup.record import Recorder
from morphit_ros.ros.setup.robot_rows import controller_rows
from morphit_ros.ros.setup.rows import BAD, NOTE, OK, Row, passed, table
from morphit_ros.ros.setup.tf_frames import FrameTree

UR = RobotConfiguration.load("ur3e_hande")


def look(graph, domain="", patience=4.0, **given):
    """A check as a process of its own."""
    request = {"job": "grasp", "arguments": given, "seconds": 1.0, "patience": patience, "json": "-"}
    words = [sys.executable, "-m", "morphit_ros.ros.setup.check", json.dumps(request)]
    return graph.run(["env", f"ROS_DOMAIN_ID={domain}", *words] if domain else words)


def rows_of(process):
    content = json.loads(process.output[process.output.index("{") :])
    return content, {(row["area"], row["subject"]): row for row in content["rows"]}


@pytest.mark.ros
def test_without_a_system_it_says_so(graph):
    with own_domain() as empty:
        process = look(graph, domain=empty, patience=1.0, sim="true")
        assert process.wait() == 1
    content, rows = rows_of(process)
    row = rows["nodes", "nothing runs"]
    assert len(content["rows"]) == 1 and row["state"] == BAD and "morphit up grasp" in row["remedy"]


@pytest.mark.ros
def test_a_partial_system_is_told_what_it_lacks(graph):
    description = graph.node.create_publisher(
        String, "robot_description", interfaces.ROBOT_DESCRIPTION.quality.profile()
    )
    description.publish(String(data=load_robot_description(UR.description).xml))
    states = interfaces.JOINT_STATES.publish(graph.node)
    # As camera drivers do, and job and driver do not agree on it.
    best_effort = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    clouds = graph.node.create_publisher(interfaces.LEFT_POINTS.type, "left/points", best_effort)
    wrong_type = graph.node.create_publisher(String, "right/points", 5)
    graph.start("motion_gate", robot="ur3e_hande")
    points = PointCloud(np.random.default_rng(0).uniform([-0.3, -0.3, 0.5], [0.3, 0.3, 1.0], (500, 3)))
    names = (*UR.arm_joints, *UR.finger_joints)
    degrees = np.array([*np.degrees(UR.home), 0.02, 0.02])
    said = []

    def publish():
        now = time.time()
        states.publish(message_from_joint_state(JointState(names, degrees, np.zeros(8), now - 60.0)))
        clouds.publish(message_from_cloud(points, "left_optical", now))
        said.append(now)

    graph.wait_until(lambda: graph.node.count_publishers("node_alive"), what="motion_gate")
    process = look(graph, sim="false", robot="ur3e_hande", base_pose="0 0 0 0 0 0 1")
    graph.wait_until(lambda: publish() or process._process.poll() is not None, what="the end of the check")
    assert process.wait() == 1
    content, rows = rows_of(process)
    assert not content["passed"]
    assert rows["nodes", "/motion_gate"]["state"] == OK
    assert (
        rows["nodes", "/scene_perception"]["state"] == BAD and "missing" in rows["nodes", "/scene_perception"]["found"]
    )
    left = rows["topics", "/left/points"]
    assert (
        left["state"] == BAD and "best effort" in left["found"] and "points_reliability:=best_effort" in left["remedy"]
    )
    assert "std_msgs/msg/String" in rows["topics", "/right/points"]["found"]
    assert "nobody publishes it" in rows["topics", "/sphere_model"]["found"]
    assert "robot_spheres" in rows["topics", "/sphere_model"]["remedy"]
    assert "degrees" in rows["joints", "positions"]["remedy"]
    clock = rows["clocks", "/joint_states"]
    assert clock["state"] == BAD and "60" in clock["found"] and "chrony" in clock["remedy"]
    assert rows["robot", "robot_description"]["state"] == OK
    assert "nobody says where it stands" in rows["frames", "right camera"]["found"]
    assert rows["controllers", "arm"]["state"] == BAD
    assert rows["parameters", "command_interface"]["found"].startswith("topics, asked for was actions")
    # Nothing was commanded, and nothing is left behind.
    assert graph.node.count_publishers("joint_trajectory") <= 1
    wrong_type.destroy()


def test_a_gripper_with_another_type_of_action_is_told():
    def rows(gripper, **live):
        types = {"follow_joint_trajectory": "FollowJointTrajectory", "gripper_cmd": gripper}

        def offers(topic):
            name = topic.removesuffix("/_action/feedback").rpartition("/")[2]
            return [SimpleNamespace(topic_type=f"control_msgs/action/{types[name]}_FeedbackMessage")]

        nodes = find_job("grasp").nodes({"sim": "false", "robot": "ur3e_hande", "base_pose": "0 0 0 0 0 0 1"})
        [execution] = [ExpectedNode(node, live, True) for node in nodes if node.executable == "grasp_execution"]
        listener = SimpleNamespace(node=SimpleNamespace(get_publishers_info_by_topic=offers))
        return {row.subject: row for row in controller_rows(UR, [execution], listener)}

    assert [row.state for row in rows("GripperCommand").values()] == [OK, OK]
    other = rows("ParallelGripperCommand")
    assert (other["arm"].state, other["gripper"].state) == (OK, BAD)
    assert "is a ParallelGripperCommand, not a GripperCommand" in other["gripper"].found
    assert "gripper_action_type" in other["gripper"].remedy
    assert rows("ParallelGripperCommand", gripper_action_type="ParallelGripperCommand")["gripper"].state == OK


def test_needs_are_subscriptions_and_parameters_of_their_nodes():
    import importlib

    for node in interfaces.NODES:
        module = importlib.import_module(f"morphit_ros.nodes.{node.executable}")
        known = {name for config in module.CONFIGS for name in config.flat_fields()}
        for need in node.needs:
            assert need.topic in node.subscribes
            assert {need.within, *(name for name, _ in need.only)} <= known | {""}, node.executable


def test_what_is_needed_depends_on_parameters():
    [described] = [node for node in find_job("grasp").nodes({}) if node.executable == "scene_perception"]

    def needed(**live):
        return {name: within for name, _, within in ExpectedNode(described, live, True).needs()}

    assert needed()["/left/points"] == 2.0 and "/left/extrinsics" in needed()
    assert needed(max_age=0.5)["/left/points"] == 0.5
    assert "/left/extrinsics" not in needed(camera_source="tf")
    given = needed(left_extrinsics=[0.0] * 6 + [1.0])
    assert "/left/extrinsics" not in given and "/right/extrinsics" in given
    # rclpy says None, or an empty array, where nothing is set.
    assert "/left/extrinsics" in needed(left_extrinsics=None) and "/left/extrinsics" in needed(left_extrinsics=b"")
    assert "/sphere_model" not in needed(self_filter=False)


def test_what_runs_tells_what_nobody_said():
    job = find_job("grasp")
    own = ["/cell/scene_perception", "/cell/grasp_execution", "/cell/motion_gate"]
    assert running_arguments(job, {}, [*own, "/cell/workcell_sim"]) == {
        "sim": "true", "viewer": "false", "namespace": "cell",
    }  # fmt: skip
    real = running_arguments(job, {}, ["/joint_state_broadcaster", "/camera_left"])
    assert real == {"sim": "false", "base_source": "tf"}
    given = {"sim": "false", "base_pose": "0 0 0 0 0 0 1", "namespace": "a", "viewer": "true"}
    assert running_arguments(job, given, own) == given
    assert running_arguments(job, {}, []) == {}


def test_gaps_are_told_by_stamps_and_not_by_a_busy_listener():
    assert Heard([0.0, 0.1, 0.9], [5.0, 5.1, 5.2]).longest_gap(0.0) == pytest.approx(0.1)
    assert Heard([0.0, 0.1, 0.9]).longest_gap(0.5) == pytest.approx(0.3)
    assert Heard([1.0]).longest_gap(0.0) == float("inf")


def test_the_table_has_remedies_below_what_is_bad():
    rows = [
        Row(OK, "nodes", "/a", "lives"),
        Row(BAD, "topics", "/b", "nothing " * 20, "do this"),
        Row(NOTE, "x", "y", "z"),
    ]
    text = table(rows, 80)
    assert not passed(rows) and passed([rows[0], rows[2]])
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.index("/b") < text.index("→ do this") < text.index("note")


def test_frames_connect_through_a_common_root():
    from geometry_msgs.msg import TransformStamped

    def message(parent, child, pose):
        stamped = TransformStamped(child_frame_id=child, transform=transform_from_matrix(pose))
        stamped.header.frame_id = parent
        return type("TFMessage", (), {"transforms": [stamped]})()

    camera, base = look_at((1.0, 0.2, 0.5), (0.0, 0.0, 0.0)), look_at((0.3, 0.0, 0.1), (1.0, 0.0, 0.0))
    tree = FrameTree()
    tree.take(message("world", "camera", camera))
    assert tree.look_up("base", "camera") is None
    tree.take(message("world", "base", base))
    np.testing.assert_allclose(tree.look_up("base", "camera"), np.linalg.inv(base) @ camera, atol=1e-12)
    tree.take(message("table", "camera", camera))
    assert tree.doubled == {"camera": {"world", "table"}}


def test_only_clouds_of_an_arm_at_rest_are_recorded(tmp_path):
    recorder = Recorder(tmp_path, UR, ("left",))
    names = (*UR.arm_joints, *UR.finger_joints)

    def at(stamp, turn):
        recorder.take_state(JointState(names, np.array([*UR.home + turn, 0.01, 0.01]), np.zeros(8), stamp))

    cloud = np.array([[0.0, 0.0, 1.0]] * 3)
    assert "joint states" in recorder.waits_for()
    for step in range(20):
        at(0.05 * step, 0.01 * step)
    recorder.take_cloud("left", 0.9, cloud)
    assert recorder.step() == "" and recorder.waits_for() == "the arm to stand still"
    for step in range(20, 60):
        at(0.05 * step, 0.2)
    # The cloud is of before the rest.
    assert recorder.step() == "" and "clouds" in recorder.waits_for()
    recorder.take_cloud("left", 2.0, cloud)
    assert recorder.step().startswith("pose 1: left 3 points")
    assert recorder.step() == "" and "a pose that is new" in recorder.waits_for()
    for step in range(60, 100):
        at(0.05 * step, 0.5)
    recorder.take_cloud("left", 4.5, cloud)
    assert recorder.step().startswith("pose 2")
    assert (tmp_path / "joints.csv").read_text().splitlines()[0].startswith("shoulder_pan_joint")
