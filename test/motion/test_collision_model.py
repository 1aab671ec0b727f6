"""Contacts by name against Pinocchio and Coal, and the rules of who may touch whom."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.motion.collision_model import CollisionModel, rigid_group
from morphit_ros.motion.environment import (
    LOWERED_TABLE,
    TABLE,
    Environment,
    GraspedObject,
    object_body,
    robot_urdf,
    srdf_pairs,
)
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

BASE, TIP = "panda_link0", "panda_hand_tcp"


@pytest.fixture(scope="module")
def cluttered() -> tuple[TableObstacle, ObjectObstacle]:
    rng = np.random.default_rng(5)
    tilted = make_transform(matrix_from_rpy([0.3, -0.2, 0.5]), [0.3, 0.1, 0.2])
    crowd = ObjectObstacle(
        "crowd", rng.uniform([-0.6, -0.6, 0.1], [0.6, 0.6, 1.0], (25, 3)), rng.uniform(0.01, 0.1, 25)
    )
    return TableObstacle(tilted, np.array([0.5, 0.4]), 0.05), crowd


def test_contacts_equal_those_of_coal(panda_urdf, panda_srdf, cluttered, coal_checker):
    table, crowd = cluttered
    kinematics = KinematicModel(robot_urdf(panda_urdf, BASE, TIP))
    rigid_free = {frozenset(("panda_link7", "panda_hand"))}
    exempt = srdf_pairs(panda_srdf) | rigid_free
    model = CollisionModel(kinematics, Environment(table, (crowd,)), BASE, TIP, exempt, touch_clearance=0.0)
    checker = coal_checker(panda_urdf, panda_srdf, table, [crowd])
    rng = np.random.default_rng(0)
    names = {TABLE: "table", LOWERED_TABLE: "table", object_body("crowd"): "crowd"}
    seen = set()
    for _ in range(150):
        values = rng.uniform(kinematics.position_lower, kinematics.position_upper).tolist()
        positions = dict(zip(kinematics.joint_names, values, strict=True))
        positions["panda_finger_joint2"] = positions["panda_finger_joint1"]
        mine = {frozenset(names.get(body, body) for body in c.pair) for c in model.contacts(positions)}
        # The checker leaves out what stands beside the base.
        mine = {p for p in mine if not (p & {"table", "crowd"} and p & {"panda_link0", "panda_link1"}) and len(p) == 2}
        mine -= {frozenset(("table", "crowd"))}
        coal = {p for p in checker.contacts(positions) if p not in rigid_free}
        assert mine == coal
        seen |= mine
    assert any("table" in pair for pair in seen)
    assert any("crowd" in pair for pair in seen)
    assert any(not pair & {"table", "crowd"} for pair in seen)


def test_depth_is_the_overlap(panda_urdf, home):
    kinematics = KinematicModel(robot_urdf(panda_urdf, BASE, TIP))
    hand = kinematics.description.links["panda_hand"].collisions[0]
    center = kinematics.link_pose(home, "panda_hand") @ hand.T_link_geometry
    radius = float(hand.dimensions[0])
    # A ball whose surface is 3 mm inside one sphere of the hand, seen from the side.
    offset = np.array([0.0, 1.0, 0.0]) * (radius + 0.02 - 0.003)
    ball = ObjectObstacle("ball", (center[:3, 3] + offset)[None], np.array([0.02]))
    model = CollisionModel(kinematics, Environment(None, (ball,)), BASE, TIP, (), 0.0)
    contact = next(c for c in model.contacts(home) if c.pair == {"panda_hand", object_body("ball")})
    assert contact.depth >= 0.003 - 1e-9
    assert "object 'ball'" in contact.message
    assert "link 'panda_hand'" in contact.message
    assert not [c for c in model.contacts(home, {contact.pair}) if c.pair == contact.pair]


def test_the_table_is_lower_for_fingers(panda_urdf, panda, home):
    kinematics = KinematicModel(robot_urdf(panda_urdf, BASE, TIP))
    description = kinematics.description
    finger = kinematics.forward_kinematics(home)["panda_leftfinger"]
    spheres = description.links["panda_leftfinger"].collisions
    lowest = min((finger @ s.T_link_geometry)[2, 3] - s.dimensions[0] for s in spheres)
    for overlap, touching in ((-0.001, False), (0.003, False), (0.007, True)):
        table = TableObstacle(make_transform(translation=[0.4, 0.0, lowest + overlap]), np.array([0.2, 0.2]))
        environment = Environment(table)
        fixed, tip = rigid_group(description, description.root_link), rigid_group(description, TIP)
        exempt = environment.exempt_pairs(description.links, fixed, tip, panda.touch_links)
        model = CollisionModel(kinematics, environment, BASE, TIP, exempt, touch_clearance=0.005)
        pairs = {c.pair for c in model.contacts(home)}
        assert any(pair & {TABLE, LOWERED_TABLE} for pair in pairs) is touching


def test_bodies_and_slabs_are_where_they_belong(panda_urdf, table, box):
    held = GraspedObject("cup", np.array([[0.0, 0.0, 0.05]]), np.array([0.03]))
    kinematics = KinematicModel(robot_urdf(panda_urdf, BASE, TIP))
    model = CollisionModel(kinematics, Environment(table, (box,), (held,)), BASE, TIP, (), 0.004)
    assert model.bodies[object_body("box")].link == BASE
    assert model.bodies[object_body("cup")].link == TIP
    assert len(model.bodies[object_body("box")].radii) == len(box.radii)
    heights = {name: pose[2, 3] for name, pose, _ in model.slabs}
    assert heights[TABLE] - heights[LOWERED_TABLE] == pytest.approx(0.004)


def test_continuous_joints_get_two_turns(panda_urdf):
    root = ElementTree.fromstring(panda_urdf)
    joint = next(j for j in root.findall("joint") if j.get("name") == "panda_joint7")
    joint.set("type", "continuous")
    joint.remove(joint.find("limit"))
    kinematics = KinematicModel(robot_urdf(ElementTree.tostring(root, encoding="unicode"), BASE, TIP))
    lower, upper, speed = kinematics.limits(["panda_joint7"])
    assert (lower[0], upper[0]) == pytest.approx((-2 * np.pi, 2 * np.pi))
    assert np.isfinite(speed[0])
