"""`morphit cover`: tables, files, exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from morphit_ros.cli import main


def test_run_writes_table_plot_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / name for name in ("run.json", "run.png", "state.json")}
    words = ["cover", "run", "3x3", "--duration", "0.2", "--noise", "both", "--json", str(files["run.json"])]
    assert main([*words, "--plot", str(files["run.png"]), "--save-state", str(files["state.json"])]) == 0
    printed = capsys.readouterr().out
    assert "9 nodes, 12 motors" in printed
    assert "noisy" in printed
    content = json.loads(files["run.json"].read_text(encoding="utf-8"))
    assert set(content["runs"]) == {"ideal", "noisy"}
    assert content["runs"]["ideal"]["greatest_gap"] < 1e-6
    assert (tmp_path / "run-ideal.png").stat().st_size > 5000
    assert main(["cover", "place", "3x3", "--output", str(tmp_path / "placed.json")]) == 0
    assert "12 motors" in capsys.readouterr().out
    run_again = ["cover", "run", "3x3", "--duration", "0.1", "--start", str(tmp_path / "placed.json")]
    assert main(run_again) == 0
    assert "9 nodes, 12 motors" in capsys.readouterr().out
    assert json.loads((tmp_path / "placed.json").read_text(encoding="utf-8"))["rows"] == 3


def test_ways_and_motors_for_a_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "run.json"
    words = ["cover", "run", "3x3", "--duration", "0.1", "--forecast-time", "0", "--json", str(report)]
    assert main([*words, "--detour", "2", "--detour-rounds", "1"]) == 0
    assert "way from 0 s on: " in capsys.readouterr().err
    (detour,) = json.loads(report.read_text(encoding="utf-8"))["detours"]
    assert len(detour["straight"]) == 4
    assert detour["tries"] >= 6
    assert main(words) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["detours"] == []
    assert main(["cover", "place", "3x3", "--course", "3", "--json", str(report)]) == 0
    assert "greatest of 4" in capsys.readouterr().out
    content = json.loads(report.read_text(encoding="utf-8"))
    assert content["greatest_condition"] >= content["condition"]


def test_torque_weighs_starts_shapes_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, placed = tmp_path / "torque.json", tmp_path / "placed.json"
    # The paper's motors don't hold it: status 1, and the worst motor is named.
    assert main(["cover", "torque", "3x3", "--json", str(report)]) == 1
    content = json.loads(report.read_text(encoding="utf-8"))
    printed = capsys.readouterr().out
    assert f"{content['worst']} most" in printed
    assert content["greatest"] == max(content["torques"])
    assert content["exceeding"] == sum(torque > content["motor_torque"] for torque in content["torques"])
    assert main(["cover", "torque", "3x3", "--motor-torque", str(1.001 * content["greatest"])]) == 0
    assert "all motors hold this shape" in capsys.readouterr().out
    words = ["cover", "place", "3x3", "--torque-weight", "1", "--output", str(placed), "--json", str(report)]
    assert main(words) == 0
    lighter = json.loads(report.read_text(encoding="utf-8"))["greatest_torque"]
    assert lighter <= content["greatest"]
    # A file of a cover is a shape like any other.
    assert main(["cover", "torque", str(placed), "--json", str(report)]) == 1
    assert json.loads(report.read_text(encoding="utf-8"))["greatest"] == pytest.approx(lighter, rel=1e-6)
    surface = ["cover", "torque", str(placed), "--surface=-2*(x**2 + y**2)", "--gravity", "0", "0", "-1"]
    assert main([*surface, "--node-mass", "0.001", "--motor-torque", "1", "--json", str(report)]) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["gravity"] == [0.0, 0.0, -1.0]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "5x5"],
        ["run", "none.yaml"],
        ["run", "placed.json"],
        ["run", "3x3", "--plot", "run.doc"],
        ["run", "3x3", "--seed", "-1"],
        ["run", "3x3", "--set", "nonsense"],
        ["run", "3x3", "--set", "rate_limit=-1"],
        ["run", "3x3", "--duration", "nan"],
        ["run", "3x3", "--data", "/nowhere"],
        ["run", "3x3", "--encoder-step", "90"],
        ["run", "3x3", "--start", "nowhere.json"],
        ["place", "5x5"],
        ["place", "3x3", "--generations", "0"],
        ["place", "3x3", "--method", "genetic", "--torque-weight", "1"],
        ["place", "3x3", "--method", "genetic", "--course", "3"],
        ["run", "3x3", "--detour", "-1"],
        ["torque", "5x5"],
        ["torque", "none.json"],
        ["torque", "3x3", "--gravity", "0", "0", "0"],
        ["torque", "3x3", "--node-mass", "-1"],
        ["torque", "3x3", "--surface", "log(x - 9)"],
    ],
)
def test_bad_input_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cover", *words]) == 2
    assert capsys.readouterr().err.startswith("morphit: ")


def test_data_is_the_folder_that_holds_cover(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "cover").mkdir(parents=True)
    start, report = tmp_path / "data" / "cover" / "3x3.json", tmp_path / "run.json"
    words = ["cover", "run", "3x3", "--duration", "0.05", "--json", str(report)]
    genetic = ["cover", "place", "3x3", "--method", "genetic", "--generations", "100", "--seed", "3"]
    assert main([*genetic, "--output", str(start), "--json", str(report)]) == 0
    published = json.loads(report.read_text(encoding="utf-8"))["labels"]
    main([*words, "--data", str(tmp_path / "data")])
    assert json.loads(report.read_text(encoding="utf-8"))["motors"] == published
    main(words)
    assert json.loads(report.read_text(encoding="utf-8"))["motors"] != published
    monkeypatch.setenv("MORPHIT_DATA", str(tmp_path / "data"))
    main([*words, "--published"])
    assert json.loads(report.read_text(encoding="utf-8"))["motors"] == published
    capsys.readouterr()
    # The part of it is not it.
    assert main([*words, "--data", str(start.parent)]) == 2
    error = capsys.readouterr().err
    assert "'cover/3x3.json' was not found" in error
    assert f"{start.parent}/cover/3x3.json" in error
    assert "the folder that holds cover/" in error


def test_an_unknown_solver_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cover", "run", "3x3", "--solver", "no_such"])
    assert "'daqp'" in capsys.readouterr().err
