"""Whether an arm can reach a grasp: inverse kinematics, straight approach and lift, free of collisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.execution.reachability.check import Reachability
    from morphit_ros.execution.reachability.grasp_filter import GraspFilter, turned_about_approach
    from morphit_ros.execution.reachability.result import ReachabilityConfig, ReachResult, ReachResults, ReachStatus
    from morphit_ros.execution.reachability.warm_up import warm_up_reachability
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "check": ("Reachability",),
            "grasp_filter": ("GraspFilter", "turned_about_approach"),
            "result": ("ReachabilityConfig", "ReachResult", "ReachResults", "ReachStatus"),
            "warm_up": ("warm_up_reachability",),
        },
    )

__all__ = [
    "GraspFilter",
    "ReachResult",
    "ReachResults",
    "ReachStatus",
    "Reachability",
    "ReachabilityConfig",
    "turned_about_approach",
    "warm_up_reachability",
]
