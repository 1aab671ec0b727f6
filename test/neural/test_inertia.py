"""Mass, centre and inertia of fields: known answers, invariances, estimated errors, one-sided views."""

from __future__ import annotations

import numpy as np
import pytest
from ball_views import BALL_CENTER, BALL_RADIUS, ball_depths, ball_images

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.neural.fields.analytic import BoxField, CylinderField, EllipsoidField, SphereField
from morphit_ros.neural.fields.composition import TransformedField, UnionField
from morphit_ros.neural.learning.config import DepthLearningConfig
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.solid.extraction import SolidConfig, extract_solid
from morphit_ros.neural.solid.inertia import Weighting, inertial_properties
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.silhouette_hull import HullThreshold, hull_moments, pixel_size
from morphit_ros.neural.solid.thresholds import Threshold
from morphit_ros.neural.views.carving import Silhouettes

T_TURNED = make_transform(matrix_from_rotation_vector([0.4, 0.7, -0.5]), [0.3, -0.2, 0.1])
SHAPES = {
    "box": BoxField((0.1, 0.06, 0.04)),
    "sphere": SphereField(0.05, edge=0.002),
    "ellipsoid": EllipsoidField((0.05, 0.03, 0.02), edge=0.002),
    "cylinder": CylinderField(0.03, 0.1, edge=0.002),
    "sharp box": BoxField((0.1, 0.06, 0.04), edge=1e-6),
}


class PaddedField:
    """A field in larger bounds."""

    def __init__(self, field, margin):
        self.density, self.gradient = field.density, field.gradient
        self.bounds = field.bounds + np.array([[-margin], [margin]])


def tensor(second_moment):
    return np.trace(second_moment) * np.eye(3) - second_moment


def relative(found, true):
    return np.linalg.norm(found - true) / np.linalg.norm(true)


def angle_bracket(edge=0.001):
    """Two boxes that form an L, its mass at 1000 kg/m^3, centre and inertia."""
    sizes, places = np.array([[0.1, 0.04, 0.02], [0.02, 0.04, 0.06]]), np.array([[0.0, 0.0, 0.0], [0.04, 0.0, 0.04]])
    field = UnionField(
        [
            BoxField(tuple(sizes[0]), edge),
            # The second reaches a little into the first: where they meet the density must not dip.
            TransformedField(BoxField((0.02, 0.04, 0.064), edge), make_transform(None, places[1] - [0.0, 0.0, 0.002])),
        ]
    )
    masses = 1000.0 * sizes.prod(axis=1)
    center = masses @ places / masses.sum()
    inertia = np.zeros((3, 3))
    for mass, size, place in zip(masses, sizes, places - center, strict=True):
        inertia += tensor(mass * (np.diag(size**2) / 12.0 + np.outer(place, place)))
    return field, masses.sum(), center, inertia


@pytest.mark.parametrize("weighting", list(Weighting))
@pytest.mark.parametrize("name", list(SHAPES))
def test_known_shapes_reach_a_thousandth_of_mass_and_half_a_percent_of_inertia(name, weighting):
    field = SHAPES[name]
    found = inertial_properties(field, density=1000.0, weighting=weighting)
    assert found.mass == pytest.approx(1000.0 * field.integral, rel=1e-3)
    assert relative(found.inertia, 1000.0 * tensor(field.second_moment)) < 5e-3
    assert np.linalg.norm(found.center_of_mass) < 1e-6
    assert found.weighting is weighting


@pytest.mark.parametrize("weighting", list(Weighting))
def test_known_shapes_do_so_when_turned_and_moved(weighting):
    field = SHAPES["box"]
    found = inertial_properties(TransformedField(field, T_TURNED), density=1000.0, weighting=weighting)
    R = T_TURNED[:3, :3]
    assert found.mass == pytest.approx(1000.0 * field.integral, rel=1e-3)
    assert relative(found.inertia, R @ (1000.0 * tensor(field.second_moment)) @ R.T) < 5e-3
    np.testing.assert_allclose(found.center_of_mass, T_TURNED[:3, 3], atol=2e-5)


