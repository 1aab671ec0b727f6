"""Settings of learning from colour pictures; apart from it, as it takes torch and long to import."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter


@dataclass(frozen=True)
class ImageLearningConfig(Config):
    """How a density is learned from colour pictures."""

    resolution: int = parameter(80, "Nodes along the longest side of the density grid", minimum=16, maximum=160)
    feature_resolution: int = parameter(48, "The same of the feature grid", minimum=8, maximum=128)
    features: int = parameter(6, "Features at a node", minimum=1, maximum=32)
    hidden: int = parameter(32, "Width of the colour network", minimum=4, maximum=256)
    iterations: int = parameter(500, "Steps of the optimiser", minimum=1, maximum=20000)
    rays: int = parameter(1024, "Rays in a step", minimum=16, maximum=16384)
    step: float = parameter(0.75, "Distance of samples along a ray, in spacings of the grid", minimum=0.2, maximum=2.0)
    density_rate: float = parameter(0.15, "Learning rate of the density", minimum=1e-4, maximum=1.0)
    color_rate: float = parameter(0.02, "Learning rate of features and network", minimum=1e-5, maximum=0.5)
    silhouette_weight: float = parameter(
        0.5, "Weight of the silhouettes against the colours", minimum=0.0, maximum=10.0
    )
    smoothness: float = parameter(2e-3, "Weight of differences of neighbouring densities", minimum=0.0, maximum=1.0)
    seed: int = parameter(0, "Seed of rays and initial features", minimum=0)
    check_poses: bool = parameter(True, "Refuse poses that contradict each other")
