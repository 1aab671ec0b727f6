"""Which of several grasps is executed: the first whose motions can all be planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from morphit_ros.execution.arm_and_hand import ArmAndHand
from morphit_ros.execution.failure import FailureMode, PickFailed
from morphit_ros.execution.pick import Command, GraspTarget, PickRequest
from morphit_ros.geometry.transforms import Array, rotation_angle
from morphit_ros.robot.motion_backend import MotionResult, MotionStatus
from morphit_ros.robot.motion_types import Trajectory

# A parallel gripper that is turned half around its approach grasps the same way.
_HALF_TURN = np.diag([-1.0, -1.0, 1.0])
_SHOWN = 5


class PlanCandidates:
    """Plans one candidate an update, so that the robot is looked at between them.

    A candidate with known positions at its pre-grasp is planned to these first, and then to any that a search finds.

    Args:
        robot: plans from where it is.
        request: what to pick.
        indices: of the candidates to consider, best first.
    """

    def __init__(self, robot: ArmAndHand, request: PickRequest, indices: Sequence[int]) -> None:
        self._robot, self._request = robot, request
        self._left = [(index, way) for index in indices for way in _ways(request.candidates[index])]
        self._count = len(indices)
        self._world_set = False
        self._rejected: dict[int, str] = {}
        self.chosen = -1
        self.pregrasp: Trajectory | None = None
        self.approach: Trajectory | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self.chosen >= 0:
            # One call later, so that the time of planning counts for this stage.
            return (), True
        if not self._world_set:
            self._set_world()
            self._world_set = True
        index, positions = self._left.pop(0)
        problem = self._plan(self._request.candidates[index], positions)
        if not problem:
            self.chosen = index
            return (), False
        self._rejected[index] = f"grasp {index + 1}: {problem}"
        if not self._left:
            problems = list(self._rejected.values())
            shown = "; ".join(problems[:_SHOWN]) + ("; …" if len(problems) > _SHOWN else "")
            raise PickFailed(FailureMode.UNREACHABLE, f"none of {self._count} grasps can be reached: {shown}")
        return (), False

    def _set_world(self) -> None:
        request = self._request
        target = () if request.target is None else (request.target,)
        self._robot.backend.set_world(request.table, (*target, *request.obstacles), request.solids)

    def _plan(self, grasp: GraspTarget, positions: Mapping[str, float] | None) -> str:
        """Plan all motions of a grasp before any is made; the reason if one is impossible.

        Args:
            grasp: what to plan for.
            positions: of the arm at the pre-grasp [rad]; None for any.
        """
        robot, config, backend = self._robot, self._robot.config, self._robot.backend
        limit = robot.gripper.aperture_max if robot.cup is None else 0.0
        if grasp.open_aperture > limit + config.open_tolerance:
            return f"needs {1000 * grasp.open_aperture:.0f} mm, the gripper opens {1000 * limit:.0f} mm"
        near = self._too_near(grasp)
        if near:
            return near
        allowed = self._request.target_names
        start = robot.with_aperture(robot.state.positions, grasp.open_aperture)
        if positions is None:
            pregrasp = backend.plan_to_pose(start, grasp.T_base_pregrasp)
        else:
            pregrasp = backend.plan_to_joints(start, positions)
        if pregrasp.status is MotionStatus.START_IN_COLLISION:
            raise PickFailed(FailureMode.UNREACHABLE, reason("pre-grasp", pregrasp))
        if pregrasp.trajectory is None:
            return reason("pre-grasp", pregrasp)
        start = at_end(start, pregrasp.trajectory)
        approach = backend.plan_straight(start, grasp.T_base_gripper, config.approach_speed, allowed)
        if approach.trajectory is None:
            return reason("approach", approach)
        start = robot.with_aperture(at_end(start, approach.trajectory), grasp.aperture)
        lift = self._lift(grasp, start)
        if lift.trajectory is None:
            return reason("lift", lift)
        self.pregrasp, self.approach = pregrasp.trajectory, approach.trajectory
        return ""

    def _lift(self, grasp: GraspTarget, start: Mapping[str, float]) -> MotionResult:
        """The lift with the object in the hand: what it would meet up there is known before the fingers close."""
        robot, request, backend = self._robot, self._request, self._robot.backend
        goal = request.lifted(grasp, request.lift_height or robot.config.lift_height)
        for name in request.target_names:
            backend.attach(name, grasp.T_base_gripper)
        lift = backend.plan_straight(start, goal, robot.config.lift_speed)
        if request.target_names:
            # It still lies there.
            self._set_world()
        return lift

    def _too_near(self, grasp: GraspTarget) -> str:
        """Where the open gripper would be too near by the request's distance function, empty if nowhere."""
        request = self._request
        if request.clearance is None:
            return ""
        for where, pose in (("pre-grasp", grasp.T_base_pregrasp), ("grasp", grasp.T_base_gripper)):
            distance = request.clearance(pose, grasp.open_aperture)
            # A distance that is not a number must not pass for a large one.
            if not distance >= request.min_clearance:
                least = 1000.0 * request.min_clearance
                return f"{where}: the open gripper is {1000.0 * distance:.1f} mm clear, at least {least:.1f} mm wanted"
        return ""


def _ways(grasp: GraspTarget) -> list[Mapping[str, float] | None]:
    """Positions to plan a grasp's pre-grasp to, None for any."""
    return [None] if grasp.pregrasp_positions is None else [grasp.pregrasp_positions, None]


def is_near(pose: Array, other: Array, distance: float, angle: float) -> bool:
    """Whether two gripper poses (4, 4) grasp at about the same place in about the same way [m], [rad]."""
    if float(np.linalg.norm(pose[:3, 3] - other[:3, 3])) > distance:
        return False
    relative = pose[:3, :3].T @ other[:3, :3]
    return min(rotation_angle(relative), rotation_angle(relative @ _HALF_TURN)) <= angle


def preferred(
    poses: Sequence[Array], held: Sequence[Array], failed: Sequence[Array], distance: float, angle: float
) -> list[int]:
    """Order of gripper poses (4, 4) by experience: those near one that held first, those near one that failed last.

    Among equals the order stays; a grasp that held once counts more than one that failed.

    Args:
        poses: best first.
        held, failed: poses of earlier picks, in the same frame.
        distance, angle: as of `is_near`.
    """

    def rank(index: int) -> int:
        near = [any(is_near(poses[index], other, distance, angle) for other in known) for known in (held, failed)]
        return 0 if near[0] else 1 + near[1]

    return sorted(range(len(poses)), key=rank)


def reason(motion: str, result: MotionResult) -> str:
    """Why a motion could not be planned."""
    return f"{motion}: {result.status.value}" + (f" ({result.message})" if result.message else "")


def at_end(positions: dict[str, float], trajectory: Trajectory) -> dict[str, float]:
    """The positions after a trajectory."""
    return {**positions, **dict(zip(trajectory.joint_names, trajectory.positions[-1].tolist(), strict=True))}
