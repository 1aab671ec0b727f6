"""Volume, centre and second moment of a body, and how far two of them differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array


class VolumeMoments(NamedTuple):
    """Volume [m^3], its centre (3,) [m] and ∫ (x − centre)(x − centre)ᵀ (3, 3) [m^5]."""

    volume: float
    center: Array
    second_moment: Array


def tensor(second_moment: Array) -> Array:
    """(3, 3) tensor of inertia ∫ (xᵀx·1 − xxᵀ) of a second moment ∫ xxᵀ (3, 3)."""
    return np.trace(second_moment) * np.eye(3) - second_moment


def difference(a: VolumeMoments, b: VolumeMoments) -> Array:
    """(4,) how far b is from a: volume (relative), centre [m], tensor per volume and tensor (relative)."""
    if b.volume <= 0.0:
        return np.array([1.0, np.linalg.norm(np.sqrt(np.diag(a.second_moment / a.volume))), 1.0, 1.0])
    per_volume_a, per_volume_b = tensor(a.second_moment / a.volume), tensor(b.second_moment / b.volume)
    return np.array(
        [
            abs(b.volume / a.volume - 1.0),
            np.linalg.norm(b.center - a.center),
            np.linalg.norm(per_volume_b - per_volume_a) / np.linalg.norm(per_volume_a),
            np.linalg.norm(b.volume * per_volume_b - a.volume * per_volume_a)
            / np.linalg.norm(a.volume * per_volume_a),
        ]
    )  # fmt: skip
