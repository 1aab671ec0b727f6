"""One field of every class."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.analytic import BoxField, CapsuleField, CylinderField, EllipsoidField, SphereField
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.fields.network import DenseNetwork, GridNetworkField, NetworkField
from morphit_ros.neural.fields.sampled import SampledField

BOUNDS = np.array([[-0.1, -0.2, -0.05], [0.15, 0.1, 0.2]])
POSE = make_transform(matrix_from_rpy((0.4, -0.3, 1.1)), (0.02, -0.05, 0.1))


def network(inputs: int, frequencies: int, output: str) -> DenseNetwork:
    rng = np.random.default_rng(3)
    sizes = [inputs, 16, 12, 1]
    weights = [rng.normal(size=(a, b)) / np.sqrt(a) for a, b in itertools.pairwise(sizes)]
    return DenseNetwork(weights, [0.1 * rng.normal(size=b) for b in sizes[1:]], output, frequencies, 3.0)  # type: ignore[arg-type]


def make_fields() -> dict[str, DensityField]:
    rng = np.random.default_rng(0)
    sphere = SphereField(0.05, edge=0.02, peak=7.0)
    samples = rng.uniform(*BOUNDS, size=(60, 3))
    return {
        "sphere": sphere,
        "ellipsoid": EllipsoidField((0.03, 0.05, 0.08), edge=0.02),
        "box": BoxField((0.1, 0.06, 0.04), edge=0.01, peak=2.0),
        "cylinder": CylinderField(0.04, 0.1, edge=0.02),
        "capsule": CapsuleField(0.03, 0.08, edge=0.02),
        "union": UnionField([sphere, TransformedField(BoxField((0.1, 0.1, 0.1), edge=0.03), POSE)]),
        "transformed": TransformedField(EllipsoidField((0.03, 0.05, 0.08), edge=0.02), POSE),
        "grid": GridField(rng.uniform(size=(5, 6, 7)), BOUNDS),
        "network": NetworkField(network(27, 4, "sigmoid"), BOUNDS),
        "grid and network": GridNetworkField(network(13, 1, "softplus"), rng.normal(size=(5, 4, 6, 4)), BOUNDS),
        "samples": SampledField(samples, rng.uniform(1.0, 5.0, size=60)),
    }


FIELDS = make_fields()
EVERY_FIELD = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())


def points_around(field: DensityField, count: int, margin: float = 0.0) -> np.ndarray:
    low, high = field.bounds
    return np.random.default_rng(1).uniform(low - margin, high + margin, size=(count, 3))
