"""What holds a cloth together, as position-based constraints (XPBD), compiled.

Positions are (3, rows, cols). Neighbours in rows and columns are brought to their distance in two ways. Each column is
a chain whose tensions are solved for at once, a tridiagonal system (Thomas' algorithm): relaxed one by one, constraints
would pass a tension on by a node an iteration, and a cloth of a hundred rows would stretch like rubber. Chains pull
only, and only so much: one that pushes folds up, and one that straightens a bend by more than the bend throws it over.
The rest is left to relaxing pairs, which is stable whatever comes. Columns are solved beside each other, so that the
innermost loops run over contiguous numbers; rows likewise, on the transposed cloth.

Masses are all alike. A compliance is given times the mass and by the squared time, so that it has no unit.

Sources: Macklin, Müller and Chentanez 2016, "XPBD"; Macklin et al. 2019, "Small Steps in Physics Simulation"; Deul et
al. 2018, "Direct Position-Based Solver for Stiff Rods".
"""

from __future__ import annotations

import math

from morphit_ros.jit import lean_njit

# Shorter ones have no direction [m].
_SHORTEST = 1e-12
# A chain pulls by no more than this in one go, in pitches: bends that it straightens would be thrown beyond.
_MOST_PULL = 0.5


@lean_njit(error_model="numpy", fastmath={"contract"})
def transpose(source, target):  # type: ignore[no-untyped-def]
    """Positions (3, rows, cols) into (3, cols, rows)."""
    for k in range(3):
        for r in range(source.shape[1]):
            for c in range(source.shape[2]):
                target[k, c, r] = source[k, r, c]


@lean_njit(error_model="numpy", fastmath={"contract"})
def tighten_columns(x, free, pitch, compliance, work):  # type: ignore[no-untyped-def]
    """Pull neighbours in all columns to their distance, where they are too far apart.

    Args:
        x: (3, rows, cols) [m], changed.
        free: (rows, cols), 0 for nodes that are held, else 1.
        pitch: the distance [m].
        compliance: see above.
        work: (6, rows + 1, cols); its first and last rows must be zero and stay so.
    """
    rows, cols = x.shape[1], x.shape[2]
    # Row r + 1 of `work` belongs to the distance from r to r + 1: direction, inverse pivot, right side, off-diagonal.
    for r in range(rows - 1):
        for c in range(cols):
            dx, dy, dz = x[0, r + 1, c] - x[0, r, c], x[1, r + 1, c] - x[1, r, c], x[2, r + 1, c] - x[2, r, c]
            length = max(math.sqrt(dx * dx + dy * dy + dz * dz), _SHORTEST)
            inverse = 1.0 / length
            dx, dy, dz = dx * inverse, dy * inverse, dz * inverse
            off = -free[r, c] * (work[0, r, c] * dx + work[1, r, c] * dy + work[2, r, c] * dz)
            ratio = off * work[3, r, c]
            work[0, r + 1, c], work[1, r + 1, c], work[2, r + 1, c] = dx, dy, dz
            work[3, r + 1, c] = 1.0 / (free[r, c] + free[r + 1, c] + compliance - ratio * off)
            work[4, r + 1, c] = pitch - length - ratio * work[4, r, c]
            work[5, r + 1, c] = off
    # Backwards; the multiplier of each distance takes the place of its right side.
    for r in range(rows - 1, 0, -1):
        for c in range(cols):
            following = work[4, r + 1, c]
            force = (work[4, r, c] - work[5, r + 1, c] * following) * work[3, r, c]
            force = max(min(force, 0.0), -_MOST_PULL * pitch)
            work[4, r, c] = force
            x[0, r, c] += free[r, c] * (work[0, r, c] * force - work[0, r + 1, c] * following)
            x[1, r, c] += free[r, c] * (work[1, r, c] * force - work[1, r + 1, c] * following)
            x[2, r, c] += free[r, c] * (work[2, r, c] * force - work[2, r + 1, c] * following)
    for c in range(cols):
        for k in range(3):
            x[k, 0, c] -= free[0, c] * work[k, 1, c] * work[4, 1, c]


