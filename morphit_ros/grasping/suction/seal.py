"""How well the lip of a cup lies on a surface: the lip as a ring of springs that is laid onto the cloud.

As in Dex-Net 3.0 (Mahler et al. 2018, section IV): the vertices of the ring are moved along the approach until they lie
on the surface, and the seal is tight where no spring between neighbours (perimeter), or between every second one
(flexion), is stretched by more than a share; vertices without surface, and holes inside the ring, leak. Its cone
springs, which stand for what the cup's wall gives way by, are here the stroke of the bellows, which must also take up
what bulges into the cup. Places between points of the cloud are means of those around them, weighted by distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.spatial_hash import cells_around
from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.candidates import in_chunks
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.grasping.suction.lip import (
    COLUMNS,
    COVERAGE,
    CURVATURE,
    FLATNESS,
    HEIGHT,
    MISALIGNMENT,
    STRAIN,
    TRAVEL,
    Lip,
    lay_lips,
)

# Vertices of the ring, and places inside it across its radius that must have surface, too.
_VERTICES, _CELLS = 32, 5
# A place has surface if there is a point within so many of the cloud's spacings, or this share of the radius.
_NEAR_SPACINGS, _NEAR_SHARE = 1.2, 0.1
# Points nearer to each other than this share of the radius say no more about a seal.
_CELL = 0.07
# So much of the ring, or of what is inside, may be without a point: clouds have gaps that surfaces haven't.
_GAPS = 0.01
# Rounds in which the axis is laid along the normal of the plane under the lip.
_ROUNDS = 3

# Why a lip does not seal, in the order in which it is asked.
REASONS = ("edge or hole", "misaligned", "bellows stroke", "lip strain")


@dataclass(frozen=True)
class Seal:
    """A lip laid onto the surface.

    Attributes:
        quality: in [0, 1]; 0 where it does not seal.
        reason: of `REASONS`; empty if it seals.
        coverage: share of the ring and of what is inside it that has surface.
        travel: from the ring's lowest vertex along the axis to its highest one, or to what bulges into the cup [m].
        strain: largest stretch of a spring.
        misalignment: between the axis and the normal of the plane under the lip [rad].
        flatness: usual distance of the surface under the cup from that plane [m].
        curvature: larger one of the principal curvatures there, without its sign [1/m].
        rim: (K, 3) the vertices that have surface.
        center: (3,) the middle of the lip on the surface, at the mean height of the ring [m].
        depth: from there along the axis to the lowest place of the ring [m].
    """

    quality: float
    reason: str
    coverage: float
    travel: float
    strain: float
    misalignment: float
    flatness: float
    curvature: float
    rim: Array
    center: Array
    depth: float = 0.0


class SealTest:
    """Lays a cup onto one cloud.

    Args:
        points, normals: (N, 3) seen surface [m], unit normals outwards.
        cup: that is laid on.
        workers: threads.

    Attributes:
        points, normals: those that are looked at.
    """

    def __init__(self, points: Array, normals: Array, cup: SuctionCup, workers: int = 1) -> None:
        cells = np.floor(points / (_CELL * cup.cup_radius)).astype(np.int64)
        rows = np.sort(np.unique(cells, axis=0, return_index=True)[1])
        self.points, self.normals, self._cup, self._workers = points[rows], normals[rows], cup, workers
        angles = np.linspace(0.0, 2.0 * math.pi, _VERTICES, endpoint=False)
        axis = np.linspace(-1.0, 1.0, 2 * _CELLS + 1) * cup.cup_radius
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        near = max(_NEAR_SPACINGS * point_spacing(self.points), _NEAR_SHARE * cup.cup_radius)
        widest = max(1.2 * cup.cup_radius, cup.cup_radius + 2.0 * near)
        self._lip = Lip(
            ring=cup.cup_radius * np.column_stack([np.cos(angles), np.sin(angles)]),
            inside=grid[np.linalg.norm(grid, axis=1) <= 0.95 * cup.cup_radius],
            radius=cup.cup_radius,
            reach=math.hypot(widest, cup.bellows_stroke + 0.5 * cup.cup_radius),
            near=near,
            gaps=_GAPS,
        )
        self._cells = cells_around(self.points, self._lip.reach)
        self._sorted_normals = self.normals[self._cells.order]

    def along_normals(self, points: Array, normals: Array) -> tuple[Array, list[Seal]]:
        """The axes (S, 3) that the surface about points (S, 3) asks for, towards it, and the seals along them.

        Args:
            points, normals: (S, 3) places and outward normals to begin with.
        """
        axes = -np.asarray(normals, dtype=np.float64)
        return axes, self._laid(points, axes, _ROUNDS)

    def along(self, points: Array, axes: Array) -> list[Seal]:
        """Seals of a cup whose lip is moved along axes (S, 3), towards the surface, onto points (S, 3)."""
        return self._laid(points, np.array(axes, dtype=np.float64), 0)

    def _laid(self, points: Array, axes: Array, rounds: int) -> list[Seal]:
        """Seals at points (S, 3); the axes (S, 3) become those that were found."""
        middles = np.ascontiguousarray(points, dtype=np.float64)
        told, rims = np.empty((len(middles), COLUMNS)), np.empty((len(middles), _VERTICES, 3))

        def lay(part: slice) -> None:
            lay_lips(
                self._cells, self._sorted_normals, middles[part], axes[part], rounds, self._lip, told[part], rims[part]
            )

        in_chunks(len(middles), self._workers, lay)
        return [self._seal(*parts) for parts in zip(middles, axes, told, rims, strict=True)]

    def _seal(self, middle: Array, axis: Array, told: Array, rim: Array) -> Seal:
        cup = self._cup
        coverage, travel, strain = float(told[COVERAGE]), float(told[TRAVEL]), float(told[STRAIN])
        misalignment, bent = float(told[MISALIGNMENT]), (float(told[FLATNESS]), float(told[CURVATURE]))
        if math.isnan(travel):
            none = np.empty((0, 3))
            return Seal(0.0, REASONS[0], coverage, travel, strain, misalignment, *bent, none, middle)
        reason = ""
        if misalignment > cup.max_misalignment:
            reason = REASONS[1]
        elif travel > cup.bellows_stroke:
            reason = REASONS[2]
        elif strain > cup.lip_strain:
            reason = REASONS[3]
        quality = 0.0 if reason else (1.0 - travel / cup.bellows_stroke) * (1.0 - strain / cup.lip_strain)
        center = middle - axis * float(told[HEIGHT])
        places = rim[np.isfinite(rim[:, 0])]
        depth = float(((places - center) @ axis).max())
        return Seal(quality, reason, coverage, travel, strain, misalignment, *bent, places, center, depth)
