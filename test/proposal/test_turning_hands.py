"""Hands whose fingers turn: what is measured of them is what the description's kinematics says, or they are refused."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from hands import arm_with, pincer, proposed, robotiq_85, xarm

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import invert_transform
from morphit_ros.grasping.gripper import MAX_TILT, Gripper
from morphit_ros.proposal.measuring import HandMeasure
from morphit_ros.proposal.parts import ArmParts, find_parts
from morphit_ros.proposal.turning import measure_turning_hand
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.example_robots import example_robots
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.sources import load_robot

needs_examples = pytest.mark.skipif(not example_robots(), reason="example-robot-data is not installed")


def measured(source: str, tip: str | None = None) -> tuple[KinematicModel, ArmParts, HandMeasure]:
    model = KinematicModel(load_robot_description(source))
    parts = find_parts(model, tip)
    assert parts.turning
    return model, parts, measure_turning_hand(model, parts, tip)


def test_the_2f_85_is_a_four_bar_linkage_with_parallel_pads() -> None:
    _, parts, hand = measured(arm_with(robotiq_85()))
    assert [joint.name for joint in hand.fingers] == ["finger_joint", "right_outer_knuckle_joint"]
    assert parts.palm_link == "palm"
    assert parts.finger_links[0] == (
        "left_outer_knuckle", "left_outer_finger", "left_inner_finger", "left_pad", "left_inner_knuckle",
    )  # fmt: skip
    # Pads of 22 × 37.5 mm, as the description has them.
    assert (hand.pad_width, hand.pad_height) == pytest.approx((0.022, 0.0375), abs=2e-4)
    motion = hand.pad_motion
    assert motion is not None
    assert not motion.tilts.any()
    # By hand: knuckle and bar are (31.5 + 6.1, 47.1 − 4.1) mm, the pad's face 22.02 + 3.175 mm inwards from there.
    bar, pad = np.array([0.0376, 0.043]), 0.0220203446692936 + 0.00635 / 2.0
    angles = np.arctan2(bar[0], bar[1]) - np.linspace(0.8, 0.0, len(motion.apertures))
    halves = 0.0306011 + np.linalg.norm(bar) * np.sin(angles) - pad
    np.testing.assert_allclose(motion.apertures, 2.0 * halves, atol=2e-5)
    heights = np.linalg.norm(bar) * np.cos(angles)
    np.testing.assert_allclose(motion.advances, heights - heights[0], atol=2e-5)
    np.testing.assert_allclose(hand.T_tip_gripper[:3, 3], [0.0, 0.0, 0.054904 + heights[0] + 0.03242], atol=1e-4)
    # At 86 mm the pads are 14 mm further back: who took them for sliding ones would be wrong by that.
    assert motion.advances.min() == pytest.approx(-0.0139, abs=1e-4)


@pytest.mark.parametrize("hand", ["robotiq_85", "xarm", "pincer"])
def test_the_files_say_where_the_pads_are_at_every_position(hand: str, tmp_path: Path) -> None:
    """Between the rows, too, within 0.15 mm: by the description's own kinematics."""
    robot = RobotConfiguration.load(proposed(tmp_path, hand))
    gripper = Gripper.load(robot.gripper)
    description = load_robot_description(robot.description)
    robot.check_description(description)
    model = KinematicModel(description)
    links = {
        "robotiq_85": ("left_pad", "right_pad"), "xarm": ("left_finger", "right_finger"),
        "pincer": ("one_finger", "two_finger"),
    }[hand]  # fmt: skip
    rng = np.random.default_rng(0)

    def pads(aperture: float) -> tuple[np.ndarray, np.ndarray]:
        state = dict.fromkeys(model.joint_names, 0.0) | robot.finger_state(aperture)
        poses = model.forward_kinematics(state)
        T_gripper_root = invert_transform(poses[robot.tip_link] @ robot.T_tip_gripper)
        return T_gripper_root @ poses[links[0]], T_gripper_root @ poses[links[1]]

    # Where the pads are in their links is known from one opening.
    reference = float(gripper.pad_motion.apertures[4])
    offsets = [
        invert_transform(pose)[:3] @ np.array([0.0, sign * reference / 2.0, float(gripper.advance(reference)), 1.0])
        for pose, sign in zip(pads(reference), (1.0, -1.0), strict=True)
    ]
    turned = pads(reference)[0][:3, :3]
    for aperture in rng.uniform(gripper.aperture_min, gripper.aperture_max, 40):
        poses = pads(aperture)
        one, two = (pose[:3, :3] @ offset + pose[:3, 3] for pose, offset in zip(poses, offsets, strict=True))
        assert one[1] - two[1] == pytest.approx(aperture, abs=1.5e-4)
        assert one[1] + two[1] == pytest.approx(0.0, abs=1e-4)
        assert [one[2], two[2]] == pytest.approx([float(gripper.advance(aperture))] * 2, abs=1.5e-4)
        turn = poses[0][:3, :3] @ turned.T
        tilt = math.atan2(-turn[1, 2], turn[2, 2]) + float(gripper.tilt(reference))
        assert tilt == pytest.approx(float(gripper.tilt(aperture)), abs=2e-3)
        assert robot.aperture(robot.finger_state(aperture)) == pytest.approx(aperture, abs=1e-6)


@pytest.mark.parametrize("hand", ["robotiq_85", "xarm", "pincer"])
def test_boxes_hold_the_fingers_at_every_opening(hand: str, tmp_path: Path) -> None:
    from morphit_ros.geometry.mesh import sample_surface_evenly
    from morphit_ros.robot.links import collision_mesh

    robot = RobotConfiguration.load(proposed(tmp_path, hand))
    gripper, description = Gripper.load(robot.gripper), load_robot_description(robot.description)
    model, parts = KinematicModel(description), find_parts(KinematicModel(description))
    for aperture in np.linspace(gripper.aperture_min, gripper.aperture_max, 7):
        poses = model.forward_kinematics(dict.fromkeys(model.joint_names, 0.0) | robot.finger_state(float(aperture)))
        T_gripper_root = invert_transform(poses[robot.tip_link] @ robot.T_tip_gripper)
        boxes = gripper.collision_boxes(float(aperture))
        lower = np.array([box.center - box.size / 2.0 for box in boxes])
        upper = np.array([box.center + box.size / 2.0 for box in boxes])
        for name in (*parts.finger_links[0], *parts.finger_links[1], "palm"):
            for element in description.links[name].collisions:
                points, _ = sample_surface_evenly(collision_mesh(element), 300, np.random.default_rng(1))
                local = (points @ poses[name][:3, :3].T + poses[name][:3, 3]) @ T_gripper_root[:3, :3].T
                local += T_gripper_root[:3, 3]
                gaps = np.maximum(np.maximum(lower - local[:, None], local[:, None] - upper), 0.0)
                assert np.linalg.norm(gaps, axis=2).min(axis=1).max() < 1e-3, f"{name} at {aperture}"


def test_pads_that_do_not_stay_parallel_are_offered_within_the_bound_only() -> None:
    _, _, hand = measured(arm_with(pincer(parallel=0.04, reach=0.6)))
    motion = hand.pad_motion
    assert motion is not None
    # Parallel at 40 mm, as it was built; the range that is offered ends where they are turned by 20 degrees.
    assert float(np.interp(0.04, motion.apertures, motion.tilts)) == pytest.approx(0.0, abs=2e-3)
    assert np.abs(motion.tilts).max() == pytest.approx(MAX_TILT, abs=0.02)
    assert np.abs(motion.tilts).max() <= MAX_TILT
    assert (np.diff(motion.tilts) < 0.0).all()
    # Closed it meets with the edges, which keeps the middles apart.
    assert motion.apertures[0] == pytest.approx(hand.pad_height * math.sin(motion.tilts[0]), abs=1.5e-3)
    apart = pincer(parallel=0.04, reach=0.9).replace('lower="-0.9"', 'lower="0.6"')
    with pytest.raises(InvalidInputError, match=r"flat surfaces that face each other|within 20 degrees|mm² or more"):
        measured(arm_with(apart))


