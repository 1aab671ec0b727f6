"""grasp_planning as a process: an object cloud in, ranked grasps out, or why there is none."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Pose
from neural_box import neural_object
from scenes import BOX_SIZE, object_cloud
from std_msgs.msg import String

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import DistanceShape, WorldObject, WorldObjectArray
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping.completion import AutoCompletion
from morphit_ros.motion.reachability import Reachability
from morphit_ros.perception.scene import ObjectEvidence
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, matrix_from_pose, pose_from_matrix
from morphit_ros.ros.grasping.known_object import KnownMassConfig, KnownMasses, weighed_completion
from morphit_ros.ros.scene.messages import TablePatch, message_from_object, message_from_objects, message_from_table
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spherized_urdf

pytestmark = pytest.mark.ros


def goal_for(cloud, table_height=0.0, **options):
    table = np.eye(4)
    table[:3, 3] = [0.5, 0.0, table_height]
    return PlanGrasp.Goal(
        object=message_from_object(cloud, 0, header("world")), use_table=True,
        table=message_from_table(TablePatch(table, np.array([0.6, 0.6])), 0.001, header("world")), **options,
    )  # fmt: skip


@pytest.fixture
def node(graph):
    return graph.start("grasp_planning")


def test_a_box_is_grasped_across_a_side_that_fits(graph, node):
    stages, latched = [], graph.latest(interfaces.GRASPS)
    markers = graph.latest(interfaces.GRASP_MARKERS)
    accepted, status, result = graph.send_goal(
        interfaces.PLAN_GRASP,
        goal_for(object_cloud(), max_grasps=5),
        feedback=lambda m: stages.append(m.feedback.stage),
    )
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert result.success, result.grasps.message
    assert 1 <= len(result.grasps.grasps) <= 5
    graph.wait_until(lambda: stages, what="feedback")
    best = result.grasps.grasps[0]
    assert best.header.frame_id == "world"
    # Only the 60 mm side fits an opening of 80 mm, so the fingers close along x.
    assert best.aperture == pytest.approx(BOX_SIZE[0], abs=0.004)
    pose = matrix_from_pose(best.pose)
    assert abs(pose[0, 1]) > 0.98
    retreat = pose[:3, 3] - matrix_from_pose(best.pregrasp)[:3, 3]
    np.testing.assert_allclose(retreat / np.linalg.norm(retreat), pose[:3, 2], atol=1e-6)
    assert sorted((g.score for g in result.grasps.grasps), reverse=True) == [g.score for g in result.grasps.grasps]
    graph.wait_until(lambda: latched and markers, what="the latched grasps and their markers")
    assert len(latched[-1].grasps) == len(result.grasps.grasps)


def test_no_grasp_says_which_stage_emptied_it(graph, node):
    accepted, status, result = graph.send_goal(
        interfaces.PLAN_GRASP, goal_for(object_cloud(np.array([0.12, 0.13, 0.14])))
    )
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert not result.success
    assert "wide" in result.grasps.message
    assert sum(result.grasps.rejected_counts) > 0
    assert len(result.grasps.rejected_stages) == len(result.grasps.rejected_counts)


@pytest.mark.parametrize(
    ("cloud", "words"),
    [
        (PointCloud(np.zeros((0, 3)), np.zeros((0, 3)), frame="world"), "object"),
        (PointCloud(np.full((300, 3), np.nan), np.full((300, 3), np.nan), frame="world"), "point"),
        (PointCloud(object_cloud().points * 1000.0, object_cloud().normals, frame="world"), "m"),
    ],
)
def test_unusable_clouds_are_refused_by_name(graph, node, cloud, words):
    accepted, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal_for(cloud))
    assert accepted
    assert status == GoalStatus.STATUS_ABORTED
    assert not result.success
    assert words in result.grasps.message
    # The node is as good as before.
    assert graph.send_goal(interfaces.PLAN_GRASP, goal_for(object_cloud()))[2].success


def test_what_is_known_to_stand_there_is_no_place_for_fingers(graph):
    graph.start("grasp_planning", robot="panda", base_xyz="[-0.1, 0.0, 0.0]")
    world = graph.publisher(interfaces.WORLD_OBJECTS)
    assert graph.send_goal(interfaces.PLAN_GRASP, goal_for(object_cloud()))[2].success
    middle = 0.5 * (object_cloud().points.min(axis=0) + object_cloud().points.max(axis=0))
    walls = []
    for side in (-1.0, 1.0):
        # Beside both faces that the hand can hold: too near for a finger.
        place = make_transform(translation=[middle[0] + side * (0.5 * BOX_SIZE[0] + 0.008), middle[1], 0.15])
        shape = DistanceShape(type=DistanceShape.BOX, dimensions=[0.004, 0.4, 0.3], pose=Pose())
        walls.append(WorldObject(id=f"wall {side:g}", pose=pose_from_matrix(place), shapes=[shape]))
    world.publish(WorldObjectArray(header=header("world"), objects=walls))
    results = []

    def refused():
        results.append(graph.send_goal(interfaces.PLAN_GRASP, goal_for(object_cloud()))[2])
        return not results[-1].success

    graph.wait_until(refused, what="a plan that knows the walls")
    assert "obstacles" in results[-1].grasps.message


def test_a_table_that_is_wanted_must_be_known(graph, node):
    goal = PlanGrasp.Goal(object=message_from_object(object_cloud(), 0, header("world")), use_table=True)
    _, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal)
    assert status == GoalStatus.STATUS_ABORTED
    assert "use_table" in result.grasps.message


def test_old_objects_are_not_planned_on(graph, node):
    # Stamped in 1970: what is latched may be from yesterday.
    graph.publisher(interfaces.OBJECTS).publish(message_from_objects([object_cloud()], 0, header("world", 1.0)))

    def refused():
        _, status, result = graph.send_goal(interfaces.PLAN_GRASP, PlanGrasp.Goal())
        assert status == GoalStatus.STATUS_ABORTED
        return "old" in result.grasps.message and "max_age" in result.grasps.message

    graph.wait_until(refused, what="the answer that the objects are old")


def test_continuous_planning_takes_objects_with_their_own_table(graph):
    graph.start("grasp_planning", continuous=True)
    plans = graph.latest(interfaces.GRASPS)
    objects, tables = graph.publisher(interfaces.OBJECTS), graph.publisher(interfaces.TABLE)

    def table(height, stamp):
        pose = np.eye(4)
        pose[:3, 3] = [0.5, 0.0, height]
        return message_from_table(TablePatch(pose, np.array([0.6, 0.6])), 0.001, header("world", stamp))

    objects.publish(message_from_objects([object_cloud()], 0, header("world", 1.0)))
    tables.publish(table(0.0, 1.0))
    graph.wait_until(lambda: plans, what="grasps for the first cloud")
    assert plans[-1].grasps
    # The table comes first this time, and it is so high that nothing of the object can be reached beside it.
    tables.publish(table(0.2, 2.0))
    objects.publish(message_from_objects([object_cloud(seed=1)], 0, header("world", 2.0)))
    graph.wait_until(lambda: plans[-1].header.stamp.sec == 2, what="the answer to the second cloud")
    assert not plans[-1].grasps


@pytest.fixture(scope="module")
def spherized_panda(ros_environment):
    """Text of the Panda's description as a few spheres a link."""
    config = SphereFitConfig(count=8, iterations=30, rounds=1, interior_samples=400, surface_samples=400)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MORPHIT_CACHE", ros_environment["MORPHIT_CACHE"])
        description = load_robot_description(RobotConfiguration.load("panda").description)
        return spherized_urdf(description, fit_robot_spheres(description, config))


