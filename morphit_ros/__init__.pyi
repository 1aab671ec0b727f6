from .robot_shape import Robot as Robot
from .shape import Shape as Shape
from .shape_results import ShapeField as ShapeField, ShapeSpheres as ShapeSpheres, ShapeSurface as ShapeSurface

__version__: str
