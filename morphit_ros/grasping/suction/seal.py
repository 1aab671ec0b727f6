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
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.suction.cup import SuctionCup

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
        center: (3,) the middle of the lip on the surface [m].
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


class SealTest:
    """Lays a cup onto one cloud.

    Args:
        points, normals: (N, 3) seen surface [m], unit normals outwards.
        cup: that is laid on.

    Attributes:
        points, normals: those that are looked at.
    """

    def __init__(self, points: Array, normals: Array, cup: SuctionCup) -> None:
        cells = np.floor(points / (_CELL * cup.cup_radius)).astype(np.int64)
        rows = np.sort(np.unique(cells, axis=0, return_index=True)[1])
        self.points, self.normals, self._cup = points[rows], normals[rows], cup
        self._tree = cKDTree(self.points)
        self._near = max(_NEAR_SPACINGS * point_spacing(self.points), _NEAR_SHARE * cup.cup_radius)
        angles = np.linspace(0.0, 2.0 * math.pi, _VERTICES, endpoint=False)
        self._ring = cup.cup_radius * np.column_stack([np.cos(angles), np.sin(angles)])
        axis = np.linspace(-1.0, 1.0, 2 * _CELLS + 1) * cup.cup_radius
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        self._inside = grid[np.linalg.norm(grid, axis=1) <= 0.95 * cup.cup_radius]

    def along_normal(self, point: Array, normal: Array) -> tuple[Array, Seal]:
        """The axis (3,) that the surface about a point asks for, towards the surface, and the seal along it."""
        axis = -normal
        for _ in range(_ROUNDS):
            under = self._under(point, axis)
            if len(under) < 6:
                break
            _, _, turned = np.linalg.svd(under - under.mean(axis=0), full_matrices=False)
            axis = turned[2] * np.sign(turned[2] @ axis)
        return axis, self.along(point, axis)

    def _under(self, point: Array, axis: Array) -> Array:
        """Points (M, 3) of the surface under the cup, which show themselves to it."""
        cup = self._cup
        reach = math.hypot(1.2 * cup.cup_radius, cup.bellows_stroke + 0.5 * cup.cup_radius)
        rows = np.array(self._tree.query_ball_point(point, reach), dtype=np.int64)
        if not len(rows):
            return np.empty((0, 3))
        local = self.points[rows] - point
        heights = local @ axis
        radial = np.linalg.norm(local - heights[:, None] * axis, axis=1)
        return self.points[rows[(radial <= cup.cup_radius + self._near) & (self.normals[rows] @ axis < -0.3)]]

    def along(self, point: Array, axis: Array) -> Seal:
        """The seal of a cup whose lip is moved along an axis (3,), towards the surface, onto a point (3,)."""
        cup = self._cup
        first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
        first /= np.linalg.norm(first)
        across = np.stack([first, np.cross(axis, first)])
        under = self._under(point, axis) - point
        flat, heights = under @ across.T, -(under @ axis)
        bulge, inside = self._nearest(flat, heights, self._inside)
        _, on_rim = self._nearest(flat, heights, self._ring)
        coverage = min(float(on_rim.mean()), float(inside.mean()))
        if coverage < 1.0 - _GAPS or len(under) < 12:
            return Seal(
                0.0, REASONS[0], coverage, math.nan, math.nan, math.nan, math.nan, math.nan, np.empty((0, 3)), point
            )
        rim = self._heights(flat, heights, self._ring)
        ring = np.column_stack([self._ring, rim])[on_rim]
        rim = np.interp(np.arange(_VERTICES), np.flatnonzero(on_rim), rim[on_rim], period=_VERTICES)
        # Tilt, and principal curvatures, of the quadratic form of the surface under the cup.
        x, y = flat.T
        form = np.column_stack([x * x, x * y, y * y, x, y, np.ones(len(x))])
        a, b, c = np.linalg.lstsq(form, heights, rcond=None)[0][:3]
        plane = np.column_stack([x, y, np.ones(len(x))])
        slope = np.linalg.lstsq(plane, heights, rcond=None)[0]
        residual = float(np.sqrt(np.mean((heights - plane @ slope) ** 2)))
        misalignment = math.atan(math.hypot(slope[0], slope[1]))
        curvature = float(np.abs(np.linalg.eigvalsh([[2.0 * a, b], [b, 2.0 * c]])).max())
        travel = max(float(rim.max()), float(bulge[inside].max())) - float(rim.min())
        strain = max(self._stretch(rim, step) for step in (1, 2))
        middle = point - axis * float(rim.mean())
        rim_places = point + ring[:, :2] @ across - ring[:, 2:] * axis
        reason = ""
        if misalignment > cup.max_misalignment:
            reason = REASONS[1]
        elif travel > cup.bellows_stroke:
            reason = REASONS[2]
        elif strain > cup.lip_strain:
            reason = REASONS[3]
        quality = 0.0 if reason else (1.0 - travel / cup.bellows_stroke) * (1.0 - strain / cup.lip_strain)
        return Seal(quality, reason, coverage, travel, strain, misalignment, residual, curvature, rim_places, middle)

    def _heights(self, flat: Array, heights: Array, places: Array) -> Array:
        """Heights (P,) of the surface at places (P, 2) across the axis."""
        squared = ((flat[None] - places[:, None]) ** 2).sum(axis=2)
        weights = np.exp(-0.5 * squared / (0.5 * self._near) ** 2)
        return np.asarray((weights @ heights) / np.maximum(weights.sum(axis=1), 1e-12))

    def _nearest(self, flat: Array, heights: Array, places: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Heights (P,) by the nearest point, and whether there is surface (P,)."""
        if not len(flat):
            return np.zeros(len(places)), np.zeros(len(places), dtype=np.bool_)
        distances, rows = cKDTree(flat).query(places)
        return heights[rows], distances <= self._near

    def _stretch(self, heights: Array, step: int) -> float:
        """Largest stretch of springs between vertices of the ring that are so many apart."""
        flat = np.linalg.norm(np.roll(self._ring, -step, axis=0) - self._ring, axis=1)
        return float((np.hypot(flat, np.roll(heights, -step) - heights) / flat).max() - 1.0)
