"""Forces between shapes in contact and their exact derivatives, compiled.

Of each pair the second shape is a sphere of radius r, the first one of which the signed distance h to a point is
known: another sphere, a half-space, a superellipsoid. At the sphere's centre c, φ = h(c) − r is the gap, n = ∇h(c)
the normal from the first to the second, and p = c − n (r + φ/2) the point of contact, halfway between both surfaces.
With u the velocity of the second body relative to the first at p, v_n = n·u and v_t = u − v_n n, the force on the
second body is (Kurtz et al. 2023, IDTO)

    F = f n − μ f v_t / √(v_s² + |v_t|²),   f = σ k ln(1 + exp(−φ/σ)) · d(v_n / v_d)
    d(s) = 1 − s for s < 0, (s − 2)²/4 for 0 ≤ s < 2, 0 beyond.

A force is felt before shapes touch: f = σ k ln 2 at φ = 0 and at rest.

Spheres are a body's shape and no springs of their own: two bodies share one contact, however many spheres they are
made of. Each pair i of theirs gets the share w_i = exp(−φ_i/σ) / Σ_j exp(−φ_j/σ) of its force. (Published as the sum
of all: an arm of 40 spheres a link then pushes several times as hard as the same arm of 16, before it touches.)

Shapes move with their bodies: a displacement of the first body moves c by minus as much relative to it, so that with
the Hessian H of h

    δφ = n · δc_rel,   δn = ω₁ × n + H δc_rel,   δw_i = w_i (Σ_j w_j δφ_j − δφ_i) / σ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.contact_planning.superellipsoid import distance
from morphit_ros.contact_planning.tree import cross_motion
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit

Indices = NDArray[np.int64]

SPHERE, HALF_SPACE, SUPERELLIPSOID = 0, 1, 2
# A law of contact is five numbers: stiffness k [N/m], smoothing σ [m], dissipation velocity v_d [m/s], friction μ and
# stiction velocity v_s [m/s].
# Gaps beyond so many σ have no force: it would be below 2e-7 of k σ.
REACH = 16.0
# Rows of three numbers that the derivatives of a pair need.
WORK = 32


class Contacts(NamedTuple):
    """Shapes fixed to bodies, and the pairs that may touch.

    Attributes:
        kinds: (S,) of the shapes.
        bodies: (S,) row in the tree, -1 for the world.
        poses: (S, 4, 4) in the body's frame [m]. A half-space lies below its frame's plane z = 0.
        parameters: (S, 7): radius of a sphere; the numbers of a superellipsoid [m].
        pairs: (P, 2); the second shape is a sphere.
        groups: (G + 1,) first pair of each two bodies, and P.
    """

    kinds: Indices
    bodies: Indices
    poses: Array
    parameters: Array
    pairs: Indices
    groups: Indices


@lean_njit
def softplus(gap, smoothing):  # type: ignore[no-untyped-def]
    """σ ln(1 + exp(−gap/σ)) and its derivative by the gap."""
    x = -gap / smoothing
    if x > 0.0:
        e = np.exp(-x)
        return smoothing * (x + np.log1p(e)), -1.0 / (1.0 + e)
    e = np.exp(x)
    return smoothing * np.log1p(e), -e / (1.0 + e)


@lean_njit
def damping_factor(velocity, scale):  # type: ignore[no-untyped-def]
    """d and its derivative by the velocity [s/m] with which shapes part."""
    s = velocity / scale
    if s < 0.0:
        return 1.0 - s, -1.0 / scale
    if s < 2.0:
        return 0.25 * (s - 2.0) ** 2, 0.5 * (s - 2.0) / scale
    return 0.0, 0.0


@lean_njit
def place_shapes(contacts, poses, placed):  # type: ignore[no-untyped-def]
    """Fill the poses (S, 4, 4) of all shapes in the world, of spheres only the centres."""
    kinds, bodies, local = contacts.kinds, contacts.bodies, contacts.poses
    for shape in range(len(kinds)):
        body = bodies[shape]
        for c in range(3 if kinds[shape] == SPHERE else 0, 4):
            x, y, z = local[shape, 0, c], local[shape, 1, c], local[shape, 2, c]
            if body < 0:
                placed[shape, 0, c], placed[shape, 1, c], placed[shape, 2, c] = x, y, z
                continue
            for r in range(3):
                total = poses[body, r, 3] if c == 3 else 0.0
                placed[shape, r, c] = total + poses[body, r, 0] * x + poses[body, r, 1] * y + poses[body, r, 2] * z


@lean_njit
def fill_gaps(contacts, placed, work, gaps):  # type: ignore[no-untyped-def]
    """Fill the gaps (P,) [m] of all pairs."""
    for pair in range(len(contacts.pairs)):
        first, second = contacts.pairs[pair, 0], contacts.pairs[pair, 1]
        if contacts.kinds[first] == SPHERE:
            # Most pairs are of spheres: a call for each would take ten times as long.
            a, b = placed[first], placed[second]
            length = np.sqrt((b[0, 3] - a[0, 3]) ** 2 + (b[1, 3] - a[1, 3]) ** 2 + (b[2, 3] - a[2, 3]) ** 2)
            gaps[pair] = length - contacts.parameters[second, 0] - contacts.parameters[first, 0]
        else:
            gaps[pair] = gap_of_pair(contacts, pair, placed, -np.inf, work[0], work[4:7], work[24:32])


@lean_njit
def gap_of_pair(contacts, pair, placed, reach, normal, hessian, scratch):  # type: ignore[no-untyped-def]
    """Gap [m] of a pair; fills its normal (3,) and the Hessian (3, 3) [1/m] of the distance at the sphere's centre.

    Args:
        placed: (S, 4, 4) poses of all shapes in the world.
        reach: gap from which on the Hessian is not asked for [m].
        scratch: (8, 3).
    """
    first, second = contacts.pairs[pair, 0], contacts.pairs[pair, 1]
    radius, kind = contacts.parameters[second, 0], contacts.kinds[first]
    a, b = placed[first], placed[second]
    if kind == HALF_SPACE:
        height = 0.0
        for r in range(3):
            for k in range(3):
                hessian[r, k] = 0.0
        for r in range(3):
            normal[r] = a[r, 2]
            height += normal[r] * (b[r, 3] - a[r, 3])
        return height - radius
    if kind == SUPERELLIPSOID:
        return distance(contacts.parameters[first], a, b[:3, 3], normal, hessian, scratch) - radius
    x, y, z = b[0, 3] - a[0, 3], b[1, 3] - a[1, 3], b[2, 3] - a[2, 3]
    length = np.sqrt(x * x + y * y + z * z)
    if length < 1e-12:
        # Concentric: any direction is as good, and none has a finite Hessian.
        normal[0], normal[1], normal[2] = 0.0, 0.0, 1.0
        for r in range(3):
            for k in range(3):
                hessian[r, k] = 0.0
        return -radius - contacts.parameters[first, 0]
    normal[0], normal[1], normal[2] = x / length, y / length, z / length
    gap = length - radius - contacts.parameters[first, 0]
    if gap <= reach:
        for r in range(3):
            for k in range(3):
                hessian[r, k] = ((1.0 if r == k else 0.0) - normal[r] * normal[k]) / length
    return gap


@lean_njit
def _sign(tree, dof, first, second):  # type: ignore[no-untyped-def]
    """1 where a velocity moves the second body only, -1 the first only, else 0."""
    sign = 0
    if second >= 0 and tree.moves[dof, second]:
        sign += 1
    if first >= 0 and tree.moves[dof, first]:
        sign -= 1
    return sign


@lean_njit
def _at_point(twist, point, velocity):  # type: ignore[no-untyped-def]
    """Velocity (3,) of a point that a twist (6,) moves."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        velocity[k] = twist[k] + twist[3 + i] * point[j] - twist[3 + j] * point[i]


