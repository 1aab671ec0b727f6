"""One interface for all grasp planners: this package's and the published ones it is compared with.

    method = grasp_method("disf", protocol=PaperProtocol("T", T_world_model))
    plan = method.plan(cloud, gripper, table)

Names: "morphit" (`planner.plan_grasps`), "gpd" (GPD's geometric sampler), "disf", "visf", "cma_es" (those of the DISF
paper). The last three give at most one grasp. They do not look at the table (but for the direction down), at obstacles,
or at a given mass and its centre.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.cma_es import CmaEsConfig, fit_cma_es
from morphit_bench.grasping.disf import fit_published_disf
from morphit_bench.grasping.fit import PublishedConfig, PublishedFit
from morphit_bench.grasping.gpd import GpdMethod
from morphit_bench.grasping.protocols import GenericProtocol, StartPose, StartProtocol
from morphit_bench.grasping.surface import SURFACES, ObservedSurfaceConfig, prepare_surface
from morphit_bench.grasping.visf import VisfConfig, fit_visf
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.grasping.fitting.fit_result import GraspFitStatus
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner import plan_grasps
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.grasping.suction.planner import plan_suction

METHODS = ("morphit", "gpd", "disf", "visf", "cma_es")

PREGRASP_DISTANCE = 0.22
"""The paper's γ [m]."""


class GraspMethod(Protocol):
    """A grasp planner."""

    @property
    def name(self) -> str:
        """One of `METHODS`."""
        ...

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
        """Ranked grasps of an object; arguments and errors as in `planner.plan_grasps`, `mass` [kg] if it is known."""
        ...


