"""Holding torques: known answers, the slope of the potential energy, and the forces in every joint."""

from __future__ import annotations

import numpy as np
import pytest
from cover_samples import bowl, published, random_rotation

from morphit_bench.cover.maximal import constraint_jacobian, rate_map
from morphit_ros.cover import Cover, CoverState
from morphit_ros.cover.actuation.torques import STANDARD_GRAVITY, holding_torques
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.motion import MotorMotion
from morphit_ros.cover.state import flat_state
from morphit_ros.errors import InvalidInputError

DOWN = (0.0, 0.0, -1.0)


def test_a_single_node_hangs_on_its_joint() -> None:
    """Half a pitch from the joint: m g pitch/2 on the axes across gravity and arm, nothing on the others."""
    cover = Cover(1, 2, motors=np.array([[0, 0], [0, 1], [0, 2]]))
    held = holding_torques(cover, flat_state(cover), 0.1, DOWN)
    # The weight folds away from the normal; the fold motor holds with a positive torque.
    np.testing.assert_allclose(held.torques, [0.0, 0.0, 0.1 * STANDARD_GRAVITY * 0.5 * cover.pitch], atol=1e-12)
    assert cover.motor_labels[held.worst] == "joint_1_2_z"
    # A row of three: the second joint holds one node, the first both, one of them further out.
    chain = Cover(1, 3, motors=np.array([[j, axis] for j in range(2) for axis in range(3)]))
    folds = holding_torques(chain, flat_state(chain), 0.1, DOWN).torques[2::3]
    np.testing.assert_allclose(folds, 0.1 * STANDARD_GRAVITY * chain.pitch * np.array([0.5 + 1.5, 0.5]), atol=1e-12)


@pytest.mark.parametrize("name", ["3x3", "4x8", "8x8"])
def test_torques_are_slopes_of_the_potential_energy(name: str) -> None:
    """With hinges, too. Motors turn one by one, the others stand still."""
    cover, state = published(name)
    gravity = np.array([0.3, -0.5, -0.8])
    held = holding_torques(cover, state, 0.005, gravity)
    motion = MotorMotion(cover, state.rotations, NullSpaceSolver(cover))
    way = gravity / np.linalg.norm(gravity)
    for motor in range(0, len(cover.motors), 5):
        rates, energies = np.zeros(len(cover.motors)), []
        for sign in (1e-5, -1e-5):
            rates[motor] = sign
            rotations, moved = motion.advance(state.rotations, rates, 1.0)
            assert moved
            heights = -CoverState(rotations, state.origin).positions(cover) @ way
            energies.append(0.005 * STANDARD_GRAVITY * heights.sum())
        assert held.torques[motor] == pytest.approx((energies[0] - energies[1]) / 2e-5, rel=2e-3, abs=1e-5)


@pytest.mark.parametrize(("rows", "cols", "fixed"), [(3, 3, (0,)), (4, 4, (5,)), (4, 3, (0, 1)), (2, 6, (0,))])
def test_forces_in_all_joints_agree(rows: int, cols: int, fixed: tuple[int, ...]) -> None:
    """Balance of forces and moments on every node, with joint forces, mounts and motor torques as unknowns."""
    cover, state = bowl(rows, cols, fixed)
    masses = np.random.default_rng(1).uniform(0.001, 0.01, cover.node_count)
    gravity = np.array([0.2, 0.6, -0.7])
    constraints = constraint_jacobian(cover, state)
    motors = rate_map(cover, state)[3 * cover.motors[:, 0] + cover.motors[:, 1]]
    weights = np.zeros((cover.node_count, 6))
    weights[:, :3] = STANDARD_GRAVITY * masses[:, None] * gravity / np.linalg.norm(gravity)
    balance = np.concatenate([constraints, motors]).T
    unknown, _, rank, _ = np.linalg.lstsq(balance, -weights.ravel(), rcond=None)
    np.testing.assert_allclose(balance @ unknown, -weights.ravel(), atol=1e-9)
    assert rank == balance.shape[0]
    held = holding_torques(cover, state, masses, gravity)
    np.testing.assert_allclose(held.torques, unknown[-len(cover.motors) :], atol=1e-8)


def test_the_worst_direction_is_the_worst_of_all() -> None:
    cover, state = published("3x3")
    worst = holding_torques(cover, state, 0.005)
    for seed in range(20):
        tried = holding_torques(cover, state, 0.005, random_rotation(seed)[:, 0])
        assert (np.abs(tried.torques) <= worst.torques + 1e-12).all()
    for motor, direction in enumerate(worst.directions):
        assert holding_torques(cover, state, 0.005, direction).torques[motor] == pytest.approx(worst.torques[motor])
    twice = holding_torques(cover, state, 0.01)
    np.testing.assert_allclose(twice.torques, 2.0 * worst.torques)
    # Turned as a whole, gravity with it, nothing changes.
    turn = random_rotation(3)
    turned = CoverState(np.ascontiguousarray(turn @ state.rotations), state.origin)
    np.testing.assert_allclose(
        holding_torques(cover, turned, 0.005, turn @ DOWN).torques, holding_torques(cover, state, 0.005, DOWN).torques,
        atol=1e-10,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "torque"), [("3x3", 13.2e-3), ("8x8", 2.84), ("20x20", 248.0)])
def test_published_starts_ask_for_more_than_the_papers_motor_gives(name: str, torque: float) -> None:
    cover, state = published(name)
    held = holding_torques(cover, state, 0.005, DOWN)
    assert held.greatest == pytest.approx(torque, rel=0.01)
    assert held.exceeding(0.00325) > 0
    assert held.exceeding(1.01 * held.greatest) == 0


def test_what_cannot_be_held_is_refused() -> None:
    cover, state = bowl(3, 3)
    with pytest.raises(InvalidInputError, match="11 motors"):
        holding_torques(cover.with_motors(cover.motors[:-1]), state)
    with pytest.raises(InvalidInputError, match="masses"):
        holding_torques(cover, state, np.ones(3))
    with pytest.raises(InvalidInputError, match="masses"):
        holding_torques(cover, state, -1.0)
    with pytest.raises(InvalidInputError, match="gravity"):
        holding_torques(cover, state, 0.005, (0.0, 0.0, 0.0))
    with pytest.raises(InvalidInputError, match="do not span"):
        holding_torques(cover, flat_state(cover))
