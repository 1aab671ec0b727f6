"""A system for contact planning: bodies on joints, the shapes fixed to them, and which shapes may touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.contact_planning.contact import (
    HALF_SPACE,
    SPHERE,
    SUPERELLIPSOID,
    WORK,
    Contacts,
    fill_gaps,
    place_shapes,
)
from morphit_ros.contact_planning.tree import (
    BALL,
    POSITIONS,
    PRISMATIC,
    REVOLUTE,
    TRANSLATION,
    VELOCITIES,
    Tree,
    add,
    motion_arrays,
    place,
    subtract,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, make_transform

if TYPE_CHECKING:
    from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

GRAVITY = (0.0, 0.0, -9.81)
_KINDS = {"revolute": REVOLUTE, "continuous": REVOLUTE, "prismatic": PRISMATIC}


@dataclass(frozen=True)
class Inertia:
    """Mass [kg], its centre (3,) [m] and inertia (3, 3) about that [kg m²], in the body's frame."""

    mass: float
    center: Array
    matrix: Array

    @staticmethod
    def ball(mass: float, radius: float) -> Inertia:
        """Of a homogeneous ball about the body's origin."""
        return Inertia(mass, np.zeros(3), 0.4 * mass * radius**2 * np.eye(3))

    @staticmethod
    def box(mass: float, size: ArrayLike) -> Inertia:
        """Of a homogeneous box (3,) [m] about the body's origin."""
        squares = np.square(np.asarray(size, dtype=np.float64))
        return Inertia(mass, np.zeros(3), mass / 12.0 * np.diag(squares.sum() - squares))

    def __add__(self, other: Inertia) -> Inertia:
        """Of two rigidly joined bodies."""
        mass = self.mass + other.mass
        if mass <= 0.0:
            return self
        center = (self.mass * self.center + other.mass * other.center) / mass
        matrix = sum((part.about(center) for part in (self, other)), np.zeros((3, 3)))
        return Inertia(mass, center, matrix)

    def about(self, point: Array) -> Array:
        """Inertia (3, 3) about another point (3,) of the same frame."""
        way = self.center - point
        return self.matrix + self.mass * (way @ way * np.eye(3) - np.outer(way, way))

    def moved(self, pose: Array) -> Inertia:
        """In another frame, in which this one has the pose (4, 4)."""
        return Inertia(self.mass, pose[:3, :3] @ self.center + pose[:3, 3], pose[:3, :3] @ self.matrix @ pose[:3, :3].T)


NO_INERTIA = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))


@dataclass(frozen=True, eq=False)
class ContactSystem:
    """Bodies, shapes and pairs as arrays; made by `SystemBuilder`.

    Attributes:
        tree, contacts: for the kernels.
        actuated: (V,) whether a motor moves the velocity.
        lower, upper: (V,) limits of joints of one coordinate, infinite where there are none [rad or m].
        bodies: name → row in the tree, -1 for the world.
        shape_names: of the shapes' bodies, for messages.
    """

    tree: Tree
    contacts: Contacts
    actuated: NDArray[np.bool_]
    lower: Array
    upper: Array
    bodies: Mapping[str, int]
    shape_names: tuple[str, ...]

    @property
    def position_count(self) -> int:
        """Numbers in a configuration."""
        return int(sum(POSITIONS[kind] for kind in self.tree.kinds))

    @property
    def velocity_count(self) -> int:
        """Numbers in a velocity."""
        return len(self.tree.bodies)

    def neutral(self) -> Array:
        """(Q,) all zeros, balls not turned."""
        positions = np.zeros(self.position_count)
        for body in np.flatnonzero(self.tree.kinds == BALL):
            positions[self.tree.first_position[body] + 3] = 1.0
        return positions

    def difference(self, second: Array, first: Array) -> Array:
        """second ⊖ first (V,): balls by rotation vectors in the body's axes."""
        result = np.zeros(self.velocity_count)
        subtract(self.tree, second, first, result)
        return result

    def moved(self, positions: Array, step: Array) -> Array:
        """positions ⊕ step (Q,)."""
        result = np.empty(self.position_count)
        add(self.tree, positions, step, result)
        return result

    def poses(self, positions: Array) -> Array:
        """(B, 4, 4) of the bodies in the world."""
        motion = motion_arrays(self.tree)
        place(self.tree, positions, motion)
        return motion.poses

    def gaps(self, positions: Array) -> Array:
        """(P,) of all pairs [m]."""
        placed, gaps = np.zeros((len(self.contacts.kinds), 4, 4)), np.empty(len(self.contacts.pairs))
        place_shapes(self.contacts, self.poses(positions), placed)
        fill_gaps(self.contacts, placed, np.empty((WORK, 3)), gaps)
        return gaps

    def columns(self, body: str) -> tuple[slice, slice]:
        """Positions and velocities of a body's own joint, for a free body both of its joints.

        Raises:
            InvalidInputError: no such body.
        """
        if self.bodies.get(body, -1) < 0:
            raise InvalidInputError("body", repr(body), f"one of {', '.join(self.bodies)}")
        last = self.bodies[body]
        first = last - 1 if self.tree.kinds[last] == BALL else last
        q, v = self.tree.first_position, self.tree.first_velocity
        kind = self.tree.kinds[last]
        return slice(q[first], q[last] + POSITIONS[kind]), slice(v[first], v[last] + VELOCITIES[kind])


