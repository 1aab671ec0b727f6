"""Search of a cost without useful derivatives: covariance matrix adaptation (Hansen, The CMA Evolution Strategy, 2016).

Impacts in time steps make the cost of a long track jump within what its curvature at a place says: a body that touches
down a step later bounces another way. Each jump ends a search by derivatives; a population goes over them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from morphit_ros.geometry.transforms import Array

# Members of a generation, generations; deviations of the first, in the given ones: jumps are nearer than these.
_MEMBERS, _GENERATIONS, _FIRST = 24, 40, 0.5


def evolve(
    cost: Callable[[Array], float], begin: Array, covariance: Array, bounds: tuple[Array, Array], seed: int
) -> Array:
    """(K,) the cheapest values that were met.

    Args:
        cost: of values (K,); infinite where there is none.
        begin: (K,) middle of the first generation.
        covariance: (K, K) its shape; rows of zeros for what is held.
        bounds: (K,) lower and upper ones, that members are moved to.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    scale = np.sqrt(np.diag(covariance))
    scale[scale == 0.0] = 1.0
    size = len(begin)
    weights = np.log(_MEMBERS / 2 + 0.5) - np.log(np.arange(1, _MEMBERS // 2 + 1))
    weights /= weights.sum()
    mass = 1.0 / float(weights @ weights)
    step_rate = (mass + 2.0) / (size + mass + 5.0)
    path_rate = (4.0 + mass / size) / (size + 4.0 + 2.0 * mass / size)
    one_rate = 2.0 / ((size + 1.3) ** 2 + mass)
    many_rate = min(1.0 - one_rate, 2.0 * (mass - 2.0 + 1.0 / mass) / ((size + 2.0) ** 2 + mass))
    damping = 1.0 + step_rate + 2.0 * max(0.0, np.sqrt((mass - 1.0) / (size + 1.0)) - 1.0)
    length = np.sqrt(size) * (1.0 - 0.25 / size + 1.0 / (21.0 * size**2))
    shape, step = covariance / np.outer(scale, scale), _FIRST
    middle, step_path, path = np.zeros(size), np.zeros(size), np.zeros(size)
    best, least = begin, cost(begin)
    for generation in range(1, _GENERATIONS + 1):
        values, axes = np.linalg.eigh(shape)
        roots = np.sqrt(np.maximum(values, 1e-20))
        moves = rng.normal(size=(_MEMBERS, size)) * roots @ axes.T
        members = np.clip(begin + (middle + step * moves) * scale, *bounds)
        costs = np.array([cost(member) for member in members])
        order = np.argsort(costs, kind="stable")
        if costs[order[0]] < least:
            best, least = members[order[0]], float(costs[order[0]])
        chosen = moves[order[: len(weights)]]
        move = weights @ chosen
        middle = middle + step * move
        step_path *= 1.0 - step_rate
        step_path += np.sqrt(step_rate * (2.0 - step_rate) * mass) * (axes @ (axes.T @ move / roots))
        far = float(np.linalg.norm(step_path))
        steady = far / np.sqrt(1.0 - (1.0 - step_rate) ** (2 * generation)) < (1.4 + 2.0 / (size + 1.0)) * length
        path = (1.0 - path_rate) * path + steady * np.sqrt(path_rate * (2.0 - path_rate) * mass) * move
        kept = 1.0 - one_rate - many_rate + (not steady) * one_rate * path_rate * (2.0 - path_rate)
        shape = kept * shape + one_rate * np.outer(path, path) + many_rate * (chosen.T * weights) @ chosen
        step *= float(np.exp(step_rate / damping * (far / length - 1.0)))
    return best
