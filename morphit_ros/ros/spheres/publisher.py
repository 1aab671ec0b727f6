"""Publishes a robot's shape: the description for planning, the model and the markers, always all three."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel
from morphit_ros.display.drawings.robot_spheres import sphere_items
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.diagnostics import OK, Diagnostics
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.spheres.messages import link_spheres_from_message, message_from_shape
from morphit_ros.spheres import spherized_urdf
from morphit_ros.spheres.objects.attachment import RobotShape


class SpherePublisher:
    """Latched topics of a shape. Every message names the content hash of the model, so that they can be matched.

    In the description it is the comment at the end, in the markers the text of the first one.

    Args:
        node: owner of the publishers.
        padding: added to every radius in the description [m].
        diagnostics: told of what is published.
    """

    def __init__(self, node: Node, padding: float, diagnostics: Diagnostics) -> None:
        topics = (interfaces.SPHERE_DESCRIPTION, interfaces.SPHERE_MODEL, interfaces.SPHERE_MARKERS)
        self._out = {topic: node.create_publisher(topic.type, topic.name, topic.quality.profile()) for topic in topics}
        self._node = node
        self._padding = padding
        self._diagnostics = diagnostics

    def message(self, shape: RobotShape) -> SphereModel:
        """The model as it is published now."""
        stamp = self._node.get_clock().now().nanoseconds * 1e-9
        return message_from_shape(shape, header(shape.description.root_link, stamp))

    def publish(self, shape: RobotShape) -> None:
        """Publish all three, each made before the first is published: none goes out if one cannot be made."""
        model = self.message(shape)
        urdf = spherized_urdf(shape.description, shape.joined_model(), padding=self._padding)
        markers = marker_array(sphere_items(link_spheres_from_message(model)), model.header)
        markers.markers[0].text = model.content_hash
        described = f"{urdf}<!-- sphere_model {model.content_hash} -->\n"
        self._out[interfaces.SPHERE_DESCRIPTION].publish(String(data=described))
        self._out[interfaces.SPHERE_MODEL].publish(model)
        self._out[interfaces.SPHERE_MARKERS].publish(markers)
        worst = max((link.d_max for link in shape.model.links.values()), default=0.0)
        attached = ", ".join(shape.attached) or "nothing"
        values = {"worst d_max [m]": worst, "attached": attached, "content_hash": model.content_hash}
        self._diagnostics.report(OK, summary(shape), values)


def summary(shape: RobotShape) -> str:
    """The shape in one line."""
    model = shape.model
    return f"{model.count} spheres on {len(model.links)} links of {shape.description.name}, variant {model.variant}"
