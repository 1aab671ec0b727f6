"""The MoveIt backend against a stand-in with the published signatures of moveit_py 2.12.

The stand-in accepts the argument names of the bindings and no others, and only arguments of the right
types. What MoveIt itself does with them can only be tried on a ROS installation.
"""

from __future__ import annotations

import copy
import sys
import types

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.execution.backends.moveit import MoveItBackend, MoveItConfig
from morphit_ros.execution.motion import MotionBackendError, MotionStatus
from morphit_ros.geometry.transforms import invert_transform, matrix_from_quat_xyzw

CODES = {
    "SUCCESS": 1,
    "FAILURE": 99999,
    "PLANNING_FAILED": -1,
    "START_STATE_IN_COLLISION": -10,
    "GOAL_IN_COLLISION": -12,
    "NO_IK_SOLUTION": -31,
}


def message(name, **fields):
    """A message class: known fields only, fresh defaults."""

    def initialise(self, **values):
        unknown = set(values) - set(fields)
        if unknown:
            raise AssertionError(f"{name} has no field {unknown}")
        for field, default in fields.items():
            setattr(self, field, values.get(field, default() if callable(default) else copy.deepcopy(default)))

    return type(name, (), {"__slots__": tuple(fields), "__init__": initialise})


Header = message("Header", frame_id="", stamp=None)
Point = message("Point", x=0.0, y=0.0, z=0.0)
Quaternion = message("Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
Pose = message("Pose", position=Point, orientation=Quaternion)
PoseStamped = message("PoseStamped", header=Header, pose=Pose)
SolidPrimitive = message("SolidPrimitive", type=0, dimensions=[])
SolidPrimitive.BOX, SolidPrimitive.SPHERE = 1, 2
CollisionObject = message(
    "CollisionObject", header=Header, pose=Pose, id="", primitives=[], primitive_poses=[], operation=0
)
CollisionObject.ADD, CollisionObject.REMOVE = 0, 1
AttachedCollisionObject = message("AttachedCollisionObject", link_name="", object=CollisionObject, touch_links=[])
AllowedCollisionEntry = message("AllowedCollisionEntry", enabled=[])
AllowedCollisionMatrix = message("AllowedCollisionMatrix", entry_names=[], entry_values=[])
RobotStateMessage = message("RobotState", is_diff=False)
PlanningScene = message(
    "PlanningScene", is_diff=False, robot_state=RobotStateMessage, allowed_collision_matrix=AllowedCollisionMatrix
)
MoveItErrorCodes = message("MoveItErrorCodes", val=0)
for name, value in CODES.items():
    setattr(MoveItErrorCodes, name, value)


class RobotState:
    def __init__(self, positions):
        self._positions = dict(positions)
        self.joint_velocities = {}
        self.dirty = False

    @property
    def joint_positions(self):
        return dict(self._positions)

    @joint_positions.setter
    def joint_positions(self, values):
        assert set(values) <= set(self._positions), "the real one ends the process for an unknown variable"
        self._positions.update(values)
        self.dirty = True

    def update(self, force=False, type="all"):
        self.dirty = False


class Scene:
    def __init__(self, monitor):
        self._monitor = monitor

    @property
    def current_state(self):
        return self._monitor.state

    @property
    def planning_scene_message(self):
        return PlanningScene(allowed_collision_matrix=copy.deepcopy(self._monitor.matrix))


class Locked:
    def __init__(self, monitor):
        self._monitor = monitor

    def __enter__(self):
        self._monitor.locks += 1
        return Scene(self._monitor)

    def __exit__(self, type, value, traceback):
        self._monitor.locks -= 1


class PlanningSceneMonitor:
    def __init__(self, state):
        self.state = state
        self.world, self.attached, self.locks = {}, {}, 0
        rows = [AllowedCollisionEntry(enabled=[False, True]), AllowedCollisionEntry(enabled=[True, False])]
        self.matrix = AllowedCollisionMatrix(entry_names=["panda_hand", "panda_leftfinger"], entry_values=rows)

    def read_only(self):
        return Locked(self)

    def process_collision_object(self, collision_object_msg, color_msg=None):
        assert isinstance(collision_object_msg, CollisionObject)
        assert self.locks == 0, "the real one would wait for its own lock for ever"
        if collision_object_msg.operation == CollisionObject.REMOVE:
            return self.world.pop(collision_object_msg.id, None) is not None
        assert len(collision_object_msg.primitives) == len(collision_object_msg.primitive_poses)
        self.world[collision_object_msg.id] = collision_object_msg
        return True

    def process_attached_collision_object(self, attached_collision_object_msg):
        assert isinstance(attached_collision_object_msg, AttachedCollisionObject)
        item = attached_collision_object_msg.object
        if item.operation == CollisionObject.REMOVE:
            self.world[item.id] = self.attached.pop(item.id).object
        else:
            self.world.pop(item.id, None)
            self.attached[item.id] = attached_collision_object_msg
        return True

    def new_planning_scene_message(self, scene):
        assert isinstance(scene, PlanningScene)
        assert scene.is_diff
        assert scene.robot_state.is_diff
        assert self.locks == 0
        matrix = scene.allowed_collision_matrix
        size = len(matrix.entry_names)
        assert [len(row.enabled) for row in matrix.entry_values] == [size] * size
        self.matrix = copy.deepcopy(matrix)
        return True

    def allowed(self, first, second):
        names = self.matrix.entry_names
        if first not in names or second not in names:
            return False
        return self.matrix.entry_values[names.index(first)].enabled[names.index(second)]


class PlanRequestParameters:
    __slots__ = (
        "max_acceleration_scaling_factor",
        "max_velocity_scaling_factor",
        "planner_id",
        "planning_attempts",
        "planning_pipeline",
        "planning_time",
    )

    def __init__(self, moveit_cpp, ns, /):
        assert isinstance(moveit_cpp, MoveItPy)
        assert isinstance(ns, str)


class PlanningComponent:
    def __init__(self, monitor):
        self.monitor = monitor
        self.start = self.goal = None
        self.requests, self.codes, self.points = [], [], None
        self.allowed_while_planning = None

    def set_start_state(self, configuration_name=None, robot_state=None):
        assert configuration_name is None
        assert isinstance(robot_state, RobotState)
        assert not robot_state.dirty
        self.start = robot_state
        return True

    def set_goal_state(
        self,
        configuration_name=None,
        robot_state=None,
        pose_stamped_msg=None,
        pose_link=None,
        motion_plan_constraints=None,
    ):
        if robot_state is not None:
            assert isinstance(robot_state, RobotState)
            assert pose_stamped_msg is None
            assert pose_link is None
        else:
            assert isinstance(pose_stamped_msg, PoseStamped)
            assert isinstance(pose_link, str)
        self.goal = robot_state or (pose_stamped_msg, pose_link)
        return True

    def plan(
        self,
        single_plan_parameters=None,
        multi_plan_parameters=None,
        planning_scene=None,
        solution_selection_function=None,
        stopping_criterion_callback=None,
    ):
        assert isinstance(single_plan_parameters, PlanRequestParameters)
        request = {name: getattr(single_plan_parameters, name) for name in PlanRequestParameters.__slots__}
        self.requests.append(request)
        self.allowed_while_planning = copy.deepcopy(self.monitor)
        return Response(self.codes.pop(0) if self.codes else CODES["SUCCESS"], self.points)


class Response:
    def __init__(self, code, points):
        self.error_code = MoveItErrorCodes(val=code)
        self.planning_time = 0.25
        joints = [f"panda_joint{i}" for i in (7, 6, 5, 4, 3, 2, 1)]
        rows = points or [(0.0, 0.0), (0.5, 0.4), (1.0, 1.0), (1.0, 1.0)]
        path = [
            types.SimpleNamespace(
                positions=[share * i for i in (7, 6, 5, 4, 3, 2, 1)],
                velocities=[] if points else [1.0] * 7,
                time_from_start=types.SimpleNamespace(sec=int(time), nanosec=int(1e9 * (time % 1.0))),
            )
            for time, share in rows
        ]
        joint_trajectory = types.SimpleNamespace(joint_names=joints, points=path)
        robot_trajectory = types.SimpleNamespace(joint_trajectory=joint_trajectory)
        self.trajectory = types.SimpleNamespace(get_robot_trajectory_msg=lambda joint_filter=(): robot_trajectory)

    def __bool__(self):
        return self.error_code.val == CODES["SUCCESS"]


class MoveItPy:
    fail = False
    last = None

    def __init__(
        self,
        node_name="moveit_py",
        name_space="",
        launch_params_filepaths=(),
        config_dict=None,
        provide_planning_service=True,
        remappings=None,
    ):
        if type(self).fail:
            raise RuntimeError("Unable to configure planning scene monitor")
        joints = [f"panda_joint{i}" for i in range(1, 8)] + ["panda_finger_joint1", "panda_finger_joint2"]
        self.node_name, self.config_dict, self.is_shut_down = node_name, config_dict, False
        self.monitor = PlanningSceneMonitor(RobotState(dict.fromkeys(joints, 0.0)))
        self.component = PlanningComponent(self.monitor)
        type(self).last = self

    def get_planning_component(self, planning_component_name):
        assert planning_component_name == "panda_arm"
        return self.component

    def get_planning_scene_monitor(self):
        return self.monitor

    def shutdown(self):
        self.is_shut_down = True


@pytest.fixture
def moveit(monkeypatch):
    """The stand-in in the place of moveit_py and of the message packages."""
    modules = {
        "moveit": {},
        "moveit.planning": {"MoveItPy": MoveItPy, "PlanRequestParameters": PlanRequestParameters},
        "moveit_msgs": {},
        "moveit_msgs.msg": {
            "AllowedCollisionEntry": AllowedCollisionEntry,
            "AttachedCollisionObject": AttachedCollisionObject,
            "CollisionObject": CollisionObject,
            "MoveItErrorCodes": MoveItErrorCodes,
            "PlanningScene": PlanningScene,
        },
        "geometry_msgs": {},
        "geometry_msgs.msg": {"Point": Point, "Pose": Pose, "PoseStamped": PoseStamped, "Quaternion": Quaternion},
        "shape_msgs": {},
        "shape_msgs.msg": {"SolidPrimitive": SolidPrimitive},
    }
    made = {}
    for name, members in modules.items():
        made[name] = types.ModuleType(name)
        vars(made[name]).update(members)
        monkeypatch.setitem(sys.modules, name, made[name])
    for name, module in made.items():
        if "." in name:
            package, _, child = name.partition(".")
            setattr(made[package], child, module)
    monkeypatch.setattr(MoveItPy, "fail", False)
    return MoveItPy


@pytest.fixture
def backend(moveit, panda):
    return MoveItBackend(panda, {"planning_pipelines": {"pipeline_names": ["ompl"]}})


def test_without_moveit_the_remedy_is_named(panda, monkeypatch):
    for name in ("moveit", "moveit.planning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="ros-jazzy-moveit"):
        MoveItBackend(panda, {})


def test_the_first_joint_state_is_waited_for(moveit, panda):
    parameters = {"planning_scene_monitor_options": {"name": "monitor"}}
    MoveItBackend(panda, parameters, MoveItConfig(state_wait=7.0))
    options = moveit.last.config_dict["planning_scene_monitor_options"]
    assert options == {"name": "monitor", "wait_for_initial_state_timeout": 7.0}
    assert parameters == {"planning_scene_monitor_options": {"name": "monitor"}}


def test_a_start_that_fails_is_explained(moveit, panda, monkeypatch):
    monkeypatch.setattr(moveit, "fail", True)
    with pytest.raises(MotionBackendError, match=r"joint_states within 10 s"):
        MoveItBackend(panda, {})


def test_a_free_motion(backend, moveit, panda, home, from_above):
    pose = from_above(0.5, 0.1, 0.3)
    result = backend.plan_to_pose({**home, "another_robots_joint": 1.0}, pose)
    component = moveit.last.component
    goal, link = component.goal
    assert link == panda.tip_link
    assert goal.header.frame_id == panda.base_link
    orientation = goal.pose.orientation
    quat = [orientation.x, orientation.y, orientation.z, orientation.w]
    np.testing.assert_allclose(matrix_from_quat_xyzw(quat), pose[:3, :3], atol=1e-12)
    assert [goal.pose.position.x, goal.pose.position.y, goal.pose.position.z] == pytest.approx([0.5, 0.1, 0.3])
    assert component.start.joint_positions["panda_joint4"] == pytest.approx(home["panda_joint4"])
    assert component.requests[0]["planning_pipeline"] == "ompl"
    assert result.status is MotionStatus.SUCCEEDED
    # Joints by name, one row a time, at rest at both ends.
    assert result.trajectory.joint_names == panda.arm_joints
    np.testing.assert_allclose(result.trajectory.times, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(result.trajectory.positions[-1], np.arange(1, 8))
    assert not result.trajectory.velocities[[0, -1]].any()
    assert result.trajectory.velocities[1].any()


def test_the_tip_carries_the_gripper(moveit, panda, home, from_above):
    mount = from_above(0.0, 0.0, 0.1)
    turned = type(panda)(**{**vars(panda), "T_tip_gripper": mount})
    backend = MoveItBackend(turned, {})
    pose = from_above(0.5, 0.1, 0.3)
    backend.plan_to_pose(home, pose)
    goal, _ = moveit.last.component.goal
    expected = pose @ invert_transform(mount)
    position = [goal.pose.position.x, goal.pose.position.y, goal.pose.position.z]
    np.testing.assert_allclose(position, expected[:3, 3], atol=1e-12)


@pytest.mark.parametrize(
    ("code", "status", "requests"),
    [
        ("PLANNING_FAILED", MotionStatus.NO_PATH, 3),
        ("START_STATE_IN_COLLISION", MotionStatus.START_IN_COLLISION, 1),
        ("NO_IK_SOLUTION", MotionStatus.UNREACHABLE, 1),
        ("GOAL_IN_COLLISION", MotionStatus.GOAL_IN_COLLISION, 3),
        ("FAILURE", MotionStatus.FAILED, 3),
    ],
)
def test_failed_requests(backend, moveit, home, from_above, code, status, requests):
    component = moveit.last.component
    component.codes = [CODES[code]] * 5
    result = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert result.status is status
    assert code in result.message
    assert len(component.requests) == requests


def test_one_failed_request_is_forgiven(backend, moveit, home, from_above):
    moveit.last.component.codes = [CODES["PLANNING_FAILED"]]
    result = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert result.status is MotionStatus.SUCCEEDED
    assert result.planning_time == pytest.approx(0.5)


def test_a_path_without_velocities_names_the_adapter(backend, moveit, home, from_above):
    moveit.last.component.points = [(0.0, 0.0), (1.0, 1.0)]
    result = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert result.status is MotionStatus.FAILED
    assert "AddTimeOptimalParameterization" in result.message


def test_a_straight_line_scales_speed_and_allows_contact_meanwhile(backend, moveit, home, table, box, from_above):
    backend.set_world(table, [box])
    monitor, component = moveit.last.monitor, moveit.last.component
    result = backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08, ["box"])
    assert result.status is MotionStatus.SUCCEEDED
    request = component.requests[-1]
    assert (request["planning_pipeline"], request["planner_id"]) == ("pilz_industrial_motion_planner", "LIN")
    assert request["max_velocity_scaling_factor"] == pytest.approx(0.08)
    during = component.allowed_while_planning
    for link in ("panda_hand", "panda_leftfinger", "panda_rightfinger"):
        assert during.allowed("box", link)
        assert during.allowed(link, "box")
        assert not monitor.allowed("box", link)
    assert not during.allowed("box", "panda_link5")
    assert during.allowed("panda_hand", "panda_leftfinger")
    assert monitor.allowed("panda_hand", "panda_leftfinger")


def test_a_blocked_line(backend, moveit, home, from_above):
    moveit.last.component.codes = [CODES["PLANNING_FAILED"]]
    result = backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08)
    assert result.status is MotionStatus.PATH_BLOCKED
    assert len(moveit.last.component.requests) == 1


def test_the_world_is_replaced(backend, moveit, table, box, panda):
    monitor = moveit.last.monitor
    backend.set_world(table, [box])
    assert set(monitor.world) == {"table", "box"}
    slab = monitor.world["table"]
    assert slab.primitives[0].dimensions == pytest.approx([0.7, 1.2, table.thickness])
    assert slab.primitive_poses[0].position.z == pytest.approx(-table.thickness / 2.0)
    spheres = monitor.world["box"]
    assert spheres.header.frame_id == panda.base_link
    assert len(spheres.primitives) == len(box.radii)
    assert {shape.type for shape in spheres.primitives} == {SolidPrimitive.SPHERE}
    backend.set_world(None, [])
    assert monitor.world == {}


def test_attaching_in_the_frame_of_the_tip(backend, moveit, table, box, panda, home, from_above):
    monitor = moveit.last.monitor
    backend.set_world(table, [box])
    backend.attach("box", from_above(0.5, 0.0, 0.08))
    assert set(monitor.world) == {"table"}
    held = monitor.attached["box"]
    assert held.link_name == panda.tip_link
    assert held.touch_links == list(panda.touch_links)
    assert held.object.header.frame_id == panda.tip_link
    heights = [pose.position.z for pose in held.object.primitive_poses]
    np.testing.assert_allclose(heights, 0.08 - box.centers[:, 2], atol=1e-12)
    backend.plan_straight(home, from_above(0.5, 0.0, 0.3), 0.1)
    assert moveit.last.component.allowed_while_planning.allowed("box", "table")
    backend.detach("box")
    assert monitor.attached == {}
    assert set(monitor.world) == {"table"}
    with pytest.raises(InvalidInputError, match="attached"):
        backend.detach("box")
    with pytest.raises(InvalidInputError, match="object_name"):
        backend.attach("box", from_above(0.5, 0.0, 0.08))


def test_a_new_world_detaches(backend, moveit, table, box, from_above):
    backend.set_world(table, [box])
    backend.attach("box", from_above(0.5, 0.0, 0.08))
    backend.set_world(table, [box])
    assert moveit.last.monitor.attached == {}
    assert set(moveit.last.monitor.world) == {"table", "box"}


def test_mistakes_and_shutdown(backend, moveit, home, from_above):
    with pytest.raises(InvalidInputError, match="panda_joint3"):
        backend.plan_to_pose({k: v for k, v in home.items() if k != "panda_joint3"}, from_above(0.5, 0.0, 0.3))
    with pytest.raises(InvalidInputError, match="speed"):
        backend.plan_straight(home, from_above(0.5, 0.0, 0.3), -1.0)
    backend.close()
    assert moveit.last.is_shut_down
