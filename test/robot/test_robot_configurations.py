"""The robots that come along load everywhere and are built as their makers say; a wrong file is refused with reason."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import load_gripper
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description

FOLDER = share_directory() / "config/robots"
ROBOTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
FINGERED = [name for name in ROBOTS if RobotConfiguration.load(name).finger_joints]
DATA = Path(os.environ.get("MORPHIT_DATA") or Path(__file__).parents[2].parent / "shared/data").resolve()
NAN = float("nan")


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a ROS installation nor test data: the shapes of our own."""
    for name in ("MORPHIT_DATA", "AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH", "MORPHIT_PACKAGE_PATH"):
        monkeypatch.delenv(name, raising=False)


def kinematics(name: str) -> tuple[RobotConfiguration, KinematicModel]:
    robot = RobotConfiguration.load(name)
    return robot, KinematicModel(load_robot_description(robot.description))


def positions(model: KinematicModel, robot: RobotConfiguration, values: Any) -> dict[str, float]:
    return dict.fromkeys(model.joint_names, 0.0) | dict(zip(robot.arm_joints, values, strict=True))


def test_the_four_combinations_are_there() -> None:
    assert {"panda", "ur3e_hande", "ur5e_hande", "iiwa_umi"} <= set(ROBOTS)


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_fits_its_description_and_its_gripper(name: str) -> None:
    robot = RobotConfiguration.load(name)
    description = load_robot_description(robot.description)
    robot.check_description(description)
    gripper = load_gripper(robot.gripper)
    fingers = [description.joints[joint] for joint in robot.finger_joints]
    if isinstance(gripper, Gripper):
        assert sum(joint.lower for joint in fingers) == pytest.approx(gripper.aperture_min, abs=1e-6)
        assert sum(joint.upper for joint in fingers) == pytest.approx(gripper.aperture_max, abs=1e-6)
    else:
        assert fingers == []
    semantics = load_semantic_description(robot.semantic_description)
    for pair in semantics.disabled_pairs:
        assert pair.links <= set(description.links)


@pytest.mark.parametrize("name", ROBOTS)
def test_gripper_points_down_at_home_above_the_table(name: str) -> None:
    robot, model = kinematics(name)
    T = model.link_pose(positions(model, robot, robot.home.tolist()), robot.tip_link) @ robot.T_tip_gripper
    assert T[:3, 2] == pytest.approx([0.0, 0.0, -1.0], abs=0.02)
    assert 0.2 < T[2, 3] + robot.base_position[2] < 0.6


@pytest.mark.parametrize("name", FINGERED)
@pytest.mark.parametrize("aperture", [0.0, 0.03])
def test_gripper_frame_is_midway_and_finger_one_on_its_positive_side(name: str, aperture: float) -> None:
    robot, model = kinematics(name)
    state = positions(model, robot, robot.home.tolist())
    state |= dict.fromkeys(robot.finger_joints, aperture / 2.0)
    T_gripper_root = np.linalg.inv(model.link_pose(state, robot.tip_link) @ robot.T_tip_gripper)
    description = load_robot_description(robot.description)
    for joint, side in zip(robot.finger_joints, (1.0, -1.0), strict=True):
        link = description.joints[joint].child
        closed = {**state, **dict.fromkeys(robot.finger_joints, 0.0)}
        moved = (T_gripper_root @ model.link_pose(state, link))[:3, 3]
        start = (T_gripper_root @ model.link_pose(closed, link))[:3, 3]
        assert moved - start == pytest.approx([0.0, side * aperture / 2.0, 0.0], abs=1e-6)


def test_ur5e_reaches_where_its_published_parameters_say() -> None:
    robot, model = kinematics("ur5e_hande")
    # All joints at zero: a2 + a3 forward, d4 + d6 to the side, d1 − d5 up.
    T = model.link_pose(positions(model, robot, [0.0] * 6), "tool0")
    assert T[:3, 3] == pytest.approx([0.425 + 0.3922, 0.1333 + 0.0996, 0.1625 - 0.0997], abs=1e-6)
    assert T[:3, 2] == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)
    # Arm straight up.
    T = model.link_pose(positions(model, robot, [0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0]), "tool0")
    assert T[2, 3] == pytest.approx(0.1625 + 0.425 + 0.3922 + 0.0997, abs=1e-6)


def test_iiwa_has_the_links_of_its_data_sheet() -> None:
    robot, model = kinematics("iiwa_umi")
    assert model.link_pose(positions(model, robot, [0.0] * 7), "lbr_link_ee")[:3, 3] == pytest.approx([0, 0, 1.306])
    # Elbow bent by 90°: the forearm lies level above the upper arm, the hand points on.
    T = model.link_pose(positions(model, robot, [0, 0, 0, -np.pi / 2, 0, 0, 0]), "lbr_link_ee")
    assert T[:3, 3] == pytest.approx([0.40 + 0.126, 0.0, 0.36 + 0.42], abs=1e-9)
    lower, upper, speed = model.limits(robot.arm_joints)
    assert np.degrees(upper) == pytest.approx([170, 120, 170, 120, 170, 120, 175])
    assert lower == pytest.approx(-upper)
    assert np.degrees(speed) == pytest.approx([85, 85, 100, 75, 130, 135, 135])


