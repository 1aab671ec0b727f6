"""Mass, centre of mass and inertia tensor of a density field, with what they may be off by.

m = ∫αφ, μ = ∫xαφ/m, J = ∫αφ(xᵀx·1 − xxᵀ) (DANO): either over the density itself, or over the solid that it shows, with
one mass density inside. Fields learned from images are dense near the surface only, so that only the solid's are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshLike, as_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.sampled import SampledField
from morphit_ros.neural.solid.extraction import Solid, SolidConfig, extract_solid, moments_at
from morphit_ros.neural.solid.moments import VolumeMoments, difference, mesh_moments, tensor
from morphit_ros.neural.solid.readings import Reading, solid_readings
from morphit_ros.neural.solid.silhouette_hull import HullThreshold, MomentDeviation
from morphit_ros.neural.solid.thresholds import Threshold, check_densities
from morphit_ros.neural.solid.visibility import box_cells, combined_moments, judge_visibility

# Sums over the density double their resolution until two agree to this, or until the grid has its most points.
_SUM_TOLERANCE = 5e-4
_SUM_RESOLUTIONS = (24, 36, 54, 80, 120, 180, 240)
# Points along each side of the bounds' faces where a density is looked for, and the share of the largest that is one.
_FACE_POINTS = 33
_CUT_OFF = 0.05
# A surface that was learned from pictures is known to this share of a pixel where they show it well.
_PIXEL_SHARE = 0.25
# A solid whose volume differs from the hull of its silhouettes by more is mentioned.
_MOST_OFF_HULL = 0.15
# The thickness of walls whose two sides were learned apart is known to this share of a pixel.
_WALL_SHARE = 0.1
# By how much a surface is off differs from place to place by this share of it: what that moves grows with the body, a
# hammer's centre by half a pixel where outlines are known to a quarter.
_UNEVEN = 0.3
# Walls of fewer pixels have no thickness that pictures show.
_LEAST_THICKNESS = 2.0
# Views that disagree by more of a pixel, beyond its rounding, are mentioned.
_MOST_DISAGREEMENT = 0.3
# Separate pieces of a larger share of the volume are mentioned, and may belong to what views showed.
_DROPPED = 0.01
# What measured points change of the volume is mentioned if it is more.
_MOST_OFFSET = 0.25
# Share of a solid without any sample that is mentioned.
_UNSAMPLED = 0.01
# Cells along the longest side when only the effect of the threshold is looked for.
_TRIAL_RESOLUTION = 48


class Weighting(StrEnum):
    """What carries the mass."""

    SOLID = "solid"
    DENSITY = "density"


@dataclass(frozen=True)
class BodyReading:
    """Mass, centre and inertia of one of the bodies that the views allow.

    Attributes:
        name: "filled" or "hollow"; see `readings.Reading`.
        likelihood: of this one among those given, in [0, 1].
        mass: [kg].
        center_of_mass: (3,) in the field's frame [m].
        inertia: (3, 3) about the centre of mass [kg m^2].
        volume: [m^3].
        wall: thickness that was taken for the wall [m]; zero of the filled one.
    """

    name: str
    likelihood: float
    mass: float
    center_of_mass: Array
    inertia: Array
    volume: float
    wall: float


@dataclass(frozen=True)
class InertialProperties:
    """Mass, centre of mass and inertia, each with an estimate of its error (one standard deviation, roughly).

    Attributes:
        mass: [kg].
        center_of_mass: (3,) in the field's frame [m].
        inertia: (3, 3) tensor about the centre of mass, axes of the field's frame [kg m^2].
        volume: [m^3]; of the density weighting, the integral of the density.
        weighting: what was summed.
        mass_error: [kg]; zero for a mass that was given.
        center_error: [m].
        inertia_error: of the tensor, relative to its norm.
        seen_share: of the surface that the cameras saw, in [0, 1]; None if it wasn't said where they were.
        remarks: what a user should know, in words: a one-sided view, hollows that were filled, pieces left out.
        readings: what the object may be where no camera saw its inside, filled first; empty where that makes no
            difference. The numbers above are of the filled one.
    """

    mass: float
    center_of_mass: Array
    inertia: Array
    volume: float
    weighting: Weighting
    mass_error: float
    center_error: float
    inertia_error: float
    seen_share: float | None = None
    remarks: tuple[str, ...] = ()
    readings: tuple[BodyReading, ...] = ()

    @property
    def principal_moments(self) -> Array:
        """(3,) ascending [kg m^2]."""
        return np.asarray(np.linalg.eigvalsh(self.inertia), dtype=np.float64)

    @property
    def principal_axes(self) -> Array:
        """(3, 3) rotation with the axes of the principal moments as columns."""
        axes = np.linalg.eigh(self.inertia)[1]
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        return axes

    def inertia_about(self, point: ArrayLike) -> Array:
        """(3, 3) tensor about a point (3,) of the field's frame (parallel-axis theorem) [kg m^2]."""
        offset = np.asarray(point, dtype=np.float64) - self.center_of_mass
        return self.inertia + self.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))


