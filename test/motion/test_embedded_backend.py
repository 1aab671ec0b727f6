"""Motions of the embedded backend, checked by code that is not its own."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, rotation_angle, transform_points
from morphit_ros.motion.embedded import EmbeddedBackend, EmbeddedConfig
from morphit_ros.motion.model import Body, bodies_of, surface_spheres
from morphit_ros.motion.refinement import Carried, RefinableArm
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind, collision_mesh
from morphit_ros.robot.motion_backend import MotionStatus, ObjectObstacle, TableObstacle
from morphit_ros.robot.solids import Solid
from morphit_ros.robot.trajectory_timing import peak_accelerations, peak_velocities

CONFIG = EmbeddedConfig()


@pytest.fixture(scope="module")
def backend(panda_urdf, panda_srdf, panda):
    return EmbeddedBackend(panda_urdf, panda_srdf, panda, CONFIG, seed=3)


@pytest.fixture(scope="module")
def kinematics(panda_urdf):
    return KinematicModel(panda_urdf)


@pytest.fixture
def world(backend, table, box):
    backend.set_world(table, [box])
    return backend


def at_end(start, trajectory):
    return {**start, **dict(zip(trajectory.joint_names, trajectory.positions[-1].tolist(), strict=True))}


def samples(start, trajectory, step=0.005):
    """Positions along a trajectory, no joint further apart than about `step` rad."""
    way = np.abs(np.diff(trajectory.positions, axis=0)).max(axis=1).sum()
    for time in np.linspace(0.0, trajectory.duration, max(3, int(way / step))):
        yield {**start, **dict(zip(trajectory.joint_names, trajectory.sample(time).tolist(), strict=True))}


def assert_well_formed(trajectory, start, panda, kinematics):
    lower, upper, velocity = kinematics.limits(panda.arm_joints)
    assert trajectory.joint_names == panda.arm_joints
    assert trajectory.times[0] == 0.0
    np.testing.assert_allclose(trajectory.positions[0], [start[name] for name in panda.arm_joints], atol=1e-9)
    assert not trajectory.velocities[[0, -1]].any()
    assert (trajectory.positions >= lower - 1e-9).all()
    assert (trajectory.positions <= upper + 1e-9).all()
    slack = 1.0 + 1e-6
    assert (peak_velocities(trajectory) <= slack * CONFIG.velocity_scaling * velocity).all()
    limits = slack * CONFIG.acceleration_scaling * panda.acceleration_limits
    assert (peak_accelerations(trajectory) <= limits).all()


def random_goals(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rotation = matrix_from_rpy([np.pi + rng.uniform(-0.6, 0.6), rng.uniform(-0.6, 0.6), rng.uniform(-1.5, 1.5)])
        yield make_transform(rotation, [rng.uniform(0.3, 0.65), rng.uniform(-0.45, 0.45), rng.uniform(0.12, 0.6)])


def test_fifty_random_goals_keep_limits_and_touch_nothing(
    world, panda, panda_urdf, panda_srdf, home, table, box, kinematics, coal_checker
):
    checker = coal_checker(panda_urdf, panda_srdf, table, [box])
    reached = 0
    start = home
    for goal in random_goals(50, seed=11):
        result = world.plan_to_pose(start, goal)
        if result.trajectory is None:
            assert result.status in (MotionStatus.GOAL_IN_COLLISION, MotionStatus.UNREACHABLE, MotionStatus.NO_PATH)
            assert result.message
            continue
        reached += 1
        assert_well_formed(result.trajectory, start, panda, kinematics)
        for positions in samples(start, result.trajectory, step=0.02):
            assert not checker.contacts(positions)
        start = at_end(start, result.trajectory)
        actual = kinematics.link_pose(start, panda.tip_link)
        np.testing.assert_allclose(actual[:3, 3], goal[:3, 3], atol=1e-5)
        assert rotation_angle(actual[:3, :3].T @ goal[:3, :3]) < 1e-4
    assert reached >= 40


def test_a_path_leads_around_an_obstacle(
    backend, panda, panda_urdf, panda_srdf, home, table, kinematics, from_above, coal_checker
):
    heights = np.linspace(0.03, 0.6, 20)
    wall = ObjectObstacle("wall", np.array([[0.5, 0.0, z] for z in heights]), np.full(20, 0.03))
    backend.set_world(table, [])
    left = backend.plan_to_pose(home, from_above(0.5, 0.3, 0.25))
    start = at_end(home, left.trajectory)
    goal = from_above(0.5, -0.3, 0.25)
    direct = backend.plan_to_pose(start, goal)
    backend.set_world(table, [wall])
    checker = coal_checker(panda_urdf, panda_srdf, table, [wall])
    around = backend.plan_to_pose(start, goal)
    assert around.status is MotionStatus.SUCCEEDED
    assert any(checker.contacts(positions) for positions in samples(start, direct.trajectory))
    assert not any(checker.contacts(positions) for positions in samples(start, around.trajectory))
    assert_well_formed(around.trajectory, start, panda, kinematics)
    assert around.trajectory.duration > direct.trajectory.duration


def test_paths_lines_starts_and_goals_keep_clear_of_solids(backend, panda, home, table, kinematics, from_above):
    """A post of one cylinder in the place of the wall of spheres; every sphere of the robot is held against it."""
    post = Solid("post", GeometryKind.CYLINDER, make_transform(translation=[0.5, 0.0, 0.3]), np.array([0.03, 0.6]))
    backend.set_world(table, [])
    start = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.3, 0.25)).trajectory)
    goal = from_above(0.5, -0.3, 0.25)
    direct = backend.plan_to_pose(start, goal)
    inside = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.0, 0.25)).trajectory)
    spheres = [(name, link) for name, link in backend._contacts.bodies.items() if link.link == name]

    def nearest(positions):
        gaps = []
        for name, body in spheres:
            centers = transform_points(kinematics.link_pose(positions, name), body.centers)
            aside = np.maximum(np.hypot(centers[:, 0] - 0.5, centers[:, 1]) - 0.03, 0.0)
            up = np.maximum(np.abs(centers[:, 2] - 0.3) - 0.3, 0.0)
            gaps.append((np.hypot(aside, up) - body.radii).min())
        return min(gaps)

    backend.set_world(table, [], [post])
    around = backend.plan_to_pose(start, goal)
    assert around.proven
    assert min(nearest(positions) for positions in samples(start, direct.trajectory)) < -0.01
    assert min(nearest(positions) for positions in samples(start, around.trajectory)) > 0.0
    line = backend.plan_straight(start, from_above(0.5, -0.3, 0.25), 0.1)
    assert line.status is MotionStatus.PATH_BLOCKED and "object 'post'" in line.message
    touching = backend.plan_to_joints(inside, home)
    assert touching.status is MotionStatus.START_IN_COLLISION and "object 'post'" in touching.message
    reached = backend.plan_to_joints(home, inside)
    assert reached.status is MotionStatus.GOAL_IN_COLLISION and "object 'post'" in reached.message
    # Another world without it.
    backend.set_world(table, [])
    assert backend.plan_to_joints(home, inside).status is MotionStatus.SUCCEEDED


@pytest.fixture(scope="module")
def covers(panda):
    return RefinableArm(load_robot_description(panda.description), panda.arm_joints, counts=(20,))


@pytest.fixture(scope="module")
def covered(panda_urdf, panda_srdf, panda, covers):
    return EmbeddedBackend(panda_urdf, panda_srdf, panda, CONFIG, seed=3, covers=lambda: covers)


def gap_of(spheres, kinematics, positions, point):
    """Distance of a point [m] to the nearest of the spheres of moving links."""
    moving = {name: body for name, body in spheres.items() if name not in ("panda_link0", "panda_link1")}
    poses = kinematics.forward_kinematics(positions)
    return min(
        (np.linalg.norm(transform_points(poses[name], body.centers) - point, axis=1) - body.radii).min()
        for name, body in moving.items()
    )


def test_transfers_keep_clear_by_covers_where_these_have_the_room(
    covered, covers, panda, home, table, kinematics, from_above
):
    covered.set_world(table, [])
    start = at_end(home, covered.plan_to_pose(home, from_above(0.5, 0.3, 0.25)).trajectory)
    heights = np.linspace(0.03, 0.6, 20)
    wall = ObjectObstacle("wall", np.array([[0.5, 0.0, z] for z in heights]), np.full(20, 0.03))
    covered.set_world(table, [wall])
    around = covered.plan_to_pose(start, from_above(0.5, -0.3, 0.25))
    assert around.proven and around.covered
    assert_well_formed(around.trajectory, start, panda, kinematics)
    spheres = covers._level(0).bodies
    for positions in samples(start, around.trajectory, step=0.02):
        for center in wall.centers:
            assert gap_of(spheres, kinematics, positions, center) > 0.03
    # What is carried is kept clear of the wall, too.
    bar = ObjectObstacle("bar", np.array([[0.5, 0.3 + y, 0.2] for y in np.linspace(-0.15, 0.15, 9)]), np.full(9, 0.02))
    covered.set_world(table, [wall, bar])
    covered.attach("bar", from_above(0.5, 0.3, 0.25))
    carrying = covered.plan_to_pose(start, from_above(0.5, -0.3, 0.25))
    assert carrying.covered
    tip = panda.tip_link
    held = transform_points(np.linalg.inv(kinematics.link_pose(start, tip)), bar.centers)
    for positions in samples(start, carrying.trajectory, step=0.02):
        places = transform_points(kinematics.link_pose(positions, tip), held)
        assert np.linalg.norm(places[:, None] - wall.centers, axis=2).min() > 0.05


def test_transfers_keep_what_a_link_wears_clear_too(
    panda_urdf, panda_srdf, panda, covers, home, table, kinematics, from_above
):
    """Plates beside the forearm, which the covers of the links know nothing of."""
    places = np.stack(np.meshgrid([-0.07], [0.1, 0.15, 0.2], [-0.2, -0.15, -0.1]), axis=-1).reshape(-1, 3)
    body = Body("panda_link5", places, np.full(len(places), 0.04))
    plates = Carried("cover", body, frozenset(["panda_link4", "panda_link6"]))
    heights = np.linspace(0.03, 0.9, 30)
    wall = ObjectObstacle("wall", np.array([[0.38, 0.0, z] for z in heights]), np.full(30, 0.03))

    def nearest(worn):
        backend = EmbeddedBackend(
            panda_urdf, panda_srdf, panda, CONFIG, seed=3, covers=lambda: covers, worn=lambda: worn
        )
        backend.set_world(table, [])
        start = at_end(home, backend.plan_to_pose(home, from_above(0.4, 0.35, 0.25)).trajectory)
        backend.set_world(table, [wall])
        around = backend.plan_to_pose(start, from_above(0.4, -0.35, 0.25))
        assert around.covered
        gaps = []
        for positions in samples(start, around.trajectory, step=0.02):
            centers = transform_points(kinematics.link_pose(positions, "panda_link5"), places)
            gaps.append(np.linalg.norm(centers[:, None] - wall.centers, axis=2).min() - 0.07)
        return min(gaps)

    assert nearest([]) < 0.0 < nearest([plates])


def test_where_covers_touch_the_published_spheres_count(covered, covers, backend, home, kinematics, from_above):
    """A crumb so near to the hand at the goal that it is in the hand's cover, and not in its closer spheres."""
    backend.set_world(None, [])
    goal = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.2, 0.4)).trajectory)
    published = {name: body for name, body in backend._contacts.bodies.items() if body.link == name}
    middle = kinematics.link_pose(goal, "panda_hand")[:3, 3]
    rng = np.random.default_rng(0)
    for direction in rng.normal(size=(200, 3)):
        ray = middle + np.linspace(0.0, 0.3, 3001)[:, None] * direction / np.linalg.norm(direction)
        gaps = np.array([gap_of(published, kinematics, goal, point) for point in ray[::50]])
        place = ray[::50][int((gaps < 0.002).nonzero()[0].max()) + 1]
        if gap_of(covers._level(0).bodies, kinematics, goal, place) < -0.001:
            break
    else:
        pytest.fail("no such place")
    crumb = ObjectObstacle("crumb", place[None], np.full(1, 0.001))
    covered.set_world(None, [crumb])
    result = covered.plan_to_joints(home, goal)
    assert result.status is MotionStatus.SUCCEEDED
    assert not result.covered
    assert covered.transfers[0] > covered.transfers[1]
    covered.set_world(None, [])
    assert covered.plan_to_joints(home, goal).covered
    assert not backend.plan_to_joints(home, goal).covered
    assert backend.transfers[0] > 0 == backend.transfers[1]


