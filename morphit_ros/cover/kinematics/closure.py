"""Loop closure in rotations only: one 3-vector equation a face, the formulation that runs.

Around a face the way from corner to corner must end where it began. With the position of a neighbour from
``p_b = p_a + l (R_a + R_b) e`` all positions cancel, and half a pitch can be divided out:

    r = sum over the corners of R_k s_k = 0,    s = (1, 1, 0), (1, -1, 0), (-1, 1, 0), (-1, -1, 0)
    dr/dt = -sum over the corners of (R_k s_k) x omega_k

At 20 x 20 these are 1083 equations in 1197 unknowns instead of 2286 in 2400, and their smallest singular value is 60
times greater: positions no longer add up small angles along the cover. A bridge between fixed nodes that are not
neighbours is an equation of the same form along a path. Beside fixed nodes in a straight line some of the equations
repeat each other and are replaced (`morphit_ros.cover.kinematics.hinges`).
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
from scipy.linalg import solveh_banded
from scipy.sparse import coo_array, csc_array, eye
from scipy.sparse.linalg import splu

from morphit_ros.cover.kinematics.hinges import (
    STRAIGHT,
    fill_hinge_vectors,
    replace_hinge_residuals,
    straight_hinges,
    straighten_mounts,
)
from morphit_ros.cover.model import Cover, Indices
from morphit_ros.cover.state import CoverState, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

CORNER_SIGNS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
# A face is closed to this [m]: gaps of joints, that many faces away from the tree of positions, stay below 1e-8.
GAP_TOLERANCE = 1e-10
# Covers of more nodes are so nearly singular on any surface that turns of whole lines close the last gaps: what still
# is open then counts as closed below this [m].
_LARGE, _LARGE_GAP = 1600, 1e-7
_MOST_ITERATIONS = 60
# Greatest turn of a node in one step of the projection [rad]: beyond, the linearisation says little.
_LONGEST_STEP = 0.3


def face_residuals(cover: Cover, rotations: Array) -> Array:
    """(3 F,) what is open at each face, in half pitches; at hinges what replaces it."""
    residuals = np.empty(3 * len(cover.open_faces))
    fill_closure_residuals(cover, rotations, residuals)
    return residuals


def fill_closure_residuals(cover: Cover, rotations: Array, residuals: Array) -> None:
    """`face_residuals` into an array that is there."""
    fill_face_residuals(rotations, cover.open_faces, residuals)
    if len(cover.hinges):
        replace_hinge_residuals(rotations, straight_hinges(rotations, cover.hinges, STRAIGHT), residuals)


def closure_matrix(cover: Cover, rotations: Array) -> csc_array:
    """(3 F + 3 B, 3 N) sparse: rates of the residuals of faces and bridges from angular velocities of all nodes."""
    faces = cover.open_faces
    arms = np.einsum("fcij,cj->fci", rotations[faces][..., :2], CORNER_SIGNS)
    blocks = [_skew_blocks(np.repeat(np.arange(len(faces)), 4), faces.ravel(), arms.reshape(-1, 3))]
    for number, path in enumerate(cover.fixed_bridges):
        nodes, arms = _path_arms(cover, path, rotations)
        blocks.append(_skew_blocks(np.full(len(nodes), len(faces) + number), nodes, arms))
    rows, cols, values = (np.concatenate([block[part] for block in blocks]) for part in range(3))
    shape = (3 * (len(faces) + len(cover.fixed_bridges)), 3 * cover.node_count)
    matrix = csc_array(coo_array((values, (rows, cols)), shape=shape))
    hinges = straight_hinges(rotations, cover.hinges, STRAIGHT)
    return _with_hinges(matrix, rotations, hinges) if len(hinges) else matrix


def _with_hinges(matrix: csc_array, rotations: Array, hinges: Indices) -> csc_array:
    """Rows along the directions of hinges replaced by what the hinges demand."""
    vectors = np.empty((len(hinges), 2, 3))
    fill_hinge_vectors(rotations, hinges, vectors)
    directions, outward = vectors[:, 0], vectors[:, 1]

    def blocks(first: Array, second: Array, nodes: np.ndarray, shape: tuple[int, int]) -> csc_array:
        """Sum of the outer products at (face, node)."""
        rows = np.broadcast_to(3 * hinges[:, 0, None, None] + np.arange(3)[:, None], (len(hinges), 3, 3))
        cols = np.broadcast_to(3 * nodes[:, None, None] + np.arange(3), (len(hinges), 3, 3))
        values = first[:, :, None] * second[:, None, :]
        return csc_array(coo_array((values.ravel(), (rows.ravel(), cols.ravel())), shape=shape))

    count = matrix.shape[0]
    kept = csc_array(eye(count)) - blocks(directions, directions, hinges[:, 0], (count, count))
    return csc_array(kept @ matrix - blocks(directions, outward, hinges[:, 1], matrix.shape))


def free_columns(cover: Cover) -> np.ndarray:
    """Columns of `closure_matrix` of nodes that can move."""
    nodes = np.flatnonzero(~cover.is_fixed)
    return np.asarray(3 * nodes[:, None] + np.arange(3)).ravel()


def bridge_matrix(cover: Cover, rotations: Array) -> Array:
    """(3 B, 3 N) the rows of bridges alone, dense."""
    matrix = np.zeros((3 * len(cover.fixed_bridges), 3 * cover.node_count))
    for number, path in enumerate(cover.fixed_bridges):
        for node, arm in zip(*_path_arms(cover, path, rotations), strict=True):
            rows, cols = slice(3 * number, 3 * number + 3), slice(3 * node, 3 * node + 3)
            matrix[rows, cols] += [[0, arm[2], -arm[1]], [-arm[2], 0, arm[0]], [arm[1], -arm[0], 0]]
    return matrix


def bridge_residuals(cover: Cover, rotations: Array, lengths: Array) -> Array:
    """(3 B,) how far each bridge is from the (B, 3) vectors that the fixed nodes keep, in half pitches."""
    residuals = [
        _path_arms(cover, path, rotations)[1].sum(axis=0) - length
        for path, length in zip(cover.fixed_bridges, lengths, strict=True)
    ]
    return np.concatenate(residuals) if residuals else np.empty(0)


def bridge_lengths(cover: Cover, rotations: Array) -> Array:
    """(B, 3) vectors between the fixed nodes that bridges join, in half pitches."""
    vectors = [_path_arms(cover, path, rotations)[1].sum(axis=0) for path in cover.fixed_bridges]
    return np.array(vectors).reshape(-1, 3)


def close_loops(cover: Cover, state: CoverState, bridges: Array | None = None, hold_fixed: bool = True) -> CoverState:
    """The nearby configuration whose joints are closed (least turns of the nodes, damped Gauss-Newton).

    Args:
        state: nearly closed.
        bridges: (B, 3) vectors between fixed nodes [half pitches]; by default those of `state`, see `bridge_lengths`.
        hold_fixed: false lets fixed nodes other than the father turn with the rest, to find where they can be mounted;
            nearly straight lines of fixed nodes are then made straight.

    Raises:
        InvalidInputError: no closed configuration is near.
    """
    if not hold_fixed:
        alone = replace(cover, fixed_nodes=(cover.father,), motors=np.empty((0, 2), dtype=np.int64))
        state = close_loops(alone, state)
        mounted = state.rotations.copy()
        if not straighten_mounts(cover, mounted):
            return state
        state, bridges = CoverState(mounted, state.origin), None
    lengths = bridge_lengths(cover, state.rotations) if bridges is None else bridges
    rotations = state.rotations.copy()
    columns = free_columns(cover)
    residual = _residuals(cover, rotations, lengths)
    damping = 1e-3
    for _ in range(_MOST_ITERATIONS):
        size = float(np.abs(residual).max(initial=0.0))
        if 0.5 * cover.pitch * size < GAP_TOLERANCE:
            return CoverState(rotations, state.origin)
        matrix = closure_matrix(cover, rotations)[:, columns]
        # The damping falls with the residual: quadratic convergence at the end.
        gram = csc_array(matrix @ matrix.T + min(damping, size) * damping * csc_array(eye(matrix.shape[0])))
        turns = np.zeros(3 * cover.node_count)
        turns[columns] = -(matrix.T @ _solved_gram(cover, gram, residual))
        turns *= min(1.0, _LONGEST_STEP / float(np.abs(turns).max(initial=1e-12)))
        tried = np.empty_like(rotations)
        rotate(rotations, turns, tried)
        remaining = _residuals(cover, tried, lengths)
        if np.linalg.norm(remaining) < np.linalg.norm(residual):
            rotations, residual, damping = tried, remaining, max(damping / 8.0, 1e-7)
        else:
            damping *= 8.0
            if damping > 1e3:
                break
    gap = 0.5 * cover.pitch * float(np.abs(residual).max())
    if cover.node_count > _LARGE and gap < _LARGE_GAP:
        return CoverState(rotations, state.origin)
    raise InvalidInputError(
        "state", f"joints {gap:.2e} m open after projection", f"a state near one closed within {GAP_TOLERANCE:g} m",
        "Give node poses that belong together.",
    )  # fmt: skip


def _solved_gram(cover: Cover, gram: csc_array, residual: Array) -> Array:
    """``gram^-1 residual``: banded when faces go along the shorter side, but for the rows of bridges."""
    if not cover.fixed_bridges:
        faces = cover.open_faces[:, 0]
        order = (
            np.lexsort((faces // cover.cols, faces % cover.cols)) if cover.cols > cover.rows else np.arange(len(faces))
        )
        places = np.empty(len(faces), dtype=np.int64)
        places[order] = np.arange(len(faces))
        entries = coo_array(gram)
        rows, cols = (3 * places[index // 3] + index % 3 for index in entries.coords)
        below = rows >= cols
        banded = np.zeros((int((rows - cols)[below].max(initial=0)) + 1, 3 * len(faces)))
        banded[(rows - cols)[below], cols[below]] = entries.data[below]
        at = (3 * order[:, None] + np.arange(3)).ravel()
        with contextlib.suppress(np.linalg.LinAlgError):
            solved = np.empty(len(residual))
            solved[at] = solveh_banded(banded, residual[at], lower=True)
            return solved
    return np.asarray(splu(gram, permc_spec="MMD_AT_PLUS_A").solve(residual))


def _residuals(cover: Cover, rotations: Array, lengths: Array) -> Array:
    return np.concatenate([face_residuals(cover, rotations), bridge_residuals(cover, rotations, lengths)])


def _path_arms(cover: Cover, path: np.ndarray, rotations: Array) -> tuple[np.ndarray, Array]:
    """Nodes and vectors [half pitches] whose sum is the way along a path."""
    nodes, arms = [], []
    for a, b in itertools.pairwise(path):
        step = int(b - a)
        axis, sign = (0, float(step)) if a // cover.cols == b // cover.cols else (1, -float(np.sign(step)))
        for node in (int(a), int(b)):
            nodes.append(node)
            arms.append(sign * rotations[node, :, axis])
    return np.array(nodes), np.array(arms)


def _skew_blocks(equations: np.ndarray, nodes: np.ndarray, arms: Array) -> tuple[np.ndarray, np.ndarray, Array]:
    """Entries of -[arm]x at (equation, node)."""
    rows = 3 * equations[:, None] + np.array([0, 0, 1, 1, 2, 2])
    cols = 3 * nodes[:, None] + np.array([1, 2, 0, 2, 0, 1])
    x, y, z = arms.T
    return rows.ravel(), cols.ravel(), np.stack([z, -y, -z, x, y, -x], axis=1).ravel()


@njit(cache=True, nogil=True, error_model="numpy")
def fill_face_residuals(rotations, faces, residuals):  # type: ignore[no-untyped-def]
    """What is open at each face (3 F,), in half pitches."""
    for f in range(len(faces)):
        a, b, c, d = faces[f, 0], faces[f, 1], faces[f, 2], faces[f, 3]
        for i in range(3):
            residuals[3 * f + i] = (
                rotations[a, i, 0] + rotations[a, i, 1] + rotations[b, i, 0] - rotations[b, i, 1]
                - rotations[c, i, 0] + rotations[c, i, 1] - rotations[d, i, 0] - rotations[d, i, 1]
            )  # fmt: skip
