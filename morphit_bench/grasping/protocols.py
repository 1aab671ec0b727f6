"""Where the published planners start: as their authors picked by hand, or without picking.

The paper's results rest on a start position, an orientation and an approach direction chosen by hand for each object
and robot. `PaperProtocol` gives those. `GenericProtocol` gives starts for any cloud, in an order, and the planner takes
the first that has enough correspondences on both fingers: more help than the paper describes for its own, so that no
result here can be put down to an unlucky start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.clusters import cluster_centers
from morphit_bench.grasping.frames import gripper_pose, upright_to_published
from morphit_bench.grasping.start_table import OBSERVED, StartRow, start_row
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
)
from morphit_ros.grasping.gripper import Gripper


@dataclass(frozen=True)
class StartPose:
    """A start of a published planner, in the frame of the cloud and our gripper frame.

    Attributes:
        T_world_gripper: (4, 4).
        aperture: opening, the gripper's widest [m].
        approach: (3,) preferred approach direction n_app, unit.
        origin: (3,) origin of the published object frame, which rotations turn about [m].
    """

    T_world_gripper: Array
    aperture: float
    approach: Array
    origin: Array


class StartProtocol(Protocol):
    """Gives the starts that are tried in order."""

    def starts(
        self, surface: PointCloud, gripper: Gripper, up: Array | None, approach: ArrayLike | None, seed: int
    ) -> list[StartPose]:
        """Starts for an object.

        Args:
            surface: the object's surface.
            gripper: which gripper.
            up: (3,) normal of the table, if there is one.
            approach: (3,) preferred approach direction, if the caller has one.
            seed: of random draws.
        """
        ...


class PaperProtocol:
    """The one start that the authors picked for an object and gripper.

    Known shapes and observed clouds: the pose in the start table. YCB objects: its orientation and approach, at that of
    the k-means centres of the cloud (as many as the authors chose from, seed 0 as theirs) which is nearest to its t0
    when the middle of the cloud's footprint is taken as x = y = 0.

    Args:
        object_name: a key of `start_table.START_TABLE`.
        T_world_model: (4, 4) pose of the object's stored frame (mesh file or recorded cloud) in the frame of the cloud.
            For an upright known shape this turns it over: the files have z down (see `frames`).

    Raises:
        ResourceNotFoundError: when starts are asked for an object or a gripper that the paper doesn't have.
        InvalidInputError: the pose is no rigid transform.
    """

    def __init__(self, object_name: str, T_world_model: ArrayLike) -> None:
        self.object_name = object_name
        self.T_world_model = check_transform(T_world_model, "T_world_model")

    def starts(
        self, surface: PointCloud, gripper: Gripper, up: Array | None, approach: ArrayLike | None, seed: int
    ) -> list[StartPose]:
        """The start of the table; `up`, `approach` and `seed` do not matter to it."""
        row = start_row(self.object_name, gripper.name)
        T_world_published, position = self.T_world_model, np.array(row.t0)
        if row.clusters:
            T_world_published, position = self._nearest_center(surface, row)
        elif self.object_name.startswith(OBSERVED):
            highest = transform_points(invert_transform(self.T_world_model), surface.points)[:, 2].max()
            T_world_published = self.T_world_model @ make_transform(None, (0.0, 0.0, highest))
        pose = T_world_published @ make_transform(matrix_from_rotation_vector(row.rotvec), position)
        n_app = T_world_published[:3, :3] @ np.array(row.n_app)
        return [
            StartPose(
                gripper_pose(pose), gripper.aperture_max, n_app / np.linalg.norm(n_app), T_world_published[:3, 3].copy()
            )
        ]

    def _nearest_center(self, surface: PointCloud, row: StartRow) -> tuple[Array, Array]:
        T_published_world = upright_to_published(0.0) @ invert_transform(self.T_world_model)
        points = transform_points(T_published_world, surface.points)
        low, high = points.min(axis=0), points.max(axis=0)
        shift = np.array([-0.5 * (low[0] + high[0]), -0.5 * (low[1] + high[1]), -high[2]])
        centers = cluster_centers(points + shift, row.clusters, np.random.default_rng(0))
        nearest = int(np.linalg.norm(centers - np.array(row.t0), axis=1).argmin())
        return invert_transform(make_transform(None, shift) @ T_published_world), centers[nearest]


@dataclass(frozen=True)
class GenericConfig(Config):
    """How starts are made without picking."""

    cluster_size: float = parameter(
        0.03,
        "The object's length over this is the number of k-means centres, 15 at most [m]",
        minimum=1e-3,
        maximum=1.0,
    )
    attempts: str = parameter(
        "all",
        "Every centre and axis in order until one has correspondences on both fingers, or the first only",
        choices=("all", "first"),
    )


class GenericProtocol:
    """Starts for any cloud, nothing picked by hand.

    - Positions: k-means centres, k = length of the cloud along its first principal axis over `cluster_size`, at least 1
      and at most 15 (the paper's k lie between 1 and 15); in the order of their distance from the centroid.
    - n_app: the caller's approach direction, else down onto the table, else −z.
    - R0: z along n_app; the closing direction along the shorter principal axis of the cloud seen along n_app, then, as
      a second start of the same centre, along the longer one.
    """

    def __init__(self, config: GenericConfig | None = None) -> None:
        self.config = config or GenericConfig()

    def starts(
        self, surface: PointCloud, gripper: Gripper, up: Array | None, approach: ArrayLike | None, seed: int
    ) -> list[StartPose]:
        """Two starts a centre, the likeliest first."""
        n_app = _approach(up, approach)
        points = surface.points
        centroid = points.mean(axis=0)
        offsets = points - centroid
        axes = np.linalg.eigh(offsets.T @ offsets)[1]
        length = float(np.ptp(offsets @ axes[:, 2]))
        count = int(np.clip(round(length / self.config.cluster_size), 1, 15))
        centers = cluster_centers(points, count, np.random.default_rng(seed))
        centers = centers[np.argsort(np.linalg.norm(centers - centroid, axis=1), kind="stable")]

        first, second = _plane_axes(n_app)
        seen = np.stack([offsets @ first, offsets @ second])
        shorter, longer = np.linalg.eigh(seen @ seen.T)[1].T
        starts = []
        for center in centers:
            for a, b in (shorter, longer):
                y = a * first + b * second
                pose = make_transform(np.stack([np.cross(y, n_app), y, n_app], axis=1), center)
                starts.append(StartPose(pose, gripper.aperture_max, n_app, centroid))
        return starts if self.config.attempts == "all" else starts[:1]


def _approach(up: Array | None, approach: ArrayLike | None) -> Array:
    if approach is None:
        return np.array([0.0, 0.0, -1.0]) if up is None else -up
    direction = np.asarray(approach, dtype=np.float64)
    if direction.shape != (3,) or not np.isfinite(direction).all() or np.linalg.norm(direction) < 1e-9:
        raise InvalidInputError("approach", approach, "a direction (3,) that is not zero")
    return direction / np.linalg.norm(direction)


def _plane_axes(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors across a unit vector and each other."""
    first = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)
