"""What a recorded object stood on: a plane in its cloud, or the base of an object that was cut out of its surroundings.

No camera saw the side that an object stands on. Frames of tables, robots and hands have an upright z axis, so up is
looked for along z and against it. Two things tell which: from above every point of the cloud can have been seen, also
those inside a cup; and a view from above meets outer sides only, whereas a view through the open base meets the insides
of the seen surfaces. Where neither tells, as with a cloud of the whole surface or of a plate's upper face alone,
nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.normals import MIN_PLANE_POINTS
from morphit_ros.geometry.outward_normals import estimate_outward_normals, normals_point_outwards
from morphit_ros.geometry.plane_fit import find_plane
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.thinning import point_spacing, thin_evenly
from morphit_ros.geometry.transforms import Array, make_transform, plane_axes
from morphit_ros.geometry.visibility import look_from, seen_share

# Of a thin wall's two sides the far one is this much behind the near one at least [m].
_WALL = 0.0012
# Cameras on the wrong side could not have seen so many times, and by such a share, more of the points.
_HIDDEN_MORE, _HIDDEN_LEAST = 1.8, 0.04
# A view from the right side meets by such a share more outer sides.
_OUTER_MORE = 0.1
# Flatter things than this, height over width, may be bowls or trays.
_LOW = 0.5
# The lowest of so many points is the base; a few below it are noise.
_LOWEST = 0.005
# Tables in the cloud: points so near to the plane are its own [m], trials of the search, points of a thing; points
# below the plane, of the table's edge, as a share of the plane's; things further apart than a cell are two [m]; in most
# of so many directions the table is seen so far beyond the thing [m].
_THICK, _TRIALS, _FEWEST, _BELOW, _GAP, _SECTORS, _MARGIN = 0.005, 300, 30, 0.2, 0.012, 8, 0.03
# Points that are looked at.
_THINNED = 4000


@dataclass(frozen=True)
class FoundSupport:
    """What an object stands on.

    Attributes:
        plane: in the frame of the cloud.
        how: how it was found, for people.
    """

    plane: SupportPlane
    how: str

    @property
    def up(self) -> Array:
        """(3,) unit vector away from the plane."""
        return self.plane.T_world_table[:3, 2]


def find_support(cloud: PointCloud, viewpoints: ArrayLike | None = None, seed: int = 0) -> FoundSupport | None:
    """The plane under an object's cloud with an upright z axis (either way); None where it does not show.

    Args:
        cloud: of the object alone, as cameras above its support saw it [m].
        viewpoints: (K, 3) positions of the cameras, where they are known: they are above what the object stands on [m].
        seed: of the thinning.

    Raises:
        InvalidInputError: fewer than four finite points.
    """
    cloud = cloud.finite()
    _check_count(cloud)
    axis = np.array([0.0, 0.0, 1.0])
    if viewpoints is not None:
        above = (np.asarray(viewpoints, dtype=np.float64).reshape(-1, 3) - cloud.points.mean(axis=0)) @ axis
        for up in (axis, -axis):
            if (above * up[2] > 0.0).all():
                return FoundSupport(base_plane(cloud, up), "the cameras are above it")
    rng = np.random.default_rng(seed)
    rows = thin_evenly(cloud.points, None, _THINNED, rng)
    points, normals = cloud.points[rows], _outward_normals(cloud, rows)
    spacing = point_spacing(points)
    hidden = [max(1.0 - seen_share(points, normals, up, 1.2 * spacing, _WALL), 0.01) for up in (axis, -axis)]
    if max(hidden) > _HIDDEN_MORE * min(hidden) and abs(hidden[0] - hidden[1]) > _HIDDEN_LEAST:
        up = axis if hidden[0] < hidden[1] else -axis
        return FoundSupport(base_plane(cloud, up), "parts of the object show from that side only")
    fronts = look_from(points, normals, np.stack([axis, -axis]), 1.6 * spacing).fronts
    up = axis if fronts[0] > fronts[1] else -axis
    # What is open on one side is a solid thing, seen from the other side, or a bowl, seen into. Only low bowls show no
    # outside to cameras that see their inside; upside down is the rarer frame.
    bowl = up[2] < 0.0 and _flatness(points) < _LOW
    if abs(fronts[0] - fronts[1]) < _OUTER_MORE or bowl:
        return None
    return FoundSupport(base_plane(cloud, up), "the cloud is open at its base")


class Separated(NamedTuple):
    """A cloud of a table and what stands on it, taken apart.

    Attributes:
        target: the largest thing on the table.
        others: (M, 3) points of the other things [m].
        support: the table.
    """

    target: PointCloud
    others: Array
    support: FoundSupport


def separate_table(cloud: PointCloud, seed: int = 0) -> Separated | None:
    """Take a table away from under what stands on it; None where the cloud has no table in it.

    A table is a plane with all else on one side of it, and it goes on around the things on it: the top of a box has all
    else on one side, too.

    Args:
        cloud: finite points [m].
        seed: of the search for the plane.
    """
    rng = np.random.default_rng(seed)
    plane = find_plane(cloud.points, np.zeros(3), _THICK, _TRIALS, rng)
    if plane is None:
        return None
    for sign in (1.0, -1.0):
        up, heights = sign * plane.normal, sign * (cloud.points @ plane.normal - plane.offset)
        things = heights > _THICK
        if things.sum() < _FEWEST or (heights < -_THICK).sum() > _BELOW * len(plane.points):
            continue
        labels = _parts(cloud.points[things])
        largest = np.flatnonzero(things)[labels == np.bincount(labels).argmax()]
        axes = plane_axes(up)
        if len(largest) < _FEWEST or not _goes_around(plane.points @ axes.T, cloud.points[largest] @ axes.T):
            continue
        others = things.copy()
        others[largest] = False
        table = plane_at(up, sign * plane.offset, cloud.points[largest].mean(axis=0))
        return Separated(cloud.select(largest), cloud.points[others], FoundSupport(table, "a plane in the cloud"))
    return None


def _parts(points: Array) -> NDArray[np.int64]:
    """(N,) which connected part each point belongs to; gaps of a cell and less don't part."""
    cells = ((points - points.min(axis=0)) / _GAP).astype(np.int64)
    occupied = np.zeros(cells.max(axis=0) + 1, dtype=np.bool_)
    occupied[tuple(cells.T)] = True
    numbers: NDArray[np.int64] = ndimage.label(occupied, np.ones((3, 3, 3)))[0][tuple(cells.T)]
    return numbers


