"""A sketch being edited: commands of pages, bad ones among them, autosave, fits and measures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sketch"))
from drawn_hand import TOWARDS, circle, line, make_hand

from morphit_ros.display.sketch_session import SketchFunctions, SketchSession, autosave_of
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.sketch.importing import Import, sketch_of_mesh
from morphit_ros.sketch.model import Sketch
from morphit_ros.sketch.sketch_file import load_sketch
from morphit_ros.superovoid.fits.config import LinkFitConfig
from morphit_ros.superovoid.robots.link_fit import fit_link_superovoids

TIMEOUT = 120.0
PNG = "data:image/png;base64,AAAA"


def opened(name: str, content: bytes) -> Import:
    if not name.endswith(".stl"):
        raise InvalidInputError("upload", repr(name), "a mesh")
    return sketch_of_mesh("part", box_mesh(np.array([0.06, 0.04, 0.1])), LinkFitConfig(max_count=1))


def begun(folder: Path, start: Import | None = None) -> SketchSession:
    functions = SketchFunctions(
        export=lambda sketch: f"exported {sketch.name}",
        open=opened,
        fit=lambda mesh, count, shapes: fit_link_superovoids([mesh], None, 0, count, start=shapes).shapes,
    )
    return SketchSession(start or Import(make_hand(), {}), folder / "hand.yaml", functions)


def test_a_session_from_nothing(tmp_path: Path) -> None:
    session = begun(tmp_path, Import(Sketch("new"), {}))
    assert session.state()["bones"] == []
    assert session.do({"do": "stroke", "points": line((0, 0), (0, 0.1)).tolist(), "normal": TOWARDS, "snap": 0.01})
    assert session.do({"do": "ellipse", "points": circle(0, 0.05, 0.01, 0.05).tolist(), "normal": TOWARDS})
    state = session.state()
    json.dumps(state, allow_nan=False)
    assert [bone["name"] for bone in state["bones"]] == ["base"]
    assert len(state["bones"][0]["shapes"]) == 1
    assert (state["undo"], state["redo"], state["saved"]) == (2, 0, False)
    assert session.do({"do": "undo"})
    assert session.state()["bones"][0]["shapes"] == []
    assert session.do({"do": "redo"})
    assert len(session.state()["bones"][0]["shapes"]) == 1


def test_every_change_is_kept_until_it_is_saved(tmp_path: Path) -> None:
    session = begun(tmp_path)
    kept = autosave_of(tmp_path / "hand.yaml")
    assert not kept.exists()
    session.do({"do": "density", "density": 700.0})
    assert load_sketch(kept).density == 700.0
    session.do({"do": "undo"})
    assert load_sketch(kept).density == 1000.0
    session.do({"do": "redo"})
    assert session.do({"do": "save"})
    assert load_sketch(tmp_path / "hand.yaml").density == 700.0
    assert not kept.exists()
    assert session.state()["saved"]
    assert not session.has_unsaved_changes


def test_a_folder_that_is_gone_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.write_text("a file where the folder was")
    session = begun(folder)
    session.do({"do": "density", "density": 700.0})
    assert session.state()["error"]
    assert session.sketch.density == 700.0
    assert not session.do({"do": "save"})
    assert session.has_unsaved_changes


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ({}, "command"),
        ({"do": 5}, "command"),
        ({"do": "__init__"}, "command"),
        ({"do": "explode"}, "'explode'"),
        ({"do": "stroke"}, "missing"),
        ({"do": "stroke", "points": "abc", "normal": [0, 1, 0]}, "array of numbers"),
        ({"do": "stroke", "points": [[0, 0, 0]], "normal": [0, 1, 0]}, "one place"),
        ({"do": "stroke", "points": [[0, 0, 0], [0, 0, 1]], "normal": [0, 1, 0], "snap": "x"}, "snap"),
        ({"do": "ellipse", "points": [[0, 0, 0], [0, 0, 1], [0, 0, 2]], "normal": [0, 1, 0]}, "straight"),
        ({"do": "shape", "bone": "bone_1", "row": 0, "values": {"semi_axes": [0, 0, 0]}}, "semi_axes"),
        ({"do": "shape", "bone": "bone_1", "row": 0, "values": {"semi_axes": [None, 1, 1]}}, "numbers|finite"),
        ({"do": "shape", "bone": "bone_1", "row": True, "values": {}}, "whole number"),
        ({"do": "shape", "bone": "bone_1", "row": 0, "values": 3}, "by name"),
        ({"do": "shape", "bone": ["x"], "row": 0, "values": {}}, "text"),
        ({"do": "shape", "bone": "elbow", "row": 0, "values": {}}, "elbow"),
        ({"do": "position", "joint": "elbow", "value": 0.1}, "elbow"),
        ({"do": "position", "joint": "bone_1_joint", "value": float("nan")}, "finite"),
        ({"do": "joint", "bone": "bone_1", "kind": "spring"}, "spring"),
        ({"do": "rename", "bone": "bone_1", "name": "a b"}, "letter"),
        ({"do": "name", "name": ""}, "name of the sketch"),
        ({"do": "density", "density": -3}, "density"),
        ({"do": "density", "density": True}, "finite"),
        ({"do": "density", "density": 1.0, "colour": 2}, "colour"),
        ({"do": "fit", "bone": "bone_1"}, "mesh to fit"),
        ({"do": "picture", "data": "javascript:alert(1)"}, "picture"),
        ({"do": "picture", "data": "data:image/svg+xml;base64,AAAA"}, "picture"),
        ({"do": "picture", "data": f"{PNG}'"}, "picture"),
        ({"do": "picture", "data": PNG, "T": [1, 2]}, "16"),
        ({"do": "picture", "data": PNG, "T": [0] * 16}, "T_world_picture"),
        ({"do": "picture", "data": PNG, "width": -1.0}, "width"),
        ({"do": "picture", "data": PNG + "A" * (1 << 21)}, "smaller"),
    ],
)
def test_bad_commands_change_nothing_and_say_why(command: dict[str, Any], message: str, tmp_path: Path) -> None:
    session = begun(tmp_path)
    before = session.sketch
    assert not session.do(command)
    state = session.state()
    assert state["error"]
    assert any(word in state["message"] for word in message.split("|")), state["message"]
    assert session.sketch is before
    assert session.do({"do": "rest"})
    assert not session.state()["error"]


def test_a_drag_is_one_step(tmp_path: Path) -> None:
    session = begun(tmp_path)
    before = session.sketch
    for length in np.linspace(0.01, 0.02, 5):
        values = {"semi_axes": [0.01, 0.01, float(length)]}
        session.do({"do": "shape", "bone": "bone_1", "row": 0, "values": values, "drag": "drag1"})
    assert session.state()["undo"] == 1
    session.do({"do": "shape", "bone": "bone_1", "row": 0, "values": {"xyz": [0, 0, 0]}, "drag": "drag2"})
    assert session.state()["undo"] == 2
    session.do({"do": "undo"})
    session.do({"do": "undo"})
    assert session.sketch is before


def test_positions_are_held_within_limits_and_distances_follow(tmp_path: Path) -> None:
    session = begun(tmp_path)
    rest = {tuple(pair["bones"]): pair["distance"] for pair in session.state()["pairs"]}
    assert session.do({"do": "position", "joint": "bone_4_joint", "value": 9.0})
    assert session.positions == {"bone_4_joint": pytest.approx(np.pi / 2)}
    session.do({"do": "position", "joint": "bone_4_joint", "value": -0.25})
    moved = {tuple(pair["bones"]): pair["distance"] for pair in session.state()["pairs"]}
    assert moved != rest
    assert min(moved.values()) < 0.0
    session.do({"do": "limits", "joint": "bone_4_joint", "lower": -0.1, "upper": 0.1})
    assert session.positions == {"bone_4_joint": pytest.approx(-0.1)}
    session.do({"do": "remove_bone", "bone": "bone_4"})
    assert session.positions == {}


def test_an_opened_mesh_is_measured_fitted_and_improved(tmp_path: Path) -> None:
    session = begun(tmp_path)
    try:
        assert session.do({"do": "open", "name": "part.txt", "content": b""})
        assert session.wait(TIMEOUT)
        assert session.state()["error"]
        assert "part.txt" in session.state()["message"]
        assert session.do({"do": "open", "name": "part.stl", "content": b"solid"})
        assert session.wait(TIMEOUT)
        (bone,) = session.state()["bones"]
        assert bone["mesh"]
        fitted = bone["deviation"]
        assert all(0.0 < value < 0.02 for value in fitted)
        assert fitted[0] <= fitted[1]
        # By hand it gets worse, and the fit that goes on from there makes it good again.
        values = {"semi_axes": [0.02, 0.02, 0.03], "xyz": [0.005, 0.0, 0.01]}
        assert session.do({"do": "shape", "bone": "part", "row": 0, "values": values})
        assert session.wait(TIMEOUT)
        spoiled = session.state()["bones"][0]["deviation"]
        assert spoiled[0] > 2.0 * fitted[0]
        assert session.do({"do": "fit", "bone": "part", "improve": True})
        assert session.wait(TIMEOUT)
        assert not session.state()["error"]
        assert session.state()["bones"][0]["deviation"][0] < 1.05 * fitted[0]
        assert session.do({"do": "fit", "bone": "part", "count": 2})
        assert session.wait(TIMEOUT)
        assert len(session.state()["bones"][0]["shapes"]) == 2
        for _ in range(3):
            session.do({"do": "undo"})
        # The hand that was there before.
        session.do({"do": "undo"})
        assert len(session.state()["bones"]) == 16
    finally:
        session.close()


def test_a_picture_is_laid_behind_and_stays_in_the_file(tmp_path: Path) -> None:
    session = begun(tmp_path)
    assert session.do({"do": "picture", "data": PNG, "T": np.eye(4).ravel().tolist()})
    assert session.do({"do": "picture", "width": 0.5})
    assert load_sketch(session.autosave).picture.width == 0.5
    assert session.do({"do": "save"})
    again = load_sketch(session.file).picture
    assert again.data == PNG
    assert (again.T_world_picture == np.eye(4)).all()
    assert session.do({"do": "picture"})
    assert session.sketch.picture is None
    assert session.do({"do": "undo"})
    assert session.sketch.picture.width == 0.5
    assert session.do({"do": "undo"})
    assert session.sketch.picture.width == 0.3
