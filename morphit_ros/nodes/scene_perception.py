"""Two depth clouds to objects on a table: on request, and at a rate of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from geometry_msgs.msg import PointStamped
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from morphit_interfaces.msg import SegmentedObjectArray, TablePlane
from morphit_interfaces.srv import Segment
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.synchronizer import StampSynchronizer
from morphit_ros.perception.warm_up import warm_up
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import (
    array_from_point,
    cloud_from_message,
    seconds_from_stamp,
)
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig, CameraFrameConfig, CameraFrames
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.scene.publisher import ScenePublisher
from morphit_ros.ros.scene.self_filter import SelfFilter

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


class _Views(NamedTuple):
    """Clouds to be segmented together; one may be missing. `stamp` [s] is that of the left one, if it is there."""

    left: PointCloud2 | None
    right: PointCloud2 | None
    stamp: float


class ScenePerception(Node):
    """Keeps the newest clouds; segments them when asked, and at most `rate` times a second."""

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
        self._pair: _Views | None = None
        self._newest: dict[str, PointCloud2] = {}
        self._done_stamp = -1.0
        self._out = ScenePublisher(self)
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
        self._newest[camera] = message
        pair = self._synchronizer.push(camera, seconds_from_stamp(message.header.stamp), message)
        if pair is not None:
            self._pair = _Views(pair.left, pair.right, pair.left_stamp)

    def _on_timer(self) -> None:
        try:
            views = self._fresh_views()
            if views.stamp != self._done_stamp:
                self._done_stamp = views.stamp
                self._segment(views, self._perception)
        except MorphitError as error:
            self._diagnostics.report(WARN, str(error), self._counts(), periodic=True)

    def _on_segment(self, request: Segment.Request, response: Segment.Response) -> Segment.Response:
        try:
            scene, response.objects, response.table = self._segment(self._fresh_views(), self._with_rule(request))
            response.success = scene.status is SceneStatus.OK
            response.message = scene.message
            response.registration_residual = scene.registration_residual
        except MorphitError as error:
            response.message = str(error)
            self._diagnostics.report(ERROR, response.message, self._counts())
        return response

    def _fresh_views(self) -> _Views:
        """The newest pair; the newest single cloud where one view is allowed and no pair is fresh."""
        if self._pair is not None and self._is_fresh(self._pair.stamp):
            return self._pair
        if self._perception.allow_single_view:
            stamps = {camera: seconds_from_stamp(cloud.header.stamp) for camera, cloud in self._newest.items()}
            fresh = {camera: stamp for camera, stamp in stamps.items() if self._is_fresh(stamp)}
            if fresh:
                camera = max(fresh, key=lambda name: fresh[name])
                views = {"left": None, "right": None, camera: self._newest[camera]}
                return _Views(**views, stamp=fresh[camera])
        missing = self._synchronizer.status(self._now()).message
        if self._pair is None:
            raise InvalidInputError("clouds", missing, "a cloud of each camera with matching stamps")
        raise InvalidInputError(
            "clouds", f"the last pair is from {self._pair.stamp:.3f} s, now is {self._now():.3f} s",
            f"a pair within {self._config.max_age:g} s",
            f"{missing}. Check the cameras, and that cameras and this node use one clock (use_sim_time).",
        )  # fmt: skip

    def _is_fresh(self, stamp: float) -> bool:
        return abs(self._now() - stamp) <= self._config.max_age

    def _now(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

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

    def _segment(self, views: _Views, config: PerceptionConfig) -> tuple[Scene, SegmentedObjectArray, TablePlane]:
        poses = {camera: self._pose(camera, views) for camera in _CAMERAS}
        known = any(pose is not None for pose in poses.values())
        # Without any pose the scene is in the left camera's frame, and says so: nobody can mistake it for the world.
        frame = config.world_frame if known else (views.left or views.right).header.frame_id
        robot = self._self_filter.spheres(views.stamp) if known and self._self_filter is not None else None
        clouds = [None if message is None else cloud_from_message(message) for message in (views.left, views.right)]
        scene = perceive(*clouds, poses["left"], poses["right"], config, robot_spheres=robot)
        objects, table = self._out.publish(scene, frame, views.stamp)
        values = {
            "registration residual [m]": scene.registration_residual, **self._counts(),
            **{f"{stage} [points]": count for stage, count in scene.counts.items()},
            **{f"{stage} [s]": spent for stage, spent in scene.timings.items()},
        }  # fmt: skip
        self._diagnostics.report(OK if scene.status is SceneStatus.OK else WARN, scene.message, values, periodic=True)
        return scene, objects, table

    def _pose(self, camera: str, views: _Views):
        message = views.left if camera == "left" else views.right
        if message is None:
            return None
        return self._frames.T_world_camera(camera, message.header.frame_id, seconds_from_stamp(message.header.stamp))

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