def plan(graph, goal, **options):
    _, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal, **options)
    assert status == GoalStatus.STATUS_SUCCEEDED, result.grasps.message
    return result.grasps


def test_grasps_out_of_reach_are_dropped_and_accounted_for(graph, spherized_panda):
    """A robot that stands 3 m away is asked as soon as its spheres are known, and not before."""
    graph.start("grasp_planning", robot="panda", base_xyz="[3.0, 0.0, 0.0]")
    goal = goal_for(object_cloud(), max_grasps=5)
    before = plan(graph, goal)
    assert before.grasps
    assert "unreachable" not in before.rejected_stages
    graph.publisher(interfaces.SPHERE_DESCRIPTION).publish(String(data=spherized_panda))
    answers = []

    def asked():
        answers.append(plan(graph, goal))
        return "unreachable" in answers[-1].rejected_stages

    graph.wait_until(asked, what="a plan that asks for reachability")
    assert not answers[-1].grasps
    assert dict(zip(answers[-1].rejected_stages, answers[-1].rejected_counts, strict=True))["unreachable"] > 0
    assert "'unreachable' removed the last" in answers[-1].message
    assert "out of the arm's reach: " in answers[-1].message


def test_reachable_grasps_come_the_way_round_that_the_robot_reaches(graph, spherized_panda):
    graph.start("grasp_planning", robot="panda", check_reachability="always")
    goal = goal_for(object_cloud(), max_grasps=5)
    _, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal)
    assert status == GoalStatus.STATUS_ABORTED
    assert interfaces.SPHERE_DESCRIPTION.name in result.grasps.message
    graph.publisher(interfaces.SPHERE_DESCRIPTION).publish(String(data=spherized_panda))

    def answered():
        return graph.send_goal(interfaces.PLAN_GRASP, goal)[2].success

    graph.wait_until(answered, what="grasps within reach")
    grasps = plan(graph, goal)
    assert "unreachable" in grasps.rejected_stages
    robot = RobotConfiguration.load("panda")
    srdf = resolve_uri(robot.semantic_description).read_text()
    reach = Reachability(robot, spherized_panda, srdf=srdf)
    reach.set_world(np.eye(4), TablePatch(np.eye(4), np.array([2.0, 2.0])), object_cloud().points)
    for grasp in grasps.grasps:
        answer = reach.check(
            matrix_from_pose(grasp.pose), matrix_from_pose(grasp.pregrasp), grasp.aperture, grasp.open_aperture
        )
        assert answer.reachable
        assert not answer.flipped
        # The arm is told where its pre-grasp is; from there the way is known to go on.
        model = KinematicModel(spherized_panda)
        fingers = dict.fromkeys(robot.finger_joints, 0.02)
        positions = dict(zip(grasps.arm_joints, grasp.pregrasp_positions, strict=True)) | fingers
        assert tuple(grasps.arm_joints) == robot.arm_joints
        T_base_gripper = model.link_pose(positions, robot.tip_link) @ robot.T_tip_gripper
        np.testing.assert_allclose(T_base_gripper, matrix_from_pose(grasp.pregrasp), atol=2e-3)


