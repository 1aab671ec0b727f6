"""Known objects: what each figure is scaled with, clocks, frames, and laws of single pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.objects.known_object import KnownObject, know_object
from morphit_ros.neural.objects.mass_sources import TotalMassSource
from morphit_ros.neural.objects.prediction import predict_push
from morphit_ros.neural.objects.push_identification import PushMotion
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher
from morphit_ros.neural.solid.extraction import SolidConfig
from morphit_ros.neural.solid.materials import MaterialRegion

SIZE = (0.10, 0.06, 0.04)
CONFIG = PredictionConfig(contact_points=100, step=0.005, friction=0.35, pusher_friction=0.15)


@pytest.fixture(scope="module")
def known() -> KnownObject:
    return know_object(BoxField(SIZE), 500.0, config=SolidConfig(resolution=40))


def test_errors_of_materials_are_those_of_the_shape_and_of_a_part_of_a_cell(known: KnownObject) -> None:
    head = MaterialRegion(make_transform(translation=(0.05, 0.0, 0.0)), [0.04, 0.1, 0.1], 5000.0)
    made = known.made_of(regions=[head]).inertia
    assert made.mass > 2.0 * known.inertia.mass
    assert made.mass_error / made.mass == pytest.approx(known.inertia.mass_error / known.inertia.mass)
    # Where within half a cell a material ends is not told.
    assert made.center_error == pytest.approx(np.hypot(known.inertia.center_error, 0.25 * known.solid.spacing))
    assert known.made_of(regions=[head], mass=1.0).inertia.mass_error == 0.0


def test_another_mass_scales_the_tensor_and_leaves_the_centre(known: KnownObject) -> None:
    heavy = known.weighing(3.0 * known.inertia.mass).inertia
    assert heavy.inertia == pytest.approx(3.0 * known.inertia.inertia)
    assert np.array_equal(heavy.center_of_mass, known.inertia.center_of_mass)
    assert heavy.mass_error == 0.0
    found = known.identified({"mass": 3.0 * known.inertia.mass}, {"mass": 0.01}).inertia
    assert found.inertia == pytest.approx(3.0 * known.inertia.inertia)
    assert found.mass_error == 0.01
    both = known.identified({"mass": 3.0 * known.inertia.mass, "inertia_scale": 1.4}, {}).inertia
    assert both.inertia == pytest.approx(4.2 * known.inertia.inertia)


def test_only_a_density_that_nobody_vouches_for_makes_the_mass_assumed(known: KnownObject) -> None:
    guess = know_object(known.field, 500.0, config=SolidConfig(resolution=20), density_known=False)
    head = MaterialRegion(make_transform(translation=(0.05, 0.0, 0.0)), [0.04, 0.1, 0.1], 5000.0)
    assert known.total_source is TotalMassSource.MATERIALS
    assert guess.total_source is TotalMassSource.ASSUMED
    # Where the mass is does not say how much it is.
    assert guess.identified({"center_of_mass_x": 0.01, "friction": 0.2}, {}).total_source is TotalMassSource.ASSUMED
    assert guess.identified({"mass": 0.3}, {}).total_source is TotalMassSource.IDENTIFIED
    assert guess.weighing(0.3).total_source is TotalMassSource.GIVEN
    assert guess.made_of(mass=0.3).total_source is TotalMassSource.GIVEN
    of_wood = guess.made_of(density=700.0)
    assert of_wood.total_source is guess.made_of(regions=[head]).total_source is TotalMassSource.MATERIALS
    # A mass that was given is gone with it, and the density is as good as before.
    assert guess.weighing(0.3).made_of().total_source is TotalMassSource.ASSUMED
    assert of_wood.weighing(0.3).made_of().total_source is TotalMassSource.MATERIALS


def test_confidence_falls_with_the_error_and_is_half_for_one_side(known: KnownObject) -> None:
    def confidence(share: float | None, error: float) -> float:
        return replace(known, inertia=replace(known.inertia, seen_share=share, center_error=error)).confidence

    assert confidence(None, 0.0) == confidence(0.9, 0.0) == 1.0
    assert confidence(0.9, 0.02) == pytest.approx(0.5)
    assert confidence(0.4, 0.02) == pytest.approx(0.25)


def test_the_underside_looks_at_what_it_stood_on() -> None:
    table = SupportPlane(make_transform(matrix_from_rpy((0.3, 0.0, 0.0)), (0.0, 0.006, -0.0185)))
    field = BoxField(SIZE)
    standing = know_object(field, 500.0, support=table, config=SolidConfig(resolution=40))
    body = standing.body(400)
    up = table.T_world_table[:3, 2]
    heights = (body.points + body.center_of_mass - table.T_world_table[:3, 3]) @ up
    low = np.abs(heights) < 1e-9
    assert low.any()
    assert body.normals[low] == pytest.approx(np.tile(-up, (low.sum(), 1)))


def test_the_last_spin_is_in_the_world(known: KnownObject) -> None:
    # It tips over its edge, about an axis that no axis of the object lies along.
    pose = make_transform(matrix_from_rpy((0.4, 0.5, 1.1)))
    motion = predict_push(PushScene(known, carrying_table(known, pose), None, CONFIG), pose, 0.1)
    before, after = motion.poses[-2, :3, :3], motion.poses[-1, :3, :3]
    turn = after @ before.T
    rate = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    rate /= motion.times[-1] - motion.times[-2]
    assert np.linalg.norm(rate) > 3.0
    assert motion.angular_velocity == pytest.approx(rate, abs=1e-3 * np.linalg.norm(rate))


@pytest.mark.parametrize("mass", [0.0, 0.1], ids=["driven", "free"])
def test_another_clock_tells_the_same_motion(known: KnownObject, mass: float) -> None:
    motions = []
    for first in (0.0, 7.5):
        # The ball waits for a while before it pushes.
        times = first + np.array([0.0, 0.05, 0.2])
        way = np.array([[-0.065, 0.0, 0.0], [-0.065, 0.0, 0.0], [-0.03, 0.01, 0.0]])
        forces = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.0], [0.0, 0.0, 0.0]])
        scene = PushScene(known, carrying_table(known, np.eye(4)), Pusher(0.01, times, way, mass, forces), CONFIG)
        start = np.zeros((1, 13))
        start[0, 6] = 1.0
        predicted = PushMotion(scene, known.body(100), first).predict(
            (), np.zeros(0), start, first + 0.02 * np.arange(11)
        )
        motions.append(predicted.positions[:, 0])
    assert motions[0][-1, 0] > 0.005
    assert np.abs(motions[0][2] - motions[0][0]).max() < 2e-3
    assert motions[1] == pytest.approx(motions[0], abs=1e-9)


def test_table_and_pusher_have_their_own_friction(known: KnownObject) -> None:
    ball = Pusher(0.01, np.array([0.0]), np.array([[-0.1, 0.0, 0.0]]), 0.0, np.zeros((1, 3)))

    def frictions(scene: PushScene) -> dict[str, float]:
        world = scene.world(known.body(100), 0.0, 0.005, 2)
        return dict(zip(world.pairs, world.pair_values[:, 0].tolist(), strict=True))

    table = np.eye(4)
    table[2, 3] = -0.02
    assert frictions(PushScene(known, table, ball, CONFIG)) == {"object/table": 0.35, "object/pusher": 0.15}
    smooth = known.identified({"friction": 0.1}, {})
    assert frictions(PushScene(smooth, table, ball, CONFIG))["object/table"] == 0.1
    assert frictions(PushScene(smooth, table, ball, CONFIG, friction=0.6))["object/table"] == 0.6


def test_forces_begin_with_their_first_time_and_last_till_the_next() -> None:
    ball = Pusher(0.01, np.array([1.0, 2.0, 4.0]), np.diag([1.0, 2.0, 3.0]), 0.5, np.diag([10.0, 20.0, 30.0]))
    times = np.array([0.5, 1.0, 1.9, 2.0, 3.9, 4.0, 9.0])
    assert ball.forces_at(times) == pytest.approx(
        np.array([[0, 0, 0], [10, 0, 0], [10, 0, 0], [0, 20, 0], [0, 20, 0], [0, 0, 30], [0, 0, 30]])
    )
    assert ball.positions_at(np.array([0.0, 1.5, 9.0])) == pytest.approx(np.array([[1, 0, 0], [0.5, 1, 0], [0, 0, 3]]))
    assert ball.velocity == pytest.approx([-1.0, 2.0, 0.0])


def test_the_weight_of_a_free_ball_is_held(known: KnownObject) -> None:
    ball = Pusher(0.01, np.array([0.0, 1.0]), np.array([[-0.2, 0.0, 0.1]] * 2), 0.5, np.zeros((2, 3)))
    forces = PushScene(known, np.eye(4), ball, CONFIG).controls(0.0, 0.01, 3)
    assert forces == pytest.approx(np.tile([0.0, 0.0, 0.5 * 9.81], (3, 1)))
