"""`morphit spheres library`: robots by name, models built, kept, gone on with, and taken by other commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from batch_samples import cluster

from morphit_ros.cli import main, make_parser
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.resources import resource
from morphit_ros.robot import example_robots
from morphit_ros.spheres import read_model
from morphit_ros.spheres.cover.certificate import certify_cover
from morphit_ros.spheres.library import library_entries, library_file, library_model

BOX = '<collision><geometry><box size="0.2 0.1 0.1"/></geometry></collision>'
ARM = f"""<robot name="little_arm"><link name="base">{BOX}</link><link name="tip">{BOX}</link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="tip"/><origin xyz="0 0 0.5"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""
GHOST = '<robot name="ghost"><link name="nothing"/></robot>'


@pytest.fixture(autouse=True)
def robots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An example-robot-data of its own."""
    root = tmp_path / "packages" / "example-robot-data" / "robots"
    for file, text in {
        "little_description/urdf/little_arm.urdf": ARM,
        "ghost_description/ghost.urdf": GHOST,
        "half_description/half.v1.lowerBody.urdf": ARM,
        "one_description/twin.urdf": ARM,
        "other_description/twin.urdf": GHOST,
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MORPHIT_PACKAGE_PATH", str(tmp_path / "packages"))
    return root


def library(*words: str) -> int:
    return main(["spheres", "library", *words])


def build(*words: str) -> int:
    return library("build", *words, "--count", "8")


def test_robots_are_named_after_their_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(example_robots.example_robots()) == [
        "ghost",
        "half.v1.lowerBody",
        "little_arm",
        "one-twin",
        "other-twin",
    ]
    assert library() == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"panda", "little_arm", "one-twin"} <= set(lines)
    own = len(list(resource("config/robots").glob("*.yaml")))
    assert lines[-1].startswith(f"0 of {5 + own} are built")


def test_models_are_built_proven_measured_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build("little_arm", "--json", "result.json") == 0
    result = json.loads(Path("result.json").read_text())["little_arm"]
    assert (result["links"], result["spheres"], result["proven"]) == (2, 12, 2)
    model = library_model("little_arm")
    assert model is not None and model.robot_name == "little_arm"
    # Proven indeed: asked again, of the same box.
    for spheres in model.links.values():
        assert certify_cover(box_mesh((0.2, 0.1, 0.1)), spheres.centers, spheres.radii).covered
    file = library_file("little_arm")
    assert file is not None
    metrics = json.loads(file.read_text())["links"]["tip"]["metrics"]
    assert metrics["inside"] == pytest.approx(1.0, abs=0.02)
    assert 0.0 < metrics["d_avg"] < metrics["d_max"] < 0.1
    table = (file.parent / "README.md").read_text()
    assert "| little_arm | 2 | 12 | 2 of 2 |" in table
    assert json.loads((file.parent / "index.json").read_text()) == library_entries()
    capsys.readouterr()
    assert library("list", "little_arm") == 0
    assert "12 spheres on 2 links, 2 proven" in capsys.readouterr().out


def test_what_is_built_is_not_built_again(monkeypatch: pytest.MonkeyPatch, robots: Path) -> None:
    from morphit_ros.spheres import library as module

    fitted = []
    fit = module.fit_robot_spheres
    monkeypatch.setattr(module, "fit_robot_spheres", lambda *words, **named: fitted.append(1) or fit(*words, **named))
    assert build("little_arm") == 0
    assert build("little_arm") == 0
    assert len(fitted) == 1
    # Another number, and another robot of the same name, are.
    assert library("build", "little_arm", "--count", "6") == 0
    (robots / "little_description/urdf/little_arm.urdf").write_text(ARM.replace("0.2 0.1", "0.3 0.1"))
    assert library("build", "little_arm", "--count", "6") == 0
    assert len(fitted) == 3


@pytest.mark.parametrize("engine", ["processes", "scheduler"])
def test_robots_are_built_alike_whoever_builds_them(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")

    def built(folder: str, *words: str) -> dict[str, dict[str, object]]:
        monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / folder))
        assert build("little_arm", "ghost", "half.v1.lowerBody", "--json", "result.json", *words) == 1
        result: dict[str, dict[str, object]] = json.loads(Path("result.json").read_text())
        assert list(result) == ["little_arm", "ghost", "half.v1.lowerBody"]
        assert "no collision geometry" in str(result["ghost"]["error"])
        assert library_entries() == {name: entry for name, entry in result.items() if name != "ghost"}
        return {name: {key: entry[key] for key in entry if key != "seconds"} for name, entry in result.items()}

    if engine == "processes":
        others = built("others", "--workers", "2")
    else:
        # Where the workers are, a cache of their own: models come home. With a single worker joblib would work here.
        monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "there"))
        with cluster(tmp_path, "--nworkers", "1", "--nthreads", "1") as address:
            others = built("others", "--scheduler", address)
            # What was built needs no worker, and what could not be is tried again.
            assert built("others", "--scheduler", address) == others
        assert not (tmp_path / "there" / "library").exists()
    assert built("here") == others
    assert "not built: " in capsys.readouterr().out


def test_a_robot_that_cannot_be_built_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert build("ghost", "little_arm") == 1
    printed = capsys.readouterr().out
    assert "ghost       not built: " in printed
    assert "no collision geometry" in printed
    assert list(library_entries()) == ["little_arm"]


def test_without_cover_nothing_is_claimed() -> None:
    assert build("little_arm", "--no-cover") == 0
    assert library_entries()["little_arm"]["proven"] == 0


def test_unknown_robots_and_how_to_get_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build("no_such_robot") == 2
    assert "morphit spheres library lists all" in capsys.readouterr().err
    monkeypatch.setattr(example_robots, "package_folders", lambda _: iter(()))
    assert build("no_such_robot") == 2
    assert "pip install 'example-robot-data>=" in capsys.readouterr().err
    assert library() == 0
    captured = capsys.readouterr()
    assert "little_arm" not in captured.out
    assert "pip install 'example-robot-data>=" in captured.err


def test_other_commands_take_the_names() -> None:
    assert main(["spheres", "fit", "little_arm", "--count", "4", "--output", "own.json"]) == 0
    assert read_model("own.json").robot_name == "little_arm"
    assert main(["spheres", "fit", "half.v1.lowerBody", "--count", "4", "--output", "own.json"]) == 0
    assert main(["spheres", "export", "little_arm", "--output", "out.urdf"]) == 2
    assert build("little_arm") == 0
    assert main(["spheres", "export", "little_arm", "--output", "out.urdf"]) == 0
    assert Path("out.urdf").read_text().count("<sphere") == 12


def test_the_editor_begins_with_the_library_unless_a_fit_is_asked_for() -> None:
    pytest.importorskip("viser")
    from morphit_ros.commands.spheres_view import make_editor

    assert build("little_arm") == 0
    for words, count in (([], 6), (["--count", "5"], 5)):
        with make_editor(make_parser().parse_args(["spheres", "view", "little_arm", "--port", "0", *words])) as editor:
            assert len(editor.model["tip"]) == count
