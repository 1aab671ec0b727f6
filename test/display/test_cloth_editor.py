"""The cloth in a browser: what its controls do, autosave, two browsers, one that is closed, and a screenshot."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from morphit_ros.cloth import Cloth, ClothConfig, load_shapes, save_shapes
from morphit_ros.display.cloth_editor import ClothEditor
from morphit_ros.display.screenshot import screenshot
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.superovoid import PlacedSuperovoid, Superovoid

pytest.importorskip("viser")

TIMEOUT = 30.0


def scene_shapes() -> list[PlacedSuperovoid]:
    return [
        PlacedSuperovoid(Superovoid((0.05, 0.04, 0.06)), make_transform(translation=(0.0, 0.0, 0.05))),
        PlacedSuperovoid(Superovoid((0.03, 0.03, 0.03), (0.3, 0.3)), make_transform(translation=(0.1, 0.0, 0.03))),
    ]


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[ClothEditor]:
    cloth = Cloth(scene_shapes(), ClothConfig(rows=20, cols=20))

    def export(shown: Cloth) -> Path:
        if shown.time > 1e3:
            raise InvalidInputError("export", "too late", "a young cloth")
        return tmp_path / "cloth.ply"

    def save(shapes: Sequence[PlacedSuperovoid]) -> None:
        save_shapes(shapes, tmp_path / "auto.yaml")

    with ClothEditor(cloth, save, {"Save cloth.ply": export}, port=0) as made:
        yield made


def control(editor: ClothEditor, label: str) -> Any:
    handles = editor._server.gui._gui_input_handle_from_uuid.values()
    return next(handle for handle in handles if getattr(handle, "label", None) == label)


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_it_falls_rests_and_wakes(editor: ClothEditor) -> None:
    cloth = editor._cloth
    start = cloth.positions[:, 2].mean()
    editor.run()
    wait_until(lambda: cloth.positions[:, 2].mean() < start - 0.01)
    editor.pause(True)
    with editor._lock:
        held = cloth.time
    time.sleep(0.2)
    assert cloth.time == held
    editor.pause(False)
    wait_until(lambda: editor._resting)
    editor.set_shape(0, PlacedSuperovoid(Superovoid.sphere(0.07), make_transform(translation=(0.0, 0.0, 0.06))))
    assert not editor._resting
    wait_until(lambda: cloth.time > held)
    assert cloth.distances().min() > 0.0
    editor.reset()
    assert cloth.time < held


def test_sliders_and_gizmo_change_the_selected_shape(editor: ClothEditor) -> None:
    editor.select(1)
    assert control(editor, "e1").value == 0.3
    control(editor, "e1").value = 1.5
    control(editor, "a3 [mm]").value = 45.0
    assert editor._cloth.shapes[1].shape == Superovoid((0.03, 0.03, 0.045), (1.5, 0.3))
    pose = make_transform(translation=(0.05, -0.05, 0.1))
    editor._move_selected(pose)
    assert (editor._cloth.shapes[1].T_link_shape == pose).all()
    assert editor._cloth.shapes[0] == scene_shapes()[0]
    node = editor._server.scene._handle_from_node_name["/shapes/1"]
    assert node.position == pytest.approx(pose[:3, 3])
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        editor.select(2)


def test_shapes_come_and_go_up_to_the_most(editor: ClothEditor) -> None:
    editor.add()
    assert len(editor._cloth.shapes) == 3
    assert editor._selected == 2
    editor.remove()
    assert list(editor._cloth.shapes) == scene_shapes()
    assert editor._selected is None
    editor.remove()
    assert len(editor._cloth.shapes) == 2
    for _ in range(59):
        editor.add()
    assert len(editor._cloth.shapes) == 60
    assert "at most 60" in editor._message


def test_what_changed_is_saved_while_it_runs_and_at_the_end(editor: ClothEditor, tmp_path: Path) -> None:
    file = tmp_path / "auto.yaml"
    editor.run()
    time.sleep(0.1)
    # Nothing changed yet: a file that is there is not overwritten by looking.
    assert not file.exists()
    moved = PlacedSuperovoid(Superovoid.sphere(0.06), make_transform(translation=(0.0, 0.02, 0.06)))
    editor.set_shape(0, moved)
    wait_until(file.exists)
    assert load_shapes(file)[0].shape == moved.shape
    editor.set_shape(0, scene_shapes()[0])
    editor.close()
    assert load_shapes(file)[0].shape == scene_shapes()[0].shape
    editor.close()


def test_a_file_that_cannot_be_written_is_told_and_tried_again(editor: ClothEditor) -> None:
    tries: list[int] = []

    def fails(shapes: Sequence[PlacedSuperovoid]) -> None:
        tries.append(len(shapes))
        if len(tries) == 1:
            raise OSError("the disk is full")

    editor._save = fails
    editor.add()
    editor._autosave(at_once=True)
    assert "the disk is full" in editor._message
    editor._autosave(at_once=True)
    assert tries == [3, 3]
    assert not editor._dirty


def test_exports_tell_where_and_why_not(editor: ClothEditor) -> None:
    def fails(cloth: Cloth) -> Path:
        raise InvalidInputError("export", "nothing", "something")

    editor._export(lambda cloth: Path("here.ply"))
    assert editor._message == "written: here.ply"
    editor._export(fails)
    assert editor._is_error
    assert "expected something" in editor._message


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_two_browsers_see_the_cloth_and_closing_them_loses_nothing(editor: ClothEditor, tmp_path: Path) -> None:
    editor.set_textured(True)
    editor.run()
    wait_until(lambda: editor._resting)
    # Each is a browser of its own that is ended after its picture.
    first = np.asarray(Image.open(screenshot(editor.url, tmp_path / "a.png", (640, 480), settle=20.0)).convert("RGB"))
    editor.select(0)
    second = np.asarray(Image.open(screenshot(editor.url, tmp_path / "b.png", (640, 480), settle=20.0)).convert("RGB"))
    scene = first[:, :400].astype(int)
    # Grass is green, and so are many pixels.
    assert ((scene[..., 1] > scene[..., 0] + 10) & (scene[..., 1] > scene[..., 2] + 20)).sum() > 500
    assert (first != second).any()
    assert list(editor._cloth.shapes) == scene_shapes()
    editor.add()
    assert len(editor._cloth.shapes) == 3
