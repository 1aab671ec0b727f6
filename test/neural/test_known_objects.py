"""Known objects: materials, views of clouds, predicted pushes, and what a push tells; known answers and bad input."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from ball_views import ball_depths

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import invert_quats, multiply_quats, rotation_vectors
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.neural.dynamics.state import add_tangent
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.learning.config import DepthLearningConfig
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.objects.mass_sources import MassSource
from morphit_ros.neural.objects.prediction import predict_push
from morphit_ros.neural.objects.push_identification import (
    PARAMETERS,
    PushMotion,
    identify_push,
    push_experiment,
    with_result,
)
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher
from morphit_ros.neural.solid.materials import MaterialRegion
from morphit_ros.neural.views.cloud_views import views_of_cloud
from morphit_ros.neural.views.posed_views import project_points

SIZE = np.array([0.10, 0.06, 0.04])
CONFIG = PredictionConfig(contact_points=200, step=0.005)


@pytest.fixture(scope="module")
def known():
    """A box of one material, 500 kg/m^3."""
    return know_object(BoxField(SIZE), 500.0)


def pushed(known, lateral=0.01, config=CONFIG):
    """Box on its table, a ball driven 3 cm into its end."""
    way = np.array([[-0.07, lateral, 0.0], [-0.03, lateral, 0.0]])
    ball = Pusher(0.01, np.array([0.0, 0.4]), way, 0.0, np.zeros((2, 3)))
    return PushScene(known, carrying_table(known, np.eye(4)), ball, config)


def head(density, turn=0.0):
    """The last fifth of the box's length, and beyond."""
    T_field_box = make_transform(matrix_from_rpy((0.0, 0.0, turn)), (0.05, 0.0, 0.0))
    return MaterialRegion(T_field_box, [0.04, 0.1, 0.1], density)


def test_two_materials_weigh_what_two_boxes_weigh(known):
    made = known.made_of(regions=[head(5000.0)])
    light, heavy = 0.8 * SIZE.prod() * 500.0, 0.2 * SIZE.prod() * 5000.0
    mass = light + heavy
    center = (heavy * 0.04 - light * 0.01) / mass
    assert made.source is MassSource.MATERIALS
    assert made.inertia.mass == pytest.approx(mass, rel=2e-3)
    assert made.inertia.center_of_mass == pytest.approx([center, 0.0, 0.0], abs=1e-4)
    # About the z axis: both boxes about their own centres, moved to the common one.
    own = [(light, 0.08, -0.01), (heavy, 0.02, 0.04)]
    moment = sum(m * ((length**2 + SIZE[1] ** 2) / 12.0 + (x - center) ** 2) for m, length, x in own)
    assert made.inertia.inertia[2, 2] == pytest.approx(moment, rel=5e-3)
    weighed = known.made_of(regions=[head(5000.0)], mass=2.0)
    assert weighed.inertia.mass == pytest.approx(2.0)
    assert weighed.inertia.inertia == pytest.approx(made.inertia.inertia * 2.0 / made.inertia.mass)
    # A hollow end, and an end that is turned by half a turn, which is the same end.
    assert known.made_of(regions=[head(0.0)]).inertia.mass == pytest.approx(light, rel=2e-3)
    turned = known.made_of(regions=[head(5000.0, math.pi)]).inertia
    assert turned.center_of_mass == pytest.approx(made.inertia.center_of_mass, abs=1e-9)


FAR = make_transform(translation=(1.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda known: known.made_of(regions=[MaterialRegion(FAR, [0.1] * 3, 1.0)]), "no part"),
        (lambda known: known.made_of(density=500.0, regions=[MaterialRegion(np.eye(4), [9.0] * 3, 0.0)]), "all zero"),
        (lambda known: MaterialRegion(np.eye(4), [0.1, 0.0, 0.1], 1.0), "sides"),
        (lambda known: MaterialRegion(np.eye(4), [0.1] * 3, -1.0), "density"),
        (lambda known: known.weighing(0.0), "mass"),
        (lambda known: known.made_of(regions=[head(1.0)], mass=-1.0), "mass"),
    ],
)
def test_materials_that_cannot_be(known, make, words):
    with pytest.raises(InvalidInputError, match=words):
        make(known)


def test_what_stood_on_a_table_has_an_even_underside_there(known):
    table = SupportPlane(make_transform(translation=(0.0, 0.0, -0.026)))
    standing = know_object(BoxField(SIZE), 500.0, support=table)
    body = standing.body(400)
    low = body.points[:, 2] + body.center_of_mass[2]
    assert low.min() == pytest.approx(-0.026)
    assert (low == low.min()).sum() > 20
    assert carrying_table(standing, np.eye(4))[2, 3] == pytest.approx(-0.026)
    # Lifted or tipped it does not stand there, and what was never near a table keeps its points.
    assert carrying_table(standing, make_transform(matrix_from_rpy((0.5, 0, 0))))[2, 3] < -0.026
    far = know_object(BoxField(SIZE), 500.0, support=SupportPlane(make_transform(translation=(0.0, 0.0, -0.2))))
    assert np.array_equal(far.body(100).points, known.body(100).points)


