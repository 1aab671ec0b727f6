"""From a request to a proven trajectory: goals, shorter ways, what is carried, and what ends a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import drawn_arm, drawn_rows, drawn_world

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.motion import planner as planners
from morphit_ros.motion.arm_planner import ArmPlanner, ArmPlannerConfig, MotionAnswer, MotionRequest, PoseGoal
from morphit_ros.motion.certificate import Verdict, least_clearance
from morphit_ros.motion.model import Body
from morphit_ros.motion.nearby import nearest_free, unavoidable_pairs
from morphit_ros.motion.planner import PathConfig, PathStatus, find_contact, plan_path
from morphit_ros.motion.refinement import Carried
from morphit_ros.motion.world import World
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid

JOINTS = ("turn", "fold", "bend")


def joint(name: str, parent: str, child: str, reach: float, axis: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{reach} 0 0"/><axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="2" effort="1"/></joint>'
    )


def link(name: str, reach: float) -> str:
    dots = "".join(
        f'<collision><origin xyz="{x} 0 0"/><geometry><sphere radius="0.03"/></geometry></collision>'
        for x in np.linspace(0.06, reach, 4)
    )
    return f'<link name="{name}">{dots}</link>'


ARM = (
    '<robot name="arm"><link name="base"/>' + link("upper", 0.28) + link("lower", 0.28) + link("tip", 0.1)
    + joint("turn", "base", "upper", 0.0, "0 0 1") + joint("fold", "upper", "lower", 0.34, "0 0 1")
    + joint("bend", "lower", "tip", 0.34, "0 0 1") + "</robot>"
)  # fmt: skip


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> ArmPlanner:
    folder = tmp_path_factory.mktemp("arm")
    (folder / "arm.urdf").write_text(ARM, encoding="utf-8")
    robot = folder / "arm.yaml"
    robot.write_text(
        "name: arm\ndescription: arm.urdf\nsemantic_description: ''\nbase_link: base\n"
        "arm_joints: [turn, fold, bend]\nhome: [0, 0, 0]\nacceleration_limits: [5, 5, 5]\ngripper: franka_hand\n"
        "tip_link: tip\ntip_to_gripper: {xyz: [0.1, 0, 0], rpy: [0, 0, 0]}\nfinger_joints: []\ntouch_links: [tip]\n"
        "moveit: {}\n",
        encoding="utf-8",
    )
    return make_planner(robot)


def make_planner(robot: Path) -> ArmPlanner:
    configuration = RobotConfiguration.load(robot)
    # However busy the machine is: a plan that is found ends earlier.
    patient = ArmPlannerConfig(planning_time=60.0)
    return ArmPlanner(load_robot_description(configuration.description), configuration, patient, counts=(6,))


def post(x: float, y: float, radius: float = 0.05, name: str = "post") -> Solid:
    return Solid(name, GeometryKind.CYLINDER, make_transform(translation=(x, y, 0.0)), np.array([radius, 1.0]))


def positions(turn: float, fold: float = 0.0, bend: float = 0.0) -> dict[str, float]:
    return {"turn": turn, "fold": fold, "bend": bend}


def test_the_nearest_of_several_goals_is_reached_and_numbered(planner: ArmPlanner) -> None:
    pose = planner.kinematics.link_pose(positions(0.4, 0.3, 0.1), "tip")
    answer = planner.plan(
        MotionRequest(positions(0.0), [positions(2.0), positions(-2.0)], [PoseGoal("tip", pose)])
    )  # fmt: skip
    assert (answer.status, answer.goal, answer.verdict) == (PathStatus.FOUND, 2, Verdict.PROVEN_FREE)
    assert answer.trajectory is not None
    end = dict(zip(JOINTS, answer.trajectory.positions[-1], strict=True))
    np.testing.assert_allclose(planner.kinematics.link_pose(end, "tip"), pose, atol=1e-5)
    # Behind a post another one is reached first.
    blocked = World([post(0.55, 0.15)])
    answer = planner.plan(MotionRequest(positions(0.0), [positions(-0.8)], [PoseGoal("tip", pose)], blocked))
    assert (answer.status, answer.goal) == (PathStatus.FOUND, 0)


def test_goals_out_of_reach_and_touching_ones_are_told(planner: ArmPlanner) -> None:
    far = PoseGoal("tip", make_transform(translation=(5.0, 0.0, 0.0)))
    answer = planner.plan(MotionRequest(positions(0.0), pose_goals=[far]))
    assert answer.status is PathStatus.UNREACHABLE
    assert "mm" in answer.message
    both = planner.plan(MotionRequest(positions(0.0), [positions(0.5)], [far]))
    assert (both.status, both.goal) == (PathStatus.FOUND, 0)
    assert "pose goal 0: out of reach" in both.message
    answer = planner.plan(MotionRequest(positions(0.0), [positions(0.5)], world=World([post(0.6, 0.35)])))
    assert answer.status is PathStatus.GOAL_TOUCHES
    assert answer.touching is not None
    assert "post" in answer.touching
    assert answer.free_configuration is not None
    free = dict(zip(JOINTS, answer.free_configuration, strict=True))
    again = planner.plan(MotionRequest(positions(0.0), [free], world=World([post(0.6, 0.35)])))
    assert again.status is PathStatus.FOUND


def test_what_is_carried_counts_and_may_touch_what_carries_it(planner: ArmPlanner) -> None:
    rod = Body("tip", np.stack([np.linspace(0.0, 0.3, 20), np.zeros(20), np.zeros(20)], axis=1), np.full(20, 0.02))
    world = World([post(0.95, 0.0)])
    request = MotionRequest(positions(-0.5), [positions(0.5)], world=world)
    alone = planner.plan(request)
    assert alone.plan is not None
    assert alone.plan.length == pytest.approx(1.0, abs=1e-9)
    carrying = planner.plan(
        MotionRequest(positions(-0.5), [positions(0.5)], world=world, carried=[Carried("rod", rod)])
    )  # fmt: skip
    assert carrying.status is PathStatus.FOUND
    assert carrying.plan is not None
    assert carrying.plan.length > 1.02
    assert carrying.verdict is Verdict.PROVEN_FREE
    for name, body in (("tip", rod), ("rod", Body("nowhere", rod.centers, rod.radii))):
        with pytest.raises(InvalidInputError, match=name if name == "tip" else "nowhere"):
            planner.plan(MotionRequest(positions(0.0), [positions(0.5)], carried=[Carried(name, body)]))


def test_a_proof_holds_in_another_world_or_does_not(planner: ArmPlanner) -> None:
    answer = planner.plan(MotionRequest(positions(-0.5), [positions(0.5)]))
    assert planner.proves(answer, World([post(1.2, 0.0)]))
    assert not planner.proves(answer, World([post(0.6, 0.0)]))
    # Nothing of a closed mesh around all of it is touched.
    ball = Solid("ball", GeometryKind.MESH, np.eye(4), np.zeros(1), sphere_mesh(3.0, 20))
    assert not planner.proves(answer, World([ball]))


def test_a_start_beside_its_limit_is_taken_at_it_and_one_beyond_is_refused(planner: ArmPlanner) -> None:
    answer = planner.plan(MotionRequest(positions(3.01), [positions(2.5)]))
    assert answer.trajectory is not None
    assert answer.trajectory.positions[0, 0] == pytest.approx(3.0)
    with pytest.raises(InvalidInputError, match="turn"):
        planner.plan(MotionRequest(positions(3.1), [positions(2.5)]))


def test_requests_that_cannot_be_answered(planner: ArmPlanner) -> None:
    for request, words in (
        (MotionRequest(positions(0.0)), "goals"),
        (MotionRequest({"turn": 0.0}, [positions(0.5)]), "fold, bend"),
        (MotionRequest(positions(np.nan), [positions(0.5)]), "finite"),
        (MotionRequest(positions(0.0), [positions(4.0)]), "turn"),
        (MotionRequest(positions(0.0), [positions(0.5)], velocity_scaling=1.5), "velocity_scaling"),
        (MotionRequest(positions(0.0), pose_goals=[PoseGoal("elbow", np.eye(4))]), "elbow"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            planner.plan(request)


def test_finer_covers_come_when_they_are_prepared(tmp_path: Path, planner: ArmPlanner) -> None:
    coarse = ArmPlanner(load_robot_description(ARM), planner.robot, ArmPlannerConfig(), counts=(4, 8))
    assert coarse.levels == (1, 2)
    coarse.prepare()
    assert coarse.levels == (2, 2)


def test_more_time_gives_shorter_paths_that_are_proven_too() -> None:
    rng = np.random.default_rng(21)
    ratios, tried = [], 0
    while len(ratios) < 8 and tried < 200:
        tried += 1
        _, model = drawn_arm(rng)
        world = drawn_world(rng, 14)
        start, goal = drawn_rows(rng, model, 2)
        first = plan_path(model, world, start, [goal], PathConfig(timeout=60.0, nodes=3000, shortcuts=0))
        # The straight way is as short as can be.
        if first.status is not PathStatus.FOUND or first.length < 1.05 * np.linalg.norm(goal - start):
            continue
        more = PathConfig(timeout=60.0, nodes=3000, shortcuts=0, improvement=0.3)
        better = plan_path(model, world, start, [goal], more)
        assert better.status is PathStatus.FOUND
        assert better.length <= first.length + 1e-9
        assert better.length >= np.linalg.norm(goal - start) - 1e-9
        assert better.proven >= first.proven
        ratios.append(better.length / first.length)
    assert len(ratios) == 8
    assert np.median(ratios) < 0.9


def test_whoever_watches_can_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planners, "_SAMPLES", 1)
    rng = np.random.default_rng(22)
    ended = 0
    for _ in range(60):
        _, model = drawn_arm(rng)
        start, goal = drawn_rows(rng, model, 2)
        asked: list[float] = []

        def watch(length: float, asked: list[float] = asked) -> bool:
            asked.append(length)
            return len(asked) < 3

        plan = plan_path(model, drawn_world(rng, 14), start, [goal], PathConfig(timeout=30.0), watch)
        assert len(asked) <= 3
        if plan.status is PathStatus.GIVEN_UP:
            ended += 1
            assert len(plan.path) == 0
            assert asked == [np.inf] * 3
    assert ended >= 3


def test_a_free_configuration_is_found_near_one_that_touches() -> None:
    rng = np.random.default_rng(23)
    found = 0
    for _ in range(20):
        _, model = drawn_arm(rng)
        world = drawn_world(rng, 6)
        for row in drawn_rows(rng, model, 5):
            if find_contact(model, world, row) is None:
                continue
            free = nearest_free(model, world, row)
            if free is None:
                continue
            found += 1
            assert least_clearance(model.arrays, world.arrays_for(model.parts), free)[0] > 0.0
            assert ((free >= model.lower) & (free <= model.upper)).all()
    assert found >= 5


def test_a_free_configuration_is_not_within_a_mesh(planner: ArmPlanner) -> None:
    model = planner._arm.model({})
    # Around the tip at the start, and far larger than that: what is near is inside without touching.
    tip = planner.kinematics.link_pose(positions(0.0), "tip")
    ball = Solid("ball", GeometryKind.MESH, make_transform(translation=tip[:3, 3]), np.zeros(1), sphere_mesh(0.3, 20))
    world = World([ball])
    assert find_contact(model, world, np.zeros(3)) is not None
    free = nearest_free(model, world, np.zeros(3))
    assert free is not None
    assert find_contact(model, world, free) is None
    room = Solid("room", GeometryKind.MESH, np.eye(4), np.zeros(1), sphere_mesh(3.0, 20))
    assert nearest_free(model, World([room]), np.zeros(3)) is None


def test_only_what_touches_wherever_the_arm_is_is_unavoidable(planner: ArmPlanner) -> None:
    model = planner._arm.model({})
    ring = post(0.0, 0.0, 0.05, name="pedestal")
    assert unavoidable_pairs(model, World([ring]), np.zeros(3)) == {frozenset(("upper", "pedestal"))}
    assert unavoidable_pairs(model, World([post(0.3, 0.0)]), np.zeros(3)) == set()
    answer = planner.plan(MotionRequest(positions(0.0), [positions(0.5)], world=World([ring])))
    assert answer.status is PathStatus.FOUND
    assert "pedestal" in answer.message


def test_of_several_paths_the_one_that_keeps_away_is_taken(planner: ArmPlanner) -> None:
    """By the function that is handed in, and only as far as that is enough; what is shown is the same number."""
    request = MotionRequest(positions(0.0), [positions(2.0)], world=World([post(0.45, 0.45)]))

    def clearance(states: Sequence[Mapping[str, float]]) -> Array:
        tips = [planner.kinematics.link_pose(state, "tip")[:2, 3] for state in states]
        return np.linalg.norm(np.array(tips) - [0.45, 0.45], axis=1) - 0.05

    def answer(**settings: float) -> MotionAnswer:
        other = copy(planner)
        other.config = replace(planner.config, **settings)
        return other.plan(replace(request, clearance=clearance))

    first, chosen = answer(), answer(choices=8, enough_clearance=1.0)
    assert first.trajectory is not None and chosen.trajectory is not None
    assert chosen.clearance > first.clearance + 0.005
    assert chosen.verdict is Verdict.PROVEN_FREE
    asked = replace(request, clearance=clearance)
    assert planner.places(chosen, asked)[1].min() == pytest.approx(chosen.clearance, abs=1e-12)
    # Where all keep away well enough, the shortest is.
    short = answer(choices=8, enough_clearance=0.0)
    assert short.plan is not None and chosen.plan is not None and first.plan is not None
    assert short.plan.length <= first.plan.length
    # Nobody who hands in no function waits for further paths.
    assert np.isnan(planner.plan(request).clearance)
