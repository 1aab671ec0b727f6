"""Cholesky factors of a banded symmetric matrix, compiled: linear in the number of rows.

A block-pentadiagonal matrix of blocks of V rows is one with a band of 3 V − 1 entries below the diagonal.
"""

from __future__ import annotations

from morphit_ros.jit import lean_njit


@lean_njit
def factorise(band, factor):  # type: ignore[no-untyped-def]
    """Fill the lower factor of a lower band (R, W), whose column W − 1 + j − i of row i is entry (i, j).

    Returns:
        whether the matrix is positive definite; if not, the factor is of no use.
    """
    rows, width = band.shape
    last = width - 1
    for i in range(rows):
        first = max(0, i - last)
        for j in range(first, i + 1):
            total = band[i, last + j - i]
            start = max(first, j - last)
            shift_i, shift_j = last - i, last - j
            for k in range(start, j):
                total -= factor[i, shift_i + k] * factor[j, shift_j + k]
            if j < i:
                factor[i, shift_i + j] = total * factor[j, last]
            elif total > 0.0:
                # The diagonal is kept as its inverse: a product where there would be a quotient.
                factor[i, last] = 1.0 / total**0.5
            else:
                return False
    return True


@lean_njit
def solve(factor, vector):  # type: ignore[no-untyped-def]
    """vector (R,) ← matrix⁻¹ vector, with the factor of `factorise`."""
    rows, width = factor.shape
    last = width - 1
    for i in range(rows):
        total = vector[i]
        for j in range(max(0, i - last), i):
            total -= factor[i, last + j - i] * vector[j]
        vector[i] = total * factor[i, last]
    for i in range(rows - 1, -1, -1):
        value = vector[i] * factor[i, last]
        vector[i] = value
        for j in range(max(0, i - last), i):
            vector[j] -= factor[i, last + j - i] * value


@lean_njit
def multiply(band, vector, product):  # type: ignore[no-untyped-def]
    """product (R,) = matrix · vector of a lower band."""
    rows, width = band.shape
    last = width - 1
    for i in range(rows):
        product[i] = 0.0
    for i in range(rows):
        for j in range(max(0, i - last), i):
            entry = band[i, last + j - i]
            product[i] += entry * vector[j]
            product[j] += entry * vector[i]
        product[i] += band[i, last] * vector[i]
