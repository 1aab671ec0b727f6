"""Steps one after the other, with or without derivatives, for one start or many: compiled."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import entry, inner
from morphit_ros.neural.dynamics.algebra import copy, rotation_of
from morphit_ros.neural.dynamics.balance import fill_start
from morphit_ros.neural.dynamics.contacts import Contacts, fill_curvatures, find_contacts, make_contacts, set_twists
from morphit_ros.neural.dynamics.model import Model
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
    model: Model,
    parameters: Array,
    masses: Array,
    inertias: Array,
    mass_scales: Array,
    x: Array,
    q: Array,
    v: Array,
    w: Array,
    gain: Array,
    frames: Array,
    frame_twists: Array,
    wrenches: Array,
    contacts: Contacts,
    R: Array,
    start: Array,
    need_jacobian: bool,
    jacobian: Array,
) -> int:
    """One step: replaces v, w (B, 3) by the new velocities; x, q stay. Status of the solution.

    gain (B, 6) is how the velocities changed in the step before, tried as a first guess, and is replaced.
    """
    bodies = len(masses)
    for a in range(bodies):
        rotation_of(q[a], R[a])
    if not fill_start(model, masses, inertias, R, v, w, wrenches, start):
        return TOO_FAST
    v_before, w_before = np.empty((bodies, 3)), np.empty((bodies, 3))
    copy(v, v_before)
    copy(w, w_before)
    set_twists(model, x, R, v, w, frames, frame_twists, contacts)
    pairs = len(model.pairs)
    before, change, slack = np.empty((pairs, 6)), np.empty(6), np.zeros(pairs)
    copy(contacts.twists, before)
    for k in range(len(slack)):
        for a in (model.pairs[k, 0], model.owners[model.pairs[k, 1]]):
            if a < 0:
                continue
            force = 0.0
            for i in range(3):
                force += (model.gravity[i] + wrenches[a, i] / masses[a]) ** 2
            slack[k] += 2.0 * model.step * math.sqrt(force)
            slack[k] += 1.5 * _reach_speed(gain[a], model.reaches[model.pairs[k, 0]])
    while True:
        find_contacts(model, parameters, x, R, frames, slack, contacts)
        status = solve_velocities(
            model, parameters, masses, inertias, mass_scales, x, R, frames, frame_twists, start, gain, v, w,
            contacts, need_jacobian, jacobian,
        )  # fmt: skip
        if status != CONVERGED:
            return status
        # A body whose velocity changed more than foreseen may touch points that were not looked at.
        enough = True
        for k in range(len(slack)):
            for i in range(6):
                change[i] = contacts.twists[k, i] - before[k, i]
            foreseen = _reach_speed(change, model.reaches[model.pairs[k, 0]])
            if foreseen > slack[k]:
                enough = False
                slack[k] = 1.5 * foreseen
        if enough:
            break
        # Contacts are looked for from the velocities that the slack is counted from.
        copy(before, contacts.twists)
    for a in range(bodies):
        for i in range(3):
            gain[a, i] = v[a, i] - v_before[a, i]
            gain[a, 3 + i] = w[a, i] - w_before[a, i]
    return CONVERGED


@inner
def move(step: float, x: Array, q: Array, v: Array, w: Array) -> None:
    """x⁺ = x + h v, q⁺ = q ⊗ (h/2) [ω, √(4/h² − ω²)], in place."""
    for a in range(len(x)):
        for i in range(3):
            x[a, i] += step * v[a, i]
        x1, y1, z1, w1 = q[a, 0], q[a, 1], q[a, 2], q[a, 3]
        x2, y2, z2 = 0.5 * step * w[a, 0], 0.5 * step * w[a, 1], 0.5 * step * w[a, 2]
        w2 = math.sqrt(1.0 - x2 * x2 - y2 * y2 - z2 * z2)
        q[a, 0] = w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2
        q[a, 1] = w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2
        q[a, 2] = w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2
        q[a, 3] = w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2
        # The product of unit quaternions, kept one against rounding.
        norm = math.sqrt(q[a, 0] ** 2 + q[a, 1] ** 2 + q[a, 2] ** 2 + q[a, 3] ** 2)
        for i in range(4):
            q[a, i] /= norm


@inner
def _read(state: Array, x: Array, q: Array, v: Array, w: Array) -> None:
    """Parts of the bodies' states (B, 13)."""
    for a in range(len(state)):
        for i in range(3):
            x[a, i], v[a, i], w[a, i] = state[a, i], state[a, 7 + i], state[a, 10 + i]
        for i in range(4):
            q[a, i] = state[a, 3 + i]


