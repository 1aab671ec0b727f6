"""Exact contact: nodes keep their gap from certified closest points, and no way of a node passes through a shape.

A closest point is certified where two bounds meet: the point belongs to the shape, and its support function in the
direction to the node says that nothing of the shape (of its hull, where it has a dent) is nearer. A way is straight in
the shape's frame, from where the node was in that frame before a step to where it is after it; that it is free is
proven as `superovoid.shapes.rays` proves it, and what cannot be proven soon counts as blocked. So a node between two
shapes that close on each other cannot be left inside either: where no free way is found, it is led out.
"""

from __future__ import annotations

import math

from morphit_ros.cloth.placing import SLOTS, is_near, to_shape, to_world
from morphit_ros.jit import lean_njit
from morphit_ros.superovoid.distances.support import (
    body_from_parameters,
    fill_sections,
    may_be_dented,
    superovoid_support,
)
from morphit_ros.superovoid.shapes.closest_point import refine
from morphit_ros.superovoid.shapes.kernels import level, level_and_gradient
from morphit_ros.superovoid.shapes.rays import proven_free, stretch_in_box

# Bounds of a certified distance differ by no more, as a share of the largest semi-axis.
_CERTIFIED = 1e-9
# More than that: so much above a plane that supports a shape is certainly outside.
_ABOVE = 1e-8
# Feet, and then support points, that are taken on the way to a closest point before it is searched for, and starts of
# that along each arc where there still is no certificate.
_FEET, _STEPS, _STARTS = 8, 4, 4
# A foot is one where its normal changes by less, and N there is so near to 1: far below what a certificate allows.
_SAME_NORMAL, _ON_SURFACE = 1e-6, 1e-12
# Below this a node counts as on the surface, which then tells its normal [m].
_TOUCHING = 1e-9
# Nodes are corrected this often before they are led out.
_ATTEMPTS = 8
# A stretch of a way is halved so often, and so many are looked at, before it counts as blocked.
_DEPTH, _MOST_STRETCHES = 16, 200
# And led out so far beyond a shape, as a share of the gap.
_CLEAR = 0.5


@lean_njit
def find_dents(parameters, sections):  # type: ignore[no-untyped-def]
    """Whether a shape may be dented; the table (25, 3) of its sections, which its support function then takes."""
    dented = may_be_dented(parameters)
    fill_sections(body_from_parameters(parameters, dented), sections)
    return dented


@lean_njit
def certified_push(parameters, dented, sections, gap, x, y, z, counts):  # type: ignore[no-untyped-def]
    """By how much and along which unit normal a node is to be pushed out, and whether that plane supports the shape.

    Args:
        parameters, dented, sections: of the shape, and as of `find_dents`.
        gap: that is kept [m].
        x, y, z: of the node in the shape's frame [m].
        counts: as of `contact.collide`.

    Returns:
        push [m], normal (3 numbers), and whether all of the shape lies below the plane that is so much less the gap
        above the node. A node that needs no push gets a plane below it, and not its closest point.
    """
    tapered = parameters[5] != 0.0 or parameters[6] != 0.0
    value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
    slope = math.sqrt(gx * gx + gy * gy + gz * gz)
    if slope == 0.0:
        return parameters[2] + gap, 0.0, 0.0, 1.0, False
    nx, ny, nz = gx / slope, gy / slope, gz / slope
    linear = gap - (value - 1.0) / slope
    # From inside the way out is taken; how far it is from the shape is seen when it is out.
    if value <= 1.0 or (linear <= 0.0 and not tapered):
        return linear, nx, ny, nz, not tapered
    reach = superovoid_support(body_from_parameters(parameters, dented), sections, nx, ny, nz, 0.0, 0.0)[0]
    height = nx * x + ny * y + nz * z - reach
    if height >= gap:
        return gap - height, nx, ny, nz, True
    sx, sy, sz, certified = closest_surface_point(parameters, dented, sections, x, y, z)
    if not certified:
        counts[1] += 1
    dx, dy, dz = x - sx, y - sy, z - sz
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    if distance > _TOUCHING:
        nx, ny, nz = dx / distance, dy / distance, dz / distance
    return gap - distance, nx, ny, nz, certified and distance > _TOUCHING


