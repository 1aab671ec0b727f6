"""A rectangular cloth that falls over superovoids, which may be moved and shaped while it does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.cloth.config import MOST_SHAPES, ClothConfig
from morphit_ros.cloth.motion import Constants, Workspace, advance
from morphit_ros.cloth.placing import SLOTS
from morphit_ros.cloth.self_contact import APART
from morphit_ros.cloth.tree import SIDE, tree_levels
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.rotations import multiply_quats, rotation_vectors
from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector, quat_xyzw_from_matrix, transform_points
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.support import SECTIONS
from morphit_ros.superovoid.shapes.bounds import bounding_box

# Nodes leave the plane by so many pitches at first: a cloth that falls flat on what is symmetric has to fold somewhere.
_NOISE = 1e-3
# Distances are measured of nodes within so many gaps of a shape's box.
_NEAR = 3.0
# Planes of contact hold for so many pitches along a shape.
_REUSE = 0.1


class Cloth:
    """A cloth and what it falls over.

    Args:
        shapes: with poses in the world [m], z up; 60 at most.
        config: of cloth and computation.
        seed: of the small unevenness that the cloth begins with.
        center: (x, y) above which it begins [m]; by default the middle of the shapes.

    Raises:
        InvalidInputError: too many shapes, or no finite centre.

    Attributes:
        config: as given.
        time: since the start [s].
        uncertified: closest points without a certificate so far: in dents, and where a search failed. Exact contact
            alone looks for them.
        led_out: nodes that no free way was left for so far, as two shapes closed on them. Exact contact alone counts.
    """

    def __init__(
        self,
        shapes: Sequence[PlacedSuperovoid],
        config: ClothConfig | None = None,
        seed: int = 0,
        center: ArrayLike | None = None,
    ) -> None:
        self.config = config or ClothConfig()
        self._shapes = _checked(shapes)
        self._moved = list(self._shapes)
        self._seed = seed
        corners = [_world_box(placed) for placed in self._shapes]
        low, high = (np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)) if corners else (
            np.zeros(3), np.zeros(3)
        )  # fmt: skip
        middle = 0.5 * (low + high)[:2] if center is None else np.asarray(center, dtype=np.float64)
        if middle.shape != (2,) or not np.isfinite(middle).all():
            raise InvalidInputError("center", center, "two finite numbers [m]")
        self._place = np.array([*middle, max(float(high[2]), 0.0) + self.config.clearance + self.config.gap])
        rows, cols = self.config.rows, self.config.cols
        self._free = np.ones((rows, cols))
        self._work = _workspace(rows, cols)
        self.reset()

    def reset(self) -> None:
        """Begin anew, above the shapes as they were at first; shapes and held nodes stay as they are."""
        rows, cols, pitch = self.config.rows, self.config.cols, self.config.pitch
        self._x = np.empty((3, rows, cols))
        self._x[0] = self._place[0] + pitch * (np.arange(cols) - 0.5 * (cols - 1))
        self._x[1] = self._place[1] + pitch * (np.arange(rows) - 0.5 * (rows - 1))[:, None]
        tops = [_world_box(placed)[1][2] for placed in self._shapes]
        height = max([self._place[2], *(top + self.config.clearance + self.config.gap for top in tops)])
        noise = np.random.default_rng(self._seed).uniform(0.0, 1.0, (rows, cols))
        self._x[2] = height + _NOISE * pitch * noise
        self._v = np.zeros_like(self._x)
        self._work.budgets[:] = 0.0
        self.time = 0.0
        self.uncertified = self.led_out = 0

    @property
    def shapes(self) -> tuple[PlacedSuperovoid, ...]:
        """What the cloth falls over, as it will be after the next step."""
        return tuple(self._moved)

    @property
    def positions(self) -> Array:
        """(rows cols, 3) of the nodes, row by row [m]."""
        return self._x.reshape(3, -1).T.copy()

    @property
    def velocities(self) -> Array:
        """(rows cols, 3) of the nodes [m/s]."""
        return self._v.reshape(3, -1).T.copy()

    @property
    def node_mass(self) -> float:
        """Of one node [kg]."""
        return self.config.density * self.config.pitch**2

    @property
    def energy(self) -> float:
        """Kinetic energy, and potential energy of gravity above z = 0 [J]; that of folds and shear is not counted."""
        return self.node_mass * float(0.5 * (self._v**2).sum() + self.config.gravity * self._x[2].sum())

    @property
    def momentum(self) -> Array:
        """(3,) [kg m/s]."""
        return self.node_mass * self._v.sum(axis=(1, 2))

    @property
    def strains(self) -> Array:
        """Of all distances along rows, then columns: by how much of the pitch they are longer."""
        lengths = [np.linalg.norm(np.diff(self._x, axis=axis), axis=0).ravel() for axis in (2, 1)]
        return np.concatenate(lengths) / self.config.pitch - 1.0

    @property
    def triangles(self) -> NDArray[np.int64]:
        """(F, 3) indices of nodes, counter-clockwise seen from the side that is above at first."""
        places = np.arange(self.config.rows * self.config.cols).reshape(self.config.rows, self.config.cols)
        a, b, c, d = (part.ravel() for part in (places[:-1, :-1], places[:-1, 1:], places[1:, :-1], places[1:, 1:]))
        return np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1)])

    def mesh(self) -> TriangleMesh:
        """The cloth as an open surface, in the world."""
        return TriangleMesh(self.positions, self.triangles)

    def hold(self, nodes: ArrayLike, held: bool = True) -> None:
        """Fix nodes where they are, or let them go.

        Args:
            nodes: their numbers, row by row.
            held: whether they are fixed.

        Raises:
            InvalidInputError: numbers that no node has.
        """
        chosen = np.asarray(nodes)
        if chosen.dtype.kind not in "iu" or (chosen.size and (chosen.min() < 0 or chosen.max() >= self._free.size)):
            raise InvalidInputError("nodes", nodes, f"integers from 0 to {self._free.size - 1}")
        self._free.ravel()[chosen] = 0.0 if held else 1.0
        self._work.turned_free[:] = self._free.T

    def set_velocities(self, velocities: ArrayLike) -> None:
        """Give the nodes velocities (rows cols, 3) or one (3,) for all [m/s].

        Raises:
            InvalidInputError: another shape, or values that are not finite.
        """
        given = np.asarray(velocities, dtype=np.float64)
        if given.shape not in ((3,), (self._free.size, 3)) or not np.isfinite(given).all():
            bound = f"finite numbers of shape (3,) or ({self._free.size}, 3)"
            raise InvalidInputError("velocities", f"shape {given.shape}", bound)
        self._v[:] = np.broadcast_to(given, (self._free.size, 3)).T.reshape(self._v.shape)

    def set_shape(self, index: int, placed: PlacedSuperovoid) -> None:
        """Move or shape one of the shapes: during the next step it gets there evenly.

        Raises:
            InvalidInputError: there is no such shape.
        """
        self._check_index(index)
        self._moved[index] = placed

    def add_shape(self, placed: PlacedSuperovoid) -> None:
        """Add a shape; what of the cloth is inside it then is pushed out.

        Raises:
            InvalidInputError: there are 60.
        """
        _checked([*self._shapes, placed])
        self._shapes.append(placed)
        self._moved.append(placed)

    def remove_shape(self, index: int) -> None:
        """Take a shape away.

        Raises:
            InvalidInputError: there is no such shape.
        """
        self._check_index(index)
        del self._shapes[index], self._moved[index]
        self._work.planes[..., 0] = -1.0
        self._work.budgets[:] = 0.0

    def step(self, count: int = 1) -> None:
        """Go on by so many pictures, each of the configuration's `time_step`."""
        for _ in range(count):
            self._step()

    def distances(self) -> Array:
        """Signed distance (rows cols,) of each node to the nearest shape [m], negative inside; infinite if far off.

        Far off are nodes more than 3 gaps outside of a shape's box.
        """
        points = self.positions
        found = np.full(len(points), np.inf)
        for placed in self._shapes:
            local = (points - placed.T_link_shape[:3, 3]) @ placed.T_link_shape[:3, :3]
            near = (np.abs(local) < placed.shape.bounding_box[1] + _NEAR * self.config.gap).all(axis=1)
            if near.any():
                found[near] = np.minimum(found[near], placed.shape.closest_points(local[near]).distances)
        return found

    def _step(self) -> None:
        config = self.config
        parameters, poses = _ways(self._shapes, self._moved, config.substeps)
        counts = np.zeros(3, dtype=np.int64)
        halves = np.tile([placed.shape.bounding_box[1] for placed in self._shapes], (config.substeps, 1, 1))
        reuse = np.full(len(self._shapes), _REUSE * config.pitch)
        still = np.ones(len(self._shapes), dtype=np.bool_)
        for number, (first, last) in enumerate(zip(self._shapes, self._moved, strict=True)):
            if first.shape != last.shape:
                # Planes of contact are of shapes as they are.
                halves[:, number] = [bounding_box(row)[1] for row in parameters[:, number]]
                reuse[number] = -1.0
                slot = self._work.planes[:, number % SLOTS, 0]
                slot[(slot == number) | (slot == -2.0 - number)] = -1.0
            if first is not last:
                still[number] = False
                self._work.budgets[:, number] = 0.0
        advance(
            self._x, self._v, self._free, parameters, poses, halves, still, reuse,
            _constants(config, self.node_mass), self._work, counts,
        )  # fmt: skip
        self._shapes = list(self._moved)
        self.uncertified += int(counts[1])
        self.led_out += int(counts[2])
        self.time += config.time_step

    def _check_index(self, index: int) -> None:
        if not 0 <= index < len(self._shapes):
            raise InvalidInputError("shape", index, f"a number from 0 to {len(self._shapes) - 1}")


