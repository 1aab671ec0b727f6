"""grasp_execution as a process, with a robot that follows exactly: what moves it, what stops it, what it says."""

import re
import signal
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

import rclpy
import yaml
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticStatus
from fake_robot import FakeRobot
from geometry_msgs.msg import Point, Vector3
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.action import ActionServer
from scenes import object_cloud
from std_msgs.msg import String

from morphit_interfaces.action import ExecuteGrasp, GoHome, Pick, Place, PlanGrasp, Push, Recover, Release
from morphit_interfaces.msg import Grasp, GraspArray, SegmentedObject, TablePlane
from morphit_ros.execution.pick import PickStage
from morphit_ros.execution.weighing import effort_scale
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.resources import resource
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import inverse_kinematics_solutions
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import cloud_from_message, header, matrix_from_pose, pose_from_matrix
from morphit_ros.ros.scene.messages import (
    TablePatch,
    message_from_object,
    message_from_objects,
    message_from_table,
)
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spherized_urdf

pytestmark = pytest.mark.ros
CHANGE_STATE = interfaces.Service("grasp_execution/change_state", ChangeState, "of the lifecycle")
GET_STATE = interfaces.Service("grasp_execution/get_state", GetState, "of the lifecycle")
# The fake robot and the test share one thread, and the machine may be loaded. No object is heavy: it may move fast.
PATIENT = {
    "state_timeout": 5.0, "tracking_bound": 0.5, "silence_timeout": 10.0, "hold_time": 0.2, "contact__enabled": False,
    "slip__test_time": 0.1, "tracking_delay": 1.5, "approach_speed": 0.25, "lift_speed": 0.25,
}  # fmt: skip
# Joints that turn so many times as fast as the Panda's. No deviation counts, as the robot may be late by more than fast
# motions allow.
QUICKER = 3.0
QUICK = {
    "tracking_bound": 3.0, "tracking_delay": 0.3, "approach_speed": 0.5, "lift_speed": 0.5, "probe__speed": 0.1,
    "carry_acceleration": 10.0, "embedded__line_acceleration": 5.0, "embedded__velocity_scaling": 1.0,
    "embedded__acceleration_scaling": 1.0,
}  # fmt: skip
BLOCK = np.array([0.06, 0.05, 0.12])
BACKWARD = (PickStage.SET_DOWN, PickStage.RELEASE, PickStage.RETREAT, PickStage.DONE)


@pytest.fixture(scope="module")
def spherized_panda(ros_environment):
    """Text of the Panda's description as a few spheres a link."""
    config = SphereFitConfig(count=8, iterations=30, rounds=1, interior_samples=400, surface_samples=400)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MORPHIT_CACHE", ros_environment["MORPHIT_CACHE"])
        description = load_robot_description(RobotConfiguration.load("panda").description)
        return spherized_urdf(description, fit_robot_spheres(description, config))


def quicker(description):
    """The same robot with joints that turn faster."""
    return re.sub(r'velocity="([0-9.]+)"', lambda found: f'velocity="{QUICKER * float(found[1])}"', description)


class QuickRobot(NamedTuple):
    """A description and a robot's file."""

    description: str
    file: Path


@pytest.fixture(scope="module")
def quick_panda(spherized_panda, tmp_path_factory):
    """The same of a Panda whose joints turn faster, with accelerations that belong to that."""
    text = quicker(spherized_panda)
    document = yaml.safe_load(resource("config/robots/panda.yaml").read_text())
    document["acceleration_limits"] = [QUICKER**2 * value for value in document["acceleration_limits"]]
    file = tmp_path_factory.mktemp("robot") / "panda.yaml"
    file.write_text(yaml.safe_dump(document))
    return QuickRobot(text, file)


class Cell:
    """The node, the robot, and where the node's words go."""

    def __init__(self, graph, description, with_robot=True, **parameters):
        self.graph = graph
        self.diagnostics = graph.latest(interfaces.DIAGNOSTICS)
        self.job_states = graph.latest(interfaces.JOB_STATE)
        self.robot = FakeRobot(graph) if with_robot else None
        self.start(description, **parameters)

    def start(self, description, **parameters):
        self.process = self.graph.start("grasp_execution", **{**PATIENT, **parameters})
        if description:
            self.publish_description(description)

    def publish_description(self, text):
        self.graph.publisher(interfaces.SPHERE_DESCRIPTION).publish(String(data=text))

    def change_state(self, transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        return self.graph.call(CHANGE_STATE, request).success

    def state(self):
        return self.graph.call(GET_STATE, GetState.Request()).current_state.id

    def reported(self, words):
        statuses = [status for message in self.diagnostics for status in message.status]
        return any(words in status.message for status in statuses)

    def counts(self):
        """Name → count of the latest diagnostics that have any."""
        statuses = [status for message in self.diagnostics for status in message.status]
        found = [{pair.key: pair.value for pair in status.values} for status in statuses]
        return next((values for values in reversed(found) if "picks" in values), {})

    def wait_for_report(self, words):
        self.graph.wait_until(lambda: self.reported(words), what=f"a report with {words!r}")

    def wait_for_words(self, words):
        """In the log, where a report may have been followed by the next one before anybody listens."""
        self.graph.wait_until(lambda: any(words in line for line in self.process.lines), what=f"{words!r} in the log")

    def move_by_hand(self, positions):
        """Set the arm down somewhere else, with time for the node to hear of it: 25 joint states."""
        self.robot.arm = np.array(positions)
        until = time.monotonic() + 0.5
        self.graph.wait_until(lambda: time.monotonic() > until)

    def make_known(self, description):
        """Publish the robot's description, and see that it has come: with another one nothing is activated."""
        publisher = self.graph.publisher(interfaces.ROBOT_DESCRIPTION)
        publisher.publish(String(data=description.replace('"panda_hand"', '"other_hand"')))
        self.process.wait_for_line("does not fit the robot's file: ")
        assert self.change_state(Transition.TRANSITION_DEACTIVATE)
        publisher.publish(String(data=description))
        self.graph.wait_until(lambda: self.change_state(Transition.TRANSITION_ACTIVATE), what="the activation")

    def execute(self, goal, feedback=None):
        return self.graph.send_goal(interfaces.EXECUTE_GRASP, goal, feedback=feedback)

    def start_moving(self):
        """A grasp on its way to the object: the handle of its goal."""
        handle = self.graph.start_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp()))
        assert handle.accepted
        self.graph.wait_until(lambda: self.robot.moving, what="the first motion")
        assert self.robot.stops == 0
        return handle


