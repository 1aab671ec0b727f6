"""Points in and on a mesh that a fit is made against, in a frame that does not depend on the mesh's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest

# The weights of the variants were published for robot links in metres, and mix lengths with squares of lengths:
# every mesh is scaled to this box diagonal, that of a Panda link, so that they mean the same for any mesh.
REFERENCE_DIAGONAL = 0.3

_MAX_BATCHES = 64


@dataclass(frozen=True)
class FitSamples:
    """A mesh as points, in the normalised frame: ``mesh = normalised / scale + origin``.

    Attributes:
        interior: (I, 3) points inside; the surface's where the mesh has no inside.
        surface, normals: (S, 3) points on the mesh and their outward unit normals.
        volume: of the inside; of a thin skin where the mesh has none.
        half_size: (3,) half side lengths of the box, which is centred on the origin.
        has_volume: whether the mesh has an inside.
        origin, scale: of the normalisation.
    """

    interior: Array
    surface: Array
    normals: Array
    volume: float
    half_size: Array
    has_volume: bool
    origin: Array
    scale: float


def draw_samples(mesh: TriangleMesh, interior: int, surface: int, rng: np.random.Generator) -> FitSamples:
    """Draw points uniformly in and on a mesh.

    A mesh that is not watertight has the inside that its winding number gives it. One without (a sheet) is
    represented by its surface alone.

    Raises:
        InvalidInputError: the mesh has no area.
    """
    origin = mesh.bounds.mean(axis=0)
    diagonal = float(np.linalg.norm(mesh.extents))
    scale = REFERENCE_DIAGONAL / diagonal if diagonal > 0.0 else 1.0
    # An inverted mesh would have its normals point inwards.
    faces = mesh.faces[:, ::-1] if mesh.volume < 0.0 else mesh.faces
    normalised = TriangleMesh((mesh.vertices - origin) * scale, faces)
    points, normals = sample_surface(normalised, surface, rng)
    inside, volume = _interior_points(normalised, interior, rng)
    has_volume = len(inside) > 0
    if not has_volume:
        inside, volume = points, normalised.area * 0.01 * REFERENCE_DIAGONAL
    half_size = np.maximum(0.5 * normalised.extents, 1e-6 * REFERENCE_DIAGONAL)
    return FitSamples(inside, points, normals, volume, half_size, has_volume, origin, scale)


def _interior_points(mesh: TriangleMesh, count: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Up to `count` points inside by rejection in the box, and the volume that their share implies."""
    test = InsideTest(mesh)
    found: list[Array] = []
    accepted = drawn = 0
    for _ in range(_MAX_BATCHES):
        points = rng.uniform(mesh.bounds[0], mesh.bounds[1], (2 * count, 3))
        inside = points[test.contains(points)]
        found.append(inside)
        accepted, drawn = accepted + len(inside), drawn + len(points)
        # Give up early on a sheet, whose box has volume but which has no inside.
        if accepted >= count or (accepted == 0 and drawn >= 8 * count):
            break
    return np.concatenate(found)[:count], float(np.prod(mesh.extents)) * accepted / drawn
