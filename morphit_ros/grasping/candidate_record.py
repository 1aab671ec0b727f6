"""What became of the candidates of a plan, for people who ask why a grasp is not offered.

    record = CandidateRecord()
    plan = plan_grasps(cloud, gripper, record=record)
    record.outcomes, record.candidates[0].checks()

A plan counts what each stage removes; a record holds poses too, at most so many of each outcome. What stood in the way
of one is measured when it is asked for, by the stages' own functions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array, make_transform, rotation_angle
from morphit_ros.grasping.candidates import Candidates, contacts_of
from morphit_ros.grasping.checking.sweeps import approach_hits, closing_hits, gripper_boxes, lowest_heights
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.rejections import Removed
from morphit_ros.grasping.search import Found, GraspSearch

OFFERED = "offered"
# Stages that look at several things at once: which one it was is found out for what is kept.
_COLLISIONS = ("collision at the start", "collision with the object")
# A stage that moved a pose onto its bound has met it.
_ROUNDING = 1e-9
_HALF_TURN = np.diag([-1.0, -1.0, 1.0])


class Check(NamedTuple):
    """What a check asks of a pose: a value, and the bound that it must not fall below, or else not exceed."""

    value: float
    bound: float
    is_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it is kept."""
        return (self.bound - self.value if self.is_least else self.value - self.bound) <= _ROUNDING

    def __str__(self) -> str:
        return f"{self.value:.4g}, at {'least' if self.is_least else 'most'} {self.bound:.4g}"


@dataclass(frozen=True)
class Candidate:
    """A candidate and what became of it, in the frame of the cloud.

    Attributes:
        outcome: "offered", or the stage of `GraspPlan.rejected` that removed it; where palm or fingers hit something,
            "collision with the object", "… with an obstacle" or "… with the table". Of those that passed all checks:
            "unreachable", "clearance", "near a better grasp", or "score" where better ones were enough.
        T_world_gripper: (4, 4).
        aperture: between the pads [m]: at contact once the fingers were closed on it, before that of the start.
        score: None where it was not scored.
        metrics: as of `Grasp` where it is offered, else the terms of the score; empty where it was not scored.
        grasp: the grasp where it is offered.
    """

    outcome: str
    T_world_gripper: Array
    aperture: float
    score: float | None
    metrics: Mapping[str, float]
    grasp: Grasp | None
    _measure: Callable[[Candidate], dict[str, Check]] = field(repr=False, compare=False)

    def checks(self) -> dict[str, Check]:
        """Name with unit → what the checks ask for; those that are not met first."""
        return self._measure(self)

    def content(self) -> dict[str, Any]:
        """Plain data: SI units, the pose as 4 × 4 rows in the frame of the cloud."""
        return {
            "outcome": self.outcome,
            "T_world_gripper": self.T_world_gripper.tolist(),
            "aperture": self.aperture,
            "score": self.score,
            "metrics": {name: float(value) for name, value in self.metrics.items()},
            "checks": {
                name: {"value": check.value, "at_least" if check.is_least else "at_most": check.bound}
                for name, check in self.checks().items()
            },
        }


