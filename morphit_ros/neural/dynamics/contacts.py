"""Which points of the bodies touch which shapes at the start of a step: compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.gaps import HALF_SPACE, gap
from morphit_ros.neural.contact.point_forces import ARM, CUTOFF, GAP, NORMAL, ROWS, STEEPNESS, WEIGHT, WIDTH
from morphit_ros.neural.contact.single_point import LUMP, gather_overlap
from morphit_ros.neural.dynamics.algebra import copy, times, transposed_times
from morphit_ros.neural.dynamics.model import BODY, COUNT, FIRST, FORM, KIND, OWNER, SHAPE, Model


class Contacts(NamedTuple):
    """The contacts of a step; those of pair k are first[k] … first[k + 1] − 1.

    Attributes:
        first: (Q + 1,).
        points: (9, N) arm, normal, gap, length of the gap's gradient and weight, in the world, as in `point_forces`.
        offsets: (Q, 3) from the shape's origin to the body's centre of mass [m].
        maps: (Q, 6, 12) the twist of the body relative to the shape, at the body's centre of mass, by the velocities
            (v, ω) of the body and, in the last six, of the body that the shape is fixed to.
        drifts: (Q, 6) that twist of a body at rest. twists: (Q, 6) the whole.
        wrenches: (Q, 6) about the body's centre of mass, and by_twists: (Q, 6, 6) their derivatives by the twists.
        lumps: (Q, 7) overlap, centroid and normal of the single-point form.
        curvatures: (9, N) derivative of the normal by the point [1/m], by rows; lump_curvatures: (Q, 3, 3). Only filled
            for derivatives.
    """

    first: NDArray[np.int64]
    points: Array
    offsets: Array
    maps: Array
    drifts: Array
    twists: Array
    wrenches: Array
    by_twists: Array
    lumps: Array
    curvatures: Array
    lump_curvatures: Array


@inner
def make_contacts(model: Model) -> Contacts:
    n, pairs = model.capacity, len(model.pairs)
    return Contacts(
        np.zeros(pairs + 1, dtype=np.int64),
        np.empty((ROWS, n)),
        np.zeros((pairs, 3)),
        np.zeros((pairs, 6, 12)),
        np.zeros((pairs, 6)),
        np.zeros((pairs, 6)),
        np.zeros((pairs, 6)),
        np.zeros((pairs, 6, 6)),
        np.zeros((pairs, LUMP)),
        np.empty((9, n)),
        np.zeros((pairs, 3, 3)),
    )


@inner
def place_pairs(model: Model, states: Array, R: Array, frames: Array, frame_twists: Array, contacts: Contacts) -> None:
    """Fills offsets, maps and drifts of all pairs for bodies at states (B, 13) and shapes in the world at frames."""
    for k in range(len(model.pairs)):
        a, s = model.pairs[k, BODY], model.pairs[k, SHAPE]
        b = model.shapes[s, OWNER]
        c, out, drift = contacts.offsets[k], contacts.maps[k], contacts.drifts[k]
        for i in range(3):
            c[i] = states[a, i] - (states[b, i] if b >= 0 else frames[s, 9 + i])
            out[i, i] = 1.0
            for j in range(3):
                out[3 + i, 3 + j] = R[a, i, j]
        if b < 0:
            t = frame_twists[s]
            for i in range(3):
                h, j = (i + 1) % 3, (i + 2) % 3
                drift[i] = t[3 + j] * c[h] - t[3 + h] * c[j] - t[i]
                drift[3 + i] = -t[3 + i]
            continue
        for i in range(3):
            h, m = (i + 1) % 3, (i + 2) % 3
            out[i, 6 + i] = -1.0
            for j in range(3):
                out[i, 9 + j] = c[h] * R[b, m, j] - c[m] * R[b, h, j]
                out[3 + i, 9 + j] = -R[b, i, j]


@inner
def set_twists(model: Model, u: Array, contacts: Contacts) -> None:
    """Relative twists of all pairs at the bodies' velocities u (B, 6)."""
    for k in range(len(model.pairs)):
        a, b = model.pairs[k, BODY], model.shapes[model.pairs[k, SHAPE], OWNER]
        for i in range(6):
            total = contacts.drifts[k, i]
            for j in range(6):
                total += contacts.maps[k, i, j] * u[a, j]
                if b >= 0:
                    total += contacts.maps[k, i, 6 + j] * u[b, j]
            contacts.twists[k, i] = total


@inner
def _shape_rotation(model: Model, s: int, R: Array, frames: Array, out: Array) -> None:
    """Rotation (3, 3) from a shape's frame to the world."""
    b = model.shapes[s, OWNER]
    for i in range(3):
        for j in range(3):
            out[i, j] = R[b, i, j] if b >= 0 else frames[s, 3 * i + j]


