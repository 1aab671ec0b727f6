"""A path as the fastest motion that can be proven free as it is sent."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.certificate import Verdict, certify_path
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.planner import PathPlan
from morphit_ros.motion.world import World
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.path_timing import time_path
from morphit_ros.robot.trajectory_timing import chord_deviations

# A rounded corner that touches is tried sharper by this, and at last the motion stops in each corner.
_SHARPER = (1.0, 0.2, 0.0)


@dataclass(frozen=True)
class TimingLimits:
    """What a motion along a path may be.

    Attributes:
        velocities, accelerations: (J,) greatest ones of the joints [rad/s or m/s, rad/s² or m/s²].
        blend: greatest deviation where corners are rounded, in the norm of joints [rad].
        time_step: between the rows of a trajectory [s].
        proof_budget: most configurations that a proof looks at.
    """

    velocities: Array
    accelerations: Array
    blend: float = 0.05
    time_step: float = 0.02
    proof_budget: int = 20_000


def time_proven(
    model: ArmModel, world: World, plan: PathPlan, limits: TimingLimits, proof_time: float = np.inf
) -> tuple[Trajectory, bool]:
    """The fastest motion along a path that was found, with corners as round as it can be proven free with.

    Args:
        model, world, plan: of `plan_path`.
        limits: what the motion may be.
        proof_time: for the proofs of all motions that are tried together [s]; what is left when it ends is the motion
            that stops in each corner.

    Returns:
        The motion, and whether it is proven free, with the cubics between its rows.
    """
    solids = world.arrays_for(model.parts)
    proven = False
    for sharper in _SHARPER:
        trajectory = time_path(
            model.joints, plan.path, sharper * limits.blend, limits.velocities, limits.accelerations, limits.time_step
        )
        # With a stop in each corner the way is the path itself.
        certificate = plan.certificate
        if sharper > 0.0 and len(trajectory.times) > 1:
            beside = chord_deviations(trajectory)
            began = time.monotonic()
            certificate = certify_path(
                model.arrays, solids, trajectory.positions, limits.proof_budget, beside, began + proof_time
            )
            proof_time -= time.monotonic() - began
        proven = certificate is not None and certificate.verdict is Verdict.PROVEN_FREE
        if proven:
            break
    return trajectory, proven
