"""Superovoids for every link of a robot, fitted in parallel threads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.links import GeometryKind, Link, LinkGeometry, element_mesh
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import FAMILIES, LinkFitConfig
from morphit_ros.superovoid.fits.errors import FitErrors
from morphit_ros.superovoid.robots.link_fit import LinkFit, fit_link_superovoids
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.shapes.superovoid import Superovoid

Progress = Callable[[str, int, int], None]
T = TypeVar("T")

SOURCES = ("collision", "visual", "collision_or_visual")
# Digits kept of the elements' poses [m] and of their rotations, so that rounding does not tell equal shapes apart.
_POSE_DIGITS = 9


def fit_robot_superovoids(
    description: RobotDescription,
    config: LinkFitConfig | None = None,
    links: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    *,
    counts: Mapping[str, int] | None = None,
    families: Mapping[str, str] | None = None,
    source: str = "collision",
    workers: int | None = None,
) -> RobotSuperovoids:
    """Fit superovoids to the geometry of a robot's links.

    A link is one shape, the union of its elements; it gets as many superovoids as pay, or as `counts` says. A link
    that is made of spheres keeps them as they are. Links of equal shape get equal superovoids.

    Args:
        description: the robot.
        config: settings of every fit.
        links: links to fit, None for all; those without geometry are left out of the model.
        seed: of every fit.
        progress: called from this thread with (link, links done, links in all) after each link.
        counts: link name → number of superovoids.
        families: link name → family instead of `config.fit.family`.
        source: geometry that makes up a link: "collision", "visual", or "collision_or_visual", the visual one of
            links without the other.
        workers: threads, None for as many as this process has processors. The result does not depend on it.

    Raises:
        InvalidInputError: an unknown link, family or source, a count or a number of workers below one, an unreadable
            mesh, or a shape that no superovoid can be fitted to; names the link.
        ResourceNotFoundError: a mesh file is missing; names the link.
    """
    settings, numbers, kinds = config or LinkFitConfig(), counts or {}, families or {}
    elements = {name: _link_elements(link, source) for name, link in description.links.items()}
    for argument, names in (("links", links or ()), ("counts", numbers), ("families", kinds)):
        _check_names(argument, names, elements)
    for name, family in kinds.items():
        if family not in FAMILIES:
            raise InvalidInputError(f"families['{name}']", repr(family), f"one of {', '.join(FAMILIES)}")
    for name, count in numbers.items():
        if count < 1:
            raise InvalidInputError(f"counts['{name}']", count, "at least 1")
    threads = len(os.sched_getaffinity(0)) if workers is None else workers
    if threads < 1:
        raise InvalidInputError("workers", workers, "at least 1")
    chosen = [name for name in elements if elements[name] and (links is None or name in links)]
    jobs: dict[str, tuple[_Shape, LinkFitConfig, int | None]] = {}
    shapes: dict[str, _Shape] = {}
    for name in chosen:
        shapes[name] = _naming(name, partial(_load_shape, elements[name]))
        own = replace(settings, fit=replace(settings.fit, family=kinds.get(name, settings.fit.family)))
        jobs[name] = (shapes[name], own, numbers.get(name))
    fits = _run(jobs, seed, threads, progress)
    return RobotSuperovoids(
        description.name, {name: _in_link(name, fits[name], shapes[name].T_link_shape) for name in chosen}
    )


@dataclass(frozen=True)
class _Shape:
    """The union of a link's elements in the frame of the first, in which equal shapes are equal."""

    meshes: tuple[TriangleMesh, ...]
    balls: tuple[PlacedSuperovoid, ...]
    T_link_shape: Array

    @property
    def content_hash(self) -> str:
        digest = hashlib.sha256(str(len(self.balls)).encode())
        for mesh in self.meshes:
            digest.update(np.array([len(mesh.vertices), len(mesh.faces)]).tobytes())
            digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
            digest.update(np.ascontiguousarray(mesh.faces).tobytes())
        return digest.hexdigest()


