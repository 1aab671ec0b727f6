"""Sketches that begin with something: a mesh, or the links of a robot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import Joint, Link, collision_mesh
from morphit_ros.sketch.model import LARGEST_LENGTH, Bone, BoneJoint, Sketch, make_joint
from morphit_ros.superovoid.fits.config import LinkFitConfig
from morphit_ros.superovoid.robots.link_fit import fit_link_superovoids
from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids

# Joints without an end turn so far each way in a sketch [rad].
_ENDLESS = 2.0 * math.pi


@dataclass(frozen=True)
class Import:
    """A sketch and what it is drawn over.

    Attributes:
        sketch: to begin with.
        meshes: bone → the mesh that its superovoids stand for, in its frame.
    """

    sketch: Sketch
    meshes: Mapping[str, TriangleMesh]


def sketch_of_mesh(name: str, mesh: TriangleMesh, config: LinkFitConfig | None = None, seed: int = 0) -> Import:
    """One bone with superovoids that are fitted to a mesh: a first proposal.

    Args:
        name: of sketch and bone.
        mesh: the shape [m].
        config: settings of the fit.
        seed: of the fit.

    Raises:
        InvalidInputError: as of `fit_link_superovoids`.
    """
    fit = fit_link_superovoids([mesh], config, seed)
    low, high = mesh.bounds
    bone = Bone(name, "", np.eye(4), high - low, make_joint("fixed", name, 0.0), fit.shapes)
    return Import(Sketch(name, {name: bone}), {name: mesh})


def sketch_of_robot(description: RobotDescription, source: str, model: RobotSuperovoids | None = None) -> Import:
    """The links of a robot as bones, with its superovoids.

    Args:
        description: the robot; a mimic joint moves on its own in the sketch.
        source: what `robot.sources.load_robot` finds it by, for the sketch's file.
        model: its superovoids; links that it lacks have none.

    Raises:
        InvalidInputError: a joint that is neither revolute, continuous, prismatic nor fixed; a model of other links.
    """
    if model is not None:
        model.check_links(description)
    kinematics = KinematicModel(description)
    places = kinematics.forward_kinematics(dict.fromkeys(kinematics.joint_names, 0.0))
    meshes = {
        name: concatenate_meshes([collision_mesh(element) for element in link.collisions])
        for name, link in description.links.items()
        if link.collisions
    }
    bones: dict[str, Bone] = {}
    waiting = [description.root_link]
    for name in waiting:
        joint = description.parent_joint(name)
        own = [other for other in description.joints.values() if other.parent == name]
        tail = _tail(description.links[name], [places[other.child] for other in own], places[name], meshes)
        shapes = () if model is None or name not in model.links else model.links[name].shapes
        made = make_joint("fixed", name, 0.0) if joint is None else _bone_joint(joint)
        bones[name] = Bone(name, "" if joint is None else joint.parent, places[name], tail, made, shapes)
        waiting += [other.child for other in own]
    return Import(Sketch(description.name or "robot", bones, robot=source), meshes)


def _bone_joint(joint: Joint) -> BoneJoint:
    if joint.kind == "fixed":
        return BoneJoint("fixed", np.empty((0, 3)), np.empty((0, 2)), (joint.name,))
    kind, most = ("slide", LARGEST_LENGTH) if joint.kind == "prismatic" else ("hinge", _ENDLESS)
    lower, upper = (float(np.clip(value, -most, most)) for value in (joint.lower, joint.upper))
    return BoneJoint(kind, joint.axis[None], np.array([[lower, upper]]), (joint.name,))


def _tail(link: Link, children: list[Array], T_world_link: Array, meshes: Mapping[str, TriangleMesh]) -> Array:
    """Where the one next joint is; else across the middle of the shape; else nowhere."""
    if len(children) == 1:
        return (invert_transform(T_world_link) @ children[0])[:3, 3]
    if link.name in meshes:
        low, high = meshes[link.name].bounds
        return low + high
    return np.zeros(3)


def check_is_of(sketch: Sketch, description: RobotDescription) -> None:
    """Refuse a sketch whose bones are not the links of the description that it names.

    Raises:
        InvalidInputError: names a bone that is no link.
    """
    unknown = [name for name in sketch.bones if name not in description.links]
    if unknown:
        raise InvalidInputError(f"bone of {sketch.name}", repr(unknown[0]), f"links of '{description.name}'")
