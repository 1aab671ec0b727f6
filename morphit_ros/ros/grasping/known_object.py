"""What neural_object knows of the object to grasp: its shape, its centre of mass, its mass unless that is assumed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rclpy.node import Node
from scipy.spatial import cKDTree

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import NeuralObject
from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.grasping.completion import KnownMass, KnownShape, ShapeCompletion
from morphit_ros.neural.objects.mass_sources import TotalMassSource
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import array_from_point, cloud_from_message, matrix_from_pose

# A small thing on the surface of a large one is not that one: so much of its length has to be seen.
_LEAST_LENGTH = 0.5
# Below this confidence an object was seen from one side only: its far side is a guess of the field.
_SEEN_AROUND = 0.5
# Sources of a mass that somebody or something vouches for; any other word counts as none.
_VOUCHED = {source.value for source in TotalMassSource} - {TotalMassSource.ASSUMED.value}


@dataclass(frozen=True)
class KnownObjectConfig(Config):
    """Whether the planner takes shape and centre of mass from `neural_object`, and when that is the object to grasp."""

    use_neural_object: bool = parameter(
        False,
        "Take the sides that were not seen, the centre of mass, and the mass unless it is only assumed, from "
        "`neural_object` where that is the object to grasp",
    )
    match_distance: float = parameter(
        0.01, "A point of the cloud this near to the neural object's surface is of it [m]", minimum=0.001, maximum=0.1
    )
    match_share: float = parameter(
        0.9, "Share of the cloud's points that have to be of the neural object", minimum=0.1, maximum=1.0
    )


def weighed_completion(goal: PlanGrasp.Goal | None, shape: ShapeCompletion) -> tuple[KnownMass | None, str]:
    """The completion with what a goal says was weighed, and a note for people; None and empty where it says nothing.

    Args:
        goal: of `plan_grasp`.
        shape: completes the hidden sides.

    Raises:
        InvalidInputError: a mass that is not positive, or a centre of mass that is not finite.
    """
    if goal is None or goal.mass == 0.0:
        return None, ""
    completion = KnownMass(array_from_point(goal.center_of_mass), 1.0, shape, goal.mass, "weighed")
    return completion, f"Centre of mass and mass weighed: {goal.mass:.3g} kg."


class KnownObjectMatch:
    """Holds the latest neural object and compares clouds with it.

    Args:
        node: owner of the subscription; there is none unless the configuration asks for it.
        config: see `KnownObjectConfig`.
    """

    def __init__(self, node: Node, config: KnownObjectConfig) -> None:
        self._config = config
        self._object: NeuralObject | None = None
        if config.use_neural_object:
            interfaces.NEURAL_OBJECT.subscribe(node, self._on_object)

    def _on_object(self, message: NeuralObject) -> None:
        self._object = message

    def completion_for(self, cloud: PointCloud, frame: str, seen: ShapeCompletion) -> tuple[KnownMass | None, str]:
        """The completion of a cloud with what is known of its shape and mass, and a note for people.

        Args:
            cloud: the object to grasp.
            frame: of the cloud.
            seen: completes the hidden sides by what was seen, where the object was known from one side only.

        Returns:
            None where nothing is known of this object; the note then says why, and is empty if nobody asked. A mass
            that nobody vouches for is left out: the planner then takes its own.

        Raises:
            InvalidInputError: a neural object that is not usable: a bad pose, surface or centre.
        """
        if not self._config.use_neural_object:
            return None, ""
        known = self._object
        if known is None:
            return None, f"No {interfaces.NEURAL_OBJECT.name} yet: centre of mass of the completed shape."
        why = self._difference(known, cloud.finite().points, frame)
        if why:
            return (
                None,
                f"The neural object '{known.name}' is not this one ({why}): centre of mass of the completed shape.",
            )
        T_frame_object, confidence = matrix_from_pose(known.pose), float(np.clip(known.confidence, 0.0, 1.0))
        center = transform_points(T_frame_object, array_from_point(known.inertia.com)[None])[0]
        source = f"of '{known.name}' ({known.mass_from})"
        mass = known.inertia.m if known.total_mass_from in _VOUCHED and known.inertia.m > 0.0 else None
        surface = cloud_from_message(known.surface).finite()
        shape, sides = seen, "hidden sides guessed"
        if confidence >= _SEEN_AROUND and surface.normals is not None:
            placed = surface.transformed(T_frame_object)
            assert placed.normals is not None
            shape = KnownShape(placed.points, placed.normals, confidence, f"of '{known.name}'")
            sides = "hidden sides of it, too"
        completion = KnownMass(center, confidence, shape, mass, source)
        weight = "its mass is only assumed and not used" if mass is None else f"{mass:.3g} kg ({known.total_mass_from})"
        return completion, f"Centre of mass {source}; {weight}; {sides}."

    def _difference(self, known: NeuralObject, points: Array, frame: str) -> str:
        """Why a cloud is not of the neural object; empty if it is."""
        if known.header.frame_id != frame:
            return f"it is in frame '{known.header.frame_id}', the cloud in '{frame}'"
        surface = transform_points(matrix_from_pose(known.pose), cloud_from_message(known.surface).finite().points)
        if not len(surface) or not len(points):
            return "one of them has no points"
        limit = self._config.match_distance
        distances, _ = cKDTree(surface).query(points, distance_upper_bound=limit)
        share = float(np.isfinite(distances).mean())
        if share < self._config.match_share:
            return f"{100.0 * share:.0f} % of the points lie within {1e3 * limit:g} mm of it"
        length, whole = (float(np.linalg.norm(np.ptp(item, axis=0))) for item in (points, surface))
        return "" if length >= _LEAST_LENGTH * whole else f"{1e3 * length:.0f} mm of its {1e3 * whole:.0f} mm were seen"
