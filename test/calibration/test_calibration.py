"""Cameras are found by the arm that they see, and what is not certain is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from morphit_ros.calibration.alignment import seen_through
from morphit_ros.calibration.angular_grid import AngularGrid
from morphit_ros.calibration.calibrate import CalibrationConfig, calibrate_camera
from morphit_ros.calibration.moving_points import moving_points
from morphit_ros.calibration.plausible import plausibility
from morphit_ros.calibration.poses import draw_poses
from morphit_ros.calibration.robot_surface import RobotSurface
from morphit_ros.calibration.views import camera_views
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    rotation_angle,
    transform_points,
)
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.simulation.arm_views import see_arm_at
from morphit_ros.simulation.cameras import CameraConfig
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

SMALL = CameraConfig(width=160, height=144, flying_pixels=0.4, noise_growth=0.001)
QUICK = CalibrationConfig(rotations=24)


class Recorded(NamedTuple):
    """One camera of a simulated recording."""

    robot: RobotConfiguration
    surface: RobotSurface
    positions: list[dict[str, float]]
    clouds: list[Array]
    truth: Array

    def errors(self, found: Array | None) -> tuple[float, float]:
        """Of a pose: amid the arm's poses [m], and its turn [rad]."""
        assert found is not None
        change = found @ invert_transform(self.truth)
        middle = np.array([0.26, 0.0, 0.25])
        shift = float(np.linalg.norm(transform_points(change, middle) - middle))
        return shift, rotation_angle(change[:3, :3])


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    robot = RobotConfiguration.load("ur3e_hande")
    surface = RobotSurface(load_robot_description(robot.description), robot.base_link, spacing=0.008)
    with Workcell(WorkcellConfig(robot="ur3e_hande", object="mug", camera=SMALL)) as cell:
        T_base_world = invert_transform(cell.T_world_base)
        middle = transform_points(T_base_world, np.array([0.5, 0.0, 0.25])).tolist()
        poses = draw_poses(robot, surface, 9, 3, middle, 0.2)
        positions, clouds = see_arm_at(cell, poses, robot.arm_joints, 3, joint_noise=0.0005, stray=0.005)
        truth = T_base_world @ cell.T_world_camera("left")
    return Recorded(robot, surface, positions, clouds["left"], truth)


def test_a_camera_is_found_from_nothing(recorded: Recorded) -> None:
    found = calibrate_camera(recorded.clouds, recorded.positions, recorded.surface, config=QUICK)
    assert found.problems == () and found.notes == ()
    shift, turn = recorded.errors(found.T_base_camera)
    assert shift < 0.0015 and turn < np.radians(0.15)
    assert found.poses == 9 and found.matched > 0.8 and found.seen_through < 0.01
    # What it says of itself: of the size of what it is off by.
    off = float(np.linalg.norm(found.T_base_camera[:3, 3] - recorded.truth[:3, 3]))
    assert 0.2 * off < float(np.linalg.norm(found.std_position)) < 0.0015
    assert found.held_out == pytest.approx(found.sigma, rel=0.5)


def test_a_guess_may_be_off_by_30_cm_and_40_degrees(recorded: Recorded) -> None:
    turn = matrix_from_rotation_vector(np.radians(40.0) * np.array([0.6, -0.64, 0.48]))
    truth = recorded.truth
    guess = make_transform(turn @ truth[:3, :3], truth[:3, 3] + [0.2, -0.2, 0.1])
    found = calibrate_camera(recorded.clouds, recorded.positions, recorded.surface, guess, QUICK)
    assert found.good and recorded.errors(found.T_base_camera)[0] < 0.0015


def test_joints_of_other_poses_are_refused(recorded: Recorded) -> None:
    shuffled = [*recorded.positions[3:], *recorded.positions[:3]]
    found = calibrate_camera(recorded.clouds, shuffled, recorded.surface, recorded.truth, QUICK)
    assert not found.good
    assert "looks through" in " ".join(found.problems)


def test_an_arm_that_hardly_moves_is_refused_with_the_remedy(recorded: Recorded) -> None:
    # The same pose again and again, but one.
    clouds, positions = [recorded.clouds[0]] * 8 + [recorded.clouds[1]], [recorded.positions[0]] * 8
    found = calibrate_camera(clouds, [*positions, recorded.positions[1]], recorded.surface, None, QUICK)
    assert not found.good and found.T_base_camera is None
    assert "record more poses" in found.problems[0]


