"""Fields of the same name go from data types into messages and back."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Quaternion
from std_msgs.msg import Header

from morphit_interfaces.msg import Grasp, NeuralObject, PusherMotion
from morphit_interfaces.srv import EstimateInertia, SimulatePush
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.neural.objects.known_object import MassSource
from morphit_ros.ros.core.fields import read_fields, write_fields

POSE = make_transform(matrix_from_rpy([0.25, -0.5, 1.0]), [1.0, 2.0, 3.0])


@dataclass
class Data:
    """Some fields of a Grasp, and one that it does not have."""

    pose: np.ndarray
    aperture: float
    contact_points: np.ndarray
    metric_names: tuple
    pregrasp_positions: np.ndarray
    frame: str = "not in the message"


def test_values_survive_the_round_trip():
    data = Data(POSE, np.float32(0.25), np.arange(6.0).reshape(2, 3), ("a", "b"), np.array([0.5, -0.5]))
    message = write_fields(Grasp(), data, aperture=0.5, header=Header(frame_id="world"))
    # What is given by name goes before the source, and what nobody gives stays at its default.
    assert (message.aperture, message.confidence, message.header.frame_id) == (0.5, 1.0, "world")
    back = read_fields(message, Data)
    assert set(back) == {"pose", "aperture", "contact_points", "metric_names", "pregrasp_positions"}
    np.testing.assert_allclose(back["pose"], POSE, atol=1e-12)
    np.testing.assert_array_equal(back["contact_points"], data.contact_points)
    np.testing.assert_array_equal(back["pregrasp_positions"], data.pregrasp_positions)
    assert tuple(back["metric_names"]) == data.metric_names


def test_what_is_unknown_is_nan_and_words_are_those_of_the_enumeration():
    message = write_fields(NeuralObject(), friction=None, mass_from=MassSource.UNIFORM, size=np.array([1.0, 2.0, 3.0]))
    assert math.isnan(message.friction)
    assert message.mass_from == MassSource.UNIFORM.value
    assert (message.size.x, message.size.z) == (1.0, 3.0)


def test_rotations_and_lists_of_poses_are_matrices():
    response = write_fields(EstimateInertia.Response(), principal_rotation=POSE[:3, :3], center_of_mass=POSE[:3, 3])
    poses = write_fields(SimulatePush.Response(), poses=np.stack([POSE, np.eye(4)]), times=np.array([0.0, 0.5])).poses
    assert response.principal_rotation == poses[0].orientation != Quaternion()
    assert (poses[0].position, poses[1].orientation) == (response.center_of_mass, Quaternion())


def test_empty_lists_keep_their_shape_and_bad_poses_are_refused():
    @dataclass
    class Motion:
        positions: np.ndarray
        forces: np.ndarray

    assert read_fields(PusherMotion(), Motion)["positions"].shape == (0, 3)
    with pytest.raises(InvalidInputError, match="quat_xyzw"):
        read_fields(Grasp(pose=write_fields(Grasp(), pose=POSE).pose.__class__(orientation=Quaternion(w=0.0))), Data)
