"""Whole shapes of objects: from several looks, near what was seen, with what is assumed told."""

import numpy as np
import pytest
from memory_scenes import EYES, can, hammer, seen

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import invert_transform, make_transform, transform_points
from morphit_ros.memory.look import Look
from morphit_ros.memory.whole_shape import KnownSurface, WholeShapes, superovoids_of
from morphit_ros.superovoid.fits.errors import union_distances

NOTHING = np.empty((0, 3))


def surface(mesh, count=2000):
    return sample_surface_evenly(mesh, count, np.random.default_rng(5))[0]


def of_one_eye(look):
    """What the first eye sees of it."""
    facing = np.einsum("ij,ij->i", EYES[0] - look.points, look.normals) > 0.05
    return Look(look.points[facing], look.normals[facing], EYES[:1], look.planes)


def shapes_of(*looks, complete=lambda look: NOTHING):
    shapes = WholeShapes(complete)
    for stamp, look in enumerate(looks):
        shapes.see(7, look, float(stamp))
    return shapes.at(7)


def test_what_is_convex_is_one_superovoid_and_a_hammer_is_several():
    for mesh, counts, most in ((can(), (1,), 0.002), (hammer(), (2, 3, 4), 0.004)):
        points = surface(mesh)
        shapes = superovoids_of(points)
        assert len(shapes) in counts
        assert np.abs(union_distances(shapes, points)).mean() < most
    # One alone is as wide as the head all along the handle.
    one = superovoids_of(np.array([[-0.11, -0.012, -0.018], [0.125, 0.05, 0.018]]))
    assert one is None


@pytest.mark.parametrize("points", [np.zeros((3, 3)), np.column_stack([surface(can())[:, :2], np.zeros(2000)])])
def test_of_too_few_points_or_flat_ones_there_is_no_shape(points):
    assert superovoids_of(points) is None


def test_the_stated_deviation_holds_what_was_seen_and_says_nothing_of_the_rest():
    look, _ = seen(hammer(), 0.2, 0)
    shape = shapes_of(look)
    own = transform_points(invert_transform(shape.T_world_object), look.points)
    away = union_distances(shape.shapes, own)
    assert (np.abs(away) <= shape.deviation).mean() == pytest.approx(0.95, abs=0.01)
    assert (away <= shape.outside + 1e-9).mean() >= 0.94
    assert 0.1 < shape.assumed < 0.7 and (shape.looks, shape.seen) == (1, 0.0)
    # Larger ones hold it.
    assert (union_distances(shape.grown(0.003), own) <= 0.0).mean() > 0.95


def test_a_second_look_at_other_sides_is_joined_where_it_was_moved_to_and_leaves_less_to_assume():
    both, before = seen(hammer(), 0.2, 0)
    first = of_one_eye(both)
    second, now = seen(hammer(), 2.4, 7)
    one, two = shapes_of(first), shapes_of(first, second)
    assert two.looks == 2 and two.seen == 1.0
    assert two.assumed < one.assumed - 0.05
    motion = two.T_world_object @ invert_transform(one.T_world_object)
    points = surface(hammer(), 50)
    np.testing.assert_allclose(transform_points(motion @ before, points), transform_points(now, points), atol=0.008)


def test_a_look_that_adds_nothing_leaves_the_shape_and_moves_it():
    look, _ = seen(can(), 0.2, 0)
    moved = make_transform(translation=(0.02, -0.01, 0.0))
    one, two = shapes_of(look), shapes_of(look, look.transformed(moved))
    assert all(np.array_equal(a.T_link_shape, b.T_link_shape) for a, b in zip(one.shapes, two.shapes, strict=True))
    np.testing.assert_allclose(two.T_world_object, moved @ one.T_world_object, atol=8e-3)
    assert two.looks == 2


def test_another_thing_begins_anew():
    shape = shapes_of(seen(hammer(), 0.2, 0)[0], seen(box_mesh((0.09, 0.08, 0.12)), 0.3, 3)[0])
    assert shape.looks == 1 and shape.seen == 1.0


