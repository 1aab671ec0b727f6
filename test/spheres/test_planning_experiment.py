"""Requests of the planning experiment on a table that slides in x and y, and whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.spheres.planning_experiment import (
    Environment,
    MeshRobot,
    Replay,
    arm_of,
    dense_path,
    perturbed_pose,
    pose_goal,
    read_world,
    request,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, rotation_angle
from morphit_ros.motion.planner import PathConfig
from morphit_ros.motion.world import World
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.spheres import SphereModel
from morphit_ros.spheres.robot_model import LinkSpheres

SLIDER = """<robot name="slider"><link name="base"/><link name="bridge"/><link name="cart">
<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
<joint name="x" type="prismatic"><parent link="base"/><child link="bridge"/><axis xyz="1 0 0"/>
<limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
<joint name="y" type="prismatic"><parent link="bridge"/><child link="cart"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="1" velocity="1"/></joint></robot>"""
START, CONFIG = np.array([-1.0, 0.0]), PathConfig(timeout=20.0)


@pytest.fixture
def robot() -> MeshRobot:
    pytest.importorskip("coal")
    return MeshRobot(KinematicModel(SLIDER), ("x", "y"), {}, [])


def box(*center: float, side: float = 0.4) -> World:
    return World([Solid("box", GeometryKind.BOX, make_transform(None, center), np.full(3, side))])


def answer(robot: MeshRobot, world: World, radius: float, goal: Array) -> Replay:
    """Of a request with one sphere in the middle of the cart."""
    link = LinkSpheres("cart", np.zeros((1, 3)), np.array([radius]), 0.0, 0.0, "")
    arm = arm_of(robot.kinematics, SphereModel("slider", "balanced", {"cart": link}), robot.joints, {}, [])
    pose = make_transform(None, [*goal, 0.0])
    asked = pose_goal(robot, world, START, "cart", pose, 4, np.random.default_rng(0))
    environment = Environment("box", world, START, "cart", robot, (asked,))
    return request(arm, environment, asked, CONFIG, 0.01)


def test_small_spheres_find_a_path_that_the_meshes_call_touching(robot: MeshRobot) -> None:
    # The box reaches to 0.05 m from the line that the cart's middle goes along, which half the cart takes 0.1 m of.
    replay = answer(robot, box(0.0, 0.25, 0.0), 0.03, np.array([1.0, 0.0]))
    assert replay.found and replay.proven and replay.possible and not replay.succeeded
    assert replay.depth == pytest.approx(0.05, abs=2e-3)
    assert replay.position_error < 1e-6 and replay.rotation_error < 1e-5


def test_spheres_that_cover_go_around(robot: MeshRobot) -> None:
    replay = answer(robot, box(0.0, 0.25, 0.0), 0.18, np.array([1.0, 0.0]))
    assert replay.succeeded and replay.depth == 0.0 and replay.seconds > 0.0


def test_large_spheres_touch_at_a_goal_that_is_free(robot: MeshRobot) -> None:
    replay = answer(robot, box(0.5, 0.35, 0.0), 0.18, np.array([0.5, 0.0]))
    assert replay.possible and replay.called_touching and not replay.found


def test_a_goal_that_touches_in_truth_is_nobodys_fault(robot: MeshRobot) -> None:
    replay = answer(robot, box(0.5, 0.0, 0.0), 0.18, np.array([0.5, 0.0]))
    assert not replay.possible and not replay.called_touching and replay.status == "GOAL_TOUCHES"


def test_a_goal_out_of_reach_is_told(robot: MeshRobot) -> None:
    assert answer(robot, World(), 0.18, np.array([3.0, 0.0])).status == "OUT_OF_REACH"


def test_a_start_that_touches_in_truth_is_refused(robot: MeshRobot) -> None:
    with pytest.raises(InvalidInputError, match="start in 'box'"):
        answer(robot, box(-1.0, 0.0, 0.0), 0.03, np.array([1.0, 0.0]))


def test_dense_paths_keep_ends_corners_and_steps() -> None:
    path = np.array([[0.0, 0.0], [0.0, 0.0], [0.35, 0.1], [0.3, -0.5]])
    rows = dense_path(path, 0.1)
    assert np.abs(np.diff(rows, axis=0)).max() <= 0.1 + 1e-12
    for corner in path:
        assert np.abs(rows - corner).max(axis=1).min() == 0.0
    assert np.array_equal(rows[-1], path[-1]) and len(rows) == 4 + 6 + 1


def test_perturbed_poses_fill_the_ball_and_stay_in_it() -> None:
    rng, pose = np.random.default_rng(0), make_transform(matrix_from_rpy([0.3, 1.0, -2.0]), [0.4, -0.2, 0.7])
    changes = [invert_transform(pose) @ perturbed_pose(pose, 0.2, 0.3, rng) for _ in range(4000)]
    distances = np.array([np.linalg.norm(each[:3, 3]) for each in changes])
    angles = np.array([rotation_angle(each[:3, :3]) for each in changes])
    assert 0.19 < distances.max() <= 0.2 and 0.28 < angles.max() <= 0.3
    # Half of a ball's volume lies beyond 0.5^(1/3) of its radius.
    assert np.mean(distances > 0.2 * 0.5 ** (1 / 3)) == pytest.approx(0.5, abs=0.03)
    assert np.abs(np.mean([each[:3, 3] for each in changes], axis=0)).max() < 0.01


def test_cylinders_of_problems_have_their_height_first() -> None:
    can = {"name": "can", "type": "cylinder", "dimensions": [0.3, 0.05], "position": [1, 2, 3]}
    (solid,) = read_world([can | {"quaternion_xyzw": [0, 0, 0, 1]}]).solids
    assert solid.dimensions.tolist() == [0.05, 0.3] and solid.T_world_solid[:3, 3].tolist() == [1, 2, 3]
