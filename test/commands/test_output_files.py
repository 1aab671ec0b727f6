"""Files that commands write: refused before the work, each tried after it, and kept elsewhere if need be."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from morphit_ros.cli import main, make_parser
from morphit_ros.commands.output_files import ResultFiles, check_output
from morphit_ros.commands.parser import CommandParser
from morphit_ros.errors import InvalidInputError

# Command → words that it needs besides; each of its options for files gets one that cannot be written.
NEEDED = {
    "morphit up": ["grasp"],
    "morphit arm": ["home"],
    "morphit compile": [],
    "morphit demo": [],
    "morphit show": [],
    "morphit grasp": ["--cloud", "c.ply", "--gripper", "hande"],
    "morphit spheres fit": ["panda"],
    "morphit spheres view": ["panda"],
    "morphit spheres export": ["m.json", "--output", "m.urdf"],
    "morphit spheres compare": ["panda"],
    "morphit spheres library": ["build", "panda"],
    "morphit spheres front": ["panda"],
    "morphit superovoid fit": ["panda"],
    "morphit distance": ["a.yaml", "b.yaml"],
    "morphit cloth": [],
    "morphit cover run": ["3x3"],
    "morphit cover place": ["3x3"],
    "morphit cover torque": ["3x3"],
    "morphit cover view": ["3x3"],
    "morphit neural record": ["--object", "mug", "--output", "r.npz"],
    "morphit neural import": ["m.stl", "--output", "f.npz"],
    "morphit neural train": ["r.npz", "--output", "f.npz"],
    "morphit neural identify": ["t.csv"],
    "morphit neural push": [],
    "morphit contact push": [],
    "morphit contact spinner": [],
    "morphit robot init": ["panda"],
    "morphit check": [],
    "morphit record": [],
    "morphit replay": ["r.mcap"],
    "morphit calibrate record": ["rec"],
    "morphit calibrate poses": [],
    "morphit calibrate simulate": ["rec"],
    "morphit calibrate solve": ["rec"],
    "morphit sketch": [],
    "morphit sample": ["part"],
}
FILES = {"--output", "--json", "--picture", "--plot", "--save-state", "--screenshot", "--trajectory"}


def commands(parser: CommandParser) -> dict[str, CommandParser]:
    """Name → completed parser of every command that runs something."""
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found |= commands(child) or {child.prog: child.complete()}
    return found


def file_options() -> list[tuple[str, str]]:
    found = commands(make_parser())
    assert set(found) == set(NEEDED)
    return [
        (name, option)
        for name, parser in found.items()
        for option in sorted(FILES & set(parser._option_string_actions))
    ]


@pytest.mark.parametrize(("command", "option"), file_options())
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    suffix = {"--plot": ".png", "--picture": ".png", "--screenshot": ".png"}.get(option, ".urdf")
    suffix = ".stl" if command in ("morphit sample", "morphit cloth") and option == "--output" else suffix
    # None of the inputs is there: whoever works first complains of those.
    assert main([*command.split()[1:], *NEEDED[command], option, f"file/x{suffix}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"morphit: {option}: got 'file/x{suffix}'")
    assert f"which {tmp_path / 'file'} is not" in error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("name", "folder", "suffixes", "remedy"),
    [
        (".", False, (), "This is a folder"),
        ("/proc/x.json", False, (), "Choose another place"),
        ("x.doc", False, (".png", ".pdf"), ".png or .pdf"),
        ("file", True, (), "a folder that can be written"),
    ],
)
def test_check_output_says_why(
    name: str, folder: bool, suffixes: tuple[str, ...], remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match=remedy):
        check_output("--output", name, folder, suffixes)
    check_output("--output", "new/folder/x.png", False, (".png",))
    assert not (tmp_path / "new").exists()


def test_one_failure_does_not_keep_the_others_from_being_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    with pytest.raises(InvalidInputError) as caught, ResultFiles() as files:
        files.text("--output", blocked / "a.txt", "first")
        files.text("--output", blocked / "b.txt", "second")
        files.json({"third": 3}, tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text()) == {"third": 3}
    messages = [capsys.readouterr().err, str(caught.value)]
    for message, text in zip(messages, ("first", "second"), strict=True):
        assert "--output: got" in message
        kept = Path(message.rpartition("kept as ")[2].strip().rstrip("."))
        assert kept.read_text() == text


def test_a_fit_whose_file_cannot_be_written_afterwards_is_told_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from morphit_ros.spheres import robot_model

    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    robot, folder, report = tmp_path / "stick.urdf", tmp_path / "folder", tmp_path / "report.json"
    robot.write_text(
        '<robot name="stick"><link name="stick"><collision><geometry><box size="0.1 0.1 0.3"/></geometry></collision>'
        "</link></robot>"
    )
    fit_shape = robot_model.fit_shape

    def fit_and_lose_the_folder(*words: object) -> object:
        folder.write_text("no folder any more")
        return fit_shape(*words)

    monkeypatch.setattr(robot_model, "fit_shape", fit_and_lose_the_folder)
    words = ["spheres", "fit", str(robot), "--count", "3", "--output", str(folder / "out.csv"), "--json", str(report)]
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert "stick: 3 spheres on 1 links" in out
    assert err.startswith("morphit: --output: got")
    assert err.count("\n") == 1
    kept = Path(err.rpartition("kept as ")[2].strip().rstrip("."))
    assert len(kept.read_text().splitlines()) == 4
    assert json.loads(report.read_text())["count"] == 3