def test_a_shape_does_not_hold_what_lies_elsewhere_or_is_larger():
    look, _ = seen(can(), 0.2, 0)
    shape = shapes_of(look)
    assert shape.holds(look.points) and not shape.holds(NOTHING)
    assert not shape.holds(look.points + np.array([0.03, 0.0, 0.0]))
    assert not shape.holds(np.concatenate([look.points, look.points + np.array([0.0, 0.0, 0.06])]))


def test_hidden_sides_are_asked_of_a_completion_and_flat_things_get_the_side_that_they_lie_on():
    look, pose = seen(can(), 0.2, 0)
    look = of_one_eye(look)
    asked = []

    def complete(own):
        asked.append(own)
        back = transform_points(pose, surface(can()))
        return back - look.middle

    whole, open_back = shapes_of(look, complete=complete), shapes_of(look)
    assert len(asked) == 1 and len(asked[0].points) <= len(look.points)
    truth = transform_points(pose, surface(can()))
    errors = [
        np.abs(union_distances(shape.shapes, transform_points(invert_transform(shape.T_world_object), truth))).mean()
        for shape in (whole, open_back)
    ]
    assert errors[0] < 0.8 * errors[1]
    assert whole.assumed > 0.2
    low, pose = seen(box_mesh((0.1, 0.06, 0.02)), 0.1, 2)
    shape = shapes_of(low)
    bottom = transform_points(pose, surface(box_mesh((0.1, 0.06, 0.02))))
    own = transform_points(invert_transform(shape.T_world_object), bottom)
    assert np.abs(union_distances(shape.shapes, own)).mean() < 0.002


def test_objects_that_are_let_go_of_have_no_shape():
    shapes = WholeShapes(lambda look: NOTHING)
    for number in (3, 4):
        shapes.see(number, seen(can(), 0.2, 0)[0], 0.0)
    shapes.keep([4, 9])
    assert shapes.at(3) is None and shapes.at(4) is not None and shapes.at(9) is None


def error_of(shape, pose):
    """How far the true surface of a hammer is from a shape in the mean [m]."""
    truth = transform_points(invert_transform(shape.T_world_object) @ pose, surface(hammer()))
    return float(np.abs(union_distances(shape.shapes, truth)).mean())


def test_a_known_surface_stands_for_what_was_not_seen_and_goes_along_with_the_object():
    both, pose = seen(hammer(), 0.2, 0)
    look, asked = of_one_eye(both), []
    shapes = WholeShapes(lambda own: asked.append(own) or NOTHING)
    shapes.see(7, look, 0.0)
    guessed = shapes.at(7)
    known = KnownSurface(transform_points(pose, surface(hammer())), "of 'hammer'")
    # A look that adds nothing else brings it.
    shapes.see(7, look, 1.0, known)
    whole = shapes.at(7)
    assert (guessed.known, whole.known) == ("", "of 'hammer'")
    assert len(asked) == 1
    assert error_of(whole, pose) < 0.7 * error_of(guessed, pose)
    assert guessed.assumed > 0.2 and whole.assumed < 0.1
    # Moved, and seen from elsewhere without being told apart, it is what it was.
    turned = make_transform(translation=(0.05, -0.02, 0.0))
    shapes.see(7, look.transformed(turned), 2.0)
    moved = shapes.at(7)
    assert moved.known == "of 'hammer'" and moved.shapes == whole.shapes
    assert error_of(moved, turned @ pose) < 0.004
    # Another field of it is another surface; another thing in its place has none.
    shapes.see(7, look.transformed(turned), 3.0, KnownSurface(transform_points(turned, known.points), "of 'it'"))
    assert shapes.at(7).known == "of 'it'"
    shapes.see(7, seen(box_mesh((0.09, 0.08, 0.12)), 0.3, 3)[0], 4.0)
    assert shapes.at(7).known == "" and len(asked) == 2
