"""Somebody in the workcell, a controller that is slowed for them, and what a judge says of it."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

# Not imported here: this package first chooses what MuJoCo renders with.
if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from scipy.spatial import ConvexHull, cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.simulation.judge import Judge
from morphit_ros.simulation.objects import load_object
from morphit_ros.simulation.person import RADIUS, WalkingPerson
from morphit_ros.simulation.table_setting import set_table
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig


def test_a_person_walks_from_place_to_place_and_stands_at_the_last() -> None:
    person = WalkingPerson((1.0, -2.0, 1.0, 1.0, 2.0, 3.0), -0.74)
    for time, y in ((0.0, -2.0), (2.0, 0.0), (2.5, 1.0), (9.0, 2.0)):
        assert person.pose(time)[:2, 3] == pytest.approx([1.0, y])
    for course in ((1.0, 2.0), (1.0, 2.0, np.nan), (1.0, 2.0, 3.0, 1.0, 2.0, 3.0)):
        with pytest.raises(InvalidInputError, match="person"):
            WalkingPerson(course, 0.0)


def swing(cell: Workcell, joint: int = 0, angle: float = 0.8, seconds: float = 1.0) -> Trajectory:
    """One joint of the arm from where it is, at rest at both ends."""
    times = np.linspace(0.0, seconds, 21)
    share = times / seconds
    start = np.array(cell.robot.home)
    positions, velocities = np.tile(start, (21, 1)), np.zeros((21, len(start)))
    positions[:, joint] += angle * share**2 * (3.0 - 2.0 * share)
    velocities[:, joint] = angle * 6.0 * share * (1.0 - share) / seconds
    return Trajectory(cell.robot.arm_joints, times, positions, velocities)


def test_a_scaled_controller_stays_on_its_path_and_comes_to_its_end_later() -> None:
    with Workcell(WorkcellConfig(object="box")) as cell:
        motion = swing(cell)
        cell.command_trajectory(motion)
        scales = [1.0] * 30 + [0.5] * 40 + [0.0] * 30
        passed = 0.0
        for scale in scales:
            cell.scale_speed(scale)
            cell.step(0.01)
            passed += 0.01 * scale
        here = np.array([cell.joint_state().as_dict()[name] for name in motion.joint_names])
        assert here == pytest.approx(motion.sample(passed), abs=2e-3)
        cell.scale_speed(1.0)
        cell.step(1.0 - passed + 0.1)
        here = np.array([cell.joint_state().as_dict()[name] for name in motion.joint_names])
        assert here == pytest.approx(motion.positions[-1], abs=2e-3) and not cell.moving
        for scale in (-0.1, 1.1, np.nan):
            with pytest.raises(InvalidInputError, match="speed scale"):
                cell.scale_speed(scale)


def test_the_judge_sees_where_things_are_and_who_came_how_near() -> None:
    # From behind, past the elbow, within reach of an arm that swings.
    course = (1.2, -1.0, 0.0, 1.2, 1.0, 2.0)
    with Workcell(WorkcellConfig(object="box", person=course)) as cell:
        judge = Judge(cell)
        cell.command_trajectory(swing(cell, seconds=1.0))
        for _ in range(200):
            cell.step(0.01)
            judge.look()
        found = json.loads(json.dumps(judge.report()))
    assert found["links_on_table"] == found["links_on_person"] == {}
    assert found["objects"][0]["name"] == "box" and not found["objects"][0]["fallen"]
    assert found["objects"][0]["to"] == pytest.approx(found["objects"][0]["from"], abs=1e-3)
    # The hand is at about 0.31 + 0.1 m or less; the nearest of the person at 1.2 - RADIUS.
    assert 0.2 < found["least_distance"] <= found["least_distance_moving"] < 1.2 - RADIUS


def test_the_judge_tells_where_an_object_is_by_all_of_it_and_not_by_its_heavy_end() -> None:
    with Workcell(WorkcellConfig(object="hammer", object_x=0.5, object_y=0.1, object_yaw=0.5 * np.pi)) as cell:
        [hammer] = Judge(cell).report()["objects"]
    length, width, height = np.ptp(load_object("hammer").mesh.vertices, axis=0)
    assert hammer["to"] == pytest.approx([0.5, 0.1, 0.5 * height], abs=2e-3)
    assert hammer["size"] == pytest.approx([width, length, height], abs=2e-3)


def test_the_judge_names_what_touches_a_person_or_the_table() -> None:
    for course, link in (((0.45, 0.6, 0.0, 0.45, 0.25, 1.0), "links_on_person"), ((), "links_on_table")):
        with Workcell(WorkcellConfig(object="box", object_y=0.4, person=course)) as cell:
            judge = Judge(cell)
            # Down: the shoulder leans forward.
            cell.command_trajectory(swing(cell, joint=1, angle=2.0, seconds=1.5))
            for _ in range(180):
                cell.step(0.01)
                judge.look()
            found = judge.report()
        assert found[link] and all(time > 0.0 for time in found[link].values())
        assert not course or found["least_distance"] <= 0.0


@pytest.mark.parametrize("seed", [0, 7, 8])
def test_a_table_is_set_apart_but_for_two_that_touch(seed: int) -> None:
    items = [load_object(name) for name in ("box", "bottle", "mug", "crate")]
    places = set_table(items, (0.38, -0.14), (0.66, 0.3), (0, 1), seed)
    assert places == set_table(items, (0.38, -0.14), (0.66, 0.3), (0, 1), seed)
    clouds = []
    for item, (x, y, yaw) in zip(items, places, strict=True):
        assert 0.38 <= x <= 0.66 and -0.14 <= y <= 0.3
        pose = make_transform(matrix_from_rpy((0.0, 0.0, yaw)), (x, y, 0.0))
        mesh = item.mesh.transformed(pose)
        clouds.append(_outline(mesh.vertices[:, :2]))
    for one in range(len(clouds)):
        for other in range(one):
            gap = cKDTree(clouds[one]).query(clouds[other])[0].min()
            assert gap < 0.006 if (other, one) == (0, 1) else gap > 0.02


def _outline(points: np.ndarray) -> np.ndarray:
    """Points along the hull of some points (N, 2), half a millimetre apart or less."""
    corners = points[ConvexHull(points).vertices]
    return np.concatenate([np.linspace(a, b, 400) for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True)])


def test_where_there_is_no_room_that_is_said() -> None:
    with pytest.raises(InvalidInputError, match="objects"):
        set_table([load_object("crate")] * 4, (0.4, 0.0), (0.5, 0.1), (0, 1), 0)


def test_things_stand_where_they_are_told_to() -> None:
    with Workcell(WorkcellConfig(object="box", others="mug@0.6,0.2,1.0 t_block")) as cell:
        [mug, block] = cell.other_poses()
    assert mug[:2, 3] == pytest.approx([0.6, 0.2], abs=2e-3)
    assert transform_points(mug, np.array([[1.0, 0.0, 0.0]]))[0, :2] - mug[:2, 3] == pytest.approx(
        [np.cos(1.0), np.sin(1.0)], abs=0.02
    )
    assert np.linalg.norm(block[:2, 3] - [0.5, 0.0]) > 0.05
    with pytest.raises(InvalidInputError, match="NAME@X,Y,YAW"):
        Workcell(WorkcellConfig(others="mug@0.6,0.2"))
