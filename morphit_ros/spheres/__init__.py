"""Spheres for robot links by gradient-based optimisation (MorphIt)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.spheres.clustering import spherize_cloud
    from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig
    from morphit_ros.spheres.exports import FORMATS, PlannerConfig, export_model, format_of, read_model
    from morphit_ros.spheres.exports.tables import csv_from_model, json_content, json_from_model, model_from_json
    from morphit_ros.spheres.exports.urdf import spherized_urdf
    from morphit_ros.spheres.fit import FitStatus, SphereFitResult, fit_spheres
    from morphit_ros.spheres.links.budget import counts_for_distance, distribute_spheres, fewest_spheres
    from morphit_ros.spheres.metrics import SphereMetrics, measure_spheres
    from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel, fit_robot_spheres, spheres_in_frame
    from morphit_ros.spheres.self_collision.matrix import SelfCollisionMatrix, self_collision_matrix, touching_pairs
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "clustering": ("spherize_cloud",),
            "configuration": ("LossWeights", "SphereFitConfig"),
            "exports": ("FORMATS", "PlannerConfig", "export_model", "format_of", "read_model"),
            "exports.tables": ("csv_from_model", "json_content", "json_from_model", "model_from_json"),
            "exports.urdf": ("spherized_urdf",),
            "fit": ("FitStatus", "SphereFitResult", "fit_spheres"),
            "links.budget": ("counts_for_distance", "distribute_spheres", "fewest_spheres"),
            "metrics": ("SphereMetrics", "measure_spheres"),
            "robot_model": ("LinkSpheres", "SphereModel", "fit_robot_spheres", "spheres_in_frame"),
            "self_collision.matrix": ("SelfCollisionMatrix", "self_collision_matrix", "touching_pairs"),
        },
    )

__all__ = [
    "FORMATS",
    "FitStatus",
    "LinkSpheres",
    "LossWeights",
    "PlannerConfig",
    "SelfCollisionMatrix",
    "SphereFitConfig",
    "SphereFitResult",
    "SphereMetrics",
    "SphereModel",
    "counts_for_distance",
    "csv_from_model",
    "distribute_spheres",
    "export_model",
    "fewest_spheres",
    "fit_robot_spheres",
    "fit_spheres",
    "format_of",
    "json_content",
    "json_from_model",
    "measure_spheres",
    "model_from_json",
    "read_model",
    "self_collision_matrix",
    "spheres_in_frame",
    "spherize_cloud",
    "spherized_urdf",
    "touching_pairs",
]
