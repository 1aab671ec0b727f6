"""Do spheres push as the links do? Motions of an arm through an object, with the meshes and with spheres, in Drake.

The contact experiment of the MorphIt paper (section IV-C): an object stands somewhere in front of the arm, inverse
kinematics guides the hand into it, and the joints' motion with the meshes is replayed with sphere models. What counts
is how far the object's last pose is from the one after the meshes' push. Robot and table are rigid, the object is
compliant, contact is hydroelastic (Drake's, solved by SAP). That of spheres is between points, if asked for: exact,
where Drake makes triangles of hydroelastic spheres, but without an area's resistance to turning. Needs ``drake``.

Not published are the objects' sizes and masses, friction, and the hand's ways: here they are those of `ContactObject`
and `drawn_scene`. Contact of the robot with itself and with the table is left out, so that nothing but the object's
contact differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy, rotation_angle
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.spheres import SphereModel

# Of the plant [s], and of what is recorded: each step.
TIME_STEP = 2e-3
# The hand's way: to the object's side, through its place, and then the arm rests [s].
_APPROACH, _PUSH, _REST = 1.0, 1.5, 1.0
# What has moved so far along the table has been touched [m]; a first part begins so long before that [s].
_TOUCHED, _LEAD = 2e-4, 0.12
# From the object's middle, where the push begins and ends [m].
_BEFORE, _BEHIND = 0.16, 0.12
# Joints follow their motion stiffly: 20 N at the hand turn them by 2e-4 rad [N m/rad, N m s/rad].
_STIFFNESS, _DAMPING = 1e5, 2e3
# Links are driven, so that their inertia matters little: one for all [kg, m].
_LINK_MASS, _LINK_SIZE = 2.0, 0.1
_FRICTION, _DISSIPATION, _MODULUS, _POINT_STIFFNESS = 0.5, 1.0, 1e7, 1e5
# Edge of the tetrahedra of a ball [m]: with 0.02 it was a polyhedron of 47 mm that rolled as one.
_OBJECT_RESOLUTION = 0.008
# Edge of a hydroelastic sphere's triangles, of its radius: with 0.17 a push ended 1.5 mm elsewhere, with 0.5 one 5 mm.
_SPHERE_RESOLUTION = 0.35


@dataclass(frozen=True)
class ContactObject:
    """What is pushed, on a table at z = 0.

    Attributes:
        name: for tables.
        size: box: edge; ball: diameter [m].
        mass: [kg].
        is_ball: whether it is a ball.
    """

    name: str
    size: float
    mass: float
    is_ball: bool


OBJECTS = (ContactObject("box", 0.1, 0.5, False), ContactObject("ball", 0.1, 0.5, True))


@dataclass(frozen=True)
class Scene:
    """An object's place and a motion of the arm through it.

    Attributes:
        T_root_object: (4, 4) before the push.
        motion: (T, J) wanted joint positions at steps of `TIME_STEP` [rad].
    """

    T_root_object: Array
    motion: Array


def first_part(scene: Scene, poses: Array, seconds: float) -> Scene:
    """The scene from shortly before the object is touched to so many seconds after.

    Contact is chaotic: what differs by little at the touch decides, a second later, whether a box tips over.

    Args:
        scene: one in which the object is touched.
        poses: (T, 4, 4) of the object in it, as of `ContactWorld.push`.
        seconds: after the touch.
    """
    touch = int(np.argmax(np.linalg.norm(poses[:, :2, 3] - scene.T_root_object[:2, 3], axis=1) > _TOUCHED))
    first, last = max(0, touch - round(_LEAD / TIME_STEP)), touch + round(seconds / TIME_STEP)
    return Scene(scene.T_root_object, scene.motion[first : last + 1])


def _smooth(parameter: Array) -> Array:
    """0 to 1 with no speed at the ends."""
    return np.asarray(parameter * parameter * (3.0 - 2.0 * parameter))


def drawn_scene(
    kinematics: KinematicModel, joints: Sequence[str], standing: Mapping[str, float], tip: str, thing: ContactObject,
    home: Array, rng: np.random.Generator,
) -> Scene:  # fmt: skip
    """A place 0.35 to 0.6 m in front of the arm, a start up to 0.4 rad a joint from home, a level push by the hand.

    The fingertips go at a quarter to three quarters of the object's height, past its middle by up to 20 mm, turned
    about the vertical as it comes and tilted by up to 0.3 rad. What inverse kinematics doesn't reach is drawn again.

    Args:
        kinematics: the robot.
        joints: of the arm, (J,) columns of motions.
        standing: positions of the other joints [rad or m].
        tip: link between the fingertips, its z axis along the fingers.
        thing: the object.
        home: (J,) where the arm starts about [rad].
        rng: source.
    """
    config = IKConfig(position_tolerance=1e-4, rotation_tolerance=1e-3)
    while True:
        bearing, reach = rng.uniform(-0.6, 0.6), rng.uniform(0.35, 0.6)
        place = np.array([reach * np.cos(bearing), reach * np.sin(bearing), 0.5 * thing.size])
        heading, yaw, tilt = rng.uniform(-np.pi, np.pi), rng.uniform(-np.pi, np.pi), rng.uniform(-0.3, 0.3)
        along = np.array([np.cos(heading), np.sin(heading), 0.0])
        across, height = rng.uniform(-0.02, 0.02), rng.uniform(0.25, 0.75) * thing.size
        middle = np.array([*place[:2], height]) + across * np.array([-along[1], along[0], 0.0])
        rotation = matrix_from_rpy([np.pi, tilt, yaw])
        start = home + rng.uniform(-0.4, 0.4, len(home))
        rows = _line(kinematics, joints, standing, tip, rotation, middle, along, start, config, rng)
        T_root_object = make_transform(matrix_from_rpy([0.0, 0.0, rng.uniform(-np.pi, np.pi)]), place)
        if rows is not None:
            approach = np.linspace(0.0, 1.0, round(_APPROACH / TIME_STEP), endpoint=False)[:, None]
            rest = np.repeat(rows[-1:], round(_REST / TIME_STEP), axis=0)
            return Scene(T_root_object, np.concatenate([start + _smooth(approach) * (rows[0] - start), rows, rest]))


def _line(
    kinematics: KinematicModel, joints: Sequence[str], standing: Mapping[str, float], tip: str, rotation: Array,
    middle: Array, along: Array, start: Array, config: IKConfig, rng: np.random.Generator,
) -> Array | None:  # fmt: skip
    """(T, J) the tip on its level line through the object, None where that is out of reach."""
    knots: list[Array] = []
    positions = {**standing, **dict(zip(joints, start, strict=True))}
    for way in np.linspace(-_BEFORE, _BEHIND, 29):
        found = inverse_kinematics(
            kinematics, make_transform(rotation, middle + way * along), tip, joints, positions, rng, config
        )
        row = np.array([found.positions[name] for name in joints])
        # Of another branch: the hand would leave its line in between.
        if found.status is not IKStatus.SUCCEEDED or (knots and np.abs(row - knots[-1]).max() > 0.2):
            return None
        knots.append(row)
        positions = {**standing, **found.positions}
    times = _smooth(np.linspace(0.0, 1.0, round(_PUSH / TIME_STEP))) * (len(knots) - 1)
    table = np.array(knots)
    return np.stack([np.interp(times, np.arange(len(knots)), column) for column in table.T], axis=1)


def robot_meshes(description: RobotDescription, folder: Path) -> dict[str, list[Path]]:
    """Link → files of its collision elements in the link's frame, as Wavefront OBJ."""
    files: dict[str, list[Path]] = {}
    for link in description.links.values():
        for number, element in enumerate(link.collisions):
            path = folder / f"{link.name}_{number}.obj"
            _write_obj(collision_mesh(element), path)
            files.setdefault(link.name, []).append(path)
    return files


