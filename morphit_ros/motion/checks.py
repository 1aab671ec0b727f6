"""Whether the robot touches anything along a straight motion of its joints; several configurations at once, compiled.

Configurations lie in lanes: the last axis of all arrays, over which the innermost loops run, so that the compiler puts
them into vector registers. (Loops ask the arrays for their length: those of a constant one are unrolled first, and then
stay scalar.) The lanes of a block are spread over the whole motion, so that what is
in the way shows in the first blocks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.triangle_tree import least_square, surface_gap
from morphit_ros.jit import lean_njit, njit
from morphit_ros.motion.cloud import CloudArrays, cloud_distance, cloud_far
from morphit_ros.motion.model import ArmArrays
from morphit_ros.motion.world import WorldArrays

LANES = 8
# Without NaN and signed zeros comparisons need no branches. Inputs are finite.
_FAST = {"nnan", "nsz", "contract", "reassoc", "arcp"}


@lean_njit(fastmath=_FAST)
def _place_lanes(arm: ArmArrays, configurations: Array, turns: Array, frames: Array) -> None:
    """Fill the frames after the joints (K, 12, lanes), rows of [R | t], at configurations (J, lanes)."""
    lanes = turns.shape[1]
    motions = arm.motions
    for j in range(len(motions.parents)):
        for i in range(lanes):
            turns[0, i] = motions.multipliers[j] * configurations[motions.variables[j], i] + motions.offsets[j]
        before, parent = motions.before[j], motions.parents[j]
        frame = frames[j]
        if parent < 0:
            for r in range(3):
                for c in range(4):
                    for i in range(lanes):
                        frame[4 * r + c, i] = before[r, c]
        else:
            last = frames[parent]
            for r in range(3):
                for c in range(4):
                    x, y, z = before[0, c], before[1, c], before[2, c]
                    w = 1.0 if c == 3 else 0.0
                    for i in range(lanes):
                        frame[4 * r + c, i] = (
                            last[4 * r, i] * x
                            + last[4 * r + 1, i] * y
                            + last[4 * r + 2, i] * z
                            + last[4 * r + 3, i] * w
                        )
        if motions.sliding[j]:
            for r in range(3):
                for i in range(lanes):
                    frame[4 * r + 3, i] += turns[0, i] * frame[4 * r + 2, i]
            continue
        for i in range(lanes):
            # Series within a quarter turn of a multiple of π, exact to 1e-11: the library's functions know no lanes.
            k = np.floor(turns[0, i] * (1.0 / np.pi) + 0.5)
            a = turns[0, i] - k * np.pi
            b = a * a
            sign = 1.0 - 2.0 * (k - 2.0 * np.floor(0.5 * k))
            s = 1.0 - b / 110.0 * (1.0 - b / 156.0 * (1.0 - b / 210.0 * (1.0 - b / 272.0)))
            s = a * (1.0 - b / 6.0 * (1.0 - b / 20.0 * (1.0 - b / 42.0 * (1.0 - b / 72.0 * s))))
            c = 1.0 - b / 132.0 * (1.0 - b / 182.0 * (1.0 - b / 240.0 * (1.0 - b / 306.0)))
            c = 1.0 - b / 2.0 * (1.0 - b / 12.0 * (1.0 - b / 30.0 * (1.0 - b / 56.0 * (1.0 - b / 90.0 * c))))
            turns[1, i] = sign * s
            turns[2, i] = sign * c
        for r in range(3):
            for i in range(lanes):
                x, y = frame[4 * r, i], frame[4 * r + 1, i]
                frame[4 * r, i] = turns[2, i] * x + turns[1, i] * y
                frame[4 * r + 1, i] = turns[2, i] * y - turns[1, i] * x


@lean_njit(fastmath=_FAST)
def _place_points(frames: Array, row: int, points: Array, first: int, last: int, placed: Array) -> None:
    """Fill some of the points (N, 3) behind a joint in the root's frame (N, 3, lanes)."""
    lanes = placed.shape[2]
    for n in range(first, last):
        x, y, z = points[n, 0], points[n, 1], points[n, 2]
        for r in range(3):
            if row < 0:
                for i in range(lanes):
                    placed[n, r, i] = points[n, r]
                continue
            for i in range(lanes):
                placed[n, r, i] = (
                    frames[row, 4 * r, i] * x
                    + frames[row, 4 * r + 1, i] * y
                    + frames[row, 4 * r + 2, i] * z
                    + frames[row, 4 * r + 3, i]
                )