def test_our_panda_moves_like_the_makers_with_a_cup_in_place_of_the_hand() -> None:
    (robot, ours), (_, theirs) = kinematics("panda_cup"), kinematics("panda")
    for mine, makers in zip(ours.limits(robot.arm_joints), theirs.limits(robot.arm_joints), strict=True):
        assert mine == pytest.approx(makers)
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.uniform(-np.pi, np.pi, 7)
        poses = [model.link_pose(positions(model, robot, values), "panda_link8") for model in (ours, theirs)]
        assert poses[0] == pytest.approx(poses[1], abs=1e-9)
    # The lip is as far in front of the flange as mount and cup are long.
    T = ours.link_pose(positions(ours, robot, values), robot.tip_link)
    assert np.linalg.inv(poses[0]) @ T == pytest.approx(make_transform(translation=(0.0, 0.0, 0.135)), abs=1e-9)


@pytest.mark.skipif(not (DATA / "robots/ur_description").is_dir(), reason="the maker's UR3e is not in MORPHIT_DATA")
def test_our_ur3e_moves_like_the_makers(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, ours = kinematics("ur3e_hande")
    monkeypatch.setenv("MORPHIT_PACKAGE_PATH", str(DATA / "robots"))
    theirs = KinematicModel(load_robot_description(DATA / "robots/ur_description/urdf/ur3e.urdf"))
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.uniform(-np.pi, np.pi, 6)
        for link in ("upper_arm_link", "wrist_3_link", "tool0"):
            expected = theirs.link_pose(dict(zip(robot.arm_joints, values, strict=True)), link)
            assert ours.link_pose(positions(ours, robot, values), link) == pytest.approx(expected, abs=1e-5)


@pytest.mark.skipif(not (DATA / "robots/ur_description").is_dir(), reason="the maker's UR3e is not in MORPHIT_DATA")
def test_meshes_of_the_ur3e_are_used_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = load_robot_description(RobotConfiguration.load("ur3e_hande").description)
    monkeypatch.setenv("MORPHIT_DATA", str(DATA))
    robot = RobotConfiguration.load("ur3e_hande")
    meshes = load_robot_description(robot.description)
    robot.check_description(meshes)
    assert set(meshes.links) == set(plain.links)
    assert all(len(meshes.links[link].collisions) == 1 for link in ("forearm_link", "wrist_3_link"))
    # Seen from outside, ours are not far from them: their boxes agree to 2 cm.
    from morphit_ros.robot.links import collision_mesh

    for link in (
        "base_link_inertia",
        "shoulder_link",
        "upper_arm_link",
        "forearm_link",
        "wrist_1_link",
        "wrist_2_link",
    ):
        real = collision_mesh(meshes.links[link].collisions[0]).vertices
        own = np.concatenate([collision_mesh(shape).vertices for shape in plain.links[link].collisions])
        assert np.abs(own.min(axis=0) - real.min(axis=0)).max() < 0.02
        assert np.abs(own.max(axis=0) - real.max(axis=0)).max() < 0.02


UR5E = yaml.safe_load((FOLDER / "ur5e_hande.yaml").read_text(encoding="utf-8"))


def load(folder: Path, text: str | None = None, drop: str = "", **values: Any) -> RobotConfiguration:
    content = {**copy.deepcopy(UR5E), "description": str(share_directory() / "urdf/ur5e_hande.urdf.xacro"), **values}
    content.pop(drop, None)
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(content) if text is None else text, encoding="utf-8")
    return RobotConfiguration.load(path)


