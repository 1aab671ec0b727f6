"""Spheres for the shape of a link, fitted or taken from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.robot.links import GeometryKind
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.cover.certificate import certify_cover
from morphit_ros.spheres.exposed_surface import sample_exposed_surface
from morphit_ros.spheres.fit import fit_spheres
from morphit_ros.spheres.links.cache import ShapeFit, fit_key, keep_fit, read_fit
from morphit_ros.spheres.links.shape import LinkShape
from morphit_ros.spheres.metrics import nearest_gaps

# Points on the surface that d_avg and d_max are taken from.
SURFACE_POINTS = 5000
# Two spheres this close, relative to the radius, are the same one after a change of frames.
_SAME = 1e-6
# Digits kept of centres that a fit starts from [m], so that rounding in changes of frames does not decide its key.
_START_DIGITS = 9


def shape_fit_key(
    shape: LinkShape, config: SphereFitConfig, seed: int, start: tuple[Array, Array] | None = None
) -> str:
    """Identifies what `fit_shape` returns for these arguments."""
    # What plays no part in the fit must not tell keys apart.
    settings = replace(config, primitive_count=SphereFitConfig.primitive_count)
    return fit_key(shape.content_hash, settings, seed, start)


def fit_shape(
    shape: LinkShape,
    config: SphereFitConfig,
    seed: int = 0,
    cache: bool = True,
    start: tuple[Array, Array] | None = None,
) -> ShapeFit:
    """Exactly `config.count` spheres for a link's shape, in its frame.

    Elements that are spheres stay themselves and come first, if the count allows all of them, and one more for the
    other elements.

    Args:
        shape: what to fit.
        config: settings; `primitive_count` plays no part.
        seed: of the fit.
        cache: whether to read and write it in the cache folder.
        start: spheres to start from, centres (K, 3) and radii (K,) in the shape's frame.

    Raises:
        InvalidInputError: the shape has no area.
    """
    key = shape_fit_key(shape, config, seed, start)
    locked = shape.locked_count(config.count)
    if locked == config.count:
        return ShapeFit(shape.ball_centers, shape.ball_radii, 0.0, 0.0, 0.0 if config.cover else None, key)
    known = read_fit(key) if cache else None
    if known is not None and len(known.radii) == config.count:
        trusted = _remeasured(shape, locked, config, known)
        if trusted is not None:
            return trusted
    free = _free_start(shape, locked, start)
    if locked and (config.cover or config.method != "morphit"):
        centers, radii, margin = _fit_apart(shape, locked, config, seed, free)
    else:
        centers, radii, margin = _fit_together(shape, locked, config, seed, free)
    fit = ShapeFit(centers, radii, *_distances(shape, centers, radii), margin, key)
    if cache:
        keep_fit(fit)
    return fit


def _remeasured(shape: LinkShape, locked: int, config: SphereFitConfig, known: ShapeFit) -> ShapeFit | None:
    """Spheres of the cache with figures of their own: a robot's safety doesn't rest on what a file says.

    None if they don't hold the locked elements, or don't cover the shape as the file says.
    """
    centers, radii = known.centers, known.radii
    own = np.array_equal(centers[:locked], shape.ball_centers[:locked])
    if not (own and np.array_equal(radii[:locked], shape.ball_radii[:locked])):
        return None
    margin = None
    if config.cover and known.cover_margin is not None:
        certificate = certify_cover(_fitted_meshes(shape, locked), centers[locked:], radii[locked:])
        if not certificate.covered:
            return None
        margin = certificate.margin if locked == 0 else min(certificate.margin, 0.0)
    d_avg, d_max = _distances(shape, centers, radii)
    return replace(known, d_avg=d_avg, d_max=d_max, cover_margin=margin)


def _distances(shape: LinkShape, centers: Array, radii: Array) -> tuple[float, float]:
    """Mean and greatest distance between the shape's surface and the spheres' [m]."""
    points, _ = sample_exposed_surface(shape.meshes, SURFACE_POINTS, np.random.default_rng(0))
    gaps = np.abs(nearest_gaps(points, centers, radii))
    return float(gaps.mean()), float(gaps.max())


def _fitted_meshes(shape: LinkShape, locked: int) -> Sequence[TriangleMesh]:
    """What spheres besides the locked ones are fitted to, where the two must not know of each other."""
    others = [mesh for mesh, kind in zip(shape.meshes, shape.kinds, strict=True) if kind is not GeometryKind.SPHERE]
    return others if locked and others else shape.meshes


def start_in_shape(shape: LinkShape, centers: Array, radii: Array) -> tuple[Array, Array]:
    """Spheres of a link, centres (K, 3) and radii (K,) in its frame, as the `start` of a fit of its shape."""
    moved = transform_points(invert_transform(shape.T_link_shape), centers)
    return np.round(moved, _START_DIGITS) + 0.0, radii


def _free_start(shape: LinkShape, locked: int, start: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """The spheres to start from without those that are locked elements."""
    if start is None:
        return np.empty((0, 3)), np.empty(0)
    centers, radii = shape.ball_centers[:locked], shape.ball_radii[:locked]
    apart = np.linalg.norm(start[0][:, None] - centers, axis=2) + np.abs(start[1][:, None] - radii)
    free = ~(apart < _SAME * radii).any(axis=1)
    return start[0][free], start[1][free]


def _fit_together(
    shape: LinkShape, locked: int, config: SphereFitConfig, seed: int, start: tuple[Array, Array]
) -> tuple[Array, Array, float | None]:
    """Centres, radii and cover margin, the other spheres fitted to what the locked elements leave over."""
    centers = np.concatenate([shape.ball_centers[:locked], start[0]])
    radii = np.concatenate([shape.ball_radii[:locked], start[1]])
    if len(radii):
        mask = np.arange(len(radii)) < locked
        result = fit_spheres(shape.meshes, config, seed, initial=(centers, radii), locked=mask)
    else:
        result = fit_spheres(shape.meshes, config, seed)
    return result.centers, result.radii, result.cover_margin


def _fit_apart(
    shape: LinkShape, locked: int, config: SphereFitConfig, seed: int, start: tuple[Array, Array]
) -> tuple[Array, Array, float | None]:
    """As `_fit_together`, where locked spheres and fit must not know of each other: with a cover or a baseline."""
    own = replace(config, count=config.count - locked)
    result = fit_spheres(_fitted_meshes(shape, locked), own, seed, initial=start if len(start[1]) else None)
    # An element that is its own sphere is covered with no margin.
    margin = None if result.cover_margin is None else min(result.cover_margin, 0.0)
    centers = np.concatenate([shape.ball_centers[:locked], result.centers])
    return centers, np.concatenate([shape.ball_radii[:locked], result.radii]), margin
