"""A neural object as a view shows it, and the panel beside it."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from morphit_ros.display.panel import table_html, titled_html
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform


@dataclass(frozen=True)
class NeuralView:
    """An object to show.

    Attributes:
        name: of the object.
        points, normals: (N, 3) of its surface and outward, in its own frame [m].
        T_world_object: (4, 4) of its own frame.
        center: (3,) of mass, in its own frame [m].
        center_error: expected error of it [m].
        axes: (3, 3) principal axes as columns, in its own frame.
        half_axes: (3,) of the uniform ellipsoid of the same mass and inertia [m].
        confidence: in shape and inertia, 0 to 1.
        figures: lines of the panel, name → text.
        doubts: for people; empty: none.
    """

    name: str
    points: Array
    normals: Array
    T_world_object: Array
    center: Array
    center_error: float
    axes: Array
    half_axes: Array
    confidence: float
    figures: Mapping[str, str] = field(default_factory=dict)
    doubts: str = ""

    def __post_init__(self) -> None:
        check_transform(self.T_world_object, "T_world_object")
        if not len(self.points) or self.points.shape != self.normals.shape or self.points.shape[1:] != (3,):
            raise InvalidInputError("surface", f"points {self.points.shape}", "(N, 3) points with as many normals")
        values = (self.points, self.normals, self.center, self.half_axes, self.axes)
        if not all(np.isfinite(item).all() for item in values):
            raise InvalidInputError("neural object", "values that are not finite", "finite numbers")


def panel_html(view: NeuralView | None, status: str, is_error: bool, build: Mapping[str, str]) -> str:
    """Object, figures, confidence and state as HTML; all text is escaped."""
    parts = []
    if view is not None:
        share = min(max(view.confidence, 0.0), 1.0)
        hue = "rgb(217,66,51)" if share < 0.5 else "rgb(41,161,112)"
        parts.append(table_html(view.figures))
        parts.append(
            '<div style="margin-top:6px;height:8px;border-radius:4px;background:rgba(255,255,255,0.15)">'
            f'<div style="width:{100.0 * share:.0f}%;height:8px;border-radius:4px;background:{hue}"></div></div>'
            f'<div style="opacity:0.7">confidence {view.confidence:.2f}</div>'
        )
        if view.doubts:
            parts.append(f'<div style="margin-top:4px;color:#ffcf66">{html.escape(view.doubts)}</div>')
    color = "color:#ff8a8a" if is_error else "opacity:0.7"
    if build:
        parts.append(f'<div style="margin-top:6px;font-weight:600">build under way</div>{table_html(build)}')
    parts.append(f'<div style="margin-top:6px;overflow-wrap:anywhere;{color}">{html.escape(status)}</div>')
    return titled_html("no object yet" if view is None else view.name, *parts)
