"""`morphit neural record`: pictures and depths of a simulated object, rendered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.neural.views.recording import load_recording
from morphit_ros.simulation.rendering import available_backend

needs_rendering = pytest.mark.skipif(available_backend() is None, reason="nothing on this machine can render")


@needs_rendering
def test_a_simulated_object_is_recorded_where_it_was_put(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, picture = tmp_path / "new" / "box.npz", tmp_path / "views.png"
    pose = ["--pose", "0.3", "-0.2", "0.5", "0", "0", "90"]
    words = ["neural", "record", "--object", "box", "--views", "4", "--size", "32", *pose]
    assert main([*words, "--output", str(output), "--picture", str(picture)]) == 0
    assert "box, 4 views of 32 x 32 px" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    recording = load_recording(output)
    assert recording.images is not None and recording.depths is not None and recording.truth is not None
    assert recording.images.rgb.shape == (4, 32, 32, 3)
    assert np.ptp(recording.images.rgb) > 0.2
    # Depths and poses belong together: what was measured lies on the true surface, as wide as a pixel.
    low, high = recording.truth.bounds
    assert ((low < [0.3, -0.2, 0.7]) & (high > [0.3, -0.2, 0.5])).all()
    points = np.concatenate(recording.depths.surface_points())
    assert len(points) > 200
    assert (points > low - 0.002).all() and (points < high + 0.002).all()
    assert np.minimum(np.abs(points - low), np.abs(points - high)).min(axis=1).max() < 0.002


@needs_rendering
def test_a_mesh_that_is_only_seen_is_not_cut_into_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bowl, hollow upwards: recorded without a mass and without a decomposition, standing on its foot."""
    trimesh = pytest.importorskip("trimesh")

    def refuse(*_: object) -> None:
        raise AssertionError("pictures need no convex pieces")

    monkeypatch.setattr("morphit_ros.simulation.objects.convex_pieces", refuse)
    profile = [(0.0, 0.0), (0.03, 0.0), (0.06, 0.05), (0.057, 0.05), (0.028, 0.003), (0.0, 0.003)]
    bowl = trimesh.creation.revolve(np.array(profile), sections=32)
    bowl.export(tmp_path / "bowl.stl")
    words = ["neural", "record", "--object", str(tmp_path / "bowl.stl"), "--views", "4", "--size", "32"]
    assert main([*words, "--output", str(tmp_path / "bowl.npz")]) == 0
    truth = load_recording(tmp_path / "bowl.npz").truth
    assert truth is not None
    assert truth.volume == pytest.approx(abs(bowl.volume), rel=1e-6)
    np.testing.assert_allclose(truth.bounds[:, 2], [0.0, 0.05], atol=1e-6)
