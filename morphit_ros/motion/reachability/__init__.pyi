from .check import Reachability as Reachability
from .grasp_filter import GraspFilter as GraspFilter, turned_about_approach as turned_about_approach
from .result import (
    ReachabilityConfig as ReachabilityConfig,
    ReachResult as ReachResult,
    ReachResults as ReachResults,
    ReachStatus as ReachStatus,
)
from .warm_up import warm_up_reachability as warm_up_reachability