class QuickCell(Cell):
    """The same with a `QuickRobot`."""

    def start(self, robot, **parameters):
        super().start(robot.description, **{"robot": robot.file, **QUICK, **parameters})

    def start_moving(self):
        """The same, held up where the motion begins, or it might end too soon."""
        self.robot.scale = 0.0
        return super().start_moving()


@pytest.fixture
def cell(graph, quick_panda):
    """Everything up, the node active."""
    running = QuickCell(graph, quick_panda, autostart=True)
    running.wait_for_report("may move")
    return running


def top_grasp(x=0.5, z=0.09, frame="world"):
    pose = make_transform(matrix_from_rpy([np.pi, 0.0, 0.0]), [x, 0.0, z])
    before = pose.copy()
    before[2, 3] += 0.1
    return Grasp(
        header=header(frame), pose=pose_from_matrix(pose), pregrasp=pose_from_matrix(before), aperture=float(BLOCK[1]),
        open_aperture=0.07, contact_points=[Point(x=x, z=z)],
    )  # fmt: skip


def goal_for(*grasps, **fields):
    table = TablePatch(make_transform(translation=[0.5, 0.0, 0.0]), np.array([0.6, 0.8]))
    return ExecuteGrasp.Goal(
        grasps=GraspArray(header=header("world"), gripper="franka_hand", grasps=list(grasps)),
        **{
            "object": message_from_object(object_cloud(BLOCK), 0, header("world")),
            "table": message_from_table(table, 0.001, header("world")),
            "lift_height": 0.1,
            **fields,
        },
    )  # fmt: skip


def tip_height(robot):
    panda = RobotConfiguration.load("panda")
    model = KinematicModel(load_robot_description(panda.description))
    joints = dict(zip(panda.arm_joints, robot.arm.tolist(), strict=True)) | dict.fromkeys(panda.finger_joints, 0.02)
    return model.link_pose(joints, panda.tip_link)[2, 3]


def test_it_moves_nothing_before_it_is_active(graph, spherized_panda):
    cell = Cell(graph, description="", with_robot=False)
    assert cell.state() == State.PRIMARY_STATE_UNCONFIGURED
    assert cell.execute(goal_for(top_grasp()))[0] is False
    assert not cell.change_state(Transition.TRANSITION_CONFIGURE)
    cell.wait_for_report("no motion planning for this robot: robot_description_spheres")
    assert cell.state() == State.PRIMARY_STATE_UNCONFIGURED
    cell.publish_description(spherized_panda)
    graph.wait_until(lambda: cell.change_state(Transition.TRANSITION_CONFIGURE), what="the configuration")
    assert cell.state() == State.PRIMARY_STATE_INACTIVE
    assert graph.send_goal(interfaces.PICK, Pick.Goal())[0] is False
    assert not cell.change_state(Transition.TRANSITION_ACTIVATE)
    cell.wait_for_report("not activated: joint_states: got nothing yet")
    cell.robot = FakeRobot(graph)
    graph.wait_until(lambda: cell.change_state(Transition.TRANSITION_ACTIVATE), what="the activation")
    assert cell.state() == State.PRIMARY_STATE_ACTIVE
    assert cell.change_state(Transition.TRANSITION_DEACTIVATE)
    assert cell.execute(goal_for(top_grasp()))[0] is False
    assert cell.change_state(Transition.TRANSITION_CLEANUP)
    assert cell.state() == State.PRIMARY_STATE_UNCONFIGURED
    assert cell.robot.trajectories == 0
    assert cell.process.stop() == 0


def test_a_block_is_grasped_from_above_and_lifted(cell):
    seen = []
    before = tip_height(cell.robot)
    accepted, status, result = cell.execute(
        goal_for(top_grasp()), feedback=lambda message: seen.append(message.feedback.stage)
    )
    assert accepted
    assert result.success, result.message
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert result.failed_stage == ""
    # Nobody keeps the robot's spheres here: no reason to fail, but it is said.
    assert "attach_object is not there" in result.message
    assert result.grasp_index == 0
    in_order = [stage.value for stage in PickStage if stage not in BACKWARD]
    assert list(result.stages) == in_order
    assert (result.outcome, result.failure_mode) == ("success", "success")
    assert (result.attempts, list(result.attempt_modes)) == (1, ["success"])
    # Feedback may come after the result.
    cell.graph.wait_until(lambda: len(seen) >= len(in_order), what="the feedback of all stages")
    assert seen == in_order
    assert all(duration >= 0.0 for duration in result.durations)
    assert tip_height(cell.robot) == pytest.approx(0.19, abs=0.005)
    assert abs(before - 0.19) > 0.05
    # Opened wide enough, then closed beyond contact.
    (opened, _), *probes, (closed, force) = cell.robot.gripper_commands
    assert opened == pytest.approx(0.07)
    assert closed < BLOCK[1]
    assert force > max(effort for _, effort in probes)
    assert cell.robot.stops == 0
    cell.graph.wait_until(lambda: cell.job_states[-1].message == "picked", what="the state of the job")
    assert cell.job_states[-1].level == DiagnosticStatus.OK


