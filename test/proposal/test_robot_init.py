"""`morphit robot init`: proposals agree with the files written by hand; what cannot be described is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import matrix_from_rpy, rpy_from_matrix
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.proposal.measuring import HandMeasure, measure_hand
from morphit_ros.proposal.parts import ArmParts, find_parts
from morphit_ros.proposal.propose import touch_links
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.example_robots import example_robots
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.robot.sources import load_robot
from morphit_ros.spheres import fit_robot_spheres
from morphit_ros.spheres.self_collision.matrix import self_collision_matrix, touching_pairs

ROBOTS = sorted(
    path.stem
    for path in (share_directory() / "config/robots").glob("*.yaml")
    if RobotConfiguration.load(path.stem).finger_joints
)
needs_examples = pytest.mark.skipif(not example_robots(), reason="example-robot-data is not installed")

# An arm of three joints with a hand of two boxes: pads of 20 x 30 mm, tips 40 mm in front of the palm's face.
FINGER = """
<link name="{side}"><collision><origin xyz="{y} 0 0.07"/><geometry><box size="0.01 0.02 0.03"/></geometry></collision>
  <collision><origin xyz="{y2} 0 0.045"/><geometry><box size="0.01 0.02 0.02"/></geometry></collision></link>
<joint name="{side}_joint" type="{kind}"><parent link="palm"/><child link="{side}"/><axis xyz="{axis} 0 0"/>
  <limit lower="{lower}" upper="{upper}" velocity="0.1" effort="{effort}"/>{mimic}</joint>"""
ARM = """<robot name="small arm"><link name="world"/><link name="foot"><collision><origin xyz="0 0 0.05"/>
  <geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<joint name="stand" type="fixed"><parent link="world"/><child link="foot"/></joint>
<joint name="turn" type="revolute"><parent link="foot"/><child link="post"/><origin xyz="0 0 0.1"/><axis xyz="0 0 1"/>
  <limit lower="-3" upper="3" velocity="2" effort="9"/></joint><link name="post"/>
<joint name="lift" type="revolute"><parent link="post"/><child link="upper"/><origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
  <limit lower="-2" upper="2" velocity="2" effort="9"/></joint><link name="upper"><collision>
  <origin xyz="0 0 0.15"/><geometry><box size="0.04 0.04 0.2"/></geometry></collision></link>
<joint name="bend" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
  <limit lower="-3" upper="3" velocity="2" effort="9"/></joint><link name="fore"><collision>
  <origin xyz="0 0 0.15"/><geometry><box size="0.04 0.04 0.2"/></geometry></collision></link>
<joint name="tilt" type="revolute"><parent link="fore"/><child link="flange"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
  <limit lower="-3" upper="3" velocity="2" effort="9"/></joint><link name="flange"/>
