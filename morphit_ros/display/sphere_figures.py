"""Measured figures of edited spheres: what is known of each link, what must be measured again, and totals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.spheres.editing import EditedLink, EditedModel
    from morphit_ros.spheres.metrics import SphereMetrics


@dataclass(frozen=True)
class Figures:
    """A line of the table; None stands for what is not known yet, NaN for what does not exist.

    Attributes:
        name: of the line.
        count, locked: numbers of spheres.
        d_avg, d_max: distances between the surfaces [m].
        inside, outside: volumes of the spheres inside and outside the mesh, over the mesh's.
    """

    name: str
    count: int
    locked: int
    d_avg: float | None = None
    d_max: float | None = None
    inside: float | None = None
    outside: float | None = None


class FigureTable:
    """The newest measures of every link; they stay until newer ones are known. Not safe for several threads."""

    def __init__(self, meshes: Mapping[str, TriangleMesh]) -> None:
        self._meshes = meshes
        self._measured: dict[str, tuple[EditedLink, SphereMetrics | None]] = {}

    def put(self, link: str, spheres: EditedLink, quality: SphereMetrics | None) -> None:
        """Note what was measured of the spheres of a link, None if it cannot be."""
        self._measured[link] = (spheres, quality)

    def stale_link(self, model: EditedModel, first: str | None) -> str | None:
        """A link that changed since it was measured, a certain one first; None if all is known."""
        stale = [link for link in model.links if self._measured.get(link, (None,))[0] is not model[link]]
        return first if first in stale else next(iter(stale), None)

    def line(self, model: EditedModel, link: str) -> Figures:
        """Figures of one link."""
        count, locked = len(model[link]), int(model[link].locked.sum())
        spheres, quality = self._measured.get(link, (None, None))
        if spheres is None:
            return Figures(link, count, locked)
        if quality is None:
            return Figures(link, count, locked, math.nan, math.nan, math.nan, math.nan)
        return Figures(link, count, locked, quality.d_avg, quality.d_max, quality.inside, quality.outside)

    def totals(self, model: EditedModel) -> Figures:
        """Figures of all links: the mean distance by area, ratios by volume."""
        lines = [self.line(model, link) for link in model.links]
        count, locked = sum(line.count for line in lines), sum(line.locked for line in lines)
        if any(line.d_avg is None for line in lines):
            return Figures("all links", count, locked)
        areas = np.array([self._meshes[line.name].area for line in lines])
        volumes = np.array([abs(self._meshes[line.name].volume) for line in lines])
        values = np.array([[line.d_avg, line.d_max, line.inside, line.outside] for line in lines], dtype=np.float64)
        known = values[np.isfinite(values[:, 1]), 1]
        return Figures(
            "all links",
            count,
            locked,
            _weighted_mean(values[:, 0], areas),
            float(known.max()) if len(known) else math.nan,
            _weighted_mean(values[:, 2], volumes),
            _weighted_mean(values[:, 3], volumes),
        )


def _weighted_mean(values: Array, weights: Array) -> float:
    known = np.isfinite(values) & (weights > 0.0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan
