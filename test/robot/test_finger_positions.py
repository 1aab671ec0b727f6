"""Positions of fingers that turn, and what files say of them."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from hands import arm_with, pincer

from morphit_ros.errors import InvalidInputError
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.finger_positions import FingerPositions

ROWS = [[0.01, 0.2, -0.2], [0.03, 0.0, 0.0], [0.06, -0.2, 0.2]]
TABLE = FingerPositions(np.array(ROWS)[:, 0], np.array(ROWS)[:, 1:])
ROBOT: dict[str, Any] = {
    "description": "arm.urdf", "base_link": "foot", "arm_joints": ["turn", "lift", "bend", "roll", "tilt", "spin"],
    "home": [0.0] * 6, "acceleration_limits": [1.0] * 6, "gripper": "hand.yaml", "tip_link": "palm",
    "finger_joints": ["one_finger_joint", "two_finger_joint"], "touch_links": ["palm"],
    "finger_positions": [[0.01, -0.2, -0.2], [0.03, 0.0, 0.0], [0.06, 0.2, 0.2]],
}  # fmt: skip
HAND: dict[str, Any] = {
    "pad_width": 0.02, "pad_height": 0.03, "aperture": [0.01, 0.06], "max_force": 20.0, "max_speed": 0.1,
    "palm_boxes": [], "finger_boxes": [{"center": [[0.0, 0.01, 0.0]] * 3, "size": [0.02, 0.02, 0.03]}],
    "pad_motion": {"apertures": [0.01, 0.03, 0.06], "advances": [0.0, 0.001, -0.002], "tilts": [0.1, 0.0, -0.2]},
}  # fmt: skip


def test_shares_add_up_and_undo_positions() -> None:
    for aperture in np.linspace(0.0112, 0.0588, 23):
        positions = TABLE.at(aperture)
        assert TABLE.shares(positions) == pytest.approx([aperture / 2.0] * 2, abs=1e-12)
        step = 1e-7
        for k in range(2):
            moved = positions + step * np.eye(2)[k]
            rate = (TABLE.shares(moved) - TABLE.shares(positions))[k] / step
            assert TABLE.rates(positions)[k] == pytest.approx(rate, rel=1e-5)
    assert TABLE.at([0.0, 0.1]).tolist() == [[0.2, -0.2], [-0.2, 0.2]], "beyond the table its ends"


@pytest.mark.parametrize(
    ("apertures", "positions", "shown"),
    [
        ([0.0], [[0.1, 0.1]], "two rows"),
        ([0.0, 0.0], [[0.1, 0.1], [0.2, 0.2]], "growing"),
        ([-0.01, 0.02], [[0.1, 0.1], [0.2, 0.2]], "growing"),
        ([0.0, 0.02, 0.03], [[0.1, 0.1], [0.2, 0.2], [0.15, 0.3]], "joint 1"),
        ([0.0, np.nan], [[0.1, 0.1], [0.2, 0.2]], "finite"),
    ],
)
def test_tables_that_are_none_are_refused(apertures: Any, positions: Any, shown: str) -> None:
    with pytest.raises(InvalidInputError, match=shown):
        FingerPositions(np.array(apertures), np.array(positions))


def written(folder: Path, robot: dict[str, Any] | None = None, hand: dict[str, Any] | None = None) -> Path:
    (folder / "arm.urdf").write_text(arm_with(pincer()), encoding="utf-8")
    (folder / "hand.yaml").write_text(yaml.safe_dump({**copy.deepcopy(HAND), **(hand or {})}), encoding="utf-8")
    (folder / "robot.yaml").write_text(yaml.safe_dump({**copy.deepcopy(ROBOT), **(robot or {})}), encoding="utf-8")
    return folder / "robot.yaml"


def test_a_robot_knows_its_opening_with_one_finger_reported_or_both(tmp_path: Path) -> None:
    robot = RobotConfiguration.load(written(tmp_path))
    robot.check_description(load_robot_description(robot.description))
    state = robot.finger_state(0.045)
    assert state == pytest.approx({"one_finger_joint": 0.1, "two_finger_joint": 0.1})
    assert robot.aperture({"turn": 1.0, **state}) == pytest.approx(0.045)
    assert robot.aperture({"one_finger_joint": 0.1}) == pytest.approx(0.045)
    assert robot.aperture({"turn": 1.0}) is None
    # One finger held back: half of the opening is missing on its side.
    assert robot.aperture({"one_finger_joint": 0.2, "two_finger_joint": 0.0}) == pytest.approx(0.045)
    # 0.15 m/rad of both, 0.075 of each: a torque of 1.5 N m is a force of 20 N.
    assert robot.finger_forces([0.1, 0.1], [1.5, -1.5]) == pytest.approx([20.0, 20.0])


def test_sliding_fingers_add_up_as_ever() -> None:
    panda = RobotConfiguration.load("panda")
    assert panda.finger_state(0.05) == {"panda_finger_joint1": 0.025, "panda_finger_joint2": 0.025}
    assert panda.finger_shares([0.01, 0.03]).tolist() == [0.01, 0.03]
    assert panda.aperture({"panda_finger_joint1": 0.02}) == 0.04
    assert panda.finger_forces([0.01, 0.01], [-7.0, 9.0]).tolist() == [7.0, 9.0]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"finger_positions": [[0.01, 0.1], [0.03, 0.2]]}, "finger_positions.0.*3 finite numbers"),
        ({"finger_positions": 0.3}, "rows of an opening"),
        ({"finger_positions": [[0.03, 0.1, 0.1], [0.01, 0.2, 0.2]]}, "robot.yaml: finger_positions: openings"),
        ({"finger_positions": [[0.01, -0.7, -0.7], [0.06, 0.2, 0.2]]}, "limits.*-0.6, 0.6"),
        ({"finger_positions": [[0.01, -0.2, 0.2], [0.06, 0.2, -0.2]]}, "1 times 'one_finger_joint' plus 0"),
    ],
)
def test_a_table_that_the_description_contradicts_is_refused(
    changes: dict[str, Any], shown: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match=shown):
        robot = RobotConfiguration.load(written(tmp_path, changes))
        robot.check_description(load_robot_description(robot.description))


def test_fingers_that_turn_need_a_table(tmp_path: Path) -> None:
    content = {key: value for key, value in ROBOT.items() if key != "finger_positions"}
    path = written(tmp_path)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    robot = RobotConfiguration.load(path)
    with pytest.raises(InvalidInputError, match=r"revolute.*Fingers that turn need the table finger_positions"):
        robot.check_description(load_robot_description(robot.description))


def test_a_gripper_tells_where_its_pads_are(tmp_path: Path) -> None:
    written(tmp_path)
    gripper = Gripper.load(tmp_path / "hand.yaml")
    assert float(gripper.advance(0.02)) == pytest.approx(0.0005)
    assert gripper.tilt([0.01, 0.045]) == pytest.approx([0.1, -0.1])
    box = gripper.collision_boxes(0.03)[0]
    assert box.center == pytest.approx([0.0, 0.025, 0.001])
    rotation = np.array([np.diag([1.0, -1.0, -1.0])])
    frame = gripper.frames_of_pads(rotation, np.zeros((1, 3)), np.array([0.06]))
    # Pads 2 mm behind the frame's origin: seen from them it is ahead, which points down here.
    assert frame[0] == pytest.approx([0.0, 0.0, -0.002])
    assert gripper.pads_of_frames(rotation, frame, np.array([0.06]))[0] == pytest.approx(np.zeros(3))
    assert gripper.fingertips == pytest.approx(0.016)
    sliding = Gripper.load("hande")
    points = np.random.default_rng(0).normal(size=(4, 3))
    assert sliding.frames_of_pads(np.tile(np.eye(3), (4, 1, 1)), points, np.full(4, 0.02)) is points


@pytest.mark.parametrize(
    ("motion", "shown"),
    [
        ({"apertures": [0.01, 0.06]}, "exactly the keys"),
        ({"tilts": [0.1, 0.0]}, "as many finite numbers"),
        ({"tilts": [0.1, 0.0, 0.4]}, "at most 0.349 rad.*hold by their edges.*Narrow the range"),
        ({"apertures": [0.01, 0.03, 0.05]}, "from 0.01 to 0.06"),
        ({"apertures": [0.01, 0.07, 0.06]}, "growing"),
        ({"advances": [0.0, 1.0, 20.0]}, "metres"),
        ({"advances": [0.0, "x", 0.1]}, "a list of numbers"),
    ],
)
def test_pad_motions_that_are_none_are_refused(motion: dict[str, Any], shown: str, tmp_path: Path) -> None:
    whole = motion if list(motion) == ["apertures"] and len(motion["apertures"]) == 2 else HAND["pad_motion"] | motion
    written(tmp_path, hand={"pad_motion": whole})
    with pytest.raises(InvalidInputError, match=shown):
        Gripper.load(tmp_path / "hand.yaml")


def test_rows_of_boxes_are_as_many_as_openings_and_of_moving_fingers_only(tmp_path: Path) -> None:
    box = {"center": [[0.0, 0.01, 0.0]] * 2, "size": [0.02, 0.02, 0.03]}
    written(tmp_path, hand={"finger_boxes": [box]})
    with pytest.raises(InvalidInputError, match="one row of them for each opening"):
        Gripper.load(tmp_path / "hand.yaml")
    for key in ("palm_boxes", "finger_boxes"):
        content = {**yaml.safe_load((share_directory() / "config/grippers/hande.yaml").read_text("utf-8")), key: [box]}
        (tmp_path / "hand.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        with pytest.raises(InvalidInputError, match="three numbers"):
            Gripper.load(tmp_path / "hand.yaml")
