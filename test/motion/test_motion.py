"""Searched motions and their proofs, on arms drawn at random."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import dense, drawn_arm, drawn_rows, drawn_world

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.motion import certificate as certificates
from morphit_ros.motion.certificate import Verdict, certify_path, least_clearance, solid_distance
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmModel, covering_spheres
from morphit_ros.motion.planner import PathConfig, PathStatus, plan_path
from morphit_ros.motion.warm_up import _DESCRIPTION, warm_up
from morphit_ros.motion.world import World
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid


def test_spheres_are_where_the_kinematics_put_them() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        kinematics, model = drawn_arm(rng)
        arm = model.arrays
        row = drawn_rows(rng, model, 1)[0]
        poses = kinematics.forward_kinematics({"j2": 0.4} | dict(zip(model.joints, row, strict=True)))
        for p, link in enumerate(model.parts):
            spheres = covering_spheres(kinematics.description).links[link]
            expected = spheres.centers @ poses[link][:3, :3].T + poses[link][:3, 3]
            # A sphere at a centre is as far from it as its own radius says.
            for m, center in zip(range(arm.starts[p], arm.starts[p + 1]), expected, strict=True):
                alone = World([Solid("dot", GeometryKind.SPHERE, make_transform(translation=center), np.array([1e-3]))])
                if arm.rows[p] < 0:
                    continue
                gap, first, _ = least_clearance(arm, alone.arrays_for(model.parts), row)
                assert gap <= -arm.radii[m] - 1e-3 + 1e-9
                assert first >= 0


def test_distances_to_solids_are_those_of_points_on_them() -> None:
    rng = np.random.default_rng(2)
    world = drawn_world(rng, 8)
    assert [s.kind for s in world.solids[world.arrays_for(()).boxes :]] == [GeometryKind.CYLINDER] * 2
    for n, solid in enumerate(world.solids):
        for point in rng.uniform(-1.0, 1.0, (20, 3)):
            local = solid.T_world_solid[:3, :3].T @ (point - solid.T_world_solid[:3, 3])
            size = solid.dimensions
            match solid.kind:
                case GeometryKind.BOX:
                    expected = np.linalg.norm(np.maximum(np.abs(local) - 0.5 * size, 0.0))
                case GeometryKind.SPHERE:
                    expected = np.linalg.norm(local) - size[0]
                case GeometryKind.CAPSULE:
                    along = np.clip(local[2], -0.5 * size[1], 0.5 * size[1])
                    expected = np.linalg.norm(local - [0.0, 0.0, along]) - size[0]
                case _:
                    aside, up = np.hypot(*local[:2]) - size[0], abs(local[2]) - 0.5 * size[1]
                    expected = np.hypot(max(aside, 0.0), max(up, 0.0))
            if expected > 0.0:
                assert solid_distance(world.arrays_for(()), n, point, np.inf) == pytest.approx(expected, abs=1e-12)


def test_lanes_agree_with_one_configuration_at_a_time() -> None:
    rng = np.random.default_rng(3)
    seen = {True: 0, False: 0}
    for _ in range(10):
        _, model = drawn_arm(rng)
        world = drawn_world(rng, 20)
        room = make_room(model.arrays, world.arrays_for(model.parts))
        for row in drawn_rows(rng, model, 100):
            gap = least_clearance(model.arrays, world.arrays_for(model.parts), row)[0]
            if abs(gap) > 1e-8:
                free = motion_free(model.arrays, world.arrays_for(model.parts), row, row, 0.1, room)
                assert free == (gap > 0.0)
                seen[free] += 1
    assert min(seen.values()) > 100


def proofs_hold(seed: int) -> dict[Verdict, int]:
    """Proofs of drawn segments, each held against dense samples: how many of each verdict."""
    rng = np.random.default_rng(seed)
    found = dict.fromkeys(Verdict, 0)
    for _ in range(15):
        _, model = drawn_arm(rng)
        world = drawn_world(rng, 10)
        for _ in range(20):
            path = drawn_rows(rng, model, 1) + rng.normal(0.0, 0.5, (2, 3))
            certificate = certify_path(model.arrays, world.arrays_for(model.parts), path)
            found[certificate.verdict] += 1
            gaps = [least_clearance(model.arrays, world.arrays_for(model.parts), row)[0] for row in dense(path, 400)]
            if certificate.verdict is Verdict.PROVEN_FREE:
                assert min(gaps) > 0.0
            elif certificate.verdict is Verdict.TOUCHING:
                place = path[0] + certificate.share * (path[1] - path[0])
                assert least_clearance(model.arrays, world.arrays_for(model.parts), place)[0] <= 0.0
    return found


def test_no_proof_is_refuted_by_samples() -> None:
    found = proofs_hold(4)
    assert found[Verdict.PROVEN_FREE] > 30
    assert found[Verdict.TOUCHING] > 30


def test_ways_are_bounded_at_every_position_within() -> None:
    rng = np.random.default_rng(5)
    closest = 0.0
    for _ in range(40):
        _, model = drawn_arm(rng)
        arm = model.arrays
        middle, half = drawn_rows(rng, model, 1)[0], rng.uniform(0.0, 0.6, 3)
        parts = len(arm.rows)
        place = _placer(model)
        joints, spheres = place(middle)
        corners = [half * rng.choice([-1.0, 1.0], 3) for _ in range(20)] + list(rng.uniform(-half, half, (20, 3)))
        moved = [place(middle + step) for step in corners]
        for p in range(parts):
            for m in range(arm.starts[p], arm.starts[p + 1]):
                bound = certificates.way_bound(arm, p, -1, joints, spheres[m], arm.radii[m], half)
                way = max(np.linalg.norm(other[m] - spheres[m]) for _, other in moved)
                assert way <= bound + 1e-12
                closest = max(closest, way / bound if bound > 0.0 else 0.0)
        for p, q in arm.pairs:
            for m in range(arm.starts[p], arm.starts[p + 1]):
                for n in range(arm.starts[q], arm.starts[q + 1]):
                    bound = certificates.way_bound(arm, p, q, joints, spheres[m], arm.radii[m], half)
                    bound += certificates.way_bound(arm, q, p, joints, spheres[n], arm.radii[n], half)
                    before = np.linalg.norm(spheres[m] - spheres[n])
                    after = [np.linalg.norm(other[m] - other[n]) for _, other in moved]
                    assert max(abs(each - before) for each in after) <= bound + 1e-12
    # A bound far above what is reached would prove nothing.
    assert closest > 0.5


def _placer(model: ArmModel):  # type: ignore[no-untyped-def]
    arm = model.arrays

    def place(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        joints = np.empty((len(arm.motions.parents), 4, 4))
        balls, spheres = np.empty((len(arm.rows), 3)), np.empty((len(arm.radii), 3))
        certificates._place_all(arm, row, joints, balls, spheres)
        return joints, spheres

    return place


def test_a_proof_without_the_work_it_needs_says_so() -> None:
    plan = warm_up()
    assert plan.status is PathStatus.FOUND
    assert plan.certificate is not None
    assert plan.certificate.verdict is Verdict.PROVEN_FREE
    assert plan.certificate.looked_at > 1
    description = load_robot_description(_DESCRIPTION)
    model = ArmModel.of_robot(description, covering_spheres(description), ("turn", "fold"))
    box = Solid("box", GeometryKind.BOX, make_transform(translation=(0.55, 0.0, 0.0)), np.array([0.1, 0.05, 0.1]))
    short = certify_path(model.arrays, World([box]).arrays_for(model.parts), plan.path, budget=1)
    assert short.verdict is Verdict.FREE_AT_SAMPLES
    assert short.bodies is not None


def test_plans_begin_at_the_start_and_end_at_a_goal_and_the_same_seed_gives_the_same() -> None:
    rng = np.random.default_rng(6)
    solved = 0
    # By its nodes: what is cut off by the clock is another path each time.
    bounded = PathConfig(timeout=60.0, nodes=3000, seed=3)
    for _ in range(10):
        _, model = drawn_arm(rng)
        world = drawn_world(rng)
        rows = [
            row
            for row in drawn_rows(rng, model, 100)
            if least_clearance(model.arrays, world.arrays_for(model.parts), row)[0] > 0
        ]
        if len(rows) < 3:
            continue
        start, goals = rows[0], rows[1:3]
        plan = plan_path(model, world, start, goals, bounded)
        if plan.status is not PathStatus.FOUND:
            continue
        solved += 1
        assert np.array_equal(plan.path[0], start)
        assert any(np.array_equal(plan.path[-1], goal) for goal in goals)
        gaps = [least_clearance(model.arrays, world.arrays_for(model.parts), row)[0] for row in dense(plan.path, 50)]
        assert min(gaps) > 0.0
        again = plan_path(model, world, start, goals, bounded)
        assert np.array_equal(again.path, plan.path)
    assert solved >= 3


def test_bad_requests_are_answered() -> None:
    rng = np.random.default_rng(7)
    _, model = drawn_arm(rng)
    nothing = World().arrays_for(model.parts)
    free = next(row for row in drawn_rows(rng, model, 1000) if least_clearance(model.arrays, nothing, row)[0] > 0.0)
    around = World([Solid("room", GeometryKind.BOX, np.eye(4), np.full(3, 5.0))])
    plan = plan_path(model, around, free, [free])
    assert plan.status is PathStatus.START_TOUCHES
    assert "room" in plan.message
    with pytest.raises(InvalidInputError, match="j1"):
        plan_path(model, World(), free, [np.array([0.0, 9.0, 0.0])])
    with pytest.raises(InvalidInputError, match="finite"):
        plan_path(model, World(), free * np.nan, [free])
    with pytest.raises(InvalidInputError, match="goals"):
        plan_path(model, World(), free, [])
    with pytest.raises(InvalidInputError, match="j3"):
        plan_path(model, World(), {"j0": 0.0, "j1": 0.0}, [free])
    for size in ([0.0], [np.nan], [0.1, 0.1]):
        with pytest.raises(InvalidInputError, match="dimensions of 'ball'"):
            Solid("ball", GeometryKind.SPHERE, np.eye(4), np.array(size))
    with pytest.raises(InvalidInputError, match="mesh of 'm'"):
        Solid("m", GeometryKind.MESH, np.eye(4), np.zeros(1))


def test_what_may_touch_a_solid_is_not_held_against_it() -> None:
    """In lanes, in proofs and in distances the next pair decides."""
    rng = np.random.default_rng(8)
    differing = 0
    for _ in range(10):
        _, model = drawn_arm(rng)
        world = drawn_world(rng, 6)
        plain = world.arrays_for(model.parts)
        room = make_room(model.arrays, plain)
        for row in drawn_rows(rng, model, 60):
            gap, first, second = least_clearance(model.arrays, plain, row)
            if second >= 0:
                continue
            pair = frozenset((model.parts[first], world.solids[-1 - second].name))
            allowing = World(world.solids, [pair]).arrays_for(model.parts)
            loose, *bodies = least_clearance(model.arrays, allowing, row)
            assert loose > gap
            assert bodies != [first, second]
            assert motion_free(model.arrays, allowing, row, row, 0.1, room) == (loose > 0.0)
            verdict = certify_path(model.arrays, allowing, np.array([row, row])).verdict
            assert (verdict is Verdict.PROVEN_FREE) == (loose > 0.0)
            differing += gap <= 0.0 < loose
    assert differing > 5


def test_what_is_beside_a_path_is_in_its_proof() -> None:
    """A proof with so much beside the chords holds at all configurations within that of them."""
    rng = np.random.default_rng(9)
    found = dict.fromkeys(Verdict, 0)
    for _ in range(10):
        _, model = drawn_arm(rng)
        world = drawn_world(rng, 8).arrays_for(model.parts)
        for _ in range(20):
            path = drawn_rows(rng, model, 1) + rng.normal(0.0, 0.15, (2, 3))
            beside = np.full((1, 3), 0.03)
            verdict = certify_path(model.arrays, world, path, beside=beside).verdict
            found[verdict] += 1
            alone = certify_path(model.arrays, world, path).verdict
            if verdict is Verdict.PROVEN_FREE:
                assert alone is Verdict.PROVEN_FREE
                for row in dense(path, 20):
                    for step in rng.choice([-0.03, 0.03], (4, 3)):
                        assert least_clearance(model.arrays, world, row + step)[0] > 0.0
            elif verdict is Verdict.FREE_AT_SAMPLES:
                # Nothing touches on the chord, but it is nearer than what may be beside it.
                found[verdict] += alone is Verdict.PROVEN_FREE
    assert found[Verdict.PROVEN_FREE] > 20
    assert found[Verdict.FREE_AT_SAMPLES] > 4
