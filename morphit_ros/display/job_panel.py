"""What a view's panel has about a job: whom it waits for, what can be asked of the arm, clearance over time."""

from __future__ import annotations

import html
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphit_ros.display.panel import BAD_COLOR, DOUBT_COLOR, GOOD_COLOR, Panel
from morphit_ros.geometry.transforms import Array

# What is asked of the arm: name → label, hint.
ASKED = {
    "pick": ("Pick", "see, plan and lift: the object that was clicked, or the one that perception chooses"),
    "place": ("Put back", "put what the hand holds where it was grasped"),
    "go_home": ("Home", "the arm to the robot's home, with what the hand holds"),
    "release": ("Release", "open the hand where it is: what is in the air falls"),
    "recover": ("Recover", "after a fault: look what is held, up, and home"),
}
STOP, NO_TARGET = "stop", "no target"
_RED, _GREY = (201, 42, 42), (73, 80, 87)
# Clearances shown: so many, and their names and colours.
_MOST = 600
# Bounds of the plot are multiples of this [mm], [s].
_STEP, _SPAN = 50.0, 60.0
_SERIES = (("to the world", "#ffa94d"), ("to itself", "#4dabf7"))
_AXIS = {"stroke": "#adb5bd", "grid": {"stroke": "rgba(255,255,255,0.08)"}, "ticks": {"stroke": "#495057"}}


class JobPanel:
    """Rows about nodes, buttons and a plot, above the layers of a view.

    Args:
        gui: of the page.
        panel: of that page.
        press: called with a name of `ASKED`, with `STOP` or `NO_TARGET`, from threads of the page; None: no buttons.
    """

    def __init__(self, gui: Any, panel: Panel, press: Callable[[str], None] | None) -> None:
        self._gui, self._panel, self._press = gui, panel, press
        # Pages call from threads of theirs.
        self._lock = threading.Lock()
        self._rows: tuple[Sequence[tuple[str, str, str]], str] = ((), "")
        self._said = ("", False)
        self._target = ""
        self._buttons: dict[str, Any] = {}
        with panel.add_folder("Job", above=True):
            self._nodes, self._task, self._plan = gui.add_html(""), gui.add_html(""), gui.add_html("")
            if press is not None:
                for name, (label, hint) in ASKED.items():
                    self._buttons[name] = self._button(name, label, hint, None)
                self._button(STOP, "STOP", "take back whatever the arm was asked for, by whomever", _RED)
                self._answer = gui.add_html("")
                self._clear = self._button(NO_TARGET, "Forget the target", "let perception choose", _GREY)
                self._clear.visible = False
        self._plot: Any = None
        self._nearest: Any = None
        self._series: deque[tuple[float, float, float]] = deque(maxlen=_MOST)
        self.set_nodes((), "nothing has been heard")
        self._say()
        panel.set_status("nothing was asked for yet", {}, ())

    def _button(self, name: str, label: str, hint: str, color: tuple[int, int, int] | None) -> Any:
        assert self._press is not None
        press = self._press
        button = self._gui.add_button(label, hint=hint, color=color)
        button.on_click(lambda _: press(name))
        return button

    def set_nodes(self, rows: Sequence[tuple[str, str, str]], waiting: str) -> None:
        """Say how the job's nodes stand.

        Args:
            rows: (node, what it says, "good", "doubt" or "bad") of those that there is something to say about.
            waiting: why nothing can be asked for yet; empty: everything can.
        """
        with self._lock:
            if (rows, waiting) == self._rows and self._nodes.content:
                return
            self._rows = rows, waiting
            self._nodes.content = nodes_html(rows, waiting)

    def set_task(self, text: str, tree: Sequence[tuple[str, str]], failed: bool) -> None:
        """Say what a task does, and why.

        Args:
            text: in words.
            tree: (name, state and reason) of each behaviour that was ticked, names indented by their depth.
            failed: whether it has ended without success.
        """
        with self._lock:
            self._task.content = task_html(text, tree, failed)

    def set_plan(self, text: str, certificate: str, success: bool) -> None:
        """Say what the newest planned motion is, and what is proven of it."""
        with self._lock:
            self._plan.content = plan_html(text, certificate, success)

    def set_enabled(self, enabled: bool) -> None:
        """Whether the arm can be asked for something; to stop is always possible."""
        for button in self._buttons.values():
            if button.disabled == enabled:
                button.disabled = not enabled

    def say(self, text: str, failed: bool = False) -> None:
        """What became of the last press."""
        with self._lock:
            self._said = text, failed
        self._say()

    def set_target(self, text: str) -> None:
        """What the next pick is for, in words; empty: perception chooses."""
        with self._lock:
            self._target = text
        self._say()

    def _say(self) -> None:
        if self._press is None:
            return
        with self._lock:
            text, failed = self._said
            self._answer.content = answer_html(self._target, text, failed)
            self._clear.visible = bool(self._target)

    def add_clearance(self, time: float, world: float, own: float, names: Sequence[str] = ()) -> None:
        """Add a moment to the plot.

        Args:
            time: now [s].
            world: distance to the nearest object [m]; NaN: nothing is known.
            own: least distance of two links [m].
            names: of the nearer pair of both, whose points the scene shows.
        """
        with self._lock:
            self._series.append((time, world, own))
            values = np.array(self._series)
            data = (values[:, 0] - time, 1e3 * values[:, 1], 1e3 * values[:, 2])
            scales = clearance_scales(data)
            if self._plot is None:
                lines = ({"label": name, "stroke": color, "width": 2} for name, color in _SERIES)
                with self._panel.add_folder("Clearance [mm] over time [s]", above=True):
                    self._plot = self._gui.add_uplot(
                        data, ({"label": "s"}, *lines), scales=scales, axes=(_AXIS, _AXIS), height=160,
                    )  # fmt: skip
                    self._nearest = self._gui.add_html(nearest_html(names, world, own))
                return
            self._nearest.content = nearest_html(names, world, own)
            if scales != self._plot.scales:
                self._plot.scales = scales
            self._plot.data = data


