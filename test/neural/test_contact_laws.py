"""Contact and motion against their formulas, written out once more in NumPy: sizes of forces, frames, reactions."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from contact_samples import box_body
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw, matrix_from_rotation_vector
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.density_shape import DensityShape
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import (
    ContactBox,
    ContactCapsule,
    ContactHalfSpace,
    ContactPolytope,
    ContactShape,
    ContactSphere,
    SphereSet,
)
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.fields.analytic import SphereField

BODY = box_body()
STEP = 0.002
GRAVITY = np.array([0.0, 0.0, -9.81])
# Of unit size, so that what is configured is SI; all terms take part.
LAW = ContactParameters(
    friction=0.3, spring=3e4, damper=3e5, sliding_drag=0.05, rolling_friction=0.04, torsional_friction=0.07,
    rolling_drag=0.02, indicator_width=0.004, slip_speed=0.05, size=1.0,
)  # fmt: skip
HALF = np.array([0.5, 0.3, 0.25])
RADIUS = 0.4


def quat_of(vector: ArrayLike) -> Array:
    return np.asarray(Rotation.from_rotvec(vector).as_quat())


def product(first: Array, second: Array) -> Array:
    return np.asarray((Rotation.from_quat(first) * Rotation.from_quat(second)).as_quat())


Distance = Callable[[Array], tuple[Array, Array]]


def above_plane(points: Array) -> tuple[Array, Array]:
    """Distances (N,) and normals (N, 3) of points in the shape's frame."""
    return points[:, 2], np.tile([0.0, 0.0, 1.0], (len(points), 1))


def from_ball(points: Array) -> tuple[Array, Array]:
    lengths = np.linalg.norm(points, axis=1)
    return lengths - RADIUS, points / lengths[:, None]


def from_box(points: Array) -> tuple[Array, Array]:
    excess = np.abs(points) - HALF
    beyond = np.maximum(excess, 0.0)
    outside = np.linalg.norm(beyond, axis=1)
    face = np.eye(3)[excess.argmax(axis=1)] * np.sign(points)
    distances = np.where(outside > 0.0, outside, excess.max(axis=1))
    return distances, np.where(
        outside[:, None] > 0.0, beyond * np.sign(points) / np.maximum(outside, 1e-300)[:, None], face
    )


def smooth_overlap(gaps: Array) -> Array:
    """The smooth indicator with its taper, which ends it at sixteen widths."""
    e = np.clip(gaps / LAW.indicator_width, -500.0, 16.0)
    return np.where(e > 0.0, (1.0 - (e / 16.0) ** 4) ** 3, 1.0) / (1.0 + np.exp(e))


def point_forces(gaps: Array, normals: Array, velocities: Array) -> Array:
    """(N, 3) forces of the form by point."""
    along = (normals * velocities).sum(axis=1)
    bracket = 1.0 - LAW.damper / LAW.spring * along
    push = BODY.masses * smooth_overlap(gaps + STEP * along) * LAW.spring
    push *= 0.5 * (bracket + np.sqrt(bracket**2 + 0.05**2))
    across = velocities - along[:, None] * normals
    speeds = np.sqrt((across**2).sum(axis=1) + LAW.slip_speed**2)
    return push[:, None] * (normals - (LAW.friction / speeds + LAW.sliding_drag)[:, None] * across)


def direction(speed: float) -> float:
    return math.atan(LAW.coulomb_smoothing * speed) / (LAW.coulomb_regularizer + speed)


def single_point(overlap: float, arm: Array, normal: Array, velocity: Array, spin: Array) -> tuple[Array, Array]:
    """Force and torque about the body's centre of the paper's form: F_n, F_t, torsional and rolling torques."""
    along = normal @ velocity
    push = overlap * (LAW.spring - LAW.damper * along)
    across = velocity - along * normal
    rate = LAW.sliding_drag + LAW.friction * direction(float(np.linalg.norm(across)))
    force = push * normal - abs(push) * rate * across
    about = (spin @ normal) * normal
    rolling = spin - about
    brake = LAW.rolling_drag * spin
    for coefficient, part in ((LAW.rolling_friction, rolling), (LAW.torsional_friction, about)):
        brake = brake + coefficient * direction(float(np.linalg.norm(part))) * part
    torque = abs(push) * brake
    return force, np.cross(arm, force) - torque


