"""Certified holds tried in physics: grasps with errors, closed, lifted and shaken in all directions.

A gripper without an arm stands at the planned grasp, off by an error of position and angle within what the certificate
allows for; the object's mass, its centre and the friction are off as well. The fingers close on the object as it lies
on the table and lift it without weight; then a specific force of k times the certified one turns through all directions
(a spiral over the sphere, turned at random), as in the frame of a hand that is shaken. ACRONYM (Eppner, Mousavian and
Fox 2021) shakes its free gripper along the approach and turns it about the closing direction after lifting; here the
acceleration is what is prescribed, and no direction is left out. Levels follow each other in one hand until it fails.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.grasping.methods import MorphitMethod
from morphit_bench.picks.flying_gripper import turns_of_rotation
from morphit_bench.picks.pick import MAX_TURN, PickJob
from morphit_bench.picks.runs import come_to_rest, workcell_config
from morphit_bench.picks.trials import Trial, TrialConfig, draw_trial, trial_object
from morphit_bench.picks.views import known_shape
from morphit_ros.batch import BatchConfig, BatchRecords, read_batch, run_batch
from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    rotation_angle,
)
from morphit_ros.grasping import Grasp, PlannerConfig
from morphit_ros.simulation.objects import SimulatedObject, load_object
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.scene import OBJECT_BODY
from morphit_ros.simulation.workcell import Workcell

RECORDS = "shakes.jsonl"
LEVELS = (0.5, 1.0, 1.5, 2.0, 3.0)
"""Multiples k of the certified hold, each after the one before."""
MAX_SLIP = 0.02
"""What moves further in the hand is lost [m]; a turn of more than `MAX_TURN` is one too."""
# Stronger grippers press less, so that what is tried is an acceleration that occurs [m/s²].
_LARGEST = 60.0
_CLOSING, _LIFT, _LIFT_SPEED = 0.9, 0.1, 0.25
# The spiral: turns from pole to pole, angular speed [rad/s], time to begin [s]; time between two looks [s].
_TURNS, _SPEED, _RAMP, _PERIOD = 4, 20.0, 0.1, 0.02
# Fingers this deep in something at the start could not have got there [m].
_DEPTH = 1e-3
_ATTEMPTS = 20


@dataclass(frozen=True)
class ShakeConfig(Config):
    """What is tried of each plan, and the errors that both certificate and draws are within."""

    grasps: int = parameter(3, "Grasps tried of each plan: the best, and others at random", minimum=1, maximum=100)
    runs: int = parameter(4, "Draws of the errors for each grasp", minimum=1, maximum=1000)
    position_error: float = parameter(0.003, "Largest error of the position [m]", minimum=0.0, maximum=0.05)
    angle_error: float = parameter(4.0, "Largest error of the orientation [deg]", minimum=0.0, maximum=45.0)
    center_error: float = parameter(0.005, "Largest error of the centre of mass [m]", minimum=0.0, maximum=0.1)
    mass_error: float = parameter(0.2, "Largest error of the mass, as a share of it", minimum=0.0, maximum=0.9)
    friction: tuple[float, ...] = parameter((0.4, 0.8), "Range of the friction", length=2, minimum=0.05, maximum=2.0)


@dataclass(frozen=True)
class ShakePlan:
    """What is tried.

    Attributes:
        objects: names of `load_object`.
        grippers: names of config/grippers.
        trials: of each object with each gripper.
        config: see `ShakeConfig`.
        data: folder of the objects, None for the default one.
    """

    objects: tuple[str, ...]
    grippers: tuple[str, ...] = ("franka_hand", "hande", "umi")
    trials: int = 1
    config: ShakeConfig = ShakeConfig()
    data: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What results must have in common to be in one file."""
        return {"program": "shakes", "config": self.config.to_flat(), "levels": LEVELS}


@dataclass(frozen=True)
class Shake:
    """One grasp with one draw of the errors.

    Attributes:
        rank: of the grasp in its plan.
        hold: certified, at the force that was used [m/s²].
        force: of the fingers [N].
        friction, mass: drawn; the mass over the assumed one.
        closed: whether the object was in the hand after lifting.
        levels: how many of `LEVELS` were survived, from the first.
        turn, slip: in the hand at the end [rad], [m].
    """

    rank: int
    hold: float
    force: float
    friction: float
    mass: float
    closed: bool
    levels: int
    turn: float
    slip: float