@pytest.mark.parametrize(
    ("bulging", "link", "gap"),
    [(True, "panda_hand", 0.0015), (False, "panda_leftfinger", -0.0015)],
    ids=["bulge", "hole"],
)
def test_on_lines_the_hand_is_of_the_spheres_inside_it(
    backend, covered, covers, panda, home, kinematics, from_above, monkeypatch, bulging, link, gap
):
    """A crumb that the published spheres of the hand touch and the mesh does not, or the other way round."""
    description = load_robot_description(panda.description)
    inside = bodies_of(surface_spheres(description, panda.touch_links, 40), description)
    mesh = concatenate_meshes([collision_mesh(shape) for shape in description.links[link].collisions])
    backend.set_world(None, [])
    start = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.2, 0.4)).trajectory)
    goal = from_above(0.5, 0.2, 0.34)
    down = backend.plan_straight(start, goal, 0.1)
    end = at_end(start, down.trajectory)
    pose = kinematics.link_pose(end, link)
    published = {name: body for name, body in backend._contacts.bodies.items() if body.link == name}
    wrist = {name: published.pop(name) for name in tuple(published) if name not in inside}
    points, normals = sample_surface(mesh, 4000, np.random.default_rng(0))
    # Next to the mesh, or in it, by as much; on its lower side, where nothing passes on the way.
    lower = normals[:, 2] > 0.7
    for point in transform_points(pose, (points + gap * normals)[lower]):
        if gap_of(wrist, kinematics, end, point) < 0.001:
            continue
        bulges = gap_of(published, kinematics, end, point) < -0.0005
        holes = gap_of(published, kinematics, end, point) > 0.0005
        touches = gap_of(inside, kinematics, end, point) < 0.0
        if (bulges and not touches) if bulging else (holes and touches):
            break
    else:
        pytest.fail("no such place")
    crumb = ObjectObstacle("crumb", point[None], np.full(1, 1e-4))
    for each in (backend, covered):
        each.set_world(None, [crumb])
    assert (backend.plan_straight(start, goal, 0.1).trajectory is None) is bulging
    # As long as nothing is known of the hand, it is the published spheres that count.
    assert (covered.plan_straight(start, goal, 0.1).trajectory is None) is bulging
    monkeypatch.setattr(covers, "hand", inside)
    result = covered.plan_straight(start, goal, 0.1)
    assert (result.trajectory is None) is not bulging
    if not bulging:
        assert f"link '{link}' and object 'crumb'" in result.message
    # What stands where the fingers end up is refused by any spheres.
    covered.set_world(None, [ObjectObstacle("stone", np.array([[0.5, 0.2, 0.33]]), np.full(1, 0.05))])
    assert covered.plan_straight(start, goal, 0.1).status is MotionStatus.PATH_BLOCKED