@pytest.mark.parametrize(
    ("key", "value", "shown", "bound"),
    [
        ("home", [0.0] * 5, "[0.0, 0.0, 0.0, 0.0, 0.0]", "6 finite numbers"),
        ("home", [0.0] * 5 + [NAN], "nan", "6 finite numbers"),
        ("home", [0.0] * 5 + ["up"], "up", "6 finite numbers"),
        ("home", 0.0, "0.0", "6 finite numbers"),
        ("acceleration_limits", [1.0] * 7, "1.0", "6 finite numbers"),
        ("acceleration_limits", [1.0] * 5 + [0.0], "0.0", "positive"),
        ("arm_joints", [], "[]", "a list of names"),
        ("arm_joints", ["elbow_joint"] * 6, "elbow_joint", "each name once"),
        ("arm_joints", "elbow_joint", "elbow_joint", "a list of names"),
        ("finger_joints", [1, 2], "[1, 2]", "a list of names"),
        ("touch_links", None, "None", "a list of names"),
        ("base_link", "", "''", "not empty"),
        ("tip_link", 3, "3", "a text"),
        ("tip_to_gripper", {"xyz": [0, 0, 0]}, "xyz", "exactly the keys xyz, rpy"),
        ("tip_to_gripper", {"xyz": [0, 0, 0, 0], "rpy": [0, 0, 0]}, "[0, 0, 0, 0]", "3 finite numbers"),
        ("tip_to_gripper", {"xyz": [0, 0, 0], "rpy": [0, NAN, 0]}, "nan", "3 finite numbers"),
        ("workcell", {"base_position": [0, 0]}, "base_position", "exactly the keys base_position, base_yaw"),
        ("workcell", {"base_position": [0, 0, 1e9], "base_yaw": 0.0}, "1000000000.0", "3 finite numbers up to 100"),
        ("workcell", {"base_position": [0, 0, 0], "base_yaw": "left"}, "left", "1 finite number"),
        ("moveit", ["arm"], "arm", "names by key"),
        ("description", [], "[]", "a path or URI"),
        ("description", [{"urdf": "a.urdf", "needs": ["no_such_package"]}], "no_such_package", "None of them"),
        ("description", [{"urdf": "a.urdf"}], "a.urdf", "a path or URI"),
    ],
)
def test_bad_value_is_named_with_file_value_and_bound(
    tmp_path: Path, key: str, value: Any, shown: str, bound: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        load(tmp_path, **{key: value})
    for part in ("mine.yaml", key, shown, bound):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "shown", "bound"),
    [
        ("base_link", "pelvis", "pelvis", "a link of 'ur5e_hande'"),
        ("tip_link", "hand", "hand", "a link of"),
        ("tip_link", "upper_arm_link", "upper_arm_link", "moved by elbow_joint, wrist_1_joint"),
        ("touch_links", ["thumb"], "thumb", "a link of"),
        ("arm_joints", [*UR5E["arm_joints"][:5], "wrist_9_joint"], "wrist_9_joint", "a joint of"),
        ("arm_joints", [*UR5E["arm_joints"][:5], "flange_to_tool0"], "fixed", "revolute"),
        ("finger_joints", ["elbow_joint"], "elbow_joint", "prismatic"),
        ("finger_joints", ["thumb_joint"], "thumb_joint", "a joint of"),
        ("home", [0.0, 0.0, 3.5, 0.0, 0.0, 0.0], "3.5", "limits [-3.14159, 3.14159]"),
    ],
)
def test_what_does_not_fit_the_description_is_named(
    tmp_path: Path, key: str, value: Any, shown: str, bound: str
) -> None:
    robot = load(tmp_path, **{key: value})
    with pytest.raises(InvalidInputError) as caught:
        robot.check_description(load_robot_description(robot.description))
    for part in ("ur5e_hande", key.split("_")[0], shown, bound):
        assert part in str(caught.value)


def test_unknown_and_missing_keys_files_and_grippers_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"mine\.yaml.*missing home.*unknown colour"):
        load(tmp_path, drop="home", colour="red")
    for text in ("", "- a\n", "{a: [", "word"):
        with pytest.raises(InvalidInputError, match=r"mine\.yaml"):
            load(tmp_path, text=text)
    with pytest.raises(ResourceNotFoundError, match=r"mine\.yaml: gripper claw.*franka_hand, hande, umi"):
        load(tmp_path, gripper="claw")
    with pytest.raises(ResourceNotFoundError, match=r"claw\.yaml"):
        load(tmp_path, gripper="claw.yaml")
    with pytest.raises(ResourceNotFoundError, match=r"nowhere\.yaml"):
        RobotConfiguration.load(tmp_path / "nowhere.yaml")
    with pytest.raises(ResourceNotFoundError, match="iiwa_umi, panda, panda_cup, ur3e_cup, ur3e_hande, ur5e_hande"):
        RobotConfiguration.load("pepper")


def test_workcell_may_be_left_out_and_paths_begin_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "claw.yaml").write_text("", encoding="utf-8")
    robot = load(tmp_path, drop="workcell", description="arm/mine.urdf", gripper="claw.yaml", semantic_description="")
    assert robot.base_position == (0.0, 0.0, 0.0)
    assert robot.base_yaw == 0.0
    assert robot.description == str(tmp_path / "arm/mine.urdf")
    assert robot.gripper == str(tmp_path / "claw.yaml")
    assert robot.semantic_description == ""
    uri = "package://maker/arm.urdf"
    assert load(tmp_path, description=uri).description == uri


def test_first_description_that_has_what_it_needs_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        {"urdf": "made.urdf", "needs": ["maker", "hand_maker"]},
        {"urdf": "meshes.urdf", "needs": ["$MINE/part.stl"]},
        "plain.urdf",
    ]

    def chosen() -> str:
        return Path(load(tmp_path, description=entries).description).name

    assert chosen() == "plain.urdf"
    monkeypatch.setenv("MINE", str(tmp_path))
    assert chosen() == "plain.urdf"
    (tmp_path / "part.stl").touch()
    assert chosen() == "meshes.urdf"
    for package in ("maker", "hand_maker"):
        assert chosen() == "meshes.urdf"
        (tmp_path / "prefix/share" / package).mkdir(parents=True)
        (tmp_path / "prefix/share" / package / "package.xml").touch()
        monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'prefix'}")
    assert chosen() == "made.urdf"
