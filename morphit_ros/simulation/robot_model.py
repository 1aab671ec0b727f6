"""A robot description as a MuJoCo model: dynamics from the URDF, what is seen apart from what is felt.

Collision geometry: primitives of the URDF stay primitives (the boxes of Franka's fingers), meshes become their convex
hulls, which is close for arm links. Links touch each other as well as table and object, but for neighbours, whose hulls
overlap, and pairs that the SRDF exempts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.mesh_io import load_mesh, metres_per_unit
from morphit_ros.geometry.transforms import Array, quat_xyzw_from_matrix
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.finger_positions import linkage_pairs
from morphit_ros.robot.links import GeometryKind, LinkGeometry
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.simulation.rendering import import_mujoco

# What is seen of the robot, and of objects; what is felt.
VISUAL_GROUP, OBJECT_GROUP, COLLISION_GROUP = 1, 2, 3
# Stiff as hard plastic on rubber: 40 N press a pad 0.2 mm into an object, MuJoCo's defaults 1.2 mm.
_STIFFNESS = {"condim": 4, "solref": [0.008, 1.0], "solimp": [0.95, 0.99, 0.001, 0.5, 2.0]}
# Who touches whom: everything meets everything, but for pairs of links that are exempted.
ROBOT_CONTACT = {"contype": 1, "conaffinity": 3, **_STIFFNESS}
SURROUNDINGS_CONTACT = {"contype": 2, "conaffinity": 3, **_STIFFNESS}

# Names of the robot in the workcell's model, so that its links may be called "table" or "object".
PREFIX = "robot/"
GRIPPER_ACTUATOR = "gripper"

# Inertia of motor and gear as felt at the joint: real arms of this size have about this much [kg m²], [kg].
_ARM_ARMATURE, FINGER_ARMATURE = 0.1, 0.2
# A moving link of which the description says no mass has this one [kg], spread over this distance [m].
_LEAST_MASS, _LEAST_SIZE = 1e-3, 0.02
# Limits of the fingers may be rounded [m].
_APERTURE_SLACK = 1e-4
_GREY = (0.75, 0.76, 0.78, 1.0)
# The force sensor, in the frame of `wrist_link`.
WRIST, WRIST_FORCE, WRIST_TORQUE = "wrist", "wrist_force", "wrist_torque"


def build_robot(
    description: RobotDescription, robot: RobotConfiguration, gripper: Gripper | SuctionCup, friction: float
) -> Any:
    """A mujoco.MjSpec of the robot with one actuator for each arm joint and one for the fingers of its gripper.

    The gripper's actuator pulls a tendon whose length is the sum of the finger joints' positions, signed to grow with
    the opening. Where fingers slide that is the aperture, so that each presses with the actuator's whole force; where
    they turn `GripperServo` scales force and gains. A mimic joint of the URDF keeps its relation to its leader. The lip
    of a cup is added by `simulation.suction`.

    Raises:
        InvalidInputError: configuration and description do not fit together, a gripper of fingers has none, a cup has
            some, or fingers cannot make the gripper's apertures.
    """
    mujoco = import_mujoco()
    has_fingers = isinstance(gripper, Gripper)
    if has_fingers is not bool(robot.finger_joints):
        found = ", ".join(robot.finger_joints) or "none"
        bound = "the joints that make up the aperture" if has_fingers else f"none with the suction cup {gripper.name}"
        raise InvalidInputError(f"robot {robot.name}: finger_joints", found, bound)
    robot.check_description(description)
    if isinstance(gripper, Gripper):
        _check_opening(description, robot, gripper)
    spec = mujoco.MjSpec.from_string(_skeleton(description))
    colors = _visual_colors(description)
    for link in description.links.values():
        body = spec.body(link.name)
        body.gravcomp = 1.0
        if body.joints and body.mass < _LEAST_MASS:
            body.mass, body.inertia, body.explicitinertial = _LEAST_MASS, [_LEAST_MASS * _LEAST_SIZE**2] * 3, True
        for number, element in enumerate(link.collisions):
            geom = _add_shape(spec, body, element, f"{link.name}_collision_{number}")
            geom.group, geom.mass = COLLISION_GROUP, 0.0
            for attribute, value in ROBOT_CONTACT.items():
                setattr(geom, attribute, value)
            geom.friction = [friction, 0.005, 0.0001]
        seen = [
            (element, color)
            for element, color in zip(link.visuals, colors[link.name], strict=True)
            if element.kind is not GeometryKind.MESH or element.path is not None
        ]
        # Without visual geometry the collision geometry is seen.
        for number, (element, color) in enumerate(seen or [(element, _GREY) for element in link.collisions]):
            _add_visual(spec, body, element, f"{link.name}_visual_{number}", color)
    for first, second in sorted(exempt_pairs(description, robot)):
        spec.add_exclude(bodyname1=first, bodyname2=second)
    for name in robot.arm_joints:
        spec.joint(name).armature = _ARM_ARMATURE
        limit = description.joints[name].effort_limit
        _add_servo(spec, name, mujoco.mjtTrn.mjTRN_JOINT, name, limit if np.isfinite(limit) else 1e3)
    if isinstance(gripper, Gripper):
        _add_fingers(spec, description, robot, gripper)
    spec.body(wrist_link(description, robot)).add_site(name=WRIST)
    for name, kind in ((WRIST_FORCE, mujoco.mjtSensor.mjSENS_FORCE), (WRIST_TORQUE, mujoco.mjtSensor.mjSENS_TORQUE)):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=WRIST)
    for equality in spec.equalities:
        equality.solref = [0.005, 1.0]
    return spec


def _check_opening(description: RobotDescription, robot: RobotConfiguration, gripper: Gripper) -> None:
    """Whether the fingers can make the gripper's apertures."""
    fingers = [description.joints[name] for name in robot.finger_joints]
    table = robot.finger_positions
    if table is None:
        opening = sum(joint.lower for joint in fingers), sum(joint.upper for joint in fingers)
        what = f"the limits of {', '.join(robot.finger_joints)}"
    else:
        opening = float(table.apertures[0]), float(table.apertures[-1])
        what = "the openings of finger_positions"
    if gripper.aperture_min < opening[0] - _APERTURE_SLACK or gripper.aperture_max > opening[1] + _APERTURE_SLACK:
        found = f"{gripper.aperture_min:g} to {gripper.aperture_max:g} m"
        bound = f"in [{opening[0]:g}, {opening[1]:g}] m, {what}"
        raise InvalidInputError(f"gripper {gripper.name}: aperture", found, bound)


