"""Simulate a world, and the derivatives of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.newton import CONVERGED, SINGULAR, STALLED, TOO_FAST
from morphit_ros.neural.dynamics.rollout_kernels import penetrations, roll_out
from morphit_ros.neural.dynamics.state import BodyState, stack_states
from morphit_ros.neural.dynamics.world import World

Status = Literal["completed", "stalled", "too_fast", "singular"]
STATUSES: dict[int, Status] = {
    CONVERGED: "completed", STALLED: "stalled", TOO_FAST: "too_fast", SINGULAR: "singular",
}  # fmt: skip
# So many take a day, and their states more memory than most machines have.
MOST_STEPS = 100_000_000
# Of the body's size. Less is pushed out, at a speed of at most about I_s/I_d.
DEEPEST_START = 0.05
# Why a rollout stops, with what to do.
_REASONS = {
    "stalled": "no velocities solve the next step (shorter steps help)",
    "too_fast": "a body spins too fast for the step (shorter steps help)",
    "singular": "the next step has no single solution (is a mass or a moment nearly zero?)",
}
States = BodyState | Sequence[BodyState] | ArrayLike


@dataclass(frozen=True)
class RolloutResult:
    """A rollout of T steps of B bodies.

    Attributes:
        states: (T + 1, B, 13) position, quaternion xyzw, velocity (world), angular velocity (body).
        status: "completed", or why it stopped: "stalled" (Newton's method found no velocities), "too_fast" (a spin of
            2/h or more), "singular".
        steps_done: T if completed; later states repeat the last good one.
        step: [s].
    """

    states: Array
    status: Status
    steps_done: int
    step: float

    @property
    def reason(self) -> str:
        """Why it stopped and when, for people; empty if it completed."""
        if self.status == "completed":
            return ""
        return f"the motion stops after {self.step * self.steps_done:.3g} s: {_REASONS[self.status]}"

    @property
    def times(self) -> Array:
        """(T + 1,) [s]."""
        return np.arange(len(self.states), dtype=np.float64) * self.step

    @property
    def positions(self) -> Array:
        """(T + 1, B, 3) [m]."""
        return self.states[:, :, :3]

    @property
    def quats_xyzw(self) -> Array:
        """(T + 1, B, 4)."""
        return self.states[:, :, 3:7]

    @property
    def velocities(self) -> Array:
        """(T + 1, B, 3) in the world [m/s]."""
        return self.states[:, :, 7:10]

    @property
    def angular_velocities(self) -> Array:
        """(T + 1, B, 3) in the bodies' frames [rad/s]."""
        return self.states[:, :, 10:]


@dataclass(frozen=True)
class RolloutDerivatives:
    """A rollout with the derivatives of each of its steps, by state tangents (n = 12 B), M controls, K parameters.

    Attributes:
        result: the rollout.
        A: (T, n, n), B: (T, n, M), P: (T, n, K), of the next state's tangent.
    """

    result: RolloutResult
    A: Array
    B: Array
    P: Array

    def chained(self) -> tuple[Array, Array]:
        """Sensitivities of every state to the first state (T + 1, n, n) and to the parameters (T + 1, n, K)."""
        steps, n = self.A.shape[:2]
        by_state, by_parameters = np.empty((steps + 1, n, n)), np.empty((steps + 1, n, self.P.shape[2]))
        by_state[0], by_parameters[0] = np.eye(n), 0.0
        for t in range(steps):
            np.matmul(self.A[t], by_state[t], out=by_state[t + 1])
            np.matmul(self.A[t], by_parameters[t], out=by_parameters[t + 1])
            by_parameters[t + 1] += self.P[t]
        return by_state, by_parameters


@dataclass(frozen=True)
class StepDerivatives:
    """One step: the next states (B, 13) and its derivatives A (12 B, 12 B), B (12 B, M), P (12 B, K)."""

    states: Array
    A: Array
    B: Array
    P: Array


def simulate(
    world: World,
    states: States,
    steps: int,
    controls: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    names: Sequence[str] = (),
    values: ArrayLike = (),
) -> RolloutResult:
    """Moves the bodies for a number of steps.

    Args:
        world: bodies, obstacles, parameters.
        states: at the start: one `BodyState` a body, or (B, 13).
        steps: T.
        controls: (T, M), in the order of `world.controls`, or (M,) for all steps alike; None for zero.
        wrenches: outer forces and torques at the centres of mass, in the world: (B, 6) for all steps, or (T, B, 6).
        names, values: parameters that differ from the world's, such as ("friction",), (0.3,): see
            `World.parameter_names`.

    Raises:
        InvalidInputError: shapes that don't fit, values that are not finite, or a body that starts deeper in a shape
            than a twentieth of its size (the message says how deep). Shallower overlap is pushed out.
    """
    result, _ = _run(world, states, steps, controls, wrenches, names, values, False)
    return result


