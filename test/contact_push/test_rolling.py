"""A forearm that lies on a ball rolls it: where what touches must go, and that nothing else touches."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.contact_planning.solver import carried_along
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.contact_push.rolling import forearm_link
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.command_check import CommandCheck, CommandLimits
from morphit_ros.replay.contact_push import replay_push
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel

SIZE = (0.2, 0.2, 0.2)
CONFIG = ContactPushConfig(object="forearm_ball", size=SIZE, start=(0.514, -0.023), way=(0.08, -0.05))


@pytest.fixture(scope="module")
def push():
    return ContactPush(CONFIG)


def test_the_forearm_is_the_longest_link_of_the_outer_arm():
    for robot, link in (("panda", "panda_link5"), ("ur5e_hande", "forearm_link")):
        configuration = RobotConfiguration.load(robot)
        kinematics = KinematicModel(load_robot_description(configuration.description))
        assert forearm_link(kinematics, configuration) == link


def test_what_touches_moves_as_the_ball_does_there(push):
    """On the nominal way the ball rolls: its material and the forearm's move alike where both touch."""
    path, roller, step = push._path, push._roller, push.planning.step
    radius, checked = 0.5 * SIZE[0] - push._early, 0
    for before, row, after in zip(path[:-2], path[1:-1], path[2:], strict=True):
        velocity = (after[7:10] - before[7:10]) / (2.0 * step)
        if np.linalg.norm(velocity) < 0.03:
            continue
        gap, normal, moves = roller.contact(row[:7], row[7:10])
        spin = np.cross([0.0, 0.0, 1.0], velocity) / radius
        material = velocity + np.cross(spin, radius * normal)
        forearm = moves @ (after[:7] - before[:7]) / (2.0 * step)
        # In steps of 0.05 s: what slides is a twentieth of what rolls.
        np.testing.assert_allclose(forearm, material, atol=0.05 * np.linalg.norm(material))
        assert abs(gap - roller._gap) < 1e-3
        checked += 1
    assert checked > 10


def test_jacobian_of_what_touches(push):
    """Against differences of a point that is fixed to the forearm."""
    roller, row = push._roller, push._path[40]
    _, normal, moves = roller.contact(row[:7], row[7:10])
    point = row[7:10] + roller._ball * normal
    inverse = np.linalg.inv(roller._tip)
    for joint in range(7):
        joints = row[:7].copy()
        joints[joint] += 1e-6
        roller.contact(joints, row[7:10])
        moved = (roller._tip @ inverse @ [*point, 1.0])[:3]
        np.testing.assert_allclose((moved - point) / 1e-6, moves[:, joint], atol=1e-5)


def test_only_the_forearm_is_near_and_the_ball_is_carried_along(push):
    path, roller = push._path, push._roller
    assert min(roller.clearance(row[:7], row[7:10]) for row in path) >= 0.01
    # Above the ball at first, on it from a fifth of the time on.
    assert roller.contact(path[0, :7], path[0, 7:10])[0] > 0.015
    assert abs(roller.contact(path[16, :7], path[16, 7:10])[0] - roller._gap) < 1e-3
    assert not push.lies_on(path[0, :7], path[0, 7:10])
    assert push.lies_on(path[40, :7], path[40, 7:10])
    carried = carried_along(push.system, push.planner._task(push.start, np.zeros(13)), path[1:])
    np.testing.assert_allclose(carried[-1, 7:9], path[-1, 7:9], atol=0.01)


def test_the_plan_passes_the_gate_and_the_forearm_leaves_the_ball(push):
    plan = push.plan()
    assert plan.success
    follower = push.follower(plan)
    check = CommandCheck(push._kinematics, push.robot, CommandLimits())
    arm = dict(zip(push.robot.arm_joints, push.start.tolist(), strict=False))
    assert check.problem(follower.trajectory, arm) == ""
    end = follower.trajectory.positions[-1]
    raised = push.raised(end)
    assert check.problem(raised, dict(zip(push.robot.arm_joints, end.tolist(), strict=True))) == ""
    place = plan.positions[-1, 7:10]
    gaps = [push._roller.contact(row, place)[0] for row in raised.positions]
    assert (np.diff(gaps) >= 0.0).all() and gaps[-1] - gaps[0] > 0.015


@pytest.mark.slow
def test_a_ball_that_lies_elsewhere_is_brought_to_its_goal_by_looking(push):
    """6 mm off, it ends as far from its goal unless the plan is renewed; the forearm is gone when that is measured."""
    plan = push.plan()
    off = (0.005, -0.003, 0.0)
    blind, seeing = replay_push(push, plan, None, off), replay_push(push, plan, push.following, off)
    assert blind.success and seeing.success
    assert seeing.renewed > 15
    assert seeing.miss < 0.004
    assert blind.miss - seeing.miss > 0.002


@pytest.mark.parametrize(
    ("values", "match"),
    [({"size": (0.1, 0.1, 0.1)}, "0.15 m or more"), ({"start": (1.5, 0.0)}, "forearm of panda can lie on")],
)
def test_balls_that_no_forearm_rolls_are_refused(values, match):
    with pytest.raises(InvalidInputError, match=match):
        ContactPush(ContactPushConfig(**({"object": "forearm_ball", "size": SIZE} | values)))
