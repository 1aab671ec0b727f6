"""Certified hold: a specific force that a grasp holds, in whatever direction, as a lower bound over a set of errors.

*Claim.* For every pose of the gripper within `position` and `angle` of the planned one, every friction from `friction`
up, every mass up to `mass`, every centre of mass within `center` of the assumed one, and every specific force (gravity
less acceleration) of at most A in any direction, there are contact forces inside Coulomb's cones, on surface that bears
the pads at each of these poses, that balance the object while the fingers' normal forces add up to 2 F.

*Assumptions.* The completed cloud is the surface, and bearing surface is convex (`bearing`). Fingers are linked: what
one gives up of its normal force the other takes over. Pads are equally elastic (`_pressure_rows`). Pads and object
align: a tilt between pad and face within the errors is undone by closing, or by the first slip. Motion is quasi-static
and the object does not spin. With given pressures, forces that can balance are forces that do (Coulomb's friction is
associated then, and the limit theorems hold: Goyal, Ruina and Papadopoulos 1991); that the pressures come about, that
statics leaves open, is an assumption. benchmarks/hold.py tries them all in physics.

*Why it holds over the sets.* Wrenches that the contacts can supply are a convex set W, and 0 ∈ W. More friction makes W
larger, less mass the load smaller: one end of each interval is enough. Of pose errors the bearing part and how far the
object moves against it are bounds (`bearing`); contact normals keep within `angle` and the mean normal's own angle of
the closing direction, so that the cone about it that is narrower by both lies inside all of them. The load is linear in
the direction, and in the place of the centre of mass: the corners of a polyhedron of both are enough. A corner's answer
is a linear programme over the points' whole cones: each pivot leaves contact forces that balance, so that the value is
a lower bound wherever it stops; columns are the wrenches that the dual asks for. Between the corners W is convex: the
answer is the largest ball inside the pyramids under the triangles of directions, which are divided where they bound it.

Sources: Howe and Cutkosky 1996 (limit surfaces of pads), Prattichizzo and Trinkle, Springer Handbook of Robotics 2016,
chapter 38 (force closure, friction cones), Gilmore and Gomory 1961 (column generation).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.scoring.bearing import POINT_LEVER, bearing_places, mean_distance, patch_corners
from morphit_ros.grasping.scoring.wrench import TORQUE_LENGTH
from morphit_ros.jit import njit

# A linear programme ends within this share of its value; directions are added until the ball's radius is this share of
# the least value, or so many are known.
_GAP, _CLOSE, _MOST_DIRECTIONS = 0.02, 0.86, 32
_MOST_PIVOTS = 80
# Rows of the linear programme: six of the wrench, the sum of normal forces, four of how pressure is spread.
_FORCE, _ROWS = 6, 11


class HoldErrors(NamedTuple):
    """What a certificate is for.

    Attributes:
        position, angle: largest error of the gripper's pose [m], [rad].
        center: largest error of the centre of mass [m].
        friction: least Coulomb coefficient.
        mass: largest [kg].
        force: that each finger presses with at least [N].
        noise: of the cloud along its normals [m].
    """

    position: float
    angle: float
    center: float
    friction: float
    mass: float
    force: float
    noise: float = 0.0


def certified_hold(
    points: Array,
    normals: Array,
    rotations: Array,
    translations: Array,
    openings: Array,
    center_of_mass: Array,
    gripper: Gripper,
    errors: HoldErrors,
) -> Array:
    """(S,) specific force that each grasp holds in the worst direction [m/s²]; 0 where nothing is certified.

    At rest in gravity it is 9.81 m/s²: what is certified for less may be lost, what is certified for more bears being
    accelerated by the difference.

    Args:
        points, normals: (N, 3) completed surface, normals outwards.
        rotations, translations: (S, 3, 3), (S, 3) poses in the frame of the cloud.
        openings: (S,) between the pads, where the fingers begin to close [m].
        center_of_mass: (3,) in the same frame.
        gripper: whose pads.
        errors: see `HoldErrors`.
    """
    held = np.zeros(len(rotations))
    directions, triangles = _icosahedron()
    _hold_batch(
        points, normals, np.ascontiguousarray(rotations), np.ascontiguousarray(translations), openings, center_of_mass,
        np.array([0.5 * gripper.pad_width, 0.5 * gripper.pad_height]), errors, directions, triangles, held,
    )  # fmt: skip
    return held


def borne_levers(
    points: Array,
    normals: Array,
    rotations: Array,
    translations: Array,
    openings: Array,
    gripper: Gripper,
    noise: float = 0.0,
) -> Array:
    """(S, 2) mean distance ℓ of what bears each pad from its middle [m]; 0 where nothing does.

    Pressed with a force N, a pad holds the torque μ N ℓ about its normal (Howe and Cutkosky 1996).

    Args:
        points, normals, rotations, translations, openings, gripper: as of `certified_hold`.
        noise: of the cloud along its normals [m].
    """
    levers = np.zeros((len(rotations), 2))
    half = np.array([0.5 * gripper.pad_width, 0.5 * gripper.pad_height])
    _lever_batch(
        points, normals, np.ascontiguousarray(rotations), np.ascontiguousarray(translations), openings, half, noise,
        levers,
    )  # fmt: skip
    return levers


def held_in_all_directions(places: Array, friction: float, center: Array, uncertainty: Array) -> float:
    """Force [of both fingers' sum of normal forces] that known contacts hold in the worst direction.

    Args:
        places: (8, 3) of contact, four of finger 1 and then four of finger 2, whose pads face -y and +y; of each two
            opposite corners come first and last [m].
        friction: Coulomb coefficient.
        center: (3,) where the force acts [m].
        uncertainty: (3,) by how much that may lie elsewhere along each axis [m].
    """
    directions, triangles = _icosahedron()
    return float(_ball(places, np.full(2, friction), center, uncertainty, 0.0, directions, triangles))


@functools.cache
def _icosahedron() -> tuple[Array, Array]:
    """(12, 3) corners on the unit sphere, and (20, 3) triangles of them."""
    golden = 0.5 * (1.0 + math.sqrt(5.0))
    corners: Array = np.array(
        [np.roll([0.0, one, other * golden], turn) for turn in range(3) for one in (-1, 1) for other in (-1, 1)]
    )
    triangles = [
        row
        for row in itertools.combinations(range(12), 3)
        if all(abs(np.linalg.norm(corners[i] - corners[j]) - 2.0) < 1e-9 for i, j in itertools.combinations(row, 2))
    ]
    return corners / np.linalg.norm(corners[0]), np.array(triangles, dtype=np.int64)


@njit(cache=True, nogil=True)
def _pressure_rows(places: Array) -> Array:
    """(8, 4) by places: what adds up to zero over normal forces where pressure is that of equally elastic pads.

    It is even, and what the object adds that comes nearer to one pad and leaves the other, tilted or not: linear over
    each pad, with opposite moments on both. Statics alone would also let both pads press on the same side.
    """
    rows = np.zeros((8, 4))
    for finger in range(2):
        first = 4 * finger
        for k in range(4):
            for i in range(4):
                rows[first + k, 0] -= 0.25 * places[first + i, 0]
                rows[first + k, 1] -= 0.25 * places[first + i, 2]
            rows[first + k, 0] += places[first + k, 0]
            rows[first + k, 1] += places[first + k, 2]
            rows[first + k, 2 + finger] = 1.0 if k == 0 or k == 3 else -1.0
    return rows


@njit(cache=True, nogil=True)
def _share_held(places: Array, pressed: Array, friction: Array, load: Array, enough: float) -> float:
    """A lower bound of the multiple of a load (6,) that contacts balance with normal forces of 1 in all; at most about
    `enough`, where the search ends.

    Revised simplex: maximise s with Σ xⱼ Gⱼ + s load = 0, Σ xⱼ ≤ 1, x ≥ 0 and elastic pressure (`_pressure_rows`); Gⱼ
    are wrenches of unit normal force on the borders of the cones. That the forces may add up to less than 1 is no gain:
    where opposite loads are balanced, so is none, by any force. Lengths in units of `TORQUE_LENGTH`.
    """
    inverse, values, costs = np.eye(_ROWS), np.zeros(_ROWS), np.zeros(_ROWS)
    basis = np.eye(_ROWS)
    values[_FORCE] = 1.0
    # What the other rows begin with stands for nothing, and stays zero.
    artificial = np.ones(_ROWS, np.bool_)
    artificial[_FORCE] = False
    column, change, dual = np.zeros(_ROWS), np.empty(_ROWS), np.empty(_ROWS)
    column[:6] = load
    cost, load_row = 1.0, -1
    for _ in range(_MOST_PIVOTS):
        row, best = -1, 1e-9
        for i in range(_ROWS):
            change[i] = 0.0
            for k in range(_ROWS):
                change[i] += inverse[i, k] * column[k]
            if artificial[i] and abs(change[i]) > best:
                row, best = i, abs(change[i])
        if row < 0:
            ratio = math.inf
            for i in range(_ROWS):
                if change[i] > 1e-11 and values[i] / change[i] < ratio:
                    row, ratio = i, values[i] / change[i]
            if row < 0:
                break
        step = max(values[row], 0.0) / change[row] if not artificial[row] else 0.0
        for i in range(_ROWS):
            values[i] -= step * change[i]
        values[row] = step
        for k in range(_ROWS):
            inverse[row, k] /= change[row]
            basis[k, row] = column[k]
        for i in range(_ROWS):
            if i != row:
                for k in range(_ROWS):
                    inverse[i, k] -= change[i] * inverse[row, k]
        artificial[row] = False
        if cost > 0.0:
            load_row = row
        elif row == load_row:
            load_row = -1
        for i in range(_ROWS):
            costs[i] = 1.0 if i == load_row else 0.0
        held = values[load_row] if load_row >= 0 else 0.0
        if held >= enough:
            break
        for k in range(_ROWS):
            dual[k] = inverse[load_row, k] if load_row >= 0 else 0.0
        best, cost = _GAP * held + 1e-9, 0.0
        found = False
        if load_row < 0:
            # With nothing gained its column comes back first.
            column[:], cost, found = 0.0, 1.0, True
            column[:6] = load
        else:
            for place in range(8):
                finger = place // 4
                p0, p1, p2 = places[place, 0], places[place, 1], places[place, 2]
                # Gain of a force f there: g · f less the dual of the force's own row.
                g0 = -(dual[0] + dual[4] * p2 - dual[5] * p1)
                g1 = -(dual[1] + dual[5] * p0 - dual[3] * p2)
                g2 = -(dual[2] + dual[3] * p1 - dual[4] * p0)
                inward = -1.0 if finger == 0 else 1.0
                across = math.hypot(g0, g2)
                gain = inward * g1 + friction[finger] * across - dual[_FORCE]
                for k in range(_FORCE + 1, _ROWS):
                    gain -= dual[k] * pressed[place, k - _FORCE - 1]
                if gain > best:
                    best, found = gain, True
                    slope = friction[finger] / across if across > 1e-14 else 0.0
                    f0, f1, f2 = slope * g0, inward, slope * g2
                    column[0], column[1], column[2], column[_FORCE] = f0, f1, f2, 1.0
                    column[_FORCE + 1 :] = pressed[place]
                    column[3], column[4], column[5] = p1 * f2 - p2 * f1, p2 * f0 - p0 * f2, p0 * f1 - p1 * f0
        if not found:
            break
    if load_row < 0:
        return 0.0
    # The proof: these forces balance the load, and none pulls.
    total = 0.0
    for k in range(_ROWS):
        left = 0.0
        for i in range(_ROWS):
            if not artificial[i]:
                left += basis[k, i] * values[i]
        if k != _FORCE:
            total = max(total, abs(left))
    if total > 1e-7 or values.min() < -1e-9:
        return 0.0
    return values[load_row]


@njit(cache=True, nogil=True)
def _at_any_center(
    places: Array, pressed: Array, friction: Array, direction: Array, center: Array, uncertainty: Array, enough: float
) -> float:
    """A force in a direction (3,) that is held wherever in its box the centre of mass lies."""
    load, least = np.empty(6), enough
    load[:3] = direction
    # Seen along the direction the nearest and the furthest corner of the box lie between the others.
    nearest = (direction[0] < 0.0) + 2 * (direction[1] < 0.0) + 4 * (direction[2] < 0.0)
    for corner in range(8):
        if corner == nearest or corner == 7 - nearest:
            continue
        c0 = center[0] + uncertainty[0] * (1.0 - 2.0 * (corner & 1))
        c1 = center[1] + uncertainty[1] * (1.0 - (corner & 2))
        c2 = center[2] + uncertainty[2] * (1.0 - 0.5 * (corner & 4))
        load[3] = (c1 * direction[2] - c2 * direction[1]) / TORQUE_LENGTH
        load[4] = (c2 * direction[0] - c0 * direction[2]) / TORQUE_LENGTH
        load[5] = (c0 * direction[1] - c1 * direction[0]) / TORQUE_LENGTH
        # What holds more than the least so far is of no interest.
        least = min(least, _share_held(places, pressed, friction, load, least))
    return least


@njit(cache=True, nogil=True)
def _distance(corners: Array) -> float:
    """Of the plane through three points, the rows of (3, 3), from the origin."""
    a, b = corners[1] - corners[0], corners[2] - corners[0]
    n0, n1, n2 = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    length = math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    if length < 1e-15:
        return 0.0
    return abs(n0 * corners[0, 0] + n1 * corners[0, 1] + n2 * corners[0, 2]) / length


@njit(cache=True, nogil=True)
def _ball(
    places: Array, friction: Array, center: Array, uncertainty: Array, least_wanted: float, first: Array, facets: Array
) -> float:
    """Force that is held in every direction [of the sum of normal forces]; 0 where it is not above `least_wanted`."""
    scaled = places / TORQUE_LENGTH
    pressed = _pressure_rows(scaled)
    directions, held = np.empty((_MOST_DIRECTIONS, 3)), np.empty(_MOST_DIRECTIONS)
    count, least = len(first), math.inf
    for k in range(count):
        directions[k] = first[k]
        # The ball ends at the least value: what is half as much again is as good as more.
        held[k] = _at_any_center(scaled, pressed, friction, directions[k], center, uncertainty, min(1.5 * least, 1.0))
        least = min(least, held[k])
        if least <= least_wanted:
            return 0.0
    triangles = np.empty((len(facets) + 2 * _MOST_DIRECTIONS, 3), np.int64)
    triangles[: len(facets)] = facets
    distances, number, corners = np.empty(len(triangles)), len(facets), np.empty((3, 3))
    for t in range(number):
        for i in range(3):
            corners[i] = held[triangles[t, i]] * directions[triangles[t, i]]
        distances[t] = _distance(corners)
    while True:
        worst = 0
        for t in range(number):
            if distances[t] < distances[worst]:
                worst = t
        if distances[worst] >= _CLOSE * least or count == _MOST_DIRECTIONS:
            return distances[worst]
        # Its longest edge is divided, and with it each other triangle that has it.
        one, other, longest = 0, 1, -1.0
        for i in range(3):
            j = (i + 1) % 3
            a, b = triangles[worst, i], triangles[worst, j]
            length = 1.0 - (directions[a] * directions[b]).sum()
            if length > longest:
                longest, one, other = length, a, b
        middle = directions[one] + directions[other]
        directions[count] = middle / math.sqrt((middle * middle).sum())
        held[count] = _at_any_center(
            scaled, pressed, friction, directions[count], center, uncertainty, min(1.5 * least, 1.0)
        )
        least = min(least, held[count])
        if least <= least_wanted:
            return 0.0
        for t in range(number):
            has = 0
            for i in range(3):
                has += triangles[t, i] == one or triangles[t, i] == other
            if has == 2:
                triangles[number] = triangles[t]
                for i in range(3):
                    if triangles[t, i] == one:
                        triangles[t, i] = count
                    if triangles[number, i] == other:
                        triangles[number, i] = count
                for changed in (t, number):
                    for i in range(3):
                        corners[i] = held[triangles[changed, i]] * directions[triangles[changed, i]]
                    distances[changed] = _distance(corners)
                number += 1
        count += 1


@njit(cache=True, nogil=True)
def _hold_batch(
    points: Array,
    normals: Array,
    rotations: Array,
    translations: Array,
    openings: Array,
    center_of_mass: Array,
    half_pad: Array,
    errors: HoldErrors,
    directions: Array,
    triangles: Array,
    held: Array,
) -> None:
    for s in range(len(rotations)):
        held[s] = _hold(
            points, normals, rotations[s], translations[s], openings[s], center_of_mass, half_pad, errors, directions,
            triangles,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _hold(
    points: Array,
    normals: Array,
    rotation: Array,
    translation: Array,
    opening: float,
    center_of_mass: Array,
    half_pad: Array,
    errors: HoldErrors,
    directions: Array,
    triangles: Array,
) -> float:
    # A point of a pad moves by at most this along x and z.
    margin = np.empty(2)
    margin[0] = errors.position + errors.angle * math.hypot(half_pad[1], 0.5 * opening)
    margin[1] = errors.position + errors.angle * math.hypot(half_pad[0], 0.5 * opening)
    near, facing = _in_hand(points, normals, rotation, translation, half_pad + margin, 0.5 * opening)
    one, high_one, tilt_one = bearing_places(near, facing, 1.0, half_pad + margin, errors.noise)
    two, high_two, tilt_two = bearing_places(near, facing, -1.0, half_pad + margin, errors.noise)
    if len(one) == 0 or len(two) == 0:
        return 0.0
    extents, places, friction = np.empty((2, 2, 2)), np.empty((8, 3)), np.empty(2)
    for axis in range(2):
        extents[0, 0, axis], extents[0, 1, axis] = one[:, axis].min(), one[:, axis].max()
        extents[1, 0, axis], extents[1, 1, axis] = two[:, axis].min(), two[:, axis].max()
    places[:4, 1], places[4:, 1] = high_one, -high_two
    for finger in range(2):
        cone = math.atan(errors.friction) - errors.angle - (tilt_one if finger == 0 else tilt_two)
        if cone <= 0.0:
            return 0.0
        friction[finger] = math.tan(cone)
    center, turned = np.zeros(3), np.empty(3)
    for axis in range(3):
        for k in range(3):
            center[axis] += rotation[k, axis] * (center_of_mass[k] - translation[k])
    for axis in range(3):
        # A tilt that closing does not undo moves the centre of mass about the grasp.
        arm = math.hypot(center[(axis + 1) % 3], center[(axis + 2) % 3])
        turned[axis] = errors.center + errors.angle * arm
    box, uncertainty = np.empty((2, 2)), np.empty(3)
    best = 0.0
    # What holds no more than another choice is left at the first direction that says so.
    for choice in range(3, -1, -1):
        usable = True
        uncertainty[:] = turned
        for finger in range(2):
            for axis in range(2):
                low, high, half, by = extents[finger, 0, axis], extents[finger, 1, axis], half_pad[axis], margin[axis]
                if choice >> axis & 1:
                    # What every place of the pad within these bounds has before it, wherever the pad is.
                    box[0, axis], box[1, axis] = max(low + by, -half), min(high - by, half)
                    uncertainty[2 * axis] = turned[2 * axis] + by
                else:
                    box[0, axis], box[1, axis] = max(low, by - half), min(high, half - by)
                # A part that is neither is of no use.
                usable = usable and box[0, axis] <= box[1, axis]
            if not usable:
                break
            usable = patch_corners(one if finger == 0 else two, box, places[4 * finger : 4 * finger + 4])
            if not usable:
                break
        if usable:
            best = max(best, _ball(places, friction, center, uncertainty, best, directions, triangles))
    return 2.0 * errors.force / errors.mass * best


@njit(cache=True, nogil=True)
def _lever_batch(
    points: Array, normals: Array, rotations: Array, translations: Array, openings: Array, half: Array, noise: float,
    levers: Array,
) -> None:  # fmt: skip
    for s in range(len(rotations)):
        near, facing = _in_hand(points, normals, rotations[s], translations[s], half, 0.5 * openings[s])
        for finger in range(2):
            places, _, _ = bearing_places(near, facing, 1.0 - 2.0 * finger, half, noise)
            if len(places):
                levers[s, finger] = max(mean_distance(places), POINT_LEVER)


@njit(cache=True, nogil=True)
def _in_hand(
    points: Array, normals: Array, rotation: Array, translation: Array, half: Array, half_opening: float
) -> tuple[Array, Array]:
    """Points and normals between the pads, in the gripper's frame."""
    near, facing = np.empty((len(points), 3)), np.empty((len(points), 3))
    count = 0
    for i in range(len(points)):
        for axis in range(3):
            near[count, axis], facing[count, axis] = 0.0, 0.0
            for k in range(3):
                near[count, axis] += rotation[k, axis] * (points[i, k] - translation[k])
                facing[count, axis] += rotation[k, axis] * normals[i, k]
        if abs(near[count, 0]) <= half[0] and abs(near[count, 2]) <= half[1] and abs(near[count, 1]) <= half_opening:
            count += 1
    return near[:count], facing[:count]
