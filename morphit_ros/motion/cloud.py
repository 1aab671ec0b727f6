"""A point cloud that a robot must not touch: how far a place is from it, in a fraction of a microsecond.

Space is cut into cells. Each knows how many cells away the nearest point is at least, which settles most questions;
where it does not, the points of the cells around are looked at, nearest cells first. Points that share a quarter of a
cell's edge are one ball that holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit, njit
from morphit_ros.robot.chain import Indices

# Edge of a cell, at least [m], and most cells.
_CELL, _CELLS = 0.02, 4_000_000
_PARTS = 4
_FAR = 250


class CloudArrays(NamedTuple):
    """Balls in cells, for kernels. A cloud of no points has no cells.

    Attributes:
        low: (3,) corner of the block of cells [m].
        size: edge of a cell [m].
        gaps: (X, Y, Z) how many cells away the nearest occupied cell is, along the axis along which it is farthest.
        slots: (X, Y, Z) row of an occupied cell, -1 of an empty one.
        starts: (C + 1,) where the balls of an occupied cell begin.
        centers, radii: (M, 3) and (M,) [m]; each centre is in its cell.
        largest: of the radii [m].
    """

    low: Array
    size: float
    gaps: NDArray[np.uint8]
    slots: NDArray[np.int32]
    starts: Indices
    centers: Array
    radii: Array
    largest: float


@dataclass(frozen=True)
class CloudObstacle:
    """Points that a robot must keep a distance from.

    Attributes:
        name: how answers call them.
        points: (N, 3) in the frame of the robot's root link [m]; those that are not finite are left out.
        radius: how far each point reaches, or each of them (N,) [m]: half of the spacing of the cloud closes its gaps.

    Raises:
        InvalidInputError: another shape, a negative or infinite radius, or points further than 1 km apart.
    """

    name: str
    points: Array
    radius: float | Array = 0.0

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InvalidInputError(f"points of '{self.name}'", points.shape, "shape (N, 3)")
        radii = np.asarray(self.radius, dtype=np.float64)
        if radii.shape not in ((), (len(points),)):
            raise InvalidInputError(f"radius of '{self.name}'", radii.shape, f"one, or one of each of {len(points)}")
        if not (np.isfinite(radii).all() and (radii >= 0.0).all()):
            raise InvalidInputError(f"radius of '{self.name}'", float(radii.flat[0]), "0 or more, finite [m]")
        points = np.ascontiguousarray(points)
        finite, low, high = _extent(points)
        if not finite:
            kept = np.isfinite(points).all(axis=1)
            points, radii = points[kept], radii[kept] if radii.shape else radii
            _, low, high = _extent(points)
        object.__setattr__(self, "radius", radii if radii.shape else float(radii))
        if len(points) and (high - low).max() > 1e3:
            bound = "at most 1000 m: is its unit the millimetre?"
            raise InvalidInputError(f"extent of '{self.name}'", f"{(high - low).max():.3g} m", bound)
        object.__setattr__(self, "points", points)

    def arrays(self) -> CloudArrays:
        """For kernels: some 60 ms for 300,000 points."""
        points = self.points
        if not len(points):
            nothing, none = np.zeros((0, 3)), np.zeros((0, 0, 0))
            return CloudArrays(
                np.zeros(3), _CELL, none.astype(np.uint8), none.astype(np.int32), np.zeros(1, np.int64), nothing,
                np.zeros(0), 0.0,
            )  # fmt: skip
        _, low, high = _extent(points)
        extent = high - low
        size = _CELL
        while np.prod(np.floor(extent / size) + 1.0) > _CELLS:
            size *= 1.26
        shape = np.floor(extent / size).astype(np.int64) + 1
        reaches = np.broadcast_to(np.asarray(self.radius), len(points))
        slots, starts, centers, radii = _filled(points, np.ascontiguousarray(reaches), low, size, shape)
        gaps = _gaps(slots)
        return CloudArrays(low, size, gaps, slots, starts, centers, radii, float(radii.max()))


@njit(cache=True, nogil=True)
def _extent(points: Array) -> tuple[bool, Array, Array]:
    """Whether points (N, 3) are finite, and if so their lowest and highest coordinates (3,)."""
    low, high, sums = np.full(3, np.inf), np.full(3, -np.inf), np.zeros(3)
    for row in range(len(points)):
        for c in range(3):
            value = points[row, c]
            # A product with nothing is something where the factor is infinite or none.
            sums[c] += 0.0 * value
            low[c] = min(low[c], value)
            high[c] = max(high[c], value)
    return sums[0] == 0.0 and sums[1] == 0.0 and sums[2] == 0.0, low, high


@njit(cache=True, nogil=True)
def _filled(
    points: Array, reaches: Array, low: Array, size: float, shape: Indices
) -> tuple[NDArray[np.int32], Indices, Array, Array]:
    """Occupied cells (X, Y, Z), where their balls begin, and these: one for the points of each part of a cell.

    A ball is about the mean of its points, as large as they need.
    """
    count, parts = len(points), _PARTS**3
    slots = np.full((shape[0], shape[1], shape[2]), -1, dtype=np.int32)
    keys = np.empty(count, dtype=np.int64)
    occupied, finest = 0, _PARTS / size
    for row in range(count):
        u = min(int((points[row, 0] - low[0]) * finest), _PARTS * shape[0] - 1)
        v = min(int((points[row, 1] - low[1]) * finest), _PARTS * shape[1] - 1)
        w = min(int((points[row, 2] - low[2]) * finest), _PARTS * shape[2] - 1)
        i, j, k = u // _PARTS, v // _PARTS, w // _PARTS
        slot = slots[i, j, k]
        if slot < 0:
            slot = occupied
            slots[i, j, k] = slot
            occupied += 1
        keys[row] = slot * parts + ((u % _PARTS) * _PARTS + v % _PARTS) * _PARTS + w % _PARTS
    members = np.zeros(occupied * parts, dtype=np.int32)
    for row in range(count):
        members[keys[row]] += 1
    starts = np.zeros(occupied + 1, dtype=np.int64)
    shares = np.empty(count)
    balls = 0
    for slot in range(occupied):
        for key in range(slot * parts, (slot + 1) * parts):
            if members[key] > 0:
                shares[balls] = members[key]
                members[key] = balls
                balls += 1
        starts[slot + 1] = balls
    centers, radii = np.zeros((balls, 3)), np.zeros(balls)
    for row in range(count):
        ball = members[keys[row]]
        keys[row] = ball
        for c in range(3):
            centers[ball, c] += points[row, c]
    for ball in range(balls):
        for c in range(3):
            centers[ball, c] /= shares[ball]
    for row in range(count):
        ball = keys[row]
        x = points[row, 0] - centers[ball, 0]
        y = points[row, 1] - centers[ball, 1]
        z = points[row, 2] - centers[ball, 2]
        radii[ball] = max(radii[ball], np.sqrt(x * x + y * y + z * z) + reaches[row])
    return slots, starts, centers, radii


@njit(cache=True, nogil=True)
def _gaps(slots: NDArray[np.int32]) -> NDArray[np.uint8]:
    """For each cell (X, Y, Z) how many cells away the nearest occupied one is, at most `_FAR`."""
    width, depth, height = slots.shape
    # A frame of far cells around, so that every cell has 26 neighbours.
    gaps = np.full((width + 2, depth + 2, height + 2), _FAR, dtype=np.uint8)
    for i in range(width):
        for j in range(depth):
            for k in range(height):
                gaps[i + 1, j + 1, k + 1] = _FAR if slots[i, j, k] < 0 else 0
    # A step to any of them counts the same: two sweeps, with those before and with those behind, find all.
    for i in range(1, width + 1):
        for j in range(1, depth + 1):
            _sweep(gaps[i, j], gaps[i - 1, j - 1], gaps[i - 1, j], gaps[i - 1, j + 1], gaps[i, j - 1])
            row = gaps[i, j]
            for k in range(1, height + 1):
                row[k] = min(row[k], row[k - 1] + 1)
    for i in range(width, 0, -1):
        for j in range(depth, 0, -1):
            _sweep(gaps[i, j], gaps[i + 1, j + 1], gaps[i + 1, j], gaps[i + 1, j - 1], gaps[i, j + 1])
            row = gaps[i, j]
            for k in range(height, 0, -1):
                row[k] = min(row[k], row[k + 1] + 1)
    return gaps[1:-1, 1:-1, 1:-1].copy()


@lean_njit
def _sweep(
    row: NDArray[np.uint8],
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    third: NDArray[np.uint8],
    fourth: NDArray[np.uint8],
) -> None:
    """Let a row of cells know of four rows beside it, in vector registers."""
    one = np.uint8(1)
    for k in range(1, len(row) - 1):
        least = first[k - 1]
        for other in (first, second, third, fourth):
            for step in (-1, 0, 1):
                value = other[k + step]
                least = value if value < least else least
        least = np.uint8(least + one)
        row[k] = least if least < row[k] else row[k]


@lean_njit
def cloud_far(cloud: CloudArrays, x: float, y: float, z: float, reach: float) -> bool:
    """Whether a place is known at once to be at least `reach` [m] from all of a cloud."""
    width, depth, height = cloud.gaps.shape
    if width == 0:
        return True
    u, v, w = (x - cloud.low[0]) / cloud.size, (y - cloud.low[1]) / cloud.size, (z - cloud.low[2]) / cloud.size
    # What is outside of the block is at least as far as the nearest place in it.
    i, j, k = min(max(int(u), 0), width - 1), min(max(int(v), 0), depth - 1), min(max(int(w), 0), height - 1)
    outside = max(-u, u - width, -v, v - depth, -w, w - height, 0.0)
    cells = max(float(cloud.gaps[i, j, k]) - 1.0, outside)
    return cells * cloud.size - cloud.largest >= reach


@lean_njit
def cloud_distance(cloud: CloudArrays, x: float, y: float, z: float, limit: float, enough: float) -> float:
    """Distance [m] of a place to the nearest ball, below zero inside of one; `limit` if none is nearer.

    The first that is found below `enough` is taken, nearest or not.
    """
    width, depth, height = cloud.gaps.shape
    if width == 0 or cloud_far(cloud, x, y, z, limit):
        return limit
    size = cloud.size
    u, v, w = (x - cloud.low[0]) / size, (y - cloud.low[1]) / size, (z - cloud.low[2]) / size
    i, j, k = min(max(int(u), 0), width - 1), min(max(int(v), 0), depth - 1), min(max(int(w), 0), height - 1)
    best = limit
    for shell in range(int(cloud.gaps[i, j, k]), max(width, depth, height)):
        # All that is left is at least so far from the place, or from the one in the block that is next to it.
        if (shell - 1) * size - cloud.largest >= best:
            break
        for a in range(max(i - shell, 0), min(i + shell + 1, width)):
            for b in range(max(j - shell, 0), min(j + shell + 1, depth)):
                face = abs(a - i) == shell or abs(b - j) == shell
                step = 1 if face or shell == 0 else 2 * shell
                for c in range(k - shell, k + shell + 1, step):
                    if c < 0 or c >= height:
                        continue
                    slot = cloud.slots[a, b, c]
                    if slot < 0:
                        continue
                    for m in range(cloud.starts[slot], cloud.starts[slot + 1]):
                        p, q, r = x - cloud.centers[m, 0], y - cloud.centers[m, 1], z - cloud.centers[m, 2]
                        distance = np.sqrt(p * p + q * q + r * r) - cloud.radii[m]
                        if distance < best:
                            best = distance
                            if best < enough:
                                return best
    return best
