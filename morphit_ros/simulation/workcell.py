"""The simulated workcell: what a real one would offer, stepped by its caller."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, look_at, make_transform, matrix_from_rpy
from morphit_ros.geometry.units import UNITS
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup, load_gripper, two_fingers
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.fixtures import read_fixtures
from morphit_ros.robot.motion_types import JointState, Trajectory
from morphit_ros.simulation.cameras import CameraConfig, DepthFrame, degrade_depth
from morphit_ros.simulation.clutter import heap, name_and_place, scatter
from morphit_ros.simulation.contacts import ContactSummary, summarize_contacts
from morphit_ros.simulation.objects import SimulatedObject, load_object
from morphit_ros.simulation.pad_patches import PadPatches
from morphit_ros.simulation.person import WalkingPerson
from morphit_ros.simulation.rendering import OffscreenRenderer, import_mujoco
from morphit_ros.simulation.robot_model import PREFIX, WRIST_FORCE, WRIST_TORQUE, build_robot, wrist_link
from morphit_ros.simulation.scene import (
    FLOOR_DEPTH,
    OBJECT_BODY,
    add_camera,
    add_fixture,
    add_object,
    add_table,
    lying_pose_on_table,
    new_scene,
    object_pose_on_table,
)
from morphit_ros.simulation.servo import ArmServo, GripperServo
from morphit_ros.simulation.suction import SimulatedCup, add_cup, add_seals

# Time for object and arm to come to rest before the clock starts [s].
_SETTLING_TIME = 0.3
# The same where objects may fall onto each other [s].
_FALLING_TIME = 2.0
# For contacts, for each object and the robot [bytes].
_MEMORY = 16 << 20
# Objects that are to settle lose their motion in this time: so falling they reach 0.5 m/s [s].
_SETTLING_RATE = 20.0
_FALLING_SPEED = 9.81 / _SETTLING_RATE
# Cameras that may be there; the first two are.
CAMERAS = ("left", "right", "third", "fourth")
# Views for people: eye, target [m], vertical field of view [rad].
_VIEWS = {
    "overview": ((0.75, -1.75, 0.85), (0.36, 0.0, 0.24), 0.66),
    "close": ((1.05, -0.55, 0.42), (0.48, 0.0, 0.14), 0.62),
}


@dataclass(frozen=True)
class WorkcellConfig(Config):
    """What stands where. World frame: z up, table top at z = 0. The robot's own file says where its base stands."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    object: str = parameter("box", "Object: a name (see the object list) or a mesh file")
    object_unit: str = parameter("auto", "Unit of a mesh file; auto: m, up to 2 m", choices=("auto", *UNITS))
    object_mass: float = parameter(0.0, "Mass of the object, 0 for its own [kg]", minimum=0.0, maximum=50.0)
    object_x: float = parameter(0.5, "Position of the object along x [m]", minimum=-2.0, maximum=2.0)
    object_y: float = parameter(0.0, "Position of the object along y [m]", minimum=-2.0, maximum=2.0)
    object_yaw: float = parameter(0.0, "Heading of the object [rad]", minimum=-6.3, maximum=6.3)
    object_lies: bool = parameter(
        False, "The object lies on its side, its top against object_yaw, its centre of mass above object_x, object_y"
    )
    others: str = parameter(
        "",
        "Further objects, names with spaces between, drawn around the first; or NAME@X,Y,YAW to stand there [m, rad]",
    )
    heap: bool = parameter(False, "All objects fall in a heap around object_x and object_y, turned any way")
    person: tuple[float, ...] = parameter(
        (), "Course of somebody who walks by, x y time of each place one after the other; empty: nobody [m, s]"
    )
    friction: float = parameter(0.6, "Sliding friction between all bodies", minimum=0.05, maximum=2.0)
    fixtures: str = parameter("", "YAML file with what stands around the robot for good; empty: nothing")
    timestep: float = parameter(0.002, "Step of the simulation [s]", minimum=1e-4, maximum=0.005)
    effort_noise: float = parameter(
        0.02, "Standard deviation of the arm's reported efforts [N m]", minimum=0.0, maximum=10.0
    )
    force_noise: float = parameter(
        0.5, "Standard deviation of each reading of the force sensor at the wrist [N]", minimum=0.0, maximum=100.0
    )
    torque_noise: float = parameter(0.02, "The same of its torques [N m]", minimum=0.0, maximum=10.0)
    seed: int = parameter(0, "Seed of the sensor noise", minimum=0)
    base_position: tuple[float, ...] = parameter((), "Robot base in the world [m]; empty: pose in the robot's file")
    base_yaw: float = parameter(0.0, "Heading of the base at base_position [rad]", minimum=-6.3, maximum=6.3)
    table_center: tuple[float, ...] = parameter((0.35, 0.0), "Centre of the table top, x and y [m]", length=2)
    table_size: tuple[float, ...] = parameter(
        (1.3, 1.4), "Size of the table top along x and y [m]", length=2, minimum=0.1, maximum=5.0
    )
    left_camera_position: tuple[float, ...] = parameter((0.88, 0.32, 0.45), "Left camera in the world [m]", length=3)
    right_camera_position: tuple[float, ...] = parameter((0.88, -0.32, 0.45), "Right camera in the world [m]", length=3)
    third_camera_position: tuple[float, ...] = parameter((), "A further camera in the world [m]; empty: none")
    fourth_camera_position: tuple[float, ...] = parameter((), "One more [m]; empty: none")
    camera_target: tuple[float, ...] = parameter((0.5, 0.0, 0.05), "Point that all cameras look at [m]", length=3)
    camera: CameraConfig = nested(CameraConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.base_position) not in (0, 3):
            raise InvalidInputError("base_position", f"{len(self.base_position)} numbers", "3 numbers x y z, or none")
        for name in CAMERAS:
            field = f"{name}_camera_position"
            if len(position := getattr(self, field)) not in (0, 3):
                raise InvalidInputError(field, f"{len(position)} numbers", "3 numbers x y z, or none")
        if not self.base_position and self.base_yaw != 0.0:
            raise InvalidInputError("base_yaw", self.base_yaw, "0 without base_position", "Give a base_position too.")


