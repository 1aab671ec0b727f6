"""Forward and inverse kinematics of the Panda and of small robots with known answers."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.robot.chain_descent import pose_error
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import (
    IKConfig,
    IKStatus,
    inverse_kinematics,
    inverse_kinematics_solutions,
)
from morphit_ros.robot.kinematics import KinematicModel

ARM = [f"panda_joint{number}" for number in range(1, 8)]
HOME = {**dict(zip(ARM, [0, -0.785398, 0, -2.35619, 0, 1.570796, 0.785398], strict=True)), "panda_finger_joint1": 0.02}

MIXED = """<robot name="mixed"><link name="base"/><link name="wheel"/><link name="slide"/><link name="follower"/>
<joint name="turn" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/></joint>
<joint name="push" type="prismatic"><parent link="wheel"/><child link="slide"/><origin xyz="1 0 0"/>
 <axis xyz="1 0 0"/><limit lower="0" upper="0.5" velocity="1" effort="1"/></joint>
<joint name="mirror" type="prismatic"><parent link="wheel"/><child link="follower"/><axis xyz="0 1 0"/>
 <limit lower="-9" upper="9" velocity="1" effort="1"/><mimic joint="push" multiplier="-2" offset="0.1"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def panda():
    return KinematicModel(
        load_robot_description("package://example-robot-data/robots/panda_description/urdf/panda.urdf")
    )


@pytest.fixture(scope="module")
def mixed():
    return KinematicModel(MIXED)


def test_known_pose_and_mimic_finger(panda):
    poses = panda.forward_kinematics(HOME)
    assert set(poses) == set(panda.description.links)
    np.testing.assert_array_equal(poses["panda_link0"], np.eye(4))
    # Data sheet: link 8 lies 0.107 m beyond the flange joint, the fingers open along the hand's y axis.
    hand = np.linalg.inv(poses["panda_hand"])
    np.testing.assert_allclose((hand @ poses["panda_leftfinger"])[:3, 3], [0, 0.02, 0.0584], atol=1e-9)
    np.testing.assert_allclose((hand @ poses["panda_rightfinger"])[:3, 3], [0, -0.02, 0.0584], atol=1e-9)


@pytest.mark.parametrize(
    "name", ["panda_description/urdf/panda", "ur_description/urdf/ur5_robot", "tiago_description/robots/tiago"]
)
def test_poses_are_pinocchios(name):
    pinocchio = pytest.importorskip("pinocchio")
    kinematics = KinematicModel(load_robot_description(f"package://example-robot-data/robots/{name}.urdf"))
    model = pinocchio.buildModelFromXML(kinematics.description.xml.strip())
    data, rng = model.createData(), np.random.default_rng(1)
    low, high = np.maximum(kinematics.position_lower, -3.0), np.minimum(kinematics.position_upper, 3.0)
    for _ in range(5):
        positions = dict(zip(kinematics.joint_names, rng.uniform(low, high).tolist(), strict=True))
        q = pinocchio.neutral(model)
        for joint in kinematics.description.joints.values():
            if joint.kind == "fixed":
                continue
            mimic, value = joint.mimic, positions.get(joint.name)
            value = mimic.multiplier * positions[mimic.joint] + mimic.offset if mimic is not None else value
            row = model.joints[model.getJointId(joint.name)]
            q[row.idx_q : row.idx_q + row.nq] = [np.cos(value), np.sin(value)] if row.nq == 2 else value
        pinocchio.framesForwardKinematics(model, data, q)
        poses = kinematics.forward_kinematics(positions)
        for link, pose in poses.items():
            frame = model.getFrameId(link, pinocchio.FrameType.BODY)
            np.testing.assert_allclose(pose, data.oMf[frame].homogeneous, atol=1e-12)
            np.testing.assert_array_equal(kinematics.link_pose(positions, link), pose)


def test_continuous_prismatic_and_mimic_joints(mixed):
    assert mixed.joint_names == ("turn", "push")
    poses = mixed.forward_kinematics({"turn": np.pi / 2 + 20 * np.pi, "push": 0.3, "another device": 5.0})
    np.testing.assert_allclose(poses["slide"][:3, 3], [0, 1.3, 0], atol=1e-9)
    np.testing.assert_allclose(poses["follower"][:3, 3], [0.5, 0, 0], atol=1e-9)
    lower, upper, velocity = mixed.limits(["push", "turn"])
    assert (lower[0], upper[0], velocity[0]) == (0.0, 0.5, 1.0)
    assert np.isinf(upper[1])


