"""The sketcher in a real browser, with a real mouse: a hand from nothing, two browsers, one that goes in the middle."""

from __future__ import annotations

import argparse
import base64
import io
import itertools
import json
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from morphit_ros.cli import make_parser
from morphit_ros.commands.sketch import make_page
from morphit_ros.display.screenshot import Page, opened_page
from morphit_ros.display.sketch_page import SketchPage
from morphit_ros.display.sketch_session import autosave_of
from morphit_ros.robot.description import load_robot_description
from morphit_ros.sketch.sketch_file import load_sketch

pytest.importorskip("websockets")
pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium (apt-get install chromium)")
SIZE = (1280, 800)
TIMEOUT = 90.0
Pixel = tuple[float, float]


class Hand:
    """Somebody at the page: each method is one action."""

    def __init__(self, page: Page) -> None:
        self._page, self.actions = page, 0
        self.wait("typeof S !== 'undefined' && S !== null")

    def ask(self, expression: str) -> Any:
        reply = self._page.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def wait(self, expression: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not self.ask(expression):
            assert time.monotonic() < end, f"{expression}: {self.ask('S && S.message')}"

    def draw(self, points: Sequence[Pixel], button: str = "left", modifiers: int = 0) -> None:
        """Press, move through points and let go; return when the answer is shown."""
        self.actions += 1
        self._mouse("mousePressed", points[0], button, modifiers)
        for a, b in itertools.pairwise(points):
            for share in np.linspace(0.0, 1.0, 7)[1:]:
                place = a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
                self._mouse("mouseMoved", place, button, modifiers)
        self._mouse("mouseReleased", points[-1], button, modifiers)
        self.settle()

    def ellipse(self, x: float, y: float, wide: float, high: float) -> None:
        self.draw([(x + wide * np.cos(angle), y + high * np.sin(angle)) for angle in np.linspace(0.0, 6.2, 16)])

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        self.actions += 1
        place = self.place(selector, 0.5, 0.5)
        self._mouse("mousePressed", place)
        self._mouse("mouseReleased", place)
        self.settle()

    def type(self, selector: str, text: str) -> None:
        """Put a text into a field, and leave it."""
        self.actions += 1
        self.ask(f"document.querySelector('{selector}').focus(); document.querySelector('{selector}').select()")
        self._page.call("Input.insertText", text=text)
        self.ask("document.activeElement.blur()")
        self.settle()

    def place(self, selector: str, x: float, y: float) -> Pixel:
        """A point of an element, at shares of its box."""
        self.ask(f"document.querySelector('{selector}').scrollIntoView({{block: 'nearest'}})")
        box = json.loads(
            self.ask(f"JSON.stringify(document.querySelector('{selector}').getBoundingClientRect().toJSON())")
        )
        assert box["width"] > 0, f"{selector} is not shown"
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def settle(self) -> None:
        self.wait("S.answers >= sent && waiting === null")

    def on_screen(self, point: Sequence[float]) -> Pixel:
        """Where a point of the world is shown."""
        x, y, _ = json.loads(self.ask(f"JSON.stringify(project({json.dumps([float(v) for v in point])}))"))
        return x, y

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._page.call("Page.captureScreenshot", format="png")["data"]))

    def touch(self, kind: str, *places: Pixel) -> None:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        self._page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def _mouse(self, kind: str, place: Pixel, button: str = "left", modifiers: int = 0) -> None:
        x, y = place
        buttons = 0 if kind == "mouseReleased" else {"left": 1, "right": 2}[button]
        self._page.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1,
            modifiers=modifiers,
        )  # fmt: skip


def options(folder: Path, *more: str) -> argparse.Namespace:
    return make_parser().parse_args(["sketch", str(folder / "hand.yaml"), "--port", "0", *more])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SketchPage]:
    with make_page(options(tmp_path)) as page:
        yield page


