"""What became of one pick, in the words of the DISF paper and with our own for what it does not count."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Outcome(enum.Enum):
    """How a pick ended.

    A contact-induced abort is one whose approach was stopped by a contact or shifted the object; a misgrasp closed
    its fingers and did not hold, turned or dropped the object.
    """

    SUCCESS = "success"
    MISGRASP = "misgrasp"
    CONTACT_ABORT = "contact-induced abort"
    NO_PLAN = "no plan"
    UNREACHABLE = "unreachable"
    NOT_SEEN = "not seen"
    ERROR = "error"


@dataclass(frozen=True)
class PickResult:
    """What became of one pick.

    Attributes:
        kind: how it ended.
        stage: where it failed: see, plan_grasp, a stage of the sequence, or result; empty on success.
        message: the cause of a failure.
        executed: whether a grasp was executed.
        ready: after a failure, whether the hand is open and out of the way, so that another pick may begin.
        offset: distance between the object and where a rigid grasp would have carried it [m].
        turn: the same as an angle [rad].
        rise: how far the object rose [m].
        shift: how far the approach moved the object before the fingers closed [m].
        self_contacts: pairs of the robot's links that touched each other.
        planning_time: of the grasp planner, reachability included, processor time [s].
        durations: stage → seconds; wall time for see and plan_grasp, simulated time for the others.
        T_world_gripper: (4, 4) as nested lists, the grasp that was executed; empty if none was.
        grasp_metrics: of that grasp.
        mass, mass_deviation: as weighed [kg]; not a number where nothing was.
        center: (3,) of mass as weighed, in the world, at the middle of the height that was seen; empty where nothing
            was weighed [m].
        center_covariance: (3, 3) of its error; empty as it is [m²].
        recognised: what a library knew the object as, empty without one.
    """

    kind: Outcome
    stage: str = ""
    message: str = ""
    executed: bool = False
    ready: bool = False
    offset: float = float("nan")
    turn: float = float("nan")
    rise: float = float("nan")
    shift: float = float("nan")
    self_contacts: list[list[str]] = field(default_factory=list)
    planning_time: float = float("nan")
    durations: dict[str, float] = field(default_factory=dict)
    T_world_gripper: list[list[float]] = field(default_factory=list)
    grasp_metrics: dict[str, float] = field(default_factory=dict)
    mass: float = float("nan")
    mass_deviation: float = float("nan")
    center: list[float] = field(default_factory=list)
    center_covariance: list[list[float]] = field(default_factory=list)
    recognised: str = ""

    @property
    def success(self) -> bool:
        """Lifted, held, and within the bounds of where it should be."""
        return self.kind is Outcome.SUCCESS
