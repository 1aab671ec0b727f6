"""Objects whose centre of mass is not where their shape says: steel heads, half-filled bottles, loaded boxes.

Cameras see the shape only. What each is made of, as a person could tell, is given beside it as boxes of a density.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.simulation.objects import SimulatedObject, load_object

# z of a standing thing becomes x.
_LAID_DOWN = matrix_from_rpy((0.0, np.pi / 2.0, 0.0))
# Edge of the cells that a body of several materials is summed over [m].
_CELL = 0.001


@dataclass(frozen=True)
class MaterialBox:
    """A part of an object that is of another material: what lies between two corners, in the object's frame.

    Attributes:
        lowest, highest: (3,) corners [m].
        density: [kg/m^3].
    """

    lowest: Array
    highest: Array
    density: float

    def holds(self, points: Array) -> NDArray[np.bool_]:
        """(N,) which points (N, 3) are of it."""
        return np.asarray(((points >= self.lowest) & (points <= self.highest)).all(axis=1))


@dataclass(frozen=True)
class HeavyObject:
    """A simulated object and what it is made of.

    Attributes:
        name: see `heavy_object`.
        body: with its true mass, centre of mass and inertia.
        density: of what no box says [kg/m^3].
        materials: boxes in the frame of the body, the last one counts where they overlap.
    """

    name: str
    body: SimulatedObject
    density: float
    materials: tuple[MaterialBox, ...]


def heavy_object(name: str, weight: float = 1.0, data_dir: str | None = None) -> HeavyObject:
    """One of `HEAVY_OBJECTS` or `HELD_OUT_OBJECTS` by its name, or any object of `load_object`, of one material.

    Args:
        name: see there.
        weight: times all its densities.
        data_dir: of `load_object`.

    Raises:
        InvalidInputError: a weight that is not positive.
        ResourceNotFoundError: there is no such object, or its shape's file is missing.
    """
    makers = HEAVY_OBJECTS | HELD_OUT_OBJECTS
    if not (np.isfinite(weight) and weight > 0.0):
        raise InvalidInputError("weight", weight, "a positive factor")
    own = makers[name]() if name in makers else _of_one_material(name, data_dir)
    materials = tuple(replace(box, density=weight * box.density) for box in own.materials)
    return replace(
        own, body=own.body.with_mass(weight * own.body.mass), density=weight * own.density, materials=materials
    )


def made_of(name: str, body: SimulatedObject, density: float, materials: Sequence[MaterialBox]) -> HeavyObject:
    """A body whose mass, centre and inertia follow from what it is made of, by a sum over cells of a millimetre."""
    points = _cells_inside(body)
    densities = np.full(len(points), density)
    for box in materials:
        densities[box.holds(points)] = box.density
    masses = densities * _CELL**3
    mass = float(masses.sum())
    center = masses @ points / mass
    arms = points - center
    second = (masses[:, None] * arms).T @ arms
    inertia = np.trace(second) * np.eye(3) - second
    return HeavyObject(
        name, replace(body, mass=mass, center_of_mass=center, inertia=inertia), density, tuple(materials)
    )


def _cells_inside(body: SimulatedObject) -> Array:
    """Centres (N, 3) of the cells whose centre lies in a convex piece, each once [m]."""
    corners = np.concatenate([piece.vertices for piece in body.pieces])
    axes = [np.arange(low + 0.5 * _CELL, high, _CELL) for low, high in zip(corners.min(0), corners.max(0), strict=True)]
    inside = np.zeros([len(axis) for axis in axes], dtype=np.bool_)
    for piece in body.pieces:
        # Only the part of the grid that the piece's box covers.
        spans = [
            slice(*np.searchsorted(axis, (low, high)))
            for axis, low, high in zip(axes, piece.vertices.min(0), piece.vertices.max(0), strict=True)
        ]
        part = np.stack(np.meshgrid(*(axis[span] for axis, span in zip(axes, spans, strict=True)), indexing="ij"), -1)
        within = np.ones(part.shape[:3], dtype=np.bool_)
        for normal, corner in zip(piece.face_normals, piece.triangles[:, 0], strict=True):
            within &= part @ normal <= normal @ corner + 1e-9
        inside[tuple(spans)] |= within
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    found: Array = grid[inside]
    return found


def _hammer() -> HeavyObject:
    """The package's hammer: a steel head on a wooden handle."""
    body = load_object("hammer")
    high = body.mesh.vertices.max(axis=0)
    low = body.mesh.vertices.min(axis=0)
    # The handle goes through the head; what lies within the last 26 mm along x is the head.
    head = MaterialBox(np.array([high[0] - 0.026, low[1], low[2]]) - 1e-4, high + 1e-4, 7800.0)
    return made_of("hammer", body, 700.0, (head,))