def test_few_and_similar_poses_do_not_pass_for_certain(recorded: Recorded) -> None:
    found = calibrate_camera(
        recorded.clouds[:5], recorded.positions[:5], recorded.surface, recorded.truth,
        replace(QUICK, max_std=1e-5),
    )  # fmt: skip
    assert any("poorly fixed" in problem and "record more poses" in problem for problem in found.problems)


def test_wrong_zeros_of_a_joint_are_said(recorded: Recorded) -> None:
    elbow = recorded.robot.arm_joints[2]
    wrong = [{**row, elbow: row[elbow] + np.radians(1.5)} for row in recorded.positions]
    found = calibrate_camera(recorded.clouds, wrong, recorded.surface, recorded.truth, QUICK)
    assert any("Zeros of joints" in words for words in (*found.notes, *found.problems))
    assert found.systematic > 0.0005


def test_clouds_in_millimetres_and_missing_joints_are_refused(recorded: Recorded) -> None:
    with pytest.raises(InvalidInputError, match="in metres"):
        calibrate_camera([1000.0 * cloud for cloud in recorded.clouds], recorded.positions, recorded.surface)
    lacking = [{name: value for name, value in row.items() if "elbow" not in name} for row in recorded.positions]
    with pytest.raises(InvalidInputError, match="elbow_joint"):
        calibrate_camera(recorded.clouds, lacking, recorded.surface)
    with pytest.raises(InvalidInputError, match="at least 3"):
        calibrate_camera(recorded.clouds[:2], recorded.positions[:2], recorded.surface)


def test_the_arm_is_told_from_table_and_objects(recorded: Recorded) -> None:
    seen = camera_views(recorded.clouds, recorded.positions, recorded.surface)
    for view in seen.views:
        in_base = transform_points(recorded.truth, view.arm)
        # The table top is at zero, and nothing of the arm is below 4 cm.
        assert (in_base[:, 2] > 0.03).mean() > 0.97


def test_only_what_moved_counts_as_moved() -> None:
    rng = np.random.default_rng(0)
    tangents = np.stack(np.meshgrid(np.linspace(-0.4, 0.4, 80), np.linspace(-0.4, 0.4, 80)), axis=-1).reshape(-1, 2)
    clouds, blocks = [], []
    for place in (-0.25, -0.1, 0.05, 0.2):
        block = (np.abs(tangents[:, 0] - place) < 0.06) & (np.abs(tangents[:, 1]) < 0.1)
        depth = np.where(block, 0.7, 1.0) + rng.normal(0.0, 0.002, len(tangents))
        clouds.append(np.column_stack([tangents * depth[:, None], depth]))
        blocks.append(block)
    for moved, block in zip(moving_points(clouds, AngularGrid.of(clouds, 0.015)), blocks, strict=True):
        assert moved[block].mean() > 0.95
        assert moved[~block].mean() < 0.01


def test_a_wrong_place_is_seen_through(recorded: Recorded) -> None:
    def shares(T: Array) -> Any:
        return plausibility(recorded.clouds[0], recorded.positions[0], recorded.surface, T)

    right, wrong = shares(recorded.truth), shares(make_transform(None, [0.1, 0.0, 0.0]) @ recorded.truth)
    assert right.in_view > 0.2 and right.seen_through < 0.02 < 0.15 < wrong.seen_through
    seen = camera_views(recorded.clouds, recorded.positions, recorded.surface)
    assert seen_through(seen.views, seen.grid, recorded.truth) < 0.01


def test_poses_stay_off_the_table(recorded: Recorded) -> None:
    poses = draw_poses(recorded.robot, recorded.surface, 4, 1, (0.26, 0.0, 0.25), 0.2)
    for pose in poses:
        joints = dict.fromkeys(recorded.robot.finger_joints, 0.0)
        posed = recorded.surface.at(joints | dict(zip(recorded.robot.arm_joints, pose.tolist(), strict=True)))
        assert posed.points[posed.links > 1, 2].min() > 0.0
    with pytest.raises(InvalidInputError, match="0 found"):
        draw_poses(recorded.robot, recorded.surface, 2, 1, (5.0, 0.0, 0.0), 0.05)
