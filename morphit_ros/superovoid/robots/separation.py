"""Velocities that keep a robot apart from itself and the world: filtered by a quadratic programme, proven by braking.

Each step changes a commanded velocity as little as needed for no near pair of bodies to come nearer faster than its
clearance allows (control barrier functions of the certified distances and their gradients). What comes out is proven
before it is commanded: if the robot held it for one step and then braked along its way, no pair would come below its
least separation, at any time between. Where that cannot be proven, the robot brakes along the way that was proven in
the step before.

Ames et al., "Control barrier functions: theory and applications" (2019), for the programme; ISO/TS 15066:2016, 5.5.4,
for the separation from people: the distance that they can walk until the robot has stopped is added.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.distances.queries import LOWER
from morphit_ros.superovoid.robots.body_pairs import BodyType
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import BodyDistance, RobotDistance, StateDistances
from morphit_ros.superovoid.robots.world import CollisionWorld

_EMPTY = CollisionWorld()
# Shares of a velocity that are tried before the robot brakes.
_TRIES = (1.0, 0.7, 0.4, 0.2)
# Rounding of positions and distances [rad or m, m].
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SeparationConfig(Config):
    """What is kept, and how the robot brakes."""

    period: float = parameter(0.004, "Time between two steps [s]", minimum=1e-4, maximum=0.1)
    self_separation: float = parameter(0.005, "Least distance of two links [m]", minimum=0.0, maximum=1.0)
    world_separation: float = parameter(0.02, "Least distance of links and objects [m]", minimum=0.0, maximum=10.0)
    person_separation: float = parameter(
        0.1, "Least distance of links and people once the robot stands: C + Z of ISO/TS 15066 [m]",
        minimum=0.0, maximum=10.0,
    )  # fmt: skip
    person_speed: float = parameter(1.6, "Speed at which people come nearer [m/s]", minimum=0.0, maximum=10.0)
    reaction_time: float = parameter(
        0.04, "Time from a position's measurement until the command takes effect, at most [s]", minimum=0.0, maximum=1.0
    )
    tracking_error: float = parameter(
        1e-4, "How far each joint may be beside the way that was commanded [rad or m]",
        minimum=1e-9, maximum=0.1,
    )  # fmt: skip
    influence: float = parameter(
        0.1, "Clearance above the least distance within which pairs are looked at [m]", minimum=1e-3, maximum=2.0
    )
    buffer: float = parameter(
        0.001,
        "Clearance that motions along a body keep, so that the proof has room for curves [m]",
        minimum=0.0,
        maximum=0.1,
    )
    gain: float = parameter(
        5.0, "Pairs may come nearer at this times their clearance [1/s]", minimum=0.01, maximum=100.0
    )


class SeparationStatus(enum.Enum):
    """What became of a commanded velocity."""

    UNCHANGED = "as commanded"
    FILTERED = "changed as little as the separation needs"
    SLOWED = "slowed until braking in time was proven"
    BRAKING = "braking along the way that was proven before"
    UNPROVEN = "braking; nothing is proven, because the robot is not on the way that was commanded"


@dataclass(frozen=True, eq=False)
class SeparationStep:
    """Answer to a commanded velocity.

    Attributes:
        velocities: (J,) to command [rad/s or m/s].
        status: what became of the command.
        distances: certified distances of all pairs of bodies within the influence, nearest first.
        clearance: the least of distance minus least separation over these pairs [m]; inf if there are none.
        duration: of braking from `velocities` [s].
    """

    velocities: Array
    status: SeparationStatus
    distances: StateDistances
    clearance: float
    duration: float

    @property
    def nearest(self) -> BodyDistance | None:
        """The nearest pair; None if none is within the influence."""
        return self.distances.minimum_distance


class SeparationFilter:
    """Filters the velocities of one robot in one world, step by step.

    Distances are those of the superovoids and objects: with an outer model that is proven to hold the links
    (`morphit superovoid fit --mode outer`) they are never more than the robot's own.

    Attributes:
        config: distances, times and gains.
        acceleration_limits: (J,) that the robot brakes with [rad/s² or m/s²].
        query: certified distances of the robot in its world; another one with each `set_world`.
        separations: (B,) least distances of the query's pairs of bodies [m].
        walking_speeds: (B,) speeds of the people among these pairs, 0 of others [m/s].

    Raises:
        InvalidInputError: acceleration limits of another number or not positive, or a robot without velocity limits.
    """

    def __init__(
        self,
        robot: RobotDistance,
        acceleration_limits: ArrayLike,
        config: SeparationConfig | None = None,
        world: CollisionWorld = _EMPTY,
        people: Mapping[str, float] | frozenset[str] = frozenset(),
        links: bool = True,
    ) -> None:
        """
        Args:
            robot: with superovoids; `RobotDistance.model.joint_names` is the order of positions and velocities.
            acceleration_limits: (J,) that the robot can brake with [rad/s² or m/s²].
            config: distances, times and gains.
            world: objects; taken to stand still, but for people.
            people: names of objects that move by themselves, with their speeds [m/s] if they are known.
            links: whether links are kept apart from each other too, which who planned a motion has seen to.
        """
        self._links = links
        self.config = config or SeparationConfig()
        self._robot, self._model = robot, robot.model
        names = self._model.joint_names
        self.acceleration_limits: Array = np.array(acceleration_limits, dtype=np.float64)
        good = self.acceleration_limits.shape == (len(names),) and np.isfinite(self.acceleration_limits).all()
        if not good or not (self.acceleration_limits > 0.0).all():
            raise InvalidInputError(
                "acceleration_limits", acceleration_limits, f"{len(names)} positive numbers, of {', '.join(names)}"
            )
        self._fastest = self._model.velocity_limits
        if not np.isfinite(self._fastest).all():
            missing = [name for name, limit in zip(names, self._fastest, strict=True) if not np.isfinite(limit)]
            raise InvalidInputError("velocity limits", f"none of {', '.join(missing)}", "one for each joint")
        self._box = np.concatenate([np.eye(len(names)), -np.eye(len(names))])
        self._velocities: Array = np.zeros(len(names))
        self._start: Array | None = None
        self.set_world(world, people)

    def set_world(self, world: CollisionWorld, people: Mapping[str, float] | frozenset[str] = frozenset()) -> None:
        """Go on with other objects; the velocity commanded last stays known.

        Raises:
            InvalidInputError: people that are not among the objects, or anything that `RobotDistance.query` refuses.
        """
        config = self.config
        for name in people:
            if name not in world.objects:
                raise InvalidInputError("people", repr(name), f"one of the objects: {', '.join(world.objects)}")
        speeds = people if isinstance(people, Mapping) else dict.fromkeys(people, config.person_speed)
        longest = config.period + config.reaction_time + self._braking_time(self._fastest)
        person = config.person_separation + longest * max(speeds.values()) if speeds else 0.0
        self._threshold = max(config.self_separation, config.world_separation, person) + config.influence
        # A base on its table is as near as it always will be, and would hide how near the arm is.
        still = [item.name for item in world if not item.attached_to and item.name not in speeds]
        request = RobotDistanceRequest(
            DistanceType.SINGLE, distance_threshold=self._threshold, gradient=True, self_distance=self._links,
            allowed_pairs=tuple((link, name) for link in self._robot.standing_links for name in still),
        )  # fmt: skip
        self.query = self._robot.query(request, world)
        separations = []
        for names, types in self.query.body_pairs:
            outside = BodyType.WORLD_OBJECT in types
            usual = config.world_separation if outside else config.self_separation
            separations.append(config.person_separation if speeds.keys() & {*names} else usual)
        self.separations = np.array(separations)
        self.walking_speeds = np.array(
            [max((speeds.get(name, 0.0) for name in names), default=0.0) for names, _ in self.query.body_pairs]
        )

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The order of positions and velocities."""
        return tuple(self._model.joint_names)

    @property
    def moving(self) -> bool:
        """Whether the velocity commanded last is not zero."""
        return bool(self._velocities.any())

    def reset(self, velocities: ArrayLike | None = None) -> None:
        """Start again at rest, or at velocities (J,) that the robot has [rad/s or m/s]; nothing is proven of these."""
        self._velocities = (
            np.zeros(len(self.acceleration_limits)) if velocities is None else np.array(velocities, float)
        )
        self._start = None

    def step(self, positions: ArrayLike, desired: ArrayLike) -> SeparationStep:
        """The velocity to command for one period.

        Args:
            positions: (J,) where the robot is [rad or m].
            desired: (J,) velocity that somebody wants [rad/s or m/s]; beyond the limits it is scaled down to them.

        Raises:
            InvalidInputError: positions or velocities of another number or not finite.
        """
        here = self._checked("positions", positions)
        wanted = self._checked("desired", desired)
        wanted = wanted / max(1.0, float(np.max(np.abs(wanted) / self._fastest)))
        now = self.query.distances(here)
        groups = self.query.groups(now.pairs)
        clearances = now.rows[:, LOWER] - self.separations[groups]
        followed = self._is_on_way(here)
        chosen = self._filtered(here, wanted, now, groups, clearances)
        status = SeparationStatus.UNCHANGED if np.array_equal(chosen, wanted) else SeparationStatus.FILTERED
        braked = self._braked()
        known = self._known(now)
        for share in _TRIES:
            velocities = braked + share * (chosen - braked)
            if self._is_proven(here, velocities, now, known):
                if share < 1.0:
                    status = SeparationStatus.SLOWED
                break
        else:
            velocities = braked
            status = SeparationStatus.BRAKING if followed else SeparationStatus.UNPROVEN
        self._velocities, self._start = velocities, here
        least = float(np.min(clearances)) if len(clearances) else math.inf
        return SeparationStep(velocities, status, now, least, self._braking_time(velocities))

    def _checked(self, what: str, values: ArrayLike) -> Array:
        array: Array = np.ascontiguousarray(values, dtype=np.float64)
        names = self._model.joint_names
        if array.shape != (len(names),) or not np.isfinite(array).all():
            raise InvalidInputError(what, values, f"{len(names)} finite numbers, of {', '.join(names)}")
        return array

    def _is_on_way(self, here: Array) -> bool:
        """Whether the robot is where the last velocity can have brought it before the next takes effect.

        From there it still brakes within the way that was proven, early or late.
        """
        if not self.moving:
            return True
        if self._start is None:
            return False
        held = self.config.period + self.config.reaction_time
        moved, velocities = here - self._start, self._velocities
        share = min(max(float(moved @ velocities) / float(velocities @ velocities), 0.0), held)
        return bool((np.abs(moved - share * velocities) <= self.config.tracking_error).all())

    def _braking_time(self, velocities: Array) -> float:
        """Until all joints stand, braking together so that the robot stays on its way [s]."""
        return float(np.max(np.abs(velocities) / self.acceleration_limits, initial=0.0))

    def _braked(self) -> Array:
        """The velocity one period further along the braking that was proven in the step before."""
        left = self._braking_time(self._velocities)
        if left <= self.config.period:
            return np.zeros_like(self._velocities)
        slower: Array = self._velocities * (1.0 - self.config.period / left)
        return slower

    def _filtered(
        self, here: Array, wanted: Array, now: StateDistances, groups: NDArray[np.int64], clearances: Array
    ) -> Array:
        """The velocity nearest to the wanted one that comes near no faster than clearances allow."""
        config, model = self.config, self._model
        change = self.acceleration_limits * config.period
        # As fast as it can still brake before the limit of its position, alone and together with the fastest joint.
        room = np.maximum(np.stack([here - model.position_lower, model.position_upper - here]), 0.0)
        together = room / (config.period + config.reaction_time + 0.5 * self._braking_time(self._fastest))
        with np.errstate(invalid="ignore"):
            alone = np.sqrt(change**2 + 2.0 * self.acceleration_limits * room) - change
        down, up = np.where(np.isinf(room), np.inf, np.minimum(alone, together))
        low = np.maximum(np.maximum(-self._fastest, -down), self._velocities - change)
        high = np.minimum(np.minimum(self._fastest, up), self._velocities + change)
        # What is beyond a limit already brakes as hard as it can.
        low, high = np.minimum(low, self._velocities + change), np.maximum(high, self._velocities - change)
        gradients = self.query.gradients(now.pairs, now.rows, now.joints)
        # What is too near goes away no faster than from the buffer's bottom, and people are not given way to.
        approach = config.gain * (np.maximum(clearances, 0.0) - config.buffer)
        speeds = self.walking_speeds[groups]
        bounds = np.where(speeds > 0.0, np.minimum(speeds - approach, 0.0), -approach)
        movable = gradients.any(axis=1)
        matrix = np.concatenate([gradients[movable], self._box])
        limits = np.concatenate([bounds[movable], low, -high])
        if (matrix @ wanted >= limits - _ROUNDING).all():
            return wanted
        found = nearest_feasible(wanted, matrix, limits, self._fastest)
        return self._braked() if found is None else np.clip(found, low, high)

    def _is_proven(self, here: Array, velocities: Array, now: StateDistances, first: Array) -> bool:
        """Whether the robot can hold velocities for one period, then brake, and all pairs stay apart.

        Its way is straight: `here` + s · velocities, s from 0 to the length below; where it brakes it goes the same way
        slower. Pairs that are nearer than they should be must not come nearer.
        """
        if not velocities.any():
            return True
        config, model = self.config, self._model
        braking = self._braking_time(velocities)
        held = config.period + config.reaction_time
        length = held + 0.5 * braking
        end = here + length * velocities
        outside = np.maximum(model.position_lower - end, end - model.position_upper)
        # What is beyond a limit may come back.
        if (outside > np.maximum(np.maximum(model.position_lower - here, here - model.position_upper), 0.0)).any():
            return False
        walked = self.walking_speeds * (held + braking)
        # If this way is gone on next time from beside it.
        aside = self.query.approach_bounds(now.joints, np.full(len(here), config.tracking_error), 1.0)[:, 0]
        needed = self.separations + walked + aside
        late = (walked == 0.0) & (first < needed)
        between = np.where(late, np.where(first < self.separations, -np.inf, self.separations), needed)
        ends = np.where(late, first - _ROUNDING, -np.inf)
        return self.query.is_way_clear(now.joints, here, velocities, length, between, ends)

    def _known(self, distances: StateDistances) -> Array:
        """Lower bounds of the distances of all pairs of bodies: the threshold where they are beyond it."""
        # Certificates leave a gap of a millionth of a shape's size.
        known = np.full(len(self.separations), self._threshold - 1e-5)
        known[self.query.groups(distances.pairs)] = distances.rows[:, LOWER]
        return known


def nearest_feasible(wanted: Array, matrix: Array, limits: Array, scale: Array) -> Array | None:
    """The u (J,) nearest to `wanted`, each joint by its scale, with matrix u >= limits; None if there is none.

    Least distance programming by non-negative least squares: Lawson and Hanson, Solving Least Squares Problems (1974),
    chapter 23.4.
    """
    from scipy.optimize import nnls

    scaled = matrix * scale
    lengths = np.linalg.norm(scaled, axis=1)
    scaled, right = scaled / lengths[:, None], (limits - matrix @ wanted) / lengths
    stacked = np.concatenate([scaled.T, right[None]])
    aim = np.zeros(len(wanted) + 1)
    aim[-1] = 1.0
    multipliers, residual = nnls(stacked, aim, maxiter=20 * len(right))
    if residual < 1e-9:
        return None
    rest = stacked @ multipliers - aim
    found: Array = wanted - scale * rest[:-1] / rest[-1]
    return found
