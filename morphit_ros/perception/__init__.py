"""Two depth clouds to a registered scene, a table and object clouds."""

from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.pipeline import perceive
from morphit_ros.perception.scene import ObjectEvidence, ObjectExtent, RegistrationResult, Scene, SceneStatus, Table
from morphit_ros.perception.target import select_target

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
