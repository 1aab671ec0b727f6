"""CMA-ES baseline: the same energy, minimised without derivatives over seven unknowns.

Unknowns: rotation vector ±π, translation ±0.1 m, change of the aperture. The published bound,
[d_min − d_0, 0] on a quantity that is subtracted, lets the gripper only open; here the aperture
may take any value that the gripper has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import MissingDependencyError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rotation_vector
from morphit_ros.grasping.correspondences import CorrespondenceConfig, find_correspondences
from morphit_ros.grasping.disf import DisfResult, FitStatus, check_fit_input, measure_energies
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.visf import contact_status, status_at_end


@dataclass(frozen=True)
class CmaEsConfig(Config):
    """Weights, budget and start step."""

    alpha: float = parameter(0.1, "Weight of the normal alignment against the distances [m]", minimum=0.0, maximum=10.0)
    beta: float = parameter(0.85, "Weight of the preferred approach direction [m]", minimum=0.0, maximum=10.0)
    max_evaluations: int = parameter(1500, "Energies evaluated at most", minimum=10, maximum=1000000)
    sigma: float = parameter(0.2, "First step as a share of the bounds", minimum=1e-3, maximum=1.0)
    seed: int = parameter(1, "Seed of the random search", minimum=1, maximum=2**31 - 1)
    matching: CorrespondenceConfig = nested(CorrespondenceConfig)


def fit_cma_es(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: CmaEsConfig | None = None,
    approach: ArrayLike | None = None,
) -> DisfResult:
    """Fit by CMA-ES; arguments, result and errors as in `disf.fit_disf`.

    Raises:
        MissingDependencyError: the package cma is not installed.
    """
    try:
        import cma
    except ImportError as error:
        raise MissingDependencyError("cma", "The CMA-ES baseline", "Install it with pip install cma.") from error
    settings = config or CmaEsConfig()
    points, normals, start, n_app = check_fit_input(cloud, gripper, T_world_gripper_start, aperture_start, approach)
    pairs = find_correspondences(points, normals, gripper, start, aperture_start, config=settings.matching)
    status = contact_status(pairs, settings.matching.min_contacts)

    def decode(unknowns: Array) -> tuple[Array, float]:
        pose = make_transform(
            matrix_from_rotation_vector(math.pi * unknowns[:3]) @ start[:3, :3], start[:3, 3] + 0.1 * unknowns[3:6]
        )
        share = 0.5 * (1.0 + unknowns[6])
        return pose, gripper.aperture_min + share * (gripper.aperture_max - gripper.aperture_min)

    def energy(unknowns: Array) -> float:
        pose, aperture = decode(unknowns)
        found = measure_energies(points, normals, gripper, pose, aperture, pairs, n_app, settings.alpha)
        return found.E_geom + settings.beta**2 * found.E_a

    pose, aperture, evaluations = start, float(np.clip(aperture_start, gripper.aperture_min, gripper.aperture_max)), 0
    if status.usable:
        opening = (aperture - gripper.aperture_min) / (gripper.aperture_max - gripper.aperture_min)
        options = {
            "bounds": [-1.0, 1.0],
            "maxfevals": settings.max_evaluations,
            "seed": settings.seed,
            "verbose": -9,
            "tolfun": 1e-9,
        }
        first = np.zeros(7)
        first[6] = np.clip(2.0 * opening - 1.0, -0.95, 0.95)
        strategy = cma.CMAEvolutionStrategy(first, settings.sigma, options)
        strategy.optimize(energy)
        pose, aperture = decode(np.asarray(strategy.result.xbest))
        evaluations = int(strategy.result.evaluations)
        if evaluations >= settings.max_evaluations:
            status = FitStatus.ROUND_LIMIT
    status = status_at_end(status, points, normals, gripper, pose, aperture, settings.matching)
    energies = measure_energies(points, normals, gripper, pose, aperture, pairs, n_app, settings.alpha)
    return DisfResult(pose, aperture, energies, evaluations, status, pairs)
