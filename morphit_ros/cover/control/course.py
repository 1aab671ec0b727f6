"""The way to a target: examined before it counts, direct where it is near, through a passage where it is far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.control.reach import Reach
from morphit_ros.cover.goals.surfaces import plan_passage
from morphit_ros.cover.goals.targets import HeightTarget, SurfaceTarget, TargetSample, examine_target
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Times at which a target is examined before it counts, over the horizon.
_LOOKS_AHEAD = 31


@dataclass(frozen=True)
class SupervisionConfig(Config):
    """When motors stop, and how targets are approached."""

    state_timeout: float = parameter(
        1.8, "Motors stop when the newest state is older than this [periods]", minimum=1.0, maximum=100.0
    )
    recovery_states: int = parameter(
        10, "States in a row after which motors that stopped for want of a state turn again", minimum=1, maximum=10_000
    )
    angle_tolerance: float = parameter(
        0.02, "Greatest difference of a joint angle from the closed cover [rad]", minimum=1e-6, maximum=1.0
    )
    pose_tolerance: float = parameter(
        1e-3, "Greatest gap of a joint in measured poses, which is then closed [m]", minimum=1e-7, maximum=0.1
    )
    approach: str = parameter(
        "auto",
        "Way to a new target: through a passage, direct, or a passage where the target is far (auto)",
        choices=("auto", "direct", "passage"),
    )
    passage_angle: float = parameter(
        0.35, "A target is far when a normal differs from it by more than this [rad]", minimum=0.0, maximum=3.2
    )
    passage_speed: float = parameter(
        0.5, "Turning of normals on a passage, in units of the rate limit", minimum=1e-2, maximum=10.0
    )
    jump_limit: float = parameter(
        1.6, "A far target without a passage is refused when a normal differs by more than this [rad]",
        minimum=0.0, maximum=3.2,
    )  # fmt: skip
    horizon: float = parameter(
        60.0, "A target has to be finite and to pass the father node for this long [s]", minimum=0.0, maximum=1e4
    )
    forecast_time: float = parameter(
        2.0, "A new target counts once it is known how near the cover comes to it, or after this time [s]; 0: at once",
        minimum=0.0, maximum=60.0,
    )  # fmt: skip
    detour_time: float = parameter(
        0.0, "Longest search for a way over a shape in between to a target that is forecast to be missed [s]; 0: none",
        minimum=0.0, maximum=3600.0,
    )  # fmt: skip
    overrun_limit: float = parameter(4.0, "Motors stop when a command is this late [periods]", minimum=1.5, maximum=1e3)

    def too_old(self, age: float, period: float) -> str:
        """Why a state of an age [s] stops the motors, with the bound and what helps."""
        return _too_late(f"the newest is {1e3 * age:.0f} ms old", "state_timeout", self.state_timeout, period)

    def too_late(self, duration: float, period: float) -> str:
        """Why a step of a duration [s] stops the motors, with the bound and what helps."""
        return _too_late(f"a step took {1e3 * duration:.0f} ms", "overrun_limit", self.overrun_limit, period)


def _too_late(found: str, name: str, limit: float, period: float) -> str:
    return (
        f"{found}, allowed are {1e3 * limit * period:.0f} ms ({name}: {limit:g} periods); raise that where a busy "
        "machine only simulates"
    )


@dataclass(frozen=True)
class Course:
    """A target that was accepted.

    Attributes:
        target: what the controller is given.
        goal: the target itself, without the passage that leads to it.
        duration: of the passage [s]; 0 without one.
        start: when t was 0, by the caller's clock [s].
        name: of the target, for people.
        way: how it is reached, for people; empty where it is near.
        approach: as asked for.
        forecast: how near the cover comes to the goal as it is at the end of the passage, if that is known.
    """

    target: SurfaceTarget
    goal: SurfaceTarget
    duration: float
    start: float
    name: str
    way: str
    approach: str
    forecast: Reach | None = None

    @property
    def description(self) -> str:
        """For people."""
        return f"{self.name}, {self.way}" if self.way else self.name


def examine_course(cover: Cover, state: CoverState, target: SurfaceTarget, config: SupervisionConfig) -> TargetSample:
    """The target at the nodes now, if it is finite and passes the father node over the whole horizon.

    Raises:
        InvalidInputError: it does not.
    """
    positions = state.positions(cover)
    sample = examine_target(cover, positions, target)
    for time in np.linspace(0.0, config.horizon, _LOOKS_AHEAD)[1:]:
        _examine_later(cover, target, positions, float(time))
    return sample


def plan_course(
    cover: Cover,
    state: CoverState,
    target: SurfaceTarget,
    name: str,
    now: float,
    approach: str,
    config: SupervisionConfig,
    rate_limit: float,
) -> Course:
    """How a cover goes to a target from where it is.

    Args:
        name: of the target, for people.
        now: what becomes t = 0 [s].
        approach: auto, direct or passage.
        rate_limit: of the joints [rad/s].

    Raises:
        InvalidInputError: not finite, not through the father node, or too far away to be followed.
    """
    positions, normals = state.positions(cover), state.normals()
    sample = examine_course(cover, state, target, config)
    angles = np.arccos(np.clip(np.einsum("ij,ij->i", normals, sample.normals), -1.0, 1.0))
    largest = float(angles.max())
    far = f"{np.degrees(largest):.0f} degrees away"
    if approach == "direct" or (approach == "auto" and largest <= config.passage_angle):
        return Course(target, target, 0.0, now, name, "", approach)
    problem = "only height targets can be reached through a passage"
    if hasattr(target, "heights"):
        try:
            # Height maps have all that a passage needs of a height target.
            passage = plan_passage(positions, cast("HeightTarget", target), config.passage_speed * rate_limit)
            way = f"{far}: passage of {passage.duration:.1f} s"
            return Course(passage.target, target, passage.duration, now, name, way, approach)
        except InvalidInputError as error:
            problem = str(error)
    if approach == "passage" or largest > config.jump_limit:
        raise InvalidInputError(
            "target", far, f"a passage, or at most {np.degrees(config.jump_limit):.0f} degrees",
            f"No passage: {problem}. Give targets in between, or set approach to direct.",
        )  # fmt: skip
    return Course(target, target, 0.0, now, name, f"{far}: direct", approach)


def _examine_later(cover: Cover, target: SurfaceTarget, positions: Array, time: float) -> None:
    sample = target.sample(positions, time)
    if not sample.finite:
        raise InvalidInputError("target", f"not finite at t = {time:g} s", "finite heights and slopes at all nodes")
    away = float(np.linalg.norm(sample.offsets[cover.father]))
    if away > 0.5 * cover.pitch:
        raise InvalidInputError(
            "target", f"{away * 1e3:.0f} mm from the father node at t = {time:g} s",
            f"at most half a pitch, {cover.pitch * 500:.0f} mm",
            "The father doesn't move: shift the target, such as f(x, y, t) - f(0, 0, t).",
        )  # fmt: skip
