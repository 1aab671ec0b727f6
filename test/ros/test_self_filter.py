"""What the hand has, as perception follows it: where it was taken, and where it was let go of."""

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from sensor_msgs.msg import JointState as JointStateMessage
from std_msgs.msg import String

from morphit_interfaces.msg import LinkSpheres, Sphere, SphereModel
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig
from morphit_ros.ros.scene.self_filter import SelfFilter

pytestmark = pytest.mark.ros

ROBOT = """<robot name="post"><link name="panda_link0"/><link name="tip"/><joint name="slide" type="prismatic">
<parent link="panda_link0"/><child link="tip"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/>
</joint></robot>"""


def model(*held, name="post"):
    own = LinkSpheres(link_name="tip", spheres=[Sphere(radius=0.1)])
    things = [LinkSpheres(link_name=link, object_id=f"thing {link}", spheres=[Sphere(radius=0.05)]) for link in held]
    for thing in things:
        thing.spheres[0].center.z = -0.2
    return SphereModel(links=[own, *things], content_hash=f"{name} {held}")


def test_what_is_taken_is_followed_until_it_is_let_go_of(graph):
    node = graph.node
    base = BaseFrame(node, "world", BaseFrameConfig(base_xyz=(0.0, 0.0, 0.5)))
    own = SelfFilter(node, RobotConfiguration.load("panda"), base, Diagnostics(node))
    states, models = graph.publisher(interfaces.JOINT_STATES), graph.publisher(interfaces.SPHERE_MODEL)
    graph.publisher(interfaces.ROBOT_DESCRIPTION).publish(String(data=ROBOT))

    def at(position):
        message = JointStateMessage(name=["slide"], position=[position])
        message.header.stamp = node.get_clock().now().to_msg()
        states.publish(message)

    def publish_until(position, message, done):
        def told():
            at(position)
            models.publish(message)
            return done()

        graph.wait_until(told, what="what is carried")

    publish_until(0.2, model(), lambda: own._states and own._kinematics is not None)
    assert own.carried is None
    # A link that the robot does not have carries nothing.
    publish_until(0.2, model("elbow"), lambda: own._spheres is not None and "elbow" in own._spheres)
    assert own.carried is None
    # Nor is a cover taken up, which is worn for good.
    worn = model()
    worn.links.append(LinkSpheres(link_name="tip", object_id="cover", spheres=[Sphere(radius=0.07)]))
    publish_until(0.2, worn, lambda: len(own._spheres["tip"][1]) == 2)
    assert own.carried is None
    publish_until(0.3, model("tip"), lambda: own.carried is not None and own.carried.centers[0, 0] > 0.25)
    taken = own.carried
    np.testing.assert_allclose(taken.centers, [[0.3, 0.0, 0.3]], atol=1e-9)
    assert taken.radii.tolist() == [0.05] and taken.T_now_taken is None
    for _ in range(3):
        publish_until(0.7, model("tip"), lambda: own._states[-1].positions[0] == 0.7)
    assert own.carried is taken
    publish_until(0.7, model(), lambda: own.carried.T_now_taken is not None)
    np.testing.assert_allclose(transform_points(own.carried.T_now_taken, taken.centers), [[0.7, 0.0, 0.3]], atol=1e-9)
    publish_until(0.1, model("tip", name="again"), lambda: own.carried.T_now_taken is None)
    assert own.carried is not taken


@pytest.mark.parametrize("order", list(permutations(("model", "description", "state"))), ids="-".join)
def test_what_is_held_from_the_start_is_followed_whatever_comes_first(graph, order):
    """As of a node that is started again while the hand holds something: each topic has its last message for it."""
    node = graph.node
    base = BaseFrame(node, "world", BaseFrameConfig(base_xyz=(0.0, 0.0, 0.5)))
    own = SelfFilter(node, RobotConfiguration.load("panda"), base, Diagnostics(node))
    say = {
        "model": lambda: own._on_sphere_model(model("tip")),
        "description": lambda: own._on_description(String(data=ROBOT)),
        "state": lambda: own._on_joint_state(JointState(("slide",), np.array([0.3]), np.zeros(1), 1.0)),
    }
    for what in order:
        assert own.carried is None
        say[what]()
    own.spheres(1.0)
    assert own.carried is not None
    np.testing.assert_allclose(own.carried.centers, [[0.3, 0.0, 0.3]], atol=1e-9)
