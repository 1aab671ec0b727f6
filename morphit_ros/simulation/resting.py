"""How an object stands: mass properties of its convex pieces and the stable pose nearest to a given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector

# Facets of a hull whose normals differ by less are one face to stand on [rad].
_COPLANAR_ANGLE = 0.02
# Corners closer to a facet's plane than this belong to it [m].
_COPLANAR_DISTANCE = 5e-4


def mass_properties(pieces: Sequence[TriangleMesh], densities: ArrayLike, mass: float) -> tuple[Array, Array]:
    """Centre of mass and inertia tensor of convex pieces.

    Args:
        pieces: closed pieces; where they overlap, both count.
        densities: (K,) relative densities.
        mass: of all together [kg].

    Returns:
        centre of mass (3,) [m] and inertia tensor (3, 3) about it [kg m²].
    """
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for piece, density in zip(pieces, np.asarray(densities, dtype=np.float64), strict=True):
        # Tetrahedra from the origin: ∫ x xᵀ dV = V/20 (Σ vᵢ vᵢᵀ + s sᵀ), s = Σ vᵢ over the three other corners.
        corners = piece.triangles
        volumes = density * np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
        sums = corners.sum(axis=1)
        volume += float(volumes.sum())
        first += volumes @ sums / 4.0
        second += np.einsum("i,ikj,ikl->jl", volumes, corners, corners) / 20.0
        second += np.einsum("i,ij,il->jl", volumes, sums, sums) / 20.0
    center = first / volume
    covariance = (second / volume - np.outer(center, center)) * mass
    return center, np.trace(covariance) * np.eye(3) - covariance


def resting_transform(points: ArrayLike, center_of_mass: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
    """``T_standing_mesh`` (4, 4): the stable pose on a plane that needs the smallest turn from "`up` is up".

    Args:
        points: (N, 3) corners of what touches the plane [m].
        center_of_mass: (3,) [m].
        up: (3,) direction in the mesh frame that should point up.

    Returns:
        A transform into a frame with z up in which the points rest on z = 0 and the centre of their box is at
        x = y = 0. Where no facet of the hull carries the centre of mass, the lowest facet is taken all the same.
    """
    from scipy.spatial import ConvexHull

    cloud = np.asarray(points, dtype=np.float64)
    mass_point = np.asarray(center_of_mass, dtype=np.float64)
    hull = ConvexHull(cloud)
    normals, offsets = hull.equations[:, :3], hull.equations[:, 3]
    upwards = np.asarray(up, dtype=np.float64) / np.linalg.norm(np.asarray(up, dtype=np.float64))
    # From the facet that faces down most to the one that faces up most.
    order = np.argsort(normals @ upwards)
    down = normals[order[0]]
    for facet in order:
        coplanar = np.flatnonzero(normals @ normals[facet] > np.cos(_COPLANAR_ANGLE))
        corners = cloud[np.unique(hull.simplices[coplanar])]
        touching = corners[np.abs(corners @ normals[facet] + offsets[facet]) < _COPLANAR_DISTANCE]
        if _carries(touching, normals[facet], mass_point):
            down = normals[facet]
            break
    return _lying_on(cloud, down, _turn(upwards, np.array([0.0, 0.0, 1.0])))


@dataclass(frozen=True)
class RestingPose:
    """A way to lie on a plane.

    Attributes:
        T_standing_mesh: (4, 4) into a frame with z up, resting on z = 0, its box centred on x = y = 0.
        weight: share of the solid angle that the face takes as seen from the centre of mass, which is the
            probability to come to rest on it after a slow tumble (Goldberg et al. 1999, "Part pose statistics").
        tilt: by which the object may lean before it topples over its nearest edge [rad].
    """

    T_standing_mesh: Array
    weight: float
    tilt: float


def resting_poses(points: ArrayLike, center_of_mass: ArrayLike, min_tilt: float = 0.05) -> list[RestingPose]:
    """All poses on a plane that survive a small knock, the most probable first.

    Args:
        points: (N, 3) corners of what touches the plane [m].
        center_of_mass: (3,) [m].
        min_tilt: poses that topple at a smaller angle are left out [rad].
    """
    from scipy.spatial import ConvexHull

    cloud = np.asarray(points, dtype=np.float64)
    mass_point = np.asarray(center_of_mass, dtype=np.float64)
    hull = ConvexHull(cloud)
    normals, offsets = hull.equations[:, :3], hull.equations[:, 3]
    angles = _solid_angles(cloud[hull.simplices] - mass_point)
    left = np.ones(len(normals), dtype=bool)
    poses = []
    # Large faces first: a sliver between two faces then belongs to one of them.
    for facet in np.argsort(-angles, kind="stable"):
        if not left[facet]:
            continue
        coplanar = normals @ normals[facet] > np.cos(_COPLANAR_ANGLE)
        corners = cloud[np.unique(hull.simplices[coplanar])]
        touching = corners[np.abs(corners @ normals[facet] + offsets[facet]) < _COPLANAR_DISTANCE]
        weight = float(angles[coplanar & left].sum())
        left &= ~coplanar
        height = -float(mass_point @ normals[facet] + offsets[facet])
        tilt = float(np.arctan2(_edge_distance(touching, normals[facet], mass_point), height))
        if tilt >= min_tilt:
            poses.append(RestingPose(_lying_on(cloud, normals[facet]), weight, tilt))
    return sorted(poses, key=lambda pose: -pose.weight)


def _solid_angles(triangles: Array) -> Array:
    """Shares (F,) of the whole solid angle that triangles (F, 3, 3) take, seen from the origin."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    over = np.abs(np.einsum("ij,ij->i", a, np.cross(b, c)))
    under = la * lb * lc + sum(
        np.einsum("ij,ij->i", x, y) * length for x, y, length in ((a, b, lc), (a, c, lb), (b, c, la))
    )
    return 2.0 * np.arctan2(over, under) / (4.0 * np.pi)


