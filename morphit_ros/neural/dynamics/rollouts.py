"""Many rollouts of one world at once, in threads."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.rollout_kernels import roll_out
from morphit_ros.neural.dynamics.simulate import (
    STATUSES,
    Status,
    check_penetration,
    check_steps,
    checked_controls,
    checked_wrenches,
)
from morphit_ros.neural.dynamics.state import STATE_SIZE, TANGENT_SIZE, stack_states
from morphit_ros.neural.dynamics.world import World


@dataclass(frozen=True)
class BatchResult:
    """N rollouts of T steps.

    Attributes:
        states: (N, T + 1, B, 13), as in `RolloutResult`.
        statuses: N of them.
        steps_done: (N,).
    """

    states: Array
    statuses: tuple[Status, ...]
    steps_done: NDArray[np.int64]


def simulate_batch(
    world: World,
    states: ArrayLike,
    steps: int,
    controls: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    names: Sequence[str] = (),
    values: ArrayLike = (),
    threads: int = 0,
) -> BatchResult:
    """`simulate` from N starts, with controls and parameters of their own.

    Args:
        world: the same for all.
        states: (N, B, 13).
        steps: T.
        controls: (N, T, M), or as in `simulate` for all alike.
        wrenches: as in `simulate`, for all alike.
        names, values: parameters that differ from the world's, (K,) for all alike or (N, K).
        threads: that share the rollouts; 0 for one a processor. Results don't depend on it.

    Raises:
        InvalidInputError: what `simulate` refuses, of any of the rollouts; a negative number of threads.
    """
    check_steps(steps)
    if threads < 0:
        raise InvalidInputError("threads", threads, "a number from 0 up", "0 is one a processor.")
    bodies = len(world.bodies)
    starts = np.asarray(states, dtype=np.float64)
    if starts.ndim != 3 or starts.shape[1:] != (bodies, STATE_SIZE) or len(starts) == 0:
        raise InvalidInputError("states", f"shape {starts.shape}", f"shape (N, {bodies}, {STATE_SIZE}), N at least 1")
    count = len(starts)
    starts = stack_states(starts.reshape(-1, STATE_SIZE), count * bodies).reshape(starts.shape)
    forces = np.asarray(0.0 if controls is None else controls, dtype=np.float64)
    if forces.ndim == 3:
        shape = (count, steps, len(world.control_map))
        if forces.shape != shape or not np.isfinite(forces).all():
            raise InvalidInputError("controls", f"shape {forces.shape}", f"finite numbers of shape {shape}")
    else:
        forces = np.broadcast_to(checked_controls(world, steps, controls), (count, steps, len(world.control_map)))
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim == 2 and len(numbers) != count:
        raise InvalidInputError("values", f"{len(numbers)} rows", f"one for each of {count} rollouts")
    sets = [world.with_values(names, row) for row in (numbers if numbers.ndim == 2 else [numbers])]
    parameters, masses, inertias = (np.array([row[i] for row in sets]) for i in range(3))
    for start in starts:
        check_penetration(world, start, parameters[0])
    # A copy in C order: a read-only or strided view would be another type to the compiler.
    forces = np.array(forces, order="C")
    outer = checked_wrenches(world, steps, wrenches)
    frames, twists = world.frames
    model = world.model
    trajectories = np.empty((count, steps + 1, bodies, STATE_SIZE))
    trajectories[:, 0] = starts
    statuses, done = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)

    nothing, selection = np.empty((0, bodies * TANGENT_SIZE, 0)), np.empty((0, 0))
    every = len(sets) > 1

    def roll(part: range) -> None:
        for i in part:
            k = i if every else 0
            statuses[i], done[i] = roll_out(
                model, parameters[k], masses[k], inertias[k], frames, twists, outer, forces[i], trajectories[i],
                selection, nothing,
            )  # fmt: skip
            trajectories[i, done[i] + 1 :] = trajectories[i, done[i]]

    workers = min(threads or os.cpu_count() or 1, count)
    # Several parts a thread, as some rollouts have more contact than others.
    edges = np.linspace(0, count, min(4 * workers, count) + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(roll, [range(a, b) for a, b in itertools.pairwise(edges)]))
    return BatchResult(trajectories, tuple(STATUSES[int(status)] for status in statuses), done)
