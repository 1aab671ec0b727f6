"""Morphing covers: kinematics, motor placement, controller, plant."""

from morphit_ros.cover.controller import ControllerConfig, CoverController, StepResult, StepStatus
from morphit_ros.cover.model import Cover
from morphit_ros.cover.simulation import SimulationConfig, SimulationResult, simulate_cover
from morphit_ros.cover.state import CoverState

__all__ = [
    "ControllerConfig",
    "Cover",
    "CoverController",
    "CoverState",
    "SimulationConfig",
    "SimulationResult",
    "StepResult",
    "StepStatus",
    "simulate_cover",
]
