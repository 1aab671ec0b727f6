"""The published signatures of moveit_py 2.12: argument names of the bindings and no others, of the right types only.

What MoveIt itself does with them can only be tried where it is installed.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import types
from pathlib import Path

from geometry_msgs.msg import PoseStamped
from messages_double import plain
from moveit_msgs.msg import (
    CODES,
    AllowedCollisionEntry,
    AllowedCollisionMatrix,
    AttachedCollisionObject,
    CollisionObject,
    MoveItErrorCodes,
    PlanningScene,
)

from moveit.orders import misbehave, order, tell

misbehave("import")
if order("no_moveit"):
    raise ModuleNotFoundError("No module named 'moveit.planning'", name="moveit.planning")


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
        assert {type(value) for value in values.values()} == {float}
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
        if order("no_pairs"):
            self.matrix = AllowedCollisionMatrix()
        self.tell()

    def tell(self):
        tell(world=plain(self.world), attached=plain(self.attached), allowed=self.allowed())

    def read_only(self):
        return Locked(self)

    def process_collision_object(self, collision_object_msg, color_msg=None):
        assert isinstance(collision_object_msg, CollisionObject)
        assert self.locks == 0, "the real one would wait for its own lock for ever"
        misbehave("scene")
        if order("refuse") == collision_object_msg.id:
            return False
        if collision_object_msg.operation == CollisionObject.REMOVE:
            known = self.world.pop(collision_object_msg.id, None) is not None
        else:
            assert len(collision_object_msg.primitives) == len(collision_object_msg.primitive_poses)
            self.world[collision_object_msg.id] = collision_object_msg
            known = True
        self.tell()
        return known

    def process_attached_collision_object(self, attached_collision_object_msg):
        assert isinstance(attached_collision_object_msg, AttachedCollisionObject)
        item = attached_collision_object_msg.object
        if item.operation == CollisionObject.REMOVE:
            if attached_collision_object_msg.link_name not in ("", self.attached[item.id].link_name):
                return False  # as the real one answers for another link than the one that carries it
            self.world[item.id] = self.attached.pop(item.id).object
        else:
            self.world.pop(item.id, None)
            self.attached[item.id] = attached_collision_object_msg
        self.tell()
        return True

    def new_planning_scene_message(self, scene):
        assert isinstance(scene, PlanningScene)
        assert scene.is_diff
        assert scene.robot_state.is_diff
        assert self.locks == 0
        matrix = scene.allowed_collision_matrix
        size = len(matrix.entry_names)
        assert [len(row.enabled) for row in matrix.entry_values] == [size] * size
        # As PlanningScene::setPlanningSceneDiffMsg does.
        if matrix.entry_names:
            self.matrix = copy.deepcopy(matrix)
        self.tell()
        return True

    def allowed(self):
        """Ordered pairs that may touch."""
        names, rows = self.matrix.entry_names, self.matrix.entry_values
        return [
            [first, second]
            for first, row in zip(names, rows, strict=True)
            for second, enabled in zip(names, row.enabled, strict=True)
            if enabled
        ]


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
        self.requests = []

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
        self.goal = robot_state
        if robot_state is not None:
            assert isinstance(robot_state, RobotState)
            assert pose_stamped_msg is None
            assert pose_link is None
            tell(goal=robot_state.joint_positions)
        else:
            assert isinstance(pose_stamped_msg, PoseStamped)
            assert isinstance(pose_link, str)
            tell(goal=plain(pose_stamped_msg), pose_link=pose_link)
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
        self.requests.append({name: getattr(single_plan_parameters, name) for name in PlanRequestParameters.__slots__})
        tell(
            requests=self.requests,
            start=self.start.joint_positions,
            allowed_while_planning=self.monitor.allowed(),
            world_while_planning=sorted(self.monitor.world),
            attached_while_planning=sorted(self.monitor.attached),
        )
        misbehave("plan")
        if order("raise"):
            raise RuntimeError(order("raise"))
        codes = order("codes", [])
        response = Response(CODES[codes[len(self.requests) - 1] if len(self.requests) <= len(codes) else "SUCCESS"])
        if order("true_path"):
            # To a pose it stays where it is.
            response.go(self.start.joint_positions, (self.goal or self.start).joint_positions)
        return response


def as_pilz(joints, ramp=0.5, duration=2.613):
    """A line as Pilz samples it: each 0.1 s and once more at its end, velocities that are differences of positions."""

    def way(time):
        rising = min(time, duration - time)
        done = 0.5 * min(rising, ramp) ** 2 / ramp + max(rising - ramp, 0.0)
        return done if time <= 0.5 * duration else duration - ramp - done

    times = [0.1 * i for i in range(int(10.0 * duration) + 1)] + [duration]
    ways = [0.2 * way(time) for time in times]
    rates = [(b - a) / (t - s) for a, b, s, t in zip(ways, ways[1:], times, times[1:], strict=False)]
    shares = [float(joint[-1]) for joint in joints]
    return [
        types.SimpleNamespace(
            positions=[share * distance for share in shares],
            velocities=[share * rate for share in shares],
            time_from_start=types.SimpleNamespace(sec=int(time), nanosec=round(1e9 * (time % 1.0))),
        )
        for time, distance, rate in zip(times, ways, [0.0, *rates[:-1], 0.0], strict=True)
    ]


class Response:
    def __init__(self, code):
        self.error_code = MoveItErrorCodes(val=code)
        self.planning_time = 0.25
        joints = [f"panda_joint{i}" for i in (7, 6, 5, 4, 3, 2, 1)]
        points = order("points")
        rows = points or [(0.0, 0.0), (0.5, 0.4), (1.0, 1.0), (1.0, 1.0)]
        path = [
            types.SimpleNamespace(
                positions=[share * i for i in (7, 6, 5, 4, 3, 2, 1)],
                velocities=[] if points else [1.0] * 7,
                time_from_start=types.SimpleNamespace(sec=int(time), nanosec=int(1e9 * (time % 1.0))),
            )
            for time, share in rows
        ]
        if order("as_pilz"):
            path = as_pilz(joints)
        if order("not_a_number"):
            path[1].positions[2] = float("nan")
        joint_trajectory = types.SimpleNamespace(joint_names=joints, points=path)
        robot_trajectory = types.SimpleNamespace(joint_trajectory=joint_trajectory)
        self.trajectory = types.SimpleNamespace(get_robot_trajectory_msg=lambda joint_filter=(): robot_trajectory)

    def go(self, start, goal, duration=2.0):
        """A path of the arm from one to the other, at rest at both ends."""
        path = self.trajectory.get_robot_trajectory_msg().joint_trajectory
        path.points = []
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            way, rate = share**2 * (3.0 - 2.0 * share), 6.0 * share * (1.0 - share) / duration
            path.points.append(
                types.SimpleNamespace(
                    positions=[start[name] + way * (goal[name] - start[name]) for name in path.joint_names],
                    velocities=[rate * (goal[name] - start[name]) for name in path.joint_names],
                    time_from_start=types.SimpleNamespace(sec=0, nanosec=int(1e9 * share * duration)),
                )
            )

    def __bool__(self):
        return self.error_code.val == CODES["SUCCESS"]


class MoveItPy:
    def __init__(
        self,
        node_name="moveit_py",
        name_space="",
        launch_params_filepaths=(),
        config_dict=None,
        provide_planning_service=True,
        remappings=None,
    ):
        misbehave("start")
        if order("start_fails"):
            raise RuntimeError("Unable to configure planning scene monitor")
        joints = [f"panda_joint{i}" for i in range(1, 8)] + ["panda_finger_joint1", "panda_finger_joint2"]
        assert config_dict is None, "its file holds for the root namespace only, and stays behind"
        [path] = launch_params_filepaths
        # JSON, which is YAML too. A section for the node, in whatever namespace, as rcl reads it.
        [(section, content)] = json.loads(Path(path).read_text(encoding="utf-8")).items()
        assert section == f"/**/{node_name}"
        ours = [name for name in sys.modules if name.partition(".")[0] in ("morphit_ros", "yaml", "scipy", "numba")]
        tell(
            name_space=name_space,
            parameters=content["ros__parameters"],
            parameter_file=str(Path(path).resolve()),
            modules_of_ours=ours,
            executable=sys.executable,
            plugins_namespace=os.environ.get("MORPHIT_NAMESPACE"),
        )
        self.monitor = PlanningSceneMonitor(RobotState(dict.fromkeys(joints, 0.0)))
        self.component = PlanningComponent(self.monitor)

    def get_planning_component(self, planning_component_name):
        assert planning_component_name == "panda_arm"
        return self.component

    def get_planning_scene_monitor(self):
        return self.monitor

    def shutdown(self):
        tell(is_shut_down=True)
        misbehave("end")
