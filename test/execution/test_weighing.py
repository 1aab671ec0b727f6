"""Mass and centre of mass from what the arm feels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.weighing import Load, Scale, effort_scale, wrench_scale
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.link_masses import GRAVITY, link_masses, weight_efforts


@pytest.fixture(scope="module")
def panda() -> tuple[KinematicModel, RobotConfiguration]:
    robot = RobotConfiguration.load("panda")
    return KinematicModel(load_robot_description(robot.description)), robot


def drawn(robot: RobotConfiguration, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return dict(zip(robot.arm_joints, (robot.home + rng.uniform(-0.3, 0.3, 7)).tolist(), strict=True))


def energy_efforts(
    kinematics: KinematicModel, robot: RobotConfiguration, positions: Mapping[str, float], mass: float, center: Array
) -> Array:
    """What a mass at a point of the gripper's frame asks of the motors: differences of its potential energy."""

    def height(joints: Mapping[str, float]) -> float:
        return float(transform_points(robot.gripper_pose(kinematics, joints), center[None])[0, 2])

    def moved(name: str, step: float) -> dict[str, float]:
        return {**positions, name: positions[name] + step}

    step = 1e-5
    slopes = [(height(moved(name, step)) - height(moved(name, -step))) / (2 * step) for name in robot.arm_joints]
    return GRAVITY * mass * np.array(slopes)


def line_distance(load: Load, center: Array) -> float:
    """How far a point of the gripper's frame is from the vertical that was weighed [m]."""
    offset = center - load.center
    up = load.T_base_gripper[2, :3]
    return float(np.linalg.norm(offset - up * (up @ offset)))


def read_twice(scale: Scale, positions: Mapping[str, float], efforts: Array, sigma: float, seed: int) -> Load | None:
    rng = np.random.default_rng(seed)
    scale.tare([rng.normal(0.0, sigma, 7) for _ in range(12)], positions)
    return scale.load([efforts + rng.normal(0.0, sigma, 7) for _ in range(15)], positions)


@pytest.mark.parametrize("seed", range(5))
def test_mass_and_vertical_of_a_load_are_those_of_its_potential_energy(
    panda: tuple[KinematicModel, RobotConfiguration], seed: int
) -> None:
    positions, center = drawn(panda[1], seed), np.random.default_rng(seed).uniform(-0.08, 0.08, 3)
    load = read_twice(effort_scale(*panda), positions, energy_efforts(*panda, positions, 0.4, center), 0.0, 0)
    assert load is not None
    assert load.mass == pytest.approx(0.4, rel=1e-4)
    assert line_distance(load, center) < 1e-4


def test_stated_deviations_are_those_of_the_errors(panda: tuple[KinematicModel, RobotConfiguration]) -> None:
    center, masses, centers = np.array([0.03, -0.05, 0.02]), [], []
    for seed in range(60):
        positions = drawn(panda[1], seed)
        load = read_twice(effort_scale(*panda), positions, energy_efforts(*panda, positions, 0.3, center), 0.02, seed)
        assert load is not None
        masses.append((load.mass - 0.3) / load.mass_deviation)
        centers.append(line_distance(load, center) / load.center_deviation)
    # One number each, two directions of which the worse counts: about 1, and between 1 and √2.
    assert 0.7 < np.sqrt(np.mean(np.square(masses))) < 1.4
    assert 0.7 < np.sqrt(np.mean(np.square(centers))) < 1.8


def test_what_no_weight_explains_has_a_large_deviation(panda: tuple[KinematicModel, RobotConfiguration]) -> None:
    positions = drawn(panda[1], 0)
    efforts = energy_efforts(*panda, positions, 0.3, np.zeros(3))
    # As currents of motors whose torque constants differ.
    wrong = read_twice(effort_scale(*panda), positions, efforts * np.array([1, 0.2, 3, 1, 5, 0.3, 1]), 0.0, 0)
    assert wrong is not None
    assert wrong.mass_deviation > 0.05 * wrong.mass


