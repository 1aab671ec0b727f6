"""Qualities of service as rosbag2 writes them into recordings, and which ones a recorder asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy

from morphit_ros.documents import parse_yaml
from morphit_ros.errors import InvalidInputError

# rosbag2's infinite duration.
_NEVER = {"sec": 9223372036, "nsec": 854775807}
# Messages between two looks of who fetches them, and of one that publishes again.
_MOST_DEPTH = 1000


def written(profile: QoSProfile, publishers: Sequence[QoSProfile]) -> str:
    """The text of what the publishers of a topic offer.

    Args:
        profile: for what discovery does not tell: depth and history, and where there is no publisher any more.
        publishers: what discovery tells of them.
    """
    rows = [
        {
            "history": "keep_last",
            "depth": profile.depth,
            "reliability": found.reliability.name.lower(),
            "durability": found.durability.name.lower(),
            "deadline": dict(_NEVER),
            "lifespan": dict(_NEVER),
            "liveliness": LivelinessPolicy.AUTOMATIC.name.lower(),
            "liveliness_lease_duration": dict(_NEVER),
            "avoid_ros_namespace_conventions": False,
        }
        for found in list(publishers) or [profile]
    ]
    return str(yaml.safe_dump(rows, sort_keys=False))


def read(name: str, text: str, default: QoSProfile) -> QoSProfile:
    """With what a recorded topic is published again: latched and reliable where any of its publishers was.

    Args:
        name: of the topic, for errors.
        text: as `written`, or of another version of rosbag2; empty: not known.
        default: where it is not known.

    Raises:
        InvalidInputError: the text is none of qualities.
    """
    rows = parse_yaml(text, name) if text else None
    if not rows:
        return default
    try:
        reliable = any(_is(row["reliability"], ReliabilityPolicy.RELIABLE) for row in rows)
        latched = any(_is(row["durability"], DurabilityPolicy.TRANSIENT_LOCAL) for row in rows)
        depth = max(int(row["depth"]) for row in rows)
    except (TypeError, KeyError, ValueError) as error:
        raise InvalidInputError(f"qualities of {name}", repr(text[:80]), "a list of QoS profiles") from error
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=min(max(depth, 1), _MOST_DEPTH) if depth else default.depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def _is(value: Any, policy: Any) -> bool:
    # Older versions of rosbag2 write rmw's numbers.
    return bool(value == policy.value or str(value).lower() == policy.name.lower())


def fitting(profile: QoSProfile, publishers: Sequence[QoSProfile]) -> QoSProfile:
    """What all of some publishers offer, with the depth of a profile; the profile itself where there are none."""
    if not publishers:
        return profile
    reliable = all(found.reliability == ReliabilityPolicy.RELIABLE for found in publishers)
    latched = all(found.durability == DurabilityPolicy.TRANSIENT_LOCAL for found in publishers)
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=profile.depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
