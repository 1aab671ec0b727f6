"""The workcell as a MuJoCo model: robot, table, object, cameras, light."""

from __future__ import annotations

from typing import Any

import numpy as np

from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.simulation.objects import SimulatedObject
from morphit_ros.simulation.rendering import import_mujoco
from morphit_ros.simulation.robot_model import (
    COLLISION_GROUP,
    OBJECT_GROUP,
    SURROUNDINGS_CONTACT,
    add_mesh,
    place,
)

OBJECT_BODY, TABLE_GEOM = "object", "table"

# Optical frame (x right, y down, z forward) to MuJoCo's camera frame (x right, y up, z backward).
_OPTICAL_TO_CAMERA = np.diag([1.0, -1.0, -1.0, 1.0])
FLOOR_DEPTH = 0.74


def new_scene(timestep: float) -> Any:
    """An empty mujoco.MjSpec with solver options, sky, floor and light."""
    mujoco = import_mujoco()
    spec = mujoco.MjSpec()
    option = spec.option
    option.timestep = timestep
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    option.impratio = 10.0
    # Friction cones of a soft solver let held objects creep, 1 mm/s for a hammer held away from its centre of mass.
    option.noslip_iterations = 3
    spec.stat.extent = 1.0
    spec.stat.center = [0.4, 0.0, 0.2]
    spec.visual.map.znear, spec.visual.map.zfar = 0.02, 20.0
    spec.visual.quality.shadowsize = 4096
    spec.visual.headlight.ambient = [0.38, 0.38, 0.40]
    spec.visual.headlight.diffuse = [0.20, 0.20, 0.20]
    spec.visual.headlight.specular = [0.05, 0.05, 0.05]
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.93, 0.95, 0.97],
        rgb2=[0.68, 0.74, 0.80],
        width=256,
        height=256,
    )
    spec.add_texture(
        name="floor",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.80, 0.81, 0.82],
        rgb2=[0.76, 0.77, 0.78],
        width=512,
        height=512,
    )
    material = spec.add_material(name="floor", texrepeat=[4.0, 4.0], texuniform=True, specular=0.1, shininess=0.1)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "floor"
    spec.add_material(name="table", rgba=[0.80, 0.75, 0.68, 1.0], specular=0.1, shininess=0.2)
    spec.worldbody.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[6.0, 6.0, 0.1],
        pos=[0.0, 0.0, -FLOOR_DEPTH],
        material="floor",
        **SURROUNDINGS_CONTACT,
    )
    for position, target, strength, shadow in (
        ((0.6, -1.2, 2.4), (0.4, 0.0, 0.0), 0.42, True),
        ((1.8, 1.6, 1.8), (0.4, 0.0, 0.0), 0.20, False),
    ):
        direction = np.subtract(target, position)
        spec.worldbody.add_light(
            pos=position,
            dir=direction / np.linalg.norm(direction),
            diffuse=[strength] * 3,
            specular=[0.1] * 3,
            castshadow=shadow,
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        )
    return spec


def add_table(spec: Any, center: Array, size: Array, friction: float) -> None:
    """A table top whose upper face is z = 0: `center` (2,) and `size` (2,) along x and y, on four legs [m]."""
    mujoco = import_mujoco()
    half, thickness = size / 2.0, 0.04
    spec.worldbody.add_geom(
        name=TABLE_GEOM,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[half[0], half[1], thickness / 2.0],
        pos=[center[0], center[1], -thickness / 2.0],
        material="table",
        friction=[friction, 0.005, 0.0001],
        **SURROUNDINGS_CONTACT,
    )
    height = (FLOOR_DEPTH - thickness) / 2.0
    for x in (-1.0, 1.0):
        for y in (-1.0, 1.0):
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=[0.025, 0.025, height],
                pos=[center[0] + x * (half[0] - 0.06), center[1] + y * (half[1] - 0.06), -thickness - height],
                rgba=[0.42, 0.43, 0.45, 1.0],
                contype=0,
                conaffinity=0,
            )


