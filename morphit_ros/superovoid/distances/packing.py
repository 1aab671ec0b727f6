"""Shapes as rows of numbers that kernels read, packed once for each shape."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.primitives import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    Point,
    Primitive,
    Sphere,
)
from morphit_ros.superovoid.distances.support import (
    BOX,
    CYLINDER,
    FAST,
    HALF_SPACE,
    POINT,
    POLYTOPE,
    SECTIONS,
    SEGMENT,
    body_from_parameters,
    fill_sections,
    may_be_dented,
)
from morphit_ros.superovoid.shapes.convexity import is_convex
from morphit_ros.superovoid.shapes.superovoid import Superovoid

Shape = Superovoid | Primitive

# Columns of a row: kind, a1, a2, a3, e1, e2, t1, t2, whether it may be dented, margin.
ROW = 10
_NO_VERTICES = np.zeros((1, 3))
# Shapes packed of late, by identity. Each is held here, so that its number is no other's.
_MOST_LATEST = 1024
_latest: dict[int, tuple[Shape, tuple[Array, Array, tuple[float, float, float, float]]]] = {}


@dataclass(frozen=True, eq=False)
class ShapeTable:
    """Many shapes packed for batch queries, immutable, shared by threads.

    Attributes:
        rows: (S, 10) constants.
        vertices: (V, 3) corners of meshes and sections of dented shapes, one after the other.
        offsets: (S + 1,) where those of each shape begin.
        spheres: (S, 4) bounding sphere of each in its own frame: centre, radius [m]; infinite for a half-space.
    """

    rows: Array
    vertices: Array
    offsets: NDArray[np.int64]
    spheres: Array

    @staticmethod
    def of(shapes: Sequence[Shape] | ShapeTable) -> ShapeTable:
        """The table of a sequence of shapes; a table is returned as it is.

        Raises:
            InvalidInputError: something that is neither a superovoid nor a primitive.
        """
        if isinstance(shapes, ShapeTable):
            return shapes
        superovoids = [shape for shape in shapes if isinstance(shape, Superovoid)]
        if len(superovoids) == len(shapes):
            parameters = np.array([shape.semi_axes + shape.squareness + shape.tapering for shape in superovoids])
            return superovoid_table(parameters.reshape(-1, 7))
        packed = [pack(shape) for shape in shapes]
        sizes = [len(vertices) for _, vertices, _ in packed]
        return ShapeTable(
            np.array([row for row, _, _ in packed]).reshape(-1, ROW),
            np.concatenate([vertices for _, vertices, _ in packed]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.array([sphere for _, _, sphere in packed]).reshape(-1, 4),
        )

    def __len__(self) -> int:
        return len(self.rows)


def superovoid_table(parameters: Array) -> ShapeTable:
    """The table of superovoids given by parameters (S, 7), which are taken to be valid."""
    count = len(parameters)
    rows = np.zeros((count, ROW))
    rows[:, 1:8] = parameters
    spheres = np.zeros((count, 4))
    vertices = np.zeros((count * SECTIONS + 1, 3))
    offsets = np.zeros(count + 1, dtype=np.int64)
    used = _fill(np.ascontiguousarray(parameters), rows, vertices, offsets, spheres)
    return ShapeTable(rows, np.ascontiguousarray(vertices[: max(used, 1)]), offsets, spheres)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _fill(parameters: NDArray, rows: NDArray, vertices: NDArray, offsets: NDArray, spheres: NDArray) -> int:
    used = 0
    for i in range(parameters.shape[0]):
        offsets[i] = used
        row = parameters[i]
        # The quick test knows most convex shapes, the exact one all.
        dented = may_be_dented(row) and not is_convex(row[3], row[4], row[5], row[6])
        if row[3] == 1.0 and row[4] == 1.0 and row[5] == 0.0 and row[6] == 0.0 and row[0] == row[1] == row[2]:
            # A sphere is a point with a margin.
            rows[i, 0] = POINT
            rows[i, 9] = row[0]
            rows[i, 1] = rows[i, 2] = rows[i, 3] = 0.0
        elif dented:
            rows[i, 8] = 1.0
            fill_sections(body_from_parameters(row, True), vertices[used : used + SECTIONS])
            used += SECTIONS
        # Sections have at most the half diagonal of their box; their widest is at most at the end's height.
        w1, w2 = row[0] * (1.0 + abs(row[5])), row[1] * (1.0 + abs(row[6]))
        plane = max(w1, w2) if row[3] >= 1.0 else np.sqrt(w1 * w1 + w2 * w2)
        spheres[i, 3] = max(plane, row[2]) if row[4] >= 1.0 else np.sqrt(plane * plane + row[2] * row[2])
    offsets[parameters.shape[0]] = used
    return used


def pack(shape: Shape) -> tuple[Array, Array, tuple[float, float, float, float]]:
    """Row (10,), vertices (N, 3) and bounding sphere of a shape.

    Raises:
        InvalidInputError: neither a superovoid nor a primitive.
    """
    # The same object is known sooner than its value.
    latest = _latest.get(id(shape))
    if latest is not None and latest[0] is shape:
        return latest[1]
    packed = _pack_value(shape)
    if len(_latest) >= _MOST_LATEST:
        _latest.clear()
    _latest[id(shape)] = (shape, packed)
    return packed


@functools.lru_cache(maxsize=1024)
def _pack_value(shape: Shape) -> tuple[Array, Array, tuple[float, float, float, float]]:
    # Shapes are values: what is kept here can never be out of date. Arrays are writeable throughout, since kernels
    # would be compiled anew for each mixture of those and others.
    if isinstance(shape, ConvexMesh):
        low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
        middle = 0.5 * (high + low)
        radius = float(np.linalg.norm(shape.vertices - middle, axis=1).max())
        return _row(POLYTOPE, *(0.5 * (high - low))), shape.vertices.copy(), (*middle.tolist(), radius)
    if isinstance(shape, Superovoid):
        table = superovoid_table(shape.parameters.reshape(1, 7))
        return table.rows[0], table.vertices, (0.0, 0.0, 0.0, float(table.spheres[0, 3]))
    if isinstance(shape, Point):
        return _row(POINT), _NO_VERTICES, (0.0, 0.0, 0.0, 0.0)
    if isinstance(shape, Sphere):
        return _row(POINT, margin=shape.radius), _NO_VERTICES, (0.0, 0.0, 0.0, shape.radius)
    if isinstance(shape, Capsule):
        half = 0.5 * shape.length
        return _row(SEGMENT, 0.0, 0.0, half, shape.radius), _NO_VERTICES, (0.0, 0.0, 0.0, half + shape.radius)
    if isinstance(shape, Cylinder):
        r, half = shape.radius, 0.5 * shape.length
        return _row(CYLINDER, r, r, half), _NO_VERTICES, (0.0, 0.0, 0.0, float(np.hypot(r, half)))
    if isinstance(shape, Box):
        half_sides = 0.5 * np.array(shape.sides)
        return _row(BOX, *half_sides), _NO_VERTICES, (0.0, 0.0, 0.0, float(np.linalg.norm(half_sides)))
    if isinstance(shape, HalfSpace):
        return _row(HALF_SPACE), _NO_VERTICES, (0.0, 0.0, 0.0, float("inf"))
    raise InvalidInputError(
        "shape", type(shape).__name__, "a Superovoid, Point, Sphere, Capsule, Cylinder, Box, HalfSpace or ConvexMesh"
    )


def _row(kind: int, a1: float = 0.0, a2: float = 0.0, a3: float = 0.0, margin: float = 0.0) -> Array:
    return np.array([kind, a1, a2, a3, 1.0, 1.0, 0.0, 0.0, 0.0, margin])
