"""What others see of a cover and its control: the topic cover/state, markers, figures. Made only for subscribers."""

from __future__ import annotations

import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Header

from morphit_interfaces.msg import CoverState as CoverStateMsg
from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.cases import CylinderBody
from morphit_ros.cover.control.controller import StepResult
from morphit_ros.cover.control.supervision import Cycle, SupervisedController
from morphit_ros.cover.goals.target_surface import target_surface
from morphit_ros.cover.model import Cover
from morphit_ros.display.drawings.cover import body_item, cover_items
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.markers import MarkerDrawing
from morphit_ros.ros.cover.loop import PeriodFigures


@dataclass(frozen=True)
class CoverDisplayConfig(Config):
    """What is shown, and how often."""

    display_rate: float = parameter(
        10.0, "Rate of cover/state and markers while subscribed [Hz]", minimum=0.2, maximum=50.0
    )
    body_cylinder: tuple[float, ...] = parameter(
        (0.0, 0.0),
        "Radius and length of what the cover lies on, to be drawn [m]; zeros: the case's, if there is one",
        length=2,
        minimum=0.0,
    )
    body_pose: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), "Its pose in the world: x, y, z [m], quaternion x, y, z, w; z is the axis",
        length=7,
    )  # fmt: skip


class CoverDisplay:
    """Publishes the state of a cover for displays.

    Args:
        node: publishes.
        config: rate, body.
        cover: whose nodes are shown.
        frame: the cover's world frame.
        rate_limit: of the motors [rad/s].
        body: what it lies on, where the configuration names nothing.
    """

    def __init__(
        self, node: Node, config: CoverDisplayConfig, cover: Cover, frame: str, rate_limit: float,
        body: CylinderBody | None = None,
    ) -> None:  # fmt: skip
        self._node, self._cover, self._frame, self._rate_limit = node, cover, frame, rate_limit
        if min(config.body_cylinder) > 0.0:
            body = CylinderBody(*config.body_cylinder, config.body_pose)
        self._body = (body.radius, body.length) if body else None
        self._body_pose = [float(value) for value in (body.pose if body else config.body_pose)]
        pose = make_transform(matrix_from_quat_xyzw(self._body_pose[3:]), self._body_pose[:3])
        self._body_items = [] if self._body is None else [body_item(*self._body, pose)]
        self._markers = MarkerDrawing(Header(frame_id=frame))
        self._states, self._marker_arrays = (
            node.create_publisher(topic.type, topic.name, topic.quality.profile(depth=1))
            for topic in (interfaces.COVER_STATE, interfaces.COVER_MARKERS)
        )
        self._result: StepResult | None = None

    def description(self) -> dict[str, Any]:
        """Entries of the cover's description that only displays need."""
        entries: dict[str, Any] = {"frame": self._frame, "rate_limit": self._rate_limit}
        if self._body is not None:
            entries["body"] = {
                "radius": self._body[0], "length": self._body[1], "pose": self._body_pose
            }  # fmt: skip
        return entries

    def show(
        self, supervised: SupervisedController, cycle: Cycle | None, rates: Array, figures: PeriodFigures, status: str
    ) -> None:
        """Publish what is subscribed to."""
        wanted = [publisher.get_subscription_count() > 0 for publisher in (self._states, self._marker_arrays)]
        if not any(wanted):
            return
        if cycle is not None and cycle.result is not None:
            self._result = cycle.result
        state, course = supervised.state, supervised.course
        positions = state.positions(self._cover)
        unknown = np.full(self._cover.node_count, np.nan)
        angles = self._result.angles if self._result is not None else unknown
        time = cycle.target_time if cycle is not None else 0.0
        corners, triangles = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)
        if course is not None:
            corners, triangles = target_surface(course.goal, self._cover, positions, time)
        stamp = self._node.get_clock().now().to_msg()
        if wanted[0]:
            header = Header(frame_id=self._frame, stamp=stamp)
            message = self._message(header, cycle, rates, figures, status, time)
            message.positions = _doubles(positions)
            message.rotations = _doubles(state.rotations)
            message.angle_errors = _doubles(angles)
            message.position_errors = _doubles(self._result.distances if self._result is not None else unknown)
            message.target_points = _doubles(corners)
            message.target_triangles = array.array("I", triangles.astype(np.uint32).tobytes())
            self._states.publish(message)
        if wanted[1]:
            target = corners, triangles
            items = cover_items(self._cover, positions, state.rotations, angles, target, frame=self._frame)
            self._marker_arrays.publish(self._markers.update([*items, *self._body_items]))

    def _message(
        self, header: Header, cycle: Cycle | None, rates: Array, figures: PeriodFigures, status: str, time: float
    ) -> CoverStateMsg:
        result = self._result
        return CoverStateMsg(
            header=header,
            status=status,
            moving=cycle is not None and cycle.stop is None and bool(np.any(rates)),
            target_time=float(time),
            motor_rates=_doubles(rates),
            dof=0 if result is None else result.dof,
            saturated=0 if result is None else result.saturated,
            condition=np.nan if result is None else float(result.condition),
            step_time=float(figures.times[(figures.count - 1) % len(figures.times)]) if len(figures.times) else 0.0,
            missed_share=figures.missed_share,
        )

    def figures(self, result: StepResult) -> dict[str, Any]:
        """Errors and figures of a step for diagnostics."""
        angles, distances = np.degrees(result.angles), result.distances * 1e3
        return {
            "angle error mean [deg]": float(angles.mean()),
            "angle error 90 % [deg]": float(np.percentile(angles, 90.0)),
            "position error mean [mm]": float(distances.mean()),
            "position error 90 % [mm]": float(np.percentile(distances, 90.0)),
            "degrees of freedom": result.dof,
            "condition": float(result.condition),
            "saturated axes": result.saturated,
            "iterations": result.iterations,
        }


def _doubles(values: Array) -> array.array[float]:
    return array.array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())
