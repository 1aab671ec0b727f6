"""Which grasps are tried, and that a stopped collection goes on."""

from __future__ import annotations

import dataclasses
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_bench.picks import grasp_samples
from morphit_bench.picks.grasp_samples import (
    SAMPLES,
    TERMS,
    GraspSample,
    SampleGroup,
    SamplePlan,
    SamplingConfig,
    collect_samples,
    displaced,
    read_samples,
    sample_group,
    spread_ranks,
)
from morphit_bench.picks.trials import TrialConfig
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector, rotation_angle
from morphit_ros.grasping import Grasp
from morphit_ros.grasping.scoring.quality import ScoreWeights

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "grasp_weights.py"
PLAN = SamplePlan(("mug", "box", "bottle", "hammer"), grippers=("umi", "hande"), settings=("known",), trials=2)


def made_up(task: Any) -> SampleGroup:
    """Grasps that hold if their contacts are aligned, more or less."""
    _, name, number, gripper = task
    rng = np.random.default_rng([len(name), number, len(gripper)])
    samples = []
    for rank in range(6):
        terms = {term: float(value) for term, value in zip(TERMS, rng.uniform(0.05, 1.0, len(TERMS)), strict=True)}
        held = terms["alignment"] + 0.2 * rng.normal() > 0.5
        samples.append(
            GraspSample("known", rank, 40, 0.5, terms, "success" if held else "misgrasp", "" if held else "lift")
        )
    return SampleGroup(name, number, gripper, tuple(samples), busy=10.0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Groups are made up instead of simulated; which ones were asked for."""
    asked: list[Any] = []

    def sample(task: Any) -> SampleGroup:
        asked.append(task[1:])
        return made_up(task)

    monkeypatch.setattr(grasp_samples, "sample_group", sample)
    return asked


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 8, 11, 40, 500])
def test_ranks_are_spread_over_the_ranking_and_begin_with_the_best(count: int) -> None:
    drawn = [spread_ranks(count, 6, np.random.default_rng(seed)) for seed in range(200)]
    for ranks in drawn:
        assert len(ranks) == min(count, 6)
        assert ranks == sorted(set(ranks))
        assert not ranks or (ranks[0] == 0 and ranks[-1] < count)
    if count > 6:
        assert {ranks[1] for ranks in drawn} >= {1}
        assert max(ranks[-1] for ranks in drawn) >= 0.95 * (count - 1)
        # Half of them are in the better quarter.
        assert np.median([ranks[2] for ranks in drawn]) < max(4.0, 0.25 * count)


def test_a_killed_collection_goes_on_where_it_was(tmp_path: Path, calls: list[Any]) -> None:
    whole = collect_samples(PLAN, tmp_path / "whole")
    assert [group.key for group in whole] == PLAN.keys() == calls
    path = tmp_path / "killed" / SAMPLES
    path.parent.mkdir()
    lines = (tmp_path / "whole" / SAMPLES).read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:6]) + lines[6][:40])
    calls.clear()
    assert collect_samples(PLAN, path.parent, resume=True) == whole
    assert len(calls) == 16 - 5
    assert sorted(read_samples(path.parent, PLAN), key=lambda group: group.key) == sorted(
        whole, key=lambda group: group.key
    )


def test_a_budget_ends_the_collection_and_every_object_comes_first(tmp_path: Path, calls: list[Any]) -> None:
    groups = collect_samples(PLAN, tmp_path, budget=75.0)
    assert len(groups) == len(calls) == 8
    assert {group.object for group in groups} == set(PLAN.objects) and {group.number for group in groups} == {0}


def test_samples_are_not_overwritten_nor_mixed(tmp_path: Path, calls: list[Any]) -> None:
    collect_samples(PLAN, tmp_path)
    with pytest.raises(InvalidInputError, match="Resume"):
        collect_samples(PLAN, tmp_path)
    for change in (
        {"sampling": SamplingConfig(per_plan=3)},
        {"ranges": TrialConfig(friction=(0.2, 0.8))},
        {"settings": ("known", "observed")},
        {"weights": ScoreWeights(hold=9.0)},
    ):
        with pytest.raises(InvalidInputError, match="another output folder"):
            collect_samples(dataclasses.replace(PLAN, **change), tmp_path, resume=True)


@pytest.mark.parametrize("change", [{"objects": ()}, {"grippers": ()}, {"settings": ("seen",)}, {"trials": 0}])
def test_impossible_plans_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        dataclasses.replace(PLAN, **change)


def test_an_arm_that_errs_is_off_by_what_was_asked_for_approach_included() -> None:
    pose = make_transform(matrix_from_rotation_vector([2.0, 0.5, -0.3]), [0.4, 0.1, 0.2])
    back = make_transform(translation=[0.0, 0.0, -0.1])
    grasp = Grasp(pose, pose @ back, 0.03, 0.05, 0.5, {}, np.empty((0, 3)), np.empty(0, dtype=np.int64))
    exact = displaced(grasp, SamplingConfig(position_error=0.0, angle_error=0.0), np.random.default_rng(0))
    assert np.allclose(exact.T_world_gripper, pose) and np.allclose(exact.T_world_pregrasp, pose @ back)
    config = SamplingConfig(position_error=0.004, angle_error=5.0)
    moved = [displaced(grasp, config, np.random.default_rng(seed)) for seed in range(2000)]
    for one in moved[:5]:
        assert np.allclose(one.T_world_pregrasp, one.T_world_gripper @ back)
    offsets = np.array([one.T_world_gripper[:3, 3] - pose[:3, 3] for one in moved])
    angles = np.array([rotation_angle(pose[:3, :3].T @ one.T_world_gripper[:3, :3]) for one in moved])
    assert np.allclose(offsets.std(axis=0), 0.004, rtol=0.1)
    assert np.sqrt((angles**2).mean() / 3.0) == pytest.approx(np.radians(5.0), rel=0.05)


@pytest.mark.slow
def test_good_and_poor_grasps_are_really_executed() -> None:
    plan = SamplePlan(("t_block",), ("franka_hand",), ("known",), 1, SamplingConfig(per_plan=3))
    group = sample_group((plan, "t_block", 0, "franka_hand"))
    assert [sample.rank for sample in group.samples] == sorted(sample.rank for sample in group.samples)
    assert len(group.samples) == 3 and group.samples[0].rank == 0
    assert group.samples[-1].rank > 5
    scores = [sample.score for sample in group.samples]
    assert scores == sorted(scores, reverse=True) and scores[-1] < scores[0] - 0.05
    assert group.samples[0].success
    for sample in group.samples:
        assert set(sample.terms) == set(TERMS) and all(0.0 <= value <= 1.0 for value in sample.terms.values())
    assert dataclasses.replace(sample_group((plan, "t_block", 0, "franka_hand")), busy=group.busy) == group
    # Where only the approach counts, the best grasp comes straight down.
    weights = ScoreWeights(**(dict.fromkeys(TERMS, 0.0) | {"approach": 1.0}))
    other = dataclasses.replace(plan, weights=weights, sampling=SamplingConfig(per_plan=1))
    (best,) = sample_group((other, "t_block", 0, "franka_hand")).samples
    assert best.rank == 0 and best.score == pytest.approx(best.terms["approach"])
    assert best.terms["approach"] >= max(sample.terms["approach"] for sample in group.samples) - 1e-9


def test_the_command_collects_fits_and_says_which_half_is_which(
    tmp_path: Path, calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(SCRIPT))["main"]
    words = ["collect", "--output", str(tmp_path), "--objects", *PLAN.objects, "--setting", "known", "--trials", "3"]
    assert main(words) == 0
    assert main(words) == 2
    assert "Resume" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0
    assert main(["fit", "--output", str(tmp_path), "--json", str(tmp_path / "fit.json")]) == 0
    document = json.loads((tmp_path / "fit.json").read_text())
    fit = document["tuned_on_first_half"]
    assert fit["tuned_on"] == ["bottle", "hammer"] and fit["judged_on"] == ["box", "mug"]
    assert document["other_way_round"]["tuned_on"] == ["box", "mug"]
    assert sum(fit["weights"]) == pytest.approx(1.0) and min(fit["weights"]) >= 0.0
    # What decides here gets more weight than it had.
    place = document["terms"].index("alignment")
    assert fit["weights"][place] > document["hand_set"][place] + 0.2
    assert sum(fit["score_weights"].values()) == pytest.approx(17.5, abs=0.06)
    assert fit["judgement"]["measures"]["tuned"]["auc"]["value"] > 0.8
    assert fit["not_worse"] is True
    assert main(["fit", "--output", str(tmp_path / "empty")]) == 2
    # Ranked with the tuned weights; what is executed is made up all the same.
    other = ["--output", str(tmp_path / "other"), "--weights", str(tmp_path / "fit.json")]
    assert main([*words[:1], *other, *words[3:]]) == 0
    header = json.loads((tmp_path / "other" / SAMPLES).read_text().splitlines()[0])
    assert header["batch"]["weights"] == fit["score_weights"]
    capsys.readouterr()
    assert main(["compare", "--output", str(tmp_path), "--other", str(tmp_path / "other")]) == 0
    assert "only the first held in 0, only the other in 0" in capsys.readouterr().out
    assert main([*words[:1], "--output", str(tmp_path / "new"), "--weights", str(tmp_path / SAMPLES), *words[3:]]) == 2
    assert "a result of fit" in capsys.readouterr().err
