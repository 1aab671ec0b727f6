"""The same number everywhere: grasp planning, planned motions, separation_monitor and the page, each as it runs."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from scenes import object_cloud
from sensor_msgs.msg import JointState
from test_grasp_planning_node import goal_for

from morphit_interfaces.action import PlanMotion
from morphit_interfaces.msg import DistanceShape, WorldObject, WorldObjectArray
from morphit_interfaces.srv import RobotDistance
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, matrix_from_pose, pose_from_matrix
from morphit_ros.ros.distance.clearance_watch import ClearanceWatch
from morphit_ros.ros.execution.object_clearance import ClearanceConfig, known_hand, object_clearance
from morphit_ros.ros.scene.messages import TablePatch
from morphit_ros.ros.scene.world_objects import object_name, seen_objects

pytestmark = [pytest.mark.ros, pytest.mark.alone]
ROBOT = RobotConfiguration.load("panda")
TABLE = TablePatch(np.eye(4), np.array([0.6, 0.6]))
TABLE.T_world_table[:3, 3] = [0.5, 0.0, 0.0]
# What certificates leave open: 1e-6 of the size of the larger body, of which the table is 0.8 m; a cloud travels in
# single precision, which is 3e-8 m here.
TOLERANCE = 1e-6


def world() -> WorldObjectArray:
    objects = seen_objects(TABLE, {object_name(0): object_cloud()}, np.empty((0, 3)), np.eye(4))
    return WorldObjectArray(header=header(ROBOT.base_link), objects=objects)


def state_at(kinematics: KinematicModel, T_base_gripper: Array, aperture: float) -> dict[str, float]:
    """Positions of all joints that bring the open gripper to a pose."""
    state = dict.fromkeys(kinematics.joint_names, 0.0)
    state |= dict(zip(ROBOT.arm_joints, ROBOT.home.tolist(), strict=True)) | ROBOT.finger_state(aperture)
    T_root_tip = T_base_gripper @ invert_transform(ROBOT.T_tip_gripper)
    exact = IKConfig(position_tolerance=1e-8, rotation_tolerance=1e-8)
    rng = np.random.default_rng(0)
    found = inverse_kinematics(kinematics, T_root_tip, ROBOT.tip_link, ROBOT.arm_joints, state, rng, exact)
    assert found.status is IKStatus.SUCCEEDED
    return state | dict(found.positions)


def test_four_places_say_one_number(graph):
    description = load_robot_description(ROBOT.description)
    kinematics = KinematicModel(description)
    semantics = load_semantic_description(ROBOT.semantic_description)
    arm = semantics.group_with(ROBOT.arm_joints, description)
    graph.start("grasp_planning", robot="panda", clearance="world", min_clearance=-0.02, check_reachability="never")
    graph.start("superovoid_distance", robot="panda")
    graph.start("motion_planning", robot="panda", clearance="superovoids")
    graph.start("separation_monitor", robot="panda", influence=0.5, reaction_time=0.5)
    graph.publisher(interfaces.WORLD_OBJECTS).publish(world())
    states = graph.publisher(interfaces.JOINT_STATES)
    nearest, plans = graph.latest(interfaces.SEPARATION), graph.latest(interfaces.MOTION_PLAN)
    shown = []
    watch = ClearanceWatch(graph.node, shown.append)
    watch.group = arm

    def ask_page(positions):
        request = RobotDistance.Request(
            joint_states=[JointState(name=list(positions), position=list(positions.values()))],
            group=arm, self_distance=False, world_distance=True,
        )  # fmt: skip
        answer = graph.call(interfaces.ROBOT_DISTANCE, request)
        assert answer.success, answer.message
        return answer.states[0].minimum_distance

    # It answers as soon as it knows the robot; the world may come later.
    reports = graph.latest(interfaces.DIAGNOSTICS)
    graph.wait_until(
        lambda: any("2 objects" in status.message for message in reports for status in message.status), what="the world"
    )
    # Grasps carry the number that the page has for the arm there.
    *_, result = graph.send_goal(interfaces.PLAN_GRASP, goal_for(object_cloud(), max_grasps=4), timeout=240.0)
    assert result.success, result.grasps.message
    for grasp in result.grasps.grasps:
        ranked = dict(zip(grasp.metric_names, grasp.metric_values, strict=True))["clearance"]
        there = ask_page(state_at(kinematics, matrix_from_pose(grasp.pose), grasp.open_aperture))
        assert set(there.link_names) & set(ROBOT.touch_links)
        assert there.certified
        assert ranked == pytest.approx(there.distance, abs=TOLERANCE)

    # On the way there the four are asked for one configuration.
    grasp = result.grasps.grasps[0]
    above = matrix_from_pose(grasp.pose)
    above[2, 3] += 0.08
    positions = state_at(kinematics, above, grasp.open_aperture)
    config = ClearanceConfig(clearance="world")
    function = object_clearance(config, None, [object_cloud()], TABLE, hand=known_hand(config, "panda"))
    ranked = function(above, grasp.open_aperture)

    asked = 0.0

    def tell():
        nonlocal asked
        message = JointState(name=list(positions), position=list(positions.values()))
        message.header.stamp = graph.node.get_clock().now().to_msg()
        states.publish(message)
        # As the page does, which gives up what has not been answered until then.
        if time.monotonic() - asked > 2.0:
            asked = time.monotonic()
            watch.ask()

    nearest.clear()
    shown.clear()
    graph.wait_until(
        lambda: (tell(), len(nearest) > 5 and len(shown) > 1 and any(nearest[-1].link_names))[1], what="both to say it"
    )
    # A goal's own things count too, in other frames as well, and what it allows to touch does not.
    far = WorldObject(id="far", header=header("world"), shapes=[DistanceShape(type=DistanceShape.SPHERE)])
    far.shapes[0].dimensions, far.pose.position.y = [0.05], 1.2
    within = WorldObject(id="within", shapes=[DistanceShape(type=DistanceShape.SPHERE, dimensions=[0.01])])
    within.pose = pose_from_matrix(kinematics.link_pose(positions, "panda_hand"))
    goal = PlanMotion.Goal(
        start=[positions[name] for name in ROBOT.arm_joints], joint_goals=ROBOT.home.tolist(), objects=[far, within],
        allowed_1=list(description.links), allowed_2=["within"] * len(description.links),
    )  # fmt: skip
    *_, motion = graph.send_goal(interfaces.PLAN_MOTION, goal, timeout=240.0)
    assert motion.success, motion.message
    graph.wait_until(lambda: plans, what="the plan as shown")
    page = ask_page(positions)
    assert 0.01 < page.distance < 0.2
    numbers = {
        "grasps": ranked, "paths": plans[-1].clearance[0], "monitor": nearest[-1].distance, "screen": shown[-1].world
    }  # fmt: skip
    for place, number in numbers.items():
        assert number == pytest.approx(page.distance, abs=TOLERANCE), (place, numbers)
    # With the pair of points, which are as far apart as it says.
    assert set(shown[-1].names) == set(nearest[-1].link_names) == set(page.link_names)
    assert np.linalg.norm(shown[-1].points[1] - shown[-1].points[0]) == pytest.approx(page.distance, abs=TOLERANCE)
