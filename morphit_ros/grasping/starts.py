"""Start poses for the fits: antipodal pairs of the cloud, and k-means centres with principal axes.

All directions are built from the data and the preferred approach, so that starts move with the
object: the same seed on a moved cloud gives the moved starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.correspondences import Index


@dataclass(frozen=True)
class Starts:
    """Start poses; S of them.

    Attributes:
        rotations: (S, 3, 3), columns x, y (closing), z (approach).
        translations: (S, 3) [m].
        widths: (S,) distance of the two surfaces along y [m].
    """

    rotations: Array
    translations: Array
    widths: Array

    def __len__(self) -> int:
        return len(self.widths)

    def select(self, index: NDArray[np.bool_] | Index) -> Starts:
        """The starts that a mask or an index array names."""
        return Starts(self.rotations[index], self.translations[index], self.widths[index])


@dataclass(frozen=True)
class AntipodalPairs:
    """Pairs of points that two opposing fingers could touch.

    Attributes:
        first, second: (P,) indices of the points on finger 1 and finger 2.
        narrowest_rejected: smallest width [m] among pairs wider than the gripper opens, inf if none.
        too_wide: number of seeds that found only such pairs.
        alone: number of seeds that found no opposing surface at all.
    """

    first: Index
    second: Index
    narrowest_rejected: float
    too_wide: int
    alone: int


@numba.njit(cache=True)
def _find_partners(
    points: Array, normals: Array, seeds: Index, draws: Array, radius: float, cosine: float, low: float, high: float
) -> tuple[Index, Array]:
    """Partner (or −1) of each seed, and the least width beyond `high` that it met (inf if none)."""
    partners = np.full(seeds.shape[0], -1, np.int64)
    wider = np.full(seeds.shape[0], np.inf)
    found = np.empty(points.shape[0], np.int64)
    for s in range(seeds.shape[0]):
        i = seeds[s]
        count = 0
        for j in range(points.shape[0]):
            dx = points[j, 0] - points[i, 0]
            dy = points[j, 1] - points[i, 1]
            dz = points[j, 2] - points[i, 2]
            depth = -(dx * normals[i, 0] + dy * normals[i, 1] + dz * normals[i, 2])
            if depth < low or dx * dx + dy * dy + dz * dz - depth * depth > radius * radius:
                continue
            opposing = -(normals[i, 0] * normals[j, 0] + normals[i, 1] * normals[j, 1] + normals[i, 2] * normals[j, 2])
            if opposing < cosine:
                continue
            if depth > high:
                wider[s] = min(wider[s], depth)
            else:
                found[count] = j
                count += 1
        if count > 0:
            partners[s] = found[int(draws[s] * count)]
    return partners, wider


def antipodal_pairs(
    points: Array,
    normals: Array,
    count: int,
    min_width: float,
    max_width: float,
    opposing_angle: float,
    rng: np.random.Generator,
    radius: float = 0.004,
) -> AntipodalPairs:
    """Pairs drawn from the cloud: a seed, and a point behind it along its normal that faces the other way.

    Args:
        points, normals: (N, 3) cloud, normals outwards.
        count: seeds drawn, with replacement.
        min_width, max_width: limits of the distance of a pair [m].
        opposing_angle: largest deviation of the two normals from opposite [rad].
        rng: source of randomness.
        radius: largest distance of the partner from the seed's normal line [m].
    """
    seeds = rng.integers(len(points), size=count)
    draws = rng.random(count)
    partners, wider = _find_partners(
        points, normals, seeds, draws, radius, math.cos(opposing_angle), min_width, max_width
    )
    paired = partners >= 0
    wide = ~paired & np.isfinite(wider)
    narrowest = float(wider[wide].min()) if wide.any() else math.inf
    return AntipodalPairs(seeds[paired], partners[paired], narrowest, int(wide.sum()), int((~paired & ~wide).sum()))


def starts_from_pairs(points: Array, normals: Array, pairs: AntipodalPairs, frame: Array, angles: Array) -> Starts:
    """One start a pair and approach angle, midway between the points.

    Args:
        points, normals: (N, 3) cloud.
        pairs: P pairs.
        frame: (2, 3) direction that angle 0 is closest to, and another for pairs along the first.
        angles: (A,) approach angles about the closing direction [rad].
    """
    y = normals[pairs.first] - normals[pairs.second]
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    middle = 0.5 * (points[pairs.first] + points[pairs.second])
    widths = np.einsum("ij,ij->i", points[pairs.first] - points[pairs.second], y)
    return _spread(y, middle, widths, frame, angles)


def starts_from_clusters(
    points: Array, cluster_size: float, max_width: float, frame: Array, angles: Array, rng: np.random.Generator
) -> Starts:
    """Starts at the centres of k-means clusters, closing along their principal axes.

    They need no normals: an object seen from one side only still gets starts.

    Args:
        points: (N, 3) cloud.
        cluster_size: aimed diameter of a cluster [m]; gives k.
        max_width: clusters wider than this along an axis do not close along it [m].
        frame, angles: as in `starts_from_pairs`.
        rng: source of randomness.
    """
    # Not the axis-aligned box, which changes when the object is turned.
    extent = 2.0 * float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
    k = min(max(1, round(extent / cluster_size)), 12, len(points))
    centers = points[rng.choice(len(points), size=k, replace=False)]
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(10):
        labels = np.argmin(((points[:, None, :] - centers[None]) ** 2).sum(axis=2), axis=1)
        centers = np.array([points[labels == c].mean(axis=0) if (labels == c).any() else centers[c] for c in range(k)])
    axes, middles, widths = [], [], []
    for c in range(k):
        members = points[labels == c]
        if len(members) < 4:
            continue
        offsets = members - centers[c]
        directions = np.linalg.eigh(offsets.T @ offsets)[1].T
        for axis in directions:
            # The sign of an eigenvector is arbitrary: let it follow the data, or seeds would not move with the object.
            axis = axis if ((offsets @ axis) ** 3).sum() >= 0.0 else -axis
            along = offsets @ axis
            low, high = np.quantile(along, (0.02, 0.98))
            if high - low > max_width:
                continue
            axes.append(axis)
            middles.append(centers[c] + 0.5 * (low + high) * axis)
            widths.append(high - low)
    return _spread(np.array(axes).reshape(-1, 3), np.array(middles).reshape(-1, 3), np.array(widths), frame, angles)


def _spread(y: Array, middle: Array, widths: Array, frame: Array, angles: Array) -> Starts:
    """Every closing direction with every approach angle about it."""
    along = np.abs(y @ frame[0]) > 0.995
    reference = np.where(along[:, None], frame[1], frame[0])
    z0 = reference - np.einsum("ij,ij->i", y, reference)[:, None] * y
    z0 /= np.maximum(np.linalg.norm(z0, axis=1, keepdims=True), 1e-12)
    x0 = np.cross(y, z0)
    cosine, sine = np.cos(angles)[None, :, None], np.sin(angles)[None, :, None]
    z = (cosine * z0[:, None] + sine * x0[:, None]).reshape(-1, 3)
    y_all = np.repeat(y, len(angles), axis=0)
    rotations = np.stack([np.cross(y_all, z), y_all, z], axis=2)
    return Starts(
        np.ascontiguousarray(rotations), np.repeat(middle, len(angles), axis=0), np.repeat(widths, len(angles))
    )
