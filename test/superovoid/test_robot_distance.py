"""A robot against itself and the world: against brute force, MoveIt's conventions, gradients, every refusal."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import load_semantic_description
from morphit_ros.superovoid.distances.min_distance import min_distance
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Box, Capsule, HalfSpace, Sphere
from morphit_ros.superovoid.robots.body_pairs import BodyType
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.world import CollisionWorld, PlacedShape, WorldObject
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# A turning chain with a link without shape, a prismatic joint, and a branch that mimics with a factor.
URDF = """<robot name="arm">
  <link name="base"/><link name="upper"/><link name="wrist"/><link name="lower"/><link name="slide"/><link name="tip"/>
  <link name="finger"/><link name="other_finger"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.2"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
  <joint name="b" type="revolute"><parent link="upper"/><child link="wrist"/><origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
  <joint name="c" type="revolute"><parent link="wrist"/><child link="lower"/><origin xyz="0 0 0.1"/><axis xyz="1 0 0"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
  <joint name="d" type="prismatic"><parent link="lower"/><child link="slide"/><origin xyz="0 0 0.2"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" velocity="1" effort="1"/></joint>
  <joint name="e" type="fixed"><parent link="slide"/><child link="tip"/><origin xyz="0 0.1 0.1"/></joint>
  <joint name="f" type="prismatic"><parent link="slide"/><child link="finger"/><origin xyz="0.1 0 0.2"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.1" velocity="1" effort="1"/></joint>
  <joint name="g" type="prismatic"><parent link="slide"/><child link="other_finger"/><origin xyz="-0.1 0 0.2"/>
    <axis xyz="-1 0 0"/><limit lower="0" upper="0.1" velocity="1" effort="1"/>
    <mimic joint="f" multiplier="0.5"/></joint>
</robot>"""
SRDF = """<robot name="arm">
  <group name="hand"><joint name="f"/></group>
  <disable_collisions link1="base" link2="upper"/><disable_collisions link1="upper" link2="lower"/>
