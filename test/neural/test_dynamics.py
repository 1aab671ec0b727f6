"""Motion: free flight, rest, sliding, spin, energy, symmetry, batches and bad input."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from contact_samples import box_body

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import multiply_quats, quats_of_rotation_vectors
from morphit_ros.geometry.transforms import matrix_from_quat_xyzw
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import Box, HalfSpace, Sphere
from morphit_ros.neural.dynamics.rollouts import simulate_batch
from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate
from morphit_ros.neural.dynamics.state import (
    BodyState,
    add_tangent,
    subtract_states,
)
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.published import load_published_body, load_published_trajectory

DATA = Path(__file__).parents[3] / "shared" / "data" / "neural"
BODY = box_body()
TABLE = Obstacle(HalfSpace(), name="table")
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


@needs_data
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_first_contact_of_the_published_form_is_that_of_the_authors_engine(friction):
    body = load_published_body(DATA / "bunny.npz", second_moment_as_inertia=True)
    track = load_published_trajectory(DATA / f"bunny_trajectory_{friction}.csv")
    parameters = ContactParameters(friction=friction, spring=1e5, damper=1e6, sliding_drag=0.01, size=1.0)
    world = World([body], [TABLE], parameters, form="published")
    result = simulate(world, start_of(track, 0.002), 250)
    # Step 239 is the first that touches; the two engines then part slowly.
    errors = np.linalg.norm(result.positions[:, 0] - track.positions[1:252], axis=1)
    flight = np.linalg.norm(
        simulate(World([body]), start_of(track, 0.002), 250).positions[:, 0] - track.positions[1:252], axis=1
    )
    assert errors[245] < 3e-4 < 0.02 < flight[245]


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


@pytest.mark.parametrize("spring, damper", itertools.product([1e4, 1e5], [1e5, 1e6]))
@pytest.mark.parametrize("friction, drag", itertools.product([0.0, 1.0], [0.0, 0.1]))
def test_no_energy_is_gained_at_the_corners_of_table_1(spring, damper, friction, drag):
    parameters = ContactParameters(friction=friction, spring=spring, damper=damper, sliding_drag=drag)
    world = World([box_body(count=200)], [TABLE], parameters, 0.01)
    start = BodyState([0.0, 0.0, 0.8], [0.2, 0.3, 0.1, 1.0], [1.0, 0.5, 0.0], [1.0, 2.0, -1.0])
    result = simulate(world, start, 1000)
    values = energy(BODY, result.states[:, 0])
    assert result.status == "completed"
    assert values.max() <= values[0] * (1.0 + 1e-6)
    assert np.isfinite(result.states).all()


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
        World(bodies, [Obstacle(HalfSpace(), T)], gravity=R @ [0.0, 0.0, -9.81]), [other, turned_ball], 300
    )
    np.testing.assert_allclose(there.positions, here.positions @ R.T, atol=1e-8)
    np.testing.assert_allclose(there.angular_velocities[:, 0], here.angular_velocities[:, 0], atol=1e-6)


def test_a_driven_finger_pushes_and_its_frame_doesnt_matter():
    track = np.column_stack([np.linspace(-0.8, -0.3, 200), np.zeros(200), np.full(200, 0.2)])
    start = BodyState([0.0, 0.0, 0.22])
    finger = World([BODY], [TABLE, Obstacle(Sphere(0.1), positions=track, name="finger")], step=0.01)
    result = simulate(finger, start, 250)
    assert result.positions[-1, 0, 0] == pytest.approx(0.3, abs=0.03)
    box = World([BODY], [TABLE, Obstacle(Box(np.array([0.2, 0.2, 0.2])), positions=track)], step=0.01)
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


@pytest.mark.parametrize("spring, damper", itertools.product([1e4, 1e5], [1e5, 1e6]))
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
        lambda: Obstacle(Sphere(0.1), positions=np.zeros((0, 3))),
        lambda: Obstacle(Sphere(0.1), quats_xyzw=np.zeros((2, 4))),
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
