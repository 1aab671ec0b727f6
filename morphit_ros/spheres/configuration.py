"""Settings of the sphere fit and the weights of its variants."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

VARIANTS = ("balanced", "volume", "surface", "contact")
METHODS = ("morphit", "vssa", "amaa", "packing")


_OF_VARIANT = -1.0


def _weight(of: str) -> Any:
    return parameter(_OF_VARIANT, f"Weight of {of}; -1: the variant's", minimum=_OF_VARIANT)


@dataclass(frozen=True)
class LossWeights(Config):
    """Weights of the losses, which `loss_kernels` describes. A weight that is not given is the variant's."""

    coverage: float = _weight("interior samples outside all spheres")
    overlap: float = _weight("spheres that overlap")
    boundary: float = _weight("spheres that stand out of the surface")
    surface: float = _weight("the mean distance between both surfaces")
    containment: float = _weight("spheres inside other spheres")
    sqem: float = _weight("the spherical quadric error")
    hausdorff: float = _weight("the least covered part of the surface")
    peak: float = _weight("the greatest distance between both surfaces")
    center_containment: float = _weight("centres outside the mesh")
    mass: float = _weight("the relative error of the mass")
    center_of_mass: float = _weight("the error of the centre of mass")
    inertia: float = _weight("the relative error of the inertia")
    contact: float = _weight("the error of where a large ball touches")

    @classmethod
    def only(cls, **weights: float) -> LossWeights:
        """These weights and zero for all others."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{**dict.fromkeys(names, 0.0), **weights})

    def completed(self, preset: LossWeights) -> LossWeights:
        """With the weights of a preset where none are given.

        Raises:
            InvalidInputError: all of them are zero.
        """
        own, others = self.to_flat(), preset.to_flat()
        weights = {name: others[name] if value < 0.0 else value for name, value in own.items()}
        if not any(weights.values()):
            raise InvalidInputError("weights", "all zero", "at least one weight above zero")
        return LossWeights(**weights)

    def to_array(self) -> Array:
        """The weights (13,) in the order of the fields."""
        return np.array(list(self.to_flat().values()), dtype=np.float64)


# The weights of the authors' reworked code, with changes that were measured on Panda links (docs/spheres.md):
# balanced has twice their weight of the surface, two thirds of their coverage, and the peak; volume has the Hausdorff
# term, which lets it cover with about half of their outside volume; surface leans on the surface a little more.
_PRESETS = {
    "balanced": LossWeights.only(
        coverage=1000.0, overlap=0.3, boundary=1.0, surface=100.0, containment=10.0, sqem=3000.0, peak=80.0
    ),
    "volume": LossWeights.only(
        coverage=5000.0, overlap=0.1, boundary=1.0, surface=10.0, containment=1.0, sqem=10.0, hausdorff=30000.0
    ),
    "surface": LossWeights.only(
        coverage=0.01, overlap=0.01, boundary=1000.0, surface=13.0, containment=1.0, sqem=1000.0
    ),
    "contact": LossWeights.only(
        coverage=100.0, overlap=0.01, surface=30.0, containment=1.0, sqem=6000.0, contact=200.0
    ),
}


@dataclass(frozen=True)
class SphereFitConfig(Config):
    """How spheres are fitted to a mesh.

    The number of spheres is always kept: exactly `count` for a mesh, exactly min(count, primitive_count) for a
    box, cylinder or capsule of a robot description, and 1 for a sphere. A cover of variant volume is found by a search
    of its own: weights, iterations, starts, rounds, patience, samples and learning_rate play no part in it.

    Raises:
        InvalidInputError: a value out of range, weights that are all zero, cover together with another method than
            morphit, or with weights for variant volume.
    """

    count: int = parameter(20, "Spheres for a mesh", minimum=1, maximum=2000)
    primitive_count: int = parameter(
        6, "Spheres for a box, cylinder or capsule of a robot description, at most count", minimum=1, maximum=2000
    )
    variant: str = parameter(
        "balanced",
        "balanced: both surfaces close; volume: covers the mesh; surface: stays inside; contact: touched like the mesh",
        choices=VARIANTS,
    )
    method: str = parameter(
        "morphit",
        "morphit, or a baseline to compare with: vssa, amaa, packing (they know no variants)",
        choices=METHODS,
    )
    cover: bool = parameter(False, "Prove that every point of the mesh is inside some sphere; fattens what it must")
    weights: LossWeights = nested(LossWeights)
    iterations: int = parameter(200, "Most gradient steps of one descent", minimum=1, maximum=20000)
    starts: int = parameter(5, "Initial arrangements tried; the best goes on", minimum=1, maximum=100)
    seeds: int = parameter(
        1,
        "Whole fits from different seeds, side by side; that of least loss is taken, of volume covers the smallest",
        minimum=1,
        maximum=1000,
    )
    rounds: int = parameter(
        20, "Most times that useless spheres are moved to where they are missing", minimum=0, maximum=1000
    )
    patience: int = parameter(7, "Rounds in a row without gain that end the fit", minimum=1, maximum=1000)
    interior_samples: int = parameter(
        0, "Points inside the mesh; 0: as many as the count needs", minimum=0, maximum=200000
    )
    surface_samples: int = parameter(0, "Points on the mesh; 0: as many as the count needs", minimum=0, maximum=200000)
    learning_rate: float = parameter(
        0.01, "First step of Adam for centres, relative to the mesh's box diagonal", minimum=1e-6, maximum=1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loss_weights()
        if self.cover and self.variant == "volume" and any(weight >= 0.0 for weight in self.weights.to_flat().values()):
            remedy = "Take variant 'balanced' or 'surface', which grow from their own fit, or no weights."
            raise InvalidInputError("weights", "given for a cover of variant 'volume'", "none", remedy)
        if self.cover and self.method != "morphit":
            raise InvalidInputError("cover", f"True with method {self.method!r}", "method 'morphit'")

    def loss_weights(self) -> LossWeights:
        """The weights given, completed by those of the variant."""
        return self.weights.completed(_PRESETS[self.variant])

    def sample_counts(self) -> tuple[int, int]:
        """Points inside and on the mesh that the fit draws."""
        # So many that a sphere sees about 70 of each: with fewer, mesh between the samples goes unseen.
        enough = min(max(3000, 70 * self.count), 30000)
        return self.interior_samples or enough, self.surface_samples or enough
