"""Spheres for robot links by gradient-based optimisation (MorphIt)."""

from morphit_ros.spheres.clustering import spherize_cloud
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig
from morphit_ros.spheres.fit import FitStatus, SphereFitResult, fit_spheres
from morphit_ros.spheres.metrics import SphereMetrics, measure_spheres
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel, fit_robot_spheres, spheres_in_frame
from morphit_ros.spheres.self_collision import SelfCollisionMatrix, self_collision_matrix, touching_pairs
from morphit_ros.spheres.tables import csv_from_model, json_from_model, model_from_json
from morphit_ros.spheres.urdf_export import spherized_urdf

__all__ = [
    "FitStatus",
    "LinkSpheres",
    "LossWeights",
    "SelfCollisionMatrix",
    "SphereFitConfig",
    "SphereFitResult",
    "SphereMetrics",
    "SphereModel",
    "csv_from_model",
    "fit_robot_spheres",
    "fit_spheres",
    "json_from_model",
    "measure_spheres",
    "model_from_json",
    "self_collision_matrix",
    "spheres_in_frame",
    "spherize_cloud",
    "spherized_urdf",
    "touching_pairs",
]
