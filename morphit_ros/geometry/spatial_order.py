"""Points in the order of a Hilbert curve through their bounding box: neighbours in the list are neighbours in space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


def hilbert_codes(points: Array, bits: int = 20) -> NDArray[np.int64]:
    """Place (P,) of each of the points (P, 3) along the curve through 2^bits cells along the box's longest side."""
    if len(points) == 0:
        return np.empty(0, dtype=np.int64)
    low = points.min(axis=0)
    # One cell size for all axes keeps neighbourhoods round in flat and long boxes.
    side = float((points.max(axis=0) - low).max())
    return _hilbert_codes(np.ascontiguousarray(points), low, (2**bits - 1) / side if side > 0.0 else 0.0, bits)


def order_of_codes(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Stable ``argsort`` of codes that are not negative, 16 bits at a time: NumPy sorts these by counting."""
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while len(codes) and int(codes.max()) >> shift:
        order = order[np.argsort((codes[order] >> shift & 0xFFFF).astype(np.uint16), kind="stable")]
        shift += 16
    return order


@njit(cache=True, nogil=True)
def _hilbert_codes(points, low, cells_per_metre, bits):  # type: ignore[no-untyped-def]
    """Skilling 2004: axes to the transposed Hilbert index, then its bits interleaved."""
    codes = np.empty(len(points), dtype=np.int64)
    x = np.empty(3, dtype=np.int64)
    for p in range(len(points)):
        for axis in range(3):
            x[axis] = int((points[p, axis] - low[axis]) * cells_per_metre)
        bit = 1 << (bits - 1)
        while bit > 1:
            mask = bit - 1
            for axis in range(3):
                if x[axis] & bit:
                    x[0] ^= mask
                else:
                    swapped = (x[0] ^ x[axis]) & mask
                    x[0] ^= swapped
                    x[axis] ^= swapped
            bit >>= 1
        x[1] ^= x[0]
        x[2] ^= x[1]
        flips = 0
        bit = 1 << (bits - 1)
        while bit > 1:
            if x[2] & bit:
                flips ^= bit - 1
            bit >>= 1
        code = 0
        for b in range(bits - 1, -1, -1):
            for axis in range(3):
                code = (code << 1) | (((x[axis] ^ flips) >> b) & 1)
        codes[p] = code
    return codes
