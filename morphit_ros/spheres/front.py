"""Fits of one shape with the same number of spheres of which none is better than another in all measures.

Spheres that reach into every corner stand out more elsewhere, and the other way round: what is best depends on the use.
The weights of the losses are varied from spheres that stay inside, over balanced ones, to such that cover, each with
several seeds; what another fit is better or equal to in every measure is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements, mesh_digest
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig
from morphit_ros.spheres.exposed_surface import as_shape
from morphit_ros.spheres.fit import fit_spheres
from morphit_ros.spheres.links.cache import fit_key
from morphit_ros.spheres.links.fit import fit_shape
from morphit_ros.spheres.links.shape import load_link_shape
from morphit_ros.spheres.metrics import SphereMetrics, measure_spheres

# Measures and whether more is better.
MEASURES = {
    "d_avg": False,
    "d_max": False,
    "reverse_avg": False,
    "reverse_max": False,
    "inside": True,
    "outside": False,
}
# Weights that are tried: share of the way from balanced to surface or volume, and factor on the coverage.
_MIXTURES = (("surface", 1.0), ("surface", 0.5), ("volume", 0.15), ("volume", 0.25), ("volume", 0.5), ("volume", 1.0))
_COVERAGE_FACTORS = (0.5, 1.5, 2.5, 3.5, 5.0, 10.0)
# Samples that the measures are taken from, the same for all fits.
_SURFACE_SAMPLES, _VOLUME_SAMPLES = 10000, 100000

Progress = Callable[[int, int], None]
# Centres, radii and what identifies them.
_Fit = Callable[[SphereFitConfig, int], tuple[Array, Array, str]]


@dataclass(frozen=True)
class FrontMember:
    """One of the fits.

    Attributes:
        centers, radii: (N, 3) and (N,) [m], in the mesh's or the link's frame.
        metrics: its measures.
        label: what its weights are.
        weights: of its losses, all given: with them and the seed, a fit of variant balanced finds these spheres.
        seed: of the fit.
        content_hash: identifies shape, settings and seed; equal hash, equal spheres.
    """

    centers: Array
    radii: Array
    metrics: SphereMetrics
    label: str
    weights: LossWeights
    seed: int
    content_hash: str


def sphere_front(
    mesh: MeshesLike,
    config: SphereFitConfig | None = None,
    seed: int = 0,
    *,
    seeds: int = 2,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[FrontMember, ...]:
    """Fits of a shape of which none is better than another in all measures, from the least outside volume to the most.

    Args:
        mesh: the shape, as of `fit_spheres`.
        config: settings of every fit; its variant plays no part, weights that it gives hold for all.
        seed: the first seed; each weighting is tried with `seeds` in a row.
        seeds: fits a weighting.
        workers: threads, None for as many as this process has processors. The result does not depend on it.
        progress: called from this thread with (fits done, fits in all).

    Raises:
        InvalidInputError: a cover or a baseline is asked for; less than one seed or worker; or as of `fit_spheres`.
    """
    parts = as_shape(mesh)

    def fit(settings: SphereFitConfig, number: int) -> tuple[Array, Array, str]:
        result = fit_spheres(parts, settings, number)
        return result.centers, result.radii, fit_key(mesh_digest("", parts).hexdigest(), settings, number, None)

    return _front(fit, parts, config or SphereFitConfig(), seed, seeds, workers, progress)


def link_front(
    description: RobotDescription,
    link: str,
    config: SphereFitConfig | None = None,
    seed: int = 0,
    *,
    seeds: int = 2,
    source: str = "collision",
    cache: bool = True,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[FrontMember, ...]:
    """As `sphere_front` for a link of a robot, in the link's frame; counts, source and cache as of `fit_robot_spheres`.

    Raises:
        InvalidInputError: an unknown link, or one without geometry; or as of `sphere_front`.
        ResourceNotFoundError: a mesh file is missing.
    """
    elements = {name: link_elements(part, source) for name, part in description.links.items()}
    if not elements.get(link):
        known = ", ".join(name for name, parts in elements.items() if parts)
        raise InvalidInputError("link", repr(link), f"one that has geometry: {known}")
    shape = load_link_shape(elements[link])
    settings = config or SphereFitConfig()
    settings = replace(settings, count=shape.default_count(settings))

    def fit(own: SphereFitConfig, number: int) -> tuple[Array, Array, str]:
        fitted = fit_shape(shape, own, number, cache)
        return fitted.centers, fitted.radii, fitted.key

    members = _front(fit, shape.meshes, settings, seed, seeds, workers, progress)
    return tuple(replace(one, centers=transform_points(shape.T_link_shape, one.centers)) for one in members)


def non_dominated(values: Array) -> NDArray[np.bool_]:
    """Which rows (R,) of values (R, M) no other row is as good as in all and better than in one; less is better.

    Of equal rows the first counts.
    """
    no_worse: NDArray[np.bool_] = np.all(values[:, None] <= values[None], axis=2)
    better = no_worse & ~no_worse.T
    earlier = no_worse & no_worse.T & (np.arange(len(values))[:, None] < np.arange(len(values)))
    return ~np.any(better | earlier, axis=0)


def _front(
    fit: _Fit,
    meshes: Sequence[TriangleMesh],
    config: SphereFitConfig,
    seed: int,
    seeds: int,
    workers: int | None,
    progress: Progress | None,
) -> tuple[FrontMember, ...]:
    if config.cover or config.method != "morphit":
        raise InvalidInputError("config", "with a cover or a baseline", "method 'morphit' without cover")
    threads = len(os.sched_getaffinity(0)) if workers is None else workers
    for name, value in (("seeds", seeds), ("workers", threads)):
        if value < 1:
            raise InvalidInputError(name, value, "at least 1")

    def member(job: tuple[str, LossWeights, int]) -> FrontMember:
        label, weights, number = job
        centers, radii, key = fit(replace(config, variant="balanced", weights=weights), number)
        metrics = measure_spheres(meshes, centers, radii, _SURFACE_SAMPLES, _VOLUME_SAMPLES)
        return FrontMember(centers, radii, metrics, label, weights, number, key)

    # Weights that the caller gives can make several the same.
    weightings = {config.weights.completed(weights): label for label, weights in reversed(_weightings().items())}
    jobs = [(label, weights, seed + number) for weights, label in weightings.items() for number in range(seeds)]
    members = []
    with ThreadPoolExecutor(threads) as pool:
        for done, one in enumerate(pool.map(member, jobs), 1):
            members.append(one)
            if progress is not None:
                progress(done, len(jobs))
    # Shapes without volume have no ratios: they decide nothing.
    values = np.array(
        [
            [np.nan_to_num((-1.0 if more else 1.0) * getattr(one.metrics, name)) for name, more in MEASURES.items()]
            for one in members
        ]
    )
    kept = [one for one, is_kept in zip(members, non_dominated(values), strict=True) if is_kept]
    return tuple(sorted(kept, key=lambda one: (np.nan_to_num(one.metrics.outside), one.metrics.d_avg)))


def _weightings() -> dict[str, LossWeights]:
    """The weights that are tried, by what they are."""
    balanced = SphereFitConfig().loss_weights()
    result = {"balanced": balanced}
    for factor in _COVERAGE_FACTORS:
        result[f"balanced, {factor:g} coverage"] = replace(balanced, coverage=factor * balanced.coverage)
    for variant, share in _MIXTURES:
        other = SphereFitConfig(variant=variant).loss_weights()
        pairs = zip(balanced.to_flat().items(), other.to_flat().values(), strict=True)
        # Geometric, where both have the term.
        mixed = {
            name: a ** (1.0 - share) * b**share if a > 0.0 and b > 0.0 else (1.0 - share) * a + share * b
            for (name, a), b in pairs
        }
        result[variant if share == 1.0 else f"{share:.0%} {variant}"] = LossWeights(**mixed)
    return result
