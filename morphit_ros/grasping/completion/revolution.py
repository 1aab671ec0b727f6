"""Completion of solids of revolution: an axis from the normals, a profile about it, and the profile turned all around.

The normal lines of a surface of revolution meet its axis (a linear complex of lines: Pottmann and Randrup 1998),
which gives the axis from any part of the surface without knowing the profile. The profile is then the usual radius
at each height; walls that were seen from inside make the solid hollow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.spatial_hash import distances_to
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import point_spacing, thin_evenly
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points, transform_vectors
from morphit_ros.grasping.completion.free_space import images_of_scene, in_free_space
from morphit_ros.grasping.completion.profile import SLICE, measure_profile, median_by_slice, turned_profile
from morphit_ros.grasping.completion.shape import CompletedShape, confidence_of_error
from morphit_ros.grasping.completion.upright import upright_frame
from morphit_ros.jit import njit

# Points that axes are fitted to.
_JUDGES = 800
# Share of a turned surface that cameras may have looked through: profiles and edges are not exact.
_MOST_REFUTED = 0.2


@dataclass(frozen=True)
class RevolutionFit:
    """An axis and how well the cloud turns about it.

    Attributes:
        T_world_axis: (4, 4), z along the axis.
        share: of the points on the outside, those at their height's usual radius with a radial normal.
        coverage: share of the full circle that those points cover at a height, the lower quartile over all heights.
        spread: median deviation from the usual radius [m].
    """

    T_world_axis: Array
    share: float
    coverage: float
    spread: float

    @property
    def supported(self) -> bool:
        """Whether the cloud is a part of a solid of revolution."""
        return self.share >= 0.85 and self.coverage >= 0.15


@dataclass(frozen=True)
class RevolutionCompletion:
    """Turns the profile of a solid of revolution all around; `fit` says whether there is one.

    Attributes:
        viewpoints: (K, 3) positions of the cameras, None if unknown: nothing is made up where they looked through.
        obstacles: (M, 3) points of other things that may hide the object.
    """

    viewpoints: Array | None = None
    obstacles: Array | None = None

    def fit(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> RevolutionFit | None:
        """The best axis, upright on a table first, None where there are too few points with a side."""
        rows = thin_evenly(points, normals, _JUDGES, np.random.default_rng(0))
        judges, facing, frame = points[rows], normals[rows], upright_frame(points, table)
        upright = _fit_about(judges, facing, frame) if table is not None else None
        # An upright axis needs two numbers, a free one four: where the first is good there is no need for the second.
        if upright is not None and upright.supported:
            return upright
        axis = _axis_from_complex(judges, facing)
        fits = [upright, _fit_about(judges, facing, _frame_along(*axis, frame))]
        known = [fit for fit in fits if fit is not None]
        return max(known, key=lambda fit: fit.share * min(1.0, fit.coverage / 0.3)) if known else None

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`; where no axis is supported the confidence is low."""
        fit = self.fit(points, normals, table)
        if fit is None:
            return CompletedShape(np.empty((0, 3)), np.empty((0, 3)), points.mean(axis=0), 0.05, method="revolution")
        return self.complete(points, normals, table, fit)

    def complete(
        self, points: Array, normals: Array, table: SupportPlaneLike | None, fit: RevolutionFit
    ) -> CompletedShape:
        """The shape about a known axis."""
        return self._turned(points, normals, table, fit)[0]

    def complete_unless_refuted(
        self, points: Array, normals: Array, table: SupportPlaneLike | None, fit: RevolutionFit
    ) -> CompletedShape | None:
        """The shape about a known axis, None where the cameras looked through much of it.

        A banana turns well about the middle of its bend, but the rest of that ring isn't there.
        """
        shape, refuted = self._turned(points, normals, table, fit)
        return shape if refuted <= _MOST_REFUTED else None

    def _turned(
        self, points: Array, normals: Array, table: SupportPlaneLike | None, fit: RevolutionFit
    ) -> tuple[CompletedShape, float]:
        """The shape, and the share of the turned surface that a camera looked through."""
        T_axis_world = invert_transform(fit.T_world_axis)
        local, facing = transform_points(T_axis_world, points), transform_vectors(T_axis_world, normals)
        upright = table is not None and abs(float(T_axis_world[2, :3] @ table.T_world_table[:3, 2])) > 0.999
        foot = None
        if table is not None and upright:
            origin = transform_points(T_axis_world, table.T_world_table[:3, 3])
            # The frame of an upright axis is turned so that its z is the table's.
            foot = float(origin[2])
        profile = measure_profile(local, facing, foot)
        spacing = point_spacing(points)
        virtual, virtual_normals = turned_profile(profile, spacing)
        world = transform_points(fit.T_world_axis, virtual)
        world_normals = transform_vectors(fit.T_world_axis, virtual_normals)
        keep = distances_to(world, points, 1.5 * spacing) > 1.5 * spacing
        if table is not None:
            keep &= (world - table.T_world_table[:3, 3]) @ table.T_world_table[:3, 2] > 0.0
        refuted = 0.0
        if self.viewpoints is not None:
            T_frame_world = invert_transform(upright_frame(points, table))
            images = images_of_scene(points, self.obstacles, self.viewpoints, T_frame_world, spacing)
            free = in_free_space(transform_points(T_frame_world, world), images)
            refuted = float((keep & free).sum()) / max(len(world), 1)
            keep &= ~free
        com = transform_points(fit.T_world_axis, np.array([0.0, 0.0, profile.middle]))
        # Radii are known to the spread; how deep a cavity goes and how thick its floor is, only within limits.
        height = float(local[:, 2].max() - local[:, 2].min())
        error = 0.001 + 2.0 * fit.spread + 0.03 * (1.0 - fit.share) + (0.06 * height if profile.hollow else 0.0)
        shape = CompletedShape(
            world[keep], world_normals[keep], com, confidence_of_error(error), method="solid of revolution"
        )
        return shape, refuted


