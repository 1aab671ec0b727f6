"""Pads that turn as hard about their normal as an evenly pressed patch, whatever points the physics touches at.

MuJoCo gives a pad and a convex piece a contact at each corner of the surface that they share. The corners lie further
out than the surface they stand for, and hold nearly twice the torque about the normal that the surface holds. With
friction μ and normal force N, even pressure N / A on the patch A slips about its centre c at

    M = μ N ℓ,   ℓ = 1/A ∫_A |p − c| dA

(Howe and Cutkosky 1996, section 2: Coulomb friction at each point of the patch; 0.3826 a for a square of side a, 2/3 R
for a disc, L / 4 for a line of length L). Patches smaller than what two elastic bodies press flat are points of Hertz's
theory: for a circle of radius b with Hertz's pressure the same integral is M = 3π/16 μ N b (Johnson 1985, Contact
Mechanics, section 7.1 for the pressure; b³ = 3 N R / 4 E*).

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
"""ℓ of a pad on a ball [m]. The same for all: it grows with the cube root of force times radius only, from 0.4 of this at
5 mm and 10 N to twice this at 50 mm and 150 N."""

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
        found = _patches(contact.geom, self._pads, self._touched)
        if not (found >= 0).any():
            return False
        positions, distances, friction = contact.pos.copy(), contact.dist.copy(), contact.friction.copy()
        spread_contacts(found, positions, distances, friction, contact.frame[:, :3].copy())
        contact.pos[:], contact.dist[:], contact.friction[:] = positions, distances, friction
        return True


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
    members = np.empty(count, np.int64)
    for patch in range(count):
        if patches[patch] != patch:
            continue
        size = 0
        for i in range(patch, count):
            if patches[i] == patch:
                members[size] = i
                size += 1
        corners, depths = np.empty((size, 3)), np.empty(size)
        for k in range(size):
            corners[k], depths[k] = positions[members[k]], distances[members[k]]
        center, lever = corners[0], 0.0
        if size > 1:
            center, lever = even_pressure(corners, normals[patch])
        middle, share, torsion = depths.mean(), 0.0, _LEAST_LEVER
        if lever > POINT_LEVER:
            share = lever / np.sqrt(((corners - center) ** 2).sum(axis=1)).mean()
        elif depths.min() < 0.0:
            weights = np.maximum(depths / depths.min(), 0.0) ** _DEEPEST
            weights /= weights.sum()
            center, middle, torsion = weights @ corners, weights @ depths, POINT_LEVER
        for k in range(size):
            positions[members[k]] = center + share * (corners[k] - center)
            # As deep as the surfaces overlap there.
            distances[members[k]] = middle + share * (depths[k] - middle)
            friction[members[k], 2] = friction[members[k], 0] * torsion


@njit(cache=True, nogil=True)
def even_pressure(corners: Array, normal: Array) -> tuple[Array, float]:
    """Centre (3,) and mean distance ℓ from it [m] of the evenly pressed polygon, or line, between corners (K, 3).

    Args:
        corners: at least two, in any order, of a convex polygon.
        normal: (3,) of its plane.
    """
    size = len(corners)
    middle = np.zeros(3)
    for k in range(size):
        middle += corners[k] / size
    # Axes of the plane: the first along the corner furthest from the middle.
    along, length = np.zeros(3), 0.0
    for k in range(size):
        arm = corners[k] - middle
        arm -= (arm @ normal) * normal
        reach = math.sqrt(arm @ arm)
        if reach > length:
            length, along = reach, arm / reach
    if length < _SHORT:
        return middle, 0.0
    across = np.cross(normal, along)
    x, y, angles = np.empty(size), np.empty(size), np.empty(size)
    for k in range(size):
        arm = corners[k] - middle
        x[k], y[k] = arm @ along, arm @ across
        angles[k] = math.atan2(y[k], x[k])
    if y.max() - y.min() < _THIN * (x.max() - x.min()):
        return middle + 0.5 * (x.max() + x.min()) * along, 0.25 * (x.max() - x.min())
    order = np.argsort(angles)
    x, y = x[order], y[order]
    area, moment_x, moment_y = 0.0, 0.0, 0.0
    for k in range(size):
        j = (k + 1) % size
        part = 0.5 * (x[k] * y[j] - x[j] * y[k])
        area += part
        moment_x += part * (x[k] + x[j]) / 3.0
        moment_y += part * (y[k] + y[j]) / 3.0
    x -= moment_x / area
    y -= moment_y / area
    total = 0.0
    for k in range(size):
        j = (k + 1) % size
        edge = math.hypot(x[j] - x[k], y[j] - y[k])
        if edge == 0.0:
            continue
        # ∫ r dA of the triangle between the centre and an edge: with h the edge's distance and t along the edge,
        # 1/6 [h t √(h² + t²) + h³ asinh(t / h)] between its ends.
        height = (x[k] * y[j] - x[j] * y[k]) / edge
        if height <= 0.0:
            continue
        begin = (x[k] * (x[j] - x[k]) + y[k] * (y[j] - y[k])) / edge
        for t, sign in ((begin + edge, 1.0), (begin, -1.0)):
            total += sign / 6.0 * (height * t * math.hypot(height, t) + height**3 * math.asinh(t / height))
    return middle + (moment_x * along + moment_y * across) / area, total / area
