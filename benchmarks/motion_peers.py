"""Planned motions in clutter beside other planners: the same problems, one core, every path checked against meshes.

`python benchmarks/motion_peers.py [--data DIR] [--planners NAME ...] [--stride N] [--seeds N] [--json FILE]`

ours         `plan_refined` with its defaults: search, shortcuts and proof
ompl-spheres OMPL's RRT-Connect; a motion is checked as a whole by our compiled check of covers, called from Python
ompl-states  the same, but OMPL divides the motion and asks for each configuration
ompl-coal    OMPL's RRT-Connect; Coal checks the collision meshes at each configuration, behind a broad phase
roboplan     RoboPlan's RRT-Connect and shortcuts, compiled as a whole, with Coal on the same meshes

Needs `pip install ompl roboplan` for all; what is not installed is left out. All look at configurations at most 0.04
apart in the norm of joints; else the others have their own defaults. Times are process time of one core after a
warm-up. Solved: the others' path within 1 s of process time without simplification, ours within 1 s of wall time with
shortcuts and proof: the same on an idle core, and the harder limit on one that is shared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from tqdm import tqdm

from morphit_bench.data_option import add_data
from morphit_bench.spheres.planning_experiment import dense_path, read_world
from morphit_bench.spheres.planning_problems import PlanningProblems, read_problems
from morphit_ros.errors import MissingDependencyError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.motion.certificate import Verdict, certify_path
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmArrays, ArmModel
from morphit_ros.motion.planner import PathConfig, PathStatus, find_contact, path_length
from morphit_ros.motion.refinement import RefinableArm, plan_refined
from morphit_ros.motion.world import World, WorldArrays
from morphit_ros.resources import atomic_write
from morphit_ros.robot.links import GeometryKind

TIMEOUT = 1.0  # for a path [s]
# RoboPlan knows a limit of wall time only: on a shared core it gets more of that, and is judged by process time.
PATIENCE = 4.0
STEP = np.radians(1.0)  # of the check against the meshes [rad]
CONFIG = PathConfig(timeout=TIMEOUT)
# Of the calls into Python one of so many is repeated alone.
_KEPT = 16
# Names of solids in Coal and RoboPlan.
_SHAPES = {GeometryKind.BOX: "Box", GeometryKind.CYLINDER: "Cylinder", GeometryKind.SPHERE: "Sphere"}
REMEDY = "Install the other planners with pip install ompl roboplan."
# Thomason, Kingston and Kavraki, "Motions in Microseconds via Vectorized Sampling-Based Planning", 2024 [ms].
VAMP_LABEL, VAMP_MEDIAN = "VAMP, published (Thomason, Kingston and Kavraki 2024; a desktop computer's core)", 0.035


@dataclass
class Answer:
    """What a planner made of a problem.

    Attributes:
        path: (N, J) corners after simplification, None without one.
        found_in: time until there was one, as the limit has it: ours of wall time with proof, else of search [s].
        world: process time of taking the world over [s].
        search, simplification, proof: process time [s].
        proven: whether our covers are proven free all along, None where nothing says so.
    """

    path: Array | None = None
    found_in: float = 0.0
    world: float = 0.0
    search: float = 0.0
    simplification: float = 0.0
    proof: float = 0.0
    proven: bool | None = None


class Peer(ABC):
    """A planner.

    Attributes:
        label: of its row.
    """

    label = ""

    @abstractmethod
    def plan(self, world: World, start: Array, goal: Array, seed: int) -> Answer:
        """Plan between configurations (J,)."""

    def note(self) -> str:
        """What is to be said of its runs since the warm-up, empty for nothing."""
        return ""

    def warmed_up(self) -> None:  # noqa: B027
        """Told once what runs for the first time has run."""

    def close(self) -> None:  # noqa: B027
        """Let go of what it holds."""


class Ours(Peer):
    """This suite's own planner."""

    label = "ours: RRT-Connect, covers, proof"

    def __init__(self, problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> None:
        self._arm = arm

    def plan(self, world: World, start: Array, goal: Array, seed: int) -> Answer:
        wall = time.perf_counter()
        config = PathConfig(**(asdict(CONFIG) | {"seed": seed}))
        plan, _ = plan_refined(self._arm, world, start, [goal], config)
        answer = Answer(None, time.perf_counter() - wall)
        answer.search, answer.simplification, answer.proof = plan.search_time, plan.shortening_time, plan.proof_time
        if plan.status is PathStatus.FOUND:
            answer.path, answer.proven = plan.path, plan.proven
        return answer


class Ompl(Peer):
    """RRT-Connect of OMPL 2.0 with its own simplification; what is free, subclasses say through Python.

    Its seed can be set once a process: further seeds are further draws.
    """

    def __init__(self, problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> None:
        self._base, self._geometric = _import("ompl.base"), _import("ompl.geometric")
        util = _import("ompl.util")
        util.setLogLevel(util.LOG_NONE)
        util.RNG.setSeed(1)
        lower, upper = problems.limits
        self._size = len(lower)
        bounds, space = self._base.RealVectorBounds(self._size), self._base.RealVectorStateSpace(self._size)
        for j in range(self._size):
            bounds.setLow(j, float(lower[j]))
            bounds.setHigh(j, float(upper[j]))
        space.setBounds(bounds)
        self._space = self._base.SpaceInformation(space)
        self._space.setStateValidityCheckingResolution(CONFIG.resolution / space.getMaximumExtent())
        self._space.setStateValidityChecker(self._counted)
        self._range, self._checking = options.range, True
        self.warmed_up()

    def warmed_up(self) -> None:
        # Calls and seconds [s] of all runs; of those calls that were repeated alone; and of those that check nothing.
        self._calls = self._alone_calls = self._empty_calls = 0
        self._spent = self._alone_spent = self._empty_spent = 0.0
        self._kept: list[tuple[Array, Array]] = []
        # Paths that simplification left touching.
        self._spoilt = 0

    def _counted(self, state: Any) -> bool:
        self._calls += 1
        if not self._checking:
            return True
        row = state[0 : self._size]
        if self._calls % _KEPT == 0:
            self._kept.append((np.array(row), np.array(row)))
        return self._free(row)

    def _row(self, state: Any) -> Array:
        return np.array(state[0 : self._size])

    def _state(self, row: Array) -> Any:
        state = self._space.allocState()
        for j in range(self._size):
            state[j] = float(row[j])
        return state

    @abstractmethod
    def _take(self, world: World, start: Array, goal: Array) -> None:
        """Take the world over."""

    @abstractmethod
    def _free(self, row: Any) -> bool:
        """Whether nothing touches at a configuration (J,), a list."""

    @abstractmethod
    def _check_all(self, starts: Array, ends: Array) -> None:
        """Check motions from starts to ends (N, J), without OMPL."""

    def plan(self, world: World, start: Array, goal: Array, seed: int) -> Answer:
        answer, began = Answer(), time.process_time()
        self._take(world, start, goal)
        answer.world = time.process_time() - began
        base = self._base
        problem, planner = base.ProblemDefinition(self._space), self._geometric.RRTConnect(self._space)
        began = time.process_time()
        problem.setStartAndGoalStates(self._state(start), self._state(goal))
        planner.setProblemDefinition(problem)
        if self._range:
            planner.setRange(self._range)
        planner.setup()
        late = base.PlannerTerminationCondition(lambda: time.process_time() - began > TIMEOUT)
        planner.solve(late)
        answer.search = answer.found_in = time.process_time() - began
        if problem.hasExactSolution():
            found = problem.getSolutionPath()
            path = self._geometric.PathGeometric(found)
            # False: it touches now, and could not be repaired.
            if not self._geometric.PathSimplifier(self._space).simplify(path, late):
                path, self._spoilt = found, self._spoilt + 1
            answer.simplification = time.process_time() - began - answer.search
            answer.path = np.array([self._row(state) for state in path.getStates()])
        self._spent += answer.search + answer.simplification
        self._measure(answer.path)
        return answer

    def _measure(self, path: Array | None) -> None:
        """Repeat some calls of a run alone, and have OMPL call along its path without any check."""
        if self._kept:
            starts, ends = (np.array(rows) for rows in zip(*self._kept, strict=True))
            began = time.process_time()
            self._check_all(starts, ends)
            self._alone_spent += time.process_time() - began
            self._alone_calls, self._kept = self._alone_calls + len(starts), []
        if path is not None:
            states, calls = [self._state(row) for row in path], self._calls
            self._checking = False
            began = time.process_time()
            for first, second in pairwise(states):
                self._space.checkMotion(first, second)
            self._empty_spent += time.process_time() - began
            self._empty_calls += self._calls - calls
            self._calls, self._checking = calls, True

    def note(self) -> str:
        if not (self._calls and self._alone_calls and self._empty_calls):
            return ""
        each, check = self._spent / self._calls, self._alone_spent / self._alone_calls
        empty = self._empty_spent / self._empty_calls
        return (
            f"{self._calls} calls into Python, {1e6 * each:.1f} µs each with all that OMPL does between them. The check"
            f" alone takes {1e6 * check:.1f} µs of these ({check / each:.0%}), a call that checks nothing"
            f" {1e6 * empty:.1f} µs ({empty / each:.0%}); the rest hands configurations and arrays over, and is OMPL."
            f" {self._spoilt} paths were taken as found, as OMPL says of its simplified ones that they touch."
        )

    def close(self) -> None:
        # Python's garbage collector does not see that each holds the other.
        self._space.setStateValidityChecker(lambda _: True)


class OmplStates(Ompl):
    """Our covers at each configuration that OMPL asks for, the coarsest of them that are free at start and goal.

    The compiled check takes eight configurations at once; asked for one, it does the work of eight.
    """

    label = "OMPL 2.0 RRT-Connect, our covers, state by state"

    def __init__(self, problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> None:
        super().__init__(problems, arm, options)
        self._covers = arm
        self._arm: ArmArrays
        self._solids: WorldArrays
        self._room: tuple[Any, ...]

    def _take(self, world: World, start: Array, goal: Array) -> None:
        model = self._model(world, start, goal)
        self._arm, self._solids = model.arrays, world.arrays_for(model.parts)
        self._room = make_room(self._arm, self._solids)

    def _model(self, world: World, start: Array, goal: Array) -> ArmModel:
        levels: dict[str, int] = {}
        while True:
            model = self._covers.model(levels)
            contacts = [find_contact(model, world, row) for row in (start, goal)]
            wanted = {name for contact in contacts if contact is not None for name in contact.bodies}
            finer = {name for name in wanted if name in model.parts and levels.get(name, 0) < self._covers.finest}
            if not finer:
                return model
            levels = levels | {name: levels.get(name, 0) + 1 for name in finer}

    def _free(self, row: Any) -> bool:
        row = np.array(row)
        return bool(motion_free(self._arm, self._solids, row, row, CONFIG.resolution, self._room))

    def _check_all(self, starts: Array, ends: Array) -> None:
        _all_free(self._arm, self._solids, starts, ends, CONFIG.resolution, self._room)

    def plan(self, world: World, start: Array, goal: Array, seed: int) -> Answer:
        answer = super().plan(world, start, goal, seed)
        if answer.path is not None:
            began = time.process_time()
            certificate = certify_path(self._arm, self._solids, answer.path, CONFIG.proof_budget)
            answer.proof, answer.proven = time.process_time() - began, certificate.verdict is Verdict.PROVEN_FREE
        return answer


@njit
def _all_free(
    arm: ArmArrays, world: WorldArrays, starts: Array, ends: Array, resolution: float, room: tuple[Any, ...]
) -> int:
    """How many motions are free, of those from starts to ends (N, J)."""
    count = 0
    for n in range(len(starts)):
        count += 1 if motion_free(arm, world, starts[n], ends[n], resolution, room) else 0
    return count


class OmplSpheres(OmplStates):
    """Our covers, whole motions at once: OMPL's binding lets Python derive from its MotionValidator."""

    label = "OMPL 2.0 RRT-Connect, our covers, motion by motion"

    def __init__(self, problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> None:
        super().__init__(problems, arm, options)
        peer = self

        class Validator(self._base.MotionValidator):  # type: ignore[misc, name-defined]
            def checkMotion(self, first: Any, second: Any) -> bool:
                return peer._motion(first, second)

        self._own = self._space.getMotionValidator()
        self._validator = Validator(self._space)
        self._space.setMotionValidator(self._validator)

    def _motion(self, first: Any, second: Any) -> bool:
        self._calls += 1
        if not self._checking:
            return True
        start, end = self._row(first), self._row(second)
        if self._calls % _KEPT == 0:
            self._kept.append((start, end))
        return bool(motion_free(self._arm, self._solids, start, end, CONFIG.resolution, self._room))

    def close(self) -> None:
        self._space.setMotionValidator(self._own)
        super().close()


class OmplCoal(Ompl):
    """Coal on the collision meshes, one call of Pinocchio for each configuration: kinematics, broad phase, meshes."""

    label = "OMPL 2.0 RRT-Connect, Coal on meshes"

    def __init__(self, problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> None:
        super().__init__(problems, arm, options)
        pin, self._coal = _import("pinocchio"), _import("coal")
        self._pin = pin
        text = problems.kinematics.description.xml_with_files()
        self._model = pin.buildModelFromXML(text)
        self._data = self._model.createData()
        self._robot = pin.buildGeomFromUrdfString(self._model, text, pin.GeometryType.COLLISION)
        self._links = [self._model.frames[body.parentFrame].name for body in self._robot.geometryObjects]
        self._skipped = problems.skipped(arm.model({}))
        self._columns = [self._column(joint) for joint in problems.joints]
        self._positions = pin.neutral(self._model)
        for joint, position in problems.standing.items():
            self._positions[self._column(joint)] = position

    def _column(self, joint: str) -> int:
        return int(self._model.joints[self._model.getJointId(joint)].idx_q)

    def _take(self, world: World, start: Array, goal: Array) -> None:
        pin, bodies, count = self._pin, self._robot.copy(), self._robot.ngeoms
        for solid in world.solids:
            shape = getattr(self._coal, _SHAPES[solid.kind])(*solid.dimensions)
            placed = pin.GeometryObject(solid.name, 0, pin.SE3(solid.T_world_solid), shape)
            bodies.addGeometryObject(placed)
        for a in range(count):
            # What stands still is not moved by a path: nobody asks for it.
            if bodies.geometryObjects[a].parentJoint > 0:
                for b in range(count, bodies.ngeoms):
                    bodies.addCollisionPair(pin.CollisionPair(a, b))
            for b in range(a):
                first, second = self._links[a], self._links[b]
                if first != second and frozenset((first, second)) not in self._skipped:
                    bodies.addCollisionPair(pin.CollisionPair(b, a))
        # Kept as long as the broad phase, which does not own them.
        self._bodies, self._placed = bodies, pin.GeometryData(bodies)
        self._phase = pin.BroadPhaseManager_DynamicAABBTreeCollisionManager(self._model, self._bodies, self._placed)

    def _free(self, row: Any) -> bool:
        self._positions[self._columns] = row
        return not self._pin.computeCollisions(self._model, self._data, self._phase, self._positions, True)

    def _check_all(self, starts: Array, ends: Array) -> None:
        for row in starts:
            self._free(row)


class RoboPlan(Peer):
    """RRT-Connect and shortcuts of RoboPlan 0.7, which calls Coal itself.

    Its scene of the robot is made once; objects come and go.
    """

    label = "RoboPlan 0.7 RRT-Connect, Coal on meshes"
    _GROUP = "planned"

    def __init__(self, problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> None:
        self._core, self._rrt = _import("roboplan.core"), _import("roboplan.rrt")
        self._range, began = options.range, time.process_time()
        self._joints = list(problems.joints)
        self._scene = self._core.Scene("peers", self._core.loadUrdfSceneDescriptionFromXml(_widened(problems), []))
        self._scene.addGroup(self._GROUP, self._joints)
        links = {link.name for link in problems.kinematics.description.links.values() if link.collisions}
        skipped = [tuple(pair) for pair in problems.skipped(arm.model({})) if pair <= links]
        self._scene.setCollisions(skipped, False)
        self._order = self._scene.getJointNames()
        self._positions = np.array([problems.standing.get(name, 0.0) for name in self._order])
        self._columns = [self._order.index(joint) for joint in self._joints]
        self._built_in = time.process_time() - began

    def note(self) -> str:
        return f"Its scene of the robot took {1e3 * self._built_in:.0f} ms, once."

    def plan(self, world: World, start: Array, goal: Array, seed: int) -> Answer:
        core, scene, answer, began = self._core, self._scene, Answer(), time.process_time()
        for solid in world.solids:
            shape = _SHAPES[solid.kind]
            add = getattr(scene, f"add{shape}Geometry")
            add(solid.name, "universe", getattr(core, shape)(*solid.dimensions), solid.T_world_solid, np.ones(4))
        # Objects that touch each other, as shelves do, would count as a collision.
        scene.setCollisions([(a.name, b.name) for a, b in combinations(world.solids, 2)], False)
        self._positions[self._columns] = start
        scene.setJointPositions(self._positions)
        answer.world = time.process_time() - began
        began = time.process_time()
        options = self._rrt.RRTOptions(
            self._GROUP, max_nodes=CONFIG.nodes, collision_check_step_size=CONFIG.resolution,
            max_planning_time=PATIENCE * TIMEOUT, rrt_connect=True,
        )  # fmt: skip
        if self._range:
            options.max_connection_distance = self._range
        planner = self._rrt.RRT(scene, options)
        planner.setRngSeed(seed)
        ends = [core.JointConfiguration(self._joints, row) for row in (start, goal)]
        try:
            path = planner.plan(*ends)
        except RuntimeError:
            path = None
        answer.search = answer.found_in = time.process_time() - began
        if path is not None:
            began = time.process_time()
            shortcuts = core.PathShortcuttingOptions(self._GROUP, max_step_size=CONFIG.resolution, seed=seed)
            path = core.PathShortcutter(scene, shortcuts).shortcut(path)
            answer.simplification, answer.path = time.process_time() - began, np.array(path.positions)
        for solid in world.solids:
            scene.removeGeometry(solid.name)
        return answer


def _widened(problems: PlanningProblems) -> str:
    """The URDF text with the limits that the problems ask for, of joints that stand still too."""
    root = ElementTree.fromstring(problems.kinematics.description.xml_with_files())
    limits = dict(zip(problems.joints, problems.limits.T.tolist(), strict=True))
    for joint in root.iter("joint"):
        name, limit = joint.get("name", ""), joint.find("limit")
        if limit is not None and (name in limits or name in problems.standing):
            low, high = limits.get(name) or (problems.standing[name],) * 2
            limit.set("lower", repr(min(low, float(limit.get("lower", low)))))
            limit.set("upper", repr(max(high, float(limit.get("upper", high)))))
    return ElementTree.tostring(root, encoding="unicode")


PEERS: dict[str, Callable[[PlanningProblems, RefinableArm, argparse.Namespace], Peer]] = {
    "ours": Ours,
    "ompl-spheres": OmplSpheres,
    "ompl-states": OmplStates,
    "ompl-coal": OmplCoal,
    "roboplan": RoboPlan,
}


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(module.partition(".")[0], "this planner", REMEDY) from error


def _made(problems: PlanningProblems, arm: RefinableArm, options: argparse.Namespace) -> dict[str, Peer]:
    """The planners that are installed; one message about those that are not."""
    peers, missing = dict[str, Peer](), dict[str, str]()
    for name in options.planners:
        try:
            peers[name] = PEERS[name](problems, arm, options)
        except MissingDependencyError as error:
            missing[name] = error.package
    if missing:
        packages = " and ".join(dict.fromkeys(f"'{package}'" for package in missing.values()))
        print(f"Left out: {', '.join(missing)}, for want of the package {packages}. {REMEDY}", file=sys.stderr)
    return peers


def _figures(values: list[float]) -> str:
    """Median and 95 % of seconds, in ms."""
    return " / ".join(f"{1e3 * np.percentile(values, share):.1f}" for share in (50, 95)) if values else "–"


def _table_row(label: str, rows: list[dict[str, Any]], best: dict[tuple[str, int], float]) -> str:
    """A row of the table from the runs of a planner; times and lengths are those of solved ones."""
    found = [row for row in rows if row["solved"]]
    touching = [row for row in found if row["touching"]]
    proven = [row["proven"] for row in found if row["proven"] is not None]
    deepest = f" ({1e3 * max(row['depth'] for row in touching):.1f} mm)" if touching else ""
    ratios = [row["length"] / best[row["set"], row["index"]] for row in found]
    short = [row["search"] + row["simplification"] for row in found]
    cells = [
        label,
        str(len({(row["set"], row["index"]) for row in rows})),
        f"{len(found)} of {len(rows)}",
        _figures([row["world"] for row in found]),
        _figures([row["search"] for row in found]),
        _figures(short),
        _figures([a + row["proof"] for a, row in zip(short, found, strict=True)]) if proven else "–",
        f"{np.median(ratios):.2f}" if ratios else "–",
        f"{len(touching)}{deepest}",
        f"{sum(proven)} of {len(found)}" if proven else "–",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "planning")
    parser.add_argument("--problems", type=Path, metavar="FILE", help="problems, instead of those of --data")
    parser.add_argument("--robot", metavar="NAME_OR_URDF", help="default: the one that the file names")
    parser.add_argument(
        "--planners", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME",
        help="%(choices)s (default: all that are installed)",
    )  # fmt: skip
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="every so manyth problem of each set")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each problem (default: %(default)s)")
    parser.add_argument(
        "--range",
        type=float,
        metavar="RAD",
        help="longest branch of the others' trees (default: their own, a fifth of the extent in OMPL, 3 in RoboPlan)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    options = parser.parse_args()
    problems = read_problems(
        options.problems or options.data / "planning" / "motionbenchmaker_panda.json.gz", options.robot
    )
    arm = problems.arm()
    model = arm.model({})
    for level in range(arm.finest + 1):
        arm.model(dict.fromkeys(arm.links, level))
    peers = _made(problems, arm, options)
    if not peers:
        return 2
    truth = problems.truth(model)

    def ends(problem: dict[str, Any]) -> list[Array]:
        return [model.configuration(problem[end], end) for end in ("start", "goal")]

    # Compiles and loads what runs for the first time.
    for peer in peers.values():
        peer.plan(read_world(problems.first["obstacles"]), *ends(problems.first), 0)
        peer.warmed_up()
    rows: list[dict[str, Any]] = []
    tasks = [
        (name, key, problem, seed)
        for key in peers
        for name, problem in problems.every(options.stride)
        for seed in range(options.seeds)
    ]
    wall = dict.fromkeys(peers, 0.0)
    busy = dict.fromkeys(peers, 0.0)
    for name, key, problem, seed in tqdm(tasks, disable=not sys.stderr.isatty()):
        world = read_world(problem["obstacles"])
        began, used = time.perf_counter(), time.process_time()
        answer = peers[key].plan(world, *ends(problem), seed)
        wall[key] += time.perf_counter() - began
        busy[key] += time.process_time() - used
        row = asdict(answer) | {"planner": key, "set": name, "index": problem["index"], "seed": seed}
        path = row.pop("path")
        row["solved"] = path is not None and answer.found_in <= TIMEOUT
        if path is not None:
            dense = dense_path(path, STEP)
            row |= {"length": path_length(path), "corners": len(path)}
            row["touching"] = int((~truth.free(dense, world)).sum())
            row["depth"] = truth.depth(dense, world) if row["touching"] else 0.0
        rows.append(row)
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        if "length" in row:
            key = row["set"], row["index"]
            best[key] = min(best.get(key, np.inf), row["length"])
    print(
        "| planner | problems | solved | world taken over [ms] | search, median / 95 % [ms] | with simplification "
        "| with proof | length over the best known | paths that touch (deepest) | proven |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, peer in peers.items():
        print(_table_row(peer.label, [row for row in rows if row["planner"] == name], best))
    print(f"| {VAMP_LABEL} | – | – | – | {VAMP_MEDIAN} / – | – | – | – | – | – |")
    # A limit of wall time is a harder one where others use the same core.
    notes = {
        name: f"had {busy[name] / wall[name]:.0%} of a core. {peer.note()}".rstrip() for name, peer in peers.items()
    }
    print("\n" + "\n".join(f"{name}: {note}" for name, note in notes.items()))
    for peer in peers.values():
        peer.close()
    if options.json:
        with atomic_write(options.json) as file:
            json.dump(
                {
                    "settings": asdict(CONFIG),
                    "stride": options.stride,
                    "range": options.range,
                    "notes": notes,
                    "runs": rows,
                },
                file,
            )
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
