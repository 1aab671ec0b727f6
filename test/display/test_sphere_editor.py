"""The sphere editor: what its controls do to the spheres and to the scene, refits beside edits, and screenshots."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from morphit_ros.display import screenshot as chromium
from morphit_ros.display.sphere_editor import SphereEditor
from morphit_ros.display.sphere_figures import Figures
from morphit_ros.display.sphere_panel import PanelState, editor_html
from morphit_ros.display.sphere_scene import LOCKED_COLOR, SELECTED_COLOR
from morphit_ros.display.sphere_session import EditorFunctions
from morphit_ros.display.sphere_shape import EditedShape
from morphit_ros.display.sphere_worker import NewestWorker
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import invert_transform, look_at, transform_points
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.spheres.editing import EditedLink, EditedModel, EditHistory

pytest.importorskip("viser")

VARIANTS = ("balanced", "volume", "surface")
TIMEOUT = 60.0
ARM = """<robot name="arm">
  <link name="base"/><link name="tip"/>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="0.1" upper="1" velocity="1" effort="1"/></joint>
</robot>"""


def row_of_spheres(count: int, variant: str, centers: Any, radii: Any, locked: Any) -> tuple[np.ndarray, np.ndarray]:
    """A fit: the locked spheres, then others in a row along y; 40 at most."""
    if count > 40:
        raise InvalidInputError("count", count, "at most 40")
    free = count - int(locked.sum())
    others = np.column_stack([np.zeros(free), np.linspace(-0.1, 0.1, free), np.zeros(free)])
    return np.concatenate([centers[locked], others]), np.concatenate([radii[locked], np.full(free, 0.03)])


@dataclass(frozen=True)
class Measured:
    d_avg: float = 0.001
    d_max: float = 0.002
    inside: float = 0.9
    outside: float = 0.1


def gaps(points: np.ndarray, centers: np.ndarray, radii: np.ndarray) -> np.ndarray:
    return (np.linalg.norm(points[:, None] - centers, axis=2) - radii).min(axis=1)


def functions(**others: Any) -> EditorFunctions:
    given = {
        "fit": lambda link, spheres, count: spheres.refitted(row_of_spheres, count),
        "measure": lambda link, spheres: Measured(),
        "gaps": gaps,
        "exports": {"Save": lambda model: Path("saved.json")},
    }
    return EditorFunctions(**(given | others))


MESHES: dict[str, TriangleMesh] = {"base": box_mesh((0.1, 0.3, 0.1)), "tip": cylinder_mesh(0.05, 0.2)}


def start() -> EditHistory:
    spheres = EditedLink([[0, -0.08, 0], [0, 0, 0], [0, 0.08, 0]], [0.05, 0.06, 0.05])
    return EditHistory(EditedModel({"base": spheres, "tip": spheres}))


def make_editor(**others: Any) -> SphereEditor:
    shape = EditedShape("arm", MESHES, KinematicModel(load_robot_description(ARM)))
    return SphereEditor(shape, start(), functions(**others), VARIANTS, port=0)


@pytest.fixture
def editor() -> Iterator[SphereEditor]:
    with make_editor() as made:
        made.select_link("base")
        yield made


def node(editor: SphereEditor, name: str) -> Any:
    """What viser holds under a name, None if nothing."""
    return editor._scene._server.scene._handle_from_node_name.get(f"/{name}")


def control(editor: SphereEditor, label: str) -> Any:
    """The control of this label."""
    handles = editor._scene.gui._gui_input_handle_from_uuid.values()
    return next(handle for handle in handles if getattr(handle, "label", None) == label)


def push(editor: SphereEditor, label: str, option: str | None = None) -> None:
    """Do what a browser's click on a button does."""
    button = control(editor, label)
    if option is not None:
        button._impl.value = option
    for callback in button._impl.update_cb:
        callback(SimpleNamespace(target=button))


