"""Motions that fly apart during a search: infinite residuals, no warnings, and a search that turns back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from contact_samples import box_body
from identification_samples import SlidingBlock, block_experiment, block_start

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.simulate import RolloutResult, simulate
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.identification.motion import Motion, Prediction
from morphit_ros.neural.identification.residuals import ParameterTrial, residuals_of, start_directions
from morphit_ros.neural.identification.simulated_motion import SimulatedMotion
from morphit_ros.neural.identification.tracks import PoseTrack
from morphit_ros.neural.identification.unknowns import Unknown
from morphit_ros.neural.objects import push_identification
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.objects.push_identification import PARAMETERS, PushMotion
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@dataclass(frozen=True)
class FlyingApart(SlidingBlock):
    """A block that is well predicted outside of a range of frictions only."""

    how: str = "none"
    low: float = 0.32
    high: float = 0.35

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        good = super().predict(names, values, start, times)
        if not len(values) or not self.low < values[0] < self.high:
            return good
        if self.how == "none":
            return Prediction.none(len(times), 1, len(names))
        if self.how == "huge":
            sides = np.where(np.arange(len(times)) % 2, 1e200, -1e200)
            return replace(good, positions=good.positions + sides[:, None, None])
        slopes = np.full_like(good.by_parameters, 1e308) if self.how == "steep" else good.by_parameters * np.nan
        return replace(good, by_parameters=slopes)


@pytest.mark.parametrize("how", ["none", "huge", "steep", "nan"])
def test_a_search_turns_back_from_where_the_motion_flies_apart(how: str) -> None:
    experiment = block_experiment(SlidingBlock(friction=0.3), FlyingApart(how=how))
    seen = residuals_of(
        ParameterTrial(experiment, ["friction"], np.array([0.33]), np.zeros((12, 0)), np.zeros(0), 1e-3, 1e-2)
    )
    assert np.isposinf(seen.residuals).all()
    assert seen.jacobian.shape == (len(seen.residuals), 1)
    # From a friction at which the block hardly moves the first step goes there: it is refused, a shorter one taken.
    steps: list[float] = []
    whole = block_experiment(SlidingBlock(friction=0.3), _Watched(steps))
    result = identify([experiment, whole], Unknown("friction", 1.0, 0.0, 1.0))
    assert any(0.32 < step < 0.35 for step in steps), "the search never went there"
    assert result.success
    assert result.values["friction"] == pytest.approx(0.3, abs=1e-6)


@dataclass(frozen=True)
class _Watched(SlidingBlock):
    """Keeps the frictions that were tried."""

    def __init__(self, steps: list[float]) -> None:
        object.__setattr__(self, "steps", steps)

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        self.steps.append(float(values[0]))  # type: ignore[attr-defined]
        return super().predict(names, values, start, times)


def test_a_start_that_flies_apart_is_refused() -> None:
    experiment = block_experiment(SlidingBlock(friction=0.3), FlyingApart())
    with pytest.raises(InvalidInputError, match="not finite"):
        identify(experiment, Unknown("friction", 0.33, 0.0, 1.0), IdentificationConfig(scan=0))
    # A scan finds where it doesn't.
    assert identify(experiment, Unknown("friction", 0.33, 0.0, 1.0)).values["friction"] == pytest.approx(0.3, abs=1e-6)


def simulated() -> tuple[Motion, Array, list[str], Array]:
    body = box_body()
    motion = SimulatedMotion(World([body], [Obstacle(ContactHalfSpace(), name="table")], step=0.01))
    start = np.zeros((1, 13))
    start[0, 2], start[0, 6] = -body.points[:, 2].min(), 1.0
    return motion, start, ["friction"], np.array([0.3])


def pushed() -> tuple[Motion, Array, list[str], Array]:
    known = know_object(BoxField((0.10, 0.06, 0.04)), 500.0)
    ball = Pusher(0.01, np.array([0.0, 0.1]), np.array([[-0.062, 0.01, 0.0], [-0.042, 0.012, 0.0]]), 0.1,
                  np.tile([1.0, 0.1, 0.0], (2, 1)))  # fmt: skip
    scene = PushScene(known, carrying_table(known, np.eye(4)), ball, PredictionConfig(contact_points=100, step=0.005))
    values = np.array([0.2, 0.3, 0.15, 1.2])
    start = np.array([[0.0] * 6 + [1.0] + [0.0] * 6])
    return PushMotion(scene, known.body(100), 0.0), start, list(PARAMETERS[:4]), values


@pytest.mark.parametrize("sample", [simulated, pushed])
def test_a_rollout_that_stops_is_infinitely_far(sample) -> None:  # type: ignore[no-untyped-def]
    """A spin that turns by more than half a turn within a step cannot be integrated."""
    motion, start, names, values = sample()
    times = np.linspace(0.0, 0.1, 6)
    track = PoseTrack(times, np.tile(start[0, :3], (6, 1)), np.tile(start[0, 3:7], (6, 1)))
    experiment = Experiment(motion, (track,), start, "unknown")
    directions = start_directions(experiment)
    for spin in (0.0, 2000.0):
        correction = np.zeros(12)
        correction[11] = spin
        seen = residuals_of(ParameterTrial(experiment, names, values, directions, correction, 1e-3, 1e-2))
        assert seen.residuals.shape == (36,)
        assert seen.jacobian.shape == (36, len(names) + 12)
        if spin:
            assert np.isposinf(seen.residuals).all()
            assert not seen.jacobian.any()
        else:
            assert np.isfinite(seen.residuals).all()
            assert seen.jacobian.any()


def test_a_difference_of_which_one_side_stops_is_none(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Derivatives by the centre of mass are differences of rollouts of their own."""
    motion, start, _, _ = pushed()
    times = np.linspace(0.0, 0.05, 4)
    asked = ["center_of_mass_x"], np.array([0.01]), start, times
    assert np.isfinite(motion.predict(*asked).positions).all()

    def stopping(world: World, *rest: Any, **named: Any) -> RolloutResult:
        center = world.rigid_bodies[0].contact.center_of_mass[0]
        return replace(simulate(world, *rest, **named), status="stalled" if center > 0.01 else "completed")

    monkeypatch.setattr(push_identification, "simulate", stopping)
    assert np.isposinf(motion.predict(*asked).positions).all()


def test_a_block_predicts_what_it_did() -> None:
    """The sample itself: outside of its range it is the block."""
    times = np.linspace(0.0, 0.5, 5)
    good = SlidingBlock().predict(["friction"], np.array([0.3]), block_start(), times)
    same = FlyingApart().predict(["friction"], np.array([0.3]), block_start(), times)
    assert np.array_equal(good.positions, same.positions)
