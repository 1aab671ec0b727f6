"""Pairs of links that spheres make touch always or never: shares, proofs, rare contacts, every kind of joint."""

import math

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import invert_transform, make_transform
from morphit_ros.robot.chain import Chain, place_tip
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres import LinkSpheres, SphereModel, self_collision_matrix, touching_pairs
from morphit_ros.spheres.self_collision.joint_ranges import joint_ranges
from morphit_ros.spheres.self_collision.proof import Verdict, _bounds, check_pair

# Every kind of joint, mimic joints of a mimic joint, origins that turn, branches, a link between that has no spheres.
TREE = """<robot name="tree">
  <link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="e"/><link name="f"/><link name="g"/>
  <joint name="1" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.1 0 0.3" rpy="0.3 1.2 -2"/>
    <axis xyz="1 2 -1"/><limit lower="-2" upper="1" velocity="1" effort="1"/></joint>
  <joint name="2" type="prismatic"><parent link="b"/><child link="c"/><origin xyz="0 0.2 0" rpy="1 0 0.5"/>
    <axis xyz="0 -3 1"/><limit lower="-0.1" upper="0.4" velocity="1" effort="1"/></joint>
  <joint name="3" type="continuous"><parent link="c"/><child link="d"/><origin xyz="0 0 0.25"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="4" type="fixed"><parent link="d"/><child link="e"/><origin xyz="0.2 0 0" rpy="0 0 1"/></joint>
  <joint name="5" type="revolute"><parent link="a"/><child link="f"/><origin xyz="-0.2 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" velocity="1" effort="1"/><mimic joint="1" multiplier="-1.5" offset="0.25"/></joint>
  <joint name="6" type="prismatic"><parent link="f"/><child link="g"/><origin xyz="0 0.3 0" rpy="0 1 0"/>
    <axis xyz="1 0 0"/>
    <limit lower="-9" upper="9" velocity="1" effort="1"/><mimic joint="5" multiplier="0.5" offset="-0.1"/></joint>
</robot>"""


def chain(*joints: str) -> str:
    """A robot whose links l0, l1, … are joined one after the other; `#` is the joint's number."""
    links = "".join(f'<link name="l{number}"/>' for number in range(len(joints) + 1))
    text = "".join(
        f'<joint name="j{n}" {joint}<parent link="l{n}"/><child link="l{n + 1}"/></joint>'
        for n, joint in enumerate(joints)
    )
    return f'<robot name="chain">{links}{text}</robot>'


def hinge(lower: float, upper: float, xyz: str = "0 0 0", axis: str = "0 0 1", mimic: str = "") -> str:
    return (
        f'type="revolute"><origin xyz="{xyz}"/><axis xyz="{axis}"/>'
        f'<limit lower="{lower}" upper="{upper}" velocity="1" effort="1"/>{mimic}'
    )


def balls(**links: tuple[tuple[float, float, float], float]) -> SphereModel:
    """One sphere a link: its centre and radius."""
    return SphereModel(
        robot_name="chain",
        variant="balanced",
        links={
            name: LinkSpheres(
                link=name, centers=np.array([center]), radii=np.array([radius]), d_avg=0.0, d_max=0.0, content_hash=""
            )
            for name, (center, radius) in links.items()
        },
    )


def random_model(names, count=4, seed=0):
    rng = np.random.default_rng(seed)
    links = {
        name: LinkSpheres(
            link=name,
            centers=rng.normal(scale=0.1, size=(count, 3)),
            radii=rng.uniform(0.01, 0.06, count),
            d_avg=0.0,
            d_max=0.0,
            content_hash="",
        )
        for name in names
    }
    return SphereModel(robot_name="tree", variant="balanced", links=links)


