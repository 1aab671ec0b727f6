"""The referee of planned pushes: MuJoCo with a sphere that moves as told."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.neural.body import ContactBody
from morphit_ros.replay.push import Drive, PusherMotion, ReplayConfig, _Engine, body_in_pieces, replay_push
from morphit_ros.simulation.scene import OBJECT_BODY
from morphit_ros.simulation.solids import block, convex_hull

SIZE = np.array([0.10, 0.06, 0.04])


def box_body(mass: float = 0.2) -> ContactBody:
    rng = np.random.default_rng(0)
    points = (rng.random((200, 3)) - 0.5) * SIZE
    inertia = mass / 12.0 * np.diag((SIZE**2).sum() - SIZE**2)
    return ContactBody(points, np.full(200, mass / 200), np.zeros((200, 3)), mass, inertia, np.zeros(3))


def straight(speed: float, seconds: float, start: float = -0.08, radius: float = 0.02) -> PusherMotion:
    times = np.linspace(0.0, seconds, 31)
    positions = np.column_stack([start + speed * times, np.zeros(31), np.full(31, 0.02)])
    return PusherMotion(times, positions, np.tile([speed, 0.0, 0.0], (31, 1)), radius)


def test_driven_sphere_keeps_to_its_way_and_takes_the_box_along() -> None:
    item = body_in_pieces(box_body(), block(SIZE).pieces)
    # Slow enough for the box to stop with the sphere.
    motion = straight(0.05, 2.0)
    replay = replay_push(item, make_transform(translation=(0.0, 0.0, 0.02)), motion, config=ReplayConfig(friction=0.5))
    np.testing.assert_allclose(replay.pusher_positions, motion.positions, atol=2e-4)
    # The face is pushed from -0.05 to the front of the sphere.
    assert replay.positions[-1, 0] == pytest.approx(motion.positions[-1, 0] + 0.02 + 0.05, abs=1e-3)
    assert abs(replay.positions[-1, 1]) < 1e-3
    assert replay.positions[-1, 2] == pytest.approx(0.02, abs=1e-3)


def test_forces_roll_a_free_sphere() -> None:
    item = body_in_pieces(box_body(), block(SIZE).pieces)
    times = np.linspace(0.0, 0.5, 26)
    forces = np.tile([0.4, 0.0, 0.0], (25, 1))
    far = np.tile([-1.0, 0.0, 0.02], (26, 1))
    motion = PusherMotion(times, far, np.zeros((26, 3)), 0.02, mass=2.0, forces=forces)
    replay = replay_push(
        item, make_transform(translation=(0.0, 0.0, 0.02)), motion, Drive.ROLLING, ReplayConfig(friction=0.5)
    )
    # Rolling without slip, a sphere is 7/5 as heavy.
    np.testing.assert_allclose(replay.pusher_positions[:, 0], -1.0 + 0.5 * 0.4 / 2.8 * times**2, atol=2e-4)
    np.testing.assert_allclose(replay.positions[-1], [0.0, 0.0, 0.02], atol=1e-3)
    # Carried over the plane, it slides.
    replay = replay_push(item, make_transform(translation=(0.0, 0.0, 0.02)), motion, Drive.FORCES)
    np.testing.assert_allclose(replay.pusher_positions[:, 0], -1.0 + 0.5 * 0.2 * times**2, atol=5e-4)
    np.testing.assert_allclose(replay.pusher_positions[:, 2], 0.02, atol=1e-9)


def test_plane_holds_a_rocking_object_straight_up() -> None:
    corners = np.random.default_rng(0).normal(size=(40, 3))
    corners *= 0.4 / np.linalg.norm(corners, axis=1, keepdims=True)
    corners[:, 2] = np.clip(corners[:, 2], -0.24, 0.24)
    body = ContactBody(corners, np.full(40, 0.075), np.zeros((40, 3)), 3.0, 0.25 * np.eye(3), np.zeros(3))
    far = PusherMotion(np.array([0.0, 1.0]), np.full((2, 3), 5.0), np.zeros((2, 3)), 0.1)
    item = body_in_pieces(body, [convex_hull(corners)])
    engine = _Engine(item, make_transform(translation=(0.0, 0.0, 0.25)), far, Drive.MOTION, ReplayConfig())
    engine._settle()
    joint = engine._model.body(OBJECT_BODY).jntadr[0]
    rate = engine._model.jnt_dofadr[joint]
    engine._data.qvel[rate : rate + 6] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    lean = 0.0
    for _ in range(300):
        engine._mujoco.mj_step(engine._model, engine._data)
        for contact in engine._data.contact:
            lean = max(lean, float(np.abs(contact.frame[:2]).max()))
    assert engine._data.body(OBJECT_BODY).xpos[0] > 0.3
    # Against the workcell's table, a box, normals of this hull lean by up to 0.05.
    assert lean < 1e-9


def test_bad_motions_are_refused() -> None:
    times, rows = np.linspace(0.0, 1.0, 5), np.zeros((5, 3))
    with pytest.raises(InvalidInputError, match="times"):
        PusherMotion(times[::-1], rows, rows, 0.1)
    with pytest.raises(InvalidInputError, match="positions"):
        PusherMotion(times, np.full((5, 3), np.nan), rows, 0.1)
    with pytest.raises(InvalidInputError, match="radius"):
        PusherMotion(times, rows, rows, 0.0)
    item = body_in_pieces(box_body(), block(SIZE).pieces)
    with pytest.raises(InvalidInputError, match="forces"):
        replay_push(item, np.eye(4), PusherMotion(times, rows, rows, 0.1), Drive.FORCES)
    with pytest.raises(InvalidInputError, match="pieces"):
        body_in_pieces(box_body(), [])