def pull(editor: SphereEditor, phase: str, position: Any = None) -> None:
    """Do what a browser's drag of the gizmo does: its callback, with the gizmo at a position."""
    gizmo = node(editor, "gizmo/arrows")
    if position is not None:
        gizmo._impl.position = np.array(position, dtype=float)
    for callback in gizmo._impl_aux.update_cb:
        asyncio.run(callback(SimpleNamespace(target=gizmo, phase=phase)))


def test_the_scene_shows_meshes_and_spheres_where_the_joints_have_them(editor: SphereEditor) -> None:
    for layer in ("meshes", "spheres"):
        np.testing.assert_allclose(node(editor, f"{layer}/tip").position, (0, 0, 0.1))
        np.testing.assert_allclose(node(editor, f"{layer}/base").position, (0, 0, 0))
    shown = node(editor, "spheres/tip")
    np.testing.assert_allclose(shown.batched_positions, editor.model["tip"].centers)
    np.testing.assert_allclose(shown.batched_scales, editor.model["tip"].radii)
    control(editor, "lift").value = 0.5
    for layer in ("meshes", "spheres"):
        np.testing.assert_allclose(node(editor, f"{layer}/tip").position, (0, 0, 0.5))


def test_the_slider_changes_the_count_of_the_selected_link_only(editor: SphereEditor) -> None:
    tip = editor.model["tip"]
    control(editor, "Count").value = 12
    assert editor.wait(TIMEOUT)
    assert len(editor.model["base"]) == 12
    assert editor.model["tip"] is tip
    assert len(node(editor, "spheres/base").batched_positions) == 12
    assert len(node(editor, "spheres/tip").batched_positions) == 3
    control(editor, "Link").value = "tip"
    assert control(editor, "Count").value == 3
    assert editor.model["tip"] is tip, "choosing a link must not refit it"


def test_choosing_a_variant_refits_with_it(editor: SphereEditor) -> None:
    control(editor, "Variant").value = "surface"
    assert editor.wait(TIMEOUT)
    assert editor.model["base"].variant == "surface"
    assert editor.model["tip"].variant == "balanced"
    assert not editor.model["base"].same_spheres(start().present["base"].centers, start().present["base"].radii)


def test_a_click_selects_link_and_sphere_and_a_second_one_neither(editor: SphereEditor) -> None:
    event = SimpleNamespace(instance_index=1)
    for entry in node(editor, "spheres/tip")._impl.click_cb:
        entry.callback(event)
    assert control(editor, "Link").value == "tip"
    assert control(editor, "Number").value == 2
    assert tuple(node(editor, "spheres/tip").batched_colors[1]) == SELECTED_COLOR
    gizmo = node(editor, "gizmo/arrows")
    assert gizmo.visible
    np.testing.assert_allclose(gizmo.position, editor.model["tip"].centers[1])
    np.testing.assert_allclose(node(editor, "gizmo").position, (0, 0, 0.1))
    editor.click("tip", 1)
    assert control(editor, "Number").value == 0
    assert not gizmo.visible


def test_the_gizmo_moves_exactly_one_sphere_and_one_undo_takes_it_back(editor: SphereEditor) -> None:
    before = editor.model
    editor.select_sphere(1)
    pull(editor, "start")
    for x in (0.01, 0.02, 0.03):
        pull(editor, "update", (x, 0.0, 0.0))
    pull(editor, "end")
    after = editor.model["base"]
    np.testing.assert_array_equal(after.centers[1], (0.03, 0, 0))
    np.testing.assert_array_equal(after.centers[[0, 2]], before["base"].centers[[0, 2]])
    np.testing.assert_array_equal(after.radii, before["base"].radii)
    assert after.locked.tolist() == [False, True, False]
    assert editor.model["tip"] is before["tip"]
    np.testing.assert_allclose(node(editor, "spheres/base").batched_positions[1], (0.03, 0, 0))
    # The next drag is another step.
    pull(editor, "start")
    pull(editor, "update", (0.05, 0.0, 0.0))
    pull(editor, "end")
    push(editor, "Steps", "Undo")
    assert editor.model["base"] is after
    push(editor, "Steps", "Undo")
    assert editor.model == before
    push(editor, "Steps", "Redo")
    assert editor.model["base"] is after


