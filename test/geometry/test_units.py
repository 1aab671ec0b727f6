"""Units of files: what is said is applied, what is not said is metres and doubted where it is huge."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.units import UNITS, in_metres, unit_length

BRACKET = box_mesh((60.0, 30.0, 20.0))


@pytest.mark.parametrize(("unit", "size"), [("m", 60.0), ("mm", 0.06), ("cm", 0.6), ("inch", 1.524)])
def test_a_unit_scales(unit: str, size: float) -> None:
    assert in_metres(BRACKET, unit).extents[0] == pytest.approx(size, rel=1e-12)
    normals = np.tile([0.0, 0.0, 1.0], (len(BRACKET.vertices), 1))
    cloud = in_metres(PointCloud(BRACKET.vertices, normals, frame="camera"), unit)
    assert np.ptp(cloud.points[:, 0]) == pytest.approx(size, rel=1e-12)
    np.testing.assert_array_equal(cloud.normals, normals)
    assert cloud.frame == "camera"


def test_without_a_unit_a_huge_thing_is_doubted_and_an_ordinary_one_is_not() -> None:
    for shape in (BRACKET, PointCloud(np.concatenate([BRACKET.vertices, np.full((1, 3), np.nan)]))):
        with pytest.raises(InvalidInputError) as raised:
            in_metres(shape, None, "bracket.stl")
        for word in ("bracket.stl", "60 m", "at most 2 m", "millimetres", "--unit mm", "60 mm", "--unit m"):
            assert word in str(raised.value)
    part = box_mesh((1.99, 0.1, 0.1))
    assert in_metres(part, None) is part
    nothing = PointCloud(np.full((2, 3), np.nan))
    assert in_metres(nothing, None) is nothing


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"'yard'.*m, mm, cm, inch"):
        in_metres(BRACKET, "yard")
    assert [unit_length(unit) for unit in UNITS] == [1.0, 0.001, 0.01, 0.0254]
    with pytest.raises(InvalidInputError, match="scale"):
        PointCloud(np.zeros((1, 3))).scaled(0.0)
