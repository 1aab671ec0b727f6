"""A rigid body as contact sees it: weighted points with normals, mass and inertia tensor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class ContactBody:
    """Points sampled from a density field, in the body frame: origin at the centre of mass, axes of the field.

    Attributes:
        points: (P, 3) contact points [m].
        masses: (P,) weight of each point in the overlap, positive, their sum is the mass [kg].
        normals: (P, 3) outward unit normals (minus the normalised density gradient), zero where unknown.
        mass: [kg].
        inertia: (3, 3) inertia tensor about the centre of mass, symmetric and positive definite [kg m^2].
        center_of_mass: (3,) in the field's frame [m]: T_field_body is a translation by it.
        rigid_inertia: False only where a published simulation is to be repeated that took the second moment of mass
            for the inertia tensor: then no more than positive moments is asked for.

    Raises:
        InvalidInputError: shapes that don't fit, values that are not finite, weights that are not positive, an inertia
            that no rigid body has.
    """

    points: Array
    masses: Array
    normals: Array
    mass: float
    inertia: Array
    center_of_mass: Array
    rigid_inertia: bool = True

    def __post_init__(self) -> None:
        count = len(self.points)
        for name, value, shape in (
            ("points", self.points, (count, 3)),
            ("masses", self.masses, (count,)),
            ("normals", self.normals, (count, 3)),
            ("inertia", self.inertia, (3, 3)),
            ("center_of_mass", self.center_of_mass, (3,)),
        ):
            array = np.ascontiguousarray(value, dtype=np.float64)
            if count == 0 or array.shape != shape or not np.isfinite(array).all():
                raise InvalidInputError(name, f"shape {np.shape(value)}", f"finite numbers of shape {shape}")
            object.__setattr__(self, name, array)
        if not (np.isfinite(self.mass) and self.mass > 0.0):
            raise InvalidInputError("mass", self.mass, "a positive number [kg]")
        if not (self.masses > 0.0).all():
            raise InvalidInputError("masses", f"a least value of {self.masses.min():g}", "positive numbers [kg]")
        if abs(float(self.masses.sum()) - self.mass) > 1e-6 * self.mass:
            raise InvalidInputError("masses", f"a sum of {self.masses.sum():g} kg", f"the mass, {self.mass:g} kg")
        if np.abs(self.inertia - self.inertia.T).max() > 1e-6 * np.abs(self.inertia).max():
            raise InvalidInputError("inertia", self.inertia.tolist(), "a symmetric tensor")
        moments = np.linalg.eigvalsh(0.5 * (self.inertia + self.inertia.T))
        if moments[0] <= 0.0 or (self.rigid_inertia and moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-6)):
            raise InvalidInputError(
                "inertia", f"principal moments {moments}", "positive ones, the largest at most the sum of the others",
                "A second moment of mass is not an inertia tensor: J = trace(I) 1 - I.",
            )  # fmt: skip

    @cached_property
    def size(self) -> float:
        """Length of the diagonal of the points' box [m]."""
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))
