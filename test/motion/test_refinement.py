"""Covers as fine as a task asks for."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from morphit_bench.spheres.planning_experiment import MeshRobot
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.stl import stl_bytes
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.motion.certificate import Verdict
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmModel, closed_surfaces
from morphit_ros.motion.planner import PathConfig, PathStatus, find_contact, plan_path
from morphit_ros.motion.refinement import RefinableArm, plan_refined
from morphit_ros.motion.world import World
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

# A flat plate on a slide: few spheres bulge far above it, many less.
PLATE = """<robot name="plate"><link name="rail"/>
<link name="plate"><collision><geometry><box size="0.3 0.2 0.02"/></geometry></collision></link>
<joint name="slide" type="prismatic"><parent link="rail"/><child link="plate"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""
# Finer covers are fitted within the time of a plan: for those that are to be found, however busy the machine is [s].
PATIENT = PathConfig(timeout=60.0)


def ceiling(height: float) -> World:
    """A slab whose lower face is so high above the plate's middle, from x = 0.2 on."""
    pose = make_transform(translation=(0.7, 0.0, height + 0.05))
    return World([Solid("ceiling", GeometryKind.BOX, pose, np.array([1.0, 1.0, 0.1]))])


def covers() -> RefinableArm:
    return RefinableArm(load_robot_description(PLATE), ("slide",), counts=(1, 12))


def height(arm: RefinableArm, level: int) -> float:
    """How high the spheres of a level reach above the plate's middle [m]."""
    arrays = arm.model({"plate": level}).arrays
    # In the frame of the planned joint, whose z axis is that of the slide.
    centers = arrays.centers @ arrays.motions.before[0][:3, :3].T
    return float((centers[:, 2] + arrays.radii).max())


def test_the_coarsest_cover_that_suffices_is_taken() -> None:
    arm = covers()
    far, levels = plan_refined(arm, ceiling(height(arm, 0) + 0.01), [-0.9], [[0.9]], PATIENT)
    assert far.status is PathStatus.FOUND
    assert levels == {"plate": 0}


def test_a_link_that_touches_at_the_goal_becomes_finer() -> None:
    arm = covers()
    high, low = height(arm, 0), height(arm, 1)
    assert low < high - 0.01
    world = ceiling(0.5 * (high + low))
    plan = plan_path(arm.model({}), world, [-0.9], [[0.9]])
    assert plan.status is PathStatus.GOAL_TOUCHES
    assert plan.bodies == ("plate", "ceiling")
    refined, levels = plan_refined(arm, world, [-0.9], [[0.9]], PATIENT)
    assert refined.status is PathStatus.FOUND
    assert levels == {"plate": 1}
    assert refined.certificate is not None
    assert refined.certificate.verdict is Verdict.PROVEN_FREE


def test_what_no_cover_fits_into_says_what_touches() -> None:
    plan, levels = plan_refined(covers(), ceiling(0.005), [-0.9], [[0.9]], PATIENT)
    assert plan.status is PathStatus.GOAL_TOUCHES
    assert "plate and ceiling" in plan.message
    assert levels == {"plate": 1}


def test_limits_that_are_given_hold_for_all_levels() -> None:
    arm = RefinableArm(load_robot_description(PLATE), ("slide",), counts=(1, 12), limits=np.array([[-0.5], [0.5]]))
    for level in (0, 1):
        model = arm.model({"plate": level})
        assert (model.lower[0], model.upper[0]) == (-0.5, 0.5)
    with pytest.raises(InvalidInputError, match="slide"):
        plan_refined(arm, World(), [0.0], [[0.9]])
    with pytest.raises(InvalidInputError, match="nothing"):
        RefinableArm(load_robot_description(PLATE), ("nothing",))


