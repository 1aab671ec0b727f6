"""Morphing covers: kinematics, motor placement, controller, plant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.cover.controller import ControllerConfig, CoverController, StepResult, StepStatus
    from morphit_ros.cover.model import Cover
    from morphit_ros.cover.simulation import SimulationConfig, SimulationResult, simulate_cover
    from morphit_ros.cover.state import CoverState
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "controller": ("ControllerConfig", "CoverController", "StepResult", "StepStatus"),
            "model": ("Cover",),
            "simulation": ("SimulationConfig", "SimulationResult", "simulate_cover"),
            "state": ("CoverState",),
        },
    )

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
