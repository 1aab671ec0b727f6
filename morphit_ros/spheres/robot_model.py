"""A robot as spheres: every collision element of every link fitted, cached on disk by content."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.resources import atomic_write, cache_directory
from morphit_ros.robot.description import GeometryKind, LinkGeometry, RobotDescription, element_mesh
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.fit import fit_spheres
from morphit_ros.spheres.metrics import nearest_gaps

# Part of every cache key: raise it when the same input gives other spheres than before.
_FIT_VERSION = 2

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class LinkSpheres:
    """The spheres of one link.

    Attributes:
        link: its name.
        centers, radii: (N, 3) and (N,) [m] in the link's frame; the elements' spheres one after the other.
        d_avg, d_max: mean and greatest distance between the surface of the collision geometry and the spheres' [m].
        content_hash: identifies geometry, configuration and seed; equal hash, equal spheres.
    """

    link: str
    centers: Array
    radii: Array
    d_avg: float
    d_max: float
    content_hash: str


@dataclass(frozen=True)
class SphereModel:
    """A robot as spheres.

    Attributes:
        robot_name: of the description.
        variant: preset of the losses.
        links: link name → spheres, for every link with collision geometry.
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
) -> SphereModel:
    """Fit spheres to the collision geometry of a robot's links.

    Each collision element gets its own spheres: exactly `count` for a mesh, min(count, primitive_count) for a
    box, cylinder or capsule, 1 (itself) for a sphere. Elements of equal shape get equal spheres.

    Args:
        description: the robot.
        config: settings of every fit.
        links: links to fit, None for all; those without collision geometry are left out of the model.
        seed: of every fit.
        cache: whether to read and write fits in the cache folder.
        progress: called with (link, links done, links in all) before each link and once at the end.

    Raises:
        InvalidInputError: an unknown link, an unreadable mesh, or one without area; names the link.
        ResourceNotFoundError: a mesh file is missing.
    """
    settings = config or SphereFitConfig()
    chosen = list(description.links) if links is None else list(links)
    for name in chosen:
        if name not in description.links:
            raise InvalidInputError("links", repr(name), f"one of {', '.join(description.links)}")
    chosen = [name for name in chosen if description.links[name].collisions]
    fitted: dict[str, LinkSpheres] = {}
    known: dict[str, tuple[Array, Array]] = {}
    for done, name in enumerate(chosen):
        if progress is not None:
            progress(name, done, len(chosen))
        try:
            fitted[name] = _fit_link(name, description.links[name].collisions, settings, seed, cache, known)
        except InvalidInputError as error:
            raise InvalidInputError(f"link '{name}': {error.name}", error.value, error.bound, error.remedy) from error
    if progress is not None and chosen:
        progress(chosen[-1], len(chosen), len(chosen))
    return SphereModel(description.name, settings.variant, fitted)


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


def _fit_link(
    name: str,
    elements: Sequence[LinkGeometry],
    config: SphereFitConfig,
    seed: int,
    cache: bool,
    known: dict[str, tuple[Array, Array]],
) -> LinkSpheres:
    centers, radii, keys, meshes = [], [], [], []
    for element in elements:
        mesh = element_mesh(element)
        key = _content_key(element, mesh, config, seed)
        if key not in known:
            known[key] = _fit_element(element, mesh, config, seed, key if cache else None)
        element_centers, element_radii = known[key]
        centers.append(transform_points(element.T_link_geometry, element_centers))
        radii.append(element_radii)
        keys.append(key + hashlib.sha256(element.T_link_geometry.tobytes()).hexdigest())
        meshes.append(mesh.transformed(element.T_link_geometry))
    all_centers, all_radii = np.concatenate(centers), np.concatenate(radii)
    gaps = np.abs(nearest_gaps(_exposed_points(meshes, 5000), all_centers, all_radii))
    content_hash = hashlib.sha256("\n".join(keys).encode()).hexdigest()
    return LinkSpheres(name, all_centers, all_radii, float(gaps.mean()), float(gaps.max()), content_hash)


def _exposed_points(meshes: Sequence[TriangleMesh], count: int) -> Array:
    """About `count` points on overlapping elements: what one buries in another is not surface of the link."""
    rng = np.random.default_rng(0)
    total = sum(mesh.area for mesh in meshes)
    tests = [InsideTest(mesh) for mesh in meshes]
    exposed, buried = [], []
    for index, mesh in enumerate(meshes):
        points, _ = sample_surface(mesh, max(1, round(count * mesh.area / total)), rng)
        inside = np.zeros(len(points), dtype=bool)
        for other, test in enumerate(tests):
            if other != index:
                inside |= test.contains(points)
        exposed.append(points[~inside])
        buried.append(points[inside])
    outer = np.concatenate(exposed)
    # Elements that bury each other (two equal ones) leave nothing exposed.
    return outer if len(outer) else np.concatenate(buried)


def _fit_element(
    element: LinkGeometry, mesh: TriangleMesh, config: SphereFitConfig, seed: int, key: str | None
) -> tuple[Array, Array]:
    """Spheres of one element in its own frame, from the cache if a key is given and it is there."""
    if element.kind is GeometryKind.SPHERE:
        return np.zeros((1, 3)), element.dimensions[:1].copy()
    path = None if key is None else cache_directory("spheres") / f"{key}.npz"
    cached = None if path is None else _read_cache(path)
    if cached is not None:
        return cached
    result = fit_spheres(mesh, _element_config(element, config), seed)
    if path is not None:
        with atomic_write(path, "wb") as stream:
            np.savez(stream, centers=result.centers, radii=result.radii)
    return result.centers, result.radii


def _element_config(element: LinkGeometry, config: SphereFitConfig) -> SphereFitConfig:
    if element.kind is GeometryKind.MESH:
        return config
    return replace(config, count=min(config.count, config.primitive_count))


def _content_key(element: LinkGeometry, mesh: TriangleMesh, config: SphereFitConfig, seed: int) -> str:
    digest = hashlib.sha256()
    flat = _element_config(element, config).to_flat()
    digest.update(json.dumps([_FIT_VERSION, element.kind.value, seed, flat], sort_keys=True).encode())
    digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
    digest.update(np.ascontiguousarray(mesh.faces).tobytes())
    return digest.hexdigest()


def _read_cache(path: Path) -> tuple[Array, Array] | None:
    """The spheres of a cache file; None if there is none or it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as data:
            centers, radii = data["centers"], data["radii"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    sound = centers.ndim == 2 and centers.shape == (len(radii), 3) and len(radii) > 0
    if not sound or not np.isfinite(centers).all() or not np.isfinite(radii).all() or not (radii > 0.0).all():
        return None
    return centers, radii
