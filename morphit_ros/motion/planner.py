"""A path between configurations: search, shortening and proof."""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.certificate import Certificate, Verdict, certify_path, least_clearance
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmArrays, ArmModel
from morphit_ros.motion.search import FOUND, FULL, found_path, grow, plant, shorten
from morphit_ros.motion.world import World, WorldArrays

# Samples between two looks at the clock: a few milliseconds.
_SAMPLES = 500
# More than this apart is as good as far [m].
_APART = 1e-6
# Where a path turns out to touch between what was looked at, the next search looks so much closer, at most so often.
_CLOSER, _SEARCHES = 0.3, 4


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
    seed: int = parameter(0, "Of samples and shortcuts", minimum=0, maximum=2**31 - 1)


class PathStatus(enum.Enum):
    """How a request ended."""

    FOUND = "found"
    START_TOUCHES = "start touches"
    GOAL_TOUCHES = "goal touches"
    NOT_FOUND = "not found in time"


@dataclass(frozen=True)
class PathPlan:
    """The answer to a request.

    Attributes:
        status: how it ended.
        message: why there is no path: which bodies touch and how deep; empty with one.
        bodies: names of the two that touch at the start or the nearest goal, None unless that is why there is no path.
        path: (N, J) corners from start to goal; (0, J) without a path.
        certificate: what is known of the path, None without one.
        search_time, shortening_time, proof_time: process time [s].
    """

    status: PathStatus
    message: str
    path: Array
    certificate: Certificate | None = None
    bodies: tuple[str, str] | None = None
    search_time: float = 0.0
    shortening_time: float = 0.0
    proof_time: float = 0.0

    @property
    def length(self) -> float:
        """Of the path, in the norm of joints."""
        return path_length(self.path)


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
) -> PathPlan:
    """Plan from a start to whichever of several goals is reached first.

    Goals that touch something are left out; all of them doing so is the status GOAL_TOUCHES.

    Args:
        model: the robot.
        world: what it must not touch.
        start: positions of the planned joints [rad or m], by name or (J,).
        goals: at least one.
        config: settings.

    Raises:
        InvalidInputError: no goals, or positions that are missing, not finite or outside the limits.
    """
    config = config or PathConfig()
    if not len(goals):
        raise InvalidInputError("goals", "none", "at least one")
    first = _within_limits(model, model.configuration(start, "start"), "start")
    rows = [_within_limits(model, model.configuration(goal, "goal"), "goal") for goal in goals]
    none = np.empty((0, len(first)))
    arm, solids = model.arrays, world.arrays_for(model.parts)
    if contact := _contact(model, world, first):
        return PathPlan(PathStatus.START_TOUCHES, contact.message, none, bodies=contact.bodies)
    touching = [_contact(model, world, row) for row in rows]
    if touching[0] and all(touching):
        return PathPlan(PathStatus.GOAL_TOUCHES, touching[0].message, none, bodies=touching[0].bodies)
    ends = np.array([row for row, contact in zip(rows, touching, strict=True) if contact is None])
    padded = arm._replace(radii=arm.radii + config.margin, ball_radii=arm.ball_radii + config.margin)
    searched = padded if all(least_clearance(padded, solids, row, _APART)[0] > 0.0 for row in (first, *ends)) else arm
    began, deadline = time.process_time(), time.monotonic() + config.timeout
    searching = shortening = proving = 0.0
    draws = np.random.default_rng(config.seed).random((config.shortcuts, 2))
    resolution, path, certificate = config.resolution, none, None
    for attempt in range(_SEARCHES):
        seed = config.seed + 1000 * attempt
        found = _search(model, searched, solids, first, ends, resolution, config, deadline, seed)
        searching += time.process_time() - began
        if found is None:
            break
        began = time.process_time()
        short = shorten(searched, solids, found, resolution, draws)
        shortening, began = shortening + time.process_time() - began, time.process_time()
        # What was cut short may touch where the path that was found does not.
        for path in (short, found):
            certificate = certify_path(arm, solids, path, config.proof_budget)
            if certificate.verdict is not Verdict.TOUCHING:
                break
        proving, began = proving + time.process_time() - began, time.process_time()
        if certificate is not None and certificate.verdict is not Verdict.TOUCHING:
            return PathPlan(
                PathStatus.FOUND, "", path, certificate,
                search_time=searching, shortening_time=shortening, proof_time=proving,
            )  # fmt: skip
        resolution *= _CLOSER
    message = f"no path found within {config.timeout:g} s"
    return PathPlan(
        PathStatus.NOT_FOUND, message, none,
        search_time=searching, shortening_time=shortening, proof_time=proving,
    )  # fmt: skip


def _search(
    model: ArmModel,
    arm: ArmArrays,
    solids: WorldArrays,
    start: Array,
    goals: Array,
    resolution: float,
    config: PathConfig,
    deadline: float,
    seed: int,
) -> Array | None:
    """A path (N, J) that is free at samples, None if time or nodes did not suffice."""
    room = make_room(arm, solids)
    for goal in sorted(goals, key=lambda goal: float(np.linalg.norm(goal - start))):
        if motion_free(arm, solids, start, goal, resolution, room):
            return np.array([start, goal])
    trees = plant(start, goals, config.nodes)
    shift = np.random.default_rng(seed).random(len(start))
    while time.monotonic() < deadline:
        state = grow(arm, solids, model.lower, model.upper, trees, shift, config.reach, resolution, _SAMPLES)
        if state == FOUND:
            return found_path(trees)
        if state == FULL:
            return None
    return None


def _within_limits(model: ArmModel, row: Array, name: str) -> Array:
    outside = np.flatnonzero((row < model.lower - 1e-9) | (row > model.upper + 1e-9))
    if len(outside):
        j = int(outside[0])
        bound = f"{model.lower[j]:.6g} to {model.upper[j]:.6g}"
        raise InvalidInputError(f"{name}: joint '{model.joints[j]}'", f"{row[j]:.6g}", bound)
    return row


@dataclass(frozen=True)
class _Contact:
    """Two bodies that overlap deepest, and by how much [m]."""

    bodies: tuple[str, str]
    depth: float

    @property
    def message(self) -> str:
        return f"{' and '.join(self.bodies)} overlap by {1000.0 * self.depth:.1f} mm"


def _contact(model: ArmModel, world: World, row: Array) -> _Contact | None:
    """The deepest overlap at a configuration, None if nothing touches."""
    gap, first, second = least_clearance(model.arrays, world.arrays_for(model.parts), row, _APART)
    return None if gap > 0.0 else _Contact(body_names(model, world, (first, second)), -gap)
