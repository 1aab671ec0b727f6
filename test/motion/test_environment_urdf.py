"""The reduced description that is planned with."""

import xml.etree.ElementTree as ElementTree

import pytest

from morphit_ros.motion.environment import robot_urdf

URDF = """<robot name="two">
  <link name="base"/><link name="middle"/><link name="tip"/>
  <joint name="wide" type="revolute"><parent link="base"/><child link="middle"/><axis xyz="0 0 1"/>
    <limit lower="-1.0" upper="2.0" velocity="1" effort="1"/></joint>
  <joint name="narrow" type="revolute"><parent link="middle"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="0.0" upper="0.1" velocity="1" effort="1"/></joint>
</robot>"""


def limits(text, joint):
    limit = ElementTree.fromstring(text).find(f"joint[@name='{joint}']/limit")
    return float(limit.get("lower")), float(limit.get("upper"))


def test_planned_joints_keep_away_from_their_limits():
    text = robot_urdf(URDF, "base", "tip", ("wide", "narrow"), 0.05)
    assert limits(text, "wide") == pytest.approx((-0.95, 1.95))
    # A short range keeps four fifths.
    assert limits(text, "narrow") == pytest.approx((0.01, 0.09))


def test_other_joints_keep_their_range():
    assert limits(robot_urdf(URDF, "base", "tip", ("wide",), 0.05), "narrow") == pytest.approx((0.0, 0.1))
    assert limits(robot_urdf(URDF, "base", "tip"), "wide") == pytest.approx((-1.0, 2.0))