def test_lines_are_straight_and_keep_the_speed(world, panda, home, kinematics, from_above):
    start = at_end(home, world.plan_to_pose(home, from_above(0.4, -0.2, 0.3)).trajectory)
    goal = from_above(0.55, 0.2, 0.25, turn=0.4)
    result = world.plan_straight(start, goal, 0.1)
    assert result.status is MotionStatus.SUCCEEDED
    assert_well_formed(result.trajectory, start, panda, kinematics)
    poses = [kinematics.link_pose(p, panda.tip_link) for p in samples(start, result.trajectory, step=0.001)]
    first, last = poses[0], poses[-1]
    axis = (last[:3, 3] - first[:3, 3]) / np.linalg.norm(last[:3, 3] - first[:3, 3])
    turn = rotation_angle(first[:3, :3].T @ last[:3, :3])
    length = np.linalg.norm(last[:3, 3] - first[:3, 3])
    for pose in poses:
        along = (pose[:3, 3] - first[:3, 3]) @ axis
        off = np.linalg.norm(pose[:3, 3] - first[:3, 3] - along * axis)
        assert off < 1e-3
        assert rotation_angle(first[:3, :3].T @ pose[:3, :3]) == pytest.approx(turn * along / length, abs=2e-3)
    np.testing.assert_allclose(last, goal, atol=1e-4)
    steps = np.linalg.norm(np.diff([pose[:3, 3] for pose in poses], axis=0), axis=1)
    speed = steps / (result.trajectory.duration / (len(poses) - 1))
    assert speed.max() <= 0.1 * 1.01
    assert np.median(speed) == pytest.approx(0.1, rel=0.02)


