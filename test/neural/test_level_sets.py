"""Level-set meshes, and how bodies of that shape come to rest."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.neural.level_sets import compare_level_sets, level_set_mesh, rest_of_points
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.neural.fields.analytic import BoxField, SphereField

CORNERS = box_mesh((0.1, 0.06, 0.04)).vertices
BUMP = np.array([0.03, 0.01, -0.024])


def test_a_box_rests_on_the_face_that_was_down():
    rest = rest_of_points(CORNERS, np.zeros(3))
    np.testing.assert_allclose(rest.down, [0.0, 0.0, -1.0], atol=1e-12)
    assert rest.tilt == pytest.approx(0.0, abs=1e-9)
    assert rest.height == pytest.approx(0.02)
    assert rest.margin == pytest.approx(0.03)
    assert len(rest.corners) == 4


def test_a_box_held_a_little_askew_falls_back_on_its_face():
    down = matrix_from_rotation_vector([0.2, -0.1, 0.0]) @ [0.0, 0.0, -1.0]
    rest = rest_of_points(CORNERS, np.zeros(3), down)
    np.testing.assert_allclose(rest.down, [0.0, 0.0, -1.0], atol=1e-12)
    assert rest.tilt == pytest.approx(np.hypot(0.2, 0.1), abs=1e-3)


def test_a_tall_box_held_far_askew_falls_over():
    # Beyond its corner: atan(30/50) = 31 degrees.
    for angle, expected in ((0.5, [-1.0, 0.0, 0.0]), (0.6, [0.0, -1.0, 0.0])):
        down = np.array([-np.cos(angle), -np.sin(angle), 0.0])
        np.testing.assert_allclose(rest_of_points(CORNERS, np.zeros(3), down).down, expected, atol=1e-12)


def test_a_body_rolls_over_the_edge_that_its_centre_lies_beyond():
    # A prism that overhangs its foot: set down on the foot, it falls onto the slope beside it.
    outline = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 2.0], [0.0, 2.0]])
    prism = np.array([[x, y, z] for y in (-1.0, 1.0) for x, z in outline])
    rest = rest_of_points(prism, [1.2, 0.0, 1.1], [-0.7, 0.0, -1.1])
    np.testing.assert_allclose(rest.down, np.array([1.0, 0.0, -1.0]) / np.sqrt(2.0), atol=1e-9)
    assert rest.height == pytest.approx(0.9 / np.sqrt(2.0))
    assert rest.margin == pytest.approx(0.65 * np.sqrt(2.0))
    # With its centre above the foot it stays there.
    stays = rest_of_points(prism, [0.9, 0.0, 1.1], [-0.4, 0.0, -1.1])
    np.testing.assert_allclose(stays.down, [0.0, 0.0, -1.0], atol=1e-9)
    assert stays.margin == pytest.approx(0.1)


def test_a_bump_under_the_face_tilts_it_by_the_angle_of_the_bump():
    rest = rest_of_points(np.concatenate([CORNERS, BUMP[None]]), np.zeros(3))
    assert any(np.allclose(corner, BUMP) for corner in rest.corners)
    # It stands on the bump and two corners of the other side.
    normal = np.cross(np.array([-0.05, -0.03, -0.02]) - BUMP, np.array([-0.05, 0.03, -0.02]) - BUMP)
    normal *= -np.sign(normal[2]) / np.linalg.norm(normal)
    np.testing.assert_allclose(rest.down, normal, atol=1e-9)
    assert rest.tilt == pytest.approx(np.arccos(-normal[2]), abs=1e-6)


def test_turning_points_and_direction_together_turns_the_rest():
    points = np.concatenate([CORNERS, BUMP[None]])
    R = matrix_from_rotation_vector([0.5, 1.0, -0.3])
    still = rest_of_points(points, [0.01, 0.0, 0.0])
    turned = rest_of_points(points @ R.T, R @ [0.01, 0.0, 0.0], R @ [0.0, 0.0, -1.0])
    np.testing.assert_allclose(turned.down, R @ still.down, atol=1e-9)
    assert turned.tilt == pytest.approx(still.tilt, abs=1e-9)


def test_level_sets_of_a_soft_ball_are_balls_of_their_radius():
    field = SphereField(0.05, edge=0.02, peak=10.0)
    sets = compare_level_sets(field, [1.0, 5.0, 9.0], np.zeros(3), resolution=32)
    radii = [np.linalg.norm(level.mesh.vertices, axis=1) for level in sets]
    assert radii[0].mean() > radii[1].mean() > radii[2].mean()
    assert radii[1] == pytest.approx(0.05, abs=1e-4)
    for level, lengths in zip(sets, radii, strict=True):
        np.testing.assert_allclose(field.density(level.mesh.vertices), level.threshold, atol=0.05)
        assert np.ptp(lengths) < 1e-4


def test_the_level_set_of_a_box_rests_flat():
    mesh = level_set_mesh(BoxField((0.1, 0.06, 0.04)), 0.5, resolution=40)
    assert rest_of_points(mesh.vertices, np.zeros(3)).tilt < 1e-3


@pytest.mark.parametrize(
    ("points", "center", "down", "word"),
    [
        (CORNERS, [0.2, 0.0, 0.0], [0.0, 0.0, -1.0], "center_of_mass"),
        (CORNERS * [1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -1.0], "enclose a volume"),
        (CORNERS[:3], [0.0, 0.0, 0.0], [0.0, 0.0, -1.0], "enclose a volume"),
        (CORNERS * np.nan, [0.0, 0.0, 0.0], [0.0, 0.0, -1.0], "finite"),
        (CORNERS, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], "down"),
    ],
)
def test_bodies_that_cannot_rest_are_refused(points, center, down, word):
    with pytest.raises(InvalidInputError, match=word):
        rest_of_points(points, center, down)


def test_no_thresholds_are_refused():
    with pytest.raises(InvalidInputError, match="thresholds"):
        compare_level_sets(SphereField(0.05), [], np.zeros(3))
