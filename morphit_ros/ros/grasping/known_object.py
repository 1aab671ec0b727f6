"""What neural_object knows of the object to grasp: its shape, its centre of mass, its mass unless that is assumed."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node

from morphit_interfaces.action import PlanGrasp
from morphit_ros.configuration import parameter
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.grasping.completion import KnownMass, KnownShape, ShapeCompletion
from morphit_ros.neural.objects.mass_sources import TotalMassSource
from morphit_ros.ros.core.conversions import array_from_point
from morphit_ros.ros.neural.known_object import KnownObjectConfig, KnownObjectMatch

# Sources of a mass that somebody or something vouches for; any other word counts as none.
_VOUCHED = {source.value for source in TotalMassSource} - {TotalMassSource.ASSUMED.value}


@dataclass(frozen=True)
class KnownMassConfig(KnownObjectConfig):
    """Whether the planner takes shape and centre of mass from `neural_object`, and when that is the object to grasp."""

    use_neural_object: bool = parameter(
        False,
        "Take the sides that were not seen, the centre of mass, and the mass unless it is only assumed, from "
        "`neural_object` where that is the object to grasp",
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


class KnownMasses:
    """Completes clouds by what `neural_object` knows, where they are of that object.

    Args:
        node: listens to it, if the configuration asks for it.
        config: see `KnownMassConfig`.
    """

    def __init__(self, node: Node, config: KnownMassConfig) -> None:
        self._wanted = config.use_neural_object
        self._match = KnownObjectMatch(node, config, self._wanted)

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
        if not self._wanted:
            return None, ""
        known, why = self._match.find(cloud.finite().points, frame)
        if known is None:
            name = self._match.name
            told = why.capitalize() if name is None else f"The neural object '{name}' is not this one ({why})"
            return None, f"{told}: centre of mass of the completed shape."
        message, confidence = known.message, known.confidence
        center = transform_points(known.T_frame_object, array_from_point(message.inertia.com)[None])[0]
        source = f"of '{message.name}' ({message.mass_from})"
        mass = message.inertia.m if message.total_mass_from in _VOUCHED and message.inertia.m > 0.0 else None
        shape, sides = seen, "hidden sides guessed"
        if known.surface is not None and known.surface.normals is not None:
            shape = KnownShape(known.surface.points, known.surface.normals, confidence, f"of '{message.name}'")
            sides = "hidden sides of it, too"
        completion = KnownMass(center, confidence, shape, mass, source)
        weight = (
            "its mass is only assumed and not used" if mass is None else f"{mass:.3g} kg ({message.total_mass_from})"
        )
        return completion, f"Centre of mass {source}; {weight}; {sides}."
