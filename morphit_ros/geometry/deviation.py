"""How far a solid and a model of it are apart at most, both ways, proven.

The two one-sided Hausdorff distances, by branch and bound over cubes: no sample could miss the place where they are
greatest. Of each cube the distance to the other set is bounded from above; cubes whose bound is above what was found at
points are cut into eight. What a cube has of a convex body lies below a plane
that touches the body. The distance to a convex body is a convex function: on what a cube has of the solid, it is
greatest at a corner of that part (`cube_parts`), so that flat faces need no small cubes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.cube_parts import CORNERS, CubeParts
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array

# Cubes along the longest side of the box at the start, cubes that are looked at in all, and how many at once.
_CUBES, _GREATEST_NUMBER, _BLOCK = 12, 100_000, 20_000
# A bound is good enough where it is within this of what was found, relative to the diagonal of the box and to itself.
_TOLERANCE, _RELATIVE_TOLERANCE = 2.5e-4, 0.02
# Points count as far from this share of the greatest distance on; how many are kept, and the cells of which only one
# is, relative to the size of the box.
_FAR, _MOST_FAR, _NEIGHBOURHOOD = 0.6, 60, 0.02
# Half the side of the smallest cubes of a proof that a solid is contained, and what rounding may take from a distance,
# relative to the diagonal.
_FINEST, _ROUNDING = 2e-4, 1e-9


@dataclass(frozen=True)
class Deviation:
    """Greatest distances between a solid and a model of it, rounded up.

    Attributes:
        solid_to_model: no point of the solid is farther than this from the model [m]; 0 where the model contains it.
        model_to_solid: no point of the model is farther than this from the solid [m].
        reached: of both, what was found at points [m]: the true values lie between these and those.
        far_in_solid, far_in_model: (P, 3) points of either that are nearly so far from the other [m].
    """

    solid_to_model: float
    model_to_solid: float
    reached: tuple[float, float] = (0.0, 0.0)
    far_in_solid: Array = field(default_factory=lambda: np.empty((0, 3)), repr=False)
    far_in_model: Array = field(default_factory=lambda: np.empty((0, 3)), repr=False)


class Bodies(Protocol):
    """A model: the union of K bodies in the frame of the solid. Indices `k` are 0 … K − 1."""

    @property
    def convex(self) -> Sequence[bool]:
        """(K,) which of them are convex."""
        ...

    @property
    def bounds(self) -> Array:
        """(2, 3) a box around all of them [m]."""
        ...

    def surface_points(self) -> Array:
        """(M, 3) some points of their surfaces [m], to begin with."""
        ...

    def farthest(self, k: int, points: Array) -> Array:
        """(N,) [m] the distances of points (N, 3) to a body are at most these; 0 in it."""
        ...

    def holds(self, k: int, points: Array) -> NDArray[np.bool_]:
        """(N,) which of points (N, 3) are in a body."""
        ...

    def planes(self, k: int, points: Array) -> tuple[Array, Array]:
        """Unit normals n (N, 3) and s (N,) [m] with n · (x − p) ≤ s for each of points p (N, 3) and all x of a body.

        The nearer to the body's surface such a plane is, the better; s is negative where p is outside of the hull.
        """
        ...


def measure_deviation(
    solid: Solid, model: Bodies, enclosing: Solid | None = None, contained: bool = False
) -> Deviation:
    """How far a model and a solid are apart at most.

    Args:
        solid: what the model stands for.
        model: in the same frame.
        enclosing: a solid around the other; what is proven then holds for everything between the two.
        contained: it is proven already that the model contains the solid.
    """
    slack = _ROUNDING * (solid.diagonal + float(np.abs(model.bounds).max()))
    there, back = _Search(solid.diagonal), _Search(float(np.linalg.norm(model.bounds[1] - model.bounds[0])))
    if not contained:
        _search_solid(there, enclosing or solid, model)
    _search_model(back, solid, model)
    return Deviation(
        0.0 if contained else there.bound + slack,
        back.bound + slack,
        (there.found, back.found),
        there.far_points,
        back.far_points,
    )


def parts_outside(solid: Solid, model: Bodies) -> list[Array]:
    """Points of a solid that no single body of a model holds; none proves that the model contains the solid.

    Args:
        solid: what is to be contained.
        model: the bodies; those that are not convex hold nothing.

    Returns:
        groups of points (P, 3) [m]: single points that are in no body, and the corners of what the smallest cubes have
        of the solid, where these are in several bodies, but not all of them in one.
    """
    parts = CubeParts.whole(solid)
    found: list[Array] = []
    convex = [k for k, is_convex in enumerate(model.convex) if is_convex]
    if not convex:
        return [parts.points]
    looked_at = 0
    while len(parts.cubes):
        looked_at += len(parts.cubes)
        held = np.stack([model.holds(k, parts.points) for k in convex])
        together = np.stack([~parts.any(np.logical_not(in_body)) for in_body in held]).any(axis=0)
        lost: NDArray[np.bool_] = np.logical_not(held.any(axis=0))
        undecided = ~together & ~parts.any(lost)
        found += list(parts.points[lost][:, None])
        if parts.half <= _FINEST * solid.diagonal or looked_at > _GREATEST_NUMBER:
            found += [parts.points[parts.owners == k] for k in np.flatnonzero(undecided)[:_MOST_FAR]]
            break
        parts = parts.divided(np.flatnonzero(undecided))
    return found


class _Search:
    """What a search for the greatest distance has found and proven so far."""

    def __init__(self, size: float) -> None:
        """
        Args:
            size: of the box that is searched [m].
        """
        self.found, self._proven, self._looked_at, self._size = 0.0, 0.0, 0, size
        self._points, self._distances = [np.empty((0, 3))], [np.empty(0)]

    @property
    def bound(self) -> float:
        """No distance is greater [m]."""
        return max(self._proven, self.found)

    @property
    def far_points(self) -> Array:
        """(P, 3) some points whose distance is nearly the greatest that was found, one of each neighbourhood."""
        points, distances = np.concatenate(self._points), np.concatenate(self._distances)
        return points[self._farthest(points, distances)]

    def see(self, points: Array, distances: Array) -> None:
        """Points (N, 3) and their distances (N,)."""
        self.found = max(self.found, float(distances.max(initial=0.0)))
        far = self._farthest(points, distances)
        self._points.append(points[far])
        self._distances.append(distances[far])

    def _farthest(self, points: Array, distances: Array) -> NDArray[np.int64]:
        """Indices of points whose distance is nearly the greatest that was found, one of each cell, farthest first."""
        far = np.flatnonzero(distances >= max(_FAR * self.found, 1e-300))
        far = far[np.argsort(-distances[far], kind="stable")]
        cells = np.floor(points[far] / (_NEIGHBOURHOOD * self._size))
        return far[np.sort(np.unique(cells, axis=0, return_index=True)[1])[:_MOST_FAR]]

    @property
    def enough(self) -> float:
        """A bound as good as this is good enough."""
        return self.found + max(_TOLERANCE * self._size, _RELATIVE_TOLERANCE * self.found)

    def open(self, bounds: Array) -> NDArray[np.int64]:
        """Which of the cubes with these bounds (C,) have to be cut into eight; of the others the bound counts."""
        self._looked_at += len(bounds)
        open_ = bounds > self.enough
        if self._looked_at > _GREATEST_NUMBER:
            open_[:] = False
        self._proven = max(self._proven, float(bounds[~open_].max(initial=0.0)))
        return np.flatnonzero(open_)


def _search_solid(search: _Search, solid: Solid, model: Bodies) -> None:
    """For the solid's point that is farthest from the model."""
    parts = CubeParts.whole(solid)
    while len(parts.cubes):
        bounds, distances = _distances_of_parts(parts, model)
        search.see(parts.points, distances)
        parts = parts.divided(search.open(bounds))