def test_pairs_that_no_proof_speaks_of_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a level leaves out is told of as long as no other level in use has to check it."""
    pair, other = ("rail", "plate"), ("a", "b")

    class Matrix:
        ignored = (other,)
        left_out = (pair,)
        proven = ()

    monkeypatch.setattr("morphit_ros.motion.refinement.self_collision_matrix", lambda *_, **__: Matrix)
    assert covers().model({"plate": 1}).left_out == (frozenset(pair),)


def test_the_timeout_is_that_of_all_searches_together() -> None:
    arm = RefinableArm(load_robot_description(PLATE), ("slide",), counts=(1, 2, 4, 8))
    for level in range(4):
        arm.model({"plate": level})
    # A wall that no cover gets past, free at both ends.
    wall = Solid("wall", GeometryKind.BOX, make_transform(translation=(0.0, 0.0, 0.0)), np.array([0.02, 1.0, 1.0]))
    plan_refined(arm, World([wall]), [-0.8], [[0.8]], PathConfig(timeout=0.05))
    began, used = time.monotonic(), time.thread_time()
    plan, _ = plan_refined(arm, World([wall]), [-0.8], [[0.8]], PathConfig(timeout=1.0))
    assert plan.status is PathStatus.NOT_FOUND
    assert "within 1 s" in plan.message
    assert time.monotonic() - began > 0.9
    # What the machine does meanwhile is none of its time.
    assert time.thread_time() - used < 1.6


def test_what_coarse_covers_prove_of_the_links_holds_for_finer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of links that are always near, finer covers touch less often than always, and are then checked for nothing."""
    pair = ("rail", "plate")

    class Coarse:
        ignored, proven, left_out = (pair,), (pair,), ()

    class Fine:
        ignored, proven, left_out = (), (), ()

    matrices = iter((Coarse, Fine))
    monkeypatch.setattr("morphit_ros.motion.refinement.self_collision_matrix", lambda *_, **__: next(matrices))
    given = []
    model = "morphit_ros.motion.refinement.ArmModel"
    monkeypatch.setattr(model, lambda *args: given.append(args[3]) or ArmModel(*args))
    covers().model({"plate": 1})
    assert frozenset(pair) in given[-1]


# Two bars on a turntable, the upper one on a slide along them and a hinge across.
BARS = """<robot name="bars"><link name="root"/>
<link name="lower"><collision><geometry><box size="0.3 0.04 0.04"/></geometry></collision></link>
<link name="slide"><collision><origin xyz="0 2 0"/><geometry><sphere radius="0.01"/></geometry></collision></link>
<link name="upper"><collision><geometry><box size="{size}"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="root"/><child link="lower"/><axis xyz="0 0 1"/>
<origin xyz="0.1 0.2 0.3"/><limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
<joint name="along" type="prismatic"><parent link="lower"/><child link="slide"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<joint name="up" type="revolute"><parent link="slide"/><child link="upper"/><axis xyz="0 1 0"/>
<origin xyz="0 0 {height}"/><limit lower="-3" upper="3" velocity="1" effort="1"/></joint></robot>"""
JOINTS = ("turn", "along", "up")


def bars(size: str = "0.3 0.04 0.04", height: float = 0.056) -> RefinableArm:
    arm = RefinableArm(load_robot_description(BARS.format(size=size, height=height)), JOINTS, counts=(1, 48))
    # Fitted now: a plan has a time limit.
    arm.model(dict.fromkeys(arm.links, 1))
    return arm


def test_links_nearer_than_their_finest_covers_are_held_against_their_surfaces() -> None:
    arm = bars()
    finest = arm.model(dict.fromkeys(arm.links, arm.finest))
    # Sixteen millimetres apart, and the spheres overlap.
    contact = find_contact(finest, World(), np.array([0.5, -0.1, 0.0]))
    assert contact is not None
    assert set(contact.bodies) == {"lower", "upper"}
    plan, levels = plan_refined(arm, World(), [0.5, -0.1, 0.0], [[-0.5, 0.1, 0.0]], PATIENT)
    assert plan.status is PathStatus.FOUND
    assert plan.proven
    assert (levels["lower"], levels["upper"], levels["slide"]) == (2, 2, 0)
    # With an edge in the lower bar.
    plan, levels = plan_refined(arm, World(), [0.5, -0.1, 0.15], [[-0.5, 0.1, 0.0]], PATIENT)
    assert plan.status is PathStatus.START_TOUCHES
    assert set(plan.bodies or ()) == {"lower", "upper"}