def _add_fingers(spec: Any, description: RobotDescription, robot: RobotConfiguration, gripper: Gripper) -> None:
    """Tendon and actuator of the fingers."""
    mujoco = import_mujoco()
    tendon = spec.add_tendon(name=GRIPPER_ACTUATOR)
    signs, armatures = finger_signs(robot), _finger_armatures(description, robot)
    for joint in description.joints.values():
        if joint.name in armatures:
            spec.joint(joint.name).armature = armatures[joint.name]
            if joint.mimic is not None and robot.finger_positions is not None:
                # What follows a finger is held by the linkage that the description leaves out: limits of it are its
                # author's guess, and often contradict what it follows.
                spec.joint(joint.name).actfrclimited = False
                spec.joint(joint.name).limited = mujoco.mjtLimited.mjLIMITED_FALSE
    for name, sign in zip(robot.finger_joints, signs, strict=True):
        # The description's limit is the URDF author's guess; the gripper's data sheet counts.
        spec.joint(name).actfrclimited = False
        tendon.wrap_joint(name, sign)
    _add_servo(spec, GRIPPER_ACTUATOR, mujoco.mjtTrn.mjTRN_TENDON, GRIPPER_ACTUATOR, gripper.max_force)


def finger_signs(robot: RobotConfiguration) -> list[float]:
    """1 for each finger joint whose position grows with the opening, -1 for others."""
    if robot.finger_positions is None:
        return [1.0] * len(robot.finger_joints)
    return [float(value) for value in np.sign(np.diff(robot.finger_positions.positions[[0, -1]], axis=0)[0])]


