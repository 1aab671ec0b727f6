"""Two depth clouds to objects on a table: on request, and at a rate of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from geometry_msgs.msg import PointStamped
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from morphit_interfaces.srv import Segment
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.synchronizer import StampedPair, StampSynchronizer
from morphit_ros.perception.warm_up import warm_up
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros import interfaces
from morphit_ros.ros.conversions import (
    array_from_point,
    cloud_from_message,
    header,
    message_from_cloud,
    seconds_from_stamp,
)
from morphit_ros.ros.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.frames import BaseFrame, BaseFrameConfig, CameraFrameConfig, CameraFrames
from morphit_ros.ros.markers import scene_markers
from morphit_ros.ros.parameters import declare_configs
from morphit_ros.ros.runner import run_node
from morphit_ros.ros.scene_messages import TablePatch, message_from_objects, message_from_table
from morphit_ros.ros.self_filter import SelfFilter

_CAMERAS = {"left": interfaces.LEFT_POINTS, "right": interfaces.RIGHT_POINTS}
_EXTRINSICS = {"left": interfaces.LEFT_EXTRINSICS, "right": interfaces.RIGHT_EXTRINSICS}


@dataclass(frozen=True)
class ScenePerceptionConfig(Config):
    """What the node adds to the perception pipeline."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    points_reliability: str = parameter(
        "reliable", "QoS of the cloud subscriptions; camera drivers often publish best_effort",
        choices=("reliable", "best_effort"),
    )  # fmt: skip
    points_depth: int = parameter(5, "Depth of the cloud subscriptions", minimum=1, maximum=100)
    rate: float = parameter(
        1.0, "Most scenes a second without a request; 0: only on request [Hz]", minimum=0.0, maximum=30.0
    )
    max_age: float = parameter(
        2.0, "Oldest pair of clouds that a request is answered with [s]", minimum=0.05, maximum=60.0
    )
    self_filter: bool = parameter(True, "Remove the robot's own points with its sphere model")


CONFIGS = (ScenePerceptionConfig, PerceptionConfig, BaseFrameConfig, CameraFrameConfig)


class ScenePerception(Node):
    """Keeps the newest pair of clouds; segments it when asked, and at most `rate` times a second."""

    def __init__(self) -> None:
        super().__init__("scene_perception")
        self._config, self._perception, base_config, camera_config = declare_configs(self, CONFIGS)
        robot = RobotConfiguration.load(self._config.robot)
        world_frame = self._perception.world_frame
        # Before the service is there: the first request must not wait for compilers.
        warm_up()
        self._diagnostics = Diagnostics(self)
        self._frames = CameraFrames(self, world_frame, camera_config, _EXTRINSICS)
        base = BaseFrame(self, world_frame, base_config)
        self._self_filter = SelfFilter(self, robot, base) if self._config.self_filter else None
        self._synchronizer = StampSynchronizer(self._perception.sync_tolerance, self._config.points_depth)
        self._pair: StampedPair[PointCloud2] | None = None
        self._done_stamp = -1.0
        self._out = {
            topic: self.create_publisher(topic.type, topic.name, topic.quality.profile())
            for node in interfaces.NODES if node.executable == "scene_perception" for topic in node.publishes
        }  # fmt: skip
        clouds, work = MutuallyExclusiveCallbackGroup(), MutuallyExclusiveCallbackGroup()
        best_effort = self._config.points_reliability == "best_effort"
        for camera, topic in _CAMERAS.items():
            self.create_subscription(
                topic.type, topic.name, lambda message, camera=camera: self._on_cloud(camera, message),
                topic.quality.profile(self._config.points_depth, best_effort), callback_group=clouds,
            )  # fmt: skip
        self.create_service(Segment, interfaces.SEGMENT.name, self._on_segment, callback_group=work)
        if self._config.rate > 0.0:
            steady = Clock(clock_type=ClockType.STEADY_TIME)
            self.create_timer(1.0 / self._config.rate, self._on_timer, callback_group=work, clock=steady)

    def _on_cloud(self, camera: str, message: PointCloud2) -> None:
        # Only kept here, read when it is segmented: this keeps up with any camera.
        pair = self._synchronizer.push(camera, seconds_from_stamp(message.header.stamp), message)
        if pair is not None:
            self._pair = pair

    def _on_timer(self) -> None:
        pair = self._pair
        if pair is None:
            self._diagnostics.report(WARN, self._missing())
            return
        stamp = pair.left_stamp
        if stamp != self._done_stamp:
            self._done_stamp = stamp
            try:
                self._publish(self._perceive(pair, self._perception), stamp)
            except MorphitError as error:
                self._diagnostics.report(ERROR, str(error), self._counts())

    def _on_segment(self, request: Segment.Request, response: Segment.Response) -> Segment.Response:
        try:
            pair = self._fresh_pair()
            stamp = pair.left_stamp
            scene = self._perceive(pair, self._with_rule(request))
            response.objects, response.table = self._publish(scene, stamp)
            response.success = scene.status is SceneStatus.OK
            response.message = scene.message
            response.registration_residual = scene.registration_residual
        except MorphitError as error:
            response.message = str(error)
            self._diagnostics.report(ERROR, response.message, self._counts())
        return response

    def _fresh_pair(self) -> StampedPair[PointCloud2]:
        if self._pair is None:
            raise InvalidInputError("clouds", self._missing(), "a cloud of each camera with matching stamps")
        stamp, now = self._pair.left_stamp, self._now()
        if not -self._config.max_age <= now - stamp <= self._config.max_age:
            raise InvalidInputError(
                "clouds", f"the last pair is from {stamp:.3f} s, now is {now:.3f} s",
                f"a pair within {self._config.max_age:g} s",
                f"{self._missing()}. Check the cameras, and that cameras and this node use one clock (use_sim_time).",
            )  # fmt: skip
        return self._pair

    def _now(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

    def _missing(self) -> str:
        return self._synchronizer.status(self._now()).message

    def _with_rule(self, request: Segment.Request) -> PerceptionConfig:
        rules = {Segment.Request.RULE_LARGEST: "largest", Segment.Request.RULE_NEAREST: "nearest"}
        rules[Segment.Request.RULE_INDEX] = "index"
        if request.rule == Segment.Request.RULE_DEFAULT:
            return self._perception
        if request.rule not in rules:
            raise InvalidInputError("rule", request.rule, f"0 to {max(rules)}")
        target = replace(
            self._perception.target, rule=rules[request.rule], index=request.index,
            point=tuple(self._world_point(request.point)),
        )  # fmt: skip
        return replace(self._perception, target=target)

    def _world_point(self, point: PointStamped):
        frame = point.header.frame_id
        if frame not in ("", self._perception.world_frame):
            raise InvalidInputError("point: frame", frame, f"the scene's frame {self._perception.world_frame}")
        return array_from_point(point.point)

    def _perceive(self, pair: StampedPair[PointCloud2], config: PerceptionConfig) -> Scene:
        poses = [
            self._frames.T_world_camera("left", pair.left.header.frame_id, pair.left_stamp),
            self._frames.T_world_camera("right", pair.right.header.frame_id, pair.right_stamp),
        ]
        stamp = pair.left_stamp
        robot = self._self_filter.spheres(stamp) if self._self_filter is not None else None
        clouds = [cloud_from_message(message) for message in (pair.left, pair.right)]
        return perceive(*clouds, *poses, config, robot_spheres=robot)

    def _publish(self, scene: Scene, stamp: float):
        world = header(self._perception.world_frame, stamp)
        table = None if scene.table is None else TablePatch(scene.table.T_world_table, scene.table.size)
        objects = message_from_objects(scene.objects, scene.target, world)
        plane = message_from_table(table, 0.0 if scene.table is None else scene.table.residual, world)
        self._out[interfaces.SCENE].publish(message_from_cloud(scene.cloud, world.frame_id, stamp))
        self._out[interfaces.OBJECTS].publish(objects)
        self._out[interfaces.TABLE].publish(plane)
        if scene.target_cloud is not None:
            message = message_from_cloud(scene.target_cloud, world.frame_id, stamp)
            self._out[interfaces.OBJECT_CLOUD].publish(message)
        boxes = [(cloud.points.min(axis=0), cloud.points.max(axis=0)) for cloud in scene.objects]
        markers = scene_markers(
            world, table.T_world_table if table else None, table.size if table else (0, 0), boxes, scene.target
        )
        self._out[interfaces.SCENE_MARKERS].publish(markers)
        values = {
            "registration residual [m]": scene.registration_residual, **self._counts(),
            **{f"{stage} [points]": count for stage, count in scene.counts.items()},
            **{f"{stage} [s]": spent for stage, spent in scene.timings.items()},
        }  # fmt: skip
        self._diagnostics.report(OK if scene.status is SceneStatus.OK else WARN, scene.message, values)
        return objects, plane

    def _counts(self) -> dict[str, object]:
        status = self._synchronizer.status(self._now())
        return {
            "unknown transforms": self._frames.failures, "pairs": status.matched,
            "dropped left": status.dropped_left, "dropped right": status.dropped_right,
        }  # fmt: skip


def main(args: list[str] | None = None) -> None:
    run_node(ScenePerception, args, threads=3)


if __name__ == "__main__":
    main()
