"""Motion backend on MoveIt 2.12 (moveit_py of ROS 2 Jazzy).

MoveItPy brings its own ROS node and may crash when it is torn down, so it lives in a process of its
own: the node `grasp_execution` with ``backend:=moveit``. All its parameters (robot description,
planning pipelines, kinematics, limits) come as one mapping.

Free motions are planned by the pipeline of `MoveItConfig.pipeline`, straight lines by Pilz' LIN. The
allowed collision matrix that moveit_py hands out is a copy, so contacts are allowed by sending the
planning scene a difference, and withdrawn in the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.execution.environment import check_objects
from morphit_ros.execution.motion import (
    MotionBackendError,
    MotionResult,
    MotionStatus,
    ObjectObstacle,
    TableObstacle,
)
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    quat_xyzw_from_matrix,
    transform_points,
)
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory

_TABLE = "table"
_STATUS_OF_CODE = {
    "START_STATE_IN_COLLISION": MotionStatus.START_IN_COLLISION,
    "GOAL_IN_COLLISION": MotionStatus.GOAL_IN_COLLISION,
    "NO_IK_SOLUTION": MotionStatus.UNREACHABLE,
    "GOAL_STATE_INVALID": MotionStatus.GOAL_IN_COLLISION,
    "PLANNING_FAILED": MotionStatus.NO_PATH,
    "INVALID_MOTION_PLAN": MotionStatus.NO_PATH,
    "TIMED_OUT": MotionStatus.NO_PATH,
}


@dataclass(frozen=True)
class MoveItConfig(Config):
    """Settings of the MoveIt backend."""

    node_name: str = parameter("morphit_moveit", "Name of MoveItPy's own node")
    pipeline: str = parameter("ompl", "Planning pipeline of free motions")
    planner: str = parameter("RRTConnectkConfigDefault", "Planner of free motions, as the pipeline calls it")
    line_pipeline: str = parameter("pilz_industrial_motion_planner", "Planning pipeline of straight lines")
    line_planner: str = parameter("LIN", "Planner of straight lines")
    attempts: int = parameter(3, "Requests before a free motion is given up", minimum=1, maximum=20)
    planning_time: float = parameter(2.0, "Time limit of one request [s]", minimum=0.1, maximum=60.0)
    velocity_scaling: float = parameter(0.5, "Share of the joints' velocity limits", minimum=0.01, maximum=1.0)
    acceleration_scaling: float = parameter(0.5, "Share of the joints' acceleration limits", minimum=0.01, maximum=1.0)
    max_translation_speed: float = parameter(
        1.0, "max_trans_vel of Pilz' cartesian limits, which scale straight lines [m/s]", minimum=0.01, maximum=10.0
    )
    state_wait: float = parameter(10.0, "Longest wait for the first joint state [s]", minimum=1.0, maximum=120.0)


class MoveItBackend:
    """`MotionBackend` on MoveItPy.

    Args:
        robot: names of base, tip and joints; ``moveit['planning_group']`` is the group that is planned for.
        parameters: all ROS parameters of MoveIt, nested.
        config: settings.

    Raises:
        MissingDependencyError: moveit_py or moveit_msgs is not installed.
        InvalidInputError: the robot's configuration lacks the planning group.
        MotionBackendError: MoveIt did not start; no joint states, or a bad parameter.
    """

    def __init__(
        self, robot: RobotConfiguration, parameters: Mapping[str, Any], config: MoveItConfig | None = None
    ) -> None:
        try:
            import geometry_msgs.msg
            import moveit.planning
            import moveit_msgs.msg
            import shape_msgs.msg
        except ImportError as error:
            remedy = "Install ros-jazzy-moveit and ros-jazzy-moveit-py and source ROS, or choose backend:=embedded."
            raise MissingDependencyError(error.name or "moveit", "The MoveIt backend", remedy) from error
        if "planning_group" not in robot.moveit:
            raise InvalidInputError("robot.moveit", sorted(robot.moveit), "a key 'planning_group'")
        self.config = config or MoveItConfig()
        self.robot = robot
        self._geometry, self._shapes, self._messages = geometry_msgs.msg, shape_msgs.msg, moveit_msgs.msg
        merged = copy.deepcopy(dict(parameters))
        # MoveIt's wait of 2 s for the first joint state is often too short for discovery.
        monitor = merged.setdefault("planning_scene_monitor_options", {})
        monitor["wait_for_initial_state_timeout"] = self.config.state_wait
        try:
            self._moveit = moveit.planning.MoveItPy(node_name=self.config.node_name, config_dict=merged)
            self._component = self._moveit.get_planning_component(robot.moveit["planning_group"])
            self._monitor = self._moveit.get_planning_scene_monitor()
            self._free = self._request_parameters(moveit.planning, self.config.pipeline, self.config.planner)
            self._line = self._request_parameters(moveit.planning, self.config.line_pipeline, self.config.line_planner)
        except RuntimeError as error:
            waited = f"within {self.config.state_wait:.0f} s"
            cause = f"{error}. Are all joints of the robot published on joint_states {waited}, is the SRDF its own?"
            raise MotionBackendError(f"MoveIt did not start: {cause}") from error
        self._objects: dict[str, ObjectObstacle] = {}
        self._attached: set[str] = set()
        self._table = False

    def _request_parameters(self, planning: Any, pipeline: str, planner: str) -> Any:
        request = planning.PlanRequestParameters(self._moveit, pipeline)
        request.planning_pipeline = pipeline
        request.planner_id = planner
        request.planning_attempts = 1
        request.planning_time = self.config.planning_time
        request.max_velocity_scaling_factor = self.config.velocity_scaling
        request.max_acceleration_scaling_factor = self.config.acceleration_scaling
        return request

    def set_world(self, table: TableObstacle | None, objects: Sequence[ObjectObstacle]) -> None:
        checked = check_objects(objects)
        for name in sorted(self._attached):
            self.detach(name)
        for name in [*self._objects, *([_TABLE] if self._table else [])]:
            self._remove(name)
        self._objects = {item.name: item for item in checked}
        self._table = table is not None
        if table is not None:
            slab = check_transform(table.T_base_table, "T_base_table").copy()
            slab[:3, 3] -= 0.5 * table.thickness * slab[:3, 2]
            size = [float(table.size[0]), float(table.size[1]), float(table.thickness)]
            box = self._shapes.SolidPrimitive(type=self._shapes.SolidPrimitive.BOX, dimensions=size)
            self._apply(self._collision_object(_TABLE, self.robot.base_link, [box], [self._pose(slab)]))
        for item in checked:
            self._apply(self._spheres(item.name, self.robot.base_link, item.centers, item.radii))

    def plan_to_pose(self, start: Mapping[str, float], T_base_gripper: Array) -> MotionResult:
        self._set_start(start)
        self._set_pose_goal(T_base_gripper)
        return self._plan(self._free, self.config.attempts)

    def plan_to_joints(self, start: Mapping[str, float], goal: Mapping[str, float]) -> MotionResult:
        self._set_start(start)
        self._component.set_goal_state(robot_state=self._state({**start, **goal}))
        return self._plan(self._free, self.config.attempts)

    def plan_straight(
        self, start: Mapping[str, float], T_base_gripper: Array, speed: float, allow_contact: Sequence[str] = ()
    ) -> MotionResult:
        if not (np.isfinite(speed) and speed > 0.0):
            raise InvalidInputError("speed", speed, "a positive number [m/s]")
        pairs = [(name, link) for name in allow_contact for link in self.robot.touch_links]
        # What stands on the table touches it while it is lifted off.
        pairs += [(name, _TABLE) for name in self._attached if self._table]
        self._set_start(start)
        self._set_pose_goal(T_base_gripper)
        self._line.max_velocity_scaling_factor = min(1.0, max(1e-3, speed / self.config.max_translation_speed))
        with self._contact_allowed(pairs):
            result = self._plan(self._line, 1)
        if result.status is MotionStatus.NO_PATH:
            return MotionResult(MotionStatus.PATH_BLOCKED, None, result.message, result.planning_time)
        return result

    def attach(self, object_name: str, T_base_gripper: Array) -> None:
        if object_name not in self._objects:
            known = ", ".join(self._objects) or "none"
            raise InvalidInputError("object_name", repr(object_name), f"an object of the world ({known})")
        item = self._objects.pop(object_name)
        T_tip_base = self.robot.T_tip_gripper @ invert_transform(check_transform(T_base_gripper, "T_base_gripper"))
        # In the frame of the link, so that it does not matter where the robot is now.
        centers = transform_points(T_tip_base, item.centers)
        message = self._messages.AttachedCollisionObject(
            link_name=self.robot.tip_link,
            object=self._spheres(object_name, self.robot.tip_link, centers, item.radii),
            touch_links=list(self.robot.touch_links),
        )
        if not self._monitor.process_attached_collision_object(attached_collision_object_msg=message):
            raise MotionBackendError(f"MoveIt did not attach object '{object_name}'")
        self._attached.add(object_name)

    def detach(self, object_name: str) -> None:
        if object_name not in self._attached:
            raise InvalidInputError("object_name", repr(object_name), "an object that is attached")
        message = self._messages.AttachedCollisionObject(link_name=self.robot.tip_link)
        message.object.id = object_name
        message.object.operation = self._messages.CollisionObject.REMOVE
        self._monitor.process_attached_collision_object(attached_collision_object_msg=message)
        self._attached.discard(object_name)
        # MoveIt puts a detached object back into the world.
        self._remove(object_name)

    def close(self) -> None:
        self._moveit.shutdown()

    # Requests

    def _state(self, positions: Mapping[str, float]) -> Any:
        """A robot state with the scene's attached objects at the given joint positions."""
        missing = [name for name in self.robot.arm_joints if name not in positions]
        if missing:
            raise InvalidInputError("start", f"no position of {', '.join(missing)}", "a position of each arm joint")
        with self._monitor.read_only() as scene:
            state = copy.deepcopy(scene.current_state)
        known = state.joint_positions
        state.joint_positions = {name: float(value) for name, value in positions.items() if name in known}
        state.joint_velocities = dict.fromkeys(known, 0.0)
        state.update()
        return state

    def _set_start(self, start: Mapping[str, float]) -> None:
        self._component.set_start_state(robot_state=self._state(start))

    def _set_pose_goal(self, T_base_gripper: Array) -> None:
        T_base_tip = check_transform(T_base_gripper, "T_base_gripper") @ invert_transform(self.robot.T_tip_gripper)
        goal = self._geometry.PoseStamped(pose=self._pose(T_base_tip))
        goal.header.frame_id = self.robot.base_link
        self._component.set_goal_state(pose_stamped_msg=goal, pose_link=self.robot.tip_link)

    def _plan(self, request: Any, attempts: int) -> MotionResult:
        """Ask up to `attempts` times: a single request of a sampling planner fails now and then."""
        spent = 0.0
        status, message = MotionStatus.FAILED, ""
        for _ in range(attempts):
            try:
                response = self._component.plan(single_plan_parameters=request)
            except RuntimeError as error:
                return MotionResult(MotionStatus.FAILED, None, str(error), spent)
            spent += float(response.planning_time)
            if response:
                return self._timed(response.trajectory.get_robot_trajectory_msg().joint_trajectory, spent)
            name = self._code_name(response.error_code.val)
            status = _STATUS_OF_CODE.get(name, MotionStatus.FAILED)
            message = f"MoveIt answers {name}"
            if status in (MotionStatus.START_IN_COLLISION, MotionStatus.UNREACHABLE):
                break
        return MotionResult(status, None, message, spent)

    def _code_name(self, value: int) -> str:
        codes = self._messages.MoveItErrorCodes
        names = [name for name in dir(codes) if name.isupper() and getattr(codes, name) == value]
        return names[0] if names else f"error code {value}"

    def _timed(self, joints: Any, spent: float) -> MotionResult:
        """A JointTrajectory message as a result."""
        if any(len(point.velocities) != len(joints.joint_names) for point in joints.points):
            remedy = "add the response adapter AddTimeOptimalParameterization to its pipeline"
            return MotionResult(MotionStatus.FAILED, None, f"MoveIt's path has no velocities: {remedy}", spent)
        order = [list(joints.joint_names).index(name) for name in self.robot.arm_joints]
        times = np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in joints.points])
        positions = np.array([p.positions for p in joints.points])[:, order]
        velocities = np.array([p.velocities for p in joints.points])[:, order]
        velocities[0] = velocities[-1] = 0.0
        # Pilz may end with two rows at one time.
        kept = np.concatenate([np.diff(times) > 0.0, [True]])
        times = times[kept] - times[kept][0]
        trajectory = Trajectory(self.robot.arm_joints, times, positions[kept], velocities[kept])
        return MotionResult(MotionStatus.SUCCEEDED, trajectory, "", spent)

    # Planning scene

    def _pose(self, transform: Array) -> Any:
        x, y, z, w = quat_xyzw_from_matrix(transform[:3, :3]).tolist()
        px, py, pz = transform[:3, 3].tolist()
        return self._geometry.Pose(
            position=self._geometry.Point(x=px, y=py, z=pz),
            orientation=self._geometry.Quaternion(x=x, y=y, z=z, w=w),
        )

    def _spheres(self, name: str, frame: str, centers: Array, radii: Array) -> Any:
        kind = self._shapes.SolidPrimitive
        shapes = [kind(type=kind.SPHERE, dimensions=[float(radius)]) for radius in radii]
        poses = []
        for center in centers:
            pose = np.eye(4)
            pose[:3, 3] = center
            poses.append(self._pose(pose))
        return self._collision_object(name, frame, shapes, poses)

    def _collision_object(self, name: str, frame: str, shapes: list[Any], poses: list[Any]) -> Any:
        message = self._messages.CollisionObject(id=name, primitives=shapes, primitive_poses=poses)
        message.header.frame_id = frame
        # The pose of the object itself must be a valid one.
        message.pose.orientation.w = 1.0
        message.operation = self._messages.CollisionObject.ADD
        return message

    def _apply(self, message: Any) -> None:
        if not self._monitor.process_collision_object(collision_object_msg=message):
            raise MotionBackendError(f"MoveIt did not accept obstacle '{message.id}'")

    def _remove(self, name: str) -> None:
        message = self._messages.CollisionObject(id=name, operation=self._messages.CollisionObject.REMOVE)
        message.header.frame_id = self.robot.base_link
        self._monitor.process_collision_object(collision_object_msg=message)

    @contextmanager
    def _contact_allowed(self, pairs: Sequence[tuple[str, str]]) -> Iterator[None]:
        """Allow contacts between pairs of bodies for a while."""
        if not pairs:
            yield
            return
        with self._monitor.read_only() as scene:
            before = scene.planning_scene_message.allowed_collision_matrix
        matrix = copy.deepcopy(before)
        for pair in pairs:
            self._allow(matrix, *pair)
        self._send_matrix(matrix)
        try:
            yield
        finally:
            self._send_matrix(before)

    def _allow(self, matrix: Any, first: str, second: str) -> None:
        for name in (first, second):
            if name not in matrix.entry_names:
                for row in matrix.entry_values:
                    row.enabled = [*row.enabled, False]
                matrix.entry_names = [*matrix.entry_names, name]
                row = self._messages.AllowedCollisionEntry(enabled=[False] * len(matrix.entry_names))
                matrix.entry_values = [*matrix.entry_values, row]
        i, j = (list(matrix.entry_names).index(name) for name in (first, second))
        matrix.entry_values[i].enabled[j] = matrix.entry_values[j].enabled[i] = True

    def _send_matrix(self, matrix: Any) -> None:
        message = self._messages.PlanningScene(is_diff=True, allowed_collision_matrix=matrix)
        message.robot_state.is_diff = True
        if not self._monitor.new_planning_scene_message(scene=message):
            raise MotionBackendError("MoveIt did not take the change of the allowed collision matrix")
