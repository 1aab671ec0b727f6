"""Motion backend on MoveIt 2.12 (moveit_py of ROS 2 Jazzy).

MoveItPy brings its own ROS node, may crash when it is torn down, and may be built for another NumPy than ours: it
lives in a process and an interpreter of its own (`moveit_process`). All its parameters (robot description, planning
pipelines, kinematics, limits) come as one mapping.

Free motions are planned by the pipeline of `MoveItConfig.pipeline`, straight lines by Pilz' LIN.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    make_transform,
    quat_xyzw_from_matrix,
    transform_points,
)
from morphit_ros.motion.environment import check_objects
from morphit_ros.motion.moveit_process.client import MoveItProcess, RequestRefusedError
from morphit_ros.motion.moveit_process.interpreter import AUTOMATIC, choose_interpreter
from morphit_ros.motion.refinement import Carried
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.motion_backend import (
    MotionBackendError,
    MotionResult,
    MotionStatus,
    ObjectObstacle,
    TableObstacle,
)
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.solids import Solid

_TABLE = "table"
# Solids of the world have names of their own among the obstacles.
_SOLID = "world object "
# MoveIt's check of changed parameters refuses what a subscription of the clock declares for itself, if it is there
# first: so nothing is left to be declared.
_CLOCK_QUALITY = {
    "/clock": {
        "subscription": {"depth": 1, "durability": "volatile", "history": "keep_last", "reliability": "best_effort"}
    }
}
_STATUS_OF_CODE = {
    "START_STATE_IN_COLLISION": MotionStatus.START_IN_COLLISION,
    "GOAL_IN_COLLISION": MotionStatus.GOAL_IN_COLLISION,
    "NO_IK_SOLUTION": MotionStatus.UNREACHABLE,
    "GOAL_STATE_INVALID": MotionStatus.GOAL_IN_COLLISION,
    "PLANNING_FAILED": MotionStatus.NO_PATH,
    "INVALID_MOTION_PLAN": MotionStatus.NO_PATH,
    "TIMED_OUT": MotionStatus.NO_PATH,
}
# Of the median step: rows closer than this are left out of a line.
_SHORT_STEP = 0.3
# Pilz refuses a line that a joint cannot follow: shares of its speed that are tried (accelerations by the square).
_SLOWER = (1.0, 0.7, 0.5, 0.35)
# Asking again changes nothing.
_FINAL = (MotionStatus.SUCCEEDED, MotionStatus.START_IN_COLLISION, MotionStatus.UNREACHABLE)


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
    state_wait: float = parameter(10.0, "Longest wait for the first joint state [s]", minimum=1.0, maximum=120.0)
    python: str = parameter(
        AUTOMATIC,
        "Python of MoveItPy's own process; auto: that of this node if moveit_py takes arrays there, else "
        "/usr/bin/python3",
    )
    start_time: float = parameter(
        60.0, "Longest time in which MoveIt loads, beside state_wait [s]", minimum=1.0, maximum=600.0
    )
    answer_time: float = parameter(
        10.0, "Longest wait for an answer of MoveIt's process, beside planning_time [s]", minimum=0.1, maximum=600.0
    )


class MoveItBackend:
    """`MotionBackend` on MoveItPy.

    A process of MoveIt that ends, hangs or answers nonsense raises `MotionBackendError` with the reason; the next
    request starts another one, and gives it the world and what is attached.

    Args:
        robot: names of base, tip and joints; ``moveit['planning_group']`` is the group that is planned for.
        parameters: all ROS parameters of MoveIt, nested.
        config: settings.
        namespace: of MoveItPy's own node, which listens there to joint states; empty for the root.
        use_sim_time: it takes its time from `/clock`, as the joint states do.
        worn: asked at each request for what links carry besides what is attached here; MoveIt's robot gets it.

    Raises:
        MissingDependencyError: moveit_py works in no interpreter.
        InvalidInputError: the robot's configuration lacks the planning group; parameters that YAML can't say, or
            without the speed that straight lines are scaled from.
        MotionBackendError: MoveIt did not start; no joint states, or a bad parameter.
    """

    def __init__(
        self,
        robot: RobotConfiguration,
        parameters: Mapping[str, Any],
        config: MoveItConfig | None = None,
        namespace: str = "",
        use_sim_time: bool = False,
        worn: Callable[[], Sequence[Carried]] = tuple,
    ) -> None:
        if "planning_group" not in robot.moveit:
            raise InvalidInputError("robot.moveit", sorted(robot.moveit), "a key 'planning_group'")
        self.config = config or MoveItConfig()
        self.robot = robot
        self._parameters = self._merged(parameters, use_sim_time)
        self._line_speed = _line_speed(self._parameters)
        self._namespace, self._use_sim_time = namespace, use_sim_time
        self._table: TableObstacle | None = None
        self._objects: dict[str, ObjectObstacle] = {}
        self._solids: tuple[Solid, ...] = ()
        # What is attached, with centers in the frame of the tip link.
        self._attached: dict[str, ObjectObstacle] = {}
        self._worn = worn
        # What MoveIt's process has of it.
        self._told_worn: list[dict[str, Any]] = []
        self._python = choose_interpreter(self.config.python)
        self._process: MoveItProcess | None = None
        self._running()

    def set_world(
        self, table: TableObstacle | None, objects: Sequence[ObjectObstacle], solids: Sequence[Solid] = ()
    ) -> None:
        checked = check_objects(objects)
        if table is not None:
            table = replace(table, T_base_table=check_transform(table.T_base_table, "T_base_table"))
        self._table, self._objects, self._attached = table, {item.name: item for item in checked}, {}
        self._solids = tuple(solids)
        self._send_world(self._running())

    def plan_to_pose(self, start: Mapping[str, float], T_base_gripper: Array) -> MotionResult:
        return self._plan_free(start, {"pose": self._tip_pose(T_base_gripper)})

    def plan_to_joints(self, start: Mapping[str, float], goal: Mapping[str, float]) -> MotionResult:
        return self._plan_free(start, {"joints": {name: float(value) for name, value in goal.items()}})

    def plan_straight(
        self, start: Mapping[str, float], T_base_gripper: Array, speed: float, allow_contact: Sequence[str] = ()
    ) -> MotionResult:
        if not (np.isfinite(speed) and speed > 0.0):
            raise InvalidInputError("speed", speed, "a positive number [m/s]")
        pairs = [(name, link) for name in allow_contact for link in self.robot.touch_links]
        # What stands on the table touches it while it is lifted off.
        pairs += [(name, _TABLE) for name in self._attached if self._table is not None]
        scaling = min(1.0, max(1e-3, speed / self._line_speed))
        goal, spent = {"pose": self._tip_pose(T_base_gripper)}, 0.0
        for slower in _SLOWER:
            result = self._plan("line", start, goal, (scaling * slower, slower**2), pairs)
            spent += result.planning_time
            if result.status is not MotionStatus.NO_PATH:
                break
        result = replace(result, planning_time=spent)
        return replace(result, status=MotionStatus.PATH_BLOCKED) if result.status is MotionStatus.NO_PATH else result

    def attach(self, object_name: str, T_base_gripper: Array) -> None:
        if object_name not in self._objects:
            known = ", ".join(self._objects) or "none"
            raise InvalidInputError("object_name", repr(object_name), f"an object of the world ({known})")
        item = self._objects[object_name]
        T_tip_base = self.robot.T_tip_gripper @ invert_transform(check_transform(T_base_gripper, "T_base_gripper"))
        # In the frame of the link, so that it does not matter where the robot is now.
        held = replace(item, centers=transform_points(T_tip_base, item.centers))
        self._running().ask("attach", self.config.answer_time, **_spheres(held))
        self._attached[object_name] = held
        del self._objects[object_name]

    def detach(self, object_name: str) -> None:
        if object_name not in self._attached:
            raise InvalidInputError("object_name", repr(object_name), "an object that is attached")
        self._running().ask("detach", self.config.answer_time, name=object_name)
        del self._attached[object_name]

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    # The process

    def _merged(self, parameters: Mapping[str, Any], use_sim_time: bool) -> dict[str, Any]:
        merged = copy.deepcopy(dict(parameters))
        # MoveIt's wait of 2 s for the first joint state is often too short for discovery.
        monitor = merged.setdefault("planning_scene_monitor_options", {})
        monitor["wait_for_initial_state_timeout"] = self.config.state_wait
        if use_sim_time:
            merged |= {"use_sim_time": True, "qos_overrides": _CLOCK_QUALITY}
        try:
            json.dumps(merged, allow_nan=False)
        except (TypeError, ValueError) as error:
            bound = "finite numbers, texts, truth values, lists and mappings"
            raise InvalidInputError("moveit_parameters", f"a value of another kind ({error})", bound) from error
        return merged

    def _running(self) -> MoveItProcess:
        """MoveIt's process with the present world: the one that runs, or a new one."""
        if self._process is not None and self._process.is_alive:
            return self._process
        if self._process is not None:
            self._process.kill()
        self._process = None
        process = MoveItProcess(self._python)
        try:
            self._open(process)
            self._send_world(process)
            for held in self._attached.values():
                process.ask("attach", self.config.answer_time, **_spheres(held))
            self._told_worn = []
        except BaseException:
            process.kill()
            raise
        self._process = process
        return process

    def _open(self, process: MoveItProcess) -> None:
        config, robot = self.config, self.robot
        limit = config.start_time + config.state_wait
        try:
            process.ask(
                "open",
                limit,
                node_name=config.node_name,
                namespace=self._namespace,
                parameters=self._parameters,
                group=robot.moveit["planning_group"],
                base_link=robot.base_link,
                tip_link=robot.tip_link,
                touch_links=list(robot.touch_links),
                requests={
                    "free": self._request(config.pipeline, config.planner),
                    "line": self._request(config.line_pipeline, config.line_planner),
                },
            )
        except RequestRefusedError as error:
            clock = "as of /clock" if self._use_sim_time else "as of this machine's clock"
            cause = (
                f"{error}. Are all joints of the robot published on joint_states within {config.state_wait:.0f} s, "
                f"with times {clock}, and is the SRDF its own?"
            )
            raise MotionBackendError(f"MoveIt did not start: {cause}") from error
        except MotionBackendError as error:
            raise MotionBackendError(f"MoveIt did not start: {error}") from error

    def _request(self, pipeline: str, planner: str) -> dict[str, Any]:
        return {
            "planning_pipeline": pipeline,
            "planner_id": planner,
            "planning_attempts": 1,
            "planning_time": self.config.planning_time,
            "max_velocity_scaling_factor": self.config.velocity_scaling,
            "max_acceleration_scaling_factor": self.config.acceleration_scaling,
        }

    def _send_world(self, process: MoveItProcess) -> None:
        table = None
        if self._table is not None:
            slab = self._table.T_base_table.copy()
            slab[:3, 3] -= 0.5 * self._table.thickness * slab[:3, 2]
            size = [float(self._table.size[0]), float(self._table.size[1]), float(self._table.thickness)]
            table = {"size": size, "pose": _pose(slab)}
        objects = [_spheres(item) for item in self._objects.values()]
        solids: dict[str, list[dict[str, Any]]] = {}
        for solid in self._solids:
            solids.setdefault(_SOLID + solid.name, []).extend(_shapes(solid))
        process.ask("set_world", self.config.answer_time, table=table, objects=objects, solids=solids)

    def _tell_worn(self, process: MoveItProcess) -> None:
        worn = [
            {
                "name": item.name,
                "link": item.body.link,
                "centers": item.body.centers.tolist(),
                "radii": item.body.radii.tolist(),
                "touch_links": sorted({item.body.link, *item.touch_links}),
            }
            for item in self._worn()
        ]
        if worn != self._told_worn:
            process.ask("wear", self.config.answer_time, items=worn)
            self._told_worn = worn

    # Plans

    def _tip_pose(self, T_base_gripper: Array) -> list[float]:
        return _pose(check_transform(T_base_gripper, "T_base_gripper") @ invert_transform(self.robot.T_tip_gripper))

    def _plan_free(self, start: Mapping[str, float], goal: dict[str, Any]) -> MotionResult:
        """Ask several times: a single request of a sampling planner fails now and then."""
        spent = 0.0
        for _ in range(self.config.attempts):
            result = self._plan("free", start, goal)
            spent += result.planning_time
            if result.status in _FINAL:
                break
        return replace(result, planning_time=spent)

    def _plan(
        self, request: str, start: Mapping[str, float], goal: dict[str, Any],
        scaling: tuple[float, float] | None = None, contacts: Sequence[tuple[str, str]] = (),
    ) -> MotionResult:  # fmt: skip
        missing = [name for name in self.robot.arm_joints if name not in start]
        if missing:
            raise InvalidInputError("start", f"no position of {', '.join(missing)}", "a position of each arm joint")
        config, process = self.config, self._running()
        self._tell_worn(process)
        answer = process.ask(
            "plan",
            config.planning_time + config.answer_time,
            request=request,
            start={name: float(value) for name, value in start.items()},
            goal=goal,
            velocity_scaling=scaling and scaling[0],
            acceleration_scaling=scaling and scaling[1] * config.acceleration_scaling,
            contacts=contacts,
        )
        try:
            return self._result(answer, line=request == "line")
        except (TypeError, KeyError, IndexError, ValueError) as error:
            process.kill()
            text = f"MoveIt's process answered request 'plan' with {str(answer)[:80]} ({type(error).__name__}: {error})"
            raise MotionBackendError(text) from error

    def _result(self, answer: Mapping[str, Any], line: bool) -> MotionResult:
        spent, code = float(answer["time"]), str(answer["code"])
        if not code:
            return MotionResult(MotionStatus.FAILED, None, str(answer["message"]), spent)
        if code == "SUCCESS":
            return self._timed(answer, spent, line)
        return MotionResult(_STATUS_OF_CODE.get(code, MotionStatus.FAILED), None, f"MoveIt answers {code}", spent)

    def _timed(self, path: Mapping[str, Any], spent: float, line: bool) -> MotionResult:
        """A path as the server answers it as a result."""
        names = path["joints"]
        if any(len(row) != len(names) for row in path["velocities"]):
            remedy = "add the response adapter AddTimeOptimalParameterization to its pipeline"
            return MotionResult(MotionStatus.FAILED, None, f"MoveIt's path has no velocities: {remedy}", spent)
        order = [names.index(name) for name in self.robot.arm_joints]
        times = np.array(path["times"])
        positions = np.array(path["positions"])[:, order]
        velocities = np.array(path["velocities"])[:, order]
        velocities[0] = velocities[-1] = 0.0
        # Pilz may end with two rows at one time.
        kept = np.concatenate([np.diff(times) > 0.0, [True]])
        times, positions, velocities = times[kept] - times[kept][0], positions[kept], velocities[kept]
        if line:
            times, positions, velocities = _smooth_velocities(times, positions, velocities)
        trajectory = Trajectory(self.robot.arm_joints, times, positions, velocities)
        return MotionResult(MotionStatus.SUCCEEDED, trajectory, "", spent)