def _write_obj(mesh: TriangleMesh, path: Path) -> None:
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in mesh.vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in mesh.faces + 1]
    path.write_text("\n".join(lines) + "\n")


class ContactWorld:
    """An arm, a table and an object in Drake.

    Args:
        description: the robot.
        joints: of the arm, all revolute; the others stand where they are told to.
        standing: positions of the others [rad or m].
        body: the robot's surface: files by link (`robot_meshes`), or spheres.
        thing: what is pushed.
        points: whether spheres touch it at points.

    Raises:
        MissingDependencyError: Drake is not installed.
        InvalidInputError: a joint that is to stand still can turn.
    """

    def __init__(
        self,
        description: RobotDescription,
        joints: Sequence[str],
        standing: Mapping[str, float],
        body: Mapping[str, Sequence[Path]] | SphereModel,
        thing: ContactObject,
        points: bool = False,
    ) -> None:
        try:
            import pydrake.all as drake
        except ImportError as error:
            raise MissingDependencyError("pydrake", "the contact experiment", "Run pip install drake.") from error
        self._points, self._count = points, 0
        self._drake, self._joints = drake, tuple(joints)
        builder = drake.DiagramBuilder()
        config = drake.MultibodyPlantConfig(
            time_step=TIME_STEP, contact_model="hydroelastic_with_fallback", discrete_contact_approximation="sap"
        )
        self._plant, self._scene_graph = drake.AddMultibodyPlant(config, builder)
        self._add_robot(description, standing)
        self._add_surfaces(body)
        self._add_surroundings(thing)
        self._plant.Finalize()
        self._leave_out_contact_with_itself()
        builder.ExportInput(self._plant.get_desired_state_input_port(self._robot), "wanted")
        self._diagram = builder.Build()

    def _add_robot(self, description: RobotDescription, standing: Mapping[str, float]) -> None:
        drake, plant = self._drake, self._plant
        self._robot = plant.AddModelInstance("robot")
        inertia = drake.SpatialInertia.SolidBoxWithMass(_LINK_MASS, *[_LINK_SIZE] * 3)
        bodies = {name: plant.AddRigidBody(name, self._robot, inertia) for name in description.links}
        plant.WeldFrames(plant.world_frame(), bodies[description.root_link].body_frame())
        for joint in description.joints.values():
            parent, child = bodies[joint.parent], bodies[joint.child]
            pose = drake.RigidTransform(joint.T_parent_child)
            if joint.name in self._joints:
                moved = plant.AddJoint(drake.RevoluteJoint(
                    joint.name, plant.AddFrame(drake.FixedOffsetFrame(f"{joint.name}_frame", parent, pose)),
                    child.body_frame(), joint.axis, damping=0.0,
                ))  # fmt: skip
                plant.AddJointActuator(joint.name, moved).set_controller_gains(
                    drake.PdControllerGains(p=_STIFFNESS, d=_DAMPING)
                )
            else:
                shift = np.zeros(3)
                if joint.kind == "prismatic":
                    leader, factor, offset = joint.name, 1.0, 0.0
                    if joint.mimic is not None:
                        leader, factor, offset = joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset
                    shift = (factor * standing[leader] + offset) * joint.axis
                elif joint.kind != "fixed":
                    raise InvalidInputError("joints", list(self._joints), f"'{joint.name}' ({joint.kind}) among them")
                plant.WeldFrames(parent.body_frame(), child.body_frame(), pose @ drake.RigidTransform(shift))
        plant.set_gravity_enabled(self._robot, False)
        self._bodies = bodies

    def _properties(self, resolution: float | None, rigid: bool = True) -> Any:
        """Of a surface of triangles of this size [m]; None for contact at points."""
        drake = self._drake
        properties = drake.ProximityProperties()
        if resolution is not None and rigid:
            drake.AddRigidHydroelasticProperties(resolution, properties)
        elif resolution is not None:
            drake.AddCompliantHydroelasticProperties(resolution, _MODULUS, properties)
        stiffness = _POINT_STIFFNESS if resolution is None else None
        drake.AddContactMaterial(_DISSIPATION, stiffness, drake.CoulombFriction(_FRICTION, _FRICTION), properties)
        return properties

    def _add_surfaces(self, body: Mapping[str, Sequence[Path]] | SphereModel) -> None:
        drake = self._drake
        if isinstance(body, SphereModel):
            for link, spheres in body.links.items():
                for center, radius in zip(spheres.centers, spheres.radii, strict=True):
                    resolution = None if self._points else _SPHERE_RESOLUTION * radius
                    self._add_surface(link, drake.RigidTransform(center), drake.Sphere(radius), resolution)
            return
        for link, files in body.items():
            for path in files:
                self._add_surface(link, drake.RigidTransform(), drake.Mesh(str(path)), 1.0)

    def _add_surface(self, link: str, pose: Any, shape: Any, resolution: float | None) -> None:
        self._count += 1
        self._plant.RegisterCollisionGeometry(
            self._bodies[link], pose, shape, f"{link}_{self._count}", self._properties(resolution)
        )

    def _add_surroundings(self, thing: ContactObject) -> None:
        drake, plant = self._drake, self._plant
        plant.RegisterCollisionGeometry(
            plant.world_body(), drake.HalfSpace.MakePose([0.0, 0.0, 1.0], np.zeros(3)), drake.HalfSpace(), "table",
            self._properties(1.0),
        )  # fmt: skip
        if thing.is_ball:
            inertia = drake.SpatialInertia.SolidSphereWithMass(thing.mass, 0.5 * thing.size)
            shape = drake.Sphere(0.5 * thing.size)
        else:
            inertia = drake.SpatialInertia.SolidBoxWithMass(thing.mass, *[thing.size] * 3)
            shape = drake.Box(thing.size, thing.size, thing.size)
        self._thing = plant.AddRigidBody("thing", plant.AddModelInstance("thing"), inertia)
        plant.RegisterCollisionGeometry(
            self._thing, drake.RigidTransform(), shape, "thing", self._properties(_OBJECT_RESOLUTION, rigid=False)
        )

    def _leave_out_contact_with_itself(self) -> None:
        drake, plant = self._drake, self._plant
        robot = drake.GeometrySet(
            [each for body in self._bodies.values() for each in plant.GetCollisionGeometriesForBody(body)]
        )
        table = drake.GeometrySet(plant.GetCollisionGeometriesForBody(plant.world_body()))
        declared = drake.CollisionFilterDeclaration().ExcludeWithin(robot).ExcludeBetween(robot, table)
        self._scene_graph.collision_filter_manager().Apply(declared)

    def push(self, scene: Scene, motion: Array | None = None) -> tuple[Array, Array, bool]:
        """The motion of a scene, or another one, is followed.

        Returns:
            The object's poses (T, 4, 4), the joints' motion (T, J), whether the object has moved along the table by
            more than 1 mm at the end.
        """
        drake, plant, wanted = self._drake, self._plant, scene.motion if motion is None else motion
        simulator = drake.Simulator(self._diagram)
        context = simulator.get_mutable_context()
        state = plant.GetMyMutableContextFromRoot(context)
        plant.SetFreeBodyPose(state, self._thing, drake.RigidTransform(scene.T_root_object))
        order = [plant.GetJointByName(name, self._robot).position_start() for name in self._joints]
        columns = np.argsort(order)
        plant.SetPositions(state, self._robot, wanted[0][columns])
        speeds = np.gradient(wanted, TIME_STEP, axis=0)
        plant.SetVelocities(state, self._robot, speeds[0][columns])
        port, recorded = self._diagram.GetInputPort("wanted"), np.empty_like(wanted)
        poses = np.empty((len(wanted), 4, 4))
        simulator.Initialize()
        for step, (row, speed) in enumerate(zip(wanted, speeds, strict=True)):
            port.FixValue(context, np.concatenate([row[columns], speed[columns]]))
            simulator.AdvanceTo((step + 1) * TIME_STEP)
            recorded[step, columns] = plant.GetPositions(state, self._robot)
            poses[step] = plant.EvalBodyPoseInWorld(state, self._thing).GetAsMatrix4()
        moved = float(np.linalg.norm((poses[-1] - scene.T_root_object)[:2, 3]))
        return poses, recorded, moved > 1e-3


def difference(pose: Array, other: Array) -> tuple[float, float]:
    """Distance [m] and angle [rad] between two poses (4, 4)."""
    return float(np.linalg.norm(pose[:3, 3] - other[:3, 3])), rotation_angle(pose[:3, :3].T @ other[:3, :3])
