"""Gradients of rollouts in torch against central differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from contact_samples import box_body, difference

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.gradients import differentiable_rollout
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World

STEPS = 50
PARAMETERS = ContactParameters(friction=0.3, indicator_width=0.01, slip_speed=0.05)
WORLD = World(
    [box_body(), RigidBody.ball(0.3, 5.0, name="ball")], [Obstacle(ContactHalfSpace())], PARAMETERS, 0.005,
    controls=[("ball", "force")],
)  # fmt: skip
START = np.array(
    [
        BodyState([0.0, 0.0, 0.22], [0.01, 0.02, 0.1, 1.0], [0.5, 0.1, 0.0], [0.1, 0.1, 0.3]).flat,
        BodyState([-0.85, 0.1, 0.3], velocity=[1.5, 0.0, 0.0]).flat,
    ]
)
CONTROLS = np.random.default_rng(0).normal(size=(STEPS, 3)) * 3.0 + [0.0, 0.0, 49.05]
NAMES = ("friction", "mass_scale:body0", "inertia_scale:body0")
VALUES = np.array([0.3, 1.0, 1.0])
WEIGHTS = np.random.default_rng(1).normal(size=(STEPS + 1, 2, 13))


def loss(states=START, controls=CONTROLS, values=VALUES) -> float:
    result = simulate(WORLD, states, STEPS, controls, names=NAMES, values=values)
    assert result.status == "completed"
    return float((WEIGHTS * result.states).sum())


@pytest.fixture(scope="module")
def gradients() -> tuple[np.ndarray, ...]:
    tensors = [torch.tensor(array, requires_grad=True) for array in (START, CONTROLS, VALUES)]
    states = differentiable_rollout(WORLD, tensors[0], STEPS, tensors[1], NAMES, tensors[2])
    (torch.from_numpy(WEIGHTS) * states).sum().backward()
    return tuple(tensor.grad.numpy() for tensor in tensors if tensor.grad is not None)


def test_both_bodies_are_in_contact():
    free = World(WORLD.bodies, (), step=0.005, controls=WORLD.controls, ignored_pairs=["body0/ball"])
    moved = simulate(WORLD, START, STEPS, CONTROLS).states[-1] - simulate(free, START, STEPS, CONTROLS).states[-1]
    assert (np.abs(moved[:, 7:10]).max(axis=1) > 0.1).all()


def assert_same(gradient: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=1e-8 * max(1.0, np.abs(expected).max()))


def test_by_the_first_state(gradients):
    expected = difference(lambda flat: np.array(loss(states=flat.reshape(2, 13))), START.ravel(), 1e-5)
    assert_same(gradients[0].ravel(), expected)


def test_by_controls(gradients):
    some = [0, 1, 20, 49]

    def at(numbers):
        controls = CONTROLS.copy()
        controls[some] = numbers.reshape(4, 3)
        return np.array(loss(controls=controls))

    assert_same(gradients[1][some].ravel(), difference(at, CONTROLS[some].ravel(), 1e-3))


def test_by_parameters(gradients):
    assert_same(gradients[2], difference(lambda values: np.array(loss(values=values)), VALUES, 1e-4))


def test_without_controls_or_parameters():
    world = World([box_body()], [Obstacle(ContactHalfSpace())])
    state = torch.tensor(START[:1], requires_grad=True)
    differentiable_rollout(world, state, 5)[-1, 0, 0].backward()
    assert state.grad is not None
    assert state.grad[0, 0] == pytest.approx(1.0)


def test_other_precision_is_refused():
    with pytest.raises(InvalidInputError, match=r"states: got torch.float32"):
        differentiable_rollout(WORLD, torch.zeros((2, 13), dtype=torch.float32), 3)