def _smooth_velocities(times: Array, positions: Array, velocities: Array) -> tuple[Array, Array, Array]:
    """Rows of a line with the velocities of a smooth curve through its positions, at rest at both ends.

    Pilz' velocities are differences between rows, and its last step is as short as it comes: what follows them exactly
    would accelerate at 19 rad/s² where the line itself needs 1.5 (a UR3e that lifts by 0.2 m).
    """
    from scipy.interpolate import CubicSpline

    if len(times) < 3:
        return times, positions, velocities
    # A short step makes accelerations of the last digits of a position.
    steps = np.diff(times)
    long = steps > _SHORT_STEP * np.median(steps)
    kept = np.concatenate([[True], long[:-1] & long[1:], [True]])
    curve = CubicSpline(times[kept], positions[kept], bc_type="clamped")
    return times[kept], positions[kept], curve(times[kept], 1)


def _line_speed(parameters: Mapping[str, Any]) -> float:
    """What Pilz scales lines from [m/s], where Pilz reads it."""
    found: Any = parameters
    for key in ("robot_description_planning", "cartesian_limits", "max_trans_vel"):
        found = found.get(key) if isinstance(found, Mapping) else None
    if not (isinstance(found, int | float) and found > 0.0):
        name = "moveit_parameters: robot_description_planning.cartesian_limits.max_trans_vel"
        remedy = "docs/moveit.md says how to make the file."
        raise InvalidInputError(name, found, "a positive number [m/s]", remedy)
    return float(found)


