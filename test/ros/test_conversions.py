"""Messages to core types and back: exact where the message is, refused where it is broken."""

import array
import math
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Point, Pose, Quaternion
from sensor_msgs.msg import JointState, PointCloud2, PointField
from shape_msgs.msg import Mesh, MeshTriangle
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from morphit_ros import budgets
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.core import conversions


def _cloud(count=50, normals=True):
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    points = rng.normal(size=(count, 3)).astype(np.float32)
    return PointCloud(points, directions.astype(np.float32) if normals else None, frame="camera", stamp=12.25)


@pytest.mark.parametrize("normals", [True, False])
def test_cloud_survives_the_round_trip(normals):
    cloud = _cloud(normals=normals)
    back = conversions.cloud_from_message(conversions.message_from_cloud(cloud))
    np.testing.assert_array_equal(back.points, cloud.points)
    assert (back.normals is None) == (not normals)
    if normals:
        np.testing.assert_array_equal(back.normals, cloud.normals)
    assert (back.frame, back.stamp) == ("camera", 12.25)


def test_empty_cloud_survives_the_round_trip():
    back = conversions.cloud_from_message(conversions.message_from_cloud(PointCloud(np.zeros((0, 3)))))
    assert back.points.shape == (0, 3)


def test_nan_points_are_kept_so_that_an_organised_cloud_stays_in_rows():
    points = np.ones((4, 3))
    points[2] = np.nan
    message = conversions.message_from_cloud(PointCloud(points))
    assert not message.is_dense
    assert np.isnan(conversions.cloud_from_message(message).points[2]).all()


def _driver_message(big_endian=False, double=False, padding=7):
    """An organised 3 x 4 cloud as a driver may send it: padded points, padded rows, fields out of order."""
    kind = np.dtype(np.float64 if double else np.float32).newbyteorder(">" if big_endian else "<")
    size = kind.itemsize
    step, width, height = 3 * size + 4, 4, 3
    values = np.arange(36, dtype=float).reshape(height, width, 3)
    data = bytearray(height * (width * step + padding))
    for row in range(height):
        for column in range(width):
            start = row * (width * step + padding) + column * step + 4
            # z before x before y
            data[start : start + 3 * size] = values[row, column][[2, 0, 1]].astype(kind).tobytes()
    datatype = PointField.FLOAT64 if double else PointField.FLOAT32
    fields = [PointField(name=n, offset=4 + i * size, datatype=datatype, count=1) for i, n in enumerate("zxy")]
    message = PointCloud2(
        height=height, width=width, fields=fields, is_bigendian=big_endian, point_step=step,
        row_step=width * step + padding, data=array.array("B", bytes(data)),
    )  # fmt: skip
    return message, values.reshape(-1, 3)


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_layouts_of_camera_drivers_are_read(big_endian, double):
    message, expected = _driver_message(big_endian, double)
    np.testing.assert_array_equal(conversions.cloud_from_message(message).points, expected)


def _without_z(message):
    message.fields = [field for field in message.fields if field.name != "z"]


def _truncated(message):
    message.data = message.data[:-20]


def _integer_field(message):
    message.fields[0].datatype = PointField.INT16


def _offset_outside(message):
    message.fields[0].offset = message.point_step - 1


def _short_row(message):
    message.row_step = message.point_step


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without_z, "missing: z"),
        (_truncated, "cloud data"),
        (_integer_field, "FLOAT32 or FLOAT64"),
        (_offset_outside, "offset"),
        (_short_row, "row_step"),
    ],
)
def test_broken_clouds_are_refused_by_name(spoil, words):
    message, _ = _driver_message()
    spoil(message)
    with pytest.raises(InvalidInputError, match=words):
        conversions.cloud_from_message(message)


def _claiming(**claims):
    """A message of a hundred bytes that says it is more."""
    message, _ = _driver_message()
    for name, value in claims.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    "claims",
    [
        {"width": 2**32 - 1, "height": 1, "point_step": 0, "row_step": 0},
        {"width": 2**32 - 1, "height": 2**32 - 1, "point_step": 0, "row_step": 0},
        {"width": 1, "height": 2**32 - 1, "row_step": 0, "point_step": 0},
        {"width": 2**24, "height": 1, "point_step": 0, "row_step": 0},
        {"width": 2**32 - 1, "height": 1, "point_step": 16, "row_step": 2**32 - 1},
    ],
)
def test_a_cloud_that_claims_more_than_it_is_takes_no_memory(claims):
    message = _claiming(**claims)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match="cloud"):
            conversions.cloud_from_message(message)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("far", [3e38, -3e38, 2e12])
