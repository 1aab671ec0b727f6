"""Cost of a trajectory of positions, its exact gradient and its Gauss-Newton Hessian, compiled.

Positions q_1 … q_N at times h, 2h, … are the only unknowns (Kurtz et al. 2023, IDTO). From them follow

    v_t = (q_t ⊖ q_{t-1}) / h,   a_t = (v_t − v_{t-1}) / h,   τ_t = ID(q_t, v_t, a_t) − Jᵀ F(q_t, v_t)

with q_0 and v_0 given: the efforts that the motion asks of the joints, on top of contact (implicit Euler, so that
stiff contact needs no small steps). The cost is

    L = ½ Σ_t |q_t ⊖ q*_t|²_Q + |v_t|²_V + |τ_t − τ*_t|²_R + w_l |beyond limits|² + w_o |overlap|² + |gap|²_A.

The last term draws shapes together that are apart: it is for finding a contact, and is left out of what is solved at
last.

τ_t depends on q_t, q_{t-1} and q_{t-2}: the Hessian is block-pentadiagonal, held as its lower band. A joint without
motor must have τ = 0; R and τ* hold penalty and multiplier of that constraint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.contact_planning.contact import (
    REACH,
    WORK,
    Contacts,
    add_normal,
    add_pair,
    fill_gaps,
    fill_slope,
    gap_of_pair,
    place_shapes,
    share_group,
)
from morphit_ros.contact_planning.tree import (
    BALL,
    Motion,
    Tree,
    add,
    inverse_dynamics,
    inverse_right_jacobian,
    motion_arrays,
    move_bodies,
    place,
    subtract,
)
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit, njit


class Task(NamedTuple):
    """What is asked of a trajectory of N steps.

    Attributes:
        step: h [s].
        position: (Q,) q_0.
        velocity: (V,) v_0.
        goals: (N, Q) q*.
        position_weights, velocity_weights, effort_weights: (N, V) diagonals of Q, V and R.
        efforts: (N, V) τ*.
        lower, upper: (V,) limits of joints of one coordinate, infinite where there are none.
        limit_weight, overlap_weight: w_l, w_o.
        free_overlap: gap below which a pair overlaps [m]; negative to allow some.
        attraction: (P,) A, of each pair.
        law: (5,) of contact.
    """

    step: float
    position: Array
    velocity: Array
    goals: Array
    position_weights: Array
    velocity_weights: Array
    effort_weights: Array
    efforts: Array
    lower: Array
    upper: Array
    limit_weight: float
    overlap_weight: float
    free_overlap: float
    attraction: Array
    law: Array


class Evaluation(NamedTuple):
    """What is known of a trajectory; filled by `evaluate`.

    Attributes:
        velocities, efforts: (N, V).
        gaps, forces: (N, P) of the pairs [m] and [N].
        gradient: (N, V).
        band: (N · V, 3 V) lower band of the Hessian: column 3 V − 1 + j − i of row i is entry (i, j).
        forward, backward: (N + 1, V, V) how v_t moves with q_t and with q_{t-1}, times h.
        jacobians: (3, V, V) of τ_t by q_t, q_{t-1} and q_{t-2}.
        partial: (3, V, V) of the inverse dynamics.
        placed: (S, 4, 4) poses of the shapes.
        shares: (P,) of the pairs in their groups.
        work: (32, 3) scratch.
        vectors: (4, V) scratch.
        motion: of the bodies.
    """

    velocities: Array
    efforts: Array
    gaps: Array
    forces: Array
    gradient: Array
    band: Array
    forward: Array
    backward: Array
    jacobians: Array
    partial: Array
    placed: Array
    shares: Array
    work: Array
    vectors: Array
    motion: Motion


def evaluation_arrays(tree: Tree, contacts: Contacts, steps: int) -> Evaluation:
    """Empty arrays for trajectories of so many steps."""
    count, pairs = len(tree.bodies), len(contacts.pairs)
    return Evaluation(
        np.zeros((steps, count)), np.zeros((steps, count)), np.zeros((steps, pairs)), np.zeros((steps, pairs)),
        np.zeros((steps, count)), np.zeros((steps * count, 3 * count)), np.zeros((steps + 1, count, count)),
        np.zeros((steps + 1, count, count)), np.zeros((3, count, count)), np.zeros((3, count, count)),
        np.zeros((len(contacts.kinds), 4, 4)), np.zeros(pairs), np.zeros((WORK, 3)), np.zeros((4, count)),
        motion_arrays(tree),
    )  # fmt: skip


@lean_njit
def _difference_jacobians(tree, difference, forward, backward):  # type: ignore[no-untyped-def]
    """How second ⊖ first moves with second and with first, (V, V) each."""
    count = len(tree.bodies)
    for r in range(count):
        for k in range(count):
            forward[r, k] = 1.0 if r == k else 0.0
            backward[r, k] = -1.0 if r == k else 0.0
    for b in range(len(tree.parents)):
        if tree.kinds[b] == BALL:
            v = tree.first_velocity[b]
            inverse_right_jacobian(difference[v : v + 3], 1.0, forward[v : v + 3, v : v + 3])
            inverse_right_jacobian(difference[v : v + 3], -1.0, backward[v : v + 3, v : v + 3])
            for r in range(v, v + 3):
                for k in range(v, v + 3):
                    backward[r, k] = -backward[r, k]


@lean_njit
def _add_term(evaluation, t, depth, weights, residual):  # type: ignore[no-untyped-def]
    """Add gradient and Hessian of ½ |residual|² at time t, which q_t to q_{t - depth + 1} move by the Jacobians."""
    count, last = len(residual), 3 * len(residual) - 1
    for m in range(count):
        if weights[m] == 0.0:
            continue
        for first in range(min(depth, t + 1)):
            row = (t - first) * count
            for i in range(count):
                scaled = weights[m] * evaluation.jacobians[first, m, i]
                if scaled == 0.0:
                    continue
                evaluation.gradient[t - first, i] += scaled * residual[m]
                for second in range(first, min(depth, t + 1)):
                    # Of a block on the diagonal only its lower half.
                    start = last + (first - second) * count - i
                    for j in range(i + 1 if first == second else count):
                        evaluation.band[row + i, start + j] += scaled * evaluation.jacobians[second, m, j]


@lean_njit
def _add_gap(tree, contacts, task, evaluation, t, pair, derivatives):  # type: ignore[no-untyped-def]
    """Cost of a pair's overlap or distance."""
    excess, weight = evaluation.gaps[t, pair] - task.free_overlap, task.overlap_weight
    if excess >= 0.0:
        excess, weight = max(evaluation.gaps[t, pair], 0.0), task.attraction[pair]
    if excess == 0.0 or weight == 0.0:
        return 0.0
    if derivatives:
        count, slope, normal, wrench = len(tree.bodies), evaluation.vectors[3], evaluation.work[0], evaluation.work[1:3]
        gap_of_pair(contacts, pair, evaluation.placed, -np.inf, normal, evaluation.work[4:7], evaluation.work[24:32])
        wrench[:] = 0.0
        add_normal(normal, evaluation.placed[contacts.pairs[pair, 1], :3, 3], 1.0, wrench)
        fill_slope(tree, contacts, pair, evaluation.motion, wrench, slope)
        last = 3 * count - 1
        for i in range(count):
            if slope[i] == 0.0:
                continue
            evaluation.gradient[t, i] += weight * excess * slope[i]
            for j in range(i + 1):
                evaluation.band[t * count + i, last + j - i] += weight * slope[i] * slope[j]
    return 0.5 * weight * excess**2


