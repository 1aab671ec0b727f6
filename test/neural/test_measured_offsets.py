"""What measured points say of a body that was learned: parts that are missing, and a surface that lies too deep."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import matrix_from_rpy
from morphit_ros.neural.fields.analytic import BoxField, SphereField
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.learning.measured_offsets import offset_deviation, signed_distances
from morphit_ros.neural.solid.extraction import SolidConfig
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.silhouette_hull import HullThreshold, MomentDeviation

PIXEL = 0.003
HALF = np.array([0.1, 0.02, 0.004])


def box_points(count: int = 3000) -> np.ndarray:
    """Points all over a bar of 200 x 40 x 8 mm around the origin, off by a fifth of a pixel."""
    rng = np.random.default_rng(0)
    areas = np.array([HALF[1] * HALF[2], HALF[0] * HALF[2], HALF[0] * HALF[1]])
    axes = rng.choice(3, size=count, p=areas / areas.sum())
    points = rng.uniform(-HALF, HALF, size=(count, 3))
    depths = HALF[axes] + 0.2 * PIXEL * rng.normal(size=count)
    points[np.arange(count), axes] = np.sign(points[np.arange(count), axes]) * depths
    return points


def moved_box(low: float, high: float, thinner: float = 0.0) -> TransformedField:
    """The bar from one x to another, its surface that much deeper [m]."""
    sides = np.array([0.5 * (high - low), *HALF[1:]]) - thinner
    pose = np.eye(4)
    pose[0, 3] = 0.5 * (low + high)
    return TransformedField(BoxField(tuple(2.0 * sides), edge=0.0005), pose)


def bar(low: float, thinner: float = 0.0) -> TransformedField:
    """The bar from x = low on."""
    return moved_box(low, 0.1, thinner)


def test_a_body_that_holds_what_was_measured_is_sure() -> None:
    found = offset_deviation(bar(-0.1), 0.5, box_points(), PIXEL)
    assert found is not None
    # Distances are told in quarters of a pixel, of a bar of three.
    assert found.volume < 0.05 and found.center < 0.5e-3 and found.tensor_per_volume < 0.03


@pytest.mark.parametrize("low", [-0.04, 0.02])
def test_a_part_that_is_missing_is_in_the_deviation(low: float) -> None:
    found = offset_deviation(bar(low), 0.5, box_points(), PIXEL)
    assert found is not None
    missing = 0.2 / (0.1 - low) - 1.0
    assert missing / 2.0 < found.volume < 2.0 * missing
    assert 0.5 * (0.1 + low) / 2.0 < found.center < 0.1 + low


def test_a_surface_that_lies_too_deep_is_in_the_deviation() -> None:
    thinner = 0.0015
    found = offset_deviation(bar(-0.1, thinner), 0.5, box_points(), PIXEL)
    assert found is not None
    true = float(np.prod(HALF) / np.prod(HALF - thinner)) - 1.0
    assert found.volume == pytest.approx(true, rel=0.3)
    # All around: the centre stays.
    assert found.center < 2e-3


def test_nothing_is_known_where_nothing_was_measured_at_the_body() -> None:
    found = offset_deviation(bar(-0.1), 0.5, box_points() + np.array([0.0, 0.0, 0.1]), PIXEL)
    assert found is not None and found.volume == 1.0 and found.center > 0.05
    empty = GridField(np.zeros((4, 4, 4)), np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    assert offset_deviation(empty, 0.5, box_points(), PIXEL) is None


def test_distances_of_points() -> None:
    ball = SphereField(0.03, edge=0.0002)
    radii = np.array([0.0, 0.025, 0.029, 0.031, 0.034, 0.05])
    found = signed_distances(ball, 0.5, radii[:, None] * [[0.0, 0.0, 1.0]], PIXEL)
    assert np.isinf(found[-1]) and found[0] == -2.0 * PIXEL
    assert found[1:-1] == pytest.approx(radii[1:-1] - 0.03, abs=0.2 * PIXEL)


def test_deviations_and_remarks_hold_what_was_measured() -> None:
    field = bar(-0.1)
    offsets = MomentDeviation(0.6, 0.02, 0.7, 0.5)
    plain, told = (
        inertial_properties(field, density=1.0, threshold=HullThreshold(0.5, pixel=1e-4, offsets=one))
        for one in (None, offsets)
    )
    assert told.mass_error >= 0.6 * told.mass > 3.0 * plain.mass_error
    assert told.center_error >= 0.02 > 3.0 * plain.center_error
    assert told.inertia_error >= 0.7
    assert any("what was measured lies beside the surface" in remark for remark in told.remarks)
    assert not any("what was measured" in remark for remark in plain.remarks)
    # Views disagree, and points lie beside the surface, for the same errors of poses: the larger counts, not both.
    disagreement = HullThreshold(0.5, pixel=1e-4, disagreement=1e-3)
    views = inertial_properties(field, density=1.0, threshold=disagreement)
    same = MomentDeviation(views.mass_error / views.mass, 0.0, 0.0, 0.0)
    both = HullThreshold(0.5, pixel=1e-4, disagreement=1e-3, offsets=same)
    assert inertial_properties(field, density=1.0, threshold=both).mass_error < 1.1 * views.mass_error


def test_separate_pieces_of_what_views_showed_are_in_the_deviation() -> None:
    field = UnionField([bar(0.0), moved_box(-0.09, -0.03)])
    known = inertial_properties(field, density=1.0, threshold=0.5)
    shown = inertial_properties(field, density=1.0, threshold=HullThreshold(0.5, pixel=1e-4))
    alone = inertial_properties(bar(0.0), density=1.0, threshold=HullThreshold(0.5, pixel=1e-4))
    assert known.mass_error < 0.1 * known.mass
    # The piece is three fifths of the bar, and 110 mm beside its middle.
    assert shown.mass_error == pytest.approx(np.hypot(alone.mass_error, 0.6 * alone.mass), rel=0.1)
    assert shown.center_error == pytest.approx(0.6 / 1.6 * 0.11, rel=0.1)


def test_a_thin_wall_is_not_taken_for_separate_pieces() -> None:
    turned, beside = np.eye(4), np.eye(4)
    turned[:3, :3] = matrix_from_rpy((0.3, 0.4, 0.2))
    beside[2, 3] = 0.03
    plate = TransformedField(BoxField((0.1, 0.1, 0.0015), edge=0.0002), turned)
    piece = TransformedField(BoxField((0.015, 0.015, 0.0015), edge=0.0002), beside)
    threshold = HullThreshold(0.5, pixel=1e-4)
    shown, alone = (
        inertial_properties(field, density=1.0, threshold=threshold) for field in (UnionField([plate, piece]), plate)
    )
    # The piece is a fiftieth of the plate, 30 mm beside its middle.
    share = np.sqrt(shown.mass_error**2 - alone.mass_error**2) / alone.mass
    assert share == pytest.approx(0.0225, rel=0.4)
    assert np.sqrt(shown.center_error**2 - alone.center_error**2) == pytest.approx(0.03 * 0.022, rel=0.4)


def test_shreds_are_refused_with_their_cause() -> None:
    noise = GridField((np.random.default_rng(0).random((9, 9, 9)) < 0.1) * 1.0, np.array([[0.0] * 3, [0.1] * 3]))
    coarse = SolidConfig(resolution=16, refinements=0)
    for offsets, told in ((None, False), (MomentDeviation(0.6, 0.02, 0.7, 0.5), True)):
        with pytest.raises(InvalidInputError) as refused:
            inertial_properties(
                noise, density=1.0, threshold=HullThreshold(0.5, pixel=PIXEL, offsets=offsets), config=coarse
            )
        assert ("What was measured lies beside" in str(refused.value)) == told