def _finger_armatures(description: RobotDescription, robot: RobotConfiguration) -> dict[str, float]:
    """Finger joint, or joint that follows one → inertia of motor and gear as felt there [kg] or [kg m²]."""
    if robot.finger_positions is None:
        return dict.fromkeys(robot.finger_joints, FINGER_ARMATURE)
    middle = robot.finger_positions.at(
        0.5 * (robot.finger_positions.apertures[0] + robot.finger_positions.apertures[-1])
    )
    turning = FINGER_ARMATURE * robot.finger_positions.rates(middle) ** 2
    found = dict(zip(robot.finger_joints, turning.tolist(), strict=True))
    leaders = {*robot.finger_joints}
    for joint in description.joints.values():
        if joint.mimic is not None and joint.mimic.joint in leaders and joint.name not in found:
            found[joint.name] = found[joint.mimic.joint]
    return found


def wrist_link(description: RobotDescription, robot: RobotConfiguration) -> str:
    """The link behind the last joint of the arm: all that the hand carries pulls at it."""
    return description.joints[robot.arm_joints[-1]].child


def _skeleton(description: RobotDescription) -> str:
    """The URDF with links, inertias and joints only."""
    root = ElementTree.fromstring(description.xml.strip().encode())
    for link in root.findall("link"):
        for element in [child for child in link if child.tag in ("visual", "collision")]:
            link.remove(element)
    for extension in root.findall("mujoco"):
        root.remove(extension)
    # fusestatic would merge links without a joint; the tool frame is one of them.
    ElementTree.SubElement(
        ElementTree.SubElement(root, "mujoco"), "compiler", fusestatic="false", balanceinertia="true", boundmass="1e-6"
    )
    return ElementTree.tostring(root, encoding="unicode")


def exempt_pairs(description: RobotDescription, robot: RobotConfiguration) -> set[tuple[str, str]]:
    """Pairs of links, sorted by name, that do not touch each other: those of the SRDF, and neighbours.

    Neighbours are links that a joint joins, or fixed joints and links without collision geometry between them. Of a
    hand whose fingers turn, also the links of each finger and the palm: bars of a linkage meet at pins, hulls overlap.
    """
    felt = {name for name, link in description.links.items() if link.collisions}
    above = {joint.child: joint for joint in description.joints.values()}

    def body_of(link: str) -> str:
        """The first of the links that are fixed to each other."""
        while link in above and above[link].kind == "fixed":
            link = above[link].parent
        return link

    bodies = {name: body_of(name) for name in felt}

    def body_above(body: str) -> str:
        """The next one up the chain that can be felt."""
        while body in above:
            body = body_of(above[body].parent)
            if body in bodies.values():
                break
        return body

    neighbours = {
        frozenset((name, other)) for name in felt for other in felt
        if bodies[other] in (bodies[name], body_above(bodies[name]))
    }  # fmt: skip
    if robot.semantic_description:
        neighbours |= {pair.links for pair in load_semantic_description(robot.semantic_description).disabled_pairs}
    if robot.finger_positions is not None:
        neighbours |= linkage_pairs(description, robot.finger_joints)
    known = {pair for pair in neighbours if len(pair) == 2 and pair <= felt}
    return {(first, second) for first, second in map(sorted, known)}


def _add_servo(spec: Any, name: str, kind: Any, target: str, limit: float) -> None:
    """A force-limited proportional-derivative actuator; its gains are set when the inertias are known."""
    mujoco = import_mujoco()
    spec.add_actuator(
        name=name,
        target=target,
        trntype=kind,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        forcelimited=True,
        forcerange=[-limit, limit],
    )


def add_mesh(spec: Any, name: str, mesh: TriangleMesh) -> str:
    """Register a mesh; returns its name."""
    mujoco = import_mujoco()
    spec.add_mesh(
        name=name,
        uservert=mesh.vertices.ravel(),
        userface=mesh.faces.ravel().astype(np.int32),
        # Visual meshes need not be closed; masses are always given.
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )
    return name


def place(element: Any, T_parent_element: Array) -> None:
    """Set position and orientation of a body, geom or camera."""
    quaternion = quat_xyzw_from_matrix(T_parent_element[:3, :3])
    element.pos = T_parent_element[:3, 3]
    element.quat = quaternion[[3, 0, 1, 2]]