@lean_njit
def add_normal(normal, point, share, wrench):  # type: ignore[no-untyped-def]
    """Add a share of a unit force along a normal at a point, (3,) each, to a wrench (2, 3): force and moment."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        wrench[0, k] += share * normal[k]
        wrench[1, k] += share * (point[i] * normal[j] - point[j] * normal[i])


@lean_njit
def fill_slope(tree, contacts, pair, motion, wrench, slope):  # type: ignore[no-untyped-def]
    """Fill how the gap of a pair moves with each coordinate (V,), given its normal as a wrench."""
    body1, body2 = contacts.bodies[contacts.pairs[pair, 0]], contacts.bodies[contacts.pairs[pair, 1]]
    for d in range(len(slope)):
        sign, twist = _sign(tree, d, body1, body2), motion.twists[d]
        slope[d] = 0.0
        if sign != 0:
            for k in range(3):
                slope[d] += sign * (twist[k] * wrench[0, k] + twist[3 + k] * wrench[1, k])


@lean_njit
def share_group(tree, contacts, first, last, law, motion, placed, gaps, work, shares, mean, derivatives):  # type: ignore[no-untyped-def]
    """Fill shares (P,) of the pairs from first to before last, and the weighted mean (V,) of how their gaps move.

    Args:
        gaps: (P,) [m].

    Returns:
        the least of these gaps; nothing is filled where that is too large for a force.
    """
    least, total = np.inf, 0.0
    for pair in range(first, last):
        least = min(least, gaps[pair])
    if least > REACH * law[1]:
        return least
    for pair in range(first, last):
        shares[pair] = np.exp((least - gaps[pair]) / law[1]) if gaps[pair] - least < REACH * law[1] else 0.0
        total += shares[pair]
    for pair in range(first, last):
        shares[pair] /= total
    if not derivatives or last - first == 1:
        return least
    # All pairs are of the same two bodies: their normals are summed up first.
    normal, wrench = work[0], work[1:3]
    wrench[:] = 0.0
    for pair in range(first, last):
        if shares[pair] > 0.0:
            gap_of_pair(contacts, pair, placed, -np.inf, normal, work[4:7], work[24:32])
            other = contacts.pairs[pair, 1]
            turned = contacts.bodies[other] != contacts.bodies[contacts.pairs[first, 1]]
            add_normal(normal, placed[other, :3, 3], -shares[pair] if turned else shares[pair], wrench)
    fill_slope(tree, contacts, first, motion, wrench, mean)
    return least


@lean_njit
def add_pair(  # type: ignore[no-untyped-def]
    tree, contacts, pair, share, mean, law, motion, placed, efforts, by_position, by_velocity, work, derivatives
):
    """Subtract the efforts (V,) of a pair's force, and their derivatives (V, V); returns the gap [m] and force f [N].

    Derivatives are added only if asked.

    Args:
        share, mean: of the pair and (V,) of its group, of `share_group`; the mean is not asked for with share 1.
        law: (5,).
        motion: placed and moved bodies.
        placed: (S, 4, 4) poses of all shapes in the world.
        work: (32, 3) scratch. Afterwards the first row is the normal.
    """
    n, u, p, force = work[0], work[1], work[2], work[3]
    hessian, by_normal, by_gap, by_speed = work[4:7], work[7:10], work[10], work[11:14]
    gap = gap_of_pair(contacts, pair, placed, REACH * law[1], n, hessian, work[24:32])
    if gap > REACH * law[1]:
        return gap, 0.0
    first, second = contacts.pairs[pair, 0], contacts.pairs[pair, 1]
    body1, body2 = contacts.bodies[first], contacts.bodies[second]
    reach = contacts.parameters[second, 0] + 0.5 * gap
    center = work[14]
    for k in range(3):
        center[k] = placed[second, k, 3]
        p[k] = center[k] - n[k] * reach
        u[k] = 0.0
    if body2 >= 0:
        _at_point(motion.velocities[body2], p, u)
    # Angular velocity of the second body relative to the first.
    spin = work[15]
    for k in range(3):
        spin[k] = motion.velocities[body2, 3 + k] if body2 >= 0 else 0.0
    if body1 >= 0:
        _at_point(motion.velocities[body1], p, work[16])
        for k in range(3):
            u[k] -= work[16, k]
            spin[k] -= motion.velocities[body1, 3 + k]
    parting = n[0] * u[0] + n[1] * u[1] + n[2] * u[2]
    slip = work[17]
    square = law[4] ** 2
    for k in range(3):
        slip[k] = u[k] - parting * n[k]
        square += slip[k] ** 2
    compressed, slope = softplus(gap, law[1])
    factor, factor_slope = damping_factor(parting, law[2])
    f = law[0] * compressed * factor
    grip = law[3] / np.sqrt(square)
    for k in range(3):
        force[k] = f * (n[k] - grip * slip[k])
    count = len(tree.bodies)
    for e in range(count):
        sign = _sign(tree, e, body1, body2)
        if sign != 0:
            _at_point(motion.twists[e], p, work[16])
            efforts[e] -= share * sign * (work[16, 0] * force[0] + work[16, 1] * force[1] + work[16, 2] * force[2])
    if not derivatives:
        return gap, share * f
    f_gap, f_parting = law[0] * slope * factor, law[0] * compressed * factor_slope
    for r in range(3):
        by_gap[r] = (n[r] - grip * slip[r]) * f_gap
        # T n: the friction's stiffness T = g (1 − v_t v_tᵀ/s²) along the normal, to which v_t is orthogonal.
        along = (n[r] - grip * slip[r]) * f_parting + f * grip * n[r]
        for k in range(3):
            stiff = grip * ((1.0 if r == k else 0.0) - slip[r] * slip[k] / square)
            by_normal[r, k] = along * u[k] + f * ((1.0 if r == k else 0.0) + parting * stiff)
            by_speed[r, k] = along * n[k] - f * stiff
    moved, turned, shifted, speed = work[18], work[19], work[20], work[21]
    change_q, change_v, column = work[22], work[23], work[16]
    for d in range(count):
        sign = _sign(tree, d, body1, body2)
        if sign == 0:
            continue
        twist, body = motion.twists[d], body2 if sign > 0 else body1
        _at_point(twist, center, moved)
        gap_change = sign * (n[0] * moved[0] + n[1] * moved[1] + n[2] * moved[2])
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            turned[k] = sign * (hessian[k, 0] * moved[0] + hessian[k, 1] * moved[1] + hessian[k, 2] * moved[2])
            if sign < 0:
                turned[k] += twist[3 + i] * n[j] - twist[3 + j] * n[i]
        for k in range(3):
            shifted[k] = (moved[k] if sign > 0 else 0.0) - turned[k] * reach - 0.5 * n[k] * gap_change
        # The body's velocity relative to what carries the joint turns with it.
        parent = tree.parents[tree.bodies[d]]
        relative, changed = motion.work[0], motion.work[1]
        for k in range(6):
            relative[k] = motion.velocities[body, k] - (motion.velocities[parent, k] if parent >= 0 else 0.0)
        cross_motion(twist, relative, changed)
        _at_point(changed, p, speed)
        _at_point(twist, p, column)
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            speed[k] = sign * speed[k] + spin[i] * shifted[j] - spin[j] * shifted[i]
        shared = (mean[d] - gap_change) / law[1] if share < 1.0 else 0.0
        for r in range(3):
            change_q[r], change_v[r] = by_gap[r] * gap_change + force[r] * shared, 0.0
            for k in range(3):
                change_q[r] += by_normal[r, k] * turned[k] + by_speed[r, k] * speed[k]
                change_v[r] += by_speed[r, k] * sign * column[k]
        for e in range(count):
            other = _sign(tree, e, body1, body2)
            if other == 0:
                continue
            _at_point(motion.twists[e], p, column)
            total = column[0] * change_q[0] + column[1] * change_q[1] + column[2] * change_q[2]
            rate = column[0] * change_v[0] + column[1] * change_v[1] + column[2] * change_v[2]
            by_velocity[e, d] -= share * other * rate
            for k in range(3):
                i, j = (k + 1) % 3, (k + 2) % 3
                total += (motion.twists[e, 3 + i] * shifted[j] - motion.twists[e, 3 + j] * shifted[i]) * force[k]
            if tree.moves[d, tree.bodies[e]]:
                cross_motion(twist, motion.twists[e], changed)
                _at_point(changed, p, column)
                total += column[0] * force[0] + column[1] * force[1] + column[2] * force[2]
            by_position[e, d] -= share * other * total
    return gap, share * f