def test_a_bracket_of_two_boxes_has_the_sum_of_their_moments():
    field, mass, center, inertia = angle_bracket()
    found = inertial_properties(field, density=1000.0)
    assert found.mass == pytest.approx(mass, rel=1e-3)
    np.testing.assert_allclose(found.center_of_mass, center, atol=2e-5)
    assert relative(found.inertia, inertia) < 5e-3


def test_the_tensor_is_no_second_moment():
    found = inertial_properties(BoxField((0.2, 0.02, 0.02)), mass=1.0)
    # A rod turns easily about its own axis.
    assert found.inertia[0, 0] < 0.1 * found.inertia[1, 1]
    np.testing.assert_allclose(found.principal_moments, [6.67e-5, 3.367e-3, 3.367e-3], rtol=0.01)
    assert abs(found.principal_axes[0, 0]) == pytest.approx(1.0, abs=1e-3)
    assert np.linalg.det(found.principal_axes) == pytest.approx(1.0)


def test_mass_and_inertia_scale_together():
    solid = extract_solid(SHAPES["ellipsoid"], config=SolidConfig(resolution=32))
    light, heavy = (inertial_properties(solid, mass=mass) for mass in (0.2, 0.8))
    by_density = inertial_properties(solid, density=0.2 / solid.volume)
    np.testing.assert_allclose(heavy.inertia, 4.0 * light.inertia, rtol=1e-12)
    np.testing.assert_allclose(by_density.inertia, light.inertia, rtol=1e-12)
    assert by_density.mass == pytest.approx(0.2)
    assert light.mass_error == 0.0 and by_density.mass_error > 0.0


def test_an_object_twice_as_large_has_32_times_the_inertia():
    config = SolidConfig(resolution=32)
    small = inertial_properties(SphereField(0.02, edge=0.001), density=1.0, config=config)
    large = inertial_properties(SphereField(0.04, edge=0.002), density=1.0, config=config)
    np.testing.assert_allclose(large.inertia, 32.0 * small.inertia, rtol=1e-6, atol=1e-9 * large.inertia[0, 0])


def test_the_tensor_about_another_point_obeys_the_parallel_axis_theorem():
    found = inertial_properties(SHAPES["box"], mass=2.0, config=SolidConfig(resolution=32))
    about = found.inertia_about(found.center_of_mass + np.array([0.0, 0.3, 0.0]))
    np.testing.assert_allclose(about - found.inertia, np.diag([0.18, 0.0, 0.18]), atol=1e-12)


def test_a_hollow_field_has_the_inertia_of_the_solid_and_says_so():
    ball, core = SphereField(0.05, edge=0.004), SphereField(0.035, edge=0.004)
    shell = PaddedField(ball, 0.01)
    shell.density = lambda points: ball.density(points) - core.density(points)
    solid = inertial_properties(shell, mass=1.0, threshold=0.5)
    assert relative(solid.inertia, 0.4 * 0.05**2 * np.eye(3)) < 5e-3
    assert "hollow" in solid.remarks[0]
    # The raw density has the shell's: 2/5 (R^5 - r^5) / (R^3 - r^3).
    raw = inertial_properties(shell, mass=1.0, weighting="density")
    thick = 0.4 * (0.05**5 - 0.035**5) / (0.05**3 - 0.035**3)
    assert relative(raw.inertia, thick * np.eye(3)) < 5e-3


def test_pieces_left_out_are_mentioned():
    crumb = TransformedField(SphereField(0.02), make_transform(None, [0.1, 0.0, 0.0]))
    found = inertial_properties(UnionField([SphereField(0.05), crumb]), mass=1.0)
    assert any("left out" in remark for remark in found.remarks)
    assert np.linalg.norm(found.center_of_mass) < 1e-5


@pytest.mark.parametrize("name", ["box", "sphere", "cylinder"])
def test_estimated_errors_are_no_smaller_than_the_errors(name):
    field = SHAPES[name]
    for weighting in Weighting:
        found = inertial_properties(field, density=1000.0, weighting=weighting, config=SolidConfig(resolution=40))
        assert abs(found.mass - 1000.0 * field.integral) <= 1.5 * found.mass_error
        assert relative(found.inertia, 1000.0 * tensor(field.second_moment)) <= 1.5 * found.inertia_error


