"""The box of `scenes` as `neural_object` knows it."""

from __future__ import annotations

import numpy as np
from scenes import BOX_SIZE, object_cloud

from morphit_interfaces.msg import NeuralObject
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros.core.conversions import header, message_from_cloud, pose_from_matrix


def neural_object(shift=0.0, frame="world", total="given", confidence=0.9):
    """What neural_object says of the box: its weight lies at one side."""
    points, normals = object_cloud().points, object_cloud().normals
    middle = np.array([0.5, 0.0, BOX_SIZE[2] / 2.0])
    pose = np.eye(4)
    pose[:3, 3] = middle + np.array([shift, 0.0, 0.0])
    message = NeuralObject(
        header=header(frame), name="carton", mass_from="materials", total_mass_from=total, confidence=confidence,
        pose=pose_from_matrix(pose), surface=message_from_cloud(PointCloud(points - middle, normals), "", 0.0),
    )  # fmt: skip
    message.inertia.m, message.inertia.com.y = 0.8, 0.03
    return message
