"""`morphit sample`: what it writes is small, the same each time, and what the README's commands work on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.point_cloud_io import load_point_cloud
from morphit_ros.neural.views.recording import load_recording
from morphit_ros.simulation.rendering import available_backend


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_grasp_is_planned_on_the_cup(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", "cup"]) == 0
    assert "morphit grasp --cloud cup.ply" in capsys.readouterr().out
    cloud = load_point_cloud("cup.ply")
    assert 2000 < len(cloud) < 6000
    assert np.ptp(cloud.points, axis=0) == pytest.approx([0.042, 0.042, 0.07], abs=0.003)
    # Seen from outside and above: of the far wall the inner side, and nothing of the foot's underside.
    assert cloud.points[:, 2].min() > -0.001
    radii = np.hypot(*cloud.points[:, :2].T)
    near_rim = (cloud.points[:, 2] > 0.055) & (cloud.points[:, 2] < 0.06)
    assert ((radii < 0.0187) & near_rim).sum() > 50
    assert ((radii > 0.0195) & near_rim).sum() > 50
    assert radii[cloud.points[:, 2] < 0.002].min() > 0.014
    assert main(["sample", "cup", "--output", "again.ply"]) == 0
    np.testing.assert_array_equal(load_point_cloud("again.ply").points, cloud.points)
    assert main(["grasp", "--cloud", "cup.ply", "--gripper", "hande", "--picture", "g.png", "--json", "g.json"]) == 0
    assert (folder / "g.png").read_bytes().startswith(b"\x89PNG")
    best = json.loads((folder / "g.json").read_text())["grasps"][0]
    assert 0.03 < best["aperture"] < 0.045


def test_spheres_are_fitted_to_the_part(folder: Path) -> None:
    assert main(["sample", "part"]) == 0
    mesh = load_mesh("part.stl")
    # The area of its section times its depth: closed, and turned outwards.
    assert mesh.volume == pytest.approx((60 * 5 + 35 * 5 + 15 * 15 / 2) * 40 * 1e-9, rel=1e-5)
    assert mesh.extents == pytest.approx([0.06, 0.04, 0.04])
    assert main(["spheres", "fit", "part.stl", "--count", "8", "--json", "fit.json"]) == 0
    assert json.loads((folder / "fit.json").read_text())["links"]["part"]["d_max"] < 0.02


@pytest.mark.skipif(available_backend() is None, reason="nothing on this machine can render")
def test_a_field_is_learned_from_the_recording(folder: Path) -> None:
    assert main(["sample", "recording"]) == 0
    recording = load_recording("t.npz")
    assert recording.images is not None and recording.depths is not None and recording.truth is not None
    words = "neural train t.npz --from depth --mass 0.2 --output field.npz --resolution 40 --json report.json"
    assert main(words.split()) == 0
    report = json.loads((folder / "report.json").read_text())
    assert report["intersection_over_union"] > 0.85
    assert report["center_error_of_size"] < 0.01


def test_list_and_unknown_names(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["sample", "--list"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["cup", "cup.ply"], ["part", "part.stl"], ["recording", "t.npz"],
    ]  # fmt: skip
    for words in (["sample"], ["sample", "teapot"]):
        assert main(words) == 2
        assert "one of cup, part, recording" in capsys.readouterr().err
    assert main(["sample", "part", "--output", "part.obj"]) == 2
    assert ".stl" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
