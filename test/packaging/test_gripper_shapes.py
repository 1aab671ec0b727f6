"""The planner's boxes of a gripper, its description's collision geometry and the maker's meshes are one shape."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.grasping.gripper import Gripper, GripperBox
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh

DATA = Path(os.environ.get("MORPHIT_DATA") or Path(__file__).parents[2].parent / "shared/data").resolve()
TOLERANCE = 1e-3
# Robot → its rigid links of the gripper, from the arm's flange on.
PALMS = {"ur5e_hande": ("robotiq_hande_coupler", "robotiq_hande_link"), "iiwa_umi": ("umi_link",)}


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    monkeypatch.delenv("MORPHIT_DATA", raising=False)


def surface(mesh: TriangleMesh) -> Array:
    """Corners and points between them."""
    return np.concatenate([mesh.vertices, sample_surface(mesh, 3000, np.random.default_rng(0))[0]])


def outside(points: Array, boxes: list[GripperBox]) -> Array:
    """How far points stick out of a union of boxes, each by itself [m]; 0 inside."""
    distance = np.full(len(points), np.inf)
    for box in boxes:
        beyond = np.maximum(np.abs(points - box.center) - box.size / 2.0, 0.0)
        distance = np.minimum(distance, np.linalg.norm(beyond, axis=1))
    return distance


def link_points(name: str, aperture: float) -> dict[str, Array]:
    """Points on the collision geometry of palm and fingers in the gripper frame; finger links are called 1 and 2."""
    robot = RobotConfiguration.load(name)
    description = load_robot_description(robot.description)
    model = KinematicModel(description)
    state = dict.fromkeys(model.joint_names, 0.0) | dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    state |= dict.fromkeys(robot.finger_joints, aperture / 2.0)
    T_gripper_root = invert_transform(model.link_pose(state, robot.tip_link) @ robot.T_tip_gripper)
    links = {link: link for link in PALMS[name]}
    links |= {str(n): description.joints[joint].child for n, joint in enumerate(robot.finger_joints, 1)}
    return {
        key: np.concatenate(
            [
                transform_points(T_gripper_root @ model.link_pose(state, link), surface(collision_mesh(shape)))
                for shape in description.links[link].collisions
            ]
        )
        for key, link in links.items()
    }


@pytest.mark.parametrize("name", PALMS)
def test_description_lies_inside_the_boxes_and_fills_them(name: str) -> None:
    gripper = Gripper.load(RobotConfiguration.load(name).gripper)
    for aperture in (0.0, 0.02, gripper.aperture_max):
        boxes = gripper.collision_boxes(aperture)
        points = link_points(name, aperture)
        for link, found in points.items():
            assert outside(found, boxes).max() < TOLERANCE, link
        everything = np.concatenate(list(points.values()))
        corners = np.concatenate([[box.center - box.size / 2.0, box.center + box.size / 2.0] for box in boxes])
        assert everything.min(axis=0) == pytest.approx(corners.min(axis=0), abs=TOLERANCE)
        assert everything.max(axis=0) == pytest.approx(corners.max(axis=0), abs=TOLERANCE)


@pytest.mark.parametrize("name", PALMS)
def test_pads_of_the_description_are_those_of_the_planner(name: str) -> None:
    gripper = Gripper.load(RobotConfiguration.load(name).gripper)
    aperture = 0.03
    points = link_points(name, aperture)
    for link, side in (("1", 1.0), ("2", -1.0)):
        depth = side * points[link][:, 1] - aperture / 2.0
        beside = np.abs(points[link][:, 2]) < gripper.pad_height / 2.0 - TOLERANCE
        assert depth[beside].min() == pytest.approx(0.0, abs=1e-4)
        face = points[link][np.abs(depth) < 1e-4]
        # Nearer to the palm, other parts may be wider than the pad and go on behind it.
        tip = face[face[:, 2] > 0.0]
        assert tip[:, 0].min() == pytest.approx(-gripper.pad_width / 2.0, abs=TOLERANCE)
        assert tip[:, 0].max() == pytest.approx(gripper.pad_width / 2.0, abs=TOLERANCE)
        assert tip[:, 2].max() == pytest.approx(gripper.pad_height / 2.0, abs=TOLERANCE)
        assert face[:, 2].min() < -gripper.pad_height / 2.0 + TOLERANCE


@pytest.mark.skipif(not (DATA / "robots/hande").is_dir(), reason="the gripper's meshes are not in MORPHIT_DATA")
def test_hande_is_as_large_as_its_meshes() -> None:
    folder, gripper = DATA / "robots/hande", Gripper.load("hande")
    # In the published model fingers move along x and the pads' middle is 135.5 mm in front of the base; a finger's mesh
    # has its pad 25 mm beside its origin. Gripper frame: y is the model's x.
    T_gripper_base = make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 2.0)), (0.0, 0.0, -0.1355))
    aperture = 0.03
    boxes = gripper.collision_boxes(aperture)
    body = transform_points(T_gripper_base, surface(load_mesh(folder / "hande.stl")))
    assert outside(body, boxes).max() < TOLERANCE
    for file, side in (("finger_1.stl", 1.0), ("finger_2.stl", -1.0)):
        shift = make_transform(translation=(side * (aperture / 2.0 - 0.025), 0.0, 0.099))
        finger = transform_points(T_gripper_base @ shift, surface(load_mesh(folder / file)))
        assert outside(finger, boxes).max() < TOLERANCE
        # The edges of the pad are rounded by 1 mm.
        depth = side * finger[:, 1] - aperture / 2.0
        tip = finger[(depth < 3e-3) & (np.abs(finger[:, 2]) < gripper.pad_height / 2.0 + TOLERANCE)]
        assert np.abs(side * tip[:, 1] - aperture / 2.0).min() < 1e-4
        assert tip[:, 2].max() == pytest.approx(gripper.pad_height / 2.0, abs=TOLERANCE)
        assert tip[:, 0].max() - tip[:, 0].min() == pytest.approx(gripper.pad_width, abs=TOLERANCE)


@pytest.mark.skipif(not (DATA / "robots/umi").is_dir(), reason="the gripper's meshes are not in MORPHIT_DATA")
def test_umi_is_as_large_as_its_meshes() -> None:
    folder, gripper = DATA / "robots/umi", Gripper.load("umi")
    # The published model: z along the approach, fingers along x, their meshes placed by its MJCF; open at joint zero.
    T_gripper_model = make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 2.0)))
    T_gripper_model[:3, 3] = -T_gripper_model[:3, :3] @ (0.0, 0.003, 0.1418)
    aperture = 2.0 * 0.041722
    boxes = gripper.collision_boxes(aperture)
    turn = make_transform(matrix_from_rpy((np.pi / 2.0, 0.0, 0.0)))
    fingers = {
        "left_finger.stl": make_transform(half_turn((0.0, -1.0, 1.0)), (-0.041722, 0.0779, -0.0159)),
        "left_finger_holder.stl": np.eye(4),
        "right_finger.stl": make_transform(matrix_from_rpy((np.pi / 2.0, 0.0, 0.0)), (0.041722, 0.0779, 0.0099)),
        "right_finger_holder.stl": np.eye(4),
    }
    for file, T_holder_mesh in fingers.items():
        points = transform_points(T_gripper_model @ turn @ T_holder_mesh, surface(load_mesh(folder / file)))
        assert outside(points, boxes).max() < 1.5 * TOLERANCE, file
    body = transform_points(T_gripper_model, surface(load_mesh(folder / "base_link.stl")))
    assert np.quantile(outside(body, boxes), 0.99) < 2.0 * TOLERANCE


def half_turn(axis: tuple[float, float, float]) -> Array:
    unit = np.array(axis) / np.linalg.norm(axis)
    return 2.0 * np.outer(unit, unit) - np.eye(3)
