"""The contact experiment: its scenes and tables, and what Drake makes of them where that is installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from morphit_bench.spheres.contact_experiment import (
    OBJECTS,
    TIME_STEP,
    ContactWorld,
    Scene,
    difference,
    drawn_scene,
    first_part,
    robot_meshes,
)
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.spheres import SphereFitConfig, fit_robot_spheres

BOX, BALL = OBJECTS
PANDA = RobotConfiguration.load("panda")
CLOSED = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}


@pytest.fixture(scope="module")
def panda():
    return load_robot_description(PANDA.description)


@pytest.fixture(scope="module")
def scene(panda):
    return scene_of(panda, 0)


def scene_of(panda, seed):
    kinematics, rng = KinematicModel(panda), np.random.default_rng(seed)
    return drawn_scene(kinematics, PANDA.arm_joints, CLOSED, PANDA.tip_link, BOX, PANDA.home, rng)


class TestScene:
    def test_the_hand_goes_level_and_straight_through_the_object(self, panda, scene):
        kinematics = KinematicModel(panda)
        rows = scene.motion[round(1.0 / TIME_STEP) : -round(1.0 / TIME_STEP) : 25]
        tips = np.array([
            kinematics.link_pose({**CLOSED, **dict(zip(PANDA.arm_joints, row, strict=True))}, PANDA.tip_link)[:3, 3]
            for row in rows
        ])  # fmt: skip
        assert np.ptp(tips[:, 2]) < 2e-3
        along = (tips[-1] - tips[0]) / np.linalg.norm(tips[-1] - tips[0])
        apart = tips - scene.T_root_object[:3, 3]
        assert apart[0] @ along == pytest.approx(-0.16, abs=0.01)
        assert apart[-1] @ along == pytest.approx(0.12, abs=0.01)
        assert np.abs(np.cross(apart, along)[:, 2]).max() < 0.021

    def test_joints_never_jump_and_rest_at_the_end(self, scene):
        assert np.abs(np.diff(scene.motion, axis=0)).max() / TIME_STEP < 3.0
        assert (scene.motion[-round(1.0 / TIME_STEP) :] == scene.motion[-1]).all()

    def test_one_seed_one_scene(self, panda, scene):
        np.testing.assert_array_equal(scene_of(panda, 0).motion, scene.motion)
        assert not np.array_equal(scene_of(panda, 1).T_root_object, scene.T_root_object)


def test_first_part_is_about_the_touch(scene):
    poses = np.repeat(scene.T_root_object[None], len(scene.motion), axis=0)
    # Sinks from the start, is pushed from step 700.
    poses[:, 2, 3] -= 1e-3
    poses[700:, 0, 3] += 1e-3
    part = first_part(scene, poses, 0.5)
    np.testing.assert_array_equal(part.motion, scene.motion[700 - 60 : 700 + 250 + 1])
    np.testing.assert_array_equal(part.T_root_object, scene.T_root_object)
    assert len(first_part(scene, poses, 100.0).motion) == len(scene.motion) - 640


def test_files_of_links_are_their_collision_meshes(panda, tmp_path):
    files = robot_meshes(panda, tmp_path)
    assert sum(map(len, files.values())) == sum(len(link.collisions) for link in panda.links.values())
    element = panda.links["panda_leftfinger"].collisions[1]
    read, meant = load_mesh(files["panda_leftfinger"][1]), collision_mesh(element)
    assert read.volume == pytest.approx(meant.volume, rel=1e-6)
    np.testing.assert_allclose(read.vertices.min(axis=0), meant.vertices.min(axis=0), atol=1e-8)


def test_differences_are_of_place_and_attitude():
    pose = make_transform(matrix_from_rpy([0.0, 0.0, 0.3]), [0.1, 0.0, 0.0])
    other = make_transform(matrix_from_rpy([0.0, 0.0, 0.5]), [0.1, 0.03, 0.04])
    assert difference(pose, other) == pytest.approx((0.05, 0.2))


def table_of(rows):
    spec = importlib.util.spec_from_file_location("contact_experiment", Path("benchmarks/contact_experiment.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.print_table(rows, ["S", "B"])


def test_tables_compare_in_the_same_scene(capsys):
    rows = [
        {"object": "box", "seed": 0, "draw": draw, "model": model, "distance": 1e-3 * mm, "angle": 0.1, "moved": 0.1}
        for draw, (surface, balanced) in enumerate([(10.0, 4.0), (30.0, 24.0)])
        for model, mm in (("S", surface), ("B", balanced))
    ]
    table_of(rows)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("B (2)"))
    assert "| 14.0 (4.0 to 24.0) |" in line
    assert "| 6.0 (6.0 to 6.0) |" in line


class TestDrake:
    @pytest.fixture(scope="class", autouse=True)
    def _needed(self):
        pytest.importorskip("pydrake", reason="needs pip install drake, which brings a solver that is not free (Mosek)")

    def test_the_same_body_pushes_to_the_same_place_and_a_thin_one_not(self, panda, scene, tmp_path):
        files = robot_meshes(panda, tmp_path)
        world = ContactWorld(panda, PANDA.arm_joints, CLOSED, files, BOX)
        poses, motion, touched = world.push(scene)
        assert touched
        # Joints follow: what is replayed is what was wanted.
        assert np.abs(motion[-1] - scene.motion[-1]).max() < 2e-3
        again, _, _ = world.push(scene, motion)
        assert difference(poses[-1], again[-1])[0] < 5e-3
        links = ["panda_hand", "panda_leftfinger", "panda_rightfinger"]
        spheres = fit_robot_spheres(panda, SphereFitConfig(count=6, primitive_count=6), links=links)
        pushed, _, touched = ContactWorld(panda, PANDA.arm_joints, CLOSED, spheres, BOX, points=True).push(
            scene, motion
        )
        assert touched
        assert difference(poses[-1], pushed[-1])[0] > difference(poses[-1], again[-1])[0]

    def test_what_is_not_in_the_way_stays(self, panda, scene, tmp_path):
        world = ContactWorld(panda, PANDA.arm_joints, CLOSED, robot_meshes(panda, tmp_path), BALL)
        still = Scene(make_transform(np.eye(3), [-0.6, 0.0, 0.05]), scene.motion[:300])
        poses, _, touched = world.push(still)
        assert not touched
        assert difference(poses[-1], still.T_root_object)[0] < 1e-3
