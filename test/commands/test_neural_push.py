"""`morphit neural push` refuses what it cannot do, before it plans anything, and tells what it is at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_failure import explain_failure
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
from morphit_ros.neural.trajectory_optimization.pusher_start import place_pusher


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["field.npz", "--arm", "panda"], "--arm"),
        (["--size", "0.06", "0.0", "0.04"], "--size: got 0.06 0 0.04"),
        (["--mass", "-1"], "--mass: got -1"),
        (["--duration", "0"], "--duration: got 0"),
        (["--iterations", "0"], "--iterations: got 0"),
        (["no_such_field.npz"], "no_such_field.npz"),
        (["--arm", "pandda"], "There are: iiwa_umi, panda"),
        (["--friction", "2.5"], "--friction: got 2.5, expected 0 to 2"),
        (["--friction", "0.01", "--arm", "panda"], "expected 0.05 to 2"),
        (["--goal", "5", "5"], "Choose a nearer goal or a longer --duration"),
        (["--goal", "nan", "0"], "--goal: got nan 0"),
        (["--goal", "0", "0"], "0.001 m or more"),
        # v = 0.01 g 2.4 s at most, and half of that for 2.4 s.
        (["--friction", "0.01", "--goal", "1", "0"], "at most 0.283 m"),
        (["--goal", "0.6", "0", "--arm", "panda"], "panda can push"),
        (["--picture", "."], "--picture"),
        (["--json", "."], "--json"),
    ],
)
def test_bad_options_are_named_before_any_planning(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(*_: object) -> NoReturn:
        pytest.fail("it goes on to plan")

    monkeypatch.setattr("morphit_ros.commands.neural_push._planned", planned)
    assert main(["neural", "push", *words]) == 2
    assert named in capsys.readouterr().err


def test_stages_are_told_and_iterations_bound_the_optimiser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "push.json"
    main(["neural", "push", "--goal", "0.05", "0", "--duration", "0.8", "--iterations", "10", "--json", str(report)])
    told = capsys.readouterr().err
    stages = ("object: box", "resting pose", "planning", "planning, step 10: cost")
    places = [told.find(f"morphit: {stage}") for stage in stages]
    assert places[0] >= 0
    assert places == sorted(places)
    assert "mm from the goal" in told
    assert json.loads(report.read_text(encoding="utf-8"))["iterations"] == 10


def bottle_points() -> np.ndarray:
    """(N, 3) a standing cylinder about its centre, 6 cm wide and 20 cm tall."""
    turns = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    ring = np.column_stack([0.03 * np.cos(turns), 0.03 * np.sin(turns)])
    return np.vstack([np.column_stack([ring, np.full(40, z)]) for z in np.linspace(-0.1, 0.1, 41)])


def test_tall_objects_are_pushed_low_and_flat_ones_at_the_middle() -> None:
    start = BodyState([0.0, 0.0, 0.1])
    pusher = place_pusher(start, bottle_points(), np.array([0.15, 0.03]), 0.02, 0.3)
    # Slowly pushed it tips above 0.03 / 0.3 = 0.1 m: far below that.
    assert pusher[2] == pytest.approx(0.025, abs=2e-3)
    assert np.linalg.norm(pusher[:2]) == pytest.approx(0.03 + 0.03, abs=1e-3)
    assert pusher[0] < 0.0
    assert place_pusher(start, bottle_points(), np.array([0.15, 0.03]), 0.02, 0.0)[2] == pytest.approx(0.1)
    flat = bottle_points() * [1.0, 1.0, 0.1]
    assert place_pusher(BodyState([0.0, 0.0, 0.01]), flat, np.array([0.15, 0.0]), 0.005, 0.3)[2] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("moved", "tilt", "named"),
    [
        ((0.05, 0.0), 1.5, "tips by 86 degrees, past 29 after 1.00 s"),
        ((0.001, 0.0), 0.0, "hardly moves the object"),
        ((0.08, 0.05), 0.0, "ends 86 mm from the goal, lying as before"),
        ((0.149, 0.0), 0.0, "1.0 mm from the goal, but it comes no nearer (the optimiser: violated)"),
    ],
)
def test_failed_plans_say_what_happens(moved: tuple[float, float], tilt: float, named: str) -> None:
    states = np.zeros((3, 2, 13))
    states[:, :, 6] = 1.0
    states[1:, 0, :2] = moved
    states[1:, 0, 3], states[1:, 0, 6] = np.sin(0.5 * tilt), np.cos(0.5 * tilt)
    plan = PushPlan(
        TrajectoryStatus.INFEASIBLE, "violated", PushConfig(), np.array([0.15, 0.0, 0.0]), np.arange(3.0), states,
        np.zeros((2, 3)), np.zeros((2, 3, 24)), 1.0, 1.0, 1, 1.0, np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3),
    )  # fmt: skip
    assert named in explain_failure(plan)