def test_two_motors_that_do_the_same_are_a_hand_and_one_that_turns_alone_is_none() -> None:
    follows = '<mimic joint="one_finger_joint" multiplier="1.0" offset="0"/>'
    text = arm_with(pincer())
    assert follows in text
    model, _, hand = measured(text.replace(follows, ""))
    assert {"one_finger_joint", "two_finger_joint"} <= set(model.joint_names)
    _, _, one = measured(text)
    np.testing.assert_allclose(hand.pad_motion.apertures, one.pad_motion.apertures, atol=1e-9)
    np.testing.assert_allclose(hand.finger_positions, one.finger_positions, atol=1e-9)
    # The other way round for one of them: still both close together.
    turned = text.replace(follows, "").replace(
        '<axis xyz="1 0 0"/><limit lower="-0.6"', '<axis xyz="-1 0 0"/><limit lower="-0.6"'
    )
    assert turned != text.replace(follows, "")
    _, _, other = measured(turned)
    np.testing.assert_allclose(other.pad_motion.apertures, hand.pad_motion.apertures, atol=2e-4)
    assert np.sign(np.diff(other.finger_positions[[0, -1]], axis=0)[0, 1:]).sum() == 0.0
    # Twice as fast on one side: the pads leave each other's mirror image.
    with pytest.raises(InvalidInputError, match="beside the other's mirror image"):
        measured(text.replace('multiplier="1.0"', 'multiplier="0.5"'))
    with pytest.raises(InvalidInputError, match="one finger that turns"):
        find_parts(KinematicModel(load_robot_description(text.replace(
            '<joint name="two_finger_joint" type="revolute">', '<joint name="two_finger_joint" type="fixed">'
        ).replace(follows, ""))))  # fmt: skip


def test_the_command_writes_what_the_nodes_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arm.urdf").write_text(arm_with(xarm()), encoding="utf-8")
    assert main(["robot", "init", str(tmp_path / "arm.urdf"), "--output", str(tmp_path), "--picture",
                 str(tmp_path / "hand.png"), "--name", "mine"]) == 0  # fmt: skip
    assert "0 to 86 mm" in capsys.readouterr().out
    assert (tmp_path / "hand.png").stat().st_size > 10_000
    robot, gripper = RobotConfiguration.load(tmp_path / "mine.yaml"), Gripper.load(tmp_path / "mine_gripper.yaml")
    assert robot.finger_positions is not None and gripper.pad_motion is not None
    np.testing.assert_allclose(robot.finger_positions.apertures, gripper.pad_motion.apertures)
    text = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    assert "finger_positions:" in text
    assert "read: they carry the pads" in text


@needs_examples
@pytest.mark.parametrize(
    ("name", "tip", "opening", "pad", "back"),
    [
        # PAL's gripper of TIAGo Pro, and the PR2's, whose own frame is midway between the fingertips.
        ("tiago_pro", "gripper_left_base_link", (0.0084, 0.0793), (0.02, 0.04), -0.0165),
        ("pr2", "r_gripper_palm_link", (0.0, 0.0923), (0.02, 0.0328), -0.0159),
    ],
)
def test_published_hands_that_turn(
    name: str, tip: str, opening: tuple[float, float], pad: tuple[float, float], back: float
) -> None:
    model = KinematicModel(load_robot(name)[0])
    hand = measure_turning_hand(model, find_parts(model, tip), tip)
    assert hand.pad_motion.apertures[[0, -1]] == pytest.approx(opening, abs=5e-4)
    assert (hand.pad_width, hand.pad_height) == pytest.approx(pad, abs=1e-3)
    assert hand.pad_motion.advances.min() == pytest.approx(back, abs=5e-4)
    assert not hand.pad_motion.tilts.any()


@needs_examples
def test_bent_fingertips_are_refused_with_the_size_of_what_is_flat() -> None:
    model = KinematicModel(load_robot("alex_sake_hands")[0])
    parts = find_parts(model, "RightSakePalmLink")
    with pytest.raises(InvalidInputError, match=r"13\.\d x 1\.\d mm that are parallel.*60 mm²"):
        measure_turning_hand(model, parts, "RightSakePalmLink")