def test_other_objects_of_the_scene_are_kept_clear_of(graph, node):
    """The same box alone, and between two larger ones that leave no room for fingers beside it from anywhere."""
    box, wall = object_cloud(), object_cloud((0.06, 0.25, 0.25))
    beside = [
        PointCloud(wall.points + np.array([side * 0.075, 0.0, 0.0]), wall.normals, frame="world")
        for side in (-1.0, 1.0)
    ]
    objects = graph.publisher(interfaces.OBJECTS)

    def found(others, loose=None, send=False):
        stamp = graph.node.get_clock().now().nanoseconds * 1e-9
        scene = message_from_objects([box, *others], 0, header("world", stamp), obstacles=loose)
        goal = goal_for(box)
        goal.object = scene.objects[0]
        if send:
            goal.scene = scene
        else:
            objects.publish(scene)
        return bool(plan(graph, goal).grasps)

    assert found([])
    graph.wait_until(lambda: not found(beside), what="a plan that keeps clear of the other boxes")
    # The same from the goal itself, as objects and as points of no object.
    assert not found(beside, send=True)
    assert not found([], np.concatenate([cloud.points for cloud in beside]), send=True)
    assert found([], send=True)


def test_what_speaks_against_an_object_lowers_the_confidence_and_is_said(graph, node):
    goal = goal_for(object_cloud(), max_grasps=3)
    trusted = plan(graph, goal)
    assert "confidence" not in trusted.message
    evidence = ObjectEvidence(left_points=800, right_points=0, coverage=0.8, transparency=0.5)
    goal.object = message_from_object(object_cloud(), 0, header("world"), evidence)
    doubted = plan(graph, goal)
    for words in ("confidence of 0.20", "only the left camera", "50 %"):
        assert words in doubted.message
    for grasp, other in zip(doubted.grasps, trusted.grasps, strict=True):
        assert grasp.confidence == pytest.approx(0.2 * other.confidence)
    # A scene in another frame than the object is nobody's surroundings.
    goal.scene = message_from_objects([object_cloud()], 0, header("map"))
    _, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal)
    assert status == GoalStatus.STATUS_ABORTED
    assert "map" in result.grasps.message


