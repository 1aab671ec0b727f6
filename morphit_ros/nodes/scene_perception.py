"""Depth clouds of two cameras, or more, to objects on a table: on request, and at a rate of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from morphit_interfaces.msg import SegmentedObjectArray, TablePlane
from morphit_interfaces.srv import Segment
from morphit_ros.budgets import MOST_WAITING
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.memory.tracks import ObjectTracks, View
from morphit_ros.memory.whole_shape import KnownSurface
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.warm_up import warm_up
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.fixtures import Fixtures
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.conversions import cloud_from_message, seconds_from_stamp
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig, CameraFrameConfig, CameraFrames
from morphit_ros.ros.core.guarded import Turns
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.neural.known_object import KnownObjectConfig, KnownObjectMatch
from morphit_ros.ros.scene.camera_clouds import CameraClouds, CameraCloudsConfig, CloudPair
from morphit_ros.ros.scene.messages import object_name, perception_of_request, wanted_number
from morphit_ros.ros.scene.publisher import ScenePublisher
from morphit_ros.ros.scene.self_filter import SelfFilter
from morphit_ros.ros.scene.whole_shapes import SceneShapes
from morphit_ros.ros.scene.world_objects import TELLING, describe_shapes, describe_tracks, is_perceived

# Requests of a burst that are held until a thread refuses them.
_MOST_REQUESTS = 1000


@dataclass(frozen=True)
class ScenePerceptionConfig(Config):
    """What the node adds to the perception pipeline."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    rate: float = parameter(
        1.0, "Most scenes a second without a request; 0: only on request [Hz]", minimum=0.0, maximum=30.0
    )
    self_filter: bool = parameter(True, "Remove the robot's own points with its sphere model")
    fixtures: str = parameter("", "YAML file with what stands around the robot for good; empty: nothing")
    fixture_margin: float = parameter(0.01, "Points this close to a fixture belong to it [m]", minimum=0.0, maximum=0.1)
    keep_unseen: float = parameter(
        60.0, "Objects that no camera can see now stay in the world for so long [s]", minimum=0.0, maximum=3600.0
    )
    whole_shapes: bool = parameter(
        False,
        "Objects of the world are superovoids near all that several looks saw of them, completed, instead of the "
        "convex hull of the last look down to the table",
    )
    use_neural_object: bool = parameter(
        False, "With whole_shapes: take the sides that were not seen from `neural_object`, where that is the object"
    )


CONFIGS = (
    ScenePerceptionConfig, CameraCloudsConfig, PerceptionConfig, BaseFrameConfig, CameraFrameConfig, KnownObjectConfig,
)  # fmt: skip


