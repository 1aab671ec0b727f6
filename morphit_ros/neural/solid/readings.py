"""Filled or hollow: what an object may be whose inside no camera saw, and how likely either is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.visibility import combined_moments

if TYPE_CHECKING:
    from morphit_ros.neural.solid.extraction import Solid

# Of the 22 objects that this was made with (YCB, printed and own ones), 6 are vessels.
_PRIOR = 6.0 / 22.0
# Of solid objects this share of the seen surface has another one close behind it in the mean (0 to 1 % of seven); of
# vessels any share does, or, in every second case that leaves the inside unseen, no more than of solid ones.
_OF_SOLID, _SHOWN = 1.0 / 60.0, 0.5
# Two sides closer than this share of the size are a wall.
_WALL = 0.05
_OPPOSED = -0.7
# A wall of which no part was seen on both sides [m]: the geometric mean of 1 and 4 mm.
_USUAL = 2e-3
# Readings are given where an opening with this radius, as a share of the size, may be hidden where no camera saw the
# surface (six views around a ball leave gaps of 0.10; mouths of cups and bowls have 0.25 to 0.5), and where they differ
# by this share of the volume.
_LEAST_OPENING, _LEAST_VOLUME = 0.15, 0.05
# Walls differ from place to place: as thick as most of them.
_THICK = 0.9
_POINTS = 60_000


class Reading(NamedTuple):
    """One of the bodies that the views allow.

    Attributes:
        name: "filled": what no camera saw is full; "hollow": it is empty, but for a wall along the surface that was
            seen.
        likelihood: of this reading among those given, in [0, 1].
        moments: of this body.
        wall: thickness that was taken for the wall [m]; zero of the filled one.
    """

    name: str
    likelihood: float
    moments: VolumeMoments
    wall: float


def solid_readings(solid: Solid, points: Array, normals: Array, seen: NDArray[np.bool_]) -> tuple[Reading, ...]:
    """Both readings of a solid, or none where they hardly differ, or nothing as wide as an opening is unseen.

    Args:
        solid: as it was learned, filled.
        points, normals: (N, 3) of its surface, evenly.
        seen: (N,) whether a camera saw them.
    """
    if not seen.any() or seen.all():
        return ()
    around = cKDTree(points[seen])
    if float(around.query(points[~seen])[0].max()) < _LEAST_OPENING * solid.size:
        return ()
    share, wall = _walls(solid, points[seen], normals[seen])
    low, high = solid.surface.bounds
    places = np.random.default_rng(0).uniform(low, high, size=(_POINTS, 3))
    places = places[solid.contains(places)]
    if len(places) == 0:
        return ()
    distance, nearest = around.query(places)
    # Samples lie apart: next to one, a place is as far from the surface as from its plane.
    depth = ((points[seen][nearest] - places) * normals[seen][nearest]).sum(axis=1)
    apart = 2.0 * float(np.sqrt(solid.surface.area / len(points)))
    hollow = places[np.where(distance < apart, depth, distance) > wall]
    if len(hollow) < _LEAST_VOLUME * len(places):
        return ()
    emptied = combined_moments(solid.moments, hollow, -solid.volume / len(places))
    if emptied.volume <= 0.0:
        return ()
    likely = _hollow_likelihood(share)
    return (
        Reading("filled", 1.0 - likely, solid.moments, 0.0),
        Reading("hollow", likely, emptied, wall),
    )


def _walls(solid: Solid, points: Array, normals: Array) -> tuple[float, float]:
    """Share of the seen surface with another seen one close behind it, and how thick such walls are [m]."""
    most = _WALL * solid.size
    tree = cKDTree(points)
    # Samples are so far apart.
    apart = float(np.sqrt(solid.surface.area / max(len(points), 1)))
    thickness = []
    for index, others in enumerate(tree.query_ball_point(points, np.hypot(most, 1.5 * apart))):
        behind = np.array(others)[normals[others] @ normals[index] < _OPPOSED]
        offsets = points[index] - points[behind]
        depths = offsets @ normals[index]
        beside = np.linalg.norm(offsets - depths[:, None] * normals[index], axis=1) < 1.5 * apart
        found = depths[beside & (depths > 0.0) & (depths < most)]
        if len(found):
            thickness.append(float(np.median(found)))
    if not thickness:
        return 0.0, _USUAL
    return len(thickness) / len(points), float(np.quantile(thickness, _THICK))


def _hollow_likelihood(share: float) -> float:
    """Of an object of whose seen surface this share has another one close behind it, by Bayes' rule.

    Shares of solid objects have the density (a + 1)(1 − s)^a with the mean 1 / (a + 2); those of vessels that show
    their walls are even in [0, 1].
    """
    power = 1.0 / _OF_SOLID - 2.0
    of_solid = (power + 1.0) * (1.0 - share) ** power
    of_hollow = _SHOWN + (1.0 - _SHOWN) * of_solid
    return float(_PRIOR * of_hollow / (_PRIOR * of_hollow + (1.0 - _PRIOR) * of_solid))
