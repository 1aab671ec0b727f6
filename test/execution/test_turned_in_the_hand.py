"""What has turned in the hand: how far, by its weight; where it hangs; how it is put down as it lay."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_grasp_sequence import LIMITS, FakeBackend, FakeRobot, run

from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.handling import HandRequest, HandSequence, HandStage
from morphit_ros.execution.held import HELD, HeldGrasp, Surroundings
from morphit_ros.execution.laying_down import falls, laying_down, touching
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.motion_backend import MotionResult, MotionStatus, TableObstacle

# A hammer along x, 0.3 m long and 30 mm thick, on a table at z = 0.
HAMMER = np.array([[x, y, z] for x in np.linspace(-0.2, 0.1, 31) for y in (-0.01, 0.01) for z in (0.0, 0.03)])
TABLE = TableObstacle(make_transform(translation=(0.5, 0.0, 0.0)), np.array([1.0, 1.0]))
MASS, SHARE = 0.45, 0.2
Y = np.array([0.0, 1.0, 0.0])


def grasp(yaw: float = 0.0, half_turn: bool = False, tilt: float = 0.0) -> Array:
    """``T_base_gripper`` (4, 4): pointing down, closing across a hammer turned by `yaw`; leaning along it by `tilt`."""
    turn = matrix_from_rpy((0.0, 0.0, yaw + np.pi * half_turn)) @ matrix_from_rpy((np.pi, tilt, 0.0))
    return make_transform(turn, (0.5, 0.1, 0.015))


def hammer(yaw: float = 0.0, mirrored: bool = False) -> Array:
    """(N, 3) of the hammer in the base frame, gripped at its x = 0."""
    points = HAMMER * (-1.0 if mirrored else 1.0, 1.0, 1.0)
    return transform_points(make_transform(matrix_from_rpy((0.0, 0.0, yaw)), (0.5, 0.1, 0.0)), points)


def turned(pose: Array, center: Array, angle: float, support: Array, deviation: float = 0.002) -> Load:
    """What is weighed of a hammer that turned by an angle about the pads' normal.

    Args:
        pose: of the gripper, before and after.
        center: (3,) of mass in the base frame before it turned.
        angle: about the gripper's y [rad].
        support: (3,) where the table bore what the hand did not.
        deviation: of centres [m].
    """
    up = pose[2, :3]
    before = transform_points(invert_transform(pose), np.array([center, support]))
    felt = (before[0] - (1.0 - SHARE) * before[1]) / SHARE
    hangs = matrix_from_rpy((0.0, angle, 0.0)) @ before[0]
    first = Load(SHARE * MASS, felt - (felt @ up) * up, pose, 0.01, 0.03)
    return Load(MASS, hangs - (hangs @ up) * up, pose, 0.002, deviation, first)


def downwards(pose: Array, center: Array, angle: float) -> float:
    """The sign of an angle about the gripper's y that lets the centre sink."""
    away = pose[:3, :3].T @ (center - pose[:3, 3])
    return float(-np.sign((pose[:3, :3] @ np.cross(Y, away))[2])) * angle


def held(load: Load | None, pose: Array, points: Array) -> HeldGrasp:
    grasped = transform_points(invert_transform(pose), points)
    return HeldGrasp(pose, pose, 0.02, 0.01, 0.06, grasped, Surroundings(TABLE)).weighed(load)


