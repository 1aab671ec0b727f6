"""A world of bodies in contact as the dynamics of a trajectory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.newton import CONVERGED
from morphit_ros.neural.dynamics.rollout_kernels import roll_out
from morphit_ros.neural.dynamics.simulate import checked_wrenches
from morphit_ros.neural.dynamics.state import STATE_SIZE, TANGENT_SIZE
from morphit_ros.neural.dynamics.world import World


class WorldDynamics:
    """`Dynamics` of a world whose obstacles stand still: states are (13 B,), their tangents (12 B,).

    Args:
        world: bodies, obstacles, step and controls.
        substeps: steps of the world in one step of the trajectory, all with the same control.
        control_scale: force [N] (or torque [N m]) of one unit of control.
        wrenches: (B, 6) outer forces and torques that are always there, in the world; None for none.

    Raises:
        InvalidInputError: no controls, no substeps, a scale that is not positive, or driven obstacles.
    """

    def __init__(
        self, world: World, substeps: int = 1, control_scale: float = 1.0, wrenches: ArrayLike | None = None
    ) -> None:
        if len(world.control_map) == 0:
            raise InvalidInputError("world", "no controls", "controls=[(body, 'force')]")
        if substeps < 1:
            raise InvalidInputError("substeps", substeps, "at least 1")
        if not (np.isfinite(control_scale) and control_scale > 0.0):
            raise InvalidInputError("control_scale", control_scale, "a positive number")
        if len(world.frames[0]) > 1:
            raise InvalidInputError("world", "driven obstacles", "obstacles that stand still")
        self.world, self.substeps, self.control_scale = world, substeps, control_scale
        self._bodies = len(world.bodies)
        self.tangent_size = TANGENT_SIZE * self._bodies
        self.control_size = len(world.control_map)
        self._wrenches = np.ascontiguousarray(checked_wrenches(world, 1, wrenches))
        self._parameters, self._masses, self._inertias = world.with_values((), ())
        self._selection = np.ascontiguousarray(world.selection(()))

    def step(self, state: Array, control: Array) -> Array:
        """(13 B,) the next state, NaN where the world finds none."""
        states, _ = self._run(state, control, with_derivatives=False)
        return states[-1].ravel()

    def linearize(self, state: Array, control: Array) -> tuple[Array, Array]:
        """A (12 B, 12 B) and B (12 B, M) of the step.

        Raises:
            InvalidInputError: the step has no solution.
        """
        states, derivatives = self._run(state, control, with_derivatives=True)
        if not np.isfinite(states).all():
            raise InvalidInputError("state", "one from which no step leads on", "a state that can be simulated")
        n, m = self.tangent_size, self.control_size
        by_state, by_control = np.eye(n), np.zeros((n, m))
        for derivative in derivatives:
            A = derivative[:, :n]
            by_state, by_control = A @ by_state, A @ by_control + self.control_scale * derivative[:, n : n + m]
        return by_state, by_control

    def difference(self, state: Array, reference: Array) -> Array:
        """(12 B,) the tangent at `reference` that leads to `state`."""
        rows, about = self._rows(state), self._rows(reference)
        change = np.empty((self._bodies, TANGENT_SIZE))
        change[:, :3] = rows[:, :3] - about[:, :3]
        change[:, 6:] = rows[:, 7:] - about[:, 7:]
        for row, quat, base in zip(change, rows[:, 3:7].tolist(), about[:, 3:7].tolist(), strict=True):
            row[3:6] = _rotation_between(base, quat)
        return change.ravel()

    def difference_jacobian(self, state: Array, reference: Array) -> Array:
        """(12 B, 12 B) identity but for rotations, where it is the inverse right Jacobian of the rotation vector."""
        jacobian = np.eye(self.tangent_size)
        away = self.difference(state, reference)
        for first in range(3, self.tangent_size, TANGENT_SIZE):
            rows = slice(first, first + 3)
            jacobian[rows, rows] = _inverse_right_jacobian(*away[rows].tolist())
        return jacobian

    def _rows(self, state: Array) -> Array:
        return np.reshape(state, (self._bodies, STATE_SIZE))

    def _run(self, state: Array, control: Array, with_derivatives: bool) -> tuple[Array, Array]:
        states = np.empty((self.substeps + 1, self._bodies, STATE_SIZE))
        states[0] = self._rows(state)
        n, m = self.tangent_size, self.control_size
        derivatives = np.empty((self.substeps if with_derivatives else 0, n, n + m))
        controls = np.ascontiguousarray(np.broadcast_to(self.control_scale * control, (self.substeps, m)))
        frames, twists = self.world.frames
        # The kernel itself: `simulate` checks its inputs at every call, and this is called at every step.
        status, _ = roll_out(
            self.world.model, self._parameters, self._masses, self._inertias, frames, twists, self._wrenches, controls,
            states, self._selection, derivatives,
        )  # fmt: skip
        if status != CONVERGED:
            states[-1] = np.nan
        return states, derivatives


def _inverse_right_jacobian(x: float, y: float, z: float) -> list[list[float]]:
    """(3, 3) 1 + ½ [r] + c [r]² of a rotation vector r, as `inverse_right_jacobians`, in plain numbers."""
    square = x * x + y * y + z * z
    angle = math.sqrt(square)
    if angle < 1e-4:
        c = 1.0 / 12.0 + square / 720.0
    else:
        c = (1.0 - 0.5 * angle / math.tan(0.5 * angle)) / square
    # [r]² = r rᵀ - |r|² 1.
    d = 1.0 - c * square
    xy, xz, yz = c * x * y, c * x * z, c * y * z
    return [
        [d + c * x * x, xy - 0.5 * z, xz + 0.5 * y],
        [xy + 0.5 * z, d + c * y * y, yz - 0.5 * x],
        [xz - 0.5 * y, yz + 0.5 * x, d + c * z * z],
    ]


def _rotation_between(base: list[float], quat: list[float]) -> tuple[float, float, float]:
    """Rotation vector, in the first one's frame, from one unit quaternion xyzw to another."""
    # Plain numbers: called for every state of every trajectory that is tried.
    x0, y0, z0, w0 = base
    x1, y1, z1, w1 = quat
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 - y0 * w1 - z0 * x1 + x0 * z1
    z = w0 * z1 - z0 * w1 - x0 * y1 + y0 * x1
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    if w < 0.0:
        x, y, z, w = -x, -y, -z, -w
    length = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 if length < 1e-12 else 2.0 * math.atan2(length, w) / length
    return factor * x, factor * y, factor * z
