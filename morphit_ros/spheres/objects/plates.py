"""The plates of a morphing cover as spheres of the robot that wears it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Name of the cover among the attached objects: it is worn for good, and no hand took it.
COVER = "cover"
# Speeds are not taken from states that came closer together [s]; the most that spheres are larger for, in tolerances: a
# jump is no speed.
_SHORTEST_GAP, _MOST_AHEAD = 0.02, 10.0


def plate_spheres(
    positions: ArrayLike, rotations: ArrayLike, pitch: float, per_side: int, thickness: float, margin: float = 0.0
) -> tuple[Array, Array]:
    """Spheres that contain square plates.

    Each plate is cut into ``per_side`` times ``per_side`` squares, and each of them gets the sphere around it.

    Args:
        positions, rotations: (N, 3) [m], (N, 3, 3) of the plates in some frame; z is the normal.
        pitch: side of a plate [m]; neighbours meet there.
        per_side: squares along a side.
        thickness: of a plate [m].
        margin: added to the radii [m], for plates that may move by as much.

    Returns:
        Centres (N · per_side², 3) and radii [m], plate by plate.

    Raises:
        InvalidInputError: as of `_points`.
    """
    cell = pitch / per_side
    places = cell * (np.arange(per_side) + 0.5) - 0.5 * pitch
    centers = _points(positions, rotations, places, [0.0])
    radius = float(np.linalg.norm([0.5 * cell, 0.5 * cell, 0.5 * thickness])) + margin
    return centers, np.full(len(centers), radius)


def plate_corners(positions: ArrayLike, rotations: ArrayLike, pitch: float, thickness: float) -> Array:
    """The corners (8 N, 3) of plates [m]: none of their points moves farther than one of these.

    Raises:
        InvalidInputError: as of `_points`.
    """
    return _points(positions, rotations, [-0.5 * pitch, 0.5 * pitch], [-0.5 * thickness, 0.5 * thickness])


class PlateFollower:
    """When the spheres of moving plates are to be made anew, and how much larger, so that they contain them meanwhile.

    Spheres are larger by the tolerance, and by what the fastest corner goes in a period. They are made anew once a
    corner is about to have moved by more than the tolerance, once a period at most; earlier where one is about to leave
    them, for plates that move faster than before; and where they are larger than they have to be, for slower ones.

    Args:
        tolerance: [m].
        period: [s].
    """

    def __init__(self, tolerance: float, period: float) -> None:
        self._tolerance, self._period = tolerance, period
        self.forget()

    def forget(self) -> None:
        """Other plates come next."""
        # Of the spheres that are known: corners, margin, and when; the states that speeds are taken from.
        self._known: tuple[Array, float, float] | None = None
        self._seen: tuple[Array, float] | None = None

    def margin(self, corners: Array, now: float) -> float | None:
        """By how much larger the spheres of these plates are to be [m]; None where the known ones do.

        Args:
            corners: (8 N, 3) of the plates now, as of `plate_corners` [m].
            now: monotonic [s].
        """
        if self._seen is not None and self._seen[0].shape != corners.shape:
            self.forget()
        if self._seen is None:
            self._seen = corners, now
        gap = now - self._seen[1]
        step = _farthest(corners, self._seen[0])
        speed = step / max(gap, _SHORTEST_GAP)
        if gap >= _SHORTEST_GAP:
            self._seen = corners, now
        needed = self._tolerance + min(speed * self._period, _MOST_AHEAD * self._tolerance)
        if self._known is None:
            return needed
        known, margin, since = self._known
        # Until the next state.
        soon = _farthest(corners, known) + min(step, speed * self._period)
        if now - since < self._period:
            return needed if soon > margin else None
        return needed if soon > self._tolerance or margin - needed > self._tolerance else None

    def made(self, corners: Array, margin: float, now: float) -> None:
        """The known spheres are those of these corners, larger by a margin."""
        self._known = corners, margin, now


def _farthest(corners: Array, others: Array) -> float:
    return float(np.linalg.norm(corners - others, axis=1).max(initial=0.0))


def _points(positions: ArrayLike, rotations: ArrayLike, along: ArrayLike, above: ArrayLike) -> Array:
    """Points of each plate at all pairs of places along its sides, at heights above its middle [m].

    Raises:
        InvalidInputError: positions or rotations of another shape or that are not finite.
    """
    centers, turns = np.asarray(positions, dtype=np.float64), np.asarray(rotations, dtype=np.float64)
    if centers.ndim != 2 or centers.shape[1:] != (3,) or turns.shape != (len(centers), 3, 3):
        raise InvalidInputError("plates", f"shapes {centers.shape}, {turns.shape}", "(N, 3) and (N, 3, 3)")
    if not (np.isfinite(centers).all() and np.isfinite(turns).all()):
        raise InvalidInputError("plates", "positions or rotations that are not finite", "finite numbers")
    offsets = np.stack(np.meshgrid(along, along, above, indexing="ij"), axis=-1).reshape(-1, 3)
    return (centers[:, None] + np.einsum("nij,sj->nsi", turns, offsets)).reshape(-1, 3)
