"""Hidden sides and centre of mass of partly seen objects, behind the protocol `ShapeCompletion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.grasping.completion.auto import AutoCompletion
    from morphit_ros.grasping.completion.extrusion import TableExtrusion, extrude_to_table
    from morphit_ros.grasping.completion.hull import HullCompletion
    from morphit_ros.grasping.completion.known_mass import KnownMass
    from morphit_ros.grasping.completion.mirror import MirrorCompletion
    from morphit_ros.grasping.completion.revolution import RevolutionCompletion
    from morphit_ros.grasping.completion.shape import CompletedShape, ShapeCompletion
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "auto": ("AutoCompletion",),
            "extrusion": ("TableExtrusion", "extrude_to_table"),
            "hull": ("HullCompletion",),
            "known_mass": ("KnownMass",),
            "mirror": ("MirrorCompletion",),
            "revolution": ("RevolutionCompletion",),
            "shape": ("CompletedShape", "ShapeCompletion"),
        },
    )

__all__ = [
    "AutoCompletion",
    "CompletedShape",
    "HullCompletion",
    "KnownMass",
    "MirrorCompletion",
    "RevolutionCompletion",
    "ShapeCompletion",
    "TableExtrusion",
    "extrude_to_table",
]