def test_poses_are_those_of_the_kinematic_model():
    pytest.importorskip("pinocchio")
    kinematics = KinematicModel(TREE)
    ranges = joint_ranges(kinematics)
    assert ranges.names == kinematics.joint_names == ("1", "2", "3")
    rng = np.random.default_rng(0)
    for _ in range(20):
        positions = rng.uniform(ranges.lower, ranges.upper)
        expected = kinematics.forward_kinematics(dict(zip(ranges.names, positions.tolist(), strict=True)))
        assert set(expected) == set("abcdefg")
        for name, pose in expected.items():
            np.testing.assert_allclose(relative_pose(kinematics.between("a", name), positions), pose, atol=1e-12)


def relative_pose(way, positions):
    """The product of the motions between two links, joint by joint."""
    pose, joints = np.eye(4), way.motions
    for i in range(len(joints.variables)):
        angle = joints.multipliers[i] * positions[joints.variables[i]] + joints.offsets[i]
        x, y, z = joints.axes[i]
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        turned = np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
        motion = make_transform(None, angle * joints.axes[i]) if joints.sliding[i] else make_transform(turned)
        pose = pose @ joints.before[i] @ motion
    return pose @ way.T_last_tip


def test_motions_between_any_two_links():
    kinematics = KinematicModel(TREE)
    ranges = joint_ranges(kinematics)
    positions = np.random.default_rng(1).uniform(ranges.lower, ranges.upper)
    poses = kinematics.forward_kinematics(dict(zip(ranges.names, positions.tolist(), strict=True)))
    for first in poses:
        for second in poses:
            expected = invert_transform(poses[first]) @ poses[second]
            way = kinematics.between(first, second)
            np.testing.assert_allclose(relative_pose(way, positions), expected, atol=1e-12)
            tip = np.empty((4, 4))
            place_tip(way, positions, np.empty((len(way.motions.parents), 4, 4)), tip)
            np.testing.assert_allclose(tip, expected, atol=1e-12)


def with_own_variables(way):
    """The variables that move a chain, and the chain with them counted from zero."""
    used, variables = np.unique(way.motions.variables, return_inverse=True)
    return used, Chain(way.motions._replace(variables=variables.astype(np.int64)), way.T_last_tip)


def test_bounds_hold_everywhere_in_the_box():
    kinematics = KinematicModel(TREE)
    rng = np.random.default_rng(2)
    tightest = np.inf
    for _ in range(60):
        way = kinematics.between(*rng.choice(list("abcdefg"), 2, replace=False))
        used, own = with_own_variables(way)
        if len(used) == 0:
            continue
        ca, cb = rng.normal(scale=0.2, size=(3, 3)), rng.normal(scale=0.2, size=(2, 3))
        ra, rb = rng.uniform(0.01, 0.1, 3), rng.uniform(0.01, 0.1, 2)
        middle = rng.uniform(-2, 2, len(used))
        half = rng.uniform(0, 1, len(used)) * rng.choice([0.02, 0.3, 4.0])
        gap, low, high, _ = _bounds(own, middle, half, ca, ra, cb, rb)
        assert low <= gap <= high
        full = np.zeros(len(kinematics.joint_names))
        for sample in range(200):
            # Corners, where the motion is greatest, and points between.
            share = rng.choice([-1.0, 1.0], len(used)) if sample % 2 else rng.uniform(-1, 1, len(used))
            full[used] = middle + share * half
            pose = relative_pose(way, full)
            moved = cb @ pose[:3, :3].T + pose[:3, 3]
            actual = (np.linalg.norm(ca[:, None] - moved[None], axis=2) - ra[:, None] - rb[None]).min()
            assert low - 1e-12 <= actual <= high + 1e-12
            if half.max() < 0.03:
                tightest = min(tightest, (high - low) - abs(actual - gap))
    # The bound of a small box is of the size of the motion in it, not some huge number.
    assert tightest < 0.02


