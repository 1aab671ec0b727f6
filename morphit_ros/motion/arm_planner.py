"""Motions of a robot's arm from a request to a timed, proven trajectory: what the action `plan_motion` answers with."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.certificate import Verdict, certify_path, least_clearance
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.nearby import nearest_free, unavoidable_pairs
from morphit_ros.motion.planner import PathConfig, PathPlan, PathStatus, find_contact
from morphit_ros.motion.proven_timing import TimingLimits, time_proven
from morphit_ros.motion.refinement import COUNTS, Carried, RefinableArm, plan_refined
from morphit_ros.motion.world import World
from morphit_ros.robot.clearance import StateClearance
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.inverse_kinematics import IKConfig, inverse_kinematics, inverse_kinematics_solutions
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.trajectory_timing import chord_deviations

_GOAL_IK = IKConfig(position_tolerance=1e-6, rotation_tolerance=1e-5)
# Places along a way that distances are asked at, and branches of a tree, worked out for displays.
_PLACES, _BRANCHES = 100, 400
# How far around the robot clearances are looked for, for displays [m].
_CLEARANCE = 0.3


@dataclass(frozen=True)
class ArmPlannerConfig(Config):
    """Settings of planned motions."""

    planning_time: float = parameter(2.0, "Time for a search and its proof [s]", minimum=0.01, maximum=120.0)
    solutions: int = parameter(8, "Solutions of the inverse kinematics of a pose", minimum=1, maximum=100)
    velocity_scaling: float = parameter(0.5, "Share of the joints' velocity limits", minimum=0.01, maximum=1.0)
    acceleration_scaling: float = parameter(0.5, "Share of the joints' acceleration limits", minimum=0.01, maximum=1.0)
    blend: float = parameter(0.05, "Greatest deviation where corners are rounded [rad]", minimum=0.0, maximum=0.5)
    time_step: float = parameter(0.02, "Time between the rows of a trajectory [s]", minimum=1e-3, maximum=0.2)
    choices: int = parameter(
        1, "Paths to choose from by the distance function that is handed in; 1: the first that is found",
        minimum=1, maximum=50,
    )  # fmt: skip
    enough_clearance: float = parameter(
        0.05, "Of paths that keep so far from everything the shortest is chosen [m]", minimum=0.0, maximum=1.0
    )
    proof_budget: int = parameter(20_000, "Most configurations that a proof looks at", minimum=1, maximum=10_000_000)
    limit_tolerance: float = parameter(
        0.02, "A start so far beyond its limits is taken as at its limit [rad or m]", minimum=0.0, maximum=0.2
    )
    seed: int = parameter(0, "Of samples, shortcuts and inverse kinematics", minimum=0, maximum=2**31 - 1)


@dataclass(frozen=True)
class PoseGoal:
    """Where a link shall be: ``T_root_link`` (4, 4)."""

    link: str
    T_root_link: Array


@dataclass(frozen=True)
class MotionRequest:
    """What is asked for. The order of goals is: those of joints, then poses.

    Attributes:
        start: positions of joints [rad or m]; those that are not planned stay there, at zero or the limit next to it
            where not given.
        joint_goals: positions of the planned joints, by name.
        pose_goals: each reached by any of its solutions.
        world: what must not be touched, in the frame of the root link.
        carried: objects on the robot.
        allowed: pairs that may touch: links and carried objects; with the world they belong to `World`.
        timeout: for search and proof [s]; None for the settings'.
        improvement: further time for a shorter way [s].
        velocity_scaling, acceleration_scaling: None for the settings'.
        clearance: distance function of the robot in this world, by which paths are chosen and shown; None: paths are
            not chosen, and shown by the distances of the covers.
    """

    start: Mapping[str, float]
    joint_goals: Sequence[Mapping[str, float]] = ()
    pose_goals: Sequence[PoseGoal] = ()
    world: World = field(default_factory=World)
    carried: Sequence[Carried] = ()
    allowed: Collection[frozenset[str]] = ()
    timeout: float | None = None
    improvement: float = 0.0
    velocity_scaling: float | None = None
    acceleration_scaling: float | None = None
    clearance: StateClearance | None = None


@dataclass(frozen=True)
class MotionAnswer:
    """A trajectory, or why there is none.

    Attributes:
        status: how it ended.
        message: the cause, or what is to be known of the trajectory.
        trajectory: None unless the status is FOUND.
        verdict: what is proven of it, None without.
        goal: index of the goal that is reached, -1 without.
        touching: the two that overlap deepest where start or goal touches, None otherwise.
        depth: of that [m].
        free_configuration: (J,) the nearest free one that was found then, None otherwise.
        plan: the path behind it.
        model: the arm as it was planned with.
        planning_time: wall time [s].
        clearance: least distance along the trajectory, at up to 100 places, by the request's function [m]; NaN without.
    """

    status: PathStatus
    message: str
    trajectory: Trajectory | None = None
    verdict: Verdict | None = None
    goal: int = -1
    touching: tuple[str, str] | None = None
    depth: float = 0.0
    free_configuration: Array | None = None
    plan: PathPlan | None = None
    model: ArmModel | None = None
    planning_time: float = 0.0
    clearance: float = np.nan


# Told the stage, and the length of the shortest path so far (infinite before the first); False: give up.
Progress = Callable[[str, float], bool]


class ArmPlanner:
    """Plans for one arm, with proven covers of its links: as coarse as it can be, as fine as it must.

    At first it has coarse covers alone; `prepare` fits finer ones.

    Args:
        description: the robot, with its collision geometry as it is.
        robot: names and limits of the arm.
        config: settings.
        counts: of `RefinableArm`.

    Raises:
        InvalidInputError: they don't fit together.
    """

    def __init__(
        self,
        description: RobotDescription,
        robot: RobotConfiguration,
        config: ArmPlannerConfig | None = None,
        counts: Sequence[int] = COUNTS,
    ) -> None:
        robot.check_description(description)
        self.config = config or ArmPlannerConfig()
        self.robot = robot
        self._arm = RefinableArm(description, robot.arm_joints, counts=counts, patient=False)
        self.kinematics = self._arm.kinematics
        self._velocities = self.kinematics.limits(robot.arm_joints)[2]

    @property
    def levels(self) -> tuple[int, int]:
        """How many levels of covers are fitted, and how many there will be."""
        return self._arm.levels

    def prepare(self) -> None:
        """Fit the next finer covers, seconds where they are not in the cache. Another thread may plan meanwhile."""
        self._arm.prepare()

    def plan(self, request: MotionRequest, progress: Progress = lambda *_: True) -> MotionAnswer:
        """Answer a request.

        Raises:
            InvalidInputError: no goal; joints that are missing, not finite or beyond their limits; a link or a scaling
                that is none.
        """
        began, config = time.perf_counter(), self.config
        limits = self._limits(request)
        kinematics = self.kinematics
        zero = np.clip(0.0, kinematics.position_lower, kinematics.position_upper).tolist()
        measured = request.start
        request = replace(request, start=dict(zip(kinematics.joint_names, zero, strict=True)) | dict(measured))
        arm = self._arm.at(request.start, request.carried, request.allowed)
        model = arm.model({})
        start = self._start(model, measured)
        progress("goals", np.inf)
        rows, numbers, unreached = self._goals(model, request, start)
        if not rows:
            return MotionAnswer(PathStatus.UNREACHABLE, unreached, planning_time=time.perf_counter() - began)
        timeout = request.timeout or config.planning_time
        until = time.monotonic() + timeout + request.improvement
        settings = PathConfig(
            timeout=timeout, improvement=request.improvement, proof_budget=config.proof_budget, seed=config.seed
        )
        watch = lambda length: progress("search" if np.isinf(length) else "improvement", length)  # noqa: E731
        world, left_out = request.world, set[frozenset[str]]()
        plan, levels = plan_refined(arm, world, start, rows, settings, watch)
        if plan.status is PathStatus.START_TOUCHES:
            left_out = unavoidable_pairs(arm.model(levels), world, start, config.seed)
            if left_out:
                world = world.allowing(left_out)
                plan, levels = plan_refined(arm, world, start, rows, settings, watch)
        model = arm.model(levels)
        answer = MotionAnswer(plan.status, plan.message, touching=plan.bodies, depth=plan.depth, plan=plan, model=model)
        if plan.status is PathStatus.FOUND:
            answer = self._timed(answer, request, world, limits, until, progress)
            for seed in range(config.seed + 1, config.seed + (config.choices if request.clearance else 1)):
                left = until - time.monotonic()
                if left <= 0.0 or answer.clearance >= config.enough_clearance:
                    break
                again, levels = plan_refined(
                    arm, world, start, rows, replace(settings, timeout=left, improvement=0.0, seed=seed), watch
                )
                if again.status is PathStatus.FOUND:
                    other = replace(answer, plan=again, model=arm.model(levels))
                    other = self._timed(other, request, world, limits, until, progress)
                    answer = max(answer, other, key=self._worth)
            proven = answer.verdict is Verdict.PROVEN_FREE
            assert answer.plan is not None and answer.model is not None
            said = [unreached, _unchecked(answer.model, left_out), "" if proven else "not proven between samples"]
            answer = replace(answer, message="; ".join(filter(None, said)), goal=numbers[answer.plan.goal])
        elif plan.bodies is not None:
            touching = start if plan.status is PathStatus.START_TOUCHES else rows[0]
            free = nearest_free(model, world, touching, config.seed)
            where = "start" if plan.status is PathStatus.START_TOUCHES else "goal"
            answer = replace(answer, message=f"{where}: {plan.message}", free_configuration=free)
        return replace(answer, planning_time=time.perf_counter() - began)

    def _timed(
        self, answer: MotionAnswer, request: MotionRequest, world: World, limits: TimingLimits, until: float,
        progress: Progress,
    ) -> MotionAnswer:  # fmt: skip
        """The answer with the trajectory of its plan."""
        assert answer.plan is not None and answer.model is not None
        progress("timing", answer.plan.length)
        trajectory, proven = time_proven(answer.model, world, answer.plan, limits, until - time.monotonic())
        verdict = Verdict.PROVEN_FREE if proven else Verdict.FREE_AT_SAMPLES
        answer = replace(answer, trajectory=trajectory, verdict=verdict)
        if request.clearance is None:
            return answer
        return replace(answer, clearance=float(request.clearance(self._states(_places(answer), request.start)).min()))

    def _worth(self, answer: MotionAnswer) -> tuple[bool, float, float]:
        """What is proven comes first, then what keeps away, as far as that is enough, then what is short."""
        assert answer.plan is not None
        proven = answer.verdict is Verdict.PROVEN_FREE
        return proven, min(answer.clearance, self.config.enough_clearance), -answer.plan.length

    def proves(self, answer: MotionAnswer, world: World) -> bool:
        """Whether the trajectory of an answer is proven free in another world too, carrying what it carried."""
        if answer.trajectory is None or answer.model is None:
            return False
        if find_contact(answer.model, world, answer.trajectory.positions[0]) is not None:
            # As of a start within a mesh, whose surface the motion does not touch.
            return False
        arm, beside = answer.model.arrays, chord_deviations(answer.trajectory)
        solids = world.arrays_for(answer.model.parts)
        path = answer.trajectory.positions
        certificate = certify_path(arm, solids, path, self.config.proof_budget, beside)
        return certificate.verdict is Verdict.PROVEN_FREE

    def places(self, answer: MotionAnswer, request: MotionRequest, link: str = "") -> tuple[Array, Array]:
        """Where a link goes, for displays: points (N, 3) along the way and how far all is from all there (N,) [m].

        Args:
            answer, request: of `plan`.
            link: empty for the tip link.
        """
        if answer.trajectory is None or answer.model is None:
            return np.zeros((0, 3)), np.zeros(0)
        rows = _places(answer)
        if request.clearance is not None:
            return self._points(rows, request.start, link), request.clearance(self._states(rows, request.start))
        solids = request.world.arrays_for(answer.model.parts)
        clearance = [least_clearance(answer.model.arrays, solids, row, _CLEARANCE)[0] for row in rows]
        return self._points(rows, request.start, link), np.array(clearance)

    def branches(self, answer: MotionAnswer, request: MotionRequest, link: str = "") -> tuple[Array, Array]:
        """Ends of the branches of both trees, two by two (N, 3) of a link [m], for displays."""
        trees = answer.plan.branches if answer.plan is not None else None
        if trees is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        first, second = (tree[:_BRANCHES].reshape(-1, tree.shape[-1]) for tree in trees)
        return self._points(first, request.start, link), self._points(second, request.start, link)

    def _points(self, rows: Array, start: Mapping[str, float], link: str) -> Array:
        link = link or self.robot.tip_link
        states = self._states(rows, start)
        return np.array([self.kinematics.link_pose(state, link)[:3, 3] for state in states]).reshape(-1, 3)

    def _states(self, rows: Array, start: Mapping[str, float]) -> list[dict[str, float]]:
        """Positions of all joints where those of the arm are (N, J); the others stay at the start."""
        standing = dict.fromkeys(self.kinematics.joint_names, 0.0) | dict(start)
        return [standing | dict(zip(self.robot.arm_joints, row, strict=True)) for row in rows.tolist()]

    def _limits(self, request: MotionRequest) -> TimingLimits:
        config, scalings = self.config, []
        for name in ("velocity_scaling", "acceleration_scaling"):
            value = getattr(request, name)
            scalings.append(getattr(config, name) if value is None else float(value))
            if not 0.0 < scalings[-1] <= 1.0:
                raise InvalidInputError(name, scalings[-1], "above 0, at most 1")
        return TimingLimits(
            scalings[0] * self._velocities, scalings[1] * self.robot.acceleration_limits, config.blend,
            config.time_step, config.proof_budget,
        )  # fmt: skip

    def _start(self, model: ArmModel, positions: Mapping[str, float]) -> Array:
        """The start, at its limits where it is a little beyond them."""
        row = model.configuration(positions, "start")
        held = np.clip(row, model.lower, model.upper)
        return held if np.abs(row - held).max() <= self.config.limit_tolerance else row

    def _goals(
        self, model: ArmModel, request: MotionRequest, start: Array
    ) -> tuple[list[Array], list[int], str]:  # fmt: skip
        """Configurations that reach a goal, the number of each one's goal, and why some goals have none."""
        if not (request.joint_goals or request.pose_goals):
            raise InvalidInputError("goals", "none", "at least one, of joints or a pose")
        rows = [model.configuration(goal, f"joint goal {index}") for index, goal in enumerate(request.joint_goals)]
        numbers, lost = list(range(len(rows))), []
        rng, names = np.random.default_rng(self.config.seed), self.robot.arm_joints
        state = dict(request.start) | dict(zip(names, start.tolist(), strict=True))
        for index, goal in enumerate(request.pose_goals):
            self.kinematics.check_link(goal.link)
            arguments = (self.kinematics, goal.T_root_link, goal.link, names, state)
            found = list(inverse_kinematics_solutions(*arguments, self.config.solutions, rng, _GOAL_IK))
            if not found:
                off = inverse_kinematics(*arguments, rng, _GOAL_IK).residual
                short = f"{1000.0 * off[0]:.1f} mm and {np.degrees(off[1]):.1f}°"
                lost.append(f"pose goal {index}: out of reach, the nearest positions found are {short} off")
            rows += [model.configuration(each.positions) for each in found]
            numbers += [len(request.joint_goals) + index] * len(found)
        order = sorted(range(len(rows)), key=lambda n: float(np.abs(rows[n] - start).max()))
        return [rows[n] for n in order], [numbers[n] for n in order], "; ".join(lost)


def _places(answer: MotionAnswer) -> Array:
    """Rows (N, J) along the trajectory of an answer that are looked at."""
    assert answer.trajectory is not None
    positions = answer.trajectory.positions
    rows: Array = positions[np.unique(np.linspace(0, len(positions) - 1, _PLACES).astype(np.int64))]
    return rows


def _unchecked(model: ArmModel, left_out: Collection[frozenset[str]]) -> str:
    """Pairs that a proof says nothing about, in words."""
    pairs = [" and ".join(sorted(pair)) for pair in (*model.left_out, *sorted(left_out, key=sorted))]
    return f"not checked, since they always touch: {', '.join(pairs)}" if pairs else ""
