"""MoveIt's pipeline `morphit` in a real move_group, with a stand-in for motion_planning. Where MoveIt is installed."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import trimesh

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from morphit_ros.bringup.catalog import find_job
from morphit_ros.bringup.job import is_installed
from morphit_ros.bringup.moveit import PROVEN, has_planner
from morphit_ros.bringup.parameter_files import write_parameters

if not (has_planner() and is_installed("moveit_ros_move_group", "move_group")):
    pytest.skip("needs MoveIt and the planner of morphit_moveit", allow_module_level=True)

from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import (
    AllowedCollisionEntry,
    AttachedCollisionObject,
    CollisionObject,
    Constraints,
    JointConstraint,
    MotionPlanRequest,
    MoveItErrorCodes as Codes,
    OrientationConstraint,
    PlanningScene,
    PlanningSceneComponents,
    PositionConstraint,
)
from moveit_msgs.srv import ApplyPlanningScene, GetMotionPlan, GetPlanningScene
from rclpy.serialization import deserialize_message
from shape_msgs.msg import Mesh, MeshTriangle, Plane, SolidPrimitive

from morphit_interfaces.action import PlanMotion
from morphit_interfaces.msg import DistanceShape
from morphit_ros.geometry.rotations import matrices_of_quats
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core.interfaces import Action, Service

pytestmark = [pytest.mark.ros, pytest.mark.slow]

ROBOT = RobotConfiguration.load("panda")
ARM, HOME = list(ROBOT.arm_joints), ROBOT.home.tolist()
FINGERS = dict.fromkeys(ROBOT.finger_joints, 0.02)
PLAN = Service("plan_kinematic_path", GetMotionPlan, "")
APPLY = Service("apply_planning_scene", ApplyPlanningScene, "")
SCENE = Service("get_planning_scene", GetPlanningScene, "")
MOVE = Action("move_action", MoveGroup, "")


class StandIn:
    """The server, and what it was asked."""

    def __init__(self, graph, folder: Path) -> None:
        self._graph, self._folder = graph, folder
        (folder / "joints.json").write_text(json.dumps(dict(zip(ARM, HOME, strict=True)) | FINGERS))
        self.start()

    def start(self) -> None:
        self.order("found")
        self.process = self._graph.run(
            [sys.executable, str(Path(__file__).with_name("motion_stand_in.py")), str(self._folder)]
        )
        self.process.wait_for_line("ready")

    def order(self, status: str, **more: object) -> None:
        (self._folder / "orders.json").write_text(json.dumps({"status": status, **more}))
        for name in ("goal", "cancelled"):
            (self._folder / name).unlink(missing_ok=True)

    @property
    def asked(self) -> bool:
        return (self._folder / "goal").exists()

    @property
    def cancelled(self) -> bool:
        return (self._folder / "cancelled").exists()

    @property
    def goal(self) -> PlanMotion.Goal:
        return deserialize_message((self._folder / "goal").read_bytes(), PlanMotion.Goal)


class MoveIt:
    """A move_group."""

    def __init__(self, graph, folder: Path) -> None:
        self.graph = graph
        job = find_job("moveit").nodes({"robot": "panda", "sim": "true", "collision_detector": "SpheresFCL"})
        group = next(node for node in job if node.executable == "move_group")
        assert PROVEN in group.parameters["planning_pipelines"]
        # Refusals come at once.
        group.parameters[f"{PROVEN}.server_wait"] = 1.0
        group.parameters[f"{PROVEN}.answer_wait"] = 2.0
        group.parameters[f"{PROVEN}.most_boxes"] = 300
        self.process = graph.run(group.command(write_parameters(group, folder)))
        self.process.wait_for_line("You can start planning now", 120.0)

    def plan(self, *goals: Constraints, **more: object):
        request = self.request(*goals, **more)
        return self.graph.call(PLAN, GetMotionPlan.Request(motion_plan_request=request)).motion_plan_response

    def move(self, *goals: Constraints, **more: object):
        """By the action, which keeps the planner's code."""
        goal = MoveGroup.Goal(request=self.request(*goals, **more))
        _, _, result = self.graph.send_goal(MOVE, goal)
        return result

    @staticmethod
    def request(*goals: Constraints, start: list[float] | None = None, **more: object) -> MotionPlanRequest:
        request = MotionPlanRequest(
            pipeline_id=PROVEN, group_name="panda_arm", goal_constraints=list(goals), allowed_planning_time=1.5,
            max_velocity_scaling_factor=0.5, max_acceleration_scaling_factor=0.25, num_planning_attempts=3,
        )  # fmt: skip
        request.start_state.is_diff = True
        request.start_state.joint_state.name = [*ARM, *FINGERS]
        request.start_state.joint_state.position = [*(start or HOME), *FINGERS.values()]
        for name, value in more.items():
            setattr(request, name, value)
        return request

    def apply(self, scene: PlanningScene) -> None:
        scene.is_diff = scene.robot_state.is_diff = True
        assert self.graph.call(APPLY, ApplyPlanningScene.Request(scene=scene)).success

    def clear(self) -> None:
        """Nothing attached, nothing in the world."""
        held = AttachedCollisionObject(object=CollisionObject(operation=CollisionObject.REMOVE))
        scene = PlanningScene()
        scene.robot_state.attached_collision_objects = [held]
        self.apply(scene)
        self.apply(PlanningScene(world=PlanningScene().world.__class__(collision_objects=[
            CollisionObject(id="", operation=CollisionObject.REMOVE)
        ])))  # fmt: skip


