"""scene_perception as a process: two clouds in, objects out, and an answer that names what is missing."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from geometry_msgs.msg import PointStamped, TransformStamped
from neural_box import neural_object
from rclpy.qos import QoSProfile
from scenes import BOX_SIZE, CAMERAS, camera_cloud

from morphit_interfaces.msg import DistanceShape
from morphit_interfaces.srv import Segment
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, message_from_cloud, point_rows, transform_from_matrix
from morphit_ros.ros.scene.messages import cloud_of, object_name, table_from_message, viewpoints_of

pytestmark = pytest.mark.ros


class Cameras:
    """Camera drivers, two or more."""

    def __init__(self, graph, extrinsics=True, count=2):
        self._graph = graph
        topics, poses = (dict(list(known.items())[:count]) for known in (interfaces.POINTS, interfaces.EXTRINSICS))
        self._out = {camera: graph.publisher(topic) for camera, topic in topics.items()}
        self._poses = []
        for camera, topic in poses.items() if extrinsics else ():
            publisher = graph.publisher(topic)
            publisher.publish(
                TransformStamped(header=header("world"), transform=transform_from_matrix(CAMERAS[camera]))
            )
            self._poses.append(publisher)

    def now(self):
        return self._graph.node.get_clock().now().nanoseconds * 1e-9

    def publish(self, camera, cloud):
        self._out[camera].publish(message_from_cloud(cloud))

    def publish_pair(self, **options):
        stamp = self.now()
        for camera in self._out:
            self.publish(camera, camera_cloud(camera, stamp, **options))


def start(graph, **parameters):
    # The first scene takes seconds on a loaded machine: by default the age of a pair is no matter here.
    process = graph.start("scene_perception", **{"self_filter": False, "rate": 0.0, "max_age": 60.0, **parameters})
    return process, Cameras(graph)


def segment(graph, cameras, request=None, pending=("nothing received", "no stamps within", "pose of the"), **options):
    """Ask until clouds and extrinsics have arrived: publishing and asking take different ways."""
    responses = []

    def answered():
        cameras.publish_pair(**options)
        responses.append(graph.call(interfaces.SEGMENT, request or Segment.Request()))
        return not any(words in responses[-1].message for words in pending)

    graph.wait_until(answered, what="an answer to clouds that have arrived")
    return responses[-1]


def test_a_box_on_a_table_is_found(graph):
    latched = graph.latest(interfaces.OBJECT_CLOUD)
    _, cameras = start(graph)
    response = segment(graph, cameras)
    assert response.success, response.message
    assert len(response.objects.objects) == 1
    cloud = cloud_of(response.objects.objects[response.objects.target])
    low, high = cloud.points.min(axis=0), cloud.points.max(axis=0)
    np.testing.assert_allclose((low + high)[:2] / 2.0, [0.5, 0.0], atol=0.004)
    # The lowest rows are taken for the table's.
    np.testing.assert_allclose((high - low)[:2], BOX_SIZE[:2], atol=0.008)
    assert high[2] == pytest.approx(BOX_SIZE[2], abs=0.004)
    table = table_from_message(response.table)
    np.testing.assert_allclose(table.T_world_table[2, 3], 0.0, atol=0.002)
    assert response.registration_residual < 0.002
    graph.wait_until(lambda: latched, what="the latched object cloud")
    assert latched[-1].header.frame_id == "world"
    # Both cameras saw it and agree; they stood where their poses say.
    seen = response.objects.objects[response.objects.target]
    assert min(seen.left_points, seen.right_points) > 300
    assert seen.consistent
    assert seen.residual < 0.002
    assert 0.5 < seen.confidence <= 1.0
    np.testing.assert_allclose(
        viewpoints_of(response.objects), [CAMERAS["left"][:3, 3], CAMERAS["right"][:3, 3]], atol=0.01
    )
    assert response.objects.obstacles.header == response.objects.header


def test_a_third_camera_shows_the_back_of_a_box(graph):
    graph.start("scene_perception", self_filter=False, rate=0.0, max_age=60.0, cameras=3)
    cameras = Cameras(graph, count=3)
    backs = []

    def answered():
        cameras.publish_pair()
        response = graph.call(interfaces.SEGMENT, Segment.Request())
        if response.success:
            cloud = cloud_of(response.objects.objects[response.objects.target])
            backs.append(int((cloud.normals[:, 0] < -0.9).sum()))
        # The third cloud may come after the answer to the first two.
        return response.success and len(viewpoints_of(response.objects)) == 3

    graph.wait_until(answered, what="a scene of three cameras")
    # The side of 90 by 120 mm that faces the robot, and neither of the first two.
    assert backs[-1] > 800 and min(backs, default=0) in (0, backs[-1])


def test_without_the_third_cloud_two_are_enough(graph):
    _, cameras = start(graph, cameras=3)
    response = segment(graph, cameras)
    assert response.success, response.message
    assert len(viewpoints_of(response.objects)) == 2


def test_the_target_follows_the_request(graph):
    _, cameras = start(graph)
    centers = ((0.45, 0.15), (0.5, -0.12))
    request = Segment.Request(rule=Segment.Request.RULE_NEAREST, point=PointStamped(header=header("world")))
    for x, y in centers:
        request.point.point.x, request.point.point.y = x, y
        response = segment(graph, cameras, request, centers=centers)
        assert response.success, response.message
        centroid = response.objects.objects[response.objects.target].centroid
        assert np.hypot(centroid.x - x, centroid.y - y) < 0.03
    request = Segment.Request(rule=Segment.Request.RULE_INDEX, index=7)
    response = segment(graph, cameras, request, centers=centers)
    assert not response.success
    assert "7" in response.message


def test_nothing_yet_names_both_cameras(graph):
    graph.start("scene_perception", self_filter=False, rate=0.0)
    response = graph.call(interfaces.SEGMENT, Segment.Request())
    assert not response.success
    assert "left camera: nothing received" in response.message
    assert "right camera: nothing received" in response.message


def test_a_missing_camera_is_named(graph):
    _, cameras = start(graph)

    def right_is_missing():
        cameras.publish("left", camera_cloud("left", cameras.now()))
        response = graph.call(interfaces.SEGMENT, Segment.Request())
        assert not response.success
        return "right camera: nothing received" in response.message and "left camera" not in response.message

    graph.wait_until(right_is_missing, what="the answer that the right camera is missing")


def test_clouds_from_different_times_are_not_a_pair(graph):
    _, cameras = start(graph)

    def refused():
        stamp = cameras.now()
        cameras.publish("left", camera_cloud("left", stamp))
        cameras.publish("right", camera_cloud("right", stamp - 0.3))
        response = graph.call(interfaces.SEGMENT, Segment.Request())
        assert not response.success
        return "no stamps within" in response.message

    graph.wait_until(refused, what="the answer that the stamps do not match")


def test_an_old_pair_is_not_used(graph):
    _, cameras = start(graph, max_age=0.05)

    def refused():
        stamp = cameras.now() - 5.0
        for camera in ("left", "right"):
            cameras.publish(camera, camera_cloud(camera, stamp))
        response = graph.call(interfaces.SEGMENT, Segment.Request())
        assert not response.success
        return "within 0.05 s" in response.message

    graph.wait_until(refused, what="the answer that the pair is too old")


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.full((500, 3), np.nan)])
def test_a_cloud_without_points_is_named(graph, points):
    _, cameras = start(graph)

    def refused():
        stamp = cameras.now()
        cameras.publish("left", camera_cloud("left", stamp))
        cameras.publish("right", PointCloud(points, frame="right_camera_optical_frame", stamp=stamp))
        response = graph.call(interfaces.SEGMENT, Segment.Request())
        assert not response.success
        return "nothing received" not in response.message and "right" in response.message

    graph.wait_until(refused, what="the answer that the right camera sees nothing")


def test_no_table_is_named(graph):
    _, cameras = start(graph)
    response = segment(graph, cameras, with_table=False)
    assert not response.success
    assert "table" in response.message


def test_the_world_stays_as_it_was_seen_last_where_a_scene_fails(graph):
    worlds, scenes = graph.latest(interfaces.WORLD_OBJECTS), graph.latest(interfaces.OBJECTS)
    _, cameras = start(graph)
    assert segment(graph, cameras).success
    graph.wait_until(lambda: worlds, what="the world")
    assert [item.id for item in worlds[-1].objects][:2] == ["table", "object_0"]
    assert worlds[-1].header.frame_id == "panda_link0"
    told, failed = len(worlds), len(scenes)
    graph.wait_until(lambda: not segment(graph, cameras, with_table=False).success, what="a scene without a table")
    # Both topics are published one after the other, the objects first.
    graph.wait_until(lambda: len(scenes) > failed and not scenes[-1].objects, what="the failed scene")
    # Clouds without a table may still be under way.
    graph.wait_until(lambda: segment(graph, cameras).success, what="a scene with its table again")
    graph.wait_until(lambda: len(worlds) > told, what="the world of the next scene")
    assert all(world.objects[0].id == "table" for world in worlds)


def test_objects_keep_their_names_and_what_is_away_is_let_go_of(graph):
    worlds = graph.latest(interfaces.WORLD_OBJECTS)
    _, cameras = start(graph)

    def names_at(centers):
        """Names of the world once that shows boxes at these places; clouds of before may still be under way."""

        def told():
            assert segment(graph, cameras, centers=centers).success
            found = [item for item in worlds[-1].objects if item.id.startswith("object_")] if worlds else []
            middles = {item.id: point_rows(item.shapes[0].vertices).mean(axis=0)[:2] for item in found}
            names = [min(middles, key=lambda name: np.hypot(*(middles[name] - at)), default="") for at in centers]
            close = all(np.hypot(*(middles[name] - at)) < 0.03 for name, at in zip(names, centers, strict=True) if name)
            return names if len(middles) == len(centers) and close else None

        return graph.wait_until(told, what=f"boxes at {centers}")

    left, right, pushed = (0.45, 0.15), (0.5, -0.12), (0.45, 0.10)
    first, second = names_at([left, right])
    assert {first, second} == {"object_0", "object_1"}
    assert names_at([left, right]) == [first, second]
    assert names_at([pushed, right]) == [first, second]
    # A goal has the object by its name, and a scene has that as its id.
    for name, at in ((first, pushed), (second, right)):
        request = Segment.Request(rule=Segment.Request.RULE_NEAREST, point=PointStamped(header=header(name)))
        response = segment(graph, cameras, request, centers=[pushed, right])
        assert response.success, response.message
        target = response.objects.objects[response.objects.target]
        assert object_name(target.id) == name and np.hypot(target.centroid.x - at[0], target.centroid.y - at[1]) < 0.03
    assert names_at([right]) == [second]
    request = Segment.Request(rule=Segment.Request.RULE_NEAREST, point=PointStamped(header=header(first)))
    response = segment(graph, cameras, request, centers=[right])
    assert not response.success and f"{first} is not seen: not there, or let go of" in response.message
    assert response.objects.target == -1 and len(response.objects.objects) == 1
    assert names_at([left, right]) == ["object_2", second]


def test_objects_of_the_world_are_whole_shapes_where_that_is_asked_for(graph):
    worlds, reports = graph.latest(interfaces.WORLD_OBJECTS), graph.latest(interfaces.DIAGNOSTICS)
    told = graph.latest(interfaces.OBJECT_SHAPES)
    _, cameras = start(graph, whole_shapes=True)

    def kinds():
        assert segment(graph, cameras).success
        return {shape.type for item in worlds[-1].objects if item.id == "object_0" for shape in item.shapes}

    # The first look comes before its shape.
    graph.wait_until(lambda: kinds() == {DistanceShape.SUPEROVOID}, what="an object of superovoids")
    said = [pair.value for report in reports for status in report.status for pair in status.values]
    assert any(text.startswith("object_0: 1 superovoids, seen within") and "% assumed" in text for text in said)
    graph.wait_until(lambda: told and told[-1].objects, what="its shape")
    (shape,) = told[-1].objects
    assert (shape.id, shape.header.frame_id) == ("object_0", "world") and shape.looks >= 1
    # Nearer than in the world, where it is grown.
    (item,) = (item for item in worlds[-1].objects if item.id == "object_0")
    assert all(a > b for a, b in zip(item.shapes[0].dimensions[:3], shape.shapes[0].dimensions[:3], strict=True))
    assert len(shape.mesh.triangles) > 100 and 0.0 < shape.deviation < 0.01 and 0.0 < shape.assumed < 1.0

    # Where it is not as it was it is a hull at once.
    def moved():
        response = segment(graph, cameras, centers=[(0.42, 0.05)])
        return abs(response.objects.objects[0].centroid.x - 0.42) < 0.03

    graph.wait_until(moved, what="the box elsewhere")
    graph.wait_until(lambda: abs(response_middle(worlds[-1])[1] - 0.05) < 0.03, what="the world with the box elsewhere")
    # No shape is told where it is no longer.
    graph.wait_until(
        lambda: all(abs(shape.pose.position.y - 0.05) < 0.03 for shape in told[-1].objects),
        what="the same of its shape",
    )


def test_a_whole_shape_takes_the_sides_that_no_look_showed_from_the_neural_object(graph):
    worlds, reports = graph.latest(interfaces.WORLD_OBJECTS), graph.latest(interfaces.DIAGNOSTICS)
    _, cameras = start(graph, whole_shapes=True, use_neural_object=True)
    fields = graph.publisher(interfaces.NEURAL_OBJECT)

    def told(words):
        known = len(reports)
        assert segment(graph, cameras).success
        graph.wait_until(lambda: len(reports) > known, what="what it says of that scene")
        values = [pair for report in reports for status in report.status for pair in status.values]
        return words in [pair.value for pair in values if pair.key == "shapes of objects"][-1]

    graph.wait_until(lambda: told("object_0: 1 superovoids"), what="its shape without the field")
    assert not told("the rest")
    # Of another thing, which stands beside it: nothing changes. Then of this one.
    fields.publish(neural_object(shift=0.1))
    assert not told("the rest")
    fields.publish(neural_object())
    graph.wait_until(lambda: told(", the rest of 'carton'"), what="the shape with the field")
    assert {shape.type for item in worlds[-1].objects if item.id == "object_0" for shape in item.shapes} == {
        DistanceShape.SUPEROVOID
    }
    # A field that is none is told, and what is known is kept.
    broken = neural_object()
    broken.pose.orientation.w = 0.0
    fields.publish(broken)
    for _ in range(3):
        assert told(", the rest of 'carton'")


def response_middle(world):
    """About the middle of the box in the world, of a Panda at its origin."""
    (item,) = (item for item in world.objects if item.id.startswith("object_"))
    if item.shapes[0].type == DistanceShape.SUPEROVOID:
        return np.array([item.pose.position.x, item.pose.position.y])
    return point_rows(item.shapes[0].vertices).mean(axis=0)[:2]


def test_unknown_extrinsics_are_an_error_and_not_identity(graph):
    graph.start("scene_perception", self_filter=False, rate=0.0)
    cameras = Cameras(graph, extrinsics=False)
    response = segment(graph, cameras, pending=("nothing received",))
    assert not response.success
    assert "pose of the left camera" in response.message
    assert "left/extrinsics" in response.message


def test_extrinsics_that_are_no_pose_are_ignored_by_name(graph):
    process = graph.start("scene_perception", self_filter=False, rate=0.0)
    poses = graph.publisher(interfaces.LEFT_EXTRINSICS)
    zero = TransformStamped(header=header("world"))
    zero.transform.rotation.w = 0.0
    poses.publish(zero)
    assert "quat" in process.wait_for_line("left/extrinsics ignored")
    response = segment(graph, Cameras(graph, extrinsics=False), pending=("nothing received",))
    assert "pose of the left camera" in response.message


def test_the_robot_must_be_known_to_filter_it(graph):
    graph.start("scene_perception", self_filter=True, rate=0.0)
    response = segment(graph, Cameras(graph))
    assert not response.success
    assert "sphere_model" in response.message


def test_clouds_registered_without_any_pose_are_not_called_the_world(graph):
    latched = graph.latest(interfaces.OBJECTS)
    graph.start("scene_perception", self_filter=False, rate=0.0, max_age=60.0, camera_source="none")
    response = segment(graph, Cameras(graph, extrinsics=False))
    graph.wait_until(lambda: latched, what="the objects")
    # Whether a bare box suffices to register the views is another matter: the frame must be right in any case.
    assert latched[-1].header.frame_id == "left_camera_optical_frame"
    assert response.objects.header.frame_id == "left_camera_optical_frame"


def test_one_camera_is_enough_where_that_is_allowed(graph):
    _, cameras = start(graph, allow_single_view=True)

    def seen():
        cameras.publish("left", camera_cloud("left", cameras.now()))
        response = graph.call(interfaces.SEGMENT, Segment.Request())
        return (
            response if "nothing received" not in response.message and "pose of the" not in response.message else None
        )

    response = graph.wait_until(seen, what="an answer to the cloud of one camera")
    assert response.success, response.message
    assert len(response.objects.objects) == 1


def forged(stamp):
    """A hundred bytes that say they are 48 GiB."""
    message = message_from_cloud(camera_cloud("left", stamp))
    message.width, message.height, message.point_step, message.row_step = 2**32 - 1, 1, 0, 0
    message.data = b""
    return message


def test_a_cloud_that_claims_more_than_it_is_is_refused_by_name_and_the_node_goes_on(graph):
    _, cameras = start(graph)
    assert segment(graph, cameras).success
    responses = []

    def refused():
        stamp = cameras.now()
        for publisher in cameras._out.values():
            publisher.publish(forged(stamp))
        responses.append(graph.call(interfaces.SEGMENT, Segment.Request()))
        return not responses[-1].success

    graph.wait_until(refused, what="the refusal")
    assert "cloud points: got 4294967295" in responses[-1].message
    graph.wait_until(lambda: segment(graph, cameras).success, what="a scene of good clouds")


def test_each_of_two_hundred_requests_is_answered(graph):
    """A few with a scene, the others by "busy", which is said at once."""
    _, cameras = start(graph)
    assert segment(graph, cameras).success
    client = graph.node.create_client(Segment, interfaces.SEGMENT.name, qos_profile=QoSProfile(depth=1000))
    graph.wait_until(client.service_is_ready, what="the service")
    # The server may not know of this client yet.
    graph.answer(lambda: client.call_async(Segment.Request()))
    asked = [client.call_async(Segment.Request()) for _ in range(200)]
    graph.wait_until(lambda: all(future.done() for future in asked), what="two hundred answers")
    answers = [future.result() for future in asked]
    assert all(answer.success or "busy" in answer.message for answer in answers)
    assert any(answer.success for answer in answers)
    graph.node.destroy_client(client)
