"""Which points of the bodies touch which shapes at the start of a step: compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.gaps import HALF_SPACE, gap
from morphit_ros.neural.contact.point_forces import CUTOFF, WIDTH
from morphit_ros.neural.contact.single_point import LUMP, gather_overlap
from morphit_ros.neural.dynamics.algebra import times, transposed_times
from morphit_ros.neural.dynamics.model import Model


class Contacts(NamedTuple):
    """The contacts of a step; those of pair k are first[k] … first[k + 1] − 1.

    Attributes:
        first: (Q + 1,).
        arms: (N, 3) from the body's centre of mass to the point, in the world [m].
        normals: (N, 3) of the shape there, in the world.
        gaps: (N,) [m] and steepness: (N,) the length of the gap's gradient.
        weights: (N,) [kg].
        twists: (Q, 6) of the body relative to the shape at the body's centre of mass, offsets: (Q, 3) from the shape's
            origin to that centre.
        lumps: (Q, 7) overlap, centroid and normal of the single-point form.
        curvatures: (N, 3, 3) derivative of the normal by the point [1/m]; lump_curvatures: (Q, 3, 3). Only filled for
            derivatives.
    """

    first: Array
    arms: Array
    normals: Array
    gaps: Array
    steepness: Array
    weights: Array
    twists: Array
    offsets: Array
    lumps: Array
    curvatures: Array
    lump_curvatures: Array


@inner
def make_contacts(model: Model) -> Contacts:
    n, pairs = model.capacity, len(model.pairs)
    return Contacts(
        np.zeros(pairs + 1, dtype=np.int64),
        np.empty((n, 3)),
        np.empty((n, 3)),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.zeros((pairs, 6)),
        np.zeros((pairs, 3)),
        np.zeros((pairs, LUMP)),
        np.empty((n, 3, 3)),
        np.zeros((pairs, 3, 3)),
    )


@inner
def set_twists(
    model: Model, x: Array, R: Array, v: Array, w: Array, frames: Array, frame_twists: Array, contacts: Contacts
) -> None:
    """Relative twists of all pairs at velocities v, w (B, 3)."""
    mine, theirs = np.empty(3), np.empty(3)
    for k in range(len(model.pairs)):
        a, s = model.pairs[k, 0], model.pairs[k, 1]
        b = model.owners[s]
        times(R[a], w[a], mine)
        c = contacts.offsets[k]
        t = contacts.twists[k]
        if b >= 0:
            times(R[b], w[b], theirs)
            for i in range(3):
                c[i] = x[a, i] - x[b, i]
                t[i] = v[a, i] - v[b, i]
        else:
            for i in range(3):
                theirs[i] = frame_twists[s, 3 + i]
                c[i] = x[a, i] - frames[s, 9 + i]
                t[i] = v[a, i] - frame_twists[s, i]
        t[0] -= theirs[1] * c[2] - theirs[2] * c[1]
        t[1] -= theirs[2] * c[0] - theirs[0] * c[2]
        t[2] -= theirs[0] * c[1] - theirs[1] * c[0]
        for i in range(3):
            t[3 + i] = mine[i] - theirs[i]


@inner
def shape_rotation(model: Model, s: int, R: Array, frames: Array, out: Array) -> None:
    """Rotation (3, 3) from a shape's frame to the world."""
    b = model.owners[s]
    for i in range(3):
        for j in range(3):
            out[i, j] = R[b, i, j] if b >= 0 else frames[s, 3 * i + j]


@inner
def find_contacts(
    model: Model, parameters: Array, x: Array, R: Array, frames: Array, slack: Array, contacts: Contacts
) -> None:
    """Fills `contacts` with the points that can feel a shape within this step.

    slack (Q,) bounds how much the velocity of any of the body's points relative to the shape changes in the step [m/s].
    """
    Rs = np.empty((3, 3))
    contacts.first[0] = 0
    for k in range(len(model.pairs)):
        s = model.pairs[k, 1]
        shape_rotation(model, s, R, frames, Rs)
        if model.shapes[s, 0] == HALF_SPACE:
            _meet_half_space(model, parameters, k, R, Rs, slack[k], contacts)
        else:
            _meet_shape(model, parameters, k, R, Rs, slack[k], contacts)
        if model.single[k] != 0:
            _lump(model, parameters, k, Rs, contacts)


@inner
def _band(single: int, width: float, ahead: float) -> float:
    """Gaps below this count. The hard indicator ends at zero."""
    return 1e-9 * width if single == 2 else CUTOFF * width + ahead


@inner
def _meet_half_space(
    model: Model, parameters: Array, k: int, R: Array, Rs: Array, slack: float, contacts: Contacts
) -> None:
    count = contacts.first[k]
    a = model.pairs[k, 0]
    c, t = contacts.offsets[k], contacts.twists[k]
    n0, n1, n2 = Rs[0, 2], Rs[1, 2], Rs[2, 2]
    # In the single-point form the overlap is explicit.
    step = model.step if model.single[k] == 0 else 0.0
    band = _band(model.single[k], parameters[k, WIDTH], step * slack)
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
    if ahead - steep * model.reaches[a] < band:
        for leaf in range(model.body_leaves[a, 0], model.body_leaves[a, 1]):
            p = model.leaf_centers[leaf]
            if ahead + l0 * p[0] + l1 * p[1] + l2 * p[2] - steep * model.leaf_radii[leaf] >= band:
                continue
            for i in range(model.leaf_first[leaf], model.leaf_first[leaf + 1]):
                p0, p1, p2 = model.points[i, 0], model.points[i, 1], model.points[i, 2]
                if ahead + l0 * p0 + l1 * p1 + l2 * p2 >= band:
                    continue
                r0 = r[0, 0] * p0 + r[0, 1] * p1 + r[0, 2] * p2
                r1 = r[1, 0] * p0 + r[1, 1] * p1 + r[1, 2] * p2
                r2 = r[2, 0] * p0 + r[2, 1] * p1 + r[2, 2] * p2
                contacts.arms[count, 0] = r0
                contacts.arms[count, 1] = r1
                contacts.arms[count, 2] = r2
                contacts.normals[count, 0] = n0
                contacts.normals[count, 1] = n1
                contacts.normals[count, 2] = n2
                contacts.gaps[count] = height + n0 * r0 + n1 * r1 + n2 * r2
                contacts.steepness[count] = 1.0
                contacts.weights[count] = model.weights[i]
                count += 1
    contacts.first[k + 1] = count


