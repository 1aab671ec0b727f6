"""A browser view of robot, spheres, clouds, object, grasps and the state of the job; on loopback only."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node

from morphit_ros.configuration import Config, parameter
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.diagnostics import OK, Diagnostics
from morphit_ros.ros.core.frames import BaseFrameConfig, CameraFrameConfig
from morphit_ros.ros.core.latest import LatestMessages, Viewer
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.scene.view import WorkcellViewer


@dataclass(frozen=True)
class WebViewerConfig(Config):
    """What is shown and where."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    scene: str = parameter(
        "workcell", "What is shown: robot and workcell, a morphing cover, or a neural object",
        choices=("workcell", "cover", "neural"),
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


CONFIGS = (WebViewerConfig, BaseFrameConfig, CameraFrameConfig)


class WebViewer(Node):
    """Keeps the newest message of each topic and shows what has changed, at most `rate` times a second."""

    def __init__(self) -> None:
        super().__init__("web_viewer")
        config, base, cameras = declare_configs(self, CONFIGS)
        viewer = self._viewer(config, base, cameras)
        self._scene = viewer.scene
        diagnostics = Diagnostics(self)
        topics = dict(viewer.topics)
        if not config.camera_clouds:
            for cloud in (interfaces.LEFT_POINTS, interfaces.RIGHT_POINTS):
                topics.pop(cloud, None)
        best_effort = config.points_reliability == "best_effort"
        self._latest = LatestMessages(
            self, topics, config.rate, best_effort, diagnostics, viewer.is_wanted, viewer.is_ready
        )
        diagnostics.report(OK, f"view at {self._scene.url}")

    def _viewer(self, config: WebViewerConfig, base: BaseFrameConfig, cameras: CameraFrameConfig) -> Viewer:
        if config.scene == "cover":
            from morphit_ros.ros.cover.view import CoverViewer

            return CoverViewer(config.port)
        if config.scene == "neural":
            from morphit_ros.ros.neural.view import NeuralViewer

            return NeuralViewer(config.port, f"{self.get_namespace().rstrip('/')}/neural_object")
        return WorkcellViewer(self, config.port, config.max_points, config.robot, config.world_frame, base, cameras)

    def destroy_node(self) -> None:
        self._scene.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    run_node(WebViewer, args, threads=1)


if __name__ == "__main__":
    main()
