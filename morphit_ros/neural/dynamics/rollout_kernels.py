"""Steps one after the other, with or without derivatives, for one start or many: compiled."""

from __future__ import annotations

import math

import numba
import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.algebra import rotation_of
from morphit_ros.neural.dynamics.contacts import Contacts, fill_curvatures, find_contacts, make_contacts, set_twists
from morphit_ros.neural.dynamics.model import Model
from morphit_ros.neural.dynamics.newton import (
    CONVERGED,
    SINGULAR,
    TOO_FAST,
    fill_start,
    solve_velocities,
)
from morphit_ros.neural.dynamics.sensitivity import fill_derivatives, fill_right


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _reach_speed(twist: Array, reach: float) -> float:
    """Upper bound of the speed of a body's points [m/s]."""
    speed = math.sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2)
    return speed + reach * math.sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
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
    v_before, w_before = v.copy(), w.copy()
    set_twists(model, x, R, v, w, frames, frame_twists, contacts)
    before = contacts.twists.copy()
    change = np.empty(6)
    slack = np.zeros(len(model.pairs))
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
        contacts.twists[:] = before
    for a in range(bodies):
        for i in range(3):
            gain[a, i] = v[a, i] - v_before[a, i]
            gain[a, 3 + i] = w[a, i] - w_before[a, i]
    return CONVERGED


@numba.njit(cache=True, nogil=True, error_model="numpy")
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
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
    masses, inertias = model.masses * mass_scales, np.empty_like(model.inertias)
    for a in range(bodies):
        inertias[a] = model.inertias[a] * (mass_scales[a] * inertia_scales[a])
    contacts = make_contacts(model, with_derivatives)
    gain = np.zeros((bodies, 6))
    R, start, jacobian = np.empty((bodies, 3, 3)), np.empty((bodies, 6)), np.empty((6 * bodies, 6 * bodies))
    applied = np.empty((bodies, 6))
    basic = len(selection)
    right = np.empty((6 * bodies, 12 * bodies + count + basic))
    full = np.empty((12 * bodies, 12 * bodies + count + basic))
    x, q = states[0, :, :3].copy(), states[0, :, 3:7].copy()
    v, w = states[0, :, 7:10].copy(), states[0, :, 10:].copy()
    v_before, w_before = np.empty_like(v), np.empty_like(w)
    for t in range(steps):
        f = min(t, len(frames) - 1)
        applied[:] = wrenches[min(t, len(wrenches) - 1)]
        for j in range(count):
            applied[model.control_map[j] // 6, model.control_map[j] % 6] += controls[t, j]
        v_before[:] = v
        w_before[:] = w
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
            known = 12 * bodies + count
            derivatives[t, :, :known] = full[:, :known]
            for i in range(12 * bodies):
                for k in range(selection.shape[1]):
                    total = 0.0
                    for h in range(basic):
                        total += full[i, known + h] * selection[h, k]
                    derivatives[t, i, known + k] = total
        move(model.step, x, q, v, w)
        states[t + 1, :, :3] = x
        states[t + 1, :, 3:7] = q
        states[t + 1, :, 7:10] = v
        states[t + 1, :, 10:] = w
    return CONVERGED, steps


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chain(derivatives: Array, state_size: int, by_state: Array, by_parameters: Array) -> None:
    """Sensitivities of the states to the first state (T + 1, n, n) and to the parameters (T + 1, n, K), from the
    derivatives of each step (T, n, n + M + K)."""
    steps = len(derivatives)
    parameters = by_parameters.shape[2]
    by_state[0] = np.eye(state_size)
    by_parameters[0] = 0.0
    for t in range(steps):
        A = np.ascontiguousarray(derivatives[t, :, :state_size])
        by_state[t + 1] = A @ by_state[t]
        by_parameters[t + 1] = A @ by_parameters[t] + derivatives[t, :, derivatives.shape[2] - parameters :]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def penetrations(model: Model, parameters: Array, state: Array, frames: Array) -> Array:
    """(Q,) depth of the deepest point of each pair [m], negative where the nearest is outside (−∞ far away)."""
    bodies = len(state)
    R, x = np.empty((bodies, 3, 3)), state[:, :3].copy()
    still = np.zeros((bodies, 3))
    for a in range(bodies):
        rotation_of(state[a, 3:7], R[a])
    contacts = make_contacts(model, False)
    set_twists(model, x, R, still, still, frames, np.zeros((len(frames), 6)), contacts)
    contacts.twists[:] = 0.0
    find_contacts(model, parameters, x, R, frames, np.zeros(len(model.pairs)), contacts)
    depths = np.full(len(model.pairs), -np.inf)
    for k in range(len(model.pairs)):
        for i in range(contacts.first[k], contacts.first[k + 1]):
            depths[k] = max(depths[k], -contacts.gaps[i])
    return depths
