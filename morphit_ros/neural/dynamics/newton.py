"""The velocities at the end of a step, by Newton's method on the balance of momentum: compiled."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.dynamics.algebra import copy, eliminate
from morphit_ros.neural.dynamics.balance import balance, merit
from morphit_ros.neural.dynamics.contacts import Contacts, set_twists
from morphit_ros.neural.dynamics.model import Model

ITERATIONS = 60
# Of the velocity [m/s per second of free fall]: the merit function is a speed.
TOLERANCE = 1e-13
CONVERGED, STALLED, TOO_FAST, SINGULAR = range(4)


@inner
def solve_velocities(
    model: Model,
    parameters: Array,
    masses: Array,
    inertias: Array,
    mass_scales: Array,
    x: Array,
    R: Array,
    frames: Array,
    frame_twists: Array,
    start: Array,
    gain: Array,
    v: Array,
    w: Array,
    contacts: Contacts,
    need_jacobian: bool,
    jacobian: Array,
) -> int:
    """Replaces v, w (B, 3) by the velocities after the step; status.

    It starts from them with the gain (B, 6) of the step before added if that helps, and clears the gain: the same
    motion goes on. The Jacobian (6 B, 6 B) at the solution is left in `jacobian` if it is needed.
    """
    bodies = len(masses)
    residual, change = np.empty((6 * bodies, 1)), np.empty((6 * bodies, 1))
    v_new, w_new, none = np.empty(v.shape), np.empty(v.shape), np.empty((0, 0))
    speed = model.step * math.sqrt(
        model.gravity[0] * model.gravity[0] + model.gravity[1] * model.gravity[1] + model.gravity[2] * model.gravity[2]
    )
    hope = 0.0
    for a in range(bodies):
        for i in range(3):
            speed = max(speed, abs(v[a, i]))
            hope = max(hope, abs(gain[a, i]), abs(gain[a, 3 + i]) * model.reaches[a])
            v_new[a, i] = v[a, i] + gain[a, i]
            w_new[a, i] = w[a, i] + gain[a, 3 + i]
    accuracy = TOLERANCE * speed
    fresh = False
    if hope > 1e-9 * speed and balance(
        model, parameters, masses, inertias, mass_scales, x, R, frames, frame_twists, start, v_new, w_new, contacts,
        residual, jacobian,
    ):  # fmt: skip
        now = merit(masses, inertias, residual)
        fresh = now < 0.1 * hope
    if fresh:
        copy(v_new, v)
        copy(w_new, w)
    else:
        if not balance(
            model, parameters, masses, inertias, mass_scales, x, R, frames, frame_twists, start, v, w, contacts,
            residual, none,
        ):  # fmt: skip
            return TOO_FAST
        now = merit(masses, inertias, residual)
    gain[:] = 0.0
    stalled = False
    for _ in range(ITERATIONS):
        if now <= accuracy or stalled:
            break
        if not fresh:
            balance(
                model, parameters, masses, inertias, mass_scales, x, R, frames, frame_twists, start, v, w, contacts,
                residual, jacobian,
            )  # fmt: skip
        copy(residual, change)
        if not eliminate(jacobian, change):
            return SINGULAR
        fresh = False
        length = 1.0
        stalled = True
        while length > 1e-9:
            for a in range(bodies):
                for i in range(3):
                    v_new[a, i] = v[a, i] - length * change[6 * a + i, 0]
                    w_new[a, i] = w[a, i] - length * change[6 * a + 3 + i, 0]
            # Newton's full step is mostly taken, so its Jacobian is computed at once; but not for what may be the last.
            with_jacobian = length == 1.0 and now > 1e-5 * speed
            if balance(
                model, parameters, masses, inertias, mass_scales, x, R, frames, frame_twists, start, v_new, w_new,
                contacts, residual, jacobian if with_jacobian else none,
            ):  # fmt: skip
                after = merit(masses, inertias, residual)
                if after <= (1.0 - 1e-4 * length) * now:
                    copy(v_new, v)
                    copy(w_new, w)
                    now = after
                    fresh = with_jacobian
                    stalled = False
                    break
            # Close to rounding nothing better is found.
            if now <= 1e3 * accuracy:
                break
            length *= 0.5
    if now > 1e3 * accuracy:
        return STALLED
    if stalled:
        set_twists(model, x, R, v, w, frames, frame_twists, contacts)
    if need_jacobian and not fresh:
        balance(
            model, parameters, masses, inertias, mass_scales, x, R, frames, frame_twists, start, v, w, contacts,
            residual, jacobian,
        )  # fmt: skip
    return CONVERGED
