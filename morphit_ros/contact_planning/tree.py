"""Inverse dynamics of a tree of rigid bodies and its exact derivatives, compiled.

Everything is a spatial vector in the world's axes about the world's origin: motions (linear, angular), forces (force,
moment). A coordinate d moves all bodies behind its joint by the twist S_d. With v_λ and a_λ of the body before the
joint, Ψ̇_d = v_λ × S_d and Ψ̈_d = a_λ × S_d + v_λ × Ψ̇_d, and composites (sums over all bodies behind) I of the
inertias, f of the forces and B of (I_k v_k) ×̄* + v_k ×* I_k − I_k v_k ×, the efforts τ_e = S_e · f_e have the
derivatives

    ∂τ_e/∂q_d = S_e · (B Ψ̇_d + I Ψ̈_d)  [+ S_e · (S_d ×* f_d) where the joint of e lies before that of d]
    ∂τ_e/∂v_d = S_e · (B S_d + I (Ψ̇_d + v_d × S_d))
    ∂τ_e/∂a_d = S_e · I S_d

with the composites of whichever of both joints lies behind the other (S. Singh, R. P. Russell, P. M. Wensing,
Efficient Analytical Derivatives of Rigid-Body Dynamics Using Spatial Vector Algebra, RA-L 2022).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit
from morphit_ros.robot.chain import move, multiply

Indices = NDArray[np.int64]

# Kinds of joints. A body that moves freely has two: a translation, then a ball.
REVOLUTE, PRISMATIC, TRANSLATION, BALL = 0, 1, 2, 3
# Numbers of positions and of velocities of each kind.
POSITIONS, VELOCITIES = (1, 1, 3, 4), (1, 1, 3, 3)
_SMALL_ANGLE = 1e-4


class Tree(NamedTuple):
    """Bodies, each behind its joint and after the body that carries it.

    Positions of a ball are a quaternion (x, y, z, w) from the body to the body before; its velocity is the angular
    velocity in the body's axes. Those of a translation are along the axes of the body before.

    Attributes:
        parents: (B,) row of the body before, -1 for the world.
        before: (B, 4, 4) from the body before to the joint's frame at position zero.
        kinds: (B,) of the joints.
        axes: (B, 3) unit vectors of revolute and prismatic joints, in the joint's frame.
        first_position, first_velocity: (B,) of each joint.
        masses: (B,) [kg].
        centers: (B, 3) of mass, in the body's frame [m].
        inertias: (B, 3, 3) about the centre of mass, in the body's axes [kg m²].
        bodies: (V,) body that each velocity moves first.
        moves: (V, B) whether a velocity moves a body.
        damping: (V,) effort against each velocity [N m s/rad or N s/m].
        gravity: (3,) acceleration [m/s²].
    """

    parents: Indices
    before: Array
    kinds: Indices
    axes: Array
    first_position: Indices
    first_velocity: Indices
    masses: Array
    centers: Array
    inertias: Array
    bodies: Indices
    moves: NDArray[np.bool_]
    damping: Array
    gravity: Array


class Motion(NamedTuple):
    """Where the bodies are at one time and how they move; filled by `place` and `inverse_dynamics`.

    Attributes:
        poses: (B, 4, 4) in the world.
        twists: (V, 6) S of each velocity.
        velocities, accelerations: (B, 6); those of the world are zero and minus gravity.
        forces: (B, 6) composite.
        inertias, rates: (B, 6, 6) composites I and B.
        work: (8, 6) scratch.
    """

    poses: Array
    twists: Array
    velocities: Array
    accelerations: Array
    forces: Array
    inertias: Array
    rates: Array
    work: Array


def motion_arrays(tree: Tree) -> Motion:
    """Empty arrays for a tree."""
    bodies, count = len(tree.parents), len(tree.bodies)
    return Motion(
        np.zeros((bodies, 4, 4)), np.zeros((count, 6)), np.zeros((bodies, 6)), np.zeros((bodies, 6)),
        np.zeros((bodies, 6)), np.zeros((bodies, 6, 6)), np.zeros((bodies, 6, 6)), np.zeros((8, 6)),
    )  # fmt: skip


@lean_njit
def cross_motion(first, second, product):  # type: ignore[no-untyped-def]
    """product = first × second of motions (6,); product must be another array."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        product[k] = first[3 + i] * second[j] - first[3 + j] * second[i]
        product[k] += first[i] * second[3 + j] - first[j] * second[3 + i]
        product[3 + k] = first[3 + i] * second[3 + j] - first[3 + j] * second[3 + i]