def _distances_of_parts(parts: CubeParts, model: Bodies) -> tuple[Array, Array]:
    """Bounds (C,) of the distances of the parts from the model, and distances (P,) of their corners, not below them."""
    at_centers = np.stack([model.farthest(k, parts.cubes) for k in range(len(model.convex))])
    radius = parts.half * np.sqrt(3.0)
    bounds = at_centers.min(axis=0) + radius
    # No other can be the nearest to any point of the cube.
    asked = at_centers <= bounds + radius
    distances = np.full(len(parts.points), np.inf)
    for k, convex in enumerate(model.convex):
        rows = np.flatnonzero(asked[k][parts.owners])
        values = np.zeros(len(parts.points))
        values[rows] = model.farthest(k, parts.points[rows])
        distances[rows] = np.minimum(distances[rows], values[rows])
        if convex:
            bounds[asked[k]] = np.minimum(bounds, parts.maxima(values))[asked[k]]
    return bounds, distances


def _search_model(search: _Search, solid: Solid, model: Bodies) -> None:
    """For the model's point that is farthest from the solid."""
    start = model.surface_points()
    _see_outside(search, solid, start, solid.surface_distances(start))
    half, cubes = _equal_cubes(model.bounds)
    while len(cubes):
        bounds = np.concatenate([
            _bounds_of_cubes(search, solid, model, cubes[first : first + _BLOCK], half)
            for first in range(0, len(cubes), _BLOCK)
        ])  # fmt: skip
        half *= 0.5
        cubes = (cubes[search.open(bounds)][:, None] + half * CORNERS).reshape(-1, 3)


