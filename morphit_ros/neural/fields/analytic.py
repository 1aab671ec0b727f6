"""Shapes with a soft edge and known integrals: what learned fields and their inertia are tested against.

Across the surface the density falls from `peak` to zero by a smooth step over `edge`, half of it inside. As
φ(x) = peak · P(t > d(x)) for the signed distance d and a random offset t with the density 6 (1/4 − t²/edge²)/edge on
[−edge/2, edge/2], every integral over φ is the mean of that of the offset shapes: powers of (radius + t) suffice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.evaluation import checked_bounds, checked_points, checked_positive, in_parts


class AnalyticField(ABC):
    """Base of the shapes: a unit density and its gradient, scaled by `peak` and evaluated in parts."""

    peak: float

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        return in_parts(lambda part: self.peak * self._unit(part)[0], checked_points(points))

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points."""
        return in_parts(lambda part: self.peak * self._unit(part)[1], checked_points(points), 3)

    @abstractmethod
    def _unit(self, points: Array) -> tuple[Array, Array]:
        """Densities (N,) for a peak of one, and their gradients (N, 3)."""

    def _check_edge(self, name: str, smallest: float) -> None:
        checked_positive("peak", self.peak)
        checked_positive("edge", self.edge)  # type: ignore[attr-defined]
        edge = float(self.edge)  # type: ignore[attr-defined]
        if edge > smallest:
            raise InvalidInputError("edge", edge, f"at most {name}, {smallest:g} m", "Else the middle is not solid.")
        checked_bounds(self.bounds)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class SphereField(AnalyticField):
    """A ball around the origin: radius and width of the edge [m].

    Raises:
        InvalidInputError: a number that is not positive, or an edge wider than the radius.
    """

    radius: float
    edge: float = 0.001
    peak: float = 1.0

    def __post_init__(self) -> None:
        checked_positive("radius", self.radius)
        self._check_edge("the radius", self.radius)

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return _box(np.full(3, self.radius + 0.5 * self.edge))

    @property
    def integral(self) -> float:
        """Exact integral of the density [m^3]."""
        return self.peak * 4.0 / 3.0 * np.pi * _mean_power(self.radius, self.edge, 3)

    @property
    def second_moment(self) -> Array:
        """(3, 3) exact integral of density · x xᵀ [m^5]."""
        return self.peak * 4.0 / 15.0 * np.pi * _mean_power(self.radius, self.edge, 5) * np.eye(3)

    def _unit(self, points: Array) -> tuple[Array, Array]:
        distance, direction = _length(points)
        value, slope = _soft_step(distance - self.radius, self.edge)
        return value, slope[:, None] * direction


@dataclass(frozen=True)
class EllipsoidField(AnalyticField):
    """An ellipsoid around the origin: semi-axes [m] along x, y, z; `edge` [m] is its width at the mean semi-axis.

    It is a soft ball that was stretched, so the edge is wider along longer axes.

    Raises:
        InvalidInputError: a number that is not positive, or an edge wider than the mean semi-axis.
    """

    semi_axes: tuple[float, float, float]
    edge: float = 0.001
    peak: float = 1.0

    def __post_init__(self) -> None:
        checked_positive("semi_axes", self.semi_axes, (3,))
        self._check_edge("the mean semi-axis", float(np.mean(self.semi_axes)))

    @property
    def _relative_edge(self) -> float:
        return self.edge / float(np.mean(self.semi_axes))

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return _box(np.asarray(self.semi_axes) * (1.0 + 0.5 * self._relative_edge))

    @property
    def integral(self) -> float:
        """Exact integral of the density [m^3]."""
        return self.peak * 4.0 / 3.0 * np.pi * float(np.prod(self.semi_axes)) * _mean_power(1.0, self._relative_edge, 3)

    @property
    def second_moment(self) -> Array:
        """(3, 3) exact integral of density · x xᵀ [m^5]."""
        axes = np.asarray(self.semi_axes)
        scale = self.peak * 4.0 / 15.0 * np.pi * np.prod(axes) * _mean_power(1.0, self._relative_edge, 5)
        return np.diag(scale * axes**2)

    def _unit(self, points: Array) -> tuple[Array, Array]:
        axes = np.asarray(self.semi_axes)
        distance, direction = _length(points / axes)
        value, slope = _soft_step(distance - 1.0, self._relative_edge)
        return value, slope[:, None] * direction / axes


@dataclass(frozen=True)
class BoxField(AnalyticField):
    """A box around the origin with edge lengths `size` [m]: the product of three soft slabs.

    Raises:
        InvalidInputError: a number that is not positive, or an edge wider than half the shortest side.
    """

    size: tuple[float, float, float]
    edge: float = 0.001
    peak: float = 1.0

    def __post_init__(self) -> None:
        checked_positive("size", self.size, (3,))
        self._check_edge("half the shortest side", 0.5 * float(min(self.size)))

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return _box(0.5 * (np.asarray(self.size) + self.edge))

    @property
    def integral(self) -> float:
        """Exact integral of the density [m^3]."""
        return self.peak * float(np.prod(self.size))

    @property
    def second_moment(self) -> Array:
        """(3, 3) exact integral of density · x xᵀ [m^5]."""
        half = 0.5 * np.asarray(self.size)
        squares = np.array([2.0 / 3.0 * _mean_power(length, self.edge, 3) / (2.0 * length) for length in half])
        return np.diag(self.integral * squares)

    def _unit(self, points: Array) -> tuple[Array, Array]:
        value, slope = _soft_step(np.abs(points) - 0.5 * np.asarray(self.size), self.edge)
        x, y, z = value.T
        gradient = slope * np.sign(points) * np.stack([y * z, x * z, x * y], axis=1)
        return x * y * z, gradient