def rollout_derivatives(
    world: World,
    states: States,
    steps: int,
    controls: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    names: Sequence[str] = (),
    values: ArrayLike | None = None,
) -> RolloutDerivatives:
    """`simulate` with the derivatives of each step, by the implicit function theorem.

    `names` are the parameters to differentiate by, at their `values` (None: those of the world).
    """
    result, derivatives = _run(world, states, steps, controls, wrenches, names, values, True)
    n, m = 12 * len(world.bodies), len(world.control_map)
    return RolloutDerivatives(result, derivatives[:, :, :n], derivatives[:, :, n : n + m], derivatives[:, :, n + m :])


def step_derivatives(
    world: World,
    states: States,
    control: ArrayLike | None = None,
    wrenches: ArrayLike | None = None,
    names: Sequence[str] = (),
    values: ArrayLike | None = None,
) -> StepDerivatives:
    """The next states and their derivatives; arguments as in `rollout_derivatives`.

    Raises:
        InvalidInputError: as `simulate`, and where the step has no solution.
    """
    rollout = rollout_derivatives(world, states, 1, control, wrenches, names, values)
    if rollout.result.status != "completed":
        raise InvalidInputError(
            "states", f"a step that is {rollout.result.status}", "a step that can be solved",
            "Take a shorter step, slower bodies or a softer spring.",
        )  # fmt: skip
    return StepDerivatives(rollout.result.states[1], rollout.A[0], rollout.B[0], rollout.P[0])


def check_steps(steps: int) -> None:
    """Raises:
    InvalidInputError: no step at all, or more than can be stored.
    """
    if not 1 <= steps <= MOST_STEPS:
        raise InvalidInputError("steps", steps, f"1 to {MOST_STEPS}", "Simulate in parts.")


def checked_controls(world: World, steps: int, controls: ArrayLike | None) -> Array:
    """(T, M) controls.

    Raises:
        InvalidInputError: a shape that doesn't fit, values that are not finite.
    """
    count = len(world.control_map)
    if controls is None:
        return np.zeros((steps, count))
    array = np.asarray(controls, dtype=np.float64)
    if array.shape == (count,):
        array = np.broadcast_to(array, (steps, count))
    if array.shape != (steps, count) or not np.isfinite(array).all():
        raise InvalidInputError("controls", f"shape {array.shape}", f"finite numbers of shape ({steps}, {count})")
    # A copy in C order: a read-only or strided view would be another type to the compiler.
    return np.array(array, order="C")


def checked_wrenches(world: World, steps: int, wrenches: ArrayLike | None) -> Array:
    """(1 or T, B, 6) wrenches.

    Raises:
        InvalidInputError: a shape that doesn't fit, values that are not finite.
    """
    bodies = len(world.bodies)
    array = np.zeros((1, bodies, 6)) if wrenches is None else np.array(wrenches, dtype=np.float64)
    if array.shape == (bodies, 6):
        array = array[None]
    if array.shape not in ((1, bodies, 6), (steps, bodies, 6)) or not np.isfinite(array).all():
        raise InvalidInputError(
            "wrenches", f"shape {array.shape}", f"finite numbers of shape ({bodies}, 6) or ({steps}, {bodies}, 6)"
        )
    return array


def check_penetration(world: World, states: Array, parameters: Array) -> None:
    """Raises:
    InvalidInputError: a body starts deeper in a shape than `DEEPEST_START` of its size.
    """
    depths = penetrations(world.model, parameters, states, world.frames[0][0])
    for depth, name in zip(depths, world.pairs, strict=True):
        largest = DEEPEST_START * world.pair_sizes[name]
        if depth > largest:
            raise InvalidInputError(
                "states", f"'{name}' {depth:.4g} m deep at the start", f"at most {largest:.4g} m",
                f"Move the body out by at least {depth - largest:.4g} m.",
            )  # fmt: skip


def _run(
    world: World,
    states: States,
    steps: int,
    controls: ArrayLike | None,
    wrenches: ArrayLike | None,
    names: Sequence[str],
    values: ArrayLike | None,
    with_derivatives: bool,
) -> tuple[RolloutResult, Array]:
    check_steps(steps)
    start = stack_states(states, len(world.bodies))
    parameters, mass_scales, inertia_scales = world.with_values(
        () if values is None else names, () if values is None else values
    )
    check_penetration(world, start, parameters)
    trajectory = np.empty((steps + 1, *start.shape))
    trajectory[0] = start
    n = 12 * len(start)
    selection = np.ascontiguousarray(world.selection(names))
    width = n + len(world.control_map) + len(names)
    derivatives = np.empty((steps if with_derivatives else 0, n, width))
    frames, twists = world.frames
    status, done = roll_out(
        world.model, parameters, mass_scales, inertia_scales, frames, twists, checked_wrenches(world, steps, wrenches),
        checked_controls(world, steps, controls), trajectory, selection, derivatives,
    )  # fmt: skip
    if done < steps:
        trajectory[done + 1 :] = trajectory[done]
        derivatives = derivatives[:done]
    return RolloutResult(trajectory, STATUSES[int(status)], int(done), world.step), derivatives
