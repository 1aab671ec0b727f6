"""Objects of the workcell by name: our own, YCB folders, meshes of the DISF paper, any mesh file with known mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.boundary import boundary_edges
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.geometry.units import in_metres
from morphit_ros.resources import data_directory
from morphit_ros.simulation.convex_pieces import convex_pieces
from morphit_ros.simulation.own_objects import OWN_OBJECTS, TOO_WIDE
from morphit_ros.simulation.resting import RestingPose, mass_properties, resting_poses, resting_transform
from morphit_ros.simulation.solids import convex_hull, unite

# Published masses of the YCB object set [kg] and the colour they are drawn in.
_YCB: dict[str, tuple[float, tuple[float, float, float]]] = {
    "adjustable_wrench": (0.252, (0.55, 0.57, 0.60)),
    "banana": (0.066, (0.92, 0.78, 0.20)),
    "bowl": (0.147, (0.72, 0.22, 0.18)),
    "cracker_box": (0.411, (0.78, 0.20, 0.16)),
    "extra_large_clamp": (0.202, (0.16, 0.16, 0.18)),
    "golf_ball": (0.046, (0.93, 0.93, 0.90)),
    "hammer": (0.665, (0.25, 0.30, 0.62)),
    "j_cups": (0.038, (0.86, 0.36, 0.22)),
    "mug": (0.118, (0.72, 0.20, 0.20)),
    "mustard_bottle": (0.603, (0.93, 0.75, 0.12)),
    "plate": (0.279, (0.70, 0.16, 0.15)),
    "power_drill": (0.895, (0.85, 0.45, 0.10)),
    "rubiks_cube": (0.094, (0.15, 0.42, 0.70)),
    "scissors": (0.082, (0.85, 0.40, 0.15)),
    "spatula": (0.0515, (0.20, 0.21, 0.23)),
    "tomato_soup_can": (0.349, (0.80, 0.18, 0.14)),
}

# Known-shape objects of the DISF paper. Their real masses are not published (the paper simulates 7 to 27 g): they
# are printed parts, and weigh what `printed_mass` says.
_PRINTED: dict[str, tuple[float, float, float]] = {
    "T": (0.25, 0.45, 0.70),
    "RubberDuck": (0.95, 0.80, 0.15),
    "Hammer": (0.75, 0.30, 0.20),
    "OldCamera": (0.35, 0.33, 0.30),
    "WineGlass": (0.70, 0.82, 0.85),
}
# PLA [kg/m³], printed with walls of three lines of 0.4 mm [m] around 20 % infill.
_PLA_DENSITY, _WALL, _INFILL = 1240.0, 1.2e-3, 0.2

# A published decomposition is used where the visible surface lies within this of the pieces' own [m].
_MAX_DEVIATION = 0.001
# What a mesh that is only seen weighs, if nobody says [kg].
_SEEN_MASS = 1.0

OBJECT_NAMES: tuple[str, ...] = (
    *OWN_OBJECTS,
    *(name for name in _YCB if name not in OWN_OBJECTS),
    *(f"ycb/{name}" for name in _YCB if name in OWN_OBJECTS),
    *(f"known/{name}" for name in _PRINTED),
)
"""Every name that `load_object` knows; any YCB object is also known as ``ycb/<name>``."""


def available_objects(data_dir: str | Path | None = None) -> tuple[str, ...]:
    """The names of what can be grasped whose files are there; our own need none."""
    folder = data_directory(data_dir)
    there = [name for name in OWN_OBJECTS if name not in TOO_WIDE]
    for name in OBJECT_NAMES[len(OWN_OBJECTS) :]:
        key = name.rpartition("/")[2]
        path = folder / "grasp" / "known" / f"{key}.obj" if name.startswith("known/") else folder / "ycb" / key
        if path.exists():
            there.append(name)
    return tuple(there)


_MESH_SUFFIXES = (".stl", ".obj", ".ply", ".dae", ".glb", ".off")


@dataclass(frozen=True)
class SimulatedObject:
    """A rigid object in a frame in which it stands stably: z up, resting on z = 0, its box centred on x = y = 0.

    Attributes:
        name: as it was asked for.
        mesh: what cameras see.
        pieces: convex pieces, in the same frame: what is touched.
        mass: [kg].
        friction: sliding friction against everything, None for the workcell's.
        color: RGB in [0, 1].
        center_of_mass: (3,) [m].
        inertia: (3, 3) about the centre of mass [kg m²].
        T_object_file: (4, 4) pose of the frame that its mesh was stored in.
    """

    name: str
    mesh: TriangleMesh
    pieces: list[TriangleMesh]
    mass: float
    friction: float | None
    color: tuple[float, float, float]
    center_of_mass: Array
    inertia: Array
    T_object_file: Array = field(default_factory=lambda: np.eye(4))

    def with_mass(self, mass: float) -> SimulatedObject:
        """The same body with another mass [kg]."""
        return replace(self, mass=mass, inertia=self.inertia * (mass / self.mass))

    def resting_poses(self) -> list[RestingPose]:
        """The ways in which it can lie on a table, the most probable first."""
        return resting_poses(np.concatenate([piece.vertices for piece in self.pieces]), self.center_of_mass)

    def transformed(self, transform: Array) -> SimulatedObject:
        """The same body in another frame: (4, 4) from the present one."""
        rotation = transform[:3, :3]
        return replace(
            self,
            mesh=self.mesh.transformed(transform),
            pieces=[piece.transformed(transform) for piece in self.pieces],
            center_of_mass=transform_points(transform, self.center_of_mass[None])[0],
            inertia=rotation @ self.inertia @ rotation.T,
            T_object_file=transform @ self.T_object_file,
        )


def load_object(
    name_or_path: str | Path,
    mass: float | None = None,
    data_dir: str | Path | None = None,
    unit: str | None = None,
    touched: bool = True,
) -> SimulatedObject:
    """An object by name (see `OBJECT_NAMES`) or from a mesh file.

    Args:
        name_or_path: an own object first, then a YCB one; ``ycb/<name>`` means the YCB one, ``known/<name>`` one of
            the DISF paper; or a path of a mesh.
        mass: [kg], None for the object's own; a mesh file has none.
        data_dir: folder that holds ``ycb/`` and ``grasp/known/``; None for ``$MORPHIT_DATA``, else ``../shared/data``
            beside the project.
        unit: of a mesh file, see `geometry.units.in_metres`.
        touched: False for what is only seen: its one piece is then the convex hull, which takes no time, and a mesh
            file needs no mass.

    Raises:
        InvalidInputError: the mass is not positive, or is missing for a mesh file; more than 2 m in no unit, or a unit
            for what is no file.
        ResourceNotFoundError: unknown name (lists the known ones), or no data folder.
    """
    name = str(name_or_path)
    mesh = _checked(name, mass if touched or mass is not None else _SEEN_MASS, data_dir, unit)
    if name in OWN_OBJECTS:
        return _own_object(name, mass)
    if name.removeprefix("ycb/") in _YCB:
        return _ycb_object(name, mass, data_dir, touched)
    if name.startswith("known/") and name.removeprefix("known/") in _PRINTED:
        return _printed_object(name, mass, data_dir, touched)
    assert mesh is not None
    color = (0.70, 0.52, 0.36)
    if not touched:
        return _seen(name, mesh, mass or _SEEN_MASS, color)
    assert mass is not None
    return _standing(name, mesh, convex_pieces(mesh), mass, color)


def is_mesh_file(name: str) -> bool:
    """Whether a name is one of a mesh file, which needs a mass."""
    return Path(name).suffix.lower() in _MESH_SUFFIXES


def check_object(
    name_or_path: str | Path, mass: float | None = None, data_dir: str | Path | None = None, unit: str | None = None
) -> None:
    """Whether `load_object` has something to load, in a moment: before processes are started for it.

    Raises:
        InvalidInputError, ResourceNotFoundError: as of `load_object`.
    """
    _checked(str(name_or_path), mass, data_dir, unit)


def _checked(name: str, mass: float | None, data_dir: str | Path | None, unit: str | None) -> TriangleMesh | None:
    """The mesh of a mesh file in metres; None for an object by name, whose files are there."""
    is_mesh = is_mesh_file(name)
    if mass is not None and not (np.isfinite(mass) and mass > 0.0):
        raise InvalidInputError("mass", mass, "a positive number [kg], or None for the object's own")
    if unit is not None and not is_mesh:
        raise InvalidInputError("unit", repr(unit), f"none with '{name}', whose size is known", "It is of mesh files.")
    if is_mesh:
        if mass is None:
            raise InvalidInputError("mass", None, f"the mass of '{name}' [kg]", "A mesh file does not say it.")
        return in_metres(load_mesh(name), unit, name)
    if name in OWN_OBJECTS:
        return None
    if name.removeprefix("ycb/") in _YCB:
        place, folder = data_directory(data_dir) / "ycb" / name.removeprefix("ycb/"), "ycb/"
    elif name.startswith("known/") and name.removeprefix("known/") in _PRINTED:
        place, folder = data_directory(data_dir) / "grasp" / f"{name}.obj", "grasp/known/"
    else:
        known = f"Known objects: {', '.join(OBJECT_NAMES)}."
        remedy = f"{known} Or give a mesh file ({' '.join(_MESH_SUFFIXES)}) and its mass."
        raise ResourceNotFoundError(name, [], remedy)
    if not place.exists():
        remedy = f"Set MORPHIT_DATA to the folder that holds '{folder}', or choose one of: {', '.join(OWN_OBJECTS)}."
        raise ResourceNotFoundError(name, [str(place)], remedy)
    return None


def _own_object(name: str, mass: float | None) -> SimulatedObject:
    design = OWN_OBJECTS[name]
    solids = design.build()
    pieces = [piece for solid in solids for piece in solid.pieces]
    densities = [solid.density for solid in solids for _ in solid.pieces]
    return _standing(name, unite(solids), pieces, mass or design.mass, design.color, densities)


def _ycb_object(name: str, mass: float | None, data_dir: str | Path | None, touched: bool) -> SimulatedObject:
    key = name.removeprefix("ycb/")
    folder = data_directory(data_dir) / "ycb" / key
    own_mass, color = _YCB[key]
    mesh = load_mesh(folder / "textured.obj")
    if not touched:
        return _seen(name, mesh, mass or own_mass, color)
    files = sorted(folder.glob("textured_coacd_*.stl"))
    pieces = [convex_hull(load_mesh(file).vertices) for file in files]
    if not pieces or _deviation(mesh, pieces) > _MAX_DEVIATION:
        # The published pieces have 32 faces each: they fill cups, so that nothing can reach in, and flatten balls.
        own_pieces = convex_pieces(mesh)
        if not pieces or _deviation(mesh, own_pieces) < _deviation(mesh, pieces):
            pieces = own_pieces
    return _standing(name, mesh, pieces, mass or own_mass, color)


def _printed_object(name: str, mass: float | None, data_dir: str | Path | None, touched: bool) -> SimulatedObject:
    key = name.removeprefix("known/")
    path = data_directory(data_dir) / "grasp" / "known" / f"{key}.obj"
    mesh = load_mesh(path)
    # Their files have z down: a duck's head is at its least z.
    up = (0.0, 0.0, -1.0)
    if not touched:
        return _seen(name, mesh, mass or printed_mass(mesh), _PRINTED[key], up)
    return _standing(name, mesh, convex_pieces(mesh), mass or printed_mass(mesh), _PRINTED[key], up=up)


def _seen(
    name: str, mesh: TriangleMesh, mass: float, color: tuple[float, float, float], up: ArrayLike = (0.0, 0.0, 1.0)
) -> SimulatedObject:
    """An object that nothing touches: it stands as its hull does, by the centre of mass of its mesh."""
    hull = convex_hull(mesh.vertices)
    # Of a scan with holes the volume means nothing: then that of the hull.
    body = mesh if len(boundary_edges(mesh.faces)) == 0 and mesh.volume > 0.0 else hull
    standing = resting_transform(hull.vertices, mass_properties([body], [1.0], mass)[0], up)
    center, inertia = mass_properties([body.transformed(standing)], [1.0], mass)
    return SimulatedObject(
        name, mesh.transformed(standing), [hull.transformed(standing)], mass, None, color, center, inertia
    )


def printed_mass(mesh: TriangleMesh) -> float:
    """Mass [kg] of a printed part: solid walls around infill."""
    volume = abs(mesh.volume)
    walls = min(volume, mesh.area * _WALL)
    return _PLA_DENSITY * (walls + _INFILL * (volume - walls))


def _deviation(mesh: TriangleMesh, pieces: Sequence[TriangleMesh], count: int = 2000) -> float:
    """Distance [m] between the visible surface and that of the pieces, inside or outside, at 95 % of sampled points."""
    points = sample_surface(mesh, count, np.random.default_rng(0))[0]
    signed = np.full(len(points), np.inf)
    for piece in pieces:
        # The largest signed distance to a facet plane: minus the depth inside, a lower bound of the distance outside.
        planes = np.einsum("fk,fk->f", piece.face_normals, piece.triangles[:, 0])
        signed = np.minimum(signed, (points @ piece.face_normals.T - planes).max(axis=1))
    return float(np.quantile(np.abs(signed), 0.95))


def _standing(
    name: str,
    mesh: TriangleMesh,
    pieces: Sequence[TriangleMesh],
    mass: float,
    color: tuple[float, float, float],
    densities: ArrayLike | None = None,
    up: ArrayLike = (0.0, 0.0, 1.0),
) -> SimulatedObject:
    """The object in the frame in which it stands, with what is up in its own frame up as far as it can."""
    weights = np.ones(len(pieces)) if densities is None else densities
    corners = np.concatenate([piece.vertices for piece in pieces])
    T_standing_mesh = resting_transform(corners, mass_properties(pieces, weights, mass)[0], up)
    standing = [piece.transformed(T_standing_mesh) for piece in pieces]
    center, inertia = mass_properties(standing, weights, mass)
    shown = mesh.transformed(T_standing_mesh)
    return SimulatedObject(name, shown, standing, mass, None, color, center, inertia, T_standing_mesh)