def inertial_properties(
    source: DensityField | Solid | MeshLike,
    mass: float | None = None,
    density: float | None = None,
    weighting: Weighting | str = Weighting.SOLID,
    threshold: float | Threshold | None = None,
    config: SolidConfig | None = None,
    eyes: ArrayLike | None = None,
    support: SupportPlane | None = None,
) -> InertialProperties:
    """Mass, centre of mass and inertia of an object known as a density field; exact of a closed mesh.

    Errors are estimated from a second, coarser grid, from the range of the threshold, of a field learned from pictures
    from its distance to the hull of their silhouettes (`HullThreshold`), and, where the eyes are given, from what no
    camera saw: half of what it would change if the space hidden behind the object were full, or if the part of the
    object behind surface that was not seen were empty.

    Args:
        source: a field, a solid cut from one, or a closed mesh of any kind that `geometry.inputs` knows.
        mass: the object's, if known [kg]; or else
        density: its mass density [kg/m^3]; with the density weighting the paper's α, kg/m^3 for a density of one.
        weighting: the solid's volume, or the raw density (the paper's formula); of this there is neither a surface
            that was seen nor a threshold.
        threshold, config: as of `extract_solid`, for a field.
        eyes: (V, 3) positions of the cameras it was learned from, in the field's frame [m].
        support: what it stood on then, in the field's frame.

    Raises:
        InvalidInputError: neither or both of mass and density, or not positive; an unknown weighting; eyes, support or
            threshold with the density weighting, or with a mesh; what `extract_solid` refuses; an open mesh.
    """
    kind = _checked_weighting(weighting, {"threshold": threshold, "eyes": eyes, "support": support})
    if (mass is None) == (density is None):
        raise InvalidInputError("mass and density", f"{mass} and {density}", "one of them", "Weigh the object.")
    for name, value in (("mass", mass), ("density", density)):
        if value is not None and not (np.isfinite(value) and value > 0.0):
            raise InvalidInputError(name, value, "a positive number")
    if not isinstance(source, Solid) and not callable(getattr(source, "density", None)):
        unused = {"threshold": threshold, "config": config, "eyes": eyes, "support": support}
        given = [name for name, value in unused.items() if value is not None]
        if given or kind is Weighting.DENSITY:
            found = ", ".join(given) or f"the weighting {kind}"
            raise InvalidInputError("arguments", f"{found} with a mesh", "a density field", "A mesh has no density.")
        moments = mesh_moments(as_mesh(source, "source"))
        return _properties(moments, [np.zeros(4)], mass, density, kind, None, ())
    if kind is Weighting.DENSITY:
        field = source.field if isinstance(source, Solid) else cast(DensityField, source)
        fine, coarse = _density_moments(field)
        return _properties(fine, [difference(fine, coarse)], mass, density, kind, None, _cut_off(field))
    solid = source if isinstance(source, Solid) else _extracted(cast(DensityField, source), threshold, config)
    # Cells cut by a smooth surface err with the square of their size.
    errors = [difference(solid.moments, solid.coarse_moments) / 3.0]
    low, high = solid.threshold.range
    if high > low:
        errors.append(_threshold_effect(solid, low, high, config))
    if solid.lost_volume > 0.0:
        # Wherever it may be: as if all at a radius of gyration.
        lost = solid.lost_volume / solid.volume
        errors.append(lost * np.array([1.0, np.sqrt(np.trace(solid.moments.second_moment) / solid.volume), 1.0, 1.0]))
    remarks = []
    if solid.lost_volume > 0.01 * solid.volume:
        remarks.append(
            f"parts thinner than a cell, {solid.lost_volume / solid.volume:.0%} of the volume, are not in the solid: "
            "raise its resolution"
        )
    if solid.filled_volume > 0.01 * solid.volume:
        remarks.append(f"{solid.filled_volume / solid.volume:.0%} of the volume was hollow and counts as filled")
    if solid.dropped_volume > _DROPPED * solid.volume:
        remarks.append(f"separate pieces of {solid.dropped_volume / solid.volume:.0%} of the volume were left out")
    if isinstance(solid.threshold, HullThreshold):
        if solid.dropped_volume > _DROPPED * solid.volume:
            errors.append(_dropped_effect(solid))
        errors += _hull_effects(solid, solid.threshold)
        remarks += _off_hull(solid, solid.threshold) + _pose_remarks(solid.threshold)
        if solid.threshold.walls is None and (thickness := _mean_thickness(solid)) < (
            _LEAST_THICKNESS * solid.threshold.pixel
        ):
            errors.append(np.array([1.0, 0.0, 0.0, 1.0]))
            remarks.append(
                f"walls are {1e3 * thickness:.2g} mm thick in the mean, where a pixel shows "
                f"{1e3 * solid.threshold.pixel:.2g} mm: their thickness, and with it the volume and a mass from it, is "
                "unknown; weigh the object, or take pictures with more pixels on it"
            )
    if isinstance(solid.field, SampledField):
        unsampled, words = _unsampled_effects(solid, solid.field)
        errors += unsampled
        remarks += words
    seen, readings = None, cast(tuple[Reading, ...], ())
    if eyes is not None:
        visibility = judge_visibility(solid, eyes, support)
        seen = visibility.seen_share
        readings = solid_readings(solid, visibility.points, visibility.normals, visibility.seen)
        bounds = [difference(solid.moments, other) for other in (visibility.with_hidden, visibility.without_unseen)]
        errors.append(0.5 * np.maximum(*bounds))
        if visibility.one_sided:
            remarks.append(
                f"the view is one-sided: the cameras saw {seen:.0%} of the surface; the centre of mass may be off by "
                f"{errors[-1][1] / solid.size:.0%} of the size and the inertia by {errors[-1][2]:.0%}: add views from "
                "the other side"
            )
    if readings:
        filled, hollow = readings
        remarks.append(
            f"the inside was not seen: filled as given here (likelihood {filled.likelihood:.0%}), or hollow with a "
            f"wall of {1e3 * hollow.wall:.2g} mm and {hollow.moments.volume / solid.volume:.0%} of the volume "
            f"({hollow.likelihood:.0%}); add views that look into it, or weigh the object"
        )
    properties = _properties(solid.moments, errors, mass, density, Weighting.SOLID, seen, tuple(remarks))
    return replace(properties, readings=tuple(_body_reading(reading, mass, density) for reading in readings))


