"""A cloth that falls in a browser, over superovoids that one drags and shapes while it runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from morphit_ros.cloth.cloth import Cloth
from morphit_ros.display.drawings.cloth import cloth_item, shape_item, textured_items
from morphit_ros.display.layers import Lights
from morphit_ros.display.panel import BAD_COLOR, table_html, titled_html
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw, quat_xyzw_from_matrix
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.shapes.superovoid import (
    LARGEST_SQUARENESS,
    LARGEST_TAPERING,
    SMALLEST_SQUARENESS,
    Superovoid,
)

# Pictures in a second at most; figures of the panel, and the shapes' file, are written no more often [s].
_FRAMES, _FIGURES, _SAVED = 30.0, 0.5, 1.0
# A cloth whose nodes move no faster rests until something is changed: median [m/s].
_RESTING = 1e-3
# Sliders of semi-axes, as shares of the larger side of the cloth.
_LEAST, _MOST = 0.01, 0.5


class ClothEditor(ServedScene):
    """A cloth in a browser. Its methods may be called from any thread.

    What is shown is kept here and not by a browser: several show the same, and closing one loses nothing. Shapes are
    saved whenever they changed, at most once a second, and at the end.
    """

    layers: ClassVar = {"cloth": "Cloth", "shapes": "Shapes"}
    lights = Lights(environment=0.2, ambient=0.35, sun=1.2, position=(1.5, -2.0, 4.0))
    title = "morphit cloth"

    def __init__(
        self,
        cloth: Cloth,
        save: Callable[[Sequence[PlacedSuperovoid]], object],
        exports: Mapping[str, Callable[[Cloth], Path]],
        port: int = 8080,
        textured: bool = False,
    ) -> None:
        """Start serving; the cloth falls from `run` on.

        Args:
            cloth: to be moved by this alone from now on.
            save: writes the shapes.
            exports: label of a button → what writes a file, whose path it returns.
            port: as of `ServedScene`.
            textured: whether the cloth is at first.

        Raises:
            InvalidInputError, MissingDependencyError: as of `ServedScene`.
        """
        super().__init__(port=port)
        self._cloth, self._save = cloth, save
        self._running, self._resting, self._textured = True, False, textured
        self._selected: int | None = None
        self._saved_at, self._dirty, self._filling = 0.0, False, False
        self._message, self._is_error = "drag the shapes, or shape them", False
        self._drawn: list[tuple[Any, bool]] = []
        self._frame_seconds = 0.0
        self._thread: threading.Thread | None = None
        self._gizmo: Any = None
        self._add_controls(exports)
        extent = self._extent
        middle = np.array([*cloth.positions.mean(axis=0)[:2], 0.15 * extent])
        self.set_camera(middle + extent * np.array([0.9, -1.3, 1.0]), middle)
        self._server.add_floor(4.0 * extent, 0.1 * extent, 0.5 * extent, (middle[0], middle[1], 0.0))
        self.draw()

    @property
    def _extent(self) -> float:
        config = self._cloth.config
        return config.pitch * max(config.rows, config.cols)

    def run(self) -> None:
        """Let the cloth fall, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="cloth", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Save what changed and stop serving. May be called again."""
        with self._lock:
            first = not self._closed
        super().close()
        if first:
            if self._thread is not None:
                self._thread.join()
            self._autosave(at_once=True)

    def pause(self, paused: bool) -> None:
        """Hold the cloth, or let it go on."""
        with self._lock:
            self._running = not paused

    def reset(self) -> None:
        """Let the cloth begin anew above the shapes."""
        with self._lock:
            self._cloth.reset()
            self._resting = False

    def set_textured(self, textured: bool) -> None:
        """Show textures, or the bare cloth."""
        with self._lock:
            self._textured = textured
            self._server.clear("cloth")
            self.draw()

    def select(self, number: int | None) -> None:
        """Choose the shape that gizmo and sliders belong to; none without a number.

        Raises:
            InvalidInputError: there is no such shape.
        """
        with self._lock:
            if number is not None and not 0 <= number < len(self._cloth.shapes):
                raise InvalidInputError("shape", number, f"a number from 0 to {len(self._cloth.shapes) - 1}")
            self._selected = number
            self._fill()
            self.draw()

    def set_shape(self, number: int, placed: PlacedSuperovoid) -> None:
        """Move or shape one of the shapes.

        Raises:
            InvalidInputError: there is no such shape.
        """
        with self._lock:
            self._cloth.set_shape(number, placed)
            self._changed()

    def add(self) -> None:
        """Add a sphere above the middle, and select it."""
        with self._lock:
            size = 0.1 * self._extent
            place = make_transform(translation=(*self._cloth.positions.mean(axis=0)[:2], size))
            try:
                self._cloth.add_shape(PlacedSuperovoid(Superovoid.sphere(size), place))
            except InvalidInputError as error:
                self._tell(str(error), True)
                return
            self._changed()
            self.select(len(self._cloth.shapes) - 1)

    def remove(self) -> None:
        """Take the selected shape away."""
        with self._lock:
            if self._selected is not None:
                self._cloth.remove_shape(self._selected)
                self._changed()
                self._server.clear("shapes")
                self._drawn = []
                self.select(None)

    def draw(self) -> None:
        """Send what changed to browsers."""
        with self._lock:
            if self._closed:
                return
            items = textured_items(self._cloth) if self._textured else [cloth_item(self._cloth)]
            self._server.draw(items)
            for number, placed in enumerate(self._cloth.shapes):
                wanted = placed.shape, number == self._selected
                if number >= len(self._drawn) or self._drawn[number] != wanted:
                    self._draw_shape(number, placed)
                self._server.place(f"shapes/{number}", placed.T_link_shape)

    def _draw_shape(self, number: int, placed: PlacedSuperovoid) -> None:
        name = f"shapes/{number}"
        is_new = name not in self._server._nodes
        self._server.draw([shape_item(placed, number, number == self._selected)])
        if is_new:
            self._server._nodes[name].on_click(lambda _: self.select(number))
        self._drawn[number : number + 1] = [(placed.shape, number == self._selected)]

    def _run(self) -> None:
        shown = told = 0.0
        while not self._closed:
            began = time.monotonic()
            with self._lock:
                active = self._running and not self._resting
                if active:
                    used = time.thread_time()
                    self._cloth.step()
                    self._frame_seconds = time.thread_time() - used
                    self._resting = self._is_still()
            if active and began - shown >= 1.0 / _FRAMES:
                self.draw()
                shown = began
            if began - told >= _FIGURES:
                self._tell_figures()
                told = began
            self._autosave()
            # Callbacks of browsers need the lock in between.
            time.sleep(max(self._cloth.config.time_step - (time.monotonic() - began), 0.002) if active else 0.02)

    def _is_still(self) -> bool:
        return float(np.median(np.linalg.norm(self._cloth.velocities, axis=1))) < _RESTING

    def _autosave(self, at_once: bool = False) -> None:
        with self._lock:
            if not self._dirty or not (at_once or time.monotonic() - self._saved_at > _SAVED):
                return
            shapes, self._dirty, self._saved_at = self._cloth.shapes, False, time.monotonic()
        try:
            self._save(shapes)
        except (OSError, MorphitError) as error:
            self._dirty = True
            self._tell(f"shapes are not saved: {error}", True)

    def _changed(self) -> None:
        self._dirty, self._resting = True, False
        self.draw()

    def _tell(self, message: str, is_error: bool = False) -> None:
        self._message, self._is_error = message, is_error
        self._tell_figures()

    def _tell_figures(self) -> None:
        with self._lock:
            if self._closed:
                return
            config = self._cloth.config
            state = "paused" if not self._running else "at rest" if self._resting else "falling"
            rows = {
                "state": state,
                "time": f"{self._cloth.time:.1f} s",
                "a picture takes": f"{1e3 * self._frame_seconds:.0f} ms",
                "nodes": f"{config.rows} × {config.cols}",
                "shapes": str(len(self._cloth.shapes)),
            }
            color = BAD_COLOR if self._is_error else "inherit"
            self._server.panel.set_content(titled_html(self._message, table_html(rows), color=color))

    def _add_controls(self, exports: Mapping[str, Callable[[Cloth], Path]]) -> None:
        gui, panel, extent = self._server.gui, self._server.panel, self._extent
        with panel.add_folder("Cloth", above=True):
            paused = gui.add_checkbox("Paused", False)
            paused.on_update(lambda _: self.pause(bool(paused.value)))
            textured = gui.add_checkbox("Textures", self._textured)
            textured.on_update(lambda _: self.set_textured(bool(textured.value)))
            gui.add_button("Drop again", icon="refresh").on_click(lambda _: self.reset())
            for label, export in exports.items():
                gui.add_button(label, icon="device-floppy").on_click(lambda _, export=export: self._export(export))
        with panel.add_folder("Shape", above=True):
            gui.add_button("Add a sphere", icon="plus").on_click(lambda _: self.add())
            gui.add_button("Remove", icon="trash").on_click(lambda _: self.remove())
            low, high = 1e3 * _LEAST * extent, 1e3 * _MOST * extent
            bounds = {f"a{axis} [mm]": (low, high, 0.1) for axis in (1, 2, 3)}
            bounds |= {f"e{axis}": (SMALLEST_SQUARENESS, LARGEST_SQUARENESS, 0.01) for axis in (1, 2)}
            bounds |= {f"T{axis}": (-LARGEST_TAPERING, LARGEST_TAPERING, 0.01) for axis in "xy"}
            self._sliders = [
                gui.add_slider(label, least, most, step, min(max(1.0, least), most), disabled=True)
                for label, (least, most, step) in bounds.items()
            ]
        for slider in self._sliders:
            slider.on_update(lambda _: self._shape_selected())

    def _move(self, number: int, pose: Array) -> None:
        """Move a shape by its gizmo, unless another one was selected meanwhile, in whichever browser."""
        with self._lock:
            if number == self._selected:
                self.set_shape(number, PlacedSuperovoid(self._cloth.shapes[number].shape, pose))

    def _shape_selected(self) -> None:
        """Give the selected shape the sliders' numbers."""
        with self._lock:
            if self._selected is None or self._filling:
                return
            values = np.array([slider.value for slider in self._sliders], dtype=np.float64)
            values[:3] *= 1e-3
            pose = self._cloth.shapes[self._selected].T_link_shape
            self.set_shape(self._selected, PlacedSuperovoid(Superovoid.from_parameters(values), pose))

    def _fill(self) -> None:
        """Give the sliders what the selected shape has, and it a gizmo."""
        self._filling = True
        with contextlib.ExitStack() as stack:
            stack.callback(setattr, self, "_filling", False)
            placed = None if self._selected is None else self._cloth.shapes[self._selected]
            for number, slider in enumerate(self._sliders):
                slider.disabled = placed is None
                if placed is not None:
                    value = float(placed.shape.parameters[number]) * (1e3 if number < 3 else 1.0)
                    # Shapes of a file may be larger than sliders go.
                    slider.min, slider.max = min(slider.min, value), max(slider.max, value)
                    slider.value = value
            if self._gizmo is not None:
                self._gizmo.remove()
                self._gizmo = None
            if self._selected is not None and placed is not None:
                self._add_gizmo(self._selected, placed.T_link_shape)

    def _add_gizmo(self, number: int, pose: Array) -> None:
        """Arrows and rings of a shape's own: one that another browser drags must not take the next shape along."""
        x, y, z, w = quat_xyzw_from_matrix(pose[:3, :3])
        self._gizmo = self._server.scene.add_transform_controls(
            f"/gizmo/{number}", scale=0.15 * self._extent, depth_test=False,
            wxyz=np.array([w, x, y, z]), position=pose[:3, 3],
        )  # fmt: skip

        # A coroutine: those keep the order of events, which threads would not.
        async def dragged(event: Any) -> None:
            self._move(number, _pose(event.target.position, event.target.wxyz))

        self._gizmo.on_update(dragged)

    def _export(self, export: Callable[[Cloth], Path]) -> None:
        with self._lock:
            try:
                self._tell(f"written: {export(self._cloth)}")
            except (OSError, MorphitError) as error:
                self._tell(str(error), True)


def _pose(position: Any, wxyz: Any) -> Array:
    w, x, y, z = np.asarray(wxyz, dtype=np.float64)
    return make_transform(matrix_from_quat_xyzw((x, y, z, w)), np.asarray(position, dtype=np.float64))