@inner
def _write(x: Array, q: Array, v: Array, w: Array, state: Array) -> None:
    """Fills the bodies' states (B, 13) from their parts."""
    for a in range(len(state)):
        for i in range(3):
            state[a, i], state[a, 7 + i], state[a, 10 + i] = x[a, i], v[a, i], w[a, i]
        for i in range(4):
            state[a, 3 + i] = q[a, i]


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
    masses, inertias = np.empty(bodies), np.empty((bodies, 3, 3))
    for a in range(bodies):
        masses[a] = model.masses[a] * mass_scales[a]
        for i in range(3):
            for j in range(3):
                inertias[a, i, j] = model.inertias[a, i, j] * (mass_scales[a] * inertia_scales[a])
    contacts = make_contacts(model)
    gain, R = np.zeros((bodies, 6)), np.empty((bodies, 3, 3))
    start, applied = np.empty((bodies, 6)), np.empty((bodies, 6))
    jacobian = np.empty((6 * bodies, 6 * bodies))
    width = 12 * bodies + count + len(selection) if with_derivatives else 0
    right, full = np.empty((6 * bodies, width)), np.empty((12 * bodies, width))
    x, q, v, w = np.empty((bodies, 3)), np.empty((bodies, 4)), np.empty((bodies, 3)), np.empty((bodies, 3))
    v_before, w_before = np.empty((bodies, 3)), np.empty((bodies, 3))
    _read(states[0], x, q, v, w)
    for t in range(steps):
        f = min(t, len(frames) - 1)
        copy(wrenches[min(t, len(wrenches) - 1)], applied)
        for j in range(count):
            applied[model.control_map[j] // 6, model.control_map[j] % 6] += controls[t, j]
        copy(v, v_before)
        copy(w, w_before)
        status = advance(
            model, parameters, masses, inertias, mass_scales, x, q, v, w, gain, frames[f], frame_twists[f], applied,
            contacts, R, start, with_derivatives, jacobian,
        )  # fmt: skip
        if status != CONVERGED:
            return status, t
        if with_derivatives:
            fill_curvatures(model, R, frames[f], contacts)
            fill_right(
                model, parameters, masses, inertias, mass_scales, inertia_scales, R, v_before, w_before, v, w, applied,
                contacts, right,
            )  # fmt: skip
            if not fill_derivatives(model.step, w, right, jacobian, full):
                return SINGULAR, t
            _combine(full, selection, derivatives[t])
        move(model.step, x, q, v, w)
        _write(x, q, v, w, states[t + 1])
    return CONVERGED, steps


@entry
def penetrations(model: Model, parameters: Array, state: Array, frames: Array) -> Array:
    """(Q,) depth of the deepest point of each pair [m], negative where the nearest is outside (−∞ far away)."""
    bodies = len(state)
    pairs = len(model.pairs)
    R, x, q, still = np.empty((bodies, 3, 3)), np.empty((bodies, 3)), np.empty((bodies, 4)), np.zeros((bodies, 3))
    _read(state, x, q, np.empty((bodies, 3)), np.empty((bodies, 3)))
    for a in range(bodies):
        rotation_of(q[a], R[a])
    contacts = make_contacts(model)
    set_twists(model, x, R, still, still, frames, np.zeros((len(frames), 6)), contacts)
    find_contacts(model, parameters, x, R, frames, np.zeros(pairs), contacts)
    depths = np.empty(pairs)
    for k in range(pairs):
        depth = -np.inf
        for i in range(contacts.first[k], contacts.first[k + 1]):
            depth = max(depth, -contacts.gaps[i])
        depths[k] = depth
    return depths