def test_absurdly_far_points_are_refused(far):
    cloud = _cloud()
    cloud.points[7, 1] = far
    with pytest.raises(InvalidInputError, match="at most 1e\\+12 m"):
        conversions.cloud_from_message(conversions.message_from_cloud(cloud))


def test_infinity_of_a_camera_is_no_distance():
    cloud = _cloud(normals=False)
    cloud.points[3] = np.inf
    assert len(conversions.cloud_from_message(conversions.message_from_cloud(cloud)).finite()) == len(cloud) - 1


def test_a_mesh_of_more_triangles_than_anybody_looks_at_is_refused_uncounted():
    triangle = MeshTriangle(vertex_indices=[0, 1, 2])
    message = Mesh(triangles=[triangle] * (budgets.MOST_MESSAGE_FACES + 1), vertices=[Point()] * 3)
    with pytest.raises(InvalidInputError, match="mesh triangles"):
        conversions.mesh_from_message(message)
    message = Mesh(triangles=[triangle], vertices=[Point()] * (3 * budgets.MOST_MESSAGE_FACES + 1))
    with pytest.raises(InvalidInputError, match="mesh vertices"):
        conversions.mesh_from_message(message)


def test_an_image_without_its_rows_is_refused():
    rgb = np.zeros((5, 7, 3), dtype=np.uint8)
    for name, value in (("height", 2**32 - 1), ("step", 0), ("width", 8), ("data", b"")):
        message = conversions.message_from_image(rgb, "world", 1.0)
        setattr(message, name, value)
        with pytest.raises(InvalidInputError, match="image data"):
            conversions.image_from_message(message)


def test_pose_survives_the_round_trip():
    rng = np.random.default_rng(0)
    for _ in range(20):
        transform = make_transform(matrix_from_rpy(rng.uniform(-math.pi, math.pi, 3)), rng.normal(size=3))
        np.testing.assert_allclose(
            conversions.matrix_from_pose(conversions.pose_from_matrix(transform)), transform, atol=1e-12
        )
        np.testing.assert_allclose(
            conversions.matrix_from_transform(conversions.transform_from_matrix(transform)), transform, atol=1e-12
        )


@pytest.mark.parametrize("orientation", [Quaternion(w=0.0), Quaternion(x=float("nan"))])
def test_a_pose_without_orientation_is_refused(orientation):
    with pytest.raises(InvalidInputError, match="quat_xyzw"):
        conversions.matrix_from_pose(Pose(orientation=orientation))


def test_stamps_are_exact_to_the_nanosecond():
    for seconds in (0.0, 0.1, 1.999999999, 123456.789):
        back = conversions.seconds_from_stamp(conversions.stamp_from_seconds(seconds))
        assert back == pytest.approx(seconds, abs=1e-9)


def test_joint_state_without_velocities_has_unknown_ones():
    state = conversions.joint_state_from_message(JointState(name=["a", "b"], position=[1.0, 2.0]))
    assert state.as_dict() == {"a": 1.0, "b": 2.0}
    np.testing.assert_array_equal(state.velocities, [np.nan, np.nan])


@pytest.mark.parametrize("positions", [[1.0], [1.0, float("nan")]])
def test_broken_joint_states_are_refused(positions):
    with pytest.raises(InvalidInputError, match="joint state"):
        conversions.joint_state_from_message(JointState(name=["a", "b"], position=positions))


def test_trajectory_survives_the_round_trip():
    times = np.array([0.0, 0.5, 1.25])
    trajectory = Trajectory(("a", "b"), times, np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
    back = conversions.trajectory_from_message(conversions.message_from_trajectory(trajectory))
    assert back.joint_names == ("a", "b")
    np.testing.assert_allclose(back.times, times, atol=1e-9)
    np.testing.assert_array_equal(back.positions, trajectory.positions)
    np.testing.assert_array_equal(back.velocities, trajectory.velocities)


def test_the_empty_trajectory_means_stop():
    assert conversions.trajectory_from_message(conversions.message_from_trajectory(None)) is None


def test_trajectory_points_of_the_wrong_length_are_refused():
    message = JointTrajectory(joint_names=["a", "b"], points=[JointTrajectoryPoint(positions=[1.0])])
    with pytest.raises(InvalidInputError, match="trajectory point 0"):
        conversions.trajectory_from_message(message)


def test_image_survives_the_round_trip():
    rgb = np.random.default_rng(1).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    back = conversions.image_from_message(conversions.message_from_image(rgb, "world", 1.0))
    np.testing.assert_array_equal(back, rgb)
