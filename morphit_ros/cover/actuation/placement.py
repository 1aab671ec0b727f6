"""Where to put motors: as many axes as degrees of freedom, chosen so that they span all motions well.

Over an orthonormal basis of the motions, the relative rates of all joint axes are the rows of a matrix; motors are a
choice of rows, good if the square matrix of the chosen rows is far from singular, here and nearby. Determinants are
used as logarithms: at 20 x 20 they are about 1e-27.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.cover.actuation.torques import weight_powers
from morphit_ros.cover.control.limits import fill_joint_rates
from morphit_ros.cover.kinematics.closure import close_loops
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover, Indices
from morphit_ros.cover.state import CoverState, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# A swap must gain at least this much of the mean logarithm, or rounding would swap for ever.
_LEAST_GAIN = 1e-3
# Swaps after which what rounding has added up is left behind.
_RENEWED = 50
# Deviations of the logarithm of a row's weight in further starts, by turns.
_ROW_SPREADS = (0.5, 2.0)
_SMALL_MOTIONS, _SMALL_STARTS, _LARGE_STARTS = 12, 96, 4


@dataclass(frozen=True)
class PlacementResult:
    """A choice of motors.

    Attributes:
        motors: (M, 2) joint and axis, sorted.
        log_determinants: (S,) natural logarithm of |det| at each configuration.
        conditions: (S,) condition of the motors' matrix there (2-norm).
        most_on_a_joint: greatest number of motors on one joint.
        on_fold_axis: number of motors on z axes.
        seconds: process time of the search.
        steps: swaps, or generations.
    """

    motors: Indices
    log_determinants: Array
    conditions: Array
    most_on_a_joint: int
    on_fold_axis: int
    seconds: float
    steps: int

    @property
    def spans(self) -> bool:
        """Whether the motors hold the cover at all configurations."""
        return bool(np.isfinite(self.log_determinants).all())


def place_motors(
    cover: Cover, states: Sequence[CoverState], seed: int = 0, one_a_joint: bool = True, nearby: int = 4,
    angle: float = float(np.radians(5.0)), starts: int | None = None, torque_weight: float = 0.0,
) -> PlacementResult:  # fmt: skip
    """Motors by pivoted QR and swaps: the mean log-determinant over the configurations and their neighbourhood.

    The pivoted QR takes the row that adds most volume, one after the other; then single motors are exchanged as long as
    that raises the mean. (A local optimum of the exchange criterion known from D-optimal designs.)

    Args:
        cover: its own motors don't matter.
        states: closed configurations that the motors shall hold.
        seed: of the neighbourhood.
        one_a_joint: never two motors on one joint; where joints are fewer than motions, as few as must be.
        nearby: further configurations drawn around each.
        angle: how far joints of those turn [rad].
        starts: of the search; the best result counts. By default 96 for covers of up to 12 motions, as 3 x 3, which
            then reach the best of all choices (tested by trying all), 4 for larger ones.
        torque_weight: how much the greatest torque against gravity, in any direction, counts: the mean logarithm of
            the determinant a motor, less this times the torque's logarithm, is raised.

    Raises:
        InvalidInputError: no state, or a singular one.
    """
    start = time.process_time()
    rng = np.random.default_rng(seed)
    around = [near for state in states for near in neighbourhood(cover, state, nearby, angle, rng)]
    matrices, loads = _candidates(cover, [*states, *around])
    # Exchange ends in a local optimum: further starts pivot with rows that count more or less by chance.
    best, chosen, swaps = -np.inf, np.empty(0, dtype=np.int64), 0
    if starts is None:
        starts = _SMALL_STARTS if cover.expected_dof <= _SMALL_MOTIONS else _LARGE_STARTS
    for number in range(starts):
        spread = _ROW_SPREADS[number // _LARGE_STARTS % len(_ROW_SPREADS)]
        weights = np.exp(rng.normal(0.0, spread, (matrices.shape[1], 1))) if number else 1.0
        tried = pivoted_rows(weights * matrices[0], one_a_joint)
        swaps += _exchange(matrices, loads, tried, one_a_joint, torque_weight)
        found = worth(matrices, loads, tried, torque_weight)
        if found > best or not len(chosen):
            best, chosen = found, tried
    return judge_motors(chosen, matrices[: len(states)], time.process_time() - start, swaps)


def candidate_rates(cover: Cover, states: Sequence[CoverState]) -> Array:
    """(S, 3 J, D) relative rates of all joint axes over an orthonormal basis of the motions of each configuration.

    Raises:
        InvalidInputError: no configuration, or one with more motions than the cover has generically.
    """
    return _candidates(cover, states)[0]


def _candidates(cover: Cover, states: Sequence[CoverState]) -> tuple[Array, Array]:
    """As `candidate_rates`, and (S, D, 3) the power of the nodes' weights, one kilogram each, in the same motions."""
    if not states:
        raise InvalidInputError("states", "none", "at least one configuration")
    solver, frames = NullSpaceSolver(cover), np.ascontiguousarray(cover.joint_frames)
    matrices = np.empty((len(states), 3 * cover.joint_count, cover.expected_dof))
    loads = np.empty((len(states), cover.expected_dof, 3))
    for number, state in enumerate(states):
        basis = solver.basis(state.rotations)
        if basis.shape[1] != cover.expected_dof:
            raise InvalidInputError(
                "states", f"{basis.shape[1]} degrees of freedom at configuration {number + 1}",
                f"{cover.expected_dof}, as the cover has generically",
                "It is singular: motors for it would be too many elsewhere.",
            )  # fmt: skip
        orthonormal = np.ascontiguousarray(np.linalg.qr(basis)[0])
        fill_joint_rates(state.rotations, cover.joints, frames, orthonormal, 1.0, matrices[number])
        loads[number] = weight_powers(cover, state, orthonormal, np.ones(cover.node_count))
    return matrices, loads