def test_locked_spheres_stay_in_place_through_refits_and_stay_selected(editor: SphereEditor) -> None:
    editor.select_sphere(1)
    editor.move_sphere((0.012345678901234567, 0.02, 0.03))
    control(editor, "Radius [mm]").value = 41.5
    kept = editor.model["base"]
    assert kept.radii[1] == pytest.approx(0.0415)
    for count in (9, 2, 30):
        control(editor, "Count").value = count
        assert editor.wait(TIMEOUT)
        now = editor.model["base"]
        assert len(now) == count
        np.testing.assert_array_equal(now.centers[0], kept.centers[1])
        assert now.radii[0] == kept.radii[1]
        assert now.locked.tolist() == [True] + [False] * (count - 1)
        assert control(editor, "Number").value == 1
        assert control(editor, "Locked").value is True
    editor.select_sphere(None)
    assert tuple(node(editor, "spheres/base").batched_colors[0]) == LOCKED_COLOR
    assert tuple(node(editor, "spheres/base").batched_colors[1]) != LOCKED_COLOR
    push(editor, "Change", "Unlock all")
    push(editor, "Refit others")
    assert editor.wait(TIMEOUT)
    assert not (editor.model["base"].centers == kept.centers[1]).all(axis=1).any()


def test_the_selection_of_a_free_sphere_ends_with_a_refit(editor: SphereEditor) -> None:
    editor.select_sphere(2)
    editor.refit()
    assert editor.wait(TIMEOUT)
    assert control(editor, "Number").value == 0
    assert not node(editor, "gizmo/arrows").visible


def test_a_lock_can_be_set_and_taken(editor: SphereEditor) -> None:
    editor.select_sphere(0)
    control(editor, "Locked").value = True
    assert editor.model["base"].locked.tolist() == [True, False, False]
    control(editor, "Locked").value = False
    assert not editor.model["base"].locked.any()


def test_spheres_are_added_where_the_mesh_is_bare_and_removed(editor: SphereEditor) -> None:
    before = editor.model["base"]
    push(editor, "Change", "Add")
    longer = editor.model["base"]
    assert len(longer) == 4
    corners = gaps(MESHES["base"].vertices, before.centers, before.radii)
    reached = gaps(longer.centers[3:], before.centers, before.radii)
    assert reached[0] == pytest.approx(corners.max(), rel=0.05), "the corners of the box are barest"
    push(editor, "Change", "Remove")
    assert editor.model["base"].same_spheres(before.centers, before.radii)


def test_a_failed_fit_keeps_the_spheres_and_says_why(editor: SphereEditor) -> None:
    before = editor.model
    control(editor, "Count").value = 50
    assert editor.wait(TIMEOUT)
    assert editor.model is before
    assert "at most 40" in editor.message
    assert "at most 40" in editor._panel._status.content
    assert control(editor, "Count").value == 3, "the slider goes back to what there is"
    assert not control(editor, "Refit others").disabled
    editor.select_sphere(0)
    editor.move_sphere((0, 0, 0))
    editor.select_sphere(1)
    editor.move_sphere((0, 0, 0.01))
    control(editor, "Count").value = 1
    assert editor.wait(TIMEOUT)
    assert "at least 2" in editor.message
    assert len(editor.model["base"]) == 3


def test_an_unforeseen_error_of_the_fit_is_shown_too() -> None:
    def broken(*_: object) -> EditedLink:
        raise ZeroDivisionError("by nothing")

    with make_editor(fit=broken) as editor:
        editor.select_link("base")
        before = editor.model
        editor.refit()
        assert editor.wait(TIMEOUT)
        assert editor.message == "ZeroDivisionError: by nothing"
        assert editor.model is before