@pytest.fixture(scope="module")
def server(shared_graph, tmp_path_factory):
    return StandIn(shared_graph, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def running(shared_graph, server, tmp_path_factory):
    return MoveIt(shared_graph, tmp_path_factory.mktemp("moveit"))


@pytest.fixture
def moveit(running, server):
    server.order("found")
    yield running
    running.clear()


def joints(values: list[float], names: list[str] = ARM) -> Constraints:
    rows = zip(names, values, strict=True)
    return Constraints(
        joint_constraints=[JointConstraint(joint_name=n, position=v, tolerance_above=0.01, tolerance_below=0.01,
                                           weight=1.0) for n, v in rows]
    )  # fmt: skip


AWAY = [value + 0.1 for value in HOME]


def quaternion(xyzw: tuple[float, ...]) -> Quaternion:
    return Quaternion(**dict(zip("xyzw", xyzw, strict=True)))


def pose_of(message: Pose) -> np.ndarray:
    p, q = message.position, message.orientation
    matrix = np.eye(4)
    matrix[:3, :3] = matrices_of_quats(np.array([[q.x, q.y, q.z, q.w]]))[0]
    matrix[:3, 3] = p.x, p.y, p.z
    return matrix


def test_joint_goals_and_the_trajectory(moveit, server) -> None:
    answer = moveit.plan(joints(AWAY), joints([0.3], ["panda_joint2"]))
    assert answer.error_code.val == Codes.SUCCESS, answer.error_code.message
    goal = server.goal
    assert list(goal.joint_names) == ARM
    assert np.allclose(goal.start, HOME)
    # A joint that no constraint names stays.
    second = [HOME[0], 0.3, *HOME[2:]]
    assert np.allclose(goal.joint_goals, [*AWAY, *second])
    assert not goal.pose_goals
    assert goal.world == PlanMotion.Goal.WORLD_REPLACE
    assert not goal.objects
    assert (goal.timeout, goal.velocity_scaling, goal.acceleration_scaling) == (1.5, 0.5, 0.25)
    trajectory = answer.trajectory.joint_trajectory
    assert list(trajectory.joint_names) == ARM
    assert np.allclose([point.positions for point in trajectory.points], [HOME, AWAY])
    assert [point.time_from_start.nanosec for point in trajectory.points] == [0, 500000000]
    assert np.allclose(trajectory.points[1].velocities, 0.1)
    assert 0.0 < answer.planning_time < 60.0


def test_a_pose_goal_in_another_frame_with_an_offset(moveit, server) -> None:
    server.order("found", rows=[HOME, AWAY])
    turn = (0.1, 0.2, 0.3, np.sqrt(1.0 - 0.14))
    region = SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.01])
    position = PositionConstraint(
        link_name="panda_hand", target_point_offset=Vector3(x=0.01, y=0.02, z=0.1), weight=1.0
    )
    position.header.frame_id = "panda_link1"
    position.constraint_region.primitives = [region]
    position.constraint_region.primitive_poses = [Pose(position=Point(x=0.4, y=0.1, z=0.2))]
    orientation = OrientationConstraint(link_name="panda_hand", orientation=quaternion(turn), weight=1.0)
    orientation.header.frame_id = "panda_link0"
    for axis in "xyz":
        setattr(orientation, f"absolute_{axis}_axis_tolerance", 0.01)
    start = [0.7, *HOME[1:]]
    answer = moveit.plan(
        Constraints(position_constraints=[position], orientation_constraints=[orientation]), start=start
    )
    assert server.asked, answer.error_code.message
    goal = server.goal
    assert goal.link == "panda_hand"
    assert not goal.joint_goals
    assert goal.pose_goals[0].header.frame_id == ""
    found = pose_of(goal.pose_goals[0].pose)
    model = KinematicModel(load_robot_description(ROBOT.description))
    T_root_link1 = model.link_pose(dict(zip(ARM, start, strict=True)) | FINGERS, "panda_link1")
    # The offset is a point of the link, and has to be in the middle of the region.
    target = T_root_link1 @ [0.4, 0.1, 0.2, 1.0]
    assert np.allclose(found @ [0.01, 0.02, 0.1, 1.0], target, atol=1e-6)
    assert np.allclose(found[:3, :3], matrices_of_quats(np.array([turn]))[0], atol=1e-6)


