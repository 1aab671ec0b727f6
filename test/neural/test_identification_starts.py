"""The same answer from any start: a scan between the bounds, several searches, tracks that grow."""

import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from contact_samples import box_body
from identification_samples import SlidingBlock, block_experiment

from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.identification import Experiment, IdentificationConfig, PoseTrack, SimulatedMotion, Unknown
from morphit_ros.neural.identification.evolution import evolve
from morphit_ros.neural.identification.global_search import (
    amplifies,
    first_part,
    lowest_places,
    scan_places,
)
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.identification.least_squares import solve_least_squares
from morphit_ros.neural.identification.residual_spectrum import Series, are_white
from morphit_ros.neural.identification.tracking_problem import TrackingProblem
from morphit_ros.neural.identification.valleys import is_jagged, is_settled, told_apart, valleys_of
from morphit_ros.neural.published import load_published_body, load_published_trajectory

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "neural"
STEP = 0.002
LAWS = {"spring": 1e5, "damper": 1e6, "sliding_drag": 0.01, "size": 1.0}
CONFIG = IdentificationConfig(position_noise=1e-3, rotation_noise=5e-3, threads=1)


def world(body: ContactBody, friction: float, form: str = "published") -> World:
    table = Obstacle(ContactHalfSpace(), name="table")
    return World([body], [table], ContactParameters(friction=friction, **LAWS), STEP, form=form)


def dropped(body: ContactBody, friction: float, steps: int, form: str = "published") -> PoseTrack:
    start = BodyState([0.0, 0.0, 0.9], [0.6, 0.1, 0.5, 1.0], [0.8, 0.3, 0.0], [0.5, -1.0, 2.0])
    moved = simulate(world(body, friction, form), start, steps)
    return PoseTrack(STEP * np.arange(steps + 1)[::5], moved.positions[::5, 0], moved.quats_xyzw[::5, 0])


def frictions(body: ContactBody, track: PoseTrack, starts: list[float], form: str = "published") -> list[float]:
    motion = SimulatedMotion(world(body, 0.2, form))
    experiment = Experiment(motion, (track,), None, "velocity_unknown")
    return [identify(experiment, Unknown("friction", item, 0.01, 1.0), CONFIG).values["friction"] for item in starts]


@pytest.mark.parametrize("friction", [0.2])
def test_a_box_that_tumbles_has_one_friction_from_any_start(friction: float) -> None:
    body = box_body(count=120)
    found = frictions(body, dropped(body, friction, 450), [0.01, 0.9])
    assert found == pytest.approx([friction] * 2, rel=0.01)
    assert np.ptp(found) == 0.0


@pytest.mark.skipif(not DATA.is_dir(), reason=f"published objects are not in {DATA}")
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_the_published_bunny_has_one_friction_from_any_start(friction: float) -> None:
    body = load_published_body(DATA / "bunny.npz", second_moment_as_inertia=True)
    whole = load_published_trajectory(DATA / f"bunny_trajectory_{friction}.csv", STEP)
    rows = slice(1, 420, 5)
    track = PoseTrack(whole.times[rows], whole.positions[rows], whole.quats_xyzw[rows])
    found = frictions(body, track, [0.01, 0.9])
    assert found == pytest.approx([friction] * 2, rel=0.02)
    assert np.ptp(found) == 0.0


def test_contact_by_points_is_found_from_any_start() -> None:
    body = box_body(count=120)
    assert frictions(body, dropped(body, 0.5, 700, "points"), [0.01, 0.3, 0.9], "points") == pytest.approx(
        [0.5] * 3, rel=0.02
    )


class Unstable(SlidingBlock):
    """A block whose motion grows any change of its start, e-fold in each tenth of a second."""

    def predict(self, names, values, start, times):  # type: ignore[no-untyped-def]
        good = super().predict(names, values, start, times)
        grown = np.exp((times - times[0]) / 0.1)[:, None, None, None]
        return dataclasses.replace(good, by_start=good.by_start * grown)


