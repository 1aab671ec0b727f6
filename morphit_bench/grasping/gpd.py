"""GPD's geometric sampler, from its paper: ten Pas, Gualtieri, Saenko, Platt, Grasp Pose Detection in Point Clouds.

Points p are drawn from the cloud. The normals n around p give a local frame: of M = Σ n nᵀ the eigenvector of the
largest value is the normal, that of the least one the axis of minor curvature. The hand closes in the plane across that
axis. A grid of rotations about the axis and of offsets along the closing direction is searched: with the fingers opened
fully and their tips a bite beyond p, hands free of collision are pushed forward until they meet something, and kept if
a point is between the fingers. Of the offsets that are free the middle one is pushed, as the authors' code does.

The paper ranks candidates by a network, which is not here. They are ranked by what its training labels ask for: the
share of the points between the pads whose normals lie within the friction cone of either finger, by the worse side.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from morphit_bench.grasping.closing import closed_grasp, whole_object
from morphit_bench.grasping.surface import ObservedSurfaceConfig, prepare_surface
from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.outward_normals import estimate_outward_normals
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array, check_transform, make_transform
from morphit_ros.grasping.checking.sweeps import approach_hits, gripper_boxes, lowest_heights
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.graspnet import fingertips
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.scoring.quality import diverse_top


@dataclass(frozen=True)
class GpdConfig(Config):
    """Values of the authors' code (cfg/eigen_params.cfg, cfg/hand_geometry.cfg) but for samples and grasps."""

    samples: int = parameter(100, "Points drawn from the cloud", minimum=1, maximum=100000)
    radius: float = parameter(0.01, "Normals within it make a local frame [m]", minimum=1e-4, maximum=0.1)
    orientations: int = parameter(8, "Rotations about the axis, over half a turn", minimum=1, maximum=72)
    placements: int = parameter(10, "Offsets along the closing direction", minimum=1, maximum=100)
    bite: float = parameter(0.01, "Least depth of the fingertips beyond the sample [m]", minimum=0.0, maximum=0.1)
    step: float = parameter(0.005, "Hands are pushed forward by such steps [m]", minimum=1e-4, maximum=0.05)
    cone: float = parameter(20.0, "Friction cone of the ranking, half its angle [deg]", minimum=0.1, maximum=90.0)
    voxel_size: float = parameter(0.003, "One point a voxel [m]", minimum=1e-4, maximum=0.1)
    max_grasps: int = parameter(20, "Grasps returned at most", minimum=1, maximum=1000)


class GpdMethod:
    """GPD's sampler behind the interface of all planners.

    Args:
        config: see `GpdConfig`.
    """

    name = "gpd"

    def __init__(self, config: GpdConfig | None = None) -> None:
        self.config = config or GpdConfig()

    def plan(
        self,
        cloud: PointCloud,
        gripper: Gripper,
        table: SupportPlaneLike | None = None,
        seed: int = 0,
        *,
        approach: ArrayLike | None = None,
        center_of_mass: ArrayLike | None = None,
        reachable: Callable[[Grasp], bool] | None = None,
        obstacles: Array | None = None,
        viewpoints: Array | None = None,
        mass: float | None = None,
    ) -> GraspPlan:
        """Ranked hands; `approach`, `center_of_mass` and `mass` do not matter to it.

        Raises:
            InvalidInputError: an unusable cloud or table.
        """
        begin = time.perf_counter()
        config = self.config
        if table is not None:
            check_transform(table.T_world_table, "table.T_world_table")
        finite = cloud.finite()
        if finite.normals is None and len(finite) >= 4:
            finite = PointCloud(finite.points, estimate_outward_normals(finite.points, viewpoints=viewpoints))
        surface = prepare_surface(finite, ObservedSurfaceConfig(voxel_size=config.voxel_size, normals="given"))
        assert surface.normals is not None
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(surface), size=min(config.samples, len(surface)), replace=False)
        frames = local_frames(surface.points, surface.normals, rows, config.radius)
        solid = surface.points if obstacles is None else np.concatenate([surface.points, obstacles])
        hands = pushed_hands(surface.points[rows], frames, np.ascontiguousarray(solid), gripper, table, config)
        searched = time.perf_counter()
        rejected = {"collision": len(rows) * config.orientations - len(hands), "no point between the fingers": 0}
        scores = antipodal_shares(surface.points, surface.normals, hands, gripper, math.radians(config.cone))
        order = diverse_top(hands[:, :3, :3], hands[:, :3, 3], scores, len(hands), 0.012, math.radians(25.0))
        whole = whole_object(cloud, table, obstacles, viewpoints)
        grasps: list[Grasp] = []
        for k in order:
            if len(grasps) == config.max_grasps:
                break
            grasp = closed_grasp(whole, gripper, hands[k], math.nan, float(scores[k]))
            if grasp is None:
                rejected["no point between the fingers"] += 1
            elif reachable is None or reachable(grasp):
                grasps.append(grasp)
            else:
                rejected["unreachable"] = rejected.get("unreachable", 0) + 1
        message = "" if grasps else f"No grasp: {', '.join(f'{name}: {count}' for name, count in rejected.items())}."
        timings = {"search": searched - begin, "rank": time.perf_counter() - searched}
        return GraspPlan(grasps, rejected, len(rows) * config.orientations, timings, message)