def faces(count=20):
    """Points and normals of the box's sides."""
    rng = np.random.default_rng(0)
    points, normals = [], []
    for axis in range(3):
        for side in (-1.0, 1.0):
            on_face = rng.uniform(-0.5, 0.5, (count**2, 3)) * SIZE
            on_face[:, axis] = side * SIZE[axis] / 2.0
            points.append(on_face)
            normals.append(np.tile(side * np.eye(3)[axis], (count**2, 1)))
    return np.concatenate(points), np.concatenate(normals)


EYES = np.array([[0.6, 0.1, 0.3], [-0.6, -0.1, 0.3]])


def test_each_camera_gets_the_points_that_face_it():
    points, normals = faces()
    views = views_of_cloud(points, normals, EYES, 64)
    assert len(views) == 2
    assert views.T_world_camera[:, :3, 3] == pytest.approx(EYES)
    first, second = views.surface_points()
    assert first[:, 0].max() == pytest.approx(SIZE[0] / 2.0, abs=0.003)
    # Of the end that the other camera sees nothing but its edges.
    assert (first[:, 0] < -0.045).mean() < 0.1 < (second[:, 0] < -0.045).mean()


def test_a_side_seen_too_flat_to_measure_is_not_carved_away():
    points, normals = faces(60)
    # Each camera sees one side under five degrees.
    around = np.array([[0.6, 0.08, 0.05], [-0.08, 0.6, 0.05], [-0.6, -0.08, 0.05], [0.08, -0.6, 0.05]])
    views = views_of_cloud(points, normals, around, 64)
    field = learn_from_depths(views, DepthLearningConfig(resolution=48)).field
    assert know_object(field, 500.0).inertia.volume == pytest.approx(SIZE.prod(), rel=0.06)
    # What belongs to the object lies in each silhouette, and nothing is seen through it.
    for number in range(len(views)):
        pixels, depths = project_points(views.intrinsics[number], views.T_world_camera[number], points)
        u, v = np.rint(pixels).astype(int).T
        assert views.masks[number, v, u].all()
        assert (views.depth[number, v, u] <= depths + 1e-6).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"viewpoints": EYES[:1]}, "two cameras"),
        ({"viewpoints": np.empty((0, 3))}, "two cameras"),
        ({"viewpoints": np.array([[0.0, 0.0, 0.0], [0.6, 0.0, 0.3]])}, "outside"),
        ({"viewpoints": np.array([[np.nan, 0.0, 0.0], [0.6, 0.0, 0.3]])}, "finite"),
        ({"points": np.zeros((3, 3)), "normals": np.zeros((3, 3))}, "3 points"),
        ({"normals": np.zeros((5, 3))}, "normals"),
    ],
)
def test_clouds_that_are_no_views(change, words):
    points, normals = faces()
    with pytest.raises(InvalidInputError, match=words):
        views_of_cloud(**{"points": points, "normals": normals, "viewpoints": EYES, **change})


def test_a_push_beside_the_centre_of_mass_turns_away_from_it(known):
    """Mason: a push to one side of the centre of mass turns the object that way; it comes to rest."""
    fine = PredictionConfig(contact_points=3000, step=0.005)
    left, right = (predict_push(pushed(known, side, fine), np.eye(4), 0.8).poses[-1] for side in (0.015, -0.015))
    assert left[1, 0] < -0.1
    assert right[1, 0] == pytest.approx(-left[1, 0], rel=0.1)
    heavy = known.identified({"center_of_mass_y": 0.025}, {})
    assert predict_push(pushed(heavy, 0.015), np.eye(4), 0.8).poses[-1][1, 0] > 0.02
    motion = predict_push(pushed(known), np.eye(4), 0.8)
    assert motion.completed
    assert np.linalg.norm(motion.velocity) < 1e-3


def test_a_free_ball_gives_its_momentum(known):
    """Without friction the heavier object is pushed away more slowly."""
    speeds = []
    for mass in (0.1, 0.4):
        ball = Pusher(
            0.01, np.array([0.0, 0.1]), np.array([[-0.09, 0.0, 0.0], [-0.04, 0.0, 0.0]]), 0.2, np.zeros((2, 3))
        )
        item = known.weighing(mass)
        scene = PushScene(item, carrying_table(item, np.eye(4)), ball, CONFIG, friction=0.0)
        speeds.append(predict_push(scene, np.eye(4), 0.3).velocity[0])
    # Between a perfectly plastic and an elastic impact of 0.2 kg at 0.5 m/s.
    for mass, speed in zip((0.1, 0.4), speeds, strict=True):
        assert 0.95 * 0.1 / (0.2 + mass) < speed < 1.05 * 0.2 / (0.2 + mass)


