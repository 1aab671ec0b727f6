"""What the three published planners share: parameters, start, energies, result.

The energy is E = E_p + α² E_n + β² E_a over the correspondences of the start, with sums (not means)
E_p = Σ ((p − q)·n_q)² and E_n = Σ (1 + n_p·n_q)², and E_a = (n_z·n_app − 1)². Reported are E_geom = E_p + α² E_n and
E_com = ‖centroid(object) − centroid(pads)‖ of the whole surfaces, eq. (17), where the published code takes
those of the correspondences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.matching import match_once
from morphit_bench.grasping.surface import published_pads
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.grasping.fitting.correspondences import Correspondences
from morphit_ros.grasping.fitting.energies import FitEnergies
from morphit_ros.grasping.fitting.fit_result import GraspFitStatus, check_fit_input
from morphit_ros.grasping.gripper import Gripper


@dataclass(frozen=True)
class PublishedConfig(Config):
    """Weights and stop rule of the paper."""

    alpha: float = parameter(0.1, "Weight of the normal alignment against the distances [m]", minimum=0.0, maximum=10.0)
    beta: float = parameter(0.85, "Weight of the preferred approach direction [m]", minimum=0.0, maximum=10.0)
    max_iterations: int = parameter(100, "Iterations at most", minimum=1, maximum=10000)
    energy_tolerance: float = parameter(1e-4, "Change of the energy that stops the iteration", minimum=0.0, maximum=1.0)
    min_contacts: int = parameter(3, "Correspondences that each finger must have at the start", minimum=1, maximum=1000)


@dataclass(frozen=True)
class FitStart:
    """A start pose with its correspondences, M of them.

    Attributes:
        points, normals: (N, 3) the whole object surface.
        pad_center: (3,) centroid of both pads, whatever their opening [m].
        T_world_gripper: (4, 4) start.
        aperture: opening of the start [m].
        n_app: (3,) preferred approach direction.
        origin: (3,) point that the rotations turn about.
        p, n_p: (M, 3) matched pad points and their normals at the start.
        q, n_q: (M, 3) matched object points and normals.
        side: (M,) +1 for finger 1, −1 for finger 2: which way along y the finger opens.
        pairs: the indices behind them.
        status: CONVERGED if both fingers have enough, else why not.
    """

    points: Array
    normals: Array
    pad_center: Array
    T_world_gripper: Array
    aperture: float
    n_app: Array
    origin: Array
    p: Array
    n_p: Array
    q: Array
    n_q: Array
    side: Array
    pairs: Correspondences
    status: GraspFitStatus


@dataclass(frozen=True)
class PublishedFit:
    """A fitted pose.

    Attributes:
        T_world_gripper: (4, 4) in the frame of the cloud, our gripper frame; the start if too few correspondences.
        aperture: opening at which the pads meet the object [m].
        energies: at the returned pose, over `correspondences`; `E_com` by eq. (17).
        E_com_matched: distance of the centroids of the matched points, what the published code calls E_CoM [m].
        iterations: iterations, for CMA-ES evaluations of the energy.
        status: CONVERGED, ROUND_LIMIT, ONE_SIDED or NO_CONTACT.
        correspondences: those of the start; `pad_index` is into `surface.published_pads`.
        history: energy E before the first and after each iteration; empty for CMA-ES.
    """

    T_world_gripper: Array
    aperture: float
    energies: FitEnergies
    E_com_matched: float
    iterations: int
    status: GraspFitStatus
    correspondences: Correspondences
    history: Array


def start_fit(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: PublishedConfig,
    approach: ArrayLike | None,
    origin: ArrayLike | None,
) -> FitStart:
    """Check the input and find the correspondences.

    Args:
        cloud: the object's surface with normals, see `surface.prepare_surface`.
        gripper: what is fitted.
        T_world_gripper_start: (4, 4) start in the frame of the cloud.
        aperture_start: opening of the start, also the width of the crop [m].
        config: weights and limits.
        approach: (3,) preferred approach direction n_app; the start's own if None.
        origin: (3,) origin of the published object frame, which rotations turn about; the cloud's centroid if None.

    Raises:
        InvalidInputError: an unusable cloud, transform, aperture, approach or origin.
    """
    points, normals, pose, n_app = check_fit_input(cloud, gripper, T_world_gripper_start, aperture_start, approach)
    pivot = points.mean(axis=0) if origin is None else np.asarray(origin, dtype=np.float64)
    if pivot.shape != (3,) or not np.isfinite(pivot).all():
        raise InvalidInputError("origin", origin, "a finite point (3,) [m]")
    pad = published_pads(gripper)
    pairs = match_once(points, normals, pad, (gripper.pad_width, gripper.pad_height), pose, aperture_start)
    rotation, translation = pose[:3, :3], pose[:3, 3]
    side = np.where(pairs.finger == 1, 1.0, -1.0)
    n_p = -side[:, None] * pose[:3, 1]
    enough = [pairs.count(finger) >= config.min_contacts for finger in (1, 2)]
    status = (
        GraspFitStatus.CONVERGED
        if all(enough)
        else GraspFitStatus.ONE_SIDED
        if any(enough)
        else GraspFitStatus.NO_CONTACT
    )
    return FitStart(
        points=points,
        normals=normals,
        pad_center=rotation @ pad.mean(axis=0) + translation,
        T_world_gripper=pose,
        aperture=float(aperture_start),
        n_app=n_app,
        origin=pivot,
        p=pad[pairs.pad_index] @ rotation.T + translation - 0.5 * aperture_start * n_p,
        n_p=n_p,
        q=points[pairs.object_index],
        n_q=normals[pairs.object_index],
        side=side,
        pairs=pairs,
        status=status,
    )


def finish_fit(
    start: FitStart,
    turn: Array,
    shift: Array,
    opening: float,
    iterations: int,
    status: GraspFitStatus,
    history: Array,
    alpha: float,
) -> PublishedFit:
    """The result of a motion R_Σ, t_Σ, δd_Σ of the start: R* = R_Σ R0, t* = R_Σ t0 + t_Σ, d* = d0 + δd_Σ."""
    pose = make_transform(turn @ start.T_world_gripper[:3, :3], turn @ start.T_world_gripper[:3, 3] + shift)
    n_p = start.n_p @ turn.T
    p = start.p @ turn.T + shift - 0.5 * opening * n_p  # a pad faces the way it closes
    E_p = float((((p - start.q) * start.n_q).sum(axis=1) ** 2).sum())
    E_n = float((((n_p * start.n_q).sum(axis=1) + 1.0) ** 2).sum())
    E_a = float((pose[:3, 2] @ start.n_app - 1.0) ** 2)
    center = np.ones(len(start.points)) @ start.points / len(start.points)
    E_com = float(np.linalg.norm(center - turn @ start.pad_center - shift))
    matched = float(np.linalg.norm((start.q - p).mean(axis=0))) if len(p) else float("nan")
    return PublishedFit(
        pose,
        start.aperture + opening,
        FitEnergies(E_p, E_n, E_a, E_p + alpha**2 * E_n, E_com),
        matched,
        iterations,
        status,
        start.pairs,
        history,
    )


def unfitted(start: FitStart, alpha: float) -> PublishedFit:
    """The result where too few correspondences leave nothing to fit: the start itself."""
    return finish_fit(start, np.eye(3), np.zeros(3), 0.0, 0, start.status, np.empty(0), alpha)
