"""Distance of shapes with dents themselves, where that of their hulls isn't the answer.

The hulls' distance is a lower bound, and the answer wherever its closest points belong to the shapes. Elsewhere the
surfaces are sampled, Newton's method for the common normal is started from the nearest pairs of samples on the
surfaces themselves, and the least distance found is an upper bound. Only where both meet is the result certified.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.bodies import RelativePose, relative_pose, to_first, turn_to_second
from morphit_ros.superovoid.distances.common_normal import advance, chart_contact, meet
from morphit_ros.superovoid.distances.min_distance import DEFAULT_CONFIG, DistanceConfig, DistanceResult, min_distance
from morphit_ros.superovoid.distances.queries import (
    CERTIFIED,
    CHARTS,
    DISTANCE,
    NORMAL,
    OF_HULL,
    POINTS,
    STATUS,
    UNCERTIFIED,
    UPPER,
    is_in_superovoid,
)
from morphit_ros.superovoid.distances.solver import CERTIFIED_GAP
from morphit_ros.superovoid.distances.support import FAST, Body, body_from_parameters, surface_frame
from morphit_ros.superovoid.shapes.superovoid import Superovoid

_SAMPLES = 400
_STARTS = 24
_STEPS = 30


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _sample(body: Body, charts: NDArray, points: NDArray) -> None:
    """Charts and points (N, 3) spread over a surface (Fibonacci's lattice on the charts)."""
    count = len(charts)
    for k in range(count):
        z = 1.0 - (2.0 * k + 1.0) / count
        r = math.sqrt(1.0 - z * z)
        angle = k * math.pi * (3.0 - math.sqrt(5.0))
        charts[k, 0], charts[k, 1], charts[k, 2] = r * math.cos(angle), r * math.sin(angle), z
        frame = surface_frame(body, charts[k, 0], charts[k, 1], charts[k, 2])
        points[k, 0], points[k, 1], points[k, 2] = frame[0], frame[1], frame[2]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _is_in_first(body1: Body, x: float, y: float, z: float) -> bool:
    return abs(z) <= body1.a3 and is_in_superovoid(body1, x, y, z)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def nearest_surface_pair(body1: Body, body2: Body, pose: RelativePose, best: NDArray) -> tuple[float, bool]:
    """Least distance between two surfaces that sampling and Newton's method find, and whether the solids meet.

    `best` (15,) receives normal, points in frame 1, and charts.
    """
    charts1, points1 = np.empty((_SAMPLES, 3)), np.empty((_SAMPLES, 3))
    charts2, points2 = np.empty((_SAMPLES, 3)), np.empty((_SAMPLES, 3))
    _sample(body1, charts1, points1)
    _sample(body2, charts2, points2)
    for j in range(_SAMPLES):
        x, y, z = to_first(pose, points2[j, 0], points2[j, 1], points2[j, 2])
        points2[j, 0], points2[j, 1], points2[j, 2] = x, y, z
        if _is_in_first(body1, x, y, z):
            return 0.0, True
    partners = np.empty(_SAMPLES, dtype=np.int64)
    squares = np.empty(_SAMPLES)
    for i in range(_SAMPLES):
        x, y, z = points1[i, 0], points1[i, 1], points1[i, 2]
        u, v, w = turn_to_second(pose, x - pose.x, y - pose.y, z - pose.z)
        if _is_in_first(body2, u, v, w):
            return 0.0, True
        squares[i] = math.inf
        for j in range(_SAMPLES):
            d = (x - points2[j, 0]) ** 2 + (y - points2[j, 1]) ** 2 + (z - points2[j, 2]) ** 2
            if d < squares[i]:
                squares[i] = d
                partners[i] = j
    order = np.argsort(squares)
    least = math.inf
    system = np.empty((4, 5))
    for start in range(_STARTS):
        i = order[start]
        j = partners[i]
        contact1 = chart_contact(charts1[i, 0], charts1[i, 1], charts1[i, 2])
        contact2 = chart_contact(charts2[j, 0], charts2[j, 1], charts2[j, 2])
        for _ in range(_STEPS):
            step = meet(body1, body2, pose, contact1, contact2)
            d1, d2, d3 = step.q1 - step.p1, step.q2 - step.p2, step.q3 - step.p3
            length = math.sqrt(d1 * d1 + d2 * d2 + d3 * d3)
            inner = _is_in_first(body1, step.q1, step.q2, step.q3)
            if step.height < 0.0 and inner and step.angle < 1e-6:
                return 0.0, True
            # Any two surface points are an upper bound, as long as the solids don't meet.
            if length < least:
                least = length
                i1 = 1.0 / length if length > 0.0 else 0.0
                best[0], best[1], best[2] = d1 * i1, d2 * i1, d3 * i1
                best[3], best[4], best[5] = step.p1, step.p2, step.p3
                best[6], best[7], best[8] = step.q1, step.q2, step.q3
                best[9], best[10], best[11] = contact1.u1, contact1.u2, contact1.u3
                best[12], best[13], best[14] = contact2.u1, contact2.u2, contact2.u3
            contact1, contact2, ok, turn = advance(body1, body2, pose, contact1, contact2, step, system)
            if not ok or turn < 1e-13:
                break
    return least, False


def shape_distance(
    a: Superovoid,
    T_world_a: ArrayLike,
    b: Superovoid,
    T_world_b: ArrayLike,
    config: DistanceConfig = DEFAULT_CONFIG,
) -> DistanceResult:
    """Signed distance of two superovoids themselves, dents included.

    Args:
        T_world_a, T_world_b: poses (4, 4).

    The result is that of `min_distance` where this is the shapes' own. Otherwise its distance is the least that was
    found between the surfaces, its lower bound that of the hulls, and it is certified where the two meet. Where the
    shapes themselves meet, the depth is that of the hulls, an upper bound of their own, and `of_hull` says so.

    Raises:
        InvalidInputError: a shape that is no superovoid, or a pose that is no rigid motion.
    """
    for name, shape in (("a", a), ("b", b)):
        if not isinstance(shape, Superovoid):
            raise InvalidInputError(name, type(shape).__name__, "a Superovoid", "Others have no dents: min_distance.")
    result = min_distance(a, T_world_a, b, T_world_b, config=config)
    if not result.of_hull:
        return result
    T1, T2 = check_transform(T_world_a, "T_world_a"), check_transform(T_world_b, "T_world_b")
    best = np.empty(15)
    body1, body2 = body_from_parameters(a.parameters, True), body_from_parameters(b.parameters, True)
    pose = relative_pose(np.ascontiguousarray(T1), np.ascontiguousarray(T2))
    distance, meet = nearest_surface_pair(body1, body2, pose, best)
    if meet:
        return result
    row: Array = result.row.copy()
    row[DISTANCE] = row[UPPER] = distance
    rotation, origin = T1[:3, :3], T1[:3, 3]
    row[NORMAL : NORMAL + 3] = rotation @ best[:3]
    row[POINTS : POINTS + 3] = rotation @ best[3:6] + origin
    row[POINTS + 3 : POINTS + 6] = rotation @ best[6:9] + origin
    row[CHARTS : CHARTS + 6] = best[9:15]
    size = max(*a.semi_axes, *b.semi_axes)
    row[STATUS] = CERTIFIED if abs(distance - result.lower_bound) <= CERTIFIED_GAP * size else UNCERTIFIED
    row[OF_HULL] = 0.0
    return DistanceResult.from_row(row)
