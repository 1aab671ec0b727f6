"""A cloth that meets itself: nodes keep apart, found by a hash of cells, compiled.

Nodes repel each other below 0.9 pitches, which neighbours are not, and which leaves no hole between them that a node
could slip through: the middle of a mesh is 0.71 pitches from its corners.
"""

from __future__ import annotations

import math

from morphit_ros.jit import lean_njit

# Distance that nodes keep, in pitches.
APART = 0.9


@lean_njit(inline="always")
def _slot(i, j, k, size):  # type: ignore[no-untyped-def]
    return ((i * 73856093) ^ (j * 19349663) ^ (k * 83492791)) % size


@lean_njit
def separate(x, free, distance, heads, following, cells):  # type: ignore[no-untyped-def]
    """Move nodes apart that are nearer than a distance, each by half of what is missing.

    Args:
        x: (3, rows, cols) [m], changed.
        free: (rows, cols), 0 for nodes that are held.
        distance: [m].
        heads: (slots,) of numbers, to work with.
        following, cells: (rows cols,) and (rows cols, 3) of numbers, to work with.
    """
    cols, count, size = x.shape[2], x.shape[1] * x.shape[2], len(heads)
    heads[:] = -1
    for n in range(count):
        r, c = n // cols, n % cols
        for k in range(3):
            cells[n, k] = math.floor(x[k, r, c] / distance)
        slot = _slot(cells[n, 0], cells[n, 1], cells[n, 2], size)
        # Whoever came before, in this cell or one around it, is met once.
        for i in range(cells[n, 0] - 1, cells[n, 0] + 2):
            for j in range(cells[n, 1] - 1, cells[n, 1] + 2):
                for k in range(cells[n, 2] - 1, cells[n, 2] + 2):
                    m = heads[_slot(i, j, k, size)]
                    while m >= 0:
                        if cells[m, 0] == i and cells[m, 1] == j and cells[m, 2] == k:
                            _part(x, free, distance, r, c, m // cols, m % cols)
                        m = following[m]
        following[n], heads[slot] = heads[slot], n


@lean_njit(inline="always")
def _part(x, free, distance, r, c, q, d):  # type: ignore[no-untyped-def]
    dx, dy, dz = x[0, r, c] - x[0, q, d], x[1, r, c] - x[1, q, d], x[2, r, c] - x[2, q, d]
    square = dx * dx + dy * dy + dz * dz
    if 0.0 < square < distance * distance:
        weight = free[r, c] + free[q, d]
        if weight > 0.0:
            share = (distance / math.sqrt(square) - 1.0) / weight
            here, there = free[r, c] * share, free[q, d] * share
            x[0, r, c], x[1, r, c], x[2, r, c] = x[0, r, c] + here * dx, x[1, r, c] + here * dy, x[2, r, c] + here * dz
            x[0, q, d], x[1, q, d], x[2, q, d] = (
                x[0, q, d] - there * dx, x[1, q, d] - there * dy, x[2, q, d] - there * dz
            )  # fmt: skip