def local_frames(points: Array, normals: Array, rows: NDArray[np.int64], radius: float) -> Array:
    """(S, 3, 3) frames at some points: columns normal (outwards), binormal, axis of minor curvature."""
    tree = cKDTree(points)
    frames = np.empty((len(rows), 3, 3))
    for frame, near in zip(frames, tree.query_ball_point(points[rows], radius), strict=True):
        around = normals[near]
        axes = np.linalg.eigh(around.T @ around)[1]
        normal = axes[:, 2] if axes[:, 2] @ around.sum(axis=0) >= 0.0 else -axes[:, 2]
        frame[:] = np.column_stack([normal, np.cross(axes[:, 0], normal), axes[:, 0]])
    return frames


def pushed_hands(
    samples: Array, frames: Array, solid: Array, gripper: Gripper, table: SupportPlaneLike | None, config: GpdConfig
) -> Array:
    """Poses (H, 4, 4) of fully opened hands, pushed forward until they would collide; of each sample and rotation one.

    Args:
        samples, frames: (S, 3) [m], (S, 3, 3) as of `local_frames`.
        solid: (M, 3) points that no part of the hand may hold [m].
        gripper, table, config: as of `GpdMethod`.
    """
    angles = np.linspace(-0.5 * math.pi, 0.5 * math.pi, config.orientations + 1)[:-1]
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    normal, binormal = frames[:, None, :, 0], frames[:, None, :, 1]
    approach, closing = -(cosine * normal + sine * binormal), cosine * binormal - sine * normal
    rotations = np.stack([np.cross(closing, approach), closing, approach], axis=-1).reshape(-1, 3, 3)
    origins = np.repeat(samples, config.orientations, axis=0)
    widest, tip = gripper.aperture_max, fingertips(gripper)
    boxes = gripper_boxes(gripper)

    def free(turns: Array, places: Array) -> NDArray[np.bool_]:
        turns, opened = np.ascontiguousarray(turns), np.full(len(turns), widest)
        clear: NDArray[np.bool_] = approach_hits(solid, turns, places, opened, boxes, 0.0, stop_at=1).inside == 0
        if table is not None:
            clear &= lowest_heights(boxes, turns, places, opened, table.T_world_table) > 0.0
        return clear

    offsets = np.linspace(-0.5 * widest, 0.5 * widest, config.placements + 2)[1:-1]
    start = origins + (config.bite - tip) * rotations[:, :, 2]
    places = start[:, None] + offsets[:, None] * rotations[:, None, :, 1]
    fits = free(np.repeat(rotations, len(offsets), axis=0), places.reshape(-1, 3)).reshape(-1, len(offsets))
    hands = np.flatnonzero(fits.any(axis=1))
    middle = np.array([np.flatnonzero(row)[(row.sum() - 1) // 2] for row in fits[hands]], dtype=np.int64)
    rotations, places = rotations[hands], places[hands, middle]
    palm = max(float(box.center[2] + 0.5 * box.size[2]) for box in gripper.palm_boxes)
    moving = np.arange(len(hands))
    for _ in range(int((tip - palm - config.bite) / config.step)):
        further = places[moving] + config.step * rotations[moving, :, 2]
        passed = free(rotations[moving], further)
        moving = moving[passed]
        places[moving] = further[passed]
    return np.array([make_transform(turn, place) for turn, place in zip(rotations, places, strict=True)]).reshape(
        -1, 4, 4
    )


def antipodal_shares(points: Array, normals: Array, hands: Array, gripper: Gripper, cone: float) -> Array:
    """(H,) of the points between the pads, the share that faces either finger within the cone [rad], of the worse side.

    A point counts by how far it is from the cone's edge, 1 on its axis: whole shares would leave many hands alike.
    A hundredth of the better side's is added: of an object that was seen from one side, the worse one is always 0.
    """
    half = 0.5 * np.array([gripper.pad_width, gripper.aperture_max, gripper.pad_height])
    shares = np.zeros(len(hands))
    for k, hand in enumerate(hands):
        between = (np.abs((points - hand[:3, 3]) @ hand[:3, :3]) <= half).all(axis=1)
        if between.any():
            along, edge = normals[between] @ hand[:3, 1], math.cos(cone)
            sides = [float(np.clip((sign * along - edge) / (1.0 - edge), 0.0, 1.0).mean()) for sign in (1.0, -1.0)]
            shares[k] = min(sides) + 0.01 * max(sides)
    return shares
