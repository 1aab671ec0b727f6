"""What one step of the controller says: a status, motor rates, errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from morphit_ros.geometry.transforms import Array


class StepStatus(Enum):
    """What became of a step. In all but the first four the motors stop."""

    OK = "ok"
    ACCELERATION_RELAXED = "acceleration limit could not be kept"
    NEARLY_SINGULAR = "motors nearly singular"
    OUT_OF_REACH = "target out of reach"
    TARGET_NOT_FINITE = "target not finite at a node"
    GAP = "joints open"
    RANK_DROP = "singular configuration: more motions than motors"
    MOTORS_SINGULAR = "motors do not span the motions"
    QP_FAILED = "quadratic programme failed"

    @property
    def moves(self) -> bool:
        """Whether there is a command."""
        return self in (
            StepStatus.OK, StepStatus.ACCELERATION_RELAXED, StepStatus.NEARLY_SINGULAR, StepStatus.OUT_OF_REACH
        )  # fmt: skip


@dataclass(frozen=True)
class StepResult:
    """One step of the controller.

    Attributes:
        rates: (M,) motor rates in the order of `Cover.motors` [rad/s]; zero unless ``status.moves``.
        status: what became of it.
        angles: (N,) between normals and the target's [rad].
        distances: (N,) position errors [m].
        dof: degrees of freedom of the configuration.
        condition: of the motors' matrix over an orthonormal basis (2-norm); infinite when it was not reached.
        saturated: number of joint axes at their rate limit.
        iterations: of the quadratic programme.
        message: why not ok, or empty.
    """

    rates: Array
    status: StepStatus
    angles: Array
    distances: Array
    dof: int
    condition: float
    saturated: int
    iterations: int
    message: str = ""