def test_a_motion_that_grows_its_start_amplifies_and_a_sliding_block_does_not() -> None:
    sliding = block_experiment(SlidingBlock(), SlidingBlock())
    assert not amplifies([sliding], ["friction"], np.array([0.3]))
    growing = dataclasses.replace(sliding, motion=Unstable())
    assert amplifies([growing], ["friction"], np.array([0.3]))
    assert not amplifies([first_part(growing, 0.2)], ["friction"], np.array([0.3]))


def test_a_scan_covers_the_bounds_and_does_not_hear_the_start() -> None:
    one = [Unknown("friction", 0.3, 0.0, 1.0)]
    assert scan_places(one, 5)[:, 0] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    ratio = [Unknown("mass_scale", 1.0, 0.1, 10.0)]
    assert scan_places(ratio, 5)[:, 0] == pytest.approx([0.1, 10**-0.5, 1.0, 10**0.5, 10.0])
    several = [*one, *ratio, Unknown("free", 7.0)]
    places = scan_places(several, 16)
    assert len(places) == 32
    assert (places[:, 2] == 7.0).all()
    assert (np.histogram(places[:, 0], 4, (0.0, 1.0))[0] == 8).all()
    assert np.array_equal(places, scan_places([Unknown("friction", 0.9, 0.0, 1.0), *several[1:]], 16))
    assert len(scan_places(one, 0)) == 1


def test_lowest_places_are_apart() -> None:
    unknowns = [Unknown("friction", 0.3, 0.0, 1.0)]
    places = np.array([[0.0], [0.05], [0.5], [1.0]])
    assert lowest_places(places, np.array([2.0, 1.0, 3.0, np.inf]), unknowns, 3)[:, 0] == pytest.approx([0.05, 0.5])
    assert lowest_places(places, np.array([2.0, 1.0, 3.0, np.inf]), unknowns, 1)[:, 0] == pytest.approx([0.05])


def series(residuals: np.ndarray) -> list[Series]:
    return [Series(residuals, np.zeros((*residuals.shape, 1)), np.array([0]))]


@pytest.mark.parametrize("level", [0.3, 1.0, 3.0])
def test_white_residuals_are_called_white(level: float) -> None:
    rng = np.random.default_rng(0)
    called = [are_white(series(level * rng.normal(size=(100, 6))), np.zeros((1, 1))) for _ in range(300)]
    assert np.mean(called) >= 0.99


def test_residuals_that_are_slow_are_not_white_unless_far_below_the_noise() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        noise = rng.normal(size=(100, 6))
        slow = np.sin(np.linspace(0.0, 3.0, 100) + rng.uniform(0.0, 6.0))[:, None] * rng.normal(size=6)
        assert not are_white(series(noise + 3.0 * slow / np.abs(slow).max()), np.zeros((1, 1)))
        assert not are_white(series(slow / np.abs(slow).max()), np.zeros((1, 1)))
        assert are_white(series(0.03 * slow / np.abs(slow).max()), np.zeros((1, 1)))


def test_a_fit_beside_the_best_one_is_not_explained() -> None:
    body = box_body(count=120)
    track = dropped(body, 0.2, 450)
    experiment = Experiment(SimulatedMotion(world(body, 0.2)), (track,), None, "velocity_unknown")
    # Without a scan there is no search for a better place, which costs time.
    beside = identify(experiment, Unknown("friction", 0.4, 0.3, 1.0), dataclasses.replace(CONFIG, scan=0))
    assert not beside.explained
    assert "correlated" in beside.message or "times the stated noise" in beside.message


def valley(estimate, friction: float, cost: float, deviation: float):  # type: ignore[no-untyped-def]
    """The same estimate, as if it had ended elsewhere."""
    values, spread = estimate.values.copy(), estimate.uncertainty.standard_deviations.copy()
    values[0], spread[0] = friction, deviation
    uncertainty = dataclasses.replace(estimate.uncertainty, standard_deviations=spread)
    return dataclasses.replace(estimate, values=values, cost=cost, uncertainty=uncertainty)


