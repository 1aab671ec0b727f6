"""The velocities at the end of a step, by Newton's method on the balance of momentum: compiled."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.dynamics.algebra import copy, eliminate
from morphit_ros.neural.dynamics.balance import balance, merit
from morphit_ros.neural.dynamics.contacts import Contacts
from morphit_ros.neural.dynamics.model import Model

ITERATIONS = 60
# Of the velocity [m/s per second of free fall]: the merit function is a speed.
TOLERANCE = 1e-13
CONVERGED, STALLED, TOO_FAST, SINGULAR = range(4)


@inner
def solve_velocities(model: Model, start: Array, gain: Array, u: Array, contacts: Contacts, jacobian: Array) -> int:
    """Replaces u (B, 6) by the velocities after the step; status.

    It starts from them with the gain (B, 6) of the step before added if that helps, and clears the gain: the same
    motion goes on. The Jacobian (6 B, 6 B) at the solution is left in `jacobian`.
    """
    bodies = len(u)
    residual, change = np.empty((6 * bodies, 1)), np.empty((6 * bodies, 1))
    trial, factors = np.empty(u.shape), np.empty(jacobian.shape)
    speed = model.step * math.sqrt(
        model.gravity[0] * model.gravity[0] + model.gravity[1] * model.gravity[1] + model.gravity[2] * model.gravity[2]
    )
    hope = 0.0
    for a in range(bodies):
        # A spin as a speed, as the merit function has it: a body may turn where nothing falls.
        inertia = model.inertias[a]
        arm = math.sqrt((inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) / (3.0 * model.masses[a]))
        for i in range(3):
            speed = max(speed, abs(u[a, i]), abs(u[a, 3 + i]) * arm)
            hope = max(hope, abs(gain[a, i]), abs(gain[a, 3 + i]) * model.reaches[a])
    accuracy = TOLERANCE * speed
    now = math.inf
    if hope > 1e-9 * speed:
        for a in range(bodies):
            for i in range(6):
                trial[a, i] = u[a, i] + gain[a, i]
        if balance(model, start, trial, contacts, residual, jacobian):
            now = merit(model, residual)
    gain[:] = 0.0
    if now < 0.1 * hope:
        copy(trial, u)
    else:
        if not balance(model, start, u, contacts, residual, jacobian):
            return TOO_FAST
        now = merit(model, residual)
        # Where all was at rest, the first push says how fast things get.
        accuracy = TOLERANCE * max(speed, now)
    for _ in range(ITERATIONS):
        if now <= accuracy:
            return CONVERGED
        copy(residual, change)
        copy(jacobian, factors)
        if not eliminate(factors, change):
            return SINGULAR
        after, too_fast = _search_line(model, start, u, contacts, change, now, accuracy, trial, residual, jacobian)
        if after == math.inf:
            balance(model, start, u, contacts, residual, jacobian)
            if now <= 1e3 * accuracy:
                return CONVERGED
            return TOO_FAST if too_fast else STALLED
        copy(trial, u)
        now = after
    return CONVERGED if now <= 1e3 * accuracy else STALLED


@inner
def _search_line(
    model: Model, start: Array, u: Array, contacts: Contacts, change: Array, now: float, accuracy: float,
    trial: Array, residual: Array, jacobian: Array,
) -> tuple[float, bool]:  # fmt: skip
    """Fills trial (B, 6), residual and Jacobian some way along −change (6 B, 1) from u, where the merit is less.

    Returns:
        The merit there, infinite if none is less; whether some spin on the way was too fast.
    """
    length, too_fast = 1.0, False
    while True:
        for a in range(len(u)):
            for i in range(6):
                trial[a, i] = u[a, i] - length * change[6 * a + i, 0]
        if balance(model, start, trial, contacts, residual, jacobian):
            after = merit(model, residual)
            if after <= (1.0 - 1e-4 * length) * now:
                return after, too_fast
        else:
            too_fast = True
        length *= 0.5
        # Close to rounding nothing better is found.
        if now <= 1e3 * accuracy or length < 1e-9:
            return math.inf, too_fast