@pytest.mark.slow
def test_a_hand_of_sixteen_links_from_nothing_in_sixty_actions(served: SketchPage, tmp_path: Path) -> None:
    with opened_page(served.url, SIZE) as browser:
        hand = Hand(browser)
        # Bones: the palm, four fingers, a thumb.
        hand.draw([(490, 700), (490, 480)])
        for x in (400, 460, 520, 580):
            hand.draw([(x, 455), (x - 12, 350), (x + 8, 270), (x - 6, 210)])
        hand.draw([(470, 640), (330, 560), (290, 480), (290, 420)])
        assert len(served.session.sketch.bones) == 16
        # The thumb's first joint gets two axes, the others fold one way only.
        hand.click("[data-mode=joint]")
        hand.click("[data-bone=bone_13]")
        hand.click("#kind-universal")
        assert served.session.sketch["bone_13"].joint.kind == "universal"
        hand.click("[data-bone=bone_2]")
        hand.type("#lower-0", "0")
        assert served.session.sketch["bone_2"].joint.limits[0] == pytest.approx([0.0, np.pi / 2])
        # Hitboxes: the palm by hand, all others along their bones, one fingertip made square by the pad.
        hand.click("[data-mode=hitbox]")
        hand.ellipse(490, 590, 110, 120)
        (palm,) = served.session.sketch["base"].shapes
        scale = hand.ask("perPixel()")
        assert palm.shape.semi_axes == pytest.approx(np.array([110, 110, 120]) * scale, rel=0.03)
        hand.click("#fill")
        assert all(bone.shapes for bone in served.session.sketch.bones.values())
        hand.click("#tool-scale")
        middle = hand.on_screen(palm.T_link_shape[:3, 3] + served.session.sketch["base"].head_in_world)
        hand.draw([(middle[0] + 80, middle[1]), (middle[0] + 60, middle[1])])
        narrower = served.session.sketch["base"].shapes[0].shape.semi_axes
        assert sorted(narrower)[0] == pytest.approx(0.75 * palm.shape.semi_axes[0], rel=0.03)
        pad = hand.place("#pad-squareness", 0.3, 0.7)
        hand.draw([pad, pad])
        squareness = served.session.sketch["base"].shapes[0].shape.squareness
        assert squareness == pytest.approx([0.1 + 1.8 * 0.3, 0.1 + 1.8 * 0.3], abs=0.03)
        # Undo, redo, names, posture, looking round.
        hand.click("#undo")
        assert served.session.sketch["base"].shapes[0].shape.squareness == (1.0, 1.0)
        hand.click("#redo")
        hand.type("#bone-name", "palm")
        assert "palm" in served.session.sketch.bones
        hand.click("[data-mode=joint]")
        tip = hand.on_screen(served.session.sketch["bone_1"].tail_in_world)
        hand.draw([((tip[0] + 400) / 2, (tip[1] + 455) / 2), (tip[0] - 60, tip[1] + 20)])
        assert abs(served.session.positions["bone_1_joint"]) > 0.2
        hand.draw([(900, 300), (1000, 360)], button="right")
        hand.picture(tmp_path / "hand.png")
        hand.click("#save")
        hand.click("#export")
        hand.wait("!S.busy && S.message.includes('16 links')")
        # 60 were asked for.
        assert hand.actions <= 27
    description = load_robot_description(tmp_path / "hand_description/urdf/hand.urdf", [tmp_path])
    # Sixteen links, and one between the two axes of the thumb.
    assert len(description.links) == 17
    assert len(load_sketch(tmp_path / "hand.yaml").bones) == 16
    assert not autosave_of(tmp_path / "hand.yaml").exists()
    assert (tmp_path / "hand.png").stat().st_size > 20_000


def test_two_browsers_see_each_other_and_one_that_goes_takes_nothing_along(served: SketchPage, tmp_path: Path) -> None:
    with opened_page(served.url, SIZE) as browser:
        one = Hand(browser)
        with opened_page(served.url, SIZE) as other_browser:
            two = Hand(other_browser)
            one.draw([(490, 700), (490, 480)])
            two.wait("S.bones.length === 1")
            two.draw([(490, 478), (400, 350)])
            one.wait("S.bones.length === 2")
            # It goes with the button down, in the middle of a drag.
            two.click("#tool-move")
            two._mouse("mousePressed", (400, 350))
            two._mouse("mouseMoved", (420, 340))
            two.wait("S.answers >= sent && waiting === null")
        one.draw([(400, 340), (300, 300)])
        one.wait("S.bones.length === 3")
        assert not one.ask("S.error")
        assert one.ask("document.title").startswith("•")
    # Nobody looks any more; all is there, and in the autosave.
    assert len(served.session.sketch.bones) == 3
    served.close()
    with make_page(options(tmp_path)) as again:
        assert len(again.session.sketch.bones) == 3


