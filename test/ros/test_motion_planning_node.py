"""motion_planning as a process: motions proven free in the world of the graph, and clear refusals."""

import re

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState

from morphit_interfaces.action import PlanMotion
from morphit_interfaces.msg import DistanceShape, LinkSpheres, Sphere, SphereModel, WorldObject, WorldObjectArray
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, matrix_from_pose, pose_from_matrix, trajectory_from_message

pytestmark = pytest.mark.ros
ROBOT = RobotConfiguration.load("panda")
HOME = ROBOT.home.tolist()
TURNED = [1.2, *HOME[1:]]


def shape(kind, *dimensions, x=0.0, y=0.0, z=0.0):
    made = DistanceShape(type=kind, dimensions=list(dimensions))
    made.pose.position.x, made.pose.position.y, made.pose.position.z = x, y, z
    return made


def post(name="post", x=0.28, y=0.22, radius=0.03, **named):
    return WorldObject(id=name, shapes=[shape(DistanceShape.CYLINDER, 1.2, radius, x=x, y=y, z=0.6)], **named)


@pytest.fixture(scope="module")
def kinematics():
    return KinematicModel(load_robot_description(ROBOT.description))


@pytest.fixture(scope="module")
def planner(shared_graph):
    # However busy the machine is: a plan that is found ends earlier.
    process = shared_graph.start("motion_planning", planning_time=60.0)
    yield process
    assert process.stop() == 0


def ask(graph, *, wait=240.0, feedback=None, **goal):
    return graph.send_goal(interfaces.PLAN_MOTION, PlanMotion.Goal(**goal), timeout=wait, feedback=feedback)[1:]


def clearance_of(kinematics, trajectory, center, radius):
    """Least distance [m] of the corners of the links' meshes from an upright cylinder."""
    corners = {
        link.name: np.concatenate([collision_mesh(each).vertices for each in link.collisions])
        for link in kinematics.description.links.values()
        if link.collisions
    }
    least = np.inf
    for row in trajectory.positions:
        state = dict.fromkeys(kinematics.joint_names, 0.0) | dict(zip(trajectory.joint_names, row, strict=True))
        for name, pose in kinematics.forward_kinematics(state).items():
            if name in corners:
                moved = corners[name] @ pose[:2, :3].T + pose[:2, 3]
                least = min(least, np.linalg.norm(moved - center, axis=1).min())
    return least - radius


def test_goes_around_what_is_in_the_way_and_proves_it(shared_graph, planner, kinematics):
    status, result = ask(
        shared_graph, start=HOME, joint_goals=TURNED, world=PlanMotion.Goal.WORLD_REPLACE, objects=[post()]
    )
    assert status == GoalStatus.STATUS_SUCCEEDED, result.message
    assert (result.status, result.certificate, result.goal) == ("found", "proven free", 0)
    trajectory = trajectory_from_message(result.trajectory)
    np.testing.assert_allclose(trajectory.positions[0], HOME, atol=1e-9)
    np.testing.assert_allclose(trajectory.positions[-1], TURNED, atol=1e-9)
    assert clearance_of(kinematics, trajectory, (0.28, 0.22), 0.03) > 0.0
    _, straight = ask(shared_graph, start=HOME, joint_goals=TURNED, world=PlanMotion.Goal.WORLD_REPLACE)
    assert straight.length < 0.95 * result.length
    _, alone = ask(shared_graph, start=HOME, joint_goals=TURNED)
    assert "world_objects: none has come" in alone.message
    assert "world_objects" not in straight.message
    velocities = np.abs(trajectory.velocities).max(axis=0)
    assert (velocities <= 0.5 * kinematics.limits(ROBOT.arm_joints)[2] + 1e-6).all()


@pytest.mark.parametrize(
    "kind, dimensions, vertices",
    [
        (DistanceShape.SUPEROVOID, [0.04, 0.04, 0.6, 0.5, 1.0], []),
        (DistanceShape.CONVEX_MESH, [], [(x, y, z) for x in (-0.03, 0.03) for y in (-0.03, 0.03) for z in (-0.6, 0.6)]),
    ],
)
def test_superovoids_and_meshes_are_in_the_way(shared_graph, planner, kinematics, kind, dimensions, vertices):
    from geometry_msgs.msg import Point

    made = shape(kind, *dimensions, x=0.28, y=0.22, z=0.6)
    made.vertices = [Point(x=x, y=y, z=z) for x, y, z in vertices]
    item = WorldObject(id="thing", shapes=[made])
    _, result = ask(shared_graph, start=HOME, joint_goals=TURNED, world=PlanMotion.Goal.WORLD_REPLACE, objects=[item])
    assert (result.status, result.certificate) == ("found", "proven free"), result.message
    assert clearance_of(kinematics, trajectory_from_message(result.trajectory), (0.28, 0.22), 0.03) > 0.0


