"""`morphit up` and `demo`: every argument of a job in both forms."""

from __future__ import annotations

import pytest

from morphit_ros.bringup import JOBS
from morphit_ros.cli import main

Run = tuple[str, dict[str, str]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """What was run instead of nodes."""
    found: list[Run] = []

    def run_job(name: str, words: list[str], _: str | None) -> int:
        given = dict(word.split(":=", 1) for word in words)
        JOBS[name].nodes({key: value for key, value in given.items() if key != "report"})
        found.append((name, given))
        return 1

    monkeypatch.setattr("morphit_ros.commands.up.run_job", run_job)
    return found


@pytest.mark.parametrize(
    "words",
    [
        "up grasp robot:=ur3e_hande object:=mug",
        "up grasp --robot ur3e_hande object:=mug",
        "up grasp --robot ur3e_hande --object mug",
        "up --object=mug grasp robot:=ur3e_hande",
        "up robot:=ur3e_hande grasp --object mug",
        "up grasp --robot ur3e_hande robot:=ur3e_hande --object mug",
    ],
)
def test_both_forms_say_the_same(words: str, runs: list[Run]) -> None:
    assert main(words.split()) == 1
    assert runs == [("grasp", {"robot": "ur3e_hande", "object": "mug"})]


def test_booleans_numbers_and_names_with_underscores(runs: list[Run]) -> None:
    words = "up grasp --pick --no-viewer --object-mass 0.3 --realtime_factor 2 --seed 7"
    assert main(words.split()) == 1
    given = {"pick": "true", "viewer": "false", "object_mass": "0.3", "realtime_factor": "2.0", "seed": "7"}
    assert runs == [("grasp", given)]


@pytest.mark.parametrize("job", JOBS)
def test_every_argument_is_an_option(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["up", job, "--help"])
    text = capsys.readouterr().out
    for argument in JOBS[job].arguments:
        assert f"--{argument.name.replace('_', '-')}" in text


def test_demo_takes_both_forms(runs: list[Run], tmp_path: object) -> None:
    words = ["demo", "--object", "t_block", "--output", str(tmp_path)]
    assert main([*words, "robot:=ur3e_hande"]) == 1
    assert main([*words, "--robot", "ur3e_hande"]) == 1
    assert main(["demo", "object:=t_block", f"output:={tmp_path}", "--robot", "ur3e_hande"]) == 1
    assert runs[0] == runs[1] == runs[2]
    name, given = runs[0]
    assert name == "grasp"
    assert (given["robot"], given["object"], given["viewer"], given["pick"]) == (
        "ur3e_hande",
        "t_block",
        "false",
        "true",
    )
    assert given["report"] == f"{tmp_path}/t_block.json"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("up grasp --robot panda robot:=iiwa_umi", "--robot: got panda, and robot:=iiwa_umi, expected one of them"),
        ("up grasp --object-mass 99", "object_mass"),
        ("up grasp --backend magic", "one of embedded, moveit"),
        ("demo objekt:=mug", "Did you mean 'object'"),
    ],
)
def test_mistakes_are_named(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err
