"""A planned push seen from above: outlines of the object, the way of the sphere, and where other engines end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from morphit_ros.geometry.transforms import Array, matrix_from_quat_xyzw
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
from morphit_ros.resources import atomic_write

_OUTLINES = 5
_COLORS = ("#c0392b", "#2471a3", "#1e8449", "#7d3c98")


def draw_push(body: ContactBody, plan: PushPlan, others: Mapping[str, Array], path: str | Path) -> Path:
    """Draw a plan from above into a PNG.

    Args:
        body: its points give the outline.
        plan: what was planned.
        others: name → (N, 3) way of the object's centre of mass elsewhere [m].
        path: file; its folder is made if need be.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Polygon

    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    for number, index in enumerate(np.linspace(0, len(plan.times) - 1, _OUTLINES).round().astype(int)):
        shade = 0.15 + 0.6 * number / (_OUTLINES - 1)
        axes.add_patch(Polygon(_outline(body, plan.states[index, 0]), fill=False, edgecolor="black", alpha=shade))
        center = plan.pusher_positions[index, :2]
        axes.add_patch(Circle(tuple(center), plan.config.pusher_radius, fill=False, edgecolor="#d68910", alpha=shade))
    axes.plot(*plan.pusher_positions[:, :2].T, color="#d68910", label="sphere")
    axes.plot(*plan.object_positions[:, :2].T, color="black", label="plan")
    for color, (name, way) in zip(_COLORS, others.items(), strict=False):
        off = 1e3 * float(np.linalg.norm(way[-1, :2] - plan.goal[:2]))
        axes.plot(*way[:, :2].T, color=color, linestyle="--", label=f"{name}: {off:.1f} mm from the goal")
        axes.plot(*way[-1, :2], color=color, marker="o", markersize=4)
    axes.plot(*plan.goal[:2], color="black", marker="+", markersize=14, linestyle="none", label="goal")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    _save(figure, Path(path))
    return Path(path)


def _outline(body: ContactBody, state: Array) -> Array:
    """(K, 2) hull of the points from above."""
    points = (body.points @ matrix_from_quat_xyzw(state[3:7]).T + state[:3])[:, :2]
    return points[ConvexHull(points).vertices]


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "wb") as stream:
        figure.savefig(stream, dpi=110, format="png")
