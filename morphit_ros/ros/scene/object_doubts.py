"""What speaks against trusting a segmented object, in words."""

from __future__ import annotations

from morphit_interfaces.msg import SegmentedObject
from morphit_ros.ros.scene.messages import object_name

# As of perception's own remarks.
_LITTLE_COVERAGE, _MUCH_TRANSPARENCY = 0.5, 0.2


def object_doubts(message: SegmentedObject) -> str:
    """Why grasps on an object are less certain than others, with its confidence; empty if nothing speaks against it.

    An object that does not say how it was seen is not doubted.
    """
    doubts = []
    if not message.consistent:
        doubts.append("the two views contradict each other: it moved between the clouds, or a camera's pose is wrong")
    # A further camera may have seen it, too: then its confidence is not halved.
    alone = message.confidence < 0.75 * message.coverage * (1.0 - message.transparency)
    if alone and (message.left_points > 0) != (message.right_points > 0):
        doubts.append(f"only the {'left' if message.left_points else 'right'} camera saw it")
    if message.transparency > _MUCH_TRANSPARENCY:
        doubts.append(f"transparent: the table shows through {100.0 * message.transparency:.0f} % of it")
    if message.coverage < _LITTLE_COVERAGE:
        doubts.append(f"few points: {100.0 * message.coverage:.0f} % of what a full surface has")
    if not doubts:
        return ""
    return f"{object_name(message.id)} has a confidence of {message.confidence:.2f}: {'; '.join(doubts)}."
