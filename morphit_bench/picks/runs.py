"""Many trials over several processes, written down as they finish, continued where they were stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from morphit_bench.picks.feasibility import out_of_reach
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.peers import PREFIX, grasp_file, parse_peer, save_view, trial_stem
from morphit_bench.picks.pick import PickJob
from morphit_bench.picks.pictures import save_failure
from morphit_bench.picks.planners import PLANNERS, grasp_planner
from morphit_bench.picks.trials import Trial, TrialConfig, draw_trial, trial_object
from morphit_bench.picks.views import EYES, SETTINGS, camera_positions
from morphit_ros.batch import BatchConfig, BatchRecords, read_batch, run_batch
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.execution.pick import PickStage
from morphit_ros.geometry.transforms import Array, rotation_angle
from morphit_ros.simulation.objects import SimulatedObject, load_object
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

RECORDS = "trials.jsonl"


@dataclass(frozen=True)
class BenchmarkPlan:
    """What is tried.

    Attributes:
        objects: names of `load_object`.
        planners: names of `grasp_planner`; of those in files at least one trial needs a file.
        settings: known, observed.
        trials: how many of each object.
        robot: of config/robots, or empty for a flying gripper.
        gripper: the one that flies; empty for the robot's own.
        ranges: that trials are drawn from.
        data: folder of the objects, None for the default one.
        pictures: folder for pictures of failures, empty for none.
        masses: of objects that are mesh files [kg]; in trials they vary as the others' do.
        cameras: (2 to 4, 3) where they stand in the world [m].
        first: number of the first trial.

    Raises:
        InvalidInputError: an unknown planner or setting, no object or trial, not one of robot and gripper, or a mass
            of what is not among the objects.
    """

    objects: tuple[str, ...]
    planners: tuple[str, ...] = ("morphit",)
    settings: tuple[str, ...] = SETTINGS
    trials: int = 3
    robot: str = "panda"
    gripper: str = ""
    ranges: TrialConfig = field(default_factory=TrialConfig)
    data: str | None = None
    pictures: str = ""
    masses: Mapping[str, float] = field(default_factory=dict)
    cameras: tuple[tuple[float, ...], ...] = EYES["front"]
    first: int = 0

    def __post_init__(self) -> None:
        for name, values, known in (("planners", self.planners, PLANNERS), ("settings", self.settings, SETTINGS)):
            for value in values:
                if name == "planners" and value.startswith(PREFIX):
                    self._check_files(parse_peer(value)[0])
                elif value not in known:
                    raise InvalidInputError(name, repr(value), f"one of {', '.join(known)}")
        if not self.objects or self.trials < 1:
            raise InvalidInputError("objects, trials", [len(self.objects), self.trials], "at least one of each")
        if self.first < 0:
            raise InvalidInputError("first", self.first, "at least 0")
        if unknown := set(self.masses) - set(self.objects):
            raise InvalidInputError("masses", sorted(unknown), f"masses of the objects: {', '.join(self.objects)}")
        if bool(self.robot) == bool(self.gripper):
            raise InvalidInputError("robot, gripper", [self.robot, self.gripper], "an arm, or a gripper that flies")

    @property
    def numbers(self) -> range:
        """Of the trials of each object."""
        return range(self.first, self.first + self.trials)

    def _check_files(self, folder: Path) -> None:
        keys = list(product(self.objects, self.numbers, self.settings))
        if keys and all(grasp_file(folder, trial_stem(*key)) is None for key in keys):
            raise InvalidInputError("planners", str(folder), f"files of grasps, such as {trial_stem(*keys[0])}.yaml")

    @property
    def identity(self) -> dict[str, Any]:
        """What results must have in common to be in one file."""
        same: dict[str, Any] = {
            "program": "picks",
            "robot": self.robot,
            "gripper": self.gripper,
            "ranges": self.ranges.to_flat(),
        }
        # As runs were identified before they could have these.
        if self.masses:
            same["masses"] = dict(self.masses)
        if self.cameras != EYES["front"]:
            same["cameras"] = [list(eye) for eye in self.cameras]
        return same


@dataclass(frozen=True)
class TrialRecord:
    """One finished pick of the benchmark.

    Attributes:
        trial: what was drawn.
        planner, setting: see `BenchmarkPlan`.
        mass: of the object in this trial [kg].
        result: what became of the first attempt.
        again: what became of the second one, None if there was none.
        out_of_reach: why no grasp can exist, by calculation; empty if nothing is known to stand against one.
        seconds: wall time of the whole trial, pictures left out [s].
        busy: processor time of the same [s].
        picture: file of a failure, empty if there is none.
    """

    trial: Trial
    planner: str
    setting: str
    mass: float
    result: PickResult
    again: PickResult | None = None
    out_of_reach: str = ""
    seconds: float = 0.0
    busy: float = 0.0
    picture: str = ""

    @property
    def key(self) -> tuple[str, int, str, str]:
        """Which one it is."""
        return self.trial.object, self.trial.number, self.planner, self.setting

    @property
    def success(self) -> bool:
        """At the first attempt or at the second."""
        return self.result.success or (self.again is not None and self.again.success)

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers that are not finite become null."""
        data = asdict(self)
        plain = _plain(data)
        assert isinstance(plain, dict)
        return plain

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrialRecord:
        """The inverse of `to_json`."""
        again = None if data["again"] is None else _result(data["again"])
        return cls(**{**data, "trial": Trial(**data["trial"]), "result": _result(data["result"]), "again": again})


