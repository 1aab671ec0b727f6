"""What a morphing cover is: a grid of square nodes, each joined to its neighbours by spherical joints.

Node ``k = row * cols + col`` has its column neighbour (``col + 1``) along body +x and its row neighbour (``row + 1``)
along body -y, half a pitch to the joint from either side. Nodes, joints and motors count from 0 here, from 1 in files.

A joint's frame sits on the parent: x points outward to the child, z is the fold axis (a positive angle folds the child
towards the parent's normal), y completes them. A motor turns one axis of one joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform

Indices = NDArray[np.int64]

# Largest covers that are accepted: time and memory of a step grow with nodes and motions. 60 x 60 has 354 motions, a
# chain three a joint.
MOST_NODES, MOST_MOTIONS = 10_000, 1200
DEFAULT_PITCH = 0.0482
DEFAULT_RANGE_OF_MOTION = float(np.radians(50.0))
# Columns: x, y and z axis of a joint's frame in the parent's body frame.
COLUMN_JOINT_FRAME = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
ROW_JOINT_FRAME = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class Cover:
    """A cover: its grid, what holds it, its motors and limits.

    Attributes:
        rows, cols: nodes of the grid, at least two in all; a single row or column is a chain.
        pitch: distance of neighbouring nodes in the flat cover [m].
        fixed_nodes: nodes that don't move; the first is the father, from which positions are counted.
        motors: (M, 2) pairs of joint and axis (0, 1, 2 for x, y, z of the joint's frame); empty before placement.
        range_of_motion: greatest angle between the x axes of the two halves of a joint [rad].
        T_world_base: (4, 4) pose of the father in configurations that the package makes.
        name: for tables and files.

    Raises:
        InvalidInputError: names the value, its bound and what to do.
    """

    rows: int
    cols: int
    pitch: float = DEFAULT_PITCH
    fixed_nodes: tuple[int, ...] = (0,)
    motors: Indices = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    range_of_motion: float = DEFAULT_RANGE_OF_MOTION
    T_world_base: Array = field(default_factory=lambda: np.eye(4))
    name: str = "cover"

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1 or self.rows * self.cols < 2:
            raise InvalidInputError(
                "rows x cols",
                f"{self.rows} x {self.cols}",
                "at least two nodes",
                "One node alone has no joint to move.",
            )
        if self.rows * self.cols > MOST_NODES:
            raise InvalidInputError(
                "rows x cols", f"{self.rows} x {self.cols}", f"at most {MOST_NODES} nodes",
                "Time and memory: a step of the controller takes over a second at 60 x 60 (docs/covers.md).",
            )  # fmt: skip
        if not (np.isfinite(self.pitch) and self.pitch > 0.0):
            raise InvalidInputError("pitch", self.pitch, "a positive length [m]")
        if not 0.0 < self.range_of_motion <= np.pi:
            raise InvalidInputError("range_of_motion", self.range_of_motion, "in (0, pi] rad")
        fixed = tuple(int(node) for node in self.fixed_nodes)
        if not fixed or len(set(fixed)) != len(fixed) or not all(0 <= node < self.node_count for node in fixed):
            raise InvalidInputError(
                "fixed_nodes", fixed, f"at least one node, each once, in [0, {self.node_count - 1}]"
            )
        if len(fixed) == self.node_count:
            raise InvalidInputError("fixed_nodes", "all nodes", "at least one node that can move")
        object.__setattr__(self, "fixed_nodes", fixed)
        if self.expected_dof > MOST_MOTIONS:
            raise InvalidInputError(
                "rows x cols", f"{self.rows} x {self.cols}, {self.expected_dof} motions", f"at most {MOST_MOTIONS}",
                "Time and memory: every step decomposes matrices of that size. Wider covers have fewer motions a node.",
            )  # fmt: skip
        object.__setattr__(self, "T_world_base", check_transform(self.T_world_base, "T_world_base"))
        object.__setattr__(self, "motors", self._checked_motors(self.motors))

    def _checked_motors(self, motors: Indices) -> Indices:
        given = np.asarray(motors, dtype=np.int64).reshape(-1, 2) if np.size(motors) else np.empty((0, 2), np.int64)
        if len(given):
            joints, axes = given[:, 0], given[:, 1]
            if joints.min() < 0 or joints.max() >= self.joint_count or axes.min() < 0 or axes.max() > 2:
                raise InvalidInputError(
                    "motors",
                    given[:4].tolist(),
                    f"(joint, axis) with joint in [0, {self.joint_count - 1}], axis 0 to 2",
                )
            if len(np.unique(given, axis=0)) != len(given):
                raise InvalidInputError("motors", "the same axis of a joint twice", "each (joint, axis) once")
        return given

    @property
    def node_count(self) -> int:
        return self.rows * self.cols

    @property
    def joint_count(self) -> int:
        return self.rows * (self.cols - 1) + (self.rows - 1) * self.cols

    @property
    def father(self) -> int:
        """The fixed node that positions are counted from."""
        return self.fixed_nodes[0]

    @property
    def expected_dof(self) -> int:
        """Degrees of freedom of a generic configuration: free rotations less closed loops, three numbers each."""
        free = self.node_count - len(self.fixed_nodes)
        return 3 * (free - len(self.open_faces) - len(self.fixed_bridges))

    @cached_property
    def joints(self) -> Indices:
        """(J, 2) parent and child of every joint, sorted."""
        nodes = np.arange(self.node_count).reshape(self.rows, self.cols)
        across = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1)
        down = np.stack([nodes[:-1].ravel(), nodes[1:].ravel()], axis=1)
        pairs = np.concatenate([across, down])
        return np.ascontiguousarray(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])

    @cached_property
    def joint_along_column(self) -> NDArray[np.bool_]:
        """(J,) whether a joint leads to the column neighbour (along body +x)."""
        return np.asarray(self.joints[:, 1] // self.cols == self.joints[:, 0] // self.cols)

    @cached_property
    def joint_frames(self) -> Array:
        """(J, 3, 3) rotation from a joint's frame to its parent's body frame."""
        frames = np.where(self.joint_along_column[:, None, None], COLUMN_JOINT_FRAME, ROW_JOINT_FRAME)
        return np.ascontiguousarray(frames)

    @cached_property
    def faces(self) -> Indices:
        """(F, 4) corners of every closed loop: (row, col), (row, col + 1), (row + 1, col), (row + 1, col + 1)."""
        nodes = np.arange(self.node_count).reshape(self.rows, self.cols)
        corners = [nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, :-1], nodes[1:, 1:]]
        return np.stack([corner.ravel() for corner in corners], axis=1)

    @cached_property
    def hinges(self) -> Indices:
        """(H, 8) free nodes beside the middle one of three fixed nodes in a line, see `kinematics.hinges`.

        Columns: place in `open_faces` of the face between node, middle and after; node; before, middle, after (fixed);
        body axis of the node that points away from the middle, and its sign; body axis along the line.
        """
        place = {tuple(face): number for number, face in enumerate(self.open_faces.tolist())}
        fixed = self.is_fixed.reshape(self.rows, self.cols)
        found = []
        for middle in self.fixed_nodes:
            row, col = divmod(middle, self.cols)
            for along, (down, right) in ((1, (1, 0)), (0, (0, 1))):
                for side in (1, -1):
                    # Before, middle and after along the line, the nodes beside them across it.
                    line = [(row + step * down, col + step * right) for step in (-1, 0, 1)]
                    beside = [(r + side * right, c + side * down) for r, c in line]
                    inside = all(0 <= r < self.rows and 0 <= c < self.cols for r, c in line + beside)
                    if not inside or not all(fixed[at] for at in line) or any(fixed[at] for at in beside):
                        continue
                    before, _, after, _, node, last = (r * self.cols + c for r, c in line + beside)
                    face = place[tuple(sorted((middle, after, node, last)))]
                    # Columns grow along body +x, rows along body -y.
                    found.append((face, node, before, middle, after, 1 - along, side if along else -side, along))
        return np.array(found, dtype=np.int64).reshape(-1, 8)

    @cached_property
    def is_fixed(self) -> NDArray[np.bool_]:
        """(N,) which nodes don't move."""
        fixed = np.zeros(self.node_count, dtype=np.bool_)
        fixed[list(self.fixed_nodes)] = True
        return fixed

    @cached_property
    def open_faces(self) -> Indices:
        """(G, 4) the faces with a corner that moves: only they are equations."""
        return self.faces[~self.is_fixed[self.faces].all(axis=1)]

    @cached_property
    def fixed_bridges(self) -> list[Indices]:
        """Paths of nodes between fixed nodes that no chain of fixed nodes joins, one for each group but the father's.

        Between groups the distance of the fixed nodes is one more closed loop.
        """
        group = self._fixed_groups()
        bridges = []
        for number in sorted(set(group.values()) - {group[self.father]}):
            last = next(node for node in self.fixed_nodes if group[node] == number)
            bridges.append(self.grid_path(self.father, last))
        return bridges

    def _fixed_groups(self) -> dict[int, int]:
        group = {node: node for node in self.fixed_nodes}
        changed = True
        while changed:
            changed = False
            for parent, child in self.joints.tolist():
                if parent in group and child in group and group[parent] != group[child]:
                    group[parent] = group[child] = min(group[parent], group[child])
                    changed = True
        return group

    def grid_path(self, first: int, last: int) -> Indices:
        """(P,) nodes from one to another, along the row first."""
        row, col = divmod(first, self.cols)
        end_row, end_col = divmod(last, self.cols)
        path = [row * self.cols + c for c in range(col, end_col, 1 if end_col > col else -1)]
        path += [r * self.cols + end_col for r in range(row, end_row, 1 if end_row > row else -1)]
        return np.array([*path, last], dtype=np.int64)

    @property
    def motor_labels(self) -> list[str]:
        """Name of each motor in the order of commands: ``joint_<parent>_<child>_<axis>``, nodes counted from 1."""
        ends = self.joints[self.motors[:, 0]] + 1
        return [f"joint_{p}_{c}_{'xyz'[axis]}" for (p, c), axis in zip(ends, self.motors[:, 1], strict=True)]

    def with_motors(self, motors: Sequence[tuple[int, int]] | Indices) -> Cover:
        """The same cover with other motors."""
        return replace(self, motors=np.asarray(motors, dtype=np.int64))
