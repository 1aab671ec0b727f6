"""Start poses for the fits: antipodal pairs, medial axis and surface normals of the cloud.

All directions are built from the data and the preferred approach, so that starts move with the
object: the same seed on a moved cloud gives the moved starts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.correspondences import Index
from morphit_ros.jit import njit

# Closing directions that rise by less than this sine may be made level.
_NEARLY_LEVEL = 0.5
# Seeds are drawn again, so often at most, while less than this share of those wanted have found a partner.
_DRAWS, _ENOUGH = 6, 0.5


@dataclass(frozen=True)
class Starts:
    """Start poses; S of them.

    Attributes:
        rotations: (S, 3, 3), columns x, y (closing), z (approach).
        translations: (S, 3) [m].
        widths: (S,) distance of the two surfaces along y [m].
        places: (S,) where on the pads the surfaces are, along z from their middle [m].
    """

    rotations: Array
    translations: Array
    widths: Array
    places: Array

    def __len__(self) -> int:
        return len(self.widths)

    @property
    def apertures(self) -> Array:
        """(S,) the widths [m], by the name that they have of fitted candidates."""
        return self.widths

    def select(self, index: NDArray[np.bool_] | Index) -> Starts:
        """The starts that a mask or an index array names."""
        return Starts(self.rotations[index], self.translations[index], self.widths[index], self.places[index])

    def moved(self, lengths: Array) -> Starts:
        """The starts moved along their approaches, forwards by `lengths` (S,) [m]."""
        return replace(
            self,
            translations=self.translations + lengths[:, None] * self.rotations[:, :, 2],
            places=self.places - lengths,
        )

    def joined(self, other: Starts) -> Starts:
        """Both together."""
        return Starts(
            np.concatenate([self.rotations, other.rotations]),
            np.concatenate([self.translations, other.translations]),
            np.concatenate([self.widths, other.widths]),
            np.concatenate([self.places, other.places]),
        )


@dataclass(frozen=True)
class AntipodalPairs:
    """Pairs of points that two opposing fingers could touch.

    Attributes:
        first, second: (P,) indices of the points on finger 1 and finger 2.
        narrowest_rejected: smallest width [m] among pairs wider than the gripper opens, inf if none.
        too_wide: number of seeds that found only such pairs.
        alone: number of seeds that found no opposing surface at all, or one that is too near.
        thin: of those, how many found one that is too near.
        widest_thin: largest width [m] among them, 0 if none.
    """

    first: Index
    second: Index
    narrowest_rejected: float
    too_wide: int
    alone: int
    thin: int = 0
    widest_thin: float = 0.0

    @property
    def paired(self) -> int:
        """Number of pairs."""
        return len(self.first)


@njit(cache=True, nogil=True)
def _find_partners(
    points: Array, normals: Array, seeds: Index, draws: Array, radius: float, cosine: float, low: float, high: float
) -> tuple[Index, Index, Array, Array]:
    """Partners of each seed (or −1): behind it along its normal, and across its medial ball.

    Also the least width beyond `high` that each seed met (inf if none), and the largest below `low` (0 if none).
    """
    behind = np.full(seeds.shape[0], -1, np.int64)
    across = np.full(seeds.shape[0], -1, np.int64)
    wider = np.full(seeds.shape[0], np.inf)
    thinner = np.zeros(seeds.shape[0])
    found = np.empty(points.shape[0], np.int64)
    for s in range(seeds.shape[0]):
        i = seeds[s]
        px, py, pz = points[i, 0], points[i, 1], points[i, 2]
        nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
        count, smallest = 0, 0.5 * high
        for j in range(points.shape[0]):
            dx, dy, dz = points[j, 0] - px, points[j, 1] - py, points[j, 2] - pz
            depth = -(dx * nx + dy * ny + dz * nz)
            if depth < 0.0 or (depth < low and depth <= thinner[s]):
                continue
            opposing = -(nx * normals[j, 0] + ny * normals[j, 1] + nz * normals[j, 2])
            if opposing < cosine:
                continue
            squared = dx * dx + dy * dy + dz * dz
            if depth < low:
                if squared - depth * depth <= radius * radius:
                    thinner[s] = depth
                continue
            if squared - depth * depth <= radius * radius:
                if depth > high:
                    wider[s] = min(wider[s], depth)
                else:
                    found[count] = j
                    count += 1
            # The ball through both points that is tangent to the surface at the seed.
            ball = 0.5 * squared / depth
            if ball < smallest:
                smallest = ball
                across[s] = j
        if count > 0:
            behind[s] = found[int(draws[s] * count)]
    return behind, across, wider, thinner


def antipodal_pairs(
    points: Array,
    normals: Array,
    count: int,
    min_width: float,
    max_width: float,
    opposing_angle: float,
    rng: np.random.Generator,
    vertical: Array | None = None,
    radius: float = 0.004,
    likely: Array | None = None,
) -> AntipodalPairs:
    """Pairs drawn from the cloud: a seed, and a point behind it along its normal, or across its medial ball.

    With a vertical, half of the seeds are drawn from the sides, which are few points of a flat object and most of what
    fingers can close on.

    The medial ball is the largest that touches the surface at the seed and lies inside: its centre is on the medial
    axis. It finds the local thickness where what lies straight behind is further off or missing.

    Args:
        points, normals: (N, 3) cloud, normals outwards.
        count: seeds drawn, with replacement; as many again, up to five times, while few of them find a partner.
        min_width, max_width: limits of the distance of a pair [m].
        opposing_angle: largest deviation of the two normals from opposite [rad].
        rng: source of randomness.
        vertical: (3,) direction up, if it is known.
        radius: largest distance of the partner behind from the seed's normal line [m].
        likely: (N,) how often each point is drawn by every second seed, all alike if None.
    """
    what = points, normals, count, min_width, max_width, opposing_angle, rng, vertical, radius, likely
    drawn = [_draw_pairs(*what)]
    # Of a bottle that lies on its broad side, only the neck fits between the fingers: a few seeds in a hundred.
    while sum(part.seeds for part in drawn) < _ENOUGH * count and len(drawn) < _DRAWS:
        drawn.append(_draw_pairs(*what))
    return AntipodalPairs(
        np.concatenate([part.pairs.first for part in drawn]),
        np.concatenate([part.pairs.second for part in drawn]),
        min(part.pairs.narrowest_rejected for part in drawn),
        sum(part.pairs.too_wide for part in drawn),
        sum(part.pairs.alone for part in drawn),
        sum(part.pairs.thin for part in drawn),
        max(part.pairs.widest_thin for part in drawn),
    )


class _Drawn(NamedTuple):
    """Pairs, and how many seeds have found one."""

    pairs: AntipodalPairs
    seeds: int


def _draw_pairs(
    points: Array,
    normals: Array,
    count: int,
    min_width: float,
    max_width: float,
    opposing_angle: float,
    rng: np.random.Generator,
    vertical: Array | None,
    radius: float,
    likely: Array | None,
) -> _Drawn:
    """One draw of seeds; arguments as of `antipodal_pairs`."""
    seeds = rng.integers(len(points), size=count)
    if vertical is not None:
        sides = np.flatnonzero(np.abs(normals @ vertical) < 0.5)
        if len(sides):
            seeds[: count // 2] = sides[rng.integers(len(sides), size=count // 2)]
    if likely is not None:
        seeds[1::2] = rng.choice(len(points), size=count // 2, p=likely / likely.sum())
    draws = rng.random(count)
    behind, across, wider, thinner = _find_partners(
        points, normals, seeds, draws, radius, math.cos(opposing_angle), min_width, max_width
    )
    paired = (behind >= 0) | (across >= 0)
    wide = ~paired & np.isfinite(wider)
    narrowest = float(wider[wide].min()) if wide.any() else math.inf
    thin = ~paired & ~wide & (thinner > 0.0)
    medial = (across >= 0) & (across != behind)
    pairs = AntipodalPairs(
        np.concatenate([seeds[behind >= 0], seeds[medial]]),
        np.concatenate([behind[behind >= 0], across[medial]]),
        narrowest,
        int(wide.sum()),
        int((~paired & ~wide).sum()),
        int(thin.sum()),
        float(thinner[thin].max()) if thin.any() else 0.0,
    )
    return _Drawn(pairs, int(paired.sum()))


def turned_little(
    points: Array, normals: Array, center_of_mass: Array, up: Array, weight: float, torque: float, reach: float
) -> Array:
    """(N,) in (0, 1], higher where fingers that close along the normal are turned less by the weight.

    Args:
        points, normals: (N, 3) cloud.
        center_of_mass, up: (3,).
        weight: [N].
        torque: that counts as large [N m].
        reach: how far behind a point the other finger may be [m].
    """
    arms = center_of_mass - points
    twist = np.einsum("ij,ij->i", np.cross(arms, up), normals)
    behind = -np.einsum("ij,ij->i", arms, normals)
    # What is not between the fingers is held by friction at their distance.
    beside = np.maximum(np.maximum(-behind, behind - reach), 0.0)
    share: Array = 1.0 / (1.0 + (weight / torque) ** 2 * (twist**2 + beside**2))
    return share


def starts_from_pairs(
    points: Array, normals: Array, pairs: AntipodalPairs, frame: Array, angles: Array, vertical: Array | None = None
) -> Starts:
    """One start a pair and approach angle, midway between the points.

    With a vertical, every second pair whose normals are nearly level is closed on along a level line: rounded or noisy
    surfaces have normals that tilt the fingers, and then one of them hangs lower and keeps both from reaching as far
    down as they could.

    Args:
        points, normals: (N, 3) cloud.
        pairs: P pairs.
        frame: (2, 3) direction that angle 0 is closest to, and another for pairs along the first.
        angles: (A,) approach angles about the closing direction [rad].
        vertical: (3,) direction up, if it is known.
    """
    y = normals[pairs.first] - normals[pairs.second]
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    if vertical is not None:
        rising = y @ vertical
        leveled = (np.abs(rising) < _NEARLY_LEVEL) & (np.arange(len(y)) % 2 == 0)
        y[leveled] -= rising[leveled, None] * vertical
        y /= np.linalg.norm(y, axis=1, keepdims=True)
    middle = 0.5 * (points[pairs.first] + points[pairs.second])
    widths = np.einsum("ij,ij->i", points[pairs.first] - points[pairs.second], y)
    return _spread(y, middle, widths, frame, angles)


@njit(cache=True, nogil=True)
def _slabs(
    points: Array, origins: Array, rotations: Array, half_width: float, depth: float, lower: Array, upper: Array
) -> None:
    """Extent along y of the points in the slab that the pads sweep, (S, A) out; empty slabs have lower > upper."""
    for s in range(rotations.shape[0]):
        for a in range(rotations.shape[1]):
            low, high = np.inf, -np.inf
            for i in range(points.shape[0]):
                dx = points[i, 0] - origins[s, 0]
                dy = points[i, 1] - origins[s, 1]
                dz = points[i, 2] - origins[s, 2]
                z = rotations[s, a, 0, 2] * dx + rotations[s, a, 1, 2] * dy + rotations[s, a, 2, 2] * dz
                if z < -0.003 or z > depth:
                    continue
                x = rotations[s, a, 0, 0] * dx + rotations[s, a, 1, 0] * dy + rotations[s, a, 2, 0] * dz
                if abs(x) > half_width:
                    continue
                y = rotations[s, a, 0, 1] * dx + rotations[s, a, 1, 1] * dy + rotations[s, a, 2, 1] * dz
                low, high = min(low, y), max(high, y)
            lower[s, a], upper[s, a] = low, high


def starts_from_normals(
    points: Array,
    normals: Array,
    count: int,
    angles: int,
    half_width: float,
    depth: float,
    max_width: float,
    frame: Array,
    rng: np.random.Generator,
) -> Starts:
    """Starts that come down on the surface against its normal, and close across what stands in the way of the pads.

    They need no opposite surface: an object seen from one side only still gets starts.

    Args:
        points, normals: (N, 3) cloud, normals outwards.
        count: seeds drawn, with replacement.
        angles: closing directions about each normal.
        half_width: of a pad [m].
        depth: how far below the surface the pads' middle goes, and half of the slab's depth [m].
        max_width: slabs wider than this get no start [m].
        frame: (2, 3) directions of the scene; closing direction 0 is across the first.
        rng: source of randomness.
    """
    seeds = rng.integers(len(points), size=count)
    z = -normals[seeds]
    along = np.abs(z @ frame[0]) > 0.9
    reference = np.where(along[:, None], frame[1], frame[0])
    x0 = reference - np.einsum("ij,ij->i", reference, z)[:, None] * z
    x0 /= np.maximum(np.linalg.norm(x0, axis=1, keepdims=True), 1e-12)
    y0 = np.cross(z, x0)
    turn = np.arange(angles) * (math.pi / angles)
    cosine, sine = np.cos(turn)[None, :, None], np.sin(turn)[None, :, None]
    y = cosine * y0[:, None] + sine * x0[:, None]
    z = np.broadcast_to(z[:, None], y.shape)
    rotations = np.ascontiguousarray(np.stack([np.cross(y, z), y, z], axis=3))
    lower, upper = np.empty(y.shape[:2]), np.empty(y.shape[:2])
    # A third of the points show the extent well enough.
    _slabs(np.ascontiguousarray(points[::3]), points[seeds], rotations, half_width, 2.0 * depth, lower, upper)
    widths = upper - lower
    kept = np.isfinite(widths) & (widths <= max_width) & (widths > 0.0)
    origins = np.broadcast_to(points[seeds][:, None], y.shape)[kept]
    middle = origins + 0.5 * (lower[kept] + upper[kept])[:, None] * y[kept] + depth * z[kept]
    return Starts(rotations[kept], middle, widths[kept], np.zeros(int(kept.sum())))


def starts_near(
    rotations: Array,
    translations: Array,
    widths: Array,
    copies: int,
    shift: float,
    turn: float,
    rng: np.random.Generator,
) -> Starts:
    """Copies of poses, moved at random in their own frames: along the pads, and mostly about the closing axis.

    Args:
        rotations, translations, widths: (S, 3, 3), (S, 3), (S,) poses and the widths that they close on [m].
        copies: of each pose.
        shift: standard deviation along x and z [m].
        turn: standard deviation about y [rad]; a third of it about x and z.
        rng: source of randomness.
    """
    from scipy.spatial.transform import Rotation

    count = len(widths) * copies
    vectors = rng.normal(size=(count, 3)) * np.array([turn / 3.0, turn, turn / 3.0])
    shifts = rng.normal(size=(count, 3)) * np.array([shift, 0.0, shift])
    around = np.repeat(rotations, copies, axis=0)
    moved = np.einsum("sij,sjk->sik", around, Rotation.from_rotvec(vectors).as_matrix())
    placed = np.repeat(translations, copies, axis=0) + np.einsum("sij,sj->si", around, shifts)
    return Starts(np.ascontiguousarray(moved), placed, np.repeat(widths, copies), np.zeros(count))


def _spread(y: Array, middle: Array, widths: Array, frame: Array, angles: Array) -> Starts:
    """Every closing direction with every approach angle about it."""
    along = np.abs(y @ frame[0]) > 0.995
    reference = np.where(along[:, None], frame[1], frame[0])
    z0 = reference - np.einsum("ij,ij->i", y, reference)[:, None] * y
    z0 /= np.maximum(np.linalg.norm(z0, axis=1, keepdims=True), 1e-12)
    x0 = np.cross(y, z0)
    cosine, sine = np.cos(angles)[None, :, None], np.sin(angles)[None, :, None]
    z = (cosine * z0[:, None] + sine * x0[:, None]).reshape(-1, 3)
    y_all = np.repeat(y, len(angles), axis=0)
    rotations = np.stack([np.cross(y_all, z), y_all, z], axis=2)
    return Starts(
        np.ascontiguousarray(rotations), np.repeat(middle, len(angles), axis=0), np.repeat(widths, len(angles)),
        np.zeros(len(rotations)),
    )  # fmt: skip
