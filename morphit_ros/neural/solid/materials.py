"""Inertia of a solid of several materials: a steel head on a wooden handle, a bottle that is half full.

A density field learned from cameras shows where an object is, not what it is made of. What a person or another sensor
knows of that is given as boxes of a mass density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, check_transform, invert_transform, transform_points
from morphit_ros.neural.solid.extraction import Solid
from morphit_ros.neural.solid.inertia import InertialProperties, Weighting, inertial_properties

# Each cell of the solid is cut into so many a side: a material may end within it.
_PARTS = 2


@dataclass(frozen=True)
class MaterialRegion:
    """A box of another mass density.

    Attributes:
        T_field_box: (4, 4) centre and axes of the box in the field's frame.
        size: (3,) whole sides [m].
        density: [kg/m^3]; 0 for empty.

    Raises:
        InvalidInputError: no rigid pose, sides that are not positive, a density that is negative.
    """

    T_field_box: Array
    size: Array
    density: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "T_field_box", check_transform(self.T_field_box, "T_field_box"))
        size = np.asarray(self.size, dtype=np.float64)
        if size.shape != (3,) or not (np.isfinite(size).all() and (size > 0.0).all()):
            raise InvalidInputError(
                "size of a material's box", np.asarray(self.size).tolist(), "three positive sides [m]"
            )
        object.__setattr__(self, "size", size)
        if not (np.isfinite(self.density) and self.density >= 0.0):
            raise InvalidInputError("density of a material", self.density, "a number from 0 up [kg/m^3]")

    def share(self, points: Array, edge: float) -> Array:
        """(N,) part in [0, 1] of the cubes around points (N, 3) in the field's frame that lies in it.

        Exact for cubes along the box's axes.

        Args:
            points: centres [m].
            edge: of a cube [m].
        """
        local = transform_points(invert_transform(self.T_field_box), points)
        half = 0.5 * self.size
        within = np.minimum(local + 0.5 * edge, half) - np.maximum(local - 0.5 * edge, -half)
        return np.asarray(np.clip(within / edge, 0.0, 1.0).prod(axis=1))


def inertia_of_materials(
    solid: Solid,
    density: float,
    regions: Sequence[MaterialRegion] = (),
    mass: float | None = None,
    eyes: ArrayLike | None = None,
    support: SupportPlane | None = None,
) -> InertialProperties:
    """Mass, centre of mass and inertia of a solid of several materials.

    Args:
        solid: what there is.
        density: where no region says another [kg/m^3].
        regions: other materials; where they overlap the last one counts.
        mass: of it all if that was weighed [kg]; the densities then count relatively.
        eyes, support: see `inertial_properties`.

    Raises:
        InvalidInputError: a region that has no part of the solid, densities that are all zero, a mass or density that
            is not positive.
    """
    if not regions:
        if mass is not None:
            return inertial_properties(solid, mass=mass, eyes=eyes, support=support)
        return inertial_properties(solid, density=density, eyes=eyes, support=support)
    if mass is not None and not (np.isfinite(mass) and mass > 0.0):
        raise InvalidInputError("mass", mass, "a positive number [kg]")
    uniform = inertial_properties(solid, density=density, eyes=eyes, support=support)
    points, volumes, edge = _parts(solid)
    densities = np.full(len(points), float(density))
    for number, region in enumerate(regions):
        share = region.share(points, edge)
        if not share.any():
            raise InvalidInputError(
                f"materials[{number}]", "a box that has no part of the object", "boxes that overlap it",
                "It is in the field's own frame.",
            )  # fmt: skip
        densities += share * (region.density - densities)
    masses = densities * volumes
    total = float(masses.sum())
    if total <= 1e-9 * uniform.mass:
        raise InvalidInputError("materials", "densities that are all zero", "one that is positive")
    center = masses @ points / total
    arms = points - center
    # A cube's own spread about its centre.
    second = (masses[:, None] * arms).T @ arms + total * edge**2 / 12.0 * np.eye(3)
    inertia = np.trace(second) * np.eye(3) - second
    scale = 1.0 if mass is None else mass / total
    # As far off as the volume, relatively: a denser part that is half seen weighs more, but is where it was said to be.
    return replace(
        uniform,
        mass=total * scale,
        center_of_mass=center,
        inertia=inertia * scale,
        weighting=Weighting.SOLID,
        mass_error=0.0 if mass is not None else uniform.mass_error * total / uniform.mass,
        center_error=float(np.hypot(uniform.center_error, 0.5 * edge)),
    )


def _parts(solid: Solid) -> tuple[Array, Array, float]:
    """Centres (N, 3) and volumes (N,) of the parts of all cells that hold some of the solid, and the edge of a part.

    A part of a cell at the surface has the cell's share.
    """
    filled = np.argwhere(solid.occupancy > 0.0)
    shares = solid.occupancy[tuple(filled.T)]
    steps = (np.indices((_PARTS,) * 3).reshape(3, -1).T + 0.5) / _PARTS
    edge = solid.spacing / _PARTS
    points = solid.origin + solid.spacing * (filled[:, None, :] + steps[None]).reshape(-1, 3)
    volumes = np.repeat(shares * edge**3, len(steps))
    return points, volumes * (solid.volume / volumes.sum()), edge
