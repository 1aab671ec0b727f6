"""Compiled contacts against the definition, pair by pair, on every robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_rpy
from morphit_ros.motion.collision_model import CollisionModel
from morphit_ros.motion.environment import Environment, GraspedObject, object_body
from morphit_ros.motion.sphere_contacts import slab_depth
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind, LinkGeometry
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

ROBOTS = ("panda", "ur3e_hande", "ur5e_hande", "iiwa_umi")


def of_spheres(robot: RobotConfiguration, rng: np.random.Generator) -> KinematicModel:
    """The robot with one, two or nine spheres in place of each link's geometry."""
    description = load_robot_description(robot.description)
    links = {}
    for name, link in description.links.items():
        count = int(rng.choice([1, 2, 9])) if link.collisions or link.visuals else 0
        spheres = tuple(
            LinkGeometry(
                GeometryKind.SPHERE, make_transform(translation=rng.uniform(-0.08, 0.08, 3)), np.array([radius])
            )
            for radius in rng.uniform(0.005, 0.04, count)
        )
        links[name] = replace(link, collisions=spheres)
    return KinematicModel(replace(description, links=links))


def surroundings(rng: np.random.Generator) -> Environment:
    """An inclined table, two crowds of spheres, and something in the hand."""
    tilted = make_transform(matrix_from_rpy([0.2, -0.3, 0.5]), [0.4, 0.1, 0.25])
    crowds = tuple(
        ObjectObstacle(
            name, rng.uniform([-0.7, -0.7, 0.0], [0.7, 0.7, 0.9], (count, 3)), rng.uniform(0.005, 0.05, count)
        )
        for name, count in (("left", 17), ("right", 1))
    )
    held = GraspedObject("held", rng.uniform(-0.05, 0.15, (6, 3)), rng.uniform(0.01, 0.03, 6))
    return Environment(TableObstacle(tilted, np.array([0.6, 0.5]), 0.04), crowds, (held,))


def depths_by_definition(kinematics, environment, robot, positions, drop):
    """Pair of bodies → greatest overlap of all their spheres, or of spheres and box."""
    poses = kinematics.forward_kinematics(positions)
    bodies = {
        name: (
            np.array([(poses[name] @ shape.T_link_geometry)[:3, 3] for shape in link.collisions]),
            np.array([shape.dimensions[0] for shape in link.collisions]),
        )
        for name, link in kinematics.description.links.items()
        if link.collisions
    }
    for carrier, items in ((robot.base_link, environment.objects), (robot.tip_link, environment.attached)):
        for item in items:
            pose = poses[carrier]
            bodies[object_body(item.name)] = item.centers @ pose[:3, :3].T + pose[:3, 3], item.radii
    depths = {}
    names = list(bodies)
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            distance = np.linalg.norm(bodies[first][0][:, None] - bodies[second][0][None], axis=2)
            depths[frozenset((first, second))] = (bodies[first][1][:, None] + bodies[second][1][None] - distance).max()
    for slab, T_base_slab, size in environment.table_slabs(drop):
        T_slab_root = invert_transform(poses[robot.base_link] @ T_base_slab)
        for name, (centers, radii) in bodies.items():
            beyond = np.abs(centers @ T_slab_root[:3, :3].T + T_slab_root[:3, 3]) - size / 2.0
            outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
            depths[frozenset((name, slab))] = (radii - outside - np.minimum(beyond.max(axis=1), 0.0)).max()
    return depths