def test_while_a_fit_runs_the_newest_count_wins_and_one_undo_takes_the_slide_back() -> None:
    running, go_on = threading.Event(), threading.Event()
    counts = []

    def slow(link: str, spheres: EditedLink, count: int) -> EditedLink:
        counts.append(count)
        running.set()
        assert go_on.wait(TIMEOUT)
        return spheres.refitted(row_of_spheres, count)

    with make_editor(fit=slow) as editor:
        editor.select_link("base")
        before = editor.model
        slider = control(editor, "Count")
        slider.value = 5
        assert running.wait(TIMEOUT)
        assert control(editor, "Refit others").disabled
        assert "fitting 5" in editor.message
        for count in (6, 7, 8):
            slider.value = count
        assert editor.model is before
        assert slider.value == 8
        go_on.set()
        assert editor.wait(TIMEOUT)
        assert counts == [5, 8]
        assert len(editor.model["base"]) == 8
        editor.undo()
        assert editor.model == before


def test_a_fit_of_spheres_that_were_changed_meanwhile_is_dropped() -> None:
    running, go_on = threading.Event(), threading.Event()

    def slow(link: str, spheres: EditedLink, count: int) -> EditedLink:
        running.set()
        assert go_on.wait(TIMEOUT)
        return spheres.refitted(row_of_spheres, count)

    with make_editor(fit=slow) as editor:
        editor.select_link("base")
        editor.set_count(5)
        assert running.wait(TIMEOUT)
        editor.select_sphere(0)
        editor.move_sphere((0.01, 0.02, 0.03))
        edited = editor.model["base"]
        go_on.set()
        assert editor.wait(TIMEOUT)
        assert editor.model["base"] is edited
        assert "dropped" in editor.message
        assert control(editor, "Count").value == 3


def test_figures_follow_the_spheres_and_a_mesh_without_any_can_be_edited() -> None:
    def measure(link: str, spheres: EditedLink) -> Measured:
        if link == "tip":
            raise InvalidInputError("mesh", "zero area", "a mesh with area")
        return Measured(d_avg=1e-3 * len(spheres), inside=float("nan"))

    with make_editor(measure=measure) as editor:
        editor.select_link("base")
        assert editor.wait(TIMEOUT)
        assert "3.00 mm" in editor._panel._status.content
        editor.set_count(7)
        assert editor.wait(TIMEOUT)
        assert "7.00 mm" in editor._panel._status.content
        assert "10 spheres" in editor._panel._status.content
        editor.select_link("tip")
        editor.set_count(4)
        assert editor.wait(TIMEOUT)
        assert len(editor.model["tip"]) == 4


def test_saving_tells_where_and_a_failure_why() -> None:
    def fails(_: EditedModel) -> Path:
        raise OSError("No space left on device")

    saved: list[EditedModel] = []
    exports = {"Save": lambda model: saved.append(model) or Path("there.json"), "Save elsewhere": fails}
    with make_editor(exports=exports) as editor:
        editor.select_link("base")
        assert not editor.has_unsaved_changes
        editor.set_count(4)
        assert editor.wait(TIMEOUT)
        assert editor.has_unsaved_changes
        push(editor, "Save elsewhere")
        assert "No space left" in editor.message
        assert editor.has_unsaved_changes
        push(editor, "Save")
        assert saved == [editor.model]
        assert "there.json" in editor.message
        assert not editor.has_unsaved_changes


def test_the_gap_colours_the_mesh_red_where_it_is_bare(editor: SphereEditor) -> None:
    import trimesh

    plain = node(editor, "meshes/base")
    control(editor, "Colour by gap").value = True
    painted = node(editor, "meshes/base")
    assert painted is not plain
    mesh = trimesh.load(io.BytesIO(painted.glb_data), file_type="glb", force="mesh")
    spheres = editor.model["base"]
    distance = gaps(np.asarray(mesh.vertices), spheres.centers, spheres.radii)
    red, _, blue, _ = np.asarray(mesh.visual.vertex_colors, dtype=int).T
    assert (red - blue)[distance > 0.01].min() > 60
    assert (blue - red)[distance < -0.005].min() > 60
    assert node(editor, "spheres/base").opacity < 0.1, "opaque spheres would hide the colours"
    control(editor, "Link").value = "tip"
    assert not hasattr(node(editor, "meshes/base"), "glb_data")
    assert hasattr(node(editor, "meshes/tip"), "glb_data")


