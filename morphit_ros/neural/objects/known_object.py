"""An object as it is known: its density field, the solid cut from it, and what carries its mass."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.objects.mass_sources import MassSource, TotalMassSource
from morphit_ros.neural.solid.extraction import Solid, SolidConfig, extract_solid
from morphit_ros.neural.solid.inertia import InertialProperties
from morphit_ros.neural.solid.materials import MaterialRegion, inertia_of_materials
from morphit_ros.neural.solid.sampling import sample_body
from morphit_ros.neural.solid.thresholds import Threshold
from morphit_ros.neural.solid.visibility import ONE_SIDED

# Expected error of the centre at which confidence is one half [m]; as grasping counts it.
_ERROR_SCALE = 0.02

# A solid that ends further from the plane than this does not stand on it [m].
MOST_LIFTED = 0.015
# What counts as its underside: so many cells from its lowest point.
_UNDERSIDE_CELLS = 3.0


@dataclass(frozen=True)
class KnownObject:
    """An object known as a density field; its own frame is the field's.

    Attributes:
        field: the density.
        solid: what of it is inside.
        inertia: mass, centre of mass and tensor with their errors.
        source: where the distribution of mass is from.
        total_source: where the mass itself is from.
        density: of what no region says [kg/m^3].
        regions: parts of other materials.
        eyes: (V, 3) places of the cameras that it was learned from, None if unknown [m].
        support: what it stood on then, None if unknown.
        friction: sliding friction if it was identified.
        density_known: whether somebody vouches for the density; else it is only assumed.
    """

    field: DensityField
    solid: Solid
    inertia: InertialProperties
    source: MassSource
    total_source: TotalMassSource
    density: float
    regions: tuple[MaterialRegion, ...] = ()
    eyes: Array | None = None
    support: SupportPlane | None = None
    friction: float | None = None
    density_known: bool = True

    @property
    def confidence(self) -> float:
        """How far shape and inertia can be trusted, in (0, 1]; below 0.5 for a view of one side."""
        one_sided = self.inertia.seen_share is not None and self.inertia.seen_share < ONE_SIDED
        return (0.5 if one_sided else 1.0) / (1.0 + self.inertia.center_error / _ERROR_SCALE)

    @property
    def content_hash(self) -> str:
        """Equal for equal shape and inertia."""
        digest = hashlib.sha256()
        for values in (self.solid.surface.vertices, self.inertia.center_of_mass, self.inertia.inertia):
            digest.update(np.ascontiguousarray(values).tobytes())
        friction = -1.0 if self.friction is None else self.friction
        digest.update(np.array([self.inertia.mass, friction]).tobytes())
        return digest.hexdigest()[:16]

    def made_of(
        self, density: float | None = None, regions: Sequence[MaterialRegion] = (), mass: float | None = None
    ) -> KnownObject:
        """The same shape of other materials, or with another mass.

        Args:
            density: of what no region says, from then on known; None for the one it has [kg/m^3].
            regions: parts of other materials; they replace those it had.
            mass: of it all if that is known [kg].

        Raises:
            InvalidInputError: see `inertia_of_materials`.
        """
        base = self.density if density is None else density
        inertia = inertia_of_materials(self.solid, base, regions, mass, self.eyes, self.support)
        known = self.density_known or density is not None
        return replace(
            self, inertia=inertia, source=_source(regions), total_source=_total_source(mass, regions, known),
            density=base, regions=tuple(regions), density_known=known,
        )  # fmt: skip

    def weighing(self, mass: float) -> KnownObject:
        """The same distribution of mass with another total [kg].

        Raises:
            InvalidInputError: a mass that is not positive.
        """
        if not (np.isfinite(mass) and mass > 0.0):
            raise InvalidInputError("mass", mass, "a positive number [kg]")
        scale = mass / self.inertia.mass
        inertia = replace(self.inertia, mass=mass, inertia=self.inertia.inertia * scale, mass_error=0.0)
        return replace(self, inertia=inertia, total_source=TotalMassSource.GIVEN)

    def identified(self, values: Mapping[str, float], deviations: Mapping[str, float]) -> KnownObject:
        """The object with what was identified of it.

        Where only the centre of mass was identified, the tensor about it stays what it was: the motion that tells the
        one need not tell the other.

        Args:
            values: any of friction, mass [kg], inertia_scale, center_of_mass_x, center_of_mass_y, center_of_mass_z [m].
            deviations: their standard deviations; those of other names do not count.
        """
        known = self.inertia
        mass = values.get("mass", known.mass)
        inertia = known.inertia * (mass / known.mass) * values.get("inertia_scale", 1.0)
        center = known.center_of_mass.copy()
        errors = np.full(3, known.center_error / np.sqrt(3.0))
        for axis, name in enumerate(CENTER_NAMES):
            center[axis] = values.get(name, center[axis])
            if name in values:
                errors[axis] = deviations.get(name, errors[axis])
        moved = any(name in values for name in CENTER_NAMES)
        changed = replace(
            known,
            mass=mass,
            mass_error=deviations.get("mass", known.mass_error) if "mass" in values else known.mass_error,
            center_of_mass=center,
            inertia=inertia,
            center_error=float(np.linalg.norm(errors)),
        )
        source = MassSource.IDENTIFIED if moved or "inertia_scale" in values else self.source
        total = TotalMassSource.IDENTIFIED if "mass" in values else self.total_source
        friction = values.get("friction", self.friction)
        return replace(self, inertia=changed, source=source, total_source=total, friction=friction)

    def body(self, count: int, seed: int = 0) -> ContactBody:
        """The points that stand for it in contact; what it stood on made its underside even."""
        body = sample_body(self.solid, self.inertia, count, seed)
        return body if self.support is None else _with_even_underside(body, self.support, self.solid.spacing)


def _with_even_underside(body: ContactBody, support: SupportPlane, spacing: float) -> ContactBody:
    """The body with its lowest points on what it stands on.

    No camera sees the underside, so that of a learned solid ends somewhere above the table and is uneven; a body would
    balance on a few of its points.
    """
    T_table_field = invert_transform(support.T_world_table)
    points = transform_points(T_table_field, body.points + body.center_of_mass)
    gap = float(points[:, 2].min())
    if abs(gap) > MOST_LIFTED:
        return body
    low = points[:, 2] < gap + _UNDERSIDE_CELLS * spacing
    points[low, 2] = 0.0
    normals = np.where(low[:, None], -support.T_world_table[:3, 2], body.normals)
    moved = transform_points(support.T_world_table, points) - body.center_of_mass
    return replace(body, points=moved, normals=normals)


CENTER_NAMES = ("center_of_mass_x", "center_of_mass_y", "center_of_mass_z")
"""Names of the coordinates of the centre of mass in the object's own frame."""