class CandidateRecord:
    """Candidates of one plan by what became of them.

    Args:
        most: kept of each outcome.

    Attributes:
        candidates: offered ones first, best first; then by outcome, in the order of the stages.
    """

    def __init__(self, most: int = 200) -> None:
        self._most = most
        self.candidates: list[Candidate] = []

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome → number of candidates that are kept of it."""
        return dict(Counter(candidate.outcome for candidate in self.candidates))

    def fill(
        self, search: GraspSearch, found: Found, grasps: Sequence[Grasp], refused: Mapping[str, AbstractSet[bytes]]
    ) -> None:
        """Take over what a search removed, what it scored and what came of that.

        Args:
            search: with its `removed`.
            found: of all rounds.
            grasps: that are offered.
            refused: reason → poses (4, 4), as bytes, that were refused after the ranking.
        """
        measure = _Measure(search)
        offered = [Candidate(OFFERED, g.T_world_gripper, g.aperture, g.score, g.metrics, g, measure) for g in grasps]
        shown = {grasp.T_world_gripper.tobytes() for grasp in grasps}
        others: dict[str, list[Candidate]] = {}
        for removed in search.removed or ():
            for outcome, row in zip(measure.outcomes(removed), range(len(removed.apertures)), strict=True):
                pose = _frame(search, removed.rotations[row], removed.translations[row], removed.apertures[row])
                others.setdefault(outcome, []).append(
                    Candidate(outcome, pose, float(removed.apertures[row]), None, {}, None, measure)
                )
        order = np.argsort(-found.ranking.scores, kind="stable")
        for s in order:
            pose = _frame(search, found.poses.rotations[s], found.poses.translations[s], found.poses.apertures[s])
            if (key := pose.tobytes()) in shown:
                continue
            outcome = next((name for name, poses in refused.items() if key in poses), "")
            outcome = outcome or ("near a better grasp" if _is_near(pose, grasps, search) else "score")
            terms = {f"term_{name}": float(values[s]) for name, values in found.ranking.terms.items()}
            terms |= {name: float(values[s]) for name, values in found.ranking.figures.items()}
            aperture, score = float(found.poses.apertures[s]), float(found.ranking.scores[s])
            scored = Candidate(outcome, pose, aperture, score, terms, None, measure)
            others.setdefault(outcome, []).append(scored)
        # Scored ones come before the rest of the same outcome, which had lower ones.
        kept = [sorted(group, key=lambda one: one.score is None)[: self._most] for group in others.values()]
        self.candidates = offered + [candidate for group in kept for candidate in group]


def _frame(search: GraspSearch, rotation: Array, translation: Array, aperture: float) -> Array:
    """``T_world_gripper`` (4, 4) of a candidate, whose translation is that of the middle between its pads."""
    return make_transform(rotation, search.gripper.frames_of_pads(rotation, translation, aperture))


def _is_near(pose: Array, grasps: Sequence[Grasp], search: GraspSearch) -> bool:
    """Whether a grasp that is offered counts as the same."""
    distance, angle = search.config.suppression_distance, math.radians(search.config.suppression_angle)
    for grasp in grasps:
        other = grasp.T_world_gripper
        if np.linalg.norm(other[:3, 3] - pose[:3, 3]) < distance:
            turns = (other[:3, :3].T @ turned for turned in (pose[:3, :3], pose[:3, :3] @ _HALF_TURN))
            if min(rotation_angle(turn) for turn in turns) < angle:
                return True
    return False


class _Measure:
    """Asks the planner's checks about single poses."""

    def __init__(self, search: GraspSearch) -> None:
        self._search, self._boxes = search, gripper_boxes(search.gripper)
        count = len(search.scene.points)
        self._parts = {
            "the object": search.solid[:count], "an obstacle": search.solid[count:], "unseen space": search.unseen,
        }  # fmt: skip

    def outcomes(self, removed: Removed) -> list[str]:
        """The stage of each, or of collisions what was met first: object, obstacle, table."""
        if removed.stage not in _COLLISIONS:
            return [removed.stage.removesuffix(" after the fit")] * len(removed.apertures)
        limit, zeros = self._search.config.allowed_hits, np.zeros(len(removed.apertures))
        poses = Candidates(removed.rotations, removed.translations, removed.apertures, zeros, zeros)
        inside = {part: self._inside(poses, part) > limit for part in ("the object", "an obstacle")}
        low = self._heights(poses) < self._search.config.table_clearance
        words = [
            "the object" if met else "an obstacle" if beside else "the table" if under else "the object"
            for met, beside, under in zip(inside["the object"], inside["an obstacle"], low, strict=True)
        ]
        return [f"collision with {word}" for word in words]

    def __call__(self, candidate: Candidate) -> dict[str, Check]:
        search, config, gripper = self._search, self._search.config, self._search.gripper
        matrix, zero = candidate.T_world_gripper, np.zeros(1)
        apertures = np.array([candidate.aperture])
        rotations = matrix[None, :3, :3].copy()
        middles = gripper.pads_of_frames(rotations, matrix[None, :3, 3].copy(), apertures)
        pose = Candidates(rotations, middles, apertures, zero, zero)
        contacts = contacts_of(pose, search.scene, gripper, config)
        margin = 0.5 * (gripper.aperture_max - candidate.aperture)
        least_width = max(search.scene.min_width, gripper.aperture_min)
        checks = {
            f"points of {part} inside palm or fingers": Check(float(self._inside(pose, part)[0]), config.allowed_hits)
            for part, points in self._parts.items()
            if len(points)
        }
        if search.table is not None:
            height = float(self._heights(pose)[0])
            checks["height above the table [m]"] = Check(height, config.table_clearance, True)
        area = float(contacts.overlap[0])
        checks["area that both pads press [m^2]"] = Check(area, config.min_overlap * config.contact_area, True)
        if contacts.touched[0]:
            angle = float(contacts.angles[0].max())
            checks["angle of the contact normals [rad]"] = Check(angle, math.atan(config.friction))
        checks["opening left on each side [m]"] = Check(margin, config.min_opening_margin, True)
        checks["width [m]"] = Check(candidate.aperture, least_width, True)
        if search.scene.prefers_approach:
            tilt = math.acos(min(max(float(matrix[:3, 2] @ search.scene.approach), -1.0), 1.0))
            checks["angle to the preferred approach [rad]"] = Check(tilt, math.radians(config.max_approach_tilt))
        return dict(sorted(checks.items(), key=lambda item: item[1].met))

    def _openings(self, poses: Candidates) -> list[Array]:
        """The widest and the narrowest that fingers come in with."""
        narrow = poses.apertures + 2.0 * self._search.config.opening_margin
        widest = self._search.gripper.aperture_max
        return [np.full(len(poses), widest), np.minimum(widest, narrow)]

    def _inside(self, poses: Candidates, part: str) -> Array:
        """(S,) points of a part inside the hand on approach and closing, of the opening that meets fewest."""
        config, points = self._search.config, np.ascontiguousarray(self._parts[part])
        counts = []
        for openings in self._openings(poses):
            ways = points, poses.rotations, poses.translations
            swept = approach_hits(*ways, openings, self._boxes, config.pregrasp_distance, contacts=poses.apertures)
            closed = closing_hits(*ways, openings, poses.apertures, self._boxes, config.contact_tolerance)
            counts.append(np.maximum(swept.inside, closed.inside).astype(np.float64))
        return np.minimum(*counts)

    def _heights(self, poses: Candidates) -> Array:
        """(S,) height of the hand above the table on the approach [m], of the opening that leaves most."""
        if self._search.table is None:
            return np.full(len(poses), np.inf)
        table, sweep = self._search.table.T_world_table, self._search.config.pregrasp_distance
        ways = self._boxes, poses.rotations, poses.translations
        return np.maximum(
            *(lowest_heights(*ways, openings, table, sweep, poses.apertures) for openings in self._openings(poses))
        )
