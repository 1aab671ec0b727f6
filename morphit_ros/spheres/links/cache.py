"""Fits of link shapes kept on disk, under a key made of everything that decides them."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write, cache_directory
from morphit_ros.spheres.configuration import SphereFitConfig

# Part of every key: raise it when the same input gives other spheres than before.
_FIT_VERSION = 5


@dataclass(frozen=True)
class ShapeFit:
    """The spheres of a link's shape, in the shape's frame.

    Attributes:
        centers, radii: (N, 3) and (N,) [m].
        d_avg, d_max: mean and greatest distance between the shape's surface and the spheres' [m].
        cover_margin: as of `SphereFitResult` [m].
        key: what made it.
    """

    centers: Array
    radii: Array
    d_avg: float
    d_max: float
    cover_margin: float | None
    key: str


def fit_key(shape_hash: str, config: SphereFitConfig, seed: int, start: tuple[Array, Array] | None) -> str:
    """Identifies a fit: the shape, the settings with their count, the seed, and the spheres it started from."""
    digest = hashlib.sha256(json.dumps([_FIT_VERSION, shape_hash, seed, config.to_flat()], sort_keys=True).encode())
    if start is not None:
        for array in start:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read_fit(key: str) -> ShapeFit | None:
    """The fit kept under a key; None if there is none or its file is damaged."""
    try:
        with np.load(_path(key), allow_pickle=False) as data:
            centers, radii = data["centers"], data["radii"]
            d_avg, d_max, margin = data["figures"].tolist()
    # The readers of a damaged archive raise whatever the damaged byte makes them stumble over.
    except Exception:  # noqa: BLE001
        return None
    if radii.ndim != 1 or centers.shape != (len(radii), 3) or len(radii) == 0:
        return None
    if not (np.isfinite(centers).all() and np.isfinite(radii).all() and (radii > 0.0).all()):
        return None
    if not 0.0 <= d_avg <= d_max < np.inf:
        return None
    return ShapeFit(centers, radii, d_avg, d_max, None if np.isnan(margin) else margin, key)


def keep_fit(fit: ShapeFit) -> None:
    """Write a fit under its key; an interrupt leaves no file, or the previous one.

    Nothing is kept where the folder cannot be written: a full disk costs the next fit time, not this one its result.
    """
    margin = np.nan if fit.cover_margin is None else fit.cover_margin
    with contextlib.suppress(OSError), atomic_write(_path(fit.key), "wb") as stream:
        np.savez(stream, centers=fit.centers, radii=fit.radii, figures=np.array([fit.d_avg, fit.d_max, margin]))


def _path(key: str) -> Path:
    return cache_directory("spheres") / f"{key}.npz"
