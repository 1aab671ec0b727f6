"""How far an object has moved between two looks at it, of which each may have missed parts."""

from __future__ import annotations

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
    rotation_angle,
    transform_points,
)

# Of clouds that are laid onto each other: points of each, starting angles, and steps from each.
_POINTS, _ANGLES, _STEPS = 400, 24, 20
# Of poses that fit about as well the one that moves the object least is taken; one that fits worse is none [m].
_ALIKE, _WORST = 1.2, 0.006
# Faces that slide along themselves stay where they were: a moved box shows in the leading faces only.
_SHARE = 0.85


def object_displacement(before: Array, after: Array) -> float:
    """A distance that is small unless the object moved [m].

    The distance within which 85 % of the points of one look have a neighbour in the other, taken in both directions;
    the smaller one counts. An arm in the view hides points, so that the earlier look has some without a neighbour, or
    adds some; a moved object has points without a neighbour in both.

    Args:
        before, after: (N, 3) and (M, 3) points, same frame.

    Raises:
        InvalidInputError: no points, or points that are not finite.
    """
    from scipy.spatial import cKDTree

    clouds = _checked(before, after)
    there = cKDTree(clouds[0]).query(clouds[1])[0]
    back = cKDTree(clouds[1]).query(clouds[0])[0]
    return float(min(np.quantile(there, _SHARE), np.quantile(back, _SHARE)))


def planar_motion(before: Array, after: Array) -> Array | None:
    """How an object that lies on a level table was moved between two looks, turned about the vertical only.

    Planar closest points (Besl and McKay 1992) with the worst matches left out, from many angles.

    Args:
        before, after: (N, 3) and (M, 3) points, same frame, z up [m].

    Returns:
        (4, 4), from where it was to where it is; None where no such motion lays one look onto the other: it lies
        on another side, or is another object.

    Raises:
        InvalidInputError: no points, or points that are not finite.
    """
    first, second = _checked(before, after)
    middle = 0.5 * (first.min(axis=0) + first.max(axis=0))
    fits = [
        _laid_onto(first - middle, second - middle, angle)
        for angle in np.linspace(0.0, 2.0 * np.pi, _ANGLES, endpoint=False)
    ]
    best = min(error for error, _ in fits)
    if best > _WORST:
        return None
    least = min(rotation_angle(motion[:3, :3]) for error, motion in fits if error <= _ALIKE * best + 1e-4)
    near = [fit for fit in fits if rotation_angle(fit[1][:3, :3]) < least + 2.0 * np.pi / _ANGLES]
    motion = min(near, key=lambda fit: fit[0])[1]
    return make_transform(translation=middle) @ motion @ make_transform(translation=-middle)


def _laid_onto(first: Array, second: Array, angle: float) -> tuple[float, Array]:
    """What is left between two clouds, and the motion of the first one, from a starting angle."""
    from scipy.spatial import cKDTree

    there, back = cKDTree(second), cKDTree(first)
    first, second = (cloud[:: max(1, len(cloud) // _POINTS)] for cloud in (first, second))
    motion = make_transform(matrix_from_rpy((0.0, 0.0, angle)))
    moved = transform_points(motion, first)
    shift = 0.5 * (second.min(axis=0) + second.max(axis=0) - moved.min(axis=0) - moved.max(axis=0))
    motion[:2, 3] = shift[:2]
    for _ in range(_STEPS):
        moved = transform_points(motion, first)
        distances, rows = there.query(moved)
        near = distances <= np.quantile(distances, _SHARE)
        source, target = moved[near, :2], there.data[rows[near], :2]
        from_, to = source - source.mean(axis=0), target - target.mean(axis=0)
        turn = float(np.arctan2((from_[:, 0] * to[:, 1] - from_[:, 1] * to[:, 0]).sum(), (from_ * to).sum()))
        step = make_transform(matrix_from_rpy((0.0, 0.0, turn)))
        step[:2, 3] = target.mean(axis=0) - step[:2, :2] @ source.mean(axis=0)
        motion = step @ motion
    left = (
        there.query(transform_points(motion, first))[0],
        back.query(transform_points(invert_transform(motion), second))[0],
    )
    return float(max(np.quantile(distances, _SHARE) for distances in left)), motion


def _checked(before: Array, after: Array) -> tuple[Array, Array]:
    clouds = []
    for name, points in (("before", before), ("after", after)):
        cloud = np.asarray(points, dtype=np.float64)
        if cloud.ndim != 2 or cloud.shape[1] != 3 or len(cloud) == 0 or not np.isfinite(cloud).all():
            raise InvalidInputError(name, f"shape {cloud.shape}", "finite numbers of shape (N, 3), N at least 1")
        clouds.append(cloud)
    return clouds[0], clouds[1]
