"""Editing of sketches: chains, joints, hitboxes, mirror images, undo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_hand import FINGERS, TOWARDS, circle, line, make_hand

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import matrix_from_rotation_vector, transform_points
from morphit_ros.history import History
from morphit_ros.sketch import editing
from morphit_ros.sketch.clearance import bone_mass, near_pairs
from morphit_ros.sketch.model import Sketch
from morphit_ros.superovoid.distances.min_distance import min_distance


def test_a_hand_is_drawn() -> None:
    hand = make_hand(filled=False)
    assert len(hand.bones) == 16
    assert next(iter(hand.bones)) == "base"
    # Every finger hangs on the palm, not on its neighbour, whose joint is nearer.
    assert [name for name, bone in hand.bones.items() if bone.parent == "base"] == [
        "bone_1",
        "bone_4",
        "bone_7",
        "bone_10",
        "bone_13",
    ]
    for first, (x, z) in zip(("bone_1", "bone_4", "bone_7", "bone_10"), FINGERS, strict=True):
        assert hand[first].head_in_world == pytest.approx([x, 0.0, z], abs=1e-3)
    for bone in hand.bones.values():
        # Bones lie along their z, and hinge about the direction of view.
        assert bone.tail[:2] == pytest.approx([0.0, 0.0], abs=1e-12)
        assert bone.T_world_bone[:3, 0] == pytest.approx(TOWARDS)
        if bone.parent:
            assert bone.joint.kind == "hinge"


def test_a_chain_that_begins_at_a_joint_hangs_on_what_ends_there() -> None:
    sketch, _ = editing.draw_bones(Sketch(), line((0, 0), (0, 0.1)), TOWARDS, 0.01)
    sketch, names = editing.draw_bones(sketch, line((0.004, 0.103), (0.1, 0.103)), TOWARDS, 0.01)
    assert sketch[names[0]].parent == "base"
    assert sketch[names[0]].head_in_world == pytest.approx([0.0, 0.0, 0.1])
    # A second one from the same place is its sibling; and one from the root's head is carried by the root.
    sketch, names = editing.draw_bones(sketch, line((0.001, 0.1), (-0.1, 0.1)), TOWARDS, 0.01)
    assert sketch[names[0]].parent == "base"
    sketch, names = editing.draw_bones(sketch, line((0.0, 0.0), (-0.1, 0.0)), TOWARDS, 0.01)
    assert sketch[names[0]].parent == "base"


def test_a_moved_joint_takes_along_all_that_meets_there_and_nothing_else() -> None:
    hand = make_hand()
    moved = editing.move_end(hand, "bone_1", "tail", (-0.03, 0.01, 0.14))
    assert moved["bone_1"].tail_in_world == pytest.approx([-0.03, 0.01, 0.14])
    assert moved["bone_2"].head_in_world == pytest.approx([-0.03, 0.01, 0.14])
    assert moved["bone_2"].tail_in_world == pytest.approx(hand["bone_2"].tail_in_world)
    for name in hand.bones:
        if name not in ("bone_1", "bone_2"):
            assert moved[name] is hand[name]
    # Hitboxes stay where they are in their bones.
    assert moved["bone_1"].shapes == hand["bone_1"].shapes
    with pytest.raises(InvalidInputError, match="other end"):
        editing.move_end(hand, "bone_1", "tail", hand["bone_1"].head_in_world)


@pytest.mark.parametrize(("kind", "count"), [("fixed", 0), ("hinge", 1), ("universal", 2), ("ball", 3), ("slide", 1)])
def test_joints_move_what_they_carry(kind: str, count: int) -> None:
    hand = editing.set_joint(make_hand(), "bone_1", kind)
    joint = hand["bone_1"].joint
    assert joint.count == count
    positions = dict(zip(joint.names, (0.3, -0.2, 0.4), strict=False)) if kind != "slide" else {joint.names[0]: 0.01}
    poses, rest = hand.poses(positions), hand.poses({})
    motion = np.linalg.inv(rest["bone_1"]) @ poses["bone_1"]
    if kind == "slide":
        assert motion[:3, 3] == pytest.approx([0.0, 0.0, 0.01])
    else:
        turned = np.eye(3)
        for axis, angle in zip(np.eye(3), (0.3, -0.2, 0.4)[:count], strict=False):
            turned = turned @ matrix_from_rotation_vector(angle * axis)
        assert motion[:3, :3] == pytest.approx(turned)
    # What it carries moves along, its siblings do not.
    assert np.linalg.inv(poses["bone_1"]) @ poses["bone_3"] == pytest.approx(
        np.linalg.inv(rest["bone_1"]) @ rest["bone_3"]
    )
    assert poses["bone_4"] == pytest.approx(rest["bone_4"])


def test_limits_of_axes_stay_when_a_joint_gets_more_of_them() -> None:
    hand = editing.set_limits(make_hand(), "bone_1_joint", 0.0, 1.2)
    ball = editing.set_joint(hand, "bone_1", "ball")
    assert ball["bone_1"].joint.limits[0] == pytest.approx([0.0, 1.2])
    assert ball["bone_1"].joint.limits[1] == pytest.approx([-np.pi / 2, np.pi / 2])
    with pytest.raises(InvalidInputError, match="lowest"):
        editing.set_limits(hand, "bone_1_joint", 1.0, 0.5)
    with pytest.raises(InvalidInputError, match="bone_1_joint"):
        editing.set_limits(hand, "elbow", 0.0, 0.5)
    with pytest.raises(InvalidInputError, match="parent"):
        editing.set_joint(hand, "base", "hinge")


@pytest.mark.parametrize("seed", range(4))
def test_a_drawn_ellipse_becomes_an_ellipsoid_of_the_posed_bone(seed: int) -> None:
    hand = make_hand(filled=False)
    positions = {"bone_1_joint": float(np.random.default_rng(seed).uniform(-1.0, 1.0))}
    T = hand.poses(positions)["bone_1"]
    middle = transform_points(T, 0.5 * hand["bone_1"].tail[None])[0]
    stroke = circle(middle[0], middle[2], 0.006, 0.015)
    drawn, owner = editing.draw_shape(hand, stroke, TOWARDS, positions=positions)
    assert owner == "bone_1"
    (placed,) = drawn["bone_1"].shapes
    assert placed.shape.semi_axes == pytest.approx((0.006, 0.006, 0.015), rel=0.02)
    in_world = T @ placed.T_link_shape
    assert in_world[:3, 3] == pytest.approx(middle, abs=1e-3)
    assert abs(in_world[2, 2]) == pytest.approx(1.0, abs=1e-3)


def test_numbers_of_a_hitbox_are_changed_one_by_one() -> None:
    hand = make_hand()
    changed = editing.set_shape(hand, "bone_1", 0, {"squareness": (0.3, 0.7), "tapering": (0.2, -0.1)})
    (before,), (after,) = hand["bone_1"].shapes, changed["bone_1"].shapes
    assert after.shape.squareness == (0.3, 0.7)
    assert after.shape.tapering == (0.2, -0.1)
    assert after.shape.semi_axes == before.shape.semi_axes
    assert after.T_link_shape == pytest.approx(before.T_link_shape)
    for values, message in [
        ({"semi_axes": (0.0, 1.0, 1.0)}, "semi_axes"),
        ({"squareness": (2.0, 1.0)}, "1.9"),
        ({"squareness": (0.0, 1.0)}, "0.1"),
        ({"tapering": (0.6, 0.0)}, "0.5"),
        ({"semi_axes": (1.0, 1.0)}, "3 finite"),
        ({"xyz": (np.nan, 0.0, 0.0)}, "finite"),
        ({"colour": (1.0,)}, "colour"),
        ({"quat_xyzw": (0.0, 0.0, 0.0, 0.0)}, "quat"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            editing.set_shape(hand, "bone_1", 0, values)
    with pytest.raises(InvalidInputError, match="row"):
        editing.set_shape(hand, "bone_1", 1, {})


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_the_same_positions_are_the_mirrored_posture(axis: str) -> None:
    hand = make_hand()
    for name, kind in (("bone_13", "ball"), ("bone_14", "universal"), ("bone_15", "slide")):
        hand = editing.set_joint(hand, name, kind)
    hand = editing.rename_bone(hand, "bone_13", "left_thumb")
    tapered = {"tapering": (0.2, 0.1), "semi_axes": (0.01, 0.006, 0.02)}
    askew = {"xyz": (0.003, 0.006, 0.02), "quat_xyzw": (0.2, 0.4, -0.4, 0.8)}
    hand = editing.set_shape(hand, "left_thumb", 0, tapered | askew)
    mirrored, names = editing.mirror_bone(hand, "left_thumb", axis)
    assert names == ["right_thumb", "bone_14_mirrored", "bone_15_mirrored"]
    assert mirrored["right_thumb"].parent == "base"
    assert mirrored["bone_14_mirrored"].parent == "right_thumb"
    values = np.random.default_rng(0).uniform(-0.5, 0.5, 6)
    one = [name for bone in ("left_thumb", "bone_14", "bone_15") for name in mirrored[bone].joint.names]
    other = [name for bone in names for name in mirrored[bone].joint.names]
    assert len(set(one) | set(other)) == 12
    poses = mirrored.poses({**dict(zip(one, values, strict=True)), **dict(zip(other, values, strict=True))})
    sign = np.where(np.array(["x", "y", "z"]) == axis, -1.0, 1.0)
    for left, right in zip(("left_thumb", "bone_14", "bone_15"), names, strict=True):
        tails = [transform_points(poses[name], mirrored[name].tail[None])[0] for name in (left, right)]
        assert tails[1] == pytest.approx(sign * tails[0], abs=1e-12)
        # The solids are mirror images: whatever point is in one has its image in the other.
        points = 0.03 * np.random.default_rng(1).standard_normal((2000, 3)) + tails[0]
        (a,), (b,) = mirrored[left].shapes, mirrored[right].shapes
        inside = a.contains(transform_points(np.linalg.inv(poses[left]), points))
        assert 0 < inside.sum() < len(points)
        assert (b.contains(transform_points(np.linalg.inv(poses[right]), sign * points)) == inside).all()
    # Once more: the copy is made anew.
    again, _ = editing.mirror_bone(mirrored, "left_thumb", axis)
    assert set(again.bones) == set(mirrored.bones)
    with pytest.raises(InvalidInputError, match="root"):
        editing.mirror_bone(hand, "base", axis)
    with pytest.raises(InvalidInputError, match="x, y or z"):
        editing.mirror_bone(hand, "left_thumb", "w")


def test_a_straight_finger_is_split_where_no_corner_was_drawn() -> None:
    hand = make_hand()
    split = editing.split_bone(hand, "bone_2", 3)
    parts = split.subtree("bone_2")
    assert parts == ["bone_2", "bone_16", "bone_17", "bone_3"]
    ends = [split[name].head_in_world for name in parts[:3]] + [split["bone_17"].tail_in_world]
    head, tail = hand["bone_2"].head_in_world, hand["bone_2"].tail_in_world
    assert np.array(ends) == pytest.approx(head + np.linspace(0, 1, 4)[:, None] * (tail - head))
    assert split["bone_3"].parent == "bone_17"
    assert split["bone_16"].joint.axes == pytest.approx(hand["bone_2"].joint.axes)
    assert split["bone_2"].shapes == hand["bone_2"].shapes
    assert split.poses({})["bone_3"] == pytest.approx(hand.poses({})["bone_3"])
    for parts_, message in ((1, "2 to 20"), (21, "2 to 20")):
        with pytest.raises(InvalidInputError, match=message):
            editing.split_bone(hand, "bone_2", parts_)


def test_names_are_names() -> None:
    hand = make_hand()
    renamed = editing.rename_bone(hand, "bone_1", "index")
    assert renamed["index"].joint.names == ("index_joint",)
    assert renamed["bone_2"].parent == "index"
    assert list(renamed.bones)[1] == "index"
    for name in ("", "1st", "a b", "x" * 65, "a/b", "ä"):
        with pytest.raises(InvalidInputError, match="name of a bone"):
            editing.rename_bone(hand, "bone_1", name)
    with pytest.raises(InvalidInputError, match="no other bone"):
        editing.rename_bone(hand, "bone_1", "bone_2")


def test_a_bone_goes_with_all_that_it_carries() -> None:
    hand = editing.remove_bone(make_hand(), "bone_2")
    assert "bone_2" not in hand.bones
    assert "bone_3" not in hand.bones
    assert len(hand.bones) == 14
    assert len(editing.remove_bone(hand, "base").bones) == 0


def test_a_dragged_bone_turns_to_the_pointer_within_its_limits() -> None:
    hand = make_hand()
    positions = {"bone_1_joint": 0.7, "bone_2_joint": -0.4}
    goal = transform_points(hand.poses(positions)["bone_2"], hand["bone_2"].tail[None])[0]
    found = editing.turned_to(hand, "bone_2", goal, {"bone_1_joint": 0.7})
    assert found == pytest.approx({"bone_2_joint": -0.4}, abs=1e-4)
    narrow = editing.set_limits(hand, "bone_2_joint", -0.1, 0.1)
    assert editing.turned_to(narrow, "bone_2", goal, {"bone_1_joint": 0.7}) == pytest.approx({"bone_2_joint": -0.1})
    assert editing.turned_to(hand, "base", goal, {}) == {}


def test_distances_are_those_of_the_shapes() -> None:
    hand = make_hand()
    positions = {"bone_4_joint": 0.2, "bone_7_joint": -0.3}
    pairs = near_pairs(hand, positions, 0.02)
    assert [pair.distance for pair in pairs] == sorted(pair.distance for pair in pairs)
    poses = hand.poses(positions)
    assert ("bone_1", "bone_2") not in [pair.bones for pair in pairs]
    assert len(pairs) > 3
    for pair in pairs:
        (a,), (b,) = (hand[name].shapes for name in pair.bones)
        T_a, T_b = (poses[name] @ hand[name].shapes[0].T_link_shape for name in pair.bones)
        assert pair.distance == pytest.approx(min_distance(a.shape, T_a, b.shape, T_b).distance, abs=1e-9)
    # A bone without hitbox is passed over: what is on both sides of it is next to each other.
    bare = editing.remove_shape(hand, "bone_2", 0)
    assert ("bone_1", "bone_3") not in [pair.bones for pair in near_pairs(bare, {}, 1.0)]


def test_mass_of_two_shapes_is_that_of_both() -> None:
    hand = make_hand()
    stroke = circle(0.0, 0.02, 0.01, 0.015)
    hand, _ = editing.draw_shape(hand, stroke, TOWARDS, "base")
    askew = {"semi_axes": (0.01, 0.03, 0.05), "quat_xyzw": (0.2, 0.4, -0.4, 0.8)}
    hand = editing.set_shape(hand, "base", 0, askew)
    shapes = hand["base"].shapes
    mass, center, inertia = bone_mass(shapes, 500.0)
    rng = np.random.default_rng(0)
    total, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for placed in shapes:
        low, high = placed.triangle_mesh().bounds
        points = rng.uniform(low, high, (400_000, 3))
        inside = points[placed.contains(points)]
        share = 500.0 * np.prod(high - low) / len(points)
        total += share * len(inside)
        first += share * inside.sum(axis=0)
        second += share * inside.T @ inside
    assert mass == pytest.approx(total, rel=0.01)
    assert center == pytest.approx(first / total, abs=3e-4)
    about = second - total * np.outer(first / total, first / total)
    assert inertia == pytest.approx(np.trace(about) * np.eye(3) - about, rel=0.03, abs=3e-7)


def test_undo_takes_back_steps_and_whole_drags() -> None:
    hand = make_hand()
    history = History(hand)
    for length in (0.01, 0.02, 0.03):
        history = history.changed(editing.set_shape(hand, "bone_1", 0, {"semi_axes": (0.01, 0.01, length)}))
    assert len(history.past) == 3
    dragged = history.changed(hand).changed(replace(hand, density=2.0), merged=True)
    assert len(dragged.past) == 4
    assert dragged.undone().present is history.present
    assert dragged.undone().redone().present.density == 2.0
    assert History(hand).undone().present is hand
    back = history
    for _ in range(5):
        back = back.undone()
    assert back.present is hand


def test_a_skeleton_of_a_description_is_not_changed_by_the_way() -> None:
    hand = replace(make_hand(), robot="panda")
    for edit in (
        lambda: editing.draw_bones(hand, line((0, 0), (0, 1)), TOWARDS, 0.0),
        lambda: editing.move_end(hand, "bone_1", "tail", (0, 0, 1)),
        lambda: editing.remove_bone(hand, "bone_1"),
        lambda: editing.split_bone(hand, "bone_1", 2),
        lambda: editing.rename_bone(hand, "bone_1", "x"),
        lambda: editing.set_joint(hand, "bone_1", "ball"),
        lambda: editing.set_limits(hand, "bone_1_joint", 0.0, 1.0),
        lambda: editing.mirror_bone(hand, "bone_1", "x"),
    ):
        with pytest.raises(InvalidInputError, match="Free it first"):
            edit()
    assert len(editing.set_shape(hand, "bone_1", 0, {"squareness": (0.5, 0.5)}).bones) == 16


def test_a_hitbox_without_a_bone_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="Draw bones first"):
        editing.draw_shape(Sketch(), circle(0, 0, 1, 2), TOWARDS)
    with pytest.raises(InvalidInputError, match="none without a hitbox"):
        editing.fill_bones(make_hand())
