"""Targets from data: height maps, triangle meshes, and surfaces between two others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.cover.goals.targets import HeightTarget, SurfaceTarget, TargetSample, sample_heights
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshLike, as_mesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.triangle_tree import TriangleTree

# Faces: of more than this many the tree takes seconds to make.
_LARGEST_MESH = 500_000


class HeightMapTarget:
    """Heights on a grid, interpolated by cubic splines; outside, the border goes on with its slope.

    Args:
        heights: (rows, cols) [m]; row i is y = origin y + i spacing, column j is x = origin x + j spacing.
        origin: (x, y) of the first height in the world frame [m].
        spacing: of the grid [m].

    Raises:
        InvalidInputError: fewer than 4 x 4 heights, or some that are not finite.
    """

    def __init__(self, heights: ArrayLike, origin: tuple[float, float], spacing: float) -> None:
        from scipy.interpolate import RectBivariateSpline

        grid = np.asarray(heights, dtype=np.float64)
        if grid.ndim != 2 or min(grid.shape) < 4 or not np.isfinite(grid).all():
            raise InvalidInputError("heights", f"shape {grid.shape}", "finite heights, at least 4 x 4")
        if not (np.isfinite(spacing) and spacing > 0.0 and np.isfinite(origin).all()):
            raise InvalidInputError("spacing, origin", (spacing, origin), "a positive length and a finite point [m]")
        self._x = origin[0] + spacing * np.arange(grid.shape[1])
        self._y = origin[1] + spacing * np.arange(grid.shape[0])
        self._spline = RectBivariateSpline(self._x, self._y, grid.T)

    def heights(self, x: ArrayLike, y: ArrayLike, time: float) -> Array:
        """(N, 6) as `HeightTarget.heights`; nothing depends on time."""
        xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        inside_x, inside_y = np.clip(xs, self._x[0], self._x[-1]), np.clip(ys, self._y[0], self._y[-1])
        found = np.zeros((len(xs), 6))
        found[:, 1] = self._spline.ev(inside_x, inside_y, dx=1)
        found[:, 2] = self._spline.ev(inside_x, inside_y, dy=1)
        found[:, 0] = (
            self._spline.ev(inside_x, inside_y) + found[:, 1] * (xs - inside_x) + found[:, 2] * (ys - inside_y)
        )
        return found

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        return sample_heights(positions, self.heights(positions[:, 0], positions[:, 1], time))


class MeshTarget:
    """A triangle mesh: every node goes to its closest point and takes the normal there, interpolated from corners.

    Args:
        mesh: of any kind that `geometry.inputs` knows, counter-clockwise seen from the side that normals shall look
            to, world frame.

    Raises:
        InvalidInputError: a mesh without area, or with more faces than are searched in time.
    """

    def __init__(self, mesh: MeshLike) -> None:
        mesh = as_mesh(mesh)
        if len(mesh.faces) > _LARGEST_MESH:
            raise InvalidInputError("mesh", f"{len(mesh.faces)} faces", f"at most {_LARGEST_MESH}")
        areas = np.linalg.norm(np.cross(*np.diff(mesh.triangles, axis=1).transpose(1, 0, 2)), axis=1)
        kept = areas > 0.0
        if not kept.any():
            raise InvalidInputError("mesh", "no face with an area", "a surface")
        self._triangles = np.ascontiguousarray(mesh.triangles[kept])
        faces = mesh.faces[kept]
        across = np.cross(self._triangles[:, 1] - self._triangles[:, 0], self._triangles[:, 2] - self._triangles[:, 0])
        # Area-weighted normals at corners; coincident corners are one, or creases would come from the file's order.
        _, unique = np.unique(np.round(mesh.vertices, 9), axis=0, return_inverse=True)
        corners = unique.reshape(-1)[faces]
        sums = np.zeros((int(unique.max()) + 1, 3))
        for corner in range(3):
            np.add.at(sums, corners[:, corner], across)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        self._normals = (sums / np.where(lengths > 0.0, lengths, 1.0))[corners]
        self._face_normals = across / np.linalg.norm(across, axis=1, keepdims=True)
        self._closest = TriangleTree(self._triangles)
        self._faces: NDArray[np.int64] | None = None

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        # Nodes move little between two samples: where they were is a good guess. It decides nothing but time.
        guesses = self._faces if self._faces is not None and len(self._faces) == len(positions) else None
        self._faces, weights = self._closest.query(positions, guesses)
        points = np.einsum("nc,ncx->nx", weights, self._triangles[self._faces])
        mixed = np.einsum("nc,ncx->nx", weights, self._normals[self._faces])
        lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
        clear = lengths > 1e-6
        normals = np.where(clear, mixed / np.where(clear, lengths, 1.0), self._face_normals[self._faces])
        offsets = positions - points
        return TargetSample(
            normals, np.zeros_like(normals), offsets, np.zeros_like(normals), True, np.linalg.norm(offsets, axis=1)
        )


class PassageTarget:
    """A surface that changes from one height target to another: far targets are reached through what lies between.

    Args:
        first: where the cover is, such as `fitted_surface` of its nodes.
        last: where it shall go.
        duration: of the passage [s].
        start: when it begins [s].
    """

    def __init__(self, first: HeightTarget, last: HeightTarget, duration: float, start: float = 0.0) -> None:
        if not (np.isfinite(duration) and duration > 0.0):
            raise InvalidInputError("duration", duration, "a positive time [s]")
        self._first, self._last, self._duration, self._start = first, last, duration, start

    def sample(self, positions: Array, time: float) -> TargetSample:
        """See `SurfaceTarget`."""
        x, y = positions[:, 0], positions[:, 1]
        after = self._last.heights(x, y, time)
        share = (time - self._start) / self._duration
        if share >= 1.0:
            return sample_heights(positions, after)
        before = self._first.heights(x, y, time)
        share = max(share, 0.0)
        mixed = (1.0 - share) * before + share * after
        if time >= self._start:
            # The share itself grows with time.
            mixed[:, 3:6] += (after[:, 0:3] - before[:, 0:3]) / self._duration
        return sample_heights(positions, mixed)


@dataclass(frozen=True)
class Passage:
    """A planned passage.

    Attributes:
        target: what to hand to the controller.
        duration: how long the passage takes [s].
    """

    target: SurfaceTarget
    duration: float


def plan_passage(positions: Array, last: HeightTarget, rate_limit: float, start: float = 0.0) -> Passage:
    """A passage from where the nodes are to a target, no faster than normals can turn.

    Args:
        positions: (N, 3) of the nodes now [m].
        last: the far target.
        rate_limit: of joints [rad/s]; normals of the passage turn at most this fast.
        start: when it begins [s].
    """
    first = fitted_surface(positions)
    now, then = first.sample(positions, start), last.sample(positions, start)
    if not then.finite:
        raise InvalidInputError("target", "not finite at a node", "finite heights at all nodes")
    angles = np.arccos(np.clip(np.einsum("ij,ij->i", now.normals, then.normals), -1.0, 1.0))
    duration = max(float(angles.max()) / rate_limit, 1e-3)
    return Passage(PassageTarget(first, last, duration, start), duration)


def fitted_surface(positions: Array, degree: int = 4) -> HeightTarget:
    """The polynomial z = f(x, y) that fits nodes best (least squares).

    Raises:
        InvalidInputError: nodes that lie above each other, which no height function follows.
    """
    x, y, z = positions.T
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    scale = max(float(np.abs(positions[:, :2]).max()), 1e-9)
    columns = np.stack([(x / scale) ** i * (y / scale) ** j for i, j in powers], axis=1)
    weights, *_ = np.linalg.lstsq(columns, z, rcond=1e-8)
    if float(np.abs(columns @ weights - z).max()) > scale:
        raise InvalidInputError("positions", "no function of x and y", "nodes beside each other seen from above")
    terms = [f"{weight / scale ** (i + j):+.17g}*x**{i}*y**{j}" for weight, (i, j) in zip(weights, powers, strict=True)]
    return HeightTarget("".join(terms))