def wrench(form: str, before: Array, after: Array, other: tuple[Array, Array, Array, Array], distance: Distance):
    """Force and torque about the body's centre over a step: geometry of its start, velocities of its end.

    other: rotation, origin, velocity and angular velocity (world) of the shape.
    """
    rotation, origin, velocity, spin = other
    R = matrix_from_quat_xyzw(before[3:7])
    arms = BODY.points @ R.T
    places = before[:3] + arms
    gaps, local = distance((places - origin) @ rotation)
    normals = local @ rotation.T
    turning = R @ after[10:]
    if form == "points":
        moving = after[7:10] + np.cross(turning, arms) - velocity - np.cross(spin, places - origin)
        forces = point_forces(gaps, normals, moving)
        return forces.sum(axis=0), np.cross(arms, forces).sum(axis=0)
    inside = BODY.masses * ((gaps <= 0.0) if form == "published" else smooth_overlap(gaps))
    arm = inside @ arms / inside.sum()
    normal = rotation @ distance(((before[:3] + arm - origin) @ rotation)[None])[1][0]
    moving = after[7:10] + np.cross(turning, arm) - velocity - np.cross(spin, before[:3] + arm - origin)
    return single_point(float(inside.sum()), arm, normal, moving, turning - spin)


def spin_momentum(inertia: Array, spin: Array, sign: float) -> Array:
    h = inertia @ spin
    return 0.5 * STEP * (sign * math.sqrt(4.0 / STEP**2 - spin @ spin) * h + np.cross(spin, h))


def assert_balance(body: RigidBody | ContactBody, before: Array, after: Array, force: Array, torque: Array) -> None:
    """m (v − v₋) = h (m g + F), and the same of the spin, in the body's axes."""
    change = body.mass * (after[7:10] - before[7:10])
    np.testing.assert_allclose(change, STEP * (body.mass * GRAVITY + force), atol=1e-9)
    change = spin_momentum(body.inertia, after[10:], 1.0) + spin_momentum(body.inertia, before[10:], -1.0)
    np.testing.assert_allclose(change, STEP * matrix_from_quat_xyzw(before[3:7]).T @ torque, atol=1e-9)


START = BodyState([0.1, -0.05, 0.0], [0.05, 0.1, 0.3, 1.0], [0.4, -0.3, -0.1], [0.5, -0.4, 1.0]).flat


def touching(distance: Distance, rotation: Array, origin: Array, depth: float = 0.04) -> Array:
    """The start moved along the shape's z until its deepest point is that deep, and moving into it."""
    arms = BODY.points @ matrix_from_quat_xyzw(START[3:7]).T
    state, up = START.copy(), rotation[:, 2]
    low, high = 0.0, 2.0
    for _ in range(50):
        state[:3] = origin + rotation @ [0.03, -0.02, 0.0] + 0.5 * (low + high) * up
        deep = distance((state[:3] + arms - origin) @ rotation)[0].min() < -depth
        low, high = (0.5 * (low + high), high) if deep else (low, 0.5 * (low + high))
    state[7:10] = rotation @ [0.4, -0.3, -0.3]
    return state


PLACE = make_transform(matrix_from_rotation_vector([0.3, -0.4, 0.7]), (0.2, -0.1, 0.05))
SHAPES: dict[str, tuple[ContactShape, Distance]] = {
    "half-space": (ContactHalfSpace(), above_plane),
    "sphere": (ContactSphere(RADIUS), from_ball),
    "box": (ContactBox(2.0 * HALF), from_box),
}