<joint name="mount" type="fixed"><parent link="flange"/><child link="palm"/></joint><link name="palm"><collision>
  <origin xyz="0 0 0.02"/><geometry><box size="0.12 0.04 0.03"/></geometry></collision></link>{hand}{more}</robot>"""


def small_arm(
    axes: tuple[int, int] = (1, -1),
    limits: tuple[float, float] = (0.0, 0.03),
    kind: str = "prismatic",
    shift: float = 0.0,
    mimic: str = "",
    effort: float = 60.0,
    more: str = "",
) -> str:
    fingers = (
        FINGER.format(
            side=side, y=sign * (0.005 + shift), y2=sign * (0.01 + shift), kind=kind, axis=axis, lower=limits[0],
            upper=limits[1], effort=effort, mimic=follows,
        )
        for side, sign, axis, follows in (("one", 1, axes[0], ""), ("two", -1, axes[1], mimic))
    )  # fmt: skip
    return ARM.format(hand="".join(fingers), more=more)


def _falling(source: str) -> str:
    """The same with the limits of the second finger on the other side of zero."""
    before, joint, after = source.partition('<child link="two"/>')
    return before + joint + after.replace('lower="0.0" upper="0.03"', 'lower="-0.03" upper="0.0"', 1)


def proposed(source: str) -> tuple[KinematicModel, ArmParts, HandMeasure]:
    model = KinematicModel(load_robot_description(source))
    parts = find_parts(model)
    return model, parts, measure_hand(model, parts)


@pytest.mark.parametrize("name", ROBOTS)
def test_proposal_agrees_with_the_file_written_by_hand(name: str) -> None:
    hand_written, gripper = RobotConfiguration.load(name), Gripper.load(RobotConfiguration.load(name).gripper)
    _, parts, hand = proposed(hand_written.description)
    assert parts.base_link == hand_written.base_link
    assert parts.arm_joints == hand_written.arm_joints
    assert parts.standing_joints == ()
    assert hand.tip_link == hand_written.tip_link
    assert tuple(joint.name for joint in hand.fingers) == hand_written.finger_joints
    assert tuple(touch_links(parts, hand)) == hand_written.touch_links
    # Approach and closing line, and the middle of the pads across the approach.
    np.testing.assert_allclose(hand.T_tip_gripper[:3, :3], hand_written.T_tip_gripper[:3, :3], atol=1e-6)
    away = np.linalg.inv(hand_written.T_tip_gripper) @ hand.T_tip_gripper
    assert away[:2, 3] == pytest.approx([0.0, 0.0], abs=1e-3)
    assert hand.openings[0] == pytest.approx(gripper.aperture_min, abs=1e-3)
    assert hand.openings[-1] == pytest.approx(gripper.aperture_max, abs=1e-3)
    assert hand.pad_width == pytest.approx(gripper.pad_width, abs=1e-3)
    # Pads end at the tips, which both have; how far up they reach is a matter of taste.
    tip, own_tip = away[2, 3] + hand.pad_height / 2.0, gripper.pad_height / 2.0
    assert tip == pytest.approx(own_tip, abs=2e-3)


@needs_examples
def test_files_are_written_read_and_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["robot", "init", "panda", "--name", "mine", "--output", str(tmp_path), "--picture", f"{tmp_path}/hand.png"]
    assert main(words) == 0
    told = capsys.readouterr().out
    for part in ("to be checked by a person", "moveit", "morphit up grasp robot:=", "0 to 80 mm"):
        assert part in told
    assert (tmp_path / "hand.png").stat().st_size > 10_000
    robot, by_hand = RobotConfiguration.load(tmp_path / "mine.yaml"), RobotConfiguration.load("panda")
    for key in ("base_link", "arm_joints", "tip_link", "finger_joints", "touch_links"):
        assert getattr(robot, key) == getattr(by_hand, key)
    assert robot.description == by_hand.description
    description, home = load_robot(str(tmp_path / "mine.yaml"))
    assert home == dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    robot.check_description(description)
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    for key, word in (("base_link", "read"), ("tip_to_gripper", "measured"), ("acceleration_limits", "ASSUMED")):
        assert word in next(line for line in text.splitlines() if line.startswith(key))
    # The home points down, and nothing touches there but what may.
    model = KinematicModel(description)
    state = dict.fromkeys(model.joint_names, 0.02) | home
    assert robot.gripper_pose(model, state)[:3, 2] == pytest.approx([0.0, 0.0, -1.0], abs=1e-3)
    spheres = fit_robot_spheres(description)
    matrix = self_collision_matrix(spheres, model)
    assert set(touching_pairs(spheres, model.forward_kinematics(state))) <= set(matrix.ignored)
    # The SRDF lets off the pairs that the matrix lets off, and knows the home.
    srdf = load_semantic_description(robot.semantic_description)
    assert {pair.links for pair in srdf.disabled_pairs} == set(map(frozenset, matrix.ignored))
    assert srdf.states["arm", "home"] == pytest.approx(home)
    before = text
    assert main(words) == 2
    assert "mine.yaml" in (told := capsys.readouterr().err)
    assert "--force" in told
    (tmp_path / "mine.yaml").write_text("", encoding="utf-8")
    assert main([*words, "--force"]) == 0
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == before


def test_pads_of_known_size_and_place_are_measured() -> None:
    _, parts, hand = proposed(small_arm())
    assert parts.base_link == "foot"
    assert parts.arm_joints == ("turn", "lift", "bend", "tilt")
    assert (hand.tip_link, hand.tip_was_found) == ("palm", False)
    # Closing along x, approach along z of the palm; pads from 55 to 85 mm.
    expected = np.array([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0.07], [0, 0, 0, 1]], dtype=float)
    np.testing.assert_allclose(hand.T_tip_gripper, expected, atol=1e-4)
    assert (hand.pad_width, hand.pad_height) == pytest.approx((0.02, 0.03), abs=1e-4)
    np.testing.assert_allclose(hand.openings, np.column_stack(2 * [np.linspace(0.0, 0.06, 5)]), atol=1e-4)
    assert [joint.name for joint in hand.fingers] == ["one_joint", "two_joint"]
    box = hand.finger_boxes[-1]
    np.testing.assert_allclose(box.center, [0.0, 0.005, 0.0], atol=1e-3)
    np.testing.assert_allclose(box.size, [0.02, 0.01, 0.03], atol=2e-3)
    # A finger that follows the other is a finger all the same.
    _, _, follower = proposed(small_arm(mimic='<mimic joint="one_joint"/>'))
    np.testing.assert_allclose(follower.openings, hand.openings, atol=1e-9)


def test_a_small_arm_gets_files_and_assumptions_are_told(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(small_arm(effort=1000.0), encoding="utf-8")
    assert main(["robot", "init", str(tmp_path / "arm.urdf"), "--output", str(tmp_path / "mine")]) == 0
    robot = RobotConfiguration.load(tmp_path / "mine/small_arm.yaml")
    assert robot.description == str(tmp_path / "arm.urdf")
    assert "description: ../arm.urdf" in (tmp_path / "mine/small_arm.yaml").read_text(encoding="utf-8")
    assert robot.acceleration_limits == pytest.approx([2.0] * 4)
    gripper = Gripper.load(robot.gripper)
    # 1000 N is what authors write who mean no limit.
    assert (gripper.aperture_max, gripper.max_force, gripper.max_speed) == (0.06, 20.0, 0.1)
    model = KinematicModel(load_robot_description(robot.description))
    state = dict.fromkeys(model.joint_names, 0.01) | dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    assert robot.gripper_pose(model, state)[:3, 2] == pytest.approx([0.0, 0.0, -1.0], abs=1e-3)


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        (ARM.format(hand="", more=""), ("gripper", "none among 4 joints", "two fingers that slide", "Mount")),
        (small_arm(kind="revolute").replace("one_joint", "finger_joint"), ("fingers that turn (finger_joint",)),
        (small_arm(axes=(1, 1)), ("move the same way",)),
    ],
)
def test_hands_that_cannot_be_described_are_refused_with_reason(source: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        proposed(source)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("source", "openings", "first", "second"),
    [
        (small_arm(axes=(-1, 1), limits=(-0.03, 0.0)), (0.0, 0.06), (0.0, -0.03), (0.0, -0.03)),
        (small_arm(shift=0.002), (0.004, 0.064), (0.0, 0.03), (0.0, 0.03)),
        (
            _falling(small_arm(axes=(1, 1), mimic='<mimic joint="one_joint" multiplier="-1"/>')), (0.0, 0.06),
            (0.0, 0.03), (0.0, -0.03),
        ),
    ],
    ids=["closing as positions grow", "apart at zero", "second falls as first grows"],
)  # fmt: skip
def test_sliding_fingers_whose_positions_are_not_the_opening_get_a_table(
    source: str, openings: tuple[float, float], first: tuple[float, float], second: tuple[float, float], tmp_path: Path
) -> None:
    _, _, hand = proposed(source)
    assert hand.finger_positions is not None
    for row, values in zip((0, -1), zip(openings, first, second, strict=True), strict=True):
        assert hand.finger_positions[row] == pytest.approx(values, abs=1e-4)
    (tmp_path / "arm.urdf").write_text(source, encoding="utf-8")
    assert main(["robot", "init", str(tmp_path / "arm.urdf"), "--output", str(tmp_path)]) == 0
    robot = RobotConfiguration.load(tmp_path / "small_arm.yaml")
    gripper = Gripper.load(robot.gripper)
    assert (gripper.aperture_min, gripper.aperture_max) == pytest.approx(openings, abs=1e-4)
    middle = 0.5 * sum(openings)
    assert robot.finger_state(middle) == pytest.approx(
        {"one_joint": 0.5 * sum(first), "two_joint": 0.5 * sum(second)}, abs=1e-4
    )
    assert robot.aperture(robot.finger_state(middle)) == pytest.approx(middle, abs=1e-4)


# A second arm without a hand, whose outer link lies in its inner one at zero, as meshes of another arm may.
FOLDED = """<joint name="a" type="revolute"><parent link="foot"/><child link="inner"/><origin xyz="-0.6 0 0.3"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="9"/></joint>
<link name="inner"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<joint name="b" type="revolute"><parent link="inner"/><child link="between"/><origin xyz="0.11 0 0"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="9"/></joint>
<link name="between"><collision><geometry><box size="0.02 0.02 0.02"/></geometry></collision></link>
<joint name="c" type="revolute"><parent link="between"/><child link="outer"/><axis xyz="0 1 0"/>
  <limit lower="-3" upper="3" velocity="1" effort="9"/></joint>
