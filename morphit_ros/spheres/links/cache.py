"""Fits of link shapes kept on disk, under a key made of everything that decides them.

A file is what it was written as, or is not used: it holds a hash of its key and contents. That finds damage and files
in the wrong place, not forgery; what spheres are said to be is measured and proven again by whoever reads them (`fit`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.array_files import read_arrays
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write, cache_directory
from morphit_ros.spheres.configuration import SphereFitConfig

# Part of every key: raise it when the same input gives other spheres than before.
_FIT_VERSION = 6


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
        data = read_arrays(_path(key))
        centers, radii, figures = data["centers"], data["radii"], data["figures"]
        if data["content_hash"].tobytes() != _content_hash(key, centers, radii, figures).tobytes():
            return None
        d_avg, d_max, margin = figures.tolist()
    except (OSError, ValueError, TypeError, LookupError):
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
    figures = np.array([fit.d_avg, fit.d_max, np.nan if fit.cover_margin is None else fit.cover_margin])
    content_hash = _content_hash(fit.key, fit.centers, fit.radii, figures)
    with contextlib.suppress(OSError), atomic_write(_path(fit.key), "wb") as stream:
        np.savez(stream, centers=fit.centers, radii=fit.radii, figures=figures, content_hash=content_hash)


def _content_hash(key: str, *arrays: Array) -> NDArray[np.uint8]:
    digest = hashlib.sha256(key.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _path(key: str) -> Path:
    return cache_directory("spheres") / f"{key}.npz"
