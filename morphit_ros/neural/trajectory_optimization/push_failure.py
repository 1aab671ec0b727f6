"""What happens in a planned push that misses its goal, for people."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import matrix_from_quat_xyzw
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan

# Tilt [rad] of an object that falls; share of the way that is no motion, and share that is as good as the goal.
_FALLEN, _UNMOVED, _NEAR = 0.5, 0.1, 0.05


def explain_failure(plan: PushPlan) -> str:
    """What happens to the object in a plan that does not succeed, and what to change."""
    first = matrix_from_quat_xyzw(plan.object_quats_xyzw[0])
    # The tilt of what pointed up at the start.
    tilts = np.array([np.arccos(np.clip((matrix_from_quat_xyzw(quat) @ first.T)[2, 2], -1.0, 1.0))
                      for quat in plan.object_quats_xyzw])  # fmt: skip
    over = np.flatnonzero(tilts > _FALLEN)
    moved = float(np.linalg.norm(plan.object_positions[-1] - plan.object_positions[0]))
    length = float(np.linalg.norm(plan.goal[:2] - plan.object_positions[0, :2]))
    if plan.miss < _NEAR * length:
        return (
            f"the object ends {1e3 * plan.miss:.1f} mm from the goal, but object or sphere do not stop there in time; "
            "choose a longer duration"
        )
    if len(over):
        return (
            f"the object tips by {np.degrees(tilts.max()):.0f} degrees, past {np.degrees(_FALLEN):.0f} after "
            f"{plan.times[over[0]]:.2f} s; it is too tall for its foot: choose a longer duration, less friction or a "
            "nearer goal"
        )
    if moved < _UNMOVED * length:
        return (
            f"the sphere hardly moves the object ({1e3 * moved:.1f} mm of {1e3 * length:.0f} mm); choose a goal in "
            "another direction, where the sphere begins behind a broad side, or less friction"
        )
    return (
        f"the object ends {1e3 * plan.miss:.0f} mm from the goal, lying as before; it slips off the sphere or does not "
        "stop in time: choose a longer duration, a nearer goal, or one straight ahead of a broad side"
    )
