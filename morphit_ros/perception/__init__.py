"""Two depth clouds to a registered scene, a table and object clouds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.perception.configuration import PerceptionConfig
    from morphit_ros.perception.pipeline import perceive
    from morphit_ros.perception.scene import ObjectEvidence, ObjectExtent, RegistrationResult, Scene, SceneStatus, Table
    from morphit_ros.perception.target import select_target
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "configuration": ("PerceptionConfig",),
            "pipeline": ("perceive",),
            "scene": ("ObjectEvidence", "ObjectExtent", "RegistrationResult", "Scene", "SceneStatus", "Table"),
            "target": ("select_target",),
        },
    )

__all__ = [
    "ObjectEvidence",
    "ObjectExtent",
    "PerceptionConfig",
    "RegistrationResult",
    "Scene",
    "SceneStatus",
    "Table",
    "perceive",
    "select_target",
]
