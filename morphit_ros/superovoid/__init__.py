"""Superovoids: superellipsoids that may be tapered, as exact shapes of links and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.superovoid.batch import DistancesResult, min_distances
    from morphit_ros.superovoid.clearance import ObjectClearance
    from morphit_ros.superovoid.derivatives import DistanceDerivative, distance_derivative, joint_derivative
    from morphit_ros.superovoid.distance import (
        DistanceConfig,
        DistanceQuery,
        DistanceResult,
        DistanceStatus,
        min_distance,
    )
    from morphit_ros.superovoid.fit_config import LinkFitConfig, SuperovoidFitConfig
    from morphit_ros.superovoid.fit_errors import FitErrors
    from morphit_ros.superovoid.fitting import SuperovoidFitResult, fit_superovoid
    from morphit_ros.superovoid.model_file import load_model, save_model
    from morphit_ros.superovoid.nonconvex import shape_distance
    from morphit_ros.superovoid.packing import ShapeTable
    from morphit_ros.superovoid.placed import PlacedSuperovoid
    from morphit_ros.superovoid.primitives import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, Point, Sphere
    from morphit_ros.superovoid.robot_fit import fit_robot_superovoids
    from morphit_ros.superovoid.robot_model import LinkSuperovoids, RobotSuperovoids
    from morphit_ros.superovoid.shape import Superovoid
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "batch": ("DistancesResult", "min_distances"),
            "clearance": ("ObjectClearance",),
            "derivatives": ("DistanceDerivative", "distance_derivative", "joint_derivative"),
            "distance": ("DistanceConfig", "DistanceQuery", "DistanceResult", "DistanceStatus", "min_distance"),
            "fit_config": ("LinkFitConfig", "SuperovoidFitConfig"),
            "fit_errors": ("FitErrors",),
            "fitting": ("SuperovoidFitResult", "fit_superovoid"),
            "model_file": ("load_model", "save_model"),
            "nonconvex": ("shape_distance",),
            "packing": ("ShapeTable",),
            "placed": ("PlacedSuperovoid",),
            "primitives": ("Box", "Capsule", "ConvexMesh", "Cylinder", "HalfSpace", "Point", "Sphere"),
            "robot_fit": ("fit_robot_superovoids",),
            "robot_model": ("LinkSuperovoids", "RobotSuperovoids"),
            "shape": ("Superovoid",),
        },
    )

__all__ = [
    "Box",
    "Capsule",
    "ConvexMesh",
    "Cylinder",
    "DistanceConfig",
    "DistanceDerivative",
    "DistanceQuery",
    "DistanceResult",
    "DistanceStatus",
    "DistancesResult",
    "FitErrors",
    "HalfSpace",
    "LinkFitConfig",
    "LinkSuperovoids",
    "ObjectClearance",
    "PlacedSuperovoid",
    "Point",
    "RobotSuperovoids",
    "ShapeTable",
    "Sphere",
    "Superovoid",
    "SuperovoidFitConfig",
    "SuperovoidFitResult",
    "distance_derivative",
    "fit_robot_superovoids",
    "fit_superovoid",
    "joint_derivative",
    "load_model",
    "min_distance",
    "min_distances",
    "save_model",
    "shape_distance",
]