def know_object(
    field: DensityField,
    density: float,
    regions: Sequence[MaterialRegion] = (),
    mass: float | None = None,
    threshold: float | Threshold | None = None,
    eyes: ArrayLike | None = None,
    support: SupportPlane | None = None,
    config: SolidConfig | None = None,
    density_known: bool = True,
) -> KnownObject:
    """From a density field to an object: solid, mass, centre of mass, inertia.

    Args:
        field: the density.
        density: of the material, where no region says another [kg/m^3].
        regions: parts of other materials, in the field's frame.
        mass: of it all if that is known [kg].
        threshold, config: see `extract_solid`.
        eyes, support: see `inertial_properties`.
        density_known: False where the density is only assumed.

    Raises:
        InvalidInputError: a field that is no object (`extract_solid`), or materials that do not fit it.
    """
    solid = extract_solid(field, threshold, config)
    inertia = inertia_of_materials(solid, density, regions, mass, eyes, support)
    places = None if eyes is None else np.asarray(eyes, dtype=np.float64).reshape(-1, 3)
    return KnownObject(
        field, solid, inertia, _source(regions), _total_source(mass, regions, density_known), density, tuple(regions),
        places, support, density_known=density_known,
    )  # fmt: skip


def _source(regions: Sequence[MaterialRegion]) -> MassSource:
    return MassSource.MATERIALS if regions else MassSource.UNIFORM


def _total_source(mass: float | None, regions: Sequence[MaterialRegion], density_known: bool) -> TotalMassSource:
    if mass is not None:
        return TotalMassSource.GIVEN
    return TotalMassSource.MATERIALS if regions or density_known else TotalMassSource.ASSUMED