def struck(known):
    """Box on its table, a free ball of about its weight driven into its end by a force."""
    way = np.array([[-0.062, 0.01, 0.0], [-0.042, 0.012, 0.0]])
    ball = Pusher(0.01, np.array([0.0, 0.1]), way, 0.1, np.tile([1.0, 0.1, 0.0], (2, 1)))
    return PushScene(known, carrying_table(known, np.eye(4)), ball, CONFIG)


def test_derivatives_of_the_own_frames_motion_are_those_of_differences(known):
    """Positions and turns, by each parameter of a scene in which all of them count, and by the start."""
    motion = PushMotion(struck(known), known.body(200), 0.0)
    values = np.array([0.2, 0.3, 0.15, 1.2, 0.01, -0.003])
    start = np.array([[0.0, 0.0, 0.001, 0.0, 0.0, 0.0, 1.0, 0.02, 0.02, 0.0, 0.1, 0.2, 0.3]])
    times = np.linspace(0.0, 0.2, 9)
    found = motion.predict(PARAMETERS, values, start, times)

    def difference(change, by, width):
        low, high = (
            motion.predict(PARAMETERS, values + side * change, add_tangent(start, side * by), times)
            for side in (-width, width)
        )
        turned = rotation_vectors(multiply_quats(invert_quats(low.quats_xyzw[:, 0]), high.quats_xyzw[:, 0]))
        return np.concatenate([high.positions[:, 0] - low.positions[:, 0], turned], axis=1) / (2.0 * width)

    def compare(slopes, differences, name):
        for part in (slice(0, 3), slice(3, 6)):
            largest = np.abs(differences[:, part]).max()
            assert largest > 1e-4, name
            assert np.abs(slopes[:, part] - differences[:, part]).max() < 1e-5 * largest, name

    for index, name in enumerate(PARAMETERS):
        expected = difference(np.eye(len(PARAMETERS))[index], np.zeros(12), 1e-6)
        assert np.abs(expected).max() > 0.1, name
        compare(found.by_parameters[:, 0, :, index], expected, name)
    for index in range(12):
        compare(found.by_start[:, 0, :, index], difference(0.0, np.eye(12)[index], 1e-7), index)


def test_a_push_tells_where_the_mass_is_and_not_how_much(known):
    truth = {"center_of_mass_x": 0.02, "center_of_mass_y": -0.01}
    moved = predict_push(pushed(known.identified(truth, {})), np.eye(4), 0.5)
    rows = slice(0, None, 5)
    result = identify_push(pushed(known), moved.times[rows], moved.poses[rows], tuple(truth))
    assert result.success
    assert result.values == pytest.approx(truth, abs=5e-4)
    found = with_result(known, result)
    assert found.source is MassSource.IDENTIFIED
    assert found.inertia.center_of_mass[:2] == pytest.approx([0.02, -0.01], abs=5e-4)
    mass = identify_push(pushed(known), moved.times[rows], moved.poses[rows], ("mass",))
    assert mass.unidentifiable == ("mass",)
    assert with_result(known, mass).inertia.mass == known.inertia.mass


def test_what_the_motion_does_not_tell_keeps_its_errors_too(known):
    """A driven push does not tell the mass: neither its value nor its deviation of kilograms without end counts."""
    moved = predict_push(pushed(known), np.eye(4), 0.5)
    result = identify_push(pushed(known), moved.times[::5], moved.poses[::5], ("center_of_mass_x", "mass"))
    assert result.unidentifiable == ("mass",)
    assert not result.standard_deviations["mass"] < 1.0
    told = with_result(known, result).inertia
    assert told.mass_error == known.inertia.mass_error
    # Nor does the deviation of a coordinate, whatever it is.
    lost = replace(
        result,
        unidentifiable=("mass", "center_of_mass_x"),
        standard_deviations={**result.standard_deviations, "center_of_mass_x": math.inf},
    )
    assert with_result(known, lost).inertia.center_error == pytest.approx(known.inertia.center_error)
    both = known.identified({"friction": 0.4}, {"friction": 0.01, "center_of_mass_y": math.inf, "mass": 9.0}).inertia
    assert both.center_error == pytest.approx(known.inertia.center_error)
    assert both.mass_error == known.inertia.mass_error


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda scene: predict_push(scene, np.eye(4), 0.0), "duration"),
        (lambda scene: predict_push(scene, np.eye(4), math.nan), "duration"),
        (lambda scene: predict_push(scene, make_transform(translation=(-0.06, 0.0, 0.0)), 0.1), "deep"),
        (lambda scene: predict_push(scene, make_transform(translation=(0.0, 0.0, -0.02)), 0.1), "deep"),
        (lambda scene: identify_push(scene, np.arange(3.0), np.tile(np.eye(4), (3, 1, 1)), ("colour",)), "colour"),
        (lambda scene: identify_push(scene, np.arange(3.0), np.tile(np.eye(4), (3, 1, 1)), ()), "none"),
    ],
)
def test_motions_that_cannot_be(known, ask, words):
    with pytest.raises(InvalidInputError, match=words):
        ask(pushed(known))


