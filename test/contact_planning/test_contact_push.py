"""An arm pushes a box as planned, with its meshes in MuJoCo; nothing is carried out that did not succeed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.contact_planning.planner import PlanStatus
from morphit_ros.contact_planning.push_config import ContactPushConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.replay.contact_push import ContactPush


@pytest.mark.slow
def test_a_panda_pushes_a_box_to_its_goal():
    config = ContactPushConfig(start=(0.536, 0.004), way=(0.09, -0.026))
    push = ContactPush(config)
    # The box rests on the table: it would need next to no effort to stay, and the hand is behind it.
    assert -1e-3 < push.system.gaps(push.start).min() < 0.0
    plan = push.plan()
    assert plan.success
    trajectory = push.trajectory(plan)
    lower, upper, _ = push._kinematics.limits(push.robot.arm_joints)
    assert (trajectory.positions >= lower).all() and (trajectory.positions <= upper).all()
    replay = push.replay(plan)
    assert replay.miss <= config.position_tolerance
    assert np.degrees(replay.turn) <= config.rotation_tolerance
    failed = replace(plan, status=PlanStatus.NOT_CONVERGED)
    with pytest.raises(InvalidInputError, match="not converged"):
        push.replay(failed)


@pytest.mark.parametrize(
    ("values", "match"), [({"start": (1.5, 0.0)}, "reaches"), ({"way": (0.0, 0.0)}, "way of 0.001 m")]
)
def test_pushes_that_cannot_begin_are_refused(values, match):
    with pytest.raises(InvalidInputError, match=match):
        ContactPush(ContactPushConfig(**values))
