"""What is optimised: dynamics, costs, constraints and bounds of a trajectory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.array_faults import array_fault


class Dynamics(Protocol):
    """A discrete system x⁺ = f(x, u) whose states may live on a manifold.

    A state is a flat array (S,) of any meaning; a small move of it is a vector (N,), its tangent. Matrices are with
    respect to tangents: A (N, N) maps a move of the state to one of the next state, B (N, M) a change of the control.
    """

    @property
    def tangent_size(self) -> int:
        """N."""
        ...

    @property
    def control_size(self) -> int:
        """M."""
        ...

    def step(self, state: Array, control: Array) -> Array:
        """(S,) the next state; numbers that are not finite mean that there is none."""
        ...

    def linearize(self, state: Array, control: Array) -> tuple[Array, Array]:
        """A (N, N) and B (N, M) of the step."""
        ...

    def difference(self, state: Array, reference: Array) -> Array:
        """(N,) the tangent at `reference` that leads to `state`."""
        ...

    def difference_jacobian(self, state: Array, reference: Array) -> Array:
        """(N, N) derivative of the difference for a small move of `state` in its own tangent."""
        ...


class Expansion(NamedTuple):
    """A cost to second order about a state and a control, in tangents.

    Attributes:
        value: the cost.
        x, u: (N,) and (M,) gradients.
        xx, uu, ux: (N, N), (M, M) and (M, N) curvatures; what is left out must keep them positive semi-definite.
    """

    value: float
    x: Array
    u: Array
    xx: Array
    uu: Array
    ux: Array


class Cost(Protocol):
    """A cost of one step, or of the end, where the control is zero and its derivatives are not looked at."""

    def value(self, state: Array, control: Array) -> float:
        """The cost."""
        ...

    def expand(self, state: Array, control: Array) -> Expansion:
        """The cost with its derivatives."""
        ...


class Linearization(NamedTuple):
    """Values (C,) of a constraint and their derivatives (C, N) and (C, M)."""

    values: Array
    x: Array
    u: Array


@dataclass(frozen=True)
class Constraint:
    """c(x, u) = 0, or c(x, u) ≤ 0.

    Values of scale one suit the penalties best: scale the function.

    Attributes:
        linearize: gives values and derivatives at a state (S,) and control (M,).
        equality: whether the values must be zero, rather than not positive.
        values: gives the values (C,) alone, where that is cheaper.
    """

    linearize: Callable[[Array, Array], Linearization]
    equality: bool
    values: Callable[[Array, Array], Array] | None = None

    def at(self, state: Array, control: Array) -> Array:
        """(C,) the values."""
        return self.linearize(state, control).values if self.values is None else self.values(state, control)

    def violation(self, values: Array) -> Array:
        """(C,) how far values are from what is allowed, not negative."""
        return np.abs(values) if self.equality else np.maximum(values, 0.0)


@dataclass(frozen=True)
class TrajectoryProblem:
    """Minimise the sum of stage costs and the terminal cost over the controls.

    Attributes:
        dynamics: the system.
        initial_state: (S,).
        stage_cost: of each step.
        terminal_cost: of the last state, None for none.
        stage_constraints: hold at each step.
        terminal_constraints: hold at the last state; the control given to them is zero.
        control_lower, control_upper: (M,) bounds of the controls, None for none. They hold exactly.

    Raises:
        InvalidInputError: a start that is not finite, bounds of the wrong shape, with NaN, or with none between them.
    """

    dynamics: Dynamics
    initial_state: Array
    stage_cost: Cost
    terminal_cost: Cost | None = None
    stage_constraints: tuple[Constraint, ...] = ()
    terminal_constraints: tuple[Constraint, ...] = ()
    control_lower: Array | None = None
    control_upper: Array | None = None

    def __post_init__(self) -> None:
        start = np.ascontiguousarray(self.initial_state, dtype=np.float64)
        if fault := array_fault(start, (None,)):
            raise InvalidInputError("initial_state", fault, "finite numbers of shape (S,)")
        object.__setattr__(self, "initial_state", start)
        for name, missing in (("control_lower", -np.inf), ("control_upper", np.inf)):
            given = getattr(self, name)
            size = self.dynamics.control_size
            bound = np.full(size, missing) if given is None else np.array(given, dtype=np.float64)
            found = f"shape {bound.shape}" if bound.shape != (size,) else f"{bound.tolist()}"
            if bound.shape != (size,) or np.isnan(bound).any():
                raise InvalidInputError(name, found, f"numbers of shape ({size},), infinite for none")
            object.__setattr__(self, name, bound)
        lower, upper = self.bounds
        empty = (lower > upper) | np.isposinf(lower) | np.isneginf(upper)
        if empty.any():
            first = int(np.argmax(empty))
            raise InvalidInputError(
                f"control_lower[{first}]", lower[first], f"a number at most control_upper[{first}], {upper[first]:g}",
                "No control lies between these bounds.",
            )  # fmt: skip

    @property
    def bounds(self) -> tuple[Array, Array]:
        """(M,) lower and (M,) upper bounds of the controls."""
        assert self.control_lower is not None
        assert self.control_upper is not None
        return self.control_lower, self.control_upper
