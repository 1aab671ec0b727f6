"""Superovoids for every link of a robot, fitted in parallel threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.deviation import Deviation
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements, mesh_digest, meshes_in_first
from morphit_ros.robot.link_jobs import Progress, naming_link, run_link_jobs
from morphit_ros.robot.links import GeometryKind, LinkGeometry
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.config import FAMILIES, LinkFitConfig
from morphit_ros.superovoid.fits.errors import FitErrors
from morphit_ros.superovoid.robots.link_fit import LinkFit, fit_link_superovoids
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.shapes.superovoid import Superovoid


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
    elements = {name: link_elements(link, source) for name, link in description.links.items()}
    for argument, names in (("links", links or ()), ("counts", numbers), ("families", kinds)):
        _check_names(argument, names, elements)
    for name, family in kinds.items():
        if family not in FAMILIES:
            raise InvalidInputError(f"families['{name}']", repr(family), f"one of {', '.join(FAMILIES)}")
    for name, count in numbers.items():
        if count < 1:
            raise InvalidInputError(f"counts['{name}']", count, "at least 1")
    chosen = [name for name in elements if elements[name] and (links is None or name in links)]
    poses = {name: elements[name][0].T_link_geometry for name in chosen}

    def jobs() -> Iterator[tuple[str, str, Callable[[], LinkFit]]]:
        for name in chosen:
            own = replace(settings, fit=replace(settings.fit, family=kinds.get(name, settings.fit.family)))
            with naming_link(name):
                shape = _load_shape(elements[name])
            key = f"{shape.content_hash} {own} {numbers.get(name)}"
            yield name, key, partial(_fit_shape, shape, own, seed, numbers.get(name))

    fits = run_link_jobs(jobs(), len(chosen), workers, progress)
    return RobotSuperovoids(description.name, {name: _in_link(name, fits[name], poses[name]) for name in chosen})


@dataclass(frozen=True)
class _Shape:
    """The union of a link's elements in the frame of the first; their spheres where they are nothing else.

    Attributes:
        meshes, enclosing: inscribed in round elements, and around them.
        balls: elements that are spheres themselves.
    """

    meshes: tuple[TriangleMesh, ...]
    enclosing: tuple[TriangleMesh, ...]
    balls: tuple[PlacedSuperovoid, ...]

    @property
    def content_hash(self) -> str:
        return mesh_digest(str(len(self.balls)), self.meshes).hexdigest()


def _load_shape(elements: tuple[LinkGeometry, ...]) -> _Shape:
    balls: list[PlacedSuperovoid] = []
    if all(element.kind is GeometryKind.SPHERE for element in elements):
        T_shape_link = invert_transform(elements[0].T_link_geometry)
        for element in elements:
            shape = Superovoid.sphere(float(element.dimensions[0]))
            balls.append(PlacedSuperovoid(shape, T_shape_link @ element.T_link_geometry))
    return _Shape(meshes_in_first(elements), meshes_in_first(elements, enclosing=True), tuple(balls))


def _fit_shape(shape: _Shape, config: LinkFitConfig, seed: int, count: int | None) -> LinkFit:
    if shape.balls and count in (None, len(shape.balls)):
        # Their meshes are inside of the spheres themselves, the shares of volume known.
        return LinkFit(shape.balls, FitErrors(0.0, 0.0, 0.0, 1.0, 0.0), "proven", Deviation(0.0, 0.0))
    return fit_link_superovoids(shape.meshes, config, seed, count, enclosing=shape.enclosing)


def _in_link(name: str, fit: LinkFit, T_link_shape: Array) -> LinkSuperovoids:
    shapes = tuple(PlacedSuperovoid(placed.shape, T_link_shape @ placed.T_link_shape) for placed in fit.shapes)
    deviation = fit.deviation.solid_to_model, fit.deviation.model_to_solid
    return LinkSuperovoids(name, shapes, fit.errors, fit.containment, deviation)


def _check_names(argument: str, names: Sequence[str] | Mapping[str, object], elements: Mapping[str, tuple]) -> None:
    for name in names:
        if name not in elements:
            raise InvalidInputError(argument, repr(name), f"one of {', '.join(elements)}")
        if not elements[name]:
            raise InvalidInputError(argument, repr(name), "a link that has geometry", "Leave it out.")