def test_a_wide_range_of_the_threshold_is_an_error_of_the_inertia():
    soft = SphereField(0.05, edge=0.03)
    sure = inertial_properties(soft, mass=1.0, threshold=Threshold(0.5))
    unsure = inertial_properties(soft, mass=1.0, threshold=Threshold(0.5, 0.1, 0.9))
    np.testing.assert_array_equal(sure.inertia, unsure.inertia)
    # Between 10 % and 90 % of this edge lie radii of 40 to 60 mm.
    assert sure.inertia_error < 0.002 and 0.2 < unsure.inertia_error < 0.6


def test_a_threshold_at_the_end_of_its_range_may_be_off_by_all_of_it():
    soft = SphereField(0.05, edge=0.03)
    middle, end = (inertial_properties(soft, mass=1.0, threshold=Threshold(v, 0.3, 0.7)) for v in (0.5, 0.7))
    assert end.inertia_error == pytest.approx(2.0 * middle.inertia_error, rel=0.01)


def test_the_hull_of_silhouettes_has_the_volume_and_the_center_of_the_ball():
    views = ball_images(8)
    silhouettes = Silhouettes(views, views.masks)
    hull = hull_moments(silhouettes, np.stack([BALL_CENTER - 0.08, BALL_CENTER + 0.07]))
    assert hull.volume == pytest.approx(4.0 / 3.0 * np.pi * BALL_RADIUS**3, rel=0.1)
    np.testing.assert_allclose(hull.center, BALL_CENTER, atol=0.01 * BALL_RADIUS)
    tensors = tensor(hull.second_moment) / hull.volume
    assert relative(tensors, 0.4 * BALL_RADIUS**2 * np.eye(3)) < 0.1
    # 0.3 m away, 110 pixels to the unit of depth; a little more where the camera is higher.
    assert pixel_size(views, hull.center) == pytest.approx(0.3 / 110.0, rel=0.1)
    nothing = hull_moments(silhouettes, np.stack([BALL_CENTER + 0.2, BALL_CENTER + 0.3]))
    assert nothing.volume == 0.0


def test_a_solid_apart_from_the_hull_of_its_silhouettes_is_unsure_by_the_distance():
    field = SHAPES["ellipsoid"]
    config = SolidConfig(resolution=32)
    solid = extract_solid(field, config=config)
    own = solid.moments
    moved = VolumeMoments(own.volume, own.center + np.array([0.0, 0.004, 0.0]), own.second_moment)
    small = VolumeMoments(0.8 * own.volume, own.center, own.second_moment)
    empty = VolumeMoments(0.0, own.center, np.zeros((3, 3)))
    found = [
        inertial_properties(field, mass=1.0, threshold=HullThreshold(0.5, hull=hull, pixel=0.002), config=config)
        for hull in (own, moved, small, empty)
    ]
    # Three tenths of a quarter of a pixel are uneven: what that moves grows with the body.
    gyration = np.sqrt(np.trace(own.second_moment) / own.volume)
    uneven = 0.3 * 0.25 * 0.002 * float(solid.surface.area) / own.volume * gyration
    assert found[0].center_error == pytest.approx(uneven, rel=0.05)
    assert found[1].center_error == pytest.approx(0.004, rel=0.05)
    assert [len(each.remarks) for each in found] == [0, 0, 1, 1]
    assert "125% of the volume of its silhouettes' hull" in found[2].remarks[0]
    # Silhouettes of nothing in common say that nothing is known.
    assert found[3].inertia_error > 1.0 and "check masks and poses" in found[3].remarks[0]


def test_opposed_views_are_trusted_and_one_sided_ones_are_not():
    solid = extract_solid(PaddedField(SHAPES["box"], 0.04), config=SolidConfig(resolution=48))
    opposed = inertial_properties(solid, mass=1.0, eyes=[[0.3, 0.3, 0.4], [-0.3, -0.3, -0.4]])
    one_side = inertial_properties(solid, mass=1.0, eyes=[[0.3, 0.3, 0.4], [0.3, 0.2, 0.4]])
    assert opposed.seen_share > 0.95 and not opposed.remarks
    assert 0.3 < one_side.seen_share < 0.55
    assert any("one-sided" in remark for remark in one_side.remarks)
    assert one_side.center_error > 0.02 * solid.size > 10.0 * opposed.center_error
    assert one_side.inertia_error > 0.2 > 5.0 * opposed.inertia_error