@lean_njit(fastmath=_FAST, inline="always")
def _solid_near(world: WorldArrays, n: int, points: Array, reach: float) -> bool:
    """Whether any of the points (3, lanes) is within a reach [m] of a solid without a rounded box's radius.

    Of a mesh, of the box around it.
    """
    lanes = points.shape[1]
    x, y, z = world.centers[n, 0], world.centers[n, 1], world.centers[n, 2]
    turn = world.rotations[n]
    g, h, k = turn[0, 2], turn[1, 2], turn[2, 2]
    p, q, s = world.halves[n, 0], world.halves[n, 1], world.halves[n, 2]
    square = reach * reach
    # Lanes are counted, and none is left early: the compiler puts a sum into vector registers, but no minimum.
    hits = 0
    if n < world.boxes:
        a, b, c = turn[0, 0], turn[1, 0], turn[2, 0]
        d, e, f = turn[0, 1], turn[1, 1], turn[2, 1]
        for i in range(lanes):
            u, v, w = points[0, i] - x, points[1, i] - y, points[2, i] - z
            along = abs(a * u + b * v + c * w) - p
            across = abs(d * u + e * v + f * w) - q
            up = abs(g * u + h * v + k * w) - s
            along = along if along > 0.0 else 0.0
            across = across if across > 0.0 else 0.0
            up = up if up > 0.0 else 0.0
            hits += 1 if along * along + across * across + up * up <= square else 0
        return hits > 0
    for i in range(lanes):
        u, v, w = points[0, i] - x, points[1, i] - y, points[2, i] - z
        height = g * u + h * v + k * w
        aside = u * u + v * v + w * w - height * height
        aside = np.sqrt(aside if aside > 0.0 else 0.0) - p
        aside = aside if aside > 0.0 else 0.0
        up = abs(height) - s
        up = up if up > 0.0 else 0.0
        hits += 1 if aside * aside + up * up <= square else 0
    return hits > 0


@lean_njit(fastmath=_FAST, inline="always")
def _points_near(first: Array, second: Array, reach: float) -> bool:
    """Whether two points (3, lanes) are within a reach [m] of each other in any lane."""
    lanes = first.shape[1]
    hits = 0
    for i in range(lanes):
        x, y, z = first[0, i] - second[0, i], first[1, i] - second[1, i], first[2, i] - second[2, i]
        hits += 1 if x * x + y * y + z * z <= reach * reach else 0
    return hits > 0


@lean_njit
def _cloud_far(cloud: CloudArrays, points: Array, radius: float) -> bool:
    """Whether balls at points (3, lanes) are known at once not to touch a cloud."""
    far = True
    for i in range(LANES):
        far = far and cloud_far(cloud, points[0, i], points[1, i], points[2, i], radius)
    return far


@lean_njit
def _cloud_touches(cloud: CloudArrays, points: Array, radius: float) -> bool:
    """Whether a ball at any of the points (3, lanes) touches a cloud."""
    # Just beyond the radius, so that what touches exactly is found.
    limit = radius * (1.0 + 1e-12)
    for i in range(LANES):
        if cloud_distance(cloud, points[0, i], points[1, i], points[2, i], limit, limit) <= radius:
            return True
    return False


@lean_njit
def _mesh_touches(world: WorldArrays, n: int, points: Array, radius: float) -> bool:
    """Whether a ball at any of the points (3, lanes) touches the triangles of a solid."""
    turn, limit = world.rotations[n], radius * (1.0 + 1e-12)
    for i in range(LANES):
        u = points[0, i] - world.centers[n, 0]
        v = points[1, i] - world.centers[n, 1]
        w = points[2, i] - world.centers[n, 2]
        x = turn[0, 0] * u + turn[1, 0] * v + turn[2, 0] * w
        y = turn[0, 1] * u + turn[1, 1] * v + turn[2, 1] * w
        z = turn[0, 2] * u + turn[1, 2] * v + turn[2, 2] * w
        square = limit * limit
        if least_square(world.trees, world.meshes[n], x, y, z, square, square) <= radius * radius:
            return True
    return False


@njit(cache=True, nogil=True)
def _surfaces_apart(arm: ArmArrays, frames: Array, p: int, q: int) -> bool:
    """Whether in all lanes the surfaces of two parts are known, and to be apart."""
    if arm.meshes[p] < 0 or arm.meshes[q] < 0:
        return False
    poses = np.empty((2, 4, 4))
    for i in range(LANES):
        for n, row in enumerate((arm.rows[p], arm.rows[q])):
            for r in range(3):
                for c in range(4):
                    poses[n, r, c] = frames[row, 4 * r + c, i] if row >= 0 else (1.0 if r == c else 0.0)
        # No more than decides is looked for.
        limit = arm.margin + 1e-6
        if surface_gap(arm.trees, arm.meshes[p], arm.meshes[q], poses[0], poses[1], limit, arm.margin) <= arm.margin:
            return False
    return True