class ScenePerception(Node):
    """Keeps the newest clouds; segments them when asked, and at most `rate` times a second."""

    def __init__(self) -> None:
        super().__init__("scene_perception")
        config, clouds_config, self._perception, base_config, camera_config, known = declare_configs(self, CONFIGS)
        robot = RobotConfiguration.load(config.robot)
        world_frame = self._perception.world_frame
        # Before the service is there: the first request must not wait for compilers.
        warm_up()
        self._diagnostics = Diagnostics(self)
        self._frames = CameraFrames(self, world_frame, camera_config)
        base = BaseFrame(self, world_frame, base_config)
        self._self_filter = SelfFilter(self, robot, base, self._diagnostics) if config.self_filter else None
        self._done_stamp = -1.0
        fixtures = self._fixtures = Fixtures(config.fixtures, config.fixture_margin)
        if taken := [solid.name for solid in fixtures.solids if is_perceived(solid.name)]:
            raise InvalidInputError(
                "fixtures", f"an object called '{taken[0]}'", "a name that perception does not give"
            )
        self._tracks = ObjectTracks(config.keep_unseen)
        self._match = KnownObjectMatch(self, known, config.whole_shapes and config.use_neural_object)
        self._shapes = SceneShapes(self._known_surface) if config.whole_shapes else None
        self._out = ScenePublisher(self, base, robot.base_link, fixtures.solids, config.whole_shapes)
        # One scene after the other; what may not wait for its turn is refused at once, and needs a thread for that.
        self._turns = Turns(interfaces.SEGMENT.name)
        self._clouds = CameraClouds(self, MutuallyExclusiveCallbackGroup(), clouds_config, self._perception)
        interfaces.SEGMENT.serve(self, self._on_segment, ReentrantCallbackGroup(), depth=_MOST_REQUESTS)
        if config.rate > 0.0:
            steady_timer(self, 1.0 / config.rate, self._on_timer, MutuallyExclusiveCallbackGroup())

    def _on_timer(self) -> None:
        try:
            with self._turns.if_free() as free:
                views = self._clouds.fresh()
                if free and views.stamp != self._done_stamp:
                    self._done_stamp = views.stamp
                    self._segment(views, self._perception)
        except MorphitError as error:
            self._diagnostics.report(WARN, str(error), self._counts(), periodic=True)

    def _on_segment(self, request: Segment.Request, response: Segment.Response) -> Segment.Response:
        try:
            with self._turns.turn():
                views, config = self._clouds.fresh(), perception_of_request(request, self._perception)
                number = wanted_number(request)
                scene, response.objects, response.table = self._segment(views, config, number)
                response.message = scene.message
                if number is not None and scene.status is SceneStatus.TARGET_NOT_FOUND:
                    why = self._tracks.why_not_seen(number)
                    response.message = f"{object_name(number)} is not seen: {why}; {scene.message}"
            response.success = scene.status is SceneStatus.OK
            response.registration_residual = scene.registration_residual
        except MorphitError as error:
            response.message = str(error)
            self._diagnostics.report(ERROR, response.message, self._counts())
        return response

    def _segment(
        self, views: CloudPair, config: PerceptionConfig, number: int | None = None
    ) -> tuple[Scene, SegmentedObjectArray, TablePlane]:
        """A scene; its target is the object of a number, if one is given."""
        T_world_left, T_world_right = self._pose("left", views), self._pose("right", views)
        known = T_world_left is not None or T_world_right is not None
        # Without any pose the scene is in the left camera's frame, and says so: nobody can mistake it for the world.
        frame = config.world_frame if known else views.frame
        robot = self._self_filter.spheres(views.stamp) if known and self._self_filter is not None else None
        left, right = (None if message is None else cloud_from_message(message) for message in views[:2])
        standing = self._fixtures.hold if self._fixtures.solids else None
        more = {
            name: (cloud_from_message(message), pose)
            for name, message in views.more.items()
            if (pose := self._pose_of(name, message)) is not None
        }
        carried = None if self._self_filter is None else self._self_filter.carried

        def named(clouds: Sequence[PointCloud]) -> int | None:
            return self._tracks.find(number, clouds, carried) if known and number is not None else None

        scene = perceive(
            left, right, T_world_left, T_world_right, config, robot_spheres=robot, known=standing, more=more,
            choose=None if number is None else named,
        )  # fmt: skip
        tracks, told, shapes = None, {}, {}
        if known and scene.status in TELLING:
            # What a scene that failed lacks is not known to be away: the world stays as it was seen last.
            clouds = [(scene.T_world_left, left), (scene.T_world_right, right), *((p, c) for c, p in more.values())]
            measured = [View(pose, cloud.points) for pose, cloud in clouds if pose is not None and cloud is not None]
            gone = self._tracks.see(scene.objects, measured, views.stamp, carried)
            tracks = self._tracks.tracks
            told = describe_tracks(tracks, gone, views.stamp)
            numbers = [track.number for track in tracks if track.index is not None]
            if self._shapes is not None:
                told["problem with shapes"] = self._shapes.see(scene, tracks, views.stamp)
                shapes = self._shapes.of(tracks)
                told["shapes of objects"] = describe_shapes(shapes, views.stamp)
        else:
            numbers = self._tracks.new_numbers(len(scene.objects))
        objects, table = self._out.publish(scene, frame, views.stamp, tracks, numbers, shapes)
        values = {
            "registration residual [m]": scene.registration_residual, **self._counts(),
            **{f"{stage} [points]": count for stage, count in scene.counts.items()},
            **{f"{stage} [s]": spent for stage, spent in scene.timings.items()}, **told,
        }  # fmt: skip
        self._diagnostics.report(OK if scene.status is SceneStatus.OK else WARN, scene.message, values, periodic=True)
        return scene, objects, table

    def _pose(self, camera: str, views: CloudPair) -> Array | None:
        message = views.left if camera == "left" else views.right
        return None if message is None else self._pose_of(camera, message)

    def _pose_of(self, camera: str, message: PointCloud2) -> Array | None:
        return self._frames.T_world_camera(camera, message.header.frame_id, seconds_from_stamp(message.header.stamp))

    def _known_surface(self, points: Array) -> KnownSurface | None:
        """Of the neural object, if points (N, 3) in the world are of it [m]."""
        try:
            found, _ = self._match.find(points, self._perception.world_frame)
        except MorphitError as error:
            text = f"{interfaces.NEURAL_OBJECT.name} is not used: {error}"
            self.get_logger().error(text, throttle_duration_sec=10.0)
            return None
        if found is None or found.surface is None:
            return None
        return KnownSurface(found.surface.points, f"of '{found.message.name}' {found.message.content_hash[:8]}")

    def _counts(self) -> dict[str, int]:
        return {"unknown transforms": self._frames.failures, **self._clouds.counts()}


def main(args: list[str] | None = None) -> None:
    run_node(ScenePerception, args, threads=4 + MOST_WAITING)


if __name__ == "__main__":
    main()
