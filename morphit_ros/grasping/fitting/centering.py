"""Where along the pads a contact belongs: the shift that brings it well onto them."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


@njit(cache=True, nogil=True)
def centering(
    places: Array, slopes: Array, count: int, free: float, slack: float, covering: bool, largest: float
) -> float:
    """Shift along one axis of the pads that brings the contact well onto them [m].

    Where the surface is bent, n ≈ κ (q − q0) along the axis, the place q0 where its normals meet the pads straight
    comes within `slack` of their middle; where it is not, and `covering` is asked for, the middle of what the pads meet
    comes to their own, if they overhang it.

    Args:
        places, slopes: (≥ count,) q and n_q along the axis, of both fingers.
        count: number of pairs.
        free: overhang that is within the sampling of the cloud [m].
        slack: how far from the pads' middle the contact may be [m].
        covering: whether the middle of what is met counts.
        largest: bound of the shift [m].
    """
    mean_q, mean_n, low, high = 0.0, 0.0, np.inf, -np.inf
    for m in range(count):
        mean_q += places[m] / count
        mean_n += slopes[m] / count
        low, high = min(low, places[m]), max(high, places[m])
    qq, qn, nn = 0.0, 0.0, 0.0
    for m in range(count):
        q, n = places[m] - mean_q, slopes[m] - mean_n
        qq += q * q
        qn += q * n
        nn += n * n
    # Bent means a slope of at least six standard errors, and a radius below 0.2 m.
    error = max(nn - qn * qn / max(qq, 1e-18), 0.0) / max(count - 2, 1)
    if count >= 6 and qn > 5.0 * qq and qn * qn > 36.0 * error * qq:
        straight = mean_q - mean_n * qq / qn
        straight -= min(max(straight, -slack), slack)
        return min(max(straight, -largest), largest)
    middle = 0.5 * (low + high)
    if covering and abs(middle) > free:
        return min(max(middle, -largest), largest)
    return 0.0