@dataclass(frozen=True)
class CylinderField(AnalyticField):
    """A cylinder about z around the origin: radius and height [m], a soft disc times a soft slab.

    Raises:
        InvalidInputError: a number that is not positive, or an edge wider than the radius or half the height.
    """

    radius: float
    height: float
    edge: float = 0.001
    peak: float = 1.0

    def __post_init__(self) -> None:
        checked_positive("radius", self.radius)
        checked_positive("height", self.height)
        self._check_edge("the radius and half the height", min(self.radius, 0.5 * self.height))

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return _box(np.array([self.radius, self.radius, 0.5 * self.height]) + 0.5 * self.edge)

    @property
    def integral(self) -> float:
        """Exact integral of the density [m^3]."""
        return self.peak * np.pi * _mean_power(self.radius, self.edge, 2) * self.height

    @property
    def second_moment(self) -> Array:
        """(3, 3) exact integral of density · x xᵀ [m^5]."""
        across = 0.25 * np.pi * _mean_power(self.radius, self.edge, 4) * self.height
        along = (
            np.pi * _mean_power(self.radius, self.edge, 2) * 2.0 / 3.0 * _mean_power(0.5 * self.height, self.edge, 3)
        )
        return self.peak * np.diag([across, across, along])

    def _unit(self, points: Array) -> tuple[Array, Array]:
        distance, direction = _length(points * [1.0, 1.0, 0.0])
        disc, disc_slope = _soft_step(distance - self.radius, self.edge)
        slab, slab_slope = _soft_step(np.abs(points[:, 2]) - 0.5 * self.height, self.edge)
        gradient = (slab * disc_slope)[:, None] * direction
        gradient[:, 2] += disc * slab_slope * np.sign(points[:, 2])
        return disc * slab, gradient


@dataclass(frozen=True)
class CapsuleField(AnalyticField):
    """A capsule about z around the origin: radius, and length of its segment [m] (the height less two radii).

    Raises:
        InvalidInputError: a number that is not positive, or an edge wider than the radius.
    """

    radius: float
    length: float
    edge: float = 0.001
    peak: float = 1.0

    def __post_init__(self) -> None:
        checked_positive("radius", self.radius)
        checked_positive("length", self.length)
        self._check_edge("the radius", self.radius)

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return _box(np.array([0.0, 0.0, 0.5 * self.length]) + self.radius + 0.5 * self.edge)

    @property
    def integral(self) -> float:
        """Exact integral of the density [m^3]."""
        second, third = (_mean_power(self.radius, self.edge, power) for power in (2, 3))
        return self.peak * np.pi * (self.length * second + 4.0 / 3.0 * third)

    @property
    def second_moment(self) -> Array:
        """(3, 3) exact integral of density · x xᵀ [m^5]."""
        half = 0.5 * self.length
        second, third, fourth, fifth = (_mean_power(self.radius, self.edge, power) for power in (2, 3, 4, 5))
        across = 0.5 * half * fourth + 4.0 / 15.0 * fifth
        along = 2.0 / 3.0 * half**3 * second + 4.0 / 3.0 * half**2 * third + half * fourth + 4.0 / 15.0 * fifth
        return self.peak * np.pi * np.diag([across, across, along])

    def _unit(self, points: Array) -> tuple[Array, Array]:
        offset = points.copy()
        offset[:, 2] -= np.clip(points[:, 2], -0.5 * self.length, 0.5 * self.length)
        distance, direction = _length(offset)
        value, slope = _soft_step(distance - self.radius, self.edge)
        return value, slope[:, None] * direction


def _box(half: Array) -> Array:
    return np.stack([-half, half])


def _length(vectors: Array) -> tuple[Array, Array]:
    """Lengths (N,) and unit vectors (N, 3), zero where the length is."""
    lengths = np.linalg.norm(vectors, axis=1)
    return lengths, vectors / np.maximum(lengths, 1e-300)[:, None]


def _soft_step(distance: Array, edge: float) -> tuple[Array, Array]:
    """One inside (distance < 0), zero outside, a cubic between; and its derivative [1/m]."""
    u = np.clip(distance / edge + 0.5, 0.0, 1.0)
    return 1.0 - u * u * (3.0 - 2.0 * u), -6.0 * u * (1.0 - u) / edge


def _mean_power(radius: float, edge: float, power: int) -> float:
    """Mean of (radius + t)^power over the offsets t of a soft edge."""
    second, fourth = edge**2 / 20.0, 3.0 * edge**4 / 560.0
    means: dict[int, Any] = {
        2: radius**2 + second,
        3: radius**3 + 3.0 * radius * second,
        4: radius**4 + 6.0 * radius**2 * second + fourth,
        5: radius**5 + 10.0 * radius**3 * second + 5.0 * radius * fourth,
    }
    return float(means[power])