def mesh_of(mesh: trimesh.Trimesh) -> Mesh:
    return Mesh(
        vertices=[Point(x=x, y=y, z=z) for x, y, z in mesh.vertices.tolist()],
        triangles=[MeshTriangle(vertex_indices=face) for face in mesh.faces.tolist()],
    )


def add(name: str, at: tuple[float, float, float], **shapes: object) -> CollisionObject:
    item = CollisionObject(id=name, operation=CollisionObject.ADD, pose=Pose(position=Point(x=at[0], y=at[1], z=at[2])))
    item.header.frame_id = "panda_link0"
    for kind, shape in shapes.items():
        setattr(item, kind, [shape])
        setattr(item, f"{kind.removesuffix('s') if kind != 'meshes' else 'mesh'}_poses", [Pose()])
    return item


def primitive(kind: int, *sizes: float) -> SolidPrimitive:
    return SolidPrimitive(type=kind, dimensions=list(sizes))


def test_objects_of_every_shape(moveit, server) -> None:
    far = (2.0, 0.0, 1.0)
    objects = [
        add("box", far, primitives=primitive(SolidPrimitive.BOX, 0.1, 0.2, 0.3)),
        add("ball", far, primitives=primitive(SolidPrimitive.SPHERE, 0.2)),
        add("can", far, primitives=primitive(SolidPrimitive.CYLINDER, 0.3, 0.1)),
        add("cone", far, primitives=primitive(SolidPrimitive.CONE, 0.3, 0.1)),
        add("floor", (0.0, 0.0, -0.5), planes=Plane(coef=[0.0, 0.0, 2.0, 0.0])),
        add("tetrahedron", far, meshes=mesh_of(trimesh.creation.icosahedron())),
        add("ring", far, meshes=mesh_of(trimesh.creation.torus(0.3, 0.1))),
    ]
    scene = PlanningScene()
    scene.world.collision_objects = objects
    moveit.apply(scene)
    answer = moveit.plan(joints(AWAY))
    assert answer.error_code.val == Codes.SUCCESS, answer.error_code.message
    found = {item.id: item for item in server.goal.objects}
    assert set(found) == {item.id for item in objects}
    for name, item in found.items():
        assert not item.attached_to
        assert not item.header.frame_id
        assert np.allclose(pose_of(item.pose)[:3, 3], (0.0, 0.0, -0.5) if name == "floor" else far)
    shapes = {name: item.shapes for name, item in found.items()}
    for name, kind, sizes in (
        ("box", DistanceShape.BOX, [0.1, 0.2, 0.3]),
        ("ball", DistanceShape.SPHERE, [0.2]),
        # Height, then radius.
        ("can", DistanceShape.CYLINDER, [0.3, 0.1]),
        ("floor", DistanceShape.HALF_SPACE, []),
    ):
        assert [shape.type for shape in shapes[name]] == [kind]
        assert np.allclose(shapes[name][0].dimensions, sizes)
    assert np.allclose(pose_of(shapes["floor"][0].pose), np.eye(4))
    for name, count in (("cone", 17), ("tetrahedron", 12)):
        assert [shape.type for shape in shapes[name]] == [DistanceShape.CONVEX_MESH]
        assert len(shapes[name][0].vertices) == count
    assert max(vertex.z for vertex in shapes["cone"][0].vertices) == pytest.approx(0.15)
    assert 10 < len(shapes["ring"]) <= 300
    assert {shape.type for shape in shapes["ring"]} == {DistanceShape.BOX}
    assert "object 'ring': its mesh is not convex" in moveit.process.output


