"""Reachability of grasps: answers against Pinocchio, Coal and the motion backend, and what they must not depend on."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.obstacles import object_obstacle, table_obstacle
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_rpy, rotation_angle
from morphit_ros.motion.embedded import EmbeddedBackend
from morphit_ros.motion.reachability import (
    Reachability,
    ReachabilityConfig,
    ReachStatus,
    turned_about_approach,
    warm_up_reachability,
)
from morphit_ros.robot.motion_backend import MotionStatus

APERTURE, OPEN = 0.05, 0.07
POSE_ONLY = ReachabilityConfig(lift_height=0.0, flip=False)


def block(center, size, count=3000, seed=0):
    half = np.asarray(size) / 2.0
    return np.random.default_rng(seed).uniform(center - half, center + half, (count, 3))


TARGET = block(np.array([0.5, 0.0, 0.04]), [0.05, 0.05, 0.08])
SURFACE = SupportPlane(make_transform(translation=[0.5, 0.0, 0.0]), np.array([0.5, 1.0]))


def backed_off(pose, distance=0.1):
    pregrasp = pose.copy()
    pregrasp[:3, 3] -= distance * pose[:3, 2]
    return pregrasp


@pytest.fixture(scope="module")
def reach(panda_urdf, panda_srdf, panda):
    return Reachability(panda, panda_urdf, srdf=panda_srdf)


@pytest.fixture
def world(reach):
    reach.set_world(np.eye(4), SURFACE, TARGET)
    return reach


@pytest.fixture(scope="module")
def random_grasps():
    """Poses above the table, tilted up to 60°."""
    rng = np.random.default_rng(4)
    poses = []
    for _ in range(60):
        tilt = [np.pi + rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), rng.uniform(-3.0, 3.0)]
        position = [rng.uniform(0.3, 0.8), rng.uniform(-0.4, 0.4), rng.uniform(0.02, 0.3)]
        poses.append(make_transform(matrix_from_rpy(tilt), position))
    return np.array(poses)


def with_limits(urdf, **limits):
    """The description with other position limits of some joints."""
    root = ElementTree.fromstring(urdf)
    for name, (lower, upper) in limits.items():
        limit = root.find(f"joint[@name='{name}']/limit")
        limit.set("lower", str(lower))
        limit.set("upper", str(upper))
    return ElementTree.tostring(root, encoding="unicode")


def many(reach, poses, pregrasps=None):
    before = np.array([backed_off(pose) for pose in poses]).reshape(-1, 4, 4) if pregrasps is None else pregrasps
    return reach.check_many(poses, before, np.full(len(poses), APERTURE), np.full(len(poses), OPEN))


class Arm:
    """Forward kinematics by Pinocchio."""

    def __init__(self, urdf, robot):
        self.pinocchio = pytest.importorskip("pinocchio")
        self.model = self.pinocchio.buildModelFromXML(urdf)
        self.data = self.model.createData()
        self.robot = robot
        self.frame = self.model.getFrameId(robot.tip_link)
        rows = [self.model.joints[self.model.getJointId(name)].idx_q for name in robot.arm_joints]
        self.rows = np.array(rows)
        self.lower, self.upper = self.model.lowerPositionLimit[rows], self.model.upperPositionLimit[rows]

    def gripper(self, values):
        q = self.pinocchio.neutral(self.model)
        q[self.rows] = values
        self.pinocchio.framesForwardKinematics(self.model, self.data, q)
        return self.data.oMf[self.frame].homogeneous @ self.robot.T_tip_gripper


@pytest.fixture(scope="module")
def arm(panda_urdf, panda):
    return Arm(panda_urdf, panda)


def test_positions_are_at_the_poses_and_within_the_limits(world, arm, random_grasps):
    results = many(world, random_grasps)
    assert 20 < results.reachable.sum() < 60
    assert np.isnan(results.positions[~results.reachable]).all()
    for row in np.flatnonzero(results.reachable):
        result = results[row]
        grasp = turned_about_approach(random_grasps[row]) if result.flipped else random_grasps[row]
        for values, pose in ((result.positions, grasp), (result.pregrasp_positions, backed_off(grasp))):
            actual = arm.gripper(values)
            np.testing.assert_allclose(actual[:3, 3], pose[:3, 3], atol=2e-4)
            assert rotation_angle(actual[:3, :3].T @ pose[:3, :3]) < 2e-3
            assert np.minimum(values - arm.lower, arm.upper - values).min() >= world.config.limit_margin - 1e-12
        at_ends = [
            np.minimum(v - arm.lower, arm.upper - v).min() for v in (result.positions, result.pregrasp_positions)
        ]
        assert 0.0 <= result.limit_margin <= min(at_ends) - world.config.limit_margin + 1e-9
        assert result.manipulability > 0.0


def test_accepted_grasps_touch_nothing_that_another_checker_knows(
    world, panda, panda_urdf, panda_srdf, table, coal_checker, random_grasps
):
    """On the straight way in, interpolated in joint space from the two ends, and at both ends."""
    checker = coal_checker(panda_urdf, panda_srdf, table_obstacle(SURFACE.T_world_table, SURFACE.size), [])
    fingers = dict.fromkeys(panda.finger_joints, OPEN / 2.0)
    results = many(world, random_grasps)
    for row in np.flatnonzero(results.reachable)[:20]:
        for values in (results[row].positions, results[row].pregrasp_positions):
            contacts = checker.contacts(dict(zip(panda.arm_joints, values.tolist(), strict=True)) | fingers)
            # Links that may touch an object may be 5 mm lower than the table.
            assert {pair for pair in contacts if not ("table" in pair and pair & {*panda.touch_links})} == set()


def test_every_pose_of_the_arm_is_found(reach, panda_urdf, panda_srdf, panda, arm):
    """Poses made by forward kinematics: at least 99 of 100 have inverse kinematics."""
    pose_only = Reachability(panda, panda_urdf, srdf=panda_srdf, config=POSE_ONLY)
    rng, margin = np.random.default_rng(8), POSE_ONLY.limit_margin
    poses = np.array([arm.gripper(rng.uniform(arm.lower + margin, arm.upper - margin)) for _ in range(400)])
    statuses = many(pose_only, poses, poses).statuses
    lost = [status for status in statuses if status in (ReachStatus.NO_IK, ReachStatus.JOINT_LIMITS)]
    assert len(lost) <= 4
    assert statuses.count(ReachStatus.REACHABLE) > 200


def test_what_stands_in_the_way_is_named(reach, from_above):
    grasp = from_above(0.5, 0.0, 0.06)
    where = grasp, backed_off(grasp), APERTURE, OPEN

    def status(**around):
        reach.set_world(np.eye(4), **around)
        return reach.check(*where).status

    assert status() is ReachStatus.REACHABLE
    assert status(table=SURFACE, object_points=TARGET) is ReachStatus.REACHABLE
    high = SupportPlane(make_transform(translation=[0.5, 0.0, 0.12]), np.array([0.5, 0.5]))
    assert status(table=high) is ReachStatus.COLLISION_TABLE
    # The same plane without an end, and one that ends before the gripper.
    assert status(table=SupportPlane(high.T_world_table)) is ReachStatus.COLLISION_TABLE
    beside = SupportPlane(make_transform(translation=[0.5, 0.7, 0.12]), np.array([0.5, 0.5]))
    assert status(table=beside) is ReachStatus.REACHABLE
    palm = block(np.array([0.5, 0.0, 0.16]), [0.05, 0.05, 0.05])
    assert status(object_points=palm) is ReachStatus.COLLISION_OBJECT
    finger = block(np.array([0.5, 0.05, 0.06]), [0.02, 0.02, 0.02])
    assert status(object_points=finger) is ReachStatus.REACHABLE, "fingers may touch the object"
    assert status(obstacle_points=finger) is ReachStatus.COLLISION_OBSTACLE
    assert status(obstacle_points=finger + np.array([0.0, 0.3, 0.0])) is ReachStatus.REACHABLE


def test_the_lift_is_part_of_the_question(reach, panda, panda_urdf, panda_srdf, from_above):
    grasp = from_above(0.5, 0.0, 0.06)
    # Above the hand at the pre-grasp, below it after the lift.
    above = block(np.array([0.62, 0.0, 0.56]), [0.1, 0.4, 0.02])
    answers = []
    for check in (reach, Reachability(panda, panda_urdf, srdf=panda_srdf, config=POSE_ONLY)):
        check.set_world(np.eye(4), SURFACE, None, above)
        answers.append(check.check(grasp, backed_off(grasp), APERTURE, OPEN).status)
    assert answers == [ReachStatus.COLLISION_OBSTACLE, ReachStatus.REACHABLE]


def test_out_of_reach_beyond_the_limits_and_off_the_line(reach, panda, panda_urdf, panda_srdf, from_above):
    reach.set_world(np.eye(4))
    far = from_above(1.6, 0.0, 0.1)
    assert reach.check(far, backed_off(far), APERTURE).status is ReachStatus.NO_IK
    # The line leads from within reach to beyond it.
    edge = from_above(1.0, 0.0, 0.3)
    near = from_above(0.6, 0.0, 0.3)
    assert reach.check(edge, near, APERTURE).status is ReachStatus.APPROACH_DISCONTINUOUS
    # Without the elbow, little is left of the range.
    stiff = with_limits(panda_urdf, panda_joint4=(-0.2, -0.0698))
    robot = Reachability(panda, stiff, srdf=panda_srdf)
    robot.set_world(np.eye(4))
    grasp = from_above(0.5, 0.0, 0.1)
    assert robot.check(grasp, backed_off(grasp), APERTURE).status is ReachStatus.JOINT_LIMITS


def test_the_gripper_is_turned_where_that_helps(panda, panda_urdf, panda_srdf, arm, from_above):
    """An arm whose joints cannot turn the gripper by 180°: exchanging the fingers does as well."""
    narrow = with_limits(
        panda_urdf,
        panda_joint1=(-0.3, 0.3),
        panda_joint3=(-0.3, 0.3),
        panda_joint5=(-0.5, 0.5),
        panda_joint7=(0.2, 1.4),
    )
    results = {}
    for flip in (False, True):
        reach = Reachability(panda, narrow, srdf=panda_srdf, config=ReachabilityConfig(flip=flip))
        reach.set_world(np.eye(4), SURFACE)
        pose = from_above(0.5, 0.0, 0.06, turn=0.0)
        candidates = [pose, turned_about_approach(pose)]
        results[flip] = [reach.check(p, backed_off(p), APERTURE) for p in candidates]
    plain = [result.reachable for result in results[False]]
    assert sorted(plain) == [False, True], "the test needs a joint that allows one of the two"
    assert [result.reachable for result in results[True]] == [True, True]
    assert [result.flipped for result in results[True]] == [not reachable for reachable in plain]
    np.testing.assert_allclose(results[True][0].positions, results[True][1].positions, atol=1e-9)


def test_batch_order_and_history_do_not_matter(world, random_grasps):
    together = many(world, random_grasps)
    backwards = many(world, random_grasps[::-1])
    assert together.statuses == backwards.statuses[::-1]
    np.testing.assert_array_equal(together.positions, backwards.positions[::-1])
    for row in (0, 7, 30):
        pose = random_grasps[row]
        single = world.check(pose, backed_off(pose), APERTURE, OPEN)
        assert single.status is together.statuses[row]
        np.testing.assert_array_equal(single.positions, together.positions[row])
    assert len(many(world, random_grasps[:0])) == 0


def test_same_seed_same_answers(panda, panda_urdf, panda_srdf, random_grasps):
    answers = []
    for _ in range(2):
        reach = Reachability(panda, panda_urdf, srdf=panda_srdf, seed=3)
        reach.set_world(np.eye(4), SURFACE, TARGET)
        answers.append(many(reach, random_grasps[:20]).positions)
    np.testing.assert_array_equal(*answers)


def test_the_frame_of_the_question_does_not_matter(reach, random_grasps):
    other = block(np.array([0.55, 0.2, 0.1]), [0.1, 0.1, 0.2])
    reach.set_world(np.eye(4), SURFACE, TARGET, other)
    at_base = many(reach, random_grasps)
    T_world_base = make_transform(matrix_from_rpy([0.1, -0.2, 2.0]), [1.0, -2.0, 0.5])

    def moved(points):
        return points @ T_world_base[:3, :3].T + T_world_base[:3, 3]

    surface = SupportPlane(T_world_base @ SURFACE.T_world_table, SURFACE.size)
    reach.set_world(invert_transform(T_world_base), surface, moved(TARGET), moved(other))
    in_world = many(reach, T_world_base @ random_grasps)
    # Voxels begin elsewhere: a grasp that just touches may turn out otherwise.
    same = np.array(at_base.statuses) == np.array(in_world.statuses)
    assert same.sum() >= len(same) - 2
    both = at_base.reachable & in_world.reachable
    assert both.sum() > 15
    np.testing.assert_allclose(at_base.positions[both], in_world.positions[both], atol=1e-3)


def test_the_start_chooses_among_the_ways(reach, from_above, panda):
    grasp = from_above(0.45, 0.1, 0.1)
    reach.set_world(np.eye(4), SURFACE)
    first = reach.check(grasp, backed_off(grasp), APERTURE)
    reach.set_start({"panda_joint1": 1.2, "panda_joint3": -1.2})
    second = reach.check(grasp, backed_off(grasp), APERTURE)
    reach.set_start({})
    assert second.reachable
    assert np.abs(first.positions - second.positions).max() > 0.2
    again = reach.check(grasp, backed_off(grasp), APERTURE)
    np.testing.assert_array_equal(first.positions, again.positions)


@pytest.mark.slow
def test_the_motion_backend_can_follow(world, panda, panda_urdf, panda_srdf, home, random_grasps):
    """What is accepted here, the embedded backend plans: a path to the pre-grasp positions, the approach, the lift."""
    backend = EmbeddedBackend(panda_urdf, panda_srdf, panda)
    target = object_obstacle("target", PointCloud(TARGET), np.eye(4))
    backend.set_world(table_obstacle(SURFACE.T_world_table, SURFACE.size), [target])
    fingers = dict.fromkeys(panda.finger_joints, OPEN / 2.0)
    results = many(world, random_grasps)
    followed = 0
    for row in np.flatnonzero(results.reachable)[:10]:
        grasp = turned_about_approach(random_grasps[row]) if results.flipped[row] else random_grasps[row]
        goal = dict(zip(panda.arm_joints, results.pregrasp_positions[row].tolist(), strict=True))
        path = backend.plan_to_joints({**home, **fingers}, goal)
        assert path.status is MotionStatus.SUCCEEDED, path.message
        line = backend.plan_straight({**home, **fingers, **goal}, grasp, 0.08, ["target"])
        assert line.status is MotionStatus.SUCCEEDED, line.message
        np.testing.assert_allclose(line.trajectory.positions[-1], results.positions[row], atol=0.01)
        followed += 1
    assert followed == 10


def test_a_filter_counts_and_remembers(world, from_above):
    def grasp(pose):
        return SimpleNamespace(
            T_world_gripper=pose, T_world_pregrasp=backed_off(pose), aperture=APERTURE, open_aperture=OPEN
        )

    asked = world.grasp_filter()
    assert asked.account == ""
    good, far, low = (
        grasp(from_above(0.5, 0.0, 0.06)),
        grasp(from_above(1.6, 0.0, 0.1)),
        grasp(from_above(0.5, 0, -0.1)),
    )
    assert [asked(good), asked(far), asked(low), asked(good)] == [True, False, False, True]
    assert asked.counts == {
        ReachStatus.REACHABLE: 1, ReachStatus.NO_IK: 1, ReachStatus.COLLISION_TABLE: 1,
    }  # fmt: skip
    assert "table: 1" in asked.account
    assert "reach: 1" in asked.account
    assert asked.result(good).positions.shape == (7,)


def test_bad_input_is_refused_by_name(reach, panda, panda_urdf, from_above):
    pose = from_above(0.5, 0.0, 0.1)
    for arguments, words in (
        ((2.0 * pose, pose, 0.05), "T_world_gripper"),
        ((pose, np.full((4, 4), np.nan), 0.05), "T_world_pregrasp"),
        ((pose, pose, -0.01), "apertures"),
        ((pose, pose, float("nan")), "apertures"),
        ((pose, pose, 0.05, float("inf")), "open_apertures"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            reach.check(*arguments)
    with pytest.raises(InvalidInputError, match="shape"):
        reach.check_many(np.stack([pose, pose]), np.stack([pose]), [0.05, 0.05])
    for around, words in (
        ({"object_points": np.zeros((5, 2))}, "object_points"),
        ({"obstacle_points": 1000.0 * np.ones((5, 3))}, "obstacle_points"),
        ({"table": SupportPlane(np.eye(4), np.array([0.0, 1.0]))}, "table size"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            reach.set_world(np.eye(4), **around)
    with pytest.raises(InvalidInputError, match="T_base_world"):
        reach.set_world(np.zeros((4, 4)))
    with pytest.raises(InvalidInputError, match="start"):
        reach.set_start({"panda_joint1": float("nan")})
    with pytest.raises(InvalidInputError, match="touch_links"):
        Reachability(panda, panda_urdf.replace('"panda_hand"', '"other_hand"'))
    with pytest.raises(InvalidInputError, match="spheres"):
        Reachability(panda, panda_urdf, {"ghost": (np.zeros((1, 3)), np.ones(1))})


def test_empty_and_broken_clouds_are_nothing(reach, from_above):
    grasp = from_above(0.5, 0.0, 0.06)
    for points in (np.empty((0, 3)), np.full((10, 3), np.nan)):
        reach.set_world(np.eye(4), SURFACE, points, points)
        assert reach.check(grasp, backed_off(grasp), APERTURE, OPEN).reachable


def test_warm_up_reaches_along_its_rail():
    result = warm_up_reachability()
    assert result.reachable
    np.testing.assert_allclose(result.positions, [0.0, 0.2], atol=1e-3)