@dataclass(frozen=True)
class ShakeGroup:
    """All shakes of one trial with one gripper.

    Attributes:
        object, number, gripper: which.
        holds: certified, of all grasps of the plan, best grasp first [m/s²].
        shakes: of those that were tried.
        unplaced: draws that would have begun inside of object or table.
        busy: processor time [s].
    """

    object: str
    number: int
    gripper: str
    holds: tuple[float, ...]
    shakes: tuple[Shake, ...]
    unplaced: int
    busy: float

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ShakeGroup:
        """The inverse of `dataclasses.asdict`."""
        shakes = tuple(Shake(**shake) for shake in data["shakes"])
        return cls(**{**data, "holds": tuple(data["holds"]), "shakes": shakes})


def collect_shakes(
    plan: ShakePlan,
    folder: str | Path,
    batch: BatchConfig | None = None,
    resume: bool = False,
    budget: float = math.inf,
    progress: Callable[[ShakeGroup, int, int], None] | None = None,
) -> list[ShakeGroup]:
    """Try what is not done yet; every finished group is on disk before the next one is waited for.

    Args:
        plan: what to try.
        folder: for the results.
        batch: who does.
        resume: continue in a folder that has results.
        budget: processor time after which no more is begun [s].
        progress: called with each new group, how many are done, and how many there are.

    Raises:
        InvalidInputError: the folder has results and `resume` is false, or they are of other settings.
        ResourceNotFoundError: an object or gripper is unknown.
        BatchStoppedError: a worker has gone; see `run_batch`.
    """
    keys = [(name, number, hand) for number in range(plan.trials) for name in plan.objects for hand in plan.grippers]
    with BatchRecords(Path(folder) / RECORDS, plan.identity, resume) as finished:
        spent, tasks = 0.0, [(key, (plan, *key)) for key in keys]
        with contextlib.closing(run_batch(_plain_group, tasks, finished, batch)) as results:
            for _, data in results:
                group = ShakeGroup.from_json(data)
                spent += group.busy
                if progress is not None:
                    progress(group, sum(key in finished for key in keys), len(keys))
                if spent > budget:
                    break
        return [ShakeGroup.from_json(finished[key]) for key in keys if key in finished]


def read_shakes(folder: str | Path) -> list[ShakeGroup]:
    """Finished groups of a folder."""
    return list(map(ShakeGroup.from_json, read_batch(Path(folder) / RECORDS)))


_Task = tuple[ShakePlan, str, int, str]


def _plain_group(task: _Task) -> dict[str, Any]:
    return asdict(shake_group(task))


@cache
def _job(gripper: str) -> PickJob:
    return PickJob.flying(gripper)


@cache
def _usual_object(name: str, data: str | None) -> SimulatedObject:
    return load_object(name, data_dir=data)


def shake_group(task: _Task) -> ShakeGroup:
    """Plan for one trial with the known shape, and shake grasps of the plan."""
    plan, name, number, gripper = task
    began, config = time.process_time(), plan.config
    # Where it lies is drawn, what is uncertain is drawn for each run.
    trial = draw_trial(name, number, TrialConfig(mass_variation=0.0))
    job = _job(gripper)
    item = trial_object(_usual_object(name, plan.data), trial)
    with Workcell(workcell_config(trial), job.robot, item) as workcell:
        come_to_rest(workcell)
        grasps = _planned(workcell, job, trial, config)
        holds = tuple(grasp.hold for grasp in grasps)
        rng = np.random.default_rng([trial.seed, 19])
        certified = [rank for rank, hold in enumerate(holds) if hold > 0.0]
        others = rng.permutation(certified[1:])[: config.grasps - 1].tolist()
        shaker = Shaker(workcell, job)
        shakes, unplaced = [], 0
        for rank in [*certified[:1], *sorted(others)]:
            for _ in range(config.runs):
                shake, missed = shaker.shake(grasps[rank], rank, config, rng)
                unplaced += missed
                if shake is not None:
                    shakes.append(shake)
    return ShakeGroup(name, number, gripper, holds, tuple(shakes), unplaced, time.process_time() - began)


