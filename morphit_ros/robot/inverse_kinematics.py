"""Joint positions for a pose of a link: damped least squares with restarts within the limits."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.robot.chain_descent import descend
from morphit_ros.robot.kinematics import KinematicModel


@dataclass(frozen=True)
class IKConfig(Config):
    """Settings of the inverse kinematics."""

    position_tolerance: float = parameter(1e-5, "Accepted distance to the pose [m]", minimum=1e-9, maximum=0.1)
    rotation_tolerance: float = parameter(1e-4, "Accepted angle to the pose [rad]", minimum=1e-9, maximum=1.0)
    iterations: int = parameter(60, "Steps of one attempt", minimum=1, maximum=10000)
    restarts: int = parameter(30, "Further attempts from random positions", minimum=0, maximum=10000)
    distinct: float = parameter(0.1, "Solutions closer than this in every joint are one [rad or m]", minimum=0.0)


class IKStatus(enum.Enum):
    """Outcome of an inverse kinematics request."""

    SUCCEEDED = "succeeded"
    NOT_FOUND = "no solution within the joint limits was found"


@dataclass(frozen=True)
class IKResult:
    """Joint positions, or the nearest that was found.

    Attributes:
        status: outcome.
        positions: joint name → position [rad or m], within the limits.
        residual: distance [m] and angle [rad] to the pose.
        iterations: steps taken over all attempts.
    """

    status: IKStatus
    positions: Mapping[str, float]
    residual: tuple[float, float]
    iterations: int


def inverse_kinematics(
    model: KinematicModel,
    T_root_tip: Array,
    tip_link: str,
    joints: Sequence[str],
    seed_positions: Mapping[str, float],
    rng: np.random.Generator,
    config: IKConfig | None = None,
) -> IKResult:
    """Joint positions that bring a link to a pose; the first attempt starts at the seed.

    Args:
        model: the robot.
        T_root_tip: (4, 4) wanted pose of the link in the root link's frame.
        tip_link: link to place.
        joints: joints that may move.
        seed_positions: where to start; gives all other joints as well.
        rng: source of the restarts.
        config: tolerances and effort.

    Raises:
        InvalidInputError: the pose is not rigid, a link or joint is unknown, or a seed position is missing.
    """
    search = _PoseSearch(model, T_root_tip, tip_link, joints, seed_positions, config or IKConfig())
    best: IKResult | None = None
    for start in search.starts(rng):
        result = search.descend(start)
        if result.status is IKStatus.SUCCEEDED:
            return result
        if best is None or sum(result.residual) < sum(best.residual):
            best = result
    assert best is not None  # the seed is always tried
    return IKResult(best.status, best.positions, best.residual, search.iterations)


def inverse_kinematics_solutions(
    model: KinematicModel,
    T_root_tip: Array,
    tip_link: str,
    joints: Sequence[str],
    seed_positions: Mapping[str, float],
    count: int,
    rng: np.random.Generator,
    config: IKConfig | None = None,
) -> Iterator[IKResult]:
    """Up to `count` distinct solutions, the one reached from the seed first; ends when the restarts are used up.

    Arguments and errors as of `inverse_kinematics`. `config.restarts` bounds the attempts in all.
    """
    settings = config or IKConfig()
    search = _PoseSearch(model, T_root_tip, tip_link, joints, seed_positions, settings)
    found: list[Array] = []
    for start in search.starts(rng):
        if len(found) >= count:
            return
        result = search.descend(start)
        if result.status is not IKStatus.SUCCEEDED:
            continue
        values = np.array([result.positions[name] for name in joints])
        if all(np.abs(search.difference(values, other)).max() > settings.distinct for other in found):
            found.append(values)
            yield result


class _PoseSearch:
    """One request: the pose, the joints and the arrays that every attempt uses."""

    def __init__(
        self,
        model: KinematicModel,
        T_root_tip: Array,
        tip_link: str,
        joints: Sequence[str],
        seed_positions: Mapping[str, float],
        config: IKConfig,
    ) -> None:
        if not joints:
            raise InvalidInputError("joints", "none", "at least one joint")
        self.config = config
        self.joints = tuple(joints)
        self.iterations = 0
        self.lower, self.upper, _ = model.limits(joints)
        self.continuous = np.isinf(self.upper)
        self.chain = model.chain(tip_link, joints, seed_positions)
        self.seed = np.array([seed_positions[name] for name in joints], dtype=np.float64)
        self.pose = np.ascontiguousarray(check_transform(T_root_tip, "T_root_tip"))

    def starts(self, rng: np.random.Generator) -> Iterator[Array]:
        """The seed, then positions drawn uniformly within the limits."""
        yield np.clip(self.seed, self.lower, self.upper)
        low = np.where(self.continuous, -math.pi, self.lower)
        high = np.where(self.continuous, math.pi, self.upper)
        for _ in range(self.config.restarts):
            yield rng.uniform(low, high)

    def difference(self, a: Array, b: Array) -> Array:
        """a − b, by the shorter way round for continuous joints."""
        delta = a - b
        return np.where(self.continuous, np.remainder(delta + math.pi, 2.0 * math.pi) - math.pi, delta)

    def descend(self, start: Array) -> IKResult:
        """Levenberg-Marquardt from one start; steps are clipped to the limits."""
        config, values = self.config, start.copy()
        end = descend(
            self.chain, self.pose, self.lower, self.upper, values,
            config.position_tolerance, config.rotation_tolerance, config.iterations,
        )  # fmt: skip
        self.iterations += end.steps
        status = IKStatus.SUCCEEDED if end.reached else IKStatus.NOT_FOUND
        positions = dict(zip(self.joints, values.tolist(), strict=True))
        return IKResult(status, positions, (end.distance, end.angle), self.iterations)