@pytest.mark.parametrize("half", [0.01, 0.5, 2.0, math.pi, 5.0])
def test_bounds_of_one_hinge_are_reached(half):
    # The second ball is 1 m from the axis, the first far away on the line along which the half turn moves the second.
    way = KinematicModel(chain(hinge(-9, 9))).between("l0", "l1")
    angle = min(half, math.pi)
    end = np.array([math.cos(angle), math.sin(angle), 0.0])
    towards = (end - [1, 0, 0]) / np.linalg.norm(end - [1, 0, 0])

    def bounds(first, second):
        balls_of = (np.array([first], dtype=float), np.array([0.25]), np.array([second], dtype=float), np.array([0.5]))
        return _bounds(way, np.zeros(1), np.array([half]), *balls_of)[:3]

    reached = 50.0 - np.linalg.norm(end - [1, 0, 0]) - 0.75
    gap, low, _ = bounds([1, 0, 0] + 50.0 * towards, [1, 0, 0])
    np.testing.assert_allclose([gap, low], [49.25, reached], atol=1e-9)
    gap, _, high = bounds([1, 0, 0] - 50.0 * towards, [1, 0, 0])
    np.testing.assert_allclose([gap, high], [49.25, 98.5 - reached], atol=1e-9)
    # Near the axis it is the first ball whose motion counts, however far the second is from it.
    gap, low, high = bounds([0.1, 0, 0], [7, 0, 0])
    assert high - low <= 2.0 * 0.1 * 2.0 * math.sin(angle / 2) + 1e-9


def test_pair_that_misses_by_a_hair_is_proven_free():
    # Two hinges side by side: the ball at the end of the second comes within 1 mm of that of the base, no closer.
    description = load_robot_description(chain(hinge(-3, 3, "1 0 0"), hinge(-3, 3, "0.5 0 0")))
    model = balls(l0=((2.0, 0.0, 0.0), 0.199), l2=((0.2, 0.0, 0.0), 0.1))
    assert self_collision_matrix(model, description, 500).adjacent == (("l0", "l2"),)
    # With spheres between them they are not adjacent.
    model = SphereModel(
        robot_name="chain", variant="v", links={**model.links, "l1": balls(l1=((0, 0, 5.0), 0.01)).links["l1"]}
    )
    free = self_collision_matrix(model, description, 500)
    assert free.never == (("l0", "l2"),)
    assert free.proven == {("l0", "l2")}
    touching = self_collision_matrix(model, description, 500, padding=0.002)
    assert touching.sometimes == (("l0", "l2"),)


def test_rare_contact_that_samples_miss_is_found():
    # All three hinges must be within about a hundredth of a radian of one position.
    description = load_robot_description(
        chain(hinge(-3, 3, "0 0 0"), hinge(-3, 3, "1 0 0", "0 1 0"), hinge(-3, 3, "1 0 0", "0 0 1"))
    )
    model = balls(l0=((1.0, 0.0, -2.0), 0.01), l1=((0, 0, 9.0), 0.01), l3=((1.0, 0.0, 0.0), 0.01))
    sampled = self_collision_matrix(model, description, 10000, boxes=0)
    assert ("l0", "l3") in sampled.never
    assert sampled.proven == frozenset()
    assert 0.0 < sampled.unseen_share < 0.001
    searched = self_collision_matrix(model, description, 10000)
    assert ("l0", "l3") in searched.sometimes
    assert searched.contact_share["l0", "l3"] == 0.0


