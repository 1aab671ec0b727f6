"""What moves and what it meets: bodies, obstacles, gravity, step and contact parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.leaves import group_points
from morphit_ros.neural.contact.parameters import (
    DERIVED_NAMES,
    GRAVITY,
    NUMBERS,
    ContactParameters,
    check_step,
    derived_factors,
    largest_explicit_step,
    largest_implicit_step,
)
from morphit_ros.neural.contact.shapes import ContactShape
from morphit_ros.neural.dynamics.bodies import Obstacle, RigidBody
from morphit_ros.neural.dynamics.model import Model

__all__ = ["Form", "Obstacle", "RigidBody", "World"]

Form = Literal["points", "smooth_single_point", "published"]


@dataclass(frozen=True)
class World:
    """Bodies and obstacles with the laws between them.

    Attributes:
        bodies: what moves; a `ContactBody` stands for a `RigidBody` with its mass and inertia.
        obstacles: what is fixed or driven.
        parameters: of contact, for all pairs that `pair_parameters` doesn't name.
        step: h [s].
        gravity: (3,) [m/s²].
        pair_parameters: by pair name, "BODY/SHAPE" with the body whose points touch first.
        ignored_pairs: names of pairs that don't touch.
        controls: which bodies have controls, as (name, "force" | "wrench"): a force at the centre of mass in the world
            (3 numbers), or with a torque in the world after it (6).
        form: "points" for forces by point (the default), "smooth_single_point" and "published" for the paper's single
            point with a smooth and with a hard indicator.

    Raises:
        InvalidInputError: no body, names that don't exist or are there twice, a step too long.
    """

    bodies: Sequence[RigidBody | ContactBody]
    obstacles: Sequence[Obstacle] = ()
    parameters: ContactParameters = field(default_factory=ContactParameters)
    step: float = 0.002
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -GRAVITY]))
    pair_parameters: Mapping[str, ContactParameters] = field(default_factory=dict)
    ignored_pairs: Sequence[str] = ()
    controls: Sequence[tuple[str, str]] = ()
    form: Form = "points"

    def __post_init__(self) -> None:
        bodies = tuple(
            RigidBody.from_contact_body(body) if isinstance(body, ContactBody) else body for body in self.bodies
        )
        if not bodies:
            raise InvalidInputError("bodies", "none", "at least one body")
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "obstacles", tuple(self.obstacles))
        gravity = np.array(self.gravity, dtype=np.float64)
        if gravity.shape != (3,) or not np.isfinite(gravity).all():
            raise InvalidInputError("gravity", gravity.tolist(), "three finite numbers [m/s²]")
        object.__setattr__(self, "gravity", gravity)
        if not (np.isfinite(self.step) and self.step > 0.0):
            raise InvalidInputError("step", self.step, "a positive number [s]")
        if self.form not in ("points", "smooth_single_point", "published"):
            raise InvalidInputError("form", self.form, "points, smooth_single_point or published")
        names = [*self.body_names, *self.obstacle_names]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInputError("name", f"'{name}' twice", "one name for each body and obstacle")
        for name in (*self.pair_parameters, *self.ignored_pairs):
            if name not in self._all_pairs:
                raise InvalidInputError("pair", f"'{name}'", f"one of {', '.join(self._all_pairs) or 'none'}")
        for name, kind in self.controls:
            if name not in self.body_names or kind not in ("force", "wrench"):
                raise InvalidInputError(
                    "controls", f"({name!r}, {kind!r})", f"('force' | 'wrench') on one of {', '.join(self.body_names)}"
                )
        self._check_step()

    @cached_property
    def rigid_bodies(self) -> tuple[RigidBody, ...]:
        """The bodies."""
        return tuple(body for body in self.bodies if isinstance(body, RigidBody))

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return tuple(body.name or f"body{i}" for i, body in enumerate(self.rigid_bodies))

    @cached_property
    def obstacle_names(self) -> tuple[str, ...]:
        """Names of the obstacles."""
        return tuple(obstacle.name or f"obstacle{i}" for i, obstacle in enumerate(self.obstacles))

    @cached_property
    def _shapes(self) -> list[tuple[str, ContactShape, int]]:
        """Name, shape and owner (−1: none) of all shapes: first the obstacles'."""
        rows = [(name, item.shape, -1) for name, item in zip(self.obstacle_names, self.obstacles, strict=True)]
        for i, (name, body) in enumerate(zip(self.body_names, self.rigid_bodies, strict=True)):
            if body.shape is not None:
                rows.append((name, body.shape, i))
        return rows

    @cached_property
    def _all_pairs(self) -> dict[str, tuple[int, int]]:
        return {
            f"{name}/{shape_name}": (i, s)
            for i, (name, body) in enumerate(zip(self.body_names, self.rigid_bodies, strict=True))
            if body.contact is not None
            for s, (shape_name, _, owner) in enumerate(self._shapes)
            if owner != i
        }

    @cached_property
    def pairs(self) -> dict[str, tuple[int, int]]:
        """Body and shape of each pair that can touch, by name."""
        return {name: pair for name, pair in self._all_pairs.items() if name not in self.ignored_pairs}

    @cached_property
    def pair_sizes(self) -> dict[str, float]:
        """Size of each pair's body [m], by the pair's name."""
        contacts = {name: self.rigid_bodies[i].contact for name, (i, _) in self.pairs.items()}
        return {name: contact.size for name, contact in contacts.items() if contact is not None}

    def _check_step(self) -> None:
        gravity = float(np.linalg.norm(self.gravity))
        for name, (i, _) in self.pairs.items():
            body = self.rigid_bodies[i].contact
            assert body is not None
            parameters = self.pair_parameters.get(name, self.parameters)
            if self.form == "points":
                check_step(self.step, largest_implicit_step(body.size, gravity), f"a body of {body.size:.3g} m")
            else:
                height = float(np.ptp(body.points, axis=0).min())
                largest = largest_explicit_step(parameters, body.size, height, gravity)
                check_step(self.step, largest, f"the spring of '{name}', whose overlap is explicit")

    @cached_property
    def control_map(self) -> NDArray[np.int64]:
        """(M,) the component of the (6 B,) wrenches that each control is."""
        indices: list[int] = []
        for name, kind in self.controls:
            first = 6 * self.body_names.index(name)
            indices += range(first, first + (3 if kind == "force" else 6))
        return np.array(indices, dtype=np.int64)

    @cached_property
    def pair_values(self) -> Array:
        """(Q, 13) parameters of the pairs in SI."""
        rows = [self.pair_parameters.get(name, self.parameters).scaled(self.pair_sizes[name]) for name in self.pairs]
        return np.array(rows).reshape(len(rows), NUMBERS)

    @cached_property
    def frames(self) -> tuple[Array, Array]:
        """Poses (F, S, 12) and twists (F, S, 6) of all shapes; those of bodies are not used."""
        rows = [item.frames(self.step) for item in self.obstacles]
        count = max([len(poses) for poses, _ in rows], default=1)
        poses, twists = np.zeros((count, len(self._shapes), 12)), np.zeros((count, len(self._shapes), 6))
        for s, (pose, twist) in enumerate(rows):
            poses[: len(pose), s], poses[len(pose) :, s] = pose, pose[-1]
            twists[: len(twist), s] = twist
        return poses, twists

    @cached_property
    def model(self) -> Model:
        """The arrays of the compiled kernels."""
        points, leaves, first, ranges, reaches = [np.zeros((0, 4))], [np.zeros((0, 4))], [0], [], []
        for body in self.rigid_bodies:
            start = len(first) - 1
            if body.contact is not None:
                groups = group_points(body.contact.points)
                first += list(first[-1] + groups.first[1:])
                leaves.append(np.column_stack([groups.centers, groups.radii]))
                points.append(np.column_stack([body.contact.points, body.contact.masses])[groups.order])
            ranges.append((start, len(first) - 1))
            reaches.append(0.0 if body.contact is None else float(np.linalg.norm(body.contact.points, axis=1).max()))
        data, rows = [np.zeros(0)], []
        for _, shape, owner in self._shapes:
            numbers = shape.numbers()
            count = len(numbers) // 4 if shape.kind in _ROWS_OF_FOUR else len(numbers)
            rows.append((shape.kind, sum(len(part) for part in data), count, owner))
            data.append(numbers)
        form = {"points": 0, "smooth_single_point": 1, "published": 2}[self.form]
        return Model(
            step=float(self.step),
            gravity=self.gravity,
            parameters=self.pair_values,
            masses=np.array([body.mass for body in self.rigid_bodies], dtype=np.float64),
            inertias=np.array([body.inertia for body in self.rigid_bodies]),
            scales=np.ones(len(self.rigid_bodies)),
            reaches=np.array(reaches),
            points=np.concatenate(points),
            leaves=np.concatenate(leaves),
            leaf_first=np.array(first, dtype=np.int64),
            body_leaves=np.array(ranges, dtype=np.int64),
            shapes=np.array(rows, dtype=np.int64).reshape(-1, 4),
            shape_data=np.concatenate(data),
            pairs=np.array([(*pair, form) for pair in self.pairs.values()], dtype=np.int64).reshape(-1, 3),
            control_map=self.control_map,
            capacity=sum(self._point_count(i) for i, _ in self.pairs.values()),
        )

    def _point_count(self, body: int) -> int:
        contact = self.rigid_bodies[body].contact
        return 0 if contact is None else len(contact.points)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """All names that `values` and derivatives accept."""
        pairs = tuple(f"{name}:{pair}" for name in DERIVED_NAMES for pair in self.pairs)
        bodies = tuple(f"{name}:{body}" for name in ("mass_scale", "inertia_scale") for body in self.body_names)
        return (*DERIVED_NAMES, "mass_scale", "inertia_scale", *pairs, *bodies)

    def selection(self, names: Sequence[str]) -> Array:
        """(6 Q + 2 B, K) the basic parameters by each of the K named ones.

        Raises:
            InvalidInputError: an unknown name.
        """
        pairs, bodies = list(self.pairs), list(self.body_names)
        matrix = np.zeros((len(DERIVED_NAMES) * len(pairs) + 2 * len(bodies), len(names)))
        for column, name in enumerate(names):
            if name not in self.parameter_names:
                raise InvalidInputError("names", f"'{name}'", f"one of {', '.join(self.parameter_names)}")
            kind, _, which = name.partition(":")
            if kind in DERIVED_NAMES:
                at = DERIVED_NAMES.index(kind)
                for k, pair in enumerate(pairs):
                    if which in ("", pair):
                        factors = derived_factors(
                            self.pair_parameters.get(pair, self.parameters), self.pair_sizes[pair]
                        )
                        matrix[len(DERIVED_NAMES) * k + at, column] = factors[at]
            else:
                first = len(DERIVED_NAMES) * len(pairs) + (len(bodies) if kind == "inertia_scale" else 0)
                for i, body in enumerate(bodies):
                    if which in ("", body):
                        matrix[first + i, column] = 1.0
        return matrix

    def with_values(self, names: Sequence[str], values: ArrayLike) -> tuple[Array, Array, Array]:
        """Pair parameters (Q, 13), mass scales (B,) and inertia scales (B,) with some of them replaced.

        Raises:
            InvalidInputError: an unknown name, two names for one number, a value that is negative or not finite, a
                scale that is not positive.
        """
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if numbers.shape != (len(names),):
            raise InvalidInputError("values", f"shape {numbers.shape}", f"one for each of {len(names)} names")
        basic = np.ones(len(DERIVED_NAMES) * len(self.pairs) + 2 * len(self.rigid_bodies))
        pairs = self.pair_values.copy()
        basic[: len(DERIVED_NAMES) * len(self.pairs)] = pairs[:, : len(DERIVED_NAMES)].ravel()
        selection = self.selection(names)
        twice = np.flatnonzero((selection != 0.0).sum(axis=1) > 1)
        if len(twice):
            both = [name for name, column in zip(names, selection.T, strict=True) if column[twice[0]] != 0.0]
            raise InvalidInputError("names", both, "names that do not set the same number")
        for name, value, column in zip(names, numbers, selection.T, strict=True):
            least = "positive" if name.startswith(("spring", "mass", "inertia")) else "not negative"
            if not np.isfinite(value) or value < 0.0 or (value == 0.0 and least == "positive"):
                raise InvalidInputError(name, value, f"a finite number that is {least}")
            chosen = column != 0.0
            basic[chosen] = column[chosen] * value
        count = len(DERIVED_NAMES) * len(self.pairs)
        pairs[:, : len(DERIVED_NAMES)] = basic[:count].reshape(len(self.pairs), len(DERIVED_NAMES))
        bodies = len(self.rigid_bodies)
        return pairs, basic[count : count + bodies].copy(), basic[count + bodies :].copy()


_ROWS_OF_FOUR = (4, 5)
