from .auto import AutoCompletion as AutoCompletion
from .extrusion import TableExtrusion as TableExtrusion, extrude_to_table as extrude_to_table
from .hull import HullCompletion as HullCompletion
from .known_mass import KnownMass as KnownMass
from .known_shape import KnownShape as KnownShape
from .mirror import MirrorCompletion as MirrorCompletion
from .revolution import RevolutionCompletion as RevolutionCompletion
from .shape import CompletedShape as CompletedShape, ShapeCompletion as ShapeCompletion
