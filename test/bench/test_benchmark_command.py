"""The command line of benchmarks/grasp_success.py."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_bench.picks import runs
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.runs import TrialRecord
from morphit_bench.picks.trials import draw_trial
from morphit_ros.simulation.rendering import available_backend
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "grasp_success.py"


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    def run_group(group: Any) -> list[TrialRecord]:
        plan, name, number, combinations = group
        trial = draw_trial(name, number, plan.ranges)
        return [TrialRecord(trial, *combination, 0.2, PickResult(Outcome.SUCCESS)) for combination in combinations]

    monkeypatch.setattr(runs, "run_group", run_group)
    found: Callable[[list[str]], int] = runpy.run_path(str(SCRIPT))["main"]
    return found


def test_writes_table_and_summary(main: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        "--output",
        str(tmp_path),
        "--json",
        str(tmp_path / "other.json"),
        "--markdown",
        str(tmp_path / "other.md"),
    ]
    words = ["--robot", "flying", "--gripper", "umi", "--objects", "mug", "box", "--trials", "2", "--workers", "1"]
    assert main([*words, *files]) == 0
    document = json.loads((tmp_path / "summary.json").read_text())
    assert document == json.loads((tmp_path / "other.json").read_text())
    assert document["summary"]["morphit/known"]["all"]["trials"] == 4
    assert (tmp_path / "table.md").read_text() == (tmp_path / "other.md").read_text()
    assert "| box | 2/2 | 2/2 |" in capsys.readouterr().out
    # Again without --resume is refused, with it nothing is left to do.
    assert main([*words, *files]) == 2
    assert main([*words, *files, "--resume"]) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--robot", "panda", "--gripper", "hande"], "franka_hand"),
        (["--planner", "guess"], "morphit"),
        (["--trials", "0"], "at least one"),
        (["--friction", "0.0", "0.8"], "friction"),
        (["--robot", "flying", "--friction", "nan", "0.8"], "friction"),
        (["--workers", "0"], "--workers: got 0, expected in [1, 1024]"),
        (["--scheduler", "cluster"], "--scheduler: got 'cluster', expected tcp://HOST:PORT"),
        (["--scheduler", "tcp://127.0.0.1:1", "--pictures"], "pictures: got"),
    ],
)
def test_bad_options_end_with_2_and_say_why(
    main: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["--objects", "mug", "--output", str(tmp_path), *words]) == 2
    assert told in capsys.readouterr().err


def test_mesh_files_are_picked_with_their_masses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trimesh = pytest.importorskip("trimesh")
    files = [str(tmp_path / name) for name in ("bar.stl", "block.stl")]
    for file, width in zip(files, (0.02, 0.04), strict=True):
        trimesh.creation.box((0.08, width, 0.05)).export(file)
    masses: dict[str, float] = {}

    def run_one(plan: Any, job: Any, workcell: Workcell, trial: Any, planner: str, setting: str) -> TrialRecord:
        masses[trial.object] = workcell.object.mass / trial.mass_factor
        return TrialRecord(trial, planner, setting, workcell.object.mass, PickResult(Outcome.SUCCESS))

    monkeypatch.setattr(runs, "_run_one", run_one)
    words = ["--robot", "flying", "--setting", "known", "--trials", "1", "--workers", "1", "--output", str(tmp_path)]
    main = runpy.run_path(str(SCRIPT))["main"]
    assert main([*words, "--objects", files[0], "mug", files[1], "--mass", "0.9", "0.3"]) == 0
    assert masses[files[0]] == pytest.approx(0.9) and masses[files[1]] == pytest.approx(0.3)
    # Another mass makes other results.
    assert main([*words, "--objects", *files, "--mass", "0.9", "0.4", "--resume"]) == 2
    for wrong in (
        ["--objects", files[0]],
        ["--objects", "mug", "--mass", "1"],
        ["--objects", files[0], "--mass", "-1"],
    ):
        capsys.readouterr()
        assert main([*words, *wrong]) == 2
        assert "mass" in capsys.readouterr().err


@pytest.mark.skipif(available_backend() is None, reason="nothing on this machine can render")
def test_a_picture_of_an_earlier_moment_shows_that_moment() -> None:
    with Workcell(WorkcellConfig(object="t_block")) as workcell:
        before = workcell.configuration()
        then = workcell.picture(320, 240, "overview")
        workcell.command_gripper(0.0)
        workcell.step(1.0)
        now = workcell.picture(320, 240, "overview")
        assert not np.array_equal(now, then)
        assert np.array_equal(workcell.picture(320, 240, "overview", before), then)
        assert np.array_equal(workcell.picture(320, 240, "overview"), now)
