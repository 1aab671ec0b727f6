"""SRDF groups, states and disabled pairs."""

import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.semantics import load_semantic_description

FOLDER = "package://example-robot-data/robots/panda_description"


@pytest.fixture(scope="module")
def panda():
    return load_robot_description(f"{FOLDER}/urdf/panda.urdf")


def srdf(body: str):
    return load_semantic_description(f'<robot name="panda">{body}</robot>')


def test_panda_groups_states_and_pairs(panda):
    semantics = load_semantic_description(f"{FOLDER}/srdf/panda.srdf")
    assert semantics.group_joints("arm", panda) == [f"panda_joint{number}" for number in range(1, 8)]
    assert semantics.group_joints("arm_and_hand", panda)[-1] == "panda_finger_joint1"
    assert semantics.states["arm_and_hand", "default"]["panda_joint4"] == -2.35619
    assert semantics.is_disabled("panda_link4", "panda_hand")
    assert not semantics.is_disabled("panda_link0", "panda_hand")
    assert len(semantics.disabled_pairs) == 35


def test_chains_and_links_become_joints(panda):
    semantics = srdf(
        '<group name="chain"><chain base_link="panda_link4" tip_link="panda_hand"/></group>'
        '<group name="link"><link name="panda_link2"/><link name="panda_link0"/></group>'
    )
    assert semantics.group_joints("chain", panda) == ["panda_joint5", "panda_joint6", "panda_joint7"]
    assert semantics.group_joints("link", panda) == ["panda_joint2"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<group name="g"><group name="g"/></group>', "contains itself"),
        ('<group name="g"><joint name="ghost"/></group>', "ghost"),
        ('<group name="g"><chain base_link="panda_link4" tip_link="panda_link1"/></group>', "chain"),
        ('<group name="other"/>', "one of other"),
    ],
)
def test_groups_that_make_no_sense(panda, body, expected):
    with pytest.raises(InvalidInputError, match=expected):
        srdf(body).group_joints("g", panda)


@pytest.mark.parametrize(
    "body",
    [
        "<group/>",
        '<disable_collisions link1="a"/>',
        '<group_state group="g" name="s"><joint name="j" value="x"/></group_state>',
        "<group",
    ],
)
def test_broken_documents(body):
    with pytest.raises(InvalidInputError):
        srdf(body)