</robot>"""
STATE = {"a": 0.7, "b": 0.4, "c": 1.9, "d": 0.05, "f": 0.03}


def placed(shape: Superovoid, xyz: Any = (0.0, 0.0, 0.0), rpy: Any = (0.0, 0.0, 0.0)) -> PlacedSuperovoid:
    return PlacedSuperovoid(shape, make_transform(matrix_from_rpy(rpy), xyz))


SHAPES = {
    "base": (placed(Superovoid.ellipsoid((0.1, 0.12, 0.08))), placed(Superovoid.sphere(0.05), (0.1, 0.0, 0.05))),
    "upper": (placed(Superovoid((0.05, 0.06, 0.12), (0.6, 0.8)), (0.0, 0.0, 0.15)),),
    # None for the wrist.
    "lower": (placed(Superovoid((0.05, 0.04, 0.1), (0.8, 1.2), (0.1, 0.1)), (0.0, 0.0, 0.1), (0.2, 0.1, 0.0)),),
    "slide": (placed(Superovoid.sphere(0.05)),),
    "tip": (placed(Superovoid((0.03, 0.03, 0.03), (1.0, 0.7))),),
    "finger": (placed(Superovoid.ellipsoid((0.01, 0.02, 0.04))),),
    "other_finger": (placed(Superovoid.ellipsoid((0.01, 0.02, 0.04))),),
}


def thing(name: str, shape: Any, xyz: Any, **named: Any) -> WorldObject:
    return WorldObject(name, make_transform(np.eye(3), xyz), (PlacedShape(shape, np.eye(4)),), **named)


WORLD = CollisionWorld.of(
    [
        thing("box", Box((0.2, 0.1, 0.3)), (0.5, 0.1, 0.4)),
        thing("ball", Sphere(0.06), (-0.3, 0.2, 0.6)),
        thing("floor", HalfSpace(), (0.0, 0.0, -0.3)),
        WorldObject(
            "post",
            make_transform(np.eye(3), (0.4, -0.4, 0.2)),
            (
                PlacedShape(Capsule(0.03, 0.2), np.eye(4)),
                PlacedShape(Superovoid((0.1, 0.1, 0.02), (1.0, 0.3)), make_transform(np.eye(3), (0.0, 0.0, 0.15))),
            ),
        ),
    ]
)


@pytest.fixture(scope="module")
def model() -> KinematicModel:
    return KinematicModel(URDF)


@pytest.fixture(scope="module")
def robot(model: KinematicModel) -> RobotDistance:
    return RobotDistance(SHAPES, model, load_semantic_description(SRDF))


def brute_force(
    model: KinematicModel, state: dict[str, float], world: CollisionWorld
) -> dict[frozenset[str], list[float]]:
    """Distances of all pairs of shapes of all pairs of bodies, one after the other."""
    poses = model.forward_kinematics(state)
    bodies: dict[str, list[tuple[Any, np.ndarray]]] = {
        link: [(item.shape, poses[link] @ item.T_link_shape) for item in shapes] for link, shapes in SHAPES.items()
    }
    for item in world:
        base = poses[item.attached_to] if item.attached_to else np.eye(4)
        bodies[item.name] = [(s.shape, base @ item.T_frame_object @ s.T_object_shape) for s in item.shapes]
    fixed = {item.name for item in world if not item.attached_to}
    return {
        frozenset((a, b)): sorted(
            min_distance(one, T_one, other, T_other).distance
            for (one, T_one), (other, T_other) in itertools.product(bodies[a], bodies[b])
        )
        for a, b in itertools.combinations(bodies, 2)
        if not {a, b} <= fixed
    }


def random_states(model: KinematicModel, count: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(3)
    return [
        dict(zip(model.joint_names, rng.uniform(model.position_lower, model.position_upper), strict=True))
        for _ in range(count)
    ]


DISABLED = [frozenset(("base", "upper")), frozenset(("upper", "lower"))]


@pytest.mark.parametrize("kind", list(DistanceType))
def test_every_type_agrees_with_brute_force(robot: RobotDistance, model: KinematicModel, kind: DistanceType) -> None:
    request = RobotDistanceRequest(type=kind, max_contacts_per_body=2)
    for state in random_states(model, 20):
        expected = {k: v for k, v in brute_force(model, state, WORLD).items() if k not in DISABLED}
        (found,) = robot.compute([state], request, WORLD)
        wanted = {
            DistanceType.GLOBAL: [min(v[0] for v in expected.values())],
            DistanceType.SINGLE: sorted(v[0] for v in expected.values()),
            DistanceType.LIMITED: sorted(itertools.chain.from_iterable(v[:2] for v in expected.values())),
            DistanceType.ALL: sorted(itertools.chain.from_iterable(expected.values())),
        }[kind]
        np.testing.assert_allclose([pair.distance for pair in found.distances], wanted, atol=1e-8)
        assert found.minimum_distance is found.distances[0]
        assert found.collision is (wanted[0] <= 0.0)
        for pair in found.distances:
            assert min(abs(pair.distance - d) for d in expected[frozenset(pair.link_names)]) < 1e-8
            assert pair.certified
            assert pair.lower_bound <= pair.distance + 1e-9


def test_points_and_normal_are_those_of_the_bodies_in_order(robot: RobotDistance) -> None:
    (found,) = robot.compute([STATE], RobotDistanceRequest(type=DistanceType.SINGLE), WORLD)
    for pair in found.distances:
        assert pair.nearest_points is not None
        gap = pair.nearest_points[1] - pair.nearest_points[0]
        # Across the normal, where a distance depends on them to second order only, points are less exact.
        np.testing.assert_allclose(gap, pair.distance * pair.normal, atol=1e-6)
        assert gap @ pair.normal == pytest.approx(pair.distance, abs=1e-9)
        assert (pair.link_names[1] in WORLD.objects) is (pair.body_types[1] is BodyType.WORLD_OBJECT)
        assert pair.body_types[0] is BodyType.ROBOT_LINK
    on_floor = [pair for pair in found.distances if pair.link_names[1] == "floor"]
    assert len(on_floor) == len(SHAPES)
    for pair in on_floor:
        np.testing.assert_allclose(pair.normal, (0.0, 0.0, -1.0), atol=1e-12)


def test_gradient_is_the_finite_difference(robot: RobotDistance, model: KinematicModel) -> None:
    request = RobotDistanceRequest(type=DistanceType.SINGLE, gradient=True)
    step = 1e-5
    for state in random_states(model, 3):
        (found,) = robot.compute([state], request, WORLD)
        moved = [{**state, name: state[name] + sign * step} for name in model.joint_names for sign in (1.0, -1.0)]
        around = [
            {pair.link_names: pair.distance for pair in item.distances} for item in robot.compute(moved, request, WORLD)
        ]
        checked = 0
        for pair in found.distances:
            # A body of several shapes has kinks where the nearest one changes; in contact, where the axis does.
            if pair.distance < 0.01 or {"base", "post"} & set(pair.link_names):
                continue
            names = pair.link_names
            expected = [(around[2 * k][names] - around[2 * k + 1][names]) / (2 * step) for k in range(len(moved) // 2)]
            np.testing.assert_allclose(pair.gradient, expected, atol=2e-5)
            checked += 1
        assert checked > 5


def test_a_batch_is_the_states_one_by_one_and_shares_them_among_threads(
    robot: RobotDistance, model: KinematicModel
) -> None:
    states = random_states(model, 20)
    batch = robot.compute(states, world=WORLD)
    alone = [robot.compute([state], world=WORLD)[0] for state in states]
    for one, other in zip(batch, alone, strict=True):
        assert one.minimum_distance is not None and other.minimum_distance is not None
        assert one.minimum_distance.distance == other.minimum_distance.distance
        assert one.minimum_distance.link_names == other.minimum_distance.link_names
    assert robot.compute([], world=WORLD) == ()


def pairs_of(robot: RobotDistance, request: RobotDistanceRequest, world: CollisionWorld = WORLD) -> set[frozenset[str]]:
    (found,) = robot.compute([STATE], request, world)
    return {frozenset(pair.link_names) for pair in found.distances}


def every(**named: Any) -> RobotDistanceRequest:
    return RobotDistanceRequest(type=DistanceType.SINGLE, **named)


def test_semantics_groups_pairs_and_switches_choose(robot: RobotDistance, model: KinematicModel) -> None:
    everything = pairs_of(robot, every(ignore_semantics=True))
    assert everything == set(brute_force(model, STATE, WORLD))
    assert pairs_of(robot, every()) == everything - set(DISABLED)
    world_only = pairs_of(robot, every(self_distance=False))
    assert world_only == {pair for pair in everything if pair & set(WORLD.objects)}
    assert pairs_of(robot, every(world_distance=False)) == everything - set(DISABLED) - world_only
    # The joint of the group, and the one that mimics it.
    fingers = {"finger", "other_finger"}
    assert pairs_of(robot, every(group="hand")) == {pair for pair in everything if pair & fingers}
    chosen = every(pairs=(("tip", "box"), ("base", "upper")))
    assert pairs_of(robot, chosen) == {frozenset(("tip", "box"))}
    allowed = every(allowed_pairs=(("box", "tip"), ("wrist", "base")))
    assert pairs_of(robot, allowed) == everything - set(DISABLED) - {frozenset(("tip", "box"))}


def test_without_an_srdf_rigid_and_adjacent_links_may_touch(model: KinematicModel) -> None:
    plain = RobotDistance(SHAPES, model)
    links = pairs_of(plain, every(world_distance=False))
    # The wrist has no shape, so that upper and lower are neighbours; tip and slide are fixed to each other.
    neighbours = {
        ("base", "upper"), ("upper", "lower"), ("lower", "slide"), ("lower", "tip"), ("slide", "tip"),
        ("slide", "finger"), ("tip", "finger"), ("slide", "other_finger"), ("tip", "other_finger"),
    }  # fmt: skip
    assert links == {frozenset(p) for p in itertools.combinations(SHAPES, 2)} - {frozenset(p) for p in neighbours}
    assert len(pairs_of(plain, every(world_distance=False, ignore_semantics=True))) == 21


def test_attached_objects_move_with_their_link_and_may_touch_it(robot: RobotDistance, model: KinematicModel) -> None:
    tool = thing("tool", Box((0.02, 0.02, 0.2)), (0.0, 0.0, 0.1), attached_to="tip", touch_links=frozenset(["finger"]))
    world = WORLD.changed(add=[tool])
    (found,) = robot.compute([STATE], every(), world)
    with_tool = {p.link_names: p for p in found.distances if "tool" in p.link_names}
    assert {other for names in with_tool for other in names} - {"tool"} == {
        "base", "upper", "lower", "slide", "other_finger", *WORLD.objects,
    }  # fmt: skip
    expected = brute_force(model, STATE, world)
    for names, pair in with_tool.items():
        assert pair.distance == pytest.approx(expected[frozenset(names)][0], abs=1e-8)
        assert pair.body_types[names.index("tool")] is BodyType.ROBOT_ATTACHED


def test_threshold_and_unsigned_distances(robot: RobotDistance, model: KinematicModel) -> None:
    (full,) = robot.compute([STATE], every(), WORLD)
    (near,) = robot.compute([STATE], every(distance_threshold=0.2), WORLD)
    assert [p.distance for p in near.distances] == pytest.approx(
        [p.distance for p in full.distances if p.distance <= 0.2]
    )
    for kind in DistanceType:
        (nothing,) = robot.compute([STATE], RobotDistanceRequest(type=kind, distance_threshold=-10.0), WORLD)
        assert nothing.minimum_distance is None
        assert nothing.distances == ()
        assert not nothing.collision
    inside = WORLD.changed(add=[thing("box", Box((0.2, 0.2, 0.2)), (0.0, 0.0, 0.0))])
    for kind in (DistanceType.GLOBAL, DistanceType.ALL):
        (touching,) = robot.compute([STATE], RobotDistanceRequest(type=kind, signed_distance=False), inside)
        assert touching.collision
        assert touching.distances[0].distance == 0.0
        assert min(p.distance for p in touching.distances) == 0.0
    (signed,) = robot.compute([STATE], RobotDistanceRequest(), inside)
    assert signed.minimum_distance is not None
    assert signed.minimum_distance.distance < -0.05


def test_points_and_gradients_only_if_asked_for(robot: RobotDistance) -> None:
    (found,) = robot.compute([STATE], RobotDistanceRequest(nearest_points=False), WORLD)
    assert found.minimum_distance is not None
    assert found.minimum_distance.nearest_points is None
    assert found.minimum_distance.gradient is None


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"pairs": (("tip", "nothing"),)}, "nothing"),
        ({"pairs": (("wrist", "tip"),)}, "'wrist', a link without superovoid"),
        ({"allowed_pairs": (("tip", "bx"),)}, "bx"),
        ({"group": "leg"}, "leg"),
        ({"type": 4}, "GLOBAL 0"),
        ({"distance_threshold": math.nan}, "distance_threshold"),
        ({"max_contacts_per_body": 0}, "max_contacts_per_body"),
    ],
)
def test_a_bad_request_is_refused(robot: RobotDistance, named: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        robot.compute([STATE], RobotDistanceRequest(**named), WORLD)


@pytest.mark.parametrize("state", [{"a": 0.1}, {**STATE, "c": math.nan}, {}])
def test_missing_and_bad_joints_are_refused(robot: RobotDistance, state: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        robot.compute([STATE, state], world=WORLD)


def test_a_group_needs_an_srdf(model: KinematicModel) -> None:
    with pytest.raises(InvalidInputError, match="SRDF"):
        RobotDistance(SHAPES, model).compute([STATE], RobotDistanceRequest(group="hand"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: thing("", Sphere(0.1), (0, 0, 0)), "object id"),
        (lambda: WorldObject("a", np.eye(4), ()), "no shape"),
        (lambda: thing("a", Sphere(0.1), (0, 0, 0), touch_links=frozenset(["tip"])), "attached_to"),
        (lambda: thing("a", HalfSpace(), (0, 0, 0), attached_to="tip"), "half-space"),
        (lambda: WorldObject("a", 2.0 * np.eye(4), (PlacedShape(Sphere(0.1), np.eye(4)),)), "pose"),
        (lambda: CollisionWorld.of([thing("a", Sphere(0.1), (0, 0, 0))] * 2), "twice"),
        (lambda: WORLD.changed(remove=["a"]), "box, ball, floor, post"),
    ],
)
def test_a_bad_object_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"name": "tip"}, "no name of a link"),
        ({"attached_to": "leg"}, "leg"),
        ({"frame": "leg"}, "leg"),
        ({"frame": "tip"}, "fixed to the root link"),
        ({"attached_to": "tip", "frame": "base"}, "the frame of 'tip'"),
        ({"attached_to": "tip", "touch_links": frozenset(["leg"])}, "leg"),
    ],
)
def test_objects_must_fit_the_robot(robot: RobotDistance, named: dict[str, Any], words: str) -> None:
    item = thing(named.pop("name", "thing"), Sphere(0.1), (0, 0, 0), **named)
    with pytest.raises(InvalidInputError, match=words):
        robot.compute([STATE], world=CollisionWorld.of([item]))


def test_a_changed_world_is_another_one() -> None:
    changed = WORLD.changed(
        remove=["ball"], add=[thing("box", Sphere(0.1), (0, 0, 0)), thing("new", Sphere(0.1), (0, 0, 0))]
    )
    assert list(WORLD.objects) == ["box", "ball", "floor", "post"]
    assert list(changed.objects) == ["box", "floor", "post", "new"]
    assert list(WORLD.changed(clear=True).objects) == []


def test_a_robot_without_shapes_or_with_strange_links_is_refused(model: KinematicModel) -> None:
    with pytest.raises(InvalidInputError, match="no link with a shape"):
        RobotDistance({}, model)
    with pytest.raises(InvalidInputError, match="leg"):
        RobotDistance({"leg": SHAPES["tip"]}, model)


@pytest.mark.parametrize("kind", list(DistanceType))
def test_a_query_remembers_and_answers_the_same(
    robot: RobotDistance, model: KinematicModel, kind: DistanceType
) -> None:
    request = RobotDistanceRequest(type=kind, gradient=True)
    query = robot.query(request, WORLD)
    states = random_states(model, 6)
    near = [{name: value + 0.01 * k for name, value in states[0].items()} for k in range(6)]
    # Close by, then anywhere, then close by again.
    for state in [*near, *states, *near]:
        found = query.distances(model.configuration(state))
        (alone,) = robot.compute([state], request, WORLD)
        assert len(found.distances) == len(alone.distances)
        for one, other in zip(found.distances, alone.distances, strict=True):
            assert one.certified
            assert one.distance == pytest.approx(other.distance, abs=1e-8)
        results = found.results.distances
        np.testing.assert_array_equal(results, [pair.row[0] for pair in found.distances])
        assert (np.diff(results) >= 0.0).all()
        assert found.minimum_distance is not None and found.minimum_distance.gradient is not None
    query.reset()
    (alone,) = robot.compute([near[0]], request, WORLD)
    cold = query.distances(model.configuration(near[0]))
    assert [pair.distance for pair in cold.distances] == [pair.distance for pair in alone.distances]


@pytest.mark.parametrize("positions", [np.zeros(1), np.full(3, np.nan), np.zeros((2, 3))])
def test_a_query_refuses_positions_that_are_none(robot: RobotDistance, positions: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="positions"):
        robot.query().distances(positions)


@pytest.mark.parametrize("kind", [DistanceType.GLOBAL, DistanceType.SINGLE])
def test_the_bound_of_bodies_of_several_shapes_is_below_that_of_each(kind: DistanceType) -> None:
    # Two shapes that are equally far from a ball, to the last digits; the bounds of their distances are not.
    model = KinematicModel(URDF)
    rng = np.random.default_rng(3)
    sphere, center = Superovoid.sphere(0.02), make_transform(translation=[0.0, 0.0, 0.2])
    ball = WorldObject("ball", center, (PlacedShape(Sphere(0.02), np.eye(4)),))
    for _ in range(30):
        pair: list[PlacedSuperovoid] = []
        for side in (1.0, -1.0):
            shape = Superovoid(tuple(rng.uniform(0.03, 0.15, 3)), tuple(rng.uniform(0.4, 1.6, 2)))
            pose = make_transform(matrix_from_rpy(rng.uniform(-1.0, 1.0, 3)), [0.3 * side, 0.0, 0.2])
            for _ in range(3):
                found = min_distance(shape, pose, sphere, center)
                pose[:3, 3] += (found.distance - 0.05) * found.normal
            pair.append(PlacedSuperovoid(shape, pose))
        request = RobotDistanceRequest(type=kind, self_distance=False)
        [answer] = RobotDistance({"base": pair}, model).compute([STATE], request, CollisionWorld.of([ball]))
        [nearest] = answer.distances
        alone = [min_distance(item.shape, item.T_link_shape, sphere, center) for item in pair]
        assert nearest.lower_bound <= min(one.lower_bound for one in alone) + 1e-15
        assert nearest.distance == pytest.approx(0.05, abs=1e-9)
        assert nearest.certified
