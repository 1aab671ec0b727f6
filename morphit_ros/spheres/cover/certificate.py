"""Proof that spheres cover a shape: every point of its surface and of its interior lies in one of them.

The shape is the union of meshes: their triangles, and wherever a mesh's winding number is above one half in
magnitude. The proof looks at curves instead of at samples or cells, so it has no resolution that it could miss a
gap by:

1. *Surface.* A ball cuts the plane of a triangle in a disc. If the edges are covered, a part of the triangle that
   is not would be bounded by arcs of these discs' circles; so it is covered if every circle lies, within the
   triangle, in other discs. On a circle that is a union of angular intervals.
2. *Interior.* If the surface is covered, a part of space outside all balls is wholly inside or wholly outside of
   a closed mesh. The unbounded part is outside. A bounded one (a void) has concave walls, so it has corners where
   three spheres meet and arcs between them; one winding number on every bare arc of the circles in which two
   spheres meet tells whether a void is inside.
3. *Openings.* The winding number of a mesh that is not closed is harmonic away from its triangles, so outside the
   balls it is greatest on the balls' bare surface. This is cut into patches, small enough that the number cannot
   reach one half in any of them: the number at the centre is exact and the gradient has a bound (the Biot-Savart
   integral over the mesh's boundary). Then no part of the bare surface is partly inside, and the arcs of step 2
   tell for each part on which side it is.

Step 3 is bounded in its effort. A soup of triangles that face either way has openings everywhere, and no inside that
anyone meant; there the surface alone may be all that can be proven, and the status says so.

Rounding is kept on the safe side by proving each step for slightly smaller balls (`_RESOLUTION` of the shape's
size). What cannot be decided within that counts as not proven.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres.cover.arcs import bare_arcs
from morphit_ros.spheres.cover.openings import Effort, Opening
from morphit_ros.spheres.cover.surface import bare_triangle_points
from morphit_ros.spheres.exposed_surface import as_shape
from morphit_ros.spheres.metrics import checked_spheres, nearest_gaps

# Unit of the safety distances, as a share of the size of shape and spheres: far above the rounding of float64
# (1e-16, and its square root where spheres touch), far below anything that matters on a robot.
_RESOLUTION = 1e-6
# Levels of the balls, in that unit: arcs of space are taken this much inside the balls, and triangles more so
# that no triangle can come near a bare arc.
_ARC_LEVEL, _SURFACE_LEVEL = 0.5, 2.0
# Discs are compared with others smaller by this share of the size: its square is above rounding.
_DISC_TOLERANCE = 1e-7
# Doubtful points among which a proof looks for one that is outside for sure.
_WITNESSES = 256
# Pairs of patches and triangles or edges that a proof of openings may take, and the search for its margin: about a
# second and a third of one.
_PROOF_EFFORT, _MARGIN_EFFORT = 6e7, 2e7


class CoverStatus(enum.Enum):
    """Outcome of a proof."""

    COVERED = "every point of the shape is inside a sphere"
    UNCOVERED = "a point of the shape is outside all spheres"
    UNDECIDED = "covered at best with a margin too small to be proven"
    SURFACE_ONLY = "the surface is covered, proven; the inside that openings leave could not be decided"


@dataclass(frozen=True)
class CoverCertificate:
    """What was proven.

    Attributes:
        covered: whether the cover is proven.
        margin: every point of the shape is, as proven, at least this deep inside one of the spheres [m]: spheres
            smaller by it still cover. NaN if nothing is proven.
        uncovered: (3,) a point of the shape outside all spheres [m]; None unless the status is UNCOVERED.
        pieces: triangles, bare arcs and patches of spheres that were decided.
        status: outcome.
    """

    covered: bool
    margin: float
    uncovered: Array | None
    pieces: int
    status: CoverStatus


def certify_cover(meshes: MeshesLike, centers: ArrayLike, radii: ArrayLike, margin_steps: int = 12) -> CoverCertificate:
    """Prove, or refute, that spheres cover a shape.

    Args:
        meshes: one mesh of any kind that `geometry.inputs` knows, or several, whose union is the shape; watertight or
            not.
        centers, radii: (N, 3) and (N,) [m].
        margin_steps: halvings of the interval in which the margin is sought; 0 proves the cover alone.

    Raises:
        InvalidInputError: no mesh, or spheres of wrong shape, not finite, or with a radius that is not positive.
    """
    sphere_centers, sphere_radii = checked_spheres(centers, radii)
    return CoverProof(meshes).certify(sphere_centers, sphere_radii, margin_steps)


class CoverProof:
    """A shape prepared for proofs with many sets of spheres.

    Attributes:
        triangles: (F, 3, 3) of all meshes [m].
        bounds: (2, 3) box around them [m].
        diagonal: of the box [m].
        is_closed: whether all meshes are closed; proofs of others take longer.
    """

    def __init__(self, meshes: MeshesLike) -> None:
        """
        Raises:
            InvalidInputError: no mesh.
        """
        parts = as_shape(meshes)
        self.triangles = np.ascontiguousarray(np.concatenate([part.triangles for part in parts]))
        corners = self.triangles.reshape(-1, 3)
        self.bounds = np.stack([corners.min(axis=0), corners.max(axis=0)])
        self.diagonal = float(np.linalg.norm(self.bounds[1] - self.bounds[0]))
        self._origin = self.bounds.mean(axis=0)
        self._centered = self.triangles - self._origin
        openings = [Opening(part) for part in parts]
        self._openings = [opening for opening in openings if opening.is_open]
        self.is_closed = not self._openings
        closed = [part for part, opening in zip(parts, openings, strict=True) if not opening.is_open]
        self._closed = InsideTest(closed) if closed else None

    def certify(self, centers: Array, radii: Array, margin_steps: int = 12) -> CoverCertificate:
        """See `certify_cover`."""
        effort = Effort(_PROOF_EFFORT)
        doubtful, in_shape, pieces = self._search(centers, radii, 0.0, _WITNESSES, False, effort)
        if len(doubtful):
            depths = np.where(in_shape, nearest_gaps(doubtful, centers, radii), 0.0)
            worst = int(depths.argmax())
            if depths[worst] > 0.0:
                return CoverCertificate(False, math.nan, doubtful[worst], pieces, CoverStatus.UNCOVERED)
            status = CoverStatus.SURFACE_ONLY if effort.is_spent else CoverStatus.UNDECIDED
            return CoverCertificate(False, math.nan, None, pieces, status)
        corners = self.triangles.reshape(-1, 3)
        low, high = 0.0, float(-nearest_gaps(corners, centers, radii).max())
        effort = Effort(_MARGIN_EFFORT)
        for _ in range(margin_steps):
            middle = 0.5 * (low + high)
            if self.is_covered(centers, radii, middle, effort):
                low = middle
            else:
                high = middle
        return CoverCertificate(True, low, None, pieces, CoverStatus.COVERED)

    def is_covered(self, centers: Array, radii: Array, shrink: float = 0.0, effort: Effort | None = None) -> bool:
        """Whether the spheres (N, 3), (N,), each smaller by `shrink`, are proven to cover the shape.

        Without openings that the `effort` doesn't reach for; by default as much as a proof may take.
        """
        return len(self._search(centers, radii, shrink, 1, True, effort or Effort(_PROOF_EFFORT))[0]) == 0

    def covers_surface(self, centers: Array, radii: Array, shrink: float = 0.0) -> bool:
        """As `is_covered`, of the triangles and of voids, but not of the openings."""
        return len(self._search(centers, radii, shrink, 1, True, None)[0]) == 0

    def doubtful_points(
        self, centers: Array, radii: Array, shrink: float = 0.0, limit: int = 10_000, effort: Effort | None = None
    ) -> Array:
        """Points (D, 3) where the spheres, each smaller by `shrink`, are not proven to cover the shape.

        There are none exactly if the cover is proven. At most about `limit` points; once the effort is spent, only
        those that are points of the shape for sure.
        """
        effort = effort or Effort(_PROOF_EFFORT)
        found, certain, _ = self._search(centers, radii, shrink, limit, False, effort)
        return found[certain] if effort.is_spent else found

    def _search(
        self, centers: Array, radii: Array, shrink: float, limit: int, once: bool, effort: Effort | None
    ) -> tuple[Array, NDArray[np.bool_], int]:
        """Doubtful points (D, 3), which of them (D,) are points of the shape for sure, and pieces decided.

        With `once` the search ends with the first step of the proof that fails. Without an effort openings are left
        out.
        """
        gaps = np.maximum(self.bounds[0] - centers, centers - self.bounds[1])
        near = np.flatnonzero((gaps.max(axis=1) < radii) & (radii > shrink))
        balls = np.ascontiguousarray(centers[near] - self._origin)
        level = np.ascontiguousarray(radii[near] - shrink)
        # Far from the origin of their frame, coordinates themselves are rounded.
        size = max(self.diagonal, 1e-9 * float(np.abs(self._origin).max()))
        if len(near):
            size = max(size, float((np.abs(balls).max(axis=1) + radii[near]).max()))
        unit = _RESOLUTION * size
        pieces = len(self.triangles)
        found = bare_triangle_points(
            self._centered, balls, level - _SURFACE_LEVEL * unit, _DISC_TOLERANCE * size, limit
        )
        found += self._origin
        certain = np.ones(len(found), dtype=np.bool_)
        if once and len(found):
            return found, certain, pieces
        level -= _ARC_LEVEL * unit
        arcs, beyond, sure = bare_arcs(balls, level, size, unit)
        arcs += self._origin
        pieces += len(arcs)
        doubtful = np.flatnonzero(self._contains(arcs) | ~sure)[:limit]
        points = beyond[doubtful] + self._origin
        found, certain = np.concatenate([found, points]), np.concatenate([certain, self._contains(points)])
        if len(found) or effort is None:
            return found, certain, pieces
        for opening in self._openings:
            points, checked = opening.undecided_points(balls + self._origin, level, unit, limit, effort)
            pieces += checked
            if len(points):
                return points, opening.contains(points), pieces
        return found, certain, pieces

    def _contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (P, 3) are inside one of the meshes."""
        inside = np.zeros(len(points), dtype=np.bool_) if self._closed is None else self._closed.contains(points)
        for opening in self._openings:
            inside |= opening.contains(points)
        return inside