def _goes_around(table: Array, thing: Array) -> bool:
    """Whether a plane's points (M, 2) are found beyond a thing's (N, 2) in most directions; cameras leave shadows."""
    middle = thing.mean(axis=0)
    offsets, reach = table - middle, thing - middle
    angles = np.arange(_SECTORS) * 2.0 * np.pi / _SECTORS
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    along = offsets @ directions.T
    across = np.abs(offsets @ np.stack([-np.sin(angles), np.cos(angles)]))
    beyond = (along > (reach @ directions.T).max(axis=0) + _MARGIN) & (across < along)
    return int((beyond.sum(axis=0) >= 5).sum()) > _SECTORS // 2


def _flatness(points: Array) -> float:
    """Height over the smaller width across."""
    flat = points[:, :2] - points[:, :2].mean(axis=0)
    widths = np.ptp(flat @ np.linalg.eigh(flat.T @ flat)[1], axis=0)
    return float(np.ptp(points[:, 2]) / max(float(widths.min()), 1e-9))


def base_plane(cloud: PointCloud, up: ArrayLike) -> SupportPlane:
    """The plane across `up` (3,) through the lowest points of a cloud.

    Raises:
        InvalidInputError: `up` is no direction, or fewer than four finite points.
    """
    cloud = cloud.finite()
    _check_count(cloud)
    upwards = unit_vector("up", up)
    heights = cloud.points @ upwards
    return plane_at(upwards, float(np.quantile(heights, _LOWEST)), cloud.points.mean(axis=0))


def plane_at(up: ArrayLike, height: float, near: ArrayLike = (0.0, 0.0, 0.0)) -> SupportPlane:
    """The plane up·x = height [m], with its origin below the point `near` (3,) [m].

    Raises:
        InvalidInputError: `up` is no direction, or the height is not finite.
    """
    upwards = unit_vector("up", up)
    if not np.isfinite(height):
        raise InvalidInputError("height", height, "a finite number [m]")
    point = np.asarray(near, dtype=np.float64)
    origin = point + (height - float(point @ upwards)) * upwards
    if abs(upwards[2]) > 1.0 - 1e-12:
        rotation = np.diag([1.0, upwards[2], upwards[2]])
    else:
        rotation = np.column_stack([*plane_axes(upwards), upwards])
    return SupportPlane(make_transform(rotation, origin))


def plane_of_coefficients(coefficients: ArrayLike, above: ArrayLike) -> SupportPlane:
    """The plane a x + b y + c z + d = 0 of PCL's and Open3D's fits, whose sign is chance, with `above` above it.

    Args:
        coefficients: (4,) a, b, c, d [m]; (a, b, c) of any length.
        above: (N, 3) points, most of which are above the plane [m].

    Raises:
        InvalidInputError: not four finite numbers, or a, b and c are all zero.
    """
    values = np.asarray(coefficients, dtype=np.float64)
    if values.shape != (4,) or not np.isfinite(values).all() or not np.linalg.norm(values[:3]) > 1e-9:
        raise InvalidInputError("table", coefficients, "a b c d of the plane a x + b y + c z + d = 0, a b c not all 0")
    values = values / np.linalg.norm(values[:3])
    points = np.asarray(above, dtype=np.float64)
    if np.median(points @ values[:3] + values[3]) < 0.0:
        values = -values
    return plane_at(values[:3], -float(values[3]), points.mean(axis=0))


def unit_vector(name: str, direction: ArrayLike) -> Array:
    """A direction (3,) of length 1.

    Raises:
        InvalidInputError: it is zero, not finite or not of three numbers; names it as `name`.
    """
    vector = np.asarray(direction, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all() or not np.linalg.norm(vector) > 1e-9:
        shown = " ".join(f"{value:g}" for value in vector.ravel())
        raise InvalidInputError(name, shown, "a direction: three finite numbers, not all 0")
    unit: Array = vector / np.linalg.norm(vector)
    return unit


def _check_count(cloud: PointCloud) -> None:
    if len(cloud) <= MIN_PLANE_POINTS:
        raise InvalidInputError("cloud", f"{len(cloud)} finite points", f"more than {MIN_PLANE_POINTS}")


def _outward_normals(cloud: PointCloud, rows: NDArray[np.int64]) -> Array:
    """Normals (M, 3) at rows (M,): the cloud's own where they point outwards, else estimated."""
    given = cloud.normals
    if given is not None and np.isfinite(given).all() and (np.linalg.norm(given, axis=1) > 1e-6).all():
        unit = given / np.linalg.norm(given, axis=1, keepdims=True)
        if normals_point_outwards(cloud.points, unit):
            chosen: Array = unit[rows]
            return chosen
    return estimate_outward_normals(cloud.points, rows)
