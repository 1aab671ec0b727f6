"""Contact dynamics as a `Motion`: rollouts of a world with chained derivatives, read at any times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate
from morphit_ros.neural.dynamics.world import World
from morphit_ros.neural.identification.motion import Prediction
from morphit_ros.neural.identification.quaternions import (
    inverse_right_jacobians,
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    rotate_by_quats,
    rotation_vectors,
)


@dataclass(frozen=True)
class SimulatedMotion:
    """A world whose parameters are to be identified, with what is known to have acted on it.

    Attributes:
        world: bodies, obstacles (driven ones too) and contact parameters; its step need not fit the track's.
        controls: (C, M) forces in the order of `world.controls`, held for `control_step` each; the last goes on.
        control_step: [s], 0 for the world's step.
    """

    world: World
    controls: Array | None = None
    control_step: float = 0.0

    def __post_init__(self) -> None:
        if self.controls is None:
            return
        controls = np.array(self.controls, dtype=np.float64)
        count = len(self.world.control_map)
        if controls.ndim != 2 or controls.shape[1] != count or len(controls) == 0 or not np.isfinite(controls).all():
            raise InvalidInputError("controls", f"shape {controls.shape}", f"finite numbers (C, {count})")
        if not (np.isfinite(self.control_step) and self.control_step >= 0.0):
            raise InvalidInputError("control_step", self.control_step, "a positive number [s], or 0")
        object.__setattr__(self, "controls", controls)

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.world.bodies)

    def later(self, seconds: float) -> SimulatedMotion:
        """The same world seen from a later time on: driven obstacles and controls are ahead by that much."""
        if seconds == 0.0:
            return self
        shift = round(seconds / self.world.step)
        obstacles = [
            dataclasses.replace(
                item,
                positions=None if item.positions is None else item.positions[min(shift, len(item.positions) - 1) :],
                quats_xyzw=None if item.quats_xyzw is None else item.quats_xyzw[min(shift, len(item.quats_xyzw) - 1) :],
            )
            for item in self.world.obstacles
        ]
        controls = None
        if self.controls is not None:
            count = int(np.ceil(len(self.controls) * (self.control_step or self.world.step) / self.world.step))
            controls = self._held_controls(max(count, shift + 1))[shift:]
        return SimulatedMotion(dataclasses.replace(self.world, obstacles=obstacles), controls)

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        """Poses and derivatives at the times; infinite where the rollout stopped early.

        Raises:
            InvalidInputError: an unknown parameter, or a start that the world refuses.
        """
        step = self.world.step
        elapsed = times - times[0]
        steps = max(1, int(np.ceil(elapsed[-1] / step - 1e-6)))
        controls = None if self.controls is None else self._held_controls(steps)
        rollout = rollout_derivatives(self.world, start, steps, controls, None, names, values)
        if rollout.result.status != "completed":
            count, bodies = len(times), self.bodies
            return Prediction(
                np.full((count, bodies, 3), np.inf), np.full((count, bodies, 4), 0.5),
                np.zeros((count, bodies, 6, len(names))), np.zeros((count, bodies, 6, 12 * bodies)),
            )  # fmt: skip
        by_state, by_parameters = rollout.chained()
        # Pose rows of each body only: 6 of 12.
        shape = (steps + 1, self.bodies, 12)
        slopes = np.concatenate([by_parameters, by_state], axis=2).reshape(*shape, -1)[:, :, :6]
        positions, quats, slopes = _read_at(rollout.result.states, slopes, elapsed / step)
        return Prediction(positions, quats, slopes[..., : len(names)], slopes[..., len(names) :])

    def simulated(self, names: Sequence[str], values: Array, start: Array, times: Array) -> tuple[Array, Array]:
        """Positions (T, B, 3) and quaternions (T, B, 4) at the times, without derivatives.

        Raises:
            InvalidInputError: as `predict`, and a rollout that stopped early.
        """
        elapsed = times - times[0]
        steps = max(1, int(np.ceil(elapsed[-1] / self.world.step - 1e-6)))
        controls = None if self.controls is None else self._held_controls(steps)
        result = simulate(self.world, start, steps, controls, None, names, values)
        if result.status != "completed":
            raise InvalidInputError(
                "start", f"a motion that is {result.status} after {result.steps_done} steps", "one that can be computed"
            )
        slopes = np.zeros((steps + 1, self.bodies, 6, 0))
        positions, quats, _ = _read_at(result.states, slopes, elapsed / self.world.step)
        return positions, quats

    def _held_controls(self, steps: int) -> Array:
        assert self.controls is not None
        hold = self.control_step or self.world.step
        rows = ((np.arange(steps) + 0.5) * self.world.step / hold).astype(np.int64)
        return self.controls[np.minimum(rows, len(self.controls) - 1)]


def _read_at(states: Array, slopes: Array, at: Array) -> tuple[Array, Array, Array]:
    """Poses and their slopes between the states of a rollout, at times in steps.

    Within a step the integrator moves at constant velocity and spin: positions are linear, orientations turn about a
    fixed axis, and so do their derivatives, exactly.
    """
    before = np.clip(np.floor(at + 1e-9).astype(np.int64), 0, len(states) - 2)
    part = np.clip(at - before, 0.0, 1.0)
    part[np.abs(part) < 1e-9] = 0.0
    part[np.abs(part - 1.0) < 1e-9] = 1.0
    if np.isin(part, (0.0, 1.0)).all():
        rows = before + part.astype(np.int64)
        return states[rows, :, :3], states[rows, :, 3:7], slopes[rows]
    share = part[:, None, None]
    first, second = states[before], states[before + 1]
    positions = first[..., :3] + share * (second[..., :3] - first[..., :3])
    turns = rotation_vectors(multiply_quats(invert_quats(first[..., 3:7]), second[..., 3:7]))
    flat = turns.reshape(-1, 3)
    parts = (share * turns).reshape(-1, 3)
    quats = multiply_quats(first[..., 3:7], quats_of_rotation_vectors(parts).reshape(*turns.shape[:2], 4))
    a, b = slopes[before], slopes[before + 1]
    mixed = a + share[..., None] * (b - a)
    # q = q0 exp(s r), r = log(q0⁻¹ q1): tangent exp(−s r) d0 + s J(s r) J(r)⁻¹ (d1 − exp(−r) d0), J the right Jacobian.
    shape = (*turns.shape[:2], 3, 3)
    back, part_back = _inverse_rotations(flat).reshape(shape), _inverse_rotations(parts).reshape(shape)
    inner = inverse_right_jacobians(flat).reshape(shape)
    outer = np.linalg.inv(inverse_right_jacobians(parts)).reshape(shape)
    d0, d1 = a[..., 3:, :], b[..., 3:, :]
    mixed[..., 3:, :] = part_back @ d0 + share[..., None] * (outer @ (inner @ (d1 - back @ d0)))
    return positions, quats, mixed


def _inverse_rotations(vectors: Array) -> Array:
    """(N, 3, 3) rotations by minus the (N, 3) rotation vectors."""
    quats = quats_of_rotation_vectors(-vectors)
    return np.stack([rotate_by_quats(quats, np.eye(3)[axis]) for axis in range(3)], axis=2)
