"""Derivatives of a step by the implicit function theorem: compiled.

State tangents are, for each body, position (world), rotation vector (body, right perturbation), velocity (world) and
angular velocity (body): 12 numbers. Parameters are those of each pair (six: friction, spring, damper, sliding drag,
rolling and torsional friction), then the scales of mass (with inertia and weights) and of inertia of each body.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.point_forces import DERIVED, WIDTH
from morphit_ros.neural.contact.point_sensitivity import fill_sensitivity
from morphit_ros.neural.contact.single_point import LUMP, lump_wrench, overlap_by_pose
from morphit_ros.neural.dynamics.algebra import eliminate, multiply, skew, times
from morphit_ros.neural.dynamics.balance import add_spin_jacobian, spin_momentum
from morphit_ros.neural.dynamics.contacts import Contacts
from morphit_ros.neural.dynamics.model import BODY, FORM, OWNER, SHAPE, Model


@inner
def _add_cross_columns(vector: Array, R: Array, sign: float, out: Array) -> None:
    """Adds sign (R e_j) × vector in column j of out (3, 3): the turn of a vector with its body."""
    for j in range(3):
        out[0, j] += sign * (R[1, j] * vector[2] - R[2, j] * vector[1])
        out[1, j] += sign * (R[2, j] * vector[0] - R[0, j] * vector[2])
        out[2, j] += sign * (R[0, j] * vector[1] - R[1, j] * vector[0])


@inner
def _add_turned(R: Array, vector: Array, factor: float, out: Array, row: int, column: int) -> None:
    """Adds factor Rᵀ ((R e_j) × vector) in column j of a block (3, 3) of out: the turn of a torque in its body."""
    turned = np.zeros((3, 3))
    _add_cross_columns(vector, R, factor, turned)
    _add_local(R, turned, 1.0, out, row, column)


@inner
def _add_local(R: Array, matrix: Array, factor: float, out: Array, row: int, column: int) -> None:
    """Adds factor Rᵀ matrix to a block (3, 3) of out."""
    for i in range(3):
        for j in range(3):
            total = 0.0
            for h in range(3):
                total += R[h, i] * matrix[h, j]
            out[row + i, column + j] += factor * total


@inner
def _pair_sensitivity(k: int, model: Model, contacts: Contacts, by_pose: Array, by_parameters: Array) -> None:
    """Derivatives of pair k's wrench by the pose of its body (6, 6) and by its parameters (6, 6)."""
    first, last, p, twist = contacts.first[k], contacts.first[k + 1], model.parameters[k], contacts.twists[k]
    if model.pairs[k, FORM] == 0:
        fill_sensitivity(
            first, last, contacts.points, contacts.curvatures, p, model.step, twist, by_pose, by_parameters
        )
        return
    wrench, by_twist, by_lump, lumps = np.empty(6), np.empty((6, 6)), np.empty((6, LUMP)), np.empty((LUMP, 6))
    lump_wrench(contacts.lumps[k], p, twist, wrench, by_twist, by_lump, by_parameters)
    overlap_by_pose(
        first, last, contacts.points, p[WIDTH], model.pairs[k, FORM] == 2, contacts.lumps[k],
        contacts.lump_curvatures[k], lumps,
    )  # fmt: skip
    multiply(by_lump, lumps, by_pose)


