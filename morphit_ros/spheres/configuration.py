"""Settings of the sphere fit and the weights of its variants."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, nested, parameter

VARIANTS = ("balanced", "volume", "surface")


@dataclass(frozen=True)
class LossWeights(Config):
    """Weights of the six losses; all zero means those of the variant."""

    coverage: float = parameter(0.0, "Weight of interior samples outside all spheres", minimum=0.0)
    overlap: float = parameter(0.0, "Weight of spheres that overlap", minimum=0.0)
    boundary: float = parameter(0.0, "Weight of spheres that stand out of the surface", minimum=0.0)
    surface: float = parameter(0.0, "Weight of the distance between both surfaces", minimum=0.0)
    containment: float = parameter(0.0, "Weight of spheres inside other spheres", minimum=0.0)
    sqem: float = parameter(0.0, "Weight of the spherical quadric error", minimum=0.0)

    def is_zero(self) -> bool:
        """Whether no weight is set."""
        return not any(self.to_flat().values())


# MorphIt, weights of the authors' reworked code: coverage, overlap, boundary, surface, containment, SQEM.
_PRESETS = {
    "balanced": LossWeights(1500.0, 0.3, 1.0, 50.0, 10.0, 3000.0),
    "volume": LossWeights(5000.0, 0.1, 1.0, 0.1, 1.0, 10.0),
    "surface": LossWeights(0.01, 0.01, 1000.0, 10.0, 1.0, 1000.0),
}


@dataclass(frozen=True)
class SphereFitConfig(Config):
    """How spheres are fitted to a mesh.

    The number of spheres is always kept: exactly `count` for a mesh, exactly min(count, primitive_count) for a
    box, cylinder or capsule of a robot description, and 1 for a sphere.
    """

    count: int = parameter(20, "Spheres for a mesh", minimum=1, maximum=2000)
    primitive_count: int = parameter(
        6, "Spheres for a box, cylinder or capsule of a robot description, at most count", minimum=1, maximum=2000
    )
    variant: str = parameter(
        "balanced", "balanced: both surfaces close; volume: covers the mesh; surface: stays inside", choices=VARIANTS
    )
    weights: LossWeights = nested(LossWeights)
    iterations: int = parameter(200, "Gradient steps in all", minimum=1, maximum=20000)
    rounds: int = parameter(4, "Times that useless spheres are moved to where they are missing", minimum=0, maximum=100)
    interior_samples: int = parameter(2000, "Points inside the mesh", minimum=50, maximum=200000)
    surface_samples: int = parameter(2000, "Points on the mesh", minimum=50, maximum=200000)
    learning_rate: float = parameter(
        0.01, "First step of Adam, centres relative to the mesh's diagonal, radii relative", minimum=1e-6, maximum=1.0
    )

    def loss_weights(self) -> LossWeights:
        """The weights given, or those of the variant."""
        return _PRESETS[self.variant] if self.weights.is_zero() else self.weights