def _planned(workcell: Workcell, job: PickJob, trial: Trial, config: ShakeConfig) -> list[Grasp]:
    view = known_shape(workcell, trial.seed)
    assert view.cloud is not None
    settings = PlannerConfig(
        normals="given", workers=1, friction=min(config.friction), mass_error=config.mass_error,
        center_error=config.center_error, position_error=config.position_error, angle_error=config.angle_error,
    )  # fmt: skip
    found = MorphitMethod(settings).plan(
        view.cloud, job.gripper, view.table, trial.seed, center_of_mass=view.center_of_mass, mass=view.mass
    )
    return found.grasps


def spiral(turns: int, speed: float, period: float) -> Array:
    """(N, 3) unit directions that pass over the whole sphere from pole to pole.

    Args:
        turns: about the axis; no direction is further than a quarter of a turn over `turns` from the path.
        speed: angular [rad/s].
        period: time between two directions [s].
    """
    polar = np.linspace(0.0, np.pi, 2000)
    around = 2.0 * turns * polar
    path = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=1)
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    at = np.arange(0.0, length[-1], speed * period)
    points = np.stack([np.interp(at, length, path[:, axis]) for axis in range(3)], axis=1)
    directions: Array = points / np.linalg.norm(points, axis=1, keepdims=True)
    return directions


