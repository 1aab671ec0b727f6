"""Which points of a cloud come first in a view from far away, and which sides of their surfaces such a view meets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.outward_normals import sphere_directions
from morphit_ros.geometry.transforms import Array, plane_axes
from morphit_ros.jit import njit

# What could be seen shows in more than this share of the views from above.
_OFTEN = 0.1
# Of a pixel: a point in front of another's tangent plane by more hides it.
_BEFORE = 0.4
# A surface that a view grazes shows neither side [cosine].
GRAZING = 0.1


class Views(NamedTuple):
    """What D views of N points meet.

    Attributes:
        first: (D, N) whether nothing of the cloud is in front of a point, and its surface isn't grazed.
        fronts: (D,) share of the first points that show their outer side: of a closed surface, or of what a camera
            saw from there, nearly all; of a shell that is looked into through the side that no camera saw, few.
    """

    first: NDArray[np.bool_]
    fronts: Array


def look_from(points: Array, normals: Array, directions: Array, pixel: float) -> Views:
    """Views of a cloud from far away.

    Args:
        points, normals: (N, 3) and their outward unit normals (N, 3).
        directions: (D, 3) unit vectors towards the eyes.
        pixel: size of a pixel, no smaller than the points' spacing [m].
    """
    first = _first_seen(points, normals, _frames(directions), pixel, _BEFORE * pixel)
    facing = directions @ normals.T > 0.0
    fronts = (first & facing).sum(axis=1) / np.maximum(first.sum(axis=1), 1)
    return Views(first, fronts)


def _frames(directions: Array) -> Array:
    """(D, 3, 3) rows: two directions across a view, and the one towards the eye."""
    return np.array([[*plane_axes(direction), direction] for direction in directions])


def seen_share(
    points: Array, normals: Array, up: Array, pixel: float, depth: float, rise: float = 0.26, views: int = 120
) -> float:
    """Share of the points that cameras above could have seen, from one side or the other, were they all around.

    Args:
        points: (N, 3) [m].
        normals: (N, 3) unit normals of either sign.
        up: (3,) unit vector.
        pixel: of the views, no smaller than the points' spacing [m].
        depth: a point hides another if it is so far in front of the other's tangent plane [m].
        rise: sine of the least elevation of the cameras.
        views: spread over the whole sphere, of which those above are taken.
    """
    directions = sphere_directions(views)
    directions = directions[directions @ up > rise]
    first = _first_seen(points, normals, _frames(directions), pixel, depth)
    # Through gaps of the sampling nearly everything shows from somewhere.
    return float((first.mean(axis=0) > _OFTEN).mean())


def _first_seen(points: Array, normals: Array, frames: Array, pixel: float, depth: float) -> NDArray[np.bool_]:
    first = np.zeros((len(frames), len(points)), np.bool_)
    _look(np.ascontiguousarray(points), np.ascontiguousarray(normals), frames, pixel, depth, first)
    return first


@njit(cache=True, nogil=True)
def _look(points: Array, normals: Array, frames: Array, pixel: float, depth: float, first: NDArray[np.bool_]) -> None:
    """Whether in a view nothing is in front of each point; surfaces that are grazed are not seen."""
    count = points.shape[0]
    following = np.empty(count, np.int64)
    local = np.empty((count, 3))
    for k in range(frames.shape[0]):
        for i in range(count):
            for axis in range(3):
                local[i, axis] = (
                    frames[k, axis, 0] * points[i, 0]
                    + frames[k, axis, 1] * points[i, 1]
                    + frames[k, axis, 2] * points[i, 2]
                )
        left, top = local[:, 0].min(), local[:, 1].min()
        width, height = int((local[:, 0].max() - left) / pixel) + 3, int((local[:, 1].max() - top) / pixel) + 3
        heads = np.full((width, height), -1, np.int64)
        for i in range(count):
            a, b = int((local[i, 0] - left) / pixel) + 1, int((local[i, 1] - top) / pixel) + 1
            following[i] = heads[a, b]
            heads[a, b] = i
        for i in range(count):
            slope = 0.0
            for axis in range(3):
                slope += normals[i, axis] * frames[k, 2, axis]
            if abs(slope) < GRAZING:
                continue
            a, b = int((local[i, 0] - left) / pixel) + 1, int((local[i, 1] - top) / pixel) + 1
            hidden = False
            for da in range(-1, 2):
                for db in range(-1, 2):
                    j = heads[a + da, b + db]
                    while j >= 0 and not hidden:
                        across = (local[j, 0] - local[i, 0]) ** 2 + (local[j, 1] - local[i, 1]) ** 2
                        if local[j, 2] > local[i, 2] and across <= pixel * pixel:
                            ahead = 0.0
                            for axis in range(3):
                                ahead += (points[j, axis] - points[i, axis]) * normals[i, axis]
                            hidden = (ahead if slope > 0.0 else -ahead) > depth
                        j = following[j]
            first[k, i] = not hidden
