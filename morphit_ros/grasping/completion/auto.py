"""The best supported completion of a cloud."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.completion.extrusion import TableExtrusion
from morphit_ros.grasping.completion.hull import HullCompletion
from morphit_ros.grasping.completion.mirror import MirrorCompletion
from morphit_ros.grasping.completion.revolution import RevolutionCompletion
from morphit_ros.grasping.completion.shape import CompletedShape


@dataclass(frozen=True)
class AutoCompletion:
    """Solid of revolution if the cloud is one, else by symmetry, else extrusion (with a table) or hull (without).

    Low things on a table are extruded at once: their tops are all there is to see, and symmetry adds nothing to them.

    Attributes:
        viewpoints: (K, 3) positions of the cameras, None if unknown.
        obstacles: (M, 3) points of other things, None if there are none.
    """

    viewpoints: Array | None = None
    obstacles: Array | None = None

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`."""
        extrusion = TableExtrusion(self.viewpoints, self.obstacles)
        if table is not None and extrusion.is_low(points, table):
            return extrusion(points, normals, table)
        revolution = RevolutionCompletion(self.viewpoints, self.obstacles)
        fit = revolution.fit(points, normals, table)
        if fit is not None and fit.supported:
            turned = revolution.complete_unless_refuted(points, normals, table, fit)
            if turned is not None:
                return turned
        mirror = MirrorCompletion(self.viewpoints, self.obstacles)
        planes = mirror.planes(points, normals, table)
        if planes:
            return mirror.complete(points, normals, table, planes)
        if table is not None:
            return extrusion(points, normals, table)
        return HullCompletion(self.viewpoints, self.obstacles)(points, normals, table)
