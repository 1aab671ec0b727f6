"""Grasps by fingers that turn: palm, fingers and pads are where they are at each opening."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from hands import arm_with, pincer, robotiq_85

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, transform_points
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.candidate_record import CandidateRecord
from morphit_ros.grasping.checking.closing import close_fingers
from morphit_ros.grasping.checking.sweeps import approach_hits, closing_hits, gripper_boxes, lowest_heights
from morphit_ros.proposal.parts import find_parts
from morphit_ros.proposal.turning import measure_turning_hand
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel


def gripper_of(hand: str) -> Gripper:
    model = KinematicModel(load_robot_description(arm_with(hand)))
    measure = measure_turning_hand(model, find_parts(model))
    openings = measure.pad_motion.apertures
    return Gripper(
        "hand", measure.pad_width, measure.pad_height, 0.002, float(openings[0]), float(openings[-1]), 20.0, 0.1,
        measure.palm_boxes, measure.finger_boxes, pad_motion=measure.pad_motion,
    )  # fmt: skip


@pytest.fixture(scope="module")
def linked() -> Gripper:
    return gripper_of(robotiq_85())


@pytest.fixture(scope="module")
def pincers() -> Gripper:
    return gripper_of(pincer(parallel=0.05))


def poses(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array(
        [
            make_transform(matrix_from_rotation_vector(rng.normal(size=3)), rng.uniform(-0.05, 0.05, 3))
            for _ in range(count)
        ]
    )


def boxes_at(gripper: Gripper, opening: float, contact: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners of all boxes at an opening, about the middle between the pads at contact."""
    boxes = gripper.collision_boxes(opening)
    shift = np.array([0.0, 0.0, -float(gripper.advance(contact))])
    return (
        np.array([box.center - box.size / 2.0 for box in boxes]) + shift,
        np.array([box.center + box.size / 2.0 for box in boxes]) + shift,
    )


@pytest.mark.parametrize("name", ["linked", "pincers"])
def test_the_approach_meets_what_the_boxes_meet(name: str, request: pytest.FixtureRequest) -> None:
    gripper = request.getfixturevalue(name)
    points, T = np.random.default_rng(0).uniform(-0.15, 0.15, (400, 3)), poses(6)
    contacts = np.linspace(gripper.aperture_min, 0.06, len(T))
    openings = np.minimum(contacts + 0.02, gripper.aperture_max)
    hits = approach_hits(
        points, T[:, :3, :3], T[:, :3, 3], openings, gripper_boxes(gripper), 0.05, reach=0.02, contacts=contacts
    )
    assert hits.inside.sum() > 0
    for s in range(len(T)):
        lower, upper = boxes_at(gripper, openings[s], contacts[s])
        lower[:, 2] -= 0.05
        local = (points - T[s, :3, 3]) @ T[s, :3, :3]
        gaps = np.maximum(np.maximum(lower - local[:, None], local[:, None] - upper), 0.0)
        distances = np.linalg.norm(gaps, axis=2).min(axis=1)
        assert hits.inside[s] == (distances < 1e-12).sum()
        assert hits.clearance[s] == pytest.approx(min(distances.min(), 0.02), abs=1e-9)


@pytest.mark.parametrize("name", ["linked", "pincers"])
def test_closing_misses_nothing_that_the_fingers_meet_on_their_arcs(name: str, request: pytest.FixtureRequest) -> None:
    gripper = request.getfixturevalue(name)
    rng, tolerance = np.random.default_rng(1), 0.002
    points = rng.uniform([-0.02, -0.1, -0.12], [0.02, 0.1, 0.05], (3000, 3))
    one = np.eye(3)[None], np.zeros((1, 3))
    palms = len(gripper.palm_boxes)
    for contact, opening in ((0.03, 0.08), (0.05, 0.07)):
        met = np.zeros(len(points), dtype=bool)
        for between in np.linspace(contact, opening, 60):
            lower, upper = (corners[palms:] for corners in boxes_at(gripper, float(between), contact))
            # Beside the pads what is nearer than the tolerance to where they end is the object.
            inside = ((points[:, None] > lower + 3e-4) & (points[:, None] < upper - 3e-4)).all(axis=2)
            beside = np.abs(points[:, 1]) < 0.5 * contact + tolerance
            met |= inside.any(axis=1) & ~beside
        found = np.array(
            [
                closing_hits(
                    point[None], *one, np.array([opening]), np.array([contact]), gripper_boxes(gripper), tolerance
                ).inside[0] > 0
                for point in points
            ]
        )  # fmt: skip
        assert met.sum() > 100
        assert found[met].all()
        # The boxes around two rows are larger than the arcs, but not by much.
        assert found.sum() < 1.35 * met.sum()


