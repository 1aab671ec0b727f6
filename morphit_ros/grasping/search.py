"""The planner's search: rounds of starts, fits and checks, until a good grasp is found.

Most objects need one round. Where it leaves little, because surfaces are bent, narrow or close to the table, other
draws follow, and copies of the best so far that are moved a little; their candidates join those of the rounds before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.candidates import (
    Candidates,
    backed_off,
    clear_of_table,
    collision_free,
    fit_all,
    make_starts,
    palm_free,
    settle_above_table,
    touching,
)
from morphit_ros.grasping.fitting.starts import starts_near
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.rejections import Rejections, Removed
from morphit_ros.grasping.scene import ObjectScene
from morphit_ros.grasping.scoring.ranking import Ranking, score_candidates

# Of the best candidates so many are varied, in so many copies each, by so much [m], [rad].
_BEST, _COPIES, _SHIFT, _TURN = 40, 25, 0.004, 0.3

Report = Callable[[str, float], None]


class Stopwatch:
    """Seconds spent on each stage, over all rounds."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """What has passed since the last call belongs to this stage."""
        now = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True)
class GraspSearch:
    """Where grasps are looked for.

    Attributes:
        scene: the object.
        solid: (M, 3) points that palm and fingers must not meet: the object's and its neighbours'.
        unseen: (L, 3) points of space that no camera saw and that counts as occupied; none where it counts as free.
        gripper, config, table: see `planner.plan_grasps`.
        rng: of all draws.
        removed: takes candidates that stages remove, None where nobody asks for them.
    """

    scene: ObjectScene
    solid: Array
    unseen: Array
    gripper: Gripper
    config: PlannerConfig
    table: SupportPlaneLike | None
    rng: np.random.Generator
    removed: list[Removed] | None = field(default=None, repr=False)

    def round(self, report: Report, clock: Stopwatch, before: Found | None = None) -> Found:
        """One round: new starts, and some near the best of the rounds before; fitted, checked and scored."""
        scene, gripper, config, table = self.scene, self.gripper, self.config, self.table
        rejected = Rejections(self.removed)
        report("starts", 0.1)
        starts, widest = make_starts(scene, gripper, config, self.rng, rejected)
        if before is not None and len(before.poses):
            best = before.poses.select(np.argsort(-before.ranking.scores, kind="stable")[:_BEST])
            near = starts_near(
                best.rotations, best.translations, best.apertures, _COPIES, _SHIFT, _TURN, self.rng
            )  # fmt: skip
            some = self.rng.permutation(len(starts))[: len(starts) // 2]
            starts = near.joined(starts.select(np.sort(some)))
        starts = clear_of_table(starts, gripper, config, table, rejected)
        if len(starts) > config.max_starts:
            starts = starts.select(np.sort(self.rng.choice(len(starts), size=config.max_starts, replace=False)))
        count = len(starts)
        starts = palm_free(starts, self.solid, gripper, config, rejected)
        clock.lap("starts")
        report("fit", 0.3)
        poses = fit_all(starts, scene, gripper, config, rejected)
        clock.lap("fit")
        report("check", 0.6)
        poses = settle_above_table(poses, gripper, config, table, rejected)
        poses = touching(poses, scene, gripper, config, rejected)
        poses, blocked = collision_free(poses, self.solid, self.unseen, gripper, config, table, rejected)
        if len(poses) < config.robust_candidates and len(blocked):
            poses = poses.joined(self._freed(blocked))
        clock.lap("check")
        report("rank", 0.8)
        passed = poses
        poses, ranking = score_candidates(passed, scene, gripper, config)
        if self.removed is not None:
            scored = {row.tobytes() for row in poses.translations}
            rejected.keep("score", passed, np.array([row.tobytes() not in scored for row in passed.translations]))
        clock.lap("rank")
        return Found(poses, ranking, rejected, count, widest)

    def _freed(self, blocked: Candidates) -> Candidates:
        """Of poses that meet the object on their way, what comes free further back and still has contact."""
        uncounted = Rejections()
        poses = settle_above_table(backed_off(blocked, self.gripper), self.gripper, self.config, self.table, uncounted)
        poses = touching(poses, self.scene, self.gripper, self.config, uncounted)
        return collision_free(poses, self.solid, self.unseen, self.gripper, self.config, self.table, uncounted)[0]


@dataclass(frozen=True)
class Found:
    """What rounds have found.

    Attributes:
        poses, ranking: candidates and their scores.
        rejected: stage → number of candidates that it removed.
        starts: number of starts.
        too_wide: the narrowest width that was too wide for the gripper [m], inf if none.
    """

    poses: Candidates
    ranking: Ranking
    rejected: Mapping[str, int]
    starts: int
    too_wide: float

    def joined(self, other: Found) -> Found:
        """Both together."""
        counts = {
            name: self.rejected.get(name, 0) + other.rejected.get(name, 0)
            for name in {**self.rejected, **other.rejected}
        }
        poses = self.poses.joined(other.poses)
        first, second = self.ranking, other.ranking
        ranking = Ranking(
            np.concatenate([first.scores, second.scores]),
            {name: np.concatenate([values, second.terms[name]]) for name, values in first.terms.items()},
            {name: np.concatenate([values, second.figures[name]]) for name, values in first.figures.items()},
        )
        return Found(poses, ranking, counts, self.starts + other.starts, min(self.too_wide, other.too_wide))
