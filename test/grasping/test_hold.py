"""Certified holds against exact statics, dense linear programmes, and poses drawn within the errors."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.scoring.bearing import BEARING_DEPTH, POINT_LEVER, bearing_places, patch_corners
from morphit_ros.grasping.scoring.hold import (
    HoldErrors,
    _pressure_rows,
    _share_held,
    borne_levers,
    certified_hold,
    held_in_all_directions,
)
from morphit_ros.simulation.pad_patches import hertz_radius

EXACT = HoldErrors(position=0.0, angle=0.0, center=0.0, friction=0.5, mass=0.4, force=40.0)
ERRORS = EXACT._replace(position=0.003, angle=math.radians(4.0), center=0.005)
HAND = Gripper.load("franka_hand")
NOWHERE = np.array([[-1.0, -1.0], [1.0, 1.0]])


def grid(width, height, count=41):
    x, z = np.meshgrid(np.linspace(-width / 2, width / 2, count), np.linspace(-height / 2, height / 2, count))
    return np.stack([x.ravel(), z.ravel()], axis=1)


def box_hold(errors, center=(0.0, 0.0, 0.0), sides=(0.12, 0.04, 0.12), shift=(0.0, 0.0, 0.0)):
    """A box held by its faces ±y with the pads' middle at `shift`, gripper axes along the box's."""
    points, normals = sample_surface_evenly(box_mesh(np.array(sides)), 12000, np.random.default_rng(0))
    return certified_hold(
        points, normals, np.eye(3)[None], np.array([shift]), np.array([sides[1] + 0.016]), np.array(center), HAND,
        errors,
    )[0]  # fmt: skip


def exact_force(lever_arm, friction, width, height):
    """Least force across the closing direction, of both normal forces' sum, that turns or moves a pad: even pressure on
    a rectangle, load at a distance along x; the upper bound theorem over motions, which is exact (Goyal and Ruina)."""
    points, least = grid(width, height, 81), math.inf
    for angle, pole in itertools.product(np.linspace(0.0, 2.0 * np.pi, 73), [0.0, *np.geomspace(1e-3, 0.3, 40)]):
        # A motion along a direction, and a turn about the middle whose ratio to it is the pole's distance.
        velocity = np.array([math.cos(angle), math.sin(angle)]) * pole
        for turn in (-1.0, 1.0):
            speeds = np.hypot(velocity[0] + turn * points[:, 1], velocity[1] - turn * points[:, 0])
            power = np.hypot(velocity[0], velocity[1] - turn * lever_arm)
            least = min(least, friction * speeds.mean() / max(power, 1e-12))
    return min(least, friction)


@pytest.mark.parametrize(("width", "height"), [(0.018, 0.018), (0.02, 0.01), (0.02, 0.003), (0.02, 0.0002)])
def test_four_places_hold_no_more_than_even_pressure(width, height):
    points, places = grid(width, height), np.zeros((4, 3))
    assert patch_corners(points, NOWHERE, places)
    corners = places[:, [0, 2]]
    for angle, ratio in itertools.product(np.linspace(0.0, np.pi, 37), np.geomspace(0.05, 20.0, 41)):
        velocity, turn = np.array([math.cos(angle), math.sin(angle)]), ratio / 0.007

        def power(of, velocity=velocity, turn=turn):
            return np.hypot(velocity[0] - turn * of[:, 1], velocity[1] + turn * of[:, 0]).mean()

        assert power(corners) <= power(points) * 1.0005
    lever = np.hypot(*points.T).mean()
    assert np.hypot(*corners.T).mean() == pytest.approx(lever, rel=1e-6)


def test_four_places_of_a_disc_and_of_a_point():
    points = grid(0.02, 0.02, 81)
    disc, places = points[np.hypot(*points.T) <= 0.01], np.zeros((4, 3))
    patch_corners(disc, NOWHERE, places)
    assert np.hypot(places[:, 0], places[:, 2]).mean() == pytest.approx(2.0 / 3.0 * 0.01, rel=0.02)
    patch_corners(np.zeros((1, 2)), NOWHERE, places)
    assert np.hypot(places[:, 0], places[:, 2]) == pytest.approx(POINT_LEVER)


def test_a_share_is_that_of_a_dense_linear_programme():
    rng = np.random.default_rng(3)
    angles, shares = np.linspace(0.0, 2.0 * np.pi, 96, endpoint=False), []
    for _ in range(40):
        places = rng.normal(scale=0.02, size=(8, 3))
        signs = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
        places[:4, [0, 2]] += signs * rng.uniform(0.02, 0.3, 2)
        places[4:, [0, 2]] += signs * rng.uniform(0.02, 0.3, 2)
        places[:4, 1], places[4:, 1] = 0.4, -0.4
        friction, load = rng.uniform(0.2, 0.8, 2), rng.normal(size=6)
        columns, pressed = [], _pressure_rows(places)
        for k, place in enumerate(places):
            for angle in angles:
                force = np.array([
                    friction[k // 4] * math.cos(angle), -1.0 if k < 4 else 1.0, friction[k // 4] * math.sin(angle),
                ])  # fmt: skip
                columns.append([*force, *np.cross(place, force), 1.0, *pressed[k]])
        matrix = np.array([*columns, [*load, *np.zeros(5)]]).T
        cost = np.zeros(matrix.shape[1])
        cost[-1] = -1.0
        best = linprog(cost, matrix[6:7], [1.0], np.delete(matrix, 6, axis=0), np.zeros(10)).x[-1]
        found = _share_held(places, pressed, friction, load, math.inf)
        # Inscribed cones of 96 edges are narrower by 0.05 %.
        assert found <= best * 1.001 + 1e-9
        assert found >= 0.97 * best
        shares.append(best)
    # Otherwise nothing was tried.
    assert min(shares) > 0.01


def test_a_box_held_at_its_centre_of_mass_slips_at_the_friction_of_both_pads():
    exact = 2.0 * EXACT.friction * EXACT.force / EXACT.mass
    held = box_hold(EXACT)
    assert held <= exact * 1.0001
    # The ball is searched until it is 0.86 of the least direction, each within 0.02.
    assert held >= 0.84 * exact


@pytest.mark.parametrize("offset", [0.005, 0.02, 0.05])
def test_a_box_held_beside_its_centre_of_mass_turns_first(offset):
    exact = 2.0 * EXACT.force / EXACT.mass * exact_force(offset, EXACT.friction, 0.018, 0.018)
    held = box_hold(EXACT, center=(offset, 0.0, 0.0))
    assert held <= exact * 1.0001
    assert held >= 0.7 * exact


def test_errors_only_lower_the_hold():
    before = box_hold(EXACT)
    for name, values in (
        ("position", (0.003, 0.01, 0.03)),
        ("angle", (0.02, 0.05, 0.1)),
        ("center", (0.002, 0.005, 0.02)),
        ("friction", (0.4, 0.3, 0.2)),
        ("mass", (0.5, 0.8, 2.0)),
    ):
        holds = [before, *(box_hold(EXACT._replace(**{name: value})) for value in values)]
        # The search for the ball ends within some percent.
        assert all(after <= 1.05 * earlier for earlier, after in itertools.pairwise(holds)), name
        assert 0.0 < holds[-1] < 0.9 * before, name


def test_mass_and_force_scale_the_hold():
    assert box_hold(ERRORS._replace(mass=0.8)) == pytest.approx(0.5 * box_hold(ERRORS))
    assert box_hold(ERRORS._replace(force=80.0)) == pytest.approx(2.0 * box_hold(ERRORS))


def test_no_pose_within_the_errors_holds_less():
    """The patch that a drawn pose really has, of a narrow face and of one that ends beside the pad."""
    rng = np.random.default_rng(5)
    for sides, place in (((0.12, 0.04, 0.12), 0.0), ((0.12, 0.04, 0.014), 0.0), ((0.12, 0.04, 0.12), 0.052)):
        certified = box_hold(ERRORS, sides=sides, shift=(place, 0.0, 0.0), center=(0.01, 0.0, 0.0))
        assert certified > 0.0
        worst = math.inf
        for _ in range(60):
            shift = ERRORS.position * rng.uniform(-1.0, 1.0, 3) / math.sqrt(3.0)
            turn = matrix_from_rotation_vector(np.array([0.0, ERRORS.angle * rng.uniform(-1.0, 1.0), 0.0]))
            pad = np.insert(grid(HAND.pad_width, HAND.pad_height, 31), 1, 0.0, axis=1)
            on_face = pad @ turn.T + shift + [place, 0.0, 0.0]
            touched = pad[(np.abs(on_face[:, 0]) < sides[0] / 2) & (np.abs(on_face[:, 2]) < sides[2] / 2)]
            places = np.zeros((8, 3))
            patch_corners(np.ascontiguousarray(touched[:, [0, 2]]), NOWHERE, places[:4])
            places[4:] = places[:4]
            places[:4, 1], places[4:, 1] = 0.5 * sides[1], -0.5 * sides[1]
            direction = rng.normal(size=3)
            error = ERRORS.center * direction / np.linalg.norm(direction)
            center = turn.T @ (np.array([0.01 - place, 0.0, 0.0]) + error - shift * [1.0, 0.0, 1.0])
            held = held_in_all_directions(places, ERRORS.friction, center, np.zeros(3))
            worst = min(worst, 2.0 * ERRORS.force / ERRORS.mass * held)
        assert certified <= worst


def test_nothing_is_certified_where_a_pad_may_meet_something_else():
    # A step of 2 mm, 3 mm beside the pad: within the errors the pad can be on it.
    rng = np.random.default_rng(0)
    points, normals = sample_surface_evenly(box_mesh(np.array([0.12, 0.04, 0.12])), 12000, rng)
    step = np.array([[0.0135, 0.022, z] for z in np.linspace(-0.01, 0.01, 40)])
    points, normals = np.concatenate([points, step]), np.concatenate([normals, np.tile([0.0, 1.0, 0.0], (40, 1))])
    poses = (np.eye(3)[None], np.zeros((1, 3)), np.array([0.056]), np.zeros(3), HAND)
    assert certified_hold(points, normals, *poses, EXACT)[0] > 0.0
    assert certified_hold(points, normals, *poses, ERRORS)[0] == 0.0
    # Nor where the normals may leave the cone, or where there is nothing to hold.
    assert box_hold(ERRORS._replace(friction=0.06)) == 0.0
    assert box_hold(ERRORS, shift=(0.2, 0.0, 0.0)) == 0.0


def test_a_cylinder_bears_along_a_line():
    points, normals = sample_surface_evenly(cylinder_mesh(0.02, 0.1, 256), 3000, np.random.default_rng(1))
    half = np.array([0.012, 0.012])
    near = (np.abs(points[:, 0]) < 0.02) & (np.abs(points[:, 2] - 0.0) < 0.03)
    places, height, tilt = bearing_places(points[near], normals[near], 1.0, half, 0.0)
    assert height == pytest.approx(0.02, abs=1e-4)
    assert np.abs(places[:, 0]).max() < 0.003
    assert np.ptp(places[:, 1]) > 0.016
    assert tilt < 0.05


def test_offered_grasps_carry_their_hold():
    points, normals = sample_surface_evenly(box_mesh(np.array([0.05, 0.12, 0.12])), 3000, np.random.default_rng(2))
    cloud = PointCloud(points, normals)
    config = PlannerConfig(mass=0.2, rounds=1, pairs=200, max_starts=600)
    grasps = plan_grasps(cloud, HAND, config).grasps
    holds = np.array([grasp.hold for grasp in grasps])
    assert (holds >= 0.0).all()
    assert holds.max() > 9.81
    heavier = plan_grasps(cloud, HAND, PlannerConfig(mass=0.2, rounds=1, pairs=200, max_starts=600, mass_error=1.4))
    assert [grasp.hold for grasp in heavier.grasps] == pytest.approx(holds / 2.0)


def levers_of(mesh, opening, turn=0.0):
    points, normals = sample_surface_evenly(mesh, 12000, np.random.default_rng(0))
    rotation = matrix_from_rotation_vector([0.0, turn, 0.0])
    return borne_levers(points, normals, rotation[None], np.zeros((1, 3)), np.array([opening]), HAND)[0]


@pytest.mark.parametrize("turn", [0.0, 0.4])
def test_levers_of_a_face_and_of_a_line_are_those_of_even_pressure(turn):
    """0.3826 a of a square of side a (pad_patches.py); a cylinder's strip is as wide as it is pressed flat."""
    side = HAND.pad_width
    np.testing.assert_allclose(levers_of(box_mesh(np.array([0.12, 0.04, 0.12])), 0.056, turn), 0.3826 * side, rtol=0.08)
    strip = grid(2.0 * math.sqrt(2.0 * 0.015 * BEARING_DEPTH), side, 81)
    line = levers_of(cylinder_mesh(0.015, 0.1, 256), 0.05)
    np.testing.assert_allclose(line, np.linalg.norm(strip, axis=1).mean(), rtol=0.1)