def test_the_lowest_place_is_that_of_the_way_from_open_to_contact(linked: Gripper) -> None:
    T, table = poses(6, 1), poses(1, 2)[0]
    T[0] = np.eye(4)
    table_down = make_transform(np.diag([1.0, -1.0, -1.0]), [0.0, 0.0, 0.3])
    for plane in (table, table_down):
        contacts = np.linspace(0.01, 0.05, len(T))
        openings = np.full(len(T), linked.aperture_max)
        heights = lowest_heights(gripper_boxes(linked), T[:, :3, :3], T[:, :3, 3], openings, plane, contacts=contacts)
        for s in range(len(T)):
            rows = linked.pad_motion.apertures
            between = [*rows[(rows > contacts[s]) & (rows < openings[s])], contacts[s], openings[s]]
            corners = []
            for opening in between:
                lower, upper = boxes_at(linked, float(opening), contacts[s])
                corners += [
                    np.where(choice, low, high)
                    for low, high in zip(lower, upper, strict=True)
                    for choice in itertools.product([True, False], repeat=3)
                ]
            world = transform_points(T[s], np.array(corners))
            assert heights[s] == pytest.approx(((world - plane[:3, 3]) @ plane[:3, 2]).min(), abs=1e-9)
    # Pointing at the table the closed fingers reach 14 mm lower than open ones.
    straight = lowest_heights(
        gripper_boxes(linked), T[:1, :3, :3], T[:1, :3, 3], np.array([linked.aperture_max]), table_down,
        contacts=np.array([linked.aperture_min]),
    )  # fmt: skip
    tip = max(box.center[2] + box.size[2] / 2.0 for box in linked.boxes_of_finger(linked.aperture_min))
    assert straight[0] == pytest.approx(0.3 - tip - linked.pad_motion.advances.max(), abs=1e-6)


def cloud_of(mesh, count: int = 5000) -> PointCloud:
    points, normals = sample_surface_evenly(mesh, count, np.random.default_rng(0))
    return PointCloud(points - [0.0, 0.0, points[:, 2].min()], normals=normals)


@pytest.mark.parametrize(
    ("shape", "width"),
    [(box_mesh(np.array([0.072, 0.1, 0.1])), 0.072), (cylinder_mesh(0.028, 0.12), 0.056)],
    ids=["box", "cylinder"],
)
def test_planned_grasps_have_their_pads_on_the_object(linked: Gripper, shape, width: float) -> None:
    cloud, table = cloud_of(shape), SupportPlane(np.eye(4), (1.0, 1.0))
    record = CandidateRecord()
    plan = plan_grasps(cloud, linked, PlannerConfig(), table=table, record=record)
    assert len(plan.grasps) >= 5, plan.message
    for grasp in plan.grasps[:5]:
        local = (cloud.points - grasp.T_world_gripper[:3, 3]) @ grasp.T_world_gripper[:3, :3]
        local[:, 2] -= float(linked.advance(grasp.aperture))
        before = (np.abs(local[:, 0]) < linked.pad_width / 2.0) & (np.abs(local[:, 2]) < linked.pad_height / 2.0)
        assert before.sum() > 20, "what lies between the pads"
        # What the pads were fitted to is before them: 8 mm off for the box, if they were taken for sliding ones.
        touched = (grasp.contact_points - grasp.T_world_gripper[:3, 3]) @ grasp.T_world_gripper[:3, :3]
        heights = touched[:, 2] - float(linked.advance(grasp.aperture))
        assert np.abs(heights).max() < linked.pad_height / 2.0 + 2.5e-3
        assert np.ptp(local[before, 1]) == pytest.approx(grasp.aperture, abs=1.5e-3)
        assert grasp.aperture == pytest.approx(width, abs=2.5e-3)
        # Open or closed, nothing of the hand is inside of the object or below the table.
        for opening in (grasp.open_aperture, grasp.aperture + 4e-3):
            inside = (cloud.points - grasp.T_world_gripper[:3, 3]) @ grasp.T_world_gripper[:3, :3]
            for box in linked.collision_boxes(float(opening)):
                assert not (np.abs(inside - box.center) < box.size / 2.0 - 1.5e-3).all(axis=1).any()
                corners = box.center + 0.5 * box.size * np.array(list(itertools.product([-1, 1], repeat=3)))
                assert transform_points(grasp.T_world_gripper, corners)[:, 2].min() > 0.0
    assert record.candidates[0].grasp is plan.grasps[0]
    checks = record.candidates[0].checks()
    assert all(check.met for check in checks.values()), checks
    # Taken for a sliding hand's, the same pads would be elsewhere.
    best = plan.grasps[0]
    assert abs(float(linked.advance(best.aperture))) > 1.5e-3


