"""What grasp planning returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class Grasp:
    """One grasp of a parallel gripper, in the frame of the object cloud (called world here).

    Attributes:
        T_world_gripper: (4, 4), gripper frame as in `morphit_ros.grasping.gripper`.
        T_world_pregrasp: (4, 4), the same orientation, backed off along the approach.
        aperture: opening at contact [m]; the fingers close to it.
        open_aperture: opening during the approach [m].
        score: higher is better; comparable within one plan only.
        confidence: in [0, 1]: the score, lowered where the object's hidden sides had to be guessed.
        metrics: named figures, SI units (E_geom, E_com, clearance, contacts_1, contacts_2, …); `seen` is the share of
            the contact that is on sides that cameras saw, the lower of both pads'; `hold`: see there.
        contact_points: (M, 3) object points matched with the pads [m].
        contact_fingers: (M,) 1 or 2, the finger that each contact point belongs to.
    """

    T_world_gripper: Array
    T_world_pregrasp: Array
    aperture: float
    open_aperture: float
    score: float
    metrics: Mapping[str, float]
    contact_points: Array
    contact_fingers: NDArray[np.int64]
    confidence: float = 1.0

    @property
    def on_seen_sides(self) -> bool:
        """Whether most of what either pad touches is on a side that a camera saw (metric `seen`)."""
        return self.metrics.get("seen", 1.0) >= 0.5

    @property
    def hold(self) -> float:
        """Specific force that is certified to be held in every direction [m/s²]; metric `hold`.

        Over errors of pose, centre of mass, mass and friction; 9.81 is at rest, 0 is nothing certified.
        `scoring.hold` says what it assumes.
        """
        return self.metrics.get("hold", 0.0)


@dataclass(frozen=True)
class GraspPlan:
    """Ranked grasps and the account of what was discarded.

    Attributes:
        grasps: best first; empty if none was found.
        rejected: stage → number of candidates that it removed, in the order of the stages.
        candidates: number of starts.
        timings: stage → seconds.
        message: for an empty plan, the stage that emptied it and what can be done.
    """

    grasps: list[Grasp]
    rejected: Mapping[str, int]
    candidates: int
    timings: Mapping[str, float] = field(default_factory=dict)
    message: str = ""

    @property
    def success(self) -> bool:
        return bool(self.grasps)