class FakeSpheres:
    """The services of robot_spheres; notes what it is told."""

    def __init__(self, graph, refuse=False):
        self.told = []
        self.refuse = refuse
        for service, callback in (
            (interfaces.ATTACH_OBJECT, self._on_attach),
            (interfaces.DETACH_OBJECT, self._on_detach),
        ):
            graph.node.create_service(service.type, service.name, callback)

    def kinds(self):
        return [kind for kind, _ in self.told]

    def _on_attach(self, request, response):
        self.told.append(("attach", request))
        response.success, response.message = not self.refuse, "no room" if self.refuse else ""
        return response

    def _on_detach(self, request, response):
        self.told.append(("detach", request))
        response.success = True
        return response


def test_what_is_held_joins_the_sphere_model_until_the_gripper_opens(graph, quick_panda):
    spheres = FakeSpheres(graph)
    cell = QuickCell(graph, quick_panda, autostart=True)
    cell.wait_for_report("may move")
    # What it held before it was started anew it does not hold now.
    graph.wait_until(lambda: spheres.kinds() == ["detach"], what="a clean start")
    _, _, result = cell.execute(goal_for(top_grasp()))
    assert result.success, result.message
    assert result.message == ""
    assert spheres.kinds() == ["detach", "attach"]
    request = spheres.told[1][1]
    tip = RobotConfiguration.load("panda").tip_link
    assert (request.link_name, request.cloud.header.frame_id) == (tip, tip)
    assert request.object_id == spheres.told[0][1].object_id
    # The tip is at 90 mm of the block's 120 mm and looks down.
    points = cloud_from_message(request.cloud).points
    np.testing.assert_allclose(points.min(axis=0), [-0.03, -0.025, -0.03], atol=0.003)
    np.testing.assert_allclose(points.max(axis=0), [0.03, 0.025, 0.09], atol=0.003)
    # While something is held the shape that comes with it is not planned with, and the next pick lets go of it.
    cell.publish_description("<robot name='nothing'>")
    handle = graph.start_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp()))
    assert handle.accepted
    graph.wait_until(lambda: spheres.kinds() == ["detach", "attach", "detach"], what="letting go")
    assert not cell.reported("no motion planning")


def test_what_is_lost_leaves_the_sphere_model(graph, quick_panda):
    spheres = FakeSpheres(graph)
    cell = QuickCell(graph, quick_panda, autostart=True, hold_time=5.0)
    cell.wait_for_report("may move")
    handle = graph.start_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp()))
    graph.wait_until(lambda: "attach" in spheres.kinds(), what="the held object")
    cell.robot.object_width = 0.0
    _, result = graph.result(handle)
    assert not result.success
    assert "lost" in result.message
    graph.wait_until(lambda: spheres.kinds() == ["detach", "attach", "detach"], what="letting go")
    # And then the newest shape is followed again.
    cell.publish_description("<robot name='nothing'>")
    cell.wait_for_report("no motion planning for this robot (the last one is kept)")


def panda_xml():
    return load_robot_description(RobotConfiguration.load("panda").description).xml


def other_solution(grasp):
    """Arm positions at a pre-grasp that are far from those which a search from home finds first."""
    panda = RobotConfiguration.load("panda")
    start = dict(zip(panda.arm_joints, panda.home.tolist(), strict=True)) | dict.fromkeys(panda.finger_joints, 0.02)
    T_root_tip = matrix_from_pose(grasp.pregrasp) @ np.linalg.inv(panda.T_tip_gripper)
    solutions = inverse_kinematics_solutions(
        KinematicModel(panda_xml()), T_root_tip, panda.tip_link, panda.arm_joints, start, 12, np.random.default_rng(0)
    )
    rows = [[result.positions[name] for name in panda.arm_joints] for result in solutions]
    # The elbow leans to a side, and nothing is turned far.
    return sorted(rows[1:], key=lambda row: np.abs(np.array(row) - panda.home).max())[0]


@pytest.mark.parametrize("own", [True, False])
def test_known_positions_of_the_pregrasp_are_gone_to_if_they_are_this_robots(graph, quick_panda, own):
    cell = QuickCell(graph, quick_panda, autostart=True)
    cell.wait_for_report("may move")
    cell.make_known(quicker(panda_xml()))
    grasp = top_grasp()
    positions = other_solution(grasp)
    # 0.05 rad off: a robot of the same names that was calibrated differently.
    grasp.pregrasp_positions = positions if own else [value + 0.05 for value in positions]
    goal = goal_for(grasp)
    goal.grasps.arm_joints = list(RobotConfiguration.load("panda").arm_joints)
    _, _, result = cell.execute(goal)
    assert result.success, result.message
    # To the pre-grasp, and from there.
    _, approach, *_ = cell.robot.begins
    assert bool(np.abs(approach - positions).max() < 0.15) is own


def test_a_driver_that_describes_another_robot_is_not_commanded(graph, quick_panda):
    cell = QuickCell(graph, quick_panda, autostart=True)
    cell.wait_for_report("may move")
    publisher = graph.publisher(interfaces.ROBOT_DESCRIPTION)
    renamed = panda_xml().replace('"panda_hand"', '"other_hand"')
    publisher.publish(String(data=renamed))
    graph.wait_until(lambda: not cell.execute(goal_for(top_grasp()))[0], what="the refusal of the goal")
    cell.process.wait_for_line("goal refused: robot_description does not fit the robot's file: ")
    assert any("panda_hand" in line for line in cell.process.lines)
    assert cell.change_state(Transition.TRANSITION_DEACTIVATE)
    assert not cell.change_state(Transition.TRANSITION_ACTIVATE)
    cell.wait_for_report("not activated: robot panda: ")
    moved = cell.robot.trajectories
    publisher.publish(String(data=quicker(panda_xml())))
    graph.wait_until(lambda: cell.change_state(Transition.TRANSITION_ACTIVATE), what="the activation")
    assert cell.robot.trajectories == moved
    assert cell.execute(goal_for(top_grasp()))[2].success