def nearest_html(names: Sequence[str], world: float, own: float) -> str:
    """The nearest pair and how far apart it is; all text is escaped."""
    if not any(names):
        return ""
    text = f"{html.escape(' – '.join(names))}: {1e3 * np.nanmin([world, own]):.2f} mm"
    return f'<div style="padding:2px 12px 6px;font-size:13px">{text}</div>'


def clearance_scales(data: tuple[Array, Array, Array]) -> dict[str, Any]:
    """Bounds of the plot of `data`: a plot that finds them by itself is lost where something is not known."""
    known = np.concatenate([np.zeros(1), *(values[np.isfinite(values)] for values in data[1:])])
    low, high = _STEP * np.floor(known.min() / _STEP), _STEP * np.ceil(max(known.max(), _STEP) / _STEP)
    past = -_SPAN * np.ceil(max(-data[0][0], _SPAN) / _SPAN)
    return {"x": {"time": False, "range": (float(past), 0.0)}, "y": {"range": (float(low), float(high))}}


def task_html(text: str, tree: Sequence[tuple[str, str]], failed: bool) -> str:
    """A task's tree; all text is escaped."""
    colors = {"success": GOOD_COLOR, "running": DOUBT_COLOR, "failure": BAD_COLOR}
    head = f'<div style="font-weight:600;color:{BAD_COLOR if failed else GOOD_COLOR}">{html.escape(text)}</div>'
    rows = []
    for name, state in tree:
        depth = len(name) - len(name.lstrip())
        color = colors.get(state.partition(":")[0], GOOD_COLOR)
        rows.append(
            f'<div style="padding-left:{0.5 * depth:.1f}em"><span style="color:{color}">●</span> '
            f"{html.escape(name.strip())} <i>{html.escape(state.partition(': ')[2])}</i></div>"
        )
    return f'<div style="font-size:0.85em;padding:0.3em 0">{head}{"".join(rows)}</div>'


def nodes_html(rows: Sequence[tuple[str, str, str]], waiting: str) -> str:
    """Whom the job waits for, and what nodes say; all text is escaped."""
    colors = {"good": GOOD_COLOR, "doubt": DOUBT_COLOR, "bad": BAD_COLOR}
    title = f"waiting: {waiting}" if waiting else "ready"
    head = f'<div style="font-weight:600;color:{DOUBT_COLOR if waiting else GOOD_COLOR}">{html.escape(title)}</div>'
    lines = "".join(
        f'<div style="overflow-wrap:anywhere"><span style="color:{colors[state]}">●</span> '
        f"<b>{html.escape(name)}</b> {html.escape(text)}</div>"
        for name, text, state in rows
    )
    return f'<div style="padding:2px 12px 6px;font-size:13px;line-height:1.45">{head}{lines}</div>'


def plan_html(text: str, certificate: str, success: bool) -> str:
    """The newest planned motion in words; all text is escaped."""
    color = (GOOD_COLOR if certificate.startswith("proven") else DOUBT_COLOR) if success else BAD_COLOR
    proof = f'<div style="color:{color}">{html.escape(certificate)}</div>' if certificate else ""
    return (
        '<div style="padding:0 12px 6px;font-size:13px;line-height:1.45;overflow-wrap:anywhere">'
        f'<div style="opacity:0.8">planned motion: {html.escape(text)}</div>{proof}</div>'
    )


def answer_html(target: str, text: str, failed: bool) -> str:
    """Target and last answer; all text is escaped."""
    aim = html.escape(f"target: {target}" if target else "target: click one, or perception chooses")
    color = BAD_COLOR if failed else "inherit"
    return (
        f'<div style="padding:2px 12px 6px;font-size:13px;line-height:1.45"><div style="opacity:0.8">{aim}</div>'
        f'<div style="color:{color};overflow-wrap:anywhere">{html.escape(text)}</div></div>'
    )
