"""Samples of a band of densities don't show where the surface is: deviations say so."""

import numpy as np

from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.fields.sampled import SampledField
from morphit_ros.neural.solid.extraction import SolidConfig
from morphit_ros.neural.solid.inertia import InertialProperties, inertial_properties

SIZE, EDGE, COARSE = (0.10, 0.06, 0.04), 0.01, SolidConfig(resolution=24, refinements=0)


def known(low: float, high: float) -> InertialProperties:
    """Of a box with a soft edge, from samples of its densities within a band."""
    field = BoxField(SIZE, edge=EDGE)
    rng = np.random.default_rng(0)
    points = rng.uniform(*field.bounds, (12_000, 3))
    densities = field.density(points)
    kept = np.flatnonzero((densities >= low) & (densities <= high))[:3000]
    return inertial_properties(SampledField(points[kept], 100.0 * densities[kept]), density=500.0, config=COARSE)


def test_a_band_of_densities_states_what_it_leaves_open() -> None:
    truth = inertial_properties(BoxField(SIZE, edge=EDGE), density=500.0, config=COARSE)
    band = known(0.2, 0.4)
    error = abs(band.volume / truth.volume - 1.0)
    assert error > 0.2
    assert error <= 2.0 * band.mass_error / band.mass
    assert any("where it is was not sampled" in remark for remark in band.remarks)


def test_samples_of_all_densities_say_nothing_of_the_kind() -> None:
    whole = known(0.0, 1.01)
    assert not any("not sampled" in remark for remark in whole.remarks)
    assert whole.mass_error < 0.2 * whole.mass
