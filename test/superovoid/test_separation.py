"""Filtered velocities: bounds that hold along the way, adversaries that get nowhere, people, limits, refusals."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Box, Capsule, HalfSpace
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import RobotDistance
from morphit_ros.superovoid.robots.separation import (
    SeparationConfig,
    SeparationFilter,
    SeparationStatus,
    nearest_feasible,
)
from morphit_ros.superovoid.robots.world import CollisionWorld, PlacedShape, WorldObject
from morphit_ros.superovoid.shapes.superovoid import Superovoid

LIMIT = '<limit lower="-2.5" upper="2.5" velocity="1.5" effort="1"/>'
# Four turning joints, one that slides, and one that mimics.
URDF = f"""<robot name="arm">
  <link name="base"/><link name="one"/><link name="two"/><link name="three"/><link name="four"/><link name="tip"/>
  <link name="finger"/>
  <joint name="a" type="revolute"><parent link="base"/><child link="one"/><origin xyz="0 0 0.2"/><axis xyz="0 0 1"/>
    {LIMIT}</joint>
  <joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
    {LIMIT}</joint>
  <joint name="c" type="revolute"><parent link="two"/><child link="three"/><origin xyz="0 0 0.35"/><axis xyz="0 1 0"/>
    {LIMIT}</joint>
  <joint name="d" type="revolute"><parent link="three"/><child link="four"/><origin xyz="0 0 0.3"/><axis xyz="1 0 0"/>
    {LIMIT}</joint>
  <joint name="e" type="prismatic"><parent link="four"/><child link="tip"/><origin xyz="0 0 0.1"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.1" velocity="0.2" effort="1"/></joint>
  <joint name="f" type="revolute"><parent link="four"/><child link="finger"/><origin xyz="0.13 0 0.1"/>
    <axis xyz="0 1 0"/>{LIMIT}<mimic joint="d" multiplier="-0.5"/></joint>
