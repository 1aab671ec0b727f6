"""Limits on the motion of a cover as rows over a basis of its motions, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

Indices = NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_joint_rates(rotations, joints, frames, motions, scale, rows):  # type: ignore[no-untyped-def]
    """Relative rates of all joints in their frames: rows (3 J, K) from motions (3 N, K), times `scale`."""
    count = motions.shape[1]
    for j in range(len(joints)):
        p, c = joints[j, 0], joints[j, 1]
        for axis in range(3):
            x = y = z = 0.0
            for i in range(3):
                x += rotations[p, 0, i] * frames[j, i, axis]
                y += rotations[p, 1, i] * frames[j, i, axis]
                z += rotations[p, 2, i] * frames[j, i, axis]
            x, y, z = scale * x, scale * y, scale * z
            for k in range(count):
                rows[3 * j + axis, k] = (
                    x * (motions[3 * c, k] - motions[3 * p, k])
                    + y * (motions[3 * c + 1, k] - motions[3 * p + 1, k])
                    + z * (motions[3 * c + 2, k] - motions[3 * p + 2, k])
                )


@njit(cache=True, nogil=True, error_model="numpy")
def fill_axis_rates(rotations, joints, frames, chosen, motions, scale, rows):  # type: ignore[no-untyped-def]
    """As `fill_joint_rates` for chosen axes alone (3 joint + axis): rows (C, K)."""
    for place in range(len(chosen)):
        j, axis = chosen[place] // 3, chosen[place] % 3
        p, c = joints[j, 0], joints[j, 1]
        x = y = z = 0.0
        for i in range(3):
            x += rotations[p, 0, i] * frames[j, i, axis]
            y += rotations[p, 1, i] * frames[j, i, axis]
            z += rotations[p, 2, i] * frames[j, i, axis]
        _add_difference(scale * x, scale * y, scale * z, p, c, motions, rows[place])


@njit(cache=True, nogil=True, error_model="numpy")
def _add_difference(x, y, z, p, c, motions, row):  # type: ignore[no-untyped-def]
    px, py, pz = motions[3 * p], motions[3 * p + 1], motions[3 * p + 2]
    cx, cy, cz = motions[3 * c], motions[3 * c + 1], motions[3 * c + 2]
    for k in range(len(row)):
        row[k] = x * (cx[k] - px[k]) + y * (cy[k] - py[k]) + z * (cz[k] - pz[k])


@njit(cache=True, nogil=True, error_model="numpy")
def fill_node_rates(vectors, motions, rows):  # type: ignore[no-untyped-def]
    """The part of every node's motion along its vector: rows (N, K) from vectors (N, 3) and motions (3 N, K)."""
    for n in range(len(vectors)):
        x, y, z = vectors[n, 0], vectors[n, 1], vectors[n, 2]
        mx, my, mz, row = motions[3 * n], motions[3 * n + 1], motions[3 * n + 2], rows[n]
        for k in range(len(row)):
            row[k] = x * mx[k] + y * my[k] + z * mz[k]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_joint_turns(before, after, joints, frames, turns):  # type: ignore[no-untyped-def]
    """How far joints turned between two configurations, rotation vectors in their frames: turns (3 J,) [rad]."""
    change, half, step, inside = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    for j in range(len(joints)):
        p, c = joints[j, 0], joints[j, 1]
        # Rp1^T Rc1 (Rp0^T Rc0)^T in the parent's frame.
        for a in range(3):
            for b in range(3):
                change[a, b] = half[a, b] = 0.0
                for i in range(3):
                    change[a, b] += after[p, i, a] * after[c, i, b]
                    half[a, b] += before[p, i, a] * before[c, i, b]
        for a in range(3):
            for b in range(3):
                step[a, b] = change[a, 0] * half[b, 0] + change[a, 1] * half[b, 1] + change[a, 2] * half[b, 2]
        inside[0] = 0.5 * (step[2, 1] - step[1, 2])
        inside[1] = 0.5 * (step[0, 2] - step[2, 0])
        inside[2] = 0.5 * (step[1, 0] - step[0, 1])
        sine = np.sqrt(inside[0] ** 2 + inside[1] ** 2 + inside[2] ** 2)
        cosine = 0.5 * (step[0, 0] + step[1, 1] + step[2, 2] - 1.0)
        scale = 1.0 if sine < 1e-9 and cosine > 0.0 else np.arctan2(sine, cosine) / max(sine, 1e-12)
        for axis in range(3):
            turns[3 * j + axis] = scale * (
                frames[j, 0, axis] * inside[0] + frames[j, 1, axis] * inside[1] + frames[j, 2, axis] * inside[2]
            )


@njit(cache=True, nogil=True, error_model="numpy")
def fold_cosines(rotations, joints, along_column, cosines):  # type: ignore[no-untyped-def]
    """Cosine of the angle between the x axes of both halves of every joint, (J,)."""
    for j in range(len(joints)):
        p, c = joints[j, 0], joints[j, 1]
        body = 0 if along_column[j] else 1
        cosines[j] = (
            rotations[p, 0, body] * rotations[c, 0, body]
            + rotations[p, 1, body] * rotations[c, 1, body]
            + rotations[p, 2, body] * rotations[c, 2, body]
        )


