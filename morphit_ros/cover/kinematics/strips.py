"""The compiled part of `null_space`: elimination strip by strip, and solutions with its factors.

Of a strip with equations E (equations, unknowns), elimination chooses as many pivot unknowns as there are independent
equations. With P the columns of E of the pivots and F the others, pivots are -P^-1 F times the others. The next
configuration is nearly the same: its strips first try the pivots of the last, and choose anew only where the result has
grown. A strip that has lost rank always chooses anew.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.jit import njit


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def line_null_space(  # type: ignore[no-untyped-def]
    rotations, lines, signs, slot, free, hinge_at, hinge_corner, hinge_vectors, tolerance, most_growth,
    orders, columns, sizes, growths,
):  # fmt: skip
    """Basis (3 N, D) and, for each strip, the factors: inverses of the pivots' equations, parts of the others.

    `lines` (L, W) node numbers, `signs` (4, 2) of a face's corners in the order of lines, `hinge_at` (L - 1, W - 1) the
    hinge of a face or -1, `hinge_corner` (H,) and `hinge_vectors` (H, 2, 3) see `morphit_ros.cover.kinematics.hinges`.
    Kept from configuration to configuration, sizes zero before the first: `orders` (strips, 3 N) of unknowns, pivots
    first, `columns` (strips, equations) of the pivots, `sizes` (strips, 3) parameters, rank and unknowns, `growths`.
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
    inverses = [np.zeros((0, 0))]
    parts = [np.zeros((0, 0))]
    for i in range(strips):
        unknowns = parameters + 3 * free[i + 1]
        system = np.zeros((equations, unknowns))
        _fill_strip(rotations, lines, signs, slot, i, motion, parameters, system)
        for j in range(width - 1):
            if hinge_at[i, j] >= 0:
                corner, vectors = hinge_corner[hinge_at[i, j]], hinge_vectors[hinge_at[i, j]]
                _replace_hinge(lines, slot, i, j, corner, vectors, motion, parameters, system)
        order = orders[i]
        done = False
        if sizes[i, 0] == parameters and sizes[i, 1] == equations and sizes[i, 2] == unknowns:
            rank = equations
            done, inverse, solved = _solve_pivots(system, order, columns[i], rank)
            done = done and _greatest(solved) < max(most_growth, 3.0 * growths[i])
        if not done:
            rank = _eliminate(system.T.copy(), tolerance, order, columns[i])
            done, inverse, solved = _solve_pivots(system, order, columns[i], rank)
            growths[i] = _greatest(solved)
        inverses.append(inverse)
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
        widest = max(widest, sizes[i, 2] - sizes[i, 1])
    packed_inverses = np.empty((strips, equations, equations))
    packed_parts = np.empty((strips, equations, widest))
    for i in range(strips):
        rank = sizes[i, 1]
        packed_inverses[i, :rank, :rank] = inverses[i + 1]
        packed_parts[i, :rank, : sizes[i, 2] - rank] = parts[i + 1]
    return basis, packed_inverses, packed_parts


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_pivots(system, order, columns, rank):  # type: ignore[no-untyped-def]
    """Whether pivots can be solved for, P^-1 (rank, rank), and -P^-1 F (rank, others)."""
    others = system.shape[1] - rank
    square, free = np.empty((rank, rank)), np.empty((rank, others))
    for p in range(rank):
        row = system[columns[p]]
        for k in range(rank):
            square[p, k] = row[order[k]]
        for k in range(others):
            free[p, k] = -row[order[rank + k]]
    if rank == 0:
        return True, square, free
    try:
        inverse = np.linalg.inv(square)
    # Compiled code can catch nothing narrower; the inverse fails only where the matrix is exactly singular.
    except Exception:  # noqa: BLE001
        return False, square, free
    return True, inverse, np.dot(inverse, free)


@njit(cache=True, nogil=True, error_model="numpy")
def _greatest(matrix):  # type: ignore[no-untyped-def]
    greatest = 0.0
    for row in matrix:
        for value in row:
            # A NaN is greater than anything.
            if not abs(value) <= greatest:
                greatest = abs(value)
    return greatest


@njit(cache=True, nogil=True, error_model="numpy")
def particular_solution(  # type: ignore[no-untyped-def]
    rotations, lines, signs, slot, hinge_at, hinge_corner, hinge_vectors, residuals,
    inverses, parts, orders, columns, sizes, parameters,
):  # fmt: skip
    """Turns (3 N,) whose residual rates are minus `residuals` (strips, W - 1, 3), from the null space's factors."""
    line_count, width = lines.shape
    strips = line_count - 1
    values = np.zeros((strips, inverses.shape[1]))
    line_turns = np.zeros(3 * width)
    side = np.zeros(3 * (width - 1))
    for i in range(strips):
        before, rank, unknowns = sizes[i, 0], sizes[i, 1], sizes[i, 2]
        for j in range(width - 1):
            side[3 * j : 3 * j + 3] = 0.0
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
            if hinge_at[i, j] >= 0:
                hinge = hinge_at[i, j]
                d, a = hinge_vectors[hinge, 0], hinge_vectors[hinge, 1]
                turning = d[0] * side[3 * j] + d[1] * side[3 * j + 1] + d[2] * side[3 * j + 2]
                if hinge_corner[hinge] < 2:
                    first = 3 * (j + hinge_corner[hinge])
                    turning -= a[0] * line_turns[first] + a[1] * line_turns[first + 1] + a[2] * line_turns[first + 2]
                for axis in range(3):
                    side[3 * j + axis] -= turning * d[axis]
            for axis in range(3):
                side[3 * j + axis] -= residuals[i, j, axis]
        for p in range(rank):
            total = 0.0
            for k in range(rank):
                total += inverses[i, p, k] * side[columns[i, k]]
            values[i, p] = total
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
    """Equations of the faces between lines i and i + 1 (equations, unknowns)."""
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
                    system[3 * j, q] += z * wy - y * wz
                    system[3 * j + 1, q] += x * wz - z * wx
                    system[3 * j + 2, q] += y * wx - x * wy
            else:
                row = parameters + slot[node]
                system[3 * j, row + 1] += z
                system[3 * j, row + 2] -= y
                system[3 * j + 1, row + 2] += x
                system[3 * j + 1, row] -= z
                system[3 * j + 2, row] += y
                system[3 * j + 2, row + 1] -= x


@njit(cache=True, nogil=True, error_model="numpy")
def _replace_hinge(lines, slot, i, j, corner, vectors, motion, parameters, system):  # type: ignore[no-untyped-def]
    """The part of a face's equations along d becomes -a . omega of the hinge's node."""
    d, a = vectors[0], vectors[1]
    for q in range(system.shape[1]):
        along = d[0] * system[3 * j, q] + d[1] * system[3 * j + 1, q] + d[2] * system[3 * j + 2, q]
        for axis in range(3):
            system[3 * j + axis, q] -= along * d[axis]
    if corner < 2:
        first = 3 * (j + corner)
        for q in range(parameters):
            turning = a[0] * motion[first, q] + a[1] * motion[first + 1, q] + a[2] * motion[first + 2, q]
            for axis in range(3):
                system[3 * j + axis, q] -= turning * d[axis]
    else:
        row = parameters + slot[lines[i + 1, j + corner - 2]]
        for turn in range(3):
            for axis in range(3):
                system[3 * j + axis, row + turn] -= a[turn] * d[axis]


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