@inner
def _meet_shape(model: Model, parameters: Array, k: int, R: Array, Rs: Array, slack: float, contacts: Contacts) -> None:
    relative = np.empty((3, 3))
    offset, y, normal, unused = np.empty(3), np.empty(3), np.empty(3), np.empty((0, 3))
    spin, drift = np.empty(3), np.empty(3)
    count = contacts.first[k]
    contacts.first[k + 1] = count
    a, s = model.pairs[k, 0], model.pairs[k, 1]
    kind, first, numbers = model.shapes[s, 0], model.shapes[s, 1], model.shapes[s, 2]
    t = contacts.twists[k]
    # In the single-point form the overlap is explicit.
    step = model.step if model.single[k] == 0 else 0.0
    band = _band(model.single[k], parameters[k, WIDTH], step * slack)
    transposed_times(Rs, contacts.offsets[k], offset)
    transposed_times(Rs, t[:3], drift)
    transposed_times(Rs, t[3:], spin)
    turn = step * math.sqrt(spin[0] ** 2 + spin[1] ** 2 + spin[2] ** 2)
    move = step * math.sqrt(drift[0] ** 2 + drift[1] ** 2 + drift[2] ** 2)
    z, _ = gap(kind, model.shape_data, first, numbers, offset, normal, unused)
    if z - model.reaches[a] * (1.0 + turn) - move >= band:
        return
    for i in range(3):
        for j in range(3):
            relative[i, j] = Rs[0, i] * R[a, 0, j] + Rs[1, i] * R[a, 1, j] + Rs[2, i] * R[a, 2, j]
    for leaf in range(model.body_leaves[a, 0], model.body_leaves[a, 1]):
        times(relative, model.leaf_centers[leaf], y)
        reach = step * math.sqrt(
            (drift[0] + spin[1] * y[2] - spin[2] * y[1]) ** 2
            + (drift[1] + spin[2] * y[0] - spin[0] * y[2]) ** 2
            + (drift[2] + spin[0] * y[1] - spin[1] * y[0]) ** 2
        )
        for i in range(3):
            y[i] += offset[i]
        z, _ = gap(kind, model.shape_data, first, numbers, y, normal, unused)
        if z - model.leaf_radii[leaf] * (1.0 + turn) - reach >= band:
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
            contacts.gaps[count] = z
            contacts.steepness[count] = steep
            contacts.weights[count] = model.weights[p]
            times(R[a], model.points[p], contacts.arms[count])
            times(Rs, normal, contacts.normals[count])
            count += 1
    contacts.first[k + 1] = count


@inner
def _lump(model: Model, parameters: Array, k: int, Rs: Array, contacts: Contacts) -> None:
    """Overlap, centroid and normal of pair k."""
    lump = contacts.lumps[k]
    gather_overlap(
        contacts.first[k], contacts.first[k + 1], contacts.arms, contacts.gaps, contacts.weights,
        parameters[k, WIDTH], model.single[k] == 2, lump,
    )  # fmt: skip
    s = model.pairs[k, 1]
    point, y, normal, unused = np.empty(3), np.empty(3), np.empty(3), np.empty((0, 3))
    for i in range(3):
        point[i] = contacts.offsets[k, i] + lump[1 + i]
    transposed_times(Rs, point, y)
    gap(model.shapes[s, 0], model.shape_data, model.shapes[s, 1], model.shapes[s, 2], y, normal, unused)
    times(Rs, normal, lump[4:7])


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
    Rs, y, point, normal, curvature = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3), np.empty((3, 3))
    for k in range(len(model.pairs)):
        s = model.pairs[k, 1]
        kind, first, numbers = model.shapes[s, 0], model.shapes[s, 1], model.shapes[s, 2]
        begin, end = contacts.first[k], contacts.first[k + 1]
        if kind == HALF_SPACE:
            contacts.curvatures[begin:end] = 0.0
            contacts.lump_curvatures[k] = 0.0
            continue
        shape_rotation(model, s, R, frames, Rs)
        if model.single[k] != 0:
            for j in range(3):
                point[j] = contacts.offsets[k, j] + contacts.lumps[k, 1 + j]
            transposed_times(Rs, point, y)
            gap(kind, model.shape_data, first, numbers, y, normal, curvature)
            _turn(Rs, curvature, contacts.lump_curvatures[k])
            continue
        for i in range(begin, end):
            for j in range(3):
                point[j] = contacts.offsets[k, j] + contacts.arms[i, j]
            transposed_times(Rs, point, y)
            gap(kind, model.shape_data, first, numbers, y, normal, curvature)
            _turn(Rs, curvature, contacts.curvatures[i])