@inner
def _motion_columns(R: Array, a: int, b: int, w: Array, c: Array, twist: Array, pose: Array, twists: Array) -> None:
    """Relative pose (6, 12) and relative twist (6, 12), as seen from the shape, by position and rotation vector of
    body a (columns 0 to 5) and body b (6 to 11), with the velocities (v, ω) held."""
    pose[:] = 0.0
    twists[:] = 0.0
    spin = np.empty(3)
    times(R[a], w, spin)
    for i in range(3):
        pose[i, i] = 1.0
        for j in range(3):
            pose[3 + i, 3 + j] = R[a, i, j]
    # Ω_a turns with body a.
    _add_cross_columns(spin, R[a], 1.0, twists[3:6, 3:6])
    # v_a − v_b − Ω_b × c: first c varied, then Ω_b, then everything as seen by b, which turns by φ_b.
    for i in range(3):
        spin[i] -= twist[3 + i]
    matrix = np.empty((3, 3))
    skew(spin, matrix)
    for i in range(3):
        for j in range(3):
            twists[i, j] -= matrix[i, j]
    if b < 0:
        return
    for i in range(3):
        pose[i, 6 + i] = -1.0
        for j in range(3):
            twists[i, 6 + j] += matrix[i, j]
            pose[3 + i, 9 + j] = -R[b, i, j]
    # −φ_b × c
    _add_cross_columns(c, R[b], -1.0, pose[0:3, 9:12])
    turned = np.zeros((3, 3))
    _add_cross_columns(spin, R[b], 1.0, turned)
    # turned = δΩ_b by θ_b; −δΩ_b × c = c × δΩ_b
    skew(c, matrix)
    for i in range(3):
        for j in range(3):
            for h in range(3):
                twists[i, 9 + j] += matrix[i, h] * turned[h, j]
            twists[3 + i, 9 + j] -= turned[i, j]
    _add_cross_columns(twist[:3], R[b], -1.0, twists[0:3, 9:12])
    _add_cross_columns(twist[3:], R[b], -1.0, twists[3:6, 9:12])


@inner
def _add_pair(k: int, model: Model, R: Array, u: Array, contacts: Contacts, right: Array) -> None:
    """Adds −∂(residual) of a pair by state, and by its parameters, to the right-hand sides."""
    bodies = len(u)
    a, b = model.pairs[k, BODY], model.shapes[model.pairs[k, SHAPE], OWNER]
    c, to_twist, twist = contacts.offsets[k], contacts.maps[k], contacts.twists[k]
    wrench, by_twist = contacts.wrenches[k], contacts.by_twists[k]
    by_pose, by_parameters = np.empty((6, 6)), np.empty((6, DERIVED))
    _pair_sensitivity(k, model, contacts, by_pose, by_parameters)
    pose, twists, change = np.empty((6, 12)), np.empty((6, 12)), np.zeros((6, 12))
    _motion_columns(R, a, b, u[a, 3:], c, twist, pose, twists)
    columns = 12 if b >= 0 else 6
    for i in range(6):
        for j in range(columns):
            total = 0.0
            for h in range(6):
                total += by_pose[i, h] * pose[h, j] + by_twist[i, h] * twists[h, j]
            change[i, j] = total
    if b >= 0:
        # The wrench turns with the shape.
        _add_cross_columns(wrench[:3], R[b], 1.0, change[0:3, 9:12])
        _add_cross_columns(wrench[3:], R[b], 1.0, change[3:6, 9:12])
    step = model.step
    first = 12 * bodies + len(model.control_map)
    # Force and torque in the rows of a and b: to_twistᵀ wrench, with both factors varied.
    for i in range(columns):
        row = 6 * a + i if i < 6 else 6 * b + i - 6
        for h in range(6):
            factor = step * to_twist[h, i]
            for j in range(columns):
                column = 12 * a + j if j < 6 else 12 * b + j - 6
                right[row, column] += factor * change[h, j]
            for j in range(DERIVED):
                right[row, first + DERIVED * k + j] += factor * by_parameters[h, j]
            # The wrench is in proportion to the weights.
            right[row, first + DERIVED * len(model.pairs) + a] += factor * wrench[h] / model.scales[a]
    # R_aᵀ τ: −R_aᵀ (φ_a × τ).
    _add_turned(R[a], wrench[3:], -step, right, 6 * a + 3, 12 * a + 3)
    if b < 0:
        return
    # −R_bᵀ (τ + c × F): turns with b, and c changes by x_a − x_b.
    torque, matrix = np.empty(3), np.empty((3, 3))
    torque[0] = wrench[3] + c[1] * wrench[2] - c[2] * wrench[1]
    torque[1] = wrench[4] + c[2] * wrench[0] - c[0] * wrench[2]
    torque[2] = wrench[5] + c[0] * wrench[1] - c[1] * wrench[0]
    _add_turned(R[b], torque, step, right, 6 * b + 3, 12 * b + 3)
    # δc × F = −[F] δc
    skew(wrench[:3], matrix)
    _add_local(R[b], matrix, step, right, 6 * b + 3, 12 * a)
    _add_local(R[b], matrix, -step, right, 6 * b + 3, 12 * b)


