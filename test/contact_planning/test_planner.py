"""Plans of the spinner and of an arm: known answers, bad input, and that nothing is called a success that is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.contact_planning import planner as module
from morphit_ros.contact_planning.arm import ContactObject, arm_system
from morphit_ros.contact_planning.planner import (
    ContactPlan,
    ContactPlanConfig,
    ContactPlanner,
    PlanStatus,
)
from morphit_ros.contact_planning.solver import SolverConfig, solve_trajectory
from morphit_ros.contact_planning.spinner import (
    fitted_link,
    single_sphere,
    spinner_goal,
    spinner_system,
    superovoid_link,
)
from morphit_ros.contact_planning.system import NO_INERTIA, Inertia, SystemBuilder
from morphit_ros.errors import InvalidInputError

# The disk stands close to the tip of the arm.
START, CENTER = np.array([0.3, 1.5, 0.0]), (0.75, 1.62)
TURN = 1.0


def planned(links, turn: float = TURN, start=START, **config) -> tuple[ContactPlanner, ContactPlan]:
    planner = ContactPlanner(spinner_system(links, CENTER), spinner_goal(start, turn), ContactPlanConfig(**config))
    return planner, planner.plan(start)


@pytest.fixture(scope="module")
def whole() -> tuple[ContactPlanner, ContactPlan]:
    return planned([fitted_link(12)] * 2)


def test_a_disk_is_turned_without_a_motor(whole):
    planner, plan = whole
    assert plan.success
    assert abs(plan.positions[-1, 2] - TURN) <= 0.3
    assert plan.overlap <= planner.config.overlap
    # The disk has no motor, and follows by the law of contact alone.
    assert np.abs(plan.efforts[:, 2]).max() <= planner.config.solver.effort_tolerance
    assert plan.solution.forces.max() > 0.1
    np.testing.assert_array_equal(plan.positions[0], START)


def test_velocities_are_those_of_the_positions(whole):
    planner, plan = whole
    np.testing.assert_allclose(plan.velocities, np.diff(plan.positions, axis=0) / planner.config.step, atol=1e-12)


def test_the_same_plan_again(whole):
    planner, plan = whole
    np.testing.assert_array_equal(planner.plan(START).positions, plan.positions)


def test_superovoids_turn_it_too():
    planner, plan = planned([superovoid_link()] * 2)
    assert len(planner.system.contacts.pairs) == 2
    assert plan.success


def test_a_plan_goes_on_from_what_is_measured(whole):
    """Replanned step by step from where the plan has led, with one iteration each, the disk still gets there."""
    planner, plan = whole
    try:
        for step in range(1, 6):
            again = planner.replan(plan.positions[step], plan.velocities[step - 1])
        assert abs(again.positions[-1, 2] - TURN) <= 0.3
        np.testing.assert_array_equal(again.positions[0], plan.positions[5])
    finally:
        planner.latest = plan.solution


def test_a_goal_out_of_reach_is_missed_and_says_so():
    """One step cannot turn the disk by many turns, however it converges."""
    _, plan = planned(single_sphere(), turn=60.0)
    assert not plan.success
    assert plan.message


def test_final_weights_grow_where_the_goal_is_missed():
    """The published weights leave 0.08 rad; what is planned again on the way keeps to the higher ones."""
    system, goal = spinner_system([fitted_link(12)] * 2, CENTER), spinner_goal(START, 1.5, tolerance=0.05)
    weighted = ContactPlanner(system, goal, ContactPlanConfig(pulls=0)).plan(START)
    assert weighted.status is PlanStatus.GOAL_MISSED
    planner = ContactPlanner(system, goal)
    plan = planner.plan(START)
    assert plan.success
    assert abs(plan.error[2]) <= 0.05 < abs(weighted.error[2])
    again = planner.replan(plan.positions[1], plan.velocities[0], iterations=40)
    assert abs(again.error[2]) <= 0.05
    # Another goal begins with its own.
    planner.aim(spinner_goal(START, 1.5))
    assert planner.plan(START).solution.cost == pytest.approx(weighted.solution.cost)


@pytest.mark.parametrize(("center", "pairs"), [(CENTER, 2), ((5.0, 5.0), 4)], ids=["moved", "out of reach"])
def test_more_pairs_are_tried_where_nothing_has_been_moved(monkeypatch, center, pairs):
    tried = []

    def counted(system, task, *rest, **options):
        tried.append(bool(task.attraction.any()))
        return solve_trajectory(system, task, *rest, **options)

    monkeypatch.setattr(module, "solve_trajectory", counted)
    system, config = spinner_system([fitted_link(12)] * 2, center), ContactPlanConfig(starts=2)
    ContactPlanner(system, spinner_goal(START, TURN), config).plan(START)
    assert sum(tried) <= pairs
    assert sum(tried) == pairs or center is CENTER


def test_no_solve_begins_when_all_iterations_are_spent(monkeypatch):
    done = []

    def counted(*task, **options):
        solution = solve_trajectory(*task, **options)
        done.append(solution.iterations)
        return solution

    monkeypatch.setattr(module, "solve_trajectory", counted)
    _, plan = planned([fitted_link(12)] * 2, iterations=30)
    assert plan.status is PlanStatus.NOT_CONVERGED
    # The solve of the first pair may need one to be a solution at all.
    assert 30 <= sum(done) <= 31


def test_too_few_iterations_are_no_success():
    _, plan = planned(single_sphere(), solver=SolverConfig(iterations=2))
    assert plan.status is PlanStatus.NOT_CONVERGED
    assert "2 iterations" in plan.message


def test_the_time_runs_out():
    _, plan = planned([fitted_link(12)] * 2, time_limit=1e-3)
    assert plan.status is PlanStatus.TIMED_OUT


def test_overlap_between_the_times_of_a_plan_is_seen():
    """Positions before and behind the disk, with none of the times in it."""
    # In the middle of the tip's way around the base.
    planner = ContactPlanner(spinner_system(single_sphere(), (-0.077, 1.418)), spinner_goal(START))
    _, plan = planned(single_sphere())
    system = planner.system
    before, behind = np.array([0.3, 1.5, 0.0]), np.array([1.5, 1.5, 0.0])
    assert system.gaps(before)[0] > 0.0 < system.gaps(behind)[0]
    positions = np.array([before] * 5 + [behind] * 35)
    passed = replace(plan.solution, positions=positions, gaps=np.ones_like(plan.solution.gaps))
    assert planner._overlap(passed, START) > 0.01


@pytest.mark.parametrize(
    ("positions", "name"),
    [([0.3, 1.5], "positions"), ([0.3, np.nan, 0.0], "positions"), ([0.6, 1.2, 0.0], "positions")],
    ids=["too few", "nan", "overlapping"],
)
def test_bad_starts_are_refused(whole, positions, name):
    with pytest.raises(InvalidInputError) as error:
        whole[0].plan(positions)
    assert error.value.name == name


def test_bad_goals_and_velocities_are_refused(whole):
    planner, _ = whole
    with pytest.raises(InvalidInputError, match="velocities"):
        planner.plan(START, [0.0, np.inf, 0.0])
    with pytest.raises(InvalidInputError, match="goal"):
        ContactPlanner(planner.system, spinner_goal(START, np.nan))
    with pytest.raises(InvalidInputError, match="earlier plan"):
        ContactPlanner(planner.system, spinner_goal(START)).replan(START, np.zeros(3))


def test_bodies_that_are_none_are_refused():
    builder = SystemBuilder()
    with pytest.raises(InvalidInputError, match="positive mass"):
        builder.add_free_body("ghost", NO_INERTIA)
    with pytest.raises(InvalidInputError, match="none"):
        builder.add_spheres("world", np.empty((0, 3)), np.empty(0))
    with pytest.raises(InvalidInputError, match="no spheres"):
        spinner_system([(np.empty((0, 3)), np.empty(0))] * 2)
    builder.add_free_body("ball", Inertia.ball(1.0, 0.1))
    with pytest.raises(InvalidInputError, match="two bodies"):
        builder.build([tuple(builder.add_spheres("ball", [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]], [0.1, 0.1]))])


def test_an_arm_weighs_what_pinocchio_says():
    """Welded fingers, inertias of the description and the way of the joints: efforts against gravity of a Panda."""
    pinocchio = pytest.importorskip("pinocchio")
    from morphit_ros.contact_planning import tree as trees
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description
    from morphit_ros.robot.kinematics import KinematicModel

    robot = RobotConfiguration.load("panda")
    description = load_robot_description(robot.description)
    fixed = dict.fromkeys(robot.finger_joints, 0.03)
    thing = ContactObject.ball(0.05, 0.5)
    spheres = {"panda_hand": (np.array([[0.0, 0.0, 0.05]]), np.array([0.05]))}
    system = arm_system(KinematicModel(description), robot.arm_joints, fixed, spheres, thing)
    model = pinocchio.buildModelFromXML(description.xml.strip())
    data, rng = model.createData(), np.random.default_rng(0)
    positions = system.neutral()
    positions[:7] = rng.uniform(-1.0, 1.0, 7)
    v, a = rng.normal(size=(2, system.velocity_count))
    v[7:] = a[7:] = 0.0
    motion = trees.motion_arrays(system.tree)
    trees.place(system.tree, positions, motion)
    trees.move_bodies(system.tree, motion, v, a)
    efforts, none = np.zeros(system.velocity_count), np.zeros((13, 13))
    trees.inverse_dynamics(system.tree, v, efforts, motion, none, none, none, False)
    q, dq, ddq = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    for k, name in enumerate(robot.arm_joints):
        joint = model.joints[model.getJointId(name)]
        q[joint.idx_q], dq[joint.idx_v], ddq[joint.idx_v] = positions[k], v[k], a[k]
    for name, value in fixed.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    expected = pinocchio.rnea(model, data, q, dq, ddq)
    rows = [model.joints[model.getJointId(name)].idx_v for name in robot.arm_joints]
    np.testing.assert_allclose(efforts[:7], expected[rows], atol=1e-9)
    # The ball's weight, which nothing carries.
    np.testing.assert_allclose(efforts[7:10], [0.0, 0.0, 0.5 * 9.81], atol=1e-9)
