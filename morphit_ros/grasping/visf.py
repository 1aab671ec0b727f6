"""VISF, the baseline that DISF disentangles: all six pose parameters in one least-squares step, then the finger.

Correspondences are found once, at the start pose; each iteration linearises the point-to-plane
distance, the normal alignment and the approach term at the present pose:

    min over (ω, t) of Σ ((p − q)·n_q + (p × n_q)·ω + n_q·t)² + α² Σ (1 + n_p·n_q + (n_p × n_q)·ω)²
                       + β² (1 − n_z·n_app − (n_z × n_app)·ω)²
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector
from morphit_ros.grasping.correspondences import CorrespondenceConfig, Correspondences, find_correspondences
from morphit_ros.grasping.disf import DisfResult, FitStatus, check_fit_input, measure_energies
from morphit_ros.grasping.gripper import Gripper


@dataclass(frozen=True)
class VisfConfig(Config):
    """Weights and stop rule, the paper's by default."""

    alpha: float = parameter(0.1, "Weight of the normal alignment against the distances [m]", minimum=0.0, maximum=10.0)
    beta: float = parameter(0.85, "Weight of the preferred approach direction [m]", minimum=0.0, maximum=10.0)
    max_iterations: int = parameter(100, "Least-squares steps at most", minimum=1, maximum=10000)
    energy_tolerance: float = parameter(1e-4, "Change of the energy that stops the iteration", minimum=0.0, maximum=1.0)
    matching: CorrespondenceConfig = nested(CorrespondenceConfig)


def fit_visf(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: VisfConfig | None = None,
    approach: ArrayLike | None = None,
) -> DisfResult:
    """Fit by coupled steps; arguments, result and errors as in `disf.fit_disf`."""
    settings = config or VisfConfig()
    points, normals, start, n_app = check_fit_input(cloud, gripper, T_world_gripper_start, aperture_start, approach)
    pairs = find_correspondences(points, normals, gripper, start, aperture_start, config=settings.matching)
    rotation, translation, aperture = start[:3, :3].copy(), start[:3, 3].copy(), float(aperture_start)
    status = contact_status(pairs, settings.matching.min_contacts)
    iterations, previous = 0, np.inf
    q, n_q = points[pairs.object_index], normals[pairs.object_index]
    side = np.where(pairs.finger == 1, 1.0, -1.0)
    pad = gripper.pad_points[pairs.pad_index]
    while status.usable:
        energies = measure_energies(
            points, normals, gripper, make_transform(rotation, translation), aperture, pairs, n_app, settings.alpha
        )
        energy = energies.E_geom + settings.beta**2 * energies.E_a
        if abs(previous - energy) <= settings.energy_tolerance:
            break
        if iterations == settings.max_iterations:
            status = FitStatus.ROUND_LIMIT
            break
        previous, iterations = energy, iterations + 1
        p = _pad_points(pad, side, aperture) @ rotation.T + translation
        n_p = -side[:, None] * rotation[:, 1]
        n_z = rotation[:, 2]
        # About the middle of the points, so that turning does not swing them about a far origin.
        pivot = p.mean(axis=0)
        jacobian = np.zeros((2 * len(p) + 1, 6))
        residual = np.zeros(len(jacobian))
        jacobian[: len(p), :3] = np.cross(p - pivot, n_q)
        jacobian[: len(p), 3:] = n_q
        residual[: len(p)] = np.einsum("ij,ij->i", p - q, n_q)
        jacobian[len(p) : -1, :3] = settings.alpha * np.cross(n_p, n_q)
        residual[len(p) : -1] = settings.alpha * (1.0 + np.einsum("ij,ij->i", n_p, n_q))
        jacobian[-1, :3] = -settings.beta * np.cross(n_z, n_app)
        residual[-1] = settings.beta * (1.0 - n_z @ n_app)
        step = np.linalg.lstsq(jacobian, -residual, rcond=1e-8)[0]
        turn = matrix_from_rotation_vector(step[:3])
        rotation = turn @ rotation
        translation = turn @ (translation - pivot) + pivot + step[3:]

        p = _pad_points(pad, side, aperture) @ rotation.T + translation
        a = 0.5 * side * (n_q @ rotation[:, 1])
        b = np.einsum("ij,ij->i", p - q, n_q)
        aperture = float(np.clip(aperture - (a @ b) / (a @ a), gripper.aperture_min, gripper.aperture_max))
    pose = make_transform(rotation, translation)
    status = status_at_end(status, points, normals, gripper, pose, aperture, settings.matching)
    energies = measure_energies(points, normals, gripper, pose, aperture, pairs, n_app, settings.alpha)
    return DisfResult(pose, aperture, energies, iterations, status, pairs)


def contact_status(pairs: Correspondences, min_contacts: int) -> FitStatus:
    """CONVERGED if both fingers have enough correspondences, else why not."""
    enough = [pairs.count(finger) >= min_contacts for finger in (1, 2)]
    if all(enough):
        return FitStatus.CONVERGED
    return FitStatus.ONE_SIDED if any(enough) else FitStatus.NO_CONTACT


def status_at_end(
    status: FitStatus,
    points: Array,
    normals: Array,
    gripper: Gripper,
    pose: Array,
    aperture: float,
    matching: CorrespondenceConfig,
) -> FitStatus:
    """The status, or DIVERGED if fresh correspondences at the final pose miss a finger.

    The point-to-plane energy over the first correspondences does not grow when the pads slide
    along the object, or off it: a low energy alone does not mean a grasp.
    """
    if not status.usable:
        return status
    # 5 mm on each side, as pads that settled in the middle of a slanted surface have points behind them.
    pairs = find_correspondences(points, normals, gripper, pose, aperture, aperture + 0.01, matching)
    return status if contact_status(pairs, matching.min_contacts).usable else FitStatus.DIVERGED


def _pad_points(pad: Array, side: Array, aperture: float) -> Array:
    return pad + np.outer(0.5 * side * aperture, (0.0, 1.0, 0.0))
