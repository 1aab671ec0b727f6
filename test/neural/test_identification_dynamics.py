"""Identification with the contact dynamics: a box that slides, is pushed, or never touches."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

from morphit_bench.neural.push_experiments import (
    BallPushConfig,
    push_experiments,
    push_world,
    settled_state,
    simulate_pushes,
)
from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import (
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    rotation_vectors,
)
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace, ContactSphere
from morphit_ros.neural.dynamics.state import add_tangent
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.identification import (
    EstimationStatus,
    Experiment,
    IdentificationConfig,
    PoseTrack,
    SimulatedMotion,
    Unknown,
    identify,
    write_track,
)
from morphit_ros.neural.identification.soap import SOAP_CONFIG, soap_experiment
from morphit_ros.neural.learning.field_file import save_field
from morphit_ros.neural.published import load_published_body

FRICTION = Unknown("friction", 0.05, 0.0, 1.0)
PUSH = BallPushConfig(radius=0.05, mass=0.5, height=0.04, distance=0.17, speed=0.4, stiffness=8.0, damping=1.0,
                      follow_through=0.15, sideways=0.02, frames=30)  # fmt: skip


def box_body(size=(0.12, 0.09, 0.06), mass=0.4, counts=(9, 7, 5)) -> ContactBody:
    axes = [np.linspace(-0.5, 0.5, count) * length for count, length in zip(counts, size, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    x, y, z = np.square(size)
    inertia = mass / 12.0 * np.diag([y + z, x + z, x + y])
    return ContactBody(
        points, np.full(len(points), mass / len(points)), np.zeros_like(points), mass, inertia, np.zeros(3)
    )


BODY = box_body()
LAWS = ContactParameters(friction=0.3)


def sliding(step: float, laws: ContactParameters = LAWS, height: float = 0.0) -> SimulatedMotion:
    table = Obstacle(ContactHalfSpace(), np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -height], [0, 0, 0, 1.0]]))
    return SimulatedMotion(World([BODY], [table], laws, step=step))


DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "neural"


@pytest.fixture(scope="module")
def start():
    state = settled_state(BODY, LAWS)
    state[7:10] = [0.9, 0.3, 0.0]
    state[12] = 2.0
    return state[None]


@pytest.fixture(scope="module")
def slide(start):
    """The track of a sliding box, with friction 0.3 and short steps."""
    times = 0.01 * np.arange(36)
    positions, quats = sliding(0.0005).poses((), np.zeros(0), start, times)
    return PoseTrack(times, positions[:, 0], quats[:, 0])


@pytest.fixture(scope="module")
def pushes():
    return simulate_pushes(BODY, LAWS, 3, 2e-4, PUSH)


def test_derivatives_at_times_between_steps_equal_central_differences(pushes):
    motion = push_experiments(pushes, BODY, LAWS, 0.01, PUSH)[1].motion
    start = pushes[1].start
    times = np.array([0.0, 0.103, 0.2, 0.318, 0.333])
    names, values = ["friction", "mass_scale:object", "inertia_scale:object"], np.array([0.25, 1.1, 0.9])
    predicted = motion.predict(names, values, start, times)

    def difference(high, low, width):
        turned = rotation_vectors(multiply_quats(invert_quats(low[1]), high[1]))
        return np.concatenate([high[0] - low[0], turned], axis=-1) / (2.0 * width)

    for column in range(3):
        move = 1e-6 * np.eye(3)[column]
        slope = difference(
            motion.poses(names, values + move, start, times), motion.poses(names, values - move, start, times), 1e-6
        )
        assert predicted.by_parameters[..., column] == pytest.approx(slope, abs=1e-6)
        assert np.abs(slope).max() > 1e-4
    for column in (2, 7, 11, 12, 16, 19, 23):
        move = 1e-6 * np.eye(24)[column]
        slope = difference(
            motion.poses(names, values, add_tangent(start, move), times),
            motion.poses(names, values, add_tangent(start, -move), times), 1e-6,
        )  # fmt: skip
        assert predicted.by_start[..., column] == pytest.approx(slope, abs=1e-5 * max(1.0, np.abs(slope).max()))


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_friction_of_a_slide_with_steps_twenty_times_longer(start, slide, first):
    experiment = Experiment(sliding(0.01), (slide,), start, "known")
    unknown = Unknown("friction", first, 0.0, 1.0)
    raw, corrected = (
        identify(experiment, unknown, IdentificationConfig(corrections=count)).values["friction"] for count in (0, 4)
    )
    # A smooth slide is of second order as it is; the correction must not make it worse.
    assert raw == pytest.approx(0.3, abs=5e-5)
    assert corrected == pytest.approx(0.3, abs=7e-6)


def test_friction_with_unknown_start_and_noise(slide):
    noisy = slide.with_noise(0.0005, 0.005, 4)
    config = IdentificationConfig(position_noise=0.0005, rotation_noise=0.005)
    result = identify(Experiment(sliding(0.005), (noisy,), None, "unknown"), FRICTION, config)
    assert result.success, result.message
    deviation = result.standard_deviations["friction"]
    assert deviation < 0.02
    assert abs(result.values["friction"] - 0.3) < 3.0 * deviation + 0.003
    assert result.estimate.residual_ratio == pytest.approx(1.0, abs=0.25)


def test_mass_and_friction_from_pushes_with_another_step(pushes):
    experiments = push_experiments(pushes, BODY, LAWS, 0.005, PUSH)
    unknowns = [Unknown("mass_scale:object", 0.3, 0.1, 5.0), Unknown("friction", 0.01, 0.0, 0.8)]
    result = identify(experiments, unknowns, IdentificationConfig(corrections=6, divisions=4))
    assert result.success, result.message
    # Without corrections both are off by five percent.
    assert result.values["mass_scale:object"] == pytest.approx(1.0, rel=3e-3)
    assert result.values["friction"] == pytest.approx(0.3, rel=4e-3)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"published bodies are not in {DATA}: set MORPHIT_DATA")
def test_mass_and_friction_of_the_bunny_as_documented():
    """Ten pushes, steps forty times longer than those of the data: errors of a tenth of a percent are documented."""
    body, laws = load_published_body(DATA / "bunny.npz"), ContactParameters(friction=0.2, size=1.0)
    experiments = push_experiments(simulate_pushes(body, laws, 10, 5e-4), body, laws)
    unknowns = [Unknown("mass_scale:object", 0.08, 0.08, 3.1), Unknown("friction", 0.01, 0.0, 0.5)]
    config = IdentificationConfig(position_noise=1e-3, rotation_noise=2e-3, corrections=1, divisions=4)
    result = identify(experiments, unknowns, config)
    assert result.success, result.message
    assert result.values["mass_scale:object"] == pytest.approx(1.0, rel=2e-3)
    assert result.values["friction"] == pytest.approx(0.2, rel=2e-3)


def test_a_known_motion_of_the_pusher_tells_friction_but_not_mass(start):
    still = start.copy()
    still[:, 7:] = 0.0
    way = np.tile([0.0, 0.01, 0.03], (31, 1))
    way[:, 0] = np.linspace(-0.12, 0.06, 31)
    driven = Obstacle(ContactSphere(0.05), positions=way, name="finger")
    motion = SimulatedMotion(World([BODY], [Obstacle(ContactHalfSpace()), driven], LAWS, step=0.01))
    times = 0.02 * np.arange(16)
    positions, quats = motion.poses((), np.zeros(0), still, times)
    assert positions[-1, 0, 0] > 0.03
    track = PoseTrack(times, positions[:, 0], quats[:, 0])
    result = identify(Experiment(motion, (track,), still, "known"), [FRICTION, Unknown("mass_scale", 2.0, 0.5, 5.0)])
    assert result.status is EstimationStatus.NOT_IDENTIFIABLE
    assert result.unidentifiable == ("mass_scale",)


def test_a_body_that_never_touches_tells_nothing_about_friction(start):
    times = 0.01 * np.arange(20)
    flying = sliding(0.01, height=5.0)
    positions, quats = flying.poses((), np.zeros(0), start, times)
    track = PoseTrack(times, positions[:, 0], quats[:, 0])
    result = identify(Experiment(flying, (track,), start, "known"), FRICTION)
    assert result.status is EstimationStatus.NOT_IDENTIFIABLE
    assert "does not depend on friction" in result.message


def test_free_flight_is_exact_at_any_step(start):
    # Gravity and held forces act half a step on each side of a step's time: parabolas are met at all times of steps.
    times = np.array([0.0, 0.08, 0.16])
    world = push_world(BODY, LAWS, 0.01, PUSH)
    states = np.vstack([start, start])
    states[:, 2] = 9.0
    states[1, 0] = 5.0
    controls = np.array([[1.0, 0.0, 0.0]] * 4 + [[0.0, -2.0, 0.0]] * 4)
    positions, _ = SimulatedMotion(world, controls, 0.02).poses((), np.zeros(0), states, times)
    fall = states[:, None, :3] + times[:, None] * states[:, None, 7:10] - [0.0, 0.0, 0.5 * 9.81] * times[:, None] ** 2
    assert positions[:, 0] == pytest.approx(fall[0], abs=1e-9)
    speed = 1.0 / PUSH.mass * 0.08
    driven = fall[1] + np.array(
        [[0.0, 0.0, 0.0], [0.5 * speed * 0.08, 0.0, 0.0], [1.5 * speed * 0.08, -speed * 0.08, 0.0]]
    )
    assert positions[1, 1] == pytest.approx(driven[1], abs=1e-9)
    # Where the force changes the kick of that step is the mean of both: right to second order.
    assert positions[2, 1] == pytest.approx(driven[2], abs=2e-4)


def test_a_motion_seen_later_and_in_finer_steps_is_the_same_motion(pushes):
    motion = push_experiments(pushes, BODY, LAWS, 0.005, PUSH)[0].motion
    way = np.outer(np.linspace(0.0, 1.0, 21) ** 2, [1.0, 0.0, 0.0])
    driven = Obstacle(ContactSphere(0.05), positions=way, name="finger")
    other = SimulatedMotion(
        dataclasses.replace(motion.world, obstacles=[*motion.world.obstacles, driven]), motion.controls, 0.02
    )
    later = other.later(0.06)
    assert np.array_equal(later.controls, motion.controls[3:])
    assert np.array_equal(later.world.obstacles[1].positions, way[12:])
    finer = other.finer(4)
    assert finer.world.step == 0.005 / 4
    assert finer.world.obstacles[1].positions[::4] == pytest.approx(way)
    assert finer.world.obstacles[1].positions[2] == pytest.approx(0.5 * (way[0] + way[1]))
    with pytest.raises(InvalidInputError, match="control step"):
        other.later(0.03)


def test_a_driven_obstacle_is_seen_later_where_it_is_even_within_a_step():
    times = 0.01 * np.arange(21)
    way = np.outer(times, [0.5, -0.2, 0.1])
    quats = quats_of_rotation_vectors(np.outer(times, [0.0, 3.0, 4.0]))
    driven = Obstacle(ContactSphere(0.05), positions=way, quats_xyzw=quats, name="finger")
    motion = SimulatedMotion(World([BODY], [Obstacle(ContactHalfSpace()), driven], LAWS, step=0.01))
    for seconds in (0.034, 0.0366, 0.1):
        ahead = motion.later(seconds).world.obstacles[1]
        # It stops where it stops, in the step in which it does.
        expected = np.minimum(seconds + 0.01 * np.arange(len(ahead.positions)), times[-1])
        assert expected[-1] == pytest.approx(times[-1])
        assert ahead.positions == pytest.approx(np.outer(expected, [0.5, -0.2, 0.1]), abs=1e-12)
        turned = quats_of_rotation_vectors(np.outer(expected, [0.0, 3.0, 4.0]))
        assert ahead.quats_xyzw == pytest.approx(turned, abs=1e-12)
    assert motion.later(5.0).world.obstacles[1].positions == pytest.approx(way[-1:])
    assert motion.later(0.034).world.obstacles[0].positions is None


def test_bad_controls_and_unknown_names_are_refused(pushes, start, slide):
    world = push_world(BODY, LAWS, 0.01, PUSH)
    with pytest.raises(InvalidInputError, match="controls"):
        SimulatedMotion(world, np.full((3, 3), np.nan))
    with pytest.raises(InvalidInputError, match="controls"):
        SimulatedMotion(world, np.zeros((3, 2)))
    with pytest.raises(InvalidInputError, match="control_step"):
        SimulatedMotion(world, np.zeros((3, 3)), -1.0)
    with pytest.raises(InvalidInputError, match="stickiness"):
        identify(Experiment(sliding(0.01), (slide,), start, "known"), Unknown("stickiness", 0.5, 0.0, 1.0))


def test_command_identifies_and_says_what_it_cannot(tmp_path, capsys):
    field = BoxField((0.12, 0.09, 0.06), edge=0.001)
    save_field(field, tmp_path / "box.npz")
    times = 0.01 * np.arange(30)
    # A slide in closed form: 0.8 m/s, friction 0.25.
    way = np.minimum(times, 0.8 / (0.25 * 9.81))
    positions = np.tile([0.0, 0.0, 0.03], (30, 1))
    positions[:, 0] = 0.8 * way - 0.5 * 0.25 * 9.81 * way**2
    write_track(PoseTrack(times, positions, np.tile([0.0, 0.0, 0.0, 1.0], (30, 1))), tmp_path / "track.csv")
    arguments = [
        "neural",
        "identify",
        str(tmp_path / "track.csv"),
        "--field",
        str(tmp_path / "box.npz"),
        "--mass",
        "0.5",
    ]
    assert main([*arguments, "--json", str(tmp_path / "result.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["parameters"]["friction"]["value"] == pytest.approx(0.25, abs=0.01)
    assert result["parameters"]["friction"]["identifiable"]
    assert "friction" in capsys.readouterr().out
    np.savez(
        tmp_path / "body.npz", P=BODY.points, d=np.ones(len(BODY.points)), G=np.zeros_like(BODY.points), m=BODY.mass,
        com=np.zeros(3), I=0.5 * np.trace(BODY.inertia) * np.eye(3) - BODY.inertia,
    )  # fmt: skip
    arguments = [*arguments[:3], "--body", str(tmp_path / "body.npz")]
    assert main([*arguments, "--unknown", "mass_scale", "--json", "-"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["status"] == "not_identifiable"
    assert main([*arguments, "--unknown", "friction=0.5:1:0"]) == 2
    assert main([*arguments, "--unknown", "stickiness"]) == 2
    assert main([*arguments[:3]]) == 2


@pytest.mark.skipif(not DATA.is_dir(), reason=f"published tracks are not in {DATA}: set MORPHIT_DATA")
def test_friction_of_the_published_soap_from_any_start():
    experiment = soap_experiment(DATA)
    found = [
        identify(experiment, Unknown("friction", first, 0.0, 1.0), SOAP_CONFIG).values["friction"]
        for first in (0.0, 0.3, 0.7, 1.0)
    ]
    assert all(0.57 <= value <= 0.63 for value in found), found
    assert np.ptp(found) < 1e-3
    # With a first velocity of its own it fits far better, and slides less: the first two frames are noisy.
    free = identify(soap_experiment(DATA, "unknown"), FRICTION, SOAP_CONFIG)
    assert free.position_residual < 0.2 * identify(experiment, FRICTION, SOAP_CONFIG).position_residual
    assert 0.5 < free.values["friction"] < 0.57
