"""A box that stands on a table, as it is seen, and the pushes on its sides that bring it somewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Headings that are tried, and the share of points beyond each face that are no part of the box: noise.
_HEADINGS, _BEYOND = 180, 0.005
# Points that headings are tried with.
_MOST = 2000
# Fewer points are no object.
_LEAST = 20


@dataclass(frozen=True, eq=False)
class StandingBox:
    """An upright box.

    Attributes:
        center: (2,) of its foot [m].
        heading: of its first side about the vertical [rad].
        size: (3,) along the first side, across and up [m].
    """

    center: Array
    heading: float
    size: Array

    @classmethod
    def around(cls, points: Array) -> StandingBox:
        """The upright box of least foot around points (N, 3) above a table at z = 0 [m].

        Raises:
            InvalidInputError: hardly any points, or points that are not finite.
        """
        if len(points) < _LEAST or not np.isfinite(points).all():
            raise InvalidInputError("object", f"{len(points)} points", f"{_LEAST} finite ones or more")
        thin = points[:: -(-len(points) // _MOST), :2]
        headings = np.linspace(0.0, 0.5 * np.pi, _HEADINGS, endpoint=False)
        along = np.column_stack([np.cos(headings), np.sin(headings)])
        across = np.column_stack([-along[:, 1], along[:, 0]])
        reach = np.array([np.quantile(thin @ axes.T, (_BEYOND, 1.0 - _BEYOND), axis=0) for axes in (along, across)])
        best = int(np.prod(reach[:, 1] - reach[:, 0], axis=0).argmin())
        low, high = reach[:, 0, best], reach[:, 1, best]
        center = np.array([along[best], across[best]]).T @ (0.5 * (low + high))
        height = float(np.quantile(points[:, 2], 1.0 - _BEYOND))
        return cls(center, float(headings[best]), np.array([*(high - low), height]))

    def facing(self, way: Array) -> StandingBox:
        """The same box, its first side turned by quarter turns to lie along a way (2,) as nearly as can be."""
        quarters = round(float(np.arctan2(way[1], way[0]) - self.heading) / (0.5 * np.pi))
        size = self.size[[1, 0, 2]] if quarters % 2 else self.size
        return StandingBox(self.center, self.heading + quarters * 0.5 * np.pi, size)

    def ways_to(self, goal: Array, least: float, most: float) -> list[Array]:
        """Ways (2,) along its sides that bring it nearer to a place (2,), the longest first; none from there [m].

        Args:
            least: what is shorter is left out.
            most: of one way.
        """
        axes = np.array([[np.cos(self.heading), np.sin(self.heading)], [-np.sin(self.heading), np.cos(self.heading)]])
        parts = axes @ (goal - self.center)
        order = np.argsort(-np.abs(parts))
        return [np.clip(parts[k], -most, most) * axes[k] for k in order if abs(parts[k]) >= least]

    def pushed(self, way: Array, config: ContactPushConfig) -> ContactPushConfig:
        """A push over a way (2,) along one of its sides, all else as in a configuration.

        Raises:
            InvalidInputError: a box that is too small or too large to be pushed.
        """
        size = tuple(self.facing(way).size.tolist())
        return replace(
            config, object="box", size=size, start=tuple(self.center.tolist()), way=tuple(np.asarray(way).tolist())
        )

    def near(self, others: Array, margin: float) -> NDArray[np.bool_]:
        """Which of points (N, 3) are in the box, or beside or above it by no more than a margin [m]."""
        turn = np.array([[np.cos(self.heading), np.sin(self.heading)], [-np.sin(self.heading), np.cos(self.heading)]])
        local = np.abs((others[:, :2] - self.center) @ turn.T)
        beside: NDArray[np.bool_] = (local <= 0.5 * self.size[:2] + margin).all(axis=1)
        return beside & (others[:, 2] <= self.size[2] + margin)

    def in_the_way(self, way: Array, others: Array, behind: float, beside: float) -> Array:
        """Points (M, 3) of others (N, 3) that are met when it is pushed over a way (2,) [m].

        Args:
            behind: room that the hand needs behind the box.
            beside: half the breadth of the hand.
        """
        length = float(np.hypot(*way))
        ahead, size = way / length, self.facing(way).size
        from_center = others[:, :2] - self.center
        along, aside = from_center @ ahead, np.abs(from_center @ [-ahead[1], ahead[0]])
        free = max(0.5 * size[1], beside)
        met: Array = others[(along > -0.5 * size[0] - behind) & (along < 0.5 * size[0] + length) & (aside < free)]
        return met
