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
    """As `certified.certified_push`, by N and its slope alone."""
    value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    slope = math.sqrt(gx * gx + gy * gy + gz * gz)
    if slope == 0.0:
        # The centre has no normal.
        return parameters[2] + gap, 0.0, 0.0, 1.0, False
    supports = parameters[5] == 0.0 and parameters[6] == 0.0
    return gap - (value - 1.0) / slope, gx / slope, gy / slope, gz / slope, supports


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
    x, before, start, free, masks, groups, shapes, dented, sections, poses_before, poses, halves, still, reuse, planes,
    budgets, gap, floor, friction, exact, near, pending, stack, counts,
):  # fmt: skip
    """Push nodes out of shapes and floor.

    Args:
        x: (3, rows, cols) positions after a step [m], changed.
        before: (3, rows, cols) positions before, from which velocities are taken: changed, as a push is no velocity.
        start: the same, unchanged.
        free: (rows, cols), 0 for nodes that are held.
        masks: (groups,) from `tree.mark_groups`.
        groups: columns of groups.
        shapes, dented, sections: (S, 7) parameters of the superovoids, and (S,) and (S, 25, 3) as of `find_dents`.
        poses_before, poses: (S, 12) before and after the step.
        halves: (S, 3) of the shapes' boxes [m].
        still: (S,) whether a shape stays as it is.
        reuse: (S,) as of `motion.advance`.
        planes: (nodes, SLOTS, 8) in the frames of the shapes: number of the shape, or −2 less it where the plane
            does not support it; normal, height, place for which it was found; changed.
        budgets: (groups, S) ways that no node of a group has to be looked at before for a shape [m]; changed.
        gap: that nodes keep from surfaces [m].
        floor: whether there is one.
        friction: Coulomb's.
        exact: by certified closest points, with proven ways.
        near, pending, stack: (S,) of numbers, (SIDE², ) and (42, 3), to work with.
        counts: (3,) of pushes, of closest points without a certificate, of nodes that were led out; added to.
    """
    rows, cols = x.shape[1], x.shape[2]
    for group in range(len(masks)):
        rest = masks[group]
        if rest == 0:
            budgets[group] = 0.0
            if not floor:
                continue
        top, left = group // groups * SIDE, group % groups * SIDE
        bottom, right = min(top + SIDE, rows), min(left + SIDE, cols)
        # Of the shapes near, those that were looked at come first; no node may meet the others before it has moved by
        # what they leave of the group's budget.
        count, looked, spare = 0, 0, math.inf
        if rest != 0:
            way = _longest_way(x, start, top, bottom, left, right)
            pending[:] = False
            for s in range(len(shapes)):
                budgets[group, s] -= way
                if (rest >> np.uint64(s)) & np.uint64(1):
                    near[count] = s
                    if budgets[group, s] > 0.0:
                        spare = min(spare, budgets[group, s])
                    else:
                        near[count], near[looked] = near[looked], s
                        looked += 1
                        least = _look(
                            x, start, top, bottom, left, right, s, poses_before[s], poses[s], halves[s], reuse[s],
                            planes, gap, pending,
                        )  # fmt: skip
                        budgets[group, s] = least if still[s] else 0.0
                    count += 1
        corrected = 0.0
        for r in range(top, bottom):
            for c in range(left, right):
                on_floor = floor and x[2, r, c] < gap
                if free[r, c] == 0.0 or not (on_floor or (looked > 0 and pending[(r - top) * SIDE + c - left])):
                    continue
                wx, wy, wz = x[0, r, c], x[1, r, c], x[2, r, c]
                met = looked
                _push_node(
                    x, before, r, c, near, met, shapes, dented, sections, poses_before, poses, halves,
                    planes[r * cols + c], reuse, gap, floor, friction, exact, counts,
                )  # fmt: skip
                if (x[0, r, c] - wx) ** 2 + (x[1, r, c] - wy) ** 2 + (x[2, r, c] - wz) ** 2 > spare * spare:
                    met = count
                    _push_node(
                        x, before, r, c, near, met, shapes, dented, sections, poses_before, poses, halves,
                        planes[r * cols + c], reuse, gap, floor, friction, exact, counts,
                    )  # fmt: skip
                if exact and met > 0:
                    px, py, pz, last = guarded(
                        x[0, r, c], x[1, r, c], x[2, r, c], start[0, r, c], start[1, r, c], start[2, r, c],
                        near, met, shapes, poses_before, poses, halves,
                        planes[r * cols + c], reuse, gap, floor, stack, counts,
                    )  # fmt: skip
                    if last >= 0:
                        # It goes on as the shape does that stopped it.
                        x[0, r, c], x[1, r, c], x[2, r, c] = px, py, pz
                        px, py, pz = to_shape(poses[last], px, py, pz)
                        px, py, pz = to_world(poses_before[last], px, py, pz)
                        before[0, r, c], before[1, r, c], before[2, r, c] = px, py, pz
                wx, wy, wz = x[0, r, c] - wx, x[1, r, c] - wy, x[2, r, c] - wz
                corrected = max(corrected, wx * wx + wy * wy + wz * wz)
        for s in range(len(shapes)):
            budgets[group, s] -= math.sqrt(corrected)


