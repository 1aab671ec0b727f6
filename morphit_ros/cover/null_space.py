"""Null space of the loop closure by elimination line by line: every motion that keeps the joints closed.

Lines run along the shorter side of the grid. Between a line and the next lie its faces; they are equations in the
motion of the next line and in the free parameters of all lines before. Elimination with pivoting over both, which
keeps every multiplier at most one, leaves a basis of the solutions as the new parameters; a backward pass multiplies
the bases. At 20 x 20 that is a twentieth of the work of a dense decomposition and the products are BLAS.

Rank decision: an equation whose greatest remaining coefficient is below `RANK_TOLERANCE` (the entries of an equation
are at most sqrt(2)) depends on those before it and gives no pivot. Configurations of the start states have pivots
above 1e-4, exactly flat covers and cylinders below 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from morphit_ros.cover.closure import CORNER_SIGNS, bridge_matrix
from morphit_ros.cover.model import Cover, Indices
from morphit_ros.geometry.transforms import Array

RANK_TOLERANCE = 1e-7


@dataclass(frozen=True)
class NullSpace:
    """All motions that keep the joints of one configuration closed, and how to close joints that are open.

    Attributes:
        basis: (3 N, D) angular velocities, zero at fixed nodes; not orthonormal. D is the number of degrees of freedom.
    """

    basis: Array
    _solver: NullSpaceSolver
    _rotations: Array
    _factors: tuple[Array, Indices, Indices, Indices, Array]

    @cached_property
    def gram(self) -> Array:
        """(D, D) lower half of ``basis^T basis``."""
        return np.asarray(blas.dsyrk(1.0, self.basis.T, lower=1))

    def close(self, residuals: Array) -> Array:
        """(3 N,) turns that take the residuals of faces (3 F,) away, to first order; not the least such turns.

        Only for covers without bridges.
        """
        solver = self._solver
        by_strip = np.zeros((len(solver._lines) - 1, solver._lines.shape[1] - 1, 3))
        by_strip.reshape(-1, 3)[solver._face_places] = residuals.reshape(-1, 3)
        return np.asarray(
            particular_solution(
                self._rotations,
                solver._lines,
                solver._signs,
                solver._slot,
                by_strip,
                *self._factors,
                self.basis.shape[1],
            )
        )

    def close_least(self, residuals: Array) -> Array:
        """As `close`, the least turns that do it."""
        turns = self.close(residuals)
        surplus, _ = lapack.dpotrs(self._gram_root, self.basis.T @ turns, lower=1)
        return np.asarray(turns - self.basis @ surplus)

    @cached_property
    def _gram_root(self) -> Array:
        return np.asarray(lapack.dpotrf(self.gram, lower=1)[0])


class NullSpaceSolver:
    """Null spaces of one cover, configuration after configuration; remembers the last."""

    def __init__(self, cover: Cover) -> None:
        self.cover = cover
        grid = np.arange(cover.node_count).reshape(cover.rows, cover.cols)
        along_rows = cover.rows >= cover.cols
        self._lines: Indices = np.ascontiguousarray(grid if along_rows else grid.T)
        # Corners of a strip's faces: this line, this line's next, the next line, the next line's next.
        order = [0, 1, 2, 3] if along_rows else [0, 2, 1, 3]
        self._signs = np.ascontiguousarray(CORNER_SIGNS[order])
        self._slot, self._free = _slots(self._lines, cover.is_fixed)
        places = np.arange((cover.rows - 1) * (cover.cols - 1)).reshape(
            (cover.rows - 1, cover.cols - 1) if along_rows else (cover.cols - 1, cover.rows - 1)
        )
        opened = ~cover.is_fixed[cover.faces].all(axis=1)
        self._face_places = (places if along_rows else places.T).ravel()[opened]
        self._last: NullSpace | None = None

    def solve(self, rotations: Array) -> NullSpace:
        """The null space at rotations (N, 3, 3)."""
        if self._last is not None and self._last._rotations is rotations:
            return self._last
        basis, *factors = line_null_space(rotations, self._lines, self._signs, self._slot, self._free, RANK_TOLERANCE)
        if self.cover.fixed_bridges:
            reduced = bridge_matrix(self.cover, rotations) @ basis
            _, singular, right = np.linalg.svd(reduced)
            basis = np.ascontiguousarray(basis @ right[int((singular > RANK_TOLERANCE * singular[0]).sum()) :].T)
        self._last = NullSpace(basis, self, rotations, tuple(factors))
        return self._last

    def basis(self, rotations: Array) -> Array:
        """(3 N, D) the basis alone."""
        return self.solve(rotations).basis


def _slots(lines: Indices, fixed: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Of every node its first unknown in its line (-1: fixed), and of every line its number of free nodes."""
    slot = np.full(lines.size, -1, dtype=np.int64)
    free = np.zeros(len(lines), dtype=np.int64)
    for number, line in enumerate(lines):
        moving = line[~fixed[line]]
        slot[moving] = 3 * np.arange(len(moving))
        free[number] = len(moving)
    return slot, free


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def line_null_space(rotations, lines, signs, slot, free, tolerance):  # type: ignore[no-untyped-def]
    """Basis (3 N, D) and, for each strip, the factors: systems, orders, pivot columns, sizes, solved parts.

    `lines` (L, W) node numbers, `signs` (4, 2) of a face's corners in the order of lines.
    """
    line_count, width = lines.shape
    parameters = 3 * free[0]
    motion = np.zeros((3 * width, parameters))
    for j in range(width):
        if slot[lines[0, j]] >= 0:
            for axis in range(3):
                motion[3 * j + axis, slot[lines[0, j]] + axis] = 1.0
    strips = line_count - 1
    equations = 3 * (width - 1)
    # Every strip adds at most its unknowns and takes its rank away; a singular cover keeps more.
    most = 3 * (free.sum())
    sizes = np.zeros((strips, 3), dtype=np.int64)
    orders = np.zeros((strips, most), dtype=np.int64)
    columns = np.zeros((strips, equations), dtype=np.int64)
    systems = [np.zeros((0, 0))]
    parts = [np.zeros((0, 0))]
    for i in range(strips):
        unknowns = parameters + 3 * free[i + 1]
        system = np.zeros((unknowns, equations))
        _fill_strip(rotations, lines, signs, slot, i, motion, parameters, system)
        order = orders[i]
        rank = _eliminate(system, tolerance, order, columns[i])
        solved = _solve_free(system, rank)
        systems.append(system)
        parts.append(solved)
        sizes[i, 0], sizes[i, 1], sizes[i, 2] = parameters, rank, unknowns
        before, parameters = parameters, unknowns - rank
        motion = np.zeros((3 * width, parameters))
        row_of = np.full(3 * free[i + 1], -1, dtype=np.int64)
        for j in range(width):
            first = slot[lines[i + 1, j]]
            if first >= 0:
                for axis in range(3):
                    row_of[first + axis] = 3 * j + axis
        for place in range(unknowns):
            unknown = order[place] - before
            if unknown >= 0:
                if place < rank:
                    motion[row_of[unknown]] = solved[place]
                else:
                    motion[row_of[unknown], place - rank] = 1.0
    basis = _multiply_back(lines, slot, parts, orders, sizes, parameters)
    # One array for all strips: lists of arrays are slow to hand back to Python.
    widest = 1
    for i in range(strips):
        widest = max(widest, sizes[i, 2])
    packed_systems = np.empty((strips, widest, equations))
    packed_parts = np.empty((strips, equations, widest))
    for i in range(strips):
        packed_systems[i, : sizes[i, 2]] = systems[i + 1]
        packed_parts[i, : sizes[i, 1], : sizes[i, 2] - sizes[i, 1]] = parts[i + 1]
    return basis, packed_systems, orders, columns, sizes, packed_parts