def _extracted(field: DensityField, threshold: float | Threshold | None, config: SolidConfig | None) -> Solid:
    """The solid; where there is none because what was learned is in shreds, the refusal says so."""
    try:
        return extract_solid(field, threshold, config)
    except InvalidInputError as error:
        words = _offset_words(threshold) if isinstance(threshold, HullThreshold) else ""
        if not words:
            raise
        remedy = f"{words[0].upper()}{words[1:]}."
        raise InvalidInputError(error.name, error.value, error.bound, remedy) from None


def _body_reading(reading: Reading, mass: float | None, density: float | None) -> BodyReading:
    body = _properties(reading.moments, [np.zeros(4)], mass, density, Weighting.SOLID, None, ())
    return BodyReading(
        reading.name, reading.likelihood, body.mass, body.center_of_mass, body.inertia, body.volume, reading.wall
    )


def _checked_weighting(weighting: Weighting | str, of_solids: Mapping[str, object]) -> Weighting:
    """The weighting, which must be known and use what was given."""
    try:
        kind = Weighting(weighting)
    except ValueError:
        raise InvalidInputError("weighting", repr(weighting), f"one of {', '.join(Weighting)}") from None
    unused = [name for name, value in of_solids.items() if value is not None]
    if kind is Weighting.DENSITY and unused:
        raise InvalidInputError(
            ", ".join(unused), "given with the density weighting", "none of threshold, eyes, support",
            "They tell of a solid's surface: take the solid weighting, or leave them out.",
        )  # fmt: skip
    return kind


