"""Covers as fine as a task asks for."""

from __future__ import annotations

import time

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.motion.certificate import Verdict
from morphit_ros.motion.planner import PathConfig, PathStatus, plan_path
from morphit_ros.motion.refinement import RefinableArm, plan_refined
from morphit_ros.motion.world import World
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

# A flat plate on a slide: few spheres bulge far above it, many less.
PLATE = """<robot name="plate"><link name="rail"/>
<link name="plate"><collision><geometry><box size="0.3 0.2 0.02"/></geometry></collision></link>
<joint name="slide" type="prismatic"><parent link="rail"/><child link="plate"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""


def ceiling(height: float) -> World:
    """A slab whose lower face is so high above the plate's middle, from x = 0.2 on."""
    pose = make_transform(translation=(0.7, 0.0, height + 0.05))
    return World([Solid("ceiling", GeometryKind.BOX, pose, np.array([1.0, 1.0, 0.1]))])


def covers() -> RefinableArm:
    return RefinableArm(load_robot_description(PLATE), ("slide",), counts=(1, 12))


def height(arm: RefinableArm, level: int) -> float:
    """How high the spheres of a level reach above the plate's middle [m]."""
    arrays = arm.model({"plate": level}).arrays
    # In the frame of the planned joint, whose z axis is that of the slide.
    centers = arrays.centers @ arrays.motions.before[0][:3, :3].T
    return float((centers[:, 2] + arrays.radii).max())


def test_the_coarsest_cover_that_suffices_is_taken() -> None:
    arm = covers()
    far, levels = plan_refined(arm, ceiling(height(arm, 0) + 0.01), [-0.9], [[0.9]])
    assert far.status is PathStatus.FOUND
    assert levels == {"plate": 0}


def test_a_link_that_touches_at_the_goal_becomes_finer() -> None:
    arm = covers()
    high, low = height(arm, 0), height(arm, 1)
    assert low < high - 0.01
    world = ceiling(0.5 * (high + low))
    plan = plan_path(arm.model({}), world, [-0.9], [[0.9]])
    assert plan.status is PathStatus.GOAL_TOUCHES
    assert plan.bodies == ("plate", "ceiling")
    refined, levels = plan_refined(arm, world, [-0.9], [[0.9]], PathConfig(timeout=0.5))
    assert refined.status is PathStatus.FOUND
    assert levels == {"plate": 1}
    assert refined.certificate is not None
    assert refined.certificate.verdict is Verdict.PROVEN_FREE


def test_what_no_cover_fits_into_says_what_touches() -> None:
    plan, levels = plan_refined(covers(), ceiling(0.005), [-0.9], [[0.9]])
    assert plan.status is PathStatus.GOAL_TOUCHES
    assert "plate and ceiling" in plan.message
    assert levels == {"plate": 1}


def test_limits_that_are_given_hold_for_all_levels() -> None:
    arm = RefinableArm(load_robot_description(PLATE), ("slide",), counts=(1, 12), limits=np.array([[-0.5], [0.5]]))
    for level in (0, 1):
        model = arm.model({"plate": level})
        assert (model.lower[0], model.upper[0]) == (-0.5, 0.5)
    with pytest.raises(InvalidInputError, match="slide"):
        plan_refined(arm, World(), [0.0], [[0.9]])
    with pytest.raises(InvalidInputError, match="nothing"):
        RefinableArm(load_robot_description(PLATE), ("nothing",))


def test_pairs_that_no_proof_speaks_of_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a level leaves out is told of as long as no other level in use has to check it."""
    pair, other = ("rail", "plate"), ("a", "b")

    class Matrix:
        ignored = (other,)
        left_out = (pair,)

    monkeypatch.setattr("morphit_ros.motion.refinement.self_collision_matrix", lambda *_, **__: Matrix)
    assert covers().model({"plate": 1}).left_out == (frozenset(pair),)


def test_the_timeout_is_that_of_all_searches_together() -> None:
    arm = RefinableArm(load_robot_description(PLATE), ("slide",), counts=(1, 2, 4, 8))
    for level in range(4):
        arm.model({"plate": level})
    # A wall that no cover gets past, free at both ends.
    wall = Solid("wall", GeometryKind.BOX, make_transform(translation=(0.0, 0.0, 0.0)), np.array([0.02, 1.0, 1.0]))
    plan_refined(arm, World([wall]), [-0.8], [[0.8]], PathConfig(timeout=0.05))
    began = time.monotonic()
    plan, _ = plan_refined(arm, World([wall]), [-0.8], [[0.8]], PathConfig(timeout=1.0))
    assert plan.status is PathStatus.NOT_FOUND
    assert "within 1 s" in plan.message
    assert 0.9 < time.monotonic() - began < 1.6
