"""Packing: always the inscribed sphere that fills most of what is still empty."""

from __future__ import annotations

import math

import numpy as np

from morphit_bench.spheres.baselines.solid import VoxelSolid, checked_count, make_solid
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


def fit_packing(mesh: MeshesLike, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Exactly `count` spheres inside a shape, chosen greedily by the volume that each adds to the union.

    The candidates are centred on the voxels of a grid and reach to the surface. They start with the largest inscribed
    sphere. The greedy choice is within a factor 1 − 1/e of the best volume (submodular maximisation).

    Args:
        mesh: the shape; several meshes in one frame mean their union.
        count: number of spheres.
        seed: of the surface samples that the distances are measured to.

    Returns:
        centers (count, 3) and radii (count,) [m]. Of a shape without inside, points of its surface.

    Raises:
        InvalidInputError: a count below one, no mesh or no area.
    """
    solid = make_solid(mesh, np.random.default_rng(seed))
    centers, radii = _candidates(solid, checked_count(count))
    chosen = _greedy(centers, radii, solid.depth > 0.0, solid.low, solid.spacing, count)
    return solid.in_mesh_frame(centers[chosen], radii[chosen])


def _candidates(solid: VoxelSolid, count: int) -> tuple[Array, Array]:
    """Inscribed spheres, at least `count` of them: those of a thin shape are made up by points on its surface."""
    clearance = solid.depth[solid.depth > 0.0]
    missing = max(0, count - len(solid.interior))
    spare = solid.surface[np.arange(missing) % len(solid.surface)]
    return np.concatenate([solid.interior, spare]), np.concatenate([clearance, np.zeros(missing)])


@njit(cache=True, nogil=True)
def _greedy(centers, radii, empty, low, spacing, count):  # type: ignore[no-untyped-def]
    """Indices (count,) of the spheres chosen. Gains only ever fall, so one that is still the best after it has been
    counted again is the best of all: few are counted in each round."""
    # At first each is thought to gain its volume, which no sphere exceeds by more than its rim of voxels.
    gains = (radii / spacing + 1.0) ** 3 * 4.2
    chosen = np.empty(count, dtype=np.int64)
    taken = np.zeros(len(centers), dtype=np.bool_)
    for n in range(count):
        fresh = np.zeros(len(centers), dtype=np.bool_)
        while True:
            best, most, largest = -1, -1.0, -1.0
            for i in range(len(centers)):
                if not taken[i] and (gains[i] > most or (gains[i] == most and radii[i] > largest)):
                    best, most, largest = i, gains[i], radii[i]
            if fresh[best]:
                break
            gains[best] = _count_voxels(empty, centers[best], radii[best], low, spacing, False)
            fresh[best] = True
        chosen[n] = best
        taken[best] = True
        _count_voxels(empty, centers[best], radii[best], low, spacing, True)
    return chosen


@njit(cache=True, nogil=True)
def _count_voxels(empty, center, radius, low, spacing, fill):  # type: ignore[no-untyped-def]
    """Empty voxels whose centres a sphere contains; filled afterwards if asked for."""
    r = radius / spacing
    cx, cy, cz = (center - low) / spacing
    found = 0.0
    for ix in range(max(0, math.floor(cx - r)), min(empty.shape[0], math.ceil(cx + r))):
        for iy in range(max(0, math.floor(cy - r)), min(empty.shape[1], math.ceil(cy + r))):
            for iz in range(max(0, math.floor(cz - r)), min(empty.shape[2], math.ceil(cz + r))):
                squared = (ix + 0.5 - cx) ** 2 + (iy + 0.5 - cy) ** 2 + (iz + 0.5 - cz) ** 2
                if squared <= r * r and empty[ix, iy, iz]:
                    found += 1.0
                    if fill:
                        empty[ix, iy, iz] = False
    return found
