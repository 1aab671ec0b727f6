"""Pairs of bodies as the solvers see them: support points of both, and of their difference, in the frame of body 1."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.support import (
    BOX,
    CYLINDER,
    FAST,
    POINT,
    SEGMENT,
    SUPEROVOID,
    Body,
    chart_hint,
    inner,
    superovoid_support,
)


class RelativePose(NamedTuple):
    """T_1_2: the frame of body 2 in that of body 1, rotation by rows and translation."""

    r11: float
    r12: float
    r13: float
    r21: float
    r22: float
    r23: float
    r31: float
    r32: float
    r33: float
    x: float
    y: float
    z: float


class Pair(NamedTuple):
    """Two bodies, as the solvers take them.

    Attributes:
        body1, body2: their constants.
        vertices1, vertices2: (N, 3) corners of a POLYTOPE, or the table of sections of a superovoid that may be dented;
            ignored otherwise.
        pose: body 2 in the frame of body 1.
    """

    body1: Body
    vertices1: NDArray
    body2: Body
    vertices2: NDArray
    pose: RelativePose


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def relative_pose(T_world_1: NDArray, T_world_2: NDArray) -> RelativePose:
    """T_1_2 of two (4, 4) poses."""
    a, b = T_world_1, T_world_2
    dx, dy, dz = b[0, 3] - a[0, 3], b[1, 3] - a[1, 3], b[2, 3] - a[2, 3]
    return RelativePose(
        a[0, 0] * b[0, 0] + a[1, 0] * b[1, 0] + a[2, 0] * b[2, 0],
        a[0, 0] * b[0, 1] + a[1, 0] * b[1, 1] + a[2, 0] * b[2, 1],
        a[0, 0] * b[0, 2] + a[1, 0] * b[1, 2] + a[2, 0] * b[2, 2],
        a[0, 1] * b[0, 0] + a[1, 1] * b[1, 0] + a[2, 1] * b[2, 0],
        a[0, 1] * b[0, 1] + a[1, 1] * b[1, 1] + a[2, 1] * b[2, 1],
        a[0, 1] * b[0, 2] + a[1, 1] * b[1, 2] + a[2, 1] * b[2, 2],
        a[0, 2] * b[0, 0] + a[1, 2] * b[1, 0] + a[2, 2] * b[2, 0],
        a[0, 2] * b[0, 1] + a[1, 2] * b[1, 1] + a[2, 2] * b[2, 1],
        a[0, 2] * b[0, 2] + a[1, 2] * b[1, 2] + a[2, 2] * b[2, 2],
        a[0, 0] * dx + a[1, 0] * dy + a[2, 0] * dz,
        a[0, 1] * dx + a[1, 1] * dy + a[2, 1] * dz,
        a[0, 2] * dx + a[1, 2] * dy + a[2, 2] * dz,
    )


@inner
def body_support(
    body: Body, vertices: NDArray, nx: float, ny: float, nz: float
) -> tuple[float, float, float, float, float, float]:
    """Support point of a body without its margin, and its chart (zero where the body is no superovoid).

    `vertices` are the corners (N, 3) of a POLYTOPE, or the table of sections of a superovoid that may have a dent.
    """
    if body.kind == SUPEROVOID:
        _, x, y, z, u1, u2, u3, _ = superovoid_support(body, vertices, nx, ny, nz, 0.0, 0.0)
        return x, y, z, u1, u2, u3
    if body.kind == POINT:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if body.kind == SEGMENT:
        return 0.0, 0.0, (-body.a3 if nz < 0.0 else body.a3), 0.0, 0.0, 0.0
    if body.kind == BOX:
        return (
            -body.a1 if nx < 0.0 else body.a1,
            -body.a2 if ny < 0.0 else body.a2,
            -body.a3 if nz < 0.0 else body.a3,
            0.0,
            0.0,
            0.0,
        )
    if body.kind == CYLINDER:
        across = math.sqrt(nx * nx + ny * ny)
        # Along the axis every point of the end disc will do; its middle is no corner that Newton could start from.
        c, s = (nx / across, ny / across) if across > 0.0 else (1.0, 0.0)
        return body.a1 * c, body.a1 * s, (-body.a3 if nz < 0.0 else body.a3), 0.0, 0.0, 0.0
    best, value = 0, -np.inf
    for i in range(vertices.shape[0]):
        h = vertices[i, 0] * nx + vertices[i, 1] * ny + vertices[i, 2] * nz
        if h > value:
            best, value = i, h
    return vertices[best, 0], vertices[best, 1], vertices[best, 2], 0.0, 0.0, 0.0


@inner
def body_support_near(
    body: Body, vertices: NDArray, nx: float, ny: float, nz: float, u1: float, u2: float, u3: float
) -> tuple[float, float, float, float, float, float]:
    """As `body_support`, quicker for a superovoid that is known to be supported near the chart u."""
    if body.kind == SUPEROVOID:
        c, s = chart_hint(body, u1, u2, u3)
        _, x, y, z, u1, u2, u3, _ = superovoid_support(body, vertices, nx, ny, nz, c, s)
        return x, y, z, u1, u2, u3
    return body_support(body, vertices, nx, ny, nz)


@inner
def to_first(pose: RelativePose, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A point of frame 2 in frame 1."""
    return (
        pose.r11 * x + pose.r12 * y + pose.r13 * z + pose.x,
        pose.r21 * x + pose.r22 * y + pose.r23 * z + pose.y,
        pose.r31 * x + pose.r32 * y + pose.r33 * z + pose.z,
    )