def _result(data: dict[str, Any]) -> PickResult:
    fields: dict[str, Any] = {key: math.nan if value is None else value for key, value in data.items()}
    return PickResult(**(fields | {"kind": Outcome(data["kind"])}))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Outcome):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_records(folder: str | Path, plan: BenchmarkPlan | None = None) -> list[TrialRecord]:
    """Finished trials of a folder; a line that was cut short when a run was killed is left out.

    Args:
        folder: where a benchmark wrote.
        plan: what the results must belong to, None for anything.

    Raises:
        InvalidInputError: the folder's results are of another robot or other ranges.
    """
    groups = read_batch(Path(folder) / RECORDS, None if plan is None else plan.identity)
    return [TrialRecord.from_json(data) for group in groups for data in group]


def run_benchmark(
    plan: BenchmarkPlan,
    folder: str | Path,
    batch: BatchConfig | None = None,
    resume: bool = False,
    progress: Callable[[TrialRecord, int, int], None] | None = None,
) -> list[TrialRecord]:
    """Run what is not done yet; every finished trial is on disk before the next one is waited for.

    Args:
        plan: what to try.
        folder: for the records.
        batch: who runs the trials.
        resume: continue in a folder that has results; trials that are done are not run again.
        progress: called with each new record, how many are done, and how many there are.

    Returns:
        All records that the plan asks for, in its order, whatever order they finished in.

    Raises:
        InvalidInputError: the folder has results and `resume` is false, or they are of another robot; pictures from
            other machines.
        ResourceNotFoundError: an object or robot is unknown.
        BatchStoppedError: a worker has gone; see `run_batch`.
    """
    if plan.pictures and batch is not None and batch.scheduler:
        remedy = "A picture is written by the machine that runs the trial: leave them out, or use workers of this one."
        raise InvalidInputError("pictures", plan.pictures, "none with a scheduler", remedy)
    keys = [key for name in plan.objects for number in plan.numbers for key in _keys(plan, name, number)]
    with BatchRecords(Path(folder) / RECORDS, plan.identity, resume) as finished:
        done = {record.key: record for record in read_records(folder)}
        groups = [
            ([name, number, missing], (plan, name, number, missing))
            for number in plan.numbers
            for name in plan.objects
            if (missing := _missing(plan, name, number, done))
        ]
        count = sum(key in done for key in keys)
        for _, group in run_batch(_run_plain_group, groups, finished, batch):
            for data in group:
                record = TrialRecord.from_json(data)
                done[record.key] = record
                count += 1
                if progress is not None:
                    progress(record, count, len(keys))
    return [done[key] for key in keys]


_Group = tuple[BenchmarkPlan, str, int, Sequence[tuple[str, str]]]


def _keys(plan: BenchmarkPlan, name: str, number: int) -> Iterator[tuple[str, int, str, str]]:
    for setting in plan.settings:
        for planner in plan.planners:
            yield name, number, planner, setting


def _missing(plan: BenchmarkPlan, name: str, number: int, done: Iterable[Any]) -> list[tuple[str, str]]:
    return [(key[2], key[3]) for key in _keys(plan, name, number) if key not in done]


@cache
def job_of(robot: str, gripper: str, refined: bool = True) -> PickJob:
    """Kept by each process from trial to trial."""
    return PickJob.with_arm(robot, refined=refined) if robot else PickJob.flying(gripper)


@cache
def usual_object(name: str, mass: float | None, data: str | None) -> SimulatedObject:
    return load_object(name, mass, data_dir=data)


def _run_plain_group(group: _Group) -> list[dict[str, Any]]:
    return [record.to_json() for record in run_group(group)]