def _cut_off(field: DensityField) -> tuple[str, ...]:
    """A remark on a density that goes on where its bounds end."""
    bounds = np.asarray(field.bounds, dtype=np.float64)
    shares = np.linspace(0.0, 1.0, _FACE_POINTS)
    points = bounds[0] + (bounds[1] - bounds[0]) * np.stack(np.meshgrid(shares, shares, shares), axis=-1).reshape(-1, 3)
    densities = field.density(points)
    on_face = ((points == bounds[0]) | (points == bounds[1])).any(axis=1)
    largest = float(densities.max())
    if largest <= 0.0 or densities[on_face].max() <= _CUT_OFF * largest:
        return ()
    share = float(densities[on_face].max()) / largest
    return (
        f"the density is {share:.0%} of its largest at the bounds of the field: what lies beyond is left out; learn it "
        "in larger bounds",
    )


def _threshold_effect(solid: Solid, low: float, high: float, config: SolidConfig | None) -> Array:
    """What the range of the threshold changes, up to its further end."""
    base = config or SolidConfig()
    # Cells at most twice as large as those of a solid that was refined for its thin parts.
    needed = int(np.ceil(0.5 * solid.surface.extents.max() / solid.spacing))
    cells = min(max(_TRIAL_RESOLUTION, needed), base.resolution if needed <= base.resolution else needed, 400)
    trial = replace(base, resolution=cells, thinnest=min(8, base.thinnest))
    try:
        ends = [moments_at(solid.field, value, trial) for value in (low, high)]
    except InvalidInputError:
        # At the end of the range there is no solid at all: then nothing is known.
        return np.array([1.0, 0.25 * solid.size, 1.0, 1.0])
    value = solid.threshold.value
    return max(high - value, value - low) / (high - low) * difference(*ends)


def _hull_effects(solid: Solid, threshold: HullThreshold) -> list[Array]:
    """What the silhouettes say otherwise, and what a part of a pixel changes."""
    if threshold.walls is not None:
        swelling = _WALL_SHARE * threshold.pixel / _mean_thickness(solid)
        gyration = np.sqrt(np.trace(solid.moments.second_moment) / solid.volume)
        uneven = _UNEVEN * swelling
        errors = [np.array([swelling, uneven * gyration, uneven, swelling])]
        errors.append(_effect(threshold.walls))
    else:
        errors = [_swelling_effect(solid, _PIXEL_SHARE * threshold.pixel)]
    # The hull of views that disagree is what the most cautious of them leave. What they measured shows the same, where
    # there are depths, and parts that are missing as well.
    disagreement = _swelling_effect(solid, threshold.disagreement)
    offsets = np.zeros(4) if threshold.offsets is None else _effect(threshold.offsets)
    errors.append(np.maximum(disagreement, offsets))
    if threshold.drift > 0.0:
        errors.append(np.array([0.0, threshold.drift, 0.0, 0.0]))
    if threshold.scale > 0.0:
        errors.append(threshold.scale * np.array([3.0, 0.0, 2.0, 5.0]))
    if threshold.poses is not None:
        errors.append(_effect(threshold.poses))
    if threshold.hull is not None:
        errors.append(difference(solid.moments, threshold.hull))
    return errors


