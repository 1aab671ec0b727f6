"""Whole heaps in one process: look, choose, pick, put into a region, until the table is clear or nothing goes any more.

The decisions are those of `execution.clearing`, which the node follows too; what became of them is judged by where
the objects truly are. Several tools take turns: see `HeapClearing`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_bench.grasping.methods import grasp_method
from morphit_bench.picks.feasibility import out_of_reach
from morphit_bench.picks.pick import PickJob, follow
from morphit_bench.picks.place import held_grasp, push_aside, put_down_at, recover
from morphit_bench.picks.runs import job_of, usual_object
from morphit_bench.picks.views import EYES, camera_positions, look, near_points, view_of
from morphit_ros.bringup.grasp import CLEARING
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.clearing import FAULTS, PUT_OFF, Clearing, crowded
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failed_grasps import Failed, FailedGrasps
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.held import HeldGrasp, Surroundings
from morphit_ros.execution.obstacles import fine_obstacle, loose_obstacle, object_obstacle, table_obstacle
from morphit_ros.execution.pick import PickRequest
from morphit_ros.execution.places import OPENS_FURTHER, PlaceRegion, free_places
from morphit_ros.execution.pushing import pushes
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.grasping import PlannerConfig
from morphit_ros.memory.thing import Weight
from morphit_ros.memory.tracks import ObjectTracks
from morphit_ros.perception import PerceptionConfig, Scene
from morphit_ros.perception.configuration import ObjectConfig
from morphit_ros.perception.scene import LOOSE
from morphit_ros.robot.clearance import ClearanceFunction
from morphit_ros.robot.fixtures import Fixtures
from morphit_ros.robot.motion_backend import ObjectObstacle
from morphit_ros.robot.solids import points_beside
from morphit_ros.simulation.objects import SimulatedObject
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

# What moved further than this while another one was picked was pushed [m].
PUSHED = 0.05
# Below the table top by this much it has fallen off [m].
_FALLEN = 0.05
# Looks in a row that find nothing to pick before that is believed; as the node's.
_LOOKS = 3
# A pick, or a place, that takes longer is a fault [s].
_LONGEST = 90.0
# What is let go of comes to rest while the arm moves on; at the end of all it is given this long [s].
_REST = 1.0
# What perception is given of fixtures besides their own size [m]; as the node's.
_FIXTURE_MARGIN = 0.015
_FAULTS = (FailureMode.ROBOT_FAULT, FailureMode.CANCELLED, FailureMode.BAD_REQUEST)
_UP = np.array([0.0, 0.0, 1.0])
_PUSHED_OBJECT = "pushed object"
# Stage of an attempt that is left to a later look.
_PUT_OFF = "put off"
# Frame of the clouds of which is known what failed.
_BASE = "base"


@dataclass(frozen=True)
class HeapPlan:
    """What all heaps of a run have in common.

    Attributes:
        objects: names of `load_object` that are drawn from, without repetition as far as they last.
        count: of objects in a heap.
        robots: of config/robots, which stand in one place: the tools, in the order of their turns.
        change: what a change of the tool takes, the way to it and back included [s].
        region: x, y, z of its middle and its yaw in the world [m, rad]; z above the table lets objects fall that far.
        size: (2,) of the region [m].
        fixtures: file of what stands there for good, such as the walls of a bin; empty for nothing.
        data: folder of the objects, None for the default one.
        friction: range of the sliding friction of all contacts.
        mass_variation: masses vary by this share both ways.
        attempts: most attempts for which the arm moves, times the number of objects.
        push: whether what cannot be picked is pushed aside, or over, by fingers.
        cameras: (2 to 4, 3) where they stand in the world [m].
        clearance: distance function of the open hand besides points, as of `ClearanceConfig`.
        min_clearance: grasps that it puts nearer to anything are dropped [m].
        refined: transfers are planned as of `PickJob.with_arm`.
    """

    objects: tuple[str, ...]
    count: int = 10
    robots: tuple[str, ...] = ("panda",)
    change: float = 20.0
    region: tuple[float, float, float, float] = (0.3, -0.5, 0.2, 0.0)
    size: tuple[float, float] = (0.4, 0.3)
    fixtures: str = ""
    data: str | None = None
    friction: tuple[float, float] = (0.4, 0.8)
    mass_variation: float = 0.2
    attempts: float = 3.0
    push: bool = True
    cameras: tuple[tuple[float, ...], ...] = EYES["front"]
    clearance: str = "points"
    min_clearance: float = 0.0
    refined: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 30 or not self.objects:
            raise InvalidInputError("count, objects", [self.count, len(self.objects)], "1 to 30, drawn from some")
        if not self.robots or len(set(self.robots)) < len(self.robots):
            raise InvalidInputError("robots", list(self.robots), "one or more, each named once")
        if not 0.0 <= self.change < np.inf:
            raise InvalidInputError("change", self.change, "a finite number of seconds, not negative")

    @property
    def identity(self) -> dict[str, Any]:
        """What results must have in common to be in one file."""
        plain = asdict(self)
        del plain["data"], plain["fixtures"]
        return {"program": "heaps", **{key: list(v) if isinstance(v, tuple) else v for key, v in plain.items()}}


@dataclass(frozen=True)
class HeapAttempt:
    """One attempt at an object.

    Attributes:
        target: the object that the chosen cloud mostly shows.
        shown: share of the cloud's points that are that object's.
        success: one more object is in the region after it.
        stage: where it failed, empty on success.
        message: the cause.
        executed: whether the fingers closed, or were on their way: a grasp was planned and the arm went.
        pushed: other objects that moved by more than 5 cm meanwhile.
        fallen: objects that fell off the table meanwhile.
        durations: stage → simulated time [s].
        computing: see, plan_grasp, motion → wall time of perception, the grasp planner and everything else [s].
        tool: which tried it.
    """

    target: str
    shown: float
    success: bool
    stage: str = ""
    message: str = ""
    executed: bool = False
    pushed: list[str] = field(default_factory=list)
    fallen: list[str] = field(default_factory=list)
    durations: dict[str, float] = field(default_factory=dict)
    computing: dict[str, float] = field(default_factory=dict)
    tool: str = ""


@dataclass(frozen=True)
class HeapTurn:
    """What one tool did before the next one went on.

    Attributes:
        tool: of `HeapPlan.robots`.
        seconds: simulated time, without the change before it [s].
        cleared: objects that are in the region since.
    """

    tool: str
    seconds: float
    cleared: list[str]


@dataclass(frozen=True)
class HeapResult:
    """What became of a heap.

    Attributes:
        number: of the heap.
        objects: those that lay on the table at the first look.
        cleared: of those, the ones that are in the region at the end.
        left: on the table elsewhere, at the end.
        attempts: in order.
        end: why it ended.
        seconds: simulated time from the first look to the last, changes of the tool included [s].
        pushes: what became of each push: the object, how far it went [m] and what was said.
        out_of_reach: of those left, which no grasp of any tool holds as they lie, whatever the planner does
            (`feasibility`), and why not.
        turns: of the tools, in order.
    """

    number: int
    objects: list[str]
    cleared: list[str]
    left: list[str]
    attempts: list[HeapAttempt]
    end: str
    seconds: float
    pushes: list[tuple[str, float, str]] = field(default_factory=list)
    out_of_reach: dict[str, str] = field(default_factory=dict)
    turns: list[HeapTurn] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """Of the tool."""
        return max(0, len(self.turns) - 1)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> HeapResult:
        """The inverse of `to_json`."""
        attempts = [HeapAttempt(**attempt) for attempt in data["attempts"]]
        return cls(**{**data, "attempts": attempts, "turns": [HeapTurn(**turn) for turn in data["turns"]]})


def draw_heap(plan: HeapPlan, number: int) -> tuple[WorkcellConfig, list[SimulatedObject]]:
    """Workcell and objects of the heap of this number: the same for all settings of whoever clears it."""
    rng = np.random.default_rng([number, plan.count])
    names: list[str] = []
    while len(names) < plan.count:
        names += rng.permutation(plan.objects).tolist()
    masses = 1.0 + plan.mass_variation * rng.uniform(-1.0, 1.0, plan.count)
    usual = [usual_object(name, None, plan.data) for name in names[: plan.count]]
    items = [item.with_mass(item.mass * factor) for item, factor in zip(usual, masses, strict=True)]
    friction = float(rng.uniform(*plan.friction))
    place = WorkcellConfig(
        heap=True,
        friction=friction,
        fixtures=plan.fixtures,
        seed=int(rng.integers(2**31)),
        **camera_positions(plan.cameras),
    )
    return place, items


def run_heap(task: tuple[HeapPlan, int]) -> dict[str, Any]:
    """One heap; its result as plain data."""
    plan, number = task
    config, items = draw_heap(plan, number)
    jobs = [job_of(robot, "", plan.refined) for robot in plan.robots]
    with Workcell(config, jobs[0].robot, items[0], items[1:]) as workcell:
        return HeapClearing(jobs, workcell, plan, number).run().to_json()


class _Tool:
    """One of the tools, with what it has tried."""

    def __init__(self, job: PickJob, clearing: Clearing) -> None:
        self.job, self.clearing = job, clearing
        self.failed, self.free_motion = FailedGrasps(), FreeMotion()


class HeapClearing:
    """Clears the heap of one workcell.

    Several tools take turns. One hands over as soon as nothing is left that it would pick, before it tries what was put
    off, or pushes anything: each object is a new chance for the next one, and what that takes away makes room for those
    before it. Where none finds anything else, what was put off is tried, and at last one that can pushes, and all try
    again. Which grasps failed is known of each tool apart; where objects are, what they weigh and what lies in the bin
    is known to all.

    Args:
        jobs: the robots with their tools, in the order of their turns; the first one stands in the workcell.
        workcell: with the heap, settled.
        plan: where to, and how often.
        number: of the heap, seed of perception and planning.
        perception: settings of perception; None for what clearing uses.
        sequence: speeds and times; None for what clearing uses.

    Raises:
        InvalidInputError: the robots do not stand in one place.
    """

    def __init__(
        self,
        jobs: Sequence[PickJob],
        workcell: Workcell,
        plan: HeapPlan,
        number: int = 0,
        perception: PerceptionConfig | None = None,
        sequence: SequenceConfig | None = None,
    ) -> None:
        stands = {(job.robot.base_position, job.robot.base_yaw): job.robot.name for job in jobs}
        if len(stands) > 1:
            raise InvalidInputError("robots", list(stands.values()), "robots that stand in one place: tools of one arm")
        self._workcell, self._plan, self._number = workcell, plan, number
        self._perception = perception or PerceptionConfig(objects=ObjectConfig(split_touching=True))
        self._sequence = sequence or SequenceConfig.from_flat(CLEARING)
        self._fixtures = Fixtures(plan.fixtures, _FIXTURE_MARGIN)
        self._T_base_world = invert_transform(workcell.T_world_base)
        solids = self._fixtures.solids
        self._solids = [replace(s, T_world_solid=self._T_base_world @ s.T_world_solid) for s in solids]
        x, y, z, yaw = plan.region
        rotation = [[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]]
        self._T_world_region = make_transform(rotation, (x, y, z))
        region = PlaceRegion(self._T_base_world @ self._T_world_region, np.array(plan.size))
        self._tools = [
            _Tool(job, Clearing(region, float(self._T_base_world[2, 3]), plan.push and bool(job.robot.finger_joints)))
            for job in jobs
        ]
        self._tool = self._tools[0]
        self._tracks = ObjectTracks()
        self._looks = 0
        self._turns: list[HeapTurn] = []
        # Whether the tool at work pushes, too; when its turn began [s], and what was in the region then.
        self._pushing, self._began, self._inside_before = False, 0.0, np.zeros(len(workcell.objects), dtype=np.bool_)
        # Faults that it recovered from since the last success.
        self._faults = 0

    def run(self) -> HeapResult:
        """From the first look to the end."""
        cell = self._workcell
        present = np.flatnonzero([pose[2, 3] > -_FALLEN for pose in cell.poses()])
        attempts: list[HeapAttempt] = []
        pushed: list[tuple[str, float, str]] = []
        vain, end = 0, ""
        self._begin_turn()
        while not end:
            scene, eyes, seconds = self._look()
            numbers = [track.number for track in self._tracks.tracks if track.index is not None]
            clouds = [cloud.transformed(self._T_base_world).points for cloud in scene.objects]
            objects = dict(zip(numbers, clouds, strict=True))
            up = self._T_base_world[:3, :3] @ _UP
            for tool in self._tools:
                tool.clearing.see(objects)
            following, chosen = self._following(objects, up)
            if following is None:
                vain += 1
                if vain == _LOOKS:
                    left = len(self._tool.clearing.outside(objects))
                    end = f"{left} left that could not be picked" if left else "the table is clear"
                continue
            if following is not self._tool:
                self._change(following)
                continue
            if chosen is None:
                pushed.append(self._push_next(scene, objects, up))
                continue
            vain = 0
            attempt, fault, place = self._attempt(scene, chosen, eyes, seconds, objects)
            self._tool.clearing.note(chosen, attempt.success, attempt.stage == _PUT_OFF, place)
            for tool in self._others if attempt.success else ():
                tool.clearing.note(chosen, True, place=place)
            attempts.append(attempt)
            self._faults = 0 if attempt.success else self._faults
            if fault:
                end = fault
            elif sum(attempt.executed for attempt in attempts) >= self._plan.attempts * len(cell.objects):
                end = "too many attempts"
        self._end_turn()
        cell.step(_REST)
        inside = self._inside()
        names, poses = [item.name for item in cell.objects], cell.poses()
        remaining = [int(index) for index in present if not inside[index] and poses[index][2, 3] > -_FALLEN]
        return HeapResult(
            self._number,
            [names[index] for index in present],
            [names[index] for index in present if inside[index]],
            [names[index] for index in remaining],
            attempts,
            end,
            sum(turn.seconds for turn in self._turns) + self._plan.change * (len(self._turns) - 1),
            pushed,
            {names[index]: reason for index in remaining if (reason := self._out_of_reach(index))},
            self._turns,
        )

    @property
    def _others(self) -> list[_Tool]:
        return [tool for tool in self._tools if tool is not self._tool]

    def _following(self, objects: Mapping[int, Array], up: Array) -> tuple[_Tool | None, int | None]:
        """Which tool goes on, None if none does; and what the one at work picks next, None if it is not to pick.

        What was put off comes where no tool finds anything else, and pushes where that fails, too. Once a tool pushes,
        it goes on as long as that helps: what lies otherwise then is tried by the others after it.
        """
        here = self._tools.index(self._tool)
        tools = [*self._tools[here:], *self._tools[:here]]
        own = self._tool.clearing

        def pushes(tool: _Tool) -> bool:
            return tool.clearing.choose_push(objects, up) is not None

        if self._pushing and pushes(self._tool):
            return self._tool, own.choose(objects, up)
        for put_off in (False, True):
            for tool in tools:
                chosen = tool.clearing.choose(objects, up, put_off=put_off)
                if chosen is not None:
                    self._pushing = False
                    return tool, chosen if tool is self._tool else None
        self._pushing = True
        return next(filter(pushes, tools), None), None

    def _change(self, tool: _Tool) -> None:
        """Let another tool go on, with everything as this one left it."""
        self._end_turn()
        self._workcell.exchange_robot(tool.job.robot)
        self._tool = tool
        # Of the time of a change only what things need to come to rest is simulated.
        self._workcell.step(min(_REST, self._plan.change))
        self._begin_turn()

    def _begin_turn(self) -> None:
        self._began, self._inside_before = self._workcell.time, self._inside()

    def _end_turn(self) -> None:
        names = [item.name for item in self._workcell.objects]
        gained = np.flatnonzero(self._inside() & ~self._inside_before)
        seconds = self._workcell.time - self._began
        self._turns.append(HeapTurn(self._tool.job.robot.name, seconds, [names[index] for index in gained]))

    def _out_of_reach(self, index: int) -> str:
        """Why no grasp of any tool holds an object as it lies, by calculation; empty if one may."""
        cell = self._workcell
        lying = cell.objects[index].transformed(cell.poses()[index])
        friction = lying.friction or cell.config.friction
        reasons = [out_of_reach(lying, tool.job.gripper, friction) for tool in self._tools]
        return "; ".join(reasons) if all(reasons) else ""

    def _look(self) -> tuple[Scene, Array, float]:
        self._looks += 1
        known = self._fixtures.hold if self._fixtures.solids else None
        seed = 1000 * self._number + self._looks
        scene, eyes, seconds, views = look(self._workcell, seed, self._perception, self._tool.job.robot_spheres, known)
        self._tracks.see(scene.objects, views, self._workcell.time)
        return scene, eyes, seconds

    def _attempt(
        self, scene: Scene, number: int, eyes: Array, seconds: float, objects: Mapping[int, Array]
    ) -> tuple[HeapAttempt, str, PlaceRegion | None]:
        """What became of one, why nothing can follow it, empty if something can, and where the object was put."""
        cell, job = self._workcell, self._tool.job
        before, inside, chosen = cell.poses(), self._inside(), list(objects).index(number)
        target, shown = self._shown(scene.objects[chosen].points)
        attempt = HeapAttempt(target, shown, False, computing={"see": seconds}, tool=job.robot.name)
        began = time.perf_counter()
        failed = self._tool.failed.at(number, objects[number], _BASE)
        view = view_of(scene, chosen, eyes)
        assert view.obstacles is not None
        view = replace(view, obstacles=np.concatenate([view.obstacles, self._beside(scene, chosen)]))
        if failed.weighed is not None:
            weight = failed.weighed.moved(cell.T_world_base)
            view = replace(view, mass=weight.mass, center_of_mass=weight.center)
        least = self._plan.min_clearance
        config = PlannerConfig(unseen_last=True, assumed_load=False, min_clearance=least)
        planner = grasp_method("morphit", config=config, clearance=self._clearance(scene, chosen))
        others = [cell.T_world_base @ pose for pose in failed.grasps]
        plan = job.plan(cell, view, planner, 1000 * self._number + self._looks, others)
        attempt.computing["plan_grasp"] = time.perf_counter() - began
        if not plan.grasps:
            self._tool.failed.remember(number, objects[number], _BASE, failed)
            return replace(attempt, stage="plan_grasp", message=plan.message), "", None
        if failed.put_off < PUT_OFF and crowded(objects, number):
            seen = [grasp for grasp in plan.grasps if grasp.on_seen_sides]
            if not seen:
                self._tool.failed.remember(number, objects[number], _BASE, failed._replace(put_off=failed.put_off + 1))
                text = f"all {len(plan.grasps)} grasps touch sides that no camera saw"
                return replace(attempt, stage=_PUT_OFF, message=text), "", None
            plan = replace(plan, grasps=seen)
        began = time.perf_counter()
        request = job.request(cell, view, plan, self._obstacles(scene, chosen), self._solids)
        sequence = GraspSequence(
            job.backend, job.robot, job.limits, self._sequence, "simulated clock", self._tool.free_motion, job.scale
        )
        sequence.start(request, cell.joint_state(), cell.time)
        update, durations = follow(cell, sequence, _LONGEST)
        attempt = replace(attempt, executed=update.grasp_index >= 0, durations=durations)
        tried = [request.candidates[update.grasp_index].T_base_gripper] if attempt.executed else []
        fault, place = "", None
        if not update.success:
            attempt = replace(attempt, stage=(update.failed_stage or update.stage).value, message=update.message)
            if update.mode is None or update.mode in _FAULTS:
                fault = f"{attempt.stage}: {attempt.message or 'no end within the time limit'}"
        else:
            held = held_grasp(job, cell, view, request, update.grasp_index)
            held = held.weighed(update.load, pads=bool(job.robot.finger_joints))
            load = update.load
            center = () if load is None else (load.on_vertical, load.center_deviation)
            places = self._tool.clearing.places(objects, number, *center)
            stage, problem, place = self._put_away(held, places, durations)
            if problem:
                attempt = replace(attempt, stage=stage, message=problem)
                fault = self._give_back(held, request)
        if fault and self._faults < FAULTS and self._recovered(request):
            self._faults, fault = self._faults + 1, ""
        attempt.computing["motion"] = time.perf_counter() - began
        weighed = failed.weighed
        if update.load is not None:
            load, points = update.load, objects[number]
            weighed = Weight(load.mass, load.mass_deviation, load.center_within(points), load.center_covariance(points))
        failed = failed._replace(grasps=[*failed.grasps, *tried], weighed=weighed)
        self._remember(number, objects[number], None if place is not None else failed)
        return self._judged(attempt, before, inside, target), fault, place

    def _clearance(self, scene: Scene, chosen: int) -> ClearanceFunction | None:
        """The distance function of the open hand for an object, as the node makes it of a scene."""
        if self._plan.clearance == "points":
            return None
        # Needs ROS messages, as which the node has a scene.
        from morphit_ros.ros.execution.object_clearance import ClearanceConfig, known_hand, object_clearance
        from morphit_ros.ros.scene.messages import TablePatch

        job, config = self._tool.job, ClearanceConfig(clearance=self._plan.clearance)
        table = None if scene.table is None else TablePatch(scene.table.T_world_table, np.array(scene.table.size))
        others = [cloud for number, cloud in enumerate(scene.objects) if number != chosen]
        loose = np.concatenate([self._loose(scene, chosen).points, self._beside(scene, chosen)])
        hand = known_hand(config, job.robot.name)
        return object_clearance(config, job.gripper, [scene.objects[chosen], *others], table, loose, hand)

    def _remember(self, number: int, points: Array, failed: Failed | None) -> None:
        """What attempts with this tool at an object (N, 3) have taught; None: it is gone.

        What it weighs is so with any tool, and that it is gone; which grasps failed is not.
        """
        self._tool.failed.remember(number, points, _BASE, failed)
        for tool in self._others:
            known = tool.failed.at(number, points, _BASE)
            theirs = None if failed is None else known._replace(weighed=failed.weighed)
            tool.failed.remember(number, points, _BASE, theirs)

    def _put_away(
        self, held: HeldGrasp, regions: Sequence[PlaceRegion], durations: dict[str, float]
    ) -> tuple[str, str, PlaceRegion | None]:
        """Put what is held into the first region that it goes into: where that failed, why, and the region."""
        stage, problem = "", ""
        for region in regions:
            try:
                places = free_places(held, region)
            except InvalidInputError as error:
                stage, problem = "request", str(error)
                continue
            height = self._tool.clearing.way_down
            put, put_down, placing = put_down_at(
                self._tool.job, self._workcell, held, places, height, self._solids, OPENS_FURTHER, self._sequence
            )
            for name, seconds in placing.items():
                durations[name] = durations.get(name, 0.0) + seconds
            if put.success and put_down is not None:
                return "", "", region
            stage, problem = (put.failed_stage or put.stage).value, put.message or "no end within the time limit"
            if put.mode is not FailureMode.NOT_EMPTY and not self._holds(held):
                break
        return stage, problem, None

    def _push_next(self, scene: Scene, objects: Mapping[int, Array], up: Array) -> tuple[str, float, str]:
        """Push what is pushed next; what became of it as of `HeapResult.pushes`."""
        pushable = self._tool.clearing.choose_push(objects, up)
        assert pushable is not None
        number, tip = pushable
        target, went, problem = self._push(scene, list(objects).index(number), tip)
        self._tool.clearing.note_push(not problem)
        if not problem:
            for tool in self._others:
                tool.clearing.note_change(number)
        return target, went, problem

    def _push(self, scene: Scene, chosen: int, tip: bool) -> tuple[str, float, str]:
        """Push an object aside, or over: what it is, how far it went [m], and why not as it should."""
        cell, job = self._workcell, self._tool.job
        target, _ = self._shown(scene.objects[chosen].points)
        number = [item.name for item in cell.objects].index(target)
        before = cell.poses()[number]
        cloud = scene.objects[chosen]
        others = [thing.points for number, thing in enumerate(scene.objects) if number != chosen]
        others += [self._loose(scene, chosen).points, self._beside(scene, chosen)]
        slab = (
            None
            if scene.table is None
            else table_obstacle(self._T_base_world @ scene.table.T_world_table, scene.table.size)
        )
        own = object_obstacle(_PUSHED_OBJECT, cloud, self._T_base_world)
        around = Surroundings(slab, (*self._obstacles(scene, chosen), own))
        points, beside = (transform_points(self._T_base_world, part) for part in (cloud.points, np.concatenate(others)))
        try:
            found = pushes(points, beside, around, job.fingers, tip=tip)
        except InvalidInputError as error:
            return target, 0.0, str(error)
        if not found:
            return target, 0.0, "no room for the hand beside it, or none on the table behind it"
        update, _ = push_aside(job, cell, found, _PUSHED_OBJECT, around, self._solids, self._sequence)
        went = float(np.linalg.norm((cell.poses()[number] - before)[:3, 3]))
        return target, went, update.message if not update.success else ""

    def _holds(self, held: HeldGrasp) -> bool:
        job, state = self._tool.job, self._workcell.joint_state()
        if not job.robot.finger_joints:
            return bool(state.vacuum)
        aperture = job.robot.aperture(state.as_dict()) or 0.0
        return not held.contradiction(aperture, job.two_fingers.aperture_min + self._sequence.stall_margin)

    def _give_back(self, held: HeldGrasp, request: PickRequest) -> str:
        """After a place that failed: put back what the hand still holds, else open it; why not, empty if it did."""
        if not self._holds(held):
            return "" if self._recovered(request) else "the hand does not get away from where it lost the object"
        height = self._tool.clearing.way_down
        place = [held.T_base_gripper]
        back, _, _ = put_down_at(
            self._tool.job, self._workcell, held, place, height, self._solids, config=self._sequence
        )
        return "" if back.success else f"it can neither be put down nor back: {back.message}"

    def _recovered(self, request: PickRequest) -> bool:
        """Open the hand wherever it is, and go home; whether that went well."""
        target = () if request.target is None else (request.target,)
        around = Surroundings(request.table, (*target, *request.obstacles))
        name = "" if request.target is None else request.target.name
        return recover(self._tool.job, self._workcell, around, name, self._solids, self._sequence)

    def _judged(
        self, attempt: HeapAttempt, before: Sequence[Array], inside: NDArray[np.bool_], target: str
    ) -> HeapAttempt:
        """With what the objects have done meanwhile."""
        names = [item.name for item in self._workcell.objects]
        now, inside_now = self._workcell.poses(), self._inside()
        centers = [item.center_of_mass for item in self._workcell.objects]
        moved = [
            float(np.linalg.norm(transform_points(new, center) - transform_points(old, center)))
            for new, old, center in zip(now, before, centers, strict=True)
        ]
        gained = inside_now & ~inside
        fallen = [name for name, new, old in zip(names, now, before, strict=True) if new[2, 3] < -_FALLEN <= old[2, 3]]
        pushed = [
            name
            for name, way, got, was in zip(names, moved, gained, inside, strict=True)
            if way > PUSHED and not got and not was and name != target and name not in fallen
        ]
        attempt = replace(attempt, pushed=pushed, fallen=fallen, success=bool(gained.any()))
        if attempt.success or attempt.stage:
            return attempt if not attempt.success else replace(attempt, stage="", message="")
        return replace(attempt, stage="result", message="it is not in the region")

    def _obstacles(self, scene: Scene, chosen: int) -> list[ObjectObstacle]:
        """What stands around, in the base frame, as the node makes it of a scene."""
        found = [
            fine_obstacle(f"object {number}", cloud, self._T_base_world)
            for number, cloud in enumerate(scene.objects)
            if number != chosen
        ]
        loose = self._loose(scene, chosen)
        if len(loose):
            found.append(loose_obstacle("points of no object", loose, self._T_base_world))
        return found

    def _beside(self, scene: Scene, chosen: int) -> Array:
        """(M, 3) of what stands there for good near an object, in the world: perception leaves it out."""
        table = None if scene.table is None else scene.table.T_world_table
        return points_beside(self._fixtures.solids, scene.objects[chosen].points, table)

    @staticmethod
    def _loose(scene: Scene, chosen: int) -> PointCloud:
        """Points of no object that are not near the chosen one."""
        loose = scene.cloud.select(np.flatnonzero(scene.labels == LOOSE))
        return loose.select(np.flatnonzero(~near_points(loose.points, scene.objects[chosen].points)))

    def _inside(self) -> NDArray[np.bool_]:
        """Which objects' centres of mass are over the region."""
        cell = self._workcell
        centers = np.array(
            [transform_points(pose, item.center_of_mass) for pose, item in zip(cell.poses(), cell.objects, strict=True)]
        )
        local = transform_points(invert_transform(self._T_world_region), centers)
        over = (np.abs(local[:, :2]) <= 0.5 * np.array(self._plan.size)).all(axis=1)
        return np.asarray(over & (centers[:, 2] > -_FALLEN))

    def _shown(self, points: Array) -> tuple[str, float]:
        """Which object a cloud mostly shows, and by which share of its points."""
        from scipy.spatial import cKDTree

        cell = self._workcell
        apart = np.array(
            [
                cKDTree(_surface(item)).query(transform_points(invert_transform(pose), points))[0]
                for pose, item in zip(cell.poses(), cell.objects, strict=True)
            ]
        )
        owners = np.bincount(apart.argmin(axis=0), minlength=len(cell.objects))
        return cell.objects[int(owners.argmax())].name, float(owners.max() / len(points))


def _surface(item: SimulatedObject, count: int = 4000) -> Array:
    """Points (N, 3) on an object, in its frame [m]."""
    from morphit_ros.geometry.mesh import sample_surface

    return sample_surface(item.mesh, count, np.random.default_rng(0))[0]
