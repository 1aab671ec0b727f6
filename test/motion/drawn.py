"""Arms, worlds and paths drawn at random."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.motion.model import ArmModel, bodies_of, covering_spheres
from morphit_ros.motion.world import World
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

KINDS = (GeometryKind.BOX, GeometryKind.SPHERE, GeometryKind.CAPSULE, GeometryKind.CYLINDER)
SIZES = {GeometryKind.BOX: 3, GeometryKind.SPHERE: 1, GeometryKind.CAPSULE: 2, GeometryKind.CYLINDER: 2}


def drawn_robot(rng: np.random.Generator, joints: int = 4) -> str:
    """An arm with axes in any direction, the second joint sliding, the last one a mimic; two spheres a link."""
    text = '<robot name="arm"><link name="l0"/>'
    for j in range(joints + 1):
        spheres = "".join(
            f'<collision><origin xyz="{x} {y} {z}"/><geometry><sphere radius="0.04"/></geometry></collision>'
            for x, y, z in rng.uniform(-0.1, 0.1, (2, 3))
        )
        axis, place, turn = rng.normal(size=3), rng.uniform(-0.5, 0.5, 3), rng.uniform(-3.0, 3.0, 3)
        kind = "prismatic" if j == 1 else "revolute"
        mimic = '<mimic joint="j0" multiplier="-0.7" offset="0.2"/>' if j == joints else ""
        text += f'<link name="l{j + 1}">{spheres}</link><joint name="j{j}" type="{kind}"><parent link="l{j}"/>'
        text += f'<child link="l{j + 1}"/><origin xyz="{place[0]} {place[1]} {place[2]}" '
        text += f'rpy="{turn[0]} {turn[1]} {turn[2]}"/><axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>{mimic}'
        text += '<limit lower="-2.5" upper="2.5" velocity="1" effort="1"/></joint>'
    return text + "</robot>"


def drawn_arm(rng: np.random.Generator) -> tuple[KinematicModel, ArmModel]:
    kinematics = KinematicModel(load_robot_description(drawn_robot(rng)))
    spheres = covering_spheres(kinematics.description)
    ignored = [frozenset((f"l{j}", f"l{j + 1}")) for j in range(1, 5)]
    return kinematics, ArmModel(
        kinematics, bodies_of(spheres, kinematics.description), ("j0", "j1", "j3"), ignored, {"j2": 0.4}
    )


def drawn_world(rng: np.random.Generator, count: int = 10) -> World:
    solids = []
    for n in range(count):
        kind = KINDS[n % len(KINDS)]
        pose = make_transform(matrix_from_rpy(rng.uniform(-3.0, 3.0, 3)), rng.uniform(-0.7, 0.7, 3))
        solids.append(Solid(f"s{n}", kind, pose, rng.uniform(0.05, 0.2, SIZES[kind])))
    return World(solids)


def drawn_rows(rng: np.random.Generator, model: ArmModel, count: int) -> np.ndarray:
    return rng.uniform(model.lower, model.upper, (count, len(model.joints)))


def dense(path: np.ndarray, steps: int) -> np.ndarray:
    shares = np.linspace(0.0, 1.0, steps)[:, None]
    return np.concatenate([a + shares * (b - a) for a, b in pairwise(path)])