def _swelling_effect(solid: Solid, depth: float) -> Array:
    """What a surface changes that lies farther out [m]: all around the volume most, more in some places the centre."""
    swelling = depth * float(solid.surface.area) / solid.volume
    gyration = float(np.sqrt(np.trace(solid.moments.second_moment) / solid.volume))
    return np.array([swelling, _UNEVEN * swelling * gyration, 2.0 / 3.0 * swelling, 5.0 / 3.0 * swelling])


def _effect(deviation: MomentDeviation) -> Array:
    """In the order of `moments.difference`."""
    return np.array([deviation.volume, deviation.center, deviation.tensor_per_volume, deviation.tensor])


def _dropped_effect(solid: Solid) -> Array:
    """What changes if separate pieces are of the object: what joined them may have been too thin for the views."""
    from scipy.spatial import cKDTree

    cells, step = box_cells(*np.asarray(solid.field.bounds, dtype=np.float64))
    cells = cells[solid.field.density(cells) > solid.threshold.value]
    others = cells[~solid.contains(cells)]
    # Cells at the surface are of the solid itself: a thin wall has many of them. How much was left out is known.
    away = cKDTree(solid.surface.vertices).query(others)[0] > step
    pieces = others[away] if away.any() else others
    each = solid.dropped_volume / max(len(pieces), 1)
    return difference(solid.moments, combined_moments(solid.moments, pieces, each))


def _unsampled_effects(solid: Solid, field: SampledField) -> tuple[list[Array], list[str]]:
    """What samples leave open that were kept from a band of densities only: where the surface is, what is inside.

    Beyond the last samples the field falls to zero by its own kernel: where no sample has a density below the threshold
    the surface is the kernel's, anywhere within its radius.
    """
    errors, remarks = [], []
    lowest = float(field.densities.min())
    if lowest >= solid.threshold.value:
        errors.append(_swelling_effect(solid, field.radius))
        remarks.append(
            f"no sample lies outside of the surface (the lowest density is {lowest:.3g}, the threshold "
            f"{solid.threshold.value:.3g}): where it is was not sampled; add samples of lower densities"
        )
    cells, step = box_cells(*solid.surface.bounds)
    cells = cells[solid.contains(cells)]
    empty = cells[field.density(cells) <= 0.0]
    if len(empty) > _UNSAMPLED * len(cells):
        errors.append(difference(solid.moments, combined_moments(solid.moments, empty, -(step**3))))
        remarks.append(
            f"{len(empty) / len(cells):.0%} of the volume has no sample within {field.radius:.3g} and counts as full: "
            "whether it is was not sampled; add samples of higher densities"
        )
    return errors, remarks


def _mean_thickness(solid: Solid) -> float:
    """Of a plate with the volume and the surface of a solid [m]."""
    return 2.0 * solid.volume / float(solid.surface.area)


def _offset_words(threshold: HullThreshold) -> str:
    """What measured points say against a surface; empty where that is little."""
    if threshold.offsets is None or threshold.offsets.volume <= _MOST_OFFSET:
        return ""
    volume = f"{threshold.offsets.volume:.0%}" if threshold.offsets.volume < 1.0 else "as much as there is, or more,"
    return (
        "what was measured lies beside the surface that was learned: moved to it, the volume changes by "
        f"{volume} and the centre by {1e3 * threshold.offsets.center:.2g} mm; parts are missing, "
        "or as thin as poses are off: take pictures with more pixels on the object, or poses that are known better"
    )


def _pose_remarks(threshold: HullThreshold) -> list[str]:
    """How far views disagree, and what refined poses leave open."""
    remarks = []
    if threshold.disagreement > threshold.pixel * _MOST_DISAGREEMENT:
        remarks.append(
            f"the views disagree by {1e3 * threshold.disagreement:.2g} mm about where the surface is: poses, masks or "
            "depths are not exact"
        )
    if words := _offset_words(threshold):
        remarks.append(words)
    if threshold.drift > 0.0:
        remarks.append(
            f"the poses were refined: where the object is among them is known to {1e3 * threshold.drift:.2g} mm, and "
            "its size as well as the focal length"
        )
    return remarks