def _axis_from_complex(points: Array, normals: Array) -> tuple[Array, Array]:
    """A point on the axis (3,) and its direction (3,): min Σ w (n·c̄ + (p × n)·c)² over |c| = 1, trimmed."""
    center = points.mean(axis=0)
    scale = max(float(np.linalg.norm(points - center, axis=1).mean()), 1e-9)
    offsets = (points - center) / scale
    rows = np.hstack([normals, np.cross(offsets, normals)])
    weights = np.ones(len(points))
    direction, shift = np.zeros(3), np.zeros(3)
    for _ in range(6):
        moments = (rows * weights[:, None]).T @ rows
        top, cross, bottom = moments[:3, :3], moments[:3, 3:], moments[3:, 3:]
        # Eliminate c̄; a hardly determined translation (a cylinder's along its axis) is kept small.
        inverse = np.linalg.inv(top + 1e-6 * np.trace(top) * np.eye(3))
        direction = _least_axis(
            bottom - cross.T @ inverse @ cross, 0.01 * float(np.trace(bottom)), normals.mean(axis=0)
        )
        shift = -inverse @ cross @ direction
        residual = rows @ np.concatenate([shift, direction])
        size = 1.5 * float(np.median(np.abs(residual))) + 0.02
        weights = 1.0 / (1.0 + (residual / size) ** 2) ** 2
    # The motion is shift + direction × p: it leaves the points of the axis where they are.
    return center + scale * np.cross(direction, shift), direction


def _least_axis(moments: Array, tolerance: float, facing: Array) -> Array:
    """The eigenvector (3,) of the smallest eigenvalue; of several (a ball), the one most across the seen side.

    A ball turns about every axis. One towards the camera would turn the seen half onto itself.
    """
    values, vectors = np.linalg.eigh(moments)
    free = vectors[:, values <= values[0] + tolerance]
    if free.shape[1] == 1:
        axis: Array = free[:, 0]
        return axis
    across = np.linalg.svd((facing @ free)[None])[2]
    turned: Array = free @ across[1]
    return turned / np.linalg.norm(turned)


def _frame_along(origin: Array, direction: Array, reference: Array) -> Array:
    """``T_world_axis`` with z along the direction, turned to the side of the reference frame it lies nearest to."""
    along = reference[:3, :3].T @ direction
    strongest = int(np.argmax(np.abs(along)))
    z = direction if along[strongest] >= 0.0 else -direction
    x = np.cross(reference[:3, (strongest + 1) % 3], z)
    x /= np.linalg.norm(x)
    return make_transform(np.stack([x, np.cross(z, x), z], axis=1), origin)


