"""Parameters of the controller of a cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter


@dataclass(frozen=True)
class ControllerConfig(Config):
    """Gains, weights and limits. The defaults are the paper's."""

    period: float = parameter(0.01, "Time between two commands [s]", minimum=1e-4, maximum=1.0)
    rate_limit: float = parameter(
        float(np.radians(5.0)),
        "Greatest relative rate on every axis of every joint [rad/s]",
        minimum=1e-4,
        maximum=10.0,
    )
    gain: float = parameter(85.714, "Ka of the alignment law [1/s]", minimum=0.0, maximum=1e4)
    gain_offset: float = parameter(60.0 / 70.0, "Kb of the alignment law", minimum=1e-3, maximum=1e3)
    greatest_rate: float = parameter(1e6, "Greatest wanted turning of a node, in units of the rate limit", minimum=1e-2)
    variation_weight: float = parameter(0.0, "Weight of (u - last u)^2 (the paper's 4 x 8: 500)", minimum=0.0)
    effort_weight: float = parameter(0.0, "Weight of u^2", minimum=0.0)
    spin_weight: float = parameter(1.0, "Weight of a node's turning about its own normal", minimum=0.0, maximum=1e3)
    position_weight: float = parameter(0.0, "Weight of (velocity - wanted velocity)^2 [1/m^2]", minimum=0.0)
    position_gain: float = parameter(2.0, "Wanted velocity over position error [1/s]", minimum=0.0, maximum=100.0)
    acceleration_limit: float = parameter(0.0, "Greatest acceleration of a motor [rad/s^2]; 0: no limit", minimum=0.0)
    collision_distance: float = parameter(
        -1.0, "Least distance of nodes that share no face [m]; 0: not watched, -1: a pitch", minimum=-1.0, maximum=1.0
    )
    collision_time: float = parameter(0.2, "Time constant of the approach to that distance [s]", minimum=1e-3)
    reach_angle: float = parameter(
        float(np.radians(10.0)), "Mean angle up to which a target counts as reached [rad]", minimum=0.0, maximum=3.2
    )
    reach_distance: float = parameter(
        0.01, "Mean distance up to which a target counts as reached [m]", minimum=0.0, maximum=10.0
    )
    reach_time: float = parameter(
        2.0, "A target at rest that comes no nearer for this long is out of reach [s]; 0: not watched", minimum=0.0
    )
    whole_step: bool = parameter(
        True, "Keep limits all along a step, which is predicted for it; off: where it begins, in a fraction of the time"
    )
    gap_limit: float = parameter(1e-4, "Greatest opening of a face that is still worked with [m]", minimum=1e-9)
    condition_limit: float = parameter(
        1e4, "Beyond this condition of the motors' matrix they turn only where that lowers it", minimum=1.0
    )
    condition_target: float = parameter(
        500.0, "Condition that the cover is kept below where its limits let it; 0: not watched", minimum=0.0
    )
    condition_time: float = parameter(0.2, "Time constant of the approach to that condition [s]", minimum=1e-3)
    damping: float = parameter(1e-9, "Added to the Hessian, relative to its mean diagonal", minimum=0.0, maximum=1.0)
    solver: str = parameter("daqp", "Library of the quadratic programme")
