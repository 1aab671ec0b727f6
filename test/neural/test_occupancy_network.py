"""The occupancy network in torch is the field that is evaluated in NumPy, alone or with a grid of features."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.neural.fields.network import GridNetworkField, NetworkField
from morphit_ros.neural.learning.config import DepthLearningConfig

torch = pytest.importorskip("torch")

BOUNDS = np.array([[-0.1, -0.05, 0.0], [0.2, 0.1, 0.1]])


@pytest.mark.parametrize(("method", "kind"), [("network", NetworkField), ("grid_network", GridNetworkField)])
def test_what_is_learned_is_what_the_field_says(method: str, kind: type) -> None:
    from morphit_ros.neural.learning.occupancy_network import OccupancyNetwork

    config = DepthLearningConfig(method=method, hidden=8, layers=2, frequencies=2, features=3, feature_resolution=7)
    network = OccupancyNetwork(BOUNDS[1] - BOUNDS[0], config, torch.Generator().manual_seed(4))
    with torch.no_grad():
        for parameter in network.parameters:
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(5))
    field = network.field(BOUNDS)
    assert type(field) is kind
    unit = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 3))
    places = BOUNDS[0] + 0.5 * (unit + 1.0) * (BOUNDS[1] - BOUNDS[0])
    with torch.no_grad():
        wanted = torch.sigmoid(network.logits(torch.from_numpy(unit.astype(np.float32)))).numpy()
    assert np.ptp(wanted) > 0.05
    np.testing.assert_allclose(field.density(places), wanted, atol=2e-6)


def test_features_stand_as_dense_along_every_side() -> None:
    from morphit_ros.neural.learning.occupancy_network import OccupancyNetwork

    config = DepthLearningConfig(method="grid_network", features=2, feature_resolution=13)
    field = OccupancyNetwork(BOUNDS[1] - BOUNDS[0], config, torch.Generator()).field(BOUNDS)
    assert isinstance(field, GridNetworkField)
    # Sides of 0.3, 0.15 and 0.1 m.
    assert field.features.shape == (13, 7, 5, 2)
