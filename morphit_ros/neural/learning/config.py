"""How densities are learned: sizes, rates and seeds, for depth and for colour pictures."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter

_POSES = (
    "Poses of six views or more with masks: checked: refined where they disagree by about a pixel, views that "
    "disagree with all others left out; given: as they are; refined: in any case"
)


@dataclass(frozen=True)
class DepthLearningConfig(Config):
    """How a density is learned from depth pictures."""

    method: str = parameter(
        "grid",
        "grid: the carved hull on a grid; network: an occupancy network fitted to it; grid_network: the same with "
        "a grid of features, for more detail",
        choices=("grid", "network", "grid_network"),
    )
    resolution: int = parameter(96, "Nodes along the longest side of the grid", minimum=16, maximum=200)
    noise: float = parameter(
        0.0, "Depth within which views are averaged, about twice their noise [m]", minimum=0.0, maximum=0.05
    )
    edge: float = parameter(1.5, "Width of the edge, in spacings of the grid", minimum=0.5, maximum=10.0)
    smoothing: float = parameter(0.7, "Width of the smoothing of the hull, in spacings", minimum=0.0, maximum=5.0)
    layers: int = parameter(3, "Hidden layers of the network", minimum=1, maximum=8)
    hidden: int = parameter(64, "Width of the network", minimum=4, maximum=512)
    features: int = parameter(4, "Features at a node of the grid and network", minimum=1, maximum=32)
    feature_resolution: int = parameter(
        32, "Nodes along the longest side of the grid of features", minimum=2, maximum=128
    )
    frequencies: int = parameter(4, "Octaves of the encoding of positions", minimum=0, maximum=10)
    iterations: int = parameter(800, "Steps of the optimiser", minimum=1, maximum=100000)
    batch: int = parameter(4096, "Points in a step", minimum=64, maximum=65536)
    rate: float = parameter(5e-3, "Learning rate", minimum=1e-6, maximum=1.0)
    seed: int = parameter(0, "Seed of points and first weights", minimum=0)
    check_poses: bool = parameter(True, "Refuse poses that contradict each other")
    poses: str = parameter("checked", _POSES, choices=("checked", "given", "refined"))


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
    poses: str = parameter("checked", _POSES, choices=("checked", "given", "refined"))
