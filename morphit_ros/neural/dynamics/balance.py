"""The balance of momentum over a step, and its Jacobian: compiled.

Unknowns are the linear velocity v (world) and the angular velocity ω (body) of each body. In each body's rows:

    m (v − v₋) − h (m g + F) = 0
    (h/2) (J ω s + ω × J ω − J ω₋ s₋ + ω₋ × J ω₋) − h τ = 0,   s = √(4/h² − ω²)

the first-order variational integrator of "Dynamics-Augmented Neural Objects" (DANO, section IV).
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.point_forces import DERIVED, fill_force
from morphit_ros.neural.contact.single_point import LUMP, lump_wrench
from morphit_ros.neural.dynamics.algebra import times, transposed_times
from morphit_ros.neural.dynamics.contacts import Contacts, set_twists
from morphit_ros.neural.dynamics.model import BODY, FORM, OWNER, SHAPE, Model


@inner
def spin_momentum(J: Array, w: Array, step: float, sign: float, out: Array) -> bool:
    """out = (h/2) (sign J ω s + ω × J ω); False if the spin is more than a step can hold (|ω| h ≥ 2)."""
    square = 4.0 / (step * step) - (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    if not square > 0.0:
        return False
    s = sign * math.sqrt(square)
    l0 = J[0, 0] * w[0] + J[0, 1] * w[1] + J[0, 2] * w[2]
    l1 = J[1, 0] * w[0] + J[1, 1] * w[1] + J[1, 2] * w[2]
    l2 = J[2, 0] * w[0] + J[2, 1] * w[1] + J[2, 2] * w[2]
    half = 0.5 * step
    out[0] = half * (s * l0 + w[1] * l2 - w[2] * l1)
    out[1] = half * (s * l1 + w[2] * l0 - w[0] * l2)
    out[2] = half * (s * l2 + w[0] * l1 - w[1] * l0)
    return True


@inner
def add_spin_jacobian(J: Array, w: Array, step: float, sign: float, out: Array) -> None:
    """Adds ∂ of `spin_momentum` by ω to out (3, 3)."""
    square = 4.0 / (step * step) - (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    s = sign * math.sqrt(square)
    half = 0.5 * step
    h = np.empty(3)
    times(J, w, h)
    for i in range(3):
        for j in range(3):
            out[i, j] += half * (s * J[i, j] - h[i] * w[j] / s)
    for j in range(3):
        out[0, j] += half * (w[1] * J[2, j] - w[2] * J[1, j])
        out[1, j] += half * (w[2] * J[0, j] - w[0] * J[2, j])
        out[2, j] += half * (w[0] * J[1, j] - w[1] * J[0, j])
    out[0, 1] += half * h[2]
    out[0, 2] -= half * h[1]
    out[1, 0] -= half * h[2]
    out[1, 2] += half * h[0]
    out[2, 0] += half * h[1]
    out[2, 1] -= half * h[0]


@inner
def pair_wrench(k: int, model: Model, contacts: Contacts, wrench: Array, by_twist: Array) -> None:
    """Wrench (6,) of pair k about its body's centre of mass and its derivative (6, 6) by the relative twist."""
    if model.pairs[k, FORM] != 0:
        lump_wrench(
            contacts.lumps[k], model.parameters[k], contacts.twists[k], wrench, by_twist, np.empty((0, LUMP)),
            np.empty((0, DERIVED)),
        )  # fmt: skip
        return
    fill_force(
        contacts.first[k], contacts.first[k + 1], contacts.points, model.parameters[k], model.step, contacts.twists[k],
        wrench, by_twist,
    )  # fmt: skip


@inner
def balance(model: Model, start: Array, u: Array, contacts: Contacts, residual: Array, jacobian: Array) -> bool:
    """Residual (6 B, 1) and Jacobian (6 B, 6 B) at velocities u (B, 6); False if a spin is too fast for the step.

    start (B, 6) is what doesn't depend on the new velocities: −m v₋ − h (m g + f) and the same of the spin.
    """
    step = model.step
    jacobian[:] = 0.0
    spin, spin_jacobian = np.empty(3), np.empty((3, 3))
    for a in range(len(u)):
        if not spin_momentum(model.inertias[a], u[a, 3:], step, 1.0, spin):
            return False
        spin_jacobian[:] = 0.0
        add_spin_jacobian(model.inertias[a], u[a, 3:], step, 1.0, spin_jacobian)
        for i in range(3):
            residual[6 * a + i, 0] = start[a, i] + model.masses[a] * u[a, i]
            residual[6 * a + 3 + i, 0] = start[a, 3 + i] + spin[i]
            jacobian[6 * a + i, 6 * a + i] = model.masses[a]
            for j in range(3):
                jacobian[6 * a + 3 + i, 6 * a + 3 + j] = spin_jacobian[i, j]
    set_twists(model, u, contacts)
    product = np.empty((6, 12))
    for k in range(len(model.pairs)):
        if contacts.first[k + 1] == contacts.first[k]:
            continue
        wrench, by_twist = contacts.wrenches[k], contacts.by_twists[k]
        pair_wrench(k, model, contacts, wrench, by_twist)
        a, b = model.pairs[k, BODY], model.shapes[model.pairs[k, SHAPE], OWNER]
        to_twist = contacts.maps[k]
        columns = 12 if b >= 0 else 6
        for i in range(6):
            for j in range(columns):
                total = 0.0
                for h in range(6):
                    total += by_twist[i, h] * to_twist[h, j]
                product[i, j] = total
        for i in range(columns):
            row = 6 * a + i if i < 6 else 6 * b + i - 6
            for h in range(6):
                residual[row, 0] -= step * to_twist[h, i] * wrench[h]
            for j in range(columns):
                column = 6 * a + j if j < 6 else 6 * b + j - 6
                total = 0.0
                for h in range(6):
                    total += to_twist[h, i] * product[h, j]
                jacobian[row, column] -= step * total
    return True


@inner
def merit(model: Model, residual: Array) -> float:
    """The residual as a speed [m/s]: momentum by mass, spin by the root of mass and moment of inertia."""
    total = 0.0
    for a in range(len(model.masses)):
        mass = model.masses[a]
        moment = (model.inertias[a, 0, 0] + model.inertias[a, 1, 1] + model.inertias[a, 2, 2]) / 3.0
        for i in range(3):
            total += (residual[6 * a + i, 0] / mass) ** 2 + residual[6 * a + 3 + i, 0] ** 2 / (mass * moment)
    return math.sqrt(total)


@inner
def fill_start(model: Model, R: Array, u: Array, wrenches: Array, start: Array) -> bool:
    """Momentum before the step and outer forces, as `balance` takes them; False if a spin is too fast."""
    spin, torque = np.empty(3), np.empty(3)
    for a in range(len(u)):
        if not spin_momentum(model.inertias[a], u[a, 3:], model.step, -1.0, spin):
            return False
        transposed_times(R[a], wrenches[a, 3:], torque)
        for i in range(3):
            start[a, i] = -model.masses[a] * (u[a, i] + model.step * model.gravity[i]) - model.step * wrenches[a, i]
            start[a, 3 + i] = spin[i] - model.step * torque[i]
    return True