@lean_njit
def closest_surface_point(parameters, dented, sections, x, y, z):  # type: ignore[no-untyped-def]
    """The surface point (3 numbers) nearest to a point outside [m], and whether that is certified.

    Looked for in three ways, each slower than the one before: by normals, which ends soon where the surface is curved
    less than a sphere around the point that touches it; by support points in the direction to the point, where it is
    curved more; by Newton's method on both angles.

    Args:
        parameters, dented, sections, x, y, z: as of `certified_push`.
    """
    body = body_from_parameters(parameters, dented)
    found, sx, sy, sz, nx, ny, nz = _foot(parameters, x, y, z)
    if found and _certificate(body, sections, x, y, z, sx, sy, sz)[0]:
        return sx, sy, sz, True
    _, sx, sy, sz = superovoid_support(body, sections, nx, ny, nz, 0.0, 0.0)[:4]
    for _ in range(_STEPS):
        certified, tx, ty, tz = _certificate(body, sections, x, y, z, sx, sy, sz)
        if certified:
            return sx, sy, sz, True
        sx, sy, sz = tx, ty, tz
    around, along = _angles(parameters, x, y, z)
    ax, ay, side = abs(x), abs(y), math.copysign(1.0, z)
    best, _, _, sx, sy, sz = refine(parameters, around, along, side, ax, ay, z)
    certified = _certificate(body, sections, ax, ay, z, sx, sy, sz)[0]
    if not certified:
        for half in range(2):
            for i in range(_STARTS):
                for j in range(_STARTS):
                    found, _, _, tx, ty, tz = refine(
                        parameters, 0.5 * math.pi * (i + 0.5) / _STARTS, 0.5 * math.pi * (j + 0.5) / _STARTS,
                        1.0 - 2.0 * half, ax, ay, z,
                    )  # fmt: skip
                    if found < best:
                        best, sx, sy, sz = found, tx, ty, tz
        certified = _certificate(body, sections, ax, ay, z, sx, sy, sz)[0]
    return math.copysign(sx, x), math.copysign(sy, y), sz, certified


