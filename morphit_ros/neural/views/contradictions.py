"""What one view saw of an object and another says is none of it: such pairs tell which masks are cut, or poses wrong.

What a view measured, or shows at some place along the ray of a pixel, is of the object and must lie in every other
silhouette, hidden or not. A mask that lacks a part contradicts nearly all other views, and they do not contradict each
other. No common surface is needed, which the cut masks have carved already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array, transform_vectors
from morphit_ros.neural.views.carving import Silhouettes
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages, pixel_rays

# Rays of a view, and places along one where nothing was measured.
_RAYS, _ALONG = 200, 48


def contradictions(views: PosedImages | PosedDepths, bounds: Array, tolerance: float) -> Array:
    """(V, V) share of what each view (row) saw of the object that lies beside the silhouette of each other (column).

    Args:
        views: with masks.
        bounds: (2, 3) box around the object [m].
        tolerance: what lies beside a silhouette by less is taken to lie in it [m].
    """
    assert views.masks is not None
    silhouettes = Silhouettes(views, views.masks)
    beside = np.zeros((len(views), len(views)))
    pixels = [np.argwhere(mask)[:, ::-1] for mask in views.masks]
    for number, places in enumerate(sighted_places(views, pixels, bounds, np.random.default_rng(0))):
        out = np.array([silhouettes.view_clearance(other, places.reshape(-1, 3)) for other in range(len(views))])
        denied = (out > tolerance).reshape(len(views), *places.shape[:2])
        denied[number] = False
        # Of the places along a ray, the one that the fewest views deny.
        best = denied.sum(axis=0).argmin(axis=1)
        beside[number] = denied[:, np.arange(len(places)), best].mean(axis=1)
    return beside


def sighted_places(
    views: PosedImages | PosedDepths, pixels: Sequence[NDArray[Any]], bounds: Array, rng: np.random.Generator
) -> list[Array]:
    """(N, M, 3) for each view the places where N of its rays may have met the object [m]; one a ray if measured.

    Args:
        views: depths, whose measured points count, or pictures.
        pixels: (N, 2) u, v of each picture, whose rays count.
        bounds: (2, 3) box around the object [m].
        rng: draws rays.
    """
    if isinstance(views, PosedDepths):
        return [points[rng.permutation(len(points))[:_RAYS], None] for points in views.surface_points()]
    reach = 0.5 * float(np.linalg.norm(bounds[1] - bounds[0]))
    places = []
    for pose, intrinsics, chosen in zip(views.T_world_camera, views.intrinsics, pixels, strict=True):
        rays = pixel_rays(intrinsics, chosen[rng.permutation(len(chosen))[:_RAYS]])
        middle = float((bounds.mean(axis=0) - pose[:3, 3]) @ pose[:3, 2])
        depths = np.linspace(max(middle - reach, 1e-3), middle + reach, _ALONG)
        places.append(np.asarray(pose[:3, 3] + depths[:, None] * transform_vectors(pose, rays)[:, None]))
    return places