@lean_njit
def cross_force(motion, force, product):  # type: ignore[no-untyped-def]
    """product = motion ×* force (6,); product must be another array."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        product[k] = motion[3 + i] * force[j] - motion[3 + j] * force[i]
        product[3 + k] = motion[3 + i] * force[3 + j] - motion[3 + j] * force[3 + i]
        product[3 + k] += motion[i] * force[j] - motion[j] * force[i]


@lean_njit
def dot(first, second):  # type: ignore[no-untyped-def]
    """first · second, (6,) each."""
    total = 0.0
    for k in range(6):
        total += first[k] * second[k]
    return total


@lean_njit
def apply(matrix, vector, product):  # type: ignore[no-untyped-def]
    """product = matrix (6, 6) · vector (6,)."""
    for r in range(6):
        product[r] = dot(matrix[r], vector)


@lean_njit
def rotation_vector(first, second, vector):  # type: ignore[no-untyped-def]
    """Fill (3,) the rotation vector of first⁻¹ · second, of unit quaternions (x, y, z, w), of at most π."""
    x1, y1, z1, w1 = -first[0], -first[1], -first[2], first[3]
    x2, y2, z2, w2 = second[0], second[1], second[2], second[3]
    w = w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2
    vector[0] = w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2
    vector[1] = w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2
    vector[2] = w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2
    sine = np.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    # Of both quaternions of a rotation the one of at most half a turn.
    if w < 0.0:
        w = -w
        for k in range(3):
            vector[k] = -vector[k]
    # atan2(s, w)/s = 1/w − s²/(3 w³) + …, s the half angle's sine.
    factor = 2.0 * np.arctan2(sine, w) / sine if sine > _SMALL_ANGLE else 2.0 / w - 2.0 * sine**2 / (3.0 * w**3)
    for k in range(3):
        vector[k] *= factor


@lean_njit
def inverse_right_jacobian(vector, sign, matrix):  # type: ignore[no-untyped-def]
    """Fill (3, 3): how the rotation vector of R exp(δ) moves with δ; with sign −1, that of exp(δ) R."""
    x, y, z = sign * vector[0], sign * vector[1], sign * vector[2]
    square = x * x + y * y + z * z
    angle = np.sqrt(square)
    # Below the bound the series 1/12 + θ²/720 is exact to the last digits.
    if angle < 1e-2:
        factor = 1.0 / 12.0 + square / 720.0
    else:
        factor = 1.0 / square - (1.0 + np.cos(angle)) / (2.0 * angle * np.sin(angle))
    matrix[0, 0] = 1.0 - factor * (y * y + z * z)
    matrix[1, 1] = 1.0 - factor * (x * x + z * z)
    matrix[2, 2] = 1.0 - factor * (x * x + y * y)
    matrix[0, 1], matrix[1, 0] = factor * x * y - 0.5 * z, factor * x * y + 0.5 * z
    matrix[0, 2], matrix[2, 0] = factor * x * z + 0.5 * y, factor * x * z - 0.5 * y
    matrix[1, 2], matrix[2, 1] = factor * y * z - 0.5 * x, factor * y * z + 0.5 * x


@lean_njit
def subtract(tree, second, first, difference):  # type: ignore[no-untyped-def]
    """difference (V,) = second ⊖ first of positions (Q,): what `add` brings first to second by."""
    for b in range(len(tree.parents)):
        q, v = tree.first_position[b], tree.first_velocity[b]
        if tree.kinds[b] == BALL:
            rotation_vector(first[q : q + 4], second[q : q + 4], difference[v : v + 3])
        else:
            for k in range(3 if tree.kinds[b] == TRANSLATION else 1):
                difference[v + k] = second[q + k] - first[q + k]


@lean_njit
def add(tree, positions, step, moved):  # type: ignore[no-untyped-def]
    """moved (Q,) = positions ⊕ step (V,); balls turn by rotation vectors in the body's axes."""
    for b in range(len(tree.parents)):
        q, v = tree.first_position[b], tree.first_velocity[b]
        if tree.kinds[b] != BALL:
            for k in range(3 if tree.kinds[b] == TRANSLATION else 1):
                moved[q + k] = positions[q + k] + step[v + k]
            continue
        angle = np.sqrt(step[v] ** 2 + step[v + 1] ** 2 + step[v + 2] ** 2)
        factor = np.sin(0.5 * angle) / angle if angle > _SMALL_ANGLE else 0.5 - angle**2 / 48.0
        x2, y2, z2, w2 = factor * step[v], factor * step[v + 1], factor * step[v + 2], np.cos(0.5 * angle)
        x1, y1, z1, w1 = positions[q], positions[q + 1], positions[q + 2], positions[q + 3]
        x = w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2
        y = w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2
        z = w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2
        w = w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2
        length = np.sqrt(x * x + y * y + z * z + w * w)
        moved[q], moved[q + 1], moved[q + 2], moved[q + 3] = x / length, y / length, z / length, w / length


