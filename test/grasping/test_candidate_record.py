"""The record of candidates: every one is where its outcome says, and planning is the same with a record."""

from __future__ import annotations

import json

import numpy as np
import pytest

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.grasping import GraspPlan, Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.candidate_record import OFFERED, Candidate, CandidateRecord

FRANKA, TABLE = Gripper.load("franka_hand"), SupportPlane(np.eye(4))
# Twice as deep as the hand is wide, so that fingers beside the box meet it on either side.
WALL = np.random.default_rng(0).uniform([0.06, -0.1, 0.0], [0.08, 0.1, 0.15], (3000, 3))

OBJECT = "points of the object inside palm or fingers"


def box(size=(0.1, 0.04, 0.06)) -> PointCloud:
    points, normals = sample_surface_evenly(box_mesh(size), 2500, np.random.default_rng(0))
    return PointCloud(points + np.array([0.0, 0.0, size[2] / 2]), normals)


def planned(record: CandidateRecord | None, **options) -> GraspPlan:
    return plan_grasps(box(), FRANKA, PlannerConfig(rounds=1), table=TABLE, obstacles=WALL, record=record, **options)


@pytest.fixture(scope="module")
def record() -> CandidateRecord:
    record = CandidateRecord(most=60)
    planned(record)
    return record


def of(record: CandidateRecord, outcome: str) -> list[Candidate]:
    found = [candidate for candidate in record.candidates if candidate.outcome == outcome]
    assert found, f"none of {record.outcomes}"
    return found


def inside(candidate: Candidate, points: np.ndarray, aperture: float) -> int:
    """Points inside the hand at its pose or up to 10 cm before it, by nothing of the planner."""
    hit = np.zeros(len(points), dtype=bool)
    for back in np.linspace(0.0, 0.1, 41):
        pose = candidate.T_world_gripper.copy()
        pose[:3, 3] -= back * pose[:3, 2]
        local = transform_points(np.linalg.inv(pose), points)
        for part in FRANKA.collision_boxes(aperture):
            hit |= (np.abs(local - part.center) <= 0.5 * part.size).all(axis=1)
    return int(hit.sum())


def test_a_record_does_not_change_the_plan(record):
    plain, again = planned(None), planned(other := CandidateRecord(most=60))
    assert plain.rejected == again.rejected
    for a, b in zip(plain.grasps, again.grasps, strict=True):
        np.testing.assert_array_equal(a.T_world_gripper, b.T_world_gripper)
    assert record.outcomes == other.outcomes
    assert max(other.outcomes.values()) <= 60
    offered = [candidate.grasp.T_world_gripper for candidate in of(other, OFFERED)]
    np.testing.assert_array_equal(offered, [grasp.T_world_gripper for grasp in again.grasps])
    assert [candidate.outcome for candidate in other.candidates[: len(offered)]] == [OFFERED] * len(offered)


def test_collisions_are_with_what_they_are_said_to_be_with(record):
    wide = FRANKA.aperture_max
    for candidate in of(record, "collision with an obstacle"):
        narrow = min(wide, candidate.aperture + 0.016)
        assert min(inside(candidate, WALL, wide), inside(candidate, WALL, narrow)) > 3
        name, check = next(iter(candidate.checks().items()))
        assert name == "points of an obstacle inside palm or fingers"
        assert not check.met
        assert candidate.checks()[OBJECT].met
    for candidate in of(record, "collision with the object"):
        assert not candidate.checks()[OBJECT].met


def test_what_is_removed_by_the_table_is_below_it_and_what_is_offered_meets_all_checks(record):
    for candidate in of(record, "table"):
        height = candidate.checks()["height above the table [m]"]
        assert not height.met
        lowest = min(
            (candidate.T_world_gripper[2, 3] - back * candidate.T_world_gripper[2, 2])
            + part.center @ candidate.T_world_gripper[2, :3]
            - 0.5 * part.size @ np.abs(candidate.T_world_gripper[2, :3])
            for back in (0.0, 0.1)
            for part in FRANKA.collision_boxes(min(FRANKA.aperture_max, candidate.aperture + 0.016))
        )
        assert height.value == pytest.approx(lowest, abs=0.03)
        assert height.value >= lowest - 1e-9
    for candidate in of(record, OFFERED):
        assert all(check.met for check in candidate.checks().values())
    for candidate in of(record, "approach direction"):
        assert not candidate.checks()["angle to the preferred approach [rad]"].met


def test_grasps_that_pass_but_are_not_offered_say_why(record):
    assert all(0.0 < candidate.score < 1.0 for candidate in of(record, "near a better grasp"))
    best = of(record, OFFERED)[0]
    assert best.score >= max(candidate.score or 0.0 for candidate in record.candidates)
    far = CandidateRecord()
    plan = planned(far, reachable=lambda grasp: grasp.T_world_gripper[0, 3] < 0.0)
    refused = of(far, "unreachable")
    assert len(refused) == plan.rejected["unreachable"]
    assert all(candidate.T_world_gripper[0, 3] >= 0.0 for candidate in refused)
    near = CandidateRecord()
    plan = planned(near, clearance=lambda pose, aperture: -1.0)
    assert not plan.success
    assert len(of(near, "clearance")) == plan.rejected["clearance"]


def test_an_empty_plan_has_a_record_of_its_own_rounds_only():
    record = CandidateRecord()
    plan = plan_grasps(box((0.1, 0.2, 0.06)), FRANKA, PlannerConfig(rounds=1), table=TABLE, record=record)
    assert not plan.success
    assert OFFERED not in record.outcomes
    counts = sum(count for stage, count in plan.rejected.items() if stage not in ("no opposite surface", "too wide"))
    assert len(record.candidates) <= counts


def test_a_candidate_as_plain_data(record):
    content = json.loads(json.dumps(of(record, OFFERED)[0].content(), allow_nan=False))
    np.testing.assert_array_equal(content["T_world_gripper"], of(record, OFFERED)[0].T_world_gripper)
    assert content["checks"]["height above the table [m]"]["at_least"] == pytest.approx(0.003)
    assert content["checks"]["angle of the contact normals [rad]"]["at_most"] == pytest.approx(np.arctan(0.5))