def spoilt(row=2, column=3, value=math.nan):
    """A track of five poses of which one is spoilt."""
    poses = np.tile(np.eye(4), (5, 1, 1))
    poses[row, 0, column] = value
    return poses


@pytest.mark.parametrize(
    ("times", "poses", "words"),
    [
        (np.arange(5.0), spoilt(), "row 2.*not finite"),
        (np.arange(5.0), spoilt(column=1), "row 2.*not finite"),
        (np.arange(5.0), spoilt(row=4, column=0, value=-1.0), "row 4.*rotation"),
        (np.arange(5.0), spoilt(row=1, column=0, value=2.0), "row 1.*rotation"),
        (np.array([0.0, 1.0, 2.0, math.nan, 4.0]), spoilt(value=0.0), "row 3"),
        (np.array([0.0, 1.0, 0.5, 3.0, 4.0]), spoilt(value=0.0), "row 2"),
        (np.empty(0), np.empty((0, 4, 4)), "0 poses"),
        (np.arange(4.0), spoilt(value=0.0), "4 times"),
        (np.arange(5.0), np.zeros((5, 3, 4)), r"\(5, 3, 4\)"),
    ],
)
def test_tracks_that_are_none(known, times, poses, words):
    with pytest.raises(InvalidInputError, match=words):
        push_experiment(pushed(known), times, poses)


BALL = {
    "radius": 0.01,
    "times": np.array([0.0, 0.4]),
    "positions": np.zeros((2, 3)),
    "mass": 0.0,
    "forces": np.zeros((2, 3)),
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"radius": 0.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"mass": -0.1}, "mass"),
        ({"mass": math.inf}, "mass"),
        ({"times": np.array([0.4, 0.0])}, "row 1 after"),
        ({"times": np.array([0.0, 0.0])}, "row 1 after"),
        ({"times": np.array([0.0, math.nan])}, "times.*row 1"),
        ({"times": np.empty(0), "positions": np.empty((0, 3)), "forces": np.empty((0, 3))}, "times.*none"),
        ({"positions": np.zeros((3, 3))}, "positions.*2 times"),
        ({"positions": np.array([[0.0, 0.0, 0.0], [math.inf, 0.0, 0.0]])}, "positions.*row 1"),
        ({"forces": np.zeros((1, 3))}, "forces.*2 times"),
        ({"forces": np.full((2, 3), math.nan)}, "forces.*row 0"),
    ],
)
def test_pushers_that_cannot_be(change, words):
    with pytest.raises(InvalidInputError, match=words):
        Pusher(**{**BALL, **change})


@pytest.mark.parametrize("pose", [np.diag([2.0, 1.0, 1.0, 1.0]), np.full((4, 4), math.nan), np.eye(3)])
def test_poses_that_are_not_rigid(known, pose):
    with pytest.raises(InvalidInputError, match="T_world_object"):
        predict_push(pushed(known), pose, 0.1)
    with pytest.raises(InvalidInputError, match="T_world_table"):
        PushScene(known, pose)
    with pytest.raises(InvalidInputError, match="friction"):
        PushScene(known, np.eye(4), friction=-0.1)


def test_two_opposed_views_of_a_ball_are_no_one_sided_view():
    """They see two thirds of it; two neighbours see half, and are trusted less than half."""
    confidences = []
    for part in (1.0, 0.1):
        views = ball_depths(2, part)
        field = learn_from_depths(views, DepthLearningConfig(resolution=48)).field
        ball = know_object(field, 500.0, eyes=views.T_world_camera[:, :3, 3])
        confidences.append(ball.confidence)
        assert any("one-sided" in remark for remark in ball.inertia.remarks) == (ball.confidence < 0.5)
    assert confidences[0] > 0.9
    assert confidences[1] < 0.5


def test_an_object_without_friction_is_another_than_one_of_unknown_friction(known):
    smooth = known.identified({"friction": 0.0}, {})
    assert smooth.content_hash != known.content_hash
    assert smooth.content_hash == known.identified({"friction": 0.0}, {}).content_hash
