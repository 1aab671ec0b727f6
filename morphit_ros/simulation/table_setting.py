"""A table that is set at random: objects that stand apart on a part of it, two of which touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy, transform_points
from morphit_ros.simulation.objects import SimulatedObject

# Between the outlines of two objects, and of the two that touch [m].
_GAP, _TOUCHING = 0.03, 0.001
# How often a place is drawn, and how often all are drawn anew.
_DRAWS, _TABLES = 400, 40
# Between points of an outline [m].
_SPACING = 0.005


def set_table(
    items: Sequence[SimulatedObject], low: Sequence[float], high: Sequence[float], touching: tuple[int, int], seed: int
) -> list[tuple[float, float, float]]:
    """x, y and heading of each object, standing as it usually does [m, rad].

    Args:
        items: the objects.
        low, high: corners (2,) of the rectangle that they stand in [m].
        touching: indices of two that touch; the second is put beside the first.
        seed: of places and headings.

    Raises:
        InvalidInputError: there is no room for them.
    """
    rng = np.random.default_rng([seed, len(items)])
    bounds = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    outlines = [_outline(item) for item in items]
    # What is large finds no place among the others; the one that touches comes right after its neighbour.
    order = sorted(range(len(items)), key=lambda index: -float(np.linalg.norm(outlines[index], axis=1).max()))
    order.remove(touching[1])
    order.insert(order.index(touching[0]) + 1, touching[1])
    for _ in range(_TABLES):
        placed: dict[int, tuple[Array, tuple[float, float, float]]] = {}
        for index in order:
            neighbour = placed[touching[0]][0] if index == touching[1] else None
            found = _place(outlines[index], [points for points, _ in placed.values()], neighbour, bounds, rng)
            if found is None:
                break
            placed[index] = found
        else:
            return [placed[index][1] for index in range(len(items))]
    raise InvalidInputError("objects", f"{len(items)}", "as many as find room", "Give a larger rectangle.")


def _place(
    outline: Array, others: list[Array], neighbour: Array | None, bounds: tuple[Array, Array], rng: np.random.Generator
) -> tuple[Array, tuple[float, float, float]] | None:
    """Outline where it stands, with x, y and heading; None if no place was drawn."""
    from scipy.spatial import cKDTree

    apart = [points for points in others if points is not neighbour]
    tree = cKDTree(np.concatenate(apart)) if apart else None
    for _ in range(_DRAWS):
        yaw = float(rng.uniform(-np.pi, np.pi))
        turned = transform_points(make_transform(matrix_from_rpy((0.0, 0.0, yaw))), _raised(outline))[:, :2]
        if neighbour is None:
            at = rng.uniform(*bounds)
        else:
            # From afar towards the neighbour's middle, until they touch.
            angle, beside = rng.uniform(-np.pi, np.pi), cKDTree(neighbour)
            way = np.array([np.cos(angle), np.sin(angle)])
            at = neighbour.mean(axis=0) + 0.5 * way
            while (gap := float(beside.query(turned + at)[0].min())) > _TOUCHING + 0.5 * _SPACING:
                at = at - max(0.5 * gap, 2e-4) * way
                if (at - neighbour.mean(axis=0)) @ way < 0.0:
                    break
        inside = ((at >= bounds[0]) & (at <= bounds[1])).all()
        points = turned + at
        if inside and (tree is None or tree.query(points)[0].min() > _GAP):
            return points, (float(at[0]), float(at[1]), yaw)
    return None


def _raised(points: Array) -> Array:
    return np.column_stack([points, np.zeros(len(points))])


def _outline(item: SimulatedObject) -> Array:
    """Points (N, 2) along the outline of an object seen from above, in its own frame [m]."""
    from scipy.spatial import ConvexHull

    points = item.mesh.vertices[:, :2]
    corners = points[ConvexHull(points).vertices]
    ends = np.roll(corners, -1, axis=0)
    rows = [
        start + (end - start) * share
        for start, end in zip(corners, ends, strict=True)
        for share in np.linspace(0.0, 1.0, max(2, int(np.linalg.norm(end - start) / _SPACING)), endpoint=False)
    ]
    return np.array(rows)
