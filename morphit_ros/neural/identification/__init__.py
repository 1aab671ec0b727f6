"""System identification of neural objects: friction, mass and inertia from observed motion."""

from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import IdentificationResult, identify
from morphit_ros.neural.identification.least_squares import EstimationStatus, LeastSquaresConfig
from morphit_ros.neural.identification.simulated_motion import SimulatedMotion
from morphit_ros.neural.identification.tracks import PoseTrack, read_track, write_track
from morphit_ros.neural.identification.unknowns import Unknown

__all__ = [
    "EstimationStatus",
    "Experiment",
    "IdentificationConfig",
    "IdentificationResult",
    "LeastSquaresConfig",
    "PoseTrack",
    "SimulatedMotion",
    "Unknown",
    "identify",
    "read_track",
    "write_track",
]