def test_a_refusal_to_attach_is_said_and_the_pick_goes_on(graph, quick_panda):
    FakeSpheres(graph, refuse=True)
    cell = QuickCell(graph, quick_panda, autostart=True)
    cell.wait_for_report("may move")
    _, _, result = cell.execute(goal_for(top_grasp()))
    assert result.success, result.message
    assert "no room" in result.message


def test_what_cannot_be_done_is_named_and_nothing_moves(cell):
    far = SegmentedObject(header=header("world"))
    no_table = TablePlane()
    broken = top_grasp()
    broken.pose.orientation.w = broken.pose.orientation.x = 0.0
    for goal, stage, words in (
        (goal_for(), "request", ["candidates", "at least one"]),
        (goal_for(top_grasp(frame="camera")), "request", ["camera", "world"]),
        (goal_for(broken), "request", ["quat"]),
        (goal_for(top_grasp(), lift_height=float("nan")), "request", ["lift_height"]),
        (goal_for(top_grasp(x=1.4), object=far, table=no_table), "plan", ["none of 1 grasps can be reached"]),
    ):
        accepted, status, result = cell.execute(goal)
        assert accepted
        assert status == GoalStatus.STATUS_ABORTED
        assert not result.success
        assert result.failed_stage == stage, result.message
        assert result.grasp_index == -1
        for word in words:
            assert word in result.message
    assert cell.robot.trajectories == 0
    assert cell.robot.gripper_commands == []
    # The first grasp that can be reached is taken: it is as good as before.
    handle = cell.graph.start_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp(z=0.5), top_grasp()))
    assert handle.accepted
    cell.graph.wait_until(lambda: cell.robot.moving, what="the first motion")
    assert cell.execute(goal_for(top_grasp()))[0] is False, "a second goal while one is running"


def test_silence_of_the_robot_stops_it(graph, quick_panda):
    cell = QuickCell(graph, quick_panda, autostart=True, silence_timeout=0.5)
    cell.wait_for_report("may move")
    handle = cell.start_moving()
    cell.robot.silent = True
    status, result = graph.result(handle)
    assert status == GoalStatus.STATUS_ABORTED
    assert "joint state" in result.message
    assert result.failed_stage == PickStage.PREGRASP.value
    graph.wait_until(lambda: cell.robot.stops, what="the empty trajectory")
    assert not cell.robot.moving


def test_a_cancelled_grasp_stops_the_robot(cell):
    handle = cell.start_moving()
    cancelled = handle.cancel_goal_async()
    cell.graph.wait_until(cancelled.done, what="the answer to cancelling")
    status, result = cell.graph.result(handle)
    assert status == GoalStatus.STATUS_CANCELED
    assert "cancelled by the client" in result.message
    cell.graph.wait_until(lambda: cell.robot.stops, what="the empty trajectory")
    assert not cell.robot.moving
    assert cell.state() == State.PRIMARY_STATE_ACTIVE


def test_deactivation_stops_the_robot(cell):
    handle = cell.start_moving()
    assert cell.change_state(Transition.TRANSITION_DEACTIVATE)
    status, result = cell.graph.result(handle)
    assert status == GoalStatus.STATUS_ABORTED
    assert "deactivated" in result.message
    cell.graph.wait_until(lambda: cell.robot.stops, what="the empty trajectory")
    assert not cell.robot.moving
    assert cell.robot.trajectories == 1
    # And it can be taken up again.
    cell.robot.scale = 100.0
    assert cell.change_state(Transition.TRANSITION_ACTIVATE)
    assert cell.execute(goal_for(top_grasp()))[2].success


@pytest.mark.slow
def test_the_next_grasp_is_tried_after_closing_on_nothing(cell):
    seen = []

    def on_feedback(message):
        seen.append((message.feedback.attempt, message.feedback.stage))
        cell.robot.object_width = BLOCK[1] if message.feedback.attempt == 2 else 0.0

    cell.robot.object_width = 0.0
    _, status, result = cell.execute(goal_for(top_grasp(), top_grasp(x=0.502), top_grasp(x=0.53)), feedback=on_feedback)
    assert result.success, result.message
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert result.attempts == 2
    assert list(result.attempt_modes) == ["closed_on_nothing", "success"]
    assert result.grasp_index == 2
    cell.graph.wait_until(lambda: (2, "verify") in seen, what="the last feedback")
    assert [stage for attempt, stage in seen if attempt == 1][-2:] == ["release", "retreat"]
    assert (2, "plan") in seen
    assert seen[-1] == (2, "verify")
    assert list(result.stages).count("approach") == 1
    cell.graph.wait_until(lambda: cell.counts().get("picks") == "1", what="the counts")
    counts = cell.counts()
    assert (counts["picks: success"], counts["re-grasps"]) == ("1", "1")
    assert (counts["attempts: closed_on_nothing"], counts["attempts: success"]) == ("1", "1")


def test_a_cancelled_retreat_stops_the_robot(cell):
    cell.robot.object_width = 0.0
    handle = cell.graph.start_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp()))
    # One stop at the failed attempt; what moves after it is the retreat.
    cell.graph.wait_until(lambda: cell.robot.stops == 1 and cell.robot.moving, what="the retreat")
    # It is held up, or its end might come before the cancellation does.
    cell.robot.scale = 0.0
    cancelled = handle.cancel_goal_async()
    cell.graph.wait_until(cancelled.done, what="the answer to cancelling")
    status, result = cell.graph.result(handle)
    assert status == GoalStatus.STATUS_CANCELED
    assert result.failed_stage == PickStage.PROBE.value
    assert result.outcome == "misgrasp"
    assert "then in retreat: cancelled" in result.message
    # One at the failed attempt, one now; they may arrive after the result.
    cell.graph.wait_until(lambda: cell.robot.stops == 2, what="the empty trajectory")
    assert not cell.robot.moving


