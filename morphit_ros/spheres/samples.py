"""Points in and on a shape that a fit is made against, in a frame that does not depend on the shape's size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from morphit_ros.geometry.inputs import MeshesLike, as_meshes
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres.exposed_surface import sample_exposed_surface, shape_bounds

# The weights of the variants were published for robot links in metres, and mix lengths with squares of lengths:
# every shape is scaled to this box diagonal, that of a Panda link, so that they mean the same for any of them.
REFERENCE_DIAGONAL = 0.3
# Of the balls that touch the shape, with about the size of what a link pushes.
TOUCH_RADIUS = 0.5 * REFERENCE_DIAGONAL
# Points are drawn so far about the distance of touching balls' centres, relative to it, and moved there.
_TOUCH_BAND = 0.2

_MAX_BATCHES = 16
# Below this share of its box, points inside a shape are looked for under its surface instead of in all of the box.
_THIN_SHARE = 0.03
# Points inside that are needed to take the volume from their number: an error of a tenth.
_ENOUGH_FOR_VOLUME = 100
# Steps of the additive sequence that fills a cube most evenly: powers of the root of x⁴ = x + 1 (Roberts 2018).
_EVEN_STEPS = 1.0 / 1.2207440846057594759 ** np.arange(1.0, 4.0)


@dataclass(frozen=True)
class FitSamples:
    """A shape as points, in the normalised frame: ``shape = normalised / scale + origin``.

    Attributes:
        interior: (I, 3) points inside; the surface's where the shape has no inside.
        surface, normals: (S, 3) points on the surface and their outward unit normals.
        volume: of the inside; of a thin skin where the shape has none.
        center: (3,) mean of the inside.
        inertia: (3, 3) tensor about it at density one.
        half_size: (3,) half side lengths of the box, which is centred on the origin.
        has_volume: whether the shape has an inside.
        origin, scale: of the normalisation.
        touches: (T, 3) centres of balls of `TOUCH_RADIUS` that touch the shape from outside; none unless asked for.
    """

    interior: Array
    surface: Array
    normals: Array
    volume: float
    center: Array
    inertia: Array
    half_size: Array
    has_volume: bool
    origin: Array
    scale: float
    touches: Array = field(default_factory=lambda: np.empty((0, 3)))

    @property
    def diagonal(self) -> float:
        """Of the box."""
        return float(2.0 * np.linalg.norm(self.half_size))

    def halved(self) -> FitSamples:
        """With every second point: as evenly spread, half the work."""
        return replace(
            self, interior=self.interior[::2], surface=self.surface[::2], normals=self.normals[::2],
            touches=self.touches[::2],
        )  # fmt: skip


def draw_samples(
    mesh: MeshesLike, interior: int, surface: int, rng: np.random.Generator, touches: int = 0
) -> FitSamples:
    """Draw points uniformly in and on a shape, and about it: a mesh, or the union of several.

    A mesh that is not watertight has the inside that its winding number gives it. A shape without one (a sheet) is
    represented by its surface alone.

    Raises:
        InvalidInputError: no mesh, or no area.
    """
    meshes = as_meshes(mesh)
    low, high = shape_bounds(meshes)
    origin, diagonal = 0.5 * (low + high), float(np.linalg.norm(high - low))
    scale = REFERENCE_DIAGONAL / diagonal if diagonal > 0.0 else 1.0
    meshes = tuple(TriangleMesh(_rounded((part.vertices - origin) * scale), part.faces) for part in meshes)
    points, normals = sample_exposed_surface(meshes, surface, rng, even=True)
    half_size = np.maximum(_rounded(0.5 * scale * (high - low)), 1e-6 * REFERENCE_DIAGONAL)
    inside, volume = _interior_points(meshes, half_size, (points, normals), interior, rng)
    has_volume = len(inside) > 0
    if not has_volume:
        inside, volume = points, sum(part.area for part in meshes) * 0.01 * REFERENCE_DIAGONAL
    center = inside.mean(axis=0)
    offsets = inside - center
    second = offsets.T @ offsets / len(offsets) * volume
    inertia = np.trace(second) * np.eye(3) - second
    return FitSamples(
        np.ascontiguousarray(inside), points, normals, volume, center, inertia, half_size, has_volume, origin, scale,
        _touching_balls(meshes, half_size, touches, rng),
    )  # fmt: skip


def _rounded(lengths: Array) -> Array:
    """Without the digits in which the same shape differs when it comes in another unit or place."""
    return np.round(lengths, 10)


def _interior_points(
    meshes: Sequence[TriangleMesh],
    half_size: Array,
    skin: tuple[Array, Array],
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """Up to `count` points inside, evenly spread, and the volume that their share of the box implies."""
    test = InsideTest(meshes)
    start = rng.random(3)
    found: list[Array] = []
    accepted = drawn = 0
    for _ in range(_MAX_BATCHES):
        # What the share so far lets expect, and a little more.
        missing = count - accepted
        size = 2 * count if accepted == 0 else int(1.1 * missing * drawn / accepted) + 16
        steps = np.arange(drawn, drawn + min(size, 8 * count))[:, None]
        points = (2.0 * ((start + steps * _EVEN_STEPS) % 1.0) - 1.0) * half_size
        inside = points[test.contains(points)]
        found.append(inside)
        accepted, drawn = accepted + len(inside), drawn + len(points)
        if accepted >= count or (accepted < _THIN_SHARE * drawn and drawn >= 4 * count):
            break
    volume = float(np.prod(2.0 * half_size)) * accepted / drawn
    inside = np.concatenate(found)[:count]
    if len(inside) < count:
        inside = np.concatenate([inside, _points_under(skin, test, count - len(inside), rng)])
    if accepted < _ENOUGH_FOR_VOLUME and len(inside) > 0:
        # A rod or a thin plate across its box: the share of the points says next to nothing.
        enclosed, area = (sum(abs(getattr(part, name)) for part in meshes) for name in ("volume", "area"))
        volume = max(volume, enclosed, area * 1e-4 * REFERENCE_DIAGONAL)
    return inside, volume


def _touching_balls(meshes: Sequence[TriangleMesh], half_size: Array, count: int, rng: np.random.Generator) -> Array:
    """Centres (T, 3) of up to `count` balls of `TOUCH_RADIUS` that touch the shape from outside, evenly spread.

    A ball touches an edge from as many places as the edge is sharp, and no place that it doesn't fit into.
    """
    centers, drawn = np.empty((0, 3)), 0
    if count == 0:
        return centers
    solid, start, reach = Solid(meshes), rng.random(3), 1.0 + _TOUCH_BAND
    for _ in range(_MAX_BATCHES):
        if len(centers) >= count:
            break
        steps = np.arange(drawn, drawn + 4 * count)[:, None]
        points = (2.0 * ((start + steps * _EVEN_STEPS) % 1.0) - 1.0) * (half_size + reach * TOUCH_RADIUS)
        drawn += len(points)
        feet = solid.feet(points)
        distances = np.linalg.norm(points - feet, axis=1)
        near = np.flatnonzero(np.abs(distances - TOUCH_RADIUS) < _TOUCH_BAND * TOUCH_RADIUS)
        near = near[~solid.contains(points[near])]
        found = feet[near] + TOUCH_RADIUS / distances[near, None] * (points[near] - feet[near])
        # Moved outwards, a ball may meet another part of the shape.
        free = solid.surface_distances(found) > (1.0 - 1e-6) * TOUCH_RADIUS
        centers = np.concatenate([centers, found[free]])
    return np.ascontiguousarray(centers[:count])


def _points_under(skin: tuple[Array, Array], test: InsideTest, count: int, rng: np.random.Generator) -> Array:
    """Up to `count` points inside a thin wall: beneath points of its surface, at depths from a hair to a finger's."""
    points, normals = skin
    chosen = rng.integers(0, len(points), 4 * count)
    depths = REFERENCE_DIAGONAL * 10.0 ** rng.uniform(-4.0, -1.5, 4 * count)
    candidates = points[chosen] - depths[:, None] * normals[chosen]
    return candidates[test.contains(candidates)][:count]