@inner
def find_contacts(model: Model, R: Array, frames: Array, slack: Array, contacts: Contacts) -> None:
    """Fills `contacts` with the points that can feel a shape within this step.

    slack (Q,) bounds how much the velocity of any of the body's points relative to the shape changes in the step [m/s].
    """
    Rs = np.empty((3, 3))
    contacts.first[0] = 0
    for k in range(len(model.pairs)):
        s, form = model.pairs[k, SHAPE], model.pairs[k, FORM]
        _shape_rotation(model, s, R, frames, Rs)
        # In the single-point form the overlap is explicit, and the hard indicator ends at zero.
        step = model.step if form == 0 else 0.0
        width = model.parameters[k, WIDTH]
        band = 1e-9 * width if form == 2 else CUTOFF * width + step * slack[k]
        if model.shapes[s, KIND] == HALF_SPACE:
            _meet_half_space(model, k, R, Rs, step, band, contacts)
        else:
            _meet_shape(model, k, R, Rs, step, band, contacts)
        if form != 0:
            _lump(model, k, Rs, contacts)


@inner
def _meet_half_space(model: Model, k: int, R: Array, Rs: Array, step: float, band: float, contacts: Contacts) -> None:
    count = contacts.first[k]
    a = model.pairs[k, BODY]
    c, t, out = contacts.offsets[k], contacts.twists[k], contacts.points
    n0, n1, n2 = Rs[0, 2], Rs[1, 2], Rs[2, 2]
    # z + h u_n is linear in the body's point: height + line · point.
    v = t[0] * n0 + t[1] * n1 + t[2] * n2
    height = c[0] * n0 + c[1] * n1 + c[2] * n2
    m0 = n0 + step * (n1 * t[5] - n2 * t[4])
    m1 = n1 + step * (n2 * t[3] - n0 * t[5])
    m2 = n2 + step * (n0 * t[4] - n1 * t[3])
    r = R[a]
    l0 = r[0, 0] * m0 + r[1, 0] * m1 + r[2, 0] * m2
    l1 = r[0, 1] * m0 + r[1, 1] * m1 + r[2, 1] * m2
    l2 = r[0, 2] * m0 + r[1, 2] * m1 + r[2, 2] * m2
    steep = math.sqrt(l0 * l0 + l1 * l1 + l2 * l2)
    ahead = height + step * v
    scale = model.scales[a]
    if ahead - steep * model.reaches[a] < band:
        for leaf in range(model.body_leaves[a, 0], model.body_leaves[a, 1]):
            p = model.leaves[leaf]
            if ahead + l0 * p[0] + l1 * p[1] + l2 * p[2] - steep * p[3] >= band:
                continue
            for i in range(model.leaf_first[leaf], model.leaf_first[leaf + 1]):
                p0, p1, p2 = model.points[i, 0], model.points[i, 1], model.points[i, 2]
                if ahead + l0 * p0 + l1 * p1 + l2 * p2 >= band:
                    continue
                r0 = r[0, 0] * p0 + r[0, 1] * p1 + r[0, 2] * p2
                r1 = r[1, 0] * p0 + r[1, 1] * p1 + r[1, 2] * p2
                r2 = r[2, 0] * p0 + r[2, 1] * p1 + r[2, 2] * p2
                out[ARM, count], out[ARM + 1, count], out[ARM + 2, count] = r0, r1, r2
                out[NORMAL, count], out[NORMAL + 1, count], out[NORMAL + 2, count] = n0, n1, n2
                out[GAP, count] = height + n0 * r0 + n1 * r1 + n2 * r2
                out[STEEPNESS, count] = 1.0
                out[WEIGHT, count] = scale * model.points[i, 3]
                count += 1
    contacts.first[k + 1] = count