@pytest.mark.parametrize("yaw", [0.0, 1.0, -2.5])
@pytest.mark.parametrize("half_turn", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_the_turn_is_told_whichever_way_the_hand_and_the_object_lie(yaw, half_turn, mirrored, tilt) -> None:
    pose, points = grasp(yaw, half_turn, tilt), hammer(yaw, mirrored)
    ahead = np.array([np.cos(yaw), np.sin(yaw), 0.0]) * (-1.0 if mirrored else 1.0)
    center = pose[:3, 3] + 0.05 * ahead
    angle = downwards(pose, center, np.radians(65.0))
    load = turned(pose, center, angle, pose[:3, 3] + 0.075 * ahead)
    found, deviation = load.turn(points, pose)
    assert np.sign(found) == np.sign(angle)
    assert abs(found - angle) < 2.0 * deviation < np.radians(40.0)


def test_the_truth_is_mostly_within_two_deviations() -> None:
    rng = np.random.default_rng(7)
    off, old, within, beside = [], [], [], []
    for _ in range(300):
        yaw = rng.uniform(-np.pi, np.pi)
        pose, points, ahead = grasp(yaw, bool(rng.integers(2))), hammer(yaw), np.array([np.cos(yaw), np.sin(yaw), 0.0])
        # As hammers and drills do in the simulation: the table bears what is left at 0.6 to 1 of the reach.
        support = rng.uniform(0.06, 0.1)
        away = rng.uniform(0.65, 0.95) * support
        center = pose[:3, 3] + away * ahead + (0.0, 0.0, rng.uniform(-0.01, 0.01))
        angle = downwards(pose, center, rng.uniform(0.5, 1.4))
        load = turned(pose, center, angle, pose[:3, 3] + support * ahead)
        found, deviation = load.turn(points, pose)
        off.append(abs(found - angle))
        old.append(abs(angle))
        within.append(off[-1] < 2.0 * deviation)
        wrong = (load.center_within(points) - center)[:2]
        beside.append(wrong @ np.linalg.solve(load.center_covariance(points)[:2, :2], wrong) < 4.0)
    assert min(np.mean(within), np.mean(beside)) > 0.85
    # Nothing is known better than that it has not turned, as was assumed.
    assert np.median(off) < 0.25 * np.median(old)


def test_without_a_weight_as_it_turned_nothing_is_told_of_a_turn() -> None:
    load = turned(grasp(), np.array([0.55, 0.1, 0.015]), 1.0, np.array([0.58, 0.1, 0.0]))
    plain = Load(load.mass, load.center, load.T_base_gripper, 0.002, 0.002)
    assert plain.turn(hammer(), grasp()) == (0.0, 0.0)


def test_what_hangs_straight_may_have_turned_to_either_side() -> None:
    load = turned(grasp(), np.array([0.55, 0.1, 0.015]), np.radians(89.0), np.array([0.58, 0.1, 0.0]), 0.003)
    assert load.turn(hammer(), grasp()) == (0.0, pytest.approx(np.pi / 2))


def test_pads_on_top_and_below_let_nothing_turn_by_its_weight() -> None:
    # Its closing direction is upright.
    pose = make_transform(matrix_from_rpy((np.pi / 2, 0.0, 0.0)), (0.5, 0.1, 0.015))
    load = turned(pose, np.array([0.55, 0.1, 0.015]), 0.5, np.array([0.58, 0.1, 0.0]))
    assert load.turn(hammer(), pose) == (0.0, 0.0)


def hanging_hammer(angle: float = 65.0) -> tuple[HeldGrasp, float]:
    pose = grasp()
    center = np.array([0.55, 0.1, 0.015])
    turn = downwards(pose, center, np.radians(angle))
    return held(turned(pose, center, turn, np.array([0.575, 0.1, 0.0])), pose, hammer()), turn


def test_it_hangs_as_it_has_turned_within_the_room_that_is_kept_for_it() -> None:
    thing, turn = hanging_hammer()
    truth = transform_points(thing.T_base_gripper, thing.points @ matrix_from_rpy((0.0, turn, 0.0)).T)
    hangs = transform_points(thing.T_base_gripper, thing.hanging)
    # The head hangs 65° below the grasp, 85 mm under it; before it was 15 mm.
    assert truth[:, 2].min() == pytest.approx(0.015 - 0.1 * np.sin(np.radians(65.0)) - 0.015 * np.cos(np.radians(65.0)))
    assert hangs[:, 2].min() == pytest.approx(truth[:, 2].min(), abs=0.02)
    assert np.linalg.norm(hangs - truth, axis=1).max() < 0.06
    room = thing.room
    assert len(room) > len(thing.points)
    apart = np.linalg.norm(transform_points(thing.T_base_gripper, room)[:, None] - truth, axis=2).min(axis=0)
    assert apart.max() < 0.03
    assert thing.middle == pytest.approx(thing.hanging.mean(axis=0))
    assert [len(shape) for shape in thing.shapes] == [len(room), len(thing.points), len(thing.points)]
    flat = held(None, grasp(), hammer())
    assert flat.hanging is flat.points and flat.room is flat.points and len(flat.shapes) == 1


def test_a_turn_outlives_the_process() -> None:
    thing, _ = hanging_hammer()
    read = HeldGrasp.from_json(thing.to_json())
    assert (read.turn, read.turn_deviation) == (thing.turn, thing.turn_deviation)
    # Versions before wrote nothing of it.
    text = json.loads(thing.to_json())
    del text["turn"], text["turn_deviation"]
    assert HeldGrasp.from_json(json.dumps(text)).turn == 0.0


def test_its_lowest_point_touches_where_it_will_lie() -> None:
    thing, _ = hanging_hammer()
    place = make_transform(matrix_from_rpy((0.0, 0.0, 1.2)), (0.1, -0.4, 0.0)) @ thing.T_base_gripper
    there = touching(thing, place)
    hangs, lies = transform_points(there, thing.hanging), transform_points(place, thing.points)
    lowest = int(hangs[:, 2].argmin())
    assert hangs[lowest, 2] == pytest.approx(0.0, abs=1e-9)
    assert hangs[lowest, :2] == pytest.approx(lies[lowest, :2])
    np.testing.assert_array_equal(there[:3, :3], place[:3, :3])
    flat = held(None, grasp(), hammer())
    assert touching(flat, place) is place


def test_the_hand_goes_about_the_point_that_touches_down_to_the_place() -> None:
    thing, _ = hanging_hammer()
    place = make_transform(translation=(0.05, -0.3, 0.0)) @ thing.T_base_gripper
    there = touching(thing, place)
    poses = laying_down(thing, there, place)
    np.testing.assert_allclose(poses[-1], place, atol=1e-12)
    hangs = transform_points(there, thing.hanging)
    pivot = hangs[int(hangs[:, 2].argmin())]
    lengths = [np.linalg.norm(pose[:3, 3] - pivot) for pose in (there, *poses)]
    # The same hammer between the hand and the point: nothing is pulled or pressed along it, but for half its thickness.
    assert np.ptp(lengths) < 0.016
    assert (np.diff(lengths) * np.diff(lengths)[0] >= -1e-12).all()
    heights = np.array([pose[2, 3] for pose in (there, *poses)])
    assert len(poses) >= 3 and (np.diff(heights) < 0.0).all()
    assert laying_down(thing, place, place) == [place]


@pytest.mark.parametrize(("height", "expected"), [(0.0, False), (0.02, False), (0.2, True)])
def test_what_is_let_go_of_over_a_bin_falls(height, expected) -> None:
    thing, _ = hanging_hammer()
    assert falls(thing, make_transform(translation=(0.1, 0.0, height)) @ thing.T_base_gripper) is expected


@pytest.fixture
def put_down(panda):
    """Puts a thing down, with a backend that may say that a shape of so many points is in the arm; its calls."""

    def put(thing: HeldGrasp, place: Array, too_large: int = 10**9):
        shapes = []

        class Backend(FakeBackend):
            def set_world(self, table, objects, solids=()):
                super().set_world(table, objects, solids)
                shapes.append(sum(len(item.centers) for item in objects if item.name == HELD))

            def plan_straight(self, start, T_base_gripper, speed, allow_contact=()):
                if len(shapes) < too_large:
                    return MotionResult(MotionStatus.START_IN_COLLISION, None, "in the arm")
                return super().plan_straight(start, T_base_gripper, speed, allow_contact)

        robot, backend = FakeRobot(panda.arm_joints, panda.finger_joints), Backend(panda.arm_joints)
        robot.aperture = robot.goal = 0.02
        robot.finger_effort = 40.0
        hand = HandSequence(backend, panda, LIMITS, SequenceConfig(), "clock", FreeMotion())
        stages = HandStage.TRANSFER, HandStage.SET_DOWN, HandStage.RELEASE, HandStage.RETREAT

        def gripper(_) -> Array:
            pose = thing.T_base_gripper.copy()
            pose[:3, 3] = robot.arm[:3]
            return pose

        updates = run(hand, robot, HandRequest(stages, gripper, thing, thing.around, places=(place,)))
        return updates[-1], backend, shapes, hand

    return put


def test_what_has_turned_is_laid_down_along_the_arc_before_the_hand_opens(put_down) -> None:
    thing, _ = hanging_hammer()
    place = make_transform(translation=(0.05, -0.3, 0.0)) @ thing.T_base_gripper
    last, backend, _, hand = put_down(thing, place, 0)
    assert last.success, last.message
    there = touching(thing, place)
    wanted = [tuple(np.round(pose[:3, 3], 6)) for pose in (there, *laying_down(thing, there, place))]
    lines = [call[1] for call in backend.calls if call[0] == "line"]
    assert wanted in [lines[row : row + len(wanted)] for row in range(len(lines))]
    # It is no longer part of the hand while it turns.
    let_go = backend.calls.index(("detach", HELD))
    assert backend.calls.index(("line", wanted[1])) > let_go
    np.testing.assert_allclose(hand.put_down, place, atol=1e-6)


def test_over_a_bin_it_is_let_go_of_as_it_hangs(put_down) -> None:
    thing, _ = hanging_hammer()
    place = make_transform(translation=(0.05, -0.3, 0.2)) @ thing.T_base_gripper
    last, _, _, hand = put_down(thing, place, 0)
    assert last.success, last.message
    np.testing.assert_allclose(hand.put_down, touching(thing, place), atol=1e-6)


def test_where_it_would_be_in_the_arm_less_room_is_kept_for_it(put_down) -> None:
    thing, _ = hanging_hammer()
    place = make_transform(translation=(0.05, -0.3, 0.0)) @ thing.T_base_gripper
    last, _, shapes, _ = put_down(thing, place, 3)
    assert last.success and len(shapes) == 3
    last, _, shapes, _ = put_down(thing, place, 4)
    assert not last.success and "the arm cannot move from where it is" in last.message and len(shapes) == 3


def test_in_a_cup_nothing_turns() -> None:
    thing, _ = hanging_hammer()
    assert thing.turn and thing.weighed(thing.load, pads=False).turn == 0.0