@lean_njit
def _spheres_meet(arm: ArmArrays, balls: Array, spheres: Array, p: int, q: int) -> bool:
    """Whether spheres of two parts touch in any lane."""
    for m in range(arm.starts[p], arm.starts[p + 1]):
        if not _points_near(spheres[m], balls[q], arm.radii[m] + arm.ball_radii[q]):
            continue
        for n in range(arm.starts[q], arm.starts[q + 1]):
            if _points_near(spheres[m], spheres[n], arm.radii[m] + arm.radii[n]):
                return True
    return False


@lean_njit
def _block_free(arm: ArmArrays, world: WorldArrays, configurations: Array, room: tuple) -> bool:
    """Whether nothing touches at configurations (J, lanes)."""
    turns, frames, balls, spheres, near, placed, _ = room
    _place_lanes(arm, configurations, turns, frames)
    parts = len(arm.rows)
    for p in range(parts):
        _place_points(frames, arm.rows[p], arm.ball_centers, p, p + 1, balls)
        placed[p] = False
    for p in range(parts):
        if arm.rows[p] < 0:
            # What stands still was looked at before the search.
            continue
        count = 0
        for n in range(len(world.radii)):
            if world.allowed[p, n]:
                continue
            if _solid_near(world, n, balls[p], arm.ball_radii[p] + world.radii[n]):
                near[count] = n
                count += 1
        points = not world.allowed[p, len(world.radii)] and not _cloud_far(world.cloud, balls[p], arm.ball_radii[p])
        if count == 0 and not points:
            continue
        placed[p] = True
        _place_points(frames, arm.rows[p], arm.centers, arm.starts[p], arm.starts[p + 1], spheres)
        for m in range(arm.starts[p], arm.starts[p + 1]):
            for t in range(count):
                n = near[t]
                reach = arm.radii[m] + world.radii[n]
                if _solid_near(world, n, spheres[m], reach) and (
                    world.meshes[n] < 0 or _mesh_touches(world, n, spheres[m], reach)
                ):
                    return False
            if points and _cloud_touches(world.cloud, spheres[m], arm.radii[m]):
                return False
    for t in range(len(arm.pairs)):
        p, q = arm.pairs[t, 0], arm.pairs[t, 1]
        if not _points_near(balls[p], balls[q], arm.ball_radii[p] + arm.ball_radii[q]):
            continue
        for each in (p, q):
            if not placed[each]:
                placed[each] = True
                _place_points(frames, arm.rows[each], arm.centers, arm.starts[each], arm.starts[each + 1], spheres)
        if _spheres_meet(arm, balls, spheres, p, q) and not _surfaces_apart(arm, frames, p, q):
            return False
    return True


@njit(cache=True, nogil=True)
def make_room(
    arm: ArmArrays, world: WorldArrays
) -> tuple[Array, Array, Array, Array, NDArray[np.int64], NDArray[np.bool_], Array]:
    """Memory that `motion_free` works in, for one thread at a time."""
    return (
        np.empty((3, LANES)),
        np.empty((len(arm.motions.parents), 12, LANES)),
        np.empty((len(arm.rows), 3, LANES)),
        np.empty((len(arm.radii), 3, LANES)),
        np.empty(len(world.radii), dtype=np.int64),
        np.empty(len(arm.rows), dtype=np.bool_),
        np.empty((arm.motions.variables.max() + 1, LANES)),
    )


@lean_njit
def motion_free(
    arm: ArmArrays,
    world: WorldArrays,
    start: Array,
    end: Array,
    resolution: float,
    room: tuple,
) -> bool:
    """Whether nothing touches on the straight way between configurations (J,); the start is taken to be free.

    Args:
        arm, world: what must not touch.
        start, end: (J,) [rad or m].
        resolution: greatest step in the norm of configurations between two that are looked at.
        room: of `make_room`.
    """
    length = 0.0
    for j in range(len(start)):
        length += (end[j] - start[j]) ** 2
    blocks = max(int(np.ceil(np.sqrt(length) / (resolution * LANES))), 1)
    configurations = room[6]
    for block in range(blocks):
        for i in range(LANES):
            # From the far end: the start is free, and what lies beyond is not known.
            share = 1.0 - (i * blocks + block) / (blocks * LANES)
            for j in range(len(start)):
                configurations[j, i] = start[j] + share * (end[j] - start[j])
        if not _block_free(arm, world, configurations, room):
            return False
    return True
