"""A planned push in another engine: MuJoCo, with the object as convex pieces and a sphere that pushes it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import Array, check_transform, look_at, quat_xyzw_from_matrix
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
from morphit_ros.simulation.objects import SimulatedObject
from morphit_ros.simulation.rendering import OffscreenRenderer, import_mujoco
from morphit_ros.simulation.robot_model import SURROUNDINGS_CONTACT
from morphit_ros.simulation.scene import OBJECT_BODY, TABLE_GEOM, add_camera, add_object, new_scene

_PUSHER = "pusher"
_COLOR = (0.55, 0.42, 0.33)
# A driven sphere is so much heavier than the object that contact doesn't move it.
_DRIVEN_MASS = 1e4
_VIEW_ANGLE = 0.7


class Drive(enum.Enum):
    """How the sphere is moved."""

    MOTION = "on the planned trajectory, whatever it meets"
    FORCES = "by the planned forces, as a free body that is carried"
    FEEDBACK = "by the planned forces and the plan's feedback on both bodies, as a free body that is carried"
    ROLLING = "by the planned forces, as a ball that lies on the plane"


@dataclass(frozen=True)
class ReplayConfig(Config):
    """How the other engine is set up."""

    timestep: float = parameter(0.002, "Step of the simulation [s]", minimum=1e-5, maximum=0.005)
    friction: float = parameter(0.05, "Sliding friction between all bodies", minimum=0.0, maximum=2.0)
    settling_time: float = parameter(0.5, "Time for the object to come to rest before [s]", minimum=0.0, maximum=10.0)


@dataclass(frozen=True)
class PusherMotion:
    """What the sphere does.

    Attributes:
        times: (T + 1,) increasing, from zero [s].
        positions, velocities: (T + 1, 3) of its centre in the world [m], [m/s].
        radius: [m].
        mass: [kg].
        forces: (T, 3) on its centre between the times [N], None where only the motion is known.
        feedback: gives the force (3,) of a step from the states (2, 13) of body and sphere, None where there is none.

    Raises:
        InvalidInputError: shapes that don't fit, numbers that are not finite, times that don't increase.
    """

    times: Array
    positions: Array
    velocities: Array
    radius: float
    mass: float = 1.0
    forces: Array | None = None
    feedback: Callable[[int, Array], Array] | None = None

    def __post_init__(self) -> None:
        count = len(self.times)
        if count < 2 or not (np.diff(self.times) > 0.0).all() or self.times[0] != 0.0:
            raise InvalidInputError("times", f"{count} numbers", "at least two, increasing from zero [s]")
        for name, value, shape in (
            ("positions", self.positions, (count, 3)),
            ("velocities", self.velocities, (count, 3)),
            ("forces", np.zeros((count - 1, 3)) if self.forces is None else self.forces, (count - 1, 3)),
        ):
            if value.shape != shape or not np.isfinite(value).all():
                raise InvalidInputError(name, f"shape {value.shape}", f"finite numbers of shape {shape}")
        for name, number in (("radius", self.radius), ("mass", self.mass)):
            if not (np.isfinite(number) and number > 0.0):
                raise InvalidInputError(name, number, "a positive number")


def pusher_motion(plan: PushPlan) -> PusherMotion:
    """What a plan tells the sphere."""
    settings = plan.config
    return PusherMotion(
        plan.times,
        plan.pusher_positions,
        plan.pusher_velocities,
        settings.pusher_radius,
        settings.pusher_mass,
        plan.forces,
        plan.force,
    )


@dataclass(frozen=True)
class PushReplay:
    """Where things went.

    Attributes:
        positions, quats_xyzw: (T + 1, 3) [m] and (T + 1, 4) of the body frame at the motion's times.
        pusher_positions: (T + 1, 3) [m].
        pictures: one (H, W, 3) for each picture asked for.
    """

    positions: Array
    quats_xyzw: Array
    pusher_positions: Array
    pictures: tuple[NDArray[np.uint8], ...] = ()


def body_in_pieces(body: ContactBody, pieces: Sequence[TriangleMesh], name: str = "body") -> SimulatedObject:
    """The body as an object that MuJoCo can touch, with the body's own mass and inertia.

    Args:
        body: gives mass and inertia.
        pieces: convex, in the body frame.
        name: for people.

    Raises:
        InvalidInputError: no pieces.
    """
    if not pieces:
        raise InvalidInputError("pieces", "none", "at least one convex mesh")
    return SimulatedObject(
        name, concatenate_meshes(list(pieces)), list(pieces), body.mass, None, _COLOR, np.zeros(3), body.inertia
    )


def replay_push(
    item: SimulatedObject,
    T_world_body: Array,
    motion: PusherMotion,
    drive: Drive = Drive.MOTION,
    config: ReplayConfig | None = None,
    pictures_at: Sequence[float] = (),
) -> PushReplay:
    """Push an object that lies on the plane z = 0.

    Args:
        item: the object in its body frame.
        T_world_body: (4, 4) where it lies; it comes to rest before the push.
        motion: of the sphere.
        drive: by motion or by forces.
        config: engine.
        pictures_at: times [s] at which to draw the scene from the side.

    Raises:
        InvalidInputError: a pose that is not rigid, or forces asked for that the motion doesn't have.
        MissingDependencyError: MuJoCo is not installed, or nothing can render pictures that were asked for.
    """
    settings = config or ReplayConfig()
    if drive is not Drive.MOTION and motion.forces is None:
        raise InvalidInputError("drive", drive.name, "MOTION", "This motion has no forces.")
    if drive is Drive.FEEDBACK and motion.feedback is None:
        raise InvalidInputError("drive", drive.name, "MOTION or FORCES", "This motion has no feedback.")
    engine = _Engine(item, check_transform(T_world_body, "T_world_body"), motion, drive, settings)
    try:
        return engine.run(pictures_at)
    finally:
        engine.close()


class _Engine:
    """One replay in MuJoCo."""

    def __init__(
        self, item: SimulatedObject, T_world_body: Array, motion: PusherMotion, drive: Drive, settings: ReplayConfig
    ) -> None:
        mujoco = self._mujoco = import_mujoco()
        self._motion, self._drive, self._settings = motion, drive, settings
        spec = new_scene(settings.timestep)
        spots = np.vstack([motion.positions[:, :2], T_world_body[None, :2, 3]])
        middle = 0.5 * (spots.min(axis=0) + spots.max(axis=0))
        extent = float(np.ptp(spots, axis=0).max())
        self._add_plane(spec, middle, 2.0 * extent + 20.0 * motion.radius)
        add_object(spec, item, T_world_body, settings.friction)
        # A replay is of one plan only: the effect of an object's own friction is the plan's business.
        self._add_pusher(spec)
        distance = 1.9 * extent + 6.0 * motion.radius
        target = np.array([*middle, 0.0])
        eye = target + distance * np.array([0.25, -0.75, 0.6])
        add_camera(spec, "side", look_at(eye, target), _VIEW_ANGLE, visible=False)
        spec.stat.extent = max(extent, 1e-3)
        self._model: Any = spec.compile()
        self._data: Any = mujoco.MjData(self._model)
        self._pusher = self._model.body(_PUSHER).id
        joint = self._model.body(_PUSHER).jntadr[0]
        self._position = self._model.jnt_qposadr[joint]
        self._velocity = self._model.jnt_dofadr[joint]
        self._renderer: OffscreenRenderer | None = None
        self._looked_at, self._answer = -1, np.zeros(3)

    def _add_plane(self, spec: Any, middle: Array, half: float) -> None:
        """A plane, not the workcell's table: against a box MuJoCo's normals of rocking meshes lean by a degree, which
        shoves a sliding object aside with a third of the friction of 0.05."""
        spec.worldbody.add_geom(
            name=TABLE_GEOM,
            type=self._mujoco.mjtGeom.mjGEOM_PLANE,
            size=[half, half, 0.1],
            pos=[*middle, 0.0],
            material="table",
            friction=[self._settings.friction, 0.005, 0.0001],
            **SURROUNDINGS_CONTACT,
        )

    def _add_pusher(self, spec: Any) -> None:
        mujoco, motion = self._mujoco, self._motion
        body = spec.worldbody.add_body(name=_PUSHER, pos=motion.positions[0])
        driven = self._drive is Drive.MOTION
        mass = _DRIVEN_MASS * motion.mass if driven else motion.mass
        # Without ipos MuJoCo would take the body's own position for it.
        body.explicitinertial, body.mass, body.ipos = True, mass, np.zeros(3)
        body.inertia = np.full(3, 0.4 * mass * motion.radius**2)
        if self._drive is not Drive.ROLLING:
            # It is carried: it neither rests on the plane nor rubs on it.
            body.gravcomp = 1.0
            spec.add_exclude(bodyname1="world", bodyname2=_PUSHER)
        if driven:
            for axis in np.eye(3):
                body.add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        else:
            body.add_freejoint()
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[motion.radius, 0.0, 0.0],
            mass=0.0,
            friction=[self._settings.friction, 0.005, 0.0001],
            rgba=[0.25, 0.45, 0.62, 1.0],
            **SURROUNDINGS_CONTACT,
        )

    def run(self, pictures_at: Sequence[float]) -> PushReplay:
        motion, data, step = self._motion, self._data, self._settings.timestep
        ways = CubicHermiteSpline(motion.times, motion.positions, motion.velocities)
        rates = ways.derivative()
        self._settle()
        wanted = sorted(float(np.clip(moment, 0.0, motion.times[-1])) for moment in pictures_at)
        positions, quats, pushers, pictures = [], [], [], []
        index = 0
        while True:
            now = float(data.time)
            while wanted and wanted[0] <= now + 0.5 * step:
                wanted.pop(0)
                pictures.append(self._draw())
            while index < len(motion.times) and motion.times[index] <= now + 0.5 * step:
                body = data.body(OBJECT_BODY)
                positions.append(body.xpos.copy())
                quats.append(quat_xyzw_from_matrix(body.xmat.reshape(3, 3)))
                pushers.append(data.xpos[self._pusher].copy())
                index += 1
            if index == len(motion.times):
                break
            if self._drive is Drive.MOTION:
                inside = min(now, motion.times[-1])
                self._place(ways(inside), rates(inside))
            else:
                data.xfrc_applied[self._pusher, :3] = self._force(index - 1)
            self._mujoco.mj_step(self._model, data)
            self._mujoco.mj_kinematics(self._model, data)
        return PushReplay(np.array(positions), np.array(quats), np.array(pushers), tuple(pictures))

    def _settle(self) -> None:
        """The object comes to rest while the sphere waits at its start."""
        data = self._data
        start = data.qpos[self._position : self._position + 3].copy()
        for _ in range(round(self._settings.settling_time / self._settings.timestep)):
            data.qpos[self._position : self._position + 3] = start
            data.qvel[self._velocity : self._velocity + 3] = 0.0
            self._mujoco.mj_step(self._model, data)
        data.qpos[self._position : self._position + 3] = start
        data.qvel[self._velocity : self._velocity + (3 if self._drive is Drive.MOTION else 6)] = 0.0
        if self._drive is not Drive.MOTION:
            data.qvel[self._velocity : self._velocity + 3] = self._motion.velocities[0]
        data.time = 0.0
        self._mujoco.mj_kinematics(self._model, data)

    def _force(self, index: int) -> Array:
        """(3,) on the sphere in a step of the plan; feedback looks once a step, as the plan's does."""
        motion = self._motion
        assert motion.forces is not None
        if self._drive is not Drive.FEEDBACK:
            return motion.forces[index]
        if index != self._looked_at:
            assert motion.feedback is not None
            self._answer, self._looked_at = motion.feedback(index, self._states()), index
        return self._answer

    def _states(self) -> Array:
        """(2, 13) of body and sphere: position, quaternion xyzw, velocity, angular velocity in its own frame."""
        rows = []
        for name in (OBJECT_BODY, _PUSHER):
            first = self._model.body(name).jntadr[0]
            position, velocity = self._model.jnt_qposadr[first], self._model.jnt_dofadr[first]
            qpos, qvel = self._data.qpos[position : position + 7], self._data.qvel[velocity : velocity + 6]
            rows.append(np.concatenate([qpos[:3], qpos[[4, 5, 6, 3]], qvel]))
        return np.array(rows)

    def _place(self, position: Array, velocity: Array) -> None:
        """The driven sphere's coordinates are its way from where it started."""
        data, motion = self._data, self._motion
        data.qpos[self._position : self._position + 3] = position - motion.positions[0]
        data.qvel[self._velocity : self._velocity + 3] = velocity

    def _draw(self) -> NDArray[np.uint8]:
        if self._renderer is None:
            self._renderer = OffscreenRenderer(self._model, 640, 480, samples=4)
        self._mujoco.mj_forward(self._model, self._data)
        return self._renderer.picture(self._data, "side")

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
