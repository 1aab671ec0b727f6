"""What stops the motors and what lets them turn again; which targets are taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cover_samples import bowl

from morphit_ros.cover.control.controller import ControllerConfig, StepStatus
from morphit_ros.cover.control.reach import Reach
from morphit_ros.cover.control.supervision import Measurement, Stop, SupervisedController, SupervisionConfig, WayBack
from morphit_ros.cover.control.tracking import JointTracker
from morphit_ros.cover.detour import Detour
from morphit_ros.cover.goals.surfaces import HeightMapTarget
from morphit_ros.cover.goals.targets import DetourTarget, HeightTarget, ParametricTarget, grid_parameters
from morphit_ros.cover.state import CoverState, flat_state
from morphit_ros.errors import InvalidInputError

PERIOD = 0.01
NEAR = "-3*(x**2 + 1.3*y**2) + 2.5*x*y"


class Bench:
    """A supervised 3 x 3 cover that is measured as it stands."""

    def __init__(self, **config: object) -> None:
        self.cover, self.state = bowl(3, 3)
        self.supervised = SupervisedController(
            self.cover,
            self.state,
            ControllerConfig(),
            SupervisionConfig(**config),  # type: ignore[arg-type]
        )
        self.angles = JointTracker(self.cover, self.cover.motors).angles(self.state.rotations)
        self.now = 0.0

    def good(self) -> Measurement:
        return Measurement(angles=self.angles, axes=self.cover.motors)

    def cycle(self, measurement: Measurement | None = None, age: float = 0.0):  # type: ignore[no-untyped-def]
        self.now += PERIOD
        return self.supervised.cycle(measurement or self.good(), age, self.now)

    def moving(self) -> Bench:
        self.supervised.set_target(HeightTarget(NEAR), "near", self.now)
        cycle = self.cycle()
        assert cycle.stop is None, cycle.message
        assert np.any(cycle.rates)
        return self


def test_nothing_moves_without_state_or_target() -> None:
    bench = Bench()
    cycle = bench.supervised.cycle(None, np.inf, 0.0)
    assert cycle.stop is Stop.NO_STATE
    assert not np.any(cycle.rates)
    cycle = bench.cycle()
    assert cycle.stop is Stop.NO_TARGET
    assert not np.any(cycle.rates)
    bench.moving()


def test_rates_stay_within_the_limit() -> None:
    bench = Bench().moving()
    limit = bench.supervised.controller_config.rate_limit
    for _ in range(5):
        assert np.abs(bench.cycle().rates).max() <= limit


def test_stale_states_stop_and_fresh_ones_in_a_row_start_again() -> None:
    bench = Bench(recovery_states=3).moving()
    assert bench.cycle(age=1.7 * PERIOD).stop is None
    stale = bench.cycle(age=1.9 * PERIOD)
    assert stale.stop is Stop.STALE
    assert "allowed are 18 ms (state_timeout: 1.8 periods); raise that" in stale.message
    assert bench.cycle().stop is Stop.STALE
    assert bench.cycle().stop is Stop.STALE
    bad = bench.cycle(Measurement(problem="spoiled"))
    assert (bad.stop, bad.message) == (Stop.BAD_STATE, "spoiled")
    assert [bench.cycle().stop for _ in range(3)] == [Stop.BAD_STATE, Stop.BAD_STATE, None]


@pytest.mark.parametrize("change", ["short", "nan", "open", "nothing", "poses"])
def test_bad_measurements_stop(change: str) -> None:
    bench = Bench(recovery_states=2).moving()
    good = bench.good()
    assert good.angles is not None
    rotations, positions = bench.state.rotations.copy(), bench.state.positions(bench.cover)
    positions[4] += 0.01
    everything = [(joint, axis) for joint in range(bench.cover.joint_count) for axis in range(3)]
    torn = JointTracker(bench.cover, everything).angles(bench.state.rotations)
    torn[7] += 0.3
    bad = {
        "short": replace(good, angles=good.angles[:-1]),
        "nan": replace(good, angles=good.angles * np.nan),
        "open": Measurement(angles=torn, axes=np.array(everything)),
        "nothing": Measurement(),
        "poses": Measurement(positions=positions, rotations=rotations),
    }[change]
    cycle = bench.cycle(bad)
    assert cycle.stop is Stop.BAD_STATE
    assert cycle.message
    assert not np.any(cycle.rates)
    assert bench.cycle().stop is Stop.BAD_STATE
    assert bench.cycle().stop is None


def test_poses_serve_as_well() -> None:
    bench = Bench()
    bench.supervised.set_target(HeightTarget(NEAR), "near", 0.0)
    poses = Measurement(positions=bench.state.positions(bench.cover), rotations=bench.state.rotations)
    assert bench.cycle(poses).stop is None


@pytest.mark.parametrize("status", [status for status in StepStatus if not status.moves])
def test_every_failure_of_a_step_stops(status: StepStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(recovery_states=1).moving()
    controller = bench.supervised._controller
    real = controller.step

    def failing(state: CoverState, target: object, time: float, *more: object):  # type: ignore[no-untyped-def]
        result = real(state, target, time)  # type: ignore[arg-type]
        return replace(result, status=status, rates=np.zeros_like(result.rates), message="on purpose")

    monkeypatch.setattr(controller, "step", failing)
    cycle = bench.cycle()
    assert cycle.stop is not None
    assert cycle.message == "on purpose"
    assert not np.any(cycle.rates)
    monkeypatch.setattr(controller, "step", real)
    way_back = cycle.stop.way_back
    again = bench.cycle()
    assert (again.stop is None) == (way_back is WayBack.STATES)
    if way_back is WayBack.TARGET:
        bench.moving()
    elif way_back is WayBack.ACTIVATION:
        bench.supervised.set_target(HeightTarget(NEAR), "near", bench.now)
        assert bench.cycle().stop is cycle.stop
        # A lesser reason doesn't hide it.
        assert bench.cycle(age=1.0).stop is cycle.stop
        bench.supervised.resume()
        assert bench.cycle().stop is None


def test_rates_that_are_not_finite_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench().moving()
    real = bench.supervised._controller.step
    monkeypatch.setattr(
        bench.supervised._controller, "step",
        lambda *given: replace(result := real(*given), rates=np.full_like(result.rates, np.nan)),
    )  # fmt: skip
    cycle = bench.cycle()
    assert cycle.stop is Stop.BAD_RATES
    assert not np.any(cycle.rates)


def test_a_singular_start_stops_until_activation() -> None:
    cover, _ = bowl(3, 3)
    supervised = SupervisedController(cover, flat_state(cover))
    supervised.set_target(HeightTarget("0.1*x*y"), "saddle", 0.0)
    flat = flat_state(cover)
    cycle = supervised.cycle(Measurement(positions=flat.positions(cover), rotations=flat.rotations), 0.0, 0.0)
    assert cycle.stop is Stop.RANK_DROP
    assert cycle.stop.way_back is WayBack.ACTIVATION


def test_a_target_that_leaves_the_father_stops() -> None:
    bench = Bench(horizon=0.0).moving()
    bench.supervised.set_target(HeightTarget(f"{NEAR} + 0.02*t"), "rising", bench.now)
    assert bench.cycle().stop is None
    bench.now += 5.0
    cycle = bench.cycle()
    assert cycle.stop is Stop.TARGET
    assert "from the father node" in cycle.message
    assert bench.cycle().stop is Stop.TARGET
    bench.moving()


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("log(x - 9)", "not finite at node"),
        ("x/(t - 20)", "not finite at t = 20"),
        ("x + 0.05", "from a fixed node"),
        ("0.002*t", "from the father node at t ="),
    ],
)
def test_targets_that_cannot_be_are_refused_and_the_last_stays(formula: str, reason: str) -> None:
    bench = Bench().moving()
    before = bench.supervised.course
    with pytest.raises(InvalidInputError, match=reason):
        bench.supervised.set_target(HeightTarget(formula), "bad", bench.now)
    assert bench.supervised.course is before
    assert bench.cycle().stop is None


def test_far_targets_take_a_passage_or_are_refused() -> None:
    bench = Bench()
    near = bench.supervised.set_target(HeightTarget(NEAR), "near", 0.0)
    assert near.duration == 0.0
    assert near.target is near.goal
    far = HeightTarget("6*x*y")
    course = bench.supervised.set_target(far, "far", 2.0)
    assert course.duration > 0.5
    assert course.goal is far
    positions = bench.state.positions(bench.cover)
    first = course.target.sample(positions, 0.0)
    angles = np.arccos(np.clip(np.einsum("ij,ij->i", bench.state.normals(), first.normals), -1.0, 1.0))
    assert np.degrees(angles.max()) < 10.0
    direct = bench.supervised.set_target(far, "far", 2.0, "direct")
    assert direct.duration == 0.0
    grid = np.add.outer(np.linspace(-0.15, 0.15, 8), np.linspace(-0.15, 0.15, 8)) * 0.5
    heights = HeightMapTarget(grid, (-0.15, -0.15), 0.3 / 7)
    assert bench.supervised.set_target(heights, "map", 0.0).duration > 0.0
    over = ParametricTarget(["u", "-v", "0*u"], grid_parameters(bench.cover))
    with pytest.raises(InvalidInputError, match="180 degrees away"):
        bench.supervised.set_target(over, "turned over", 0.0)
    with pytest.raises(InvalidInputError, match="passage"):
        bench.supervised.set_target(
            ParametricTarget(["u", "v", "u*v"], grid_parameters(bench.cover)), "x", 0.0, "passage"
        )


def test_a_new_activation_sets_out_for_the_target_again() -> None:
    bench = Bench().moving()
    course = bench.supervised.course
    assert course is not None
    again = bench.supervised.set_target(course.goal, course.name, 40.0, course.approach)
    assert (again.start, again.name) == (40.0, "near")


def test_a_target_that_is_forecast_out_of_reach_says_so_from_the_first_step_on() -> None:
    """It changes no motion; without a target motors stand still."""
    rates = []
    for forecast in (None, Reach(0.1, 0.02, False), Reach(0.1, 0.002, True)):
        bench = Bench().moving()
        course = bench.supervised.set_target(HeightTarget("3*x*y"), "saddle", bench.now, "direct", forecast)
        assert course.forecast is forecast
        result = bench.cycle().result
        assert result is not None
        expected = StepStatus.OUT_OF_REACH if forecast and not forecast.within else StepStatus.OK
        assert result.status is expected
        assert ("forecast: best is 5.7 degrees and 20.0 mm" in result.message) is (expected is not StepStatus.OK)
        rates.append(result.rates)
        # On a passage the cover is near what it is told to be near, all the way.
        bench.supervised.set_target(HeightTarget("3*x*y"), "saddle", bench.now, "passage", forecast)
        for _ in range(3):
            result = bench.cycle().result
        assert result is not None
        assert result.status is expected
        bench.supervised.leave_target()
        assert bench.cycle().stop is Stop.NO_TARGET
    np.testing.assert_array_equal(rates[0], rates[1])
    np.testing.assert_array_equal(rates[0], rates[2])


def test_a_way_over_a_shape_in_between_is_taken_and_ends_in_the_target() -> None:
    bench = Bench()
    goal, between = HeightTarget("3*x*y"), HeightTarget("x*y")
    straight, reached = Reach(0.1, 0.02, False), Reach(0.01, 0.001, True)
    errors = np.zeros((1, 2))
    way = Detour(
        DetourTarget(goal, between, 0.0, 1.5), "x*y", 0.0, 1.5, straight, reached, errors, errors, (), (), 1, 0.0
    )  # fmt: skip
    course = bench.supervised.set_target(goal, "saddle", bench.now, "direct", straight, way)
    assert course.goal is goal
    assert course.duration == 1.5
    assert course.forecast is reached
    assert "by way of x*y until 1.5 s" in course.description
    positions = bench.supervised.state.positions(bench.supervised.cover)
    for time, target in ((0.0, between), (2.0, goal)):
        np.testing.assert_array_equal(
            course.target.sample(positions, time).normals, target.sample(positions, time).normals
        )
    kept = replace(way, formula="", target=goal)
    assert bench.supervised.set_target(goal, "saddle", bench.now, "direct", straight, kept).target is goal