def test_a_pose_of_the_gripper_from_the_measured_state_in_the_worlds_objects(shared_graph, planner, kinematics):
    states = shared_graph.publisher(interfaces.JOINT_STATES)
    world = shared_graph.publisher(interfaces.WORLD_OBJECTS)
    plans = shared_graph.latest(interfaces.MOTION_PLAN)
    world.publish(WorldObjectArray(header=header(ROBOT.base_link, 0.0), objects=[post()]))
    still = dict.fromkeys(kinematics.joint_names, 0.0)
    target = dict(zip(ROBOT.arm_joints, TURNED, strict=True))
    T_root_gripper = kinematics.link_pose(still | target, ROBOT.tip_link) @ ROBOT.T_tip_gripper
    goal = PoseStamped(header=header("world", 0.0), pose=pose_from_matrix(T_root_gripper))
    state = JointState(name=list(ROBOT.arm_joints), position=HOME)
    driver = shared_graph.node.create_timer(0.1, lambda: states.publish(state))

    def answered():
        _, result = ask(shared_graph, pose_goals=[goal])
        # A goal may overtake the world and the state that were published before it.
        return None if "nothing of" in result.message or "none has come" in result.message else result

    result = shared_graph.wait_until(answered, what="a joint state and a world to be known")
    shared_graph.node.destroy_timer(driver)
    assert (result.status, result.certificate) == ("found", "proven free"), result.message
    trajectory = trajectory_from_message(result.trajectory)
    np.testing.assert_allclose(trajectory.positions[0], HOME, atol=1e-9)
    end = still | dict(zip(trajectory.joint_names, trajectory.positions[-1], strict=True))
    reached = kinematics.link_pose(end, ROBOT.tip_link) @ ROBOT.T_tip_gripper
    np.testing.assert_allclose(reached, matrix_from_pose(goal.pose), atol=1e-4)
    assert clearance_of(kinematics, trajectory, (0.28, 0.22), 0.03) > 0.0
    shared_graph.wait_until(lambda: plans and plans[-1].success and len(plans[-1].way) > 10, what="a plan to show")
    assert len(plans[-1].clearance) == len(plans[-1].way)
    assert min(plans[-1].clearance) > 0.0
    world.publish(WorldObjectArray(header=header(ROBOT.base_link, 0.0)))


def test_a_start_and_a_goal_that_touch_are_named_with_a_free_place_near(shared_graph, planner):
    inside = post("wall", 0.3, 0.0)
    replace = PlanMotion.Goal.WORLD_REPLACE
    _, result = ask(shared_graph, start=HOME, joint_goals=TURNED, world=replace, objects=[inside])
    assert (result.success, result.status) == (False, "start touches")
    assert "wall" in result.touching
    assert result.depth > 0.01
    assert f"{1000.0 * result.depth:.1f} mm" in result.message
    free = list(result.free_configuration)
    _, again = ask(shared_graph, start=free, joint_goals=TURNED, world=replace, objects=[inside])
    assert again.status != "start touches"
    _, result = ask(shared_graph, start=TURNED, joint_goals=HOME, world=replace, objects=[inside])
    assert result.status == "goal touches"
    # The robot may be told that it may touch.
    links = list(load_robot_description(ROBOT.description).links)
    _, result = ask(
        shared_graph, start=HOME, joint_goals=TURNED, world=replace, objects=[inside],
        allowed_1=links, allowed_2=["wall"] * len(links),
    )  # fmt: skip
    assert result.success, result.message


def test_what_is_carried_is_kept_clear_too(shared_graph, planner):
    rod = WorldObject(
        id="rod", attached_to=ROBOT.tip_link, touch_links=list(ROBOT.touch_links),
        shapes=[shape(DistanceShape.CAPSULE, 0.5, 0.01, z=0.3)],
    )  # fmt: skip
    low = WorldObject(id="floor", shapes=[shape(DistanceShape.HALF_SPACE, z=0.1)])
    replace = PlanMotion.Goal.WORLD_REPLACE
    _, free = ask(shared_graph, start=HOME, joint_goals=TURNED, world=replace, objects=[low])
    assert free.success, free.message
    _, carrying = ask(shared_graph, start=HOME, joint_goals=TURNED, world=replace, objects=[low, rod])
    assert carrying.status == "start touches"
    assert set(carrying.touching) == {"rod", "floor"}