def test_an_object_that_moved_meanwhile_is_not_approached(cell):
    objects = cell.graph.publisher(interfaces.OBJECTS)
    stages = []
    cloud = object_cloud(BLOCK)
    moved = type(cloud)(cloud.points + np.array([0.03, 0.0, 0.0]), cloud.normals, frame="world")

    def on_feedback(message):
        stages.append(message.feedback.stage)
        if stages[-1] == PickStage.PREGRASP.value:
            stamp = cell.graph.node.get_clock().now().nanoseconds * 1e-9
            objects.publish(message_from_objects([moved], 0, header("world", stamp)))

    _, _, result = cell.execute(goal_for(top_grasp()), feedback=on_feedback)
    assert not result.success
    assert result.failure_mode == "object_moved"
    assert result.outcome == "not_executed"
    assert PickStage.PROBE.value not in stages


class FakeEyes:
    """Perception and planning, unless somebody else plans: see the block each time, and propose the same grasps."""

    def __init__(self, graph, grasps, plans=True):
        self.looks = self.plans = 0
        self._grasps, self.on_plan = grasps, lambda plan: None
        graph.node.create_service(interfaces.SEGMENT.type, interfaces.SEGMENT.name, self._on_segment)
        if plans:
            self._server = ActionServer(graph.node, PlanGrasp, interfaces.PLAN_GRASP.name, self._on_plan)

    def _on_segment(self, request, response):
        self.looks, self.request = self.looks + 1, request
        response.success = True
        response.objects = message_from_objects([object_cloud(BLOCK)], 0, header("world"))
        response.table = goal_for().table
        return response

    def _on_plan(self, goal):
        self.plans += 1
        goal.succeed()
        plan = PlanGrasp.Result(success=True, grasps=goal_for(*self._grasps).grasps)
        self.on_plan(plan)
        return plan


@pytest.mark.slow
@pytest.mark.parametrize("regrasps", [1, 0])
def test_a_pick_looks_and_plans_again_after_a_failed_attempt(graph, quick_panda, regrasps):
    eyes = FakeEyes(graph, [top_grasp(), top_grasp(x=0.53)])
    cell = QuickCell(graph, quick_panda, autostart=True, regrasps=regrasps)
    cell.wait_for_report("may move")
    stages = []

    def on_feedback(message):
        stages.append((message.feedback.attempt, message.feedback.stage))
        cell.robot.object_width = BLOCK[1] if message.feedback.attempt == 2 else 0.0

    cell.robot.object_width = 0.0
    accepted, _, result = graph.send_goal(interfaces.PICK, Pick.Goal(lift_height=0.1), feedback=on_feedback)
    assert accepted
    assert result.success is (regrasps == 1), result.message
    assert (eyes.looks, eyes.plans) == (1 + regrasps, 1 + regrasps)
    assert list(result.attempt_modes) == ["closed_on_nothing", "success"][: 1 + regrasps]
    if regrasps:
        graph.wait_until(lambda: (2, "verify") in stages, what="the last feedback")
        assert [stage for attempt, stage in stages if attempt == 2][:3] == ["segment", "plan_grasp", "plan"]
        # Not the one that failed.
        assert result.grasp.pose.position.x == pytest.approx(0.53)
    else:
        assert result.failed_stage == PickStage.PROBE.value
        assert result.outcome == "misgrasp"


class FakePushing:
    """contact_planning and a planner that finds no grasp before the block is where it is to be pushed."""

    def __init__(self, graph, eyes, stage, success=True):
        self.asked, self.ended = [], []
        self._eyes, self._stage, self._success = eyes, stage, success
        eyes.on_plan = self._on_plan
        self._server = interfaces.CONTACT_PUSH.take(graph.node, self._on_push)

    def _on_plan(self, plan):
        if not (self.ended and self._success):
            plan.success, plan.grasps.grasps, plan.grasps.message = False, [], "no grasp"
            plan.grasps.rejected_stages, plan.grasps.rejected_counts = ["thin", self._stage], [0, 7]

    def _on_push(self, goal):
        self.asked.append(goal.request)
        goal.execute(self._end)

    def _end(self, goal):
        self.ended.append(goal)
        goal.succeed()
        return Push.Result(success=True)


@pytest.mark.parametrize(
    ("stage", "push_to", "success"),
    [("too wide", (0.5, 0.2), True), ("unreachable", (0.4, 0.0), True), ("too wide", (0.5, 0.2), False)],
)
def test_what_has_no_grasp_is_pushed_once_to_where_it_may_have_one(graph, quick_panda, stage, push_to, success):
    eyes = FakeEyes(graph, [top_grasp()])
    pushing = FakePushing(graph, eyes, stage, success)
    cell = QuickCell(graph, quick_panda, autostart=True, push_to=list(push_to))
    cell.wait_for_report("may move")
    cell.robot.object_width = BLOCK[1]
    _, _, result = graph.send_goal(interfaces.PICK, Pick.Goal(lift_height=0.1))
    assert result.success is success, result.message
    assert list(result.stages)[:3] == ["segment", "plan_grasp", "contact_push"]
    (asked,) = pushing.asked
    way = np.array(push_to) - [0.5, 0.0]
    np.testing.assert_allclose([asked.direction.x, asked.direction.y], way, atol=0.003)
    assert asked.distance == pytest.approx(np.linalg.norm(way), abs=0.003)
    assert asked.object.cloud.data and asked.table.found
    assert (eyes.looks, eyes.plans) == (2, 2)
    # Looked for by its name.
    assert (eyes.request.rule, eyes.request.point.header.frame_id) == (eyes.request.RULE_NEAREST, "object_0")
    if not success:
        assert result.failed_stage == "plan_grasp"
        assert "pushed to" in result.message


