"""A path between configurations: search, shortening and proof."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.certificate import (
    Certificate,
    Verdict,
    certify_path,
    least_clearance,
    placed_spheres,
    solid_distance,
)
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.search import FOUND, FULL, Trees, found_path, grow, plant, shorten
from morphit_ros.motion.world import World
from morphit_ros.robot.chain import place_joints

# Samples between two looks at the clock: a few milliseconds. So many as well where surfaces are known: next to each
# other they take up to a millisecond at each configuration.
_SAMPLES, _SURFACE_SAMPLES = 500, 10
# More than this apart is as good as far [m].
_APART = 1e-6
# Where a path turns out to touch between what was looked at, the next search looks so much closer, at most so often.
_CLOSER, _SEARCHES = 0.3, 4
# A path so near to the straight way to its goal cannot be made much shorter.
_STRAIGHT = 1.001
# Of the kernels, in this process.
_LOADED = threading.Event()

# Told the length of the shortest path so far (infinite before the first) every few milliseconds; False: give up.
Watch = Callable[[float], bool]


@dataclass(frozen=True)
class PathConfig(Config):
    """How a path is searched."""

    timeout: float = parameter(1.0, "Time for search, shortening and proof [s]", minimum=1e-3, maximum=3600.0)
    resolution: float = parameter(
        0.04, "Greatest step between configurations looked at, in the norm of joints [rad]", minimum=1e-4, maximum=1.0
    )
    reach: float = parameter(
        1.0, "Longest new branch of a tree, in the norm of joints [rad]", minimum=1e-2, maximum=10.0
    )
    margin: float = parameter(
        0.004, "Kept free besides where start and goals have the room: proofs are short [m]", minimum=0.0, maximum=0.1
    )
    nodes: int = parameter(50000, "Most nodes of a tree", minimum=10, maximum=1000000)
    shortcuts: int = parameter(200, "Most shortcuts tried", minimum=0, maximum=100000)
    proof_budget: int = parameter(20000, "Most configurations that a proof looks at", minimum=1, maximum=10000000)
    improvement: float = parameter(
        0.0, "Further time for a shorter path once there is one [s]", minimum=0.0, maximum=3600.0
    )
    seed: int = parameter(0, "Of samples and shortcuts", minimum=0, maximum=2**31 - 1)


class PathStatus(enum.Enum):
    """How a request ended."""

    FOUND = "found"
    START_TOUCHES = "start touches"
    GOAL_TOUCHES = "goal touches"
    UNREACHABLE = "unreachable"
    NOT_FOUND = "not found in time"
    GIVEN_UP = "given up"


@dataclass(frozen=True)
class PathPlan:
    """The answer to a request.

    Attributes:
        status: how it ended.
        message: why there is no path: which bodies touch and how deep; empty with one.
        path: (N, J) corners from start to goal; (0, J) without a path.
        certificate: what is known of the path, None without one.
        bodies: names of the two that touch at the start or the first goal, None unless that is why there is no path.
        depth: how deep these overlap [m], 0 without.
        goal: index of the goal that the path leads to, -1 without a path.
        branches: ends (B, 2, J) of the branches of both trees of the last search, from the start and from the goals.
        search_time, shortening_time, proof_time: process time [s].
    """

    status: PathStatus
    message: str
    path: Array
    certificate: Certificate | None = None
    bodies: tuple[str, str] | None = None
    depth: float = 0.0
    goal: int = -1
    branches: tuple[Array, Array] | None = field(default=None, repr=False)
    search_time: float = 0.0
    shortening_time: float = 0.0
    proof_time: float = 0.0

    @property
    def length(self) -> float:
        """Of the path, in the norm of joints."""
        return path_length(self.path)

    @property
    def proven(self) -> bool:
        """Whether it is free for all its length."""
        return self.certificate is not None and self.certificate.verdict is Verdict.PROVEN_FREE


def path_length(path: Array) -> float:
    """Length of a path (N, J) in the norm of joints."""
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def body_names(model: ArmModel, world: World, bodies: tuple[int, int]) -> tuple[str, str]:
    """Names of the bodies of a certificate."""
    first, second = (model.parts[b] if b >= 0 else world.names[-1 - b] for b in bodies)
    return first, second


def plan_path(
    model: ArmModel,
    world: World,
    start: Mapping[str, float] | Array,
    goals: Sequence[Mapping[str, float] | Array],
    config: PathConfig | None = None,
    watch: Watch = lambda _: True,
    until: float | None = None,
) -> PathPlan:
    """Plan from a start to whichever of several goals is reached first.

    Goals that touch something are left out; all of them doing so is the status GOAL_TOUCHES.

    Args:
        model: the robot.
        world: what it must not touch.
        start: positions of the planned joints [rad or m], by name or (J,).
        goals: at least one.
        config: settings.
        watch: told how far it is, and asked whether to go on.
        until: when shortening and proof of the first path end at the latest, by `time.monotonic` [s]; None for when the
            timeout of `config` ends, which then holds for all together.

    Raises:
        InvalidInputError: no goals, or positions that are missing, not finite or outside the limits.
    """
    config = config or PathConfig()
    if not len(goals):
        raise InvalidInputError("goals", "none", "at least one")
    first = _within_limits(model, model.configuration(start, "start"), "start")
    rows = [_within_limits(model, model.configuration(goal, "goal"), "goal") for goal in goals]
    none = np.empty((0, len(first)))
    if contact := find_contact(model, world, first):
        return PathPlan(
            PathStatus.START_TOUCHES, contact.message, none, bodies=contact.bodies, depth=contact.depth
        )  # fmt: skip
    touching = [find_contact(model, world, row) for row in rows]
    if touching[0] and all(touching):
        contact = touching[0]
        return PathPlan(PathStatus.GOAL_TOUCHES, contact.message, none, bodies=contact.bodies, depth=contact.depth)
    ends = np.array([row for row, contact in zip(rows, touching, strict=True) if contact is None])
    search = _Search(model, world, first, ends, config, watch)
    load_kernels(model, world)
    deadline = time.monotonic() + config.timeout
    plan = search.first(deadline, deadline if until is None else until)
    if plan.status is PathStatus.FOUND and config.improvement > 0.0:
        plan = search.improved(plan)
    if plan.status is PathStatus.FOUND:
        reached = np.linalg.norm(np.array(rows) - plan.path[-1], axis=1)
        plan = replace(plan, goal=int(reached.argmin()))
    return replace(
        plan, branches=search.branches, search_time=search.spent[0], shortening_time=search.spent[1],
        proof_time=search.spent[2],
    )  # fmt: skip


def load_kernels(model: ArmModel, world: World) -> None:
    """Compile what a plan is made with, or load it from the cache: once a process, seconds that no limit counts."""
    if not _LOADED.is_set():
        arm, solids, none = model.arrays, world.arrays_for(model.parts), np.zeros((1, len(model.lower)))
        grow(arm, solids, model.lower, model.upper, plant(none[0], none, 2), none[0], 1.0, 1.0, 0, np.inf)
        shorten(arm, solids, none, 1.0, np.empty((0, 2)))
        certify_path(arm, solids, none)
        motion_free(arm, solids, none[0], none[0], 1.0, make_room(arm, solids))
        _LOADED.set()


class _Search:
    """Searches between a start and goals that touch nothing, each with shortcuts and proof.

    Attributes:
        spent: process time of search, shortening and proof so far [s].
        branches: of the last search.
    """

    def __init__(
        self, model: ArmModel, world: World, start: Array, goals: Array, config: PathConfig, watch: Watch
    ) -> None:
        self._model, self._start, self._goals, self._config, self._watch = model, start, goals, config, watch
        arm = self._arm = model.arrays
        solids = self._solids = world.arrays_for(model.parts)
        padded = arm._replace(
            radii=arm.radii + config.margin,
            ball_radii=arm.ball_radii + config.margin,
            margin=arm.margin + 2.0 * config.margin,
        )
        apart = all(least_clearance(padded, solids, row, _APART)[0] > 0.0 for row in (start, *goals))
        self._searched = padded if apart else arm
        self._draws = np.random.default_rng(config.seed).random((config.shortcuts, 2))
        self._straight = float(np.linalg.norm(goals - start, axis=1).min())
        self._given_up = False
        self.spent = [0.0, 0.0, 0.0]
        self.branches: tuple[Array, Array] | None = None

    def first(self, deadline: float, until: float) -> PathPlan:
        """A path, the first that is found by the deadline, its shortening and proof ended by a later one."""
        config, none = self._config, np.empty((0, len(self._start)))
        for attempt in range(_SEARCHES):
            resolution = config.resolution * _CLOSER**attempt
            found = self._search(resolution, deadline, config.seed + 1000 * attempt, np.inf)
            if found is None:
                break
            plan = self._proven(found, resolution, until)
            if plan is not None:
                return plan
        if self._given_up:
            return PathPlan(PathStatus.GIVEN_UP, "given up before a path was found", none)
        return PathPlan(PathStatus.NOT_FOUND, f"no path found within {config.timeout:g} s", none)

    def improved(self, plan: PathPlan) -> PathPlan:
        """The shortest of further paths, searched where shorter ones can be; never less proven."""
        config, deadline, seed = self._config, time.monotonic() + self._config.improvement, self._config.seed
        while time.monotonic() < deadline and plan.length > _STRAIGHT * self._straight and not self._given_up:
            seed += 1
            found = self._search(config.resolution, deadline, seed, plan.length)
            other = None if found is None else self._proven(found, config.resolution, deadline)
            if other is not None and other.length < plan.length and other.proven >= plan.proven:
                plan = other
        return plan

    def _search(self, resolution: float, deadline: float, seed: int, longest: float) -> Array | None:
        """A path (N, J) that is free at samples, None if time or nodes did not suffice."""
        began = time.process_time()
        found = self._grown(resolution, deadline, seed, longest)
        self.spent[0] += time.process_time() - began
        return found

    def _grown(self, resolution: float, deadline: float, seed: int, longest: float) -> Array | None:
        arm, solids, model, start, goals = self._searched, self._solids, self._model, self._start, self._goals
        if longest == np.inf:
            room = make_room(arm, solids)
            for goal in sorted(goals, key=lambda goal: float(np.linalg.norm(goal - start))):
                if motion_free(arm, solids, start, goal, resolution, room):
                    return np.array([start, goal])
        trees = plant(start, goals, self._config.nodes)
        shift = np.random.default_rng(seed).random(len(start))
        state, samples = -1, _SURFACE_SAMPLES if model.insides else _SAMPLES
        while time.monotonic() < deadline and state not in (FOUND, FULL) and not self._given_up:
            state = grow(
                arm, solids, model.lower, model.upper, trees, shift, self._config.reach, resolution, samples, longest
            )  # fmt: skip
            self._given_up = not self._watch(longest)
        self.branches = _branches(trees, 0), _branches(trees, 1)
        return found_path(trees) if state == FOUND else None

    def _proven(self, found: Array, resolution: float, until: float) -> PathPlan | None:
        """What was found, shortened and with its proof; None if it turns out to touch."""
        began, left = time.process_time(), until - time.monotonic()
        # A proof takes less than the shortcuts as a rule, and matters more.
        short = shorten(self._searched, self._solids, found, resolution, self._draws, until - 0.5 * left)
        self.spent[1] += time.process_time() - began
        # What was cut short may touch where the path that was found does not.
        for path in (short, found):
            began = time.process_time()
            certificate = certify_path(self._arm, self._solids, path, self._config.proof_budget, until=until)
            self.spent[2] += time.process_time() - began
            if certificate.verdict is not Verdict.TOUCHING:
                return PathPlan(PathStatus.FOUND, "", path, certificate)
        return None


def _branches(trees: Trees, tree: int) -> Array:
    """Ends (B, 2, J) of the branches of a tree."""
    nodes, parents = trees.nodes[tree, : trees.counts[tree]], trees.parents[tree, : trees.counts[tree]]
    return np.stack([nodes[parents >= 0], nodes[parents[parents >= 0]]], axis=1)


def _within_limits(model: ArmModel, row: Array, name: str) -> Array:
    outside = np.flatnonzero((row < model.lower - 1e-9) | (row > model.upper + 1e-9))
    if len(outside):
        j = int(outside[0])
        bound = f"{model.lower[j]:.6g} to {model.upper[j]:.6g}"
        raise InvalidInputError(f"{name}: joint '{model.joints[j]}'", f"{row[j]:.6g}", bound)
    return row


@dataclass(frozen=True)
class Contact:
    """Two bodies that overlap deepest, and by how much [m]."""

    bodies: tuple[str, str]
    depth: float

    @property
    def message(self) -> str:
        return f"{' and '.join(self.bodies)} overlap by {1000.0 * self.depth:.1f} mm"


def find_contact(model: ArmModel, world: World, row: Array, itself: bool = True) -> Contact | None:
    """The deepest overlap at a configuration, with the world and (`itself`) of the robot; None if nothing touches.

    A path that begins outside of a closed mesh and does not touch its surface stays outside: inside is asked here only.
    """
    arm, solids = model.arrays, world.arrays_for(model.parts)
    if not itself:
        arm = arm._replace(pairs=arm.pairs[:0])
    gap, first, second = least_clearance(arm, solids, row, _APART)
    if gap > 0.0 and any(solid.mesh is not None for solid in world.solids):
        centers = placed_spheres(arm, row)
        owners = np.repeat(np.arange(len(arm.rows)), np.diff(arm.starts))
        for n, solid in enumerate(world.solids):
            moving = (arm.rows[owners] >= 0) & ~solids.allowed[owners, n]
            inside = np.flatnonzero(moving)[solid.contains(centers[moving])]
            for m in inside:
                depth = arm.radii[m] + solid_distance(solids, n, centers[m], np.inf)
                if -depth < gap:
                    gap, first, second = -depth, int(owners[m]), -1 - n
    if gap > 0.0 and model.insides:
        gap, first, second = _inside_another(model, row, gap, first, second)
    return None if gap > 0.0 else Contact(body_names(model, world, (first, second)), -gap)


def _inside_another(model: ArmModel, row: Array, gap: float, first: int, second: int) -> tuple[float, int, int]:
    """The deepest overlap of parts of which one is inside of the other's surface without meeting it, or what is given.

    Surfaces that don't meet are inside or outside of each other piece by piece, as any of their points are.
    """
    arm = model.arrays
    joints, centers = np.empty((len(arm.motions.parents), 4, 4)), placed_spheres(arm, row)
    place_joints(arm.motions, row, joints)
    frames = [np.eye(4) if joint < 0 else joints[joint] for joint in arm.rows]
    for p, q in arm.pairs:
        if p not in model.insides or q not in model.insides:
            continue
        own, other = (slice(arm.starts[part], arm.starts[part + 1]) for part in (p, q))
        distances = np.linalg.norm(centers[own, None] - centers[None, other], axis=2)
        overlap = float((arm.radii[own, None] + arm.radii[None, other] - distances).max())
        if overlap <= max(-gap, 0.0):
            continue
        for inner, outer in ((p, q), (q, p)):
            points = model.insides[inner][1] @ frames[inner][:3, :3].T + frames[inner][:3, 3]
            if model.insides[outer][0].contains((points - frames[outer][:3, 3]) @ frames[outer][:3, :3]).any():
                gap, first, second = -overlap, int(p), int(q)
    return gap, first, second