def test_no_weight_and_too_few_readings_are_no_load(panda: tuple[KinematicModel, RobotConfiguration]) -> None:
    scale, positions = effort_scale(*panda), drawn(panda[1], 0)
    assert read_twice(scale, positions, np.zeros(7), 0.0, 0) is None
    assert read_twice(scale, positions, -energy_efforts(*panda, positions, 0.3, np.zeros(3)), 0.0, 0) is None
    scale.tare([], positions)
    assert scale.load([energy_efforts(*panda, positions, 0.3, np.zeros(3))] * 20, positions) is None


def test_efforts_that_carry_the_arm_too_are_compared_by_its_masses(
    panda: tuple[KinematicModel, RobotConfiguration],
) -> None:
    kinematics, robot = panda
    own = weight_efforts(kinematics, robot.arm_joints, robot.base_link)
    empty, loaded = ({**dict.fromkeys(robot.finger_joints, 0.0), **drawn(robot, seed)} for seed in (1, 2))
    scale = effort_scale(kinematics, robot, own_weight=True)
    scale.tare([own(empty)] * 10, empty)
    center = np.array([0.0, 0.04, 0.01])
    load = scale.load([own(loaded) + energy_efforts(kinematics, robot, loaded, 0.5, center)] * 10, loaded)
    assert load is not None
    assert load.mass == pytest.approx(0.5, rel=1e-3)
    assert line_distance(load, center) < 1e-3


def test_the_arms_own_weight_is_the_slope_of_its_energy(panda: tuple[KinematicModel, RobotConfiguration]) -> None:
    kinematics, robot = panda
    masses = link_masses(kinematics.description)
    positions = {**dict.fromkeys(robot.finger_joints, 0.0), **drawn(robot, 3)}

    def energy(joints: Mapping[str, float]) -> float:
        poses = kinematics.forward_kinematics(joints)
        heights = [item.mass * transform_points(poses[link], item.center[None])[0, 2] for link, item in masses.items()]
        return GRAVITY * float(np.sum(heights))

    step = 1e-5
    slopes = [
        (energy({**positions, name: positions[name] + step}) - energy({**positions, name: positions[name] - step}))
        / (2 * step)
        for name in robot.arm_joints
    ]
    assert weight_efforts(kinematics, robot.arm_joints, robot.base_link)(positions) == pytest.approx(slopes, abs=1e-5)


LINK = '<robot name="r"><link name="a">{}</link></robot>'


def test_masses_that_are_no_numbers_and_descriptions_without_any_are_refused() -> None:
    bad = LINK.format('<inertial><mass value="much"/></inertial>')
    with pytest.raises(InvalidInputError, match="link 'a': inertial: got 'much'"):
        link_masses(load_robot_description(bad))
    with pytest.raises(InvalidInputError, match="robot r: masses: got none"):
        weight_efforts(KinematicModel(load_robot_description(LINK.format(""))), (), "a")


def load_at(center: Array, mass: float, resting: Load | None = None) -> Load:
    """Weighed at (0.5, 0, 0.2) with the gripper pointing down."""
    pose = make_transform(matrix_from_rpy((np.pi, 0.0, 0.0)), (0.5, 0.0, 0.2))
    return Load(mass, center, pose, 0.003, 0.003, resting)


BAR = np.array([[x, y, z] for x in np.linspace(0.4, 0.6, 21) for y in (-0.01, 0.01) for z in (0.0, 0.03)])


def test_the_centre_lies_on_the_vertical_at_the_middle_of_the_height() -> None:
    assert load_at(np.array([0.06, 0.0, 0.0]), 0.4).center_within(BAR) == pytest.approx([0.56, 0.0, 0.015])


def test_a_centre_beyond_the_object_is_moved_onto_it() -> None:
    assert load_at(np.array([0.4, 0.0, 0.0]), 0.1).center_within(BAR) == pytest.approx([0.59, 0.0, 0.015])