@pytest.mark.parametrize("form", ["points", "smooth_single_point", "published"])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("driven", [False, True], ids=["still", "driven"])
def test_a_step_balances_momentum_with_the_written_force(name: str, form: str, driven: bool) -> None:
    shape, distance = SHAPES[name]
    rotation, origin = PLACE[:3, :3], PLACE[:3, 3]
    velocity, spin = rotation @ [0.2, 0.1, 0.05], np.array([0.4, -0.3, 1.5])
    if driven:
        quat = quat_of([0.3, -0.4, 0.7])
        turned = product(quat_of(STEP * spin), quat)
        obstacle = Obstacle(shape, positions=[origin, origin + STEP * velocity], quats_xyzw=[quat, turned])
    else:
        velocity, spin = np.zeros(3), np.zeros(3)
        obstacle = Obstacle(shape, PLACE)
    before = touching(distance, rotation, origin)
    world = World([BODY], [obstacle], LAW, STEP, form=form)  # type: ignore[arg-type]
    after = simulate(world, before, 1).states[1, 0]
    force, torque = wrench(form, before, after, (rotation, origin, velocity, spin), distance)
    assert np.linalg.norm(force) > 3.0
    assert_balance(BODY, before, after, force, torque)
    # The pose follows from the new velocities.
    np.testing.assert_allclose(after[:3], before[:3] + STEP * after[7:10], atol=1e-14)
    half = 0.5 * STEP * after[10:]
    turn = product(before[3:7], np.append(half, math.sqrt(1.0 - half @ half)))
    assert abs(after[3:7] @ turn) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("form", ["points", "smooth_single_point", "published"])
def test_a_ball_gets_the_reaction_of_what_it_pushes(form: str) -> None:
    ball = RigidBody.ball(RADIUS, 5.0, name="ball")
    world = World([BODY, ball], (), LAW, STEP, form=form)  # type: ignore[arg-type]
    pose = BodyState([0.3, 0.2, 0.1], [0.2, -0.1, 0.4, 1.0], [0.3, -0.2, 0.5], [0.6, 0.4, -0.7]).flat
    rotation = matrix_from_quat_xyzw(pose[3:7])
    before = np.stack([touching(from_ball, rotation, pose[:3]), pose])
    after = simulate(world, before, 1).states[1]
    other = rotation, pose[:3], after[1, 7:10], rotation @ after[1, 10:]
    force, torque = wrench(form, before[0], after[0], other, from_ball)
    assert np.linalg.norm(force) > 3.0
    assert_balance(BODY, before[0], after[0], force, torque)
    away = before[0, :3] - before[1, :3]
    assert_balance(ball, before[1], after[1], -force, -(torque + np.cross(away, force)))


TURNED = {
    "capsule": ContactCapsule(0.2, 1.2),
    "box": ContactBox(np.array([1.4, 1.0, 0.4])),
    "convex mesh": ContactPolytope.from_vertices(np.array([[1, 0, 0], [-1, 1, 0], [-1, -1, 0], [0, 0, -1.0]])),
    "spheres": SphereSet(np.array([[0.3, 0.0, -0.3], [-0.3, 0.1, -0.3]]), np.array([0.3, 0.25])),
    "density": DensityShape.from_field(SphereField(0.5, edge=0.02), 0.5, 0.05, center_of_mass=(0.1, 0.0, 0.5)),
}


@pytest.mark.parametrize("name", TURNED)
def test_turning_an_obstacle_with_its_world_turns_the_motion(name: str) -> None:
    turn = quat_of([0.3, -0.5, 1.2])
    R, shift = matrix_from_quat_xyzw(turn), np.array([0.4, -0.3, 0.2])
    start = BodyState([0.05, 0.03, 0.9], [0.05, 0.1, 0.3, 1.0], [0.4, -0.3, -1.5], [0.5, -0.4, 1.0])
    moved = BodyState(
        R @ start.position + shift, product(turn, start.quat_xyzw), R @ start.velocity,
        start.angular_velocity,
    )  # fmt: skip
    here = simulate(World([BODY], [Obstacle(TURNED[name])], LAW, 0.005), start, 100)
    there = simulate(
        World([BODY], [Obstacle(TURNED[name], make_transform(R, shift))], LAW, 0.005, R @ GRAVITY), moved, 100
    )
    free = simulate(World([BODY], (), LAW, 0.005), start, 100)
    assert np.linalg.norm(here.positions[-1] - free.positions[-1]) > 0.05
    np.testing.assert_allclose(there.positions, here.positions @ R.T + shift, atol=1e-7)
    np.testing.assert_allclose(there.angular_velocities, here.angular_velocities, atol=1e-5)