def add_fixture(spec: Any, solid: Solid, friction: float) -> None:
    """What stands there for good: a box, cylinder, sphere or capsule."""
    mujoco = import_mujoco()
    kinds = {
        GeometryKind.BOX: mujoco.mjtGeom.mjGEOM_BOX,
        GeometryKind.SPHERE: mujoco.mjtGeom.mjGEOM_SPHERE,
        GeometryKind.CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
        GeometryKind.CAPSULE: mujoco.mjtGeom.mjGEOM_CAPSULE,
    }
    # Lengths are halves, radii are not.
    size = solid.dimensions * (0.5 if solid.kind is GeometryKind.BOX else np.array([1.0, 0.5])[: len(solid.dimensions)])
    geom = spec.worldbody.add_geom(
        name=f"fixture {solid.name}",
        type=kinds[solid.kind],
        size=[*size, 0.0, 0.0][:3],
        rgba=[0.55, 0.60, 0.66, 1.0],
        friction=[friction, 0.005, 0.0001],
        **SURROUNDINGS_CONTACT,
    )
    place(geom, solid.T_world_solid)


def add_object(
    spec: Any, simulated: SimulatedObject, T_world_object: Array, friction: float, name: str = OBJECT_BODY
) -> None:
    """An object as a free body of this name at a pose; seen by its mesh, felt by its convex pieces."""
    mujoco = import_mujoco()
    body = spec.worldbody.add_body(name=name)
    place(body, T_world_object)
    body.add_freejoint(name=name)
    inertia = simulated.inertia
    body.explicitinertial, body.mass, body.ipos = True, simulated.mass, simulated.center_of_mass
    body.fullinertia = [*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    body.add_geom(
        name=f"{name}_visual",
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname=add_mesh(spec, f"{name}_visual", simulated.mesh),
        group=OBJECT_GROUP,
        contype=0,
        conaffinity=0,
        mass=0.0,
        rgba=[*simulated.color, 1.0],
    )
    own_friction = simulated.friction
    for number, piece in enumerate(simulated.pieces):
        body.add_geom(
            name=f"{name}_piece_{number}",
            type=mujoco.mjtGeom.mjGEOM_MESH,
            meshname=add_mesh(spec, f"{name}_piece_{number}", piece),
            group=COLLISION_GROUP,
            mass=0.0,
            friction=[friction if own_friction is None else own_friction, 0.002, 0.0001],
            # MuJoCo takes the larger friction of two geoms unless one has priority.
            priority=0 if own_friction is None else 1,
            **SURROUNDINGS_CONTACT,
        )


def add_camera(spec: Any, name: str, T_world_camera: Array, vertical_fov: float, visible: bool) -> None:
    """A camera at the pose of its optical frame; `visible` draws its housing behind it."""
    mujoco = import_mujoco()
    place(
        spec.worldbody.add_camera(name=name, fovy=float(np.degrees(vertical_fov))), T_world_camera @ _OPTICAL_TO_CAMERA
    )
    if not visible:
        return
    for size, offset, color in (
        ((0.055, 0.02, 0.02), (0.0, 0.0, -0.03), (0.16, 0.17, 0.19, 1.0)),
        ((0.012, 0.012, 0.003), (0.02, 0.0, -0.008), (0.03, 0.03, 0.05, 1.0)),
    ):
        geom = spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=size, rgba=color, contype=0, conaffinity=0, castshadow=False
        )
        place(geom, T_world_camera @ make_transform(translation=offset))


def object_pose_on_table(x: float, y: float, yaw: float) -> Array:
    """``T_world_object`` of an object that stands on the table, turned about the vertical [rad]."""
    return make_transform(matrix_from_rpy((0.0, 0.0, yaw)), (x, y, 0.0))


def lying_pose_on_table(item: SimulatedObject, x: float, y: float, yaw: float) -> Array:
    """``T_world_object`` of an object that lies on its side, its top against a heading [rad], its mass at a place."""
    turn = matrix_from_rpy((0.0, -0.5 * np.pi, yaw))
    lowest = min(float((piece.vertices @ turn[2]).min()) for piece in item.pieces)
    return make_transform(turn, [x, y, 0.0] - (turn @ item.center_of_mass) * [1.0, 1.0, 0.0] - [0.0, 0.0, lowest])
