"""A density field as a shape that other bodies' points touch: a grid of signed distances to its level set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact import gaps
from morphit_ros.neural.field import DensityField

# Around the field's bounds, in cells and in diagonals of the bounds: points feel a shape 16 indicator widths off.
_MARGIN_CELLS = 2
_MARGIN_SHARE = 0.06
_MOST_NODES = 20_000_000
_HALVINGS = 20


@dataclass(frozen=True)
class DensityShape:
    """All where a density is above a threshold, as signed distances between nodes by cubic splines.

    Two densities overlap by the points of each in the other (ψ = Σ φ_A φ_B over both point sets): give both bodies
    such a shape.

    Attributes:
        distances: (X, Y, Z) at the nodes [m], negative inside.
        origin: (3,) of node (0, 0, 0) in the body's frame [m].
        spacing: of the nodes [m].

    Raises:
        InvalidInputError: fewer than six nodes along an axis, values that are not finite, nothing inside, or an inside
            that touches the border.
    """

    distances: Array
    origin: Array
    spacing: float
    kind: int = field(default=gaps.GRID, init=False, repr=False)

    def __post_init__(self) -> None:
        distances, origin = np.array(self.distances, dtype=np.float64), np.array(self.origin, dtype=np.float64)
        if distances.ndim != 3 or min(distances.shape) < 6 or not np.isfinite(distances).all():
            raise InvalidInputError("distances", f"shape {distances.shape}", "a finite grid with six nodes a side")
        if origin.shape != (3,) or not np.isfinite(origin).all():
            raise InvalidInputError("origin", origin.tolist(), "three finite numbers [m]")
        if not (math.isfinite(self.spacing) and self.spacing > 0.0):
            raise InvalidInputError("spacing", self.spacing, "a positive number [m]")
        if distances.min() >= 0.0 or _border(distances) <= 0.0:
            raise InvalidInputError(
                "distances", f"{distances.min():g} m inside and {_border(distances):g} m on the border",
                "an inside (negative) that doesn't touch the border",
            )  # fmt: skip
        object.__setattr__(self, "distances", distances)
        object.__setattr__(self, "origin", origin)

    @classmethod
    def from_field(
        cls, density: DensityField, threshold: float, spacing: float, center_of_mass: ArrayLike = (0.0, 0.0, 0.0)
    ) -> DensityShape:
        """The level set of a field, in the frame of a body whose centre of mass is there in the field's frame.

        Args:
            density: the field.
            threshold: what is inside.
            spacing: of the nodes [m]; a fiftieth of the size is enough.
            center_of_mass: (3,) in the field's frame [m].

        Raises:
            InvalidInputError: nothing above the threshold, too many nodes, or a centre that is no point.
        """
        center = np.asarray(center_of_mass, dtype=np.float64)
        if center.shape != (3,) or not np.isfinite(center).all():
            raise InvalidInputError("center_of_mass", center.tolist(), "three finite numbers [m]")
        if not (math.isfinite(spacing) and spacing > 0.0):
            raise InvalidInputError("spacing", spacing, "a positive number [m]")
        bounds = np.asarray(density.bounds, dtype=np.float64)
        edges = np.ptp(bounds, axis=0)
        margin = _MARGIN_CELLS + math.ceil(_MARGIN_SHARE * float(np.linalg.norm(edges)) / spacing)
        origin = bounds[0] - margin * spacing
        counts = np.ceil(edges / spacing).astype(int) + 2 * margin + 1
        if counts.prod() > _MOST_NODES:
            raise InvalidInputError(
                "spacing", f"{spacing:g} m, {counts.prod()} nodes", f"at most {_MOST_NODES}", "Take a coarser grid."
            )
        nodes = (
            np.stack(np.meshgrid(*[np.arange(count) for count in counts], indexing="ij"), axis=-1) * spacing + origin
        )
        values = density.density(nodes.reshape(-1, 3)).reshape(tuple(counts)) - threshold
        surface, normals = _surface(density, threshold, values, origin, spacing)
        distances = _distances(nodes.reshape(-1, 3), surface, normals, 1.5 * spacing).reshape(values.shape)
        distances = np.where(values >= 0.0, -np.abs(distances), np.abs(distances))
        return cls(distances, origin - center, spacing)

    def numbers(self) -> Array:
        """Origin, spacing, counts, least distance on the border, coefficients of the spline."""
        from scipy.ndimage import spline_filter

        coefficients = spline_filter(self.distances, order=3, mode="mirror")
        inner = self.distances[1:-1, 1:-1, 1:-1]
        return np.concatenate(
            [self.origin, [self.spacing], self.distances.shape, [_border(inner)], coefficients.ravel()]
        )


def _border(values: Array) -> float:
    """The least value on the six sides of a grid."""
    return float(min(min(values.take(0, axis).min(), values.take(-1, axis).min()) for axis in range(3)))


def _surface(
    density: DensityField, threshold: float, values: Array, origin: Array, spacing: float
) -> tuple[Array, Array]:
    """Where the edges of a grid cross the level set (N, 3), and outward normals there (N, 3)."""
    inside, outside = [], []
    for axis in range(3):
        low, high = (np.take(values, range(k, values.shape[axis] - 1 + k), axis) >= 0.0 for k in (0, 1))
        at = np.argwhere(low != high)
        ends = np.stack([at, at + np.eye(3, dtype=int)[axis]], axis=1) * spacing + origin
        first = low[tuple(at.T)]
        inside.append(np.where(first[:, None], ends[:, 0], ends[:, 1]))
        outside.append(np.where(first[:, None], ends[:, 1], ends[:, 0]))
    near, far = np.concatenate(inside).astype(np.float64), np.concatenate(outside).astype(np.float64)
    if len(near) == 0:
        raise InvalidInputError(
            "threshold", "a level that the density doesn't cross", "a value between the field's least and largest"
        )
    # A field may fall off within much less than a cell.
    for _ in range(_HALVINGS):
        surface: Array = np.multiply(0.5, near + far)
        within = (density.density(surface) >= threshold)[:, None]
        near, far = np.where(within, surface, near), np.where(within, far, surface)
    gradient = density.gradient(surface)
    lengths = np.linalg.norm(gradient, axis=1)
    known = lengths > 1e-12
    if not known.any():
        raise InvalidInputError("density", "a gradient of zero on the level set", "a field that falls off there")
    return surface[known], -gradient[known] / lengths[known, None]


def _distances(nodes: Array, surface: Array, normals: Array, near: float) -> Array:
    """Signed distances (N,) to a surface of points: to its nearest point's plane when near, else to that point."""
    from scipy.spatial import cKDTree

    far, nearest = cKDTree(surface).query(nodes)
    plane = np.einsum("ij,ij->i", nodes - surface[nearest], normals[nearest])
    share = np.clip((far - near) / near, 0.0, 1.0)
    return (1.0 - share) * plane + share * np.copysign(far, plane)
