"""`morphit spheres view`: what it begins with, real refits, what it writes, and what it refuses."""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from morphit_ros.cli import make_parser
from morphit_ros.commands import spheres_view
from morphit_ros.commands.spheres_view import EditorPage, make_editor
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.spheres import LinkSpheres, SphereModel
from morphit_ros.spheres.exports import export_model, read_model

pytest.importorskip("viser")

TIMEOUT = 60.0
ROBOT = """<robot name="two">
  <link name="base"><collision><geometry><box size="0.2 0.1 0.1"/></geometry></collision></link>
  <link name="tip">
    <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.03" length="0.2"/></geometry></collision>
    <collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <link name="tool"/>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="0.1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="end" type="fixed"><parent link="tip"/><child link="tool"/></joint>
</robot>"""
CORNERS = [(x, y, z) for x in (0, 0.1) for y in (0, 0.1) for z in (0, 0.1)]
OBJ = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "".join(
    f"f {a} {b} {c}\nf {a} {c} {d}\n"
    for a, b, c, d in [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to run in, with a robot and a mesh."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "two.urdf").write_text(ROBOT)
    (tmp_path / "cube.obj").write_text(OBJ)
    return tmp_path


def options(*words: str) -> argparse.Namespace:
    return make_parser().parse_args(["spheres", "view", *words, "--port", "0"])


def test_a_robot_is_fitted_edited_refitted_and_saved(folder: Path) -> None:
    with make_editor(options("two.urdf", "--count", "8")) as editor:
        model = editor.model
        assert set(model.links) == {"base", "tip"}
        editor.select_link("base")
        editor.set_count(5)
        assert editor.wait(TIMEOUT)
        assert len(editor.model["base"]) == 5
        assert editor.model["tip"] is model["tip"]
        editor.select_sphere(3)
        editor.move_sphere((0.09, 0.04, 0.04))
        editor.set_variant("surface")
        assert editor.wait(TIMEOUT)
        edited = editor.model["base"]
        np.testing.assert_array_equal(edited.centers[0], (0.09, 0.04, 0.04))
        assert len(edited) == 5
        editor.export("Save two_spheres.json")
        editor.export("Save two_spheres.urdf")
    saved = read_model(folder / "two_spheres.json")
    assert saved.robot_name == "two"
    assert saved.variant == "mixed"
    np.testing.assert_array_equal(saved.links["base"].centers, edited.centers)
    np.testing.assert_array_equal(saved.links["tip"].radii, model["tip"].radii)
    assert 0.0 < saved.links["base"].d_avg < saved.links["base"].d_max < 0.1
    assert len(read_model(folder / "two_spheres.urdf").links["base"].radii) == 5
    # And back into the editor, to the bit.
    with make_editor(options("two.urdf", "--model", "two_spheres.json")) as editor:
        assert editor.model["base"].same_spheres(edited.centers, edited.radii)


def test_a_mesh_file_is_a_link_of_its_name(folder: Path) -> None:
    with make_editor(options("cube.obj", "--count", "4", "--variant", "volume", "--output", "out/mine.csv")) as editor:
        assert len(editor.model["cube"]) == 4
        assert editor.model["cube"].variant == "volume"
        editor.refit()
        assert editor.wait(TIMEOUT)
        assert "fitted" in editor.message
        editor.export("Save mine.csv")
    assert (folder / "out" / "mine.csv").read_text().count("cube,") == 4


def test_links_that_a_model_lacks_are_fitted(folder: Path) -> None:
    spheres = LinkSpheres("base", np.zeros((1, 3)), np.array([0.06]), 0.01, 0.02, "some")
    (folder / "part.json").write_text(export_model(SphereModel("two", "balanced", {"base": spheres}), None, "json"))
    with make_editor(options("two.urdf", "--model", "part.json", "--count", "6")) as editor:
        assert editor.model["base"].same_spheres(spheres.centers, spheres.radii)
        assert len(editor.model["tip"]) > 1


def test_a_model_of_another_robot_is_refused(folder: Path) -> None:
    for link in ("elbow", "tool"):
        spheres = LinkSpheres(link, np.zeros((1, 3)), np.ones(1), 0.0, 0.0, "some")
        (folder / "other.json").write_text(export_model(SphereModel("x", "balanced", {link: spheres}), None, "json"))
        with pytest.raises(InvalidInputError, match=link):
            make_editor(options("two.urdf", "--model", "other.json"))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("two.urdf", "--count", "0"), "count"),
        (("two.urdf", "--variant", "pretty"), "variant"),
        (("two.urdf", "--seed", "-1"), "--seed"),
        (("two.urdf", "--output", "model.xyz"), "suffix"),
        (("empty.urdf",), "collision geometry"),
    ],
)
def test_bad_options_are_named(words: tuple[str, ...], match: str, folder: Path) -> None:
    (folder / "empty.urdf").write_text('<robot name="empty"><link name="base"/></robot>')
    with pytest.raises(InvalidInputError, match=match):
        make_editor(options(*words))


