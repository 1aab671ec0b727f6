"""A robot's shape with what it carries: who carries it, what the hashes tell, and what is refused."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.description import load_robot_description
from morphit_ros.spheres import LinkSpheres, SphereModel, spherized_urdf
from morphit_ros.spheres.objects.attachment import AttachedObject, RobotShape, attached_object

DESCRIPTION = """<robot name="post">
  <link name="base"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <link name="arm"><collision><geometry><sphere radius="0.05"/></geometry></collision></link>
  <link name="flange"/><link name="tip"/><link name="wheel"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="a" type="fixed"><parent link="arm"/><child link="flange"/>
    <origin xyz="0 0 0.3" rpy="0 0 1.5707963"/></joint>
  <joint name="b" type="fixed"><parent link="flange"/><child link="tip"/><origin xyz="0.1 0 0"/></joint>
  <joint name="c" type="continuous"><parent link="tip"/><child link="wheel"/><axis xyz="0 0 1"/></joint>
</robot>"""


def link_spheres(name, radius, content_hash=None):
    return LinkSpheres(name, np.zeros((1, 3)), np.array([radius]), 0.0, 0.0, content_hash or f"{name} {radius}")


def model(variant="balanced", **radii):
    return SphereModel("post", variant, {name: link_spheres(name, radius) for name, radius in radii.items()})


@pytest.fixture
def shape():
    return RobotShape(load_robot_description(DESCRIPTION), model(base=0.1, arm=0.05))


def mug(link="tip", name="mug"):
    return AttachedObject(name, link, np.array([[0.0, 0.02, 0.0], [0.0, 0.0, 0.05]]), np.array([0.02, 0.03]))


def test_an_object_joins_the_link_that_carries_it_rigidly(shape):
    held = shape.attach(mug())
    joined = held.joined_model()
    assert set(joined.links) == {"base", "arm"}
    # The flange is turned by a right angle and the tip is 0.1 m along its x axis, the arm's y axis.
    np.testing.assert_allclose(joined.links["arm"].centers[1:], [[-0.02, 0.1, 0.3], [0.0, 0.1, 0.35]], atol=1e-7)
    np.testing.assert_allclose(joined.links["arm"].radii, [0.05, 0.02, 0.03])
    np.testing.assert_array_equal(joined.links["base"].radii, [0.1])
    # The robot's own model is what it was, and so is the shape that the object was attached to.
    assert held.model is shape.model
    assert not shape.attached
    urdf = spherized_urdf(held.description, joined)
    assert urdf.count("<sphere radius") == 4


def test_the_hash_names_the_spheres(shape):
    held = shape.attach(mug())
    assert shape.content_hash == shape.model.content_hash
    hashes = {shape.content_hash, held.content_hash, shape.attach(mug("arm")).content_hash}
    moved = mug()
    moved.centers[0, 0] += 1e-6
    hashes |= {shape.attach(moved).content_hash, shape.attach(mug(name="cup")).content_hash}
    hashes |= {shape.refitted(model(arm=0.06)).attach(mug()).content_hash}
    assert len(hashes) == 6
    assert held.content_hash == shape.attach(mug()).content_hash
    assert held.detach("mug").content_hash == shape.content_hash


def test_several_objects_come_and_go(shape):
    both = shape.attach(mug()).attach(mug("base", "cup"))
    assert list(both.attached) == ["mug", "cup"]
    assert list(both.detach("mug").attached) == ["cup"]
    assert len(both.joined_model().links["base"].radii) == 3
    with pytest.raises(InvalidInputError, match=r"mug.*not attached yet"):
        both.attach(mug("base"))
    with pytest.raises(InvalidInputError, match=r"plate.*cup.*mug"):
        both.detach("plate")


@pytest.mark.parametrize(("link", "words"), [("elbow", "elbow.*base"), ("wheel", "wheel.*collision geometry")])
def test_what_nothing_carries_is_refused(shape, link, words):
    with pytest.raises(InvalidInputError, match=words):
        shape.attach(mug(link))


def test_a_link_with_spheres_of_its_own_carries_by_itself(shape):
    link, T_link_frame = shape.carrier("arm")
    assert link == "arm"
    np.testing.assert_array_equal(T_link_frame, np.eye(4))


def test_a_refit_of_some_links_keeps_the_others_and_their_order(shape):
    again = shape.attach(mug()).refitted(model("volume", base=0.2))
    assert list(again.model.links) == ["base", "arm"]
    assert again.model.links["arm"] is shape.model.links["arm"]
    np.testing.assert_array_equal(again.model.links["base"].radii, [0.2])
    assert again.model.variant == "mixed"
    assert list(again.attached) == ["mug"]
    assert shape.refitted(model(base=0.2)).model.variant == "balanced"
    assert shape.refitted(model("volume", arm=0.1, base=0.2)).model.variant == "volume"
    # The same spheres have the same hash, whichever way they came about.
    back = again.refitted(model(base=0.1))
    assert back.detach("mug").content_hash == shape.content_hash


def test_another_robot_keeps_what_it_can_carry(shape):
    held = shape.attach(mug()).attach(mug("base", "cup"))
    other = load_robot_description(DESCRIPTION.replace('"tip"', '"hook"').replace('"post"', '"pole"'))
    assert list(held.described(other, model(base=0.1, arm=0.05)).attached) == ["cup"]
    # Without spheres on the arm the tip hangs on a joint that turns.
    assert list(held.described(shape.description, model(base=0.1)).attached) == ["cup"]


def test_the_pose_of_an_object_places_its_spheres():
    pose = make_transform(matrix_from_rpy([0.3, -0.2, 1.0]), [0.1, 0.2, 0.3])
    centers, radii = np.random.default_rng(0).normal(size=(5, 3)), np.full(5, 0.1)
    item = attached_object("mug", "tip", (centers, radii), pose)
    np.testing.assert_allclose(item.centers, transform_points(pose, centers))
    np.testing.assert_array_equal(attached_object("mug", "tip", (centers, radii)).centers, centers)


@pytest.mark.parametrize(
    ("name", "centers", "radii"),
    [
        ("", np.zeros((1, 3)), np.ones(1)),
        ("mug", np.zeros((0, 3)), np.ones(0)),
        ("mug", np.zeros((2, 3)), np.ones(1)),
        ("mug", np.zeros((1, 2)), np.ones(1)),
        ("mug", np.full((1, 3), np.nan), np.ones(1)),
        ("mug", np.zeros((1, 3)), np.array([np.inf])),
        ("mug", np.zeros((1, 3)), np.zeros(1)),
    ],
)
def test_what_is_no_object_is_refused(name, centers, radii):
    with pytest.raises(InvalidInputError):
        AttachedObject(name, "tip", centers, radii)


def test_what_is_worn_moves_to_the_link_that_carries_it_and_takes_its_own_place(shape):
    held = shape.attach(mug())
    spheres = np.array([[0.0, 0.0, 0.01]]), np.array([0.02])
    worn = held.wear("cover", "flange", spheres, make_transform(translation=(0.1, 0.0, 0.0)))
    assert list(worn.attached) == ["mug", "cover"]
    # The flange is 0.3 m up the arm and turned by a right angle.
    np.testing.assert_allclose(worn.attached["cover"].centers, [[0.0, 0.1, 0.31]], atol=1e-7)
    assert worn.attached["cover"].link == "arm"
    again = worn.wear("cover", "arm", spheres, np.eye(4))
    assert list(again.attached) == ["mug", "cover"]
    np.testing.assert_array_equal(again.attached["cover"].centers, spheres[0])
    assert again.content_hash != worn.content_hash
    with pytest.raises(InvalidInputError, match="link_name"):
        worn.wear("cover", "elbow", spheres, np.eye(4))


def test_links_beside_another_are_found_past_those_without_spheres():
    robot = load_robot_description(DESCRIPTION)
    assert RobotShape(robot, model(base=0.1, arm=0.05, wheel=0.03)).beside("arm") == {"base", "wheel"}
    assert RobotShape(robot, model(base=0.1, wheel=0.03)).beside("base") == {"wheel"}
    assert RobotShape(robot, model(base=0.1)).beside("base") == set()