def test_what_lies_behind_unseen_surface_is_unsure_even_where_nothing_more_fits():
    # Its bounds leave no room behind the box, but the lower half of it was never seen.
    solid = extract_solid(SHAPES["box"], config=SolidConfig(resolution=48))
    from_above = inertial_properties(solid, mass=1.0, eyes=[[0.0, 0.0, 0.5]])
    all_around = inertial_properties(solid, mass=1.0, eyes=[[0.3, 0.3, 0.4], [-0.3, -0.3, -0.4]])
    assert from_above.center_error > 0.02 * solid.size > 10.0 * all_around.center_error


@pytest.mark.parametrize("part", [0.05, 0.1])
def test_what_was_learned_from_one_side_is_no_better_than_estimated(part):
    """Two cameras 9 and 18 degrees apart: the bounds of the learned field are tight around what they saw of a ball."""
    views = ball_depths(2, part)
    field = learn_from_depths(views, DepthLearningConfig(resolution=48)).field
    found = inertial_properties(field, mass=1.0, eyes=views.T_world_camera[:, :3, 3])
    assert 0.1 * BALL_RADIUS < np.linalg.norm(found.center_of_mass - BALL_CENTER) < found.center_error < BALL_RADIUS
    true = 0.4 * BALL_RADIUS**2 * np.eye(3)
    assert 0.1 < np.linalg.norm(found.inertia - true) / np.linalg.norm(found.inertia) < found.inertia_error < 1.0


def test_what_stands_on_a_table_ends_there():
    # The table's frame lies in the lower face of the box.
    table = SupportPlane(make_transform(None, [0.0, 0.0, -0.02]))
    solid = extract_solid(PaddedField(SHAPES["box"], 0.04), config=SolidConfig(resolution=48))
    eyes = [[0.3, 0.3, 0.4], [-0.3, -0.3, 0.4]]
    without, with_table = (inertial_properties(solid, mass=1.0, eyes=eyes, support=plane) for plane in (None, table))
    assert with_table.seen_share > 0.95 > without.seen_share
    assert with_table.center_error < 0.2 * without.center_error


def test_what_another_part_hides_is_not_seen():
    # Two walls on a rod: from in front, the second lies behind the first.
    walls = [TransformedField(BoxField((0.01, 0.2, 0.2)), make_transform(None, [x, 0.0, 0.0])) for x in (-0.06, 0.06)]
    solid = extract_solid(UnionField([BoxField((0.125, 0.02, 0.02)), *walls]), config=SolidConfig(resolution=64))
    seen = inertial_properties(solid, mass=1.0, eyes=[[1.0, 0.0, 0.0]]).seen_share
    assert seen == pytest.approx(0.2 * 0.2 / solid.surface.area, rel=0.05)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "one of them"),
        ({"mass": 1.0, "density": 1.0}, "one of them"),
        ({"mass": -1.0}, "mass"),
        ({"density": np.nan}, "density"),
        ({"mass": 1.0, "eyes": np.zeros((0, 3))}, "eyes"),
        ({"mass": 1.0, "eyes": [[np.nan, 0.0, 0.0]]}, "eyes"),
        ({"mass": 1.0, "eyes": [[0.0, 0.0, 0.0]]}, "inside of the solid"),
        ({"mass": 1.0, "threshold": -1.0}, "threshold"),
    ],
)
def test_bad_input_is_refused_by_name(given, word):
    with pytest.raises(InvalidInputError, match=word):
        inertial_properties(SphereField(0.05), config=SolidConfig(resolution=16), **given)


@pytest.mark.parametrize("given", [{"threshold": 0.5}, {"eyes": [[1.0, 0.0, 0.0]]}])
def test_what_only_a_solid_has_is_refused_for_a_density(given):
    with pytest.raises(InvalidInputError, match=f"{next(iter(given))}.*density weighting"):
        inertial_properties(SphereField(0.05), mass=1.0, weighting="density", **given)