@pytest.mark.parametrize(("stage", "push_to"), [("too wide", ()), ("too wide", (0.5, 0.01)), ("table", (0.5, 0.2))])
def test_nothing_is_pushed_that_was_not_asked_for_is_there_or_would_not_gain(graph, quick_panda, stage, push_to):
    eyes = FakeEyes(graph, [top_grasp()])
    pushing = FakePushing(graph, eyes, stage)
    cell = QuickCell(graph, quick_panda, autostart=True, **({"push_to": list(push_to)} if push_to else {}))
    cell.wait_for_report("may move")
    _, _, result = graph.send_goal(interfaces.PICK, Pick.Goal(lift_height=0.1))
    assert (result.success, result.failed_stage, result.message) == (False, "plan_grasp", "no grasp")
    assert pushing.asked == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_the_node_stops_the_robot(cell, number):
    cell.start_moving()
    assert cell.process.stop(number) == 0
    cell.graph.wait_until(lambda: cell.robot.stops, what="the empty trajectory")
    assert not cell.robot.moving


def test_a_pick_without_its_helpers_ends_with_their_names(graph, quick_panda):
    cell = QuickCell(graph, quick_panda, autostart=True, request_timeout=1.0)
    cell.wait_for_report("may move")
    accepted, status, result = graph.send_goal(interfaces.PICK, Pick.Goal())
    assert accepted
    assert status == GoalStatus.STATUS_ABORTED
    assert result.failed_stage == "segment"
    assert "is scene_perception running?" in result.message
    # Whoever watches is told what is waited for.
    assert graph.wait_until(lambda: cell.job_states, what="the state of the job")[0].message == "segment"
    # A node that is there and never answers: it is not spun.
    deaf = rclpy.create_node("deaf_perception")
    deaf.create_service(interfaces.SEGMENT.type, interfaces.SEGMENT.name, lambda _request, response: response)
    try:

        def unanswered():
            _, _, result = graph.send_goal(interfaces.PICK, Pick.Goal())
            assert result.failed_stage == "segment"
            return "no answer within 1 s" in result.message

        graph.wait_until(unanswered, what="the end of the wait for an answer")
    finally:
        deaf.destroy_node()
    assert cell.robot.trajectories == 0


def test_the_arm_does_not_move_for_a_client_that_missed_the_answer(cell):
    """Of many goals at once one is accepted; among as many refusals its answer is lost."""
    graph = cell.graph
    many = [goal_for(top_grasp())] * 50
    deaf = rclpy.create_node("deaf")
    try:
        client = interfaces.EXECUTE_GRASP.call(deaf)
        graph.wait_until(client.server_is_ready, what="the action")
        # At once for the node, which finds the last ten of them: one by one they may come slower than the arm is moved.
        with cell.process.paused():
            for goal in many:
                client.send_goal_async(goal)
        cell.wait_for_report("does not know that it was accepted")
        assert cell.robot.trajectories == 0
        client.destroy()
    finally:
        deaf.destroy_node()
    # One that listens is served, when all the others have been refused.
    handles = []

    def accepted():
        handles.append(graph.start_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp())))
        return handles[-1].accepted

    graph.wait_until(accepted, what="an accepted goal")
    _, result = graph.result(handles[-1])
    assert result.success, result.message


def test_a_client_that_asks_for_no_result_is_served(cell):
    silent = rclpy.create_node("silent")
    try:
        client = interfaces.EXECUTE_GRASP.call(silent)
        cell.graph.wait_until(client.server_is_ready, what="the action")
        client.send_goal_async(goal_for(top_grasp()))
        cell.wait_for_report("picked")
        client.destroy()
    finally:
        silent.destroy_node()
    assert cell.robot.trajectories > 0


def lift(cell):
    _, _, result = cell.execute(goal_for(top_grasp()))
    assert result.success, result.message


def kept(ros_environment):
    return list((Path(ros_environment["MORPHIT_STATE"]) / "held").glob("*.json"))


def test_a_lifted_object_is_put_down_where_it_was(cell, ros_environment):
    lift(cell)
    assert len(kept(ros_environment)) == 1
    seen = []
    _, status, result = cell.graph.send_goal(
        interfaces.PLACE, Place.Goal(height=0.05), feedback=lambda message: seen.append(message.feedback.stage)
    )
    assert result.success, result.message
    assert (status, result.failure_mode) == (GoalStatus.STATUS_SUCCEEDED, "success")
    cell.graph.wait_until(lambda: len(seen) >= len(result.stages), what="the feedback of all stages")
    assert seen == list(result.stages) == ["check", "transfer", "set_down", "release", "retreat"]
    assert not result.holding
    # Open as before the grasp, back where the approach began, nothing held any more.
    assert cell.robot.gripper_commands[-1][0] == pytest.approx(0.07)
    assert tip_height(cell.robot) == pytest.approx(0.19, abs=0.005)
    assert not kept(ros_environment)
    _, _, again = cell.graph.send_goal(interfaces.PLACE, Place.Goal())
    assert (again.success, again.failed_stage) == (False, "request")
    assert "nothing is known to be held" in again.message