def test_clip_planes_cut_the_meshes_and_hide_spheres_beyond(editor: SphereEditor) -> None:
    def top(link: str, axis: int = 2) -> float:
        shown = node(editor, f"meshes/{link}")
        return float(shown.position[axis] + shown.vertices[:, axis].max())

    assert (top("base"), top("tip")) == pytest.approx((0.05, 0.2))
    control(editor, "z up to [mm]").value = 20.0
    assert (top("base"), top("tip")) == pytest.approx((0.02, 0.02))
    np.testing.assert_allclose(node(editor, "spheres/base").batched_scales, editor.model["base"].radii)
    assert node(editor, "spheres/tip").batched_scales.max() < 1e-6
    # The world's plane stays where it is when a link moves.
    control(editor, "lift").value = 0.11
    assert top("tip") == pytest.approx(0.02)
    control(editor, "lift").value = 0.5
    assert node(editor, "meshes/tip") is None
    control(editor, "y up to [mm]").value = 50.0
    assert top("base", axis=1) == pytest.approx(0.05)
    shown = node(editor, "spheres/base").batched_scales
    np.testing.assert_array_equal(shown > 1e-6, [True, True, False])
    # Clicks, the model and the figures know nothing of it.
    editor.click("base", 2)
    assert editor._sphere == 2
    assert len(editor.model["base"]) == 3
    control(editor, "Colour by gap").value = True
    assert node(editor, "meshes/base") is not None
    control(editor, "Colour by gap").value = False
    for label in ("y up to [mm]", "z up to [mm]"):
        slider = control(editor, label)
        slider.value = slider.max
    assert (top("base"), top("base", axis=1)) == pytest.approx((0.05, 0.15))
    assert top("tip") == pytest.approx(0.6)
    np.testing.assert_allclose(node(editor, "spheres/tip").batched_scales, editor.model["tip"].radii)


def test_without_a_link_or_sphere_nothing_can_be_changed() -> None:
    with make_editor() as editor:
        before = editor.model
        for label in ("Count", "Variant", "Refit others", "Number", "Locked"):
            assert control(editor, label).disabled, label
        for call in (editor.refit, editor.add_sphere, lambda: editor.set_count(4), lambda: editor.select_sphere(0)):
            with pytest.raises(InvalidInputError, match="selected link"):
                call()
        push(editor, "Change", "Remove")
        assert "selected" in editor.message
        editor.select_link("base")
        with pytest.raises(InvalidInputError, match="selected sphere"):
            editor.remove_sphere()
        with pytest.raises(InvalidInputError, match="0 to 2"):
            editor.select_sphere(3)
        with pytest.raises(InvalidInputError, match="base, tip"):
            editor.select_link("elbow")
        editor.drag("update", np.zeros(3))
        assert editor.model is before


def test_a_single_mesh_is_selected_from_the_start() -> None:
    shape = EditedShape("box", {"box": MESHES["base"]})
    history = EditHistory(EditedModel({"box": start().present["base"]}))
    with SphereEditor(shape, history, functions(), VARIANTS, port=0) as editor:
        editor.set_count(4)
        assert editor.wait(TIMEOUT)
        assert len(editor.model["box"]) == 4
        np.testing.assert_allclose(node(editor, "meshes/box").position, 0.0)


def test_only_loopback_is_served_and_links_need_a_mesh() -> None:
    shape = EditedShape("arm", MESHES)
    with pytest.raises(InvalidInputError, match="loopback"):
        SphereEditor(shape, start(), functions(), VARIANTS, host="0.0.0.0", port=0)
    with pytest.raises(InvalidInputError, match="'tip'"):
        SphereEditor(EditedShape("arm", {"base": MESHES["base"]}), start(), functions(), VARIANTS, port=0)