def _add_shape(spec: Any, body: Any, element: LinkGeometry, name: str, mesh: TriangleMesh | None = None) -> Any:
    """A geom for an element of a link; `mesh` replaces the element's file."""
    mujoco = import_mujoco()
    geom = body.add_geom(name=name)
    place(geom, element.T_link_geometry)
    size = element.dimensions
    match element.kind:
        case GeometryKind.BOX:
            geom.type, geom.size = mujoco.mjtGeom.mjGEOM_BOX, size / 2.0
        case GeometryKind.SPHERE:
            geom.type, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, [size[0], 0.0, 0.0]
        case GeometryKind.CYLINDER:
            geom.type, geom.size = mujoco.mjtGeom.mjGEOM_CYLINDER, [size[0], size[1] / 2.0, 0.0]
        case GeometryKind.CAPSULE:
            geom.type, geom.size = mujoco.mjtGeom.mjGEOM_CAPSULE, [size[0], size[1] / 2.0, 0.0]
        case GeometryKind.MESH:
            assert element.path is not None  # visual meshes without a file were left out, collision meshes have one
            surface = load_mesh(element.path).scaled(size) if mesh is None else mesh
            geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, add_mesh(spec, name, surface)
    return geom


def _visual_colors(description: RobotDescription) -> dict[str, list[tuple[float, ...]]]:
    """Link → colours of its visual elements, in their order; grey where the description says none."""
    root = ElementTree.fromstring(description.xml.strip().encode())

    def rgba(material: ElementTree.Element | None) -> tuple[float, ...] | None:
        color = None if material is None else material.find("color")
        numbers = [] if color is None else color.get("rgba", "").split()
        return tuple(float(number) for number in numbers) if len(numbers) == 4 else None

    named = {material.get("name"): rgba(material) for material in root.iter("material") if rgba(material)}

    def color_of(visual: ElementTree.Element) -> tuple[float, ...]:
        material = visual.find("material")
        return rgba(material) or (material is not None and named.get(material.get("name"))) or _GREY

    return {
        link.get("name", ""): [color_of(visual) for visual in link.findall("visual")] for link in root.findall("link")
    }


def _add_visual(spec: Any, body: Any, element: LinkGeometry, name: str, color: tuple[float, ...]) -> None:
    parts: Sequence[tuple[TriangleMesh | None, tuple[float, ...]]] = [(None, color)]
    if element.path is not None:
        parts = [(mesh.scaled(element.dimensions), own) for mesh, own in colored_parts(element.path)]
    for number, (mesh, shade) in enumerate(parts):
        geom = _add_shape(spec, body, element, f"{name}_{number}", mesh)
        geom.group, geom.contype, geom.conaffinity, geom.mass, geom.rgba = VISUAL_GROUP, 0, 0, 0.0, shade


@cache
def colored_parts(path: Path) -> tuple[tuple[TriangleMesh, tuple[float, ...]], ...]:
    """A mesh file split by the colours of its materials; one grey part where it has none.

    Kept in memory: both fingers share a file, and a benchmark builds many workcells.

    Raises:
        InvalidInputError: the file is unreadable; names it.
    """
    if path.suffix.lower() in (".dae", ".glb", ".gltf"):
        # The reader behind trimesh raises whatever its parsers raise, for files without a scene too. Our own reader has
        # the last word: it takes the shape without its colours, or says what is wrong with the file.
        with contextlib.suppress(Exception):
            if parts := _parts_by_color(path):
                return parts
    return ((load_mesh(path), _GREY),)


def _parts_by_color(path: Path) -> tuple[tuple[TriangleMesh, tuple[float, ...]], ...]:
    """The parts of a scene; none if it shows nothing. Raises whatever the reader raises."""
    import trimesh

    groups: dict[tuple[float, ...], list[TriangleMesh]] = {}
    scene = trimesh.load_scene(path, process=False)
    scale = metres_per_unit(scene, path)
    for geometry in scene.dump():
        if not isinstance(geometry, trimesh.Trimesh) or len(geometry.faces) == 0:
            continue
        geometry.merge_vertices(merge_tex=True, merge_norm=True)
        material = getattr(geometry.visual, "material", None)
        color = _GREY if material is None else tuple(float(c) / 255.0 for c in material.main_color)
        vertices = np.asarray(geometry.vertices) * scale
        groups.setdefault(color, []).append(TriangleMesh(vertices, np.asarray(geometry.faces)))
    return tuple((concatenate_meshes(meshes), color) for color, meshes in groups.items())
