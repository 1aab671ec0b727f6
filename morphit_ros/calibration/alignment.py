"""The camera's pose to the millimetre: distances of the arm's points to the surface of its model, all poses at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.calibration.angular_grid import AngularGrid
from morphit_ros.calibration.search import moved_by
from morphit_ros.calibration.views import ArmView
from morphit_ros.geometry.transforms import Array

_MOST_POINTS = 1200
# Reach of a match, step by step; what is visible is found anew where it shrinks [m].
_REACHES = (0.05, 0.05, 0.035, 0.025, 0.018, 0.014, 0.012)
# Further steps, until one is shorter than this [m].
_MOST_STEPS, _STANDS = 25, 2e-5
# Surfaces seen at a more grazing angle say little: cosine of the angle between ray and normal.
_GRAZING = 0.25
# Tukey's function keeps 95 % of the efficiency of least squares with this many standard deviations.
_TUKEY = 4.685
_LEAST_SIGMA = 0.0004


@dataclass(frozen=True)
class Alignment:
    """A pose and what speaks for it.

    Attributes:
        T_base_camera: (4, 4).
        center: (3,) middle of the matched points in the base: `covariance` is of a turn about it and a shift.
        residuals: (N,) signed distances of the matched points to the surface, positive in front of it [m].
        weights: (N,) in [0, 1].
        poses, links: (N,) number of the pose and row of the link of each.
        jacobian: (N, 6) of the residuals by turn [rad] and shift [m].
        sigma: robust standard deviation of the residuals [m].
        matched: share of the arm's points within the last reach of the surface.
        cost: mean of the distances of all of the arm's points, those that are not matched counted as the reach [m].
    """

    T_base_camera: Array
    center: Array
    residuals: Array
    weights: Array
    poses: NDArray[np.int64]
    links: NDArray[np.int64]
    jacobian: Array
    sigma: float
    matched: float
    cost: float

    def normal_matrix(self) -> Array:
        """(6, 6) of the weighted least squares."""
        return (self.jacobian * self.weights[:, None]).T @ self.jacobian

    def covariance(self) -> Array:
        """(6, 6) of turn about `center` [rad] and shift [m]; infinite in directions that nothing fixes.

        Points are not independent: an error of a joint moves all points at a pose, one of the model those of a link. So
        gradients are summed by pose, and by pose and link, and both sandwiches count.
        """
        H = self.normal_matrix()
        if len(self.residuals) < 30 or np.linalg.cond(H) > 1e12:
            return np.full((6, 6), np.inf)
        gradients = self.jacobian * (self.weights * self.residuals)[:, None]
        inverse = np.linalg.inv(H)
        total = np.zeros((6, 6))
        for groups in (self.poses, self.poses * 1000 + self.links):
            _, group = np.unique(groups, return_inverse=True)
            sums = np.zeros((int(group.max()) + 1, 6))
            np.add.at(sums, group, gradients)
            # Six unknowns make the gradients of few groups too small.
            total += (sums.T @ sums) * (len(sums) / max(len(sums) - 6.0, 1.0))
        return inverse @ total @ inverse


def align(views: Sequence[ArmView], grid: AngularGrid, T: Array, reaches: Sequence[float] = _REACHES) -> Alignment:
    """Gauss-Newton on robust point-to-plane distances to what the camera sees of the model.

    Args:
        views: of one camera.
        grid: of its directions.
        T: (4, 4) ``T_base_camera`` to begin at, within centimetres.
        reaches: of a match at each step [m]; the last one is repeated until the pose stands still.
    """
    matches = _Matches(views, grid)
    last = 0.0
    for reach in reaches:
        if reach != last:
            matches.look_from(T)
            last = reach
        T, _ = _stepped(matches.at(T, reach))
    for step in range(_MOST_STEPS):
        if step % 5 == 0:
            matches.look_from(T)
        T, size = _stepped(matches.at(T, last))
        if size < _STANDS:
            break
    return matches.at(T, last)


def _stepped(alignment: Alignment) -> tuple[Array, float]:
    """The pose (4, 4) after a step of Gauss-Newton, and how long that was [m]."""
    if len(alignment.residuals) < 30:
        return alignment.T_base_camera, 0.0
    H = alignment.normal_matrix() + np.diag([1e-9] * 6)
    step = np.asarray(
        -np.linalg.solve(H, alignment.jacobian.T @ (alignment.weights * alignment.residuals)), dtype=np.float64
    )
    size = float(np.linalg.norm(step[3:]) + 0.3 * np.linalg.norm(step[:3]))
    return moved_by(alignment.T_base_camera, step * min(1.0, 0.1 / max(size, 1e-12)), alignment.center), size


class _Matches:
    """The arm's points of all poses, and the surface that belongs to them."""

    def __init__(self, views: Sequence[ArmView], grid: AngularGrid) -> None:
        rng = np.random.default_rng(0)
        self._views, self._grid = views, grid
        self._clouds = [
            view.arm[rng.choice(len(view.arm), min(_MOST_POINTS, len(view.arm)), replace=False)] for view in views
        ]

    def look_from(self, T: Array) -> None:
        """Find what a camera at a pose (4, 4) sees of the model."""
        from scipy.spatial import cKDTree

        surfaces = [view.surface.seen_from(T, self._grid) for view in self._views]
        self._seen = [(surface, cKDTree(surface.points) if len(surface.points) else None) for surface in surfaces]

    def at(self, T: Array, reach: float) -> Alignment:
        """Distances with the camera at a pose (4, 4), of points within reach of what was seen last [m]."""
        near, points, normals, residuals, poses, links = 0, [], [], [], [], []
        for number, (cloud, (surface, tree)) in enumerate(zip(self._clouds, self._seen, strict=True)):
            if tree is None:
                continue
            moved = cloud @ T[:3, :3].T + T[:3, 3]
            distances, rows = tree.query(moved, distance_upper_bound=reach)
            found = np.flatnonzero(np.isfinite(distances))
            near += len(found)
            rays = moved[found] - T[:3, 3]
            facing = -np.einsum("ij,ij->i", surface.normals[rows[found]], rays) / np.linalg.norm(rays, axis=1)
            found = found[facing > _GRAZING]
            of = rows[found]
            points.append(moved[found])
            normals.append(surface.normals[of])
            residuals.append(np.einsum("ij,ij->i", surface.normals[of], moved[found] - surface.points[of]))
            poses.append(np.full(len(found), number))
            links.append(surface.links[of])
        if sum(map(len, points)) == 0:
            none = np.empty(0, np.int64)
            return Alignment(T, np.zeros(3), np.empty(0), np.empty(0), none, none, np.empty((0, 6)), np.inf, 0.0, reach)
        all_points, all_normals, r = np.concatenate(points), np.concatenate(normals), np.concatenate(residuals)
        center = all_points.mean(axis=0)
        sigma = max(_LEAST_SIGMA, 1.4826 * float(np.median(np.abs(r))))
        weights = (1.0 - np.clip(r / (_TUKEY * sigma), -1.0, 1.0) ** 2) ** 2
        jacobian = np.hstack([np.cross(all_points - center, all_normals), all_normals])
        matched = near / sum(map(len, self._clouds))
        cost = matched * float(np.abs(r).mean()) + (1.0 - matched) * reach
        return Alignment(
            T, center, r, weights, np.concatenate(poses), np.concatenate(links), jacobian, sigma, matched, cost
        )


def seen_through(views: Sequence[ArmView], grid: AngularGrid, T: Array, margin: float = 0.03) -> float:
    """Share of the model in view that the camera looked through, where it would stand in the way at this pose.

    Args:
        views, grid, T: as of `align`.
        margin: by which the picture must be farther away than the model [m].
    """
    through, total = 0, 0
    for view in views:
        surface = view.surface.seen_from(T, grid)
        local = (surface.points - T[:3, 3]) @ T[:3, :3]
        local = local[grid.inside(local)]
        if not len(local):
            continue
        # Only what the whole neighbourhood contradicts: edges of the model count for nothing.
        depth = grid.nearest(view.cloud).around(local)
        known = np.isfinite(depth)
        through += int((depth[known] > local[known, 2] + margin).sum())
        total += int(known.sum())
    return through / max(total, 1)