def flat_body(size: tuple[float, float, float], disc: bool) -> ContactBody:
    """An upright disc, or a box, of points."""
    filled = box_body(size, 6000)
    if not disc:
        return filled
    points = filled.points[np.hypot(filled.points[:, 0], filled.points[:, 1]) < 0.5 * size[0]]
    x, _, z = size
    inertia = filled.mass / 12.0 * np.diag([0.75 * x**2 + z**2] * 2 + [1.5 * x**2])
    weights = np.full(len(points), filled.mass / len(points))
    return ContactBody(points - points.mean(axis=0), weights, np.zeros_like(points), filled.mass, inertia, np.zeros(3))


@pytest.mark.parametrize("disc", [True, False], ids=["disc", "box"])
def test_a_spin_ends_as_the_integral_of_friction_over_the_base_says(disc: bool) -> None:
    size = (0.1, 0.1, 0.02) if disc else (0.1, 0.06, 0.02)
    body = flat_body(size, disc)
    world = World([body], [Obstacle(ContactHalfSpace())], ContactParameters(friction=0.3), STEP)
    start = simulate(world, BodyState([0.0, 0.0, 0.011]), 400).states[-1]
    start[0, 7:] = 0.0
    start[0, 12] = 15.0
    lost = 15.0 - simulate(world, start, 50).angular_velocities[-1, 0, 2]
    # The mean distance from the axis under even pressure.
    x, y = (np.moveaxis(np.indices((400, 400)), 0, -1).reshape(-1, 2).T + 0.5) / 400.0 - 0.5
    radius = size[0] / 3.0 if disc else float(np.hypot(x * size[0], y * size[1]).mean())
    assert lost == pytest.approx(0.3 * body.mass * 9.81 * radius / body.inertia[2, 2] * 0.1, rel=0.03)


def test_a_slide_is_as_long_as_in_mujoco(mujoco: ModuleType) -> None:
    size, friction, velocity = (0.1, 0.06, 0.04), 0.3, np.array([0.8, 0.4])
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.002" cone="elliptic" impratio="100" integrator="implicitfast"/><worldbody>
        <geom type="plane" size="10 10 1" friction="{friction} 0 0"/><body pos="0 0 0.02"><freejoint/>
        <geom type="box" size="0.05 0.03 0.02" mass="2" friction="{friction} 0 0"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 200)
    data.qvel[:], data.qvel[:2] = 0.0, velocity
    begin = data.qpos[:2].copy()
    mujoco.mj_step(model, data, 400)
    world = World([box_body(size, 2000)], [Obstacle(ContactHalfSpace())], ContactParameters(friction=friction), STEP)
    start = simulate(world, BodyState([0.0, 0.0, 0.021]), 400).states[-1]
    start[0, 7:9] = velocity
    moved = simulate(world, start, 400).positions[-1, 0, :2] - start[0, :2]
    referee = data.qpos[:2] - begin
    assert np.linalg.norm(referee) > 0.1
    assert np.linalg.norm(moved - referee) < 0.02 * np.linalg.norm(referee)


def test_a_turntable_carries_its_load_round() -> None:
    # Half a turn a second: at 0.2 m friction of 0.5 holds the box, which turns with the table.
    rate, steps = math.pi, 200
    angles = rate * 0.005 * np.arange(steps + 1)
    quats = np.column_stack([np.zeros((steps + 1, 2)), np.sin(0.5 * angles), np.cos(0.5 * angles)])
    table = Obstacle(ContactBox(np.array([1.0, 1.0, 0.1])), positions=np.tile([0.0, 0.0, -0.05], (steps + 1, 1)),
                     quats_xyzw=quats)  # fmt: skip
    body = box_body((0.1, 0.06, 0.04), 300)
    law = ContactParameters(friction=0.5, indicator_width=0.002)
    world = World([body], [table], law, 0.005)
    start = BodyState([0.1, 0.0, 0.0205], velocity=[0.0, 0.1 * rate, 0.0], angular_velocity=[0.0, 0.0, rate])
    result = simulate(world, start, steps)
    assert result.angular_velocities[-1, 0, 2] == pytest.approx(rate, rel=0.02)
    np.testing.assert_allclose(
        result.positions[-1, 0, :2], 0.1 * np.array([math.cos(angles[-1]), math.sin(angles[-1])]), atol=0.006
    )


