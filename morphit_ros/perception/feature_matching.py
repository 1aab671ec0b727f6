"""Proposals for the alignment of two views of a table, from features of what stands on it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.geometry.voxel_grid import merge_views
from morphit_ros.perception.alignment import Surface
from morphit_ros.perception.configuration import RegistrationConfig
from morphit_ros.perception.table import Plane

# Left features considered for each right one.
_MATCHES = 5
_TRIALS = 40_000
# Heights above the table and distances between matched points may differ by this [m].
_TOLERANCE = 0.008
# Two matches closer than this do not determine the turn [m].
_LEAST_BASELINE = 0.04
_PROPOSALS = 8
_APART, _APART_ANGLE = 0.03, math.radians(12.0)


def propose_alignments(
    left: Surface,
    right: Surface,
    left_plane: Plane,
    right_plane: Plane,
    config: RegistrationConfig,
    rng: np.random.Generator,
) -> list[Array]:
    """Candidates for ``T_left_right``, best supported first, each distinct from the others.

    Args:
        left, right: what stands on the table, each in its camera's optical frame.
        left_plane, right_plane: the table in the same frames.
        config: feature sizes.
        rng: source of randomness.
    """
    T_table_left, T_table_right = _to_plane(left_plane), _to_plane(right_plane)
    flat_left = _thinned(_moved(left, T_table_left), config.feature_voxel_size)
    flat_right = _thinned(_moved(right, T_table_right), config.feature_voxel_size)
    pairs = _match_features(flat_left, flat_right, config.feature_radius)
    if len(pairs) < 2:
        return []
    points_left, points_right = flat_left.points[pairs[:, 0]], flat_right.points[pairs[:, 1]]
    draws = rng.integers(0, len(pairs), (_TRIALS, 2))
    motions, votes = _try_pairs(
        points_left, points_right, flat_left.normals[pairs[:, 0]], flat_right.normals[pairs[:, 1]], draws
    )
    center = points_right.mean(axis=0)
    chosen: list[Array] = []
    for trial in np.argsort(-votes, kind="stable"):
        if votes[trial] < 3 or len(chosen) == _PROPOSALS:
            break
        yaw, x, y = motions[trial]
        motion = make_transform(matrix_from_rpy((0.0, 0.0, yaw)), (x, y, 0.0))
        if all(_distinct(motion, other, center) for other in chosen):
            chosen.append(motion)
    return [invert_transform(T_table_left) @ motion @ T_table_right for motion in chosen]


def _to_plane(plane: Plane) -> Array:
    """``T_plane_view``: z along the plane's normal, z = 0 on it, below the camera."""
    axis_x = np.cross(np.eye(3)[int(np.argmin(np.abs(plane.normal)))], plane.normal)
    axis_x /= np.linalg.norm(axis_x)
    rotation = np.stack([axis_x, np.cross(plane.normal, axis_x), plane.normal])
    return make_transform(rotation, (0.0, 0.0, -plane.offset))


def _moved(surface: Surface, transform: Array) -> Surface:
    return Surface(transform_points(transform, surface.points), surface.normals @ transform[:3, :3].T)


def _thinned(surface: Surface, voxel_size: float) -> Surface:
    points, normals, _ = merge_views(surface.points, surface.normals, voxel_size)
    return Surface(points, normals)


def _match_features(left: Surface, right: Surface, radius: float) -> NDArray[np.int64]:
    """(M, 2) rows of left and right points with similar features at similar heights."""
    if min(len(left.points), len(right.points)) < 10:
        return np.empty((0, 2), np.int64)
    features_left, features_right = _features(left, radius), _features(right, radius)
    distances = (
        np.sum(features_left**2, axis=1)[None, :]
        + np.sum(features_right**2, axis=1)[:, None]
        - 2.0 * features_right @ features_left.T
    )
    heights = np.abs(right.points[:, 2][:, None] - left.points[:, 2][None, :])
    distances[heights > _TOLERANCE] = np.inf
    count = min(_MATCHES, len(left.points) - 1)
    nearest = np.argpartition(distances, count, axis=1)[:, :count]
    rows = np.repeat(np.arange(len(right.points)), count)
    pairs = np.stack([nearest.ravel(), rows], axis=1)
    return pairs[np.isfinite(distances[rows, nearest.ravel()])]


def _features(surface: Surface, radius: float) -> NDArray[np.float32]:
    """Fast point feature histograms (N, 33)."""
    import open3d as o3d

    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(surface.points))
    cloud.normals = o3d.utility.Vector3dVector(surface.normals)
    search = o3d.geometry.KDTreeSearchParamHybrid(radius=radius, max_nn=100)
    # Open3D's stub lacks the default of the last argument.
    feature = o3d.pipelines.registration.compute_fpfh_feature(cloud, search)  # type: ignore[call-arg, unused-ignore]
    return np.asarray(feature.data, dtype=np.float32).T


def _distinct(first: Array, second: Array, center: Array) -> bool:
    shift = np.linalg.norm(transform_points(first, center) - transform_points(second, center))
    cosine = (first[:2, :2] * second[:2, :2]).sum() / 2.0
    return bool(shift > _APART or math.acos(min(1.0, max(-1.0, cosine))) > _APART_ANGLE)


@njit(cache=True)
def _try_pairs(left, right, left_normals, right_normals, draws):  # type: ignore[no-untyped-def]
    """Yaw and shift (T, 3) that each drawn pair of matches implies, and how many matches agree (T,)."""
    motions = np.zeros((draws.shape[0], 3))
    votes = np.zeros(draws.shape[0], np.int64)
    for trial in range(draws.shape[0]):
        i, j = draws[trial, 0], draws[trial, 1]
        ax, ay = left[j, 0] - left[i, 0], left[j, 1] - left[i, 1]
        bx, by = right[j, 0] - right[i, 0], right[j, 1] - right[i, 1]
        length_a, length_b = math.hypot(ax, ay), math.hypot(bx, by)
        if length_a < _LEAST_BASELINE or abs(length_a - length_b) > _TOLERANCE:
            continue
        yaw = math.atan2(ay, ax) - math.atan2(by, bx)
        c, s = math.cos(yaw), math.sin(yaw)
        agree = True
        for k in (i, j):
            dot = (
                left_normals[k, 0] * (c * right_normals[k, 0] - s * right_normals[k, 1])
                + left_normals[k, 1] * (s * right_normals[k, 0] + c * right_normals[k, 1])
                + left_normals[k, 2] * right_normals[k, 2]
            )
            agree = agree and dot > 0.8
        if not agree:
            continue
        mx, my = 0.5 * (right[i, 0] + right[j, 0]), 0.5 * (right[i, 1] + right[j, 1])
        x = 0.5 * (left[i, 0] + left[j, 0]) - (c * mx - s * my)
        y = 0.5 * (left[i, 1] + left[j, 1]) - (s * mx + c * my)
        count = 0
        for k in range(left.shape[0]):
            dx = c * right[k, 0] - s * right[k, 1] + x - left[k, 0]
            dy = s * right[k, 0] + c * right[k, 1] + y - left[k, 1]
            if dx * dx + dy * dy < _TOLERANCE * _TOLERANCE:
                count += 1
        motions[trial, 0] = yaw
        motions[trial, 1] = x
        motions[trial, 2] = y
        votes[trial] = count
    return motions, votes