@lean_njit
def _foot(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """Whether a surface point was found whose normal goes through a point outside; it and the last normal (6 numbers).

    Each step takes the point's foot in the tangent plane of the level surface through the foot before.
    """
    sx, sy, sz = x, y, z
    nx, ny, nz = 0.0, 0.0, 0.0
    for _ in range(_FEET):
        value, gx, gy, gz = level_and_gradient(parameters, sx, sy, sz)
        slope = math.sqrt(gx * gx + gy * gy + gz * gz)
        if slope == 0.0:
            break
        turn = max(abs(gx / slope - nx), abs(gy / slope - ny), abs(gz / slope - nz))
        if turn < _SAME_NORMAL and abs(value - 1.0) < _ON_SURFACE:
            return True, sx, sy, sz, nx, ny, nz
        nx, ny, nz = gx / slope, gy / slope, gz / slope
        way = nx * (x - sx) + ny * (y - sy) + nz * (z - sz) + (value - 1.0) / slope
        sx, sy, sz = x - way * nx, y - way * ny, z - way * nz
    return False, sx, sy, sz, nx, ny, nz


@lean_njit
def _angles(parameters, x, y, z):  # type: ignore[no-untyped-def]
    """Angles on both arcs of the surface point on the ray through a point, in the coordinates in which N is a norm."""
    s = min(max(z / parameters[2], -1.0), 1.0)
    wide = abs(x) / (parameters[0] * (1.0 + parameters[5] * s))
    deep = abs(y) / (parameters[1] * (1.0 + parameters[6] * s))
    p = 2.0 / parameters[3]
    largest = max(wide, deep)
    width = largest * ((wide / largest) ** p + (deep / largest) ** p) ** (1.0 / p) if largest > 0.0 else 0.0
    return _arc_angle(wide, deep, parameters[3]), _arc_angle(width, abs(z) / parameters[2], parameters[4])


@lean_njit
def _arc_angle(c, s, exponent):  # type: ignore[no-untyped-def]
    """The inverse of `arcs.arc_point`, for numbers ≥ 0 of any length."""
    if exponent >= 1.0:
        c, s = c ** (1.0 / exponent), s ** (1.0 / exponent)
    return math.atan2(s, c)


@lean_njit
def _certificate(body, sections, x, y, z, sx, sy, sz):  # type: ignore[no-untyped-def]
    """Whether no point of the shape is nearer to (x, y, z) than (sx, sy, sz), and its support point in that direction.

    The hull's where it is dented.
    """
    dx, dy, dz = x - sx, y - sy, z - sz
    distance = math.sqrt(dx * dx + dy * dy + dz * dz)
    tolerance = _CERTIFIED * body.size
    if distance <= tolerance:
        return True, sx, sy, sz
    nx, ny, nz = dx / distance, dy / distance, dz / distance
    reach, tx, ty, tz = superovoid_support(body, sections, nx, ny, nz, 0.0, 0.0)[:4]
    return distance - (nx * x + ny * y + nz * z - reach) <= tolerance, tx, ty, tz


@lean_njit
def guarded(  # type: ignore[no-untyped-def]
    px, py, pz, sx, sy, sz, near, count, shapes, poses_before, poses, halves, planes, reuse, gap, floor, stack, counts
):  # fmt: skip
    """A place near (px, py, pz) outside of all shapes, to which the way from (sx, sy, sz) is free.

    Args:
        px, py, pz: where a node would be after a step [m].
        sx, sy, sz: where it was before.
        near, count: so many numbers of shapes that may be in the way.
        shapes: (S, 7) parameters.
        poses_before, poses: (S, 12).
        halves: (S, 3) of the shapes' boxes [m].
        planes, reuse: of this node, as of `contact.collide`.
        gap: that a corrected node keeps [m].
        floor: whether there is one, through which no node is led out.
        stack: (42, 3), to work with.
        counts: as of `contact.collide`.

    Returns:
        the place (3 numbers), and the last shape that was in the way, −1 if none.
    """
    last = -1
    for attempt in range(_ATTEMPTS):
        clear = True
        # What was corrected may be anywhere.
        for number in range(count if last < 0 else len(shapes)):
            s = near[number] if last < 0 else number
            ux, uy, uz = to_shape(poses[s], px, py, pz)
            vx, vy, vz = to_shape(poses_before[s], sx, sy, sz)
            if _passes_box(halves[s], ux, uy, uz, vx, vy, vz):
                continue
            if reuse[s] >= 0.0 and _is_above(planes[s % SLOTS], s, shapes[s], ux, uy, uz, vx, vy, vz):
                continue
            share = _free_share(shapes[s], halves[s], ux, uy, uz, vx, vy, vz, stack)
            if share >= 1.0:
                continue
            clear, last = False, s
            # After a few attempts at sliding, the node stays behind; in the end where it was, as its shapes carry it.
            back = 0.0 if attempt < _ATTEMPTS // 2 else (attempt + 1) / _ATTEMPTS
            share = max(share, 0.0) * (1.0 - back)
            wx, wy, wz = vx + share * (ux - vx), vy + share * (uy - vy), vz + share * (uz - vz)
            if back == 0.0:
                wx, wy, wz = _lifted(shapes[s], gap, wx, wy, wz)
            px, py, pz = to_world(poses[s], wx, wy, wz)
        if clear:
            return px, py, pz, last
    counts[2] += 1
    px, py, pz = led_out(px, py, pz, shapes, poses, halves, gap, floor, stack)
    return px, py, pz, last


@lean_njit(forceinline=True)
def _is_above(plane, s, parameters, ux, uy, uz, vx, vy, vz):  # type: ignore[no-untyped-def]
    """Whether both ends of a way lie above a plane that supports the shape, and so all of the way."""
    if plane[0] != s:
        return False
    least = plane[4] + _ABOVE * max(parameters[0], parameters[1], parameters[2])
    here = plane[1] * ux + plane[2] * uy + plane[3] * uz
    there = plane[1] * vx + plane[2] * vy + plane[3] * vz
    return here > least and there > least


@lean_njit
def _passes_box(half, ux, uy, uz, vx, vy, vz):  # type: ignore[no-untyped-def]
    """Whether both ends of a way lie beyond the same side of a box."""
    return (
        min(ux, vx) > half[0] or max(ux, vx) < -half[0]
        or min(uy, vy) > half[1] or max(uy, vy) < -half[1]
        or min(uz, vz) > half[2] or max(uz, vz) < -half[2]
    )  # fmt: skip


@lean_njit
def _free_share(parameters, half, ux, uy, uz, vx, vy, vz, stack):  # type: ignore[no-untyped-def]
    """The share of the way from v to u that is free, 1 if all of it is; where v is inside, whether u is out."""
    inside = level(parameters, ux, uy, uz) <= 1.0
    if level(parameters, vx, vy, vz) <= 1.0:
        # The shape grew over the node.
        return 0.0 if inside else 1.0
    dx, dy, dz = ux - vx, uy - vy, uz - vz
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length > 0.0:
        free = _free_length(parameters, half, vx, vy, vz, dx / length, dy / length, dz / length, length, stack)
        if free < length:
            return free / length
    return 0.0 if inside else 1.0


@lean_njit
def _free_length(parameters, half, x, y, z, dx, dy, dz, length, stack):  # type: ignore[no-untyped-def]
    """How much of a way (x, y, z) + t (dx, dy, dz), t ≤ length, is proven free from its start on.

    Stretches that are not proven free are halved; one that has been halved too often, or when there were too many, ends
    what is free.
    """
    low, high = stretch_in_box(half, x, y, z, dx, dy, dz)
    low, high = max(low, 0.0), min(high, length)
    if not low <= high:
        return length
    stack[0, 0], stack[0, 1], stack[0, 2] = low, high, 0.0
    count, looked_at = 1, 0
    while count > 0:
        count -= 1
        looked_at += 1
        low, high, depth = stack[count, 0], stack[count, 1], stack[count, 2]
        if proven_free(parameters, x, y, z, dx, dy, dz, low, high):
            continue
        if depth >= _DEPTH or looked_at > _MOST_STRETCHES:
            return low
        middle = 0.5 * (low + high)
        stack[count, 0], stack[count, 1], stack[count, 2] = middle, high, depth + 1.0
        stack[count + 1, 0], stack[count + 1, 1], stack[count + 1, 2] = low, middle, depth + 1.0
        count += 2
    return length


@lean_njit
def _lifted(parameters, gap, x, y, z):  # type: ignore[no-untyped-def]
    """A point from which the shape is about a gap away, along the normal of a point on its surface or in it."""
    for _ in range(8):
        value, gx, gy, gz = level_and_gradient(parameters, x, y, z)
        slope = math.sqrt(gx * gx + gy * gy + gz * gz)
        if slope == 0.0:
            return x, y, z + parameters[2] + gap
        push = gap - (value - 1.0) / slope
        if push <= _CLEAR * gap:
            break
        x, y, z = x + push * gx / slope, y + push * gy / slope, z + push * gz / slope
    return x, y, z


@lean_njit
def led_out(px, py, pz, shapes, poses, halves, gap, floor, stack):  # type: ignore[no-untyped-def]
    """The nearest place outside of all shapes along an axis of the world; not downwards where there is a floor."""
    best, bx, by, bz = math.inf, px, py, pz
    for way in range(5 if floor else 6):
        dx, dy, dz = 0.0, 0.0, 0.0
        if way < 2:
            dx = 1.0 - 2.0 * way
        elif way < 4:
            dy = 5.0 - 2.0 * way
        else:
            dz = 9.0 - 2.0 * way
        gone, blocked = 0.0, True
        # Each exit leaves a shape; one with a dent may be entered again.
        for _ in range(4 * len(shapes)):
            blocked = False
            for s in range(len(shapes)):
                x, y, z = px + gone * dx, py + gone * dy, pz + gone * dz
                if not is_near(poses[s], halves[s], 0.0, x, y, z):
                    continue
                ux, uy, uz = to_shape(poses[s], x, y, z)
                if level(shapes[s], ux, uy, uz) > 1.0:
                    continue
                blocked = True
                ex, ey, ez = to_shape(poses[s], x + dx, y + dy, z + dz)
                ex, ey, ez = ex - ux, ey - uy, ez - uz
                reach = 2.0 * (halves[s, 0] + halves[s, 1] + halves[s, 2])
                beyond = _free_length(
                    shapes[s], halves[s], ux + reach * ex, uy + reach * ey, uz + reach * ez, -ex, -ey, -ez, reach,
                    stack,
                )  # fmt: skip
                gone += reach - beyond + _CLEAR * gap
            if not blocked:
                break
        if not blocked and gone < best:
            best, bx, by, bz = gone, px + gone * dx, py + gone * dy, pz + gone * dz
    return bx, by, bz