def scaled_body(size: float) -> ContactBody:
    """The same body of the same mass at another scale."""
    return ContactBody(size * BODY.points, BODY.masses, BODY.normals, BODY.mass, size**2 * BODY.inertia, np.zeros(3))


@pytest.mark.parametrize("form", ["points", "smooth_single_point", "published"])
def test_a_small_body_moves_as_a_large_one_in_the_root_of_the_time(form: str) -> None:
    law = ContactParameters(
        friction=0.3,
        sliding_drag=0.05,
        rolling_friction=0.02,
        torsional_friction=0.03,
        rolling_drag=0.02,
        slip_speed=0.05,
    )
    results = []
    for size in (1.0, 0.04):
        root = math.sqrt(size)
        start = BodyState([0.0, 0.0, 0.3 * size], [0.1, 0.05, 0.3, 1.0], [0.5 * root, 0.2 * root, 0.0],
                          [0.3 / root, 0.1 / root, 1.0 / root])  # fmt: skip
        world = World([scaled_body(size)], [Obstacle(ContactHalfSpace())], law, 0.002 * root, form=form)  # type: ignore[arg-type]
        result = simulate(world, start, 150)
        results.append((result.positions / size, result.velocities / root, result.angular_velocities * root))
    # It bounces and tumbles.
    assert np.ptp(results[0][2], axis=0).max() > 0.5
    for large, small in zip(*results, strict=True):
        np.testing.assert_allclose(small, large, atol=1e-6)


def test_named_values_are_those_that_are_configured_whatever_the_size() -> None:
    given = {
        "friction": 0.4, "spring": 2e4, "damper": 2e5, "sliding_drag": 0.03, "rolling_friction": 0.02,
        "torsional_friction": 0.05,
    }  # fmt: skip
    body, table = scaled_body(0.04), Obstacle(ContactHalfSpace())
    configured = World([body], [table], ContactParameters(**given))
    named, _, _ = World([body], [table]).with_values(tuple(given), list(given.values()))
    np.testing.assert_allclose(named[:, :6], configured.pair_values[:, :6], rtol=1e-12)


def test_a_body_that_is_thrown_round_feels_what_it_was_far_from() -> None:
    # At rest above the table, beyond the reach of its forces; a torque brings its end down within the step.
    before = BodyState([0.0, 0.0, 0.0], quat_of([0.0, 0.1, 0.0])).flat
    lowest = (BODY.points @ matrix_from_quat_xyzw(before[3:7]).T)[:, 2].min()
    before[2] = 0.1 - lowest
    outer = np.array([0.0, 0.0, 0.0, 0.0, 1.5e4, 0.0])
    after = simulate(World([BODY], [Obstacle(ContactHalfSpace())], LAW, STEP), before, 1, wrenches=outer[None]).states[
        1, 0
    ]
    still = np.zeros(3)
    force, torque = wrench("points", before, after, (np.eye(3), still, still, still), above_plane)
    assert force[2] > 1e3
    change = BODY.mass * (after[7:10] - before[7:10])
    np.testing.assert_allclose(change, STEP * (BODY.mass * GRAVITY + force), atol=1e-8)
    change = spin_momentum(BODY.inertia, after[10:], 1.0) + spin_momentum(BODY.inertia, before[10:], -1.0)
    turned = matrix_from_quat_xyzw(before[3:7]).T @ (torque + outer[3:])
    np.testing.assert_allclose(change, STEP * turned, atol=1e-8)