def _bounds_of_cubes(search: _Search, solid: Solid, model: Bodies, cubes: Array, half: float) -> Array:
    """Bounds (C,) of the distances of the model's points in cubes, −1 where there are none."""
    radius = half * np.sqrt(3.0)
    feet = solid.feet(cubes)
    depths = np.linalg.norm(cubes - feet, axis=1)
    bounds = depths + radius
    # All of the cube is in the solid: no surface in it, and the centre inside.
    bounds[(depths > radius) & solid.contains(cubes)] = -1.0
    rows = np.flatnonzero(bounds > search.enough)
    if len(rows) == 0:
        return bounds
    outwards = cubes[rows] - feet[rows]
    reaches = np.full(len(rows), -1.0)
    for k in range(len(model.convex)):
        normals, slacks = model.planes(k, cubes[rows])
        # Not farther from the foot than the farthest point x of the ball around the cube with n · (x − c) ≤ s.
        slope = np.clip(np.einsum("ij,ij->i", normals, outwards) / np.maximum(depths[rows], 1e-300), -1.0, 1.0)
        across = np.sqrt(np.maximum(radius**2 - slacks**2, 0.0)) * np.sqrt(1.0 - slope**2)
        along = np.where(slope * radius <= slacks, radius, slope * slacks + across)
        reach = np.sqrt(np.maximum(depths[rows] ** 2 + radius**2 + 2.0 * depths[rows] * along, 0.0))
        reaches = np.maximum(reaches, np.where(slacks < -radius, -1.0, reach))
    bounds[rows] = np.minimum(bounds[rows], reaches)
    centers = rows[np.stack([model.holds(k, cubes[rows]) for k in range(len(model.convex))]).any(axis=0)]
    _see_outside(search, solid, cubes[centers], depths[centers])
    return bounds


def _see_outside(search: _Search, solid: Solid, points: Array, depths: Array) -> None:
    outside = ~solid.contains(points) if len(points) else np.zeros(0, dtype=np.bool_)
    search.see(points[outside], depths[outside])


def _equal_cubes(box: Array) -> tuple[float, Array]:
    """Half the side of equal cubes that fill a box, and their centres (N, 3)."""
    half = 0.5 * float((box[1] - box[0]).max()) / _CUBES
    counts = np.maximum(np.ceil((box[1] - box[0]) / (2.0 * half)), 1.0)
    grid = np.stack(np.meshgrid(*(np.arange(count) for count in counts), indexing="ij"), axis=-1).reshape(-1, 3)
    return half, box.mean(axis=0) + (grid - 0.5 * (counts - 1.0)) * (2.0 * half)
