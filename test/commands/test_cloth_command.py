"""morphit cloth: files, figures, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from morphit_ros.cli import main, make_parser
from morphit_ros.cloth import Cloth, ClothConfig, drawn_shapes, load_shapes
from morphit_ros.commands.cloth import make_editor
from morphit_ros.geometry.height_map import load_height_map
from morphit_ros.geometry.mesh_io import load_mesh

SMALL = ["cloth", "--rows", "20", "--cols", "20", "--count", "3", "--steps", "40", "--seed", "1"]


def test_all_files_are_written_and_shapes_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ["--output", "c.ply", "--height-map", "c.npz", "--picture", "c.png", "--save-shapes", "s.yaml"]
    assert main([*SMALL, *files, "--json", "r.json", "--textures"]) == 0
    assert "20 x 20 nodes over 3 shapes" in capsys.readouterr().out
    report = json.loads(Path("r.json").read_text())
    assert report["nearest"] > 0.0
    assert report["cloth"]["rows"] == 20
    assert load_mesh("c.ply").faces.shape == (722, 3)
    assert load_height_map("c.npz").spacing == 0.005
    assert Path("c.png").stat().st_size > 10_000
    assert load_shapes("s.yaml") == pytest.approx(load_shapes("s.yaml"))
    assert (
        main([*SMALL, "--shapes", "s.yaml", "--solid", "--output", "c.stl", "--contact", "exact", "--json", "-"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["led_out"] == 0
    assert load_mesh("c.stl").volume > 0.0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rows", "1"], "--rows: got 1"), (["--pitch", "0"], "--pitch: got 0"),
        (["--contact", "soft"], "--contact: got 'soft'"), (["--set", "gap=0"], "--set gap: got 0"),
        (["--set", "gap=nan"], "gap"), (["--steps", "-1"], "--steps: got -1"), (["--count", "61"], "--count: got 61"),
        (["--shapes", "gone.yaml"], "gone.yaml"), (["--output", "c.dae"], "--output: got 'c.dae'"),
        (["--height-map", "c.tif"], "--height-map: got 'c.tif'"), (["--depth", "nan"], "--depth: got nan"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_by_name(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, *words]) == 2
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_page_keeps_the_shapes_of_the_command_line_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("viser")
    monkeypatch.chdir(tmp_path)
    options = make_parser().parse_args([*SMALL, "--view", "--port", "0"])
    with make_editor(options, Cloth(drawn_shapes(2, 0.2), ClothConfig(rows=10, cols=10))) as editor:
        editor.add()
    assert len(load_shapes("cloth_shapes.yaml")) == 3
