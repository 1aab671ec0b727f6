"""An arm pushes with its meshes in MuJoCo, as planned and renewed; nothing is carried out that is not believed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.contact_planning.planner import PlanStatus
from morphit_ros.contact_planning.solver import carried_along
from morphit_ros.contact_push.following import FollowConfig
from morphit_ros.contact_push.push import ContactPush
from morphit_ros.contact_push.push_config import OBJECTS, ContactPushConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.command_check import CommandCheck, CommandLimits
from morphit_ros.replay.contact_push import replay_push

CONFIG = ContactPushConfig(start=(0.536, 0.004), way=(0.09, -0.026))


@pytest.fixture(scope="module")
def box():
    push = ContactPush(CONFIG)
    return push, push.plan()


def test_a_hand_carries_a_box_along_before_anything_is_optimised(box):
    """Along the nominal path of the hand contact moves the box most of its way, and no joint without motor strains."""
    push, _ = box
    path = push.planner.goal.path
    carried = carried_along(push.system, push.planner._task(push.start, np.zeros(13)), path)
    np.testing.assert_array_equal(carried[:, :7], path[:, :7])
    moved = carried[-1, 7:9] - push.start[7:9]
    assert 0.8 < np.linalg.norm(moved) / np.linalg.norm(CONFIG.way) < 1.1
    with_none = push.start[None, :7].repeat(len(path), axis=0)
    still = carried_along(
        push.system, push.planner._task(push.start, np.zeros(13)), np.hstack([with_none, path[:, 7:]])
    )
    np.testing.assert_allclose(still[-1, 7:10], push.start[7:10], atol=1e-3)


def test_motions_pass_the_gates_check(box):
    push, plan = box
    assert plan.success
    follower, model = push.follower(plan), push._kinematics
    check = CommandCheck(model, push.robot, CommandLimits())
    at_rest = dict(zip(push.robot.arm_joints, push.start.tolist(), strict=False))
    assert check.problem(follower.trajectory, at_rest) == ""
    # Renewed in the middle, it goes on from where the arm is, as fast.
    time = 0.9
    here = plan.positions[18].copy()
    here[7:9] -= 0.005 * np.array(CONFIG.way) / np.linalg.norm(CONFIG.way)
    assert follower.renew(time, here), follower.message
    old, rest = plan, follower.remaining(time + 0.1)
    assert old is not follower.plan
    measured = dict(zip(push.robot.arm_joints, rest.positions[0].tolist(), strict=True))
    assert "velocity at the start" in check.problem(rest, measured)
    under_way = push.follower(plan).trajectory, 1.0
    assert check.problem(rest, measured, under_way) == ""
    # The plan makes up for what the box lags behind.
    behind = here[7:9] - plan.positions[18, 7:9]
    reached = follower.plan.positions[-1, 7:9] + behind
    np.testing.assert_allclose(reached, push.planner.goal.positions[7:9], atol=0.003)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"away": 0.01}, "object is"),
        ({"unactuated": 1e-6}, "without motor"),
        ({"off": 1e-3}, "off its command"),
    ],
)
def test_a_plan_that_is_not_believed_is_not_followed(box, change, match):
    push, plan = box
    follower = push.follower(plan, FollowConfig(patience=2, **change))
    before, here = follower.trajectory, plan.positions[18].copy()
    here[7] += 0.02
    here[3] += 0.01
    for _ in range(2):
        assert not follower.given_up
        assert not follower.renew(0.9, here)
    assert follower.given_up
    assert match in follower.message
    assert follower.trajectory is before
    with pytest.raises(InvalidInputError, match="not converged"):
        push.follower(replace(plan, status=PlanStatus.NOT_CONVERGED))


def test_what_the_hand_holds_is_watched_and_its_plan_never_renewed():
    push = ContactPush(ContactPushConfig(object="lying_bottle", way=(0.12, 0.0)))
    plan = push.plan()
    follower = push.follower(plan, FollowConfig(patience=2))
    beside, lost = plan.positions[18].copy(), plan.positions[18].copy()
    beside[7], lost[7] = beside[7] + 0.02, lost[7] + 0.05
    for here, refused in ((lost, 1), (beside, 0), (lost, 1), (lost, 2)):
        assert not follower.renew(0.9, here)
        assert follower.refused == refused
    assert follower.given_up
    assert "object is" in follower.message
    assert follower.plan is plan


def test_how_far_a_late_arm_is(box):
    push, plan = box
    follower = push.follower(plan)
    assert follower.progress(1.0, follower.trajectory.sample(0.8)) == pytest.approx(0.8, abs=0.02)
    assert follower.progress(1.0, follower.trajectory.sample(1.0)) == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_a_box_that_stands_elsewhere_is_brought_to_its_goal_by_looking(box):
    """1 cm farther on and turned by 5°, it ends off its goal by as much unless the plan is renewed."""
    push, plan = box
    off = (0.01, 0.0, np.deg2rad(-5.0))
    blind = replay_push(push, plan, None, off)
    push.planner.latest = plan.solution
    seeing = replay_push(push, plan, off=off)
    assert seeing.success
    assert seeing.renewed > 15
    assert seeing.miss < 0.01
    assert seeing.miss < blind.miss
    with pytest.raises(InvalidInputError, match="not converged"):
        replay_push(push, replace(plan, status=PlanStatus.NOT_CONVERGED))


@pytest.mark.slow
@pytest.mark.parametrize("thing", OBJECTS)
def test_a_panda_brings_it_to_rest_at_its_goal(thing):
    config = replace(CONFIG, object=thing, size=(0.2,) * 3 if thing == "forearm_ball" else CONFIG.size)
    push = ContactPush(config)
    plan = push.plan()
    assert plan.success
    lower, upper, _ = push._kinematics.limits(push.robot.arm_joints)
    assert (plan.positions[:, :7] >= lower).all() and (plan.positions[:, :7] <= upper).all()
    replay = replay_push(push, plan, push.following)
    assert replay.success
    assert replay.miss <= config.position_tolerance
    assert replay.speed <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("size", [(0.1, 0.2, 0.2), (0.055, 0.09, 0.12)])
def test_a_box_that_would_tip_is_pushed_low(size):
    push = ContactPush(replace(CONFIG, size=size))
    plan = push.plan()
    assert plan.success
    assert replay_push(push, plan, None).success


@pytest.mark.parametrize(
    ("values", "match"), [({"start": (1.5, 0.0)}, "reaches"), ({"way": (0.0, 0.0)}, "way of 0.001 m")]
)
def test_pushes_that_cannot_begin_are_refused(values, match):
    with pytest.raises(InvalidInputError, match=match):
        ContactPush(ContactPushConfig(**values))
