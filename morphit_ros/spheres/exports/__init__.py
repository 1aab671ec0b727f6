"""Sphere models in the formats of other programs, and read back from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.spheres.exports.formats import FORMATS, ModelFormat, export_model, format_of, read_model
    from morphit_ros.spheres.exports.planner import PlannerConfig
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "formats": ("FORMATS", "ModelFormat", "export_model", "format_of", "read_model"),
            "planner": ("PlannerConfig",),
        },
    )

__all__ = ["FORMATS", "ModelFormat", "PlannerConfig", "export_model", "format_of", "read_model"]