def test_closing_twice_and_calls_afterwards_do_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    editor = make_editor()
    editor.close()
    editor.close()
    editor.select_link("base")
    editor.refit()
    assert capfd.readouterr() == ("", "")


def test_the_worker_skips_what_is_superseded_and_survives_errors() -> None:
    failures: list[BaseException] = []
    worker = NewestWorker(failures.append)
    begun, go_on = threading.Event(), threading.Event()
    done: list[int] = []

    def first() -> None:
        begun.set()
        assert go_on.wait(TIMEOUT)
        raise ValueError("first")

    worker.submit(first)
    assert begun.wait(TIMEOUT)
    assert not worker.wait(0.01)
    for number in range(3):
        worker.submit(lambda number=number: done.append(number))
    assert worker.superseded
    go_on.set()
    assert worker.wait(TIMEOUT)
    assert done == [2]
    assert [str(error) for error in failures] == ["first"]
    worker.close()
    worker.submit(lambda: done.append(9))
    assert worker.wait(0.0)
    assert done == [2]


def test_the_panel_escapes_what_it_is_told() -> None:
    figures = (Figures("<i>link</i>", 3, 1, 0.001, None, float("nan"), 0.5),)
    state = PanelState("a", 1, 2, "balanced", 1, None, 0.1, 0.2, False, False, "<script>", True, figures)
    text = editor_html(state)
    assert "<script>" not in text
    assert "&lt;i&gt;link" in text
    assert "1.00 mm" in text
    assert "…" in text
    assert "–" in text


