"""Whether an object that was seen is the one that `neural_object` knows, and the surface of that one where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rclpy.node import Node

from morphit_interfaces.msg import NeuralObject
from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import cloud_from_message, matrix_from_pose

# A small thing on the surface of a large one is not that one: so much of its length has to be seen.
_LEAST_LENGTH = 0.5
# Below this confidence an object was seen from one side only: its far side is a guess of the field.
_SEEN_AROUND = 0.5


@dataclass(frozen=True)
class KnownObjectConfig(Config):
    """When an object that was seen is the neural object."""

    match_distance: float = parameter(
        0.01, "A point of the cloud this near to the neural object's surface is of it [m]", minimum=0.001, maximum=0.1
    )
    match_share: float = parameter(
        0.9, "Share of the cloud's points that have to be of the neural object", minimum=0.1, maximum=1.0
    )


class KnownObject(NamedTuple):
    """What is known of an object that was seen.

    Attributes:
        message: of `neural_object`.
        T_frame_object: (4, 4) where it lies.
        confidence: of its shape and inertia, in [0, 1].
        surface: of all sides, with normals where these are known, in the frame that it was seen in; None where it was
            seen from one side only.
    """

    message: NeuralObject
    T_frame_object: Array
    confidence: float
    surface: PointCloud | None


class KnownObjectMatch:
    """Holds the latest neural object and compares clouds with it.

    Args:
        node: owner of the subscription.
        config: see `KnownObjectConfig`.
        wanted: without this there is no subscription, and nothing is known.
    """

    def __init__(self, node: Node, config: KnownObjectConfig, wanted: bool) -> None:
        self._config = config
        self._object: NeuralObject | None = None
        if wanted:
            interfaces.NEURAL_OBJECT.subscribe(node, self._on_object)

    def _on_object(self, message: NeuralObject) -> None:
        self._object = message

    @property
    def name(self) -> str | None:
        """Of the neural object, None before the first."""
        return None if self._object is None else self._object.name

    def find(self, points: Array, frame: str) -> tuple[KnownObject | None, str]:
        """The neural object, if points (N, 3) in some frame are of it [m]; else None and why they are not.

        Raises:
            InvalidInputError: a neural object that is not usable: a bad pose or surface.
        """
        known = self._object
        if known is None:
            return None, f"no {interfaces.NEURAL_OBJECT.name} yet"
        if known.header.frame_id != frame:
            return None, f"it is in frame '{known.header.frame_id}', the cloud in '{frame}'"
        T_frame_object = matrix_from_pose(known.pose)
        surface = cloud_from_message(known.surface).finite().transformed(T_frame_object)
        why = self._difference(surface.points, points)
        if why:
            return None, why
        confidence = float(np.clip(known.confidence, 0.0, 1.0))
        around = surface if confidence >= _SEEN_AROUND else None
        return KnownObject(known, T_frame_object, confidence, around), ""

    def _difference(self, surface: Array, points: Array) -> str:
        """Why points are not of the neural object; empty if they are."""
        from scipy.spatial import cKDTree

        if not len(surface) or not len(points):
            return "one of them has no points"
        limit = self._config.match_distance
        distances, _ = cKDTree(surface).query(points, distance_upper_bound=limit)
        share = float(np.isfinite(distances).mean())
        if share < self._config.match_share:
            return f"{100.0 * share:.0f} % of the points lie within {1e3 * limit:g} mm of it"
        length, whole = (float(np.linalg.norm(np.ptp(item, axis=0))) for item in (points, surface))
        return "" if length >= _LEAST_LENGTH * whole else f"{1e3 * length:.0f} mm of its {1e3 * whole:.0f} mm were seen"
