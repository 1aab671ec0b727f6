"""Publishes a robot's shape: the description for planning, the model and the markers, always all three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import SphereModel
from morphit_ros.display.drawings.robot_spheres import sphere_items
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.diagnostics import OK, Diagnostics
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.spheres.messages import link_spheres_from_message, message_from_shape
from morphit_ros.ros.spheres.planning_scene import PlanningSceneUpdates, bodies_of
from morphit_ros.spheres import spherized_urdf
from morphit_ros.spheres.objects.attachment import RobotShape


class SpherePublisher:
    """Latched topics of a shape. Every message names the content hash of the model, so that they can be matched.

    In the description it is the comment at the end, in the markers the text of the first one.

    Args:
        node: owner of the publishers.
        padding: added to every radius in the description [m].
        diagnostics: told of what is published.
        scene: brought up to date with it, too.
        touch_links: that what is attached may touch there.
    """

    def __init__(
        self, node: Node, padding: float, diagnostics: Diagnostics, scene: PlanningSceneUpdates | None = None,
        touch_links: Sequence[str] = (),
    ) -> None:  # fmt: skip
        topics = (interfaces.SPHERE_DESCRIPTION, interfaces.SPHERE_MODEL, interfaces.SPHERE_MARKERS)
        self._out = {topic: topic.publish(node) for topic in topics}
        self._node = node
        self._padding, self._touch_links = padding, touch_links
        self._diagnostics, self._scene = diagnostics, scene

    def message(self, shape: RobotShape) -> SphereModel:
        """The model as it is published now."""
        return message_from_shape(shape, header(shape.description.root_link, ros_time(self._node)))

    def publish(self, shape: RobotShape) -> None:
        """Publish all three, each made before the first is published: none goes out if one cannot be made."""
        model = self.message(shape)
        joined = shape.joined_model()
        description = replace(shape.description, xml=shape.description.xml_to_publish())
        urdf = spherized_urdf(description, joined, padding=self._padding)
        markers = marker_array(sphere_items(link_spheres_from_message(model)), model.header)
        markers.markers[0].text = model.content_hash
        described = f"{urdf}<!-- sphere_model {model.content_hash} -->\n"
        self._out[interfaces.SPHERE_DESCRIPTION].publish(String(data=described))
        self._out[interfaces.SPHERE_MODEL].publish(model)
        self._out[interfaces.SPHERE_MARKERS].publish(markers)
        if self._scene is not None:
            self._scene.show(model.content_hash, bodies_of(shape, self._padding, self._touch_links))
        worst = max((link.d_max for link in shape.model.links.values()), default=0.0)
        attached = ", ".join(shape.attached) or "nothing"
        values = {"worst d_max [m]": worst, "attached": attached, "content_hash": model.content_hash}
        self._diagnostics.report(OK, summary(shape), values)


def summary(shape: RobotShape) -> str:
    """The shape in one line."""
    model = shape.model
    return f"{model.count} spheres on {len(model.links)} links of {shape.description.name}, variant {model.variant}"
