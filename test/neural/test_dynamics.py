"""Motion: free flight, rest, sliding, spin, energy, symmetry, batches and bad input."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contact_samples import box_body

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import multiply_quats, quats_of_rotation_vectors
from morphit_ros.geometry.transforms import matrix_from_quat_xyzw
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.density_shape import DensityShape
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactBox, ContactHalfSpace, ContactSphere
from morphit_ros.neural.dynamics.rollouts import simulate_batch
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate
from morphit_ros.neural.dynamics.state import (
    BodyState,
    add_tangent,
    subtract_states,
)
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.published import load_published_body, load_published_trajectory

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "neural"
BODY = box_body()
TABLE = Obstacle(ContactHalfSpace(), name="table")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the authors' data is not there")


def energy(body: ContactBody, states: np.ndarray, gravity: float = 9.81) -> np.ndarray:
    """Kinetic and potential energy (T + 1,) [J] of states (T + 1, 13)."""
    spin = states[:, 10:]
    kinetic = 0.5 * body.mass * (states[:, 7:10] ** 2).sum(axis=1)
    return kinetic + 0.5 * np.einsum("ti,ij,tj->t", spin, body.inertia, spin) + body.mass * gravity * states[:, 2]


def start_of(track, step: float) -> BodyState:
    """The second pose of a track with the velocities that led to it."""
    turn = multiply_quats(track.quats_xyzw[0] * [-1.0, -1.0, -1.0, 1.0], track.quats_xyzw[1])
    velocity = (track.positions[1] - track.positions[0]) / step
    return BodyState(track.positions[1], track.quats_xyzw[1], velocity, 2.0 / step * turn[:3])


@needs_data
def test_free_flight_is_that_of_the_authors_engine():
    body = load_published_body(DATA / "bunny.npz", second_moment_as_inertia=True)
    track = load_published_trajectory(DATA / "bunny_trajectory_0.3.csv")
    result = simulate(World([body], step=0.002), start_of(track, 0.002), 237)
    np.testing.assert_allclose(result.positions[:, 0], track.positions[1:239], atol=1e-9, rtol=0.0)
    # The stored rotations carry the tolerance of the authors' solver.
    np.testing.assert_allclose(result.quats_xyzw[:, 0], track.quats_xyzw[1:239], atol=5e-8, rtol=0.0)


def published_world(body: ContactBody, friction: float) -> World:
    parameters = ContactParameters(friction=friction, spring=1e5, damper=1e6, sliding_drag=0.01, size=1.0)
    return World([body], [TABLE], parameters, form="published")


@needs_data
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_first_contact_of_the_published_form_is_that_of_the_authors_engine(friction):
    body = load_published_body(DATA / "bunny.npz", second_moment_as_inertia=True)
    track = load_published_trajectory(DATA / f"bunny_trajectory_{friction}.csv")
    result = simulate(published_world(body, friction), start_of(track, 0.002), 250)
    # Step 239 is the first that touches.
    errors = np.linalg.norm(result.positions[:, 0] - track.positions[1:252], axis=1)
    flight = np.linalg.norm(
        simulate(World([body]), start_of(track, 0.002), 250).positions[:, 0] - track.positions[1:252], axis=1
    )
    assert errors.max() < 1e-6 < 0.02 < flight[245]


@needs_data
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_each_step_in_contact_is_the_authors_to_the_tolerance_of_their_solver(friction):
    body = load_published_body(DATA / "bunny.npz", second_moment_as_inertia=True)
    track = load_published_trajectory(DATA / f"bunny_trajectory_{friction}.csv")
    world = published_world(body, friction)

    def velocities(t: int) -> tuple[np.ndarray, np.ndarray]:
        turn = multiply_quats(track.quats_xyzw[t] * [-1.0, -1.0, -1.0, 1.0], track.quats_xyzw[t + 1])
        return (track.positions[t + 1] - track.positions[t]) / 0.002, turn[:3] / 0.001

    momentum = []
    for t in range(239, 540):
        moved = simulate(world, BodyState(track.positions[t], track.quats_xyzw[t], *velocities(t - 1)), 1).states[1, 0]
        velocity, spin = velocities(t)
        momentum.append([*(body.mass * (moved[7:10] - velocity)), *(body.inertia @ (moved[10:] - spin))])
    # They solved the balance of momentum of a step to 1e-4.
    assert np.abs(momentum).max() < 1.1e-4


def test_free_flight_keeps_momentum_and_energy():
    world = World([BODY], step=0.001, gravity=np.zeros(3))
    result = simulate(world, BodyState(velocity=[1.0, 2.0, 3.0], angular_velocity=[3.0, 0.5, -2.0]), 2000)
    spins = np.array(
        [
            matrix_from_quat_xyzw(q) @ BODY.inertia @ w
            for q, w in zip(result.quats_xyzw[:, 0], result.angular_velocities[:, 0], strict=True)
        ]
    )
    np.testing.assert_allclose(spins, np.broadcast_to(spins[0], spins.shape), atol=2e-3)
    values = energy(BODY, result.states[:, 0], 0.0)
    np.testing.assert_allclose(values, values[0], rtol=2e-3)


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_rests_without_creeping(size):
    body = box_body((size, 0.6 * size, 0.4 * size))
    result = simulate(World([body], [TABLE], step=0.01 * math.sqrt(size)), BodyState([0.0, 0.0, 0.21 * size]), 1000)
    assert result.status == "completed"
    assert np.abs(result.velocities[-1]).max() < 1e-9 * size
    # Upright, and on its surface within the width of the indicator.
    assert abs(result.quats_xyzw[-1, 0, 3]) > math.cos(math.radians(0.1))
    assert result.positions[-1, 0, 2] == pytest.approx(0.2 * size, abs=0.03 * size)


@pytest.mark.parametrize("spring, damper", [*itertools.product([1e4, 1e5], [1e5, 1e6])])
@pytest.mark.parametrize("friction, drag", [*itertools.product([0.0, 1.0], [0.0, 0.1])])
def test_no_energy_is_gained_at_the_corners_of_table_1(spring, damper, friction, drag):
    parameters = ContactParameters(friction=friction, spring=spring, damper=damper, sliding_drag=drag)
    world = World([box_body(count=200)], [TABLE], parameters, 0.01)
    start = BodyState([0.0, 0.0, 0.8], [0.2, 0.3, 0.1, 1.0], [1.0, 0.5, 0.0], [1.0, 2.0, -1.0])
    result = simulate(world, start, 1000)
    values = energy(BODY, result.states[:, 0])
    assert result.status == "completed"
    assert values.max() <= values[0] * (1.0 + 1e-6)
    assert np.isfinite(result.states).all()


@pytest.mark.parametrize("name", ["on its edge", "ball in a groove", "on a density field"])
def test_no_energy_is_gained_elsewhere(name):
    parameters = ContactParameters(friction=0.5)
    body, obstacles, start = BODY, [TABLE], BodyState([0.0, 0.0, 0.5], [math.sin(0.6), 0.0, 0.0, math.cos(0.6)])
    if name == "ball in a groove":
        points = BODY.points / np.array([1.0, 0.6, 0.4])
        inside = np.linalg.norm(points, axis=1) < 0.5
        points = points[inside] - points[inside].mean(axis=0)
        weights = np.full(len(points), 2.0 / len(points))
        body = ContactBody(points, weights, np.zeros_like(points), 2.0, np.eye(3) * 0.2, np.zeros(3))
        obstacles = [
            Obstacle(ContactHalfSpace(), tilted(0.6), name="left"),
            Obstacle(ContactHalfSpace(), tilted(-0.7), name="right"),
        ]
        start = BodyState([0.0, 0.1, 0.8], velocity=[0.5, 1.0, 0.0], angular_velocity=[1.0, 3.0, -2.0])
    elif name == "on a density field":
        shape = DensityShape.from_field(BoxField((2.0, 2.0, 0.5), edge=0.05), 0.5, 0.08)
        obstacles = [Obstacle(shape)]
        start = BodyState([0.1, 0.2, 0.8], [0.2, 0.3, 0.1, 1.0], [0.3, 0.0, 0.0], [1.0, 2.0, -1.0])
    result = simulate(World([body], obstacles, parameters, 0.01), start, 500)
    assert result.status == "completed"
    values = energy(body, result.states[:, 0])
    assert values.max() <= values[0] * (1.0 + 1e-6)
    # Over a second it doesn't rise anywhere either, but by what the step makes of a motion that swings.
    assert (values[100:] - np.minimum.accumulate(values)[:-100]).max() < 0.005 * values[0]


def tilted(angle: float) -> np.ndarray:
    """The pose of a half-space turned about x."""
    transform = np.eye(4)
    transform[:3, :3] = matrix_from_quat_xyzw(np.array([math.sin(0.5 * angle), 0.0, 0.0, math.cos(0.5 * angle)]))
    return transform


def test_slides_as_far_as_coulomb_says():
    parameters = ContactParameters(friction=0.3)
    world = World([BODY], [TABLE], parameters)
    settled = simulate(world, BodyState([0.0, 0.0, 0.21]), 500).states[-1]
    settled[0, 7:9] = 2.0, 1.0
    result = simulate(world, settled, 1000)
    distance = np.linalg.norm(result.positions[-1, 0, :2] - settled[0, :2])
    assert distance == pytest.approx(5.0 / (2.0 * 0.3 * 9.81), rel=0.005)


def test_pushes_only():
    # Pulled up fast from its rest, nothing holds the body down.
    world = World([BODY], [TABLE])
    settled = simulate(world, BodyState([0.0, 0.0, 0.21]), 500).states[-1]
    settled[0, 9] = 1.0
    result = simulate(world, settled, 5)
    assert (np.diff(result.velocities[:, 0, 2]) >= -9.81 * 0.002 - 1e-12).all()


def test_turning_the_world_turns_the_motion():
    turn = quats_of_rotation_vectors(np.array([0.3, -0.5, 1.2]))
    R = matrix_from_quat_xyzw(turn)
    start = BodyState([0.1, 0.2, 0.5], [0.1, 0.3, 0.0, 1.0], [1.0, 0.0, -1.0], [1.0, 2.0, 3.0])
    other = BodyState(R @ start.position, multiply_quats(turn, start.quat_xyzw), R @ start.velocity,
                      start.angular_velocity)  # fmt: skip
    T = np.eye(4)
    T[:3, :3] = R
    ball = BodyState([1.0, 0.3, 0.3], velocity=[-2.0, 0.0, 0.0])
    turned_ball = BodyState(R @ ball.position, turn, R @ ball.velocity)
    bodies = [BODY, RigidBody.ball(0.25, 3.0)]
    here = simulate(World(bodies, [TABLE]), [start, ball], 300)
    there = simulate(
        World(bodies, [Obstacle(ContactHalfSpace(), T)], gravity=R @ [0.0, 0.0, -9.81]), [other, turned_ball], 300
    )
    np.testing.assert_allclose(there.positions, here.positions @ R.T, atol=1e-8)
    np.testing.assert_allclose(there.angular_velocities[:, 0], here.angular_velocities[:, 0], atol=1e-6)


def test_a_driven_finger_pushes_and_its_frame_doesnt_matter():
    track = np.column_stack([np.linspace(-0.8, -0.3, 200), np.zeros(200), np.full(200, 0.2)])
    start = BodyState([0.0, 0.0, 0.22])
    finger = World([BODY], [TABLE, Obstacle(ContactSphere(0.1), positions=track, name="finger")], step=0.01)
    result = simulate(finger, start, 250)
    assert result.positions[-1, 0, 0] == pytest.approx(0.3, abs=0.03)
    box = World([BODY], [TABLE, Obstacle(ContactBox(np.array([0.2, 0.2, 0.2])), positions=track)], step=0.01)
    assert simulate(box, start, 250).positions[-1, 0, 0] == pytest.approx(0.3, abs=0.03)


def test_outer_wrenches_and_controls_are_the_same_thing():
    start = BodyState([0.0, 0.0, 0.3])
    wrench = np.array([1.0, -2.0, 25.0, 0.1, 0.2, -0.3])
    controlled = simulate(World([BODY], [TABLE], controls=[("body0", "wrench")]), start, 50, controls=wrench)
    pushed = simulate(World([BODY], [TABLE]), start, 50, wrenches=wrench[None])
    np.testing.assert_array_equal(controlled.states, pushed.states)


def test_mass_and_its_scale_are_the_same_thing():
    heavy = ContactBody(BODY.points, 1.5 * BODY.masses, BODY.normals, 1.5 * BODY.mass, 1.5 * BODY.inertia, np.zeros(3))
    start = [BodyState([0.0, 0.0, 0.21]), BodyState([-0.9, 0.1, 0.2], velocity=[3.0, 0.0, 0.0])]
    ball = RigidBody.ball(0.25, 4.0)
    scaled = simulate(World([BODY, ball], [TABLE]), start, 200, names=("mass_scale:body0",), values=[1.5])
    np.testing.assert_allclose(scaled.states, simulate(World([heavy, ball], [TABLE]), start, 200).states, atol=1e-9)


def test_a_batch_is_its_rollouts_one_by_one():
    world = World([BODY], [TABLE], step=0.01, controls=[("body0", "force")])
    starts = np.array(
        [BodyState([0.0, 0.0, 0.3 + 0.02 * i], velocity=[1.0, 0.1 * i, 0.0]).flat[None] for i in range(9)]
    )
    controls = np.random.default_rng(0).normal(size=(9, 40, 3))
    frictions = np.linspace(0.0, 0.8, 9)[:, None]
    batch = simulate_batch(world, starts, 40, controls, names=("friction",), values=frictions, threads=2)
    for start, control, friction, states in zip(starts, controls, frictions, batch.states, strict=True):
        alone = simulate(world, start, 40, control, names=("friction",), values=friction)
        np.testing.assert_array_equal(states, alone.states)
    assert set(batch.statuses) == {"completed"}
    again = simulate_batch(world, starts, 40, controls, names=("friction",), values=frictions, threads=1)
    np.testing.assert_array_equal(again.states, batch.states)


def test_tangents_add_and_subtract():
    state = BodyState([1.0, 2.0, 3.0], [0.1, 0.2, 0.3, 0.4], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]).flat[None]
    tangent = np.linspace(-0.5, 0.6, 12)
    np.testing.assert_allclose(subtract_states(add_tangent(state, tangent), state), tangent, atol=1e-12)


def test_a_deep_start_is_refused_with_its_depth():
    with pytest.raises(InvalidInputError, match=r"'body0/table' 0\.09\d* m deep .* out by at least"):
        simulate(World([BODY], [TABLE]), BodyState([0.0, 0.0, 0.1]), 10)


@pytest.mark.parametrize("spring, damper", [*itertools.product([1e4, 1e5], [1e5, 1e6])])
def test_a_shallow_start_is_pushed_out_gently(spring, damper):
    parameters = ContactParameters(spring=spring, damper=damper)
    result = simulate(World([BODY], [TABLE], parameters), BodyState([0.0, 0.0, 0.15]), 1000)
    # At I_s/I_d the damper takes all of the spring's force, but for its soft corner.
    assert result.velocities[:, 0, 2].max() <= 2.0 * spring / damper * math.sqrt(BODY.size)
    assert result.positions[:, 0, 2].max() < 0.25 + (spring / damper) ** 2 * BODY.size / 9.81


def test_a_step_too_long_is_refused_with_the_bound():
    with pytest.raises(InvalidInputError, match=r"step: got 0\.02 s, expected at most 0\.0\d+ s for the spring"):
        World([BODY], [TABLE], ContactParameters(spring=1e5, damper=1e5), 0.02, form="published")
    with pytest.raises(InvalidInputError, match=r"step: got 0\.05 s, expected at most 0\.03"):
        World([BODY], [TABLE], step=0.05)


def test_a_spin_too_fast_for_the_step_is_a_status():
    result = simulate(World([BODY], step=0.01), BodyState(angular_velocity=[0.0, 0.0, 250.0]), 5)
    assert (result.status, result.steps_done) == ("too_fast", 0)
    np.testing.assert_array_equal(result.states[-1], result.states[0])


WORLD = World([BODY], [TABLE], controls=[("body0", "force")])
START = BodyState([0.0, 0.0, 0.3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: World([]),
        lambda: World([BODY], step=0.0),
        lambda: World([BODY], step=math.nan),
        lambda: World([BODY], gravity=np.array([0.0, math.nan, 0.0])),
        lambda: World([BODY], [TABLE, TABLE]),
        lambda: World([BODY], [TABLE], pair_parameters={"body0/nothing": ContactParameters()}),
        lambda: World([BODY], [TABLE], ignored_pairs=["x"]),
        lambda: World([BODY], controls=[("body1", "force")]),
        lambda: World([BODY], controls=[("body0", "velocity")]),
        lambda: World([BODY], form="other"),  # type: ignore[arg-type]
        lambda: RigidBody(-1.0, np.eye(3)),
        lambda: RigidBody(1.0, -np.eye(3)),
        lambda: Obstacle(ContactSphere(0.1), positions=np.zeros((0, 3))),
        lambda: Obstacle(ContactSphere(0.1), quats_xyzw=np.zeros((2, 4))),
        lambda: BodyState([0.0, math.nan, 0.0]),
        lambda: BodyState(quat_xyzw=[0.0, 0.0, 0.0, 0.0]),
        lambda: simulate(WORLD, START, 0),
        lambda: simulate(WORLD, np.zeros((2, 13)), 3),
        lambda: simulate(WORLD, np.full((1, 13), math.nan), 3),
        lambda: simulate(WORLD, START, 3, controls=np.zeros((2, 3))),
        lambda: simulate(WORLD, START, 3, controls=[math.nan, 0.0, 0.0]),
        lambda: simulate(WORLD, START, 3, wrenches=np.zeros((2, 6))),
        lambda: simulate(WORLD, START, 3, names=("friction",), values=[-0.1]),
        lambda: simulate(WORLD, START, 3, names=("mass_scale",), values=[0.0]),
        lambda: simulate(WORLD, START, 3, names=("frictoin",), values=[0.1]),
        lambda: simulate(WORLD, START, 3, names=("friction",), values=[0.1, 0.2]),
        lambda: rollout_derivatives(WORLD, START, 3, names=("nothing",)),
        lambda: simulate_batch(WORLD, np.zeros((0, 1, 13)), 3),
        lambda: simulate_batch(WORLD, START.flat[None, None], 3, controls=np.zeros((2, 3, 3))),
        lambda: simulate_batch(WORLD, START.flat[None, None], 3, names=("friction",), values=np.zeros((2, 1))),
    ],
)
def test_bad_input_is_refused(make):
    with pytest.raises(InvalidInputError):
        make()


@pytest.mark.parametrize(("spin", "torque"), [([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]), ([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])])
def test_a_body_turns_where_nothing_falls(spin: list[float], torque: list[float]) -> None:
    world = World([BODY], gravity=np.zeros(3), step=0.01)
    wrench = np.array([[0.0, 0.0, 0.0, *torque]])
    result = simulate(world, BodyState(angular_velocity=spin), 20, wrenches=wrench)
    assert result.status == "completed"
    # No outer torque, or one from rest: angular momentum is the torque's impulse and what there was.
    momentum = matrix_from_quat_xyzw(result.states[-1, 0, 3:7]) @ BODY.inertia @ result.angular_velocities[-1, 0]
    expected = BODY.inertia @ np.array(spin) + 0.2 * np.array(torque)
    # Spins are those between two poses, so that momentum is seen turned by half a step.
    turned = 0.5 * world.step * np.linalg.norm(np.cross(spin, BODY.inertia @ np.array(spin)))
    np.testing.assert_allclose(momentum, expected, rtol=0.0, atol=1.2 * turned + 1e-4)


def test_what_no_simulation_can_mean_is_refused() -> None:
    world = World([BODY], [TABLE])
    start = BodyState([0.0, 0.0, 0.21])
    flat = replace(BODY, points=BODY.points * [1.0, 1.0, 0.0])
    skew = np.array([[0.0, 0.05, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    both = ("friction", "friction:body0/table")
    for name, act in (
        ("height", lambda: World([flat], [TABLE], form="published")),
        ("inertia", lambda: replace(BODY, inertia=BODY.inertia + skew)),
        ("inertia", lambda: RigidBody(1.0, np.eye(3) + skew)),
        ("threads", lambda: simulate_batch(world, start.flat[None, None], 3, threads=-1)),
        ("steps", lambda: simulate(world, start, 10**12)),
        ("same number", lambda: simulate(world, start, 3, names=both, values=[0.1, 0.5])),
        ("center_of_mass", lambda: DensityShape.from_field(BoxField([0.1, 0.1, 0.1]), 0.5, 0.02, [1.0, 2.0])),
    ):
        with pytest.raises(InvalidInputError, match=name):
            act()


def test_a_spin_that_a_step_cannot_turn_is_said_to_be_too_fast() -> None:
    world = World([BODY], [TABLE], controls=[("body0", "wrench")])
    result = simulate(world, BodyState([0.0, 0.0, 0.21]), 50, controls=[0.0, 0.0, 0.0, 0.0, 0.0, 1e6])
    assert result.status == "too_fast"
