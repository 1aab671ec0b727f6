"""What happens in a planned push that misses its goal, for people."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import matrix_from_quat_xyzw
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push_plan import PlanOrigin, PushPlan

# Tilt [rad] of an object that falls; share of the way that is no motion, and share that is as good as the goal.
_FALLEN, _UNMOVED, _NEAR = 0.5, 0.1, 0.05


def explain_failure(plan: PushPlan) -> str:
    """What happens to the object in a plan that does not succeed, and what to change."""
    if plan.origin is PlanOrigin.UNJUDGED or plan.status is TrajectoryStatus.DIVERGED:
        return f"there is no motion to judge: {plan.message}; see that the sphere begins beside the object, at rest"
    first = matrix_from_quat_xyzw(plan.object_quats_xyzw[0])
    # The tilt of what pointed up at the start.
    tilts = np.array([np.arccos(np.clip((matrix_from_quat_xyzw(quat) @ first.T)[2, 2], -1.0, 1.0))
                      for quat in plan.object_quats_xyzw])  # fmt: skip
    over = np.flatnonzero(tilts > _FALLEN)
    moved = float(np.linalg.norm(plan.object_positions[-1] - plan.object_positions[0]))
    length = float(np.linalg.norm(plan.goal[:2] - plan.object_positions[0, :2]))
    if plan.miss < _NEAR * length:
        return f"the object ends {1e3 * plan.miss:.1f} mm from the goal, but {_unfinished(plan)} (the optimiser: " + (
            f"{plan.message}); choose a longer duration"
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
    ends = f"the object ends {1e3 * plan.miss:.0f} mm from the goal, lying as before"
    gaps = np.linalg.norm(plan.object_positions - plan.pusher_positions, axis=1)
    speed = float(np.linalg.norm(plan.states[-1, 0, 7:10]))
    # What it would still slide in a step counts as rest.
    if speed * plan.config.timestep > _NEAR * plan.miss:
        return f"{ends}, and still moves by {1e3 * speed:.0f} mm/s: choose a longer duration, or more friction"
    aside = float(gaps[-1] - gaps.min())
    if aside > _NEAR * length:
        return (
            f"{ends}; it slipped off the sphere, which is {1e3 * aside:.0f} mm farther from it at the end than on the "
            "way: choose a goal straight ahead of a broad side, or a nearer one"
        )
    return (
        f"{ends}, at rest before the sphere; the optimiser ended there: {plan.message}. Allow more of its steps, or "
        "choose a longer duration or a nearer goal"
    )


def _unfinished(plan: PushPlan) -> str:
    """Which of the other wishes at the end is missed the most, in the units of the constraints."""
    root = np.sqrt(plan.config.length)
    missed = {"it comes no nearer": 0.0}
    if plan.config.pusher_at_goal:
        away = float(np.linalg.norm(plan.pusher_positions[-1] - plan.pusher_goal))
        missed[f"the sphere is {1e3 * away:.0f} mm from its own goal"] = away / plan.config.length
    if plan.config.arrive_at_rest:
        for name, state in zip(("object", "sphere"), plan.states[-1], strict=True):
            speed = float(np.linalg.norm(state[7:9]))
            missed[f"the {name} still moves by {1e3 * speed:.0f} mm/s"] = speed / root
        turn = float(abs(plan.states[-1, 0, 12]))
        missed[f"the object still turns by {np.degrees(turn):.0f} degrees/s"] = root * turn
    return max(missed, key=lambda words: missed[words])
