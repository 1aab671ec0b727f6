"""A robot as spheres: the shape of every link fitted, in parallel and cached on disk by content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.link_jobs import Progress as Progress, naming_link, run_link_jobs
from morphit_ros.robot.links import LinkGeometry
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.links.cache import ShapeFit
from morphit_ros.spheres.links.fit import fit_shape, shape_fit_key, start_in_shape
from morphit_ros.spheres.links.shape import load_link_shape

# Variant of a model whose links were fitted with different ones.
MIXED = "mixed"


@dataclass(frozen=True)
class LinkSpheres:
    """The spheres of one link.

    Attributes:
        link: its name.
        centers, radii: (N, 3) and (N,) [m] in the link's frame; elements that are spheres themselves come first.
        d_avg, d_max: mean and greatest distance between the surface of the link's shape and the spheres' [m].
        content_hash: identifies geometry, configuration, seed and the spheres that the fit started from; equal hash,
            equal spheres.
        cover_margin: as of `SphereFitResult` [m], None without guaranteed cover.
        deviation: no point of the link is farther from the spheres than the first, none of the spheres farther from
            the link than the second [m], proven; None where that was not asked for (`with_deviations`).
    """

    link: str
    centers: Array
    radii: Array
    d_avg: float
    d_max: float
    content_hash: str
    cover_margin: float | None = None
    deviation: tuple[float, float] | None = None


@dataclass(frozen=True)
class SphereModel:
    """A robot as spheres.

    Attributes:
        robot_name: of the description.
        variant: preset of the losses, or the baseline's name; "mixed" where links were fitted with different ones.
        links: link name → spheres, for every link with geometry.
    """

    robot_name: str
    variant: str
    links: Mapping[str, LinkSpheres]

    @property
    def content_hash(self) -> str:
        """Identifies all spheres; equal hash, equal spheres."""
        parts = [f"{name}:{spheres.content_hash}" for name, spheres in self.links.items()]
        return hashlib.sha256("\n".join([self.robot_name, *parts]).encode()).hexdigest()

    @property
    def count(self) -> int:
        """Number of spheres of all links."""
        return sum(len(spheres.radii) for spheres in self.links.values())


def fit_robot_spheres(
    description: RobotDescription,
    config: SphereFitConfig | None = None,
    links: Sequence[str] | None = None,
    seed: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
    *,
    counts: Mapping[str, int] | None = None,
    start: SphereModel | None = None,
    source: str = "collision",
    workers: int | None = None,
) -> SphereModel:
    """Fit spheres to the geometry of a robot's links.

    A link is one shape, the union of its elements. It gets exactly as many spheres as `counts` says, else `count`
    for each mesh, min(count, primitive_count) for each box, cylinder or capsule and 1 for each sphere. Elements that
    are spheres stay themselves as long as the number allows it. Links of equal shape get equal spheres.

    Args:
        description: the robot.
        config: settings of every fit.
        links: links to fit, None for all; those without geometry are left out of the model.
        seed: of every fit.
        cache: whether to read and write fits in the cache folder.
        progress: called from this thread with (link, links done, links in all) after each link.
        counts: link name → number of spheres; links that are not fitted may be among them.
        start: a model of the same robot. Links that are not fitted keep their spheres from it, as the same objects;
            the others start from theirs, also where count, weights or variant are others now.
        source: geometry that makes up a link: "collision", "visual", or "collision_or_visual", the visual one of
            links without the other.
        workers: threads, None for as many as this process has processors. The result does not depend on it.

    Raises:
        InvalidInputError: an unknown link or source, a count or a number of workers below one, an unreadable mesh,
            or a shape without area; names the link.
        ResourceNotFoundError: a mesh file is missing; names the link.
    """
    settings = config or SphereFitConfig()
    budget = counts or {}
    earlier = start.links if start is not None else {}
    elements = {name: link_elements(link, source) for name, link in description.links.items()}
    _check_links(elements, links, budget, earlier)
    chosen = [name for name in elements if elements[name] and (links is None or name in links)]
    placements: dict[str, _Placement] = {}

    def jobs() -> Iterator[tuple[str, str, Callable[[], ShapeFit]]]:
        # Loading is quick next to fitting and holds the interpreter's lock: it stays in this thread.
        for name in chosen:
            with naming_link(name):
                shape = load_link_shape(elements[name], enclosing=settings.cover)
                own = replace(settings, count=budget.get(name, shape.default_count(settings)))
            locked = shape.locked_count(own.count)
            placements[name] = _Placement(shape.T_link_shape, shape.link_ball_centers[:locked])
            first = start_in_shape(shape, earlier[name].centers, earlier[name].radii) if name in earlier else None
            yield name, shape_fit_key(shape, own, seed, first), partial(fit_shape, shape, own, seed, cache, first)

    fits = run_link_jobs(jobs(), len(chosen), workers, progress)
    fitted = {name: placements[name].link_spheres(name, fit) for name, fit in fits.items()}
    kept = {name: spheres for name, spheres in earlier.items() if name not in fitted}
    label = settings.variant if settings.method == "morphit" else settings.method
    variant = label if start is None or not kept or start.variant == label else MIXED
    return SphereModel(
        description.name, variant, {name: (fitted | kept)[name] for name in elements if name in fitted or name in kept}
    )


def spheres_in_frame(
    model: SphereModel, link_transforms: Mapping[str, Array], padding: float = 0.0
) -> tuple[Array, Array]:
    """All spheres of a robot in the target frame of the transforms, in the order of the model's links.

    Args:
        model: the robot as spheres.
        link_transforms: ``T_target_link`` (4, 4) by link, such as `KinematicModel.forward_kinematics` returns.
        padding: added to every radius [m].

    Returns:
        centers (K, 3) and radii (K,) [m].

    Raises:
        InvalidInputError: a link of the model has no transform.
    """
    missing = [name for name in model.links if name not in link_transforms]
    if missing:
        raise InvalidInputError("link_transforms", f"none of {', '.join(missing)}", "a transform of every link")
    if not model.links:
        return np.empty((0, 3)), np.empty(0)
    centers = [transform_points(link_transforms[name], spheres.centers) for name, spheres in model.links.items()]
    radii = [spheres.radii + padding for spheres in model.links.values()]
    return np.concatenate(centers), np.concatenate(radii)


@dataclass(frozen=True)
class _Placement:
    """Where a shape is in its link, and the exact centres (S, 3) of the spheres that stay themselves."""

    T_link_shape: Array
    ball_centers: Array

    def link_spheres(self, name: str, fit: ShapeFit) -> LinkSpheres:
        centers = transform_points(self.T_link_shape, fit.centers)
        centers[: len(self.ball_centers)] = self.ball_centers
        digest = hashlib.sha256(fit.key.encode())
        digest.update(self.T_link_shape.tobytes())
        return LinkSpheres(name, centers, fit.radii, fit.d_avg, fit.d_max, digest.hexdigest(), fit.cover_margin)


def _check_links(
    elements: Mapping[str, Sequence[LinkGeometry]],
    links: Sequence[str] | None,
    counts: Mapping[str, int],
    earlier: Mapping[str, LinkSpheres],
) -> None:
    for argument, names in (("links", links or ()), ("counts", counts), ("start", earlier)):
        for name in names:
            if name not in elements:
                raise InvalidInputError(argument, repr(name), f"one of {', '.join(elements)}")
    for name in links or ():
        if not elements[name]:
            raise InvalidInputError("links", repr(name), "a link that has geometry", "Leave it out.")
    for name, count in counts.items():
        if not elements[name]:
            raise InvalidInputError(f"counts['{name}']", count, "a link that has geometry", "Leave it out.")
