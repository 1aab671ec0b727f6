"""The body of the moment: what the robot holds and wears, and what each of them may touch."""

from dataclasses import replace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_interfaces.msg import LinkSpheres, Sphere, SphereModel
from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest

pytestmark = pytest.mark.ros
PANDA = RobotConfiguration.load("panda")


def carrying(**links):
    spheres = [Sphere(radius=0.05)]
    return SphereModel(
        links=[LinkSpheres(link_name=link, object_id=name, spheres=spheres) for name, link in links.items()]
    )


@pytest.mark.parametrize("order", ["description first", "model first"])
def test_a_cover_may_touch_the_links_beside_its_own_and_what_is_held_may_not(order):
    message = carrying(cover="panda_link5", mug="panda_hand")
    body, description = RobotBody(RobotBodyConfig(), robot="panda"), load_robot_description(PANDA.description)
    body = (
        body.described(description).holding(message)
        if order[0] == "d"
        else body.holding(message).described(description)
    )
    touched = {item.name: item.touch_links for item in body.held}
    assert touched == {"cover": {"panda_link4", "panda_link5", "panda_link6"}, "mug": frozenset(PANDA.touch_links)}
    # Plates are held against the links further on, and never against those beside.
    state = {**dict(zip(PANDA.arm_joints, PANDA.home, strict=True)), "panda_finger_joint1": 0.0}
    request = RobotDistanceRequest(type=DistanceType.SINGLE)
    [found] = body.known.compute([state], request, body.among([]))
    beside = {name for item in found.distances if "cover" in item.link_names for name in item.link_names}
    assert "panda_link2" in beside and not beside & touched["cover"]


def test_so_it_is_where_only_what_is_carried_is_asked_for():
    body = RobotBody(RobotBodyConfig(), robot="panda").holding(carrying(cover="panda_link5"))
    known = replace(body, description=load_robot_description(PANDA.description)).carrying(body.held)
    assert known.held[0].touch_links == {"panda_link4", "panda_link5", "panda_link6"}


def test_a_cover_on_a_link_that_the_robot_does_not_have_is_refused():
    body = RobotBody(RobotBodyConfig(), robot="panda").described(load_robot_description(PANDA.description))
    with pytest.raises(InvalidInputError, match="panda_link9"):
        body.holding(carrying(cover="panda_link9"))