def test_an_octomap_is_its_occupied_cells(moveit, server) -> None:
    octomap = pytest.importorskip("octomap_msgs.msg")
    # Binary form, two bits of each of eight children: 11 has children of its own, 10 is occupied, 00 unknown.
    message = octomap.Octomap(binary=True, id="OcTree", resolution=0.1)
    depth, data = 16, []
    for level in range(depth):
        # Child 7 of the root is where all coordinates are positive; from there on to the origin.
        child = 7 if level == 0 else 0
        bits = 0b10 if level == depth - 1 else 0b11
        word = bits << (2 * child)
        data += [word & 0xFF, word >> 8]
    message.data = [value - 256 if value > 127 else value for value in data]
    scene = PlanningScene()
    scene.world.octomap.header.frame_id = "panda_link0"
    scene.world.octomap.octomap = message
    scene.world.octomap.origin.position.x = 1.5
    moveit.apply(scene)
    assert moveit.plan(joints(AWAY)).error_code.val == Codes.SUCCESS
    (item,) = server.goal.objects
    assert item.id == "<octomap>"
    (cell,) = item.shapes
    assert cell.type == DistanceShape.BOX
    assert np.allclose(cell.dimensions, 0.1)
    place = pose_of(item.pose) @ pose_of(cell.pose)
    assert np.allclose(place[:3, 3], [1.55, 0.05, 0.05], atol=1e-6)


def test_what_is_attached_and_what_may_touch(moveit, server) -> None:
    held = add("bar", (0.0, 0.0, 0.2), primitives=primitive(SolidPrimitive.BOX, 0.02, 0.02, 0.2))
    held.header.frame_id = "panda_hand"
    scene = PlanningScene()
    scene.robot_state.attached_collision_objects = [
        AttachedCollisionObject(link_name="panda_hand", object=held, touch_links=["panda_leftfinger"])
    ]
    scene.world.collision_objects = [
        add(name, (2.0, 0.0, 1.0), primitives=primitive(SolidPrimitive.SPHERE, 0.1)) for name in ("near", "other")
    ]
    moveit.apply(scene)
    components = PlanningSceneComponents(components=PlanningSceneComponents.ALLOWED_COLLISION_MATRIX)
    known = moveit.graph.call(SCENE, GetPlanningScene.Request(components=components)).scene.allowed_collision_matrix
    names = [*known.entry_names, *({"near", "bar"} - set(known.entry_names))]
    allowed = {
        frozenset((names[i], names[j]))
        for i, row in enumerate(known.entry_values)
        for j, enabled in enumerate(row.enabled)
        if enabled
    } | {frozenset(("near", "panda_link5")), frozenset(("near", "bar"))}
    rows = [[frozenset((one, other)) in allowed for other in names] for one in names]
    change = PlanningScene()
    change.allowed_collision_matrix.entry_names = names
    change.allowed_collision_matrix.entry_values = [AllowedCollisionEntry(enabled=row) for row in rows]
    moveit.apply(change)
    assert moveit.plan(joints(AWAY)).error_code.val == Codes.SUCCESS
    goal = server.goal
    found = {item.id: item for item in goal.objects}
    assert set(found) - {"<octomap>"} == {"bar", "near", "other"}
    bar = found["bar"]
    assert bar.attached_to == "panda_hand"
    assert "panda_leftfinger" in bar.touch_links
    assert np.allclose(pose_of(bar.pose)[:3, 3], [0.0, 0.0, 0.2])
    pairs = {frozenset(pair) for pair in zip(goal.allowed_1, goal.allowed_2, strict=True)}
    assert frozenset(("near", "panda_link5")) in pairs
    assert frozenset(("near", "bar")) in pairs
    assert not any("other" in pair for pair in pairs)
    # Neighbours, by the SRDF; what it says of pairs that were never seen to touch is left to the planner.
    assert frozenset(("panda_link3", "panda_link4")) in pairs
    assert frozenset(("panda_link1", "panda_link6")) not in pairs


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("start touches", Codes.START_STATE_IN_COLLISION),
        ("goal touches", Codes.GOAL_IN_COLLISION),
        ("unreachable", Codes.NO_IK_SOLUTION),
        ("not found", Codes.PLANNING_FAILED),
        # PREEMPTED of a goal that nobody cancelled ends move_group.
        ("cancelled", Codes.ABORT),
        ("refused", Codes.PLANNING_FAILED),
    ],
)
def test_why_there_is_no_plan(moveit, server, status: str, code: int) -> None:
    server.order(status, message="so said the planner")
    answer = moveit.plan(joints(AWAY))
    assert answer.error_code.val != Codes.SUCCESS
    assert answer.error_code.message == f"{status}: so said the planner"
    assert answer.error_code.source == "morphit"
    # move_group's service says FAILURE of all; its action keeps the planner's code.
    assert moveit.move(joints(AWAY)).error_code.val == code