def test_a_line_through_a_jump_of_a_joint_is_refused(panda_urdf, panda_srdf, panda, home, from_above):
    """The same line is fine for a joint step that the arm needs and refused below it."""
    results = {}
    for limit in (0.2, 0.01):
        backend = EmbeddedBackend(panda_urdf, panda_srdf, panda, EmbeddedConfig(line_joint_step=limit, line_step=0.02))
        backend.set_world(None, [])
        start = at_end(home, backend.plan_to_pose(home, from_above(0.45, -0.2, 0.3)).trajectory)
        results[limit] = backend.plan_straight(start, from_above(0.45, 0.2, 0.3), 0.1)
    assert results[0.2].status is MotionStatus.SUCCEEDED
    assert results[0.01].status is MotionStatus.PATH_BLOCKED
    assert "jump" in results[0.01].message
    assert "panda_joint" in results[0.01].message


def test_a_line_of_no_length_is_the_start(world, home, kinematics, panda):
    pose = kinematics.link_pose(home, panda.tip_link)
    result = world.plan_straight(home, pose, 0.1)
    assert result.status is MotionStatus.SUCCEEDED
    assert result.trajectory.duration == 0.0


def test_equal_seeds_give_equal_trajectories(panda_urdf, panda_srdf, panda, home, table, from_above):
    # The wall makes the search work for its path.
    wall = ObjectObstacle("wall", np.array([[0.5, 0.0, z] for z in np.linspace(0.03, 0.6, 20)]), np.full(20, 0.03))
    results = []
    for _ in range(2):
        backend = EmbeddedBackend(panda_urdf, panda_srdf, panda, CONFIG, seed=7)
        backend.set_world(table, [wall])
        first = backend.plan_to_pose(home, from_above(0.5, 0.25, 0.12))
        again = backend.plan_to_pose(home, from_above(0.5, 0.25, 0.12))
        np.testing.assert_array_equal(first.trajectory.positions, again.trajectory.positions)
        second = backend.plan_to_pose(at_end(home, first.trajectory), from_above(0.5, -0.25, 0.12))
        results.append((first.trajectory, second.trajectory))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)
        np.testing.assert_array_equal(a.times, b.times)


def test_joint_goals(world, panda, home, kinematics):
    goal = {**home, "panda_joint1": 0.6, "panda_joint7": 1.4}
    result = world.plan_to_joints(home, goal)
    assert_well_formed(result.trajectory, home, panda, kinematics)
    np.testing.assert_allclose(result.trajectory.positions[-1], [goal[name] for name in panda.arm_joints])


def test_joint_order_and_foreign_joints_do_not_matter(world, home, from_above):
    shuffled = dict(reversed(home.items())) | {"other_robot_joint": 3.0}
    a = world.plan_to_pose(home, from_above(0.5, 0.2, 0.3))
    b = world.plan_to_pose(shuffled, from_above(0.5, 0.2, 0.3))
    np.testing.assert_array_equal(a.trajectory.positions, b.trajectory.positions)