def _off_hull(solid: Solid, threshold: HullThreshold) -> list[str]:
    """A remark on a solid that is much larger or smaller than the hull of its silhouettes."""
    if threshold.hull is None or abs(solid.volume - threshold.hull.volume) <= _MOST_OFF_HULL * threshold.hull.volume:
        return []
    if threshold.hull.volume == 0.0:
        return ["nothing lies in all silhouettes: check masks and poses"]
    share = f"the solid has {solid.volume / threshold.hull.volume:.0%} of the volume of its silhouettes' hull"
    if solid.volume > threshold.hull.volume:
        return [f"{share}, which holds the whole object: it reaches beyond its outlines; take a higher threshold"]
    return [
        f"{share}: parts of it were lost, or it has hollows that no outline shows; depth pictures tell which, more "
        "pixels on the object keep thin parts"
    ]


def _properties(
    moments: VolumeMoments,
    errors: list[Array],
    mass: float | None,
    density: float | None,
    weighting: Weighting,
    seen: float | None,
    remarks: tuple[str, ...],
) -> InertialProperties:
    if mass is not None:
        total = mass
    else:
        assert density is not None
        total = density * moments.volume
    error = np.sqrt(np.square(errors).sum(axis=0))
    return InertialProperties(
        mass=float(total),
        center_of_mass=moments.center,
        inertia=tensor(moments.second_moment) * (total / moments.volume),
        volume=moments.volume,
        weighting=weighting,
        mass_error=0.0 if mass is not None else float(total * error[0]),
        center_error=float(error[1]),
        inertia_error=float(error[2] if mass is not None else error[3]),
        seen_share=seen,
        remarks=remarks,
    )


def _density_moments(field: DensityField) -> tuple[VolumeMoments, VolumeMoments]:
    """Moments of the density at the finest resolution, and those of a coarser one that differ most."""
    sums = [_midpoint_sums(field, resolution) for resolution in _SUM_RESOLUTIONS[:2]]
    for resolution in _SUM_RESOLUTIONS[2:]:
        sums.append(_midpoint_sums(field, resolution))
        # Two may agree by chance.
        differences = [difference(sums[-1], other)[[0, 3]].max() for other in sums[-3:-1]]
        if max(differences) < _SUM_TOLERANCE:
            break
    return sums[-1], sums[-3 + int(np.argmax(differences))]


def _midpoint_sums(field: DensityField, resolution: int) -> VolumeMoments:
    bounds = np.asarray(field.bounds, dtype=np.float64)
    extents = bounds[1] - bounds[0]
    counts = np.maximum(np.ceil(extents / extents.max() * resolution).astype(np.int64), resolution // 2)
    steps = extents / counts
    middle = bounds.mean(axis=0)
    axes = [bounds[0, axis] + steps[axis] * (np.arange(counts[axis]) + 0.5) for axis in range(3)]
    across = np.stack(np.meshgrid(axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.empty((len(across), 3))
    points[:, 1:] = across
    total, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    # A soft edge may end at the bounds: there are cells inside of it only.
    corners = field.density(bounds[np.indices((2, 2, 2)).reshape(3, 8).T, np.arange(3)])
    lowest, highest = float(corners.min()), float(corners.max())
    for x in axes[0]:
        points[:, 0] = x
        weights = np.maximum(field.density(points), 0.0)
        lowest, highest = min(lowest, float(weights.min())), max(highest, float(weights.max()))
        offsets = points - middle
        total += weights.sum()
        first += weights @ offsets
        second += (offsets * weights[:, None]).T @ offsets
    check_densities(np.array([lowest, highest]))
    cell = float(np.prod(steps))
    center = first / total
    # Not a cell's own spread: where the density fades out, the plain sum converges faster than any power of the step.
    second = second / total - np.outer(center, center)
    return VolumeMoments(total * cell, middle + center, second * total * cell)
