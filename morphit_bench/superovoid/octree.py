"""Octree over surface points, from which the paper's implicit solver takes its start."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


def build_octree(points: Array, depth: int) -> tuple[Array, NDArray[np.int64]]:
    """Cells of an octree over points (N, 3): representatives (M, 3), children (M, 8) by index or -1.

    A cell is represented by the point nearest to the mean of its points; the first cell is the root.
    """
    half = float(np.abs(points).max())
    cells: list[tuple[NDArray[np.int64], Array, float, int]] = [(np.arange(len(points)), np.zeros(3), half, 0)]
    representatives, children = [], []
    for members, center, width, level in cells:
        inside = points[members]
        representatives.append(inside[np.argmin(((inside - inside.mean(axis=0)) ** 2).sum(axis=1))])
        row = [-1] * 8
        if level < depth and len(members) > 1:
            octant = ((inside > center) * np.array([1, 2, 4])).sum(axis=1)
            for k in range(8):
                chosen = members[octant == k]
                if len(chosen):
                    side = np.array([1.0 if k & 1 else -1.0, 1.0 if k & 2 else -1.0, 1.0 if k & 4 else -1.0])
                    row[k] = len(cells)
                    cells.append((chosen, center + 0.5 * width * side, 0.5 * width, level + 1))
        children.append(row)
    return np.array(representatives), np.array(children, dtype=np.int64)


@njit(cache=True, nogil=True, error_model="numpy")
def octree_start(
    points1: NDArray, children1: NDArray, points2: NDArray, children2: NDArray, R: NDArray, t: NDArray, x: NDArray
) -> None:
    """Points (6,) of both shapes by greedy descent: of both cells' children the pair nearest to each other."""
    i, j = 0, 0
    moving = True
    while moving:
        best, bi, bj = math.inf, i, j
        for a in range(8):
            for b in range(8):
                k, m = children1[i, a], children2[j, b]
                if a == 0 and children1[i].max() < 0:
                    k = i
                if b == 0 and children2[j].max() < 0:
                    m = j
                if k < 0 or m < 0:
                    continue
                d = 0.0
                for c in range(3):
                    y = R[c, 0] * points2[m, 0] + R[c, 1] * points2[m, 1] + R[c, 2] * points2[m, 2] + t[c]
                    d += (points1[k, c] - y) ** 2
                if d < best:
                    best, bi, bj = d, k, m
        moving = bi != i or bj != j
        i, j = bi, bj
    for c in range(3):
        x[c] = points1[i, c]
        x[3 + c] = points2[j, c]
