"""`morphit neural record` and `train`: from pictures to a field and its figures, and what happens to bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "neural"))

from ball_views import BALL_CENTER, BALL_RADIUS, ball_depths, ball_images

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.archive import read_archive, write_archive
from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.fields.grid import GridField, grid_nodes
from morphit_ros.neural.learning import depth as depth_module, images as images_module
from morphit_ros.neural.learning.field_file import load_field, load_learned_field, save_field
from morphit_ros.neural.learning.result import LearningResult, LearningStatus
from morphit_ros.neural.solid import threshold_choice
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.silhouette_hull import HullThreshold
from morphit_ros.neural.solid.silhouettes import silhouette_threshold
from morphit_ros.neural.solid.thresholds import likelihood_threshold, two_level_threshold
from morphit_ros.neural.views.depth_samples import free_and_occupied
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
from morphit_ros.neural.views.recording import Recording, load_recording, save_recording

VIEWS = 9


@pytest.fixture(scope="module")
def ball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a ball, drawn by formula, with its true shape."""
    path = tmp_path_factory.mktemp("neural") / "ball.npz"
    truth = sphere_mesh(BALL_RADIUS).transformed(make_transform(translation=BALL_CENTER))
    save_recording(Recording(ball_images(VIEWS), ball_depths(VIEWS), truth, "a ball"), path)
    return path