class Shaker:
    """Shakes grasps of a workcell's object, each from the state that the workcell has now."""

    def __init__(self, workcell: Workcell, job: PickJob) -> None:
        self._workcell, self._job = workcell, job
        model, data = workcell._model, workcell._data
        self._mujoco = import_mujoco()
        self._body = model.body(OBJECT_BODY).id
        self._start = data.qpos.copy()
        self._mass, self._inertia = float(model.body_mass[self._body]), model.body_inertia[self._body].copy()
        self._gravity = model.opt.gravity.copy()
        self._own = np.flatnonzero(model.geom_bodyid == self._body)
        self._robot = np.isin(model.geom_bodyid, list(workcell._links))
        # Boxes behind the pads of some grippers meet before the pads do.
        model.geom_conaffinity[self._robot & (model.geom_contype > 0)] = 2

    def shake(self, grasp: Grasp, rank: int, config: ShakeConfig, rng: np.random.Generator) -> tuple[Shake | None, int]:
        """One draw of the errors; None if none could be placed. And how many draws could not."""
        for missed in range(_ATTEMPTS):
            pose = grasp.T_world_gripper @ _pose_error(config, rng)
            if self._place(pose, grasp.open_aperture):
                return self._try(grasp, rank, config, rng), missed
        return None, _ATTEMPTS

    def _place(self, pose: Array, aperture: float) -> bool:
        """Hand and object to where they begin; whether they do not overlap."""
        workcell, data = self._workcell, self._workcell._data
        self._mujoco.mj_resetData(workcell._model, data)
        workcell._model.opt.gravity[:] = self._gravity
        data.qpos[:] = self._start
        row = np.concatenate([pose[:3, 3], turns_of_rotation(pose[:3, :3])])
        fingers = [0.5 * aperture] * len(workcell.robot.finger_joints)
        workcell.place(dict(zip(workcell.joint_names, [*row.tolist(), *fingers], strict=True)))
        geoms = data.contact.geom[: data.ncon]
        mixed = self._robot[geoms[:, 0]] != self._robot[geoms[:, 1]]
        return not (mixed & (data.contact.dist[: data.ncon] < -_DEPTH)).any()

    def _try(self, grasp: Grasp, rank: int, config: ShakeConfig, rng: np.random.Generator) -> Shake:
        workcell, model = self._workcell, self._workcell._model
        force = workcell.two_fingers.max_force * min(1.0, _LARGEST / grasp.hold)
        hold = grasp.hold * force / workcell.two_fingers.max_force
        friction, mass, center = _body_errors(config, rng)
        model.geom_friction[self._own, 0] = model.geom_friction[self._robot, 0] = friction
        model.body_mass[self._body], model.body_inertia[self._body] = mass * self._mass, mass * self._inertia
        workcell.command_gripper(workcell.two_fingers.aperture_min, force)
        workcell.step(_CLOSING)
        # Nothing but the shaking is to load the hand.
        model.opt.gravity[:] = 0.0
        closed = self._lift() and set(workcell.contacts().links_on_object) >= {"finger_1", "finger_2"}
        held = self._in_hand()
        levels, turn, slip = 0, 0.0, 0.0
        while closed and levels < len(LEVELS):
            turn, slip = self._level(LEVELS[levels] * hold, held, mass * self._mass, center, rng)
            if turn > MAX_TURN or slip > MAX_SLIP:
                break
            levels += 1
        return Shake(rank, hold, force, friction, mass, closed, levels, turn, slip)

    def _lift(self) -> bool:
        workcell = self._workcell
        goal = workcell.link_pose("palm")
        goal[2, 3] += _LIFT
        motion = self._job.backend.plan_straight(workcell.joint_state().as_dict(), goal, _LIFT_SPEED)
        assert motion.trajectory is not None
        workcell.command_trajectory(motion.trajectory)
        workcell.step(motion.trajectory.duration + 0.1)
        return not workcell.diverged

    def _in_hand(self) -> Array:
        return invert_transform(self._workcell.link_pose("palm")) @ self._workcell.object_pose()

    def _level(
        self, size: float, held: Array, mass: float, center: Array, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Shake with a specific force [m/s²]; turn and slip in the hand, where it ended [rad], [m].

        The shift of the centre of mass (3,) is the torque that it makes: the compiled model places geoms by the centre.
        """
        workcell, gravity = self._workcell, self._workcell._model.opt.gravity
        torque = workcell._data.xfrc_applied[self._body, 3:]
        # Two steps of the simulation; the force turns by 4° meanwhile.
        timestep = 2.0 * float(workcell._model.opt.timestep)
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        directions = spiral(_TURNS, _SPEED, timestep) @ axes.T
        first = np.tile(directions[0], (round(_RAMP / timestep), 1))
        growing = np.concatenate([np.linspace(0.0, 1.0, len(first)), np.ones(len(directions))])
        loads = size * growing[:, None] * np.concatenate([first, directions])
        turn = slip = 0.0
        looks = round(_PERIOD / timestep)
        for number, load in enumerate(loads):
            gravity[:] = load
            torque[:] = np.cross(workcell.object_pose()[:3, :3] @ center, mass * load)
            workcell.step(timestep)
            if number % looks == 0 or number == len(loads) - 1:
                change = invert_transform(held) @ self._in_hand()
                middle = workcell.object.center_of_mass
                turn = rotation_angle(change[:3, :3])
                slip = float(np.linalg.norm(change[:3, :3] @ middle + change[:3, 3] - middle))
                if turn > MAX_TURN or slip > MAX_SLIP or workcell.diverged:
                    break
        gravity[:], torque[:] = 0.0, 0.0
        return (math.pi, math.inf) if workcell.diverged else (turn, slip)


def _pose_error(config: ShakeConfig, rng: np.random.Generator) -> Array:
    """(4, 4) in the gripper's frame, within the bounds."""
    shift, turn = _in_ball(config.position_error, rng), _in_ball(math.radians(config.angle_error), rng)
    return make_transform(matrix_from_rotation_vector(turn), shift)


def _body_errors(config: ShakeConfig, rng: np.random.Generator) -> tuple[float, float, Array]:
    """Friction, mass over the assumed one, and shift of its centre [m]; at their worst ends in half of the draws."""
    worst, low, high = rng.random() < 0.5, *config.friction
    friction, mass = rng.uniform(low, high), 1.0 + config.mass_error * rng.uniform(-1.0, 1.0)
    center = _in_ball(config.center_error, rng)
    if worst:
        friction, mass = low, 1.0 + config.mass_error
    return float(friction), float(mass), center


def _in_ball(radius: float, rng: np.random.Generator) -> Array:
    """A vector (3,) of evenly drawn length and direction."""
    direction = rng.normal(size=3)
    vector: Array = radius * rng.random() * direction / np.linalg.norm(direction)
    return vector
