"""The topics of a workcell in a browser view."""

from __future__ import annotations

from functools import partial

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from sensor_msgs.msg import JointState, PointCloud2
from std_msgs.msg import String

from morphit_interfaces.msg import BodyDistance, GraspArray, SegmentedObjectArray, SphereModel, TablePlane
from morphit_ros.display.scene import ViewerScene
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.grasping.suction.cup import load_gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import (
    cloud_from_message,
    joint_state_from_message,
    matrix_from_pose,
    seconds_from_stamp,
)
from morphit_ros.ros.core.endpoints import Topic
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig, CameraFrameConfig, CameraFrames
from morphit_ros.ros.core.latest import Viewer
from morphit_ros.ros.scene.messages import cloud_of, object_name, table_from_message
from morphit_ros.ros.spheres.messages import link_spheres_from_message


class WorkcellViewer(Viewer):
    """Shows robot, spheres, clouds, object, table, grasps and the state of the job.

    Args:
        node: follows the poses of cameras and base.
        port: TCP port on the loopback interface; 0: a free one.
        max_points: shown of a cloud.
        robot: a name in config/robots or a YAML file.
        world_frame: of what is shown.
        base: where the robot's base stands.
        cameras: where the cameras stand.
    """

    def __init__(
        self,
        node: Node,
        port: int,
        max_points: int,
        robot: str,
        world_frame: str,
        base: BaseFrameConfig,
        cameras: CameraFrameConfig,
    ) -> None:
        self._robot = RobotConfiguration.load(robot)
        self._gripper = load_gripper(self._robot.gripper)
        self._base = BaseFrame(node, world_frame, base)
        self._frames = CameraFrames(node, world_frame, cameras)
        self.scene: ViewerScene = ViewerScene(port=port, max_points=max_points)
        self._has_robot = False
        # In this order: joints and spheres need the robot.
        self.topics = {
            interfaces.ROBOT_DESCRIPTION: self._show_robot,
            interfaces.SPHERE_MODEL: self._show_spheres,
            interfaces.JOINT_STATES: self._show_joints,
            **{topic: partial(self._show_cloud, camera) for camera, topic in interfaces.POINTS.items()},
            interfaces.OBJECT_CLOUD: self._show_object,
            interfaces.OBJECTS: self._show_objects,
            interfaces.TABLE: self._show_table,
            interfaces.GRASPS: self._show_grasps,
            interfaces.JOB_STATE: self._show_job_state,
            interfaces.SEPARATION: self._show_nearest_pair,
        }

    def is_ready(self, topic: Topic) -> bool:
        return self._has_robot or topic not in (interfaces.SPHERE_MODEL, interfaces.JOINT_STATES)

    def _show_robot(self, message: String) -> None:
        self.scene.set_robot(message.data, self._base.T_world_base(self._robot.base_link))
        self._has_robot = True

    def _show_spheres(self, message: SphereModel) -> None:
        self.scene.set_robot_spheres(link_spheres_from_message(message))

    def _show_joints(self, message: JointState) -> None:
        self.scene.set_joints(joint_state_from_message(message).as_dict())

    def _show_cloud(self, camera: str, message: PointCloud2) -> None:
        pose = self._frames.T_world_camera(camera, message.header.frame_id, seconds_from_stamp(message.header.stamp))
        if pose is not None:
            self.scene.set_cloud(camera, cloud_from_message(message).transformed(pose).points)

    def _show_object(self, message: PointCloud2) -> None:
        cloud = cloud_from_message(message)
        self.scene.set_object(cloud.points, cloud.normals)

    def _show_objects(self, message: SegmentedObjectArray) -> None:
        clouds = [cloud_of(item).finite().points for item in message.objects]
        self.scene.set_objects(clouds, message.target, [object_name(item.id) for item in message.objects])

    def _show_table(self, message: TablePlane) -> None:
        table = table_from_message(message)
        if table is None:
            self.scene.clear("table")
        else:
            self.scene.set_table(table.T_world_table, table.size)

    def _show_grasps(self, message: GraspArray) -> None:
        grasps = [(matrix_from_pose(grasp.pose), grasp.aperture, grasp.score) for grasp in message.grasps]
        self.scene.set_grasps(grasps, self._gripper)

    def _show_nearest_pair(self, message: BodyDistance) -> None:
        if not any(message.link_names):
            self.scene.clear("distances")
            return
        points = np.array([[point.x, point.y, point.z] for point in message.nearest_points])
        T_world_root = self._base.T_world_base(self._robot.base_link)
        self.scene.set_nearest_pair(transform_points(T_world_root, points), message.distance)

    def _show_job_state(self, message: DiagnosticStatus) -> None:
        try:
            times = {pair.key: float(pair.value) for pair in message.values}
        except ValueError as error:
            raise InvalidInputError("durations", str(error), "numbers [s]") from None
        self.scene.set_status(message.message, times, failed=message.level != DiagnosticStatus.OK)