def test_tilted_pads_press_less_of_a_flat_side_and_their_wedge_fully(pincers: Gripper) -> None:
    points, normals = sample_surface_evenly(box_mesh(np.array([0.08, 0.04, 0.08])), 9000, np.random.default_rng(0))
    observed = np.ones(len(points))

    def close(cloud: np.ndarray, facing: np.ndarray, tilt: float):
        return close_fingers(
            cloud, facing, observed, np.eye(3)[None], np.zeros((1, 3)), np.array([0.07]), pincers, 0.002, 0.002,
            tilts=np.array([tilt]),
        )  # fmt: skip

    flat = close(points, normals, 0.0)
    areas = [float(close(points, normals, tilt).overlap[0]) for tilt in (0.05, 0.1, 0.2, 0.34)]
    assert flat.overlap[0] > 0.9 * pincers.pad_width * pincers.pad_height
    assert areas == sorted(areas, reverse=True)
    # e^(−z tan 0.1 / 0.6 mm) on the way from the edge: 6 mm of 30.
    assert areas[1] / float(flat.overlap[0]) == pytest.approx(6e-4 / math.tan(0.1) / pincers.pad_height, rel=0.3)
    # The edges meet: the middles are further apart by the pad's height times the slope, less what patches of up to
    # 2 mm depth are in the mean.
    contact = float(close(points, normals, 0.2).apertures[0])
    assert 0.04 + pincers.pad_height * math.tan(0.2) - 2e-3 < contact < 0.04 + pincers.pad_height * math.tan(0.2)
    # A wedge of that angle lies flat on them; its sides are 0.1 rad off the closing direction.
    lean = matrix_from_rotation_vector([0.1, 0.0, 0.0]), matrix_from_rotation_vector([-0.1, 0.0, 0.0])
    side = points[:, 1] > 0.0
    wedge, turned = points.copy(), normals.copy()
    for mask, turn in ((side, lean[0]), (~side, lean[1])):
        wedge[mask], turned[mask] = points[mask] @ turn.T, normals[mask] @ turn.T
    on_wedge = close(wedge, turned, 0.1)
    assert on_wedge.overlap[0] > 0.85 * float(flat.overlap[0])
    assert on_wedge.angles[0].max() == pytest.approx(0.1, abs=0.02)


def test_an_object_at_the_parallel_opening_is_held_better_than_another(pincers: Gripper) -> None:
    table = SupportPlane(np.eye(4), (1.0, 1.0))
    found = {}
    for width in (0.05, 0.08):
        plan = plan_grasps(cloud_of(box_mesh(np.array([width, 0.12, 0.08]))), pincers, PlannerConfig(), table=table)
        found[width] = [grasp for grasp in plan.grasps if abs(grasp.aperture - width) < 0.012]
    assert found[0.05] and abs(found[0.05][0].metrics["tilt"]) < 0.02
    best = found[0.05][0]
    for grasp in found[0.08]:
        assert abs(grasp.metrics["tilt"]) > 0.1
        assert grasp.metrics["overlap_area"] < 0.6 * best.metrics["overlap_area"]
        assert grasp.hold <= best.hold


def test_without_motion_the_same_boxes_are_a_sliding_hand(linked: Gripper) -> None:
    """One row and many equal ones are the same hand."""
    boxes = tuple(box for box in linked.finger_boxes if box.center.ndim == 1)
    sliding = replace(linked, finger_boxes=boxes, pad_motion=None)
    still = replace(sliding, pad_motion=replace(linked.pad_motion, advances=np.zeros(len(linked.pad_motion.apertures))))
    cloud = cloud_of(box_mesh(np.array([0.045, 0.09, 0.1])))
    config = PlannerConfig(rounds=1)
    one, other = (plan_grasps(cloud, hand, config) for hand in (sliding, still))
    assert len(one.grasps) == len(other.grasps) > 0
    for a, b in zip(one.grasps, other.grasps, strict=True):
        np.testing.assert_allclose(a.T_world_gripper, b.T_world_gripper, atol=1e-9)
        assert a.score == pytest.approx(b.score, abs=1e-9)
