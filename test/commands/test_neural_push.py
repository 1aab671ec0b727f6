"""`morphit neural push` refuses what it cannot do, before it plans anything, and tells what it is at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from morphit_ros.cli import main


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["field.npz", "--arm", "panda"], "--arm"),
        (["--size", "0.06", "0.0", "0.04"], "--size: got 0.0"),
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
    def planned(options: object) -> NoReturn:
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