def neighbourhood(
    cover: Cover, state: CoverState, count: int, angle: float, rng: np.random.Generator
) -> list[CoverState]:
    """Configurations around one: a random motion whose greatest joint rate makes `angle` [rad], then closed."""
    solver, frames = NullSpaceSolver(cover), np.ascontiguousarray(cover.joint_frames)
    basis = np.ascontiguousarray(np.linalg.qr(solver.basis(state.rotations))[0])
    rows = np.empty((3 * cover.joint_count, basis.shape[1]))
    fill_joint_rates(state.rotations, cover.joints, frames, basis, 1.0, rows)
    found: list[CoverState] = []
    for _ in range(count):
        weights = rng.normal(size=basis.shape[1])
        weights *= angle / np.abs(rows @ weights).max()
        turned = np.empty_like(state.rotations)
        rotate(state.rotations, basis @ weights, turned)
        try:
            found.append(close_loops(cover, CoverState(turned, state.origin)))
        except InvalidInputError:
            continue  # this way there is no closed cover
    return found


def pivoted_rows(rates: Array, one_a_joint: bool) -> NDArray[np.int64]:
    """(D,) rows of (3 J, D): each adds the most volume to those before."""
    count = rates.shape[1]
    # Squares of what rows add to the chosen ones; directions of these, orthonormal.
    left = np.einsum("ij,ij->i", rates, rates)
    directions = np.zeros((count, count))
    allowed = np.ones(len(rates), dtype=np.bool_)
    chosen: list[int] = []
    for number in range(count):
        best = int(np.where(allowed, left, -1.0).argmax())
        chosen.append(best)
        direction = rates[best].copy()
        for _ in range(2):
            # Twice: once leaves too much of the earlier directions where little is added.
            direction -= directions[:number].T @ (directions[:number] @ direction)
        length = float(np.linalg.norm(direction))
        if length > 0.0:
            directions[number] = direction / length
            left = np.maximum(left - (rates @ directions[number]) ** 2, 0.0)
        allowed[best] = False
        if one_a_joint:
            allowed[3 * (best // 3) : 3 * (best // 3) + 3] = False
        if not allowed.any():
            # Fewer joints than motions, as in small covers: a joint must carry more than one.
            allowed[:] = True
            allowed[chosen] = False
    return np.array(chosen)


def _exchange(matrices: Array, loads: Array, chosen: NDArray[np.int64], one_a_joint: bool, torque_weight: float) -> int:
    """Swap single rows, in place, while the choice gets better; returns the number of swaps."""
    swaps = 0
    # By Cramer's rule the determinant changes by entry (i, j) when row i of the choice becomes row j.
    stacked, tables = np.empty((0, 0, 0)), list[Array]()
    while swaps < 20 * len(chosen):
        if swaps % _RENEWED == 0:
            try:
                stacked = np.stack([np.linalg.solve(rates[chosen].T, rates.T) for rates in matrices])
                tables = list(stacked)
            except np.linalg.LinAlgError:
                return swaps  # no volume to improve on; the start counts for nothing
        lighter = np.zeros((0, 0))
        if torque_weight > 0.0:
            lighter = np.zeros((len(chosen), matrices.shape[1]))
            part = np.empty_like(lighter)
            for rates, table, load in zip(matrices, tables, loads, strict=True):
                fill_torque_gains(table, np.linalg.solve(rates[chosen].T, load), part)
                lighter += part
            lighter *= torque_weight * len(chosen)
        # Covers with fewer joints than motions have joints with several motors: no more than they must.
        most = -(-3 * len(chosen) // matrices.shape[1]) if one_a_joint else 3
        old, new, gain = best_swap(stacked, chosen, most, lighter)
        if not gain / len(matrices) > _LEAST_GAIN:
            break
        for table in tables:
            swap_row(table, old, new)
        chosen[old] = new
        swaps += 1
    return swaps


def worth(matrices: Array, loads: Array, chosen: NDArray[np.int64], torque_weight: float) -> float:
    """What is maximised: the mean of log|det|, less that of the logarithm of the greatest holding torque, weighted."""
    total = np.linalg.slogdet(matrices[:, chosen])[1]
    if torque_weight > 0.0 and np.isfinite(total).all():
        for number, (rates, load) in enumerate(zip(matrices, loads, strict=True)):
            greatest = np.linalg.norm(np.linalg.solve(rates[chosen].T, load), axis=1).max()
            total[number] -= torque_weight * len(chosen) * np.log(max(greatest, 1e-300))
    return float(total.mean())


@njit(cache=True, nogil=True, error_model="numpy")
def best_swap(tables, chosen, most, more):  # type: ignore[no-untyped-def]
    """The motor i and the row j whose swap raises the sum of log|det| most, and by how much.

    `tables` (S, M, rows) are the rows in terms of the motors, `chosen` (M,) their rows; no joint gets more than `most`
    motors; `more` (M, rows) is added to the gain, or empty.
    """
    rows = tables.shape[2]
    counts = np.zeros(rows // 3 + 1, dtype=np.int64)
    taken = np.zeros(rows, dtype=np.bool_)
    for row in chosen:
        counts[row // 3] += 1
        taken[row] = True
    old, new, gain = 0, 0, -np.inf
    # Logarithms only of what may be the best: the product decides before.
    greatest = 0.0
    for i in range(len(chosen)):
        for j in range(rows):
            if taken[j] or (counts[j // 3] >= most and j // 3 != chosen[i] // 3):
                continue
            factor = 1.0
            for s in range(len(tables)):
                factor *= abs(tables[s, i, j])
            if more.size == 0:
                if factor > greatest:
                    greatest, old, new = factor, i, j
            else:
                found = np.log(factor) + more[i, j]
                if found > gain:
                    old, new, gain = i, j, found
    return old, new, np.log(greatest) if more.size == 0 else gain


@njit(cache=True, nogil=True, error_model="numpy")
def swap_row(table, old, new):  # type: ignore[no-untyped-def]
    """The table (M, rows) once row `new` takes the place of motor `old`, in place (Sherman and Morrison)."""
    scaled = table[old] / table[old, new]
    for i in range(len(table)):
        change = table[i, new] - (1.0 if i == old else 0.0)
        for j in range(table.shape[1]):
            table[i, j] -= change * scaled[j]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_torque_gains(table, torques, gains):  # type: ignore[no-untyped-def]
    """How far the logarithm of the greatest holding torque falls when motor i becomes row j: gains (M, rows).

    `table` (M, rows) is the rows in terms of the motors, `torques` (M, 3) for gravity along x, y and z.
    """
    count = len(torques)
    before = 0.0
    for k in range(count):
        before = max(before, torques[k, 0] ** 2 + torques[k, 1] ** 2 + torques[k, 2] ** 2)
    for i in range(count):
        x, y, z = torques[i, 0], torques[i, 1], torques[i, 2]
        for j in range(table.shape[1]):
            pivot = table[i, j]
            if abs(pivot) < 1e-12:
                gains[i, j] = 0.0
                continue
            a, b, c = x / pivot, y / pivot, z / pivot
            greatest = a * a + b * b + c * c
            for k in range(count):
                if k == i:
                    continue
                share = table[k, j]
                u, v, w = torques[k, 0] - share * a, torques[k, 1] - share * b, torques[k, 2] - share * c
                greatest = max(greatest, u * u + v * v + w * w)
            gains[i, j] = 0.5 * np.log(max(before, 1e-300) / max(greatest, 1e-300))


def judge_motors(chosen: NDArray[np.int64], matrices: Array, seconds: float = 0.0, steps: int = 0) -> PlacementResult:
    """What a choice of rows is worth at (S, 3 J, D) configurations."""
    rows = np.sort(chosen)
    squares = matrices[:, rows]
    signs, logarithms = np.linalg.slogdet(squares)
    counts = np.bincount(rows // 3)
    return PlacementResult(
        np.stack([rows // 3, rows % 3], axis=1),
        np.where(signs == 0.0, -np.inf, logarithms),
        np.array([np.linalg.cond(square) for square in squares]),
        int(counts.max()),
        int((rows % 3 == 2).sum()),
        seconds,
        steps,
    )