def test_a_foreign_frame_and_a_missing_robot_are_refused(graph, spherized_panda):
    process = graph.start("grasp_planning", check_reachability="always")
    assert process.wait() == 2
    assert "robot" in process.output
    graph.start("grasp_planning", robot="panda", check_reachability="always", world_frame="map")
    graph.publisher(interfaces.SPHERE_DESCRIPTION).publish(String(data=spherized_panda))

    def refused():
        _, status, result = graph.send_goal(interfaces.PLAN_GRASP, goal_for(object_cloud()))
        assert status == GoalStatus.STATUS_ABORTED
        return "frame" in result.grasps.message and "map" in result.grasps.message

    graph.wait_until(refused, what="the answer that the frame is another")


@pytest.mark.parametrize(
    ("total", "mass"),
    [("given", 0.8), ("materials", 0.8), ("identified", 0.8), ("assumed", None), ("", None), ("guessed", None)],
)
def test_the_planner_gets_a_mass_only_if_somebody_vouches_for_it(total, mass):
    class Subscriber:
        def create_subscription(self, kind, name, callback, quality, callback_group):
            callback(neural_object(total=total))

    known = KnownMasses(Subscriber(), KnownMassConfig(use_neural_object=True))
    completion, _ = known.completion_for(object_cloud(), "world", AutoCompletion())
    assert completion.mass == mass
    assert completion.center_of_mass == pytest.approx([0.5, 0.03, BOX_SIZE[2] / 2.0])


@pytest.mark.parametrize("confidence", [0.9, 0.4])
def test_the_planner_gets_the_shape_of_what_was_seen_from_more_than_one_side(confidence):
    class Subscriber:
        def create_subscription(self, kind, name, callback, quality, callback_group):
            callback(neural_object(shift=0.004, confidence=confidence))

    known, guess = KnownMasses(Subscriber(), KnownMassConfig(use_neural_object=True)), AutoCompletion()
    completion, said = known.completion_for(object_cloud(), "world", guess)
    if confidence < 0.5:
        assert completion.shape is guess and "hidden sides guessed" in said
        return
    assert "hidden sides of it, too" in said
    np.testing.assert_allclose(completion.shape.points, object_cloud().points + np.array([0.004, 0.0, 0.0]), atol=1e-6)
    weighed, _ = weighed_completion(PlanGrasp.Goal(mass=0.5), completion.shape)
    assert weighed.shape is completion.shape and weighed.mass == 0.5


def test_a_known_object_gives_its_centre_of_mass_where_it_is_the_one_to_grasp(graph):
    graph.start("grasp_planning", use_neural_object=True)
    goal = goal_for(object_cloud(), max_grasps=1)
    assert "No neural_object yet" in plan(graph, goal).message
    objects = graph.publisher(interfaces.NEURAL_OBJECT)

    def answer_to(message, words):
        objects.publish(message)

        def answered():
            grasps = plan(graph, goal)
            return grasps if words in grasps.message else None

        return graph.wait_until(answered, what=f"a plan that says {words!r}")

    assert answer_to(neural_object(), "0.8 kg (given); hidden sides of it, too.").grasps
    assert answer_to(neural_object(total="assumed"), "its mass is only assumed and not used").grasps
    assert "of the points lie within 10 mm" in answer_to(neural_object(shift=0.05), "is not this one").message
    assert "it is in frame 'base'" in answer_to(neural_object(frame="base"), "frame 'base'").message