@njit(cache=True, nogil=True, error_model="numpy")
def particular_solution(  # type: ignore[no-untyped-def]
    rotations, lines, signs, slot, residuals, systems, orders, columns, sizes, parts, parameters
):
    """Turns (3 N,) whose residual rates are minus `residuals` (strips, W - 1, 3), from the null space's factors."""
    line_count, width = lines.shape
    strips = line_count - 1
    values = np.zeros((strips, systems.shape[1]))
    line_turns = np.zeros(3 * width)
    side = np.zeros(3 * (width - 1))
    for i in range(strips):
        before, rank, unknowns = sizes[i, 0], sizes[i, 1], sizes[i, 2]
        for j in range(width - 1):
            for axis in range(3):
                side[3 * j + axis] = -residuals[i, j, axis]
            for corner in range(2):
                node = lines[i, j + corner]
                sx, sy = signs[corner, 0], signs[corner, 1]
                x = sx * rotations[node, 0, 0] + sy * rotations[node, 0, 1]
                y = sx * rotations[node, 1, 0] + sy * rotations[node, 1, 1]
                z = sx * rotations[node, 2, 0] + sy * rotations[node, 2, 1]
                first = 3 * (j + corner)
                wx, wy, wz = line_turns[first], line_turns[first + 1], line_turns[first + 2]
                side[3 * j] -= z * wy - y * wz
                side[3 * j + 1] -= x * wz - z * wx
                side[3 * j + 2] -= y * wx - x * wy
        for p in range(rank):
            total = side[columns[i, p]]
            for s in range(p):
                total -= systems[i, s, columns[i, p]] * values[i, s]
            values[i, p] = total / systems[i, p, columns[i, p]]
        for p in range(rank - 1, -1, -1):
            for s in range(p + 1, rank):
                values[i, p] -= systems[i, s, p] * values[i, s]
        line_turns[:] = 0.0
        row = np.zeros(unknowns)
        for p in range(rank):
            row[orders[i, p]] = values[i, p]
        for j in range(width):
            first = slot[lines[i + 1, j]]
            if first >= 0:
                for axis in range(3):
                    line_turns[3 * j + axis] = row[before + first + axis]
    turns = np.zeros(3 * lines.size)
    coefficients = np.zeros(parameters)
    for i in range(strips, -1, -1):
        before = 0
        full = coefficients
        if i > 0:
            before, rank, unknowns = sizes[i - 1, 0], sizes[i - 1, 1], sizes[i - 1, 2]
            full = np.zeros(unknowns)
            for p in range(rank):
                total = values[i - 1, p]
                for f in range(unknowns - rank):
                    total += parts[i - 1, p, f] * coefficients[f]
                full[orders[i - 1, p]] = total
            for f in range(unknowns - rank):
                full[orders[i - 1, rank + f]] = coefficients[f]
        for j in range(width):
            node = lines[i, j]
            if slot[node] >= 0:
                for axis in range(3):
                    turns[3 * node + axis] = full[before + slot[node] + axis]
        coefficients = full[:before].copy()
    return turns


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_strip(rotations, lines, signs, slot, i, motion, parameters, system):  # type: ignore[no-untyped-def]
    """Transposed equations of the faces between lines i and i + 1: rows are unknowns."""
    width = lines.shape[1]
    for j in range(width - 1):
        for corner in range(4):
            node = lines[i + corner // 2, j + corner % 2]
            if slot[node] < 0:
                continue
            sx, sy = signs[corner, 0], signs[corner, 1]
            x = sx * rotations[node, 0, 0] + sy * rotations[node, 0, 1]
            y = sx * rotations[node, 1, 0] + sy * rotations[node, 1, 1]
            z = sx * rotations[node, 2, 0] + sy * rotations[node, 2, 1]
            if corner < 2:
                first = 3 * (j + corner)
                for q in range(parameters):
                    wx, wy, wz = motion[first, q], motion[first + 1, q], motion[first + 2, q]
                    # -(arm x omega)
                    system[q, 3 * j] += z * wy - y * wz
                    system[q, 3 * j + 1] += x * wz - z * wx
                    system[q, 3 * j + 2] += y * wx - x * wy
            else:
                row = parameters + slot[node]
                system[row + 1, 3 * j] += z
                system[row + 2, 3 * j] -= y
                system[row + 2, 3 * j + 1] += x
                system[row, 3 * j + 1] -= z
                system[row, 3 * j + 2] += y
                system[row + 1, 3 * j + 2] -= x


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def _eliminate(system, tolerance, order, columns):  # type: ignore[no-untyped-def]
    """LU of (unknowns, equations) with row pivoting, in place: multipliers of pivot p in column p. Returns the rank.

    Fills the order of the unknowns and the column (equation) of each pivot; dependent equations are passed over.
    """
    unknowns, equations = system.shape
    for k in range(unknowns):
        order[k] = k
    rank = 0
    for column in range(equations):
        best, greatest = rank, 0.0
        for row in range(rank, unknowns):
            value = abs(system[row, column])
            if value > greatest:
                best, greatest = row, value
        if greatest <= tolerance:
            continue
        if best != rank:
            order[best], order[rank] = order[rank], order[best]
            for k in range(equations):
                system[best, k], system[rank, k] = system[rank, k], system[best, k]
        columns[rank] = column
        # A copy cannot overlap the rows that change, which lets the loop be vectorised.
        pivot = system[rank].copy()
        inverse = 1.0 / system[rank, column]
        for row in range(rank + 1, unknowns):
            if system[row, column] != 0.0:
                factor = system[row, column] * inverse
                changed = system[row]
                for k in range(column + 1, equations):
                    changed[k] -= factor * pivot[k]
                changed[rank] = factor
            else:
                system[row, rank] = 0.0
        rank += 1
    return rank


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def _solve_free(system, rank):  # type: ignore[no-untyped-def]
    """(rank, free): what each solved unknown is for each free one, from ``x L1 = -l`` for the free rows l of L."""
    count = len(system) - rank
    solved = np.empty((rank, count))
    for p in range(rank):
        for f in range(count):
            solved[p, f] = -system[rank + f, p]
    for p in range(rank - 1, -1, -1):
        for later in range(p + 1, rank):
            factor = system[later, p]
            if factor != 0.0:
                for f in range(count):
                    solved[p, f] -= factor * solved[later, f]
    return solved


@njit(cache=True, nogil=True, error_model="numpy")
def _multiply_back(lines, slot, parts, orders, sizes, parameters):  # type: ignore[no-untyped-def]
    line_count, width = lines.shape
    basis = np.zeros((3 * lines.size, parameters))
    coefficients = np.eye(parameters)
    for i in range(line_count - 1, -1, -1):
        before = 0
        full = coefficients
        if i > 0:
            solved, order = parts[i], orders[i - 1]
            before, rank, unknowns = sizes[i - 1, 0], sizes[i - 1, 1], sizes[i - 1, 2]
            full = np.empty((unknowns, parameters))
            if rank:
                product = solved if i == line_count - 1 else np.dot(solved, coefficients)
                for place in range(rank):
                    full[order[place]] = product[place]
            for place in range(rank, unknowns):
                full[order[place]] = coefficients[place - rank]
        for j in range(width):
            node = lines[i, j]
            if slot[node] >= 0:
                for axis in range(3):
                    basis[3 * node + axis] = full[before + slot[node] + axis]
        coefficients = full[:before].copy()
    return basis