def test_a_link_wholly_inside_of_another_touches_it() -> None:
    arm = bars("0.004 0.004 0.004", 0.0)
    plan, levels = plan_refined(arm, World(), [1.0, 0.0, 0.0], [[-1.0, 0.5, 0.0]], PATIENT)
    assert plan.status is PathStatus.START_TOUCHES
    assert levels["lower"] == arm.exact
    # Sixteen millimetres above the bar's face.
    apart = bars("0.004 0.004 0.004", 0.038)
    assert plan_refined(apart, World(), [1.0, 0.0, 0.0], [[-1.0, 0.5, 0.0]], PATIENT)[0].proven


def test_surfaces_tell_apart_only_what_meshes_do() -> None:
    """Against Coal, which shares no code with it; both kernels say the same."""
    arm, rng = bars(height=0.08), np.random.default_rng(3)
    exact, finest = (arm.model(dict.fromkeys(arm.links, level)) for level in (arm.exact, arm.finest))
    truth = MeshRobot(arm.kinematics, arm.joints, {}, [frozenset(("lower", "slide")), frozenset(("slide", "upper"))])
    rows = rng.uniform([-3.0, -0.4, -1.0], [3.0, 0.4, 1.0], (400, 3))
    touching = truth.touching_itself(rows)
    called = np.array([find_contact(exact, World(), row) is not None for row in rows])
    called_by_covers = np.array([find_contact(finest, World(), row) is not None for row in rows])
    assert called[touching].all()
    assert (called & ~touching).sum() < 0.5 * (called_by_covers & ~touching).sum()
    solids = World().arrays_for(exact.parts)
    room = make_room(exact.arrays, solids)
    free = np.array([motion_free(exact.arrays, solids, row, row, 0.1, room) for row in rows])
    np.testing.assert_array_equal(free, ~called)


def test_a_mesh_with_one_flat_opening_is_closed_and_others_have_no_surface(tmp_path: Path) -> None:
    box = box_mesh([0.3, 0.04, 0.04])
    heights = box.face_normals @ np.array([0.0, 0.0, 1.0])
    faces = {
        "closed": box.faces,
        "one": box.faces[heights < 0.9],
        "two": box.faces[np.abs(heights) < 0.9],
        "bent": box.faces[(heights < 0.9) & (box.face_normals[:, 0] < 0.9)],
    }
    links = ""
    for name, some in faces.items():
        (tmp_path / f"{name}.stl").write_bytes(stl_bytes(box.vertices[some]))
        mesh = f'<mesh filename="{(tmp_path / name).as_uri()}.stl"/>'
        links += f'<link name="{name}"><collision><geometry>{mesh}</geometry></collision></link>'
        links += f'<joint name="to {name}" type="fixed"><parent link="root"/><child link="{name}"/></joint>'
    description = load_robot_description(f'<robot name="boxes"><link name="root"/>{links}</robot>')
    surfaces = closed_surfaces(description)
    assert set(surfaces) == {"closed", "one"}
    for meshes in surfaces.values():
        assert abs(meshes[0].volume) == pytest.approx(0.3 * 0.04 * 0.04, rel=1e-5)


def test_a_robot_without_collision_geometry_is_refused_by_name() -> None:
    bare = PLATE.replace("collision>", "visual>")
    with pytest.raises(InvalidInputError, match="robot plate: collision geometry: got none on any link"):
        RefinableArm(load_robot_description(bare), ("slide",))
