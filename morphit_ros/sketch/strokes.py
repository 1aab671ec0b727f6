"""What a stroke of a mouse, a pen or a finger means: a chain of bones with corners, or an ellipse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, plane_axes
from morphit_ros.sketch.model import LARGEST_LENGTH

MOST_POINTS = 20_000
# Shares of a stroke's extent: what counts as trembling, and the shortest bone.
_TREMBLING, _SHORTEST = 0.03, 0.06
# A corner turns by more [rad].
_CORNER = 0.3
# The flattest ellipse that is one: width over length.
_FLATTEST = 0.02


@dataclass(frozen=True)
class DrawnEllipse:
    """An ellipse in the plane of drawing.

    Attributes:
        center: (3,) [m].
        axes: (2, 3) unit vectors, the longer semi-axis first.
        semi_axes: (2,) [m].
    """

    center: Array
    axes: Array
    semi_axes: Array


def stroke_corners(points: ArrayLike) -> Array:
    """Ends and corners (M, 3), M ≥ 2, of a stroke of points (N, 3) [m] in the order in which they were drawn.

    Points within a few hundredths of the stroke's extent of a chord are trembling (Ramer, Douglas and Peucker);
    corners that turn little or lie close to each other are none.

    Raises:
        InvalidInputError: no points, too many, not finite, or all in one place.
    """
    drawn = _checked_stroke(points)
    size = _extent(drawn)
    corners = drawn[_kept_points(drawn, _TREMBLING * size)]
    while len(corners) > 2:
        ways = np.diff(corners, axis=0)
        lengths = np.linalg.norm(ways, axis=1)
        cosines = (ways[:-1] * ways[1:]).sum(axis=1) / (lengths[:-1] * lengths[1:])
        turns = np.arccos(np.clip(cosines, -1.0, 1.0))
        # The inner corner beside a way that is too short goes, that which turns less.
        short = lengths < _SHORTEST * size
        doubtful = (turns < _CORNER) | short[:-1] | short[1:]
        if not doubtful.any():
            break
        corners = np.delete(corners, 1 + int(np.argmin(np.where(doubtful, turns, np.inf))), axis=0)
    return corners


def stroke_ellipse(points: ArrayLike, normal: ArrayLike) -> DrawnEllipse:
    """The ellipse that a stroke (N, 3) [m] goes round: of the area and the moments of the stroke's convex hull.

    A stroke that isn't closed, goes round twice or crosses itself has a hull all the same.

    Raises:
        InvalidInputError: as of `stroke_corners`; a normal (3,) of no length; a stroke that is nearly straight.
    """
    from scipy.spatial import ConvexHull, QhullError

    drawn, across = _checked_stroke(points), np.asarray(normal, dtype=np.float64)
    if across.shape != (3,) or not np.isfinite(across).all() or np.linalg.norm(across) < 1e-9:
        raise InvalidInputError("normal", across.tolist(), "a vector that is not zero")
    axes = plane_axes(across / np.linalg.norm(across))
    middle = 0.5 * (drawn.min(axis=0) + drawn.max(axis=0))
    flat = (drawn - middle) @ axes.T
    bound = f"a closed line at least {_FLATTEST:g} times as wide as long"
    try:
        corners = flat[ConvexHull(flat).vertices]
    except QhullError as error:
        raise InvalidInputError("stroke", "a straight line", bound) from error
    area, center, covariance = _polygon_moments(corners)
    values, vectors = np.linalg.eigh(covariance)
    # Of an ellipse a quarter of the squared semi-axes is its covariance.
    semi_axes = 2.0 * np.sqrt(np.maximum(values[::-1], 0.0))
    if not area > 0.0 or semi_axes[1] < _FLATTEST * semi_axes[0]:
        raise InvalidInputError("stroke", "a straight line", bound)
    return DrawnEllipse(middle + center @ axes, vectors.T[::-1] @ axes, semi_axes)


def _checked_stroke(points: ArrayLike) -> Array:
    """Points (N, 3) of a stroke [m], one after the other apart.

    Raises:
        InvalidInputError: as of `stroke_corners`.
    """
    drawn = np.asarray(points, dtype=np.float64)
    if drawn.ndim != 2 or drawn.shape[1] != 3 or len(drawn) > MOST_POINTS:
        raise InvalidInputError("stroke", f"shape {drawn.shape}", f"points (N, 3), at most {MOST_POINTS}")
    if not np.isfinite(drawn).all() or (len(drawn) and np.abs(drawn).max() > LARGEST_LENGTH):
        raise InvalidInputError("stroke", "points that are not finite or far away", f"within {LARGEST_LENGTH:g} m")
    if len(drawn):
        apart = np.linalg.norm(np.diff(drawn, axis=0), axis=1) > 0.0
        drawn = drawn[np.concatenate([[True], apart])]
    if len(drawn) < 2 or _extent(drawn) < 1e-6:
        raise InvalidInputError("stroke", f"{len(drawn)} points in one place", "a line", "Keep the button down.")
    return drawn


def _extent(points: Array) -> float:
    """Diagonal of the box around points (N, 3) [m]."""
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def _kept_points(points: Array, tolerance: float) -> list[int]:
    """Rows of the points that a line keeps within a tolerance [m] of all."""
    kept, waiting = {0, len(points) - 1}, [(0, len(points) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        way = points[last] - points[first]
        length = float(way @ way)
        inner = points[first + 1 : last] - points[first]
        shares = np.clip(inner @ way / length, 0.0, 1.0) if length > 0.0 else np.zeros(len(inner))
        far = np.linalg.norm(inner - shares[:, None] * way, axis=1)
        worst = int(np.argmax(far))
        if far[worst] > tolerance:
            corner = first + 1 + worst
            kept.add(corner)
            waiting += [(first, corner), (corner, last)]
    return sorted(kept)


def _polygon_moments(corners: Array) -> tuple[float, Array, Array]:
    """Area, centroid (2,) and covariance (2, 2) of the inside of a convex polygon (N, 2), corners in turn."""
    x, y = corners.T
    x2, y2 = np.roll(x, -1), np.roll(y, -1)
    cross = x * y2 - x2 * y
    area = 0.5 * float(cross.sum())
    if abs(area) < 1e-18:
        return 0.0, np.zeros(2), np.zeros((2, 2))
    center = np.array([((x + x2) * cross).sum(), ((y + y2) * cross).sum()]) / (6.0 * area)
    xx = float(((x * x + x * x2 + x2 * x2) * cross).sum()) / (12.0 * area)
    yy = float(((y * y + y * y2 + y2 * y2) * cross).sum()) / (12.0 * area)
    xy = float(((x * y2 + 2.0 * x * y + 2.0 * x2 * y2 + x2 * y) * cross).sum()) / (24.0 * area)
    second = np.array([[xx, xy], [xy, yy]]) - np.outer(center, center)
    return abs(area), center, second
