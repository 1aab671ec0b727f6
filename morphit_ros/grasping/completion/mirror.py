"""Completion by symmetry: the plane that mirrors what was seen onto itself, and what was not seen onto hidden places.

A plane is good if mirrored points either meet the seen surface with the same normal (support) or lie where no camera
could see (hidden), and bad if they lie where a camera looked through (contradiction). On a table planes are upright;
without one they are across the cloud's principal axes. Two planes at right angles are used where both are good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.nearest_grid import NearestGrid, nearest_grid, row_at
from morphit_ros.geometry.spatial_hash import distances_to
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import point_spacing, thin_evenly
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points, transform_vectors
from morphit_ros.grasping.completion.extrusion import extrude_to_table
from morphit_ros.grasping.completion.free_space import (
    DepthImages,
    depth_images,
    in_free_space,
    is_free,
    view_from_above,
)
from morphit_ros.grasping.completion.hull import hull_center
from morphit_ros.grasping.completion.shape import CompletedShape
from morphit_ros.grasping.completion.upright import upright_frame
from morphit_ros.jit import njit

# Points that candidate planes are judged by.
_JUDGES = 300
# Cells of the grid of seen points along its longest side, at most.
_LARGEST = 80
# Angles of upright candidate planes, and step of their offsets [m].
_ANGLES, _STEP = 16, 0.004
# Mean squared cosine between matched normals and a plane's, from which on its offset is determined by the distances.
_DETERMINED = 0.1
# Where segmentation cuts an object off above its table, nothing is known [m].
_CUT = 0.008


class MirrorPlane(NamedTuple):
    """A plane n·p = offset in the upright frame, with its evidence.

    Attributes:
        normal: (3,) unit.
        offset: [m].
        support: share of the mirrored points that meet the seen surface with its normal.
        contradiction: share that lies where a camera looked through.
    """

    normal: Array
    offset: float
    support: float
    contradiction: float

    @property
    def score(self) -> float:
        """Support, less twice the contradiction."""
        return self.support - 2.0 * self.contradiction


@dataclass(frozen=True)
class MirrorCompletion:
    """Mirrors the seen points at the best symmetry planes.

    Attributes:
        viewpoints: (K, 3) positions of the cameras, None if unknown: then only what would rise above the seen tops
            contradicts a plane.
        obstacles: (M, 3) points of other things that may hide the object.
        least_support, most_contradiction: what a plane must keep to be used.
    """

    viewpoints: Array | None = None
    obstacles: Array | None = None
    least_support: float = 0.35
    most_contradiction: float = 0.06

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`; without a good plane it is the extrusion or the hull, with a low confidence."""
        return self.complete(points, normals, table, self.planes(points, normals, table))

    def planes(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> list[MirrorPlane]:
        """The best plane and, where it is good as well, the best one at right angles to it; in the upright frame."""
        T_frame_world = invert_transform(upright_frame(points, table))
        local, facing = transform_points(T_frame_world, points), transform_vectors(T_frame_world, normals)
        upright, spacing = table is not None, point_spacing(points)
        images = self._images(local, T_frame_world, spacing, upright)
        jury = _Jury(local, facing, images, spacing, upright)
        if upright:
            angles = np.arange(_ANGLES) * math.pi / _ANGLES
            directions = np.stack([np.cos(angles), np.sin(angles), np.zeros(_ANGLES)], axis=1)
        else:
            directions = np.eye(3)
        found = jury.best_offsets(directions)
        best = max(found, key=lambda plane: plane.score)
        chosen = [jury.refined(best)]
        across = [plane for plane in found if abs(float(plane.normal @ best.normal)) < 0.2]
        if across:
            chosen.append(jury.refined(max(across, key=lambda plane: plane.score)))
        # Where nothing can contradict, support has to say it all.
        least = self.least_support if len(images.eyes) else max(self.least_support, 0.6)
        return [plane for plane in chosen if plane.support >= least and plane.contradiction <= self.most_contradiction]

    def complete(
        self, points: Array, normals: Array, table: SupportPlaneLike | None, planes: list[MirrorPlane]
    ) -> CompletedShape:
        """The shape with known planes."""
        frame, spacing = upright_frame(points, table), point_spacing(points)
        T_frame_world = invert_transform(frame)
        local, facing = transform_points(T_frame_world, points), transform_vectors(T_frame_world, normals)
        images = self._images(local, T_frame_world, spacing, table is not None)
        whole, whole_normals = local, facing
        for plane in planes:
            mirrored, mirrored_normals = reflect_points(whole, plane), reflect_vectors(whole_normals, plane)
            new = distances_to(mirrored, whole, 1.5 * spacing) > 1.5 * spacing
            new &= ~in_free_space(mirrored, images)
            if table is not None:
                new &= mirrored[:, 2] > 0.0
            whole = np.concatenate([whole, mirrored[new]])
            whole_normals = np.concatenate([whole_normals, mirrored_normals[new]])
        virtual, virtual_normals = whole[len(local) :], whole_normals[len(local) :]
        if table is not None:
            sides = extrude_to_table(
                whole, whole_normals, np.eye(4), max(0.003, 0.8 * spacing),
                obstacles=None if self.obstacles is None else transform_points(T_frame_world, self.obstacles),
                viewpoints=None if self.viewpoints is None else transform_points(T_frame_world, self.viewpoints),
                made_up=np.arange(len(whole)) >= len(local),
            )  # fmt: skip
            virtual = np.concatenate([virtual, sides.points])
            virtual_normals = np.concatenate([virtual_normals, sides.normals])
            center, confidence = sides.center_of_mass, sides.confidence
        else:
            center, confidence = hull_center(whole), 0.6
        for plane in planes:
            center = center - (float(plane.normal @ center) - plane.offset) * plane.normal
        # A plane with little support may be none.
        weakest = min((plane.score for plane in planes), default=0.0)
        confidence *= float(np.clip(weakest / 0.6, 0.5, 1.0))
        name = f"mirror ({len(planes)} plane{'' if len(planes) == 1 else 's'})"
        return CompletedShape(
            transform_points(frame, virtual), transform_vectors(frame, virtual_normals),
            transform_points(frame, center), confidence, method=name,
        )  # fmt: skip

    def _images(self, local: Array, T_frame_world: Array, spacing: float, upright: bool) -> DepthImages:
        seen = local
        if self.obstacles is not None:
            seen = np.concatenate([local, transform_points(T_frame_world, self.obstacles)])
        if self.viewpoints is not None:
            return depth_images(seen, transform_points(T_frame_world, self.viewpoints), spacing)
        return view_from_above(seen, spacing) if upright else depth_images(seen, np.empty((0, 3)), spacing)


class _Jury:
    """Points that planes are judged by, and what they are compared with; all in the upright frame."""

    def __init__(self, local: Array, facing: Array, images: DepthImages, spacing: float, upright: bool) -> None:
        self.seen, self.facing = np.ascontiguousarray(local), np.ascontiguousarray(facing)
        rows = thin_evenly(local, facing, _JUDGES, np.random.default_rng(0))
        self.points, self.normals = np.ascontiguousarray(local[rows]), np.ascontiguousarray(facing[rows])
        self.images, self.upright = images, upright
        self.grid = _seen_grid(self.seen, max(spacing, 0.003))

    def best_offsets(self, directions: Array) -> list[MirrorPlane]:
        """The best plane for each normal (D, 3)."""
        along = self.points @ directions.T
        low, high = along.min(axis=0), along.max(axis=0)
        width = np.maximum(high - low, 1e-6)
        # Half of the object may be hidden: the plane lies no further out than what was seen.
        share = np.linspace(0.2, 0.8, int(np.clip(0.6 * width.max() / _STEP, 5, 18)))
        offsets = low[:, None] + share * width[:, None]
        # A third of the points is enough to sort planes out.
        count = len(share)
        support, contradiction = self._judge(np.repeat(directions, count, axis=0), offsets.ravel(), 3)
        # Between equals the middle of what was seen.
        score = support - 2.0 * contradiction - 0.1 * np.tile(np.abs(share - 0.5), len(directions))
        rows = np.arange(len(directions)) * count + np.argmax(score.reshape(-1, count), axis=1)
        return [
            MirrorPlane(
                directions[row // count], float(offsets.flat[row]), float(support[row]), float(contradiction[row])
            )
            for row in rows
        ]

    def refined(self, plane: MirrorPlane) -> MirrorPlane:
        """Planes beside it, then Gauss–Newton on the point-to-plane distance of mirrored points."""
        start = self._nearby(plane) if self.upright else self._planes(plane.normal[None], np.array([plane.offset]))[0]
        normal, offset, facing_it = start.normal, start.offset, 0.0
        for _ in range(3):
            current = MirrorPlane(normal, offset, 0.0, 0.0)
            mirrored = reflect_points(self.points, current)
            partner = _partners(mirrored, reflect_vectors(self.normals, current), self.facing, self.grid)
            matched = partner >= 0
            if matched.sum() < 8:
                break
            facing_it = float(((self.facing[partner[matched]] @ normal) ** 2).mean())
            normal, offset = self._step(normal, offset, mirrored[matched], matched, partner[matched])
        if facing_it < _DETERMINED:
            offset = self._middle_offset(normal, offset)
        refined = self._planes(normal[None], np.array([offset]))[0]
        return refined if refined.score >= start.score - 0.02 else start

    def _middle_offset(self, normal: Array, offset: float) -> float:
        """The middle of the offsets that are as good as the best: where only tops match, they slide on themselves."""
        offsets = offset + np.linspace(-0.008, 0.008, 17)
        support, contradiction = self._judge(np.repeat(normal[None], len(offsets), axis=0), offsets, 1)
        score = support - 2.0 * contradiction
        return float(offsets[score >= score.max() - 0.015].mean())

    def _nearby(self, plane: MirrorPlane) -> MirrorPlane:
        """The best of the planes between this one and its neighbours in the search."""
        heading = math.atan2(plane.normal[1], plane.normal[0]) + (np.arange(-2, 3) / 4.0) * (math.pi / _ANGLES)
        normals = np.stack([np.cos(heading), np.sin(heading), np.zeros(len(heading))], axis=1)
        # About the middle of the seen points, so that a turn doesn't shift the plane.
        center = self.points.mean(axis=0)
        offsets = (normals @ center + plane.offset - float(plane.normal @ center))[:, None] + [-0.002, 0.0, 0.002]
        candidates = self._planes(np.repeat(normals, 3, axis=0), offsets.ravel())
        return max(candidates, key=lambda candidate: candidate.score)

    def _planes(self, normals: Array, offsets: Array) -> list[MirrorPlane]:
        support, contradiction = self._judge(normals, offsets, 1)
        return [
            MirrorPlane(normals[k], float(offsets[k]), float(support[k]), float(contradiction[k]))
            for k in range(len(offsets))
        ]

    def _judge(self, planes: Array, offsets: Array, stride: int) -> tuple[Array, Array]:
        cut = _CUT if self.upright else -math.inf
        return _judge(
            self.points[::stride], self.normals[::stride], np.ascontiguousarray(planes), offsets, self.facing,
            self.grid, self.images, cut,
        )  # fmt: skip

    def _step(
        self, normal: Array, offset: float, mirrored: Array, matched: NDArray[np.bool_], partner: NDArray[np.int64]
    ) -> tuple[Array, float]:
        """One Gauss–Newton step of offset and, if upright, heading; with q' = q − 2 (n·q − o) n."""
        target, surface, points = self.seen[partner], self.facing[partner], self.points[matched]
        residual = np.einsum("ij,ij->i", mirrored - target, surface)
        turned = np.array([-normal[1], normal[0], 0.0])
        slopes = np.zeros((len(residual), 2))
        slopes[:, 0] = 2.0 * surface @ normal
        if self.upright:
            height = points @ normal - offset
            slopes[:, 1] = -2.0 * ((points @ turned) * (surface @ normal) + height * (surface @ turned))
        weights = 1.0 / (1.0 + (residual / 0.002) ** 2)
        # What the surface doesn't determine stays: the second unknown is an angle, on an arm of about 5 cm.
        matrix = (slopes * weights[:, None]).T @ slopes + np.diag([1e-3, 1e-3 * 0.05**2]) * len(residual)
        step = np.clip(-np.linalg.solve(matrix, slopes.T @ (weights * residual)), [-0.004, -0.15], [0.004, 0.15])
        normal = normal + step[1] * turned
        return normal / np.linalg.norm(normal), offset + float(step[0])


def reflect_points(points: Array, plane: MirrorPlane) -> Array:
    """Mirror images (N, 3) of points."""
    mirrored: Array = points - 2.0 * (points @ plane.normal - plane.offset)[:, None] * plane.normal
    return mirrored


def reflect_vectors(vectors: Array, plane: MirrorPlane) -> Array:
    """Mirror images (N, 3) of vectors."""
    mirrored: Array = vectors - 2.0 * (vectors @ plane.normal)[:, None] * plane.normal
    return mirrored


def _seen_grid(points: Array, size: float) -> NearestGrid:
    """The grid of the seen points (N, 3), with cells of `size` [m] or larger ones if there were too many."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(size, float((high - low).max()) / _LARGEST)
    low = low - 1.5 * size
    return nearest_grid(points, low, ((high - low) / size).astype(np.int64) + 3, size, steps=1)


@njit(cache=True, nogil=True)
def _partner_of(x: float, y: float, z: float, nx: float, ny: float, nz: float, facing: Array, grid: NearestGrid) -> int:
    """The seen point near a place if its normal is within 45° of the given one, else −1."""
    row = row_at(grid, x, y, z)
    if row < 0 or facing[row, 0] * nx + facing[row, 1] * ny + facing[row, 2] * nz < 0.7:
        return -1
    return row


@njit(cache=True, nogil=True)
def _partners(points: Array, normals: Array, facing: Array, grid: NearestGrid) -> NDArray[np.int64]:
    """`_partner_of` each of the points (Q, 3) with normals (Q, 3)."""
    result = np.empty(points.shape[0], np.int64)
    for i in range(points.shape[0]):
        result[i] = _partner_of(
            points[i, 0], points[i, 1], points[i, 2], normals[i, 0], normals[i, 1], normals[i, 2], facing, grid
        )
    return result


@njit(cache=True, nogil=True)
def _judge(
    points: Array,
    normals: Array,
    planes: Array,
    offsets: Array,
    facing: Array,
    grid: NearestGrid,
    images: DepthImages,
    cut: float,
) -> tuple[Array, Array]:
    """Support and contradiction (P,) of the planes with normals (P, 3) and offsets (P,)."""
    support, contradiction = np.zeros(offsets.size), np.zeros(offsets.size)
    for k in range(offsets.size):
        a, b, c = planes[k, 0], planes[k, 1], planes[k, 2]
        for i in range(points.shape[0]):
            turn = 2.0 * (normals[i, 0] * a + normals[i, 1] * b + normals[i, 2] * c)
            shift = 2.0 * (points[i, 0] * a + points[i, 1] * b + points[i, 2] * c - offsets[k])
            x, y, z = points[i, 0] - shift * a, points[i, 1] - shift * b, points[i, 2] - shift * c
            nx, ny, nz = normals[i, 0] - turn * a, normals[i, 1] - turn * b, normals[i, 2] - turn * c
            if _partner_of(x, y, z, nx, ny, nz, facing, grid) >= 0:
                support[k] += 1.0
            elif z > cut and is_free(x, y, z, images):
                contradiction[k] += 1.0
    return support / points.shape[0], contradiction / points.shape[0]