@inner
def turn_to_first(pose: RelativePose, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A vector of frame 2 in frame 1."""
    return (
        pose.r11 * x + pose.r12 * y + pose.r13 * z,
        pose.r21 * x + pose.r22 * y + pose.r23 * z,
        pose.r31 * x + pose.r32 * y + pose.r33 * z,
    )


@inner
def turn_to_second(pose: RelativePose, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A vector of frame 1 in frame 2."""
    return (
        pose.r11 * x + pose.r21 * y + pose.r31 * z,
        pose.r12 * x + pose.r22 * y + pose.r32 * z,
        pose.r13 * x + pose.r23 * y + pose.r33 * z,
    )


@inner
def pair_support(pair: Pair, nx: float, ny: float, nz: float, vertex: NDArray) -> float:
    """g(n): write into `vertex` (15,) the point of body 2 - body 1 that is least along n, and return its height.

    The row holds q - p (3), p (3), q (3), the charts of both (3 + 3); margins are left out. For unit n the height is
    a lower bound of the distance between the bodies without margins.
    """
    for c in range(9, 15):
        vertex[c] = 0.0
    return pair_support_near(pair, nx, ny, nz, vertex, vertex)


@inner
def pair_support_near(pair: Pair, nx: float, ny: float, nz: float, near: NDArray, vertex: NDArray) -> float:
    """As `pair_support`, quicker where `near` (15,) is the support pair of a direction nearby; it may be `vertex`."""
    p1, p2, p3, u1, u2, u3 = body_support_near(pair.body1, pair.vertices1, nx, ny, nz, near[9], near[10], near[11])
    mx, my, mz = turn_to_second(pair.pose, nx, ny, nz)
    q1, q2, q3, w1, w2, w3 = body_support_near(pair.body2, pair.vertices2, -mx, -my, -mz, near[12], near[13], near[14])
    q1, q2, q3 = to_first(pair.pose, q1, q2, q3)
    vertex[0], vertex[1], vertex[2] = q1 - p1, q2 - p2, q3 - p3
    vertex[3], vertex[4], vertex[5] = p1, p2, p3
    vertex[6], vertex[7], vertex[8] = q1, q2, q3
    vertex[9], vertex[10], vertex[11] = u1, u2, u3
    vertex[12], vertex[13], vertex[14] = w1, w2, w3
    return nx * (q1 - p1) + ny * (q2 - p2) + nz * (q3 - p3)


@inner
def unit(x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Length of a vector, and the vector at unit length; (0, 0, 1) where it has none."""
    n = math.sqrt(x * x + y * y + z * z)
    if n == 0.0:
        return 0.0, 0.0, 0.0, 1.0
    return n, x / n, y / n, z / n