def simulate_cloth(
    shapes: Sequence[PlacedSuperovoid], config: ClothConfig | None = None, steps: int = 90, seed: int = 0
) -> Cloth:
    """A cloth that has fallen over shapes for so many pictures.

    Args:
        shapes, config, seed: as of `Cloth`.
        steps: of the configuration's `time_step` each, 0 or more.

    Raises:
        InvalidInputError: as of `Cloth`, or a negative number of steps.
    """
    if steps < 0:
        raise InvalidInputError("steps", steps, "0 or more")
    cloth = Cloth(shapes, config, seed)
    cloth.step(steps)
    return cloth


def _checked(shapes: Sequence[PlacedSuperovoid]) -> list[PlacedSuperovoid]:
    if len(shapes) > MOST_SHAPES:
        raise InvalidInputError("shapes", f"{len(shapes)} shapes", f"at most {MOST_SHAPES}")
    return list(shapes)


def _world_box(placed: PlacedSuperovoid) -> Array:
    """Lower and upper corner (2, 3) of a box of the world around a shape."""
    low, high = placed.shape.bounding_box
    signs = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=np.bool_)
    corners = transform_points(placed.T_link_shape, np.where(signs, high, low))
    return np.stack([corners.min(axis=0), corners.max(axis=0)])


def _ways(shapes: Sequence[PlacedSuperovoid], moved: Sequence[PlacedSuperovoid], substeps: int) -> tuple[Array, Array]:
    """Parameters (substeps, S, 7) and poses (substeps + 1, S, 12) of shapes that become others evenly."""
    parameters, poses = np.empty((substeps, len(shapes), 7)), np.empty((substeps + 1, len(shapes), 12))
    shares = np.arange(substeps + 1) / substeps
    for index, (first, last) in enumerate(zip(shapes, moved, strict=True)):
        change = last.shape.parameters - first.shape.parameters
        parameters[:, index] = first.shape.parameters + shares[1:, None] * change
        # The last one is what it shall be, whatever the rounding.
        parameters[-1, index] = last.shape.parameters
        here, there = first.T_link_shape, last.T_link_shape
        poses[:, index, 9:] = here[:3, 3] + shares[:, None] * (there[:3, 3] - here[:3, 3])
        poses[:, index, :9] = here[:3, :3].ravel()
        if not (here[:3, :3] == there[:3, :3]).all():
            turn = multiply_quats(
                quat_xyzw_from_matrix(there[:3, :3]), quat_xyzw_from_matrix(here[:3, :3]) * [-1.0, -1.0, -1.0, 1.0]
            )
            for number in range(1, substeps):
                rotation = matrix_from_rotation_vector(shares[number] * rotation_vectors(turn)) @ here[:3, :3]
                poses[number, index, :9] = rotation.ravel()
        poses[-1, index, :9], poses[-1, index, 9:] = there[:3, :3].ravel(), there[:3, 3]
    return parameters, poses


