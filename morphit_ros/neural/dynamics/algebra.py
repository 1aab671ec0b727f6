"""Small dense algebra without allocation, compiled."""

from __future__ import annotations

import math

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner


@inner
def rotation_of(q: Array, R: Array) -> None:
    """Fills R (3, 3) from a unit quaternion xyzw."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    R[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    R[0, 1] = 2.0 * (x * y - z * w)
    R[0, 2] = 2.0 * (x * z + y * w)
    R[1, 0] = 2.0 * (x * y + z * w)
    R[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    R[1, 2] = 2.0 * (y * z - x * w)
    R[2, 0] = 2.0 * (x * z - y * w)
    R[2, 1] = 2.0 * (y * z + x * w)
    R[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@inner
def times(R: Array, a: Array, out: Array) -> None:
    """out = R a."""
    x, y, z = a[0], a[1], a[2]
    for i in range(3):
        out[i] = R[i, 0] * x + R[i, 1] * y + R[i, 2] * z


@inner
def transposed_times(R: Array, a: Array, out: Array) -> None:
    """out = Rᵀ a."""
    x, y, z = a[0], a[1], a[2]
    for i in range(3):
        out[i] = R[0, i] * x + R[1, i] * y + R[2, i] * z


@inner
def cross(a: Array, b: Array, out: Array) -> None:
    """out = a × b."""
    x = a[1] * b[2] - a[2] * b[1]
    y = a[2] * b[0] - a[0] * b[2]
    z = a[0] * b[1] - a[1] * b[0]
    out[0], out[1], out[2] = x, y, z


@inner
def skew(a: Array, out: Array) -> None:
    """out = [a], the matrix of a ×."""
    out[0, 0], out[0, 1], out[0, 2] = 0.0, -a[2], a[1]
    out[1, 0], out[1, 1], out[1, 2] = a[2], 0.0, -a[0]
    out[2, 0], out[2, 1], out[2, 2] = -a[1], a[0], 0.0


@inner
def multiply(a: Array, b: Array, out: Array) -> None:
    """out = a b, of any sizes."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            value = a[i, k]
            if value != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += value * b[k, j]


@inner
def copy(a: Array, out: Array) -> None:
    """out = a, of any sizes."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]


@inner
def eliminate(a: Array, b: Array) -> bool:
    """Solves a x = b in place (x in b) for a (n, n), b (n, k), by elimination with pivots; False if singular."""
    if not _eliminate_forward(a, b):
        return False
    n, k = a.shape[0], b.shape[1]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            value = a[i, j]
            if value != 0.0:
                for h in range(k):
                    b[i, h] -= value * b[j, h]
        inverse = 1.0 / a[i, i]
        for h in range(k):
            b[i, h] *= inverse
    return True


@inner
def _eliminate_forward(a: Array, b: Array) -> bool:
    """The same, as far as a triangle: what is left of `a` below its diagonal is not cleared."""
    n, k = a.shape[0], b.shape[1]
    for i in range(n):
        pivot, best = i, abs(a[i, i])
        for j in range(i + 1, n):
            if abs(a[j, i]) > best:
                pivot, best = j, abs(a[j, i])
        if not best > 0.0 or not math.isfinite(best):
            return False
        if pivot != i:
            for j in range(i, n):
                a[i, j], a[pivot, j] = a[pivot, j], a[i, j]
            for j in range(k):
                b[i, j], b[pivot, j] = b[pivot, j], b[i, j]
        inverse = 1.0 / a[i, i]
        for j in range(i + 1, n):
            factor = a[j, i] * inverse
            if factor != 0.0:
                for h in range(i + 1, n):
                    a[j, h] -= factor * a[i, h]
                for h in range(k):
                    b[j, h] -= factor * b[i, h]
    return True