def _fit_about(points: Array, normals: Array, frame: Array) -> RevolutionFit | None:
    """The axis parallel to the frame's z that the cloud turns about best."""
    T_frame_world = invert_transform(frame)
    local, facing = transform_points(T_frame_world, points), transform_vectors(T_frame_world, normals)
    steep = np.hypot(facing[:, 0], facing[:, 1])
    sides = steep > 0.4
    if sides.sum() < 20:
        return None
    position, direction = local[sides], facing[sides, :2] / steep[sides, None]
    slices = np.floor((position[:, 2] - position[:, 2].min()) / SLICE).astype(np.int64)
    order = np.argsort(slices, kind="stable")
    position, direction, slices = position[order, :], direction[order], slices[order]
    center = _center(np.ascontiguousarray(position[:, :2]), np.ascontiguousarray(direction), slices)
    if not np.isfinite(center).all():
        return None
    arms = position[:, :2] - center
    radius = np.linalg.norm(arms, axis=1)
    outside = np.einsum("ij,ij->i", arms, direction) > 0.0
    usual = median_by_slice(radius, slices, outside)[slices]
    deviation = np.abs(radius - usual)
    aligned = np.einsum("ij,ij->i", arms, direction) > 0.85 * radius
    # Where the surface slopes, the radius changes within a slice.
    slope = np.minimum(np.abs(facing[sides, 2][order]) / steep[sides][order], 2.0)
    fits = outside & aligned & (deviation < np.clip(0.1 * usual, 0.0012, 0.004) + 0.5 * SLICE * slope)
    if fits.sum() < 10:
        return None
    azimuth = np.arctan2(arms[fits, 1], arms[fits, 0])
    sectors = ((azimuth + math.pi) / (2.0 * math.pi) * 36).astype(np.int64) % 36
    # Height by height: an arm that sticks out turns about any axis as far as it is wide, other heights do not make up.
    occupied = np.zeros((int(slices.max()) + 1, 36), dtype=bool)
    occupied[slices[fits], sectors] = True
    numbers = np.bincount(slices[fits], minlength=len(occupied))
    coverage = float(np.quantile(occupied[numbers > 0].mean(axis=1), 0.25))
    return RevolutionFit(
        frame @ make_transform(translation=(center[0], center[1], 0.0)),
        float(fits.sum() / outside.sum()), coverage, float(np.median(deviation[outside])),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _center(points: Array, directions: Array, slices: NDArray[np.int64]) -> Array:
    """Where lines (N, 2) of points sorted by slice meet, such that the radii of each slice are equal; NaN for nowhere.

    First min Σ w ((p − c) × d)², then Gauss–Newton on Σ w (‖p − c‖ − r(slice))²; weights w against outliers.
    """
    count = points.shape[0]
    center = np.zeros(2)
    nowhere = np.full(2, np.nan)
    offsets = points[:, 1] * directions[:, 0] - points[:, 0] * directions[:, 1]
    weights = np.ones(count)
    miss = np.empty(count)
    for _ in range(7):
        xx, xy, yy, bx, by = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(count):
            x, y, w = -directions[i, 1], directions[i, 0], weights[i]
            xx += w * x * x
            xy += w * x * y
            yy += w * y * y
            bx += w * x * offsets[i]
            by += w * y * offsets[i]
        determinant, trace = xx * yy - xy * xy, xx + yy
        # All lines are parallel: a flat side has no axis.
        if determinant < 1e-3 * count * trace:
            return nowhere
        center[0] = (yy * bx - xy * by) / determinant
        center[1] = (xx * by - xy * bx) / determinant
        for i in range(count):
            miss[i] = directions[i, 0] * center[1] - directions[i, 1] * center[0] - offsets[i]
        size = 1.5 * np.median(np.abs(miss)) + 5e-4
        for i in range(count):
            weights[i] = 1.0 / (1.0 + (miss[i] / size) ** 2) ** 2
    radius, values = np.empty(count), np.empty(count)
    for _ in range(6):
        xx, xy, yy, bx, by, used = 1e-9, 0.0, 1e-9, 0.0, 0.0, 0
        first = 0
        while first < count:
            end = first
            number = 0
            while end < count and slices[end] == slices[first]:
                x, y = points[end, 0] - center[0], points[end, 1] - center[1]
                radius[end] = max(math.sqrt(x * x + y * y), 1e-6)
                # Inner walls have radii of their own.
                if x * directions[end, 0] + y * directions[end, 1] > 0.0:
                    values[number] = radius[end]
                    number += 1
                end += 1
            if number >= 3:
                used += number
                usual = np.median(values[:number])
                total, mean_x, mean_y, level = 0.0, 0.0, 0.0, 0.0
                for turn in range(2):
                    for i in range(first, end):
                        x, y = (points[i, 0] - center[0]) / radius[i], (points[i, 1] - center[1]) / radius[i]
                        if x * directions[i, 0] + y * directions[i, 1] <= 0.0:
                            continue
                        w = 1.0 / (1.0 + ((radius[i] - usual) / 0.002) ** 2) ** 2
                        if turn == 0:
                            total += w
                            mean_x += w * x
                            mean_y += w * y
                            level += w * radius[i]
                        else:
                            x, y, gap = x - mean_x / total, y - mean_y / total, radius[i] - level / total
                            xx += w * x * x
                            xy += w * x * y
                            yy += w * y * y
                            bx += w * x * gap
                            by += w * y * gap
            first = end
        if used < 20:
            return nowhere
        xx += 1e-6 * used
        yy += 1e-6 * used
        determinant = xx * yy - xy * xy
        center[0] += (yy * bx - xy * by) / determinant
        center[1] += (xx * by - xy * bx) / determinant
    return center