@inner
def _meet_shape(model: Model, k: int, R: Array, Rs: Array, step: float, band: float, contacts: Contacts) -> None:
    relative = np.empty((3, 3))
    offset, y, normal, unused = np.empty(3), np.empty(3), np.empty(3), np.empty((0, 3))
    spin, drift, world = np.empty(3), np.empty(3), np.empty(3)
    count = contacts.first[k]
    contacts.first[k + 1] = count
    a, s = model.pairs[k, BODY], model.pairs[k, SHAPE]
    kind, first, numbers = model.shapes[s, KIND], model.shapes[s, FIRST], model.shapes[s, COUNT]
    t, out = contacts.twists[k], contacts.points
    transposed_times(Rs, contacts.offsets[k], offset)
    transposed_times(Rs, t[:3], drift)
    transposed_times(Rs, t[3:], spin)
    turn = step * math.sqrt(spin[0] ** 2 + spin[1] ** 2 + spin[2] ** 2)
    move = step * math.sqrt(drift[0] ** 2 + drift[1] ** 2 + drift[2] ** 2)
    for i in range(3):
        for j in range(3):
            relative[i, j] = Rs[0, i] * R[a, 0, j] + Rs[1, i] * R[a, 1, j] + Rs[2, i] * R[a, 2, j]
    # The whole body, then its leaves, then their points: balls of decreasing size. −1 is the body.
    for leaf in range(model.body_leaves[a, 0] - 1, model.body_leaves[a, 1]):
        whole = leaf < model.body_leaves[a, 0]
        if whole:
            y[0], y[1], y[2] = 0.0, 0.0, 0.0
            radius, reach = model.reaches[a], move
        else:
            times(relative, model.leaves[leaf], y)
            radius = model.leaves[leaf, 3]
            reach = step * math.sqrt(
                (drift[0] + spin[1] * y[2] - spin[2] * y[1]) ** 2
                + (drift[1] + spin[2] * y[0] - spin[0] * y[2]) ** 2
                + (drift[2] + spin[0] * y[1] - spin[1] * y[0]) ** 2
            )
        for i in range(3):
            y[i] += offset[i]
        z, _ = gap(kind, model.shape_data, first, numbers, y, normal, unused)
        if z - radius * (1.0 + turn) - reach >= band:
            if whole:
                return
            continue
        if whole:
            continue
        for p in range(model.leaf_first[leaf], model.leaf_first[leaf + 1]):
            times(relative, model.points[p], y)
            u0 = drift[0] + spin[1] * y[2] - spin[2] * y[1]
            u1 = drift[1] + spin[2] * y[0] - spin[0] * y[2]
            u2 = drift[2] + spin[0] * y[1] - spin[1] * y[0]
            for i in range(3):
                y[i] += offset[i]
            z, steep = gap(kind, model.shape_data, first, numbers, y, normal, unused)
            if z + step * (u0 * normal[0] + u1 * normal[1] + u2 * normal[2]) >= band:
                continue
            times(R[a], model.points[p], world)
            for i in range(3):
                out[ARM + i, count] = world[i]
            times(Rs, normal, world)
            for i in range(3):
                out[NORMAL + i, count] = world[i]
            out[GAP, count] = z
            out[STEEPNESS, count] = steep
            out[WEIGHT, count] = model.scales[a] * model.points[p, 3]
            count += 1
    contacts.first[k + 1] = count


@inner
def _lump(model: Model, k: int, Rs: Array, contacts: Contacts) -> None:
    """Overlap, centroid and normal of pair k."""
    lump = contacts.lumps[k]
    gather_overlap(
        contacts.first[k], contacts.first[k + 1], contacts.points, model.parameters[k, WIDTH],
        model.pairs[k, FORM] == 2, lump,
    )  # fmt: skip
    normal = np.empty(3)
    _shape_at(model, k, Rs, contacts.offsets[k], lump[1:4], normal, np.empty((0, 3)))
    times(Rs, normal, lump[4:7])


@inner
def _shape_at(model: Model, k: int, Rs: Array, offset: Array, arm: Array, normal: Array, curvature: Array) -> None:
    """Normal of pair k's shape, and its curvature, at an arm (3,) from the body's centre of mass, in its own frame."""
    s = model.pairs[k, SHAPE]
    point, y = np.empty(3), np.empty(3)
    for i in range(3):
        point[i] = offset[i] + arm[i]
    transposed_times(Rs, point, y)
    gap(model.shapes[s, KIND], model.shape_data, model.shapes[s, FIRST], model.shapes[s, COUNT], y, normal, curvature)


@inner
def _turn(Rs: Array, curvature: Array, out: Array) -> None:
    """out = R curvature Rᵀ."""
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                for h in range(3):
                    total += Rs[i, k] * curvature[k, h] * Rs[j, h]
            out[i, j] = total


@inner
def fill_curvatures(model: Model, R: Array, frames: Array, contacts: Contacts) -> None:
    """Curvature of the shape at each contact, and at each lump, in the world."""
    Rs, arm, normal, curvature, world = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for k in range(len(model.pairs)):
        s = model.pairs[k, SHAPE]
        begin, end = contacts.first[k], contacts.first[k + 1]
        if model.shapes[s, KIND] == HALF_SPACE:
            for j in range(9):
                for i in range(begin, end):
                    contacts.curvatures[j, i] = 0.0
            contacts.lump_curvatures[k] = 0.0
            continue
        _shape_rotation(model, s, R, frames, Rs)
        single = model.pairs[k, FORM] != 0
        # One place for both forms: the lump, or each of the contacts.
        for i in range(begin, min(begin + 1, end) if single else end):
            for j in range(3):
                arm[j] = contacts.lumps[k, 1 + j] if single else contacts.points[ARM + j, i]
            _shape_at(model, k, Rs, contacts.offsets[k], arm, normal, curvature)
            _turn(Rs, curvature, world)
            if single:
                copy(world, contacts.lump_curvatures[k])
                continue
            for j in range(9):
                contacts.curvatures[j, i] = world[j // 3, j % 3]
