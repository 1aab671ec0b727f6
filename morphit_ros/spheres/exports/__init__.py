"""Sphere models in the formats of other programs, and read back from them."""

from morphit_ros.spheres.exports.formats import FORMATS, ModelFormat, export_model, format_of, read_model
from morphit_ros.spheres.exports.planner import PlannerConfig

__all__ = ["FORMATS", "ModelFormat", "PlannerConfig", "export_model", "format_of", "read_model"]