def test_always_is_proven_only_if_it_is_so():
    # Around a hinge through both balls; then around one beside it, which 2 % of the range pull apart.
    def matrix(reach: float, radius: float):
        description = load_robot_description(chain(hinge(-3.1, 3.1), hinge(-3.1, 3.1, f"{reach} 0 0")))
        model = balls(l0=((0, 0, 0), 0.1), l1=((0, 0, 9.0), 0.01), l2=((reach, 0, 0), radius))
        return self_collision_matrix(model, description, 2000)

    near = matrix(0.05, 0.1)
    assert near.always == (("l0", "l2"),)
    assert near.proven == {("l0", "l2")}
    nearly = matrix(0.1, 0.0999)
    assert 0.95 < nearly.contact_share["l0", "l2"] < 1.0
    # It can be apart, and a planner has to check it.
    assert nearly.always == ()
    assert nearly.sometimes == (("l0", "l2"),)
    assert math.isnan(nearly.left_out["l0", "l2"])
    assert nearly.proven == frozenset()
    half = matrix(0.1, 0.05)
    assert half.sometimes == (("l0", "l2"),)
    # Asked for a proof of what holds nearly everywhere, the search finds where it doesn't.
    kinematics = KinematicModel(chain(hinge(-3.1, 3.1), hinge(-3.1, 3.1, "0.1 0 0")))
    way, ranges = kinematics.between("l0", "l2"), joint_ranges(kinematics)
    spheres = ((np.zeros((1, 3)), np.array([0.1])), (np.array([[-0.1, 0, 0]]), np.array([0.0999])))
    assert check_pair(way, ranges, spheres, True, 20000) is Verdict.REFUTED
    assert check_pair(way, ranges, spheres, False, 20000) is Verdict.REFUTED
    assert check_pair(way, ranges, spheres, True, 1) is Verdict.OPEN
    assert check_pair(way, ranges, ((np.zeros((1, 3)), np.array([0.11])), spheres[1]), True, 20000) is Verdict.PROVEN


def boxed_arm(first: str, second: str) -> str:
    """Two links with a box each on a hinge, and a small one between them."""
    boxes = {"l0": (first, "0 0 0"), "l1": ("0.01 0.01 0.01", "0 0 9"), "l2": (second, "0.1 0 0")}
    text = chain(hinge(-1.5, 1.5), 'type="fixed"><origin xyz="0 0 0"/>')
    for name, (size, xyz) in boxes.items():
        geometry = f'<collision><origin xyz="{xyz}"/><geometry><box size="{size}"/></geometry></collision>'
        text = text.replace(f'<link name="{name}"/>', f'<link name="{name}">{geometry}</link>')
    return text


@pytest.mark.parametrize("home", [None, {"j0": 0.0}])
def test_where_spheres_always_touch_the_links_decide(home):
    model = balls(l0=((0, 0, 0), 0.2), l1=((0, 0, 9.0), 0.01), l2=((0.1, 0, 0), 0.2))

    def matrix(first: str, second: str):
        found = self_collision_matrix(model, load_robot_description(boxed_arm(first, second)), 500, home=home)
        assert found.contact_share["l0", "l2"] == 1.0
        return found

    through = matrix("0.1 0.1 0.1", "0.2 0.05 0.05")
    assert through.always == (("l0", "l2"),)
    assert ("l0", "l2") in through.proven
    apart = matrix("0.06 0.06 0.06", "0.05 0.05 0.05")
    assert apart.always == ()
    assert apart.never[-1] == ("l0", "l2")
    assert ("l0", "l2") in apart.proven
    # A long box is met only where the hinge turns the other one towards it.
    sometimes = matrix("0.05 0.3 0.05", "0.1 0.02 0.02")
    assert sometimes.always == ()
    assert sometimes.sometimes == (("l0", "l2"),)
    assert 0.0 < sometimes.left_out["l0", "l2"] < 1.0
    # At home the spheres touch, as everywhere; the links do not.
    assert sometimes.default == ()


def test_a_pair_that_touches_at_home_is_left_out_there():
    model = balls(l0=((0, 0, 0), 0.2), l1=((0, 0, 9.0), 0.01), l2=((0.1, 0, 0), 0.2))
    robot = load_robot_description(boxed_arm("0.05 0.3 0.05", "0.1 0.02 0.02"))
    assert self_collision_matrix(model, robot, 500, home={"j0": 1.5}).default == (("l0", "l2"),)


SLIDE = '<joint name="{0}" type="prismatic"><parent link="palm"/><child link="{0}"/><origin xyz="0 0 0"/>' \
        '<axis xyz="{1} 0 0"/><limit lower="0" upper="0.04" velocity="1" effort="1"/>{2}</joint>'  # fmt: skip


