"""The configuration of a cover: rotations of its nodes. Positions follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.cover.model import Cover
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


@dataclass(frozen=True)
class CoverState:
    """Where the nodes of a cover are.

    Attributes:
        rotations: (N, 3, 3) ``R_world_node``.
        origin: (3,) position of the father [m].
    """

    rotations: Array
    origin: Array

    def positions(self, cover: Cover) -> Array:
        """(N, 3) positions of the nodes [m], counted from the father along its row, then along columns."""
        positions = np.empty((cover.node_count, 3))
        fill_positions(self.rotations, self.origin, cover.father, cover.rows, cover.cols, cover.pitch, positions)
        return positions

    def normals(self) -> Array:
        """(N, 3) z axes of the nodes."""
        return self.rotations[:, :, 2]


def check_state(cover: Cover, rotations: ArrayLike, origin: ArrayLike) -> CoverState:
    """A state from outside, after checking it.

    Raises:
        InvalidInputError: wrong shape, values that are not finite, or no rotations.
    """
    matrices = np.array(rotations, dtype=np.float64, order="C")
    point = np.array(origin, dtype=np.float64)
    if matrices.shape != (cover.node_count, 3, 3) or point.shape != (3,):
        raise InvalidInputError(
            "state",
            f"rotations {matrices.shape}, origin {point.shape}",
            f"shapes ({cover.node_count}, 3, 3) and (3,)",
            "State and cover must have the same nodes.",
        )
    if not (np.isfinite(matrices).all() and np.isfinite(point).all()):
        raise InvalidInputError("state", "values that are not finite", "finite rotations and origin")
    error = float(np.abs(np.einsum("nij,nik->njk", matrices, matrices) - np.eye(3)).max())
    if error > 1e-6 or float(np.linalg.det(matrices).min()) < 0.0:
        raise InvalidInputError("state", f"matrices {error:.1e} away from rotations", "rotations within 1e-6")
    return CoverState(matrices, point)


def flat_state(cover: Cover) -> CoverState:
    """The flat cover at its base pose. It is singular: no motor can start to move some of its shapes."""
    base = cover.T_world_base
    return CoverState(np.tile(base[:3, :3], (cover.node_count, 1, 1)), base[:3, 3].copy())


def joint_gap(cover: Cover, rotations: Array, positions: Array) -> float:
    """The greatest distance between the two halves of a joint [m]; `positions` (N, 3)."""
    parent, child = cover.joints.T
    outward = rotations @ np.array([0.5 * cover.pitch, 0.0, 0.0])
    downward = rotations @ np.array([0.0, -0.5 * cover.pitch, 0.0])
    reach = np.where(cover.joint_along_column[:, None], outward[parent] + outward[child],
                     downward[parent] + downward[child])  # fmt: skip
    return float(np.linalg.norm(positions[parent] + reach - positions[child], axis=1).max())


def worst_gap(cover: Cover, state: CoverState) -> float:
    """The greatest gap of a joint when positions are counted along the tree of `CoverState.positions` [m]."""
    return joint_gap(cover, state.rotations, state.positions(cover))


@njit(cache=True, nogil=True, error_model="numpy")
def fill_positions(rotations, origin, father, rows, cols, pitch, positions):  # type: ignore[no-untyped-def]
    """Positions of all nodes from the father: along its row, then up and down every column."""
    half = 0.5 * pitch
    row, col = father // cols, father % cols
    positions[father] = origin
    for step in (1, -1):
        c = col + step
        while 0 <= c < cols:
            here, before = row * cols + c, row * cols + c - step
            for axis in range(3):
                reach = half * step * (rotations[here, axis, 0] + rotations[before, axis, 0])
                positions[here, axis] = positions[before, axis] + reach
            c += step
    for c in range(cols):
        for step in (1, -1):
            r = row + step
            while 0 <= r < rows:
                here, before = r * cols + c, (r - step) * cols + c
                for axis in range(3):
                    reach = half * step * (rotations[here, axis, 1] + rotations[before, axis, 1])
                    positions[here, axis] = positions[before, axis] - reach
                r += step


@njit(cache=True, nogil=True, error_model="numpy")
def fill_velocities(rotations, rates, father, rows, cols, pitch, velocities):  # type: ignore[no-untyped-def]
    """Velocities of all nodes from angular velocities, along the same tree.

    `rates` (3 N, K) and `velocities` (3 N, K): K motions at once, such as a null-space basis.
    """
    count = rates.shape[1]
    for k in range(count):
        for axis in range(3):
            velocities[3 * father + axis, k] = 0.0
    row, col = father // cols, father % cols
    for step in (1, -1):
        c = col + step
        while 0 <= c < cols:
            here, before = row * cols + c, row * cols + c - step
            _add_reach(rotations, rates, here, before, 0, 0.5 * pitch * step, velocities)
            c += step
    for c in range(cols):
        for step in (1, -1):
            r = row + step
            while 0 <= r < rows:
                here, before = r * cols + c, (r - step) * cols + c
                _add_reach(rotations, rates, here, before, 1, -0.5 * pitch * step, velocities)
                r += step


@njit(cache=True, nogil=True, error_model="numpy")
def _add_reach(rotations, rates, here, before, body_axis, length, velocities):  # type: ignore[no-untyped-def]
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        au, av = length * rotations[before, u, body_axis], length * rotations[before, v, body_axis]
        bu, bv = length * rotations[here, u, body_axis], length * rotations[here, v, body_axis]
        for k in range(rates.shape[1]):
            velocities[3 * here + axis, k] = (
                velocities[3 * before + axis, k]
                + rates[3 * before + u, k] * av - rates[3 * before + v, k] * au
                + rates[3 * here + u, k] * bv - rates[3 * here + v, k] * bu
            )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def rotate(rotations, turns, turned):  # type: ignore[no-untyped-def]
    """``exp(turn) R`` for every node: rotations (N, 3, 3), turns (3 N,) in the world frame [rad]."""
    for k in range(len(rotations)):
        x, y, z = turns[3 * k], turns[3 * k + 1], turns[3 * k + 2]
        square = x * x + y * y + z * z
        angle = np.sqrt(square)
        if angle < 1e-4:
            # Series: the closed form divides zero by zero.
            a, b = 1.0 - square / 6.0, 0.5 - square / 24.0
        else:
            a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square
        m00, m01, m02 = 1.0 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y
        m10, m11, m12 = b * x * y + a * z, 1.0 - b * (x * x + z * z), b * y * z - a * x
        m20, m21, m22 = b * x * z - a * y, b * y * z + a * x, 1.0 - b * (x * x + y * y)
        for c in range(3):
            r0, r1, r2 = rotations[k, 0, c], rotations[k, 1, c], rotations[k, 2, c]
            turned[k, 0, c] = m00 * r0 + m01 * r1 + m02 * r2
            turned[k, 1, c] = m10 * r0 + m11 * r1 + m12 * r2
            turned[k, 2, c] = m20 * r0 + m21 * r1 + m22 * r2


@njit(cache=True, nogil=True, error_model="numpy")
def orthonormalize(rotations):  # type: ignore[no-untyped-def]
    """One Newton step towards the nearest rotation: takes away what thousands of products round off."""
    for k in range(len(rotations)):
        m = rotations[k].copy()
        for i in range(3):
            for j in range(3):
                # R (3 - RᵀR) / 2
                total = 1.5 * m[i, j]
                for p in range(3):
                    gram = m[0, p] * m[0, j] + m[1, p] * m[1, j] + m[2, p] * m[2, j]
                    total -= 0.5 * m[i, p] * gram
                rotations[k, i, j] = total


@njit(cache=True, nogil=True, error_model="numpy")
def observe(rotations, origin, father, rows, cols, pitch, faces, positions, normals):  # type: ignore[no-untyped-def]
    """Fill positions and normals (N, 3); how far the most open face is open [m], not finite if a number is not."""
    fill_positions(rotations, origin, father, rows, cols, pitch, positions)
    total = 0.0
    for k in range(len(rotations)):
        for i in range(3):
            normals[k, i] = rotations[k, i, 2]
            total += positions[k, i] + rotations[k, i, 0] + rotations[k, i, 1] + rotations[k, i, 2]
    if not np.isfinite(total):
        return np.nan
    worst = 0.0
    for f in range(len(faces)):
        a, b, c, d = faces[f, 0], faces[f, 1], faces[f, 2], faces[f, 3]
        for i in range(3):
            opened = (
                rotations[a, i, 0] + rotations[a, i, 1] + rotations[b, i, 0] - rotations[b, i, 1]
                - rotations[c, i, 0] + rotations[c, i, 1] - rotations[d, i, 0] - rotations[d, i, 1]
            )  # fmt: skip
            worst = max(worst, abs(opened))
    return 0.5 * pitch * worst
