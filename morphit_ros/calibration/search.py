"""Where a camera may stand, from nothing: many starts, each moved by the nearest points of all poses at once.

With the arm at several known poses the clouds tell the camera's place without any feature and without a first guess:
for a wrong rotation the clouds cannot lie on the arm at all poses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.calibration.views import ArmView
from morphit_ros.geometry.rotations import matrices_of_quats
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector, rotation_angle

# Points a pose: of the cloud, and of the surface.
_POINTS, _SURFACE = 60, 1500
_STEPS, _MORE_STEPS, _ROUGH_STEPS = 10, 25, 6
# Reach of a match at the first and at the last step [m].
_REACH = (0.25, 0.03)
_SHARE_KEPT = 8
# Of the surface, what moves less between the poses than by this share of what moves most is left out.
_MOVED, _MIDDLES = 0.25, 3
_OTHER_PLACE, _OTHER_ANGLE = 0.03, 0.1


@dataclass(frozen=True)
class Start:
    """A place found by the search.

    Attributes:
        T_base_camera: (4, 4).
        cost: mean of the distances of the arm's points, each counted up to the last reach [m].
    """

    T_base_camera: Array
    cost: float


class Search:
    """Nearest points of several poses together.

    Args:
        views: of one camera.
        seed: of the points that are drawn.
    """

    def __init__(self, views: Sequence[ArmView], seed: int = 0) -> None:
        from scipy.spatial import cKDTree

        rng = np.random.default_rng(seed)
        # The same points of the links at all poses: (P, N, 3).
        surfaces = np.array([view.surface.points for view in views])
        spread = np.sqrt(surfaces.var(axis=0).sum(axis=1))
        moving = np.flatnonzero(spread > _MOVED * spread.max())
        chosen = moving[rng.choice(len(moving), min(_SURFACE, len(moving)), replace=False)]
        self._trees = [cKDTree(surface[chosen]) for surface in surfaces]
        self._clouds = [
            view.arm[rng.choice(len(view.arm), min(_POINTS, len(view.arm)), replace=False)] for view in views
        ]
        # Where what the camera sees may be in the mean: about the links that move, one after the other.
        links = views[0].surface.links[chosen]
        middles = [surfaces[:, chosen[links == link]].mean(axis=(0, 1)) for link in np.unique(links)]
        self._middles = _spread_out(np.array(middles), _MIDDLES)
        self._points = np.concatenate(self._clouds)
        self._ends = np.cumsum([len(cloud) for cloud in self._clouds])
        self._centroid = self._points.mean(axis=0)
        # By pose, so that what turns with the arm decides, not where most points are.
        self._weights = np.concatenate([np.full(len(cloud), 1.0 / len(cloud)) for cloud in self._clouds])

    def starts(self, rotations: Sequence[Array], guess: Array | None) -> list[Start]:
        """The best distinct places reached, best first.

        Args:
            rotations: (3, 3) of the camera in the base.
            guess: (4, 4) ``T_base_camera`` that is tried first, or None.
        """
        tried = [make_transform(R, middle - R @ self._centroid) for R in rotations for middle in self._middles]
        tried += [] if guess is None else [guess]
        rough = sorted((self._follow(T, _ROUGH_STEPS, _REACH[0], 0.1) for T in tried), key=lambda start: start.cost)
        better = [self._follow(start.T_base_camera, _STEPS, 0.12, 0.05) for start in rough[: 5 * _SHARE_KEPT]]
        found = _distinct(sorted(better, key=lambda start: start.cost))[:_SHARE_KEPT]
        final = [self._follow(start.T_base_camera, _MORE_STEPS, 0.08, _REACH[1]) for start in found]
        return _distinct(sorted(final, key=lambda start: start.cost))

    def _follow(self, T: Array, steps: int, first: float, last: float) -> Start:
        for reach in np.geomspace(first, last, steps):
            distances, targets = self._match(T)
            weights = self._weights / (1.0 + (distances / reach) ** 2) ** 2
            T = _rigid(self._points, targets, weights)
        distances, _ = self._match(T)
        return Start(T, float(np.average(np.minimum(distances, 2.0 * _REACH[1]), weights=self._weights)))

    def _match(self, T: Array) -> tuple[Array, Array]:
        moved = self._points @ T[:3, :3].T + T[:3, 3]
        distances, targets = np.empty(len(moved)), np.empty_like(moved)
        begin = 0
        for end, tree in zip(self._ends, self._trees, strict=True):
            distances[begin:end], rows = tree.query(moved[begin:end])
            targets[begin:end] = tree.data[rows]
            begin = end
        return distances, targets


def search_rotations(guess: Array | None, count: int = 80) -> list[Array]:
    """Rotations (3, 3) to start from: evenly over all of them, or with a guess (4, 4) within about 60° of it."""
    rotations = [np.asarray(R) for R in matrices_of_quats(_even_quats(count if guess is None else 2 * count))]
    if guess is None:
        return rotations
    near = [R for R in rotations if rotation_angle(R.T @ guess[:3, :3]) < np.radians(60.0)]
    return [guess[:3, :3], *near]


def _even_quats(count: int) -> Array:
    """Super-Fibonacci spirals: quaternions (count, 4), scalar last, spread evenly (Alexa 2022)."""
    s = np.arange(count) + 0.5
    r, outer = np.sqrt(s / count), np.sqrt(1.0 - s / count)
    alpha, beta = 2.0 * np.pi * s / np.sqrt(2.0), 2.0 * np.pi * s / 1.533751168755204288118041
    return np.column_stack([r * np.sin(alpha), r * np.cos(alpha), outer * np.sin(beta), outer * np.cos(beta)])


def _rigid(source: Array, target: Array, weights: Array) -> Array:
    """``T_target_source`` (4, 4) of least weighted squares (Kabsch)."""
    shares = weights / weights.sum()
    middle_s, middle_t = shares @ source, shares @ target
    u, _, vt = np.linalg.svd((target - middle_t).T @ ((source - middle_s) * shares[:, None]))
    R = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    return make_transform(R, middle_t - R @ middle_s)


def _spread_out(points: Array, count: int) -> Array:
    """Some of the points (N, 3), each as far as can be from those before it; the last one comes first."""
    chosen = [len(points) - 1]
    while len(chosen) < min(count, len(points)):
        gaps = np.linalg.norm(points[:, None] - points[chosen][None], axis=2).min(axis=1)
        chosen.append(int(gaps.argmax()))
    return points[chosen]


def _distinct(starts: Sequence[Start]) -> list[Start]:
    kept: list[Start] = []
    for start in starts:
        if not any(same_place(start.T_base_camera, other.T_base_camera) for other in kept):
            kept.append(start)
    return kept


def same_place(first: Array, second: Array, place: float = _OTHER_PLACE, angle: float = _OTHER_ANGLE) -> bool:
    """Whether two poses (4, 4) differ by less than `place` [m] and `angle` [rad]."""
    turned = rotation_angle(first[:3, :3].T @ second[:3, :3])
    return bool(np.linalg.norm(first[:3, 3] - second[:3, 3]) < place and turned < angle)


def moved_by(T: Array, step: Array, center: Array) -> Array:
    """A pose (4, 4) turned about a point of the target frame and then shifted: `step` = (rotation vector, shift)."""
    R = matrix_from_rotation_vector(step[:3])
    return make_transform(R @ T[:3, :3], R @ (T[:3, 3] - center) + center + step[3:])
