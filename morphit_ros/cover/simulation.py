"""A run: controller, plant, noise, and what the paper measures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.control.controller import ControllerConfig, CoverController, StepResult, StepStatus
from morphit_ros.cover.control.forecast import forecast_reach
from morphit_ros.cover.control.quadratic_program import QpSolver
from morphit_ros.cover.control.reach import Reach
from morphit_ros.cover.goals.targets import LaterTarget, SurfaceTarget
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.noise import NoiseConfig, NoiseSource
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.state import CoverState, worst_gap
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class SimulationConfig(Config):
    """How long, and when to give up."""

    duration: float = parameter(20.0, "Simulated time [s]", minimum=1e-3, maximum=1e5)
    stop_on_failure: bool = parameter(True, "End the run at the first step without a command")
    forecast_time: float = parameter(
        10.0, "Longest search for how near the cover comes to its target, before the run [s]; 0: none", minimum=0.0
    )


@dataclass(frozen=True)
class CoverSimulationResult:
    """What happened in a run of S steps.

    Attributes:
        times: (S,) start of each step [s].
        angles: (S, N) between normals and the target's [rad].
        distances: (S, N) position errors [m].
        rates: (S, M) commanded motor rates [rad/s].
        statuses: (S,) of each step.
        gaps: (S,) greatest gap of a joint after each step [m].
        controller_seconds, plant_seconds: (S,) process time of each step [s].
        iterations: (S,) of the quadratic programme.
        conditions: (S,) of the motors' matrix.
        state: where the cover ended.
        success: whether the run reached its end.
        message: why not, or empty.
        forecast: how near the cover comes to the target as it is at the end of the run, found before the run; or None.
    """

    times: Array
    angles: Array
    distances: Array
    rates: Array
    statuses: tuple[StepStatus, ...]
    gaps: Array
    controller_seconds: Array
    plant_seconds: Array
    iterations: Array
    conditions: Array
    state: CoverState
    success: bool
    message: str
    forecast: Reach | None = None

    def mean_angle(self, at: float) -> float:
        """Mean alignment error of all nodes at a time [rad]."""
        return float(self.angles[self._index(at)].mean())

    def mean_distance(self, at: float) -> float:
        """Mean position error of all nodes at a time [m]."""
        return float(self.distances[self._index(at)].mean())

    def _index(self, at: float) -> int:
        return int(np.clip(np.searchsorted(self.times, at - 1e-9), 0, len(self.times) - 1))


def simulate_cover(
    cover: Cover,
    state: CoverState,
    target: SurfaceTarget,
    config: SimulationConfig | None = None,
    controller: ControllerConfig | None = None,
    noise: NoiseConfig | None = None,
    seed: int = 0,
    solver: QpSolver | None = None,
    progress: Callable[[float, StepResult], None] | None = None,
    forecast: Reach | None = None,
    before: Array | None = None,
) -> CoverSimulationResult:
    """Run a cover towards a target.

    Args:
        cover: with motors.
        state: the start, joints closed.
        target: where to.
        config: duration.
        controller: gains, weights, limits and the period, which is also the plant's step.
        noise: of motors and measured state; none by default.
        seed: of the noise.
        solver: of the quadratic programmes; by default the one that `controller` names.
        progress: called after each step with time and result.
        forecast: how near the cover comes to the target at the end, if that is known; by default it is found here.
        before: (M,) motor rates before the start [rad/s]; zero by default.

    Raises:
        InvalidInputError: a start with open joints, or motors that are missing.
    """
    config, controller = config or SimulationConfig(), controller or ControllerConfig()
    gap = worst_gap(cover, state)
    if not gap < 1e-6:
        raise InvalidInputError("state", f"joints {gap:.1e} m open", "a gap below 1e-6 m", "Close it with close_loops.")
    if forecast is None and config.forecast_time > 0.0:
        forecast = forecast_reach(cover, state, target, controller, config.duration, config.forecast_time)
    # Without noise both see the same configurations: each is decomposed once.
    shared = NullSpaceSolver(cover)
    regulator, plant = CoverController(cover, controller, solver, shared), CoverPlant(cover, state, shared)
    if before is not None:
        regulator.remember(before)
    source = NoiseSource(cover, noise or NoiseConfig(), seed)
    steps = max(1, round(config.duration / controller.period))
    record: list[tuple[StepResult, float, float, float]] = []
    message = ""
    for number in range(steps):
        now = number * controller.period
        seen = source.measure(plant.state)
        start = time.process_time()
        result = regulator.step(seen, target, now, forecast)
        between = time.process_time()
        moved = plant.step(source.actuate(result.rates), controller.period)
        end = time.process_time()
        record.append((result, worst_gap(cover, plant.state), between - start, end - between))
        if progress is not None:
            progress(now, result)
        if not moved or not result.status.moves:
            message = f"{now:.2f} s: " + (result.message or result.status.value if moved else "the plant cannot follow")
            if config.stop_on_failure:
                break
    results = [entry[0] for entry in record]
    numbers = np.array([entry[1:] for entry in record])
    return CoverSimulationResult(
        times=controller.period * np.arange(len(record), dtype=np.float64),
        angles=np.array([result.angles for result in results]),
        distances=np.array([result.distances for result in results]),
        rates=np.array([result.rates for result in results]),
        statuses=tuple(result.status for result in results),
        gaps=numbers[:, 0],
        controller_seconds=numbers[:, 1],
        plant_seconds=numbers[:, 2],
        iterations=np.array([result.iterations for result in results]),
        conditions=np.array([result.condition for result in results]),
        state=plant.state,
        success=not message,
        message=message,
        forecast=forecast,
    )


def states_on_course(
    cover: Cover,
    state: CoverState,
    target: SurfaceTarget,
    duration: float,
    count: int,
    controller: ControllerConfig | None = None,
) -> list[CoverState]:
    """Where a cover is on its way to a target, without noise: its start and `count` configurations at equal times.

    Motors that shall hold all of them (`place_motors`) stay away from singular ones longer than those for the start.

    Args, Raises: as `simulate_cover`; fewer configurations where the run ends before its time.
    """
    states, part = [state], duration / max(count, 1)
    for number in range(count):
        config = SimulationConfig(duration=part, forecast_time=0.0)
        run = simulate_cover(cover, states[-1], LaterTarget(target, number * part), config, controller)
        states.append(run.state)
        if not run.success:
            break
    return states
