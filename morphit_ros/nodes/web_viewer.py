"""A browser view of all that a graph publishes, with buttons for the arm where asked for; on loopback only."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rclpy.node import Node

from morphit_ros.configuration import Config, parameter
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.diagnostics import OK, Diagnostics
from morphit_ros.ros.core.frames import BaseFrameConfig, CameraFrameConfig
from morphit_ros.ros.core.latest import LatestMessages, Viewer
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.scene.system_view import SystemViewer

# As of the runner for nodes of several threads [s].
_SWITCH_INTERVAL = 0.0005


@dataclass(frozen=True)
class WebViewerConfig(Config):
    """What is shown and where."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    scene: str = parameter(
        "system", "What is shown: all that the graph publishes, or only a morphing cover, or only a neural object",
        choices=("system", "cover", "neural"),
    )  # fmt: skip
    port: int = parameter(8080, "TCP port on the loopback interface; 0: a free one", minimum=0, maximum=65535)
    points_reliability: str = parameter(
        "reliable", "QoS of the cloud subscriptions; camera drivers often publish best_effort",
        choices=("reliable", "best_effort"),
    )  # fmt: skip
    rate: float = parameter(5.0, "Most updates a second [Hz]", minimum=0.2, maximum=30.0)
    camera_clouds: bool = parameter(True, "Show the cameras' clouds; without them only what was segmented is received")
    max_points: int = parameter(20_000, "Points shown of a cloud", minimum=100, maximum=1_000_000)
    world_frame: str = parameter("world", "Frame of what is shown")
    controls: bool = parameter(
        False, "With scene system: buttons for the arm, and a target chosen by a click; false: the page only shows"
    )
    job_nodes: tuple[str, ...] = parameter((), "With scene system: nodes that the page says it waits for")
    node_timeout: float = parameter(
        1.0, "Silence after which one of them counts as hung [s of wall time]", minimum=0.5, maximum=60.0
    )


CONFIGS = (WebViewerConfig, BaseFrameConfig, CameraFrameConfig)


class WebViewer(Node):
    """Keeps the newest message of each topic and shows what has changed, at most `rate` times a second."""

    def __init__(self) -> None:
        super().__init__("web_viewer")
        config, base, cameras = declare_configs(self, CONFIGS)
        self._shown = viewer = self._viewer(config, base, cameras)
        diagnostics = Diagnostics(self)
        topics = dict(viewer.topics)
        if not config.camera_clouds:
            for cloud in interfaces.POINTS.values():
                topics.pop(cloud, None)
        best_effort = config.points_reliability == "best_effort"
        self._latest = LatestMessages(
            self, topics, config.rate, best_effort, diagnostics, viewer.is_wanted, viewer.is_ready,
            lambda: viewer.scene.is_watched,
        )  # fmt: skip
        if isinstance(viewer, SystemViewer) and viewer.controls is not None:
            # The heart beats in a thread of its own, which must not wait for those that draw.
            sys.setswitchinterval(_SWITCH_INTERVAL)
            # Last of all: with these, an error in what is drawn would end the node.
            self.end_motion, self.motion_ended = viewer.controls.end_motion, viewer.controls.motion_ended
        diagnostics.report(OK, f"view at {viewer.scene.url}")

    def _viewer(self, config: WebViewerConfig, base: BaseFrameConfig, cameras: CameraFrameConfig) -> Viewer:
        if config.scene == "cover":
            from morphit_ros.ros.cover.view import CoverViewer

            return CoverViewer(config.port)
        if config.scene == "neural":
            from morphit_ros.ros.neural.view import NeuralViewer

            return NeuralViewer(config.port, f"{self.get_namespace().rstrip('/')}/neural_object")
        return SystemViewer(
            self, config.port, config.max_points, config.robot, config.world_frame, base, cameras, config.job_nodes,
            config.controls, config.node_timeout,
        )  # fmt: skip

    def destroy_node(self) -> None:
        self._shown.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    run_node(WebViewer, args, threads=1)


if __name__ == "__main__":
    main()
