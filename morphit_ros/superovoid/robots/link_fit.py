"""The shape of a link as one or several superovoids: cut where it pays, then improved together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import LinkFitConfig, SuperovoidFitConfig
from morphit_ros.superovoid.fits.containing import smallest_containing
from morphit_ros.superovoid.fits.errors import FitErrors, measure_fit
from morphit_ros.superovoid.fits.fit import ERROR_POINTS, Containment, to_superovoid
from morphit_ros.superovoid.fits.gauge import CLOSEST, RADIAL
from morphit_ros.superovoid.fits.samples import sample_fit_surface
from morphit_ros.superovoid.fits.search import (
    FitTarget,
    ShapeCandidate,
    ShapeDescent,
    make_descent,
    make_starts,
    search,
)
from morphit_ros.superovoid.robots.link_pieces import LinkSolid, Piece, Plane, piece_between, possible_cuts, whole_piece

# How a cut is judged: points and starts of a quick fit of both its sides.
_QUICK_POINTS, _QUICK_STARTS = 120, 6
# Rounds in which points go to the shape nearest to them, and steps of each.
_ROUNDS, _STEPS = 4, 12


@dataclass(frozen=True)
class LinkFit:
    """Superovoids of one link's shape.

    Attributes:
        shapes: in the frame of the meshes.
        errors: of their union.
        containment: as of `SuperovoidFitResult`, for the union.
    """

    shapes: tuple[PlacedSuperovoid, ...]
    errors: FitErrors
    containment: Containment


def fit_link_superovoids(
    meshes: Sequence[TriangleMesh], config: LinkFitConfig | None = None, seed: int = 0, count: int | None = None
) -> LinkFit:
    """Fit one or several superovoids to the union of meshes.

    The piece with the largest error is cut across one of its principal axes, where a quick fit of both sides is best;
    all shapes are then improved together, each on the points nearest to it. A cut that takes away too little of the
    RMS distance is undone, and the next piece is tried.

    Args:
        meshes: in one frame.
        config: settings.
        seed: of sampling and of random starts.
        count: exactly so many shapes, however little they gain; None for as many as pay.

    Raises:
        InvalidInputError: no mesh, a surface without extent in some direction, a count below one, or more parts than
            the surface can be cut into.
    """
    return link_fit_path(meshes, config, seed, count)[-1]


def link_fit_path(
    meshes: Sequence[TriangleMesh], config: LinkFitConfig | None = None, seed: int = 0, count: int | None = None
) -> list[LinkFit]:
    """The fits with 1, 2, … superovoids that `fit_link_superovoids` goes through; its arguments and errors."""
    settings = config or LinkFitConfig()
    if count is not None and count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if seed < 0:
        raise InvalidInputError("seed", seed, "0 or more")
    if not meshes:
        raise InvalidInputError("meshes", "none", "at least one mesh")
    rng = np.random.default_rng(seed)
    samples = sample_fit_surface(meshes, max(settings.fit.samples, ERROR_POINTS), rng)
    solid = LinkSolid(meshes, samples, settings.fit.samples)
    cutter = _Cutter(solid, settings.fit, rng)
    together = samples.points * samples.scale @ samples.T_mesh_samples[:3, :3].T + samples.T_mesh_samples[:3, 3]
    tolerance = settings.tolerance * float(np.linalg.norm(concatenate_meshes(list(meshes)).extents)) / samples.scale

    def finished(cover: _Cover) -> LinkFit:
        shapes = tuple(to_superovoid(shape, samples) for shape in cutter.final_shapes(cover))
        containment: Containment = "none"
        if settings.fit.mode == "outer":
            convex = all(shape.shape.convexity().convex for shape in shapes)
            containment = "proven" if convex else "vertices"
        return LinkFit(shapes, measure_fit(shapes, together, meshes), containment)

    cover = cutter.first()
    path = [cover]
    while len(cover.shapes) < (count or settings.max_count):
        if count is None and cover.error <= tolerance:
            break
        better = cutter.cut(cover, 0.0 if count is not None else settings.gain)
        if better is None:
            break
        cover = better
        path.append(cover)
    if count is not None and len(cover.shapes) < count:
        raise InvalidInputError(
            "count", count, f"at most {len(cover.shapes)}, the parts that this surface was cut into"
        )
    return [finished(step) for step in path]


@dataclass(frozen=True)
class _Cover:
    """Pieces, the shapes on them, and the RMS distance of the link's points and of free points covered by mistake."""

    pieces: tuple[Piece, ...]
    shapes: tuple[ShapeCandidate, ...]
    error: float


