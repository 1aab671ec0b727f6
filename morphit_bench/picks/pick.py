"""Whole picks in one process: simulated workcell, perception, planning and execution without a ROS graph.

The same core objects as the nodes use, driven by the simulation's clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from morphit_bench.grasping.methods import MorphitMethod
from morphit_bench.picks.flying_gripper import FlightPlanner, flying_gripper
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.planners import GraspPlanner, grasp_planner
from morphit_bench.picks.views import KNOWN_POINTS, SETTINGS, ObjectView, known_shape, observed_shape
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.candidates import is_near, preferred
from morphit_ros.execution.displacement import planar_motion
from morphit_ros.execution.failure import FailureMode, PickOutcome as SequenceOutcome
from morphit_ros.execution.obstacles import fine_obstacle, table_obstacle
from morphit_ros.execution.pick import (
    Command,
    CommandGripper,
    CupLimits,
    GraspTarget,
    GripperLimits,
    PickRequest,
    PickStage,
    SendTrajectory,
    SequenceUpdate,
    StopArm,
    SwitchVacuum,
)
from morphit_ros.execution.pushing import ClosedFingers
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Scale, effort_scale
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    rotation_angle,
    transform_points,
)
from morphit_ros.grasping import Grasp, GraspPlan, Gripper
from morphit_ros.grasping.suction.cup import SuctionCup, load_gripper, two_fingers
from morphit_ros.memory.library import ObjectLibrary, Recognition
from morphit_ros.memory.look import Look
from morphit_ros.memory.thing import Lesson, Weight
from morphit_ros.motion.embedded import EmbeddedBackend, EmbeddedConfig
from morphit_ros.motion.reachability import Reachability
from morphit_ros.motion.refinement import RefinableArm
from morphit_ros.perception import PerceptionConfig
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_backend import MotionBackend, ObjectObstacle
from morphit_ros.robot.motion_types import JointState
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.robot.solids import Solid
from morphit_ros.simulation.workcell import Workcell
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres, spheres_in_frame, spherized_urdf

# The limit of a search for a path is its number of nodes: with one of time, a busy machine would pick less.
_UNHURRIED = EmbeddedConfig(planning_time=120.0)
# Simulated time between two looks of the sequence at the robot [s].
PERIOD = 0.02
# No pick takes longer; a sequence that does not end by itself is a fault of its own [s].
_LONGEST_PICK = 90.0
# Success: so close to where a rigid grasp would have carried the object, the DISF paper's offset and half of its 30°.
MAX_OFFSET, MAX_TURN = 0.06, math.radians(15.0)
# An approach that moves the object further than this has hit it, and is stopped [m].
MAX_SHIFT = 0.01
_APPROACHING = (PickStage.PREGRASP, PickStage.APPROACH)


class AnySequence(Protocol):
    """A sequence of a pick, or of the hand."""

    def update(self, now: float, state: JointState | None) -> Any:
        """Look at the robot and go on."""
        ...


class PickJob:
    """A robot, or a gripper without one, ready for picks: everything that is kept from one pick to the next.

    Args:
        robot: configuration of arm and gripper.
        gripper: that it carries.
        backend: plans its motions.
        robot_spheres: centres and radii of the robot in the world, None if it is never in view.
        reachability: which grasps the arm can reach, None if it can reach all.
        scale: weighs what the arm lifts, None if nothing is weighed.
    """

    def __init__(
        self,
        robot: RobotConfiguration,
        gripper: Gripper | SuctionCup,
        backend: MotionBackend,
        robot_spheres: Callable[[Workcell], tuple[Array, Array] | None] | None = None,
        reachability: Reachability | None = None,
        scale: Scale | None = None,
    ) -> None:
        self.robot, self.gripper = robot, gripper
        self.backend, self.robot_spheres, self._reachability = backend, robot_spheres, reachability
        self.scale = scale
        # The object of the last pick, before it was touched (N, 3), in the world [m].
        self._seen: Array = np.empty((0, 3))

    @property
    def limits(self) -> GripperLimits | CupLimits:
        """Of the gripper."""
        gripper = self.gripper
        if isinstance(gripper, SuctionCup):
            return CupLimits(gripper.bellows_stroke)
        return GripperLimits(gripper.aperture_min, gripper.aperture_max, gripper.max_force, gripper.min_force)

    @property
    def two_fingers(self) -> Gripper:
        """The gripper, where it has fingers.

        Raises:
            InvalidInputError: it is a suction cup.
        """
        return two_fingers(self.gripper)

    @property
    def fingers(self) -> ClosedFingers:
        """Of the gripper, closed.

        Raises:
            InvalidInputError: it has none.
        """
        return ClosedFingers.around(*self.two_fingers.closed_fingers)

    @classmethod
    def with_arm(cls, robot: str = "panda", seed: int = 0, refined: bool = True) -> PickJob:
        """An arm of config/robots with its sphere model and motion planner; `seed` is of both.

        Transfers are planned with covers of the links as fine as the place asks for, unless not `refined`: with those
        spheres then.
        """
        configuration = RobotConfiguration.load(robot)
        description = load_robot_description(configuration.description)
        spheres = fit_robot_spheres(description, SphereFitConfig(), seed=seed)
        kinematics = KinematicModel(description)
        uri = configuration.semantic_description
        srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
        covers = RefinableArm(kinematics, configuration.arm_joints) if refined else None
        backend = EmbeddedBackend(
            spherized_urdf(description, spheres), srdf, configuration, _UNHURRIED, seed, lambda: covers
        )

        def spheres_now(workcell: Workcell) -> tuple[Array, Array]:
            transforms = kinematics.forward_kinematics(workcell.joint_state().as_dict())
            root = workcell.T_world_base @ invert_transform(transforms[configuration.base_link])
            return spheres_in_frame(spheres, {link: root @ pose for link, pose in transforms.items()})

        reachability = Reachability(configuration, description, spheres, srdf, seed=seed)
        scale = effort_scale(kinematics, configuration)
        return cls(configuration, load_gripper(configuration.gripper), backend, spheres_now, reachability, scale)

    @classmethod
    def flying(cls, gripper: str) -> PickJob:
        """A gripper of config/grippers that flies."""
        loaded = Gripper.load(gripper)
        robot = flying_gripper(loaded)
        return cls(robot, loaded, FlightPlanner(robot))

    def pick(
        self,
        workcell: Workcell,
        setting: str = "observed",
        planner: GraspPlanner | None = None,
        perception: PerceptionConfig | None = None,
        sequence: SequenceConfig | None = None,
        seed: int = 0,
        on_plan: Callable[[ObjectView, GraspPlan], None] | None = None,
        on_stage: Callable[[PickStage], None] | None = None,
        after: PickResult | None = None,
        library: ObjectLibrary | None = None,
    ) -> PickResult:
        """See, plan and pick the object of a workcell, once.

        Args:
            workcell: at rest, with this job's robot; time passes in it.
            setting: whether the planner is given the true shape (known) or what cameras see (observed).
            planner: None for ours.
            perception, sequence: settings, None for the defaults; no attempt of the sequence's own follows a failed
                one, since the object may have moved: see `pick_again`.
            seed: of perception, sampling and planning.
            on_plan: called with view and plan before anything moves.
            on_stage: called at the beginning of each stage of the sequence.
            after: the attempt before, which failed: grasps near its own are not tried; what it has weighed is known.
            library: what is known of the object there is used, and what the pick teaches is kept there.

        Raises:
            InvalidInputError: no such setting.
        """
        if setting not in SETTINGS:
            raise InvalidInputError("setting", repr(setting), f"one of {', '.join(SETTINGS)}")
        view = self.see(workcell, setting, perception, seed)
        durations = {"see": view.seconds}
        if view.cloud is None:
            return PickResult(Outcome.NOT_SEEN, "see", view.message, durations=durations)
        points = view.cloud.finite().points
        # It may have been put down elsewhere than it was taken from.
        moved = None if after is None else planar_motion(self._seen, points)
        self._seen = points
        avoid = []
        if after is not None and after.T_world_gripper:
            avoid = [(make_transform() if moved is None else moved) @ np.array(after.T_world_gripper)]
        told = view
        if after is not None and after.center and view.center_of_mass is None and moved is not None:
            center = transform_points(moved, np.array([after.center]))[0]
            told = replace(view, center_of_mass=center, mass=after.mass)
        known, said = (None, "") if library is None else library.recognise(look_of(view))
        if known is not None and told.center_of_mass is None and (weight := known.lesson.weight) is not None:
            told = replace(told, center_of_mass=weight.center, mass=weight.mass)
        began, busy = time.perf_counter(), time.process_time()
        plan = self.plan(workcell, told, planner or grasp_planner("morphit", setting), seed, avoid)
        planning_time = time.process_time() - busy
        if known is not None:
            plan = _by_experience(plan, known.lesson)
        durations["plan_grasp"] = time.perf_counter() - began
        if on_plan is not None:
            on_plan(view, plan)
        if not plan.grasps:
            kind = Outcome.UNREACHABLE if plan.rejected.get("unreachable") else Outcome.NO_PLAN
            return PickResult(kind, "plan_grasp", plan.message, planning_time=planning_time, durations=durations)
        recenter = after is None and view.center_of_mass is None
        result = self._execute(workcell, view, plan, sequence or SequenceConfig(), on_stage, recenter)
        if library is not None:
            _teach(library, look_of(view), known, result)
        durations |= result.durations
        return replace(result, planning_time=planning_time, durations=durations, recognised=said)

    def plan(
        self, workcell: Workcell, view: ObjectView, planner: GraspPlanner, seed: int = 0, avoid: Sequence[Array] = ()
    ) -> GraspPlan:
        """Grasps of an object that was seen, which the arm can reach among all else that was seen.

        Args:
            workcell, planner, seed, avoid: as of `pick`.
            view: of the object, with its cloud.
        """
        assert view.cloud is not None
        arguments: dict[str, Any] = {
            "center_of_mass": view.center_of_mass, "reachable": self._reachable(workcell, view, avoid),
            "obstacles": view.obstacles, "viewpoints": view.viewpoints, "mass": view.mass,
        }  # fmt: skip
        if isinstance(planner, MorphitMethod):
            return planner.plan(view.cloud, self.gripper, view.table, seed, **arguments)
        return planner.plan(view.cloud, self.two_fingers, view.table, seed, **arguments)

    def pick_again(self, workcell: Workcell, first: PickResult, **arguments: Any) -> PickResult | None:
        """Another look, plan and pick after a failed one; None where the robot is not ready for it.

        Args:
            workcell: as the first pick left it.
            first: what became of that.
            arguments: as of `pick`.
        """
        if first.success or not first.ready or not self.go_home(workcell):
            return None
        return self.pick(workcell, after=first, **arguments)

    def go_home(self, workcell: Workcell) -> bool:
        """Out of the cameras' view; whether the arm arrived."""
        home = dict(zip(self.robot.arm_joints, self.robot.home.tolist(), strict=True))
        config = workcell.config
        T_base_table = invert_transform(workcell.T_world_base) @ make_transform(translation=(*config.table_center, 0.0))
        self.backend.set_world(table_obstacle(T_base_table, config.table_size), ())
        motion = self.backend.plan_to_joints(workcell.joint_state().as_dict(), home)
        if motion.trajectory is None:
            return False
        workcell.command_trajectory(motion.trajectory)
        workcell.step(motion.trajectory.duration + _PAUSE)
        return not workcell.diverged

    def see(
        self, workcell: Workcell, setting: str, perception: PerceptionConfig | None = None, seed: int = 0
    ) -> ObjectView:
        """What a planner is given in a setting; arguments as of `pick`."""
        if setting == "known":
            # Where a lip ends at an edge is told by points that are nearer to each other than fingers ask for.
            return known_shape(workcell, seed, _CUP_POINTS if isinstance(self.gripper, SuctionCup) else KNOWN_POINTS)
        return observed_shape(workcell, seed, perception, self.robot_spheres)

    def _reachable(
        self, workcell: Workcell, view: ObjectView, avoid: Sequence[Array]
    ) -> Callable[[Grasp], bool] | None:
        reaches: Callable[[Grasp], bool] | None = None
        if self._reachability is not None:
            assert view.cloud is not None
            self._reachability.set_start(workcell.joint_state().as_dict())
            T_base_world = invert_transform(workcell.T_world_base)
            self._reachability.set_world(T_base_world, view.table, view.cloud.points, view.obstacles)
            reaches = self._reachability.grasp_filter()
        if not avoid:
            return reaches
        config = SequenceConfig()
        near = config.regrasp_distance, np.pi if isinstance(self.gripper, SuctionCup) else config.regrasp_angle

        def accepted(grasp: Grasp) -> bool:
            failed = any(is_near(grasp.T_world_gripper, pose, *near) for pose in avoid)
            return not failed and (reaches is None or reaches(grasp))

        return accepted

    def _execute(
        self,
        workcell: Workcell,
        view: ObjectView,
        plan: GraspPlan,
        settings: SequenceConfig,
        on_stage: Callable[[PickStage], None] | None,
        recenter: bool,
    ) -> PickResult:
        sequence = GraspSequence(
            self.backend, self.robot, self.limits, settings, clock="simulated clock", scale=self.scale
        )
        before = workcell.object_pose()
        shift = 0.0
        stage: PickStage | None = None
        touching = set[tuple[str, str]]()
        deadline = workcell.time + _LONGEST_PICK
        request = replace(self.request(workcell, view, plan), recenter=recenter)
        sequence.start(request, workcell.joint_state(), workcell.time)
        while True:
            if stage in _APPROACHING:
                shift = max(shift, float(np.linalg.norm(workcell.object_pose()[:3, 3] - before[:3, 3])))
            if stage in _APPROACHING and shift > MAX_SHIFT:
                cause = f"the approach moved the object by {1000 * shift:.0f} mm, over {1000 * MAX_SHIFT:.0f} mm"
                update = sequence.block(cause)
            else:
                update = sequence.update(workcell.time, workcell.joint_state())
            send_commands(workcell, update.commands)
            touching |= set(workcell.contacts().links_on_links)
            if update.stage is not stage:
                stage = update.stage
                if on_stage is not None:
                    on_stage(stage)
            if update.finished or workcell.time > deadline:
                break
            workcell.step(PERIOD)
        result = _judged(workcell, before, shift, update, plan, settings)
        if update.load is not None:
            assert view.cloud is not None
            points = transform_points(invert_transform(workcell.T_world_base), view.cloud.finite().points)
            center = transform_points(workcell.T_world_base, update.load.center_within(points)[None])[0].tolist()
            weight = update.load.mass, update.load.mass_deviation
            turn = workcell.T_world_base[:3, :3]
            covariance = (turn @ update.load.center_covariance(points) @ turn.T).tolist()
            result = replace(
                result, mass=weight[0], mass_deviation=weight[1], center=center, center_covariance=covariance
            )
        return replace(result, self_contacts=sorted(map(list, touching)))

    def request(
        self,
        workcell: Workcell,
        view: ObjectView,
        plan: GraspPlan,
        obstacles: Sequence[ObjectObstacle] = (),
        solids: Sequence[Solid] = (),
    ) -> PickRequest:
        """What the grasp sequence is asked for; its candidates are in the order of the plan's grasps.

        Args:
            workcell: as of `pick`.
            view: of the object.
            plan: its grasps.
            obstacles: what else was seen, in the base frame.
            solids: what else is known to be there, in the base frame.
        """
        T_base_world = invert_transform(workcell.T_world_base)
        turns = [np.eye(4)] * len(plan.grasps)
        if self._reachability is not None:
            # A parallel gripper may as well be turned by half a turn about its approach, where that is what it takes.
            turns = [_HALF_TURN if flip else np.eye(4) for flip in self._reachability.check_grasps(plan.grasps).flipped]
        targets = tuple(
            GraspTarget(
                T_base_world @ grasp.T_world_gripper @ turn,
                T_base_world @ grasp.T_world_pregrasp @ turn,
                grasp.aperture,
                grasp.open_aperture,
                torsion=grasp.metrics.get("torsion"),
                press=grasp.metrics.get("press", 0.0),
            )
            for grasp, turn in zip(plan.grasps, turns, strict=True)
        )
        assert view.cloud is not None
        table = view.table
        slab = None
        if table is not None and table.size is not None:
            slab = table_obstacle(T_base_world @ table.T_world_table, table.size)
        target = fine_obstacle("target", view.cloud, T_base_world)
        return PickRequest(targets, target, tuple(obstacles), slab, tuple(solids), regrasps=0)