@njit(cache=True, nogil=True, error_model="numpy")
def fill_fold_rates(rotations, joints, along_column, chosen, motions, scale, rows):  # type: ignore[no-untyped-def]
    """Rates of the cosines of chosen joints: d/dt (x_p . x_c) = (omega_c - omega_p) . (x_c x x_p), times `scale`."""
    for place in range(len(chosen)):
        j = chosen[place]
        p, c = joints[j, 0], joints[j, 1]
        body = 0 if along_column[j] else 1
        px, py, pz = rotations[p, 0, body], rotations[p, 1, body], rotations[p, 2, body]
        cx, cy, cz = rotations[c, 0, body], rotations[c, 1, body], rotations[c, 2, body]
        x, y, z = scale * (cy * pz - cz * py), scale * (cz * px - cx * pz), scale * (cx * py - cy * px)
        for k in range(motions.shape[1]):
            rows[place, k] = (
                x * (motions[3 * c, k] - motions[3 * p, k])
                + y * (motions[3 * c + 1, k] - motions[3 * p + 1, k])
                + z * (motions[3 * c + 2, k] - motions[3 * p + 2, k])
            )


@njit(cache=True, nogil=True, error_model="numpy")
def desired_rates(normals, targets, target_rates, gain, offset, greatest, rates):  # type: ignore[no-untyped-def]
    """The alignment law for every node (Morphing covers, section III): rates (N, 3) [rad/s].

        omega* = K z x n + omega_n - (omega_n . z) z,   omega_n = n x dn/dt,   K = gain / (1 + z . n + offset)

    The first term is cut to `greatest` [rad/s]. Where z and n are opposite, z x n says no direction; any axis across
    z begins the way.
    """
    for k in range(len(normals)):
        z0, z1, z2 = normals[k, 0], normals[k, 1], normals[k, 2]
        n0, n1, n2 = targets[k, 0], targets[k, 1], targets[k, 2]
        d0, d1, d2 = target_rates[k, 0], target_rates[k, 1], target_rates[k, 2]
        along = z0 * n0 + z1 * n1 + z2 * n2
        gained = gain / (1.0 + along + offset)
        a0, a1, a2 = z1 * n2 - z2 * n1, z2 * n0 - z0 * n2, z0 * n1 - z1 * n0
        if along < 0.0 and a0 * a0 + a1 * a1 + a2 * a2 < 1e-12:
            if abs(z0) < 0.7:
                a0, a1, a2 = 0.0, z2, -z1
            else:
                a0, a1, a2 = -z2, 0.0, z0
        asked = gained * np.sqrt(a0 * a0 + a1 * a1 + a2 * a2)
        if asked > greatest:
            gained *= greatest / asked
        w0, w1, w2 = n1 * d2 - n2 * d1, n2 * d0 - n0 * d2, n0 * d1 - n1 * d0
        spin = w0 * z0 + w1 * z1 + w2 * z2
        rates[k, 0] = gained * a0 + w0 - spin * z0
        rates[k, 1] = gained * a1 + w1 - spin * z1
        rates[k, 2] = gained * a2 + w2 - spin * z2


def near_pairs(positions: Array, cols: int, reach: float) -> Indices:
    """(P, 2) nodes closer than `reach` [m] that share no face: those of one face fold as far as their joints allow."""
    if len(positions) < _TREE_NODES:
        return np.asarray(compared_pairs(positions, cols, reach))
    # Only the largest covers have to wait for it.
    from scipy.spatial import cKDTree

    pairs = cKDTree(positions, compact_nodes=False, balanced_tree=False).query_pairs(reach, output_type="ndarray")
    (row, col), (other_row, other_col) = np.divmod(pairs[:, 0], cols), np.divmod(pairs[:, 1], cols)
    return np.asarray(pairs[(np.abs(row - other_row) > 1) | (np.abs(col - other_col) > 1)], dtype=np.int64)


# Nodes from which on a tree finds near ones sooner than comparing all: 0.32 instead of 0.43 ms at 30 x 30.
_TREE_NODES = 900


@njit(cache=True, nogil=True, error_model="numpy")
def compared_pairs(positions, cols, reach):  # type: ignore[no-untyped-def]
    """As `near_pairs`, all nodes with all."""
    count = 0
    found = np.empty((16, 2), dtype=np.int64)
    for a in range(len(positions)):
        x, y, z = positions[a, 0], positions[a, 1], positions[a, 2]
        row, col = a // cols, a % cols
        for b in range(a + 2, len(positions)):
            dx, dy, dz = positions[b, 0] - x, positions[b, 1] - y, positions[b, 2] - z
            if dx * dx + dy * dy + dz * dz >= reach * reach:
                continue
            if b // cols - row <= 1 and abs(b % cols - col) <= 1:
                continue
            if count == len(found):
                longer = np.empty((2 * count, 2), dtype=np.int64)
                longer[:count] = found
                found = longer
            found[count, 0], found[count, 1] = a, b
            count += 1
    return found[:count]
