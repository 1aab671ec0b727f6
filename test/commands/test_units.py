"""Files in millimetres: every command that reads a mesh or a cloud doubts them, and takes them with --unit mm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import save_point_cloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.simulation.objects import load_object
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

BRACKET = box_mesh((60.0, 40.0, 30.0))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    BRACKET.to_trimesh().export(tmp_path / "bracket.stl")
    points, normals = sample_surface(BRACKET, 3000, np.random.default_rng(0))
    save_point_cloud(PointCloud(points, normals), tmp_path / "bracket.npz")
    return {"mesh": str(tmp_path / "bracket.stl"), "cloud": str(tmp_path / "bracket.npz"), "folder": str(tmp_path)}


COMMANDS = [
    ["spheres", "fit", "{mesh}"],
    ["spheres", "compare", "{mesh}"],
    ["spheres", "view", "{mesh}"],
    ["superovoid", "fit", "{mesh}"],
    ["neural", "record", "--object", "{mesh}", "--mass", "0.1", "--output", "{folder}/r.npz"],
    ["demo", "--object", "{mesh}", "--mass", "0.1", "--output", "{folder}/demo"],
    ["grasp", "--cloud", "{cloud}", "--gripper", "franka_hand"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_a_bracket_of_60_m_is_doubted(
    words: list[str], files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(**files) for word in words]) == 2
    told = capsys.readouterr().err
    assert told.startswith("morphit: ") and told.count("\n") == 1
    for word in ("bracket", "60 m", "--unit mm"):
        assert word in told


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_an_unknown_unit_is_refused(words: list[str], files: dict[str, str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*(word.format(**files) for word in words), "--unit", "yard"])
    assert ended.value.code == 2


def test_with_its_unit_a_bracket_is_fitted_in_metres(files: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "spheres.json"
    words = ["spheres", "fit", files["mesh"], "--count", "2", "--no-cache", "--json", str(report)]
    assert main([*words, "--unit", "mm"]) == 0
    (link,) = json.loads(report.read_text(encoding="utf-8"))["links"].values()
    assert np.abs(np.array(link["centers"])).max() < 0.03
    assert 0.01 < max(link["radii"]) < 0.04
    assert main([*words, "--unit", "m"]) == 0
    (large,) = json.loads(report.read_text(encoding="utf-8"))["links"].values()
    np.testing.assert_allclose(large["radii"], 1000.0 * np.array(link["radii"]), rtol=1e-6)


def test_with_its_unit_a_cloud_is_grasped(files: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "plan.json"
    words = ["grasp", "--cloud", files["cloud"], "--gripper", "franka_hand", "--unit", "mm", "--json", str(report)]
    # Seen from all sides it shows no side to stand on.
    words += ["--up", "0", "0", "1"]
    assert main(words) == 0
    grasp = json.loads(report.read_text(encoding="utf-8"))["grasps"][0]
    assert 0.02 < grasp["aperture"] < 0.08


def test_a_unit_of_what_has_none_is_refused(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["spheres", "fit", "panda"],
        ["neural", "record", "--object", "mug", "--output", f"{files['folder']}/r.npz"],
    ):
        assert main([*words, "--unit", "mm"]) == 2
        assert "It is of mesh files" in capsys.readouterr().err


def test_demo_hands_the_unit_to_the_job(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    monkeypatch.setattr("morphit_ros.commands.up.run_job", lambda name, words, file: given.extend(words) or 1)
    words = ["demo", "--object", files["mesh"], "--mass", "0.1", "--output", f"{files['folder']}/o"]
    assert main([*words, "--unit", "mm"]) == 1
    assert f"object:={files['mesh']}" in given
    assert "object_unit:=mm" in given


@pytest.mark.usefixtures("mujoco")
def test_the_simulated_workcell_takes_the_unit(files: dict[str, str]) -> None:
    pytest.importorskip("coacd")
    assert load_object(files["mesh"], 0.1, unit="mm").mesh.extents == pytest.approx([0.06, 0.04, 0.03])
    with Workcell(WorkcellConfig(object=files["mesh"], object_mass=0.1, object_unit="mm")) as workcell:
        assert workcell.object.mesh.extents.max() == pytest.approx(0.06)
