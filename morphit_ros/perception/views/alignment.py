"""Point-to-plane ICP between two views, restricted to what their overlap determines."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.spatial_hash import cells_around, nearest_facing
from morphit_ros.geometry.transforms import (
    Array,
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
)
from morphit_ros.jit import njit

# Matches must face the same way: the two sides of a wall are different surfaces.
_LEAST_NORMAL_COSINE = 0.7
# A direction of motion counts as determined if the normals' mean square component along it exceeds this.
# Normals scatter by about 3° = 0.05 rad, which alone gives 0.003.
_LEAST_INFORMATION = 0.01
# A stage ends once a step moves the overlap by less than this part of the matching distance.
_CONVERGED = 0.005
_SOURCE_POINTS = 3000


class Surface(NamedTuple):
    """Points (N, 3) and unit normals (N, 3) in one frame."""

    points: Array
    normals: Array


class Alignment(NamedTuple):
    """Outcome of `align`.

    Attributes:
        T_target_source: motion of the source that fits it to the target.
        residual: RMS point-to-plane distance of the matches at the last distance [m], NaN without matches.
        overlap: part of the source points with a match.
        constrained: number of determined directions of motion, 0 to 6.
    """

    T_target_source: Array
    residual: float
    overlap: float
    constrained: int


def sample_by_normal(surface: Surface, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of at most `count` points, spread evenly over directions of the normal.

    Normal-space sampling (Rusinkiewicz and Levoy 2001): the table must not outvote the objects.
    """
    if len(surface.points) <= count:
        return np.arange(len(surface.points))
    cells = np.round(surface.normals * 2.0).astype(np.int64) + 2
    codes = cells @ np.array([25, 5, 1])
    frequency = np.bincount(codes, minlength=125)
    # Gumbel top-k with weight 1 / frequency draws without replacement.
    scores = -np.log(frequency[codes]) + rng.gumbel(size=len(codes))
    return np.sort(np.argpartition(-scores, count)[:count])


def align(
    source: Surface, target: Surface, distances: list[float], iterations: int, rng: np.random.Generator
) -> Alignment:
    """Fit the source to the target, with a shrinking distance between matches.

    Minimises Σ w ((R p + t − q)·n)² over the nearest neighbours q with normal n (Chen and Medioni
    1992), w from Tukey's biweight at the present matching distance. Directions of motion that the
    matched normals do not determine are left as they are.

    Args:
        source: what is moved.
        target: where it is moved to.
        distances: largest distance of a match [m], one stage each.
        iterations: largest number of steps at each stage.
        rng: source of randomness for the samples.
    """
    total = np.eye(4)
    constrained = 0
    sample = rng.permutation(sample_by_normal(source, _SOURCE_POINTS, rng))
    for distance in distances:
        # The farther matches may be, the fewer points are needed: keeps the candidates per point constant.
        density = min(1.0, (distances[-1] / distance) ** 2)
        rows = sample[: int(_SOURCE_POINTS * max(density, 0.3))]
        points, directions = source.points[rows], source.normals[rows]
        kept = np.flatnonzero(rng.random(len(target.points)) <= density)
        grid = cells_around(target.points[kept], distance)
        normals = np.ascontiguousarray(target.normals[kept[grid.order]])
        for _ in range(iterations):
            moved = transform_points(total, points)
            turned = directions @ total[:3, :3].T
            step, constrained, size = _step(moved, turned, grid, normals, distance)
            total = step @ total
            if size < _CONVERGED * distance:
                break
    moved = transform_points(total, points)
    matches, offsets = _match(moved, directions @ total[:3, :3].T, grid, normals, distances[-1])
    found = matches >= 0
    residual = float(np.sqrt(np.mean(offsets[found] ** 2))) if found.any() else math.nan
    return Alignment(total, residual, float(found.mean()) if len(found) else 0.0, constrained)


def _step(moved: Array, turned: Array, grid: object, normals: Array, distance: float) -> tuple[Array, int, float]:
    """One Gauss-Newton step, the number of determined directions, and how far it moves the overlap [m]."""
    matches, offsets = _match(moved, turned, grid, normals, distance)
    found = np.flatnonzero(matches >= 0)
    if len(found) < 6:
        return np.eye(4), 0, 0.0
    n, r = normals[matches[found]], offsets[found]
    spread = 3.0 * max(float(np.median(np.abs(r))) * 1.4826, 1e-4)
    weights = np.square(np.maximum(0.0, 1.0 - np.square(r / spread)))
    center = moved[found].mean(axis=0)
    arms = moved[found] - center
    # Rotations in units of the overlap's size, so that one threshold serves all six directions.
    scale = max(float(np.sqrt(np.mean(np.sum(arms**2, axis=1)))), 1e-3)
    jacobian = np.hstack([np.cross(arms, n) / scale, n])
    information = (jacobian * weights[:, None]).T @ jacobian / max(float(weights.sum()), 1e-12)
    gradient = (jacobian * weights[:, None]).T @ r / max(float(weights.sum()), 1e-12)
    values, vectors = np.linalg.eigh(information)
    kept = values > _LEAST_INFORMATION
    motion = -vectors[:, kept] @ ((vectors[:, kept].T @ gradient) / values[kept])
    rotation = matrix_from_rotation_vector(motion[:3] / scale)
    step = make_transform(rotation, center - rotation @ center + motion[3:])
    return step, int(kept.sum()), float(np.linalg.norm(motion))


@njit(cache=True)
def _match(points, point_normals, grid, normals, distance):  # type: ignore[no-untyped-def]
    """Sorted row of the nearest compatible target point, −1 for none, and the distance to its plane."""
    matches = np.empty(points.shape[0], np.int64)
    offsets = np.zeros(points.shape[0])
    for row in range(points.shape[0]):
        point = (points[row, 0], points[row, 1], points[row, 2])
        normal = (point_normals[row, 0], point_normals[row, 1], point_normals[row, 2])
        other = nearest_facing(grid, normals, point, normal, distance, _LEAST_NORMAL_COSINE)
        matches[row] = other
        if other >= 0:
            for axis in range(3):
                offsets[row] += (point[axis] - grid.points[other, axis]) * normals[other, axis]
    return matches, offsets