@lean_njit
def _longest_way(x, start, top, bottom, left, right):  # type: ignore[no-untyped-def]
    """How far the node of a group that moved most did [m]."""
    most = 0.0
    for r in range(top, bottom):
        for c in range(left, right):
            dx, dy, dz = x[0, r, c] - start[0, r, c], x[1, r, c] - start[1, r, c], x[2, r, c] - start[2, r, c]
            most = max(most, dx * dx + dy * dy + dz * dz)
    return math.sqrt(most)


@lean_njit
def _look(  # type: ignore[no-untyped-def]
    x, start, top, bottom, left, right, s, pose_before, pose, half, reuse, planes, gap, pending
):  # fmt: skip
    """Mark the nodes of a group whose way may have met a shape, widened by the gap; how far all others are from it [m].

    Free of it is a way whose ends both lie beyond the same side of the shape's box, or above a plane that supports it.
    """
    least = math.inf
    for r in range(top, bottom):
        for c in range(left, right):
            ux, uy, uz = to_shape(pose, x[0, r, c], x[1, r, c], x[2, r, c])
            vx, vy, vz = to_shape(pose_before, start[0, r, c], start[1, r, c], start[2, r, c])
            beyond = max(
                max(min(ux, vx), -max(ux, vx)) - half[0],
                max(min(uy, vy), -max(uy, vy)) - half[1],
                max(min(uz, vz), -max(uz, vz)) - half[2],
            )  # fmt: skip
            if beyond < gap and reuse >= 0.0:
                plane = planes[r * x.shape[2] + c, s % SLOTS]
                if plane[0] == s:
                    here = plane[1] * ux + plane[2] * uy + plane[3] * uz
                    there = plane[1] * vx + plane[2] * vy + plane[3] * vz
                    beyond = max(beyond, min(here, there) - plane[4])
            least = min(least, beyond - gap)
            if beyond < gap:
                pending[(r - top) * SIDE + c - left] = True
    return least


@lean_njit
def _push_node(  # type: ignore[no-untyped-def]
    x, before, r, c, near, count, shapes, dented, sections, poses_before, poses, halves, planes, reuse, gap, floor,
    friction, exact, counts,
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
                    shapes[s], s, dented[s], sections[s], planes[s % SLOTS], reuse[s], gap, exact, ux, uy, uz, counts
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
def _push(parameters, s, dented, sections, plane, reuse, gap, exact, x, y, z, counts):  # type: ignore[no-untyped-def]
    """By how much and along which unit normal a node is to be pushed out, from the plane it met last if that holds."""
    if reuse >= 0.0 and (plane[0] == s or plane[0] == -2.0 - s):
        push = gap - (plane[1] * x + plane[2] * y + plane[3] * z - plane[4])
        moved = max(abs(x - plane[5]), abs(y - plane[6]), abs(z - plane[7]))
        if moved <= reuse or (push <= 0.0 and plane[0] == s):
            return push, plane[1], plane[2], plane[3]
    if exact:
        push, nx, ny, nz, supports = certified_push(parameters, dented, sections, gap, x, y, z, counts)
    else:
        push, nx, ny, nz, supports = linear_push(parameters, gap, x, y, z)
    if reuse >= 0.0:
        plane[0] = s if supports else -2.0 - s
        plane[1], plane[2], plane[3] = nx, ny, nz
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
