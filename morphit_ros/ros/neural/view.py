"""The topics of neural_object in a browser view."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from trajectory_msgs.msg import MultiDOFJointTrajectory

from morphit_interfaces.msg import NeuralObject
from morphit_ros.display.drawings.neural_object import half_axes
from morphit_ros.display.neural_panel import NeuralView
from morphit_ros.display.neural_scene import NeuralScene
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import array_from_point, cloud_from_message, matrix_from_pose
from morphit_ros.ros.core.endpoints import Topic
from morphit_ros.ros.core.latest import Viewer
from morphit_ros.ros.neural.builds import BUILD_SHARE, BUILD_STAGE
from morphit_ros.ros.neural.messages import inertia_matrix, motion_from_message
from morphit_ros.ros.neural.server import INERTIA_ERROR, MASS_ERROR


class NeuralViewer(Viewer):
    """Shows the object of a neural_object, its predicted motion, and what the node says of itself.

    Args:
        port: TCP port on the loopback interface; 0: a free one.
        node_name: full name of the neural_object, as its diagnostics say it.
        page: where it is shown instead of on a page of its own.
    """

    def __init__(self, port: int, node_name: str, page: ServedScene | None = None) -> None:
        self.scene: NeuralScene = NeuralScene(port=port, page=page)
        # The object before its motion.
        self.topics = {
            interfaces.NEURAL_OBJECT: self.show_object,
            interfaces.NEURAL_MOTION: self.show_motion,
            interfaces.DIAGNOSTICS: self.show_diagnostics,
        }
        self.node_name = node_name
        self._object: NeuralObject | None = None
        self._errors: dict[str, str] = {}
        self._shown: tuple[object, ...] = ()

    def is_wanted(self, topic: Topic, message: Any) -> bool:
        # All nodes share this topic: the newest message of another must not take the place of the wanted one.
        return topic is not interfaces.DIAGNOSTICS or any(s.name == self.node_name for s in message.status)

    def show_object(self, message: NeuralObject) -> None:
        """Show another object.

        Raises:
            InvalidInputError: no surface, a mass or tensor that no body has.
        """
        self._show(message)
        self._object = message

    def show_motion(self, message: MultiDOFJointTrajectory) -> None:
        """Show a predicted motion of the object that was shown last; an empty one clears it.

        Raises:
            InvalidInputError: no motion of one object.
        """
        named = message.joint_names[0] if message.joint_names else ""
        if self._object is None or named != self._object.name:
            return
        self.scene.show_motion(*motion_from_message(message))

    def show_diagnostics(self, message: DiagnosticArray) -> None:
        """Show what the node says of itself: errors of the inertia, a build under way."""
        for status in message.status:
            self.show_status(status)

    def show_status(self, status: DiagnosticStatus) -> None:
        """Show what the node says of itself; what others say is left out."""
        if status.name != self.node_name:
            return
        values = {pair.key: pair.value for pair in status.values}
        build = None
        if BUILD_STAGE in values:
            build = {"stage": values[BUILD_STAGE]}
            share = _number(values.get(BUILD_SHARE, ""))
            if math.isfinite(share):
                build["done"] = f"{100.0 * share:.0f} %"
        self.scene.set_status(status.message, status.level == DiagnosticStatus.ERROR, build)
        errors = {key: values[key] for key in (MASS_ERROR, INERTIA_ERROR) if key in values}
        if errors != self._errors:
            self._errors = errors
            if self._object is not None:
                self.scene.set_figures(self._figures(self._object))

    def _show(self, message: NeuralObject) -> None:
        inertia = message.inertia
        tensor = inertia_matrix(inertia)
        if not (np.isfinite(tensor).all() and inertia.m > 0.0):
            raise InvalidInputError("inertia", f"{inertia.m} kg", "a positive mass and a finite tensor")
        moments, axes = np.linalg.eigh(tensor)
        if np.linalg.det(axes) < 0.0:
            axes[:, 2] *= -1.0
        cloud = cloud_from_message(message.surface)
        if cloud.normals is None:
            raise InvalidInputError("surface", "no normals", "points with normals")
        self.scene.show_object(
            NeuralView(
                message.name, cloud.points, cloud.normals, matrix_from_pose(message.pose),
                array_from_point(inertia.com),
                float(message.center_of_mass_std), axes, half_axes(inertia.m, moments), float(message.confidence),
                self._figures(message), message.doubts,
            )
        )  # fmt: skip

    def _figures(self, message: NeuralObject) -> dict[str, str]:
        inertia = message.inertia
        mass_error, share = (_number(self._errors.get(key, "")) for key in (MASS_ERROR, INERTIA_ERROR))
        center = array_from_point(inertia.com)
        place = transform_points(matrix_from_pose(message.pose), center[None])[0]
        moments = np.linalg.eigvalsh(inertia_matrix(inertia)) * 1e3
        figures = {
            "from": message.source,
            "mass": f"{inertia.m:.4g}{_error(mass_error, '.2g')} kg, {message.total_mass_from}",
            "its distribution": message.mass_from,
            "centre of mass": f"{_triple(center * 1e3)} mm",
            f"centre in {message.header.frame_id}": f"{_triple(place * 1e3)} mm",
            "its error": f"± {message.center_of_mass_std * 1e3:.2f} mm",
            "moments": f"{_triple(moments, 3)} g m²",
            "tensor's error": f"± {100.0 * share:.1f} %",
            "size": f"{_triple(np.array([message.size.x, message.size.y, message.size.z]) * 1e3)} mm",
            "volume": f"{message.volume * 1e6:.1f} cm³",
            "friction": f"{message.friction:.2f}",
        }
        if not message.header.frame_id:
            del figures["centre in "]
        if not math.isfinite(share):
            del figures["tensor's error"]
        if not math.isfinite(message.friction):
            figures["friction"] = "not identified"
        return figures


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _error(value: float, digits: str) -> str:
    # A mass that somebody gave has none.
    return f" ± {value:{digits}}" if math.isfinite(value) and value > 0.0 else ""


def _triple(values: Iterable[float], digits: int = 1) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values)
