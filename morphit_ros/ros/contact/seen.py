"""What perception has segmented, as a box that can be pushed."""

from __future__ import annotations

import numpy as np

from morphit_interfaces.msg import SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.contact_push.standing_box import StandingBox
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.scene.messages import cloud_of, other_things

# A table farther from z = 0 than this is another one [m].
_LEVEL = 0.01
# Room of the hand: behind the box, and to each side of the way [m].
_BEHIND, _BESIDE = 0.12, 0.12
# Loose points no farther from the box belong to it [m].
_EDGE = 0.03


def seen_box(seen: SegmentedObject, table: TablePlane) -> StandingBox:
    """The box around an object, in its frame, whose table is z = 0.

    Raises:
        InvalidInputError: hardly any points, or another table.
    """
    height = table.pose.position.z
    if table.found and not abs(height) <= _LEVEL:
        raise InvalidInputError("table", f"{height:.3f} m high", f"within {_LEVEL:g} m of the world's z = 0")
    return StandingBox.around(cloud_of(seen).finite().points)


def check_free(box: StandingBox, way: Array, seen: SegmentedObject, scene: SegmentedObjectArray) -> None:
    """Refuse a push over a way (2,) on which box or hand would meet something else that was seen.

    Raises:
        InvalidInputError: there is something.
    """
    if not scene.objects:
        return
    others = other_things(scene, seen.id, cloud_of(seen).finite())
    # Cameras see points of no object along its edges, and on sides that they hardly see.
    loose = others.loose.points[~box.near(others.loose.points, _EDGE)]
    clouds = [cloud.points for cloud in others.objects.values()]
    met = box.in_the_way(way, np.concatenate([*clouds, loose]), _BEHIND, _BESIDE)
    if len(met):
        place = ", ".join(f"{value:.2f}" for value in met.mean(axis=0))
        raise InvalidInputError(
            "scene", f"{len(met)} points around ({place}) m on the way", "nothing beside the object there",
            "Clear the way, or push elsewhere.",
        )  # fmt: skip
