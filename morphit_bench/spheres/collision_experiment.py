"""Do spheres serve as a collision model? Collisions with obstacles that they find, miss and invent.

The collision experiment of the MorphIt paper: random configurations of a robot among random obstacles; `mesh_hits` of
`collision_truth` says what is true. A query is one link at one configuration against one obstacle; a coarser one is
the whole robot at one configuration against one obstacle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, make_transform, matrix_from_quat_xyzw
from morphit_ros.jit import njit
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.spheres.metrics import checked_spheres

# Solids whose distance to a point is exact, and their number in the kernels.
_CODES = {GeometryKind.SPHERE: 0, GeometryKind.BOX: 1, GeometryKind.CYLINDER: 2}
_DIMENSIONS = {GeometryKind.SPHERE: 1, GeometryKind.BOX: 3, GeometryKind.CYLINDER: 2}


@dataclass(frozen=True)
class ObstacleShape:
    """A solid in the world.

    Attributes:
        kind: sphere, box or cylinder.
        T_world_obstacle: (4, 4).
        dimensions: box: full size (3,); cylinder (axis z): radius and length (2,); sphere: radius (1,) [m].

    Raises:
        InvalidInputError: another kind, a pose that is none, or dimensions that are not positive.
    """

    kind: GeometryKind
    T_world_obstacle: Array
    dimensions: Array

    def __post_init__(self) -> None:
        if self.kind not in _CODES:
            raise InvalidInputError("kind", self.kind.value, f"one of {', '.join(kind.value for kind in _CODES)}")
        size = np.asarray(self.dimensions, dtype=np.float64)
        if size.shape != (_DIMENSIONS[self.kind],) or not np.isfinite(size).all() or not (size > 0.0).all():
            bound = f"{_DIMENSIONS[self.kind]} positive numbers for a {self.kind.value}"
            raise InvalidInputError("dimensions", size.tolist(), bound)
        object.__setattr__(self, "T_world_obstacle", check_transform(self.T_world_obstacle, "T_world_obstacle"))
        object.__setattr__(self, "dimensions", size)


@dataclass(frozen=True)
class Outcomes:
    """Answers of a collision model by what is true; positive means in collision."""

    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int

    @property
    def false_positive_rate(self) -> float:
        """Share of the free queries that the model calls collisions; NaN without free queries."""
        free = self.false_positives + self.true_negatives
        return self.false_positives / free if free else float("nan")

    @property
    def false_negative_rate(self) -> float:
        """Share of the collisions that the model misses; NaN without collisions."""
        collisions = self.true_positives + self.false_negatives
        return self.false_negatives / collisions if collisions else float("nan")


def random_obstacles(
    count: int, low: ArrayLike, high: ArrayLike, sizes: tuple[float, float], rng: np.random.Generator
) -> list[ObstacleShape]:
    """Spheres, boxes and cylinders in turn, at random poses.

    Args:
        count: how many.
        low, high: (3,) corners of the box that the centres are uniform in [m].
        sizes: smallest and greatest radius and half side [m], uniform between them.
        rng: source of randomness.

    Raises:
        InvalidInputError: a count below one, or sizes that are not positive and in order.
    """
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if not 0.0 < sizes[0] <= sizes[1]:
        raise InvalidInputError("sizes", sizes, "two positive numbers in order [m]")
    corners = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    obstacles = []
    for index in range(count):
        kind = list(_CODES)[index % len(_CODES)]
        size = rng.uniform(*sizes, _DIMENSIONS[kind])
        if kind is GeometryKind.BOX:
            size *= 2.0
        elif kind is GeometryKind.CYLINDER:
            size[1] *= 2.0
        # A normalised Gaussian quadruple is a uniform rotation.
        quat_xyzw = rng.normal(size=4)
        rotation = matrix_from_quat_xyzw(quat_xyzw / np.linalg.norm(quat_xyzw))
        obstacles.append(ObstacleShape(kind, make_transform(rotation, rng.uniform(*corners)), size))
    return obstacles


def random_link_poses(
    kinematics: KinematicModel, links: Sequence[str], count: int, rng: np.random.Generator
) -> dict[str, Array]:
    """``T_root_link`` (C, 4, 4) of links at configurations that are uniform within the joints' limits.

    A continuous joint is uniform over one turn.

    Raises:
        InvalidInputError: an unknown link, or a count below one.
    """
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    for link in links:
        kinematics.check_link(link)
    low = np.where(np.isfinite(kinematics.position_lower), kinematics.position_lower, -np.pi)
    high = np.where(np.isfinite(kinematics.position_upper), kinematics.position_upper, np.pi)
    poses = []
    for values in rng.uniform(low, high, (count, len(low))).tolist():
        transforms = kinematics.forward_kinematics(dict(zip(kinematics.joint_names, values, strict=True)))
        poses.append([transforms[link] for link in links])
    return dict(zip(links, np.moveaxis(np.array(poses), 1, 0), strict=True))


def sphere_hits(
    spheres: Mapping[str, tuple[Array, Array]], poses: Mapping[str, Array], obstacles: Sequence[ObstacleShape]
) -> NDArray[np.bool_]:
    """Which links' spheres touch which obstacles: (C, O, L), links in the order of `poses`.

    Args:
        spheres: link → centres (N, 3) and radii (N,) in its frame [m].
        poses: link → ``T_world_link`` (C, 4, 4).
        obstacles: solids in the world.

    Raises:
        InvalidInputError: a link has no spheres, or spheres that are none.
    """
    missing = [link for link in poses if link not in spheres]
    if missing:
        raise InvalidInputError("spheres", f"none of {', '.join(missing)}", "spheres of every link with poses")
    solids = _solid_arrays(obstacles)
    hits = []
    for link, T_world_link in poses.items():
        centers, radii = checked_spheres(*spheres[link])
        hits.append(_hits(np.ascontiguousarray(T_world_link), centers, radii, *solids))
    return np.stack(hits, axis=2)


def count_outcomes(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> Outcomes:
    """The answers of equal shape counted by what is true.

    Raises:
        InvalidInputError: different shapes.
    """
    if found.shape != truth.shape:
        raise InvalidInputError("found", f"shape {found.shape}", f"shape {truth.shape}, as the truth")
    answers = (found & truth, found & ~truth, ~found & ~truth, ~found & truth)
    return Outcomes(*(int(answer.sum()) for answer in answers))


def _solid_arrays(obstacles: Sequence[ObstacleShape]) -> tuple[NDArray[np.int64], Array, Array]:
    """Kind (O,), ``T_world_obstacle`` (O, 4, 4) and dimensions (O, 3) as the kernels take them."""
    dimensions = np.zeros((len(obstacles), 3))
    for row, obstacle in zip(dimensions, obstacles, strict=True):
        row[: len(obstacle.dimensions)] = obstacle.dimensions
    poses = np.array([obstacle.T_world_obstacle for obstacle in obstacles]).reshape(-1, 4, 4)
    return np.array([_CODES[obstacle.kind] for obstacle in obstacles], dtype=np.int64), poses, dimensions


@njit(cache=True, nogil=True)
def _hits(poses, centers, radii, kinds, solids, dimensions):  # type: ignore[no-untyped-def]
    """(C, O): whether one of a link's spheres touches a solid."""
    hits = np.zeros((len(poses), len(kinds)), dtype=np.bool_)
    world = np.empty_like(centers)
    for c in range(len(poses)):
        for k in range(len(centers)):
            for r in range(3):
                world[k, r] = poses[c, r, 3]
                for s in range(3):
                    world[k, r] += poses[c, r, s] * centers[k, s]
        for o in range(len(kinds)):
            for k in range(len(centers)):
                x, y, z = world[k, 0], world[k, 1], world[k, 2]
                if _solid_distance(kinds[o], solids[o], dimensions[o], x, y, z) <= radii[k]:
                    hits[c, o] = True
                    break
    return hits


@njit(cache=True, nogil=True)
def _solid_distance(kind, pose, size, x, y, z):  # type: ignore[no-untyped-def]
    """Distance of a point of the world from a solid, 0 inside."""
    dx, dy, dz = x - pose[0, 3], y - pose[1, 3], z - pose[2, 3]
    u = abs(pose[0, 0] * dx + pose[1, 0] * dy + pose[2, 0] * dz)
    v = abs(pose[0, 1] * dx + pose[1, 1] * dy + pose[2, 1] * dz)
    w = abs(pose[0, 2] * dx + pose[1, 2] * dy + pose[2, 2] * dz)
    if kind == 0:
        return max(np.sqrt(u * u + v * v + w * w) - size[0], 0.0)
    if kind == 1:
        a, b, c = max(u - 0.5 * size[0], 0.0), max(v - 0.5 * size[1], 0.0), max(w - 0.5 * size[2], 0.0)
        return np.sqrt(a * a + b * b + c * c)
    a, c = max(np.sqrt(u * u + v * v) - size[0], 0.0), max(w - 0.5 * size[1], 0.0)
    return np.sqrt(a * a + c * c)