class MorphitMethod:
    """This package's planner, of grasps by two fingers and of places for suction cups, which only this one knows.

    Args:
        config: see `PlannerConfig`.
        options: further arguments of `plan_grasps`, the same for every plan (a shape completion).
    """

    name = "morphit"

    def __init__(self, config: PlannerConfig | None = None, **options: Any) -> None:
        self.config = config
        self.options = options

    def plan(
        self,
        cloud: PointCloud,
        gripper: Gripper | SuctionCup,
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
        """As `planner.plan_grasps`; a known mass takes the place of the configuration's."""
        config = self.config if mass is None else replace(self.config or PlannerConfig(), mass=mass)
        if isinstance(gripper, SuctionCup):
            return plan_suction(
                cloud, gripper, config, table, seed, approach, center_of_mass,
                reachable=reachable, obstacles=obstacles, viewpoints=viewpoints,
            )  # fmt: skip
        return plan_grasps(
            cloud,
            gripper,
            config,
            table,
            seed,
            approach,
            center_of_mass,
            reachable,
            obstacles=obstacles,
            viewpoints=viewpoints,
            **self.options,
        )


class PublishedMethod:
    """A published planner with the starts that a protocol gives it.

    Starts are tried in order until one has enough correspondences on both fingers and, where `reachable` is given, a
    reachable grasp.

    Args:
        name: "disf", "visf" or "cma_es".
        config: weights and stop rule; `VisfConfig` for "visf", `CmaEsConfig` for "cma_es" (whose seed is the plan's).
        protocol: where the starts come from; `GenericProtocol` if None.
        surface: how the cloud becomes the object's surface.
        pregrasp_distance: length of the straight approach [m].

    Raises:
        InvalidInputError: the configuration is not the method's, or the distance is not a finite number of at least 0.
        ResourceNotFoundError: no published planner of that name.
    """

    def __init__(
        self,
        name: str,
        config: PublishedConfig | None = None,
        protocol: StartProtocol | None = None,
        surface: ObservedSurfaceConfig | None = None,
        pregrasp_distance: float = PREGRASP_DISTANCE,
    ) -> None:
        if name not in _CONFIGS:
            raise ResourceNotFoundError(f"published planner '{name}'", [], f"Known: {', '.join(_CONFIGS)}.")
        settings = config or _CONFIGS[name]()
        if type(settings) is not _CONFIGS[name]:
            raise InvalidInputError("config", type(settings).__name__, f"{_CONFIGS[name].__name__} for '{name}'")
        if not (np.isfinite(pregrasp_distance) and pregrasp_distance >= 0.0):
            raise InvalidInputError("pregrasp_distance", pregrasp_distance, "a finite number, at least 0 [m]")
        self.name = name
        self.config = settings
        self.protocol: StartProtocol = protocol or GenericProtocol()
        self.surface = surface or SURFACES["observed"]
        self.pregrasp_distance = float(pregrasp_distance)

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
        """At most one grasp. `center_of_mass`, `mass` and `obstacles` do not matter to it.

        Raises:
            InvalidInputError: an unusable cloud, table, approach direction or seed.
            ResourceNotFoundError: the paper's protocol has no start for the object and gripper.
        """
        if not 0 <= seed < 2**31 - 1:
            raise InvalidInputError("seed", seed, f"in [0, {2**31 - 2}]")
        begin = time.perf_counter()
        up = None if table is None else check_transform(table.T_world_table, "table.T_world_table")[:3, 2]
        surface = prepare_surface(cloud, self.surface)
        prepared = time.perf_counter()
        starts = self.protocol.starts(surface, gripper, up, approach, seed)
        started = time.perf_counter()
        rejected = {GraspFitStatus.NO_CONTACT.value: 0, "contact on one finger only": 0, "unreachable": 0}
        grasps: list[Grasp] = []
        for start in starts:
            fit = self.fit(surface, gripper, start, seed)
            if not fit.status.usable:
                one_sided = fit.status is GraspFitStatus.ONE_SIDED
                rejected["contact on one finger only" if one_sided else GraspFitStatus.NO_CONTACT.value] += 1
                continue
            grasp = self._grasp(fit, surface, start)
            if reachable is None or reachable(grasp):
                grasps.append(grasp)
                break
            rejected["unreachable"] += 1
        timings = {
            "prepare": prepared - begin,
            "starts": started - prepared,
            "fit": time.perf_counter() - started,
        }
        return GraspPlan(grasps, rejected, len(starts), timings, "" if grasps else _explain(rejected))

    def fit(self, surface: PointCloud, gripper: Gripper, start: StartPose, seed: int = 0) -> PublishedFit:
        """One fit from one start, on a prepared surface."""
        pose, aperture = start.T_world_gripper, start.aperture
        if isinstance(self.config, CmaEsConfig):
            # The library takes seed 0 for "draw one from the clock".
            config = replace(self.config, seed=seed + 1)
            return fit_cma_es(surface, gripper, pose, aperture, config, start.approach, start.origin)
        if isinstance(self.config, VisfConfig):
            return fit_visf(surface, gripper, pose, aperture, self.config, start.approach, start.origin)
        return fit_published_disf(surface, gripper, pose, aperture, self.config, start.approach, start.origin)

    def _grasp(self, fit: PublishedFit, surface: PointCloud, start: StartPose) -> Grasp:
        pregrasp = fit.T_world_gripper.copy()
        pregrasp[:3, 3] -= self.pregrasp_distance * pregrasp[:3, 2]
        pairs, energies = fit.correspondences, fit.energies
        metrics = {
            "E_p": energies.E_p,
            "E_n": energies.E_n,
            "E_a": energies.E_a,
            "E_geom": energies.E_geom,
            "E_com": energies.E_com,
            "E_com_matched": fit.E_com_matched,
            "contacts_1": float(pairs.count(1)),
            "contacts_2": float(pairs.count(2)),
            "iterations": float(fit.iterations),
            "settled": float(fit.status is GraspFitStatus.CONVERGED),
        }
        return Grasp(
            T_world_gripper=fit.T_world_gripper,
            T_world_pregrasp=pregrasp,
            aperture=fit.aperture,
            open_aperture=start.aperture,
            score=-energies.E_geom - self.config.beta**2 * energies.E_a,
            metrics=metrics,
            contact_points=surface.points[pairs.object_index],
            contact_fingers=pairs.finger,
        )


_CONFIGS: dict[str, type[PublishedConfig]] = {"disf": PublishedConfig, "visf": VisfConfig, "cma_es": CmaEsConfig}


def grasp_method(name: str, **options: Any) -> GraspMethod:
    """A planner by its name.

    Args:
        name: one of `METHODS`.
        options: arguments of `MorphitMethod`, `GpdMethod` or `PublishedMethod`.

    Raises:
        ResourceNotFoundError: no such method; lists the known ones.
        InvalidInputError: an option that the method refuses.
    """
    if name == MorphitMethod.name:
        return MorphitMethod(**options)
    if name == GpdMethod.name:
        return GpdMethod(**options)
    if name not in _CONFIGS:
        raise ResourceNotFoundError(f"grasp method '{name}'", [], f"Known: {', '.join(METHODS)}.")
    return PublishedMethod(name, **options)


def _explain(rejected: dict[str, int]) -> str:
    counts = ", ".join(f"{stage}: {count}" for stage, count in rejected.items() if count)
    if rejected["unreachable"]:
        return f"No grasp: the robot cannot reach what was fitted. Starts refused: {counts}."
    return f"No grasp: too few correspondences at every start. Starts refused: {counts or 'none was given'}."
