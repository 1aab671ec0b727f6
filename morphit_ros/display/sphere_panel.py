"""The controls of the sphere editor: what they show, and what they call."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from morphit_ros.display.panel import titled_html
from morphit_ros.display.sphere_figures import Figures
from morphit_ros.display.sphere_shape import JointRange
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.display.sphere_editor import SphereEditor

WHOLE_ROBOT = "(all links)"
_ERROR_COLOR, _BUSY_COLOR = "#ff8a8a", "#ffcf66"


@dataclass(frozen=True)
class PanelState:
    """All that the controls show.

    Attributes:
        link: the selected one, None for all.
        count, count_limit: spheres of the link, or the number asked for; end of the slider.
        variant: of the link's refits.
        rows: spheres that the link has.
        sphere: row of the selected one, None if there is none.
        radius, radius_limit: of the selected sphere; end of the slider [m].
        locked: whether the selected sphere is locked.
        busy: whether a fit is under way.
        message, is_error: last news.
        figures: the lines of the table.
    """

    link: str | None
    count: int
    count_limit: int
    variant: str
    rows: int
    sphere: int | None
    radius: float
    radius_limit: float
    locked: bool
    busy: bool
    message: str
    is_error: bool
    figures: tuple[Figures, ...]


class SpherePanel:
    """Controls in a viser GUI, above whatever else is there."""

    def __init__(
        self,
        gui: Any,
        actions: SphereEditor,
        links: Sequence[str],
        variants: Sequence[str],
        exports: Sequence[str],
        joints: Sequence[JointRange],
        bounds: Array,
    ) -> None:
        """Add the controls.

        Args:
            gui: viser's.
            actions: what the controls call, from other threads, never while the panel is being updated.
            links: to choose from.
            variants: presets to choose from.
            exports: labels of the buttons that write files.
            joints: that can be moved.
            bounds: (2, 3) corners of the box that clip planes go through [m].
        """
        self._actions = actions
        self._lock = threading.RLock()
        self._showing = False
        self._gui = gui
        self._order = -1000.0
        self._whole = links[0] if len(links) == 1 else None
        self._status = gui.add_html("", order=self._next())

        with gui.add_folder("Link", order=self._next()):
            options = [*links] if self._whole else [WHOLE_ROBOT, *links]
            self._link = self._input(
                gui.add_dropdown("Link", options),
                lambda value: actions.select_link(None if value == WHOLE_ROBOT else value),
            )
            self._count = self._input(
                gui.add_slider("Count", 1, 64, 1, 1, hint="Refits this link with so many spheres"),
                lambda value: actions.set_count(int(value)),
            )
            self._variant = self._input(
                gui.add_dropdown("Variant", tuple(variants), hint="Refits this link with these weights"),
                actions.set_variant,
            )
            self._refit = gui.add_button("Refit others", icon="refresh", hint="Fit all spheres that are not locked")
            self._refit.on_click(lambda _: self._run(actions.refit))
            self._gaps = self._input(
                gui.add_checkbox("Colour by gap", False, hint="Red: mesh outside all spheres. Blue: spheres stand out"),
                actions.show_gaps,
            )
        self._sphere_folder = gui.add_folder("Sphere", order=self._next())
        with self._sphere_folder:
            self._sphere = self._input(
                gui.add_slider("Number", 0, 1, 1, 0, hint="0: none; or click on a sphere"),
                lambda value: actions.select_sphere(int(value) - 1 if value else None),
            )
            self._radius = self._input(
                gui.add_slider("Radius [mm]", 0.1, 100.0, 0.1, 10.0), lambda value: actions.resize_sphere(1e-3 * value)
            )
            self._locked = self._input(
                gui.add_checkbox("Locked", False, hint="Refits keep it exactly"), actions.lock_sphere
            )
            self._buttons(
                "Change", {"Add": actions.add_sphere, "Remove": actions.remove_sphere, "Unlock all": actions.unlock_all}
            )
        with gui.add_folder("Edit", order=self._next()):
            self._buttons("Steps", {"Undo": actions.undo, "Redo": actions.redo})
            self._buttons("Look at", {"Link": actions.look_at_link, "All": actions.look_at_all})
            for label in exports:
                button = gui.add_button(label, icon="device-floppy")
                button.on_click(lambda _, label=label: self._run(partial(actions.export, label)))
        with gui.add_folder("Clip", expand_by_default=False, order=self._next()):
            hint = "Hides what lies beyond; at its end, nothing"
            for axis, name in enumerate("xyz"):
                low, high = float(np.floor(1e3 * bounds[0, axis])), float(np.ceil(1e3 * bounds[1, axis]))
                slider = gui.add_slider(f"{name} up to [mm]", low, high, 1.0, high, hint=hint)
                self._input(slider, partial(self._clip, axis, high))
        if joints:
            with gui.add_folder("Joints", expand_by_default=False, order=self._next()):
                for joint in joints:
                    step = (joint.upper - joint.lower) / 200.0
                    slider = gui.add_slider(joint.name, joint.lower, joint.upper, step, joint.position)
                    self._input(slider, partial(actions.move_joint, joint.name))

    def add_upload(self) -> None:
        """Add a button that has a file of the browser's machine shown instead."""
        hint = "A mesh, or a zip of the folder with a URDF and its meshes"
        button = self._gui.add_upload_button("Open mesh or zip", icon="upload", hint=hint, order=self._next())

        def uploaded(_: object) -> None:
            self._run(partial(self._actions.open, button.value.name, button.value.content))

        button.on_upload(uploaded)

    def show(self, state: PanelState) -> None:
        """Bring all controls up to date; what did not change is not sent."""
        with self._lock:
            self._showing = True
            try:
                self._show(state)
            finally:
                self._showing = False

    def _show(self, state: PanelState) -> None:
        has_link, has_sphere = state.link is not None, state.sphere is not None
        self._status.content = editor_html(state)
        self._link.value = state.link or WHOLE_ROBOT
        for control in (self._count, self._variant, self._gaps, self._sphere):
            control.disabled = not has_link
        self._refit.disabled = not has_link or state.busy
        for control in (self._radius, self._locked):
            control.disabled = not has_sphere
        # A limit below the value would be refused, as would a value above the limit.
        _set_slider(self._count, state.count, state.count_limit)
        _set_slider(self._sphere, 0 if state.sphere is None else state.sphere + 1, max(state.rows, 1))
        if has_sphere:
            _set_slider(self._radius, 1e3 * state.radius, float(np.ceil(1e3 * state.radius_limit)))
        self._variant.value = state.variant
        self._locked.value = state.locked

    def _next(self) -> float:
        self._order += 1.0
        return self._order

    def _input(self, control: Any, act: Callable[[Any], None]) -> Any:
        """A control that calls `act` with its value when somebody, and not `show`, has changed it."""

        def updated(_: object) -> None:
            with self._lock:
                if self._showing:
                    return
                value = control.value
            self._run(partial(act, value))

        control.on_update(updated)
        return control

    def _clip(self, axis: int, end: float, value: float) -> None:
        self._actions.clip(axis, 1e-3 * value if value < end else np.inf)

    def _buttons(self, label: str, acts: Mapping[str, Callable[[], None]]) -> None:
        """Buttons side by side."""
        group = self._gui.add_button_group(label, tuple(acts))
        group.on_click(lambda event: self._run(acts[event.target.value]))

    def _run(self, act: Callable[[], None]) -> None:
        """Do what a control asks for; a mistake or a file that cannot be written is shown, not raised."""
        try:
            act()
        except (MorphitError, OSError) as error:
            self._actions.report(error)


