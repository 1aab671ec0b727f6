"""Ways over a shape in between, and motors for a whole course."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cover_samples import bowl, data_folder

from morphit_ros.cover import ControllerConfig, SimulationConfig, StepStatus, simulate_cover
from morphit_ros.cover.actuation.placement import place_motors
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.detour import DetourConfig, motion_time, plan_detour, plan_detours
from morphit_ros.cover.goals.targets import DetourTarget, HeightTarget, LaterTarget
from morphit_ros.cover.simulation import states_on_course
from morphit_ros.errors import InvalidInputError

QUICK = ControllerConfig(rate_limit=0.35, greatest_rate=5.0)


def test_a_cover_in_a_local_optimum_gets_out_by_a_shape_in_between() -> None:
    """The paper's 4 x 8 cover on the way to its third shape, four times as fast: 3.5 degrees straight."""
    case = load_case("4x8", data_folder())
    config = dataclasses.replace(case.controller, rate_limit=0.35, variation_weight=5.0)
    before = HeightTarget(
        [(2.5, "3*(x - 0.07)**2 - 3*y**2 - 3*0.07**2 + 0.055"), (9.0, "7*(x - 0.07)**2 - 7*0.07**2 + 0.055")]
    )
    start = simulate_cover(case.cover, case.state, before, SimulationConfig(3.75, forecast_time=0.0), config).state
    goal, search = HeightTarget("3*y**2 + 0.055"), DetourConfig(shapes=12, rounds=1, checked=2, disturbed=0)
    found = plan_detour(case.cover, [start], goal, 2.5, config, search)
    assert np.degrees(found.straight.angle) > 3.0
    assert np.degrees(found.reached.angle) < 1.0
    assert found.formula in found.description
    # What was promised is what a run does.
    run = simulate_cover(case.cover, start, found.target, SimulationConfig(2.5, forecast_time=0.0), config)
    sample = goal.sample(run.state.positions(case.cover), 2.5)
    assert found.reached.distance == pytest.approx(sample.distances.mean(), rel=1e-6)


def test_near_targets_and_short_searches_go_straight() -> None:
    cover, state = bowl(3, 3)
    near = HeightTarget("-3*(x**2 + 1.3*y**2) + 2.2*x*y")
    search = DetourConfig(shapes=4, disturbed=1, enough_angle=0.2)
    found = plan_detour(cover, [state], near, 0.3, QUICK, search)
    assert found.target is near
    assert not found.formula
    assert found.tries == 2
    assert found.straight == found.reached
    ended = plan_detour(cover, [state], HeightTarget("5*x*y"), 1.0, QUICK, DetourConfig(shapes=4, time_limit=1e-6))
    assert not ended.formula
    assert not ended.reached.settled
    assert np.isinf(ended.reached.angle)
    assert len(plan_detours(cover, state, near, 0.3, QUICK, DetourConfig(shapes=4, time_limit=1e-6))) == 1
    with pytest.raises(InvalidInputError, match="none"):
        plan_detour(cover, [], near, 1.0)


def test_same_seed_same_way_phase_by_phase() -> None:
    cover, state = bowl(3, 4)
    target = HeightTarget([(0.3, "2*x*y"), (0.6, "-2*x*y")])
    config = DetourConfig(shapes=3, rounds=2, checked=1, disturbed=1, least_gain=0.0)
    controller = dataclasses.replace(QUICK, variation_weight=50.0)
    one, two = (plan_detours(cover, state, target, 0.6, controller, config, seed=3) for _ in range(2))
    assert [found.formula for found in one] == [found.formula for found in two]
    np.testing.assert_array_equal(one[1].errors, two[1].errors)
    assert one[0].start == 0.0
    assert one[1].start == pytest.approx(0.31)
    # The phases in turn are the run.
    run = simulate_cover(cover, state, one[-1].target, SimulationConfig(0.6, forecast_time=0.0), controller)
    np.testing.assert_allclose(one[-1].ends[0].rotations, run.state.rotations, atol=1e-3)
    for found in one:
        assert found.reached.angle <= found.straight.angle + found.straight.distance / cover.pitch


def test_targets_that_change_in_between() -> None:
    positions = np.array([[0.1, 0.2, 0.0]])
    goal, between = HeightTarget("x + t"), HeightTarget("2*y")
    mixed = DetourTarget(goal, between, 1.0, 2.0)
    for time, other in ((0.9, goal), (1.0, between), (1.9, between), (2.0, goal)):
        np.testing.assert_array_equal(mixed.sample(positions, time).offsets, other.sample(positions, time).offsets)
    np.testing.assert_array_equal(
        LaterTarget(goal, 3.0).sample(positions, 1.0).offsets, goal.sample(positions, 4.0).offsets
    )
    cover, state = bowl(3, 3)
    assert motion_time(cover, state, HeightTarget("5*x*y"), 0.1) > motion_time(cover, state, HeightTarget("x*y"), 1.0)


def test_the_next_phase_of_a_target_is_no_target_out_of_reach() -> None:
    """The error rises when the next shape is told: that it was less before says nothing of this one."""
    cover, state = bowl(3, 3)
    far = HeightTarget([(1.0, "-3*(x**2 + 1.3*y**2) + 2*x*y"), (9.0, "4*x*y - 2*x**2 + 3*y**2")])
    config = dataclasses.replace(QUICK, reach_angle=0.01, reach_distance=1e-4, reach_time=0.3, rate_limit=0.1)
    run = simulate_cover(cover, state, far, SimulationConfig(1.6, forecast_time=0.0), config)
    later = run.times > 1.35
    assert run.angles[later].mean() > 0.05
    assert StepStatus.OUT_OF_REACH not in [status for status, late in zip(run.statuses, later, strict=True) if late]


def test_motors_for_the_whole_course_hold_it_better_than_those_for_its_start() -> None:
    cover, state = bowl(4, 4)
    target = HeightTarget("4*x**2 - 3*y**2")
    states = states_on_course(cover, state, target, 2.0, 4, QUICK)
    assert len(states) == 5
    run = simulate_cover(cover, state, target, SimulationConfig(2.0, forecast_time=0.0), QUICK)
    np.testing.assert_allclose(states[-1].rotations, run.state.rotations, atol=0.05)
    worst = [
        simulate_cover(
            cover.with_motors(place_motors(cover, held, nearby=0).motors), state, target,
            SimulationConfig(2.0, forecast_time=0.0), QUICK,
        ).conditions.max()
        for held in (states[:1], states)
    ]  # fmt: skip
    assert worst[1] < 0.8 * worst[0]