@lean_njit(error_model="numpy", fastmath={"contract"})
def relax_columns(x, free, pitch, compliance):  # type: ignore[no-untyped-def]
    """Bring each two neighbours in all columns to their distance, by turns.

    Args:
        x, free, pitch, compliance: as of `tighten_columns`.
    """
    rows, cols = x.shape[1], x.shape[2]
    for color in range(2):
        for r in range(color, rows - 1, 2):
            for c in range(cols):
                dx, dy, dz = x[0, r + 1, c] - x[0, r, c], x[1, r + 1, c] - x[1, r, c], x[2, r + 1, c] - x[2, r, c]
                length = max(math.sqrt(dx * dx + dy * dy + dz * dz), _SHORTEST)
                share = (length - pitch) / (length * (free[r, c] + free[r + 1, c] + compliance))
                here, there = free[r, c] * share, free[r + 1, c] * share
                x[0, r, c] += here * dx
                x[1, r, c] += here * dy
                x[2, r, c] += here * dz
                x[0, r + 1, c] -= there * dx
                x[1, r + 1, c] -= there * dy
                x[2, r + 1, c] -= there * dz


@lean_njit(error_model="numpy", fastmath={"contract"})
def bend_columns(x, free, compliance, shares):  # type: ignore[no-untyped-def]
    """Straighten three nodes after each other, in all columns: their second difference is the constraint.

    Args:
        x, free, compliance: as of `tighten_columns`.
        shares: (2, cols), to work with: loops over few arrays are what compilers make vectors of.
    """
    inverse, change = shares[0], shares[1]
    for r in range(1, x.shape[1] - 1):
        before, here, after = free[r - 1], free[r], free[r + 1]
        for c in range(x.shape[2]):
            inverse[c] = 1.0 / (before[c] + 4.0 * here[c] + after[c] + compliance)
        for k in range(3):
            first, second, third = x[k, r - 1], x[k, r], x[k, r + 1]
            for c in range(x.shape[2]):
                change[c] = inverse[c] * (first[c] - 2.0 * second[c] + third[c])
            for c in range(x.shape[2]):
                first[c] -= before[c] * change[c]
            for c in range(x.shape[2]):
                second[c] += 2.0 * here[c] * change[c]
            for c in range(x.shape[2]):
                third[c] -= after[c] * change[c]


@lean_njit(error_model="numpy", fastmath={"contract"})
def shear(x, free, rest, compliance, limit, shares):  # type: ignore[no-untyped-def]
    """Bring diagonals nearer to their length `rest` [m], and to within `limit` of it, as a share.

    Args:
        x, free, compliance, shares: as of `bend_columns`.
        rest, limit: see above.
    """
    count, share = x.shape[2] - 1, shares[0]
    for r in range(x.shape[1] - 1):
        for across in range(2):
            i, j = across, 1 - across
            ax, ay, az = x[0, r, i : i + count], x[1, r, i : i + count], x[2, r, i : i + count]
            bx, by, bz = x[0, r + 1, j : j + count], x[1, r + 1, j : j + count], x[2, r + 1, j : j + count]
            here, there = free[r, i : i + count], free[r + 1, j : j + count]
            for c in range(count):
                dx, dy, dz = bx[c] - ax[c], by[c] - ay[c], bz[c] - az[c]
                length = max(math.sqrt(dx * dx + dy * dy + dz * dz), _SHORTEST)
                weight = here[c] + there[c]
                error = length - rest
                beyond = error - max(min(error, limit * rest), -limit * rest)
                share[c] = (beyond / max(weight, 1.0) + (error - beyond) / (weight + compliance)) / length
            for k in range(3):
                first, second = x[k, r, i : i + count], x[k, r + 1, j : j + count]
                for c in range(count):
                    change = share[c] * (second[c] - first[c])
                    first[c] += here[c] * change
                    second[c] -= there[c] * change
