"""MorphIt: exactly so many spheres for a shape, by gradient descent and density control.

Differences from the authors' code: the shape is scaled to a reference size first, so that the result does not
depend on its unit; radii are optimised as logarithms, so that they stay positive; the seed reaches every
sampler; several arrangements are tried; and a round of density control moves spheres rather than removing them, and
is taken back if it gained nothing.
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.bench import bench_module
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.meshed import Meshed
from morphit_ros.geometry.primitives import mesh_of_spheres
from morphit_ros.geometry.transforms import Array
from morphit_ros.spheres.clustering import cluster_points
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig
from morphit_ros.spheres.density_control import move_useless, resize
from morphit_ros.spheres.descent import MAX_RADIUS, MIN_RADIUS, Schedule, SphereDescent, descend
from morphit_ros.spheres.exposed_surface import as_shape
from morphit_ros.spheres.metrics import checked_spheres
from morphit_ros.spheres.samples import FitSamples, draw_samples

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

# Spread of the initial radii: x ~ LogNormal(0, σ), as in the authors' rework.
_RADIUS_SPREAD = 0.1
# Steps and rate of a start and of a round, relative to those of the last descent's settings.
_START_STEPS, _ROUND_STEPS = 0.4, 0.25
_ROUND_RATE, _LAST_RATE = 0.6, 0.3
# Share of the spheres that the first round may move, and its factor from round to round.
_MOVED_SHARE, _MOVED_DECAY = 0.1, 0.85
_PLATEAU, _LAST_PLATEAU = 1e-3, 1e-4
# A start costs as much as several rounds: for many spheres, which spread evenly anyway, one is enough.
_SPHERES_OF_ONE_START = 256


class SphereFitStatus(enum.Enum):
    """Outcome of a fit; spheres are usable in each case."""

    FITTED = "fitted"
    NO_VOLUME = "the mesh has no inside: spheres cover its surface only"
    COVER_NOT_PROVEN = "the spheres could not be proven to cover the mesh"
    INSIDE_NOT_PROVEN = "the spheres cover the surface, proven; what is inside its openings could not be decided"


@dataclass(frozen=True)
class SphereFitResult(Meshed):
    """Spheres for a shape.

    Attributes:
        centers: (N, 3) [m] in the mesh's frame.
        radii: (N,) [m], positive.
        status: outcome.
        history: total loss of each step that led here, in the normalised frame; empty for a baseline.
        cover_margin: how deep at least every point of the shape is inside the spheres [m], proven; None if no cover
            was asked for or proven.
    """

    centers: Array
    radii: Array
    status: SphereFitStatus
    history: Array
    cover_margin: float | None = None

    def triangle_mesh(self) -> TriangleMesh:
        """The spheres as polyhedra with their corners on them, in one mesh."""
        return mesh_of_spheres(self.centers, self.radii)


def fit_spheres(
    mesh: MeshesLike,
    config: SphereFitConfig | None = None,
    seed: int = 0,
    *,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    locked: ArrayLike | None = None,
) -> SphereFitResult:
    """Fit exactly `config.count` spheres to a mesh, or to the union of several; same seed, same spheres.

    Balanced spheres leave slight gaps to the mesh on both sides (see `measure_spheres`); with `config.cover`
    the mesh is inside them, proven.

    Args:
        mesh: the shape: a mesh of any kind that `geometry.inputs` knows, or several that mean their union.
        config: settings.
        seed: of all randomness.
        initial: centres (K, 3) and radii (K,) [m] to start from; thinned out or split until there are `count`. A
            baseline starts from nothing.
        locked: (K,) which of them stay exactly as they are: the result's first rows, in their order.

    Raises:
        InvalidInputError: the mesh has no area; initial spheres that are none; more locked than `count`; locked
            spheres together with a cover or with a baseline.
    """
    settings = config or SphereFitConfig()
    meshes = as_shape(mesh)
    start = _checked_start(initial, locked, settings)
    if settings.method != "morphit":
        baselines = bench_module("spheres.baselines", f"method '{settings.method}'")
        centers, radii = baselines.fit_baseline(settings.method, meshes, settings.count, seed)
        return SphereFitResult(centers, radii, SphereFitStatus.FITTED, np.empty(0))
    if settings.cover:
        return _fit_cover(meshes, settings, seed, start)
    return _fit(meshes, settings, seed, start)


@dataclass(frozen=True)
class _Start:
    centers: Array
    radii: Array
    free: NDArray[np.bool_]


def _checked_start(
    initial: tuple[ArrayLike, ArrayLike] | None, locked: ArrayLike | None, config: SphereFitConfig
) -> _Start | None:
    """The spheres to start from, locked ones first."""
    if initial is None:
        if locked is not None:
            raise InvalidInputError("locked", "given without initial spheres", "initial spheres as well")
        return None
    centers, radii = checked_spheres(*initial)
    mask = np.zeros(len(radii), dtype=np.bool_) if locked is None else np.asarray(locked, dtype=np.bool_)
    if mask.shape != radii.shape:
        raise InvalidInputError("locked", f"shape {mask.shape}", f"shape {radii.shape}, as the initial radii")
    if mask.sum() > config.count:
        raise InvalidInputError("locked", int(mask.sum()), f"at most {config.count}, the count")
    if mask.any() and (config.cover or config.method != "morphit"):
        raise InvalidInputError("locked", int(mask.sum()), "no locked spheres with a cover or a baseline")
    order = np.argsort(~mask, kind="stable")
    return _Start(centers[order], radii[order], ~mask[order])


def _fit_cover(
    meshes: Sequence[TriangleMesh], config: SphereFitConfig, seed: int, start: _Start | None
) -> SphereFitResult:
    from morphit_ros.spheres.cover.certificate import CoverStatus
    from morphit_ros.spheres.cover.search import CoverResult, cover_spheres, union_volume

    if config.variant == "volume" and start is None:
        # Free to place its spheres. Those of a balanced fit are in good places to begin with.
        fitted = _fit(meshes, SphereFitConfig(count=config.count), seed, None)
        arrangement = fitted.centers, fitted.radii

        def search(number: int) -> CoverResult:
            return cover_spheres(meshes, config.count, number, arrangement=arrangement)

        # The first as if it were alone.
        others = np.random.SeedSequence(seed).generate_state(config.seeds - 1)
        covers = _side_by_side(search, [seed, *map(int, others)])
        result = min(covers, key=lambda one: (not one.certificate.covered, union_volume(one.centers, one.radii)))
    else:
        # The other variants, and a warm start, grow from their own fit as little as they must.
        fitted = _fit(meshes, config, seed, start)
        result = cover_spheres(meshes, config.count, seed, initial=(fitted.centers, fitted.radii))
    certificate = result.certificate
    status = SphereFitStatus.FITTED if certificate.covered else SphereFitStatus.COVER_NOT_PROVEN
    if certificate.status is CoverStatus.SURFACE_ONLY:
        status = SphereFitStatus.INSIDE_NOT_PROVEN
    margin = certificate.margin if certificate.covered else None
    return SphereFitResult(result.centers, result.radii, status, fitted.history, margin)


def _fit(meshes: Sequence[TriangleMesh], config: SphereFitConfig, seed: int, start: _Start | None) -> SphereFitResult:
    rng = np.random.default_rng(seed)
    interior, surface = config.sample_counts()
    touches = surface if config.loss_weights().contact > 0.0 else 0
    samples = draw_samples(meshes, interior, surface, rng, touches)
    # All on the same samples, so that their losses compare; the first as if it were alone.
    generators = [rng, *(np.random.default_rng([seed, number]) for number in range(1, config.seeds))]
    searches = _side_by_side(lambda generator: _search(samples, config, start, generator), generators)
    best = min(searches, key=lambda search: search.loss)
    centers, radii = best.centers / samples.scale + samples.origin, best.radii / samples.scale
    if start is not None:
        # Scaling there and back would cost the locked ones their last digit.
        kept = int((~start.free).sum())
        centers[:kept], radii[:kept] = start.centers[:kept], start.radii[:kept]
    status = SphereFitStatus.FITTED if samples.has_volume else SphereFitStatus.NO_VOLUME
    return SphereFitResult(centers, radii, status, best.history)


def _side_by_side(work: Callable[[_Given], _Found], inputs: Sequence[_Given]) -> list[_Found]:
    """What the work makes of each of the inputs, in threads where there are several."""
    if len(inputs) == 1:
        return [work(inputs[0])]
    with ThreadPoolExecutor(min(len(inputs), len(os.sched_getaffinity(0)))) as pool:
        return list(pool.map(work, inputs))


def _search(
    samples: FitSamples, config: SphereFitConfig, start: _Start | None, rng: np.random.Generator
) -> SphereDescent:
    """The best spheres from one seed, with the loss over all samples and the history of all steps that led to them."""
    weights = config.loss_weights()
    # The search sees half of the samples, the last descent all.
    coarse = samples.halved()
    if start is None:
        free = np.ones(config.count, dtype=np.bool_)
        best = _best_start(coarse, free, weights, config, rng)
    else:
        centers, radii = (start.centers - samples.origin) * samples.scale, start.radii * samples.scale
        centers, radii, free = resize(coarse, centers, radii, start.free, weights, config.count)
        best = descend(coarse, centers, radii, free, weights, _schedule(config, _ROUND_STEPS, _ROUND_RATE))
    history = [best.history]
    failures = 0
    for index in range(config.rounds):
        moved = max(1, round(int(free.sum()) * _MOVED_SHARE * _MOVED_DECAY**index))
        centers, radii = move_useless(coarse, best.centers, best.radii, free, weights, moved, rng)
        attempt = descend(coarse, centers, radii, free, weights, _schedule(config, _ROUND_STEPS, _ROUND_RATE))
        failures = 0 if attempt.loss < best.loss else failures + 1
        if failures == 0:
            best = attempt
            history.append(attempt.history)
        elif failures == config.patience:
            break
    last = Schedule(config.iterations, _LAST_RATE * config.learning_rate, 0.01, _LAST_PLATEAU)
    best = descend(samples, best.centers, best.radii, free, weights, last)
    history.append(best.history)
    return replace(best, history=np.concatenate(history))


def _schedule(config: SphereFitConfig, steps: float, rate: float) -> Schedule:
    return Schedule(max(1, round(steps * config.iterations)), rate * config.learning_rate, 0.1, _PLATEAU)


def _best_start(
    samples: FitSamples,
    free: NDArray[np.bool_],
    weights: LossWeights,
    config: SphereFitConfig,
    rng: np.random.Generator,
) -> SphereDescent:
    """The best of short descents from several arrangements."""
    starts = config.starts if config.count <= _SPHERES_OF_ONE_START else 1
    schedule = _schedule(config, _START_STEPS, 1.0)
    attempts = (
        descend(samples, *_initial_spheres(samples, config.count, rng), free, weights, schedule) for _ in range(starts)
    )
    return min(attempts, key=lambda attempt: attempt.loss)


def _initial_spheres(samples: FitSamples, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Centres spread over the inside; log-normal radii whose volumes add up to the mesh's."""
    # Each start sees other points, so that the clusters grow from other seeds.
    chosen = rng.permutation(len(samples.interior))[: max(count, int(0.7 * len(samples.interior)))]
    centers, _ = cluster_points(samples.interior[chosen], count)
    spread = np.exp(rng.normal(0.0, _RADIUS_SPREAD, count))
    mean = (3.0 * samples.volume / (4.0 * math.pi * count)) ** (1.0 / 3.0)
    radii = mean * spread * (count / (spread**3).sum()) ** (1.0 / 3.0)
    return centers, np.clip(radii, MIN_RADIUS, MAX_RADIUS)
