"""RRT-Connect and shortcuts, compiled as a whole.

The trees grow from the start and from all goals towards samples and towards each other (Kuffner and LaValle 2000);
a node that failed is only drawn to samples near it (dynamic domain, Jaillet et al. 2005).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmArrays
from morphit_ros.motion.world import WorldArrays
from morphit_ros.robot.chain import Indices

FOUND, FULL, GOING_ON = 0, 1, 2
# Radius of the dynamic domain after a failure, its least value [rad], and how fast it changes.
_DOMAIN, _LEAST_DOMAIN, _RATE = 4.0, 1.0, 1e-4
# Straight ways looked at between two looks at the clock; next to each other surfaces take up to a millisecond at each
# of the configurations of such a way.
_TRIES, _SURFACE_TRIES = 50, 1
_PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71])


class Trees(NamedTuple):
    """Both trees of a search: 0 from the start, 1 from the goals.

    Attributes:
        nodes: (2, N, J) configurations.
        parents: (2, N), -1 for roots.
        domains: (2, N) radius of the dynamic domain.
        counts: (4,) nodes of both trees, samples drawn so far, and the tree that grows next.
        meeting: (2,) the nodes in which both met.
    """

    nodes: Array
    parents: Indices
    domains: Array
    counts: Indices
    meeting: Indices


def plant(start: Array, goals: Array, capacity: int) -> Trees:
    """Trees of a start (J,) and goals (G, J), with room for so many nodes each."""
    capacity = max(capacity, len(goals) + 1)
    nodes = np.empty((2, capacity, len(start)))
    nodes[0, 0], nodes[1, : len(goals)] = start, goals
    parents = np.full((2, capacity), -1, dtype=np.int64)
    counts = np.array([1, len(goals), 0, 0], dtype=np.int64)
    return Trees(nodes, parents, np.full((2, capacity), np.inf), counts, np.zeros(2, dtype=np.int64))


@njit(cache=True, nogil=True)
def _halton(index: int, base: int) -> float:
    value, share = 0.0, 1.0
    while index > 0:
        share /= base
        value += share * (index % base)
        index //= base
    return value


@njit(cache=True, nogil=True)
def _nearest(nodes: Array, count: int, point: Array) -> tuple[int, float]:
    """Row of the nearest of the first nodes, and how far it is."""
    best, least = 0, np.inf
    for n in range(count):
        square = 0.0
        for j in range(len(point)):
            square += (nodes[n, j] - point[j]) ** 2
        if square < least:
            best, least = n, square
    return best, np.sqrt(least)


@njit(cache=True, nogil=True)
def _add(trees: Trees, tree: int, point: Array, parent: int) -> int:
    row = trees.counts[tree]
    trees.nodes[tree, row] = point
    trees.parents[tree, row] = parent
    trees.counts[tree] += 1
    return int(row)


@njit(cache=True, nogil=True)
def _way_over(trees: Trees, point: Array) -> float:
    """Length of the shortest way there could be from the start over a point to a goal."""
    _, before = _nearest(trees.nodes[0], 1, point)
    goals = 1
    while goals < trees.counts[1] and trees.parents[1, goals] < 0:
        goals += 1
    _, after = _nearest(trees.nodes[1], goals, point)
    return float(before + after)


@njit(cache=True, nogil=True)
def grow(
    arm: ArmArrays,
    world: WorldArrays,
    lower: Array,
    upper: Array,
    trees: Trees,
    shift: Array,
    reach: float,
    resolution: float,
    samples: int,
    longest: float,
) -> int:
    """Grow both trees by at most so many samples: FOUND, FULL (no room for nodes) or GOING_ON.

    Args:
        arm, world: what must not touch.
        lower, upper: (J,) limits.
        trees: changed in place; a later call goes on with them.
        shift: (J,) in [0, 1), by which the Halton sequence is shifted: another one for each seed.
        reach: longest new branch, in the norm of configurations.
        resolution: of `motion_free`.
        samples: drawn in this call.
        longest: path that is of use, infinite for any: samples on longer ones are not taken (Gammell et al. 2014).
    """
    room = make_room(arm, world)
    size, capacity = len(lower), trees.nodes.shape[1]
    sample, point = np.empty(size), np.empty(size)
    for _ in range(samples):
        trees.counts[2] += 1
        # The smaller tree grows, so that one that is shut in does not take half of the time.
        tree = 0 if trees.counts[0] <= trees.counts[1] else 1
        other = 1 - tree
        for j in range(size):
            value = _halton(trees.counts[2], _PRIMES[j % len(_PRIMES)]) + shift[j]
            sample[j] = lower[j] + (value - np.floor(value)) * (upper[j] - lower[j])
        if longest < np.inf and _way_over(trees, sample) > longest:
            continue
        near, distance = _nearest(trees.nodes[tree], trees.counts[tree], sample)
        if distance > trees.domains[tree, near]:
            continue
        share = min(reach / max(distance, 1e-12), 1.0)
        for j in range(size):
            point[j] = trees.nodes[tree, near, j] + share * (sample[j] - trees.nodes[tree, near, j])
        if not motion_free(arm, world, trees.nodes[tree, near], point, resolution, room):
            domain = trees.domains[tree, near]
            trees.domains[tree, near] = _DOMAIN if domain == np.inf else max(domain * (1.0 - _RATE), _LEAST_DOMAIN)
            continue
        trees.domains[tree, near] *= 1.0 + _RATE
        if trees.counts[0] + 1 >= capacity or trees.counts[1] + 1 >= capacity:
            return FULL
        row = _add(trees, tree, point, near)
        target = trees.nodes[tree, row]
        from_node, distance = _nearest(trees.nodes[other], trees.counts[other], target)
        steps = max(int(np.ceil(distance / reach)), 1)
        begin = trees.nodes[other, from_node].copy()
        for step in range(1, steps + 1):
            for j in range(size):
                point[j] = begin[j] + step / steps * (target[j] - begin[j])
            if step == steps:
                point[:] = target
            if not motion_free(arm, world, trees.nodes[other, from_node], point, resolution, room):
                break
            if step == steps:
                trees.meeting[tree], trees.meeting[other] = row, from_node
                return FOUND
            if trees.counts[other] + 1 >= capacity:
                return FULL
            from_node = _add(trees, other, point, from_node)
    return GOING_ON


def found_path(trees: Trees) -> Array:
    """The path (N, J) of a search that found one."""
    sides = []
    for tree in (0, 1):
        row, rows = int(trees.meeting[tree]), []
        while row >= 0:
            rows.append(row)
            row = int(trees.parents[tree, row])
        sides.append(trees.nodes[tree, rows])
    return np.concatenate([sides[0][::-1], sides[1]])


@njit(cache=True, nogil=True)
def _length(path: Array, first: int, last: int) -> float:
    total = 0.0
    for n in range(first, last):
        total += np.sqrt(((path[n + 1] - path[n]) ** 2).sum())
    return total


@njit(cache=True, nogil=True)
def _shorten(
    arm: ArmArrays,
    world: WorldArrays,
    path: Array,
    resolution: float,
    draws: Array,
    kept: Array,
    state: Indices,
    tries: int,
) -> bool:
    """Whether all is done; else `kept` and `state` are as far as so many straight ways, looked at in this call, led.

    Args:
        arm, world, path, resolution, draws: of `shorten`.
        kept: (N + 2 T + 2, J) corners of the shorter path; the first is that of the path.
        state: (5,) integers: how many corners are kept, the corner of the path that is the last of them and the one
            that is tried next from there, the draw that is next, and how many draws failed since the last gain.
        tries: most straight ways looked at in this call.
    """
    room = make_room(arm, world)
    count, size = path.shape
    while state[1] < count - 1:
        row, last = state[1], state[2]
        if last > row + 1:
            if tries == 0:
                return False
            tries -= 1
            if not motion_free(arm, world, path[row], path[last], resolution, room):
                state[2] -= 1
                continue
        kept[state[0]] = path[last]
        state[0] += 1
        state[1], state[2] = last, count - 1
    first, second = np.empty(size), np.empty(size)
    while state[3] < len(draws):
        total, failed = state[0], state[4]
        if total < 3 or failed > 25:
            break
        draw = draws[state[3]]
        whole = _length(kept, 0, total - 1)
        a = draw[0] * whole
        # Nearby points more often the longer nothing was gained: corners are rounded last.
        b = a + (draw[1] * 2.0 - 1.0) * whole / (1.0 + 0.15 * failed)
        a, b = max(min(a, b), 0.0), min(max(a, b), whole)
        i, j = -1, -1
        passed = 0.0
        for n in range(total - 1):
            step = np.sqrt(((kept[n + 1] - kept[n]) ** 2).sum())
            if i < 0 and (a <= passed + step or n == total - 2):
                i = n
                first[:] = kept[n] + min((a - passed) / max(step, 1e-12), 1.0) * (kept[n + 1] - kept[n])
            if j < 0 and (b <= passed + step or n == total - 2):
                j = n
                second[:] = kept[n] + min((b - passed) / max(step, 1e-12), 1.0) * (kept[n + 1] - kept[n])
            passed += step
        straight = np.sqrt(((second - first) ** 2).sum())
        useful = i != j and straight <= 0.999 * (b - a)
        if useful and tries == 0:
            return False
        state[3] += 1
        tries -= 1 if useful else 0
        if not useful or not motion_free(arm, world, first, second, resolution, room):
            state[4] += 1
            continue
        state[4] = 0
        # kept[i], first, second, kept[j + 1]: what lay between goes.
        tail = kept[j + 1 : total].copy()
        kept[i + 1], kept[i + 2] = first, second
        kept[i + 3 : i + 3 + len(tail)] = tail
        state[0] = i + 3 + len(tail)
    return True


def shorten(
    arm: ArmArrays, world: WorldArrays, path: Array, resolution: float, draws: Array, until: float = np.inf
) -> Array:
    """A path (N, J) between the same ends, no longer, by straight ways between points of it.

    First between its corners, from far to near; then between points drawn on it.

    Args:
        arm, world: what must not touch.
        path: (N, J), free.
        resolution: of `motion_free`.
        draws: (T, 2) random numbers in [0, 1): where each shortcut that is tried begins and ends.
        until: when to end at the latest, by `time.monotonic` [s], to within a few milliseconds; where surfaces are
            known, to within one straight way.
    """
    kept = np.empty((len(path) + 2 * len(draws) + 2, path.shape[1]))
    kept[0] = path[0]
    state = np.array([1, 0, len(path) - 1, 0, 0], dtype=np.int64)
    tries = _SURFACE_TRIES if (arm.meshes >= 0).any() else _TRIES
    while time.monotonic() < until:
        if _shorten(arm, world, path, resolution, draws, kept, state, tries):
            break
    # Corners that were not come to stay.
    return np.concatenate([kept[: state[0]], path[state[1] + 1 :]])