class Browser:
    """A page in headless Chromium that is looked at, and worked on with the mouse, as often as a test likes."""

    def __init__(self, page: Any) -> None:
        self._page = page
        script = "JSON.stringify(document.querySelector('canvas')?.getBoundingClientRect() ?? {})"
        end = time.monotonic() + TIMEOUT
        box: dict[str, float] = {}
        while not box.get("width"):
            assert time.monotonic() < end, "the page has no scene"
            self.pause(1)
            reply = page.call("Runtime.evaluate", expression=script, returnByValue=True)
            box = json.loads(reply["result"]["value"])
        # What is around the scene may still take from its size.
        self.pause(8)
        box = json.loads(page.call("Runtime.evaluate", expression=script, returnByValue=True)["result"]["value"])
        self.width, self.height = box["width"], box["height"]

    def pause(self, frames: int = 2) -> None:
        """Let the page draw."""
        for _ in range(frames):
            script = "new Promise(r => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(r), 300)))"
            self._page.call("Runtime.evaluate", expression=script, awaitPromise=True)

    def picture(self) -> np.ndarray:
        """The scene (H, W, 3) once two looks at it show the same."""
        pictures = ["", " "]
        while pictures[-1] != pictures[-2]:
            self.pause()
            pictures.append(self._page.call("Page.captureScreenshot", format="png")["data"])
            assert len(pictures) < 60, "the page does not come to rest"
        seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(pictures[-1]))).convert("RGB")).astype(int)
        return seen[:, : int(self.width)]

    def picture_with(self, seen: Callable[[np.ndarray], bool], what: str) -> np.ndarray:
        """The scene at rest once it shows something: a busy browser draws late what it was sent."""
        end = time.monotonic() + TIMEOUT
        while not seen(picture := self.picture()):
            assert time.monotonic() < end, f"{what} not to be seen"
        return picture

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until what the mouse did has come to the editor."""
        end = time.monotonic() + TIMEOUT
        while not is_so():
            assert time.monotonic() < end, f"{what} does not happen"
            self.pause(1)

    def mouse(self, kind: str, at: np.ndarray, pressed: bool) -> None:
        self._page.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=float(at[0]),
            y=float(at[1]),
            button="left" if pressed or kind == "mouseReleased" else "none",
            buttons=int(pressed),
            clickCount=int(kind != "mouseMoved"),
        )

    def drag(self, start: np.ndarray, end: np.ndarray, steps: int = 4) -> None:
        """Press at one place [px], let go at another."""
        self.mouse("mouseMoved", start, False)
        self.pause()
        self.mouse("mousePressed", start, True)
        for step in range(1, steps + 1):
            self.mouse("mouseMoved", start + (end - start) * step / steps, True)
            self.pause(1)
        self.mouse("mouseReleased", end, False)
        self.pause()


@contextlib.contextmanager
def browsing(url: str) -> Iterator[Browser]:
    """A page in a browser of its own."""
    from websockets.sync.client import connect

    with chromium._browser(chromium._chromium(None), 300.0) as (process, _):  # noqa: SIM117
        with connect(chromium._address(process), max_size=None, proxy=None) as connection:
            page = chromium.Page(connection, (800, 420))
            page.open(url)
            yield Browser(page)


def share(picture: np.ndarray, color: tuple[int, int, int]) -> float:
    """Share of pixels whose hue is about that of a colour."""
    vivid = np.ptp(picture, axis=2) > 40
    tint = picture / np.maximum(np.linalg.norm(picture, axis=2, keepdims=True), 1.0)
    return float((vivid & (tint @ (np.array(color) / np.linalg.norm(color)) > 0.95)).mean())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.usefixtures("plain_drawing")
def test_a_browser_shows_mesh_and_spheres_and_its_mouse_moves_one() -> None:
    spheres = EditedLink([[0, 0, 0], [0, -0.1, 0], [0, 0.1, 0]], [0.07, 0.06, 0.06])
    history = EditHistory(EditedModel({"base": spheres}))
    shape = EditedShape("box", {"base": MESHES["base"]})
    with SphereEditor(shape, history, functions(), VARIANTS, port=0) as editor:
        own = editor._scene.color("base")
        editor._scene.show("spheres", False)
        with browsing(editor.url) as browser:
            without = browser.picture_with(
                lambda seen: ((np.ptp(seen, axis=2) < 40) & (seen.min(axis=2) > 45)).mean() > 0.05, "the mesh"
            )
            assert share(without, own) < 0.002
            editor._scene.show("spheres", True)
            few = browser.picture_with(lambda seen: share(seen, own) > 0.05, "the spheres")

            camera = editor._scene._server.initial_camera
            T_camera_world = invert_transform(look_at(camera.position, camera.look_at, (0, 0, 1)))
            focal = 0.5 * browser.height / np.tan(0.5 * camera.fov)

            def pixel(point: tuple[float, float, float]) -> np.ndarray:
                seen = transform_points(T_camera_world, np.array(point))
                return np.array([browser.width, browser.height]) / 2 + focal * seen[:2] / seen[2]

            center = pixel((0, 0, 0))
            browser.drag(center, center)
            browser.until(lambda: editor._sphere is not None, "the selection of a sphere by a click")
            assert editor._sphere == 0
            browser.picture_with(lambda seen: share(seen, SELECTED_COLOR) > 0.01, "the colour of what is selected")
            arrow = 0.7 * node(editor, "gizmo/arrows").scale
            browser.drag(pixel((0, 0, arrow)), pixel((0, 0, arrow + 0.05)))
            browser.until(lambda: bool(editor._history.past) and not editor._dragging, "the end of the drag")
            moved = editor.model["base"]
            np.testing.assert_allclose(moved.centers[0], (0, 0, 0.05), atol=0.01)
            np.testing.assert_array_equal(moved.centers[1:], spheres.centers[1:])
            np.testing.assert_array_equal(moved.radii, spheres.radii)
            assert moved.locked.tolist() == [True, False, False]
            assert len(editor._history.past) == 1

            editor.select_sphere(None)
            control(editor, "Count").value = 12
            assert editor.wait(TIMEOUT)
            assert share(few, LOCKED_COLOR) < 0.002
            browser.picture_with(
                lambda many: share(many, LOCKED_COLOR) > 0.005 and (np.abs(many - few).max(axis=2) > 40).mean() > 0.02,
                "the locked sphere's colour and twelve spheres",
            )
            np.testing.assert_array_equal(editor.model["base"].centers[0], moved.centers[0])
