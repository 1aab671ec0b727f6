"""Derivatives of a step against central differences, for every form, shape and pairing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from contact_samples import box_body, difference

from morphit_ros.neural.contact.density_shape import DensityShape
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import (
    ContactBox,
    ContactCapsule,
    ContactHalfSpace,
    ContactPolytope,
    ContactSphere,
    SphereSet,
)
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate, step_derivatives
from morphit_ros.neural.dynamics.state import BodyState, add_tangent, subtract_states
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.fields.analytic import BoxField, SphereField

BODY = box_body()
PARAMETERS = ContactParameters(
    friction=0.3, spring=3e4, damper=3e5, sliding_drag=0.05, rolling_friction=0.02, torsional_friction=0.03,
    rolling_drag=0.01, indicator_width=0.01, slip_speed=0.05, size=1.0,
)  # fmt: skip
NAMES = ("friction", "spring", "damper", "sliding_drag", "mass_scale:body0", "inertia_scale:body0")
VALUES = np.array([0.3, 3e4, 3e5, 0.05, 1.1, 0.9])
STILL = np.zeros(12)
TURNED = BodyState([0.1, 0.05, 0.0], [0.05, 0.1, 0.3, 1.0], [0.4, -0.3, -0.3], [0.5, -0.4, 1.0])


def raised(state: BodyState, height: float) -> BodyState:
    return BodyState(
        state.position + np.array([0.0, 0.0, height]), state.quat_xyzw, state.velocity, state.angular_velocity
    )


def placed(angle: float, origin: tuple[float, float, float]) -> np.ndarray:
    transform = np.eye(4)
    transform[:3, :3] = [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
    transform[:3, 3] = origin
    return transform


def check(
    world: World, states: list[BodyState], names=NAMES, values=VALUES, atol: float = 2e-7, step_size=2e-5
) -> None:
    control = np.linspace(0.3, -0.6, len(world.control_map))
    start = np.array([state.flat for state in states])
    wrenches = np.linspace(-1.0, 1.0, 6 * len(states)).reshape(len(states), 6)
    step = step_derivatives(world, start, control, wrenches, names, values)
    # Something must touch, or the test is of free flight.
    free = World(world.bodies, step=world.step, controls=world.controls)
    assert np.abs(step.states - simulate(free, start, 1, control, wrenches).states[1]).max() > 1e-3

    def after(states=start, control=control, values=values):
        result = simulate(world, states, 1, control, wrenches, names, values)
        assert result.status == "completed"
        return subtract_states(result.states[1], step.states)

    scale = np.abs(step.A).max()
    A = difference(lambda tangent: after(add_tangent(start, tangent)), np.zeros(12 * len(states)), step_size)
    np.testing.assert_allclose(step.A, A, atol=atol * scale)
    if len(control):
        np.testing.assert_allclose(step.B, difference(lambda u: after(control=u), control, 1e-3), atol=1e-8)
    P = difference(lambda factors: after(values=values * factors), np.ones(len(values)), 1e-4)
    np.testing.assert_allclose(step.P * values, P, atol=1e-9)


OBSTACLES = {
    "half-space": Obstacle(ContactHalfSpace(), placed(0.05, (0.0, 0.0, 0.0))),
    "sphere": Obstacle(ContactSphere(0.5), placed(0.0, (0.0, 0.0, -0.5))),
    "capsule": Obstacle(ContactCapsule(0.3, 1.0), placed(1.4, (0.0, 0.0, -0.3))),
    "box": Obstacle(ContactBox(np.array([0.3, 0.3, 0.2])), placed(0.05, (0.0, 0.1, -0.1))),
    "convex mesh": Obstacle(
        ContactPolytope.from_vertices(np.array([[1, 0, 0], [-1, 1, 0], [-1, -1, 0], [0, 0, -1.0]])),
        placed(0.05, (0, 0, 0)),
    ),
    "spheres": Obstacle(SphereSet(np.array([[0.3, 0, -0.3], [-0.3, 0, -0.3]]), np.array([0.3, 0.3]))),
    "density": Obstacle(
        DensityShape.from_field(SphereField(0.5, edge=0.02), 0.5, 0.05), placed(0.1, (0.0, 0.0, -0.5))
    ),
    "driven": Obstacle(
        ContactSphere(0.5), positions=np.array([[0.0, 0.0, -0.5], [0.002, 0.001, -0.499]]),
        quats_xyzw=np.array([[0.0, 0.0, 0.0, 1.0], [0.001, 0.002, 0.001, 1.0]]),
    ),
}  # fmt: skip


def lowered(world: World, state: BodyState, depth: float) -> BodyState:
    """The state moved along z until its deepest point is that deep in the first obstacle."""
    from morphit_ros.neural.dynamics.rollout_kernels import penetrations

    low, high = -0.2, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        deepest = penetrations(world.model, world.pair_values, raised(state, middle).flat[None], world.frames[0][0])
        low, high = (middle, high) if deepest[0] > depth else (low, middle)
    return raised(state, high)


@pytest.mark.parametrize("name", OBSTACLES)
def test_points_on_a_shape(name):
    world = World([BODY], [OBSTACLES[name]], PARAMETERS, 0.005, controls=[("body0", "wrench")])
    check(world, [lowered(world, TURNED, 0.01)], atol=2e-6 if name in ("density", "spheres") else 2e-7)


@pytest.mark.parametrize("name", ["half-space", "sphere", "driven"])
def test_single_point_on_a_shape(name):
    world = World(
        [BODY], [OBSTACLES[name]], PARAMETERS, 0.002, controls=[("body0", "wrench")], form="smooth_single_point"
    )
    names = (*NAMES, "rolling_friction", "torsional_friction")
    check(world, [lowered(world, TURNED, 0.01)], names, np.array([*VALUES, 0.02, 0.03]))


@pytest.mark.parametrize("form", ["points", "smooth_single_point"])
def test_a_moving_ball_and_a_second_body(form):
    ball = RigidBody.ball(0.3, 5.0, name="ball")
    world = World([BODY, ball], [OBSTACLES["half-space"]], PARAMETERS, 0.002, controls=[("ball", "force")], form=form)
    states = [
        lowered(World([BODY], [OBSTACLES["half-space"]], PARAMETERS, 0.002), TURNED, 0.01),
        BodyState([-0.69, -0.1, 0.3], [0.1, 0.2, 0.3, 1.0], [1.0, 0.2, 0.1], [0.3, 0.5, -0.4]),
    ]
    check(world, states, (*NAMES, "mass_scale:ball"), np.array([*VALUES, 1.2]))


def test_two_densities_touch_with_both_point_sets():
    shape = DensityShape.from_field(BoxField((1.0, 0.6, 0.4), edge=0.02), 0.5, 0.04)
    bodies = [RigidBody.from_contact_body(BODY, shape), RigidBody.from_contact_body(BODY, shape)]
    parameters = dataclasses.replace(PARAMETERS, indicator_width=0.006)
    world = World(bodies, (), parameters, 0.005, controls=[("body1", "wrench")])
    assert set(world.pairs) == {"body0/body1", "body1/body0"}
    start = [
        BodyState([0.0, 0.0, 0.0], [0.02, 0.03, 0.3, 1.0], [0.1, 0.0, 0.2], [0.1, 0.2, 0.3]),
        BodyState([0.1, 0.05, 0.4], [0.0, 0.0, 0.1, 1.0], [0.0, 0.1, -0.3], [0.3, -0.2, 0.5]),
    ]
    # The third derivative of a cubic spline jumps between its cells: differences only converge with their step.
    check(world, start, atol=2e-6, step_size=2e-6)
    # Momentum is conserved: what one feels, the other feels the other way.
    world = World(bodies, (), parameters, 0.005, gravity=np.zeros(3))
    result = simulate(world, start, 40)
    momentum = 2.0 * result.velocities.sum(axis=1)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-11)


SETTINGS = {
    "table": [OBSTACLES["half-space"]],
    "groove": [
        Obstacle(ContactHalfSpace(), placed(0.3, (0.0, 0.0, 0.0)), name="left"),
        Obstacle(ContactHalfSpace(), placed(-0.4, (0.0, 0.0, 0.0)), name="right"),
    ],
    "density": [OBSTACLES["density"]],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_chained_sensitivities_are_those_of_the_rollout(name):
    world = World([BODY], SETTINGS[name], PARAMETERS, 0.005)
    start = lowered(world, TURNED, 0.01).flat[None]
    rollout = rollout_derivatives(world, start, 50, names=("friction", "inertia_scale"))
    by_state, by_parameters = rollout.chained()

    def last(tangent=STILL, values=(0.3, 1.0)):
        result = simulate(world, add_tangent(start, tangent), 50, names=("friction", "inertia_scale"), values=values)
        return subtract_states(result.states[-1], rollout.result.states[-1])

    expected = difference(last, np.zeros(12), 1e-5)
    np.testing.assert_allclose(by_state[-1], expected, atol=1e-7 * np.abs(expected).max())
    expected = difference(lambda values: last(values=values), np.array([0.3, 1.0]), 1e-4)
    np.testing.assert_allclose(by_parameters[-1], expected, atol=1e-8 * max(1.0, np.abs(expected).max()))