<link name="outer"><collision><origin xyz="-0.07 0 0"/><geometry><box size="0.1 0.02 0.02"/></geometry></collision>
</link>
"""


def test_what_the_arm_does_not_move_may_touch_itself_at_home(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(small_arm(more=FOLDED), encoding="utf-8")
    assert main(["robot", "init", str(tmp_path / "two.urdf"), "--output", str(tmp_path)]) == 0
    assert RobotConfiguration.load(tmp_path / "small_arm.yaml").arm_joints == ("turn", "lift", "bend", "tilt")


@needs_examples
def test_several_hands_are_listed_and_one_is_chosen() -> None:
    model = KinematicModel(load_robot("baxter")[0])
    with pytest.raises(InvalidInputError, match=r"2 with a hand.*--tip left_gripper_base_link, --tip right_gripper"):
        find_parts(model)
    parts = find_parts(model, tip="right_gripper_base_link")
    assert len(parts.arm_joints) == 7
    assert all(joint.startswith("right_") for joint in parts.arm_joints)
    assert find_parts(model, arm=parts.arm_joints) == parts
    assert find_parts(model, arm=parts.arm_joints[2:]).standing_joints == parts.arm_joints[:2]
    for wrong in (parts.arm_joints[:-1], parts.arm_joints[::-1]):
        with pytest.raises(InvalidInputError, match="--arm"):
            find_parts(model, arm=wrong)
    with pytest.raises(InvalidInputError, match=r"--tip.*There are: --tip left_gripper_base_link"):
        find_parts(model, tip="head")
    with pytest.raises(InvalidInputError, match="no_such_link"):
        find_parts(model, tip="no_such_link")


@needs_examples
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("pr2", "2 with a hand, expected one. Choose one: --tip r_gripper_palm_link"),
        ("z1", "one finger that turns (jointGripper) against one that stands"),
        ("tiago", "fingers that turn (hand_thumb_joint"),
        ("kinova", "fingers that are fixed (j2s6s200_joint_finger_1"),
        ("tiago_no_hand", "none among 12 joints; sliding: torso_lift_joint"),
    ],
)
def test_what_an_example_lacks_is_said_by_the_command(name: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robot", "init", name]) == 2
    assert what in capsys.readouterr().err


def test_missing_mesh_and_bad_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = small_arm()
    lost = text.replace('<box size="0.12 0.04 0.03"/>', '<mesh filename="palm.stl"/>')
    (tmp_path / "arm.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "lost.urdf").write_text(lost, encoding="utf-8")
    assert main(["robot", "init", str(tmp_path / "lost.urdf"), "--output", str(tmp_path / "x")]) == 2
    assert "palm.stl" in capsys.readouterr().err
    assert main(["robot", "init", str(tmp_path / "arm.urdf"), "--name", "a/b", "--output", str(tmp_path / "x")]) == 2
    assert "--name" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("rpy", [(0.1, -0.2, 2.9), (3.0, 1.2, -0.4), (0.7, np.pi / 2, 0.0), (-0.7, -np.pi / 2, 0.0)])
def test_rpy_is_the_inverse_of_the_matrix(rpy: tuple[float, float, float]) -> None:
    assert rpy_from_matrix(matrix_from_rpy(rpy)) == pytest.approx(rpy, abs=1e-7)