def test_two_fingers_scale_and_turn_a_hitbox(served: SketchPage) -> None:
    with opened_page(served.url, SIZE) as browser:
        hand = Hand(browser)
        hand.draw([(490, 600), (490, 300)])
        hand.click("[data-mode=hitbox]")
        hand.ellipse(490, 450, 40, 120)
        before = served.session.sketch["base"].shapes[0]
        browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        hand.click("[data-bone=base]")
        # Apart to twice the distance, and round by a quarter.
        hand.touch("touchStart", (440, 450), (540, 450))
        for share in np.linspace(0.0, 1.0, 12):
            angle, reach = 0.5 * np.pi * share, 50 * (1 + share)
            way = reach * np.cos(angle), reach * np.sin(angle)
            hand.touch("touchMove", (490 - way[0], 450 - way[1]), (490 + way[0], 450 + way[1]))
        hand.touch("touchEnd")
        hand.settle()
        after = served.session.sketch["base"].shapes[0]
        assert after.shape.semi_axes == pytest.approx(2.0 * np.array(before.shape.semi_axes), rel=0.05)
        along = [placed.T_link_shape[:3, 2] for placed in (before, after)]
        assert abs(along[0] @ along[1]) < 0.1
        hand.click("#undo")
        assert served.session.sketch["base"].shapes[0] == before


def test_hostile_texts_are_texts(served: SketchPage) -> None:
    with opened_page(served.url, SIZE) as browser:
        hand = Hand(browser)
        hand.draw([(490, 600), (490, 300)])
        served.session.do({"do": "explode<img src=x onerror=alert(1)>"})
        hand.wait("S.error")
        assert hand.ask("document.querySelectorAll('#message img').length") == 0
        assert "explode<img" in hand.ask("document.getElementById('message').textContent")
        # A page of another origin, or one without the cookie, gets no socket.
        reply = hand.ask("document.cookie")
        assert reply == ""


def test_strangers_and_broken_messages_end_nothing(served: SketchPage) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    address = served.url.replace("http", "ws").split("?")[0]
    with pytest.raises(InvalidStatus), connect(address, proxy=None):
        pass
    with opened_page(served.url, SIZE) as browser:
        hand = Hand(browser)
        for text in ("", "{", "[1, 2]", "null", '{"do": "open", "name": "x.stl", "content": "%%"}', "[" * 5000):
            hand.ask(f"socket.send({json.dumps(text)})")
        hand.draw([(490, 600), (490, 300)])
        assert len(served.session.sketch.bones) == 1


def test_a_page_ends_while_a_browser_looks(tmp_path: Path) -> None:
    before = threading.active_count()
    with make_page(options(tmp_path)) as page, opened_page(page.url, SIZE) as browser:
        hand = Hand(browser)
        page.close()
        hand.wait("socket.readyState !== 1")
    end = time.monotonic() + TIMEOUT
    while threading.active_count() > before:
        assert time.monotonic() < end, [thread.name for thread in threading.enumerate()]
        time.sleep(0.05)


def test_a_large_photograph_is_laid_behind_as_a_smaller_one_and_stays(served: SketchPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # No photograph is this noisy: 18 MB as a PNG.
    Image.fromarray(rng.integers(0, 256, (2000, 3000, 3), dtype=np.uint8)).save(tmp_path / "photo.png")
    with opened_page(served.url, SIZE) as browser:
        sketcher = Hand(browser)
        root = browser.call("DOM.getDocument")["root"]["nodeId"]
        chosen = browser.call("DOM.querySelector", nodeId=root, selector="#picture")["nodeId"]
        browser.call("DOM.setFileInputFiles", nodeId=chosen, files=[str(tmp_path / "photo.png")])
        sketcher.wait("backdrop !== null")
        # The picture comes before the state that says it is not saved yet; until then there is nothing to save.
        sketcher.wait("!S.saved")
        sketcher.click("#save")
        sketcher.wait("S.saved")
        sketcher.picture(tmp_path / "behind.png")
    picture = load_sketch(tmp_path / "hand.yaml").picture
    assert picture is not None
    kind, data = picture.data.split(",")
    assert kind == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (2048, 1365)
    assert picture.T_world_picture[:3, 0] == pytest.approx(np.array([1.0, 0.0, 0.0]), abs=1e-9)
    # Another page shows what the file holds.
    with make_page(options(tmp_path)) as again, opened_page(again.url, SIZE) as browser:
        sketcher = Hand(browser)
        sketcher.wait("backdrop !== null")
        assert sketcher.ask("backdrop.image.width") == 2048