def test_valleys_that_are_hardly_told_apart_are_carried_on_and_count_in_the_deviation() -> None:
    found = identify(block_experiment(SlidingBlock(friction=0.3), SlidingBlock()), Unknown("friction", 0.3, 0.0, 1.0))
    best = valley(found.estimate, 0.300, 100.0, 0.001)
    same, other = valley(best, 0.3005, 101.0, 0.001), valley(best, 0.304, 105.0, 0.001)
    worse, wide = valley(best, 0.2, 150.0, 0.001), valley(best, 0.3, 80.0, 0.01)
    assert valleys_of([best, same, other, worse], 1) == [best, other]
    told = told_apart(best, [[best, other]], 1)
    assert told.uncertainty.standard_deviations[0] == pytest.approx(np.hypot(0.001, 0.004))
    assert told_apart(best, [[best, other], [wide]], 1).uncertainty.standard_deviations[0] == pytest.approx(0.01)
    assert told.values[0] == best.values[0]
    assert told_apart(best, [[best]], 1).uncertainty.standard_deviations[0] == 0.001


def jumping(values: np.ndarray) -> float:
    """A bowl about 1 that jumps by up to 20 within a tenth of a deviation."""
    away = values - 1.0
    return 0.5 * float(away @ away) + 20.0 * float((np.floor(away / 0.1) % 3.0 == 2.0).mean())


def test_evolution_goes_over_jumps_that_end_a_search_by_derivatives() -> None:
    begin, covariance = np.array([3.0, -1.0, 0.0, 2.0, 2.5, -0.5]), np.diag([4.0, 4.0, 1.0, 1.0, 1.0, 1.0])
    bounds = (np.full(6, -5.0), np.full(6, 5.0))
    found = [evolve(jumping, begin, covariance, bounds, seed) for seed in range(5)]
    assert jumping(begin) > 8.0
    assert max(jumping(item) for item in found) < 1.0
    assert np.array_equal(found[0], evolve(jumping, begin, covariance, bounds, 0))


def test_evolution_keeps_bounds_and_what_is_held() -> None:
    lower, upper = np.array([0.5, -1.0, 0.0]), np.array([2.0, 1.0, 2.0])
    covariance = np.diag([1.0, 1.0, 0.0])
    found = evolve(
        lambda values: float(values[0] + values[1]), np.array([1.0, 0.0, 0.7]), covariance, (lower, upper), 0
    )
    assert found == pytest.approx([0.5, -1.0, 0.7])


class JaggedBlock(SlidingBlock):
    """A sliding block whose motion jumps by up to 2 mm with the least change of its friction."""

    def poses(self, names, values, start, times):  # type: ignore[no-untyped-def]
        positions, quats = super().poses(names, values, start, times)
        return positions + 2e-3 * np.sin(1e6 * values[0]), quats


@pytest.mark.parametrize(("motion", "jagged"), [(SlidingBlock(), False), (JaggedBlock(), True)])
def test_white_residuals_settle_nothing_where_the_cost_jumps(motion: SlidingBlock, jagged: bool) -> None:
    unknown, search = [Unknown("friction", 0.3, 0.0, 1.0)], CONFIG.search
    for noise, hidden in ((1e-3, jagged), (1e-5, False)):
        experiment = block_experiment(SlidingBlock(friction=0.3), motion, noise=noise)
        with ThreadPoolExecutor(1) as pool:
            problem = TrackingProblem([experiment], unknown, IdentificationConfig(), pool)
            estimate = solve_least_squares(problem.evaluate, problem.unknowns, search)
            assert estimate.explained
            assert estimate.uncertainty.bare
            assert is_jagged(problem, estimate, search) == jagged
            # Noise far below what is stated hides no valley.
            assert is_settled(problem, estimate, search) == (not hidden)