def test_contact_must_be_allowed(world, home, from_above):
    """Fingers 40 mm apart cannot pass a block that is 60 mm wide, unless they may touch it."""
    narrow = {**home, "panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02}
    start = at_end(narrow, world.plan_to_pose(narrow, from_above(0.5, 0.0, 0.25)).trajectory)
    refused = world.plan_straight(start, from_above(0.5, 0.0, 0.07), 0.1)
    assert refused.status is MotionStatus.PATH_BLOCKED
    assert "finger" in refused.message
    assert "object 'box'" in refused.message
    assert "of 180 mm" in refused.message
    allowed = world.plan_straight(start, from_above(0.5, 0.0, 0.07), 0.1, ["box"])
    assert allowed.status is MotionStatus.SUCCEEDED
    # Between the fingers, a way out is refused for the contact that is there already.
    inside = at_end(start, allowed.trajectory)
    stuck = world.plan_to_pose(inside, from_above(0.5, 0.0, 0.3))
    assert stuck.status is MotionStatus.START_IN_COLLISION
    assert "finger" in stuck.message
    assert "object 'box'" in stuck.message
    assert world.plan_straight(inside, from_above(0.5, 0.0, 0.3), 0.1, ["box"]).status is MotionStatus.SUCCEEDED


def test_allowed_contact_is_for_touch_links_only(backend, home, table, from_above):
    """A bar at the height of the wrist blocks the approach even if the fingers may touch it."""
    bar = ObjectObstacle("bar", np.array([[x, 0.0, 0.28] for x in np.linspace(0.42, 0.58, 9)]), np.full(9, 0.02))
    backend.set_world(table, [])
    start = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.0, 0.5)).trajectory)
    backend.set_world(table, [bar])
    result = backend.plan_straight(start, from_above(0.5, 0.0, 0.1), 0.1, ["bar"])
    assert result.status is MotionStatus.PATH_BLOCKED
    assert "object 'bar'" in result.message
    assert "panda_link" in result.message


def test_a_held_object_counts(world, home, from_above):
    start = at_end(home, world.plan_to_pose(home, from_above(0.5, 0.0, 0.25)).trajectory)
    grasp = from_above(0.5, 0.0, 0.08)
    down = world.plan_straight(start, grasp, 0.1, ["box"])
    held = {**at_end(start, down.trajectory), "panda_finger_joint1": 0.03, "panda_finger_joint2": 0.03}
    world.attach("box", grasp)
    lift = world.plan_straight(held, from_above(0.5, 0.0, 0.28), 0.1)
    assert lift.status is MotionStatus.SUCCEEDED
    lifted = at_end(held, lift.trajectory)
    # The block hangs 80 mm below the gripper: 50 mm above the table is too low for it.
    low = world.plan_straight(lifted, from_above(0.5, 0.0, 0.05), 0.1)
    assert low.status is MotionStatus.PATH_BLOCKED
    assert "object 'box' and the table" in low.message or "the table and object 'box'" in low.message
    assert world.plan_to_pose(lifted, from_above(0.5, 0.25, 0.05)).status is MotionStatus.GOAL_IN_COLLISION
    assert world.plan_to_pose(lifted, from_above(0.5, 0.25, 0.2)).status is MotionStatus.SUCCEEDED
    world.detach("box")
    assert world.plan_straight(lifted, from_above(0.5, 0.0, 0.05), 0.1).status is MotionStatus.SUCCEEDED
    with pytest.raises(InvalidInputError, match="attached"):
        world.detach("box")


def test_what_stands_on_the_table_comes_off_it(backend, home, table, from_above):
    """Spheres that reach into the table do not hinder the lift."""
    slab = ObjectObstacle("book", np.array([[0.5, y, 0.005] for y in (-0.02, 0.0, 0.02)]), np.full(3, 0.02))
    backend.set_world(table, [slab])
    grasp = from_above(0.5, 0.0, 0.03)
    start = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.0, 0.2)).trajectory)
    held = at_end(start, backend.plan_straight(start, grasp, 0.1, ["book"]).trajectory)
    backend.attach("book", grasp)
    assert backend.plan_straight(held, from_above(0.5, 0.0, 0.2), 0.1).status is MotionStatus.SUCCEEDED
    sideways = backend.plan_straight(held, from_above(0.5, 0.1, 0.03), 0.1)
    assert sideways.status is MotionStatus.START_IN_COLLISION
    assert "table" in sideways.message


