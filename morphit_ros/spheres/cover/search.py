"""Guaranteed cover: a fixed number of spheres that provably contain a shape, with little volume outside of it.

The number of spheres is kept and the cover is proven (`CoverProof`), so what is left is to minimise the volume of
the spheres' union, since all of the shape is in it. That has very many local minima; the search
1. merges many small clusters of points into as many as there are spheres, pair by pair (`cover_start`),
2. anneals: noisy steps under a growing pressure on uncovered points, with useless spheres moved in between; the
   better of two such starts goes on, one of which may be spheres arranged by other means,
3. tries changes of the arrangement (one sphere less here, one more there), each followed by a short descent, and
   keeps those that help,
   The last few that were kept go on, and the starts: which of them makes the smallest proven cover is only known then,
4. adds the points that the proof doubts to the points that must be covered, again and again, while the penalty
   gets stiff,
5. grows all spheres by what is missing for the proof, and shrinks each as far as the proof allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres.clustering import cluster_points
from morphit_ros.spheres.cover.certificate import CoverCertificate, CoverProof
from morphit_ros.spheres.cover.descent import LARGEST_RADIUS, SMALLEST_RADIUS, anneal, energy, relax
from morphit_ros.spheres.cover.openings import Effort
from morphit_ros.spheres.cover.start import merge_clusters, rate_spheres
from morphit_ros.spheres.exposed_surface import as_shape
from morphit_ros.spheres.metrics import checked_spheres, even_directions

# Points that must be covered: on the faces, along the edges that are not smooth, at corners, and inside.
_FACE_POINTS, _EDGE_POINTS, _CORNER_POINTS, _INNER_POINTS = 4000, 2000, 1000, 4000
_SMOOTH_ANGLE = 0.1
# Cells along the longest side of the box that tell inside from outside; points of a ball to estimate volumes with.
_CELLS, _BALL_POINTS = 36, 200
# Clusters to merge, points to merge them of, at least and for each sphere.
_CLUSTERS, _CLUSTERS_PER_SPHERE, _CLUSTERED_POINTS, _POINTS_PER_CLUSTER = 150, 2, 2500, 12
# Directions on a sphere, and sets of them that differ by a rotation.
_DIRECTIONS, _DIRECTION_SETS = 48, 32
# Searches from different clusters, of which the best goes on.
_STARTS = 2
# Annealing: steps, their lengths and the pressure at the start and at the end; how often useless spheres are moved,
# and how many at first.
_ANNEAL_STEPS, _ANNEAL_RATE, _ANNEAL_PRESSURE = 2000, (4e-2, 2e-3), (0.5, 50.0)
_MOVES, _MOVED_SHARE, _MOVED_DECAY = 8, 0.15, 0.8
# Annealing of spheres that are arranged already: it must not shake them out of their places.
_BEGUN_STEPS, _BEGUN_RATE, _BEGUN_PRESSURE = 700, (1e-2, 2e-3), (5.0, 50.0)
# A change of the arrangement: steps of its descents, their lengths and pressure. Gentle ones, with no less pressure
# than the annealing ended with, leave the other spheres in their places; of every three one is rough and moves them.
_GENTLE_TRIAL = 250, (5e-3, 1e-3), (50.0, 200.0)
_ROUGH_TRIAL = 100, (1.5e-2, 2e-3), (10.0, 50.0)
# Spheres that it moves, spread of the choice.
_TRIAL_MOVES, _TRIAL_SPREAD = 2, 0.7
# The stiffness at which arrangements are compared: softer, those seem best that leave most bare.
_SETTLE_STEPS, _SETTLE_STIFFNESS, _TRIAL_STIFFNESS = 120, 2e4, 1e6
# Stiffness while doubtful points are added, rounds and their steps.
_FIRM_STIFFNESS, _FIRM_ROUNDS, _FIRM_STEPS = (1e5, 5e6), 20, 40
# Growth: first guess and halvings of the interval; halvings when each sphere is shrunk, and up to how many spheres.
_GROWTH, _GROWTH_HALVINGS, _SHRINK_HALVINGS, _SHRUNK_SPHERES = 1e-5, 8, 5, 128
# What a proof that holds keeps of a shrink, so that it holds in other frames as well; in units of the size.
_KEPT_MARGIN = 4e-6
# Effort on openings: to find points that they leave bare, and to grow until they are proven.
_START_EFFORT, _FIRM_EFFORT, _GROWTH_EFFORT = 1e7, 2e7, 6e7
# Directions on each sphere that tell which of two covers is smaller, and how much larger than the smallest one may
# be before it is tightened and still be tried.
_VOLUME_DIRECTIONS, _WORTH_TRYING = 2000, 1.03
# Arrangements that are made proven covers: the energy tells only roughly which is smallest then.
_PROVEN_ARRANGEMENTS = 4


@dataclass(frozen=True)
class CoverResult:
    """Spheres that cover a shape.

    Attributes:
        centers: (N, 3) [m] in the meshes' frame.
        radii: (N,) [m], positive.
        certificate: the proof, with its margin.
        history: (trials + 1,) least energy found so far: volume of the union and penalty, over the box diagonal cubed;
            empty where the search was left out.
    """

    centers: Array
    radii: Array
    certificate: CoverCertificate
    history: Array


def cover_spheres(
    meshes: MeshesLike,
    count: int,
    seed: int = 0,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    trials: int = 32,
    arrangement: tuple[ArrayLike, ArrayLike] | None = None,
) -> CoverResult:
    """Exactly `count` spheres that provably contain a shape, with little volume outside of it; same seed, same spheres.

    Args:
        meshes: one mesh or several, whose union is the shape; watertight or not.
        count: number of spheres.
        seed: of all random choices.
        initial: centres (N, 3) and radii (N,) [m] to stay near to; the search is left out then.
        trials: changes of the arrangement to try; more take longer and leave less outside.
        arrangement: centres (N, 3) and radii (N,) [m] near the shape's surface, such as a balanced fit, that one of
            the searches begins with: quicker, and for many spheres better, than two searches from clusters. What it
            covers when it is enlarged as `initial` would be is returned where that is the smaller cover.

    Raises:
        InvalidInputError: a count below one, negative trials, no mesh, meshes without area, or bad initial spheres.
    """
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if trials < 0:
        raise InvalidInputError("trials", trials, "0 or more")
    parts = as_shape(meshes)
    proof = CoverProof(parts)
    if not sum(part.area for part in parts) > 0.0:
        raise InvalidInputError("meshes", "zero area", "a mesh with area", "Check the scale of the mesh.")
    origin, size = proof.bounds.mean(axis=0), proof.diagonal
    rng = np.random.default_rng(seed)
    search = _CoverSearch([TriangleMesh((part.vertices - origin) / size, part.faces) for part in parts], rng)
    history = np.empty(0)
    if initial is None:
        begun = None if arrangement is None else _normalised("arrangement", arrangement, count, origin, size)
        copy = None if begun is None else (begun[0].copy(), begun[1].copy())
        found, history = search.best(count, trials, copy)
        found += [] if begun is None else [begun]
    else:
        found = [_normalised("initial", initial, count, origin, size)]
    firm = [search.firm(*found[0])]
    # Where the effort on openings is not enough for one, several would only take longer.
    firm += [search.firm(*spheres) for spheres in (found[1:][-1:] if search.effort.is_spent else found[1:])]
    volumes = [union_volume(*spheres) for spheres in firm]
    bound = _WORTH_TRYING * min(volumes)
    promising = [spheres for spheres, volume in zip(firm, volumes, strict=True) if volume <= bound]
    covers = [
        (centers * size + origin, *_tightened(proof, centers * size + origin, radii * size))
        for centers, radii in promising
    ]
    centers, radii, _ = min(covers, key=lambda cover: (not cover[2], union_volume(*cover[:2])))
    return CoverResult(centers, radii, proof.certify(centers, radii), history)


class _CoverSearch:
    """A shape of unit size as points, and the steps of the search."""

    def __init__(self, meshes: list[TriangleMesh], rng: np.random.Generator) -> None:
        self._rng = rng
        self._proof = CoverProof(meshes)
        # On openings, of all arrangements that are made firm.
        self.effort = Effort(_FIRM_EFFORT)
        areas = np.array([mesh.area for mesh in meshes])
        self._cells, self._corner, self._cell_size = _occupied_cells(meshes, self._proof.bounds)
        groups = [self._inner_points()]
        for mesh, share in zip(meshes, areas / areas.sum(), strict=True):
            if share > 0.0:
                groups.append(sample_surface(mesh, max(int(share * _FACE_POINTS), 1), rng)[0])
                groups.append(_edge_points(mesh, max(int(share * _EDGE_POINTS), 1), rng))
                corners = mesh.vertices[np.unique(mesh.faces)]
                groups.append(rng.permutation(corners)[: max(int(share * _CORNER_POINTS), 1)])
        # In random order, so that the first points stand for all.
        self._points = rng.permutation(np.concatenate(groups))
        self._weight = float(areas.sum()) / _FACE_POINTS
        even = even_directions(_DIRECTIONS)
        rotations = np.linalg.qr(rng.normal(size=(_DIRECTION_SETS, 3, 3)))[0]
        self._directions = np.ascontiguousarray(even @ rotations)
        depths = ((rng.permutation(_BALL_POINTS) + 0.5) / _BALL_POINTS) ** (1.0 / 3.0)
        self._ball = even_directions(_BALL_POINTS) * depths[:, None]

    def _inner_points(self) -> Array:
        inside = np.argwhere(self._cells)
        chosen = self._rng.permutation(inside)[:_INNER_POINTS]
        return self._corner + (chosen + 0.5) * self._cell_size

    def best(
        self, count: int, trials: int, begun: tuple[Array, Array] | None = None
    ) -> tuple[list[tuple[Array, Array]], Array]:
        """The last arrangements that were best, the very best first, the starts, and the energies: steps 1 to 3."""
        starts = [self._annealed(count) for _ in range(_STARTS if begun is None else _STARTS - 1)]
        if begun is not None:
            self._anneal(*begun, _BEGUN_STEPS, _BEGUN_RATE, _BEGUN_PRESSURE)
            self._settle(*begun)
            starts.append(begun)
        # Where the proof doubts one of these, others are likely to be doubtful too.
        effort = Effort(_START_EFFORT)
        doubtful = [self._proof.doubtful_points(*spheres, effort=effort) for spheres in starts]
        self._points = np.concatenate([self._points, *doubtful])
        for spheres in starts:
            self._settle(*spheres)
        energies = [self._energy(*spheres) for spheres in starts]
        found, history = [starts[int(np.argmin(energies))]], [min(energies)]
        centers, radii = found[0]
        for trial in range(trials):
            trial_centers, trial_radii = centers.copy(), radii.copy()
            self._rearrange(trial_centers, trial_radii, int(self._rng.integers(1, _TRIAL_MOVES + 1)), _TRIAL_SPREAD)
            spheres = trial_centers, trial_radii
            steps, rate, pressure = _ROUGH_TRIAL if trial % 3 == 2 else _GENTLE_TRIAL
            self._anneal(*spheres, steps, rate, pressure)
            self._settle(*spheres)
            reached = self._energy(*spheres)
            if reached < history[-1]:
                centers, radii = spheres
                found.append(spheres)
            history.append(min(reached, history[-1]))
        latest = found[: -_PROVEN_ARRANGEMENTS - 1 : -1]
        latest += [start for start in starts if not any(start is spheres for spheres in latest)]
        return latest, np.array(history)

    def _annealed(self, count: int) -> tuple[Array, Array]:
        """Steps 1 and 2."""
        centers, radii = self._start(count)
        for move in range(_MOVES + 1):
            span = move / (_MOVES + 1), (move + 1) / (_MOVES + 1)
            rate = _between(_ANNEAL_RATE, span[0]), _between(_ANNEAL_RATE, span[1])
            pressure = _between(_ANNEAL_PRESSURE, span[0]), _between(_ANNEAL_PRESSURE, span[1])
            self._anneal(centers, radii, _ANNEAL_STEPS // (_MOVES + 1), rate, pressure)
            if move < _MOVES:
                self._rearrange(centers, radii, math.ceil(count * _MOVED_SHARE * _MOVED_DECAY**move), 0.0)
        self._settle(centers, radii)
        return centers, radii

    def _anneal(
        self, centers: Array, radii: Array, steps: int, rate: tuple[float, float], pressure: tuple[float, float]
    ) -> None:
        box = self._proof.bounds
        anneal(self._points, self._weight, centers, radii, self._directions, box, steps, rate, pressure)

    def _settle(self, centers: Array, radii: Array) -> None:
        stiffness, box = (_SETTLE_STIFFNESS, _TRIAL_STIFFNESS), self._proof.bounds
        relax(self._points, self._weight, centers, radii, self._directions, box, _SETTLE_STEPS, stiffness)

    def _energy(self, centers: Array, radii: Array) -> float:
        return float(energy(self._points, self._weight, centers, radii, self._directions[:8], _TRIAL_STIFFNESS))

    def firm(self, centers: Array, radii: Array) -> tuple[Array, Array]:
        """Spheres that nearly cover the shape, by what the proof doubts: step 4."""
        centers, radii = centers.copy(), radii.copy()
        points, effort = self._points, self.effort
        for step in range(_FIRM_ROUNDS):
            points = np.concatenate([points, self._proof.doubtful_points(centers, radii, effort=effort)])
            ends = (_between(_FIRM_STIFFNESS, step / (_FIRM_ROUNDS - 1)),) * 2
            relax(points, self._weight, centers, radii, self._directions, self._proof.bounds, _FIRM_STEPS, ends)
        return centers, radii

    def _start(self, count: int) -> tuple[Array, Array]:
        """Step 1."""
        clusters = max(_CLUSTERS, _CLUSTERS_PER_SPHERE * count)
        points = self._rng.permutation(self._points)[: max(_CLUSTERED_POINTS, _POINTS_PER_CLUSTER * clusters)]
        _, labels = cluster_points(points, clusters)
        merged = merge_clusters(points, labels.copy(), clusters, count, self._ball, *self._shape)
        # Fewer distinct points than spheres: the rest start small at any of them.
        missing = count - len(merged)
        places = points[self._rng.integers(len(points), size=missing)]
        centers = np.concatenate([merged[:, :3], places])
        return centers, np.concatenate([merged[:, 3], np.full(missing, SMALLEST_RADIUS)])

    @property
    def _shape(self) -> tuple[Array, Array, float]:
        return self._cells, self._corner, self._cell_size

    def _rated(self, centers: Array, radii: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        rated: tuple[Array, Array, NDArray[np.int64]] = rate_spheres(
            self._points[:_CLUSTERED_POINTS], centers, radii, self._ball, *self._shape
        )
        return rated

    def _rearrange(self, centers: Array, radii: Array, moves: int, spread: float) -> None:
        """Move the spheres that are worth least to those that hold most outside volume, which they halve; in place."""
        count = len(radii)
        moves = min(moves, count // 2)
        worth, costs, labels = self._rated(centers, radii)
        points = self._points[:_CLUSTERED_POINTS]
        worth = worth * np.exp(self._rng.normal(0.0, spread, count))
        costs = costs * np.exp(self._rng.normal(0.0, spread, count))
        moved = np.argsort(worth, kind="stable")[:moves]
        costs[moved] = -1.0
        for sphere, split in zip(moved, np.argsort(-costs, kind="stable"), strict=False):
            members = points[labels == split]
            if len(members) < 4:
                continue
            halves, sides = cluster_points(np.ascontiguousarray(members), 2)
            for side, owner in enumerate((split, sphere)):
                centers[owner] = halves[side]
                distances = np.linalg.norm(members[sides == side] - halves[side], axis=1)
                radii[owner] = max(float(np.quantile(distances, 0.9)) if len(distances) else 0.0, SMALLEST_RADIUS)


def union_volume(centers: Array, radii: Array) -> float:
    """Of the spheres' union, to about a thousandth."""
    directions = even_directions(_VOLUME_DIRECTIONS)[None]
    return float(energy(np.empty((0, 3)), 0.0, centers, radii, directions, 0.0))