def test_jacobian_is_the_derivative_of_the_pose(panda):
    step = 1e-6
    jacobian = panda.jacobian(HOME, "panda_rightfinger", [*ARM, "panda_finger_joint1"])
    pose = panda.link_pose(HOME, "panda_rightfinger")
    for column, name in enumerate([*ARM, "panda_finger_joint1"]):
        moved = panda.link_pose(HOME | {name: HOME[name] + step}, "panda_rightfinger")
        change = (np.linalg.inv(pose) @ moved - np.eye(4)) / step
        twist = [*change[:3, 3], change[2, 1], change[0, 2], change[1, 0]]
        np.testing.assert_allclose(jacobian[:, column], twist, atol=1e-5)


def test_bad_positions_and_names(panda, mixed):
    with pytest.raises(InvalidInputError, match="panda_joint3"):
        panda.forward_kinematics({name: value for name, value in HOME.items() if name != "panda_joint3"})
    with pytest.raises(InvalidInputError, match="panda_joint1"):
        panda.forward_kinematics(HOME | {"panda_joint1": float("nan")})
    with pytest.raises(InvalidInputError, match="ghost"):
        panda.link_pose(HOME, "ghost")
    with pytest.raises(InvalidInputError, match="mirror"):
        mixed.limits(["mirror"])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('type="continuous"', 'type="floating"', "floating"),
        ('<mimic joint="push"', '<mimic joint="ghost"', "ghost"),
        ('<mimic joint="push"', '<mimic joint="mirror"', "cycle"),
    ],
)
def test_robots_without_kinematics_by_name(old, new, expected):
    with pytest.raises(InvalidInputError, match=expected):
        KinematicModel(MIXED.replace(old, new))


def test_inverse_kinematics_reaches_every_reachable_pose(panda):
    rng = np.random.default_rng(3)
    lower, upper, _ = panda.limits(ARM)
    for _ in range(50):
        target = panda.link_pose(HOME | dict(zip(ARM, rng.uniform(lower, upper), strict=True)), "panda_hand_tcp")
        result = inverse_kinematics(panda, target, "panda_hand_tcp", ARM, HOME, rng)
        assert result.status is IKStatus.SUCCEEDED
        values = np.array([result.positions[name] for name in ARM])
        assert ((values >= lower) & (values <= upper)).all()
        reached = panda.link_pose(HOME | result.positions, "panda_hand_tcp")
        np.testing.assert_allclose(reached, target, atol=2e-4)


def test_inverse_kinematics_stays_near_its_seed(panda):
    target = panda.link_pose(HOME | {"panda_joint2": HOME["panda_joint2"] + 0.02}, "panda_hand_tcp")
    result = inverse_kinematics(panda, target, "panda_hand_tcp", ARM, HOME, np.random.default_rng(0))
    assert max(abs(result.positions[name] - HOME[name]) for name in ARM) < 0.1


def test_unreachable_pose_is_a_status_with_its_residual(panda):
    far = make_transform(translation=[3.0, 0.0, 0.5])
    result = inverse_kinematics(panda, far, "panda_hand_tcp", ARM, HOME, np.random.default_rng(0))
    assert result.status is IKStatus.NOT_FOUND
    assert result.residual[0] > 1.5
    assert not list(inverse_kinematics_solutions(panda, far, "panda_hand_tcp", ARM, HOME, 3, np.random.default_rng(0)))


def test_solutions_are_distinct_valid_and_repeatable(panda):
    target = panda.link_pose(HOME, "panda_hand_tcp")

    def solutions():
        rng = np.random.default_rng(5)
        found = inverse_kinematics_solutions(panda, target, "panda_hand_tcp", ARM, HOME, 6, rng)
        return np.array([[result.positions[name] for name in ARM] for result in found])

    values = solutions()
    assert len(values) == 6
    np.testing.assert_array_equal(values, solutions())
    np.testing.assert_allclose(values[0], [HOME[name] for name in ARM], atol=1e-9)
    for index, row in enumerate(values):
        pose = panda.link_pose(HOME | dict(zip(ARM, row, strict=True)), "panda_hand_tcp")
        np.testing.assert_allclose(pose, target, atol=2e-4)
        for other in values[:index]:
            assert np.abs(row - other).max() > IKConfig().distinct


