"""How well motors span the motions of a cover, and how that changes as it moves.

Over an orthonormal basis of the motions, the motors' rates are a matrix; its smallest singular value s is zero where
the motors lose the cover, and its condition says how much motors multiply errors. With the left vector a of s, the
motion w that turns motors least (unit length), the motors' rows B and the closure's matrix J,

    ds = a . dB w - v . dJ w,     J^T v = B^T a - s w

by the turns of the nodes: the first part because motors' axes turn, the second because the motions do. Both are sums
over joints and faces. J J^T is banded for faces line by line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from morphit_ros.cover.actuation.motors import motor_axes
from morphit_ros.cover.kinematics.closure import CORNER_SIGNS
from morphit_ros.cover.kinematics.hinges import STRAIGHT, fill_hinge_vectors, straight_hinges
from morphit_ros.cover.kinematics.null_space import NullSpace
from morphit_ros.cover.model import Cover, Indices
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Smallest singular values that are followed: where two are alike, a motion mixes them.
FOLLOWED = 3
# More vectors than that are iterated: the followed ones converge by the ratio to the first that is left out.
_ITERATED = 8
# Steps of the iterations for them; they begin with the vectors of the last configuration.
_STEPS, _FIRST_STEPS = 3, 20
# Motors up to which a whole decomposition costs less.
_SMALL = 30


@dataclass(frozen=True)
class MotorSpan:
    """The motors' matrix of one configuration by its singular values.

    Attributes:
        greatest: singular value.
        least: (K,) smallest singular values, the smallest first.
        motors: (M, K) their left vectors.
        turns: (3 N, K) their motions, of unit length.
    """

    greatest: float
    least: Array
    motors: Array
    turns: Array

    @property
    def condition(self) -> float:
        """Of the motors' matrix over an orthonormal basis (2-norm); infinite where motors don't span the motions."""
        return self.greatest / float(self.least[0]) if self.least[0] > 1e-300 else np.inf


class SpanTracker:
    """Spans of one cover's motors, configuration after configuration; begins with the vectors of the last."""

    def __init__(self, cover: Cover) -> None:
        self.cover = cover
        count = min(_ITERATED, len(cover.motors))
        # Any start that no vector is orthogonal to.
        first = np.random.default_rng(0).normal(size=(len(cover.motors), count))
        self._least, self._greatest, self._steps = first, first, _FIRST_STEPS
        # Bands are narrow when faces go along the shorter side.
        faces = cover.open_faces
        order = np.lexsort((faces[:, 0] // cover.cols, faces[:, 0] % cover.cols)) if cover.cols > cover.rows else None
        self._order: Indices = np.arange(len(faces)) if order is None else order
        self._place: Indices = np.empty(len(faces), dtype=np.int64)
        self._place[self._order] = np.arange(len(faces))
        self._faces: Indices = np.ascontiguousarray(faces[self._order])
        self._around, self._band = _faces_around(self._faces, cover.node_count)

    def measure(self, space: NullSpace, motors: Array) -> MotorSpan:
        """The span at a configuration, from `motors` (M, D): rates of the motors over the basis of `space`."""
        root = space.gram_root
        orthonormal = lapack.dtrtrs(root, motors.T, lower=1)[0].T
        if len(orthonormal) <= _SMALL:
            left, values, right = np.linalg.svd(orthonormal)
            followed = slice(-1, -1 - min(FOLLOWED, len(values)), -1)
            motions = space.basis @ lapack.dtrtrs(root, right[followed].T, lower=1, trans=1)[0]
            return MotorSpan(float(values[0]), values[followed], left[:, followed], motions)
        factors, pivots, status = lapack.dgetrf(orthonormal)
        greatest, left = self._greatest, self._least
        for _ in range(self._steps):
            greatest = orthonormal @ (orthonormal.T @ greatest)
            orthonormalize_columns(greatest)
        size = float(np.linalg.norm(orthonormal.T @ greatest, 2))
        self._greatest = greatest
        if status != 0:
            count = FOLLOWED
            return MotorSpan(size, np.zeros(count), left[:, :count], np.zeros((space.basis.shape[0], count)))
        for _ in range(self._steps):
            # Inverse iteration for M M^T, several vectors at once.
            left = lapack.dgetrs(factors, pivots, lapack.dgetrs(factors, pivots, left)[0], trans=1)[0]
            left = np.ascontiguousarray(left)
            orthonormalize_columns(left)
        # What the subspace says: M^T L = V S W^T.
        right, least, mixing = np.linalg.svd(orthonormal.T @ left, full_matrices=False)
        self._least, self._steps = left @ mixing.T, _STEPS
        followed = slice(-1, -1 - FOLLOWED, -1)
        motions = space.basis @ lapack.dtrtrs(root, right[:, followed], lower=1, trans=1)[0]
        return MotorSpan(size, least[followed], self._least[:, followed], motions)

    def slopes(self, rotations: Array, span: MotorSpan, count: int) -> Array | None:
        """(count, 3 N) derivatives of the least singular values by turns of the nodes; None where joints lose rank."""
        cover = self.cover
        axes = motor_axes(cover, rotations)
        parents, children = np.ascontiguousarray(cover.joints[cover.motors[:, 0]].T)
        hinges = straight_hinges(rotations, cover.hinges, STRAIGHT)
        vectors = np.empty((len(hinges), 2, 3))
        if len(hinges):
            fill_hinge_vectors(rotations, hinges, vectors)
            hinges = hinges.copy()
            hinges[:, 0] = self._place[hinges[:, 0]]
        blocks = np.empty((len(self._faces), 4, 3, 3))
        fill_closure_blocks(rotations, self._faces, CORNER_SIGNS, cover.is_fixed, hinges, vectors, blocks)
        banded = np.zeros((self._band + 1, 3 * len(self._faces)), order="F")
        fill_banded_gram(blocks, self._around, banded)
        root, status = lapack.dpbtrf(banded, lower=1, overwrite_ab=1)
        if status != 0:
            return None
        found = np.empty((count, 3 * cover.node_count))
        for number in range(count):
            motors = np.ascontiguousarray(span.motors[:, number])
            turns = np.ascontiguousarray(span.turns[:, number])
            right = np.empty(3 * len(self._faces))
            fill_right_side(
                parents, children, axes, cover.is_fixed, motors, float(span.least[number]), turns, self._faces, blocks,
                right,
            )  # fmt: skip
            multipliers = lapack.dpbtrs(root, right, lower=1)[0] if len(right) else right
            fill_slopes(
                rotations, parents, children, axes, motors, turns, self._faces, CORNER_SIGNS, hinges, vectors,
                np.ascontiguousarray(multipliers).reshape(-1, 3), found[number],
            )  # fmt: skip
        return found


def _faces_around(faces: Indices, nodes: int) -> tuple[Indices, int]:
    """(N, 4, 2) face and corner of the faces around each node, -1 where there are fewer; bandwidth of their gram."""
    around = np.full((nodes, 4, 2), -1, dtype=np.int64)
    filled = np.zeros(nodes, dtype=np.int64)
    for face, corners in enumerate(faces.tolist()):
        for corner, node in enumerate(corners):
            around[node, filled[node]] = face, corner
            filled[node] += 1
    apart = [places.max() - places.min() for places in (each[each >= 0] for each in around[:, :, 0]) if len(places)]
    return around, 3 * int(max(apart, default=0)) + 2


@njit(cache=True, nogil=True, error_model="numpy")
def orthonormalize_columns(columns):  # type: ignore[no-untyped-def]
    """Columns (M, K) by Gram and Schmidt, twice, in place: K is small, and a library's QR costs mostly its call."""
    count, width = columns.shape
    for k in range(width):
        for _ in range(2):
            for j in range(k):
                along = 0.0
                for i in range(count):
                    along += columns[i, j] * columns[i, k]
                for i in range(count):
                    columns[i, k] -= along * columns[i, j]
            size = 0.0
            for i in range(count):
                size += columns[i, k] * columns[i, k]
            size = 1.0 / np.sqrt(size) if size > 0.0 else 0.0
            for i in range(count):
                columns[i, k] *= size


@njit(cache=True, nogil=True, error_model="numpy")
def fill_closure_blocks(rotations, faces, signs, fixed, hinges, vectors, blocks):  # type: ignore[no-untyped-def]
    """Rates of faces' residuals by turns of their corners (F, 4, 3, 3), as `closure.closure_matrix`; zero for fixed."""
    for f in range(len(faces)):
        for c in range(4):
            n = faces[f, c]
            block = blocks[f, c]
            block[:] = 0.0
            if fixed[n]:
                continue
            x = signs[c, 0] * rotations[n, 0, 0] + signs[c, 1] * rotations[n, 0, 1]
            y = signs[c, 0] * rotations[n, 1, 0] + signs[c, 1] * rotations[n, 1, 1]
            z = signs[c, 0] * rotations[n, 2, 0] + signs[c, 1] * rotations[n, 2, 1]
            block[0, 1], block[0, 2] = z, -y
            block[1, 0], block[1, 2] = -z, x
            block[2, 0], block[2, 1] = y, -x
    for h in range(len(hinges)):
        f, n = hinges[h, 0], hinges[h, 1]
        d, out = vectors[h, 0], vectors[h, 1]
        for c in range(4):
            block = blocks[f, c]
            for k in range(3):
                along = d[0] * block[0, k] + d[1] * block[1, k] + d[2] * block[2, k]
                if faces[f, c] == n:
                    along += out[k]
                for i in range(3):
                    block[i, k] -= along * d[i]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_banded_gram(blocks, around, banded):  # type: ignore[no-untyped-def]
    """Lower band of J J^T, LAPACK's storage (band + 1, 3 F), added to zeros."""
    for n in range(len(around)):
        for one in range(4):
            f, c = around[n, one]
            if f < 0:
                break
            for other in range(4):
                g, e = around[n, other]
                if g < 0:
                    break
                if g > f:
                    continue
                for i in range(3):
                    for j in range(3):
                        row, column = 3 * f + i, 3 * g + j
                        if row < column:
                            continue
                        total = 0.0
                        for k in range(3):
                            total += blocks[f, c, i, k] * blocks[g, e, j, k]
                        banded[row - column, column] += total


@njit(cache=True, nogil=True, error_model="numpy")
def fill_right_side(  # type: ignore[no-untyped-def]
    parents, children, axes, fixed, motors, value, turns, faces, blocks, right
):
    """J (B^T a - s w), (3 F,)."""
    forces = -value * turns
    for m in range(len(parents)):
        for i in range(3):
            forces[3 * children[m] + i] += motors[m] * axes[m, i]
            forces[3 * parents[m] + i] -= motors[m] * axes[m, i]
    for n in range(len(fixed)):
        if fixed[n]:
            forces[3 * n : 3 * n + 3] = 0.0
    for f in range(len(faces)):
        for i in range(3):
            total = 0.0
            for c in range(4):
                n = faces[f, c]
                for k in range(3):
                    total += blocks[f, c, i, k] * forces[3 * n + k]
            right[3 * f + i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def fill_slopes(  # type: ignore[no-untyped-def]
    rotations, parents, children, axes, motors, turns, faces, signs, hinges, vectors, multipliers, slopes
):
    """Derivative of the singular value by turns of the nodes (3 N,)."""
    slopes[:] = 0.0
    for m in range(len(parents)):
        p, c = 3 * parents[m], 3 * children[m]
        x, y, z = turns[c] - turns[p], turns[c + 1] - turns[p + 1], turns[c + 2] - turns[p + 2]
        # The axis turns with the parent: (turn x axis) . relative = turn . (axis x relative).
        slopes[p] += motors[m] * (axes[m, 1] * z - axes[m, 2] * y)
        slopes[p + 1] += motors[m] * (axes[m, 2] * x - axes[m, 0] * z)
        slopes[p + 2] += motors[m] * (axes[m, 0] * y - axes[m, 1] * x)
    for h in range(len(hinges)):
        f, n = hinges[h, 0], 3 * hinges[h, 1]
        d, out, force = vectors[h, 0], vectors[h, 1], multipliers[hinges[h, 0]]
        along = d[0] * force[0] + d[1] * force[1] + d[2] * force[2]
        slopes[n] += along * (out[1] * turns[n + 2] - out[2] * turns[n + 1])
        slopes[n + 1] += along * (out[2] * turns[n] - out[0] * turns[n + 2])
        slopes[n + 2] += along * (out[0] * turns[n + 1] - out[1] * turns[n])
        for i in range(3):
            multipliers[f, i] -= along * d[i]
    for f in range(len(faces)):
        u, v, w = multipliers[f, 0], multipliers[f, 1], multipliers[f, 2]
        for c in range(4):
            k = faces[f, c]
            n = 3 * k
            x = signs[c, 0] * rotations[k, 0, 0] + signs[c, 1] * rotations[k, 0, 1]
            y = signs[c, 0] * rotations[k, 1, 0] + signs[c, 1] * rotations[k, 1, 1]
            z = signs[c, 0] * rotations[k, 2, 0] + signs[c, 1] * rotations[k, 2, 1]
            # (turn x arm) x omega . v = turn . (arm x (omega x v))
            a = turns[n + 1] * w - turns[n + 2] * v
            b = turns[n + 2] * u - turns[n] * w
            e = turns[n] * v - turns[n + 1] * u
            slopes[n] += y * e - z * b
            slopes[n + 1] += z * a - x * e
            slopes[n + 2] += x * b - y * a