@dataclass
class SystemBuilder:
    """Collects joints and shapes, then makes a `ContactSystem`.

    Attributes:
        gravity: (3,) [m/s²].
    """

    gravity: ArrayLike = GRAVITY
    bodies: dict[str, int] = field(default_factory=lambda: {"world": -1})
    _parents: list[int] = field(default_factory=list)
    _before: list[Array] = field(default_factory=list)
    _kinds: list[int] = field(default_factory=list)
    _axes: list[Array] = field(default_factory=list)
    _inertias: list[Inertia] = field(default_factory=list)
    _damping: list[float] = field(default_factory=list)
    _actuated: list[bool] = field(default_factory=list)
    _limits: list[tuple[float, float]] = field(default_factory=list)
    _shapes: list[tuple[int, str, Array, Array]] = field(default_factory=list)

    def add_body(
        self, name: str, parent: str, kind: str, T_parent_joint: ArrayLike, inertia: Inertia = NO_INERTIA, *,
        axis: ArrayLike = (0.0, 0.0, 1.0), damping: float = 0.0, actuated: bool = True,
        limits: tuple[float, float] = (-np.inf, np.inf),
    ) -> None:  # fmt: skip
        """Add a body behind a revolute, continuous or prismatic joint.

        Raises:
            InvalidInputError: another kind, an unknown parent, a name given twice, or numbers that are not finite.
        """
        if kind not in _KINDS:
            raise InvalidInputError("kind", repr(kind), f"one of {', '.join(_KINDS)}")
        self._add(name, parent, _KINDS[kind], check_transform(T_parent_joint), inertia, axis, damping, actuated, limits)

    def add_free_body(self, name: str, inertia: Inertia) -> None:
        """Add a body that moves freely in the world: position, then a quaternion (x, y, z, w).

        Raises:
            InvalidInputError: a name given twice, or an inertia that no body has.
        """
        if not (inertia.mass > 0.0 and np.linalg.eigvalsh(inertia.matrix)[0] > 0.0):
            raise InvalidInputError(
                f"inertia of '{name}'", f"mass {inertia.mass:g}", "a positive mass and moments of inertia",
                "Give the object's mass; without it nothing can be said of how it moves.",
            )  # fmt: skip
        free = (-np.inf, np.inf)
        self._add(f"{name} (place)", "world", TRANSLATION, np.eye(4), NO_INERTIA, (0.0, 0.0, 1.0), 0.0, False, free)
        self._add(name, f"{name} (place)", BALL, np.eye(4), inertia, (0.0, 0.0, 1.0), 0.0, False, free)

    def _add(
        self, name: str, parent: str, kind: int, before: Array, inertia: Inertia, axis: ArrayLike, damping: float,
        actuated: bool, limits: tuple[float, float],
    ) -> None:  # fmt: skip
        if name in self.bodies:
            raise InvalidInputError("body", repr(name), "a name that no other body has")
        if parent not in self.bodies:
            raise InvalidInputError(f"parent of '{name}'", repr(parent), f"one of {', '.join(self.bodies)}")
        direction = np.asarray(axis, dtype=np.float64)
        numbers = [*direction, damping, inertia.mass, *inertia.center, *inertia.matrix.ravel()]
        if not np.isfinite(numbers).all() or inertia.mass < 0.0 or damping < 0.0 or not direction.any():
            given = f"axis {direction.tolist()}, damping {damping}, mass {inertia.mass}"
            raise InvalidInputError(f"body '{name}'", given, "finite numbers, none negative")
        self.bodies[name] = len(self._parents)
        self._parents.append(self.bodies[parent])
        self._before.append(np.asarray(before, dtype=np.float64))
        self._kinds.append(kind)
        self._axes.append(direction / np.linalg.norm(direction))
        self._inertias.append(inertia)
        self._damping += [damping] * VELOCITIES[kind]
        self._actuated += [actuated] * VELOCITIES[kind]
        self._limits += [limits] * VELOCITIES[kind]

    def add_spheres(self, body: str, centers: ArrayLike, radii: ArrayLike) -> list[int]:
        """Fix spheres (N, 3), (N,) to a body, in its frame [m]; their rows.

        Raises:
            InvalidInputError: no spheres, an unknown body, or numbers that are no spheres.
        """
        places, sizes = np.atleast_2d(np.asarray(centers, dtype=np.float64)), np.ravel(radii).astype(np.float64)
        name = f"spheres of '{body}'"
        if places.size == 0 or sizes.size == 0:
            raise InvalidInputError(name, "none", "at least one", "A body without shape touches nothing.")
        finite = np.isfinite(places).all() and np.isfinite(sizes).all()
        if places.shape != (len(sizes), 3) or not finite or not (sizes > 0.0).all():
            raise InvalidInputError(name, f"centres {places.shape}, radii {sizes}", "finite (N, 3), (N,) > 0")
        return [
            self._shape(SPHERE, body, make_transform(translation=place), [size])
            for place, size in zip(places, sizes, strict=True)
        ]

    def add_half_space(self, body: str = "world", pose: ArrayLike | None = None) -> int:
        """Fix the half-space below z = 0 of a frame (4, 4) to a body; its row."""
        return self._shape(HALF_SPACE, body, np.eye(4) if pose is None else check_transform(pose), [])

    def add_superovoid(self, body: str, placed: PlacedSuperovoid) -> int:
        """Fix a superovoid to a body, in its frame; its row.

        Raises:
            InvalidInputError: it is tapered or has edges, where normals jump.
        """
        shape = placed.shape
        if any(shape.tapering) or max(shape.squareness) > 1.0:
            raise InvalidInputError(
                f"superovoid of '{body}'", f"tapering {shape.tapering}, squareness {shape.squareness}",
                "no tapering, and exponents of at most 1", "Fit it with family superellipsoid and max_squareness 1.",
            )  # fmt: skip
        return self._shape(SUPERELLIPSOID, body, placed.T_link_shape, list(shape.parameters))

    def _shape(self, kind: int, body: str, pose: Array, numbers: list[float]) -> int:
        if body not in self.bodies:
            raise InvalidInputError("body", repr(body), f"one of {', '.join(self.bodies)}")
        self._shapes.append((kind, body, pose, np.array([*numbers, *[0.0] * (7 - len(numbers))])))
        return len(self._shapes) - 1

    def build(self, pairs: Sequence[tuple[int, int]]) -> ContactSystem:
        """The system, in which these pairs of shapes may touch; at least one of each pair is a sphere.

        Raises:
            InvalidInputError: no body, a pair without sphere or of one body.
        """
        if not self._parents:
            raise InvalidInputError("system", "no bodies", "at least one")
        rows = []
        for first, second in pairs:
            a, b = self._shapes[first], self._shapes[second]
            if a[1] == b[1] or SPHERE not in (a[0], b[0]):
                raise InvalidInputError("pair", f"shapes of '{a[1]}' and '{b[1]}'", "two bodies, one shape a sphere")
            rows.append((first, second) if b[0] == SPHERE else (second, first))
        # Pairs of the same two bodies one after the other: they share a contact.
        bodies = [tuple(sorted(self.bodies[self._shapes[row][1]] for row in pair)) for pair in rows]
        rows = [rows[k] for k in sorted(range(len(rows)), key=lambda k: bodies[k])]
        bodies.sort()
        groups = [k for k in range(len(bodies)) if k == 0 or bodies[k] != bodies[k - 1]]
        kinds, parents = np.array(self._kinds, dtype=np.int64), np.array(self._parents, dtype=np.int64)
        widths, counts = np.array([POSITIONS[k] for k in kinds]), np.array([VELOCITIES[k] for k in kinds])
        behind = np.eye(len(parents), dtype=bool)
        for body, parent in enumerate(parents):
            if parent >= 0:
                behind[:, body] |= behind[:, parent]
        moved = np.repeat(np.arange(len(parents)), counts)
        tree = Tree(
            parents, np.array(self._before), kinds, np.array(self._axes),
            np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int64),
            np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64),
            np.array([inertia.mass for inertia in self._inertias]),
            np.array([inertia.center for inertia in self._inertias], dtype=np.float64),
            np.array([inertia.matrix for inertia in self._inertias], dtype=np.float64),
            moved.astype(np.int64), np.ascontiguousarray(behind[moved]), np.array(self._damping, dtype=np.float64),
            np.array(self.gravity, dtype=np.float64),
        )  # fmt: skip
        contacts = Contacts(
            np.array([shape[0] for shape in self._shapes], dtype=np.int64),
            np.array([self.bodies[shape[1]] for shape in self._shapes], dtype=np.int64),
            np.array([shape[2] for shape in self._shapes], dtype=np.float64).reshape(-1, 4, 4),
            np.array([shape[3] for shape in self._shapes], dtype=np.float64).reshape(-1, 7),
            np.array(rows, dtype=np.int64).reshape(-1, 2),
            np.array([*groups, len(rows)], dtype=np.int64),
        )
        limits = np.array(self._limits, dtype=np.float64)
        return ContactSystem(
            tree, contacts, np.array(self._actuated), np.ascontiguousarray(limits[:, 0]),
            np.ascontiguousarray(limits[:, 1]), dict(self.bodies), tuple(shape[1] for shape in self._shapes),
        )  # fmt: skip
