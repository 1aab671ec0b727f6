"""Surface normals of a point cloud from the plane through each point's neighbourhood."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.spatial_hash import adjacent_ranges, build_cells, check_points
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

MIN_PLANE_POINTS = 3
# Neighbourhoods are filled up to a multiple of this many points, more than any vector register holds.
_VECTOR = 16


def estimate_normals(
    points: ArrayLike, radius: float, viewpoint: ArrayLike, selected: NDArray[np.bool_] | None = None
) -> tuple[Array, NDArray[np.int64]]:
    """Unit normals towards the camera, and how many points each rests on.

    The normal is the direction of least variance of all points within `radius`. It points to the
    half space of `viewpoint`, which is right on concave parts too, as long as one camera saw all
    of the points: estimate before merging views.

    Args:
        points: (N, 3) finite points [m].
        radius: of the neighbourhood [m].
        viewpoint: (3,) position of the camera in the frame of the points [m].
        selected: (N,) whose normals are wanted; every point still serves as a neighbour.

    Returns:
        normals (N, 3), zero where not selected or where fewer than three points lie within the radius, and
        counts (N,) of points within the radius, the point itself included; zero where not selected.

    Raises:
        InvalidInputError: points are not finite or not (N, 3), or the radius is not positive.
    """
    array = check_points(points)
    if not radius > 0.0:
        raise InvalidInputError("radius", radius, "above 0")
    if len(array) == 0:
        return np.empty((0, 3)), np.empty(0, np.int64)
    wanted = np.ones(len(array), np.bool_) if selected is None else np.asarray(selected, dtype=np.bool_)
    return _estimate(array, build_cells(array, radius), np.ascontiguousarray(viewpoint, dtype=np.float64), wanted)


@njit(cache=True)
def _estimate(points, grid, viewpoint, wanted):  # type: ignore[no-untyped-def]
    normals = np.zeros(points.shape)
    counts = np.zeros(points.shape[0], np.int64)
    ranges = np.empty((27, 2), np.int64)
    around = np.empty((3, 1 << 8))
    for cell in range(grid.packed.size):
        size = -1
        for row in range(grid.starts[cell], grid.starts[cell + 1]):
            place = grid.order[row]
            if not wanted[place]:
                continue
            if size < 0:
                around, size = _gather(grid, adjacent_ranges(grid, grid.packed[cell], ranges), ranges, around)
            px, py, pz = grid.points[row, 0], grid.points[row, 1], grid.points[row, 2]
            n, sx, sy, sz, xx, xy, xz, yy, yz, zz = _moments(around, size, px, py, pz, grid.size * grid.size)
            counts[place] = np.int64(n)
            if n < MIN_PLANE_POINTS:
                continue
            nx, ny, nz = least_direction(
                xx - sx * sx / n,
                xy - sx * sy / n,
                xz - sx * sz / n,
                yy - sy * sy / n,
                yz - sy * sz / n,
                zz - sz * sz / n,
            )
            towards = nx * (viewpoint[0] - px) + ny * (viewpoint[1] - py) + nz * (viewpoint[2] - pz)
            sign = -1.0 if towards < 0.0 else 1.0
            normals[place, 0] = sign * nx
            normals[place, 1] = sign * ny
            normals[place, 2] = sign * nz
    return normals, counts


@njit(cache=True)
def _gather(grid, used, ranges, around):  # type: ignore[no-untyped-def]
    """Coordinates of the points of some ranges, one row an axis, filled up to whole vectors, and how many that are."""
    size = 0
    for part in range(used):
        size += ranges[part, 1] - ranges[part, 0]
    if size + _VECTOR > around.shape[1]:
        around = np.empty((3, 2 * size + _VECTOR))
    place = 0
    for part in range(used):
        for row in range(ranges[part, 0], ranges[part, 1]):
            for axis in range(3):
                around[axis, place] = grid.points[row, axis]
            place += 1
    while place % _VECTOR != 0:
        for axis in range(3):
            around[axis, place] = np.inf
        place += 1
    return around, place


@njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _moments(around, size, px, py, pz, squared):  # type: ignore[no-untyped-def]
    """Number, sums and products of the points that lie within a distance, given squared, of a point.

    Without a branch and free to sum in any order, the loop becomes vector instructions. Relative to the point
    itself, so that no digits are lost far from the origin.
    """
    near = sx = sy = sz = 0.0
    xx = xy = xz = yy = yz = zz = 0.0
    for other in range(size):
        dx, dy, dz = around[0, other] - px, around[1, other] - py, around[2, other] - pz
        inside = dx * dx + dy * dy + dz * dz <= squared
        dx = dx if inside else 0.0
        dy = dy if inside else 0.0
        dz = dz if inside else 0.0
        near += 1.0 if inside else 0.0
        sx += dx
        sy += dy
        sz += dz
        xx += dx * dx
        xy += dx * dy
        xz += dx * dz
        yy += dy * dy
        yz += dy * dz
        zz += dz * dz
    return near, sx, sy, sz, xx, xy, xz, yy, yz, zz


@njit(cache=True)
def least_direction(xx, xy, xz, yy, yz, zz):  # type: ignore[no-untyped-def]
    """Unit eigenvector of the smallest eigenvalue of a symmetric 3x3 matrix, in closed form.

    Eigenvalues by the trigonometric solution of the characteristic cubic; the eigenvector is the
    longest cross product of two rows of A − λI.
    """
    scale = xx + yy + zz
    if scale <= 0.0:
        return 0.0, 0.0, 1.0
    xx, xy, xz, yy, yz, zz = xx / scale, xy / scale, xz / scale, yy / scale, yz / scale, zz / scale
    mean = 1.0 / 3.0
    off_diagonal = xy * xy + xz * xz + yz * yz
    spread = (xx - mean) ** 2 + (yy - mean) ** 2 + (zz - mean) ** 2 + 2.0 * off_diagonal
    p = math.sqrt(spread / 6.0)
    if p < 1e-12:
        return 0.0, 0.0, 1.0
    a, b, c = xx - mean, yy - mean, zz - mean
    half_determinant = (a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)) / (2.0 * p**3)
    angle = math.acos(min(1.0, max(-1.0, half_determinant))) / 3.0
    smallest = mean + 2.0 * p * math.cos(angle + 2.0 * math.pi / 3.0)
    a, b, c = xx - smallest, yy - smallest, zz - smallest
    x1, y1, z1 = xy * yz - xz * b, xz * xy - a * yz, a * b - xy * xy
    x2, y2, z2 = xy * c - xz * yz, xz * xz - a * c, a * yz - xy * xz
    x3, y3, z3 = b * c - yz * yz, yz * xz - xy * c, xy * yz - b * xz
    n1, n2, n3 = x1 * x1 + y1 * y1 + z1 * z1, x2 * x2 + y2 * y2 + z2 * z2, x3 * x3 + y3 * y3 + z3 * z3
    if n2 > n1 and n2 >= n3:
        x1, y1, z1, n1 = x2, y2, z2, n2
    elif n3 > n1:
        x1, y1, z1, n1 = x3, y3, z3, n3
    if n1 < 1e-24:
        # Points on a line: any direction across it. Cross the strongest row with the axis furthest from it.
        return _across(a, xy, xz, b, yz, c)
    length = math.sqrt(n1)
    return x1 / length, y1 / length, z1 / length


@njit(cache=True)
def _across(a, xy, xz, b, yz, c):  # type: ignore[no-untyped-def]
    x, y, z = a, xy, xz
    if xy * xy + b * b + yz * yz > x * x + y * y + z * z:
        x, y, z = xy, b, yz
    if xz * xz + yz * yz + c * c > x * x + y * y + z * z:
        x, y, z = xz, yz, c
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        x, y, z = 0.0, z, -y
    elif abs(y) <= abs(z):
        x, y, z = -z, 0.0, x
    else:
        x, y, z = y, -x, 0.0
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length
