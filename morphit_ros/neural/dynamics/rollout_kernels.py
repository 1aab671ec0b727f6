"""Steps one after the other, with or without derivatives, for one start or many: compiled."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import entry, inner
from morphit_ros.neural.contact.point_forces import GAP
from morphit_ros.neural.dynamics.algebra import copy, rotation_of
from morphit_ros.neural.dynamics.balance import fill_start
from morphit_ros.neural.dynamics.contacts import (
    Contacts,
    fill_curvatures,
    find_contacts,
    make_contacts,
    place_pairs,
    set_twists,
)
from morphit_ros.neural.dynamics.model import BODY, OWNER, SHAPE, Model
from morphit_ros.neural.dynamics.newton import (
    CONVERGED,
    SINGULAR,
    TOO_FAST,
    solve_velocities,
)
from morphit_ros.neural.dynamics.sensitivity import fill_derivatives, fill_right


@inner
def _reach_speed(twist: Array, reach: float) -> float:
    """Upper bound of the speed of a body's points [m/s]."""
    speed = math.sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2)
    return speed + reach * math.sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)


@inner
def advance(
    model: Model, state: Array, u: Array, gain: Array, frames: Array, frame_twists: Array, wrenches: Array,
    contacts: Contacts, R: Array, start: Array, jacobian: Array,
) -> int:  # fmt: skip
    """One step from state (B, 13): replaces the velocities u (B, 6) by the new ones. Status of the solution.

    gain (B, 6) is how the velocities changed in the step before, tried as a first guess, and is replaced.
    """
    bodies, pairs = len(u), len(model.pairs)
    for a in range(bodies):
        rotation_of(state[a, 3:7], R[a])
    if not fill_start(model, R, u, wrenches, start):
        return TOO_FAST
    place_pairs(model, state, R, frames, frame_twists, contacts)
    set_twists(model, u, contacts)
    before, change, slack = np.empty((pairs, 6)), np.empty(6), np.zeros(pairs)
    copy(contacts.twists, before)
    for k in range(pairs):
        reach = model.reaches[model.pairs[k, BODY]]
        for a in (model.pairs[k, BODY], model.shapes[model.pairs[k, SHAPE], OWNER]):
            if a < 0:
                continue
            force = 0.0
            for i in range(3):
                force += (model.gravity[i] + wrenches[a, i] / model.masses[a]) ** 2
            slack[k] += 2.0 * model.step * math.sqrt(force) + 1.5 * _reach_speed(gain[a], reach)
    enough = False
    while not enough:
        find_contacts(model, R, frames, slack, contacts)
        status = solve_velocities(model, start, gain, u, contacts, jacobian)
        if status != CONVERGED:
            return status
        # A body whose velocity changed more than foreseen may touch points that were not looked at.
        enough = True
        for k in range(pairs):
            for i in range(6):
                change[i] = contacts.twists[k, i] - before[k, i]
            foreseen = _reach_speed(change, model.reaches[model.pairs[k, BODY]])
            if foreseen > slack[k]:
                enough = False
                slack[k] = 1.5 * foreseen
        if not enough:
            # Contacts are looked for from the velocities that the slack is counted from.
            copy(before, contacts.twists)
    for a in range(bodies):
        for i in range(6):
            gain[a, i] = u[a, i] - state[a, 7 + i]
    return CONVERGED


@inner
def move(step: float, state: Array, u: Array, after: Array) -> None:
    """The states (B, 13) after a step at velocities u: x⁺ = x + h v, q⁺ = q ⊗ (h/2) [ω, √(4/h² − ω²)]."""
    for a in range(len(u)):
        for i in range(3):
            after[a, i] = state[a, i] + step * u[a, i]
        x1, y1, z1, w1 = state[a, 3], state[a, 4], state[a, 5], state[a, 6]
        x2, y2, z2 = 0.5 * step * u[a, 3], 0.5 * step * u[a, 4], 0.5 * step * u[a, 5]
        w2 = math.sqrt(1.0 - x2 * x2 - y2 * y2 - z2 * z2)
        after[a, 3] = w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2
        after[a, 4] = w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2
        after[a, 5] = w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2
        after[a, 6] = w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2
        # The product of unit quaternions, kept one against rounding.
        norm = math.sqrt(after[a, 3] ** 2 + after[a, 4] ** 2 + after[a, 5] ** 2 + after[a, 6] ** 2)
        for i in range(4):
            after[a, 3 + i] /= norm
        for i in range(6):
            after[a, 7 + i] = u[a, i]