def _load_shape(elements: tuple[LinkGeometry, ...]) -> _Shape:
    T_link_shape = elements[0].T_link_geometry
    T_shape_link = invert_transform(T_link_shape)
    meshes, balls = [], []
    for element in elements:
        # Adding zero turns -0 into 0, which has other bits.
        T_shape_geometry = np.round(T_shape_link @ element.T_link_geometry, _POSE_DIGITS) + 0.0
        mesh = element_mesh(element)
        meshes.append(mesh if element is elements[0] else mesh.transformed(T_shape_geometry))
        if element.kind is GeometryKind.SPHERE:
            pose = T_shape_link @ element.T_link_geometry
            balls.append(PlacedSuperovoid(Superovoid.sphere(float(element.dimensions[0])), pose))
    return _Shape(tuple(meshes), tuple(balls) if len(balls) == len(elements) else (), T_link_shape)


def _fit_shape(shape: _Shape, config: LinkFitConfig, seed: int, count: int | None) -> LinkFit:
    if shape.balls and count in (None, len(shape.balls)):
        # Their meshes are inside of the spheres themselves, the shares of volume known.
        return LinkFit(shape.balls, FitErrors(0.0, 0.0, 0.0, 1.0, 0.0), "proven")
    return fit_link_superovoids(shape.meshes, config, seed, count)


def _run(
    jobs: Mapping[str, tuple[_Shape, LinkFitConfig, int | None]], seed: int, threads: int, progress: Progress | None
) -> dict[str, LinkFit]:
    """Fits by link; equal work is done once. Of several errors, that of the first link is raised."""
    futures: dict[object, Future[LinkFit]] = {}
    keys: dict[str, object] = {}
    pool = ThreadPoolExecutor(max(1, min(threads, len(jobs))))
    try:
        for name, (shape, config, count) in jobs.items():
            keys[name] = (shape.content_hash, config, count)
            if keys[name] not in futures:
                futures[keys[name]] = pool.submit(_fit_shape, shape, config, seed, count)
        if progress is not None:
            done = 0
            for future in as_completed(futures.values()):
                for name in (name for name, key in keys.items() if futures[key] is future):
                    done += 1
                    progress(name, done, len(jobs))
        return {name: _naming(name, futures[key].result) for name, key in keys.items()}
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_link(name: str, fit: LinkFit, T_link_shape: Array) -> LinkSuperovoids:
    shapes = tuple(PlacedSuperovoid(placed.shape, T_link_shape @ placed.T_link_shape) for placed in fit.shapes)
    return LinkSuperovoids(name, shapes, fit.errors, fit.containment)


def _naming(link: str, work: Callable[[], T]) -> T:
    """The result of work; its errors say which link they are about."""
    try:
        return work()
    except InvalidInputError as error:
        raise InvalidInputError(f"link '{link}': {error.name}", error.value, error.bound, error.remedy) from error
    except ResourceNotFoundError as error:
        remedy = f"The link '{link}' needs it. {error.remedy}".strip()
        raise ResourceNotFoundError(error.resource, error.searched, remedy) from error


def _link_elements(link: Link, source: str) -> tuple[LinkGeometry, ...]:
    if source not in SOURCES:
        raise InvalidInputError("source", repr(source), f"one of {', '.join(SOURCES)}")
    if source == "visual":
        return link.visuals
    return link.collisions or (link.visuals if source == "collision_or_visual" else ())


def _check_names(argument: str, names: Sequence[str] | Mapping[str, object], elements: Mapping[str, tuple]) -> None:
    for name in names:
        if name not in elements:
            raise InvalidInputError(argument, repr(name), f"one of {', '.join(elements)}")
        if not elements[name]:
            raise InvalidInputError(argument, repr(name), "a link that has geometry", "Leave it out.")
