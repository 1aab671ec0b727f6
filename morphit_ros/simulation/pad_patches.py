"""Pads that turn as hard about their normal as an evenly pressed patch, whatever points the physics touches at.

MuJoCo gives a pad and a convex piece a contact at each corner of the surface that they share. The corners lie further
out than the surface they stand for, and hold nearly twice the torque about the normal that the surface holds. With
friction μ and normal force N, even pressure N / A on the patch A slips about its centre c at

    M = μ N ℓ,   ℓ = 1/A ∫_A |p − c| dA

(Howe and Cutkosky 1996, section 2: Coulomb friction at each point of the patch; 0.3826 a for a square of side a, 2/3 R
for a disc, L / 4 for a line of length L). Patches smaller than what two elastic bodies press flat are points of Hertz's
theory: for a circle of radius b with Hertz's pressure the same integral is M = 3π/16 μ N b (Johnson 1985, Contact
Mechanics, chapter 4: its pressure, and b³ = 3 N R / 4 E*).

A patch is all that a finger and the object share in one plane, through however many geoms. Four of its contacts take
the place of all: at c ± a e₁ ± b e₂ along its principal axes, with a : b as its extents and √(a² + b²) = ℓ (a line's
two at c ± ℓ e₁). Where ℓ is less than of a Hertz circle, as at a corner or on a facet of a ball's mesh, they become one
point, at the place that is pressed deepest, with the circle's ℓ as torsional friction. Linear friction stays as it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.simulation.rendering import import_mujoco

# Modulus E* of pad and object together [Pa]: with it 40 N press a ball of 21 mm radius 0.2 mm into a pad, as the
# simulated contacts are.
_MODULUS = 72e6


def hertz_radius(force: float, radius: float) -> float:
    """Radius b of the circle in which a ball of a radius [m] touches a pad that is pressed with a force [N]; [m]."""
    return float((0.75 * force * radius / _MODULUS) ** (1.0 / 3.0))


POINT_LEVER = 3.0 * math.pi / 16.0 * hertz_radius(40.0, 0.021)
"""ℓ of a pad on a ball [m]. The same for all: it grows with the cube root of force times radius only, from 0.4 of this
at 5 mm and 10 N to twice this at 50 mm and 150 N."""

# Polygons thinner than this share of their length are lines, lines shorter than this are points [m]; beside polygons a
# line counts as this wide [m].
_THIN, _SHORT, _LINE_WIDTH = 1e-3, 1e-6, 1e-4
# Contacts are in one plane if their normals differ by less than about 8° and their places by less than this [m].
_PARALLEL, _OUT_OF_PLANE = 0.99, 1e-3
# MuJoCo divides by friction [m].
_LEAST_LEVER = 1e-5
# A point lies where its contacts are deepest: weights are this power of the depth, even for equal ones.
_DEEPEST = 8


class PadPatches:
    """Takes steps of a simulation in which pads meet an object as patches.

    Args:
        model, data: of MuJoCo.
        pads: (G,) number of the finger that a geom belongs to, -1 for none.
        touched: (G,) which geoms belong to what is gripped.
    """

    def __init__(self, model: Any, data: Any, pads: NDArray[np.int64], touched: NDArray[np.bool_]) -> None:
        self._mujoco = import_mujoco()
        self._model, self._data, self._pads, self._touched = model, data, pads, touched
        warm_up()

    def step(self) -> None:
        """As `mj_step`."""
        mujoco, model, data = self._mujoco, self._model, self._data
        mujoco.mj_step1(model, data)
        if data.ncon and self._spread():
            # What follows from where contacts are.
            mujoco.mj_makeConstraint(model, data)
            mujoco.mj_island(model, data)
            mujoco.mj_projectConstraint(model, data)
            mujoco.mj_referenceConstraint(model, data)
        mujoco.mj_step2(model, data)

    def _spread(self) -> bool:
        contact = self._data.contact
        positions, normals = contact.pos.copy(), contact.frame[:, :3].copy()
        patches, pairs = find_patches(contact.geom.copy(), self._pads, self._touched, positions, normals)
        if not (patches >= 0).any():
            return False
        distances, friction, exclude = contact.dist.copy(), contact.friction.copy(), contact.exclude.copy()
        spread_contacts(patches, pairs, positions, distances, friction, normals, exclude)
        contact.pos[:], contact.dist[:], contact.friction[:] = positions, distances, friction
        contact.exclude[:] = exclude
        # Where a constraint was made of them before.
        contact.efc_address[exclude > 0] = -1
        return True


def warm_up() -> None:
    """Compile the kernels, so that no simulation waits for it when the fingers close."""
    corners, normals = np.array([[0.0, 0.0, 0.0], [0.01, 0.0, 0.0]]), np.tile([0.0, 0.0, 1.0], (2, 1))
    geoms = np.array([[0, 1], [0, 1]], dtype=np.int32)
    patches, pairs = find_patches(geoms, np.array([0, -1]), np.array([False, True]), corners, normals)
    spread_contacts(patches, pairs, corners, np.full(2, -1e-3), np.ones((2, 5)), normals, np.zeros(2, np.int32))


@njit(cache=True, nogil=True)
def find_patches(geoms: Array, pads: Array, touched: Array, positions: Array, normals: Array) -> tuple[Array, Array]:
    """Which contacts make up a patch.

    Args:
        geoms: (N, 2) of each contact, -1 for what is none.
        pads: (G,) number of the finger that a geom belongs to, -1 for none.
        touched: (G,) which geoms belong to what is gripped.
        positions, normals: (N, 3).

    Returns:
        numbers of the patch and of the pair of geoms (N,): indices of their first contacts; -1 for other contacts.
    """
    count = len(geoms)
    patches, pairs = np.full(count, -1), np.full(count, -1)
    fingers = np.full(count, -1)
    for i in range(count):
        first, second = geoms[i, 0], geoms[i, 1]
        if first < 0 or second < 0:
            continue
        if pads[first] >= 0 and touched[second]:
            fingers[i] = pads[first]
        elif pads[second] >= 0 and touched[first]:
            fingers[i] = pads[second]
        else:
            continue
        patches[i], pairs[i] = i, i
        for j in range(i - 1, -1, -1):
            if pairs[j] == j and geoms[j, 0] == first and geoms[j, 1] == second:
                pairs[i] = j
            if patches[j] != j or fingers[j] != fingers[i]:
                continue
            parallel, beyond = 0.0, 0.0
            for axis in range(3):
                parallel += normals[i, axis] * normals[j, axis]
                beyond += (positions[i, axis] - positions[j, axis]) * normals[j, axis]
            if parallel > _PARALLEL and abs(beyond) < _OUT_OF_PLANE:
                patches[i] = j
        if pairs[i] != i:
            # What two geoms share stays together.
            patches[i] = patches[pairs[i]]
    return patches, pairs


@njit(cache=True, nogil=True)
def spread_contacts(
    patches: Array, pairs: Array, positions: Array, distances: Array, friction: Array, normals: Array, exclude: Array
) -> None:
    """Make the contacts of each patch hold the torque of even pressure, in place.

    Args:
        patches, pairs: (N,) as of `find_patches`.
        positions: (N, 3) [m].
        distances: (N,) negative where bodies overlap [m].
        friction: (N, 5) as MuJoCo's: sliding along two axes, torsion [m], rolling.
        normals: (N, 3).
        exclude: (N,) is set to 1 for contacts that do not count any more.
    """
    count = len(patches)
    members, owners, corners = np.empty(count, np.int64), np.empty(count, np.int64), np.empty((count, 3))
    center, axes = np.empty(3), np.empty((2, 3))
    for patch in range(count):
        if patches[patch] != patch:
            continue
        size, deepest = 0, 0.0
        for i in range(patch, count):
            if patches[i] == patch:
                members[size], owners[size] = i, pairs[i]
                for axis in range(3):
                    corners[size, axis] = positions[i, axis]
                deepest = min(deepest, distances[i])
                size += 1
        lever = even_pressure(corners[:size], owners[:size], normals[patch], center, axes)
        if lever > POINT_LEVER:
            torsion, kept = _LEAST_LEVER, 4 if size > 3 else 2
        else:
            # One place is as good as all: weights are even where depths are.
            torsion, kept, total = POINT_LEVER, 1, 0.0
            center[:], axes[:] = 0.0, 0.0
            for k in range(size):
                weight = max(distances[members[k]] / deepest, 0.0) ** _DEEPEST if deepest < 0.0 else 1.0
                total += weight
                for axis in range(3):
                    center[axis] += weight * corners[k, axis]
            for axis in range(3):
                center[axis] /= total
        depth, along, across = _depths(corners, distances, members, size, center, axes)
        if kept == 1:
            depth = deepest
        for k in range(size):
            i = members[k]
            if k >= kept:
                exclude[i] = 1
                continue
            one, other = 1.0 - 2.0 * (k % 2), 1.0 - 2.0 * (k // 2)
            if kept == 2:
                other = 0.0
            for axis in range(3):
                positions[i, axis] = center[axis] + one * axes[0, axis] + other * axes[1, axis]
            distances[i] = depth + one * along + other * across
            friction[i, 2] = friction[i, 0] * torsion


@njit(cache=True, nogil=True)
def _depths(
    corners: Array, distances: Array, members: Array, size: int, center: Array, axes: Array
) -> tuple[float, float, float]:
    """Distance of the surfaces at a centre [m], and its change over each axis: the plane through those of contacts."""
    middle, u_mean, v_mean = 0.0, 0.0, 0.0
    uu, vv, uv, ud, vd = 0.0, 0.0, 0.0, 0.0, 0.0
    a, b = 0.0, 0.0
    for axis in range(3):
        a += axes[0, axis] ** 2
        b += axes[1, axis] ** 2
    places = np.zeros((size, 2))
    for k in range(size):
        for axis in range(3):
            # In units of the axes.
            arm = corners[k, axis] - center[axis]
            places[k, 0] += arm * axes[0, axis] / a if a > 0.0 else 0.0
            places[k, 1] += arm * axes[1, axis] / b if b > _SHORT**2 else 0.0
        u_mean += places[k, 0] / size
        v_mean += places[k, 1] / size
        middle += distances[members[k]] / size
    for k in range(size):
        u, v, d = places[k, 0] - u_mean, places[k, 1] - v_mean, distances[members[k]] - middle
        uu += u * u
        vv += v * v
        uv += u * v
        ud += u * d
        vd += v * d
    determinant = uu * vv - uv * uv
    if determinant > 1e-9 * uu * vv and vv > 0.0:
        along, across = (ud * vv - vd * uv) / determinant, (vd * uu - ud * uv) / determinant
    else:
        along, across = ud / uu if uu > 0.0 else 0.0, 0.0
    return middle - along * u_mean - across * v_mean, along, across


@njit(cache=True, nogil=True)
def _distance(first: Array, second: Array) -> float:
    x, y, z = first[0] - second[0], first[1] - second[1], first[2] - second[2]
    return math.sqrt(x * x + y * y + z * z)


@njit(cache=True, nogil=True)
def even_pressure(corners: Array, owners: Array, normal: Array, center: Array, axes: Array) -> float:
    """Mean distance ℓ from the centre [m] of evenly pressed convex polygons in one plane; or lines, or points.

    Args:
        corners: (K, 3) in any order.
        owners: (K,) number of the polygon that each belongs to.
        normal: (3,) of the plane.
        center: (3,) is set to the centre of all of them.
        axes: (2, 3) is set to a e₁ and b e₂ along their principal axes, the longer first.
    """
    size = len(corners)
    axes[:] = 0.0
    for axis in range(3):
        center[axis] = 0.0
        for k in range(size):
            center[axis] += corners[k, axis] / size
    # Axes of the plane: the first towards the corner furthest from the middle.
    far, length = 0, 0.0
    for k in range(size):
        reach = _distance(corners[k], center)
        if reach > length:
            length, far = reach, k
    if length < _SHORT:
        return 0.0
    ax, ay = (corners[far, 0] - center[0]) / length, (corners[far, 1] - center[1]) / length
    az = (corners[far, 2] - center[2]) / length
    bx, by, bz = normal[1] * az - normal[2] * ay, normal[2] * ax - normal[0] * az, normal[0] * ay - normal[1] * ax
    # Corners of the polygons one after another, each in order; where they begin, and what they count for.
    x, y, starts, weights = np.empty(size), np.empty(size), np.zeros(size + 1, np.int64), np.empty(size)
    number, filled = 0, 0
    total, middle_x, middle_y = 0.0, 0.0, 0.0
    for first in range(size):
        seen = False
        for k in range(first):
            seen = seen or owners[k] == owners[first]
        if seen:
            continue
        for k in range(first, size):
            if owners[k] == owners[first]:
                dx, dy, dz = corners[k, 0] - center[0], corners[k, 1] - center[1], corners[k, 2] - center[2]
                x[filled], y[filled] = ax * dx + ay * dy + az * dz, bx * dx + by * dy + bz * dz
                filled += 1
        begin = starts[number]
        number += 1
        starts[number], area, own_x, own_y = _put_in_order(x, y, begin, filled)
        filled = starts[number]
        weights[number - 1] = area
        total += area
        middle_x += area * own_x
        middle_y += area * own_y
    middle_x, middle_y = middle_x / total, middle_y / total
    lever, xx, yy, xy = 0.0, 0.0, 0.0, 0.0
    for k in range(number):
        share = weights[k] / total
        lever += share * _mean_distance(x, y, starts[k], starts[k + 1], middle_x, middle_y)
        own_xx, own_yy, own_xy = _second_moments(x, y, starts[k], starts[k + 1], middle_x, middle_y)
        xx += share * own_xx
        yy += share * own_yy
        xy += share * own_xy
    angle = 0.5 * math.atan2(2.0 * xy, xx - yy)
    cosine, sine = math.cos(angle), math.sin(angle)
    long = xx * cosine * cosine + 2.0 * xy * cosine * sine + yy * sine * sine
    short = max(xx + yy - long, 0.0)
    a, b = lever * math.sqrt(long / (long + short)), lever * math.sqrt(short / (long + short))
    axes[0, 0], axes[0, 1] = a * (cosine * ax + sine * bx), a * (cosine * ay + sine * by)
    axes[0, 2] = a * (cosine * az + sine * bz)
    axes[1, 0], axes[1, 1] = b * (cosine * bx - sine * ax), b * (cosine * by - sine * ay)
    axes[1, 2] = b * (cosine * bz - sine * az)
    center[0] += middle_x * ax + middle_y * bx
    center[1] += middle_x * ay + middle_y * by
    center[2] += middle_x * az + middle_y * bz
    return lever


@njit(cache=True, nogil=True)
def _put_in_order(x: Array, y: Array, begin: int, end: int) -> tuple[int, float, float, float]:
    """Sort the corners of a convex polygon counter-clockwise, or leave the ends of a line, or one point.

    Returns:
        where they end now, area (or what counts as such) [m²], and centre.
    """
    mean_x, mean_y = 0.0, 0.0
    for k in range(begin, end):
        mean_x += x[k] / (end - begin)
        mean_y += y[k] / (end - begin)
    for k in range(begin + 1, end):
        u, v, place = x[k], y[k], k
        angle = math.atan2(v - mean_y, u - mean_x)
        while place > begin and math.atan2(y[place - 1] - mean_y, x[place - 1] - mean_x) > angle:
            x[place], y[place] = x[place - 1], y[place - 1]
            place -= 1
        x[place], y[place] = u, v
    area, moment_x, moment_y, length, one, other = 0.0, 0.0, 0.0, 0.0, begin, begin
    for k in range(begin, end):
        j = k + 1 if k + 1 < end else begin
        ux, uy, vx, vy = x[k] - mean_x, y[k] - mean_y, x[j] - mean_x, y[j] - mean_y
        part = 0.5 * (ux * vy - vx * uy)
        area += part
        moment_x += part * (ux + vx) / 3.0
        moment_y += part * (uy + vy) / 3.0
        for i in range(begin, k):
            apart = math.hypot(x[k] - x[i], y[k] - y[i])
            if apart > length:
                length, one, other = apart, i, k
    if area > _THIN * length * length:
        return end, area, mean_x + moment_x / area, mean_y + moment_y / area
    if length < _SHORT:
        x[begin], y[begin] = mean_x, mean_y
        return begin + 1, _SHORT * _LINE_WIDTH, mean_x, mean_y
    one_x, one_y, other_x, other_y = x[one], y[one], x[other], y[other]
    x[begin], y[begin], x[begin + 1], y[begin + 1] = one_x, one_y, other_x, other_y
    return begin + 2, length * _LINE_WIDTH, 0.5 * (one_x + other_x), 0.5 * (one_y + other_y)


@njit(cache=True, nogil=True)
def _mean_distance(x: Array, y: Array, begin: int, end: int, from_x: float, from_y: float) -> float:
    """Of the points of a polygon, a line (two corners) or a point from somewhere in its plane."""
    if end - begin == 1:
        return math.hypot(x[begin] - from_x, y[begin] - from_y)
    total, area = 0.0, 0.0
    for k in range(begin, end):
        j = k + 1 if k + 1 < end else begin
        px, py, ex, ey = x[k] - from_x, y[k] - from_y, x[j] - x[k], y[j] - y[k]
        edge = math.hypot(ex, ey)
        if edge == 0.0:
            continue
        # h is the edge's distance, t the place along the edge.
        h, t = (px * ey - ex * py) / edge, (px * ex + py * ey) / edge
        if end - begin == 2:
            # ∫ √(h² + t²) dt / L.
            return (_line_integral(h, t + edge) - _line_integral(h, t)) / edge
        # ∫ r dA of the triangle under an edge: h / 3 of the edge's integral of √(h² + t²); negative where the edge
        # turns its back.
        total += h / 3.0 * (_line_integral(h, t + edge) - _line_integral(h, t))
        area += 0.5 * h * edge
    return total / area


@njit(cache=True, nogil=True)
def _second_moments(
    x: Array, y: Array, begin: int, end: int, from_x: float, from_y: float
) -> tuple[float, float, float]:
    """Mean x², y² and x y of the points of a polygon, a line or a point about somewhere in its plane."""
    xx, yy, xy, total = 0.0, 0.0, 0.0, 0.0
    for k in range(begin, end):
        j = k + 1 if k + 1 < end else begin
        px, py, qx, qy = x[k] - from_x, y[k] - from_y, x[j] - from_x, y[j] - from_y
        # Of a triangle with one corner there: the area times 1/6 (p² + q² + p q); of a line 1/3 of that sum.
        weight, part = (0.5 * (px * qy - qx * py), 1.0 / 6.0) if end - begin > 2 else (1.0, 1.0 / 3.0)
        xx += weight * part * (px * px + qx * qx + px * qx)
        yy += weight * part * (py * py + qy * qy + py * qy)
        xy += weight * part * (px * py + qx * qy + 0.5 * (px * qy + qx * py))
        total += weight
    return xx / total, yy / total, xy / total


@njit(cache=True, nogil=True)
def _line_integral(h: float, t: float) -> float:
    return 0.5 * (t * math.hypot(h, t) + (h * h * math.asinh(t / abs(h)) if h != 0.0 else 0.0))
