"""How far spheres and the shape that they stand for are apart at most, proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry.deviation import Deviation, measure_deviation
from morphit_ros.geometry.inputs import MeshesLike, as_meshes
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.link_elements import link_elements
from morphit_ros.robot.link_jobs import Progress, run_link_jobs
from morphit_ros.robot.links import LinkGeometry, element_mesh
from morphit_ros.spheres.metrics import checked_spheres
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel

# Points of a sphere's surface to begin with.
_POINTS = 64


def sphere_deviation(mesh: MeshesLike, centers: ArrayLike, radii: ArrayLike) -> Deviation:
    """Bounds of the distances between a shape and spheres, both ways; see `geometry.deviation`.

    Args:
        mesh: the shape, of any kind that `geometry.inputs` knows; several in one frame mean their union.
        centers, radii: (N, 3) and (N,) [m].

    Raises:
        InvalidInputError: as of `measure_spheres`.
    """
    return measure_deviation(Solid(as_meshes(mesh)), _Balls(*checked_spheres(centers, radii)))


def with_deviations(
    model: SphereModel,
    description: RobotDescription,
    source: str = "collision",
    workers: int | None = None,
    progress: Progress | None = None,
) -> SphereModel:
    """A model whose links carry how far they and their spheres are apart at most, proven.

    Args:
        model: spheres of the robot's links.
        description: the robot.
        source: geometry that makes up a link, as of `fit_robot_spheres`.
        workers, progress: as of `fit_robot_spheres`.

    Raises:
        InvalidInputError, ResourceNotFoundError: geometry that cannot be read; names the link.
    """

    def jobs() -> list[tuple[str, str, Callable[[], tuple[float, float]]]]:
        elements = {name: link_elements(description.links[name], source) for name in model.links}
        return [
            (name, name, partial(_link_deviation, elements[name], spheres)) for name, spheres in model.links.items()
        ]

    found = run_link_jobs(jobs(), len(model.links), workers, progress)
    links = {name: replace(spheres, deviation=found[name]) for name, spheres in model.links.items()}
    return replace(model, links=links)


def _link_deviation(elements: tuple[LinkGeometry, ...], spheres: LinkSpheres) -> tuple[float, float]:
    inscribed, enclosing = (
        Solid([element_mesh(element, kind).transformed(element.T_link_geometry) for element in elements])
        for kind in (False, True)
    )
    covered = spheres.cover_margin is not None
    found = measure_deviation(inscribed, _Balls(spheres.centers, spheres.radii), enclosing, covered)
    return found.solid_to_model, found.model_to_solid


class _Balls:
    """Spheres with their inside as `geometry.deviation.Bodies`."""

    def __init__(self, centers: Array, radii: Array) -> None:
        self._centers, self._radii = centers, radii
        self.convex = [True] * len(radii)
        self.bounds = np.stack([(centers - radii[:, None]).min(axis=0), (centers + radii[:, None]).max(axis=0)])

    def surface_points(self) -> Array:
        heights = 1.0 - (2.0 * np.arange(_POINTS) + 1.0) / _POINTS
        turns = np.arange(_POINTS) * np.pi * (3.0 - np.sqrt(5.0))
        rims = np.sqrt(1.0 - heights**2)
        ways = np.stack([rims * np.cos(turns), rims * np.sin(turns), heights], axis=1)
        points: Array = self._centers[:, None] + self._radii[:, None, None] * ways
        return points.reshape(-1, 3)

    def farthest(self, k: int, points: Array) -> Array:
        return np.maximum(self._heights(k, points), 0.0)

    def holds(self, k: int, points: Array) -> NDArray[np.bool_]:
        return self._heights(k, points) <= 0.0

    def planes(self, k: int, points: Array) -> tuple[Array, Array]:
        ways = points - self._centers[k]
        ways[(ways == 0.0).all(axis=1), 0] = 1.0
        return ways / np.linalg.norm(ways, axis=1, keepdims=True), -self._heights(k, points)

    def _heights(self, k: int, points: Array) -> Array:
        """Above the surface of a sphere, negative in it."""
        heights: Array = np.linalg.norm(points - self._centers[k], axis=1) - self._radii[k]
        return heights
