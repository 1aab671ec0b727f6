"""One picture of a cloth's motion in substeps, compiled: forces within, then contact, which has the last word."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.cloth.certified import find_dents
from morphit_ros.cloth.contact import collide
from morphit_ros.cloth.inner_forces import bend_columns, relax_columns, shear, tighten_columns, transpose
from morphit_ros.cloth.self_contact import separate
from morphit_ros.cloth.tree import mark_groups, refit
from morphit_ros.jit import lean_njit


class Constants(NamedTuple):
    """What does not change while a cloth moves.

    Attributes:
        pitch, gap: [m].
        dt: of a substep [s].
        stretch, shear, bend: compliances times mass by squared time, as `inner_forces` takes them.
        shear_limit: strain of diagonals.
        kept: share of the velocity that a substep leaves.
        gravity: [m/s²].
        friction: Coulomb's.
        floor, exact, meets_itself: what of contact there is.
        apart: of nodes that are no neighbours [m].
    """

    pitch: float
    gap: float
    dt: float
    stretch: float
    shear: float
    bend: float
    shear_limit: float
    kept: float
    gravity: float
    friction: float
    floor: bool
    exact: bool
    meets_itself: bool
    apart: float


class Workspace(NamedTuple):
    """Arrays to work with, of the sizes that the kernels ask for."""

    before: np.ndarray
    start: np.ndarray
    turned: np.ndarray
    turned_free: np.ndarray
    column_work: np.ndarray
    row_work: np.ndarray
    shares: np.ndarray
    levels: np.ndarray
    boxes_before: np.ndarray
    boxes: np.ndarray
    masks: np.ndarray
    planes: np.ndarray
    budgets: np.ndarray
    heads: np.ndarray
    following: np.ndarray
    cells: np.ndarray
    tree_stack: np.ndarray
    near: np.ndarray
    pending: np.ndarray
    stack: np.ndarray
    dented: np.ndarray
    sections: np.ndarray


@lean_njit(error_model="numpy")
def advance(x, v, free, shapes, poses, halves, still, reuse, constants, work, counts):  # type: ignore[no-untyped-def]
    """Move a cloth by one picture.

    Args:
        x, v: (3, rows, cols) positions [m] and velocities [m/s], changed.
        free: (rows, cols), 0 for nodes that are held, else 1.
        shapes: (substeps, S, 7) parameters of the superovoids during each substep.
        poses: (substeps + 1, S, 12) from before the first to after the last substep.
        halves: (substeps, S, 3) of the shapes' boxes [m].
        still: (S,) whether a shape stays as it is.
        reuse: (S,) for how far a node may move on a shape before its plane of contact is found anew [m]; negative to
            find it each time, for a shape that becomes another one.
        constants, work: see there.
        counts: (3,) as of `contact.collide`.
    """
    rows, cols = x.shape[1], x.shape[2]
    dt = constants.dt
    before, start = work.before, work.start
    for step in range(len(shapes)):
        for r in range(rows):
            for c in range(cols):
                for k in range(3):
                    velocity = v[k, r, c] * constants.kept
                    if k == 2:
                        velocity -= dt * constants.gravity
                    before[k, r, c] = start[k, r, c] = x[k, r, c]
                    x[k, r, c] += free[r, c] * dt * velocity
        transpose(x, work.turned)
        bend_columns(work.turned, work.turned_free, constants.bend, work.shares)
        tighten_columns(work.turned, work.turned_free, constants.pitch, constants.stretch, work.row_work)
        relax_columns(work.turned, work.turned_free, constants.pitch, constants.stretch)
        transpose(work.turned, x)
        bend_columns(x, free, constants.bend, work.shares)
        shear(x, free, constants.pitch * math.sqrt(2.0), constants.shear, constants.shear_limit, work.shares)
        tighten_columns(x, free, constants.pitch, constants.stretch, work.column_work)
        relax_columns(x, free, constants.pitch, constants.stretch)
        if constants.meets_itself:
            separate(x, free, constants.apart, work.heads, work.following, work.cells)
        refit(start, work.levels, work.boxes_before)
        refit(x, work.levels, work.boxes)
        mark_groups(
            work.levels, work.boxes_before, work.boxes, poses[step], poses[step + 1], halves[step], constants.pitch,
            work.masks, work.tree_stack,
        )  # fmt: skip
        for s in range(shapes.shape[1] if constants.exact else 0):
            if step == 0 or reuse[s] < 0.0:
                work.dented[s] = find_dents(shapes[step, s], work.sections[s])
        collide(
            x, before, start, free, work.masks, work.levels[0, 2], shapes[step], work.dented, work.sections,
            poses[step], poses[step + 1], halves[step], still, reuse, work.planes, work.budgets, constants.gap,
            constants.floor, constants.friction, constants.exact, work.near, work.pending, work.stack, counts,
        )  # fmt: skip
        for r in range(rows):
            for c in range(cols):
                for k in range(3):
                    v[k, r, c] = free[r, c] * (x[k, r, c] - before[k, r, c]) / dt