@pytest.mark.parametrize("name", ROBOTS)
def test_contacts_are_those_of_the_definition(name: str) -> None:
    rng = np.random.default_rng(ROBOTS.index(name))
    robot = RobotConfiguration.load(name)
    kinematics, environment = of_spheres(robot, rng), surroundings(rng)
    names = list(kinematics.description.links)
    exempt = {frozenset(rng.choice(names, 2, replace=False).tolist()) for _ in range(10)}
    model = CollisionModel(kinematics, environment, robot.base_link, robot.tip_link, exempt, touch_clearance=0.01)
    skipped = model.skipped | exempt
    low = np.maximum(kinematics.position_lower, -3.0)
    high = np.minimum(kinematics.position_upper, 3.0)
    rows = rng.uniform(low, high, (600, len(low)))
    kinds, free, counts = set(), 0, {}
    for row in rows:
        positions = dict(zip(kinematics.joint_names, row.tolist(), strict=True))
        wanted = depths_by_definition(kinematics, environment, robot, positions, 0.01)
        wanted = {pair: depth for pair, depth in wanted.items() if depth > 0.0 and pair not in skipped}
        contacts = model.contacts(positions)
        found = {contact.pair: contact.depth for contact in contacts}
        assert found.keys() == wanted.keys()
        for pair, depth in wanted.items():
            assert found[pair] == pytest.approx(depth, abs=1e-12)
            kinds.add(tuple(sorted(body.startswith("environment/") for body in pair)))
            counts[pair] = counts.get(pair, 0) + 1
        assert [contact.depth for contact in contacts] == sorted(found.values(), reverse=True)
        allowed = set(list(wanted)[::2])
        assert {contact.pair for contact in model.contacts(positions, allowed)} == wanted.keys() - allowed
        first = model.first_touching(row[None])
        assert first == (0 if wanted else 1)
        free += not wanted
    assert kinds >= {(False, False), (False, True)}
    assert {pair: count for pair, count in model.touch_counts(rows).items() if count} == counts


def test_the_first_of_many_positions_that_touches_is_found() -> None:
    robot = RobotConfiguration.load("panda")
    kinematics = of_spheres(robot, np.random.default_rng(0))
    row = kinematics.configuration(dict.fromkeys(kinematics.joint_names, 0.0) | {"panda_joint2": 1.5})
    tip = kinematics.link_pose(dict(zip(kinematics.joint_names, row, strict=True)), "panda_hand")[:3, 3]
    ball = ObjectObstacle("ball", tip[None], np.array([0.15]))
    pairs = {frozenset((a, b)) for a in kinematics.description.links for b in kinematics.description.links if a != b}
    model = CollisionModel(kinematics, Environment(None, (ball,)), robot.base_link, robot.tip_link, pairs, 0.0)
    # The arm is stretched out, and turns away from the ball.
    away = row.copy()
    away[kinematics.joint_names.index("panda_joint1")] = 2.5
    assert model.first_touching(np.array([away, away, row, away, row])) == 2
    assert model.first_touching(np.array([away, away])) == 2
    assert model.first_touching(np.empty((0, len(row)))) == 0


def test_a_robot_without_anything_to_touch_is_free() -> None:
    robot = RobotConfiguration.load("panda")
    kinematics = of_spheres(robot, np.random.default_rng(0))
    bare = replace(
        kinematics.description,
        links={name: replace(link, collisions=()) for name, link in kinematics.description.links.items()},
    )
    model = CollisionModel(KinematicModel(bare), Environment(), robot.base_link, robot.tip_link, (), 0.0)
    assert model.bodies == {}
    assert model.contacts(dict.fromkeys(kinematics.joint_names, 0.0)) == []


@pytest.mark.parametrize(
    ("point", "depth"),
    [
        ((0.0, 0.0, 0.35), -0.05),
        ((0.0, 0.0, 0.25), 0.05),
        ((0.13, 0.24, 0.0), 0.05),
        ((0.0, 0.0, 0.0), 0.2),
        ((0.05, 0.0, 0.0), 0.15),
        ((0.0, 0.0, -0.3), 0.0),
    ],
)
def test_depth_in_a_box(point: tuple[float, float, float], depth: float) -> None:
    T_root_box = make_transform(matrix_from_rpy([0.3, -1.0, 2.0]), [0.4, -0.2, 0.1])
    placed = T_root_box[:3, :3] @ np.array(point) + T_root_box[:3, 3]
    assert slab_depth(placed, 0.1, T_root_box, np.array([0.1, 0.2, 0.2])) == pytest.approx(depth, abs=1e-12)
