"""Trajectories of least cost whose joints without motor need none: trust region inside an augmented Lagrangian."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.contact_planning.system import ContactSystem
from morphit_ros.contact_planning.transcription import Task, evaluate, evaluation_arrays
from morphit_ros.contact_planning.tree import add
from morphit_ros.contact_planning.trust_region import dogleg, gauss_newton
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Updates of the multipliers, and growth of the penalty over its first value, at most.
_UPDATES, _MOST = 15, 1e4
# Newton steps of a time step, and the squared effort that is as good as none [N² or (N m)²].
_CARRYING, _CARRIED = 30, 1e-8


class SolverStatus(enum.StrEnum):
    """How a solve ended.

    CONVERGED: no step lowers the cost by more than the tolerance, and efforts without motor are below theirs.
    STALLED: the cost has settled, but joints without motor would need more effort than the tolerance.
    ITERATIONS: the iterations ran out before.
    TIMED_OUT: the time ran out before.
    """

    CONVERGED = "converged"
    STALLED = "stalled"
    ITERATIONS = "iterations"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class SolverConfig(Config):
    """When a trajectory is good enough."""

    iterations: int = parameter(300, "Most steps of the trust region in all", minimum=1, maximum=100_000)
    cost_tolerance: float = parameter(1e-4, "Share of the cost to be gained in a step", minimum=1e-14, maximum=0.1)
    effort_tolerance: float = parameter(
        1e-3, "Largest effort that a joint without motor may need in a plan [N m or N]", minimum=1e-12, maximum=1e3
    )
    penalty: float = parameter(1000.0, "First weight of efforts without motor", minimum=1e-9, maximum=1e12)
    penalty_growth: float = parameter(5.0, "Growth of that where efforts fall slowly", minimum=1.0, maximum=100.0)
    radius: float = parameter(10.0, "First radius of the scaled trust region", minimum=1e-9, maximum=1e9)


@dataclass(frozen=True, eq=False)
class Solution:
    """A trajectory and what is known of it.

    Attributes:
        status: how the solve ended.
        positions: (N, Q) at times h, 2h, …
        velocities, efforts: (N, V) that lead to each of them.
        gaps, forces: (N, P) of the pairs [m] and [N].
        multipliers, penalty: (N, V) of the efforts without motor, and their weight, to start the next solve with.
        cost: without penalty and multipliers.
        unactuated: largest effort of a joint without motor [N m or N].
        iterations: steps tried.
        seconds: of the solve.
    """

    status: SolverStatus
    positions: Array
    velocities: Array
    efforts: Array
    gaps: Array
    forces: Array
    multipliers: Array
    penalty: float
    cost: float
    unactuated: float
    iterations: int
    seconds: float


@njit(cache=True, nogil=True)
def _stepped(tree, positions, step, moved):  # type: ignore[no-untyped-def]
    for t in range(len(positions)):
        add(tree, positions[t], step[t], moved[t])


def carried_along(system: ContactSystem, task: Task, path: Array) -> Array:
    """A path (N, Q) whose joints without motor go where contact takes them, by implicit Euler steps of the task.

    Where a step cannot be solved, they end it as near to being without effort as could be found.
    """
    tree, contacts = system.tree, system.contacts
    idle = np.flatnonzero(~system.actuated)
    here = evaluation_arrays(tree, contacts, 1)
    free = np.zeros((1, system.velocity_count))
    position, velocity, rows = task.position, task.velocity, []
    for row in path:
        now = task._replace(
            position=position, velocity=velocity, goals=row[None], position_weights=free, velocity_weights=free,
            effort_weights=(~system.actuated[None]).astype(np.float64), efforts=free, overlap_weight=0.0,
        )  # fmt: skip
        way = system.difference(row, position)
        way[idle] = task.step * velocity[idle]
        place = system.moved(position, way)
        cost = evaluate(tree, contacts, now, place[None], here, True)
        for _ in range(_CARRYING):
            step = np.zeros(len(way))
            step[idle] = -np.linalg.lstsq(here.jacobians[0][np.ix_(idle, idle)], here.efforts[0, idle])[0]
            share = 1.0
            while share > 1e-3:
                moved = system.moved(place, share * step)
                if evaluate(tree, contacts, now, moved[None], here, False) < cost:
                    break
                share *= 0.5
            else:
                break
            place = moved
            cost = evaluate(tree, contacts, now, place[None], here, True)
            if cost < _CARRIED:
                break
        velocity = system.difference(place, position) / task.step
        position = place
        rows.append(place)
    return np.array(rows)


def solve_trajectory(
    system: ContactSystem,
    task: Task,
    guess: Array,
    config: SolverConfig,
    multipliers: Array | None = None,
    deadline: float = np.inf,
    penalty: float | None = None,
) -> Solution:
    """Lower the cost of a task from a guess (N, Q); the task's effort weights of joints without motor are not used.

    Args:
        multipliers, penalty: of an earlier solution.
        deadline: of `time.monotonic` [s].
    """
    began = time.monotonic()
    tree, contacts = system.tree, system.contacts
    steps, count = guess.shape[0], system.velocity_count
    idle = ~system.actuated
    weight = config.penalty if penalty is None else penalty
    factors = np.zeros((steps, count)) if multipliers is None else multipliers.copy()

    def constrained() -> Task:
        weights, targets = task.effort_weights.copy(), task.efforts.copy()
        weights[:, idle], targets[:, idle] = weight, -factors[:, idle] / weight
        return task._replace(effort_weights=weights, efforts=targets)

    here, trial = evaluation_arrays(tree, contacts, steps), evaluation_arrays(tree, contacts, steps)
    positions, moved = guess.copy(), guess.copy()
    rows = steps * count
    factor = np.zeros((rows, 3 * count))
    scale, newton, cauchy, step, work = np.zeros((5, rows))
    current = constrained()
    cost = evaluate(tree, contacts, current, positions, here, True)
    radius, earlier, status = config.radius, np.inf, SolverStatus.ITERATIONS
    iterations, updates, settled = 0, 0, False
    fresh = True
    while iterations < config.iterations:
        if time.monotonic() > deadline:
            status = SolverStatus.TIMED_OUT
            break
        iterations += 1
        if fresh and not gauss_newton(here.band, here.gradient.reshape(-1), factor, scale, newton, cauchy, work):
            status = SolverStatus.STALLED
            break
        promised, length = dogleg(here.band, here.gradient.reshape(-1), scale, newton, cauchy, radius, step, work)
        _stepped(tree, positions, step.reshape(steps, count), moved)
        # Most steps are taken: with derivatives at once, one evaluation a step does.
        new_cost = evaluate(tree, contacts, current, moved, trial, iterations < config.iterations)
        gained = cost - new_cost
        fresh = gained > 0.0 and gained >= 1e-4 * promised
        if gained < 0.25 * promised or not np.isfinite(new_cost):
            radius = 0.25 * min(length, radius)
        elif gained > 0.75 * promised and length > 0.99 * radius:
            radius *= 2.0
        if fresh:
            positions, moved, here, trial, cost = moved, positions, trial, here, new_cost
        settled = promised < config.cost_tolerance * cost or (fresh and gained < config.cost_tolerance * cost)
        if not settled and radius > 1e-10:
            continue
        needed = float(np.abs(here.efforts[:, idle]).max(initial=0.0))
        if needed <= config.effort_tolerance:
            status = SolverStatus.CONVERGED
            break
        if updates == _UPDATES:
            status = SolverStatus.STALLED
            break
        updates += 1
        factors[:, idle] += weight * here.efforts[:, idle]
        if needed > 0.25 * earlier:
            weight = min(weight * config.penalty_growth, _MOST * config.penalty)
        earlier = min(needed, earlier)
        radius = max(radius, config.radius)
        current = constrained()
        cost = evaluate(tree, contacts, current, positions, here, True)
        fresh = True
    weights = task.effort_weights.copy()
    weights[:, idle] = 0.0
    plain = evaluate(tree, contacts, task._replace(effort_weights=weights), positions, here, False)
    return Solution(
        status, positions, here.velocities, here.efforts, here.gaps, here.forces, factors, weight, plain,
        float(np.abs(here.efforts[:, idle]).max(initial=0.0)), iterations, time.monotonic() - began,
    )  # fmt: skip