def test_what_touches_its_neighbours_comes_off_them_but_not_through_them(backend, home, table, from_above):
    """In a heap the spheres of what is grasped, and the fingers, reach into those of what lies beside it."""
    box = ObjectObstacle("box", np.array([[0.5, 0.0, z] for z in (0.02, 0.04, 0.06)]), np.full(3, 0.02))
    beside = ObjectObstacle("beside", np.array([[0.535, 0.0, z] for z in (0.02, 0.04)]), np.full(2, 0.02))
    grasp = from_above(0.5, 0.0, 0.06)

    def held_among(*others):
        backend.set_world(table, [box, *others])
        start = at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.0, 0.2)).trajectory)
        held = at_end(start, backend.plan_straight(start, grasp, 0.1, ["box", "above"]).trajectory)
        backend.attach("box", grasp)
        return held

    held = held_among(beside)
    assert backend.plan_straight(held, from_above(0.5, 0.0, 0.2), 0.1).status is MotionStatus.SUCCEEDED
    # Not along the table, and not into it.
    aside = backend.plan_straight(held, from_above(0.55, 0.0, 0.06), 0.1)
    assert aside.status is MotionStatus.START_IN_COLLISION and "'beside'" in aside.message
    leaning = backend.plan_straight(held, from_above(0.53, 0.0, 0.09), 0.1)
    assert leaning.status is MotionStatus.PATH_BLOCKED and "'beside'" in leaning.message
    # However fat the spheres beside it are, it lay there: 25 mm deep in them, and no deeper on the way up.
    fat = ObjectObstacle("fat", np.array([[0.545, 0.0, 0.03]]), np.array([0.05]))
    backend.detach("box")
    held = held_among(fat)
    assert backend.plan_straight(held, from_above(0.5, 0.0, 0.2), 0.1).status is MotionStatus.SUCCEEDED
    leaning = backend.plan_straight(held, from_above(0.53, 0.0, 0.07), 0.1)
    assert leaning.status is MotionStatus.PATH_BLOCKED and "'fat'" in leaning.message
    # Past what it does not touch yet, 3 mm into its sphere.
    higher = ObjectObstacle("above", np.array([[0.532, 0.0, 0.075]]), np.array([0.015]))
    backend.detach("box")
    assert backend.plan_straight(held_among(higher), from_above(0.5, 0.0, 0.2), 0.1).status is MotionStatus.SUCCEEDED
    # What lies on it would be pushed up.
    above = ObjectObstacle("above", np.array([[0.515, 0.0, 0.095]]), np.array([0.018]))
    backend.detach("box")
    result = backend.plan_straight(held_among(above), from_above(0.5, 0.0, 0.2), 0.1)
    assert result.status is MotionStatus.PATH_BLOCKED and "'above'" in result.message


def test_unreachable_goals_say_how_far(world, home, from_above):
    result = world.plan_to_pose(home, from_above(1.6, 0.0, 0.3))
    assert result.status is MotionStatus.UNREACHABLE
    assert "mm" in result.message
    assert result.trajectory is None
    line = world.plan_straight(home, from_above(1.6, 0.0, 0.3), 0.1)
    assert line.status is MotionStatus.PATH_BLOCKED
    assert "after" in line.message


def test_goals_in_collision_name_the_pair(world, home, from_above):
    result = world.plan_to_pose(home, from_above(0.5, 0.0, 0.02))
    assert result.status is MotionStatus.GOAL_IN_COLLISION
    assert "object 'box'" in result.message or "the table" in result.message


def test_a_goal_beyond_the_limits_names_the_joint(world, home):
    result = world.plan_to_joints(home, {**home, "panda_joint4": 0.5})
    assert result.status is MotionStatus.UNREACHABLE
    assert "panda_joint4 at 0.500" in result.message


def test_a_start_slightly_beyond_a_limit_is_accepted(world, home, kinematics, from_above):
    upper = kinematics.limits(["panda_joint6"])[1][0]
    above = from_above(0.5, 0.2, 0.3)
    start = {**home, "panda_joint6": upper + 0.004, "panda_finger_joint1": 0.0401}
    assert world.plan_to_pose(start, above).status is MotionStatus.SUCCEEDED
    far = world.plan_to_pose({**home, "panda_joint6": upper + 0.1}, above)
    assert far.status is MotionStatus.FAILED
    assert "panda_joint6" in far.message


@pytest.mark.parametrize("spoil", ["missing", "nan", "pose", "speed", "object", "names", "urdf", "mesh", "srdf"])
def test_a_callers_mistakes_are_named(spoil, world, home, panda, panda_urdf, panda_srdf, table, box, from_above):
    pose = from_above(0.5, 0.0, 0.3)
    with pytest.raises(InvalidInputError) as caught:
        if spoil == "missing":
            world.plan_to_pose({name: home[name] for name in panda.arm_joints[:-1]}, pose)
        elif spoil == "nan":
            world.plan_to_pose({**home, "panda_joint2": np.nan}, pose)
        elif spoil == "pose":
            world.plan_to_pose(home, 2.0 * pose)
        elif spoil == "speed":
            world.plan_straight(home, pose, 0.0)
        elif spoil == "object":
            world.attach("cup", pose)
        elif spoil == "names":
            world.set_world(table, [box, box])
        elif spoil == "urdf":
            EmbeddedBackend("<robot", panda_srdf, panda)
        elif spoil == "mesh":
            EmbeddedBackend(panda_urdf.replace("<sphere radius", "<cylinder length='1' radius"), panda_srdf, panda)
        else:
            EmbeddedBackend(panda_urdf, "not xml", panda)
    expected = {
        "missing": "panda_joint7",
        "nan": "panda_joint2",
        "pose": "T_base_gripper",
        "speed": "speed",
        "object": "box",
        "names": "'box'",
        "urdf": "urdf",
        "mesh": "spheres",
        "srdf": "srdf",
    }
    assert expected[spoil] in str(caught.value)