def _constants(config: ClothConfig, mass: float) -> Constants:
    dt = config.time_step / config.substeps
    inertia = mass / dt**2
    # Springs of one mesh: a tension by strain acts on a width of a pitch, over a length of a pitch. The two diagonals
    # share a mesh; a moment by curvature makes the energy B/(2 h²) of each node's second difference.
    bend = config.bending_stiffness / config.pitch**2
    return Constants(
        config.pitch, config.gap, dt, inertia / config.stretch_stiffness,
        inertia / config.shear_stiffness if config.shear_stiffness else math.inf,
        inertia / bend if bend else math.inf, config.shear_limit, math.exp(-config.damping * dt), config.gravity,
        config.friction, config.floor, config.contact == "exact", config.self_collision, APART * config.pitch,
    )  # fmt: skip


def _workspace(rows: int, cols: int) -> Workspace:
    levels = tree_levels(rows, cols)
    boxes = int(levels[-1, 0]) + 1
    count = rows * cols
    return Workspace(
        np.empty((3, rows, cols)), np.empty((3, rows, cols)), np.empty((3, cols, rows)), np.ones((cols, rows)),
        np.zeros((6, rows + 1, cols)), np.zeros((6, cols + 1, rows)), np.empty((2, max(rows, cols))), levels,
        np.empty((boxes, 6)), np.empty((boxes, 6)), np.zeros(int(levels[0, 1] * levels[0, 2]), dtype=np.uint64),
        np.full((count, SLOTS, 8), -1.0), np.zeros((int(levels[0, 1] * levels[0, 2]), MOST_SHAPES)),
        np.empty(1 << max(count.bit_length(), 4), dtype=np.int64), np.empty(count, dtype=np.int64),
        np.empty((count, 3), dtype=np.int64), np.empty((4 * len(levels) + 4, 3), dtype=np.int64),
        np.empty(MOST_SHAPES, dtype=np.int64), np.empty(SIDE**2, dtype=np.bool_), np.empty((42, 3)),
        np.empty(MOST_SHAPES, dtype=np.bool_), np.empty((MOST_SHAPES, SECTIONS, 3)),
    )  # fmt: skip