# Time for the arm to come to rest [s].
_PAUSE = 0.3
# Of a known shape that a cup is laid on.
_CUP_POINTS = 20_000
# About the approach.
_HALF_TURN = np.diag([-1.0, -1.0, 1.0, 1.0])


def look_of(view: ObjectView) -> Look:
    """A view as a library takes it."""
    assert view.cloud is not None
    cloud = view.cloud.finite()
    assert cloud.normals is not None
    up = np.array([0.0, 0.0, 1.0]) if view.table is None else view.table.T_world_table[:3, 2]
    planes = np.empty((0, 4)) if view.table is None else np.array([[*up, up @ view.table.T_world_table[:3, 3]]])
    nothing = np.empty((0, 3))
    eyes = nothing if view.viewpoints is None else view.viewpoints
    return Look(cloud.points, cloud.normals, eyes, planes, nothing if view.obstacles is None else view.obstacles)


def _by_experience(plan: GraspPlan, lesson: Lesson) -> GraspPlan:
    near = SequenceConfig().regrasp_distance, SequenceConfig().regrasp_angle
    order = preferred([grasp.T_world_gripper for grasp in plan.grasps], lesson.held, lesson.failed, *near)
    return replace(plan, grasps=[plan.grasps[index] for index in order])


def _teach(library: ObjectLibrary, look: Look, known: Recognition | None, result: PickResult) -> None:
    """What the robot can know of a pick; that the object turned in the hand by less than shows there is not."""
    weight, poses = None, (np.array(result.T_world_gripper),) if result.executed else ()
    if result.center:
        covariance = np.array(result.center_covariance)
        weight = Weight(result.mass, result.mass_deviation, np.array(result.center), covariance)
    held = result.success or result.stage == "result"
    failed = not held and result.kind is Outcome.MISGRASP
    lesson = Lesson(weight, poses if held else (), poses if failed else ())
    if not lesson.is_empty:
        library.learn(look, lesson, known)