def test_what_stays_on_the_hand_after_it_has_let_go_is_told_and_kept(graph, quick_panda):
    """It hangs on a finger by its handle: the place fails, nothing is picked over it until it is released."""
    panda = RobotConfiguration.load("panda")
    scale = effort_scale(KinematicModel(load_robot_description(panda.description)), panda)
    spheres = FakeSpheres(graph)
    # Long enough for readings of a robot that a busy machine lets speak seldom.
    patient = {"weigh__source": "efforts", "weigh__tare_time": 1.0, "hold_time": 1.0}
    cell = QuickCell(graph, quick_panda, autostart=True, **patient)
    robot, hangs = cell.robot, False

    def feel(message):
        carries = hangs or (robot.gripper_commands and robot.gripper_commands[-1][0] < BLOCK[1])
        pull = scale._matrix(dict(zip(panda.arm_joints, robot.arm.tolist(), strict=True)))[:, 0]
        message.effort = [*(0.3 * pull if carries else np.zeros(7)).tolist(), 40.0, 40.0]

    robot.spoil = feel
    cell.wait_for_report("may move")
    cell.make_known(quicker(panda_xml()))
    _, _, lifted = cell.execute(goal_for(top_grasp()))
    assert lifted.success, lifted.message
    assert lifted.mass == pytest.approx(0.3, abs=0.01)
    hangs = True
    _, status, result = graph.send_goal(interfaces.PLACE, Place.Goal(height=0.05))
    assert (status, result.success, result.failed_stage) == (GoalStatus.STATUS_ABORTED, False, "retreat")
    assert result.failure_mode == "not_empty"
    assert "not empty: it still carries 0.300 ± " in result.message and "kg of the 0.300 ± " in result.message
    assert result.holding
    graph.wait_until(lambda: spheres.kinds()[-1] == "attach", what="the held object in the sphere model")
    assert spheres.kinds().count("attach") == 2
    cell.wait_for_report("failed in retreat: the hand that has let go is not empty")
    _, _, refused = cell.execute(goal_for(top_grasp()))
    assert (refused.success, refused.failed_stage) == (False, "request")
    _, _, released = graph.send_goal(interfaces.RELEASE, Release.Goal())
    assert released.success, released.message
    assert not released.holding
    graph.wait_until(lambda: spheres.kinds()[-1] == "detach", what="letting go")


def region(x, y, side):
    message = Place.Goal(region_size=[side, side])
    message.region.header.frame_id = "world"
    message.region.pose.position.x, message.region.pose.position.y = x, y
    message.region.pose.orientation.w = 1.0
    return message


def test_a_lifted_object_is_put_into_a_region_or_kept(cell, ros_environment):
    lift(cell)
    trajectories = cell.robot.trajectories
    _, _, refused = cell.graph.send_goal(interfaces.PLACE, region(0.5, -0.2, 0.03))
    assert (refused.success, refused.failed_stage, refused.holding) == (False, "request", True)
    assert "region_size: got 30 × 30 mm" in refused.message
    both = region(0.5, -0.2, 0.2)
    both.pose = both.region
    _, _, refused = cell.graph.send_goal(interfaces.PLACE, both)
    assert "one of them" in refused.message
    _, _, far = cell.graph.send_goal(interfaces.PLACE, region(5.0, 0.0, 0.2))
    assert (far.success, far.failed_stage, far.holding) == (False, "transfer", True)
    assert cell.robot.trajectories == trajectories
    _, _, result = cell.graph.send_goal(interfaces.PLACE, region(0.5, -0.2, 0.2))
    assert result.success, result.message
    assert not result.holding
    # It let go above the middle, and retreated along the way that it came.
    model = KinematicModel(load_robot_description(RobotConfiguration.load("panda").description))
    panda = RobotConfiguration.load("panda")
    joints = dict(zip(panda.arm_joints, cell.robot.arm.tolist(), strict=True))
    tip = panda.gripper_pose(model, joints)[:3, 3]
    np.testing.assert_allclose(tip[:2], [0.5, -0.2], atol=0.05)
    assert not kept(ros_environment)


def push_goal(**fields):
    base = goal_for()
    return Push.Goal(**{"object": base.object, "table": base.table, "distance": 0.06, "height": 0.08, **fields})


@cache
def panda_model():
    panda = RobotConfiguration.load("panda")
    return panda, KinematicModel(load_robot_description(panda.description))


def tip_place(cell, arm=None):
    """Of the gripper frame, where the arm is or at its positions."""
    panda, model = panda_model()
    positions = cell.robot.arm if arm is None else arm
    return panda.gripper_pose(model, dict(zip(panda.arm_joints, positions.tolist(), strict=True)))[:3, 3]


def test_a_block_is_pushed_in_the_direction_asked_for(cell):
    cell.robot.object_width = 0.0
    seen = []
    goal = push_goal(direction=Vector3(y=2.0))
    _, status, result = cell.graph.send_goal(
        interfaces.PUSH, goal, feedback=lambda message: seen.append(message.feedback.stage)
    )
    assert result.success and status == GoalStatus.STATUS_SUCCEEDED, result.message
    cell.graph.wait_until(lambda: len(seen) >= len(result.stages), what="the feedback of all stages")
    assert list(result.stages) == seen == ["check", "close", "transfer", "lower", "push", "retreat"]
    assert [aperture for aperture, _ in cell.robot.gripper_commands] == [0.0]
    # From 20 mm beside it, through where it was.
    _, _, begin, end = (tip_place(cell, arm) for arm in cell.robot.begins)
    assert end[1] - begin[1] == pytest.approx(0.08, abs=0.01) and abs(end[0] - 0.5) < 0.01
    assert begin[1] < -0.5 * BLOCK[1] < end[1]
    assert tip_place(cell)[2] - end[2] == pytest.approx(0.08, abs=0.01)


def test_a_push_that_something_fixed_resists_ends_there(cell):
    cell.robot.object_width = 0.0

    def is_free(arm):
        """Above what is fixed, or beside it: the push begins 45 mm from the middle of the block."""
        _, y, z = tip_place(cell, arm)
        return z > 0.15 or y < -0.02

    cell.robot.is_free = is_free
    goal = push_goal(direction=Vector3(y=1.0), distance=0.3)
    _, _, result = cell.graph.send_goal(interfaces.PUSH, goal)
    assert result.success, result.message
    assert cell.robot.stops == 1
    assert tip_place(cell)[1] < 0.0