@lean_njit
def place(tree, positions, motion):  # type: ignore[no-untyped-def]
    """Fill poses and twists of a motion."""
    axis = motion.work[0]
    for b in range(len(tree.parents)):
        pose, q, v, kind = motion.poses[b], tree.first_position[b], tree.first_velocity[b], tree.kinds[b]
        if tree.parents[b] >= 0:
            multiply(motion.poses[tree.parents[b]], tree.before[b], pose)
        else:
            for r in range(4):
                for c in range(4):
                    pose[r, c] = tree.before[b, r, c]
        amount = positions[q]
        for k in range(3):
            axis[k] = tree.axes[b, k]
        if kind == TRANSLATION:
            for k in range(3):
                axis[k] = positions[q + k]
            amount = 1.0
        elif kind == BALL:
            sine = np.sqrt(positions[q] ** 2 + positions[q + 1] ** 2 + positions[q + 2] ** 2)
            amount = 2.0 * np.arctan2(sine, positions[q + 3])
            for k in range(3):
                axis[k] = positions[q + k] / sine if sine > 0.0 else 0.0
        slides = kind in (PRISMATIC, TRANSLATION)
        move(pose, axis, slides, amount)
        for k in range(3 if kind in (TRANSLATION, BALL) else 1):
            twist = motion.twists[v + k]
            for r in range(3):
                # An axis is the same before and after its own motion.
                direction = pose[r, k]
                if kind in (REVOLUTE, PRISMATIC):
                    direction = pose[r, 0] * axis[0] + pose[r, 1] * axis[1] + pose[r, 2] * axis[2]
                twist[r], twist[3 + r] = (direction, 0.0) if slides else (0.0, direction)
            if not slides:
                for r in range(3):
                    i, j = (r + 1) % 3, (r + 2) % 3
                    twist[r] = pose[i, 3] * twist[3 + j] - pose[j, 3] * twist[3 + i]


@lean_njit
def move_bodies(tree, motion, velocity, acceleration):  # type: ignore[no-untyped-def]
    """Fill velocities and accelerations of the bodies; work rows 6 and 7 are those of the world."""
    work = motion.work
    for k in range(6):
        work[6, k] = 0.0
        work[7, k] = -tree.gravity[k] if k < 3 else 0.0
    for b in range(len(tree.parents)):
        v, kind, parent = tree.first_velocity[b], tree.kinds[b], tree.parents[b]
        for k in range(6):
            motion.velocities[b, k] = motion.velocities[parent, k] if parent >= 0 else work[6, k]
            motion.accelerations[b, k] = motion.accelerations[parent, k] if parent >= 0 else work[7, k]
            work[0, k] = 0.0
        for i in range(v, v + (3 if kind in (TRANSLATION, BALL) else 1)):
            for k in range(6):
                work[0, k] += motion.twists[i, k] * velocity[i]
                motion.accelerations[b, k] += motion.twists[i, k] * acceleration[i]
        cross_motion(motion.velocities[b], work[0], work[1])
        for k in range(6):
            motion.velocities[b, k] += work[0, k]
            motion.accelerations[b, k] += work[1, k]


@lean_njit
def _load_body(tree, motion, b, derivatives):  # type: ignore[no-untyped-def]
    """Fill a body's own inertia, force and, if asked, rate."""
    pose, inertia, rate, work = motion.poses[b], motion.inertias[b], motion.rates[b], motion.work
    mass, c = tree.masses[b], work[2]
    for r in range(3):
        c[r] = pose[r, 3]
        for k in range(3):
            c[r] += pose[r, k] * tree.centers[b, k]
    for r in range(6):
        for k in range(6):
            inertia[r, k] = 0.0
    square = c[0] ** 2 + c[1] ** 2 + c[2] ** 2
    for r in range(3):
        i, j = (r + 1) % 3, (r + 2) % 3
        inertia[r, r] = mass
        # Upper right −m [c]×, lower left m [c]×.
        inertia[i, 3 + r], inertia[j, 3 + r] = -mass * c[j], mass * c[i]
        inertia[3 + r, i], inertia[3 + r, j] = -mass * c[j], mass * c[i]
        for k in range(3):
            total = mass * ((square if r == k else 0.0) - c[r] * c[k])
            for m in range(3):
                for n in range(3):
                    total += pose[r, m] * tree.inertias[b, m, n] * pose[k, n]
            inertia[3 + r, 3 + k] = total
    v = motion.velocities[b]
    momentum = work[3]
    apply(inertia, v, momentum)
    apply(inertia, motion.accelerations[b], motion.forces[b])
    cross_force(v, momentum, work[4])
    for k in range(6):
        motion.forces[b, k] += work[4, k]
    if not derivatives:
        return
    # Column k: (I v) ×̄* e_k = e_k ×* (I v), and v ×* (I e_k) − I (v × e_k).
    unit = work[0]
    for k in range(6):
        for r in range(6):
            unit[r] = 1.0 if r == k else 0.0
        cross_force(unit, momentum, work[1])
        for r in range(6):
            rate[r, k] = work[1, r]
        for r in range(6):
            work[1, r] = inertia[r, k]
        cross_force(v, work[1], work[4])
        cross_motion(v, unit, work[1])
        apply(inertia, work[1], work[5])
        for r in range(6):
            rate[r, k] += work[4, r] - work[5, r]