def follow(workcell: Workcell, sequence: AnySequence, longest: float) -> tuple[Any, dict[str, float]]:
    """Drive a sequence that was started to its end; its last update, and stage → simulated seconds.

    Args:
        workcell: time passes in it.
        sequence: of a pick, or of the hand.
        longest: time after which it is left where it is [s].
    """
    deadline, durations = workcell.time + longest, dict[str, float]()
    while True:
        update = sequence.update(workcell.time, workcell.joint_state())
        send_commands(workcell, update.commands)
        if update.finished or workcell.time > deadline:
            return update, durations
        durations[update.stage.value] = durations.get(update.stage.value, 0.0) + PERIOD
        workcell.step(PERIOD)


def send_commands(workcell: Workcell, commands: Sequence[Command]) -> None:
    """Have a workcell do what a sequence wants."""
    for command in commands:
        if isinstance(command, SendTrajectory):
            workcell.command_trajectory(command.trajectory)
        elif isinstance(command, CommandGripper):
            workcell.command_gripper(command.aperture, command.max_effort)
        elif isinstance(command, SwitchVacuum):
            workcell.switch_vacuum(command.on)
        elif isinstance(command, StopArm):
            workcell.stop_motion()


def _judged(
    workcell: Workcell, before: Array, shift: float, update: SequenceUpdate, plan: GraspPlan, settings: SequenceConfig
) -> PickResult:
    """The outcome from the sequence's end and from where the object really is."""
    # A rigid grasp carries the object straight up.
    expected = before.copy()
    expected[2, 3] += settings.lift_height
    pose = workcell.object_pose()
    offset = float(np.linalg.norm(pose[:3, 3] - expected[:3, 3]))
    turn = rotation_angle(expected[:3, :3].T @ pose[:3, :3])
    durations: dict[str, float] = {}
    for stage, spent in update.durations:
        durations[stage.value] = durations.get(stage.value, 0.0) + spent
    executed = update.grasp_index >= 0
    result = PickResult(
        Outcome.SUCCESS,
        executed=executed,
        ready=update.ready,
        offset=offset,
        turn=turn,
        rise=float(pose[2, 3] - before[2, 3]),
        shift=shift,
        durations=durations,
        T_world_gripper=plan.grasps[update.grasp_index].T_world_gripper.tolist() if executed else [],
        grasp_metrics=dict(plan.grasps[update.grasp_index].metrics) if executed else {},
    )
    if workcell.diverged:
        return replace(result, kind=Outcome.ERROR, stage="simulation", message="the physics diverged", ready=False)
    if not update.success:
        failed = (update.failed_stage or update.stage).value
        kind = _kind(update.mode, shift)
        return replace(result, kind=kind, stage=failed, message=update.message or "no end within the time limit")
    if offset < MAX_OFFSET and turn < MAX_TURN:
        return result
    message = (
        f"the object is {1000 * offset:.0f} mm and {np.degrees(turn):.0f}° off, "
        f"over {1000 * MAX_OFFSET:.0f} mm or {np.degrees(MAX_TURN):.0f}°"
    )
    return replace(result, kind=_kind(FailureMode.SLIPPED, shift), stage="result", message=message)


def _kind(mode: FailureMode | None, shift: float) -> Outcome:
    """The sequence's failure as the paper counts it; an approach that moved the object has hit it."""
    if mode is None or mode in (FailureMode.ROBOT_FAULT, FailureMode.CANCELLED, FailureMode.BAD_REQUEST):
        return Outcome.ERROR
    if mode.outcome is SequenceOutcome.CONTACT_ABORT or shift > MAX_SHIFT:
        return Outcome.CONTACT_ABORT
    return Outcome.MISGRASP if mode.outcome is SequenceOutcome.MISGRASP else Outcome.UNREACHABLE
