"""CMA-ES baseline: the same energy, minimised without derivatives over seven unknowns.

Unknowns: rotation vector ±π and translation ±0.1 m of the start's pads, about the origin of the object frame, and the
change of the opening. The published code lets the change be 0 to d_max on top of the start's opening, which is the
widest already: the gripper can only open, and never grasps. `opening_bound="published"` reproduces that; by default the
change is whatever the gripper's limits leave. The search starts in the middle of the bounds with a tenth of their
widths, as published; the budget is ours, the published one has no limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.disf import energy, rodrigues
from morphit_bench.grasping.fit import PublishedConfig, PublishedFit, finish_fit, start_fit, unfitted
from morphit_ros.configuration import parameter
from morphit_ros.errors import MissingDependencyError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.fit_result import GraspFitStatus
from morphit_ros.grasping.gripper import Gripper

MAX_TRANSLATION = 0.1


@dataclass(frozen=True)
class CmaEsConfig(PublishedConfig):
    """Weights, bound of the opening, budget."""

    opening_bound: str = parameter(
        "gripper",
        "Change of the opening: what the gripper's limits leave, or opening only as published",
        choices=("gripper", "published"),
    )
    max_evaluations: int = parameter(2500, "Energies evaluated at most", minimum=10, maximum=1000000)
    seed: int = parameter(1, "Seed of the random search", minimum=1, maximum=2**31 - 1)


def fit_cma_es(
    cloud: PointCloud,
    gripper: Gripper,
    T_world_gripper_start: ArrayLike,
    aperture_start: float,
    config: CmaEsConfig | None = None,
    approach: ArrayLike | None = None,
    origin: ArrayLike | None = None,
) -> PublishedFit:
    """Fit by CMA-ES; arguments and errors as in `fit.start_fit`.

    Raises:
        MissingDependencyError: the package cma is not installed.
    """
    try:
        import cma
    except ImportError as error:
        raise MissingDependencyError("cma", "The CMA-ES baseline", "Install it with pip install cma.") from error
    settings = config or CmaEsConfig()
    start = start_fit(cloud, gripper, T_world_gripper_start, aperture_start, settings, approach, origin)
    if not start.status.usable:
        return unfitted(start, settings.alpha)
    p, q = start.p - start.origin, start.q - start.origin
    n_z = start.T_world_gripper[:3, 2]
    if settings.opening_bound == "published":
        opening_range = (0.0, gripper.aperture_max)
    else:
        opening_range = (gripper.aperture_min - start.aperture, gripper.aperture_max - start.aperture)
    upper = np.array([math.pi] * 3 + [MAX_TRANSLATION] * 3 + [opening_range[1]])
    lower = np.concatenate([-upper[:6], [opening_range[0]]])

    def moved_energy(unknowns: Array) -> float:
        turn = rodrigues(unknowns[:3])
        normals = start.n_p @ turn.T
        pads = p @ turn.T + unknowns[3:6] - 0.5 * unknowns[6] * normals  # a pad faces the way it closes
        return float(energy(pads, normals, q, start.n_q, turn @ n_z, start.n_app, settings.alpha, settings.beta))

    widths = upper - lower
    options = {
        "bounds": [lower, upper],
        "CMA_stds": widths / widths.max(),
        "maxfevals": settings.max_evaluations,
        "seed": settings.seed,
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy(0.5 * (lower + upper), 0.1 * float(widths.mean()), options)
    strategy.optimize(moved_energy)
    best = np.asarray(strategy.result.xbest)
    evaluations = int(strategy.result.evaluations)
    turn = rodrigues(best[:3])
    shift = best[3:6] + start.origin - turn @ start.origin
    status = GraspFitStatus.ROUND_LIMIT if evaluations >= settings.max_evaluations else GraspFitStatus.CONVERGED
    return finish_fit(start, turn, shift, float(best[6]), evaluations, status, np.empty(0), settings.alpha)
