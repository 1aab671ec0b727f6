"""A browser view of robot, spheres, clouds, object, grasps and the state of the job; on loopback only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from sensor_msgs.msg import JointState, PointCloud2
from std_msgs.msg import String

from morphit_interfaces.msg import GraspArray, SphereModel, TablePlane
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.scene import ViewerScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import (
    cloud_from_message,
    joint_state_from_message,
    matrix_from_pose,
    seconds_from_stamp,
)
from morphit_ros.ros.core.diagnostics import OK, Diagnostics
from morphit_ros.ros.core.endpoints import Topic
from morphit_ros.ros.core.frames import (
    BaseFrame,
    BaseFrameConfig,
    CameraFrameConfig,
    CameraFrames,
)
from morphit_ros.ros.core.latest import LatestMessages
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.scene.messages import table_from_message
from morphit_ros.ros.spheres.messages import link_spheres_from_message

if TYPE_CHECKING:
    from morphit_ros.display.cover_scene import CoverScene
    from morphit_ros.display.neural_scene import NeuralScene


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
    max_points: int = parameter(20_000, "Points shown of a cloud", minimum=100, maximum=1_000_000)
    world_frame: str = parameter("world", "Frame of what is shown")


CONFIGS = (WebViewerConfig, BaseFrameConfig, CameraFrameConfig)


class WebViewer(Node):
    """Keeps the newest message of each topic and shows what has changed, at most `rate` times a second."""

    def __init__(self) -> None:
        super().__init__("web_viewer")
        self._config, base_config, camera_config = declare_configs(self, CONFIGS)
        self._scene: ViewerScene | CoverScene | NeuralScene
        if self._config.scene == "cover":
            topics = self._cover_topics()
        elif self._config.scene == "neural":
            topics = self._neural_topics()
        else:
            topics = self._workcell_topics(base_config, camera_config)
        self._has_robot = False
        diagnostics = Diagnostics(self)
        best_effort = self._config.points_reliability == "best_effort"
        self._latest = LatestMessages(
            self, topics, self._config.rate, best_effort, diagnostics, self._is_wanted, self._is_ready
        )
        diagnostics.report(OK, f"view at {self._scene.url}")

    def _cover_topics(self) -> dict[Topic, Callable[[Any], None]]:
        from morphit_ros.ros.cover.view import CoverViewer

        viewer = CoverViewer(self._config.port)
        self._scene = viewer.scene
        return {
            interfaces.COVER_DESCRIPTION: viewer.show_description,
            interfaces.COVER_STATE: viewer.show_state,
        }

    def _neural_topics(self) -> dict[Topic, Callable[[Any], None]]:
        from morphit_ros.ros.neural.view import NeuralViewer

        name = f"{self.get_namespace().rstrip('/')}/neural_object"
        viewer = NeuralViewer(self._config.port, name)
        self._scene, self._wants_diagnostics = viewer.scene, viewer.is_about_it
        # The object before its motion.
        return {
            interfaces.NEURAL_OBJECT: viewer.show_object,
            interfaces.NEURAL_MOTION: viewer.show_motion,
            interfaces.DIAGNOSTICS: viewer.show_diagnostics,
        }

    def _is_wanted(self, topic: Topic, message: Any) -> bool:
        # All nodes share this topic: the newest message of another must not take the place of the wanted one.
        return topic is not interfaces.DIAGNOSTICS or self._wants_diagnostics(message)

    def _is_ready(self, topic: Topic) -> bool:
        return self._has_robot or topic not in (interfaces.SPHERE_MODEL, interfaces.JOINT_STATES)

    def _workcell_topics(
        self, base_config: BaseFrameConfig, camera_config: CameraFrameConfig
    ) -> dict[Topic, Callable[[Any], None]]:
        self._robot = RobotConfiguration.load(self._config.robot)
        self._gripper = Gripper.load(self._robot.gripper)
        self._base = BaseFrame(self, self._config.world_frame, base_config)
        cameras = {"left": interfaces.LEFT_EXTRINSICS, "right": interfaces.RIGHT_EXTRINSICS}
        self._frames = CameraFrames(self, self._config.world_frame, camera_config, cameras)
        self._workcell = self._scene = ViewerScene(port=self._config.port, max_points=self._config.max_points)
        # In this order: joints and spheres need the robot.
        return {
            interfaces.ROBOT_DESCRIPTION: self._show_robot,
            interfaces.SPHERE_MODEL: self._show_spheres,
            interfaces.JOINT_STATES: self._show_joints,
            interfaces.LEFT_POINTS: lambda message: self._show_cloud("left", message),
            interfaces.RIGHT_POINTS: lambda message: self._show_cloud("right", message),
            interfaces.OBJECT_CLOUD: self._show_object,
            interfaces.TABLE: self._show_table,
            interfaces.GRASPS: self._show_grasps,
            interfaces.JOB_STATE: self._show_job_state,
        }

    def _show_robot(self, message: String) -> None:
        self._workcell.set_robot(message.data, self._base.T_world_base(self._robot.base_link))
        self._has_robot = True

    def _show_spheres(self, message: SphereModel) -> None:
        self._workcell.set_robot_spheres(link_spheres_from_message(message))

    def _show_joints(self, message: JointState) -> None:
        self._workcell.set_joints(joint_state_from_message(message).as_dict())

    def _show_cloud(self, camera: str, message: PointCloud2) -> None:
        pose = self._frames.T_world_camera(camera, message.header.frame_id, seconds_from_stamp(message.header.stamp))
        if pose is not None:
            self._workcell.set_cloud(camera, cloud_from_message(message).transformed(pose).points)

    def _show_object(self, message: PointCloud2) -> None:
        cloud = cloud_from_message(message)
        self._workcell.set_object(cloud.points, cloud.normals)

    def _show_table(self, message: TablePlane) -> None:
        table = table_from_message(message)
        if table is None:
            self._workcell.clear("table")
        else:
            self._workcell.set_table(table.T_world_table, table.size)

    def _show_grasps(self, message: GraspArray) -> None:
        grasps = [(matrix_from_pose(grasp.pose), grasp.aperture, grasp.score) for grasp in message.grasps]
        self._workcell.set_grasps(grasps, self._gripper)

    def _show_job_state(self, message: DiagnosticStatus) -> None:
        try:
            times = {pair.key: float(pair.value) for pair in message.values}
        except ValueError as error:
            raise InvalidInputError("durations", str(error), "numbers [s]") from None
        self._workcell.set_status(message.message, times)

    def destroy_node(self) -> None:
        self._scene.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    run_node(WebViewer, args, threads=1)


if __name__ == "__main__":
    main()