def gripper(mimic: str) -> str:
    links = '<link name="palm"/><link name="left"/><link name="right"/>'
    return f'<robot name="g">{links}{SLIDE.format("left", 1, "")}{SLIDE.format("right", 1, mimic)}</robot>'


def test_mimic_joints_move_together():
    model = balls(palm=((0, 0, 1.0), 0.01), left=((0.0, 0, 0), 0.004), right=((0.02, 0, 0), 0.004))
    together = self_collision_matrix(model, load_robot_description(gripper('<mimic joint="left"/>')), 500)
    assert ("left", "right") in together.never
    # Their distance does not change, but a bound that takes both motions as independent has to halve the range.
    assert ("left", "right") in together.proven
    apart = self_collision_matrix(model, load_robot_description(gripper("")), 500)
    assert ("left", "right") in apart.sometimes


def test_joint_without_limits_turns_once_around():
    turn = 'type="continuous"><origin xyz="0 0 0"/><axis xyz="0 0 1"/>'
    still = 'type="fixed">'
    model = balls(l0=((-1, 0, 0), 0.05), l1=((0, 0, 9.0), 0.01), l2=((1, 0, 0), 0.05))
    assert self_collision_matrix(model, load_robot_description(chain(turn, still)), 2000).sometimes == (("l0", "l2"),)
    far = balls(l0=((-1, 0, 0), 0.05), l1=((0, 0, 9.0), 0.01), l2=((0.8, 0, 0), 0.05))
    assert self_collision_matrix(far, load_robot_description(chain(turn, still)), 200).proven == {("l0", "l2")}
    # A follower at half its speed needs two turns of the leader, which the range does not have: nothing is proven.
    half = 'type="continuous"><origin xyz="0 0 0"/><axis xyz="0 0 1"/><mimic joint="j0" multiplier="0.5"/>'
    follower = self_collision_matrix(far, load_robot_description(chain(turn, half)), 200)
    assert follower.never == (("l0", "l2"),)
    assert follower.proven == frozenset()


def test_rigid_pairs_are_decided_without_samples():
    description = load_robot_description(chain('type="fixed"><origin xyz="1 0 0"/>', 'type="fixed">'))
    apart = self_collision_matrix(balls(l0=((0, 0, 0), 0.4), l1=((5, 0, 0), 0.1), l2=((0, 0, 0), 0.5)), description, 1)
    assert apart.never == apart.ignored[-1:] == (("l0", "l2"),)
    assert ("l0", "l2") in apart.proven
    touching = self_collision_matrix(
        balls(l0=((0, 0, 0), 0.6), l1=((5, 0, 0), 0.1), l2=((0, 0, 0), 0.5)), description, 1
    )
    assert touching.always == (("l0", "l2"),)
    assert ("l0", "l2") in touching.proven


def test_shares_are_those_of_single_configurations():
    pytest.importorskip("pinocchio")
    description = load_robot_description(TREE)
    kinematics = KinematicModel(description)
    model = random_model(["a", "b", "c", "e", "f", "g"], seed=3)
    matrix = self_collision_matrix(model, kinematics, 200, seed=4, padding=0.01)
    rng = np.random.default_rng(4)
    ranges = joint_ranges(kinematics)
    counts = dict.fromkeys(matrix.contact_share, 0)
    for positions in rng.uniform(ranges.lower, ranges.upper, (200, 3)):
        poses = kinematics.forward_kinematics(dict(zip(ranges.names, positions.tolist(), strict=True)))
        for pair in touching_pairs(model, poses, padding=0.01):
            counts[pair] += 1
    assert {pair: count / 200 for pair, count in counts.items()} == matrix.contact_share
    assert any(0.0 < share < 1.0 for share in matrix.contact_share.values())
    # e hangs below d, which has no spheres.
    assert ("c", "e") in matrix.adjacent
    assert len(matrix.contact_share) == 6 * 5 // 2
    groups = (matrix.adjacent, matrix.always, matrix.never, matrix.default, matrix.sometimes)
    assert sorted(pair for group in groups for pair in group) == sorted(matrix.contact_share)
    assert matrix.reasons.keys() == set(matrix.ignored)
    for workers in (1, 3):
        assert self_collision_matrix(model, description, 200, seed=4, padding=0.01, workers=workers) == matrix


