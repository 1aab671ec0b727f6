"""Compile the kernels before the first cover has to wait for it."""

from __future__ import annotations

from morphit_ros.cover.actuation.placement import place_motors
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.control.supervision import SupervisedController
from morphit_ros.cover.simulation import SimulationConfig, simulate_cover

# A formula, a cylinder that is left, a strip, and a tunnel: all kinds of target, closure and cost.
_CASES = ("8x8", "thigh", "strip", "passage")
# Some periods of the controller [s].
_DURATION = 0.05


def warm_up() -> int:
    """Run every kind of case for some periods, and place motors: the cases. Half a minute without numba's cache."""
    for name in _CASES:
        case = load_case(name)
        simulate_cover(case.cover, case.state, case.target, SimulationConfig(duration=_DURATION), case.controller)
    small = load_case("3x3")
    place_motors(small.cover, [small.state], starts=1)
    SupervisedController(small.cover, small.state, small.controller).rehearse()
    return len(_CASES)