def _between(ends: tuple[float, float], share: float) -> float:
    """Geometric interpolation."""
    return float(ends[0] * (ends[1] / ends[0]) ** share)


def _occupied_cells(meshes: list[TriangleMesh], bounds: Array) -> tuple[Array, Array, float]:
    """Which cells (X, Y, Z) of the box have their centre inside, its lower corner, and the side length of a cell."""
    size = float((bounds[1] - bounds[0]).max()) / _CELLS
    counts = np.maximum(np.ceil((bounds[1] - bounds[0]) / size - 1e-9).astype(np.int64), 1)
    centers = bounds[0] + (np.indices(counts).reshape(3, -1).T + 0.5) * size
    return InsideTest(meshes).contains(centers).reshape(tuple(counts)), bounds[0].copy(), size


def _edge_points(mesh: TriangleMesh, count: int, rng: np.random.Generator) -> Array:
    """Points (count, 3) at even distances along the edges that are not smooth, the denser the sharper; maybe none."""
    starts, ends = mesh.faces.ravel(), np.roll(mesh.faces, -1, axis=1).ravel()
    keys = np.minimum(starts, ends) * len(mesh.vertices) + np.maximum(starts, ends)
    order = np.argsort(keys, kind="stable")
    _, first, shared = np.unique(keys[order], return_index=True, return_counts=True)
    edges, faces = order[first], order // 3
    angles = np.full(len(first), math.pi)
    pair = shared == 2
    normals = mesh.face_normals[faces[first[pair]]], mesh.face_normals[faces[first[pair] + 1]]
    angles[pair] = np.arccos(np.clip(np.einsum("ij,ij->i", *normals), -1.0, 1.0))
    lengths = np.linalg.norm(mesh.vertices[ends[edges]] - mesh.vertices[starts[edges]], axis=1)
    weights = np.where(angles > _SMOOTH_ANGLE, lengths * np.minimum(angles, 1.0), 0.0)
    reached = np.cumsum(weights)
    if not reached[-1] > 0.0:
        return np.empty((0, 3))
    places = (np.arange(count) + rng.random()) / count * reached[-1]
    chosen = np.minimum(np.searchsorted(reached, places, side="right"), len(weights) - 1)
    shares = np.clip((reached[chosen] - places) / np.maximum(weights[chosen], 1e-300), 0.0, 1.0)[:, None]
    points: Array = mesh.vertices[starts[edges[chosen]]] * (1.0 - shares) + mesh.vertices[ends[edges[chosen]]] * shares
    return points