def test_solutions_that_are_too_near_each_other_are_one(panda):
    target, rng = panda.link_pose(HOME, "panda_hand_tcp"), np.random.default_rng(5)
    config = IKConfig(distinct=2.0)
    found = list(inverse_kinematics_solutions(panda, target, "panda_hand_tcp", ARM, HOME, 20, rng, config))
    values = np.array([[result.positions[name] for name in ARM] for result in found])
    assert 2 <= len(values) < 20
    for index, row in enumerate(values):
        assert all(np.abs(row - other).max() > 2.0 for other in values[:index])


def test_continuous_joint_wraps(mixed):
    target = make_transform(matrix_from_rotation_vector([0, 0, 3.0]), [1.2 * np.cos(3.0), 1.2 * np.sin(3.0), 0])
    seed = {"turn": -3.0, "push": 0.0}
    result = inverse_kinematics(mixed, target, "slide", ["turn", "push"], seed, np.random.default_rng(0))
    assert result.status is IKStatus.SUCCEEDED
    # From -3 the short way to 3 is through -π.
    assert result.positions["turn"] == pytest.approx(3.0 - 2 * np.pi, abs=1e-3)
    assert result.positions["push"] == pytest.approx(0.2, abs=1e-4)


def test_inverse_kinematics_refuses_bad_input(panda):
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError):
        inverse_kinematics(panda, 2.0 * np.eye(4), "panda_hand", ARM, HOME, rng)
    with pytest.raises(InvalidInputError):
        inverse_kinematics(panda, np.eye(4), "panda_hand", [], HOME, rng)
    with pytest.raises(InvalidInputError):
        inverse_kinematics(panda, np.eye(4), "panda_hand", ["panda_finger_joint2"], HOME, rng)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.5, 3.0, np.pi - 1e-7, np.pi])
def test_pose_error_is_the_rotation_vector_between_poses(angle):
    rng, error = np.random.default_rng(2), np.empty(6)
    for _ in range(20):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        first = make_transform(matrix_from_rotation_vector(rng.normal(size=3)), rng.normal(size=3))
        turn = matrix_from_rotation_vector(angle * axis)
        second = make_transform(turn @ first[:3, :3], rng.normal(size=3))
        pose_error(first, second, error)
        np.testing.assert_allclose(error[:3], second[:3, 3] - first[:3, 3], atol=1e-15)
        # At half a turn either sense of the axis is right.
        np.testing.assert_allclose(matrix_from_rotation_vector(error[3:]), turn, atol=2e-7)
        assert np.linalg.norm(error[3:]) == pytest.approx(angle, abs=2e-7)


def test_joints_that_stay_are_not_moved(panda):
    """Fewer joints than the arm has, given in another order than the chain's."""
    joints = ["panda_joint6", "panda_joint1", "panda_joint4"]
    goal = HOME | {"panda_joint1": 0.4, "panda_joint4": -2.0, "panda_joint6": 1.9}
    target = panda.link_pose(goal, "panda_hand_tcp")
    result = inverse_kinematics(panda, target, "panda_hand_tcp", joints, HOME, np.random.default_rng(0))
    assert result.status is IKStatus.SUCCEEDED
    assert set(result.positions) == set(joints)
    for name in joints:
        assert result.positions[name] == pytest.approx(goal[name], abs=1e-3)


def test_a_pose_opposite_to_the_seed_is_found(panda):
    """The hand turned by exactly half a turn about its own axis, where the rotation vector has no single sense."""
    target = panda.link_pose(HOME, "panda_hand_tcp") @ np.diag([-1.0, -1.0, 1.0, 1.0])
    result = inverse_kinematics(panda, target, "panda_hand_tcp", ARM, HOME, np.random.default_rng(0))
    assert result.status is IKStatus.SUCCEEDED
    reached = panda.link_pose(HOME | result.positions, "panda_hand_tcp")
    np.testing.assert_allclose(reached, target, atol=2e-4)
