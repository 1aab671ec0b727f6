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

from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.superovoid.distances.min_distance import STATUSES, DistanceStatus
from morphit_ros.superovoid.distances.packing import ShapeTable
from morphit_ros.superovoid.distances.queries import COLUMNS, DISTANCE, LOWER, NORMAL, OF_HULL, POINTS, STATUS
from morphit_ros.superovoid.robots.body_pairs import (
    BodyType,
    CollisionBody,
    compared_pairs,
    link_bodies,
    object_bodies,
)
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance_kernels import (
    CarriedShapes,
    fill_gradient,
    place_shapes,
    solve_nearest,
    solve_within,
)
from morphit_ros.superovoid.robots.world import CollisionWorld

if TYPE_CHECKING:
    from morphit_ros.robot.semantics import SemanticDescription
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

# States from which on they are shared among threads: below, starting them costs more.
_STATES_FOR_THREADS = 16
_EMPTY = CollisionWorld()
_NEAREST = RobotDistanceRequest()


@dataclass(frozen=True, eq=False)
class BodyDistance:
    """Distance of two bodies, in the robot's root frame.

    Attributes:
        link_names: of the links or objects; the robot's come before the world's.
        body_types: of both.
        distance: [m], not above 0 in contact: minus the depth of the deepest pair of shapes. Bodies of one shape each
            are separated by a translation of that length, bodies of several need at least as long a one.
        nearest_points: (2, 3) on body 1 and 2 [m]; None if not asked for.
        normal: (3,) unit, from 1 to 2.
        lower_bound: the distance of the convex hulls is not below this [m].
        status: whether the distance is certified.
        of_hull: a shape has a dent, and the distance may be that of its hull.
        gradient: (J,) by the joints of the result [m/rad, or 1 for sliding joints]; None if not asked for.
    """

    link_names: tuple[str, str]
    body_types: tuple[BodyType, BodyType]
    distance: float
    nearest_points: Array | None
    normal: Array
    lower_bound: float
    status: DistanceStatus
    of_hull: bool
    gradient: Array | None

    @property
    def certified(self) -> bool:
        return self.status is DistanceStatus.CERTIFIED


@dataclass(frozen=True, eq=False)
class StateDistances:
    """Distances of one state.

    Attributes:
        minimum_distance: the nearest pair; None if none is within the threshold.
        distances: nearest first.
    """

    minimum_distance: BodyDistance | None
    distances: tuple[BodyDistance, ...]

    @property
    def collision(self) -> bool:
        """Whether some pair has a distance of 0 or less."""
        return self.minimum_distance is not None and self.minimum_distance.distance <= 0.0


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
        links: Mapping[str, Iterable[PlacedSuperovoid]],
        model: KinematicModel,
        semantics: SemanticDescription | None = None,
    ) -> None:
        self.model = model
        self.semantics = semantics
        self._links = link_bodies(links, model)
        self._table = ShapeTable.of([shape for body in self._links for shape, _ in body.shapes])
        # A client asks again and again with the same request; what is kept depends on the arguments alone.
        self._prepared = functools.lru_cache(maxsize=8)(self._prepare)

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
            return tuple(prepared.distances(state) for state in positions)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return tuple(pool.map(prepared.distances, positions))

    def _prepare(self, request: RobotDistanceRequest, world: CollisionWorld) -> _Prepared:
        objects = object_bodies(world, self.model)
        bodies = [*self._links, *objects]
        pairs = compared_pairs(bodies, request, self.model, self.semantics)
        table = ShapeTable.of([shape for body in objects for shape, _ in body.shapes]) if objects else None
        return _Prepared(self.model, bodies, _carried(bodies, self._table, table), pairs, request)


class _Prepared:
    """Everything of a request that does not depend on the state."""

    def __init__(
        self,
        model: KinematicModel,
        bodies: list[CollisionBody],
        table: CarriedShapes,
        pairs: NDArray[np.int64],
        request: RobotDistanceRequest,
    ) -> None:
        self._model, self._bodies, self._table, self._request = model, bodies, table, request
        counts = np.array([len(body.shapes) for body in bodies])
        self._owners = np.repeat(np.arange(len(bodies)), counts)
        self._pairs, self._groups = _shape_pairs(pairs, counts)

    def distances(self, positions: Array) -> StateDistances:
        """The distances at joint positions (J,)."""
        request, table = self._request, self._table
        joints = np.empty((len(self._model.motions.parents), 4, 4))
        poses, spheres = np.empty((len(table.rows), 4, 4)), np.empty((len(table.rows), 4))
        place_shapes(self._model.motions, table, positions, joints, poses, spheres)
        threshold, signed = request.distance_threshold, request.signed_distance
        if request.type is DistanceType.GLOBAL:
            rows = np.empty((1, COLUMNS))
            nearest = solve_nearest(table, poses, spheres, self._pairs, threshold, signed, rows[0])
            found = [(nearest, rows[0])] if nearest >= 0 else []
        else:
            index, rows = np.empty(len(self._pairs), dtype=np.int64), np.empty((len(self._pairs), COLUMNS))
            single = request.type is DistanceType.SINGLE
            count = solve_within(
                table, poses, spheres, self._pairs, self._groups, threshold, single, signed, index, rows
            )
            found = [(int(index[k]), rows[k]) for k in np.argsort(rows[:count, DISTANCE], kind="stable")]
            if request.type is DistanceType.LIMITED:
                found = self._limited(found)
        answers = tuple(self._body_distance(pair, row, joints) for pair, row in found)
        return StateDistances(answers[0] if answers else None, answers)

    def _limited(self, found: list[tuple[int, Array]]) -> list[tuple[int, Array]]:
        """The first of each pair of bodies, so many as are asked for."""
        counts: dict[int, int] = {}
        kept = []
        for pair, row in found:
            group = int(self._groups[pair])
            counts[group] = counts.get(group, 0) + 1
            if counts[group] <= self._request.max_contacts_per_body:
                kept.append((pair, row))
        return kept

    def _body_distance(self, pair: int, row: Array, joints: Array) -> BodyDistance:
        first, second = (int(shape) for shape in self._pairs[pair])
        one, other = self._bodies[self._owners[first]], self._bodies[self._owners[second]]
        gradient = None
        if self._request.gradient:
            gradient = np.empty(len(self._model.joint_names))
            rows = self._table.rows
            fill_gradient(self._model.motions, joints, rows[first], rows[second], row, gradient)
        distance, lower = float(row[DISTANCE]), float(row[LOWER])
        signed = self._request.signed_distance
        return BodyDistance(
            (one.name, other.name),
            (one.type, other.type),
            distance if signed else max(distance, 0.0),
            row[POINTS : POINTS + 6].reshape(2, 3) if self._request.nearest_points else None,
            row[NORMAL : NORMAL + 3],
            lower if signed else max(lower, 0.0),
            STATUSES[int(row[STATUS])],
            bool(row[OF_HULL]),
            gradient,
        )


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