def _lying_on(cloud: Array, down: Array, rotation: Array | None = None) -> Array:
    """``T_standing_mesh`` (4, 4) with a direction of the mesh turned downwards, after an optional first rotation."""
    first = np.eye(3) if rotation is None else rotation
    whole = _turn(first @ down, np.array([0.0, 0.0, -1.0])) @ first
    turned = cloud @ whole.T
    low, high = turned.min(axis=0), turned.max(axis=0)
    return make_transform(whole, [-(low[0] + high[0]) / 2.0, -(low[1] + high[1]) / 2.0, -low[2]])


def _turn(source: Array, target: Array) -> Array:
    """The rotation (3, 3) by the smallest angle that takes one unit vector to another."""
    axis = np.cross(source, target)
    angle = np.arctan2(np.linalg.norm(axis), source @ target)
    if np.linalg.norm(axis) < 1e-12:
        # No turn, or half a turn about any axis across the vector.
        axis = np.cross(source, np.eye(3)[np.argmin(np.abs(source))])
    return matrix_from_rotation_vector(axis / np.linalg.norm(axis) * angle)


def _carries(corners: Array, normal: Array, mass_point: Array) -> bool:
    """Whether the centre of mass, projected along the normal, lies inside the hull of coplanar corners."""
    return _edge_distance(corners, normal, mass_point) > 0.0


def _edge_distance(corners: Array, normal: Array, mass_point: Array) -> float:
    """How far inside the hull of coplanar corners the projected centre of mass lies; not positive outside [m]."""
    from scipy.spatial import ConvexHull, QhullError

    plane = np.linalg.svd(np.outer(normal, normal) - np.eye(3))[0][:, :2]
    try:
        edges = ConvexHull(corners @ plane).equations
    except (QhullError, ValueError):
        return 0.0
    return -float((edges[:, :2] @ (mass_point @ plane) + edges[:, 2]).max())