def test_pushes_that_cannot_be_are_refused_by_name(cell):
    trajectories = cell.robot.trajectories
    for goal, words in (
        (push_goal(object=SegmentedObject()), "object"),
        (push_goal(table=TablePlane()), "table"),
        (push_goal(distance=-1.0), "distance"),
        (push_goal(direction=Vector3(z=1.0)), "direction"),
        (push_goal(height=5.0), "height"),
        (push_goal(distance=0.4, direction=Vector3(x=1.0)), "no way"),
    ):
        _, _, result = cell.graph.send_goal(interfaces.PUSH, goal)
        assert (result.success, result.failed_stage) == (False, "request")
        assert words in result.message
    assert cell.robot.trajectories == trajectories
    lift(cell)
    _, _, result = cell.graph.send_goal(interfaces.PUSH, push_goal())
    assert (result.success, result.failed_stage, result.holding) == (False, "request", True)
    assert "an empty hand" in result.message


def test_home_with_what_is_held_and_letting_go_there(cell, ros_environment):
    lift(cell)
    _, _, result = cell.graph.send_goal(interfaces.GO_HOME, GoHome.Goal())
    assert result.success, result.message
    assert result.holding
    np.testing.assert_allclose(cell.robot.arm, RobotConfiguration.load("panda").home, atol=0.01)
    trajectories = cell.robot.trajectories
    _, _, result = cell.graph.send_goal(interfaces.RELEASE, Release.Goal())
    assert result.success, result.message
    assert not result.holding
    assert cell.robot.trajectories == trajectories
    assert cell.robot.aperture == pytest.approx(0.07, abs=0.003)
    assert not kept(ros_environment)


def test_a_node_that_was_killed_in_mid_lift_knows_what_it_holds(graph, quick_panda, ros_environment):
    cell = QuickCell(graph, quick_panda, autostart=True, lift_speed=0.05)
    cell.wait_for_report("may move")
    stages = []
    handle = graph.start_goal(
        interfaces.EXECUTE_GRASP, goal_for(top_grasp()), feedback=lambda message: stages.append(message.feedback.stage)
    )
    assert handle.accepted
    graph.wait_until(lambda: "lift" in stages and cell.robot.moving, what="the lift")
    cell.process.stop(signal.SIGKILL)
    graph.wait_until(lambda: not cell.robot.moving, what="the end of the motion")
    assert len(kept(ros_environment)) == 1

    cell.start(quick_panda, autostart=True)
    cell.wait_for_words("no pick before it is let go of")
    graph.wait_until(lambda: cell.state() == State.PRIMARY_STATE_ACTIVE, what="the activation")
    trajectories, commands = cell.robot.trajectories, len(cell.robot.gripper_commands)
    for action, goal in ((interfaces.PICK, Pick.Goal()), (interfaces.EXECUTE_GRASP, goal_for(top_grasp()))):
        _, status, refused = graph.send_goal(action, goal)
        assert status == GoalStatus.STATUS_ABORTED
        assert "holding an object 50.0 mm wide" in refused.message
        assert "before another pick" in refused.message
    assert (cell.robot.trajectories, len(cell.robot.gripper_commands)) == (trajectories, commands)

    # It keeps it on its way up and home, and still knows how to put it down.
    _, _, result = graph.send_goal(interfaces.RECOVER, Recover.Goal(height=0.05))
    assert result.success, result.message
    assert result.holding
    assert "holding an object 50.0 mm wide" in result.message
    assert list(result.stages) == ["check", "retreat", "home"]
    assert len(cell.robot.gripper_commands) == commands
    np.testing.assert_allclose(cell.robot.arm, RobotConfiguration.load("panda").home, atol=0.01)
    _, _, result = graph.send_goal(interfaces.PLACE, Place.Goal())
    assert result.success, result.message
    assert not kept(ros_environment)
    lift(cell)


def test_what_the_fingers_do_not_confirm_is_not_held(graph, quick_panda, ros_environment):
    cell = QuickCell(graph, quick_panda, autostart=True)
    cell.wait_for_report("may move")
    lift(cell)
    cell.process.stop(signal.SIGKILL)
    # Somebody has taken it out of the hand.
    cell.robot.object_width = 0.0
    cell.graph.wait_until(lambda: cell.robot.aperture < 0.0301, what="fingers that close further")
    cell.start(quick_panda, autostart=True)
    cell.wait_for_words("not held any more: the fingers are at 30.0 mm, with it they were at 50.0 mm")
    assert not kept(ros_environment)


def test_a_recovery_that_cannot_begin_says_why(cell):
    lift(cell)
    arm = cell.robot.arm.copy()
    # As a person would leave it: folded into itself.
    cell.move_by_hand([0.0, 1.6, 0.0, -3.0, 0.0, 0.0, 0.8])
    trajectories = cell.robot.trajectories
    _, status, result = cell.graph.send_goal(interfaces.RECOVER, Recover.Goal())
    assert status == GoalStatus.STATUS_ABORTED
    assert result.failed_stage == "check"
    assert "the arm cannot move from where it is: no way: the start is in collision" in result.message
    assert result.holding
    assert cell.robot.trajectories == trajectories
    cell.move_by_hand(arm)
    _, _, result = cell.graph.send_goal(interfaces.RECOVER, Recover.Goal(open=True))
    assert result.success, result.message
    assert list(result.stages) == ["check", "release", "retreat", "home"]
    assert not result.holding


def test_a_cancelled_way_home_stops_the_arm(cell):
    lift(cell)
    handle = cell.graph.start_goal(interfaces.GO_HOME, GoHome.Goal())
    cell.graph.wait_until(lambda: cell.robot.moving, what="the way home")
    cell.robot.scale = 0.0
    cancelled = handle.cancel_goal_async()
    cell.graph.wait_until(cancelled.done, what="the answer to cancelling")
    _, result = cell.graph.result(handle)
    assert (result.failed_stage, result.message) == ("home", "cancelled: cancelled by the client")
    assert result.holding
    # The stop is a topic, and may be heard after the result.
    cell.graph.wait_until(lambda: cell.robot.stops == 1, what="the stop")