class _Objects(NamedTuple):
    """Positions (N, 7) and velocities (N, 6) of the objects, as MuJoCo writes them."""

    positions: Array
    velocities: Array


def _load_object(config: WorkcellConfig) -> SimulatedObject:
    unit = None if config.object_unit == "auto" else config.object_unit
    return load_object(config.object, config.object_mass or None, unit=unit)


class Workcell:
    """Robot with gripper, table, objects, two depth cameras or up to four. Time passes only in `step`.

    Attributes:
        camera_names: of `CAMERAS`, those that are there.
        object: the first of the objects.
        objects: all of them.
        wrist_link: whose frame `wrench` is in.
        person: who walks by, if anybody does.

    Args:
        config: what stands where.
        robot: takes the place of ``config.robot``; None loads that one.
        item: takes the place of ``config.object`` and ``config.object_mass``; None loads that one.
        others: take the place of ``config.others``; None loads those.

    Raises:
        ResourceNotFoundError: unknown robot or object, or a missing mesh.
        InvalidInputError: a configuration that cannot be built; names the field.
        MissingDependencyError: MuJoCo is not installed.
    """

    def __init__(
        self,
        config: WorkcellConfig | None = None,
        robot: RobotConfiguration | None = None,
        item: SimulatedObject | None = None,
        others: Sequence[SimulatedObject] | None = None,
    ) -> None:
        self._given_robot, self._given_item, self._given_others = robot, item, others
        self._renderers: dict[tuple[int, int, int], OffscreenRenderer] = {}
        self._build(config or WorkcellConfig())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _build(self, config: WorkcellConfig, lying: _Objects | None = None) -> None:
        mujoco = import_mujoco()
        self._mujoco = mujoco
        self.config = config
        self.robot = self._given_robot or RobotConfiguration.load(config.robot)
        self.gripper = load_gripper(self.robot.gripper)
        offset = np.abs(np.array([config.object_x, config.object_y]) - config.table_center)
        if (offset > np.array(config.table_size) / 2.0).any():
            bound = f"on the table around {list(config.table_center)}, {list(config.table_size)} m wide"
            raise InvalidInputError("object_x, object_y", [config.object_x, config.object_y], bound)
        self.object: SimulatedObject = self._given_item or _load_object(config)
        position = config.base_position or self.robot.base_position
        yaw = config.base_yaw if config.base_position else self.robot.base_yaw
        self.T_world_base = make_transform(matrix_from_rpy((0.0, 0.0, yaw)), position)
        positions = {name: getattr(config, f"{name}_camera_position") for name in CAMERAS}
        self._T_world_camera = {name: look_at(eye, config.camera_target) for name, eye in positions.items() if eye}
        self.camera_names = tuple(self._T_world_camera)

        description = load_robot_description(self.robot.description)
        spec = new_scene(config.timestep)
        # With 10, pads creep under loads that friction holds: 7°/s at 0.6 of what an edge bears.
        spec.option.impratio = 100.0
        add_table(spec, np.array(config.table_center), np.array(config.table_size), config.friction)
        others = self._given_others
        self._places: list[tuple[float, float, float] | None] = [None] * len(others or ())
        if others is None:
            named = [name_and_place(word) for word in config.others.split()]
            others, self._places = [load_object(name) for name, _ in named], [place for _, place in named]
        self._others = tuple(f"other {number}" for number in range(len(others)))
        self.objects = (self.object, *others)
        # What MuJoCo takes by itself is too little for 300 contacts, which ten concave objects in a heap have.
        spec.memory = _MEMORY * (1 + len(self.objects))
        poses = self._object_poses(config)
        for name, thing, pose in zip((OBJECT_BODY, *self._others), self.objects, poses, strict=True):
            add_object(spec, thing, pose, config.friction, name)
        self._fall = max(float(pose[2, 3]) for pose in poses) / _FALLING_SPEED if config.heap else 0.0
        for solid in read_fixtures(config.fixtures) if config.fixtures else ():
            add_fixture(spec, solid, config.friction)
        self.person = WalkingPerson(config.person, -FLOOR_DEPTH) if config.person else None
        if self.person is not None:
            self.person.add(spec)
        for name, T_world_camera in self._T_world_camera.items():
            add_camera(spec, name, T_world_camera, config.camera.vertical_fov, visible=True)
        for name, (eye, target, fov) in _VIEWS.items():
            add_camera(spec, name, look_at(eye, target), fov, visible=False)
        frame = spec.worldbody.add_frame(pos=position, quat=[math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0)])
        self.wrist_link = wrist_link(description, self.robot)
        robot_spec = build_robot(description, self.robot, self.gripper, config.friction)
        if isinstance(self.gripper, SuctionCup):
            add_cup(robot_spec, self.robot, self.gripper, config.friction)
        spec.attach(robot_spec, prefix=PREFIX, frame=frame)
        if isinstance(self.gripper, SuctionCup):
            add_seals(spec, (OBJECT_BODY, *self._others))
        self._model: Any = spec.compile()
        self._data: Any = mujoco.MjData(self._model)
        bodies = {self._model.body(index).name: index for index in range(self._model.nbody)}
        # A root link called "world" has no body of its own.
        self._links = {bodies[PREFIX + name]: name for name in description.links if PREFIX + name in bodies}
        fingers = [description.joints[name].child for name in self.robot.finger_joints]
        pads = np.full(self._model.ngeom, -1)
        for number, finger in enumerate(fingers):
            pads[self._geoms_below(PREFIX + finger)] = number
        self._robot_geoms = np.isin(self._model.geom_bodyid, list(self._links))
        touched = np.any([self._geoms_below(name) for name in (OBJECT_BODY, *self._others)], axis=0)
        self._pads = PadPatches(self._model, self._data, pads, touched)
        self.joint_names: tuple[str, ...] = (*self.robot.arm_joints, *self.robot.finger_joints)
        self._joint_addresses = np.array([self._model.joint(PREFIX + name).qposadr[0] for name in self.joint_names])
        self._joint_dofs = np.array([self._model.joint(PREFIX + name).dofadr[0] for name in self.joint_names])
        self._followers = [
            (self._model.joint(PREFIX + joint.name).qposadr[0], joint.mimic)
            for joint in description.joints.values()
            if joint.mimic is not None and joint.name not in self.joint_names
        ]
        self._start(config.seed, lying)

    def _object_poses(self, config: WorkcellConfig) -> list[Array]:
        """``T_world_object`` (4, 4) of each object at the start."""
        if config.heap:
            return heap(np.array([config.object_x, config.object_y]), self.objects, config.seed)
        place = config.object_x, config.object_y, config.object_yaw
        first = lying_pose_on_table(self.object, *place) if config.object_lies else object_pose_on_table(*place)
        loose = [item for item, place in zip(self.objects[1:], self._places, strict=True) if place is None]
        drawn = iter(scatter(self.object, first, loose, config.seed))
        return [first, *(next(drawn) if place is None else object_pose_on_table(*place) for place in self._places)]

    def _geoms_below(self, name: str) -> NDArray[np.bool_]:
        """Which geoms belong to a body or to what it carries."""
        model = self._model
        below = np.zeros(model.nbody, dtype=np.bool_)
        below[model.body(name).id] = True
        # Parents come before their children.
        for body in range(1, model.nbody):
            below[body] |= below[model.body_parentid[body]]
        return below[model.geom_bodyid]

    def _start(self, seed: int, lying: _Objects | None = None) -> None:
        """Everything to its place, at rest, at time zero; the objects where they were elsewhere, if that is given."""
        self._seed = seed
        self._frames = dict.fromkeys(self.camera_names, 0)
        self._mujoco.mj_resetData(self._model, self._data)
        opening = self.gripper.aperture_max if isinstance(self.gripper, Gripper) else 0.0
        fingers = list(self.robot.finger_state(opening).values())
        self._set_joints(np.concatenate([self.robot.home, fingers]))
        self._mujoco.mj_forward(self._model, self._data)
        self._arm = ArmServo(self._model, self._data, self.robot.arm_joints)
        self._hand: GripperServo | SimulatedCup
        if isinstance(self.gripper, SuctionCup):
            objects = (OBJECT_BODY, *self._others)
            self._hand = SimulatedCup(self._model, self._data, self.gripper, objects)
        else:
            self._hand = GripperServo(self._model, self._data, self.robot, self.gripper)
        self._due = 0.0
        if lying is not None:
            places, speeds = self._object_joints()
            self._data.qpos[places], self._data.qvel[speeds] = lying.positions, lying.velocities
            self._mujoco.mj_forward(self._model, self._data)
            return
        if self.config.heap:
            self._drop_heap()
        settling = _FALLING_TIME if self._others else _SETTLING_TIME
        self._advance(round(settling / self._model.opt.timestep))
        self._data.time = 0.0
        self._due = 0.0

    def _set_joints(self, values: Array) -> None:
        """Put `joint_names` at positions, and where they belong the joints that follow them."""
        self._data.qpos[self._joint_addresses] = values
        for address, mimic in self._followers:
            leader = self._model.joint(PREFIX + mimic.joint).qposadr[0]
            self._data.qpos[address] = mimic.multiplier * self._data.qpos[leader] + mimic.offset

    def reset(self, config: WorkcellConfig | None = None, seed: int | None = None) -> None:
        """Start again at time zero, with another configuration or another seed of the sensor noise if given."""
        if config is not None and config != self.config:
            self.close()
            self._build(config)
        self._start(self.config.seed if seed is None else seed)

    def exchange_robot(self, robot: RobotConfiguration) -> None:
        """Another robot, at home with its hand open, in place of this one; everything else is as it was, and time too.

        What the hand held is let go of.
        """
        places, speeds = self._object_joints()
        lying = _Objects(self._data.qpos[places].copy(), self._data.qvel[speeds].copy())
        now, frames, seed = self.time, self._frames, self._seed
        self.close()
        self._given_robot = robot
        self._build(self.config, lying)
        self._data.time, self._frames, self._seed = now, frames, seed

    def _object_joints(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Addresses of the positions (N, 7) and of the velocities (N, 6) of the objects."""
        joints = [self._model.joint(name) for name in (OBJECT_BODY, *self._others)]
        places = np.array([joint.qposadr[0] for joint in joints])[:, None] + np.arange(7)
        speeds = np.array([joint.dofadr[0] for joint in joints])[:, None] + np.arange(6)
        return places, speeds

    @property
    def time(self) -> float:
        """[s] since the start."""
        return float(self._data.time)

    @property
    def moving(self) -> bool:
        """Whether a trajectory is being executed."""
        return self._arm.moving

    @property
    def diverged(self) -> bool:
        """Whether the physics broke down since the start (MuJoCo then starts again from its initial state)."""
        kinds = self._mujoco.mjtWarning
        return any(
            self._data.warning[kind].number
            for kind in (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
        )

    @property
    def two_fingers(self) -> Gripper:
        """The gripper, where it has fingers.

        Raises:
            InvalidInputError: it is a suction cup.
        """
        return two_fingers(self.gripper)

    @property
    def aperture(self) -> float:
        """Measured opening between the pads [m]; a cup has none."""
        return self._hand.measured(self._data) if isinstance(self._hand, GripperServo) else 0.0

    def joint_state(self) -> JointState:
        """Measured positions, velocities and efforts of arm and finger joints, and the vacuum that a cup senses.

        Efforts are without what carries the robot itself; those of the arm with noise, the same whenever it is asked
        for at the same time.
        """
        efforts = self._data.qfrc_actuator[self._joint_dofs].copy()
        if self.config.effort_noise > 0.0:
            count = len(self.robot.arm_joints)
            rng = np.random.default_rng([self._seed, round(self.time / self._model.opt.timestep)])
            efforts[:count] += rng.normal(0.0, self.config.effort_noise, count)
        return JointState(
            self.joint_names,
            self._data.qpos[self._joint_addresses].copy(),
            self._data.qvel[self._joint_dofs].copy(),
            self.time,
            efforts,
            vacuum=self._hand.sensed if isinstance(self._hand, SimulatedCup) else None,
        )

    def wrench(self) -> Array:
        """Measured force [N] and torque [N m] (6,) between arm and `wrist_link`, in the frame of that link.

        With the hand's own weight, as a real one; with noise, the same whenever it is asked for at the same time.
        """
        data, prefix = self._data, PREFIX
        true = np.concatenate([data.sensor(prefix + name).data for name in (WRIST_FORCE, WRIST_TORQUE)])
        rng = np.random.default_rng([self._seed, round(self.time / self._model.opt.timestep), 1])
        return true + rng.normal(size=6) * np.repeat([self.config.force_noise, self.config.torque_noise], 3)

    def place(self, positions: Mapping[str, float]) -> None:
        """Put arm and fingers at joint positions at once, at rest, and hold them; time does not pass.

        Raises:
            InvalidInputError: a position of one of `joint_names` is missing or not finite.
        """
        values = np.array([positions.get(name, math.nan) for name in self.joint_names])
        if not np.isfinite(values).all():
            raise InvalidInputError("positions", dict(positions), f"a finite position of {', '.join(self.joint_names)}")
        self._set_joints(values)
        self._data.qvel[self._joint_dofs] = 0.0
        self._mujoco.mj_forward(self._model, self._data)
        self._arm.hold(self._arm.measured(self._data))

    def command_trajectory(self, trajectory: Trajectory) -> None:
        """Start a trajectory of arm joints, now or as if it had begun at its `start`; it replaces one under way.

        Raises:
            InvalidInputError: a joint that is not one of the arm's, a position beyond its limits, or a start that is
                away from where the arm is commanded to be.
        """
        self._arm.follow(trajectory, min(trajectory.start, self.time) or self.time, self.time)

    def scale_speed(self, share: float) -> None:
        """Follow trajectories at a share of their own speed from now on, 0 to 1, as a controller for people does.

        Raises:
            InvalidInputError: no such share.
        """
        if not 0.0 <= share <= 1.0:
            raise InvalidInputError("speed scale", share, "in [0, 1]")
        self._arm.scale(share)

    def stop_motion(self) -> None:
        """Drop the trajectory and hold the positions measured now."""
        self._arm.hold(self._arm.measured(self._data))

    def command_gripper(self, aperture: float, max_effort: float = 0.0) -> None:
        """Open or close to an aperture [m]; pushes with at most `max_effort` [N] (0: the gripper's largest).

        Raises:
            InvalidInputError: an aperture that the gripper does not have, a negative effort, or a gripper without
                fingers.
        """
        if not isinstance(self._hand, GripperServo):
            found, bound = f"the suction cup {self.gripper.name}", "a gripper with fingers"
            raise InvalidInputError("gripper command", found, bound, "Switch its vacuum.")
        self._hand.command(aperture, max_effort)

    def switch_vacuum(self, on: bool) -> None:
        """Run the pump of a suction cup, or let air in.

        Raises:
            InvalidInputError: the gripper is no cup.
        """
        self.cup.switch(on)

    @property
    def cup(self) -> SimulatedCup:
        """The suction cup.

        Raises:
            InvalidInputError: the gripper is no cup.
        """
        if not isinstance(self._hand, SimulatedCup):
            raise InvalidInputError("vacuum", self.gripper.name, "a suction cup")
        return self._hand

    def step(self, duration: float) -> None:
        """Let time pass [s]; what is less than a simulation step is kept for the next call.

        Raises:
            InvalidInputError: negative or not finite.
        """
        if not 0.0 <= duration < math.inf:
            raise InvalidInputError("duration", duration, "a finite number of seconds, not negative")
        self._due += duration
        count = math.floor(self._due / self._model.opt.timestep + 1e-6)
        self._due -= count * self._model.opt.timestep
        self._advance(count)

    def _advance(self, count: int) -> None:
        data, timestep = self._data, float(self._model.opt.timestep)
        # As the simulation's clock adds the steps up.
        times = np.cumsum([data.time, *[timestep] * count])[:count]
        controls, actuators = self._arm.controls(times, timestep), self._arm.actuators
        for control in controls:
            data.ctrl[actuators] = control
            self._hand.update(data, timestep)
            if self.person is not None:
                self.person.move(self._model, data)
            self._pads.step()

    def settle(self, duration: float) -> None:
        """Let time pass [s] while the objects' own motion is damped as in honey: without rolling friction, which is not
        simulated, a round thing rocks for minutes. Contacts are as always."""
        for name, item in zip((OBJECT_BODY, *self._others), self.objects, strict=True):
            dofs = slice(*(self._model.joint(name).dofadr[0] + np.array([0, 6])))
            inertia = np.diag(item.inertia).mean()
            self._model.dof_damping[dofs] = _SETTLING_RATE * np.array([item.mass] * 3 + [inertia] * 3)
        self.step(duration)
        for name in (OBJECT_BODY, *self._others):
            dofs = slice(*(self._model.joint(name).dofadr[0] + np.array([0, 6])))
            self._model.dof_damping[dofs] = 0.0

    def _drop_heap(self) -> None:
        """Let the objects fall past the robot, as if somebody had poured them there before it came."""
        model, robot = self._model, self._robot_geoms
        bits = model.geom_contype[robot].copy(), model.geom_conaffinity[robot].copy()
        model.geom_contype[robot] = model.geom_conaffinity[robot] = 0
        self.settle(self._fall)
        self._advance(round(_FALLING_TIME / model.opt.timestep))
        self.settle(_FALLING_TIME)
        model.geom_contype[robot], model.geom_conaffinity[robot] = bits

    def object_pose(self) -> Array:
        """``T_world_object`` (4, 4) of the frame described by `SimulatedObject`."""
        body = self._data.body(OBJECT_BODY)
        return make_transform(body.xmat.reshape(3, 3), body.xpos)

    def poses(self) -> list[Array]:
        """``T_world_object`` (4, 4) of each of `objects`."""
        return [self.object_pose(), *self.other_poses()]

    def other_poses(self) -> list[Array]:
        """``T_world_object`` (4, 4) of each of the further objects."""
        bodies = [self._data.body(name) for name in self._others]
        return [make_transform(body.xmat.reshape(3, 3), body.xpos) for body in bodies]

    def link_pose(self, link: str) -> Array:
        """``T_world_link`` (4, 4).

        Raises:
            InvalidInputError: no such link.
        """
        if link not in self._links.values():
            raise InvalidInputError("link", link, f"one of {', '.join(self._links.values())}")
        body = self._data.body(PREFIX + link)
        return make_transform(body.xmat.reshape(3, 3), body.xpos)

    def T_world_camera(self, name: str) -> Array:
        """(4, 4) pose of a camera's optical frame (z forward, x right, y down).

        Raises:
            InvalidInputError: no such camera.
        """
        self._check_camera(name)
        return self._T_world_camera[name].copy()

    def capture(self, name: str, rgb: bool = False) -> DepthFrame:
        """A depth picture now, as imperfect as the configuration says.

        The noise depends on the seed, the camera and how many pictures it has taken, on nothing else.

        Raises:
            InvalidInputError: no such camera.
            MissingDependencyError: nothing on this machine can render.
        """
        self._check_camera(name)
        camera = self.config.camera
        renderer = self._renderer(camera.width, camera.height, samples=0)
        depth = renderer.depth(self._data, name)
        colors = renderer.picture(self._data, name) if rgb else None
        rng = np.random.default_rng([self._seed, self.camera_names.index(name), self._frames[name]])
        self._frames[name] += 1
        return DepthFrame(degrade_depth(depth, camera, rng), colors, camera.intrinsics, self.time)

    def configuration(self) -> Array:
        """All positions of the model now, to be drawn later by `picture`."""
        return self._data.qpos.copy()

    def picture(
        self, width: int = 960, height: int = 720, view: str = "overview", configuration: Array | None = None
    ) -> NDArray[np.uint8]:
        """A picture for people (H, W, 3); `view` is overview, close, or a depth camera's name.

        Args:
            width, height: [px].
            view: where from.
            configuration: of an earlier time, None for now.

        Raises:
            InvalidInputError: no such view, a size that cannot be drawn, or a configuration of another model.
            MissingDependencyError: nothing on this machine can render.
        """
        views = (*_VIEWS, *self.camera_names)
        if view not in views:
            raise InvalidInputError("view", repr(view), f"one of {', '.join(views)}")
        if not (16 <= width <= 4096 and 16 <= height <= 4096):
            raise InvalidInputError("width, height", [width, height], "in [16, 4096] px")
        data = self._data
        if configuration is not None:
            if configuration.shape != (self._model.nq,):
                raise InvalidInputError("configuration", f"shape {configuration.shape}", f"shape {(self._model.nq,)}")
            data = self._mujoco.MjData(self._model)
            data.qpos[:] = configuration
            self._mujoco.mj_forward(self._model, data)
        return self._renderer(width, height, samples=4).picture(data, view)

    def contacts(self) -> ContactSummary:
        """Who touches whom now."""
        return summarize_contacts(self._model, self._data, self._links)

    def object_touches_table(self) -> bool:
        """Whether the object touches the table now."""
        return self.contacts().object_on_table

    def close(self) -> None:
        """Release the rendering contexts; the workcell may still be stepped."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def _renderer(self, width: int, height: int, samples: int) -> OffscreenRenderer:
        key = (width, height, samples)
        if key not in self._renderers:
            self._renderers[key] = OffscreenRenderer(self._model, width, height, samples)
        return self._renderers[key]

    def _check_camera(self, name: str) -> None:
        if name not in self.camera_names:
            raise InvalidInputError("camera", repr(name), f"one of {', '.join(self.camera_names)}")
