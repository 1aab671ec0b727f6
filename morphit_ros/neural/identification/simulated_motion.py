"""Contact dynamics as a `Motion`: rollouts of a world with chained derivatives, read at any times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import (
    inverse_right_jacobians,
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    rotate_by_quats,
    rotation_vectors,
)
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.array_faults import array_fault
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.identification.motion import Prediction


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
        if fault := array_fault(controls, (None, count)) or ("no rows" if len(controls) == 0 else ""):
            raise InvalidInputError("controls", fault, f"finite numbers (C, {count}), at least one row")
        if not (np.isfinite(self.control_step) and self.control_step >= 0.0):
            raise InvalidInputError("control_step", self.control_step, "a positive number [s], or 0")
        object.__setattr__(self, "controls", controls)

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.world.bodies)

    def later(self, seconds: float) -> SimulatedMotion:
        """The same world seen from a later time on: driven obstacles and controls are ahead by that much.

        Obstacles are taken to move evenly within a step, as they do in a rollout.

        Raises:
            InvalidInputError: a time within a control step.
        """
        if seconds == 0.0:
            return self
        obstacles = [_later_obstacle(item, seconds / self.world.step) for item in self.world.obstacles]
        controls, hold = self.controls, self.control_step or self.world.step
        if controls is not None:
            skipped = round(seconds / hold)
            if abs(skipped * hold - seconds) > 1e-6 * hold:
                raise InvalidInputError(
                    "window", f"a start at {seconds:g} s", f"a multiple of the control step, {hold:g} s"
                )
            controls = controls[min(skipped, len(controls) - 1) :]
        return SimulatedMotion(_changed_world(self.world, obstacles, self.world.step), controls, self.control_step)

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        """Poses and derivatives at the times; none if the rollout stopped early.

        The published form has a hard indicator of overlap, whose derivative is zero almost everywhere: with the overlap
        taken as frozen, errors of the derivatives grow without end once the body tumbles. So they are those of the same
        form with the smooth indicator, along its own rollout.

        Raises:
            InvalidInputError: an unknown parameter, or a start that the world refuses.
        """
        step = self.world.step
        elapsed = times - times[0]
        steps = max(1, int(np.ceil(elapsed[-1] / step - 1e-6)))
        rollout = rollout_derivatives(
            self._smooth_world, self._centred(start), steps, self._held_controls(steps), None, names, values
        )
        if rollout.result.status != "completed":
            return Prediction.none(len(times), self.bodies, len(names), rollout.result.reason)
        by_state, by_parameters = rollout.chained()
        # Pose rows of each body only: 6 of 12.
        shape = (steps + 1, self.bodies, 12)
        slopes = np.concatenate([by_parameters, by_state], axis=2).reshape(*shape, -1)[:, :, :6]
        positions, quats, slopes = _read_at(rollout.result.states, slopes, elapsed / step)
        if self._smooth_world is not self.world:
            try:
                positions, quats = self.poses(names, values, start, times)
            except InvalidInputError as error:
                return Prediction.none(len(times), self.bodies, len(names), str(error.value))
        return Prediction(positions, quats, slopes[..., : len(names)], slopes[..., len(names) :])

    def finer(self, divisions: int) -> SimulatedMotion:
        """The same world with steps that many times shorter; driven obstacles move evenly within a former step."""
        if divisions == 1:
            return self
        obstacles = [_finer_obstacle(item, divisions) for item in self.world.obstacles]
        world = _changed_world(self.world, obstacles, self.world.step / divisions)
        return SimulatedMotion(world, self.controls, self.control_step or self.world.step)

    def poses(self, names: Sequence[str], values: Array, start: Array, times: Array) -> tuple[Array, Array]:
        """Positions (T, B, 3) and quaternions (T, B, 4) at the times, without derivatives.

        Raises:
            InvalidInputError: as `predict`, and a rollout that stopped early.
        """
        elapsed = times - times[0]
        steps = max(1, int(np.ceil(elapsed[-1] / self.world.step - 1e-6)))
        result = simulate(self.world, self._centred(start), steps, self._held_controls(steps), None, names, values)
        if result.status != "completed":
            raise InvalidInputError("start", result.reason, "a motion that can be computed to the end of the track")
        slopes = np.zeros((steps + 1, self.bodies, 6, 0))
        positions, quats, _ = _read_at(result.states, slopes, elapsed / self.world.step)
        return positions, quats

    @cached_property
    def _smooth_world(self) -> World:
        """The world, with forces that have derivatives."""
        if self.world.form != "published":
            return self.world
        return dataclasses.replace(self.world, form="smooth_single_point")

    def _held_controls(self, steps: int) -> Array | None:
        """(steps, M) mean control from half a step before each step's time to half a step after; see `_centred`."""
        if self.controls is None:
            return None
        step, hold = self.world.step, self.control_step or self.world.step
        edges = np.concatenate([[0.0], (np.arange(steps) + 0.5) * step])
        # Impulse up to a time: the integral of what is held, the last of it for ever.
        rows = np.minimum((edges / hold + 1e-9).astype(np.int64), len(self.controls) - 1)
        whole = np.concatenate([np.zeros((1, self.controls.shape[1])), np.cumsum(self.controls[:-1], axis=0) * hold])
        impulses = whole[rows] + (edges - rows * hold)[:, None] * self.controls[rows]
        return np.diff(impulses, axis=0) / step

    def _centred(self, start: Array) -> Array:
        """The start with velocities half a step of gravity back.

        The integrator is first order as it stands, but a leapfrog, of second order away from impacts, if its velocities
        are those between the steps and each step's impulse stands for half a step on both sides of its time. So the
        first step gets half an impulse: of the controls by `_held_controls`, of gravity by this.
        """
        moved = start.copy()
        moved[:, 7:10] -= 0.5 * self.world.step * self.world.gravity
        return moved


def _changed_world(world: World, obstacles: list[Obstacle], step: float) -> World:
    """The world with other motions of its obstacles and another step: the arrays of its shapes stay the same."""
    changed = dataclasses.replace(world, obstacles=obstacles, step=step)
    # Grouping the points of a body takes as long as a hundred steps: where it is done it is kept.
    vars(changed)["model"] = world.model._replace(step=step)
    return changed


def _later_obstacle(obstacle: Obstacle, shift: float) -> Obstacle:
    """The obstacle that many steps ahead, which need not be whole."""
    if obstacle.positions is None:
        return obstacle
    last = len(obstacle.positions) - 1
    whole = round(shift)
    first = whole if abs(shift - whole) < 1e-6 else shift
    return _obstacle_at(obstacle, np.minimum(first + np.arange(max(0, int(np.ceil(last - first))) + 1), last))


def _finer_obstacle(obstacle: Obstacle, divisions: int) -> Obstacle:
    if obstacle.positions is None:
        return obstacle
    return _obstacle_at(obstacle, np.arange((len(obstacle.positions) - 1) * divisions + 1) / divisions)


def _obstacle_at(obstacle: Obstacle, at: Array) -> Obstacle:
    """The obstacle with its poses at other times, in steps."""
    positions, quats = obstacle.positions, obstacle.quats_xyzw
    if positions is None or len(positions) < 2:
        return obstacle
    states = np.zeros((len(positions), 1, 13))
    states[:, 0, :3] = positions
    states[:, 0, 3:7] = [0.0, 0.0, 0.0, 1.0] if quats is None else quats
    between, turned, _ = _read_at(states, np.zeros((len(positions), 1, 6, 0)), at)
    return dataclasses.replace(obstacle, positions=between[:, 0], quats_xyzw=None if quats is None else turned[:, 0])


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