@inner
def _combine(full: Array, selection: Array, out: Array) -> None:
    """out (n, known + K) from derivatives by the known columns and L basic parameters, and their selection (L, K)."""
    basic, chosen = selection.shape
    known = full.shape[1] - basic
    for i in range(len(full)):
        for j in range(known):
            out[i, j] = full[i, j]
        for k in range(chosen):
            total = 0.0
            for h in range(basic):
                total += full[i, known + h] * selection[h, k]
            out[i, known + k] = total


@entry
def roll_out(
    model: Model,
    parameters: Array,
    mass_scales: Array,
    inertia_scales: Array,
    frames: Array,
    frame_twists: Array,
    wrenches: Array,
    controls: Array,
    states: Array,
    selection: Array,
    derivatives: Array,
) -> tuple[int, int]:
    """Fills states (T + 1, B, 13) from its first row; returns a status and the number of steps done.

    frames (F, S, 12) and frame_twists (F, S, 6): pose (rotation by rows, origin) and twist of each shape in the world
    at each step, the last used for all later ones. wrenches (W, B, 6) likewise. controls (T, M). selection (L, K)
    combines the L basic parameters to the K asked for. derivatives (T, 12 B, 12 B + M + K), or (0, …) for none.
    """
    bodies = states.shape[1]
    steps = len(states) - 1
    count = len(model.control_map)
    with_derivatives = len(derivatives) > 0
    model = _with_values(model, parameters, mass_scales, inertia_scales)
    contacts = make_contacts(model)
    gain, u, R = np.zeros((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 3, 3))
    start, applied, u_before = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    jacobian = np.empty((6 * bodies, 6 * bodies))
    width = 12 * bodies + count + len(selection) if with_derivatives else 0
    right, full = np.empty((6 * bodies, width)), np.empty((12 * bodies, width))
    for a in range(bodies):
        for i in range(6):
            u[a, i] = states[0, a, 7 + i]
    for t in range(steps):
        f = min(t, len(frames) - 1)
        copy(wrenches[min(t, len(wrenches) - 1)], applied)
        for j in range(count):
            applied[model.control_map[j] // 6, model.control_map[j] % 6] += controls[t, j]
        copy(u, u_before)
        status = advance(model, states[t], u, gain, frames[f], frame_twists[f], applied, contacts, R, start, jacobian)
        if status != CONVERGED:
            return status, t
        if with_derivatives:
            fill_curvatures(model, R, frames[f], contacts)
            fill_right(model, inertia_scales, R, u_before, u, applied, contacts, right)
            if not fill_derivatives(model.step, u, right, jacobian, full):
                return SINGULAR, t
            _combine(full, selection, derivatives[t])
        move(model.step, states[t], u, states[t + 1])
    return CONVERGED, steps


@inner
def _with_values(model: Model, parameters: Array, mass_scales: Array, inertia_scales: Array) -> Model:
    """The model with other parameters of the pairs, and with mass and inertia scaled."""
    bodies = len(model.masses)
    masses, inertias = np.empty(bodies), np.empty((bodies, 3, 3))
    for a in range(bodies):
        masses[a] = model.masses[a] * mass_scales[a]
        for i in range(3):
            for j in range(3):
                inertias[a, i, j] = model.inertias[a, i, j] * (mass_scales[a] * inertia_scales[a])
    return Model(
        model.step, model.gravity, parameters, masses, inertias, mass_scales, model.reaches, model.points,
        model.leaves, model.leaf_first, model.body_leaves, model.shapes, model.shape_data, model.pairs,
        model.control_map, model.capacity,
    )  # fmt: skip


@entry
def penetrations(model: Model, parameters: Array, state: Array, frames: Array) -> Array:
    """(Q,) depth of the deepest point of each pair [m], negative where the nearest is outside (−∞ far away)."""
    bodies, pairs = len(state), len(model.pairs)
    R = np.empty((bodies, 3, 3))
    for a in range(bodies):
        rotation_of(state[a, 3:7], R[a])
    model = _with_values(model, parameters, model.scales, model.scales)
    contacts = make_contacts(model)
    # Nothing moves: twists are left zero.
    place_pairs(model, state, R, frames, np.zeros((len(frames), 6)), contacts)
    find_contacts(model, R, frames, np.zeros(pairs), contacts)
    depths = np.full(pairs, -np.inf)
    for k in range(pairs):
        for i in range(contacts.first[k], contacts.first[k + 1]):
            depths[k] = max(depths[k], -contacts.points[GAP, i])
    return depths
