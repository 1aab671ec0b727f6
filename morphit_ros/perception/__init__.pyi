from .configuration import PerceptionConfig as PerceptionConfig
from .pipeline import perceive as perceive
from .scene import (
    ObjectEvidence as ObjectEvidence,
    ObjectExtent as ObjectExtent,
    RegistrationResult as RegistrationResult,
    Scene as Scene,
    SceneStatus as SceneStatus,
    Table as Table,
)
from .segmentation.target import select_target as select_target
