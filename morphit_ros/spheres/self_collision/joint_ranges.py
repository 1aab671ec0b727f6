"""The range of joint positions that is searched for contacts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.kinematics import KinematicModel


@dataclass(frozen=True)
class JointRanges:
    """Ranges of the joints that move on their own, in the order of `KinematicModel.joint_names`.

    Attributes:
        names: (V,) of the joints.
        lower, upper: (V,) [rad or m]; ±π where a turning joint has no limit.
        whole: (V,) False where the range leaves out positions: a follower of a joint without limits that turns
            slower or faster than it.
    """

    names: tuple[str, ...]
    lower: Array
    upper: Array
    whole: NDArray[np.bool_]

    def positions(self, given: Mapping[str, float]) -> Array:
        """Positions (V,) of joints by name, zero moved into the limits for the others.

        Raises:
            InvalidInputError: a position that is not finite.
        """
        rest = np.clip(np.zeros(len(self.names)), self.lower, self.upper)
        values = np.array([given.get(name, zero) for name, zero in zip(self.names, rest, strict=True)])
        if not np.isfinite(values).all():
            raise InvalidInputError("positions", values.tolist(), "finite numbers [rad or m]")
        return values


def joint_ranges(model: KinematicModel) -> JointRanges:
    """The ranges of a robot's joints.

    Raises:
        InvalidInputError: a sliding joint without limits.
    """
    lower, upper, motions = model.position_lower, model.position_upper, model.motions
    endless = ~(np.isfinite(lower) & np.isfinite(upper))
    for row in np.flatnonzero(endless):
        joint = model.description.joints[model.joint_names[row]]
        if joint.kind == "prismatic":
            raise InvalidInputError(f"joint '{joint.name}': limit", [joint.lower, joint.upper], "finite limits")
    whole = np.ones(len(lower), dtype=np.bool_)
    partly = endless[motions.variables] & (motions.sliding | (np.abs(motions.multipliers) != 1.0))
    whole[motions.variables[partly]] = False
    return JointRanges(model.joint_names, np.where(endless, -math.pi, lower), np.where(endless, math.pi, upper), whole)