def _half_filled_bottle() -> HeavyObject:
    """The package's bottle lying, its lower half full of what does not flow; the rest weighs as its walls do."""
    standing = load_object("bottle")
    full = MaterialBox(np.array([-0.04, -0.04, 0.0]), np.array([0.04, 0.04, 0.095]), 1000.0)
    bottle = made_of("half_filled_bottle", standing, 120.0, (full,))
    # On its side: z of the standing bottle becomes x, its widest part rests on the table.
    turn = make_transform(_LAID_DOWN, (-0.1075, 0.0, 0.032))
    low, high = np.array([-0.1075, -0.04, -0.008]), np.array([-0.0125, 0.04, 0.072])
    lying = MaterialBox(low, high, 1000.0)
    return replace(bottle, body=bottle.body.transformed(turn), materials=(lying,))


def _loaded_box() -> HeavyObject:
    """A carton of 200 × 50 × 50 mm with a steel weight in one end."""
    size = np.array([0.200, 0.050, 0.050])
    mesh = box_mesh(size).transformed(make_transform(translation=(0.0, 0.0, 0.5 * size[2])))
    body = SimulatedObject(
        "loaded_box", mesh, [mesh], 0.1, None, (0.72, 0.58, 0.40), np.array([0.0, 0.0, 0.025]), 1e-4 * np.eye(3)
    )
    weight = MaterialBox(np.array([0.055, -0.0200, 0.005]), np.array([0.095, 0.0200, 0.045]), 7800.0)
    return made_of("loaded_box", body, 150.0, (weight,))


def _claw_hammer() -> HeavyObject:
    """The DISF paper's printed hammer, as if it had a steel head on a wooden handle."""
    # The handle lies along x then.
    body = load_object("known/Hammer").transformed(make_transform(matrix_from_rpy((0.0, 0.0, -0.75 * np.pi))))
    low, high = body.mesh.bounds
    # The claw's tip lies furthest back.
    head = MaterialBox(np.array([0.050, low[1] - 1e-4, low[2] - 1e-4]), high + 1e-4, 7800.0)
    return made_of("claw_hammer", body, 700.0, (head,))


def _half_filled_mustard_bottle() -> HeavyObject:
    """YCB's mustard bottle on its broad side, its lower half full as the other bottle is."""
    standing = load_object("mustard_bottle")
    across = standing.mesh.vertices[:, :2]
    broad = np.linalg.eigh(np.cov(across.T))[1][:, 1]
    upright = standing.transformed(
        make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 2.0 - np.arctan2(broad[1], broad[0]))))
    )
    lying = upright.transformed(make_transform(_LAID_DOWN))
    low, high = lying.mesh.bounds
    middle = 0.5 * (low + high)
    body = lying.transformed(make_transform(translation=(-middle[0], -middle[1], -low[2])))
    low, high = body.mesh.bounds
    full = MaterialBox(low - 1e-4, np.array([0.0, high[1] + 1e-4, high[2] + 1e-4]), 1000.0)
    return made_of("half_filled_mustard_bottle", body, 120.0, (full,))


def _of_one_material(name: str, data_dir: str | None = None) -> HeavyObject:
    """An object as it is: of its centre of mass nothing is to be gained."""
    body = load_object(name, data_dir=data_dir)
    return HeavyObject(name, body, body.mass / sum(piece.volume for piece in body.pieces), ())


HEAVY_OBJECTS: dict[str, Callable[[], HeavyObject]] = {
    "hammer": _hammer,
    "half_filled_bottle": _half_filled_bottle,
    "loaded_box": _loaded_box,
    "box": partial(_of_one_material, "box"),
}
"""Those that the comparison was made with; nothing but this package is needed."""

HELD_OUT_OBJECTS: dict[str, Callable[[], HeavyObject]] = {
    "claw_hammer": _claw_hammer,
    "half_filled_mustard_bottle": _half_filled_mustard_bottle,
}
"""Published shapes that no constant of the comparison was chosen on; their files are in the data folder."""
