"""A gripper's file that is wrong is refused with file, key, value and bound; the ones that come along are right."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.resources import share_directory

FILES = sorted((share_directory() / "config/grippers").glob("*.yaml"))
HANDE = yaml.safe_load((share_directory() / "config/grippers/hande.yaml").read_text(encoding="utf-8"))
NAN, INF = float("nan"), float("inf")


def written(folder: Path, content: Any) -> Path:
    path = folder / "mine.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def changed(**values: Any) -> dict[str, Any]:
    return {**copy.deepcopy(HANDE), **values}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_that_come_along_load_by_name_and_by_path(path: Path) -> None:
    gripper = Gripper.load(path.stem)
    assert gripper.name == path.stem
    assert Gripper.load(path).aperture_max == gripper.aperture_max
    assert len(gripper.collision_boxes(0.01)) == len(gripper.palm_boxes) + 2 * len(gripper.finger_boxes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_boxes_agree_with_the_pads(path: Path) -> None:
    """Beside a pad no box reaches past its plane, and boxes that end in it cover it, to the millimetre."""
    gripper = Gripper.load(path)
    points = gripper.pad_points
    covered = np.zeros(len(points), dtype=bool)
    for box in gripper.finger_boxes:
        near_face = box.center[1] - box.size[1] / 2.0
        beside = box.center[2] + box.size[2] / 2.0 > -gripper.pad_height / 2.0 + 1e-3
        assert near_face > -1e-3 or not beside
        if abs(near_face) < 1e-3:
            covered |= (np.abs(points - box.center)[:, [0, 2]] <= box.size[[0, 2]] / 2.0 + 1e-3).all(axis=1)
    assert covered.all()
    # The fingers clear the palm: they begin in front of it, or slide along it.
    assert all(box.center[2] < 0.0 for box in gripper.palm_boxes)


@pytest.mark.parametrize(
    ("key", "value", "shown", "bound"),
    [
        ("aperture", [0.06, 0.05], "[0.06, 0.05]", "0 <= min < max"),
        ("aperture", [0.05, 0.05], "[0.05, 0.05]", "0 <= min < max"),
        ("aperture", [-0.01, 0.05], "[-0.01, 0.05]", "0 <= min < max"),
        ("aperture", [NAN, 0.05], "nan", "0 <= min < max"),
        ("aperture", [0.0, NAN], "nan", "above 0"),
        ("aperture", 0.05, "0.05", "two numbers"),
        ("aperture", [0.0, 0.02, 0.05], "[0.0, 0.02, 0.05]", "two numbers"),
        ("aperture", [0.0, 50.0], "50", "at most 1"),
        ("aperture", [0.0, "wide"], "wide", "a number"),
        ("pad_width", 0.0, "0.0", "above 0"),
        ("pad_width", -0.02, "-0.02", "above 0"),
        ("pad_width", NAN, "nan", "above 0"),
        ("pad_height", INF, "inf", "at most 1"),
        ("pad_height", 20.0, "20.0", "metres"),
        ("pad_height", None, "None", "a number"),
        ("pad_height", True, "True", "a number"),
        ("pad_step", 0.0, "0.0", "in [0.0001, 0.02]"),
        ("pad_step", 1e-9, "1e-09", "in [0.0001, 0.02]"),
        ("pad_step", 0.021, "0.021", "shorter side"),
        ("pad_step", NAN, "nan", "in [0.0001, 0.02]"),
        ("max_force", -1.0, "-1.0", "above 0"),
        ("max_force", NAN, "nan", "above 0"),
        ("max_force", "185 N", "185 N", "a number"),
        ("min_force", -1.0, "-1.0", "from 0 to max_force"),
        ("min_force", 1e3, "1000.0", "from 0 to max_force"),
        ("min_force", NAN, "nan", "from 0 to max_force"),
        ("min_force", "20 N", "20 N", "a number"),
        ("max_speed", 0, "0", "above 0"),
        ("max_speed", 75.0, "75.0", "at most 1"),
        ("name", 7, "7", "a text"),
        ("name", "", "''", "not empty"),
        ("palm_boxes", None, "None", "a list"),
        ("palm_boxes", [{"center": [0, 0, 0]}], "center", "exactly the keys center, size"),
        ("palm_boxes", [{"center": [0, 0], "size": [1, 1, 1]}], "[0, 0]", "three numbers"),
        ("palm_boxes", [{"center": [0, 0, "z"], "size": [1, 1, 1]}], "'z'", "three numbers"),
        ("finger_boxes", [{"center": [0, 0, 0], "size": [0.01, -0.01, 0.01]}], "-0.01", "above 0"),
        ("finger_boxes", [{"center": [0, 0, 0], "size": [0.01, NAN, 0.01]}], "nan", "above 0"),
        ("finger_boxes", [{"center": [0, INF, 0], "size": [0.01, 0.01, 0.01]}], "inf", "finite"),
        ("finger_boxes", [{"center": [0, 0, 0], "size": [10.0, 10.0, 10.0]}], "10.0", "metres"),
    ],
)
def test_bad_value_is_named_with_file_value_and_bound(
    tmp_path: Path, key: str, value: Any, shown: str, bound: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Gripper.load(written(tmp_path, changed(**{key: value})))
    for part in ("mine.yaml", key, shown, bound):
        assert part in str(caught.value)


def test_least_force_is_zero_where_the_file_has_none(tmp_path: Path) -> None:
    content = changed()
    del content["min_force"]
    assert Gripper.load(written(tmp_path, content)).min_force == 0.0
    assert Gripper.load(written(tmp_path, changed(min_force=2.5))).min_force == 2.5
    hand = Gripper.load("hande")
    assert (hand.min_force, hand.max_force) == (20.0, 185.0)


def test_unknown_and_missing_keys_are_named(tmp_path: Path) -> None:
    content = changed(colour="red")
    del content["pad_width"]
    with pytest.raises(InvalidInputError, match=re.escape("missing pad_width; unknown colour")):
        Gripper.load(written(tmp_path, content))


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "{a: [", "name: !!python/object:os.system {}\n"])
def test_what_is_no_gripper_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"mine\.yaml"):
        Gripper.load(written(tmp_path, text))


def test_missing_gripper_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match="franka_hand, hande, umi"):
        Gripper.load("hand-e")
    with pytest.raises(ResourceNotFoundError, match=r"nowhere\.yaml"):
        Gripper.load(tmp_path / "nowhere.yaml")
