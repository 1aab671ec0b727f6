"""Hidden sides and centre of mass of partly seen objects, behind the protocol `ShapeCompletion`."""

from morphit_ros.grasping.completion.auto import AutoCompletion
from morphit_ros.grasping.completion.extrusion import TableExtrusion, extrude_to_table
from morphit_ros.grasping.completion.hull import HullCompletion
from morphit_ros.grasping.completion.known_mass import KnownMass
from morphit_ros.grasping.completion.mirror import MirrorCompletion
from morphit_ros.grasping.completion.revolution import RevolutionCompletion
from morphit_ros.grasping.completion.shape import CompletedShape, ShapeCompletion

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
