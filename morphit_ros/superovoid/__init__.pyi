from .distances.batch import DistancesResult as DistancesResult, min_distances as min_distances
from .distances.derivatives import (
    DistanceDerivative as DistanceDerivative,
    distance_derivative as distance_derivative,
    joint_derivative as joint_derivative,
)
from .distances.min_distance import (
    DistanceConfig as DistanceConfig,
    DistanceQuery as DistanceQuery,
    DistanceResult as DistanceResult,
    DistanceStatus as DistanceStatus,
    min_distance as min_distance,
)
from .distances.nonconvex import shape_distance as shape_distance
from .distances.packing import ShapeTable as ShapeTable
from .distances.placed import PlacedSuperovoid as PlacedSuperovoid
from .distances.primitives import (
    Box as Box,
    Capsule as Capsule,
    ConvexMesh as ConvexMesh,
    Cylinder as Cylinder,
    HalfSpace as HalfSpace,
    Point as Point,
    Sphere as Sphere,
)
from .fits.config import LinkFitConfig as LinkFitConfig, SuperovoidFitConfig as SuperovoidFitConfig
from .fits.errors import FitErrors as FitErrors
from .fits.fit import SuperovoidFitResult as SuperovoidFitResult, fit_superovoid as fit_superovoid
from .robots.clearance import ObjectClearance as ObjectClearance, hand_of_boxes as hand_of_boxes
from .robots.model_file import load_model as load_model, save_model as save_model
from .robots.robot_fit import fit_robot_superovoids as fit_robot_superovoids
from .robots.robot_model import LinkSuperovoids as LinkSuperovoids, RobotSuperovoids as RobotSuperovoids
from .robots.separation import (
    SeparationConfig as SeparationConfig,
    SeparationFilter as SeparationFilter,
    SeparationStatus as SeparationStatus,
    SeparationStep as SeparationStep,
)
from .robots.separation_scale import ScaleStep as ScaleStep, SeparationScale as SeparationScale
from .shapes.superovoid import Superovoid as Superovoid