@lean_njit
def inverse_dynamics(  # type: ignore[no-untyped-def]
    tree, velocity, efforts, motion, by_position, by_velocity, mass_matrix, derivatives
):
    """Efforts (V,) of placed and moved bodies, and their derivatives (V, V) by positions, velocities, accelerations.

    Derivatives are filled only if asked.
    """
    count, bodies, work = len(tree.bodies), len(tree.parents), motion.work
    for b in range(bodies):
        _load_body(tree, motion, b, derivatives)
    for b in range(bodies - 1, -1, -1):
        parent = tree.parents[b]
        if parent < 0:
            continue
        for r in range(6):
            motion.forces[parent, r] += motion.forces[b, r]
            if derivatives:
                for k in range(6):
                    motion.inertias[parent, r, k] += motion.inertias[b, r, k]
                    motion.rates[parent, r, k] += motion.rates[b, r, k]
    for e in range(count):
        efforts[e] = dot(motion.twists[e], motion.forces[tree.bodies[e]]) + tree.damping[e] * velocity[e]
    if not derivatives:
        return
    for r in range(count):
        for k in range(count):
            by_position[r, k] = by_velocity[r, k] = mass_matrix[r, k] = 0.0
        by_velocity[r, r] = tree.damping[r]
    # Rows: Ψ̇, Ψ̈, scratch, and the three force vectors by position, velocity and acceleration.
    for d in range(count):
        b, twist = tree.bodies[d], motion.twists[d]
        for k in range(6):
            work[6, k] = 0.0
            work[7, k] = -tree.gravity[k] if k < 3 else 0.0
        parent = tree.parents[b]
        v_before = motion.velocities[parent] if parent >= 0 else work[6]
        a_before = motion.accelerations[parent] if parent >= 0 else work[7]
        cross_motion(v_before, twist, work[0])
        cross_motion(v_before, work[0], work[1])
        cross_motion(a_before, twist, work[2])
        for k in range(6):
            work[1, k] += work[2, k]
        # work[2] ← Ψ̇ + v × S.
        cross_motion(motion.velocities[b], twist, work[2])
        for k in range(6):
            work[2, k] += work[0, k]
        # Joints before this one, and its own: with the composites of this body.
        for r in range(6):
            work[3, r] = dot(motion.rates[b, r], work[0]) + dot(motion.inertias[b, r], work[1])
            work[4, r] = dot(motion.rates[b, r], twist) + dot(motion.inertias[b, r], work[2])
        cross_force(twist, motion.forces[b], work[5])
        for e in range(count):
            if not tree.moves[e, b]:
                continue
            by_position[e, d] += dot(motion.twists[e], work[3])
            by_velocity[e, d] += dot(motion.twists[e], work[4])
            if tree.bodies[e] != b:
                by_position[e, d] += dot(motion.twists[e], work[5])
        for r in range(6):
            work[5, r] = dot(motion.inertias[b, r], twist)
        for e in range(count):
            if tree.moves[e, b]:
                mass_matrix[e, d] = mass_matrix[d, e] = dot(motion.twists[e], work[5])
        # Joints behind this one: with their own composites.
        for e in range(count):
            other = tree.bodies[e]
            if other == b or not tree.moves[d, other]:
                continue
            for r in range(6):
                work[3, r] = dot(motion.rates[other, r], work[0]) + dot(motion.inertias[other, r], work[1])
                work[4, r] = dot(motion.rates[other, r], twist) + dot(motion.inertias[other, r], work[2])
            by_position[e, d] += dot(motion.twists[e], work[3])
            by_velocity[e, d] += dot(motion.twists[e], work[4])
