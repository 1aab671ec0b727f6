from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_bench.picks import runs
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.runs import BenchmarkPlan, TrialRecord, read_records, run_benchmark
from morphit_bench.picks.trials import TrialConfig, draw_trial
from morphit_bench.picks.views import EYES
from morphit_ros.batch import BatchConfig
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.simulation.rendering import available_backend

PLAN = BenchmarkPlan(
    objects=("box", "mug"), planners=("morphit", "disf"), settings=("known",), trials=3, robot="", gripper="franka_hand"
)


def made_up(plan: BenchmarkPlan, name: str, number: int, planner: str, setting: str) -> TrialRecord:
    trial = draw_trial(name, number, plan.ranges)
    success = trial.seed % 2 == 0
    result = PickResult(Outcome.SUCCESS if success else Outcome.MISGRASP, offset=0.01 if success else math.nan)
    again = None if success else PickResult(Outcome.SUCCESS, T_world_gripper=np.eye(4).tolist())
    return TrialRecord(trial, planner, setting, 0.2, result, again)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Records are made up instead of simulated; which ones were asked for."""
    asked: list[tuple[Any, ...]] = []

    def run_group(group: Any) -> list[TrialRecord]:
        plan, name, number, combinations = group
        asked.extend((name, number, *combination) for combination in combinations)
        return [made_up(plan, name, number, *combination) for combination in combinations]

    monkeypatch.setattr(runs, "run_group", run_group)
    return asked


def test_everything_is_run_once_and_comes_back_in_order(tmp_path: Path, calls: list[Any]) -> None:
    seen: list[int] = []
    records = run_benchmark(PLAN, tmp_path, progress=lambda record, done, total: seen.append(done * 100 + total))
    assert len(calls) == len(set(calls)) == len(records) == 12
    assert [record.key[:2] for record in records[::2]] == [(name, k) for name in ("box", "mug") for k in range(3)]
    assert seen == [100 * (k + 1) + 12 for k in range(12)]


def test_records_survive_the_file(tmp_path: Path, calls: list[Any]) -> None:
    written = {record.key: record for record in run_benchmark(PLAN, tmp_path)}
    for record in read_records(tmp_path, PLAN):
        assert json.dumps(record.to_json()) == json.dumps(written[record.key].to_json())
        assert record.success == written[record.key].success


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, calls: list[Any]) -> None:
    whole = run_benchmark(PLAN, tmp_path / "whole")
    path = tmp_path / "killed" / runs.RECORDS
    path.parent.mkdir()
    lines = (tmp_path / "whole" / runs.RECORDS).read_text().splitlines(keepends=True)
    # The header, two trials of two planners each, and a third that was being written.
    path.write_text("".join(lines[:3]) + lines[3][:40])
    calls.clear()
    again = run_benchmark(PLAN, path.parent, resume=True)
    assert len(calls) == 12 - 4
    assert [record.to_json() for record in again] == [record.to_json() for record in whole]
    assert len(read_records(path.parent)) == 12
    calls.clear()
    run_benchmark(PLAN, path.parent, resume=True)
    assert calls == []


def test_a_longer_plan_adds_only_what_is_new(tmp_path: Path, calls: list[Any]) -> None:
    run_benchmark(PLAN, tmp_path)
    calls.clear()
    longer = dataclasses.replace(PLAN, trials=4, planners=("morphit", "disf", "visf"))
    assert len(run_benchmark(longer, tmp_path, resume=True)) == 24
    assert len(calls) == 12


def test_trials_of_later_numbers_join_those_before(tmp_path: Path, calls: list[Any]) -> None:
    run_benchmark(PLAN, tmp_path)
    calls.clear()
    later = run_benchmark(dataclasses.replace(PLAN, first=2, trials=2), tmp_path, resume=True)
    assert sorted({record.trial.number for record in later}) == [2, 3]
    assert {call[1] for call in calls} == {3}


def test_trials_are_seen_by_the_cameras_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    class Built(Exception):
        pass

    def workcell(config: Any, *others: Any) -> None:
        raise Built(config)

    monkeypatch.setattr(runs, "Workcell", workcell)
    for name, eyes in EYES.items():
        plan = dataclasses.replace(PLAN, cameras=eyes)
        with pytest.raises(Built) as built:
            runs.run_group((plan, "t_block", 0, [("morphit", "known")]))
        config = built.value.args[0]
        names = ("left", "right", "third", "fourth")
        positions = tuple(getattr(config, f"{camera}_camera_position") for camera in names)
        assert tuple(filter(None, positions)) == eyes, name


def test_results_are_not_overwritten_nor_mixed(tmp_path: Path, calls: list[Any]) -> None:
    run_benchmark(PLAN, tmp_path)
    with pytest.raises(InvalidInputError, match="Resume"):
        run_benchmark(PLAN, tmp_path)
    for other in (
        dataclasses.replace(PLAN, gripper="hande"),
        dataclasses.replace(PLAN, gripper="", robot="panda"),
        dataclasses.replace(PLAN, ranges=TrialConfig(friction=(0.2, 0.8))),
        dataclasses.replace(PLAN, cameras=EYES["three"]),
    ):
        with pytest.raises(InvalidInputError, match="another output folder"):
            run_benchmark(other, tmp_path, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"planners": ("guess",)},
        {"settings": ("seen",)},
        {"trials": 0},
        {"first": -1},
        {"objects": ()},
        {"robot": "panda"},
        {"gripper": ""},
    ],
)
def test_impossible_plans_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        dataclasses.replace(PLAN, **change)


def test_an_unknown_object_ends_the_run_with_its_name(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, objects=("teapot",), planners=("morphit",), trials=1)
    with pytest.raises(ResourceNotFoundError, match="teapot"):
        run_benchmark(plan, tmp_path)


@pytest.mark.slow
def test_a_real_run_gives_the_same_results_twice(tmp_path: Path) -> None:
    settings = ("known", "observed") if available_backend() else ("known",)
    plan = BenchmarkPlan(("bottle", "t_block"), settings=settings, trials=1, robot="", gripper="franka_hand")
    pytest.importorskip("joblib")
    records = run_benchmark(plan, tmp_path / "first", BatchConfig(workers=2))
    assert [record.trial.object for record in records] == [name for name in plan.objects for _ in settings]
    # Not every observed shape is picked up: how many are is the benchmark's question, not this test's.
    picked = [record for record in records if record.setting == "known" or record.result.success]
    assert len({record.trial.object for record in picked}) == 2
    for record in picked:
        assert record.result.kind is Outcome.SUCCESS, record.result.message
        assert record.result.executed and record.result.stage == ""
        assert record.result.offset < 0.06 and record.result.turn < np.radians(15.0)
        assert record.result.rise == pytest.approx(0.2, abs=0.06)
        assert record.mass == pytest.approx(runs.load_object(record.trial.object).mass * record.trial.mass_factor)
        assert record.out_of_reach == ""
    # The second object alone, in a folder of its own and in this process: nothing of the first one is left over.
    alone = run_benchmark(dataclasses.replace(plan, objects=("t_block",), settings=("known",)), tmp_path / "second")
    (first,) = [record for record in records if record.trial.object == "t_block" and record.setting == "known"]
    for field in ("kind", "offset", "turn", "T_world_gripper"):
        assert getattr(alone[0].result, field) == getattr(first.result, field)


def test_what_cannot_be_grasped_is_a_failure_that_says_so(tmp_path: Path) -> None:
    """The tea box lies on its largest face, 90 mm wide."""
    number = next(k for k in range(50) if draw_trial("box", k).resting < 0.1)
    group = (BenchmarkPlan(("box",), robot="", gripper="hande"), "box", number, [("morphit", "known")])
    (record,) = runs.run_group(group)
    assert record.result.kind is Outcome.NO_PLAN and not record.success
    assert "too wide" in record.out_of_reach
    assert record.result.message
