"""The topics of a cover in a browser view."""

from __future__ import annotations

import numpy as np
from std_msgs.msg import String

from morphit_interfaces.msg import CoverState
from morphit_ros.display.cover_scene import CoverScene, CoverView
from morphit_ros.display.served_scene import ServedScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.latest import Viewer
from morphit_ros.ros.cover.messages import cover_from_description


class CoverViewer(Viewer):
    """Shows descriptions and states of a cover.

    Args:
        port: TCP port on the loopback interface; 0: a free one.
        page: where it is shown instead of on a page of its own.
    """

    def __init__(self, port: int = 0, page: ServedScene | None = None) -> None:
        self.scene: CoverScene = CoverScene(port=port, page=page)
        self.topics = {
            interfaces.COVER_DESCRIPTION: self.show_description,
            interfaces.COVER_STATE: self.show_state,
        }
        self._nodes = self._motors = 0

    def show_description(self, message: String) -> None:
        """Take another cover.

        Raises:
            InvalidInputError: no description of a cover.
        """
        cover, _, content = cover_from_description(message.data)
        try:
            limit, body, pose = float(content.get("rate_limit", 1.0)), None, None
            if "body" in content:
                body = float(content["body"]["radius"]), float(content["body"]["length"])
                numbers = [float(value) for value in content["body"]["pose"]]
                pose = make_transform(matrix_from_quat_xyzw(numbers[3:]), numbers[:3])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                "cover description", repr(error)[:80], "radius, length and pose of the body"
            ) from None
        self.scene.set_cover(cover, limit, body, pose)
        self._nodes, self._motors = cover.node_count, len(cover.motors)

    def show_state(self, message: CoverState) -> None:
        """Show a state of the cover that was described; before that, nothing.

        Raises:
            InvalidInputError: a state of another cover.
        """
        count = len(message.angle_errors)
        if not self._nodes:
            return
        if count != self._nodes or len(message.positions) != 3 * count or len(message.rotations) != 9 * count:
            raise InvalidInputError("cover state", f"{count} nodes", f"{self._nodes}, as described")
        points = np.array(message.target_points).reshape(-1, 3)
        triangles = np.array(message.target_triangles, dtype=np.int64).reshape(-1, 3)
        rates = np.array(message.motor_rates)
        figures = {
            "motor speed, mean": f"{np.degrees(np.abs(rates).mean()) if len(rates) else 0.0:.2f}°/s",
            "degrees of freedom": str(message.dof),
            "condition": f"{message.condition:.3g}",
            "axes at their limit": str(message.saturated),
            "step": f"{message.step_time * 1e3:.1f} ms",
            "late commands": f"{message.missed_share * 100.0:.2f} %",
            "target time": f"{message.target_time:.1f} s",
        }
        self.scene.show(
            CoverView(
                np.array(message.positions).reshape(-1, 3), np.array(message.rotations).reshape(-1, 3, 3),
                np.array(message.angle_errors), np.array(message.position_errors), rates, points, triangles,
                message.status, figures,
            )
        )  # fmt: skip
