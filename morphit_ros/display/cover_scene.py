"""The browser view of a morphing cover: plates coloured by error, normals, motors, target, what it lies on, figures."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.cover.drawing import LARGEST_ANGLE, error_colors, motor_lines, normal_lines
from morphit_ros.cover.model import Cover
from morphit_ros.display.layers import Lights
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import Array, check_transform

LAYERS = {"plates": "Plates", "normals": "Normals", "motors": "Motors", "target": "Target", "body": "Body"}

_SIDE, _THICKNESS = 0.9, 0.06  # of a plate, in pitches
_STILL_MOTOR, _FAST_MOTOR = np.array([70.0, 76.0, 84.0]), np.array([255.0, 140.0, 30.0])
_NORMAL_COLOR, _TARGET_COLOR, _BODY_COLOR = np.array([120, 170, 235]), (60, 120, 215), (186, 150, 124)
_FLOOR_COLORS = {"cell_color": (58, 64, 72), "section_color": (84, 92, 102)}
_FIELD_OF_VIEW = 0.7


@dataclass(frozen=True)
class CoverView:
    """One moment of a cover.

    Attributes:
        positions, rotations: (N, 3) [m], (N, 3, 3) of the nodes.
        angles: (N,) errors of the normals [rad]; NaN where unknown.
        distances: (N,) position errors [m].
        rates: (M,) of the motors [rad/s].
        target_points, target_triangles: (V, 3) [m], (F, 3) of the target; may be empty.
        status: following, or why not.
        figures: further lines of the panel, name → text.
    """

    positions: Array
    rotations: Array
    angles: Array
    distances: Array
    rates: Array
    target_points: Array
    target_triangles: NDArray[np.int64]
    status: str
    figures: Mapping[str, str]


class CoverScene(ServedScene):
    """A browser view on loopback. Methods may be called from any thread and update in place."""

    def __init__(self, host: str = "127.0.0.1", port: int = 8080, *, title: str = "morphit cover") -> None:
        """Start serving.

        Args:
            host: a loopback address: the view has no access control.
            port: of HTTP and websocket; 0 takes a free one.
            title: of the panel.

        Raises:
            InvalidInputError: a host that is not loopback, or a port that is taken or out of range.
            MissingDependencyError: viser is not installed.
        """
        super().__init__(host, port, title, Lights(environment=0.12, ambient=0.35, sun=1.1))
        self._cover: Cover | None = None
        self._rate_limit = 1.0
        for layer, label in LAYERS.items():
            self._server.add_layer(layer, label, visible=True)

    def set_cover(
        self,
        cover: Cover,
        rate_limit: float,
        body: tuple[float, float] | None = None,
        T_world_body: Array | None = None,
    ) -> None:
        """Show another cover; its nodes come with `show`.

        Args:
            cover: whose nodes will be shown.
            rate_limit: of the motors [rad/s], which are drawn the brighter the faster they turn.
            body: radius and length [m] of a cylinder that the cover lies on.
            T_world_body: (4, 4) its pose; z is the axis.
        """
        pose = np.eye(4) if T_world_body is None else check_transform(T_world_body, "T_world_body")
        with self._lock:
            self._cover, self._rate_limit = cover, rate_limit
            for layer in LAYERS:
                self._server.clear(layer)
            if body is not None:
                mesh = cylinder_mesh(*body)
                self._server.put(
                    "body/cylinder", self._server.scene.add_mesh_simple, vertices=mesh.vertices.astype(np.float32),
                    faces=mesh.faces.astype(np.uint32), color=_BODY_COLOR, flat_shading=False,
                )  # fmt: skip
                self._server.place("body/cylinder", pose)
            self._frame(cover)

    def show(self, view: CoverView) -> None:
        """Show a moment of the cover that was set."""
        cover = self._cover
        if cover is None:
            return
        with self._lock:
            self._show_plates(cover, view)
            positions, rotations = view.positions, view.rotations
            self._server.put_lines("normals/lines", normal_lines(cover, positions, rotations), _NORMAL_COLOR, 1.5)
            if len(cover.motors):
                share = np.clip(np.abs(view.rates) / self._rate_limit, 0.0, 1.0)[:, None]
                colors = np.rint((1.0 - share) * _STILL_MOTOR + share * _FAST_MOTOR)
                self._server.put_lines("motors/lines", motor_lines(cover, positions, rotations), colors, 4.0)
            if len(view.target_triangles):
                self._server.put(
                    "target/surface", self._server.scene.add_mesh_simple,
                    vertices=view.target_points.astype(np.float32), faces=view.target_triangles.astype(np.uint32),
                    color=_TARGET_COLOR, opacity=0.22, side="double", cast_shadow=False,
                )  # fmt: skip
            else:
                self._server.remove("target/surface")
            self._server.panel.set_content(panel_html(view))

    def set_camera(self, position: Array, look_at: Array) -> None:
        """Where browsers look from and to, points (3,) [m]."""
        with self._lock:
            self._server.set_camera(position, look_at, _FIELD_OF_VIEW)

    def _show_plates(self, cover: Cover, view: CoverView) -> None:
        from scipy.spatial.transform import Rotation

        quaternions = Rotation.from_matrix(view.rotations).as_quat()[:, [3, 0, 1, 2]].astype(np.float32)
        colors = np.rint(255.0 * error_colors(view.angles, LARGEST_ANGLE)).astype(np.uint8)
        plate = box_mesh([_SIDE * cover.pitch, _SIDE * cover.pitch, _THICKNESS * cover.pitch])
        known = {"batched_wxyzs": quaternions, "batched_positions": view.positions.astype(np.float32)}
        if self._server.has("plates/all"):
            self._server.put("plates/all", _never, **known, batched_colors=colors)
            return
        self._server.put(
            "plates/all", self._server.scene.add_batched_meshes_simple, vertices=plate.vertices.astype(np.float32),
            faces=plate.faces.astype(np.uint32), **known, batched_colors=colors, flat_shading=True,
        )  # fmt: skip

    def _frame(self, cover: Cover) -> None:
        """A camera that has the whole cover in sight, and a floor below it."""
        reach = cover.pitch * max(cover.rows, cover.cols)
        row, col = divmod(cover.father, cover.cols)
        middle = cover.pitch * np.array([0.5 * (cover.cols - 1) - col, row - 0.5 * (cover.rows - 1), 0.0])
        base = cover.T_world_base
        center = base[:3, 3] + base[:3, :3] @ middle
        eye = center + reach * np.array([0.55, -1.35, 1.05])
        self._server.set_camera(eye, center, _FIELD_OF_VIEW)
        size = 4.0 * reach
        self._server.scene.add_grid(
            "/floor", size, size, cell_size=cover.pitch, section_size=5.0 * cover.pitch,
            position=(float(center[0]), float(center[1]), float(base[2, 3]) - 0.6 * reach), **_FLOOR_COLORS,
        )  # fmt: skip


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the node exists")


def panel_html(view: CoverView) -> str:
    """Status, errors and figures as HTML; all text is escaped."""
    angles, distances = np.degrees(view.angles), view.distances * 1e3
    rows: dict[str, str] = {}
    if np.isfinite(angles).all() and len(angles):
        rows["angle error, mean"] = f"{angles.mean():.2f}°"
        rows["angle error, 90 %"] = f"{np.percentile(angles, 90.0):.2f}°"
        rows["position error, mean"] = f"{distances.mean():.2f} mm"
        rows["position error, 90 %"] = f"{np.percentile(distances, 90.0):.2f} mm"
    rows |= view.figures
    lines = "".join(
        f'<tr><td style="padding:1px 8px 1px 0">{html.escape(name)}</td>'
        f'<td style="text-align:right;font-variant-numeric:tabular-nums">{html.escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    scale = "linear-gradient(90deg, rgb(41,161,112), rgb(237,201,64), rgb(217,66,51))"
    return (
        '<div style="padding:6px 12px 8px;font-size:13px;line-height:1.5">'
        f'<div style="font-size:15px;font-weight:600;margin-bottom:4px">{html.escape(view.status)}</div>'
        f'<table style="width:100%;border-collapse:collapse">{lines}</table>'
        f'<div style="margin-top:8px;height:8px;border-radius:4px;background:{scale}"></div>'
        '<div style="display:flex;justify-content:space-between;opacity:0.7"><span>0°</span>'
        f"<span>angle error</span><span>{np.degrees(LARGEST_ANGLE):.0f}°</span></div></div>"
    )
