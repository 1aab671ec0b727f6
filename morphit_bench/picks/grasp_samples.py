"""Good and poor grasps, each tried in physics: what the score's weights are tuned and judged on.

A plan's candidates are kept in great number; some from all over the ranking are executed, each in the same reset
workcell and off by an error of the arm. Which ones and how far off depends on the trial's seed only. Where everything
is as planned, nearly all that the planner's checks let pass holds, and outcomes say little about the weights.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.grasping.methods import MorphitMethod
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.pick import PickJob
from morphit_bench.picks.runs import come_to_rest, workcell_config
from morphit_bench.picks.trials import Trial, TrialConfig, draw_trial, trial_object
from morphit_bench.picks.views import SETTINGS, ObjectView, known_shape, observed_shape
from morphit_ros.batch import BatchConfig, BatchRecords, read_batch, run_batch
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.grasping import Grasp, GraspPlan, PlannerConfig
from morphit_ros.grasping.scoring.quality import ScoreWeights
from morphit_ros.simulation.objects import SimulatedObject, load_object
from morphit_ros.simulation.workcell import Workcell

SAMPLES = "samples.jsonl"
TERMS = tuple(field.name for field in fields(ScoreWeights))
HAND_SET = ScoreWeights(
    alignment=2.0, overlap=2.0, balance=2.0, hold=3.0, closure=1.0,
    robust=3.0, clearance=1.5, approach=1.0, margin=1.0, seen=1.0,
)  # fmt: skip
"""What the weights were before they were tuned."""


@dataclass(frozen=True)
class SamplingConfig(Config):
    """Which grasps are tried."""

    per_plan: int = parameter(6, "Grasps tried of each plan, the best one among them", minimum=1, maximum=1000)
    kept: int = parameter(500, "Candidates that a plan keeps at most", minimum=2, maximum=1000)
    distance: float = parameter(
        0.006, "Of candidates closer than this and the angle only the best is kept [m]", minimum=0.0, maximum=0.1
    )
    angle: float = parameter(12.0, "See distance [deg]", minimum=0.0, maximum=180.0)
    position_error: float = parameter(
        0.004, "Standard deviation of where the gripper goes, along each axis [m]", minimum=0.0, maximum=0.05
    )
    angle_error: float = parameter(
        4.0, "Standard deviation of how the gripper is turned, about each axis [deg]", minimum=0.0, maximum=45.0
    )


@dataclass(frozen=True)
class GraspSample:
    """One grasp that was executed.

    Attributes:
        setting: known or observed.
        rank: in its plan, from 0.
        count: of the plan's grasps.
        score: by the planner's weights at the time.
        terms: name as in `ScoreWeights` → value in [0, 1].
        kind: how the pick ended, a value of `Outcome`.
        stage: where it failed, empty on success.
    """

    setting: str
    rank: int
    count: int
    score: float
    terms: dict[str, float]
    kind: str
    stage: str

    @property
    def success(self) -> bool:
        """Lifted, held, and within the bounds of where it should be."""
        return self.kind == Outcome.SUCCESS.value


@dataclass(frozen=True)
class SampleGroup:
    """All grasps tried of one trial with one gripper.

    Attributes:
        object, number: of the trial.
        gripper: that flew.
        samples: in both settings.
        busy: processor time [s].
    """

    object: str
    number: int
    gripper: str
    samples: tuple[GraspSample, ...]
    busy: float = 0.0

    @property
    def key(self) -> tuple[str, int, str]:
        """Which one it is."""
        return self.object, self.number, self.gripper

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SampleGroup:
        """The inverse of `dataclasses.asdict`."""
        return cls(**{**data, "samples": tuple(GraspSample(**sample) for sample in data["samples"])})


@dataclass(frozen=True)
class SamplePlan:
    """What is sampled.

    Attributes:
        objects: names of `load_object`.
        grippers: names of config/grippers.
        settings: known, observed.
        trials: of each object with each gripper.
        sampling: which grasps.
        ranges: that trials are drawn from.
        weights: that the planner ranks with.
        data: folder of the objects, None for the default one.
    """

    objects: tuple[str, ...]
    grippers: tuple[str, ...] = ("franka_hand", "hande", "umi")
    settings: tuple[str, ...] = SETTINGS
    trials: int = 2
    sampling: SamplingConfig = SamplingConfig()
    ranges: TrialConfig = TrialConfig()
    weights: ScoreWeights = HAND_SET
    data: str | None = None

    def __post_init__(self) -> None:
        for value in self.settings:
            if value not in SETTINGS:
                raise InvalidInputError("settings", repr(value), f"one of {', '.join(SETTINGS)}")
        counts = [len(self.objects), len(self.grippers), len(self.settings), self.trials]
        if min(counts) < 1:
            raise InvalidInputError("objects, grippers, settings, trials", counts, "at least one of each")

    @property
    def identity(self) -> dict[str, Any]:
        """What samples must have in common to be in one file."""
        return {
            "program": "grasp samples",
            "settings": self.settings,
            "sampling": self.sampling.to_flat(),
            "ranges": self.ranges.to_flat(),
            "weights": self.weights.to_flat(),
        }

    def keys(self) -> list[tuple[str, int, str]]:
        """All groups; every object has had its first trial before the second ones begin."""
        return [
            (name, number, gripper)
            for number in range(self.trials)
            for name in self.objects
            for gripper in self.grippers
        ]


def read_samples(folder: str | Path, plan: SamplePlan | None = None) -> list[SampleGroup]:
    """Finished groups of a folder; a line that was cut short when a run was killed is left out.

    Args:
        folder: where samples were collected.
        plan: what they must belong to, None for anything.

    Raises:
        InvalidInputError: they were sampled in another way.
    """
    return list(map(SampleGroup.from_json, read_batch(Path(folder) / SAMPLES, None if plan is None else plan.identity)))


def collect_samples(
    plan: SamplePlan,
    folder: str | Path,
    batch: BatchConfig | None = None,
    resume: bool = False,
    budget: float = float("inf"),
    progress: Callable[[SampleGroup, int, int], None] | None = None,
) -> list[SampleGroup]:
    """Sample what is not done yet; every finished group is on disk before the next one is waited for.

    Args:
        plan: what to sample.
        folder: for the samples.
        batch: who samples.
        resume: continue in a folder that has samples.
        budget: processor time after which no more is begun [s].
        progress: called with each new group, how many are done, and how many there are.

    Raises:
        InvalidInputError: the folder has samples and `resume` is false, or they were sampled in another way.
        ResourceNotFoundError: an object or gripper is unknown.
        BatchStoppedError: a worker has gone; see `run_batch`.
    """
    keys = plan.keys()
    with BatchRecords(Path(folder) / SAMPLES, plan.identity, resume) as finished:
        count, spent = sum(key in finished for key in keys), 0.0
        tasks = [(key, (plan, *key)) for key in keys]
        with contextlib.closing(run_batch(_sample_plain_group, tasks, finished, batch)) as results:
            for _, data in results:
                group = SampleGroup.from_json(data)
                count += 1
                spent += group.busy
                if progress is not None:
                    progress(group, count, len(keys))
                if spent > budget:
                    break
        return [SampleGroup.from_json(finished[key]) for key in keys if key in finished]


_Task = tuple[SamplePlan, str, int, str]


def _sample_plain_group(task: _Task) -> dict[str, Any]:
    return asdict(sample_group(task))


@cache
def _job(gripper: str) -> PickJob:
    return PickJob.flying(gripper)


@cache
def _usual_object(name: str, data: str | None) -> SimulatedObject:
    return load_object(name, data_dir=data)


def sample_group(task: _Task) -> SampleGroup:
    """Plan for one trial in every setting, and execute grasps from all over the ranking."""
    plan, name, number, gripper = task
    began = time.process_time()
    trial = draw_trial(name, number, plan.ranges)
    job = _job(gripper)
    item = trial_object(_usual_object(name, plan.data), trial, plan.ranges)
    samples: list[GraspSample] = []
    with Workcell(workcell_config(trial), job.robot, item) as workcell:
        for setting in plan.settings:
            samples += _sample_setting(plan, job, workcell, trial, setting)
    return SampleGroup(name, number, gripper, tuple(samples), time.process_time() - began)


def _sample_setting(
    plan: SamplePlan, job: PickJob, workcell: Workcell, trial: Trial, setting: str
) -> list[GraspSample]:
    sampling = plan.sampling
    workcell.reset()
    come_to_rest(workcell)
    view: ObjectView = (known_shape if setting == "known" else observed_shape)(workcell, trial.seed)
    if view.cloud is None:
        return []
    config = PlannerConfig(
        normals="given" if setting == "known" else "auto",
        # The first round's candidates, good and poor; more rounds would only add good ones.
        rounds=1,
        max_grasps=sampling.kept,
        robust_candidates=sampling.kept,
        suppression_distance=sampling.distance,
        suppression_angle=sampling.angle,
        workers=1,
        weights=plan.weights,
    )
    found = MorphitMethod(config).plan(
        view.cloud,
        job.gripper,
        view.table,
        trial.seed,
        center_of_mass=view.center_of_mass,
        obstacles=view.obstacles,
        viewpoints=view.viewpoints,
        mass=view.mass,
    )
    samples = []
    for rank in spread_ranks(len(found.grasps), sampling.per_plan, np.random.default_rng(trial.seed)):
        grasp = found.grasps[rank]
        missed = displaced(grasp, sampling, np.random.default_rng([trial.seed, rank]))
        result = _try(job, workcell, trial, setting, replace(found, grasps=[missed]))
        terms = {name: grasp.metrics[f"term_{name}"] for name in TERMS}
        samples.append(
            GraspSample(setting, rank, len(found.grasps), grasp.score, terms, result.kind.value, result.stage)
        )
    return samples


def spread_ranks(count: int, wanted: int, rng: np.random.Generator) -> list[int]:
    """Ranks to try: the best one, and one at random from each stretch of the rest; the stretches grow with the rank.

    Args:
        count: of ranked grasps.
        wanted: ranks at most.
        rng: of the draws.
    """
    if count <= wanted or wanted == 1:
        return list(range(min(count, wanted)))
    # A choice is made among the better ones: the k-th edge lies at (k/n)² of the ranking.
    edges = 1 + np.round((count - 1) * np.linspace(0.0, 1.0, wanted) ** 2).astype(int)
    # Every stretch has at least one rank.
    edges = np.maximum(edges, 1 + np.arange(wanted))
    return [0, *(int(rng.integers(low, high)) for low, high in pairwise(edges.tolist()))]


def displaced(grasp: Grasp, sampling: SamplingConfig, rng: np.random.Generator) -> Grasp:
    """The grasp where an arm that errs would execute it, the approach included."""
    offset = rng.normal(0.0, 1.0, 3) * sampling.position_error
    turn = matrix_from_rotation_vector(rng.normal(0.0, 1.0, 3) * math.radians(sampling.angle_error))
    moved = []
    for pose in (grasp.T_world_gripper, grasp.T_world_pregrasp):
        lever = pose[:3, 3] - grasp.T_world_gripper[:3, 3]
        moved.append(make_transform(turn @ pose[:3, :3], grasp.T_world_gripper[:3, 3] + offset + turn @ lever))
    return replace(grasp, T_world_gripper=moved[0], T_world_pregrasp=moved[1])


class _Given:
    """A planner that has decided already."""

    name = "given"

    def __init__(self, answer: GraspPlan) -> None:
        self._answer = answer

    def plan(self, *cloud_and_gripper: Any, **given: Any) -> GraspPlan:
        return self._answer


def _try(job: PickJob, workcell: Workcell, trial: Trial, setting: str, chosen: GraspPlan) -> PickResult:
    workcell.reset()
    come_to_rest(workcell)
    try:
        return job.pick(workcell, setting, _Given(chosen), seed=trial.seed)
    except ResourceNotFoundError:
        raise
    except MorphitError as error:
        return PickResult(Outcome.ERROR, "error", f"{type(error).__name__}: {error}")