def test_held_objects_come_with_the_sphere_model(shared_graph, planner):
    models = shared_graph.publisher(interfaces.SPHERE_MODEL)
    long = [Sphere(radius=0.02) for _ in range(20)]
    for index, each in enumerate(long):
        each.center.z = 0.1 + 0.02 * index
    held = LinkSpheres(link_name=ROBOT.tip_link, object_id="stick", spheres=long)
    models.publish(SphereModel(content_hash="with a stick", links=[held]))
    low = WorldObject(id="floor", shapes=[shape(DistanceShape.HALF_SPACE, z=0.1)])

    def asked(words):
        _, result = ask(shared_graph, start=HOME, joint_goals=TURNED, objects=[low])
        return result if result.model_hash == words else None

    result = shared_graph.wait_until(lambda: asked("with a stick"), what="the model with the stick")
    assert "stick" in result.touching
    models.publish(SphereModel(content_hash="alone"))
    assert shared_graph.wait_until(lambda: asked("alone"), what="the model alone").success


@pytest.mark.parametrize(
    "goal, words",
    [
        ({}, "goals"),
        ({"start": HOME[:3], "joint_goals": TURNED}, "start: got 3 numbers"),
        ({"start": HOME, "joint_goals": TURNED[:4]}, "joint_goals: got 4 numbers"),
        ({"start": [np.nan, *HOME[1:]], "joint_goals": TURNED}, "finite"),
        ({"start": HOME, "joint_goals": [9.0, *HOME[1:]]}, "panda_joint1"),
        ({"joint_names": ["elbow"], "start": [0.0], "joint_goals": [0.1]}, "panda_joint1"),
        ({"start": HOME, "joint_goals": TURNED, "timeout": -1.0}, "timeout"),
        ({"start": HOME, "joint_goals": TURNED, "velocity_scaling": 2.0}, "velocity_scaling"),
        ({"start": HOME, "joint_goals": TURNED, "world": 7}, "WORLD_ADD"),
        ({"start": HOME, "joint_goals": TURNED, "allowed_1": ["panda_hand"]}, "as many of both"),
        ({"start": HOME, "pose_goals": [PoseStamped(header=header("moon", 0.0))]}, "moon"),
        ({"start": HOME, "pose_goals": [PoseStamped()], "link": "elbow"}, "elbow"),
        ({"start": HOME, "joint_goals": TURNED, "objects": [WorldObject(id="nothing")]}, "no shape"),
        ({"start": HOME, "joint_goals": TURNED, "objects": [post(attached_to="elbow")]}, "elbow"),
    ],
)
def test_bad_goals_are_refused_with_the_cause(shared_graph, planner, goal, words):
    goal.setdefault("start", HOME)
    status, result = ask(shared_graph, **goal)
    assert status == GoalStatus.STATUS_ABORTED
    assert result.status == "refused"
    assert words in result.message


def test_a_pose_out_of_reach_is_said_with_how_far(shared_graph, planner):
    far = PoseStamped()
    far.pose.position.x = 3.0
    _, result = ask(shared_graph, start=HOME, pose_goals=[far])
    assert result.status == "unreachable"
    assert "mm" in result.message


def test_a_cancelled_goal_ends_soon_and_the_next_is_planned(shared_graph, planner):
    seen = []
    goal = PlanMotion.Goal(
        start=HOME, joint_goals=TURNED, world=PlanMotion.Goal.WORLD_REPLACE, objects=[post()], improvement_time=60.0
    )
    handle = shared_graph.start_goal(interfaces.PLAN_MOTION, goal, feedback=lambda f: seen.append(f.feedback.stage))
    shared_graph.wait_until(lambda: "improvement" in seen, what="feedback")
    handle.cancel_goal_async()
    # What was found by then is not thrown away.
    status, result = shared_graph.result(handle, timeout=20.0)
    assert (status, result.certificate) == (GoalStatus.STATUS_SUCCEEDED, "proven free")
    _, result = ask(shared_graph, start=HOME, joint_goals=TURNED, world=PlanMotion.Goal.WORLD_REPLACE)
    assert result.success


def test_a_bad_world_is_refused_and_the_last_one_kept(shared_graph, planner):
    world = shared_graph.publisher(interfaces.WORLD_OBJECTS)
    diagnostics = shared_graph.latest(interfaces.DIAGNOSTICS)
    world.publish(WorldObjectArray(objects=[post(x=0.3, y=0.0)]))

    def status():
        _, result = ask(shared_graph, start=HOME, joint_goals=TURNED)
        return result.status

    shared_graph.wait_until(lambda: status() == "start touches", what="the post in the way")
    world.publish(WorldObjectArray(objects=[WorldObject(id="broken")]))

    def told():
        found = [s for m in diagnostics for s in m.status if "the last objects are kept" in s.message]
        return found or None

    shared_graph.wait_until(told, what="the refusal")
    assert status() == "start touches"
    world.publish(WorldObjectArray())
    shared_graph.wait_until(lambda: status() == "found", what="the empty world")


