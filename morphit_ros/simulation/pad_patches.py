"""Pads that turn as hard about their normal as an evenly pressed patch, whatever points the physics touches at.

MuJoCo gives a pad and a convex piece a contact at each corner of the surface that they share. The corners lie further
out than the surface they stand for, and hold nearly twice the torque about the normal that the surface holds. With
friction μ and normal force N, even pressure N / A on the patch A slips about its centre c at

    M = μ N ℓ,   ℓ = 1/A ∫_A |p − c| dA

(Howe and Cutkosky 1996, section 2: Coulomb friction at each point of the patch; 0.3826 a for a square of side a, 2/3 R
for a disc, L / 4 for a line of length L). Patches smaller than what two elastic bodies press flat are points of Hertz's
theory: for a circle of radius b with Hertz's pressure the same integral is M = 3π/16 μ N b (Johnson 1985, Contact
Mechanics, chapter 4: its pressure, and b³ = 3 N R / 4 E*).

So contacts are drawn towards the middle of their patch until their mean distance from it is ℓ. Where that is less than
of a Hertz circle, as at a corner or on a facet of a ball's mesh, they become one point, at the place that is pressed
deepest, with the circle's ℓ as torsional friction. Forces, and so linear friction, stay as they are.
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

# Polygons thinner than this share of their length are lines, lines shorter than this are points [m].
_THIN, _SHORT = 1e-3, 1e-6
# MuJoCo divides by friction [m].
_LEAST_LEVER = 1e-5
# A point lies where its contacts are deepest: weights are this power of the depth, even for equal ones.
_DEEPEST = 8


class PadPatches:
    """Takes steps of a simulation in which pads meet an object as patches.

    Args:
        model, data: of MuJoCo.
        pads: (G,) which geoms belong to the fingers.
        touched: (G,) which geoms belong to what is gripped.
    """

    def __init__(self, model: Any, data: Any, pads: NDArray[np.bool_], touched: NDArray[np.bool_]) -> None:
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
        found = _patches(contact.geom.copy(), self._pads, self._touched)
        if not (found >= 0).any():
            return False
        positions, distances, friction = contact.pos.copy(), contact.dist.copy(), contact.friction.copy()
        spread_contacts(found, positions, distances, friction, contact.frame[:, :3].copy())
        contact.pos[:], contact.dist[:], contact.friction[:] = positions, distances, friction
        return True


def warm_up() -> None:
    """Compile the kernels, so that no simulation waits for it when the fingers close."""
    found = _patches(np.zeros((2, 2), dtype=np.int32), *np.array([[True], [True]]))
    corners = np.array([[0.0, 0.0, 0.0], [0.01, 0.0, 0.0]])
    spread_contacts(found, corners, np.full(2, -1e-3), np.ones((2, 5)), np.tile([0.0, 0.0, 1.0], (2, 1)))


@njit(cache=True, nogil=True)
def _patches(geoms: Array, pads: Array, touched: Array) -> Array:
    """(N,) number of the patch of each contact, the index of its first contact; -1 for other contacts."""
    count = len(geoms)
    found = np.full(count, -1)
    for i in range(count):
        first, second = geoms[i, 0], geoms[i, 1]
        # A flexible body has no geom.
        if first < 0 or second < 0:
            continue
        if not ((pads[first] and touched[second]) or (pads[second] and touched[first])):
            continue
        found[i] = i
        for j in range(i):
            if found[j] == j and geoms[j, 0] == first and geoms[j, 1] == second:
                found[i] = j
                break
    return found


@njit(cache=True, nogil=True)
def spread_contacts(patches: Array, positions: Array, distances: Array, friction: Array, normals: Array) -> None:
    """Make the contacts of each patch hold the torque of even pressure, in place.

    Args:
        patches: (N,) number of the patch that each contact belongs to, its first contact; -1 for none.
        positions: (N, 3) [m].
        distances: (N,) negative where bodies overlap [m].
        friction: (N, 5) as MuJoCo's: sliding along two axes, torsion [m], rolling.
        normals: (N, 3).
    """
    count = len(patches)
    members, corners = np.empty(count, np.int64), np.empty((count, 3))
    center = np.empty(3)
    for patch in range(count):
        if patches[patch] != patch:
            continue
        size, mean_depth, deepest = 0, 0.0, 0.0
        for i in range(patch, count):
            if patches[i] == patch:
                members[size] = i
                for axis in range(3):
                    corners[size, axis] = positions[i, axis]
                mean_depth += distances[i]
                deepest = min(deepest, distances[i])
                size += 1
        middle = mean_depth / size
        lever = even_pressure(corners[:size], normals[patch], center)
        share, torsion = 1.0, _LEAST_LEVER
        if lever > POINT_LEVER:
            spread = 0.0
            for k in range(size):
                spread += _distance(corners[k], center) / size
            share = lever / spread
        elif deepest < 0.0:
            share, torsion, total, middle = 0.0, POINT_LEVER, 0.0, 0.0
            center[:] = 0.0
            for k in range(size):
                depth = distances[members[k]]
                weight = max(depth / deepest, 0.0) ** _DEEPEST
                total += weight
                middle += weight * depth
                for axis in range(3):
                    center[axis] += weight * corners[k, axis]
            middle /= total
            for axis in range(3):
                center[axis] /= total
        for k in range(size):
            i = members[k]
            for axis in range(3):
                positions[i, axis] = center[axis] + share * (corners[k, axis] - center[axis])
            # As deep as the surfaces overlap there.
            distances[i] = middle + share * (distances[i] - middle)
            friction[i, 2] = friction[i, 0] * torsion


@njit(cache=True, nogil=True)
def _distance(first: Array, second: Array) -> float:
    x, y, z = first[0] - second[0], first[1] - second[1], first[2] - second[2]
    return math.sqrt(x * x + y * y + z * z)


@njit(cache=True, nogil=True)
def even_pressure(corners: Array, normal: Array, center: Array) -> float:
    """Mean distance ℓ from the centre [m] of the evenly pressed polygon, or line, between corners (K, 3).

    Args:
        corners: of a convex polygon, in any order.
        normal: (3,) of its plane.
        center: (3,) is set to the centre.
    """
    size = len(corners)
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
    x, y, angles = np.empty(size), np.empty(size), np.empty(size)
    for k in range(size):
        dx, dy, dz = corners[k, 0] - center[0], corners[k, 1] - center[1], corners[k, 2] - center[2]
        u, v = ax * dx + ay * dy + az * dz, bx * dx + by * dy + bz * dz
        angle, place = math.atan2(v, u), k
        # Sorted by the direction in which they lie.
        while place > 0 and angles[place - 1] > angle:
            x[place], y[place], angles[place] = x[place - 1], y[place - 1], angles[place - 1]
            place -= 1
        x[place], y[place], angles[place] = u, v, angle
    low_x, high_x, low_y, high_y = x[0], x[0], y[0], y[0]
    area, middle_x, middle_y = 0.0, 0.0, 0.0
    for k in range(size):
        j = (k + 1) % size
        low_x, high_x = min(low_x, x[k]), max(high_x, x[k])
        low_y, high_y = min(low_y, y[k]), max(high_y, y[k])
        part = 0.5 * (x[k] * y[j] - x[j] * y[k])
        area += part
        middle_x += part * (x[k] + x[j]) / 3.0
        middle_y += part * (y[k] + y[j]) / 3.0
    if size == 2 or high_y - low_y < _THIN * (high_x - low_x):
        middle_x, middle_y, lever = 0.5 * (low_x + high_x), 0.0, 0.25 * (high_x - low_x)
    else:
        middle_x, middle_y, lever = middle_x / area, middle_y / area, 0.0
        for k in range(size):
            j = (k + 1) % size
            px, py = x[k] - middle_x, y[k] - middle_y
            ex, ey = x[j] - x[k], y[j] - y[k]
            edge = math.hypot(ex, ey)
            if edge == 0.0:
                continue
            # ∫ r dA of the triangle between the centre and an edge: with h the edge's distance and t along the edge,
            # 1/6 [h t √(h² + t²) + h³ asinh(t / h)] between its ends.
            height = (px * ey - ex * py) / edge
            if height <= 0.0:
                continue
            begin = (px * ex + py * ey) / edge
            lever += (_edge_integral(height, begin + edge) - _edge_integral(height, begin)) / (6.0 * area)
    center[0] += middle_x * ax + middle_y * bx
    center[1] += middle_x * ay + middle_y * by
    center[2] += middle_x * az + middle_y * bz
    return lever


@njit(cache=True, nogil=True)
def _edge_integral(h: float, t: float) -> float:
    return h * t * math.hypot(h, t) + h**3 * math.asinh(t / h)