def test_out_of_time_is_said(moveit, server) -> None:
    server.order("not found", message="so said the planner")
    assert moveit.move(joints(AWAY), allowed_planning_time=0.1).error_code.val == Codes.TIMED_OUT


@pytest.mark.parametrize(
    "answer",
    [{"names": ["panda_joint1"], "rows": [[0.0], [0.1], []]}, {"names": ["elbow"], "rows": [[0.0]]}],
    ids=["a row without numbers", "another joint"],
)
def test_an_answer_that_is_no_trajectory_is_refused(moveit, server, answer: dict) -> None:
    server.order("found", **answer)
    assert "no trajectory" in moveit.plan(joints(AWAY)).error_code.message


def test_what_it_does_not_know_is_refused_before_it_is_asked(moveit, server) -> None:
    upright = OrientationConstraint(link_name="panda_hand", orientation=Quaternion(w=1.0), weight=1.0)
    upright.header.frame_id = "panda_link0"
    upright.absolute_x_axis_tolerance = upright.absolute_y_axis_tolerance = upright.absolute_z_axis_tolerance = 3.0
    path = Constraints(orientation_constraints=[upright])
    for words, answer in (
        ("path and trajectory constraints", moveit.plan(joints(AWAY), path_constraints=path)),
        ("one position and one orientation", moveit.plan(path)),
        ("there is no goal", moveit.plan()),
        ("joint 'panda_finger_joint1' is none of group", moveit.plan(joints([0.0], ["panda_finger_joint1"]))),
    ):
        assert answer.error_code.val != Codes.SUCCESS
        assert words in answer.error_code.message
    assert not server.asked


def test_a_server_that_is_not_there_or_ends(moveit, server) -> None:
    server.order("found", seconds=60.0)
    # As if it hung: cancelled when its time is over.
    began = time.monotonic()
    answer = moveit.plan(joints(AWAY))
    assert "did not answer in time" in answer.error_code.message
    assert 3.5 <= time.monotonic() - began < 30.0
    moveit.graph.wait_until(lambda: server.cancelled, what="the cancelled goal")
    server.process.stop(signal.SIGINT)
    try:
        deadline = time.monotonic() + 30.0
        while "no server of the action '/plan_motion'" not in (message := moveit.plan(joints(AWAY)).error_code.message):
            assert time.monotonic() < deadline, message
        assert "ros2 run morphit_ros motion_planning" in message
        result = moveit.move(joints(AWAY))
        assert result.error_code.val == Codes.COMMUNICATION_FAILURE
    finally:
        server.start()
    moveit.graph.wait_until(
        lambda: moveit.plan(joints(AWAY)).error_code.val == Codes.SUCCESS, what="the server's return"
    )