def test_an_old_world_is_said_to_be_one(shared_graph, planner):
    """By its own time, as a latched message comes late; one without a time is as it is now."""
    world = shared_graph.publisher(interfaces.WORLD_OBJECTS)
    now = shared_graph.node.get_clock().now().nanoseconds * 1e-9

    def message(**fields):
        return ask(shared_graph, start=HOME, joint_goals=TURNED, **fields)[1].message

    world.publish(WorldObjectArray(header=header("", now - 60.0)))
    shared_graph.wait_until(lambda: re.search(r"world_objects: as it was 6\d\.\d s ago", message()), what="its age")
    assert message(world=PlanMotion.Goal.WORLD_REPLACE) == ""
    world.publish(WorldObjectArray(header=header("", now)))
    shared_graph.wait_until(lambda: message() == "", what="the new world")
    world.publish(WorldObjectArray(header=header("", now - 60.0)))
    shared_graph.wait_until(lambda: "s ago" in message(), what="its age")
    world.publish(WorldObjectArray())
    shared_graph.wait_until(lambda: message() == "", what="the world without a time")


def test_a_motion_is_planned_for_the_world_as_it_is_in_the_end(shared_graph, planner, kinematics):
    world = shared_graph.publisher(interfaces.WORLD_OBJECTS)
    world.publish(WorldObjectArray(objects=[post()]))
    seen = []
    goal = PlanMotion.Goal(start=HOME, joint_goals=TURNED, improvement_time=3.0)

    def known():
        _, result = ask(shared_graph, start=HOME, joint_goals=TURNED)
        return trajectory_from_message(result.trajectory) if result.length > 1.25 else None

    first = shared_graph.wait_until(known, what="the post in the world")
    # Another post, in the middle of the way.
    middle = dict(zip(first.joint_names, first.positions[len(first.positions) // 2], strict=True))
    x, y, _ = kinematics.link_pose(dict.fromkeys(kinematics.joint_names, 0.0) | middle, "panda_hand")[:3, 3]
    assert clearance_of(kinematics, first, (x, y), 0.01) < 0.0
    handle = shared_graph.start_goal(interfaces.PLAN_MOTION, goal, feedback=lambda f: seen.append(f.feedback.stage))
    shared_graph.wait_until(lambda: "improvement" in seen, what="a way to be improved")
    world.publish(WorldObjectArray(objects=[post(), post("other", x, y, 0.01)]))
    _, result = shared_graph.result(handle, timeout=60.0)
    assert result.success, result.message
    trajectory = trajectory_from_message(result.trajectory)
    assert result.certificate == "proven free"
    assert clearance_of(kinematics, trajectory, (0.28, 0.22), 0.03) > 0.0
    assert clearance_of(kinematics, trajectory, (x, y), 0.01) > 0.0
    shared_graph.wait_until(lambda: seen.count("goals") > 1, what="the feedback of a second plan")
    world.publish(WorldObjectArray())


def test_what_the_hand_takes_meanwhile_is_planned_with(shared_graph, planner):
    models = shared_graph.publisher(interfaces.SPHERE_MODEL)
    models.publish(SphereModel(content_hash="empty hand"))
    objects = [post(), WorldObject(id="floor", shapes=[shape(DistanceShape.HALF_SPACE, z=0.1)])]
    goal = PlanMotion.Goal(start=HOME, joint_goals=TURNED, objects=objects, improvement_time=3.0)

    def empty():
        _, result = ask(shared_graph, start=HOME, joint_goals=TURNED, objects=objects)
        return result.success and result.model_hash == "empty hand"

    shared_graph.wait_until(empty, what="the model with an empty hand")
    seen = []
    handle = shared_graph.start_goal(interfaces.PLAN_MOTION, goal, feedback=lambda f: seen.append(f.feedback.stage))
    shared_graph.wait_until(lambda: "improvement" in seen, what="a way to be improved")
    stick = [Sphere(radius=0.02) for _ in range(20)]
    for index, each in enumerate(stick):
        each.center.z = 0.1 + 0.02 * index
    held = LinkSpheres(link_name=ROBOT.tip_link, object_id="stick", spheres=stick)
    models.publish(SphereModel(content_hash="with a stick", links=[held]))
    _, result = shared_graph.result(handle, timeout=60.0)
    assert (result.status, result.model_hash) == ("start touches", "with a stick"), result.message
    assert set(result.touching) == {"stick", "floor"}
    models.publish(SphereModel(content_hash="empty hand"))
