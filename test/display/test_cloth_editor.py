"""The cloth in a browser: what its controls do, autosave, two browsers, one that is closed, and a screenshot."""

from __future__ import annotations

import base64
import io
import json
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
from morphit_ros.display.screenshot import Page, opened_page
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.superovoid import PlacedSuperovoid, Superovoid

pytest.importorskip("viser")

TIMEOUT = 90.0


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
    # The cloth goes on by itself: what is so right after a change is looked at before it can.
    with editor._lock:
        editor.set_shape(0, PlacedSuperovoid(Superovoid.sphere(0.07), make_transform(translation=(0.0, 0.0, 0.06))))
        assert not editor._resting
    wait_until(lambda: cloth.time > held)
    assert cloth.distances().min() > 0.0
    with editor._lock:
        editor.reset()
        assert cloth.time < held


def test_sliders_and_gizmo_change_the_selected_shape(editor: ClothEditor) -> None:
    editor.select(1)
    assert control(editor, "e1").value == 0.3
    control(editor, "e1").value = 1.5
    control(editor, "a3 [mm]").value = 45.0
    assert editor._cloth.shapes[1].shape == Superovoid((0.03, 0.03, 0.045), (1.5, 0.3))
    pose = make_transform(translation=(0.05, -0.05, 0.1))
    editor._move(1, pose)
    assert (editor._cloth.shapes[1].T_link_shape == pose).all()
    # A drag in one browser ends where another one selects the next shape.
    editor.select(0)
    editor._move(1, make_transform())
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


class Visitor:
    """Somebody at the page."""

    def __init__(self, page: Page) -> None:
        self._page = page
        wait_until(lambda: self.ask(f"!!({_button('Add a sphere')})"))

    def ask(self, expression: str) -> Any:
        return self._page.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def place(self, element: str) -> tuple[float, float]:
        """Of the middle of an element."""
        x, y = json.loads(
            self.ask(
                f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest'}}); const b ="
                " e.getBoundingClientRect(); return JSON.stringify([b.x + b.width / 2, b.y + b.height / 2]) })()"
            )
        )
        return x, y

    def slider(self) -> float:
        """What the first slider is at."""
        return float(self.ask(f"{_SLIDERS}[0].getAttribute('aria-valuenow')"))

    def mouse(self, kind: str, x: float, y: float) -> None:
        buttons = 0 if kind == "mouseReleased" else 1
        self._page.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1
        )  # fmt: skip

    def click(self, label: str) -> None:
        place = self.place(_button(label))
        self.mouse("mousePressed", *place)
        self.mouse("mouseReleased", *place)

    def picture(self) -> Any:
        data = self._page.call("Page.captureScreenshot", format="png")["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


def _button(label: str) -> str:
    return f"[...document.querySelectorAll('button')].find(b => b.textContent.includes('{label}'))"


_SLIDERS = "[...document.querySelectorAll('[role=slider]')].filter(s => !s.closest('[data-disabled]'))"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_two_browsers_at_once_and_one_that_goes_in_the_middle_of_a_drag(editor: ClothEditor, tmp_path: Path) -> None:
    editor.set_textured(True)
    editor.run()
    with opened_page(editor.url, (900, 700)) as stays:
        one = Visitor(stays)
        with opened_page(editor.url, (900, 700)) as goes:
            two = Visitor(goes)
            wait_until(lambda: len(editor._server._server.get_clients()) == 2)
            # What one does, the other sees.
            wait_until(lambda: one.ask(f"{_SLIDERS}.length") == 0)
            two.click("Add a sphere")
            wait_until(lambda: len(editor._cloth.shapes) == 3)
            wait_until(lambda: one.ask(f"{_SLIDERS}.length") == two.ask(f"{_SLIDERS}.length") == 7)
            # It goes with the button down.
            x, y = two.place(f"{_SLIDERS}[0]")
            before = two.slider()
            two.mouse("mousePressed", x, y)
            two.mouse("mouseMoved", x + 25.0, y)
            # All of the drag has come, or the rest of it would change the shape later.
            wait_until(lambda: abs(two.slider() - before) > 5.0)
            wait_until(
                lambda: editor._cloth.shapes[2].shape.semi_axes[0] == pytest.approx(1e-3 * two.slider(), abs=1e-6)
            )
        wait_until(lambda: len(editor._server._server.get_clients()) == 1)
        dragged = editor._cloth.shapes[2]
        one.click("Add a sphere")
        wait_until(lambda: len(editor._cloth.shapes) == 4)
        assert editor._cloth.shapes[2] is dragged
        wait_until(lambda: (tmp_path / "auto.yaml").exists() and len(load_shapes(tmp_path / "auto.yaml")) == 4)
        assert load_shapes(tmp_path / "auto.yaml")[2].shape == dragged.shape
        shown = one.picture()[:, :560]
        # Grass is green, and so are many pixels.
        assert ((shown[..., 1] > shown[..., 0] + 10) & (shown[..., 1] > shown[..., 2] + 20)).sum() > 500
    wait_until(lambda: not editor.is_watched)
    assert editor._thread is not None
    assert editor._thread.is_alive()