def test_the_centre_of_what_turned_in_the_hand_lies_between_grip_and_support() -> None:
    # A bar of 0.4 kg with its centre 54 mm beside the grip; the table bore 0.24 kg at its end, 90 mm away. Along the
    # pads' normal its centre is where it hangs.
    hangs = np.array([0.02, 0.004, 0.0])
    # The table's friction reads as a torque, one way or the other.
    for read in (-0.1, 0.0, 0.3):
        resting = load_at(np.array([read, 0.05, 0.0]), 0.16)
        hanging = load_at(hangs, 0.4, resting)
        assert hanging.turned_since(resting)
        assert hanging.center_within(BAR) == pytest.approx([0.554, -0.004, 0.015], abs=1e-6)
    # Further out than it hangs now it was never.
    far = load_at(np.array([0.08, 0.0, 0.0]), 0.4, load_at(np.array([0.3, 0.0, 0.0]), 0.16))
    assert far.center_within(BAR) == pytest.approx([0.58, 0.0, 0.015], abs=1e-6)


def test_what_hangs_lower_than_it_was_weighed_has_turned() -> None:
    level = load_at(np.array([0.06, 0.009, 0.0]), 0.4)
    lower = load_at(np.array([0.04, 0.009, 0.0]), 0.4, level)
    assert lower.turned_since(level)
    assert not level.turned_since(lower)
    assert not level.turned_since(level)
    # All of its weight was in the hand before: there its centre is where it was read.
    assert lower.center_within(BAR) == pytest.approx([0.56, -0.009, 0.015], abs=1e-6)


def test_what_may_be_noise_is_no_turn() -> None:
    level = replace(load_at(np.array([0.06, 0.0, 0.0]), 0.4), center_deviation=0.006)
    lower = replace(load_at(np.array([0.04, 0.0, 0.0]), 0.4), center_deviation=0.006)
    assert not lower.turned_since(level)


def measured_wrench(
    kinematics: KinematicModel, robot: RobotConfiguration, positions: Mapping[str, float], mass: float, center: Array,
    link: str,
) -> Array:  # fmt: skip
    """What hangs on a sensor in the frame of a link: the weight at a point of the gripper's frame, by statics."""
    joints = {**dict.fromkeys(robot.finger_joints, 0.0), **positions}
    T_base_sensor = np.linalg.inv(kinematics.link_pose(joints, robot.base_link)) @ kinematics.link_pose(joints, link)
    place = transform_points(robot.gripper_pose(kinematics, positions), center[None])[0]
    weight = np.array([0.0, 0.0, -GRAVITY * mass])
    about = np.cross(place - T_base_sensor[:3, 3], weight)
    return np.concatenate([T_base_sensor[:3, :3].T @ weight, T_base_sensor[:3, :3].T @ about])


@pytest.mark.parametrize(("link", "sign"), [("panda_link8", 1.0), ("panda_hand", -1.0), ("panda_link7", 1.0)])
def test_a_force_sensor_weighs_whichever_way_it_counts_and_whatever_it_has_always_read(
    panda: tuple[KinematicModel, RobotConfiguration], link: str, sign: float
) -> None:
    values: list[Array] = []
    scale = wrench_scale(*panda, link, lambda _: values[-1])
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        positions, center = drawn(panda[1], seed), rng.uniform(-0.08, 0.08, 3)
        always = np.array([4.0, -2.0, 12.0, 0.3, 0.1, -0.2])
        wrench = always + sign * measured_wrench(*panda, positions, 0.4, center, link)
        noise = np.repeat([0.5, 0.02], 3)
        scale.tare([always + noise * rng.normal(size=6) for _ in range(20)], positions)
        load = scale.load([wrench + noise * rng.normal(size=6) for _ in range(40)], positions)
        assert load is not None
        errors.append((abs(load.mass - 0.4) / load.mass_deviation, line_distance(load, center) / load.center_deviation))
        assert line_distance(load, center) < 0.01 and load.mass == pytest.approx(0.4, abs=0.05)
    mass, place = np.sqrt(np.mean(np.square(errors), axis=0))
    assert 0.7 < mass < 1.4 and 0.7 < place < 1.8


@pytest.mark.parametrize("link", ["unicorn", "panda_link5", "panda_link0", ""])
def test_a_sensor_that_does_not_carry_the_hand_is_refused(
    panda: tuple[KinematicModel, RobotConfiguration], link: str
) -> None:
    with pytest.raises(InvalidInputError, match="wrench: frame"):
        wrench_scale(*panda, link, lambda _: None)
