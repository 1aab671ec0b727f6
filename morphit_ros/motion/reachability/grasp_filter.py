"""The reachability check as a grasp planner asks for it: one grasp after the other, with an account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.reachability.result import ReachResult, ReachResults, ReachStatus

# The gripper turned by 180° about its approach.
FLIP: Array = np.diag([-1.0, -1.0, 1.0, 1.0])


class PlannedGrasp(Protocol):
    """What is asked of a grasp: `morphit_ros.grasping.Grasp` has it."""

    @property
    def T_world_gripper(self) -> Array: ...

    @property
    def T_world_pregrasp(self) -> Array: ...

    @property
    def aperture(self) -> float: ...

    @property
    def open_aperture(self) -> float: ...


class GraspFilter:
    """Answers whether grasps can be reached, and remembers how.

    Args:
        check: answers for several grasps, as `Reachability.check_grasps`.

    Attributes:
        counts: outcome → number of grasps that were asked for.
    """

    def __init__(self, check: Callable[[Sequence[PlannedGrasp]], ReachResults]) -> None:
        self._check = check
        # With the grasp itself, so that its identity stays its own.
        self._answers: dict[int, tuple[PlannedGrasp, ReachResult]] = {}
        self.counts: Counter[ReachStatus] = Counter()

    def __call__(self, grasp: PlannedGrasp) -> bool:
        return self.result(grasp).reachable

    def result(self, grasp: PlannedGrasp) -> ReachResult:
        """The answer for a grasp."""
        if id(grasp) not in self._answers:
            self._answers[id(grasp)] = grasp, self._check([grasp])[0]
            self.counts[self._answers[id(grasp)][1].status] += 1
        return self._answers[id(grasp)][1]

    @property
    def account(self) -> str:
        """What became of the grasps that cannot be reached, in words; empty if there are none."""
        refused = [
            (status, count) for status, count in self.counts.most_common() if status is not ReachStatus.REACHABLE
        ]
        return ", ".join(f"{status.value}: {count}" for status, count in refused)


def turned_about_approach(T_world_gripper: Array) -> Array:
    """The same grasp (4, 4) with the fingers exchanged."""
    return T_world_gripper @ FLIP