def _set_slider(slider: Any, value: float, limit: float) -> None:
    slider.max = type(slider.max)(max(limit, value))
    slider.value = value


def editor_html(state: PanelState) -> str:
    """State of the editor and the table of figures; all text is escaped."""
    color = _ERROR_COLOR if state.is_error else _BUSY_COLOR if state.busy else "inherit"
    rows = "".join(_rows(figures) for figures in state.figures)
    style = "width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums"
    return titled_html(state.message, f'<table style="{style}">{rows}</table>', color=color)


def _rows(figures: Figures) -> str:
    count = f"{figures.count} spheres" + (f", {figures.locked} locked" if figures.locked else "")
    cells = {
        "d<sub>avg</sub>": _number(figures.d_avg, 1e3, 2, " mm"),
        "d<sub>max</sub>": _number(figures.d_max, 1e3, 1, " mm"),
        "inside": _number(figures.inside, 1.0, 3),
        "outside": _number(figures.outside, 1.0, 3),
    }
    numbers = "".join(f'<td><span style="opacity:0.6">{name}</span><br>{number}</td>' for name, number in cells.items())
    return (
        f'<tr><td colspan="2" style="padding-top:6px;font-weight:600;overflow-wrap:anywhere">'
        f'{html.escape(figures.name)}</td><td colspan="2" style="text-align:right;padding-top:6px">{count}</td></tr>'
        f"<tr>{numbers}</tr>"
    )


def _number(value: float | None, factor: float, digits: int, unit: str = "") -> str:
    if value is None:
        return "…"
    return "–" if value != value else f"{factor * value:.{digits}f}{unit}"