@pytest.mark.parametrize(
    "words", [("missing.urdf",), ("missing.stl",), ("no_robot",), ("two.urdf", "--model", "no.json")]
)
def test_missing_files_are_named(words: tuple[str, ...]) -> None:
    with pytest.raises(ResourceNotFoundError, match=words[-1]):
        make_editor(options(*words))


def test_it_prints_the_address_and_ends_with_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spheres_view, "wait_for_interrupt", lambda: None)
    given = options("cube.obj", "--count", "3")
    assert given.run(given) == 0
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")


def zipped(**files: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_DOT_", "."), text)
    return stream.getvalue()


MESH_ROBOT = """<robot name="mug"><link name="mug"><collision><geometry>
  <mesh filename="package://mug_description/meshes/cube.obj"/></geometry></collision></link></robot>"""


def upload(editor: Any, name: str, content: bytes) -> None:
    """What a browser's upload does."""
    handles = editor._scene.gui._gui_input_handle_from_uuid.values()
    button = next(handle for handle in handles if getattr(handle, "label", None) == "Open mesh or zip")
    button._impl.value = SimpleNamespace(name=name, content=content)
    for callback in button._impl.update_cb:
        callback(SimpleNamespace(target=button))


def test_an_upload_takes_the_place_of_what_is_shown(folder: Path) -> None:
    before = set(folder.iterdir())
    with EditorPage(options("two.urdf", "--count", "4")) as page:
        url = page.editor.url
        upload(page.editor, "cup.obj", OBJ.encode())
        page.show_next()
        assert page.editor.url == url
        assert list(page.editor.model.links) == ["cup"]
        robot = zipped(mug_description__urdf__mug_DOT_urdf=MESH_ROBOT, mug_description__meshes__cube_DOT_obj=OBJ)
        upload(page.editor, "mug.zip", robot)
        page.show_next()
        assert list(page.editor.model.links) == ["mug"]
        assert len(page.editor.model["mug"]) == 4
        uploads = Path(page._uploads.name)
        assert folder not in uploads.parents
    assert not uploads.exists()
    assert {path for path in folder.iterdir() if path.name != "cache"} <= before


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "mug.zip",
            zipped(mug_description__urdf__mug_DOT_urdf=MESH_ROBOT),
            "package://mug_description/meshes/cube.obj",
        ),
        ("mug.zip", zipped(**{"..__mug_DOT_urdf": MESH_ROBOT}), "inside the zip's own folder"),
        ("cup.obj", OBJ.replace("0.1", "100").encode(), "--unit"),
    ],
)
def test_an_upload_that_cannot_be_shown_says_why_and_changes_nothing(name: str, content: bytes, words: str) -> None:
    with EditorPage(options("cube.obj", "--count", "4")) as page:
        editor = page.editor
        upload(editor, name, content)
        assert words in editor.message
        assert page._ready.empty()
        editor.select_sphere(0)
        editor.remove_sphere()
        upload(editor, "cup.obj", OBJ.encode())
        assert "Save them, or undo them" in editor.message
        assert page._ready.empty()
