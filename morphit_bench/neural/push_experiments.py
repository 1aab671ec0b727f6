"""Pushes of an object on a table by a ball of known mass: the paper's way to find mass and friction.

Dynamics-Augmented Neural Objects, section V.B: 60 frames 0.02 s apart, a ball of 10 kg and radius 0.25 in units of the
object (which is about 1.6 across), forces on it known. What the object weighs shows in how the ball slows down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import GRAVITY, ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.simulated_motion import SimulatedMotion
from morphit_ros.neural.identification.tracks import PoseTrack


@dataclass(frozen=True)
class BallPushConfig(Config):
    """The ball, and how it is driven: a force towards a goal behind the object, with damping."""

    frames: int = parameter(60, "Frames after the first", minimum=2, maximum=10_000)
    frame_step: float = parameter(0.02, "Time between frames, and for which a force is held [s]", minimum=1e-4)
    radius: float = parameter(0.25, "Radius of the ball [m]", minimum=1e-4)
    mass: float = parameter(10.0, "Mass of the ball [kg]", minimum=1e-6)
    height: float = parameter(0.3, "Height of the ball's centre above the table [m]", minimum=1e-4)
    distance: float = parameter(0.85, "From the object to the ball's start, over the table [m]", minimum=1e-4)
    speed: float = parameter(1.5, "First speed of the ball [m/s]", minimum=0.0)
    follow_through: float = parameter(0.3, "How far behind the object's start the goal is [m]", minimum=0.0)
    stiffness: float = parameter(40.0, "Force on the ball by distance from the goal [N/m]", minimum=0.0)
    damping: float = parameter(10.0, "Force against the ball's speed [N s/m]", minimum=0.0)
    sideways: float = parameter(0.1, "Largest offset of a push from the object's middle [m]", minimum=0.0)


@dataclass(frozen=True)
class BallPush:
    """One push.

    Attributes:
        start: (2, 13) states of object and ball.
        controls: (frames, 3) forces on the ball [N].
        tracks: of object and ball.
    """

    start: Array
    controls: Array
    tracks: tuple[PoseTrack, PoseTrack]


def push_world(body: ContactBody, laws: ContactParameters, step: float, config: BallPushConfig | None = None) -> World:
    """A table, the object ("object") and a ball ("ball") with a controlled force."""
    config = config or BallPushConfig()
    ball = RigidBody.ball(config.radius, config.mass, name="ball")
    thing = RigidBody.from_contact_body(body, name="object")
    return World(
        [thing, ball], [Obstacle(ContactHalfSpace(), name="table")], laws, step=step, controls=[("ball", "force")]
    )  # fmt: skip


def settled_state(body: ContactBody, laws: ContactParameters, seconds: float = 4.0, step: float = 0.005) -> Array:
    """(13,) state of the object at rest on the table, dropped from where its lowest point touches.

    Raises:
        InvalidInputError: it doesn't come to rest in that time.
    """
    world = World([body], [Obstacle(ContactHalfSpace(), name="table")], laws, step=step)
    start = np.zeros((1, 13))
    start[0, 2], start[0, 6] = -body.points[:, 2].min(), 1.0
    result = simulate(world, start, round(seconds / step))
    state = result.states[-1, 0].copy()
    speed = float(np.linalg.norm(state[7:10]))
    if result.status != "completed" or speed > 1e-3 * body.size:
        raise InvalidInputError("body", f"a speed of {speed:.2g} m/s after {seconds:g} s", "a body that comes to rest")
    state[7:] = 0.0
    return state


def simulate_pushes(
    body: ContactBody,
    laws: ContactParameters,
    count: int = 10,
    step: float = 1e-3,
    config: BallPushConfig | None = None,
) -> list[BallPush]:
    """Pushes from all sides of an object at rest, as simulated with steps of `step`.

    Forces are those that the feedback asks for in a simulation with half a frame as its step; they are then held over
    frames, open loop: a plan that is replayed.
    """
    config = config or BallPushConfig()
    rest = settled_state(body, laws)
    planner = push_world(body, laws, 0.5 * config.frame_step, config)
    truth = push_world(body, laws, step, config)
    times = np.arange(config.frames + 1, dtype=np.float64) * config.frame_step
    pushes = []
    for index in range(count):
        angle = 2.0 * np.pi * index / count
        away = np.array([np.cos(angle), np.sin(angle), 0.0])
        aside = config.sideways * np.sin(3.0 * index + 1.0) * np.array([-away[1], away[0], 0.0])
        middle = np.array([rest[0], rest[1], config.height])
        start = np.zeros((2, 13))
        start[0] = rest
        start[1, :3], start[1, 6] = middle + config.distance * away + aside, 1.0
        start[1, 7:10] = -config.speed * away
        goal = middle - config.follow_through * away
        states, controls = start, np.zeros((config.frames, 3))
        for frame in range(config.frames):
            ball = states[1]
            controls[frame] = config.stiffness * (goal - ball[:3]) - config.damping * ball[7:10]
            controls[frame, 2] += config.mass * GRAVITY
            states = simulate(planner, states, 2, controls[frame]).states[-1]
        positions, quats = SimulatedMotion(truth, controls, config.frame_step).poses((), np.zeros(0), start, times)
        tracks = tuple(PoseTrack(times, positions[:, item], quats[:, item]) for item in range(2))
        pushes.append(BallPush(start, controls, (tracks[0], tracks[1])))
    return pushes


def push_experiments(
    pushes: list[BallPush],
    body: ContactBody,
    laws: ContactParameters,
    step: float = 0.02,
    config: BallPushConfig | None = None,
    noise: tuple[float, float] = (0.0, 0.0),
    seed: int = 0,
) -> list[Experiment]:
    """What to identify from: the pushes with known starts and forces, explained with steps of `step`.

    Args:
        pushes: from `simulate_pushes`, or recorded.
        body, laws: the model; what is unknown of it is up to `identify`.
        step: of the search's rollouts [s].
        config: of the pushes.
        noise: standard deviations added to positions and rotations of all tracks [m, rad].
        seed: of the noise.
    """
    config = config or BallPushConfig()
    world = push_world(body, laws, step, config)
    experiments = []
    for index, push in enumerate(pushes):
        tracks = push.tracks
        if any(noise):
            first, second = (
                track.with_noise(*noise, seed=1000 * seed + 2 * index + item) for item, track in enumerate(tracks)
            )
            tracks = (first, second)
        motion = SimulatedMotion(world, push.controls, config.frame_step)
        experiments.append(Experiment(motion, tracks, push.start, "known"))
    return experiments