def test_proofs_are_never_contradicted_by_samples():
    kinematics = KinematicModel(TREE)
    way, ranges = kinematics.between("a", "g"), joint_ranges(kinematics)
    verdicts = []
    for seed in range(6):
        model = random_model(["a", "b", "c", "e", "f", "g"], count=2, seed=seed)
        few = self_collision_matrix(model, load_robot_description(TREE), 3, seed=seed)
        many = self_collision_matrix(model, load_robot_description(TREE), 20000, seed=seed + 100, boxes=0)
        for pair in few.proven:
            assert many.contact_share[pair] == (0.0 if pair in few.never else 1.0)
        verdicts += [pair in few.proven for pair in few.never + few.always]
        spheres = tuple((model.links[name].centers, model.links[name].radii) for name in ("a", "g"))
        answers = {always: check_pair(way, ranges, spheres, always, 20000) for always in (False, True)}
        assert Verdict.PROVEN not in answers.values() or Verdict.REFUTED in answers.values()
    assert any(verdicts)


def test_contacts_at_home_are_default():
    description = load_robot_description(chain(hinge(-3, 3), hinge(-3, 3, "1 0 0")))
    model = balls(l0=((0, 0, 0), 0.2), l1=((0, 0, 9.0), 0.01), l2=((1, 0, 0), 0.2))
    away = self_collision_matrix(model, description, 2000, home={"j1": 0.0})
    assert away.sometimes == (("l0", "l2"),)
    folded = self_collision_matrix(model, description, 2000, home={"j1": 3.0})
    assert folded.default == (("l0", "l2"),)
    assert folded.reasons[("l0", "l2")] == "Default"
    assert ("l0", "l2") in folded.ignored
    with pytest.raises(InvalidInputError, match="positions"):
        self_collision_matrix(model, description, 10, home={"j1": math.nan})


def test_empty_models_and_bad_input():
    description = load_robot_description(chain(hinge(-3, 3)))
    empty = SphereModel(robot_name="chain", variant="v", links={})
    assert self_collision_matrix(empty, description).contact_share == {}
    assert self_collision_matrix(balls(l0=((0, 0, 0), 1)), description).contact_share == {}
    assert touching_pairs(empty, {}) == []
    with pytest.raises(InvalidInputError, match="samples"):
        self_collision_matrix(empty, description, samples=0)
    with pytest.raises(InvalidInputError, match="boxes"):
        self_collision_matrix(empty, description, boxes=-1)
    with pytest.raises(InvalidInputError, match="workers"):
        self_collision_matrix(empty, description, workers=0)
    with pytest.raises(InvalidInputError, match="ghost"):
        self_collision_matrix(balls(ghost=((0, 0, 0), 1)), description)
    with pytest.raises(InvalidInputError, match="l1"):
        touching_pairs(balls(l1=((0, 0, 0), 1)), {})


@pytest.mark.parametrize(
    ("joint", "says"),
    [
        ('type="floating">', "floating"),
        ('type="planar"><axis xyz="0 0 1"/>', "planar"),
        ('type="prismatic"><limit lower="-inf" upper="inf" velocity="1" effort="1"/>', "limit"),
        (hinge(-1, 1, mimic='<mimic joint="j0"/>'), "mimic"),
        (hinge(-1, 1, mimic='<mimic joint="gone"/>'), "gone"),
    ],
)
def test_joints_that_cannot_be_treated(joint, says):
    model = balls(l0=((0, 0, 0), 1), l1=((0, 0, 0), 1))
    with pytest.raises(InvalidInputError, match=says):
        self_collision_matrix(model, load_robot_description(chain(joint)))
