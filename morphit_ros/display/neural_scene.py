"""The browser view of a neural object: surface, centre of mass, inertia, predicted motion to replay, figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from morphit_ros.display.layers import Lights
from morphit_ros.display.neural_panel import NeuralView, panel_html
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import sphere_mesh
from morphit_ros.geometry.transforms import Array, make_transform, transform_points

LAYERS = {
    "points": "Surface, points",
    "walls": "Surface, far walls",
    "center": "Centre of mass",
    "inertia": "Inertia ellipsoid",
    "axes": "Principal axes",
    "path": "Predicted path",
    "replay": "Predicted pose",
}

_NEAR_COLOR, _WALL_COLOR = (150, 206, 250), (52, 96, 140)
_CENTER_COLOR, _INERTIA_COLOR, _MOTION_COLOR = (240, 62, 42), (246, 196, 40), (226, 92, 206)
_AXIS_COLORS = np.array([[235, 80, 70], [90, 200, 90], [90, 130, 240]])
_FLOOR_COLORS = {"cell_color": (58, 64, 72), "section_color": (84, 92, 102)}
_FIELD_OF_VIEW = 0.6
# Shares of the object's size: radius of the centre's ball, of the points.
_CENTER_SHARE, _POINT_SHARE = 0.02, 0.0028
# The predicted path: as many copies of so many points.
_COPIES, _COPY_POINTS = 5, 250
_FRAMES = 20.0


class NeuralScene(ServedScene):
    """A browser view on loopback. The methods defined here may be called from any thread."""

    def __init__(self, host: str = "127.0.0.1", port: int = 8080, *, title: str = "morphit neural object") -> None:
        """Start serving.

        Args:
            host: a loopback address: the view has no access control.
            port: of HTTP and websocket; 0 takes a free one.
            title: of the panel.

        Raises:
            InvalidInputError: a host that is not loopback, or a port that is taken or out of range.
            MissingDependencyError: viser is not installed.
        """
        super().__init__(host, port, title, Lights(environment=0.12, ambient=0.45, sun=1.1))
        self._view: NeuralView | None = None
        self._times, self._poses = np.zeros(0), np.zeros((0, 4, 4))
        self._status, self._is_error = "no object yet", False
        self._build: Mapping[str, str] = {}
        self._ended = threading.Event()
        self._playing = threading.Event()
        for layer, label in LAYERS.items():
            self._server.add_layer(layer, label, visible=True)
        gui = self._server.gui
        with gui.add_folder("Predicted motion"):
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
            spacing = _spacing(view.points)
            self._server.put_points("points/all", view.points, _shaded(view.normals, pose), _POINT_SHARE * size)
            vertices, faces = _discs(view.points, view.normals, 0.95 * spacing)
            # Only what looks away: one sees into the object, to what it holds.
            self._server.put(
                "walls/all", self._server.scene.add_mesh_simple, vertices=vertices.astype(np.float32),
                faces=faces.astype(np.uint32), color=_WALL_COLOR, side="back", flat_shading=False, cast_shadow=False,
            )  # fmt: skip
            radius = _CENTER_SHARE * size
            ball = sphere_mesh(1.0, 24)
            self._put_ball("center/ball", ball, np.full(3, radius), _CENTER_COLOR, 1.0)
            self._put_ball("center/error", ball, np.full(3, max(view.center_error, 1e-6)), _CENTER_COLOR, 0.25)
            self._put_ball("inertia/ellipsoid", ball, view.half_axes, _INERTIA_COLOR, 0.3)
            ends = view.axes.T * view.half_axes[:, None]
            self._server.put_lines("axes/lines", np.stack([-ends, ends], axis=1), _AXIS_COLORS, 3.0)
            middle = pose @ make_transform(translation=view.center)
            turned = middle @ make_transform(view.axes)
            for name, placed in (
                ("points/all", pose), ("walls/all", pose), ("center/ball", middle), ("center/error", middle),
                ("inertia/ellipsoid", turned), ("axes/lines", middle),
            ):  # fmt: skip
                self._server.place(name, placed)
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
            way = np.array([transform_points(pose, view.center[None])[0] for pose in poses])
            self._server.put_lines("path/center", np.stack([way[:-1], way[1:]], axis=1), _MOTION_COLOR, 4.0)
            some = view.points[:: max(1, len(view.points) // _COPY_POINTS)]
            chosen = np.unique(np.linspace(0, len(poses) - 1, _COPIES).round().astype(int))
            copies = np.concatenate([transform_points(poses[index], some) for index in chosen])
            size = 0.8 * _POINT_SHARE * float(np.linalg.norm(np.ptp(view.points, axis=0)))
            self._server.put_points("path/copies", copies, _MOTION_COLOR, size)
            self._server.put_points("replay/points", view.points, _MOTION_COLOR, 1.5 * size)
            self._server.place("replay/points", poses[0])
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

    def look_from(self, direction: Array) -> None:
        """Look at the object and its motion from a direction (3,), from it towards the eye."""
        with self._lock:
            if self._view is not None:
                poses = [self._view.T_world_object, *self._poses[[0, -1]]] if len(self._poses) else None
                poses = poses or [self._view.T_world_object]
                self._aim(np.concatenate([transform_points(pose, self._view.points) for pose in poses]), direction)

    def close(self) -> None:
        """Stop serving; browsers lose their connection. May be called again."""
        self._ended.set()
        self._playing.set()
        self._player.join()
        super().close()

    def _put_ball(
        self, name: str, ball: TriangleMesh, radii: Array, color: tuple[int, int, int], opacity: float
    ) -> None:
        self._server.put(
            name, self._server.scene.add_mesh_simple, vertices=(ball.vertices * radii).astype(np.float32),
            faces=ball.faces.astype(np.uint32), color=color, opacity=opacity, flat_shading=False, cast_shadow=False,
        )  # fmt: skip

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
                self._server.place("replay/points", self._poses[index])

    def _frame(self, points: Array) -> None:
        """A camera that has the object and its surroundings in sight, and a floor below it."""
        self._aim(points, np.array([-0.35, -1.0, 1.05]))
        low, high = points.min(axis=0), points.max(axis=0)
        reach = float(np.linalg.norm(high - low))
        middle = 0.5 * (low + high)
        self._server.scene.add_grid(
            "/floor", 6.0 * reach, 6.0 * reach, cell_size=0.02, section_size=0.1,
            position=(float(middle[0]), float(middle[1]), float(low[2])), **_FLOOR_COLORS,
        )  # fmt: skip

    def _aim(self, points: Array, direction: Array) -> None:
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        reach = float(np.linalg.norm(np.ptp(points, axis=0)))
        self._server.set_camera(middle + 2.1 * reach * direction / np.linalg.norm(direction), middle, _FIELD_OF_VIEW)

    def _write(self) -> None:
        self._server.panel.set_content(panel_html(self._view, self._status, self._is_error, self._build))


def _spacing(points: Array) -> float:
    """Median distance of a point from its nearest neighbour [m]."""
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return 1e-3
    distances, _ = cKDTree(points).query(points, k=2)
    return float(np.median(distances[:, 1])) or 1e-3


def _shaded(normals: Array, pose: Array) -> Array:
    """(N, 3) colours, brighter where the surface looks up."""
    upward = np.clip((normals @ pose[:3, :3].T)[:, 2], -1.0, 1.0)
    shade = (0.72 + 0.28 * upward)[:, None]
    return np.rint(shade * np.array(_NEAR_COLOR))


def _discs(points: Array, normals: Array, radius: float) -> tuple[Array, Array]:
    """Vertices (6 N, 3) and faces (4 N, 3) of a hexagon at each point, counter-clockwise seen along its normal."""
    first = np.cross(normals, np.eye(3)[np.argmin(np.abs(normals), axis=1)])
    first /= np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-12)
    second = np.cross(normals, first)
    angles = np.arange(6)[None, :, None] * np.pi / 3.0
    rim = points[:, None] + radius * (np.cos(angles) * first[:, None] + np.sin(angles) * second[:, None])
    fan = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    return rim.reshape(-1, 3), (6 * np.arange(len(points))[:, None, None] + fan).reshape(-1, 3)
