"""Distances of a robot to itself and to the world, in the terms of MoveIt's DistanceRequest and DistanceResult."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.superovoid.distances.batch import DistancesResult
from morphit_ros.superovoid.distances.min_distance import DistanceResult, DistanceStatus
from morphit_ros.superovoid.distances.packing import ShapeTable
from morphit_ros.superovoid.distances.queries import COLUMNS, DISTANCE, LOWER, POINTS
from morphit_ros.superovoid.robots.body_pairs import (
    CollisionBody,
    compared_pairs,
    link_bodies,
    object_bodies,
)
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance_kernels import (
    EVERY,
    NEAREST,
    OF_EACH_GROUP,
    CarriedShapes,
    fill_gradients,
    solve_state,
)
from morphit_ros.superovoid.robots.separation_kernels import approach_bounds, is_way_clear
from morphit_ros.superovoid.robots.world import CollisionWorld

if TYPE_CHECKING:
    from morphit_ros.robot.semantics import SemanticDescription
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
    from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids

# States from which on they are shared among threads: below, starting them costs more.
_STATES_FOR_THREADS = 16
_NO_MEMORY = np.empty((0, COLUMNS))
_EMPTY = CollisionWorld()
_NEAREST = RobotDistanceRequest()


class BodyDistance(DistanceResult):
    """Distance of two bodies, in the robot's root frame, by their nearest shapes.

    Attributes:
        link_names: of the links or objects; the robot's come before the world's.
        body_types: of both.
    """

    __slots__ = ("_signed", "_state", "body_types", "link_names")

    def __init__(self, state: StateDistances, number: int) -> None:
        request = state.request
        pair = int(state.pairs[number])
        self.link_names, self.body_types = request.link_names[pair], request.body_types[pair]
        super().__init__(state.rows[number])
        self._state, self._signed = (state, pair), request.signed_distance

    @property
    def distance(self) -> float:
        """Distance [m], not above 0 in contact: minus the depth of the deepest pair of shapes. Bodies of one shape each
        are separated by a translation of that length, bodies of several need at least as long a one."""
        distance = float(self.row[DISTANCE])
        return distance if self._signed else max(distance, 0.0)

    @property
    def nearest_points(self) -> Array | None:
        """(2, 3) on body 1 and 2 [m]; None if not asked for."""
        if not self._state[0].request.nearest_points:
            return None
        return self.row[POINTS : POINTS + 6].reshape(2, 3)

    @property
    def lower_bound(self) -> float:
        """The distance of the convex hulls is not below this [m]."""
        lower = float(self.row[LOWER])
        return lower if self._signed else max(lower, 0.0)

    @property
    def gradient(self) -> Array | None:
        """(J,) by the joints of the robot [m/rad, or 1 for sliding joints]; None if not asked for."""
        state, pair = self._state
        return state.request.gradient(pair, self.row, state.joints) if state.request.wants_gradient else None

    @property
    def robot_bounds(self) -> tuple[float, float] | None:
        """The bodies' own distance is between these [m], 0 where they may touch; the distance is that of the shapes.

        None where the model of a link does not say how far its shapes are from it at most, and for single pairs of
        shapes (LIMITED, ALL). Bodies that one may be wholly inside of the other are not told apart from such that are
        not. Objects are what they were given as.
        """
        state, pair = self._state
        between = state.request.deviation(pair)
        if between is None:
            return None
        missing, excess = between
        return max(self.row[LOWER] - missing, 0.0), max(self.row[DISTANCE], 0.0) + excess

    @property
    def certified(self) -> bool:
        return self.status is DistanceStatus.CERTIFIED

    def __repr__(self) -> str:
        points, gradient = self.nearest_points, self.gradient
        return (
            f"BodyDistance(link_names={self.link_names}, body_types={self.body_types}, distance={self.distance!r}, "
            f"nearest_points={None if points is None else points.tolist()}, normal={self.normal.tolist()}, "
            f"lower_bound={self.lower_bound!r}, status={self.status!s}, of_hull={self.of_hull}, "
            f"gradient={None if gradient is None else gradient.tolist()})"
        )


@dataclass(frozen=True, eq=False)
class StateDistances:
    """Distances of one state, nearest first, as arrays; what has names is made when it is asked for.

    Attributes:
        request: what it is the answer of.
        pairs: (K,) pairs of shapes; `request.link_names` and `request.body_types` have those of each.
        rows: (K, 21) numbers of the kernel; see `DistancesResult`, which `results` is.
        joints: (N, 4, 4) poses ``T_root_joint``.
    """

    request: RobotDistanceQuery
    pairs: NDArray[np.int64]
    rows: Array
    joints: Array

    @property
    def results(self) -> DistancesResult:
        """Distances, bounds, points, normals of all pairs as arrays; depths signed whatever was asked for."""
        return DistancesResult(self.rows)

    @functools.cached_property
    def distances(self) -> tuple[BodyDistance, ...]:
        """Nearest first."""
        return tuple(BodyDistance(self, number) for number in range(len(self.pairs)))

    @property
    def minimum_distance(self) -> BodyDistance | None:
        """The nearest pair; None if none is within the threshold."""
        return self.distances[0] if len(self.pairs) else None

    @property
    def collision(self) -> bool:
        """Whether some pair has a distance of 0 or less."""
        return len(self.pairs) > 0 and bool(self.rows[0, DISTANCE] <= 0.0)


class RobotDistance:
    """A robot as superovoids.

    Without an SRDF, links that are fixed to each other or have one joint between them are allowed to touch.

    Attributes:
        model: kinematics. Gradients are by its `joint_names`.

    Raises:
        InvalidInputError: a link that the robot does not have, or no shape at all.
    """

    def __init__(
        self,
        links: Mapping[str, LinkSuperovoids] | Mapping[str, Iterable[PlacedSuperovoid]],
        model: KinematicModel,
        semantics: SemanticDescription | None = None,
    ) -> None:
        """
        Args:
            links: of a model, such as `load_model` reads; or shapes alone, of which nothing is known beyond them.
            model: kinematics.
            semantics: which links are not held against each other.
        """
        self.model = model
        self.semantics = semantics
        self._links = link_bodies(links, model)
        self._table = ShapeTable.of([shape for body in self._links for shape, _ in body.shapes])
        # A client asks again and again with the same request; what is kept depends on the arguments alone.
        self._prepared = functools.lru_cache(maxsize=8)(self._prepare)

    @property
    def standing_links(self) -> tuple[str, ...]:
        """Links with shapes that no joint moves."""
        return tuple(body.name for body in self._links if body.row < 0)

    def compute(
        self,
        states: Sequence[Mapping[str, float]],
        request: RobotDistanceRequest = _NEAREST,
        world: CollisionWorld = _EMPTY,
    ) -> tuple[StateDistances, ...]:
        """Distances of each state.

        Args:
            states: joint name → position [rad or m]; names that the robot does not have are ignored.

        Raises:
            InvalidInputError: a joint is missing or not finite; a link, object or group that is not known; a link
                without superovoid among the pairs.
        """
        positions = [self.model.configuration(state) for state in states]
        prepared = self._prepared(request, world)
        if len(positions) < _STATES_FOR_THREADS:
            return tuple(prepared.distances_alone(state) for state in positions)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return tuple(pool.map(prepared.distances_alone, positions))

    def query(self, request: RobotDistanceRequest = _NEAREST, world: CollisionWorld = _EMPTY) -> RobotDistanceQuery:
        """One request prepared for many states, each started from the last; see `RobotDistanceQuery`.

        Raises:
            InvalidInputError: as `compute`.
        """
        return self._prepare(request, world)

    def _prepare(self, request: RobotDistanceRequest, world: CollisionWorld) -> RobotDistanceQuery:
        objects = object_bodies(world, self.model)
        bodies = [*self._links, *objects]
        pairs = compared_pairs(bodies, request, self.model, self.semantics)
        table = ShapeTable.of([shape for body in objects for shape, _ in body.shapes]) if objects else None
        return RobotDistanceQuery(self.model, bodies, _carried(bodies, self._table, table), pairs, request)


_SCOPES = {
    DistanceType.GLOBAL: NEAREST,
    DistanceType.SINGLE: OF_EACH_GROUP,
    DistanceType.LIMITED: EVERY,
    DistanceType.ALL: EVERY,
}


class RobotDistanceQuery:
    """A request prepared for many states of a robot, each started from the last: `RobotDistance.query` makes it.

    The caller holds it. It remembers the latest answer of each pair of shapes: whose normal still separates a pair
    well enough is not solved, and the others are solved from there. One thread uses it at a time. Distances do not
    depend on what it remembers beyond the gap of their certificates.

    Attributes:
        link_names, body_types: of both bodies, for each pair of shapes (P).
        body_pairs: names and types of both bodies, for each pair of bodies (B) that is compared.
    """

    def __init__(
        self,
        model: KinematicModel,
        bodies: list[CollisionBody],
        table: CarriedShapes,
        pairs: NDArray[np.int64],
        request: RobotDistanceRequest,
    ) -> None:
        self._model, self._table, self._request = model, table, request
        counts = np.array([len(body.shapes) for body in bodies])
        owners = np.repeat(np.arange(len(bodies)), counts)
        self._pairs, self._groups = _shape_pairs(pairs, counts)
        self._body_rows, self._starts = pairs, np.concatenate([[0], np.cumsum(counts)])
        self.body_pairs = [
            ((bodies[one].name, bodies[other].name), (bodies[one].type, bodies[other].type))
            for one, other in pairs.tolist()
        ]
        both = [(bodies[first], bodies[second]) for first, second in owners[self._pairs].tolist()]
        self.link_names = [(one.name, other.name) for one, other in both]
        self.body_types = [(one.type, other.type) for one, other in both]
        self._deviations = [(one.deviation, other.deviation) for one, other in both]
        self.signed_distance, self.nearest_points = request.signed_distance, request.nearest_points
        self.wants_gradient = request.gradient
        self._scope = _SCOPES[request.type]
        self._memory = np.zeros((len(self._pairs), COLUMNS))

    def distances(self, positions: Array) -> StateDistances:
        """The distances at joint positions (J,), in the order of the model's `joint_names` [rad or m].

        Raises:
            InvalidInputError: positions of another shape, or not finite.
        """
        values = np.ascontiguousarray(positions, dtype=np.float64)
        names = self._model.joint_names
        if values.shape != (len(names),) or not np.isfinite(values).all():
            raise InvalidInputError("positions", positions, f"{len(names)} finite numbers, of {', '.join(names)}")
        return self._solve(values, self._memory)

    def reset(self) -> None:
        """Start the next state cold."""
        self._memory[:] = 0.0

    def distances_alone(self, positions: Array) -> StateDistances:
        """As `distances` for positions that are known to be good, without looking at the memory nor changing it."""
        return self._solve(positions, _NO_MEMORY)

    def _solve(self, positions: Array, memory: Array) -> StateDistances:
        request = self._request
        most = 1 if self._scope == NEAREST else len(self._pairs)
        joints = np.empty((len(self._model.motions.parents), 4, 4))
        pairs, rows = np.empty(most, dtype=np.int64), np.empty((most, COLUMNS))
        count = solve_state(
            self._model.motions,
            self._table,
            positions,
            self._pairs,
            self._groups,
            self._scope,
            request.distance_threshold,
            request.signed_distance,
            memory,
            joints,
            pairs,
            rows,
        )
        if self._scope != NEAREST:
            order = np.argsort(rows[:count, DISTANCE], kind="stable")
            if request.type is DistanceType.LIMITED:
                order = self._limited(order, pairs)
            pairs, rows = pairs[order], rows[order]
        else:
            pairs, rows = pairs[:count], rows[:count]
        return StateDistances(self, pairs, rows, joints)

    def _limited(self, order: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first of each pair of bodies, so many as are asked for."""
        counts: dict[int, int] = {}
        kept = []
        for number in order.tolist():
            group = int(self._groups[pairs[number]])
            counts[group] = counts.get(group, 0) + 1
            if counts[group] <= self._request.max_contacts_per_body:
                kept.append(number)
        return np.array(kept, dtype=np.int64)

    def groups(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of `body_pairs` pairs of shapes (K,) belong to."""
        return self._groups[pairs]

    def approach_bounds(self, joints: Array, velocities: Array, duration: float) -> Array:
        """Bounds (B, 2) of speed and acceleration [m/s, m/s²] of the points of `body_pairs` against each other.

        Args:
            joints: poses ``T_root_joint`` where a motion begins, of `StateDistances`.
            velocities: (J,) kept all the time [rad/s or m/s].
            duration: of the motion [s].
        """
        model, table = self._model, self._table
        return approach_bounds(model.motions, table, self._starts, self._body_rows, joints, velocities, duration)

    def is_way_clear(
        self, joints: Array, start: Array, velocities: Array, duration: float, between: Array, ends: Array
    ) -> bool:
        """Whether `body_pairs` are proven to keep distances (B,) on a straight way, and others (B,) at its end [m].

        By planes across the normals of the latest answers: sharp where these were asked for at its beginning. What
        is to be kept may be -inf.

        Args:
            joints: poses ``T_root_joint`` where the motion begins, of `StateDistances`.
            start: (J,) positions there [rad or m].
            velocities, duration: as of `approach_bounds`.
        """
        bounds = self.approach_bounds(joints, velocities, duration)
        end = start + duration * velocities
        shapes = self._pairs, self._groups, self._memory
        return bool(
            is_way_clear(self._model.motions, self._table, bounds, *shapes, start, end, duration, between, ends)
        )

    def deviation(self, pair: int) -> tuple[float, float] | None:
        """What two bodies may be nearer, and farther apart, than the nearest of their shapes [m]."""
        one, other = self._deviations[pair]
        if one is None or other is None or self._scope == EVERY:
            return None
        return one[0] + other[0], one[1] + other[1]

    def gradient(self, pair: int, row: Array, joints: Array) -> Array:
        """Derivative (J,) of the distance of a pair of shapes, by its answer and the poses of the joints."""
        gradient: Array = self.gradients(np.array([pair]), row[None], joints)[0]
        return gradient

    def gradients(self, pairs: NDArray[np.int64], rows: Array, joints: Array) -> Array:
        """Derivatives (K, J) of the distances of pairs of shapes (K,), by their answers and the poses of the joints."""
        gradients = np.empty((len(pairs), len(self._model.joint_names)))
        fill_gradients(self._model.motions, joints, self._table.rows, self._pairs[pairs], rows, gradients)
        return gradients


def _carried(bodies: Sequence[CollisionBody], links: ShapeTable, objects: ShapeTable | None) -> CarriedShapes:
    """The shapes of all bodies, those of the links first."""
    rows = np.array([body.row for body in bodies for _ in body.shapes], dtype=np.int64)
    poses = np.array([pose for body in bodies for _, pose in body.shapes])
    if objects is None:
        return CarriedShapes(links.rows, links.vertices, links.offsets, links.spheres, rows, poses)
    offsets = np.concatenate([links.offsets[:-1], len(links.vertices) + objects.offsets])
    return CarriedShapes(
        np.concatenate([links.rows, objects.rows]),
        np.concatenate([links.vertices, objects.vertices]),
        # The last shape of the links ends where those of the objects begin.
        offsets,
        np.concatenate([links.spheres, objects.spheres]),
        rows,
        poses,
    )


def _shape_pairs(pairs: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of shapes (P, 2) of pairs of bodies (B, 2), and which pair of bodies each belongs to (P,)."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    if len(pairs) == 0:
        return np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)
    sizes = counts[pairs[:, 0]] * counts[pairs[:, 1]]
    groups = np.repeat(np.arange(len(pairs)), sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    width = counts[pairs[groups, 1]]
    first = starts[pairs[groups, 0]] + within // width
    second = starts[pairs[groups, 1]] + within % width
    return np.ascontiguousarray(np.stack([first, second], axis=1)), groups