</robot>"""
ACCELERATIONS = [4.0, 4.0, 5.0, 6.0, 1.0]


def placed(shape: Superovoid, z: float, x: float = 0.0) -> PlacedSuperovoid:
    return PlacedSuperovoid(shape, make_transform(matrix_from_rpy([0.1, 0.2, 0.3]), [x, 0.0, z]))


LINKS = {
    "base": [placed(Superovoid((0.12, 0.1, 0.08), (0.4, 0.4)), 0.0)],
    "one": [placed(Superovoid.sphere(0.07), 0.0)],
    "two": [placed(Superovoid((0.05, 0.06, 0.12), (0.6, 0.5)), 0.1), placed(Superovoid((0.05, 0.05, 0.1)), 0.25)],
    "three": [placed(Superovoid((0.05, 0.04, 0.14), (0.8, 1.4)), 0.15)],
    "four": [placed(Superovoid.sphere(0.05), 0.0)],
    "tip": [placed(Superovoid((0.03, 0.02, 0.05), (0.5, 0.5)), 0.05)],
    "finger": [placed(Superovoid((0.01, 0.01, 0.05), (1.0, 1.0), (0.2, 0.2)), 0.05)],
}


@pytest.fixture(scope="module")
def robot() -> RobotDistance:
    return RobotDistance(LINKS, KinematicModel(URDF))


def object_at(name: str, shape: Any, xyz: Any, rpy: Any = (0.0, 0.0, 0.0)) -> WorldObject:
    return WorldObject(name, make_transform(matrix_from_rpy(rpy), xyz), (PlacedShape(shape, np.eye(4)),))


WORLD = CollisionWorld.of(
    [
        object_at("table", HalfSpace(), (0.0, 0.0, -0.25)),
        object_at("box", Box((0.3, 0.3, 0.4)), (0.6, 0.2, 0.2), (0.0, 0.0, 0.4)),
        object_at("cup", Superovoid((0.06, 0.05, 0.1), (1.0, 0.3)), (0.1, -0.6, 0.7)),
        object_at("shelf", Box((1.0, 0.4, 0.02)), (-0.6, 0.3, 0.9)),
    ]
)


def random_state(robot: RobotDistance, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(robot.model.position_lower, robot.model.position_upper)


def free_state(robot: RobotDistance, rng: np.random.Generator, least: float = 0.03) -> np.ndarray:
    query = robot.query(RobotDistanceRequest(DistanceType.GLOBAL), WORLD)
    for _ in range(3000):
        state = random_state(robot, rng)
        if query.distances(state).rows[0, 0] > least:
            return state
    raise AssertionError("no free state")


@pytest.mark.parametrize("seed", range(3))
def test_no_point_is_faster_or_accelerated_more_than_the_bounds(robot: RobotDistance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = robot.model
    query = robot.query(RobotDistanceRequest(DistanceType.SINGLE), WORLD)
    surfaces = {
        link: np.concatenate([transform_points(s.T_link_shape, s.shape.mesh(2e-3).vertices) for s in shapes])
        for link, shapes in LINKS.items()
    }
    tightest = 0.0
    for _ in range(6):
        start, rates = random_state(robot, rng), rng.normal(size=5) * [1, 1, 1, 1, 0.1]
        rates[rng.integers(5)] = 0.0
        duration, step = 0.2, 1e-3
        bounds = query.approach_bounds(query.distances(start).joints, rates, duration)

        def poses(time: float, start: np.ndarray = start, rates: np.ndarray = rates) -> dict[str, np.ndarray]:
            return model.forward_kinematics(dict(zip(model.joint_names, start + time * rates, strict=True)))

        for number, (names, _) in enumerate(query.body_pairs):
            # Points of one in the frame of the other, which turns by joints that count, unless it is before the first.
            link, other = names if names[1] not in LINKS else names[::-1]
            speed = acceleration = 0.0
            for t in np.linspace(0.0, duration, 9):
                frames = [poses(t + shift * step) for shift in (-1, 0, 1)]
                if other in LINKS and other != "base":
                    # How fast a distance changes: the pair of points that nears fastest, of some.
                    ways = [
                        np.linalg.norm(
                            transform_points(frame[link], surfaces[link])[::7, None]
                            - transform_points(frame[other], surfaces[other])[None, ::7],
                            axis=2,
                        )
                        for frame in frames
                    ]
                    speed = max(speed, np.abs(ways[2] - ways[0]).max() / (2 * step))
                    continue
                moved = [transform_points(frame[link], surfaces[link]) for frame in frames]
                speed = max(speed, np.linalg.norm(moved[2] - moved[0], axis=1).max() / (2 * step))
                twice = np.linalg.norm(moved[2] - 2 * moved[1] + moved[0], axis=1).max()
                acceleration = max(acceleration, twice / step**2)
            assert speed <= bounds[number, 0] * (1 + 1e-5) + 1e-6, names
            assert acceleration <= bounds[number, 1] * (1 + 1e-4) + 1e-4, names
            if bounds[number, 0] > 0.05:
                tightest = max(tightest, speed / bounds[number, 0])
    # They are bounds, but no bounds of everything.
    assert tightest > 0.5


@pytest.mark.parametrize("seed", range(4))
def test_a_way_that_is_called_clear_is(robot: RobotDistance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = robot.query(RobotDistanceRequest(DistanceType.SINGLE), WORLD)
    check = robot.query(RobotDistanceRequest(DistanceType.SINGLE), WORLD)
    clear = blocked = 0
    for _ in range(60):
        start, rates = random_state(robot, rng), rng.normal(size=5) * [1, 1, 1, 1, 0.1]
        now = query.distances(start)
        first = np.empty(len(query.body_pairs))
        first[query.groups(now.pairs)] = now.rows[:, 0]
        between = first - rng.uniform(0.0, 0.1)
        duration = rng.choice([0.01, 0.05, 0.15])
        if not query.is_way_clear(now.joints, start, rates, duration, between, np.full(len(first), -math.inf)):
            blocked += 1
            continue
        clear += 1
        for share in np.linspace(0.0, 1.0, 7):
            then = check.distances(start + share * duration * rates)
            least = np.empty(len(first))
            least[check.groups(then.pairs)] = then.rows[:, 0]
            assert (least >= between - 1e-9).all()
    assert min(clear, blocked) > 5


@pytest.mark.parametrize("seed", range(3))
def test_a_way_that_comes_nearer_than_asked_for_is_never_called_clear(robot: RobotDistance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query = robot.query(RobotDistanceRequest(DistanceType.SINGLE), WORLD)
    check = robot.query(RobotDistanceRequest(DistanceType.SINGLE), WORLD)
    bent = 0
    for _ in range(25):
        start, rates, duration = random_state(robot, rng), 2.0 * rng.normal(size=5) * [1, 1, 1, 1, 0.1], 0.3
        now = query.distances(start)
        along = np.empty((21, len(query.body_pairs)))
        for k, share in enumerate(np.linspace(0.0, 1.0, 21)):
            then = check.distances(start + share * duration * rates)
            along[k, check.groups(then.pairs)] = then.rows[:, 0]
        least = along.min(axis=0)
        # Those that dip between the ends above all.
        bent += int((least < np.minimum(along[0], along[-1]) - 1e-3).sum())
        for pair in range(len(least)):
            between = np.full(len(least), -math.inf)
            between[pair] = least[pair] + 1e-6
            assert not query.is_way_clear(now.joints, start, rates, duration, between, np.full(len(least), -math.inf))
            ends = np.full(len(least), -math.inf)
            ends[pair] = along[-1, pair] + 1e-6
            assert not query.is_way_clear(now.joints, start, rates, duration, ends - math.inf, ends)
    assert bent > 10


def nearest_of(robot: RobotDistance, world: CollisionWorld, state: np.ndarray) -> tuple[float, float]:
    """Least distance of links among themselves, and from objects, by the solver that remembers nothing."""
    named = dict(zip(robot.model.joint_names, state, strict=True))
    found = []
    for inside in (True, False):
        request = RobotDistanceRequest(DistanceType.GLOBAL, self_distance=inside, world_distance=not inside)
        [answer] = robot.compute([named], request, world)
        found.append(answer.minimum_distance.distance if answer.minimum_distance else math.inf)
    return found[0], found[1]


def colliding_state(robot: RobotDistance, rng: np.random.Generator) -> np.ndarray:
    while True:
        state = random_state(robot, rng)
        if nearest_of(robot, WORLD, state)[1] < 0.0:
            return state


@pytest.mark.parametrize("seed", range(3))
def test_whoever_wants_to_hit_something_does_not(robot: RobotDistance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    config = SeparationConfig(self_separation=0.01, world_separation=0.02)
    filtered = SeparationFilter(robot, ACCELERATIONS, config, WORLD)
    model, state = robot.model, free_state(robot, rng)
    before, desired = np.zeros(5), np.zeros(5)
    least, speeds, statuses, step = [], [], set(), None
    for k in range(1000):
        if k % 250 == 0:
            target = colliding_state(robot, rng)
        if k % 250 < 200:
            desired = 5.0 * (target - state)
        elif step is not None and step.nearest is not None:
            # Straight at what is nearest.
            gradient = step.nearest.gradient
            desired = -1.5 * gradient / max(np.abs(gradient).max(), 1e-9)
        step = filtered.step(state, desired)
        statuses.add(step.status)
        assert (np.abs(step.velocities - before) <= np.array(ACCELERATIONS) * config.period + 1e-9).all()
        assert (np.abs(step.velocities) <= model.velocity_limits + 1e-9).all()
        # Between two steps as well.
        least += [nearest_of(robot, WORLD, state + share * config.period * step.velocities) for share in (0.5, 1.0)]
        state, before = state + config.period * step.velocities, step.velocities
        speeds.append(np.abs(before).max())
        assert (state >= model.position_lower - 1e-9).all()
        assert (state <= model.position_upper + 1e-9).all()
    own, world = np.min(least, axis=0)
    assert own >= config.self_separation
    assert world >= config.world_separation
    # It gets close, and it moves.
    assert world < config.world_separation + 0.02
    assert np.median(speeds) > 0.1
    assert SeparationStatus.FILTERED in statuses


def test_what_is_free_passes_unchanged(robot: RobotDistance) -> None:
    filtered = SeparationFilter(robot, ACCELERATIONS, SeparationConfig())
    state, wanted = np.array([0.3, 0.4, 0.8, 0.2, 0.05]), np.array([0.01, 0.0, -0.01, 0.0, 0.0])
    step = filtered.step(state, wanted)
    assert step.status is SeparationStatus.UNCHANGED
    np.testing.assert_array_equal(step.velocities, wanted)
    # Beyond the limits of velocity it is scaled, not cut: the direction stays.
    for _ in range(200):
        step = filtered.step(state, [6.0, -3.0, 0.0, 0.0, 0.0])
        state = state + 0.004 * step.velocities
    assert step.velocities[1] / step.velocities[0] == pytest.approx(-0.5, abs=1e-6)


def test_a_robot_that_is_elsewhere_brakes_and_says_so(robot: RobotDistance) -> None:
    filtered = SeparationFilter(robot, ACCELERATIONS, SeparationConfig(), WORLD)
    state = free_state(robot, np.random.default_rng(5))
    wanted = np.array([0.4, 0.0, 0.0, 0.0, 0.0])
    for _ in range(10):
        step = filtered.step(state, wanted)
        state = state + 0.004 * step.velocities
    assert filtered.moving
    # A person steps into the cell, too near for any motion.
    tip = robot.model.forward_kinematics(dict(zip(robot.model.joint_names, state, strict=True)))["tip"][:3, 3]
    person = CollisionWorld.of([*WORLD, object_at("person", Capsule(0.1, 1.0), tip + np.array([0.0, 0.3, 0.0]))])
    for moved, expected in ((0.0, SeparationStatus.BRAKING), (0.01, SeparationStatus.UNPROVEN)):
        filtered.reset()
        filtered.set_world(WORLD)
        here = state
        for _ in range(10):
            step = filtered.step(here, wanted)
            here = here + 0.004 * step.velocities
        filtered.set_world(person, {"person"})
        before = step.velocities
        step = filtered.step(here + moved, wanted)
        assert step.status is expected
        assert np.linalg.norm(step.velocities) < np.linalg.norm(before)


@pytest.mark.parametrize("speed", [0.5, 1.0, 1.6])
def test_the_robot_stands_before_a_person_can_be_there(robot: RobotDistance, speed: float) -> None:
    """ISO/TS 15066: as the person walks on at its speed, the robot stands when it is C + Z away."""
    config = SeparationConfig(person_separation=0.1, reaction_time=0.0, person_speed=speed)
    state = np.array([0.0, 1.2, 0.3, 0.0, 0.0])
    start = np.array([0.0, 0.8 + 0.9 * speed, 0.3])
    person = Capsule(0.1, 1.0)
    filtered = SeparationFilter(robot, ACCELERATIONS, config)
    stood = False
    wanted, fastest = np.array([0.8, 0.0, 0.0, 0.0, 0.0]), 0.0
    for k in range(900):
        # Towards the robot, until it stands.
        place = start - [0.0, speed * k * config.period, 0.0]
        world = CollisionWorld.of([object_at("person", person, place)])
        filtered.set_world(world, {"person"})
        step = filtered.step(state, wanted)
        fastest = max(fastest, float(step.velocities[0]))
        _, distance = nearest_of(robot, world, state)
        assert distance >= config.person_separation or not step.velocities.any()
        if fastest > 0.3 and np.abs(step.velocities).max() < 0.01:
            stood = True
            assert distance >= config.person_separation
            break
        state = state + config.period * step.velocities
    assert stood


def test_who_is_too_near_already_may_only_go_away(robot: RobotDistance) -> None:
    state = np.array([0.0, 1.2, 0.3, 0.0, 0.0])
    named = dict(zip(robot.model.joint_names, state, strict=True))
    tip = robot.model.forward_kinematics(named)["tip"][:3, 3]
    world = CollisionWorld.of([object_at("post", Superovoid.sphere(0.05), tip + np.array([0.0, 0.085, 0.0]))])
    assert 0.0 < nearest_of(robot, world, state)[1] < 0.02
    for sign in (1.0, -1.0):
        filtered, here = SeparationFilter(robot, ACCELERATIONS, SeparationConfig(), world), state
        distances = [nearest_of(robot, world, here)[1]]
        for _ in range(100):
            step = filtered.step(here, [sign * 0.5, 0.0, 0.0, 0.0, 0.0])
            here = here + 0.004 * step.velocities
            distances.append(nearest_of(robot, world, here)[1])
        assert (np.diff(distances) >= -1e-8).all()
        if sign < 0.0:
            assert distances[-1] > 0.02


def scaled_square(wanted: np.ndarray, scale: np.ndarray, u: np.ndarray) -> float:
    return float((((u - wanted) / scale) ** 2).sum())


def surplus(matrix: np.ndarray, limits: np.ndarray, u: np.ndarray) -> np.ndarray:
    return matrix @ u - limits


def test_the_programme_against_another_solver() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    solved = 0
    for _ in range(60):
        size = int(rng.integers(2, 8))
        matrix, scale = rng.normal(size=(int(rng.integers(1, 12)), size)), rng.uniform(0.2, 2.0, size)
        limits, wanted = rng.normal(size=len(matrix)) - 0.3, rng.normal(size=size)
        found = nearest_feasible(wanted, matrix, limits, scale)
        result = minimize(
            partial(scaled_square, wanted, scale), np.zeros(size), method="SLSQP",
            constraints={"type": "ineq", "fun": partial(surplus, matrix, limits)},
            options={"maxiter": 500, "ftol": 1e-14},
        )  # fmt: skip
        if found is None:
            assert not result.success or (matrix @ result.x - limits).min() < -1e-7
            continue
        solved += 1
        assert (matrix @ found - limits).min() > -1e-9
        if result.success:
            assert (((found - wanted) / scale) ** 2).sum() <= result.fun + 1e-6
    assert solved > 30
    assert nearest_feasible(np.zeros(1), np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]), np.ones(1)) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"acceleration_limits": [1.0, 1.0]}, "5 positive numbers, of a, b, c, d, e"),
        ({"acceleration_limits": [1.0, 1.0, 0.0, 1.0, 1.0]}, "5 positive numbers"),
        ({"people": {"nobody"}}, "nobody"),
    ],
)
def test_refusals_at_the_start(robot: RobotDistance, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        SeparationFilter(**{"robot": robot, "acceleration_limits": ACCELERATIONS, "world": WORLD, **change})


def test_refusals_of_a_step(robot: RobotDistance) -> None:
    filtered = SeparationFilter(robot, ACCELERATIONS)
    with pytest.raises(InvalidInputError, match="positions"):
        filtered.step([0.0, math.nan, 0.0, 0.0, 0.0], np.zeros(5))
    with pytest.raises(InvalidInputError, match="desired"):
        filtered.step(np.zeros(5), np.zeros(4))


def test_a_robot_without_velocity_limits_is_refused() -> None:
    model = KinematicModel(URDF.replace('velocity="0.2"', 'velocity="inf"'))
    with pytest.raises(InvalidInputError, match=r"velocity limits.*none of e"):
        SeparationFilter(RobotDistance(LINKS, model), ACCELERATIONS)
