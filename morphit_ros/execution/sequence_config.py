"""Settings of the grasp sequence."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter


@dataclass(frozen=True)
class SequenceConfig(Config):
    """Speeds, tolerances and time limits of a pick."""

    approach_speed: float = parameter(0.08, "Speed of the straight approach [m/s]", minimum=0.005, maximum=0.5)
    lift_speed: float = parameter(0.1, "Speed of the lift [m/s]", minimum=0.005, maximum=0.5)
    lift_height: float = parameter(0.2, "Height of the lift [m]", minimum=0.01, maximum=1.0)
    hold_time: float = parameter(1.0, "The object must be held this long after the lift [s]", minimum=0.0, maximum=60.0)
    close_bias: float = parameter(0.02, "The fingers are sent this much beyond contact [m]", minimum=0.0, maximum=0.1)
    max_effort: float = parameter(
        0.0, "Closing force [N]; 0 means the gripper's own limit", minimum=0.0, maximum=1000.0
    )
    stall_margin: float = parameter(
        0.0015,
        "The fingers hold something if they stop this much short of where they were sent [m]",
        minimum=1e-4,
        maximum=0.02,
    )
    slip_margin: float = parameter(
        0.006,
        "Closing by more than this after the grasp means that the object was lost [m]",
        minimum=1e-3,
        maximum=0.05,
    )
    open_tolerance: float = parameter(0.003, "Accepted error of the opening [m]", minimum=1e-4, maximum=0.02)
    gripper_timeout: float = parameter(4.0, "Time limit of a finger motion [s]", minimum=0.1, maximum=60.0)
    rest_aperture: float = parameter(5e-4, "Change of the aperture that counts as rest [m]", minimum=1e-5, maximum=0.01)
    rest_time: float = parameter(0.2, "The fingers rest if unchanged for this long [s]", minimum=0.02, maximum=5.0)
    goal_tolerance: float = parameter(0.02, "Joint error at the end of a motion [rad]", minimum=1e-4, maximum=0.5)
    rest_speed: float = parameter(0.05, "Joint speed that counts as rest [rad/s]", minimum=1e-4, maximum=1.0)
    goal_margin: float = parameter(2.0, "Time limit beyond the duration of a motion [s]", minimum=0.1, maximum=60.0)
    tracking_bound: float = parameter(
        0.15, "Largest deviation of a joint from its trajectory [rad]", minimum=0.005, maximum=3.0
    )
    tracking_delay: float = parameter(0.3, "Lag of the arm that is accepted [s]", minimum=0.0, maximum=5.0)
    state_timeout: float = parameter(0.5, "Oldest joint state that is acted upon [s]", minimum=0.02, maximum=10.0)
