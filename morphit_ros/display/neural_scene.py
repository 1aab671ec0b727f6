"""The browser view of a neural object: surface, centre of mass, inertia, predicted motion to replay, figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from morphit_ros.display.display_list import MeshItem, PointsItem, axes_item
from morphit_ros.display.drawings.neural_object import (
    CENTER_COLOR,
    MOTION_COLOR,
    ellipsoid_item,
    motion_items,
    object_items,
)
from morphit_ros.display.layers import Lights
from morphit_ros.display.neural_panel import NeuralView, panel_html
from morphit_ros.display.sampling import typical_spacing
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, transform_points

# Shares of the object's size: radius of the centre's ball, of the points.
_CENTER_SHARE, _POINT_SHARE = 0.02, 0.0028
_NEAR_COLOR, _WALL_COLOR = np.array([0.59, 0.81, 0.98]), (0.2, 0.38, 0.55)
_FRAMES = 20.0


class NeuralScene(ServedScene):
    """A browser view of an object known as a density field."""

    layers: ClassVar = {
        "points": "Surface, points",
        "walls": "Surface, far walls",
        "center": "Centre of mass",
        "inertia": "Inertia ellipsoid",
        "axes": "Principal axes",
        "path": "Predicted path",
        "replay": "Predicted pose",
    }
    lights = Lights(environment=0.12, ambient=0.45, sun=1.1)
    field_of_view = 0.6
    title = "morphit neural object"

    def __init__(self, host: str = "127.0.0.1", port: int = 8080, *, page: ServedScene | None = None) -> None:
        """Start serving, as `ServedScene`."""
        super().__init__(host, port, page=page)
        self._view: NeuralView | None = None
        self._times, self._poses = np.zeros(0), np.zeros((0, 4, 4))
        self._status, self._is_error = "no object yet", False
        self._build: Mapping[str, str] = {}
        self._ended = threading.Event()
        self._playing = threading.Event()
        gui = self._server.gui
        with self._server.panel.add_folder("Predicted motion"):
            self._time = gui.add_slider("Time [s]", 0.0, 1.0, 0.01, 0.0, disabled=True)
            self._replay = gui.add_button("Replay", disabled=True)
        self._time.on_update(lambda _: self._show_at(float(self._time.value)))
        self._replay.on_click(lambda _: self.replay())
        self._player = threading.Thread(target=self._play, name="replay", daemon=True)
        self._player.start()
        self._write()

    def show_object(self, view: NeuralView) -> None:
        """Show an object; the motion of the one before is dropped."""
        with self._lock:
            first = self._view is None or self._view.name != view.name
            self._view = view
            self.show_motion(np.zeros(0), np.zeros((0, 4, 4)))
            pose = view.T_world_object
            size = float(np.linalg.norm(np.ptp(view.points, axis=0)))
            middle = pose @ make_transform(translation=view.center)
            shown = object_items(
                view.points, pose, view.center, view.axes, view.half_axes, _shaded(view.normals, pose),
                _POINT_SHARE * size, _CENTER_SHARE * size,
            )  # fmt: skip
            discs = _discs(view.points, view.normals, 0.95 * typical_spacing(view.points, 2))
            error = np.full(3, max(view.center_error, 1e-6))
            self._server.draw([
                *shown,
                # Only what looks away: one sees into the object, to what it holds.
                MeshItem("walls/walls", _WALL_COLOR, *discs, side="back", pose=pose),
                ellipsoid_item("center/error", CENTER_COLOR, error, middle, 0.25),
                axes_item("axes/axes", middle @ make_transform(view.axes), view.half_axes, both_ways=True),
            ])  # fmt: skip
            if first:
                self._frame(transform_points(pose, view.points))
            self._write()

    def show_motion(self, times: Array, poses: Array) -> None:
        """Show a predicted motion of the object and play it once; an empty one clears it.

        Args:
            times: (T,) increasing [s].
            poses: (T, 4, 4) of the object's own frame.

        Raises:
            InvalidInputError: numbers that differ, times that do not increase.
        """
        if poses.shape != (len(times), 4, 4) or (np.diff(times) <= 0.0).any():
            raise InvalidInputError("motion", f"{len(times)} times, {len(poses)} poses", "a pose a time, increasing")
        with self._lock:
            self._times, self._poses = times, poses
            view = self._view
            self._server.clear("path")
            self._server.clear("replay")
            still = view is None or len(times) < 2
            self._time.disabled = self._replay.disabled = still
            if view is None or still:
                self._playing.clear()
                return
            self._time.value = 0.0
            self._time.max = float(times[-1] - times[0])
            self._time.step = max(self._time.max / 200.0, 1e-4)
            point = 0.8 * _POINT_SHARE * float(np.linalg.norm(np.ptp(view.points, axis=0)))
            replayed = PointsItem("replay/replay", MOTION_COLOR, view.points, 1.5 * point, pose=poses[0])
            self._server.draw([*motion_items(view.points, view.center, poses, point), replayed])
            self.replay()

    def set_figures(self, figures: Mapping[str, str]) -> None:
        """Replace the lines of the panel about the object; without one, nothing."""
        with self._lock:
            if self._view is not None:
                self._view = replace(self._view, figures=dict(figures))
                self._write()

    def replay(self) -> None:
        """Play the predicted motion from its start, in its own time."""
        if len(self._times) > 1:
            self._playing.set()

    def set_status(self, status: str, is_error: bool = False, build: Mapping[str, str] | None = None) -> None:
        """Say what the node does.

        Args:
            status: in words.
            is_error: the last build failed.
            build: lines about a build that is under way, name → text; None: there is none.
        """
        with self._lock:
            self._status, self._is_error, self._build = status, is_error, dict(build or {})
            self._write()

    def close(self) -> None:
        """Stop serving; browsers lose their connection. May be called again."""
        self._ended.set()
        self._playing.set()
        self._player.join()
        super().close()

    def _play(self) -> None:
        while not self._ended.is_set():
            self._playing.wait()
            self._playing.clear()
            begin = time.monotonic()
            while not (self._ended.wait(1.0 / _FRAMES) or self._playing.is_set()):
                with self._lock:
                    end = float(self._times[-1] - self._times[0]) if len(self._times) > 1 else 0.0
                    now = min(time.monotonic() - begin, end)
                    if end > 0.0:
                        self._time.value = now
                        self._show_at(now)
                if now >= end:
                    break

    def _show_at(self, now: float) -> None:
        with self._lock:
            if len(self._times):
                index = int(np.argmin(np.abs(self._times - self._times[0] - now)))
                self._server.place("replay/replay", self._poses[index])

    def _frame(self, points: Array) -> None:
        """A camera that has the object and its surroundings in sight, and a floor below it."""
        self._aim(points, np.array([-0.35, -1.0, 1.05]))
        low, high = points.min(axis=0), points.max(axis=0)
        reach = float(np.linalg.norm(high - low))
        middle = 0.5 * (low + high)
        self._server.add_floor(6.0 * reach, 0.02, 0.1, (middle[0], middle[1], low[2]))

    def _aim(self, points: Array, direction: Array) -> None:
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        reach = float(np.linalg.norm(np.ptp(points, axis=0)))
        self.set_camera(middle + 2.1 * reach * direction / np.linalg.norm(direction), middle)

    def _write(self) -> None:
        self._server.panel.set_content(panel_html(self._view, self._status, self._is_error, self._build))


def _shaded(normals: Array, pose: Array) -> Array:
    """(N, 3) colours, brighter where the surface looks up."""
    upward = np.clip((normals @ pose[:3, :3].T)[:, 2], -1.0, 1.0)
    return (0.72 + 0.28 * upward)[:, None] * _NEAR_COLOR


def _discs(points: Array, normals: Array, radius: float) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (6 N, 3) and faces (4 N, 3) of a hexagon at each point, counter-clockwise seen along its normal."""
    first = np.cross(normals, np.eye(3)[np.argmin(np.abs(normals), axis=1)])
    first /= np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-12)
    second = np.cross(normals, first)
    angles = np.arange(6)[None, :, None] * np.pi / 3.0
    rim = points[:, None] + radius * (np.cos(angles) * first[:, None] + np.sin(angles) * second[:, None])
    fan = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    return rim.reshape(-1, 3), (6 * np.arange(len(points))[:, None, None] + fan).reshape(-1, 3)