def _normalised(
    name: str, spheres: tuple[ArrayLike, ArrayLike], count: int, origin: Array, size: float
) -> tuple[Array, Array]:
    """Given spheres in the frame of the search."""
    centers, radii = checked_spheres(*spheres)
    if len(radii) != count:
        raise InvalidInputError(name, f"{len(radii)} spheres", f"{count} spheres, as many as asked for")
    return (centers - origin) / size, np.clip(radii / size, SMALLEST_RADIUS, LARGEST_RADIUS)


def _tightened(proof: CoverProof, centers: Array, radii: Array) -> tuple[Array, bool]:
    """Radii (N,) with which the cover is proven: all grown by what is missing, then each shrunk: step 5.

    Returns:
        the radii, and whether they are proven to cover more than the surface.
    """
    margin = _KEPT_MARGIN * proof.diagonal
    effort = Effort(_GROWTH_EFFORT)
    high = _growth(radii, lambda grown: proof.is_covered(centers, grown, margin, effort), proof.diagonal)
    proven = high < proof.diagonal
    if not proven and effort.is_spent:
        # Openings without end: what they leave inside cannot be proven to be covered, but the surface can.
        high = _growth(radii, lambda grown: proof.covers_surface(centers, grown, margin), proof.diagonal)
    grown: Array = radii + high
    if len(grown) > _SHRUNK_SPHERES or not proof.is_closed:
        return grown, proven
    smallest = SMALLEST_RADIUS * proof.diagonal
    # Large spheres first: the same length makes more volume on them.
    for sphere in np.argsort(-grown, kind="stable"):
        kept = grown[sphere]
        least = max(kept - 4.0 * high, smallest)
        for _ in range(_SHRINK_HALVINGS if least < kept else 0):
            grown[sphere] = 0.5 * (least + kept)
            if proof.is_covered(centers, grown, margin):
                kept = grown[sphere]
            else:
                least = grown[sphere]
        grown[sphere] = kept
    return grown, proven


def _growth(radii: Array, is_covered: Callable[[Array], bool], limit: float) -> float:
    """By how much all radii (N,) have to grow, nearly the least; `limit` or more where not even that is enough."""
    low, high = 0.0, 0.0
    # Spheres larger than the shape cover it if ever they do; what is not proven then stays so.
    while high < limit and not is_covered(radii + high):
        low, high = high, max(2.0 * high, _GROWTH * limit)
    for _ in range(_GROWTH_HALVINGS if high > 0.0 else 0):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_covered(radii + middle) else (middle, high)
    return high
