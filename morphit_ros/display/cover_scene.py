"""The browser view of a morphing cover: plates coloured by error, normals, motors, target, what it lies on, figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from morphit_ros.cover.model import Cover
from morphit_ros.display.drawings.cover import LARGEST_ANGLE, ON_DARK, body_item, cover_items
from morphit_ros.display.layers import Lights
from morphit_ros.display.panel import table_html, titled_html
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.geometry.transforms import Array, check_transform


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
    """A browser view of a cover. Until one is set, nothing is shown."""

    layers: ClassVar = {
        "plates": "Plates",
        "normals": "Normals",
        "motors": "Motors",
        "target": "Target",
        "body": "Body",
    }
    lights = Lights(environment=0.12, ambient=0.35, sun=1.1)
    title = "morphit cover"
    _cover: Cover | None = None
    _rate_limit = 1.0

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
            for layer in self.layers:
                self._server.clear(layer)
            if body is not None:
                self._server.draw([body_item(*body, pose, ON_DARK)])
            self._frame(cover)

    def show(self, view: CoverView) -> None:
        """Show a moment of the cover that was set."""
        with self._lock:
            if self._cover is None:
                return
            target = view.target_points, view.target_triangles
            shares = view.rates / self._rate_limit
            items = cover_items(self._cover, view.positions, view.rotations, view.angles, target, shares, ON_DARK)
            self._server.draw(items)
            self._server.panel.set_content(panel_html(view))

    def _frame(self, cover: Cover) -> None:
        """A camera that has the whole cover in sight, and a floor below it."""
        reach = cover.pitch * max(cover.rows, cover.cols)
        row, col = divmod(cover.father, cover.cols)
        middle = cover.pitch * np.array([0.5 * (cover.cols - 1) - col, row - 0.5 * (cover.rows - 1), 0.0])
        base = cover.T_world_base
        center = base[:3, 3] + base[:3, :3] @ middle
        self.set_camera(center + reach * np.array([0.55, -1.35, 1.05]), center)
        below = (center[0], center[1], base[2, 3] - 0.6 * reach)
        self._server.add_floor(4.0 * reach, cover.pitch, 5.0 * cover.pitch, below)


def panel_html(view: CoverView) -> str:
    """Status, errors and figures as HTML; all text is escaped."""
    angles, distances = np.degrees(view.angles), view.distances * 1e3
    rows: dict[str, str] = {}
    if np.isfinite(angles).all() and len(angles):
        rows["angle error, mean"] = f"{angles.mean():.2f}°"
        rows["angle error, 90 %"] = f"{np.percentile(angles, 90.0):.2f}°"
        rows["position error, mean"] = f"{distances.mean():.2f} mm"
        rows["position error, 90 %"] = f"{np.percentile(distances, 90.0):.2f} mm"
    scale = "linear-gradient(90deg, rgb(41,161,112), rgb(237,201,64), rgb(217,66,51))"
    return titled_html(
        view.status,
        table_html({**rows, **view.figures}),
        f'<div style="margin-top:8px;height:8px;border-radius:4px;background:{scale}"></div>'
        '<div style="display:flex;justify-content:space-between;opacity:0.7"><span>0°</span>'
        f"<span>angle error</span><span>{np.degrees(LARGEST_ANGLE):.0f}°</span></div>",
    )
