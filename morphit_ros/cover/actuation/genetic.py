"""The paper's genetic algorithm for motor placement, on logarithms.

Strings of D axes; fitness |det| f_R f_P, f_R rewarding few motors a joint, f_P = 0 for an axis twice; roulette, single
point crossover, mutation. The paper's fitness is a plain determinant; a roulette over numbers of 1e-27 that differ by
ten powers of ten has one pocket, so that here the chance falls with the logarithm. Of the fittest strings the one wins
whose determinant changes least when each motor turns by +-5 degrees. (Morphing covers, section IV.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.actuation.placement import PlacementResult, candidate_rates, judge_motors, pivoted_rows
from morphit_ros.cover.kinematics.closure import close_loops
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class GeneticConfig(Config):
    """The paper's settings."""

    population: int = parameter(100, "Strings", minimum=4, maximum=10_000)
    crossover: float = parameter(0.6, "Chance of a single-point crossover of two parents", minimum=0.0, maximum=1.0)
    mutation: float = parameter(0.01, "Chance of a gene to be drawn anew", minimum=0.0, maximum=1.0)
    patience: int = parameter(1000, "Generations without a better string after which to stop", minimum=1)
    generations: int = parameter(20_000, "Most generations", minimum=1)
    joint_reward: float = parameter(5.0, "Weight of log(joints with a motor / motors) in the fitness", minimum=0.0)
    seeded: bool = parameter(False, "Begin with the rows of a pivoted QR among the strings")
    finalists: int = parameter(5, "Fittest strings that are compared by sensitivity", minimum=1, maximum=100)
    angle: float = parameter(
        float(np.radians(5.0)), "Turn of a motor for the sensitivity [rad]", minimum=1e-4, maximum=0.5
    )


def evolve_motors(
    cover: Cover, state: CoverState, config: GeneticConfig | None = None, seed: int = 0
) -> PlacementResult:
    """Motors by the genetic algorithm at one configuration.

    Raises:
        InvalidInputError: a singular configuration.
    """
    config = config or GeneticConfig()
    start = time.process_time()
    rng = np.random.default_rng(seed)
    matrices = candidate_rates(cover, [state])
    rates = matrices[0]
    axes, dof = rates.shape
    strings = np.array([rng.choice(axes, dof, replace=False) for _ in range(config.population)])
    if config.seeded:
        strings[0] = pivoted_rows(rates, one_a_joint=True)
    fitness = _fitness(rates, strings, config.joint_reward)
    best: dict[tuple[int, ...], float] = {}
    record, since, generation = -np.inf, 0, 0
    while generation < config.generations and (since < config.patience or not np.isfinite(record)):
        generation += 1
        children = _offspring(strings, fitness, axes, config, rng)
        # The fittest lives on.
        children[0] = strings[int(fitness.argmax())]
        strings, fitness = children, _fitness(rates, children, config.joint_reward)
        leader = int(fitness.argmax())
        since = 0 if fitness[leader] > record + 1e-12 else since + 1
        if since == 0:
            record = float(fitness[leader])
            best[tuple(np.sort(strings[leader]).tolist())] = record
    finalists = sorted(best, key=lambda string: -best[string])[: config.finalists] or [
        tuple(strings[int(fitness.argmax())].tolist())
    ]
    # Strings far below the fittest are no rivals, however insensitive.
    finalists = [string for string in finalists if best.get(string, record) > record - np.log(2.0)] or finalists[:1]
    chosen = min(
        (np.array(string) for string in finalists),
        key=lambda rows: sensitivity(cover, state, rows, config.angle) if len(finalists) > 1 else 0.0,
    )
    return judge_motors(chosen, matrices, time.process_time() - start, generation)


def sensitivity(cover: Cover, state: CoverState, rows: NDArray[np.int64], angle: float) -> float:
    """Sum over the motors of the squared slope of log|det| when each turns by +-`angle` [1/rad^2].

    Infinite if a turn leads to a singular configuration, or to none.
    """
    solver = NullSpaceSolver(cover)
    basis = np.linalg.qr(solver.basis(state.rotations))[0]
    motors = candidate_rates(cover, [state])[0][rows]
    # candidate_rates orthonormalises the same basis in the same way.
    motions = basis @ np.linalg.pinv(motors)
    total = 0.0
    for motor in range(len(rows)):
        ends = []
        for sign in (1.0, -1.0):
            turned = np.empty_like(state.rotations)
            rotate(state.rotations, sign * angle * motions[:, motor], turned)
            try:
                near = close_loops(cover, CoverState(turned, state.origin))
                ends.append(float(np.linalg.slogdet(candidate_rates(cover, [near])[0][rows])[1]))
            except InvalidInputError:
                return np.inf
        total += ((ends[0] - ends[1]) / (2.0 * angle)) ** 2
    return total


def _fitness(rates: Array, strings: NDArray[np.int64], joint_reward: float) -> Array:
    """(P,) log|det| + reward; -inf for strings with an axis twice or without volume."""
    signs, logarithms = np.linalg.slogdet(rates[strings])
    ordered = np.sort(strings, axis=1)
    twice = (np.diff(ordered, axis=1) == 0).any(axis=1)
    joints = 1 + (np.diff(ordered // 3, axis=1) != 0).sum(axis=1)
    fitness = logarithms + joint_reward * np.log(joints / strings.shape[1])
    return np.where(twice | (signs == 0.0), -np.inf, fitness)


def _offspring(
    strings: NDArray[np.int64], fitness: Array, axes: int, config: GeneticConfig, rng: np.random.Generator
) -> NDArray[np.int64]:
    count, length = strings.shape
    finite = np.isfinite(fitness)
    if finite.any():
        spread = max(float(fitness[finite].std()), 1e-9)
        # Strings without volume have a fitness of minus infinity, and no chance.
        chances = np.exp((fitness - fitness[finite].max()) / spread)
    else:
        chances = np.ones(count)
    chances /= chances.sum()
    parents = strings[rng.choice(count, size=count, p=chances)]
    children = parents.copy()
    for first in range(0, count - 1, 2):
        if rng.random() < config.crossover:
            cut = int(rng.integers(1, length)) if length > 1 else 0
            children[first, cut:], children[first + 1, cut:] = parents[first + 1, cut:], parents[first, cut:]
    mutated = rng.random(children.shape) < config.mutation
    children[mutated] = rng.integers(0, axes, int(mutated.sum()))
    return children