def test_an_unknown_weighting_is_refused_by_name():
    with pytest.raises(InvalidInputError, match=r"weighting.*'shell'.*solid, density"):
        inertial_properties(SphereField(0.05), mass=1.0, weighting="shell")


def test_a_density_that_goes_on_at_its_bounds_is_mentioned():
    whole = SphereField(0.05)
    cut = PaddedField(whole, 0.0)
    cut.bounds = np.array([[-0.06, -0.06, -0.06], [0.06, 0.06, 0.03]])
    assert not inertial_properties(whole, mass=1.0, weighting="density").remarks
    assert "bounds" in inertial_properties(cut, mass=1.0, weighting="density").remarks[0]


@pytest.mark.parametrize("weighting", list(Weighting))
def test_a_constant_field_has_no_inertia(weighting):
    field = PaddedField(SphereField(0.05), 0.01)
    field.density = lambda points: np.ones(len(points))
    with pytest.raises(InvalidInputError, match="constant"):
        inertial_properties(field, mass=1.0, weighting=weighting)


@pytest.mark.parametrize(("volume", "told"), [(0.5, "reaches beyond its outlines"), (3.0, "hollows that no outline")])
def test_a_solid_off_its_hull_is_told_by_how_it_is_off(volume, told):
    ball = SphereField(0.05)
    exact = 4.0 / 3.0 * np.pi * 0.05**3
    hull = VolumeMoments(volume * exact, np.zeros(3), 0.2 * volume * exact * 0.05**2 * np.eye(3))
    found = inertial_properties(ball, mass=1.0, threshold=HullThreshold(0.5, hull=hull, pixel=1e-3))
    assert [remark for remark in found.remarks if told in remark]


def test_walls_of_a_pixel_have_no_thickness_that_is_known():
    plate = BoxField((0.1, 0.1, 0.003), edge=5e-4)
    fine, coarse = (
        inertial_properties(plate, density=1e3, threshold=HullThreshold(0.5, pixel=pixel)) for pixel in (2e-4, 3e-3)
    )
    assert fine.remarks == ()
    assert any("thickness" in remark and "unknown" in remark for remark in coarse.remarks)
    assert coarse.mass_error > coarse.mass > 5.0 * fine.mass_error


def test_a_part_of_a_pixel_moves_the_centre_of_what_is_long_and_thin():
    """Half a millimetre more on one half of a rod of 4 mm than on the other moves its centre by several."""
    rod, ball = (
        inertial_properties(field, mass=1.0, threshold=HullThreshold(0.5, pixel=1e-3))
        for field in (BoxField((0.2, 0.004, 0.004), edge=5e-4), SphereField(0.05))
    )
    assert rod.center_error > 3e-3 and ball.center_error < 0.5e-3


def test_disagreement_and_drift_of_views_are_stated():
    ball = SphereField(0.05)
    plain, off = (
        inertial_properties(ball, density=1e3, threshold=HullThreshold(0.5, pixel=1e-3, **more))
        for more in ({}, {"disagreement": 2e-3, "drift": 3e-3, "scale": 0.02})
    )
    # A shell of 2 mm around a ball of 5 cm is 3 x 2 / 50 of it; what is 2 % larger has 6 % more volume.
    more = np.hypot(0.12, 0.06)
    assert np.sqrt(off.mass_error**2 - plain.mass_error**2) / off.mass == pytest.approx(more, rel=0.02)
    # Three tenths of the shell on one side, at a radius of gyration.
    uneven = 0.3 * 0.12 * 0.05 * np.sqrt(0.6)
    assert np.sqrt(off.center_error**2 - plain.center_error**2) == pytest.approx(np.hypot(uneven, 3e-3), rel=0.02)
    assert [bool(found.remarks) for found in (plain, off)] == [False, True]
    assert any("disagree by 2 mm" in remark for remark in off.remarks)
    for name in ("pixel", "disagreement", "drift", "scale"):
        with pytest.raises(InvalidInputError, match=f"{name} of the threshold: got -1"):
            HullThreshold(0.5, **{name: -1.0})