def test_a_taper_bears_at_its_thick_end_only():
    """Soft patches count 18 mm of a handle that is 1 mm thinner on one side at one end as a whole."""
    mesh = cylinder_mesh(0.015, 0.1)
    along = mesh.vertices[:, 2]
    thinner = mesh.vertices * np.stack([1.0 - along, 1.0 - along, np.ones_like(along)], axis=1)
    tapered = replace(mesh, vertices=thinner)
    assert (levers_of(tapered, 0.05) < 0.5 * levers_of(mesh, 0.05)).all()


@pytest.mark.parametrize(
    ("mesh", "lever"),
    [
        (box_mesh(np.array([0.06, 0.04, 0.05])), 0.3826 * 0.018),
        (cylinder_mesh(0.02, 0.1, 256), 0.018 / 4.0),
        (sphere_mesh(0.022), 3.0 * math.pi / 16.0 * hertz_radius(40.0, 0.022)),
    ],
    ids=["face", "line", "ball"],
)
def test_the_torsion_of_the_best_grasps_is_what_hard_pads_hold(mesh, lever):
    """Of pads 18 mm wide and high, pressed with 40 N (simulation/pad_patches.py)."""
    assert (HAND.pad_width, HAND.pad_height, HAND.max_force) == (0.018, 0.018, 40.0)
    cloud = PointCloud(*sample_surface_evenly(mesh, 3000, np.random.default_rng(0)))
    config = PlannerConfig()
    stated = [grasp.metrics["torsion"] for grasp in plan_grasps(cloud, HAND, config).grasps[:5]]
    held = 2.0 * config.friction * HAND.max_force * lever
    assert np.median(stated) == pytest.approx(held, rel=0.1)
    # Not all of a pad need be on a face; of a strip as wide as it is pressed flat it is a little more.
    assert np.max(stated) < 1.2 * held
