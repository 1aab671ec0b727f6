"""Null space of the loop closure by elimination line by line: every motion that keeps the joints closed.

Lines run along the shorter side of the grid. Between a line and the next lie its faces; they are equations in the
motion of the next line and in the free parameters of all lines before. Elimination with pivoting over both, which
keeps every multiplier at most one, leaves a basis of the solutions as the new parameters; a backward pass multiplies
the bases. At 20 x 20 that is a twentieth of the work of a dense decomposition, and nearly all of it BLAS
(`morphit_ros.cover.kinematics.strips`).

Rank decision: an equation whose greatest remaining coefficient is below `RANK_TOLERANCE` (the entries of an equation
are at most sqrt(2)) depends on those before it and gives no pivot. Configurations of the start states have pivots
above 1e-4, exactly flat covers and cylinders below 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from morphit_ros.cover.kinematics.closure import CORNER_SIGNS, bridge_matrix
from morphit_ros.cover.kinematics.hinges import STRAIGHT, fill_hinge_vectors, straight_hinges
from morphit_ros.cover.kinematics.strips import line_null_space, particular_solution
from morphit_ros.cover.model import Cover, Indices
from morphit_ros.geometry.transforms import Array

RANK_TOLERANCE = 1e-7
# Pivots of the last configuration are good enough while others count less than this in them (or thrice as much as when
# they were chosen).
MOST_GROWTH = 10.0


@dataclass(frozen=True)
class NullSpace:
    """All motions that keep the joints of one configuration closed, and how to close joints that are open.

    Attributes:
        basis: (3 N, D) angular velocities, zero at fixed nodes; not orthonormal. D is the number of degrees of freedom.
    """

    basis: Array
    _solver: NullSpaceSolver
    _rotations: Array
    _factors: tuple[Array, Array, Indices, Indices, Indices]
    _hinges: tuple[Indices, Indices, Array]

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
                *self._hinges,
                by_strip,
                *self._factors,
                self.basis.shape[1],
            )
        )

    def close_least(self, residuals: Array) -> Array:
        """As `close`, the least turns that do it."""
        turns = self.close(residuals)
        surplus, _ = lapack.dpotrs(self.gram_root, self.basis.T @ turns, lower=1)
        return np.asarray(turns - self.basis @ surplus)

    @cached_property
    def gram_root(self) -> Array:
        """(D, D) Cholesky root of the gram matrix, lower half."""
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
        strips, equations = len(self._lines) - 1, 3 * (self._lines.shape[1] - 1)
        self._orders: Indices = np.zeros((strips, 3 * cover.node_count), dtype=np.int64)
        self._columns: Indices = np.zeros((strips, equations), dtype=np.int64)
        self._sizes: Indices = np.zeros((strips, 3), dtype=np.int64)
        self._growths = np.zeros(strips)
        # Place of every open face in strips, and its corners in the order of the strip's.
        self._no_hinges = (np.full(places.shape, -1, dtype=np.int64), np.zeros(0, np.int64), np.zeros((0, 2, 3)))
        self._corners = np.ascontiguousarray(cover.open_faces[:, order])

    def solve(self, rotations: Array) -> NullSpace:
        """The null space at rotations (N, 3, 3)."""
        if self._last is not None and self._last._rotations is rotations:
            return self._last
        hinges = self._hinges_at(rotations)
        basis, inverses, parts = line_null_space(
            rotations, self._lines, self._signs, self._slot, self._free, *hinges, RANK_TOLERANCE, MOST_GROWTH,
            self._orders, self._columns, self._sizes, self._growths,
        )  # fmt: skip
        widest = int(self._sizes[:, 2].max(initial=0))
        factors = (inverses, parts, self._orders[:, :widest].copy(), self._columns.copy(), self._sizes.copy())
        if self.cover.fixed_bridges:
            reduced = bridge_matrix(self.cover, rotations) @ basis
            _, singular, right = np.linalg.svd(reduced)
            basis = np.ascontiguousarray(basis @ right[int((singular > RANK_TOLERANCE * singular[0]).sum()) :].T)
        self._last = NullSpace(basis, self, rotations, factors, hinges)
        return self._last

    def _hinges_at(self, rotations: Array) -> tuple[Indices, Indices, Array]:
        """Of every face of the strips its hinge or -1; of every hinge its node's corner, and its two vectors."""
        if not len(self.cover.hinges):
            return self._no_hinges
        hinges = straight_hinges(rotations, self.cover.hinges, STRAIGHT)
        at = self._no_hinges[0].copy()
        at.ravel()[self._face_places[hinges[:, 0]]] = np.arange(len(hinges))
        corner = np.argmax(self._corners[hinges[:, 0]] == hinges[:, 1, None], axis=1)
        vectors = np.empty((len(hinges), 2, 3))
        fill_hinge_vectors(rotations, hinges, vectors)
        return at, corner, vectors

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