def test_an_empty_world_and_an_inclined_table(backend, home, from_above):
    backend.set_world(None, [])
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, -0.1)).status is MotionStatus.SUCCEEDED
    tilted = make_transform(matrix_from_rpy([0.0, 0.5, 0.0]), [0.5, 0.0, 0.1])
    backend.set_world(TableObstacle(tilted, np.array([0.4, 0.6])), [])
    uphill, downhill = from_above(0.4, 0.0, 0.1), from_above(0.6, 0.0, 0.1)
    assert backend.plan_to_pose(home, uphill).status is MotionStatus.GOAL_IN_COLLISION
    assert backend.plan_to_pose(home, downhill).status is MotionStatus.SUCCEEDED


def test_a_search_that_finds_nothing_says_so(panda_urdf, panda_srdf, panda, home):
    """A wall through the base, with a gap about it that the elbow does not fit through."""
    places = [(x, z) for x in np.arange(-1.0, 1.1, 0.2) for z in np.arange(-0.5, 1.4, 0.2)]
    wall = np.array([[x, 0.0, z] for x, z in places if abs(x) > 0.25 or z > 0.55])
    config = EmbeddedConfig(planning_time=0.5)
    backend = EmbeddedBackend(panda_urdf, panda_srdf, panda, config)
    backend.set_world(None, [ObjectObstacle("wall", wall, np.full(len(wall), 0.11))])
    forward = {**home, "panda_joint2": 0.8}
    result = backend.plan_to_joints({**forward, "panda_joint1": -1.57}, {**forward, "panda_joint1": 1.57})
    assert result.status is MotionStatus.NO_PATH
    assert result.trajectory is None
    assert result.message


def test_a_free_straight_path_is_taken_and_a_blocked_one_is_left(
    backend, home, panda, panda_urdf, panda_srdf, table, kinematics, coal_checker
):
    start, goal = {**home, "panda_joint1": -0.8}, {**home, "panda_joint1": 0.8}
    backend.set_world(table, [])
    free = backend.plan_to_joints(start, goal)
    assert free.status is MotionStatus.SUCCEEDED
    others = [name != "panda_joint1" for name in panda.arm_joints]
    assert np.ptp(free.trajectory.positions[:, others], axis=0).max() < 1e-9
    assert (np.diff(free.trajectory.positions[:, 0]) >= -1e-9).all()
    assert_well_formed(free.trajectory, start, panda, kinematics)

    hand = kinematics.link_pose(home, "panda_hand")[:3, 3]
    post = ObjectObstacle("post", hand + np.outer(np.linspace(-0.1, 0.1, 5), [0.0, 0.0, 1.0]), np.full(5, 0.04))
    backend.set_world(table, [post])
    around = backend.plan_to_joints(start, goal)
    assert around.status is MotionStatus.SUCCEEDED
    assert np.ptp(around.trajectory.positions[:, others], axis=0).max() > 0.05
    assert_well_formed(around.trajectory, start, panda, kinematics)
    checker = coal_checker(panda_urdf, panda_srdf, table, [post])
    for positions in samples(start, around.trajectory, 0.02):
        assert not {pair for pair in checker.contacts(positions) if "post" in pair}


def test_going_where_the_arm_is_succeeds(world, home):
    result = world.plan_to_joints(home, home)
    assert result.status is MotionStatus.SUCCEEDED
    assert np.ptp(result.trajectory.positions, axis=0).max() < 1e-9


def test_paths_around_something_are_proven_and_round_their_corners(
    backend, home, panda, panda_urdf, panda_srdf, table, coal_checker
):
    """Whole trajectories touch nothing, between their rows either, and do not stop on the way."""
    rng = np.random.default_rng(2)
    proven = rounded = 0
    for _ in range(20):
        centers = rng.uniform([0.25, -0.5, 0.15], [0.75, 0.5, 0.8], (6, 3))
        clutter = ObjectObstacle("clutter", centers, rng.uniform(0.03, 0.06, 6))
        backend.set_world(table, [clutter])
        goal = {**home, "panda_joint1": rng.uniform(-1.5, 1.5), "panda_joint4": rng.uniform(-2.2, -1.0)}
        result = backend.plan_to_joints(home, goal)
        if result.trajectory is None:
            continue
        assert result.proven == (result.message == "")
        proven += result.proven
        checker = coal_checker(panda_urdf, panda_srdf, table, [clutter])
        for positions in samples(home, result.trajectory, 0.01):
            assert not {pair for pair in checker.contacts(positions) if "clutter" in pair}
        # One that turns and does not stop has rounded a corner.
        inner, moving = result.trajectory.velocities[1:-1], np.abs(np.diff(result.trajectory.positions, axis=0)).sum(1)
        turns = np.ptp(np.diff(result.trajectory.positions, axis=0)[moving > 1e-3], axis=0).max() > 1e-2
        rounded += turns and np.abs(inner).max(axis=1).min() > 0.0
    assert proven >= 6
    assert rounded >= 1


