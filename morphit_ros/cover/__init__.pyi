from .control.controller import (
    ControllerConfig as ControllerConfig,
    CoverController as CoverController,
    StepResult as StepResult,
    StepStatus as StepStatus,
)
from .model import Cover as Cover
from .simulation import (
    CoverSimulationResult as CoverSimulationResult,
    SimulationConfig as SimulationConfig,
    simulate_cover as simulate_cover,
)
from .state import CoverState as CoverState
