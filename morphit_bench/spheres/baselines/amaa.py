"""AMAA: spheres of the medial axis, merged and burst until as many are left as were asked for.

Bradshaw and O'Sullivan 2004, "Adaptive medial-axis approximation for sphere-tree construction"; one level of the tree.

1. Medial spheres: the vertices of the Voronoi diagram of surface samples that lie inside the shape. Where a sphere
   reaches farthest out of the shape, between its samples, the surface gets a further sample (adaptive sampling).
2. Every cover point of the surface belongs to a sphere, which reaches at least that far.
3. Merge or burst, whichever leaves the smaller error, until the count is reached. Merging puts one sphere around the
   points of two neighbours; bursting takes a sphere away and shares its points out among the others.

4. Optimisation: the spheres left share out the cover points anew and are centred where their error is least.

The error of a sphere is how far it reaches out of the shape, estimated as radius less depth of its centre.

Deviations: a pattern search centres merged spheres as well, not only at the end; the neighbours that a sphere may
merge with are the nearest ones rather than those whose cells of the Voronoi diagram touch.
"""

from __future__ import annotations

import numpy as np

from morphit_bench.spheres.baselines.reduction import cover_all, reduce_spheres
from morphit_bench.spheres.baselines.solid import VoxelSolid, checked_count, make_solid
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.transforms import Array

# Samples of the first Voronoi diagram, times that samples are added, and by which share.
_FIRST_SAMPLES, _ADAPTIONS, _ADDED_SHARE = 300, 5, 0.35
# Spheres whose error is below this share of the diagonal need no further sample.
_GOOD_ERROR = 0.003
# Fewer medial spheres than this don't make a shape.
_FEW_SPHERES = 100
# Points that stay covered while spheres merge and burst.
_COVER_POINTS = 4000
# Times that the spheres left share out all samples among themselves and are centred again.
_LAST_ROUNDS = 4


def fit_amaa(mesh: MeshesLike, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Exactly `count` spheres from the medial axis that cover the samples of a shape's surface (AMAA).

    Every vertex (of up to 2000) and every one of 20000 surface samples is covered. The inside is covered as far as
    the medial spheres fill it, nearly everywhere.

    Args:
        mesh: the shape; several meshes in one frame mean their union.
        count: number of spheres.
        seed: of the samples.

    Returns:
        centers (count, 3) and radii (count,) [m].

    Raises:
        InvalidInputError: a count below one, no mesh or no area.
    """
    wanted = checked_count(count)
    rng = np.random.default_rng(seed)
    solid = make_solid(mesh, rng)
    points = np.concatenate([solid.corners, solid.surface[:_COVER_POINTS]])
    medial_centers, medial_radii = _medial_spheres(solid)
    centers = reduce_spheres(points, medial_centers, medial_radii, solid.depth, solid.low, solid.spacing, wanted)
    everything = np.concatenate([solid.corners, solid.surface])
    centers, radii = cover_all(everything, centers, solid.depth, solid.low, solid.spacing, _LAST_ROUNDS)
    missing = wanted - len(centers)
    if missing > 0:
        # Simple shapes need fewer spheres: the largest medial ones add nothing and reach out of the shape the least.
        spare = np.argsort(-medial_radii, kind="stable")[np.arange(missing) % len(medial_radii)]
        centers = np.concatenate([centers, medial_centers[spare]])
        radii = np.concatenate([radii, medial_radii[spare]])
    return solid.in_mesh_frame(centers, radii)


def _medial_spheres(solid: VoxelSolid) -> tuple[Array, Array]:
    """Centres (M, 3) and radii (M,) of spheres on the medial axis; points of the surface where it is not found."""
    from scipy.spatial import Voronoi, cKDTree

    # Eight points far away bound all cells around the shape.
    far = 3.0 * np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    surface = cKDTree(solid.surface)
    samples = np.arange(_FIRST_SAMPLES)
    for adaption in range(_ADAPTIONS + 1):
        vertices = Voronoi(np.concatenate([solid.surface[samples], far])).vertices
        vertices = vertices[(np.abs(vertices) <= 0.5).all(axis=1)]
        centers = vertices[solid.inside.contains(vertices)]
        if len(centers) < _FEW_SPHERES:
            # The samples of a thin shape miss its medial axis, which is about as good as its surface.
            points = solid.surface[:_COVER_POINTS]
            return points, np.zeros(len(points))
        radii = cKDTree(solid.surface[samples]).query(centers)[0]
        distances, nearest = surface.query(centers)
        errors = radii - distances
        if adaption == _ADAPTIONS or errors.max() < _GOOD_ERROR:
            break
        worst = np.argsort(-errors, kind="stable")
        worst = worst[errors[worst] > _GOOD_ERROR]
        _, first = np.unique(nearest[worst], return_index=True)
        added = nearest[worst][np.sort(first)][: int(_ADDED_SHARE * len(samples))]
        samples = np.concatenate([samples, np.setdiff1d(added, samples)])
    return centers, radii
