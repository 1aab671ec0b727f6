"""The panel beside the scene: state of the job, and what is shown."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MAXIMUM_MESSAGES = 6
_BRAND = (24, 130, 112)
BAD_COLOR, DOUBT_COLOR, GOOD_COLOR = "#ff8a8a", "#ffcf66", "#63d2a4"
# viser's notice about software rendering covers the scene, which is light enough for it.
_STYLE = "<style>#webgl-software-rendering{display:none}</style>"


class Panel:
    """Job state as HTML, and one checkbox a layer."""

    def __init__(self, gui: Any, title: str, part: bool = False) -> None:
        """Build an empty panel in a viser GUI.

        Args:
            gui: of the page.
            title: of the panel.
            part: it is a folder in the panel that is there already.
        """
        self._gui = gui
        self._inside: Any = contextlib.nullcontext()
        self._above = 0
        if part:
            self._inside = gui.add_folder(title)
        else:
            gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=_BRAND)
            gui.main_panel.dock_right()
            gui.set_panel_label(title)
        with self._inside:
            self._status = gui.add_html(status_html("waiting", {}, ()))
        self._layers = self.add_folder("Shown")
        self._checkboxes: dict[str, Any] = {}

    def add_folder(self, label: str, above: bool = False) -> Any:
        """A folder of the panel; a context in which controls are added to it.

        Args:
            label: its title.
            above: it comes before the layers; below the state of the job, later ones after earlier ones.
        """
        order = None
        if above:
            self._above += 1
            order = self._status.order + self._above / 100.0
        with self._inside:
            return self._gui.add_folder(label, order=order)

    def add_layer(self, name: str, label: str, visible: bool, toggled: Callable[[bool], None]) -> None:
        """Add a checkbox; `toggled` is called with its new state, from another thread."""
        with self._layers:
            checkbox = self._gui.add_checkbox(label, visible)
        checkbox.on_update(lambda _: toggled(checkbox.value))
        self._checkboxes[name] = checkbox

    def remove_layer(self, name: str) -> None:
        """Remove a checkbox."""
        self._checkboxes.pop(name).remove()

    def set_layer(self, name: str, visible: bool) -> None:
        """Tick or clear a checkbox, as a click on it would."""
        self._checkboxes[name].value = visible

    def set_status(self, stage: str, times: Mapping[str, float], messages: Sequence[str], failed: bool = False) -> None:
        """Show the state of the job."""
        self._status.content = status_html(stage, times, messages, failed)

    def set_content(self, content: str) -> None:
        """Show HTML of the caller's own in place of the state of a job; the caller escapes texts."""
        self._status.content = _STYLE + content


def status_html(stage: str, times: Mapping[str, float], messages: Sequence[str], failed: bool = False) -> str:
    """State of a job: stage under way, stages done with their seconds, the last messages. All text is escaped."""
    notes = "".join(
        f'<div style="margin-top:4px;overflow-wrap:anywhere">{html.escape(message)}</div>'
        for message in messages[-_MAXIMUM_MESSAGES:]
    )
    seconds = table_html({name: f"{spent:.2f} s" for name, spent in times.items()})
    color = BAD_COLOR if failed else "inherit"
    return _STYLE + titled_html(stage, seconds, f'<div style="opacity:0.7">{notes}</div>', color=color)


def titled_html(title: str, *parts: str, color: str = "inherit") -> str:
    """A panel with a title, which is escaped, and parts of HTML."""
    return (
        '<div style="padding:6px 12px 8px;font-size:13px;line-height:1.5">'
        f'<div style="font-size:15px;font-weight:600;margin-bottom:4px;color:{color};overflow-wrap:anywhere">'
        f"{html.escape(title)}</div>{''.join(parts)}</div>"
    )


def table_html(rows: Mapping[str, str]) -> str:
    """Lines of name and text; both are escaped."""
    lines = "".join(
        f'<tr><td style="padding:1px 8px 1px 0;vertical-align:top">{html.escape(name)}</td>'
        f'<td style="text-align:right;font-variant-numeric:tabular-nums">{html.escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f'<table style="width:100%;border-collapse:collapse">{lines}</table>'