@inner
def fill_right(
    model: Model, inertia_scales: Array, R: Array, u_before: Array, u: Array, wrenches: Array, contacts: Contacts,
    right: Array,
) -> None:  # fmt: skip
    """right (6 B, 12 B + M + K) = −∂(residual) by state, controls and parameters, at the new velocities u (B, 6)."""
    step = model.step
    bodies = len(u)
    controls = 12 * bodies
    scales = controls + len(model.control_map) + DERIVED * len(model.pairs)
    right[:] = 0.0
    after, before, matrix = np.empty(3), np.empty(3), np.empty((3, 3))
    for a in range(bodies):
        mass, scale = model.masses[a], model.scales[a]
        for i in range(3):
            right[6 * a + i, 12 * a + 6 + i] = mass
            right[6 * a + i, scales + a] -= mass * (u[a, i] - u_before[a, i] - step * model.gravity[i]) / scale
        matrix[:] = 0.0
        add_spin_jacobian(model.inertias[a], u_before[a, 3:], step, -1.0, matrix)
        spin_momentum(model.inertias[a], u[a, 3:], step, 1.0, after)
        spin_momentum(model.inertias[a], u_before[a, 3:], step, -1.0, before)
        for i in range(3):
            change = after[i] + before[i]
            right[6 * a + 3 + i, scales + a] -= change / scale
            right[6 * a + 3 + i, scales + bodies + a] -= change / inertia_scales[a]
            for j in range(3):
                right[6 * a + 3 + i, 12 * a + 9 + j] -= matrix[i, j]
        _add_turned(R[a], wrenches[a, 3:], -step, right, 6 * a + 3, 12 * a + 3)
    for j in range(len(model.control_map)):
        a, component = model.control_map[j] // 6, model.control_map[j] % 6
        if component < 3:
            right[6 * a + component, controls + j] += step
        else:
            for i in range(3):
                right[6 * a + 3 + i, controls + j] += step * R[a, component - 3, i]
    for k in range(len(model.pairs)):
        if contacts.first[k + 1] > contacts.first[k]:
            _add_pair(k, model, R, u, contacts, right)


@inner
def fill_derivatives(step: float, u: Array, right: Array, jacobian: Array, out: Array) -> bool:
    """out (12 B, 12 B + M + K): the next state's tangents by state, controls and parameters. Destroys its inputs.

    False if the Jacobian is singular.
    """
    if not eliminate(jacobian, right):
        return False
    columns = right.shape[1]
    out[:] = 0.0
    for a in range(len(u)):
        u0, u1, u2 = 0.5 * step * u[a, 3], 0.5 * step * u[a, 4], 0.5 * step * u[a, 5]
        c = math.sqrt(1.0 - u0 * u0 - u1 * u1 - u2 * u2)
        # Rotation of this step, transposed, and the rotation vector by ω: h (c 1 + u uᵀ/c − [u]).
        t = (
            (1 - 2 * (u1 * u1 + u2 * u2), 2 * (u0 * u1 + u2 * c), 2 * (u0 * u2 - u1 * c)),
            (2 * (u0 * u1 - u2 * c), 1 - 2 * (u0 * u0 + u2 * u2), 2 * (u1 * u2 + u0 * c)),
            (2 * (u0 * u2 + u1 * c), 2 * (u1 * u2 - u0 * c), 1 - 2 * (u0 * u0 + u1 * u1)),
        )
        e = (
            (c + u0 * u0 / c, u0 * u1 / c + u2, u0 * u2 / c - u1),
            (u1 * u0 / c - u2, c + u1 * u1 / c, u1 * u2 / c + u0),
            (u2 * u0 / c + u1, u2 * u1 / c - u0, c + u2 * u2 / c),
        )
        for j in range(columns):
            for i in range(3):
                out[12 * a + i, j] = step * right[6 * a + i, j]
                out[12 * a + 6 + i, j] = right[6 * a + i, j]
                out[12 * a + 9 + i, j] = right[6 * a + 3 + i, j]
            for i in range(3):
                out[12 * a + 3 + i, j] = step * (
                    e[i][0] * right[6 * a + 3, j] + e[i][1] * right[6 * a + 4, j] + e[i][2] * right[6 * a + 5, j]
                )
        for i in range(3):
            out[12 * a + i, 12 * a + i] += 1.0
            for j in range(3):
                out[12 * a + 3 + i, 12 * a + 3 + j] += t[i][j]
    return True