def write_clouds(
    plan: BenchmarkPlan, folder: str | Path, progress: Callable[[Path | None, str], None] | None = None
) -> int:
    """Write what planners are given in each trial, for those of others: see `morphit_bench.picks.peers`.

    Args:
        plan: whose trials; its planners do not matter.
        folder: for the clouds.
        progress: called with each file, or None and why the object was not found.

    Returns:
        How many were written.

    Raises:
        ResourceNotFoundError: an object or robot is unknown.
    """
    job, count = job_of(plan.robot, plan.gripper), 0
    for name in plan.objects:
        for number in plan.numbers:
            trial = draw_trial(name, number, plan.ranges)
            item = trial_object(usual_object(name, plan.masses.get(name), plan.data), trial, plan.ranges)
            with Workcell(workcell_config(trial, plan.cameras), job.robot, item) as workcell:
                come_to_rest(workcell)
                for setting in plan.settings:
                    view, path = job.see(workcell, setting, seed=trial.seed), None
                    if view.cloud is not None:
                        stem = trial_stem(name, number, setting)
                        path = save_view(folder, stem, view, workcell.T_world_camera("left"))
                        count += 1
                    if progress is not None:
                        progress(path, view.message)
    return count


def run_group(group: _Group) -> list[TrialRecord]:
    """All planners and settings of one trial, in one workcell that is reset between them."""
    plan, name, number, combinations = group
    trial = draw_trial(name, number, plan.ranges)
    job = job_of(plan.robot, plan.gripper)
    item = trial_object(usual_object(name, plan.masses.get(name), plan.data), trial, plan.ranges)
    records: list[TrialRecord] = []
    with Workcell(workcell_config(trial, plan.cameras), job.robot, item) as workcell:
        for planner, setting in combinations:
            if records:
                workcell.reset()
            come_to_rest(workcell)
            records.append(_run_one(plan, job, workcell, trial, planner, setting))
    return records


def workcell_config(trial: Trial, cameras: Sequence[tuple[float, ...]] = EYES["front"]) -> WorkcellConfig:
    """Where the object of a trial lies, on what friction, the seed of the sensor noise, and where cameras stand [m]."""
    place = WorkcellConfig()
    return WorkcellConfig(
        object_x=place.object_x + trial.x,
        object_y=place.object_y + trial.y,
        object_yaw=trial.yaw,
        friction=trial.friction,
        seed=trial.seed,
        **camera_positions(cameras),
    )


# An object rests if it moves and turns by less than this in the time between two looks [m], [rad], [s].
_REST_MOTION, _REST_TURN, _REST_TIME = 2e-4, 2e-3, 0.25
# What rolls for longer is left to roll [s].
_LONGEST_REST = 4.0


def come_to_rest(workcell: Workcell) -> None:
    """Wait until the object lies still: one that was drawn in an unsteady pose falls over now, not in the grasp."""
    before = workcell.object_pose()
    while workcell.time < _LONGEST_REST:
        workcell.settle(_REST_TIME)
        now = workcell.object_pose()
        turned = rotation_angle(before[:3, :3].T @ now[:3, :3])
        if float(np.linalg.norm(now[:3, 3] - before[:3, 3])) < _REST_MOTION and turned < _REST_TURN:
            return
        before = now


def _run_one(
    plan: BenchmarkPlan, job: PickJob, workcell: Workcell, trial: Trial, planner: str, setting: str
) -> TrialRecord:
    began, busy = time.perf_counter(), time.process_time()
    lying = workcell.object.transformed(workcell.object_pose())
    beyond = out_of_reach(lying, job.gripper, trial.friction)
    moments: dict[str, Array] = {"before": workcell.configuration()}

    def note(stage: PickStage) -> None:
        if stage in (PickStage.PROBE, PickStage.CLOSE, PickStage.CHECK):
            moments.setdefault(stage.value, workcell.configuration())

    again = None
    try:
        stem = trial_stem(trial.object, trial.number, setting)
        T_world_file = workcell.object_pose() @ workcell.object.T_object_file
        method = grasp_planner(planner, setting, stem, trial.object, T_world_file)
        result = job.pick(workcell, setting, method, seed=trial.seed, on_stage=note)
        moments["after"] = workcell.configuration()
        again = job.pick_again(workcell, result, setting=setting, planner=method, seed=trial.seed + 1)
    except ResourceNotFoundError:
        raise
    except MorphitError as error:
        result = PickResult(Outcome.ERROR, "error", f"{type(error).__name__}: {error}")
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    moments.setdefault("after", workcell.configuration())
    picture = ""
    if plan.pictures and not result.success:
        stem = f"{trial_stem(trial.object, trial.number, setting)}_{planner.replace('/', '_').replace(':', '_')}"
        picture = str(save_failure(workcell, moments, Path(plan.pictures) / f"{stem}.png"))
    mass = workcell.object.mass
    return TrialRecord(trial, planner, setting, mass, result, again, beyond, seconds, busy, picture)
