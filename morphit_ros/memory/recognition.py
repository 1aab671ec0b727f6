"""Whether a thing that is seen is one that was seen before, and how it lies: rigid registration of partial surfaces.

All turns are tried; the best are refined by symmetric point-to-plane ICP (Besl and McKay 1992; Rusinkiewicz 2019) and
judged by what they explain: points of one look on a surface of the other count for a pose, points where the other's
cameras saw that nothing is, or below its table, count against it. What the other never saw counts neither way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.nearest_grid import NearestGrid, nearest_grid, row_at
from morphit_ros.geometry.outward_normals import sphere_directions
from morphit_ros.geometry.thinning import Index, thin_evenly
from morphit_ros.geometry.transforms import (
    Array,
    make_transform,
    matrix_from_rpy,
    plane_axes,
    rotation_angle,
    transform_points,
)
from morphit_ros.jit import njit
from morphit_ros.memory.look import Look, is_empty, sightlines

# Points of either look: to search with, and to refine and judge by.
_FEW, _MANY = 150, 900
# Directions that a thing's axis is turned to, and turns about it.
_DIRECTIONS, _TURNS = 48, 16
# Poses that are refined, and how far apart these are at least [m], [rad].
_FINALISTS, _SHIFT, _TURN = 10, 0.01, math.radians(12.0)
# Largest distances of matches while searching and refining [m], and steps at each.
_COARSE, _FINE = (0.04, 0.02), np.array([0.012, 0.007, 0.005])
_COARSE_STEPS, _FINE_STEPS = 6, 12
# Of so many poses one goes on, twice.
_KEPT = 3
# A point is on a surface within this of its tangent plane, and of its nearest point [m].
_ON, _BESIDE = 0.004, 0.01
# A point this far before what was seen is where nothing is [m].
_CLEAR = 0.008
# Bounds of rough poses are wider by this.
_ROUGH = 2.0
# Surfaces that face otherwise are other ones [cosine].
_LEAST_COSINE = 0.5
# Two looks show one thing where at least this part of both surfaces lies on the other, and no larger part of either
# where the other's cameras saw that nothing is.
_LEAST_SHARED, _MOST_REFUTED = 0.4, 0.03
# Against a pose a point counts as much as so many for it.
_AGAINST = 4.0
_MOST_CELLS = 2_000_000


class Match(NamedTuple):
    """How one look explains another.

    Attributes:
        T_known_seen: (4, 4) from the frame of what is seen to that of what is known.
        shared: part of the points on a surface of the other look, of the look that has less of it.
        refuted: part of the points where the other look saw that nothing is, of the look that has more of it.
        error: root mean square of the shared points' distances from the tangent planes [m].
    """

    T_known_seen: Array
    shared: float
    refuted: float
    error: float

    @property
    def explains(self) -> bool:
        """Whether both looks may show one thing."""
        return self.shared >= _LEAST_SHARED and self.refuted <= _MOST_REFUTED

    @property
    def score(self) -> float:
        """More is better."""
        return self.shared - _AGAINST * self.refuted


class _Surface(NamedTuple):
    points: Array
    normals: Array
    grid: NearestGrid


class Shape:
    """A look made ready for comparisons; made once, compared often.

    Args:
        look: of the thing.
        seed: of the choice of points.

    Attributes:
        length: of its longest side, whichever way that points [m].
    """

    def __init__(self, look: Look, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.sight = sightlines(look)
        self.middle = look.middle
        extents = look.points @ sphere_directions(100).T
        self.length = float(np.ptp(extents, axis=0).max())
        self.few, self.many = (
            _surface(look, thin_evenly(look.points, look.normals, count, rng), size, reach)
            for count, size, reach in ((_FEW, 0.008, _COARSE[0]), (_MANY, 0.004, float(_FINE[0])))
        )


def register(known: Shape, seen: Shape, start: Array | None = None) -> Match:
    """The pose that explains both best, however badly.

    Args:
        known: of an earlier look.
        seen: of the present one.
        start: ``T_known_seen`` (4, 4), near which the pose is looked for; everywhere if None.
    """
    poses = _candidates(known, seen) if start is None else start[None].copy()
    judged = _fit(poses, seen.many, known.many, seen.sight, known.sight, _FINE, _FINE_STEPS, 1.0)
    best = int(np.argmax(_scores(judged)))
    shared, refuted, error = judged[best]
    return Match(poses[best], float(shared), float(refuted), float(error))


def _candidates(known: Shape, seen: Shape) -> Array:
    """(F, 4, 4): rough poses that explain most."""
    starts = _starts(known, seen)
    for distance in _COARSE:
        judged = _fit(starts, seen.few, known.few, seen.sight, known.sight, np.array([distance]), _COARSE_STEPS, _ROUGH)
        starts = starts[np.argsort(-_scores(judged), kind="stable")[: len(starts) // _KEPT]]
    chosen: list[Array] = []
    for pose in starts:
        if len(chosen) == _FINALISTS:
            break
        if all(_differ(pose, other, seen.middle) for other in chosen):
            chosen.append(pose)
    return np.array(chosen)


def _scores(judged: Array) -> Array:
    return np.asarray(judged[:, 0] - _AGAINST * judged[:, 1])


def _surface(look: Look, rows: Index, size: float, reach: float) -> _Surface:
    points, normals = np.ascontiguousarray(look.points[rows]), np.ascontiguousarray(look.normals[rows])
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach
    size = max(size, float(np.cbrt(np.prod(high - low) / _MOST_CELLS)))
    shape = np.ceil((high - low) / size).astype(np.int64) + 1
    return _Surface(points, normals, nearest_grid(points, low, shape, size, math.ceil(reach / size), reach))


def _starts(known: Shape, seen: Shape) -> Array:
    """(S, 4, 4): all turns, with the middles of both boxes on each other."""
    # Things mostly stand as they stood.
    upright = [np.eye(3)]
    upright += [np.array([*plane_axes(direction), direction]) for direction in sphere_directions(_DIRECTIONS)]
    poses = []
    for turn in np.linspace(0.0, 2.0 * np.pi, _TURNS, endpoint=False):
        about = matrix_from_rpy((0.0, 0.0, turn))
        for axis in upright:
            pose = make_transform(about @ axis)
            moved = transform_points(pose, seen.few.points)
            pose[:3, 3] = known.middle - 0.5 * (moved.min(axis=0) + moved.max(axis=0))
            poses.append(pose)
    return np.array(poses)


def _differ(first: Array, second: Array, middle: Array) -> bool:
    if rotation_angle(first[:3, :3].T @ second[:3, :3]) > _TURN:
        return True
    apart = transform_points(first, middle) - transform_points(second, middle)
    return float(np.linalg.norm(apart)) > _SHIFT


@njit(cache=True, nogil=True)
def _fit(poses, seen, known, seen_sight, known_sight, distances, steps, scale):  # type: ignore[no-untyped-def]
    """Align each pose (S, 4, 4) in place; (S, 3) shared, refuted, error of each, by bounds times a scale."""
    judged = np.empty((poses.shape[0], 3))
    for row in range(poses.shape[0]):
        _align(poses[row], seen, known, distances, steps)
        _judge_both(poses[row], seen, known, seen_sight, known_sight, judged[row], scale)
    return judged


@njit(cache=True, nogil=True)
def _judge_both(pose, seen, known, seen_sight, known_sight, judged, scale):  # type: ignore[no-untyped-def]
    back = np.eye(4)
    for i in range(3):
        for j in range(3):
            back[i, j] = pose[j, i]
            back[i, 3] -= pose[j, i] * pose[j, 3]
    on, off, squares = _judge(pose, seen, known, known_sight, scale)
    on_back, off_back, squares_back = _judge(back, known, seen, seen_sight, scale)
    judged[0] = min(on / seen.points.shape[0], on_back / known.points.shape[0])
    judged[1] = max(off / seen.points.shape[0], off_back / known.points.shape[0])
    judged[2] = math.sqrt((squares + squares_back) / max(1, on + on_back))


@njit(cache=True, nogil=True)
def _judge(pose, moving, fixed, sight, scale):  # type: ignore[no-untyped-def]
    """How many points are on a surface of the other look and where it saw that nothing is; squared distances."""
    on, off, squares = 0, 0, 0.0
    for row in range(moving.points.shape[0]):
        x, y, z, a, b, c = _moved(pose, moving, row)
        other = row_at(fixed.grid, x, y, z)
        if other >= 0:
            dx, dy, dz = x - fixed.points[other, 0], y - fixed.points[other, 1], z - fixed.points[other, 2]
            u, v, w = fixed.normals[other, 0], fixed.normals[other, 1], fixed.normals[other, 2]
            offset = dx * u + dy * v + dz * w
            near = dx * dx + dy * dy + dz * dz < (scale * _BESIDE) ** 2
            if near and a * u + b * v + c * w > _LEAST_COSINE and abs(offset) < scale * _ON:
                on += 1
                squares += offset * offset
                continue
        if is_empty(x, y, z, sight, scale * _CLEAR):
            off += 1
    return on, off, squares


@njit(cache=True, nogil=True)
def _moved(pose, surface, row):  # type: ignore[no-untyped-def]
    """A point and its normal in the other frame."""
    x, y, z = surface.points[row, 0], surface.points[row, 1], surface.points[row, 2]
    a, b, c = surface.normals[row, 0], surface.normals[row, 1], surface.normals[row, 2]
    return (
        pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[0, 3],
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[1, 3],
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[2, 3],
        pose[0, 0] * a + pose[0, 1] * b + pose[0, 2] * c,
        pose[1, 0] * a + pose[1, 1] * b + pose[1, 2] * c,
        pose[2, 0] * a + pose[2, 1] * b + pose[2, 2] * c,
    )


@njit(cache=True, nogil=True)
def _align(pose, seen, known, distances, steps):  # type: ignore[no-untyped-def]
    """Move a pose (4, 4) in place until the surfaces lie on each other, matching both ways."""
    back = np.eye(4)
    row6 = np.empty(6)
    for distance in distances:
        for _ in range(steps):
            for i in range(3):
                back[i, 3] = 0.0
                for j in range(3):
                    back[i, j] = pose[j, i]
                    back[i, 3] -= pose[j, i] * pose[j, 3]
            information, gradient = 1e-9 * np.eye(6), np.zeros(6)
            # About the middle of what is matched turns and shifts hardly mix.
            cx, cy, cz = 0.0, 0.0, 0.0
            for row in range(seen.points.shape[0]):
                x, y, z, _, _, _ = _moved(pose, seen, row)
                cx, cy, cz = cx + x, cy + y, cz + z
            count = seen.points.shape[0]
            cx, cy, cz = cx / count, cy / count, cz / count
            for side in range(2):
                moving, fixed = (seen, known) if side == 0 else (known, seen)
                for row in range(moving.points.shape[0]):
                    x, y, z, a, b, c = _moved(pose if side == 0 else back, moving, row)
                    other = row_at(fixed.grid, x, y, z)
                    if other < 0:
                        continue
                    dx, dy, dz = x - fixed.points[other, 0], y - fixed.points[other, 1], z - fixed.points[other, 2]
                    u, v, w = fixed.normals[other, 0], fixed.normals[other, 1], fixed.normals[other, 2]
                    squared = dx * dx + dy * dy + dz * dz
                    if squared > distance * distance or a * u + b * v + c * w < _LEAST_COSINE:
                        continue
                    u, v, w = u + a, v + b, w + c
                    length = math.sqrt(u * u + v * v + w * w)
                    u, v, w = u / length, v / length, w / length
                    offset = dx * u + dy * v + dz * w
                    if side == 1:
                        # In the frame of what is known: the seen point moves, the known one stays.
                        x, y, z, _, _, _ = _moved(pose, seen, other)
                        u, v, w = (
                            -(pose[0, 0] * u + pose[0, 1] * v + pose[0, 2] * w),
                            -(pose[1, 0] * u + pose[1, 1] * v + pose[1, 2] * w),
                            -(pose[2, 0] * u + pose[2, 1] * v + pose[2, 2] * w),
                        )
                    x, y, z = x - cx, y - cy, z - cz
                    row6[0], row6[1], row6[2] = y * w - z * v, z * u - x * w, x * v - y * u
                    row6[3], row6[4], row6[5] = u, v, w
                    weight = (1.0 - squared / (distance * distance)) ** 2
                    for i in range(6):
                        gradient[i] += weight * offset * row6[i]
                        for j in range(6):
                            information[i, j] += weight * row6[i] * row6[j]
            # What no match determines stays.
            for i in range(6):
                information[i, i] += 1e-4 * information[i, i] + (1e-7 if i < 3 else 1e-4)
            _solve(information, gradient)
            angle = math.sqrt(gradient[0] ** 2 + gradient[1] ** 2 + gradient[2] ** 2)
            shift = math.sqrt(gradient[3] ** 2 + gradient[4] ** 2 + gradient[5] ** 2)
            _move(pose, gradient, angle, cx, cy, cz)
            if angle < 1e-4 and shift < 1e-5:
                break


@njit(cache=True, nogil=True)
def _solve(matrix, vector):  # type: ignore[no-untyped-def]
    """Solve for a vector (6,) in place, with a positive definite matrix (6, 6) that is overwritten (Cholesky)."""
    for i in range(6):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(max(value, 1e-12)) if i == j else value / matrix[j, j]
    for i in range(6):
        for k in range(i):
            vector[i] -= matrix[i, k] * vector[k]
        vector[i] /= matrix[i, i]
    for i in range(5, -1, -1):
        for k in range(i + 1, 6):
            vector[i] -= matrix[k, i] * vector[k]
        vector[i] /= matrix[i, i]


@njit(cache=True, nogil=True)
def _move(pose, back, angle, cx, cy, cz):  # type: ignore[no-untyped-def]
    """Turn a pose in place about a centre against a rotation vector, by at most 0.2 rad, and shift it back."""
    x, y, z = 0.0, 0.0, 0.0
    if angle > 1e-12:
        x, y, z = -back[0] / angle, -back[1] / angle, -back[2] / angle
    s, c = math.sin(min(angle, 0.2)), math.cos(min(angle, 0.2))
    for column in range(4):
        a, b, d = pose[0, column], pose[1, column], pose[2, column]
        if column == 3:
            a, b, d = a - cx, b - cy, d - cz
        # Rodrigues.
        along = (x * a + y * b + z * d) * (1.0 - c)
        pose[0, column] = c * a + s * (y * d - z * b) + along * x
        pose[1, column] = c * b + s * (z * a - x * d) + along * y
        pose[2, column] = c * d + s * (x * b - y * a) + along * z
    for i, middle in enumerate((cx, cy, cz)):
        pose[i, 3] += middle - min(0.03, max(-0.03, back[3 + i]))
