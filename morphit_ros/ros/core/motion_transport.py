"""How a node that moves something talks to others: by datagrams, which wait for nobody.

In shared memory a process that is frozen or killed with a lock in its hands keeps all that write to it waiting: for
1.0 s (the time-out of Fast DDS), twice, in 6 of 109 freezes of a node that received 250 messages a second, and in 3 of
25 freezes of `motion_gate` while it moved an arm, on a loaded machine. The watching thread of a driver waits too, as
rclpy's publish holds the interpreter.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from morphit_ros.resources import resource

_PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"
# Whoever sets one of these has decided about the transport.
_DECIDED = (_PROFILES, "FASTDDS_DEFAULT_PROFILES_FILE", "ROS_STATIC_PEERS")
_RANGE, _LOCAL_ONLY = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"


def use_datagrams(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Leave shared memory out in this process; before `rclpy.init`. Whether that was done.

    Not where the environment says already what Fast DDS shall do, or with another middleware. What the node that has
    started this process uses (`use_large_shared_memory`) decides nothing.
    """
    middleware = environment.get("RMW_IMPLEMENTATION") or "rmw_fastrtps_cpp"
    if environment.get(_PROFILES) == str(resource("config/fastdds.xml")):
        del environment[_PROFILES]
    if not middleware.startswith("rmw_fastrtps") or any(environment.get(name) for name in _DECIDED):
        return False
    profile = "fastdds_motion.xml"
    if environment.get(_LOCAL_ONLY) == "1" or environment.get(_RANGE) == "LOCALHOST":
        # rmw_fastrtps adds shared memory to every profile for this range: the profile says the range itself.
        profile = "fastdds_motion_local.xml"
        environment.pop(_LOCAL_ONLY, None)
        environment[_RANGE] = "SYSTEM_DEFAULT"
    environment[_PROFILES] = str(resource(f"config/{profile}"))
    return True
