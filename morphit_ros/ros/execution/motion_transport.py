"""How a node that moves something talks to others: by datagrams, which wait for nobody.

In shared memory a process that is frozen or killed with a lock in its hands keeps others waiting: commands came 1.0 s
late behind a process that was stopped while it published (docs/cover_node.md). The watching thread of a driver waits
too, as rclpy's publish holds the interpreter.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from morphit_ros.resources import resource

# Whoever sets one of these has decided about the transport.
_DECIDED = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE", "ROS_STATIC_PEERS")
_RANGE, _LOCAL_ONLY = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"


def use_datagrams(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Leave shared memory out in this process; before `rclpy.init`. Whether that was done.

    Not where the environment says already what Fast DDS shall do, with another middleware, or on localhost alone.
    """
    middleware = environment.get("RMW_IMPLEMENTATION") or "rmw_fastrtps_cpp"
    if not middleware.startswith("rmw_fastrtps") or any(environment.get(name) for name in _DECIDED):
        return False
    if environment.get(_LOCAL_ONLY) == "1" or environment.get(_RANGE) == "LOCALHOST":
        # rmw_fastrtps adds shared memory to every profile for this range.
        return False
    environment["FASTRTPS_DEFAULT_PROFILES_FILE"] = str(resource("config/fastdds_motion.xml"))
    return True