class _Cutter:
    """Fits of one link's pieces."""

    def __init__(self, solid: LinkSolid, config: SuperovoidFitConfig, rng: np.random.Generator) -> None:
        self._solid, self._config, self._rng = solid, config, rng

    def first(self) -> _Cover:
        """The link as one piece."""
        piece = whole_piece(self._solid)
        shape = self._fit(piece, self._config)
        return _Cover((piece,), (shape,), self._error([shape]))

    def cut(self, cover: _Cover, gain: float) -> _Cover | None:
        """One more piece where it pays, from the piece with the largest error on; None if it pays nowhere."""
        owners, distances = self._nearest(cover.shapes)
        costs = [float((distances[owners == number] ** 2).sum()) for number in range(len(cover.shapes))]
        candidates = []
        for number in np.argsort(-np.array(costs), kind="stable").tolist():
            candidate = self._cut_piece(cover, number)
            if candidate is not None and gain > 0.0 and candidate.error <= (1.0 - gain) * cover.error:
                return candidate
            candidates += [] if candidate is None else [candidate]
        # With no gain asked for, one more shape counts even if the fit is worse.
        return min(candidates, key=lambda candidate: candidate.error) if candidates and gain == 0.0 else None

    def final_shapes(self, cover: _Cover) -> Sequence[ShapeCandidate]:
        """The shapes as they are or, in outer mode, the smallest around what the faces have in each piece."""
        if self._config.mode != "outer":
            return cover.shapes
        found = []
        for piece, shape in zip(cover.pieces, cover.shapes, strict=True):
            vertices = self._solid.clipped_vertices(piece.planes)
            found.append(smallest_containing(piece.points, vertices, [shape], self._descent(piece)))
        return found

    def _cut_piece(self, cover: _Cover, number: int) -> _Cover | None:
        piece = cover.pieces[number]
        halves = []
        for cut in possible_cuts(piece):
            sides = [self._side(piece, plane) for plane in (cut, cut.flipped())]
            if sides[0] is not None and sides[1] is not None:
                halves.append((sides[0], sides[1]))
        if not halves:
            return None
        quick = replace(self._config, starts=_QUICK_STARTS)
        costs = [sum(self._quick_cost(side, quick) for side in pair) for pair in halves]
        best = halves[int(np.argmin(costs))]
        pieces = (*cover.pieces[:number], *best, *cover.pieces[number + 1 :])
        shapes = [shape.copy() for shape in cover.shapes]
        shapes[number : number + 1] = [self._fit(side, self._config) for side in best]
        return self._improved(pieces, shapes)

    def _descent(self, piece: Piece) -> ShapeDescent:
        points = piece.target_points
        reach = float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
        return make_descent(self._config, reach, True)

    def _side(self, piece: Piece, plane: Plane) -> Piece | None:
        return piece_between(self._solid, (*piece.planes, plane))

    def _fit(self, piece: Piece, config: SuperovoidFitConfig) -> ShapeCandidate:
        return search(piece.target_points, piece.target_weights, piece.free, self._descent(piece), config, self._rng)[0]

    def _quick_cost(self, piece: Piece, config: SuperovoidFitConfig) -> float:
        points, weights = piece.target_points, piece.target_weights
        target = FitTarget.of(points, weights, piece.free, _QUICK_POINTS)
        descent = self._descent(piece)
        starts = make_starts(points, weights, config.starts, self._rng)
        for start in starts:
            descent.run(start, target, RADIAL, _STEPS)
        surface = float(weights.sum()) / float(target.weights[~target.free].sum())
        return min(start.cost for start in starts) * surface

    def _improved(self, pieces: tuple[Piece, ...], shapes: list[ShapeCandidate]) -> _Cover:
        """Points go to the shape that they are nearest to, and the shapes to their points, as long as it helps."""
        best = _Cover(pieces, tuple(shape.copy() for shape in shapes), self._error(shapes))
        for _ in range(_ROUNDS):
            owners, _ = self._nearest(shapes)
            for number, (piece, shape) in enumerate(zip(pieces, shapes, strict=True)):
                own = replace(piece, points=self._solid.points[owners == number])
                if len(own.points) == 0:
                    continue
                target = FitTarget.of(own.target_points, own.target_weights, own.free, len(own.points) + len(own.caps))
                self._descent(piece).run(shape, target, CLOSEST, _STEPS)
            error = self._error(shapes)
            if error >= best.error:
                break
            best = _Cover(pieces, tuple(shape.copy() for shape in shapes), error)
        return best

    def _nearest(self, shapes: Sequence[ShapeCandidate]) -> tuple[Array, Array]:
        """For each point of the link the shape of least signed distance, and this distance: both (N,)."""
        distances = np.stack([shape.distances(self._solid.points) for shape in shapes])
        owners = distances.argmin(axis=0)
        return owners, distances.min(axis=0)

    def _error(self, shapes: Sequence[ShapeCandidate]) -> float:
        covered = self._solid.samples.free[: len(self._solid.points) // 2]
        squares = self._nearest(shapes)[1] ** 2
        if len(covered):
            depths = np.minimum(np.stack([shape.distances(covered) for shape in shapes]).min(axis=0), 0.0)
            squares = np.concatenate([squares, depths**2])
        return math.sqrt(float(squares.sum()) / len(self._solid.points))