def test_colours_become_a_field_a_report_and_a_picture(
    ball: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["neural", "train", str(ball), "--output", str(tmp_path / "field.npz"), "--iterations", "50"]
    words += ["--resolution", "24", "--json", str(tmp_path / "report.json"), "--picture", str(tmp_path / "field.png")]
    assert main(words) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    told, steps = capsys.readouterr()
    # What takes time after learning is said, and counted.
    assert f"measuring the solid ...\ndrawing {tmp_path / 'field.png'} ..." in steps
    assert report["total_seconds"] > report["seconds"] > 0.0
    assert f"{report['seconds']:.1f} s" in told
    assert f"with all else {report['total_seconds']:.1f} s" in told
    field = load_field(tmp_path / "field.npz")
    assert isinstance(field, GridField)
    assert field.density(BALL_CENTER[None])[0] > 0.9
    assert report["recording"] == "a ball"
    assert (report["source"], report["status"]) == ("images", "converged")
    assert report["threshold_by"] == "learning, which cut it by its silhouettes"
    assert report["held_out_psnr"] > 15.0
    assert report["volume"] == pytest.approx(4.0 / 3.0 * np.pi * BALL_RADIUS**3, rel=0.1)
    assert report["volume_error"] == pytest.approx(report["volume"] / sphere_mesh(BALL_RADIUS).volume - 1.0, abs=1e-6)
    assert report["intersection_over_union"] > 0.85
    assert np.linalg.norm(np.array(report["center_of_mass"]) - BALL_CENTER) < 0.002
    assert report["center_error_of_size"] < 0.01
    assert report["inertia_error"] < 0.1
    assert report["mass"] == pytest.approx(500.0 * report["volume"])
    # What loads the file finds what the report says, stated errors included.
    kept = load_learned_field(tmp_path / "field.npz")
    assert isinstance(kept.threshold, HullThreshold) and kept.threshold.hull is not None
    found = inertial_properties(kept.field, mass=1.0, threshold=kept.threshold, eyes=kept.eyes)
    assert found.center_of_mass.tolist() == pytest.approx(report["center_of_mass"], rel=1e-12)
    stated = [report[name] for name in ("estimated_center_error", "estimated_inertia_error", "seen_share")]
    assert [found.center_error, found.inertia_error, found.seen_share] == pytest.approx(stated, rel=1e-12)
    for words_of_report in (
        "a ball: converged",
        "PSNR of a new view",
        "cut it by its silhouettes",
        "IoU",
        "of the size",
        "moments",
    ):
        assert words_of_report in told
    assert (tmp_path / "field.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_learned_from_and_how(ball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def learn(views: Any, config: Any, progress: Any) -> LearningResult:
        given.extend((views, config))
        assert progress(0.5, 1.0) is None
        return LearningResult(LearningStatus.EMPTY, "nothing", None, np.zeros(0))

    monkeypatch.setattr(images_module, "learn_from_images", learn)
    monkeypatch.setattr(depth_module, "learn_from_depths", learn)
    words = ["neural", "train", str(ball), "--output", str(tmp_path / "field.npz"), "--seed", "7"]
    assert main([*words, "--iterations", "11"]) == 1
    assert main([*words, "--from", "depth", "--method", "network", "--noise", "0.01", "--resolution", "24"]) == 1
    images, image_config, depths, depth_config = given
    assert image_config == images_module.ImageLearningConfig(iterations=11, seed=7)
    assert depth_config == depth_module.DepthLearningConfig(method="network", noise=0.01, resolution=24, seed=7)
    recording = load_recording(ball)
    assert recording.images is not None and recording.images.masks is not None
    # The view by which colours are judged is not learned from.
    kept = np.arange(VIEWS) != VIEWS // 3
    np.testing.assert_array_equal(images.T_world_camera, recording.images.T_world_camera[kept])
    np.testing.assert_array_equal(images.rgb, recording.images.rgb[kept])
    np.testing.assert_array_equal(images.masks, recording.images.masks[kept])
    assert len(depths) == VIEWS


def test_depths_become_a_field_and_json_is_all_that_is_printed(
    ball: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["neural", "train", str(ball), "--from", "depth", "--resolution", "24", "--mass", "0.3", "--json", "-"]
    assert main([*words, "--output", str(tmp_path / "field.npz")]) == 0
    printed, steps = capsys.readouterr()
    report = json.loads(printed)
    assert "measuring the solid ..." in steps and "drawing" not in steps
    assert isinstance(load_field(tmp_path / "field.npz"), GridField)
    assert (report["source"], report["status"], report["threshold_by"]) == ("depth", "converged", "two levels")
    assert "held_out_psnr" not in report
    assert report["mass"] == 0.3
    assert report["estimated_mass_error"] == 0.0
    assert report["estimated_moments_error"] == report["estimated_inertia_error"]
    moments = report["mass"] * np.array(report["moments_per_mass"])
    assert moments == pytest.approx(0.4 * 0.3 * BALL_RADIUS**2 * np.ones(3), rel=0.05)
    assert report["intersection_over_union"] > 0.93


def test_a_one_sided_recording_is_reported_and_the_threshold_chosen_as_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = []
    # All around, and two views 18 degrees apart.
    for name, depths in (("all", ball_depths(6)), ("two", ball_depths(2, part=0.1))):
        save_recording(Recording(depths=depths, description=name), tmp_path / f"{name}.npz")
        words = ["neural", "train", str(tmp_path / f"{name}.npz"), "--from", "depth", "--resolution", "24"]
        words += ["--output", str(tmp_path / "field.npz"), "--json", str(tmp_path / "report.json")]
        by = "silhouettes" if name == "all" else "likelihood"
        assert main([*words, "--threshold", by]) == 0
        told = capsys.readouterr().out
        report = json.loads((tmp_path / "report.json").read_text())
        field = load_field(tmp_path / "field.npz")
        if by == "silhouettes":
            chosen = silhouette_threshold(field, depths)
        else:
            chosen = likelihood_threshold(field, *free_and_occupied(depths))
        assert (report["threshold_by"], report["threshold"]) == (by, pytest.approx(chosen.value))
        kept = load_learned_field(tmp_path / "field.npz")
        assert kept.threshold is not None and kept.threshold.range == pytest.approx(chosen.range)
        np.testing.assert_array_equal(kept.eyes, depths.T_world_camera[:, :3, 3])
        other = two_level_threshold(field.density(grid_nodes(field.bounds, (40, 40, 40))))
        assert chosen.value != pytest.approx(other.value, rel=1e-3)
        assert ("one-sided" in told) == (name == "two")
        assert f"{1e3 * report['estimated_center_error']:.2f} mm off" in told
        # The mass is of a density, and errs as the volume does.
        assert report["mass"] == pytest.approx(500.0 * report["volume"])
        assert report["estimated_mass_error"] > 0.0
        assert report["estimated_moments_error"] > report["estimated_inertia_error"]
        assert f"up to {report['estimated_mass_error']:.2g} kg off" in told
        assert f"inertia {report['estimated_moments_error']:.1%} off" in told
        reports.append(report)
    whole, half = reports
    assert whole["remarks"] == []
    assert any("one-sided" in remark for remark in half["remarks"])
    assert half["seen_share"] < 0.55 < whole["seen_share"]
    assert half["estimated_center_error"] > 3.0 * whole["estimated_center_error"]
    assert half["estimated_inertia_error"] > 3.0 * whole["estimated_inertia_error"]


def test_a_field_is_kept_though_its_threshold_could_not_be_chosen(
    ball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> None:
        raise InvalidInputError("masks", "silhouettes of another object", "those of this one")

    monkeypatch.setattr(threshold_choice, "chosen_threshold", refuse)
    words = ["neural", "train", str(ball), "--from", "depth", "--resolution", "24", "--threshold", "silhouettes"]
    assert main([*words, "--output", str(tmp_path / "field.npz")]) == 0
    assert "no solid: masks: got silhouettes of another object" in capsys.readouterr().out
    kept = load_learned_field(tmp_path / "field.npz")
    # What learning recommends of depths: halfway between empty and full.
    assert kept.threshold is not None and kept.threshold.value == pytest.approx(0.5)
    assert kept.eyes is not None and len(kept.eyes) == VIEWS


def test_pictures_that_show_nothing_end_with_1_and_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    views = ball_images(3, masked=False)
    plain = PosedImages(np.full_like(views.rgb, 0.5), views.intrinsics, views.T_world_camera, None, views.bounds)
    save_recording(Recording(plain), tmp_path / "plain.npz")
    assert main(["neural", "train", str(tmp_path / "plain.npz"), "--output", str(tmp_path / "field.npz")]) == 1
    assert "empty" in capsys.readouterr().err
    assert not (tmp_path / "field.npz").exists()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, ball: Path) -> dict[str, str]:
    """Files that are no recording one can learn from, by name."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "text.npz").write_text("no zip")
    (folder / "short.npz").write_bytes(ball.read_bytes()[:-1000])
    save_field(SphereField(0.05), folder / "field.npz")
    _header, arrays = read_archive(ball, "recording of views", 1)
    # Every array of a view, cut to the first one.
    single = {name: array[:1] if name.startswith("images.") else array for name, array in arrays.items()}
    _write(folder / "single.npz", {name: array for name, array in single.items() if not name.startswith("depths.")})
    _write(folder / "unposed.npz", {name: array for name, array in arrays.items() if "T_world" not in name})
    _write(folder / "nothing.npz", {})
    save_recording(Recording(depths=ball_depths(3)), folder / "depths.npz")
    save_recording(Recording(images=ball_images(3)), folder / "images.npz")
    views, box = ball_depths(3), np.stack([BALL_CENTER - 0.07, BALL_CENTER + 0.07])
    unmasked = PosedDepths(views.depth, views.intrinsics, views.T_world_camera, None, box)
    save_recording(Recording(depths=unmasked), folder / "unmasked.npz")
    shifted = ball_images(4)
    poses = shifted.T_world_camera.copy()
    poses[2, :3, 3] += 0.05
    moved = PosedImages(shifted.rgb, shifted.intrinsics, poses, shifted.masks)
    save_recording(Recording(moved), folder / "contradiction.npz")
    return {path.stem: str(path) for path in folder.iterdir()} | {
        "ball": str(ball), "none": str(folder / "none.npz"), "folder": str(folder),
    }  # fmt: skip


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    write_archive(path, "recording of views", 1, {"description": ""}, arrays)


@pytest.mark.parametrize(
    ("recording", "words", "told"),
    [
        ("none", [], "was not found"),
        ("folder", [], "was not found"),
        ("text", [], "complete file that holds a recording"),
        ("short", [], "complete file that holds a recording"),
        ("field", [], "kind 'density field'"),
        ("single", [], "rgb: got 1"),
        ("unposed", [], "T_world_camera: got None"),
        ("nothing", [], "images or depths"),
        ("depths", [], "--from: got images"),
        ("contradiction", [], "contradict"),
        ("ball", ["--threads", "0"], "--threads"),
        ("ball", ["--seed", "-1"], "seed"),
        ("ball", ["--iterations", "0"], "iterations"),
        ("ball", ["--resolution", "2"], "resolution"),
        ("ball", ["--method", "network"], "--method"),
        ("ball", ["--noise", "0.01"], "--noise"),
        ("ball", ["--from", "depth", "--iterations", "7"], "--iterations"),
        ("ball", ["--from", "depth", "--method", "grid", "--iterations", "7"], "--iterations"),
        ("ball", ["--from", "depth", "--noise", "nan"], "noise"),
        ("ball", ["--from", "depth", "--noise", "-0.1"], "noise"),
        ("images", ["--threshold", "likelihood"], "--threshold: got likelihood"),
        ("unmasked", ["--from", "depth", "--threshold", "silhouettes"], "--threshold: got silhouettes"),
        ("ball", ["--mass", "-1"], "--mass"),
        ("ball", ["--density", "nan"], "--density"),
        ("ball", ["--picture", "/"], "--picture"),
        ("ball", ["--json", "/"], "--json"),
    ],
)
def test_train_names_what_it_cannot_use(
    files: dict[str, str], recording: str, words: list[str], told: str, tmp_path: Path, capsys: Any
) -> None:
    output = tmp_path / "field.npz"
    assert main(["neural", "train", files[recording], "--output", str(output), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("morphit: ")
    assert told in error
    assert not output.exists()


def test_outputs_that_cannot_be_written_are_refused_before_the_work(
    ball: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(images_module, "learn_from_images", lambda *rest: pytest.fail("learned first"))
    (tmp_path / "file").write_text("")
    for output in (tmp_path, tmp_path / "file" / "field.npz"):
        assert main(["neural", "train", str(ball), "--output", str(output)]) == 2
        assert "--output" in capsys.readouterr().err
        assert main(["neural", "record", "--object", "mug", "--output", str(output)]) == 2
        assert "--output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--object", "teapot"], "'teapot' was not found. Known objects: mug"),
        (["--object", "none.stl", "--mass", "1"], "none.stl"),
        (["--object", "mug", "--mass", "-1"], "mass"),
        (["--object", "mug", "--mass", "nan"], "mass"),
        (["--object", "mug", "--views", "1"], "views"),
        (["--object", "mug", "--size", "4"], "size"),
        (["--object", "mug", "--seed", "-1"], "seed"),
        (["--object", "mug", "--arrangement", "ring", "--elevation", "nan"], "elevation"),
        (["--object", "mug", "--pose", "0", "0", "inf", "0", "0", "0"], "--pose"),
        (["--object", "mug", "--picture", "/"], "--picture"),
    ],
)
def test_record_names_what_it_cannot_use(words: list[str], told: str, tmp_path: Path, capsys: Any) -> None:
    output = tmp_path / "views.npz"
    assert main(["neural", "record", "--output", str(output), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("morphit: ")
    assert told in error
    assert not output.exists()