def test_a_move_of_the_fingers_counts_in_the_next_plan(backend, table, home, from_above):
    """A pin where an open finger would be, lower than the hand."""
    pin = ObjectObstacle("pin", np.array([[0.5, 0.04, 0.03], [0.5, -0.04, 0.03]]), np.full(2, 0.005))
    backend.set_world(table, [pin])
    closed = {**home, "panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
    opened = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.04))
    assert opened.status is MotionStatus.GOAL_IN_COLLISION
    assert "finger" in opened.message
    assert backend.plan_to_pose(closed, from_above(0.5, 0.0, 0.04)).status is MotionStatus.SUCCEEDED
    # Above it, a motion with open fingers is free again.
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.12)).status is MotionStatus.SUCCEEDED


def test_free_motions_stay_above_the_table_where_they_begin_and_end_there(
    backend, panda, panda_urdf, panda_srdf, home, table, kinematics, from_above
):
    settings = EmbeddedConfig(free_clearance=0.0)
    backends = {0.01: backend, 0.0: EmbeddedBackend(panda_urdf, panda_srdf, panda, settings, seed=3)}
    bodies = {name: backend._contacts.bodies[name] for name in panda.touch_links if name in backend._contacts.bodies}

    def height(positions):
        """Of the lowest sphere of the hand over the table [m]."""
        centers = [transform_points(kinematics.link_pose(positions, name), b.centers) for name, b in bodies.items()]
        return min((at[:, 2] - body.radii).min() for at, body in zip(centers, bodies.values(), strict=True))

    for each in backends.values():
        each.set_world(table, [])
    rise = 0.2 - height(at_end(home, backend.plan_to_pose(home, from_above(0.5, 0.0, 0.2)).trajectory))
    rng, lowest = np.random.default_rng(5), {0.01: [], 0.0: []}
    for _ in range(12):
        first, second = rng.uniform([0.3, 0.1], [0.42, 0.4]), rng.uniform([0.5, -0.4], [0.65, -0.1])
        start = at_end(home, backend.plan_to_pose(home, from_above(*first, rise + 0.012)).trajectory)
        for clearance, each in backends.items():
            result = each.plan_to_pose(start, from_above(*second, rise + 0.012))
            lowest[clearance].append(min(map(height, samples(start, result.trajectory, 0.02))))
    assert min(lowest[0.01]) > 0.0099
    assert -1e-4 < min(lowest[0.0]) < 0.006
    # What is nearer to the table at one of its ends may go on as before.
    low = at_end(home, backend.plan_to_pose(home, from_above(0.4, 0.2, rise + 0.003)).trajectory)
    assert height(low) < 0.004
    assert backend.plan_to_pose(low, from_above(0.5, -0.2, rise + 0.003)).status is MotionStatus.SUCCEEDED


def test_what_is_held_keeps_clear_of_what_stands_there_where_it_begins_and_ends_so(
    backend, panda, panda_urdf, panda_srdf, home, table, kinematics, from_above
):
    settings = EmbeddedConfig(free_clearance=0.0)
    backends = {0.01: backend, 0.0: EmbeddedBackend(panda_urdf, panda_srdf, panda, settings, seed=3)}
    rng = np.random.default_rng(2)
    posts = [
        ObjectObstacle(f"post {number}", np.array([[x, y, z] for z in np.linspace(0.02, 0.22, 11)]), np.full(11, 0.02))
        for number, (x, y) in enumerate(rng.uniform([0.35, -0.15], [0.65, 0.15], (5, 2)))
    ]
    others = np.concatenate([post.centers for post in posts])
    rod = np.array([[0.45, 0.35, z] for z in np.linspace(0.1, 0.2, 6)])
    nearest = {0.01: [], 0.0: []}
    for clearance, each in backends.items():
        for side in np.linspace(-0.1, 0.1, 6):
            each.set_world(table, [])
            start = at_end(home, each.plan_to_pose(home, from_above(0.45, 0.35, 0.22)).trajectory)
            each.set_world(table, [*posts, ObjectObstacle("held", rod, np.full(6, 0.01))])
            each.attach("held", from_above(0.45, 0.35, 0.22))
            result = each.plan_to_pose(start, from_above(0.5 + side, -0.35, 0.22))
            assert result.status is MotionStatus.SUCCEEDED
            T_tip_base = np.linalg.inv(kinematics.link_pose(start, panda.tip_link))
            points = transform_points(T_tip_base, rod)
            for positions in samples(start, result.trajectory, 0.02):
                there = transform_points(kinematics.link_pose(positions, panda.tip_link), points)
                gaps = np.linalg.norm(there[:, None] - others, axis=2)
                nearest[clearance].append(float(gaps.min()) - 0.03)
    assert min(nearest[0.01]) > 0.0095
    assert 0.0 < min(nearest[0.0]) < 0.0095