@lean_njit
def evaluate(tree, contacts, task, positions, evaluation, derivatives):  # type: ignore[no-untyped-def]
    """Cost of positions (N, Q); fills the evaluation, gradient and Hessian only if asked."""
    steps, count, h = len(positions), len(tree.bodies), task.step
    error, acceleration = evaluation.vectors[0], evaluation.vectors[1]
    by_position, by_velocity, mass = evaluation.partial[0], evaluation.partial[1], evaluation.partial[2]
    last = 3 * count - 1
    cost = 0.0
    if derivatives:
        for r in range(steps):
            for k in range(count):
                evaluation.gradient[r, k] = 0.0
        for r in range(steps * count):
            for k in range(3 * count):
                evaluation.band[r, k] = 0.0
    for t in range(steps):
        here = positions[t]
        before = positions[t - 1] if t > 0 else task.position
        velocity = evaluation.velocities[t]
        velocity_before = evaluation.velocities[t - 1] if t > 0 else task.velocity
        subtract(tree, here, before, velocity)
        if derivatives:
            _difference_jacobians(tree, velocity, evaluation.forward[t], evaluation.backward[t])
        for k in range(count):
            velocity[k] /= h
            acceleration[k] = (velocity[k] - velocity_before[k]) / h
        motion = evaluation.motion
        place(tree, here, motion)
        move_bodies(tree, motion, velocity, acceleration)
        effort = evaluation.efforts[t]
        inverse_dynamics(tree, velocity, effort, motion, by_position, by_velocity, mass, derivatives)
        place_shapes(contacts, motion.poses, evaluation.placed)
        fill_gaps(contacts, evaluation.placed, evaluation.work, evaluation.gaps[t])
        for group in range(len(contacts.groups) - 1):
            first, behind_last = contacts.groups[group], contacts.groups[group + 1]
            least = share_group(
                tree, contacts, first, behind_last, task.law, motion, evaluation.placed, evaluation.gaps[t],
                evaluation.work, evaluation.shares, evaluation.vectors[2], derivatives,
            )  # fmt: skip
            for pair in range(first, behind_last):
                evaluation.forces[t, pair] = 0.0
                gap = evaluation.gaps[t, pair]
                # Share and force fall with the gap, each by exp(−φ/σ).
                if max(gap, 0.0) + gap - least <= REACH * task.law[1]:
                    share = evaluation.shares[pair]
                    _, evaluation.forces[t, pair] = add_pair(
                        tree, contacts, pair, share, evaluation.vectors[2], task.law, motion, evaluation.placed, effort,
                        by_position, by_velocity, evaluation.work, derivatives,
                    )  # fmt: skip
                if gap < task.free_overlap or task.attraction[pair] > 0.0:
                    cost += _add_gap(tree, contacts, task, evaluation, t, pair, derivatives)
        # Positions.
        subtract(tree, here, task.goals[t], error)
        for k in range(count):
            cost += 0.5 * task.position_weights[t, k] * error[k] ** 2
            cost += 0.5 * task.velocity_weights[t, k] * velocity[k] ** 2
        if derivatives:
            _difference_jacobians(tree, error, evaluation.jacobians[0], evaluation.jacobians[1])
            _add_term(evaluation, t, 1, task.position_weights[t], error)
        for b in range(len(tree.parents)):
            k, q = tree.first_velocity[b], tree.first_position[b]
            if tree.kinds[b] > 1:
                continue
            beyond = here[q] - min(max(here[q], task.lower[k]), task.upper[k])
            if beyond != 0.0:
                cost += 0.5 * task.limit_weight * beyond**2
                if derivatives:
                    evaluation.gradient[t, k] += task.limit_weight * beyond
                    evaluation.band[t * count + k, last] += task.limit_weight
        for k in range(count):
            error[k] = effort[k] - task.efforts[t, k]
            cost += 0.5 * task.effort_weights[t, k] * error[k] ** 2
        if not derivatives:
            continue
        # Velocities: forward / h by q_t, backward / h by q_{t-1}.
        ahead, behind, earlier = evaluation.jacobians[0], evaluation.jacobians[1], evaluation.jacobians[2]
        for r in range(count):
            for k in range(count):
                ahead[r, k], behind[r, k] = evaluation.forward[t, r, k] / h, evaluation.backward[t, r, k] / h
        _add_term(evaluation, t, 2, task.velocity_weights[t], velocity)
        # Efforts: v_t as above, a_t = (v_t − v_{t-1}) / h. What is moved of v_{t-1} has its own Jacobians.
        for r in range(count):
            for k in range(count):
                total0, total1, total2 = by_position[r, k], 0.0, 0.0
                for m in range(count):
                    rate = by_velocity[r, m] + mass[r, m] / h
                    total0 += rate * evaluation.forward[t, m, k] / h
                    total1 += rate * evaluation.backward[t, m, k] / h
                    if t > 0:
                        total1 -= mass[r, m] * evaluation.forward[t - 1, m, k] / h**2
                        total2 -= mass[r, m] * evaluation.backward[t - 1, m, k] / h**2
                ahead[r, k], behind[r, k], earlier[r, k] = total0, total1, total2
        _add_term(evaluation, t, 3, task.effort_weights[t], error)
    return cost


@njit(cache=True, nogil=True)
def deepest_overlap(tree, contacts, positions, between, evaluation):  # type: ignore[no-untyped-def]
    """Deepest overlap [m] of positions (N + 1, Q), at the times and so many times between; 0 for none."""
    step, moved, deepest = np.empty(len(tree.bodies)), positions[0].copy(), 0.0
    for t in range(len(positions) - 1):
        subtract(tree, positions[t + 1], positions[t], step)
        step /= between + 1
        moved[:] = positions[t]
        for _ in range(between + 1):
            add(tree, moved, step, moved)
            place(tree, moved, evaluation.motion)
            place_shapes(contacts, evaluation.motion.poses, evaluation.placed)
            fill_gaps(contacts, evaluation.placed, evaluation.work, evaluation.gaps[0])
            for pair in range(len(contacts.pairs)):
                deepest = max(deepest, -evaluation.gaps[0, pair])
    return deepest
