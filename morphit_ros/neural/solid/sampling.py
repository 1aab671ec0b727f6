"""Points that stand for a body in contact: sampled near the surface of a density, or over a solid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.extraction import Solid, extract_solid
from morphit_ros.neural.solid.inertia import InertialProperties

# Share of the points that lie on the surface when a solid is sampled.
_SURFACE_SHARE = 0.6
# The spacing of a jittered grid is accepted when it gives this many of the points asked for, and a few more.
_GRID_EXCESS = 1.02
_SPACING_TRIALS = 40
# Cells of the finest grid in which densities of a range are looked for.
_MOST_CELLS = 1_500_000


def sample_body(
    source: DensityField | Solid, properties: InertialProperties, count: int = 5000, seed: int = 0
) -> ContactBody:
    """Points on a solid's surface and inside of it, whose weights add up to the mass of what they overlap.

    A surface point stands for the skin below it, half as thick as the inner points are apart; an inner point for its
    cell. So a slight overlap is felt evenly along the surface, and a deep one weighs what it displaces. Normals are
    those of the field on the surface, inner points take the nearest one.

    Args:
        source: a solid, or a field to cut one from (`extract_solid`, with its defaults).
        properties: mass, centre of mass and inertia of the body.
        count: number of points.
        seed: of the draw.

    Raises:
        InvalidInputError: a count below 8, or what `extract_solid` refuses.
    """
    if count < 8:
        raise InvalidInputError("count", count, "at least 8 points")
    solid = source if isinstance(source, Solid) else extract_solid(source)
    rng = np.random.default_rng(seed)
    on_surface = round(_SURFACE_SHARE * count)
    skin_points, face_normals = sample_surface_evenly(solid.surface, on_surface, rng)
    normals = _field_normals(solid.field, skin_points, face_normals)
    tree = cKDTree(skin_points)
    spacing = (solid.volume / (count - on_surface)) ** (1.0 / 3.0)

    def inner(distance: float) -> Array:
        grid = _jittered_grid(solid.surface.bounds, distance, rng)
        grid = grid[solid.contains(grid)]
        return grid[tree.query(grid)[0] > 0.5 * distance]

    inner_points, spacing = _with_count(inner, spacing, 0.2 * spacing, count - on_surface, rng)
    # Cells of inner points and the skin share the volume.
    inner_volume = min(len(inner_points) * spacing**3, 0.9 * solid.volume)
    skin_volume = solid.volume - inner_volume
    weights = np.concatenate(
        [
            np.full(on_surface, skin_volume / on_surface),
            np.full(len(inner_points), inner_volume / max(len(inner_points), 1)),
        ]
    )
    points = np.concatenate([skin_points, inner_points])
    nearest = tree.query(inner_points)[1] if len(inner_points) else np.empty(0, np.int64)
    return _body(points, weights, np.concatenate([normals, normals[nearest]]), properties)


def sample_density(
    field: DensityField,
    properties: InertialProperties,
    lowest: float,
    highest: float,
    count: int = 5000,
    seed: int = 0,
) -> ContactBody:
    """Points where φ_low ≤ φ ≤ φ_high on a jittered grid, with weights m φ_i / Σ φ (DANO).

    Args:
        field: the density.
        properties: mass, centre of mass and inertia of the body.
        lowest, highest: densities near the surface, as bunny 1 to 105, soap 60 to 90.
        count: number of points.
        seed: of the jitter.

    Raises:
        InvalidInputError: a range that is empty or not positive, in which the field has too few points, or a count
            below 8.
    """
    if count < 8:
        raise InvalidInputError("count", count, "at least 8 points")
    if not 0.0 < lowest < highest:
        raise InvalidInputError("lowest and highest", f"{lowest:g} and {highest:g}", "0 < lowest < highest")
    rng = np.random.default_rng(seed)
    bounds = np.asarray(field.bounds, dtype=np.float64)

    def band(distance: float) -> Array:
        grid = _jittered_grid(bounds, distance, rng)
        densities = field.density(grid)
        return grid[(densities >= lowest) & (densities <= highest)]

    spacing = float(np.prod(bounds[1] - bounds[0]) / (8.0 * count)) ** (1.0 / 3.0)
    finest = float(np.prod(bounds[1] - bounds[0]) / _MOST_CELLS) ** (1.0 / 3.0)
    points, _ = _with_count(band, max(spacing, finest), finest, count, rng)
    if len(points) < count:
        raise InvalidInputError(
            "lowest and highest", f"{lowest:g} and {highest:g}", "densities that the field takes near its surface",
            f"Only {len(points)} points of a fine grid lie in that range: widen it.",
        )  # fmt: skip
    return _body(points, field.density(points), _field_normals(field, points, np.zeros_like(points)), properties)


def _jittered_grid(bounds: Array, spacing: float, rng: np.random.Generator) -> Array:
    """(N, 3) one point in each cell of a grid over the bounds."""
    counts = np.maximum(np.ceil((bounds[1] - bounds[0]) / spacing).astype(np.int64), 1)
    cells = np.moveaxis(np.indices(counts), 0, -1).reshape(-1, 3)
    return bounds[0] + spacing * (cells + rng.random(cells.shape))


def _with_count(
    draw: Callable[[float], Array], spacing: float, finest: float, count: int, rng: np.random.Generator
) -> tuple[Array, float]:
    """Exactly `count` points of a draw at the spacing that gives a few more, and that spacing.

    Fewer only if the finest spacing gives fewer.
    """
    for _ in range(_SPACING_TRIALS):
        points = draw(spacing)
        ratio = len(points) / count
        if 1.0 <= ratio <= 1.1 or (ratio < 1.0 and spacing <= finest):
            break
        # The number of points in a layer goes with the square of the resolution, in a volume with the cube.
        spacing = max(spacing * float(np.clip((ratio / _GRID_EXCESS) ** 0.4, 0.6, 1.6)), finest)
    if len(points) > count:
        points = points[np.sort(rng.choice(len(points), count, replace=False))]
    return points, spacing


def _field_normals(field: DensityField, points: Array, fallback: Array) -> Array:
    """−∇φ/‖∇φ‖, and the fallback where the gradient vanishes or is not finite."""
    gradients = field.gradient(points)
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    known = np.isfinite(lengths) & (lengths > 0.0)
    return np.where(known, -gradients / np.where(known, lengths, 1.0), fallback)


def _body(points: Array, weights: Array, normals: Array, properties: InertialProperties) -> ContactBody:
    return ContactBody(
        points=points - properties.center_of_mass,
        masses=weights * (properties.mass / weights.sum()),
        normals=normals,
        mass=properties.mass,
        inertia=properties.inertia,
        center_of_mass=properties.center_of_mass,
    )