def _pose(transform: Array) -> list[float]:
    return [*transform[:3, 3].tolist(), *quat_xyzw_from_matrix(transform[:3, :3]).tolist()]


def _shapes(solid: Solid) -> list[dict[str, Any]]:
    """Shapes that MoveIt knows, as far as a mesh is not grown."""
    pose, size = solid.T_world_solid, solid.dimensions.tolist()
    if solid.mesh is not None:
        shape = {"vertices": solid.mesh.vertices.tolist(), "faces": solid.mesh.faces.tolist()}
        return [{"kind": "mesh", "pose": _pose(pose), **shape}]
    if solid.kind is GeometryKind.CYLINDER:
        return [{"kind": "cylinder", "pose": _pose(pose), "dimensions": size[::-1]}]
    if solid.kind is not GeometryKind.CAPSULE:
        return [{"kind": solid.kind.value, "pose": _pose(pose), "dimensions": size}]
    radius, length = size
    ends = [pose @ make_transform(translation=[0.0, 0.0, side * 0.5 * length]) for side in (-1.0, 1.0)]
    caps = [{"kind": "sphere", "pose": _pose(end), "dimensions": [radius]} for end in ends]
    return [{"kind": "cylinder", "pose": _pose(pose), "dimensions": [length, radius]}, *caps]


def _spheres(item: ObjectObstacle) -> dict[str, Any]:
    return {"name": item.name, "centers": item.centers.tolist(), "radii": item.radii.tolist()}
