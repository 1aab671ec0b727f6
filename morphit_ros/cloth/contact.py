"""Contact of a cloth's nodes with superovoids and the floor, with Coulomb's friction, compiled.

A shape is {N ≤ 1} for the norm N of `superovoid.shapes.kernels`. The plane N(u) + ∇N(u)·(v − u) = 1 at a node u never
lies inside a shape without tapering, as N is convex: how far u is from it is a lower bound of how far it is from the
shape, and a node that is moved onto it, from however deep inside, is out. Tapered shapes keep this but for the square
of the distance.

Friction is position-based: a node that was pushed out by d slides back by up to μ d of what it slid on the shape in
this step. Pushes give no velocity away from the shape: contact is inelastic.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.cloth.certified import certified_push, guarded
from morphit_ros.cloth.placing import SLOTS, is_near, to_shape, to_world
from morphit_ros.cloth.tree import SIDE
from morphit_ros.jit import lean_njit
from morphit_ros.superovoid.shapes.kernels import level_and_gradient

# Nodes between several shapes are pushed in turn this often at most.
_ROUNDS = 12
# A push below this is none [m].
_NO_PUSH = 1e-9


@lean_njit
def linear_push(parameters, gap, x, y, z):  # type: ignore[no-untyped-def]
    """By how much and along which unit normal a node is to be pushed out, by N and its slope: 4 numbers."""
    value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    slope = math.sqrt(gx * gx + gy * gy + gz * gz)
    if slope == 0.0:
        # The centre has no normal.
        return parameters[2] + gap, 0.0, 0.0, 1.0
    return gap - (value - 1.0) / slope, gx / slope, gy / slope, gz / slope


@lean_njit(forceinline=True)
def slid_back(push, friction, nx, ny, nz, dx, dy, dz):  # type: ignore[no-untyped-def]
    """What friction takes of a way (3 numbers) along a surface with this normal, and the way along the normal."""
    along = dx * nx + dy * ny + dz * nz
    tx, ty, tz = dx - along * nx, dy - along * ny, dz - along * nz
    length = math.sqrt(tx * tx + ty * ty + tz * tz)
    share = 1.0 if length <= friction * push else friction * push / length
    return share * tx, share * ty, share * tz, along


@lean_njit
def collide(  # type: ignore[no-untyped-def]
    x, before, start, free, masks, groups, shapes, poses_before, poses, halves, planes, reuse, gap, floor,
    friction, exact, near, stack, sections, counts,
):  # fmt: skip
    """Push nodes out of shapes and floor.

    Args:
        x: (3, rows, cols) positions after a step [m], changed.
        before: (3, rows, cols) positions before, from which velocities are taken: changed, as a push is no velocity.
        start: the same, unchanged.
        free: (rows, cols), 0 for nodes that are held.
        masks: (groups,) from `tree.mark_groups`.
        groups: columns of groups.
        shapes: (S, 7) parameters of the superovoids.
        poses_before, poses: (S, 12) before and after the step.
        halves: (S, 3) of the shapes' boxes [m].
        planes: (nodes, SLOTS, 8) in the frames of the shapes: shape, normal, height, place for which it was found;
            changed.
        reuse: as of `motion.advance`.
        gap: that nodes keep from surfaces [m].
        floor: whether there is one.
        friction: Coulomb's.
        exact: by certified closest points, with proven ways.
        near, stack, sections: (S,) of numbers, (42, 3) and (25, 3), to work with.
        counts: (3,) of pushes, of closest points without a certificate, of nodes that were led out; added to.
    """
    rows, cols = x.shape[1], x.shape[2]
    for group in range(len(masks)):
        rest, count = masks[group], 0
        if rest == 0 and not floor:
            continue
        for s in range(len(shapes)):
            if (rest >> np.uint64(s)) & np.uint64(1):
                near[count] = s
                count += 1
        top, left = group // groups * SIDE, group % groups * SIDE
        for r in range(top, min(top + SIDE, rows)):
            for c in range(left, min(left + SIDE, cols)):
                if free[r, c] == 0.0 or (count == 0 and x[2, r, c] >= gap):
                    continue
                _push_node(
                    x, before, r, c, near, count, shapes, poses_before, poses, halves, planes[r * cols + c], reuse, gap,
                    floor, friction, exact, sections, counts,
                )  # fmt: skip
                if exact and count > 0:
                    px, py, pz, last = guarded(
                        x[0, r, c], x[1, r, c], x[2, r, c], start[0, r, c], start[1, r, c], start[2, r, c],
                        near, count, shapes, poses_before, poses, halves,
                        planes[r * cols + c], reuse, gap, floor, stack, counts,
                    )  # fmt: skip
                    if last >= 0:
                        # It goes on as the shape does that stopped it.
                        x[0, r, c], x[1, r, c], x[2, r, c] = px, py, pz
                        px, py, pz = to_shape(poses[last], px, py, pz)
                        px, py, pz = to_world(poses_before[last], px, py, pz)
                        before[0, r, c], before[1, r, c], before[2, r, c] = px, py, pz


@lean_njit(forceinline=True)
def _push_node(  # type: ignore[no-untyped-def]
    x, before, r, c, near, count, shapes, poses_before, poses, halves, planes, reuse, gap, floor, friction, exact,
    sections, counts,
):  # fmt: skip
    px, py, pz = x[0, r, c], x[1, r, c], x[2, r, c]
    bx, by, bz = before[0, r, c], before[1, r, c], before[2, r, c]
    for _ in range(_ROUNDS):
        pushes = 0
        if floor and pz < gap - _NO_PUSH:
            pushes += 1
            push = gap - pz
            tx, ty, tz, along = slid_back(push, friction, 0.0, 0.0, 1.0, px - bx, py - by, gap - bz)
            px, py, pz = px - tx, py - ty, gap
            bz += min(push, max(along, 0.0))
        for number in range(count):
            s = near[number]
            if is_near(poses[s], halves[s], gap, px, py, pz):
                ux, uy, uz = to_shape(poses[s], px, py, pz)
                push, nx, ny, nz = _push(
                    shapes[s], s, planes[s % SLOTS], reuse, gap, exact, ux, uy, uz, sections, counts
                )
                if push > _NO_PUSH:
                    pushes += 1
                    vx, vy, vz = to_shape(poses_before[s], bx, by, bz)
                    wx, wy, wz = ux + push * nx, uy + push * ny, uz + push * nz
                    tx, ty, tz, along = slid_back(push, friction, nx, ny, nz, wx - vx, wy - vy, wz - vz)
                    px, py, pz = to_world(poses[s], wx - tx, wy - ty, wz - tz)
                    kept = min(push, max(along, 0.0))
                    bx, by, bz = to_world(poses_before[s], vx + kept * nx, vy + kept * ny, vz + kept * nz)
        counts[0] += pushes
        if pushes == 0 or not _is_between(near, count, poses, halves, gap, floor, px, py, pz):
            break
    x[0, r, c], x[1, r, c], x[2, r, c] = px, py, pz
    before[0, r, c], before[1, r, c], before[2, r, c] = bx, by, bz


@lean_njit(forceinline=True)
def _push(parameters, s, plane, reuse, gap, exact, x, y, z, sections, counts):  # type: ignore[no-untyped-def]
    """By how much and along which unit normal a node is to be pushed out, from the plane it met last if that holds."""
    if plane[0] == s and reuse >= 0.0:
        push = gap - (plane[1] * x + plane[2] * y + plane[3] * z - plane[4])
        moved = max(abs(x - plane[5]), abs(y - plane[6]), abs(z - plane[7]))
        # A shape without tapering lies below all of its planes.
        if moved <= reuse or (push <= 0.0 and parameters[5] == 0.0 and parameters[6] == 0.0):
            return push, plane[1], plane[2], plane[3]
    if exact:
        push, nx, ny, nz = certified_push(parameters, gap, x, y, z, sections, counts)
    else:
        push, nx, ny, nz = linear_push(parameters, gap, x, y, z)
    plane[0], plane[1], plane[2], plane[3] = s, nx, ny, nz
    plane[4] = nx * x + ny * y + nz * z + push - gap
    plane[5], plane[6], plane[7] = x, y, z
    return push, nx, ny, nz


@lean_njit(forceinline=True)
def _is_between(near, count, poses, halves, gap, floor, x, y, z):  # type: ignore[no-untyped-def]
    """Whether a point may touch several things: what one pushes may then be in another."""
    found = 1 if floor and z < 2.0 * gap else 0
    for number in range(count):
        if is_near(poses[near[number]], halves[near[number]], gap, x, y, z):
            found += 1
    return found >= 2
