"""Rollouts inside torch: gradients by the adjoint of the compiled derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.simulate import RolloutDerivatives, rollout_derivatives
from morphit_ros.neural.dynamics.state import STATE_SIZE, TANGENT_SIZE
from morphit_ros.neural.dynamics.world import World


def differentiable_rollout(
    world: World,
    states: torch.Tensor,
    steps: int,
    controls: torch.Tensor | None = None,
    names: Sequence[str] = (),
    values: torch.Tensor | None = None,
) -> torch.Tensor:
    """States (T + 1, B, 13) of a rollout, differentiable by the first state, the controls and named parameters.

    Gradients are those of the compiled step by the implicit function theorem, chained backwards: exact for the
    discrete motion, first order only. A rollout that stops early repeats its last state, and so its gradient.

    Args:
        world: bodies, obstacles, parameters.
        states: (B, 13) float64; quaternions are made unit, and gradients are those of that.
        steps: T.
        controls: (T, M) or (M,), None for zero.
        names, values: parameters (K,) and their values.

    Raises:
        InvalidInputError: tensors that are not float64 on the processor, or what `simulate` refuses.
    """
    count = len(world.control_map)
    controls = states.new_zeros((steps, count)) if controls is None else controls
    values = states.new_zeros(0) if values is None else values
    for name, tensor in (("states", states), ("controls", controls), ("values", values)):
        if tensor.dtype != torch.float64 or tensor.device.type != "cpu":
            raise InvalidInputError(
                name, f"{tensor.dtype} on {tensor.device}", "float64 on cpu", "Convert with .double().cpu()."
            )
    if controls.ndim == 1:
        controls = controls.expand(steps, -1)
    moved: torch.Tensor = _Rollout.apply(world, states, steps, controls, tuple(names), values)  # type: ignore[no-untyped-call]
    return moved


class _Rollout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        world: World,
        states: torch.Tensor,
        steps: int,
        controls: torch.Tensor,
        names: tuple[str, ...],
        values: torch.Tensor,
    ) -> torch.Tensor:
        ctx.start = states.detach().numpy().reshape(-1, STATE_SIZE).copy()
        ctx.shape = states.shape
        ctx.rollout = rollout_derivatives(
            world, ctx.start, steps, controls.detach().numpy(), None, names, values.detach().numpy()
        )
        return torch.from_numpy(ctx.rollout.result.states)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        first, controls, values = pull_back(ctx.rollout, ctx.start, gradient.numpy())
        return (
            None, torch.from_numpy(first).reshape(ctx.shape), None, torch.from_numpy(controls), None,
            torch.from_numpy(values),
        )  # fmt: skip


def pull_back(rollout: RolloutDerivatives, start: Array, gradient: Array) -> tuple[Array, Array, Array]:
    """Gradients by the first state (B, 13), the controls (T, M) and the parameters (K,) from that by all states.

    Args:
        rollout: with its derivatives.
        start: (B, 13) as given, before its quaternions were made unit.
        gradient: (T + 1, B, 13).
    """
    states, done = rollout.result.states, rollout.result.steps_done
    by_state = np.array([_to_tangent(state, row) for state, row in zip(states, gradient, strict=True)])
    by_controls, by_values = np.zeros((len(states) - 1, rollout.B.shape[2])), np.zeros(rollout.P.shape[2])
    adjoint = by_state[done:].sum(axis=0)
    for t in range(done - 1, -1, -1):
        by_controls[t] = adjoint @ rollout.B[t]
        by_values += adjoint @ rollout.P[t]
        adjoint = by_state[t] + adjoint @ rollout.A[t]
    return _from_tangent(start, adjoint), by_controls, by_values


def _turns(quat_xyzw: Array) -> Array:
    """(4, 3): the change of a quaternion with a rotation vector in the body's frame."""
    x, y, z, w = quat_xyzw
    return 0.5 * np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])


def _to_tangent(state: Array, gradient: Array) -> Array:
    out = np.empty((len(state), TANGENT_SIZE))
    out[:, :3], out[:, 6:] = gradient[:, :3], gradient[:, 7:]
    for row, body, flat in zip(out, state, gradient, strict=True):
        row[3:6] = flat[3:7] @ _turns(body[3:7])
    return out.ravel()


def _from_tangent(start: Array, gradient: Array) -> Array:
    tangent = gradient.reshape(len(start), TANGENT_SIZE)
    out = np.empty((len(start), STATE_SIZE))
    out[:, :3], out[:, 7:] = tangent[:, :3], tangent[:, 6:]
    for row, body, turn in zip(out, start, tangent[:, 3:6], strict=True):
        norm = float(np.linalg.norm(body[3:7]))
        # The columns of _turns are orthogonal with length 1/2: their inverse is four times the transpose.
        row[3:7] = 4.0 / norm * (_turns(body[3:7] / norm) @ turn)
    return out
