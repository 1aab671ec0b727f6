"""The running formulation against maximal coordinates, and what closure means."""

from __future__ import annotations

import numpy as np
import pytest
from cover_samples import bowl, published, random_rotation
from scipy.spatial.transform import Rotation

from morphit_bench.cover import maximal
from morphit_bench.cover.folds import beside_mount, flap, fold, least_remainder, tilt, tilt_of_flap, wander
from morphit_ros.cover import Cover, CoverState
from morphit_ros.cover.actuation.motors import motor_rates
from morphit_ros.cover.control.limits import fill_fold_rates, fill_joint_rates, fold_cosines
from morphit_ros.cover.goals.targets import HeightTarget
from morphit_ros.cover.kinematics.closure import (
    bridge_residuals,
    close_loops,
    closure_matrix,
    face_residuals,
    free_columns,
)
from morphit_ros.cover.kinematics.hinges import STRAIGHT, straight_hinges
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.kinematics.start import lay_on_surface, roll
from morphit_ros.cover.state import fill_velocities, flat_state, joint_gap, rotate, worst_gap
from morphit_ros.errors import InvalidInputError

SMALL = [
    (2, 2, (0,)),
    (3, 3, (0,)),
    (4, 3, (5,)),
    (3, 5, (7,)),
    (1, 4, (0,)),
    (5, 1, (2,)),
    (4, 4, (0, 1)),
    (4, 4, (0, 15)),
]
# Fixed nodes in a straight line: a column inside, a row inside, a column at the border, five in a row.
STRAIGHT_MOUNTS = [
    (4, 4, (1, 5, 9, 13), 4),
    (5, 4, (5, 6, 7), 2),
    (3, 4, (0, 4, 8), 1),
    (3, 6, (6, 7, 8, 9, 10), 6),
]


def turned(state: CoverState, turns: np.ndarray) -> CoverState:
    rotations = np.empty_like(state.rotations)
    rotate(state.rotations, turns, rotations)
    return CoverState(rotations, state.origin)


@pytest.mark.parametrize(("name", "dof"), [("3x3", 12), ("4x8", 21), ("8x8", 42), ("20x20", 114)])
def test_published_start_has_the_papers_degrees_of_freedom(name: str, dof: int) -> None:
    cover, state = published(name)
    basis = NullSpaceSolver(cover).basis(state.rotations)
    assert basis.shape[1] == dof == cover.expected_dof == len(cover.motors)
    assert np.abs(closure_matrix(cover, state.rotations) @ basis).max() < 1e-12
    assert worst_gap(cover, state) < 1e-8


@pytest.mark.parametrize(("rows", "cols", "dof"), [(3, 3, 13), (8, 8, 78)])
def test_flat_cover_is_singular(rows: int, cols: int, dof: int) -> None:
    cover = Cover(rows, cols)
    assert NullSpaceSolver(cover).basis(flat_state(cover).rotations).shape[1] == dof
    jacobian = maximal.constraint_jacobian(cover, flat_state(cover))
    assert maximal.null_space(jacobian, 1e-9).shape[1] == dof


@pytest.mark.parametrize(("rows", "cols", "fixed"), SMALL)
def test_null_space_equals_that_of_maximal_coordinates(rows: int, cols: int, fixed: tuple[int, ...]) -> None:
    cover, state = bowl(rows, cols, fixed, motors=False)
    reference = maximal.null_space(maximal.constraint_jacobian(cover, state), 1e-9)
    basis = NullSpaceSolver(cover).basis(state.rotations)
    assert basis.shape[1] == reference.shape[1] == cover.expected_dof
    rates = reference.reshape(cover.node_count, 6, -1)[:, 3:].reshape(3 * cover.node_count, -1)
    orthonormal = np.linalg.qr(basis)[0]
    np.testing.assert_allclose(orthonormal @ (orthonormal.T @ rates), rates, atol=1e-9)
    # The same motions have the same velocities of nodes and the same relative rates.
    weights = np.linalg.lstsq(basis, rates, rcond=None)[0]
    velocities = np.empty_like(basis)
    fill_velocities(state.rotations, basis, cover.father, rows, cols, cover.pitch, velocities)
    expected = reference.reshape(cover.node_count, 6, -1)[:, :3].reshape(3 * cover.node_count, -1)
    np.testing.assert_allclose(velocities @ weights, expected, atol=1e-9)
    rows_of_rates = np.empty((3 * cover.joint_count, basis.shape[1]))
    fill_joint_rates(state.rotations, cover.joints, np.ascontiguousarray(cover.joint_frames), basis, 1.0, rows_of_rates)
    np.testing.assert_allclose(rows_of_rates @ weights, maximal.rate_map(cover, state) @ reference, atol=1e-9)


@pytest.mark.parametrize(("rows", "cols", "fixed"), SMALL)
def test_closure_matrix_is_the_derivative_of_the_residuals(rows: int, cols: int, fixed: tuple[int, ...]) -> None:
    cover, state = bowl(rows, cols, fixed, motors=False)
    rng = np.random.default_rng(0)
    turns = np.zeros(3 * cover.node_count)
    turns[free_columns(cover)] = rng.normal(size=len(free_columns(cover)))
    step = 1e-6
    lengths = np.zeros((len(cover.fixed_bridges), 3))

    def residuals(scale: float) -> np.ndarray:
        rotations = turned(state, scale * turns).rotations
        return np.concatenate([face_residuals(cover, rotations), bridge_residuals(cover, rotations, lengths)])

    slope = (residuals(step) - residuals(-step)) / (2.0 * step)
    np.testing.assert_allclose(closure_matrix(cover, state.rotations) @ turns, slope, atol=1e-8)


def held_straight(rows: int, cols: int, fixed: tuple[int, ...]) -> tuple[Cover, CoverState]:
    """A cover that bends across its straight line of fixed nodes."""
    line_is_column = fixed[1] - fixed[0] == cols
    surface = HeightTarget("-2*x**2 + 3*x**3" if line_is_column else "-2*y**2 + 3*y**3")
    cover = Cover(rows, cols, fixed_nodes=fixed)
    return cover, lay_on_surface(cover, surface)


@pytest.mark.parametrize(("rows", "cols", "fixed", "count"), STRAIGHT_MOUNTS)
def test_hinges_beside_a_straight_line_of_fixed_nodes(rows: int, cols: int, fixed: tuple[int, ...], count: int) -> None:
    """Equations with hinges are the derivative of their residuals, of full rank, and their motions stay closed."""
    cover, state = held_straight(rows, cols, fixed)
    assert len(cover.hinges) == count
    columns = free_columns(cover)
    matrix = closure_matrix(cover, state.rotations)
    singular = np.linalg.svd(matrix[:, columns].toarray(), compute_uv=False)
    rng = np.random.default_rng(5)
    turns = np.zeros(3 * cover.node_count)
    turns[columns] = rng.normal(size=len(columns))
    ends = [face_residuals(cover, turned(state, step * turns).rotations) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(matrix @ turns, (ends[0] - ends[1]) / 2e-6, atol=1e-8)
    # Motions by elimination: as many as degrees of freedom, all closed, and they solve the same equations.
    space = NullSpaceSolver(cover).solve(state.rotations)
    assert space.basis.shape[1] == cover.expected_dof == len(columns) - (singular > 1e-7).sum()
    assert np.abs(matrix @ space.basis).max() < 1e-12
    residuals = rng.normal(size=3 * len(cover.open_faces))
    np.testing.assert_allclose(matrix @ space.close(residuals), -residuals, atol=1e-9)
    # A step along any of them, closed again by hinges' equations, keeps all joints closed.
    moved = close_loops(cover, turned(state, 0.02 * space.basis @ rng.uniform(-1.0, 1.0, space.basis.shape[1])))
    assert np.linalg.norm(moved.rotations - state.rotations) > 0.01
    assert worst_gap(cover, moved) < 1e-8
    for node, middle, along in cover.hinges[:, [1, 3, 7]]:
        np.testing.assert_allclose(moved.rotations[node, :, along], state.rotations[middle, :, along], atol=1e-7)


def test_loop_closure_alone_sees_motions_that_a_straight_column_forbids() -> None:
    """The maximal equations have four null vectors more; what they promise opens joints to second order."""
    cover = Cover(4, 8, 0.046, (4, 12, 20, 28))
    state = roll(cover, np.radians(-45.0))
    reference = maximal.null_space(maximal.constraint_jacobian(cover, state), 1e-9)
    assert reference.shape[1] == 25
    assert NullSpaceSolver(cover).basis(state.rotations).shape[1] == 21


def test_bent_lines_of_fixed_nodes_are_no_hinges() -> None:
    cover = Cover(4, 4, fixed_nodes=(1, 5, 9))
    state = lay_on_surface(cover, HeightTarget("-3*x**2 - 4*y**2"))
    assert len(straight_hinges(state.rotations, cover.hinges, STRAIGHT)) == 0
    assert NullSpaceSolver(cover).basis(state.rotations).shape[1] == cover.expected_dof


def test_closing_takes_first_order_gaps_away() -> None:
    cover, state = bowl(5, 4)
    space = NullSpaceSolver(cover).solve(state.rotations)
    residuals = np.random.default_rng(1).normal(size=3 * len(cover.open_faces))
    np.testing.assert_allclose(closure_matrix(cover, state.rotations) @ space.close(residuals), -residuals, atol=1e-10)


def test_projection_closes_joints_and_moves_little() -> None:
    cover, state = bowl(5, 6)
    rng = np.random.default_rng(2)
    turns = np.zeros(3 * cover.node_count)
    turns[free_columns(cover)] = rng.normal(0.0, 0.01, len(free_columns(cover)))
    opened = turned(state, turns)
    assert worst_gap(cover, opened) > 1e-4
    closed = close_loops(cover, opened)
    assert worst_gap(cover, closed) < 1e-8
    assert np.linalg.norm(closed.rotations - opened.rotations) < 2.0 * np.linalg.norm(
        opened.rotations - state.rotations
    )


def test_everything_moves_with_the_world() -> None:
    cover, state = bowl(4, 5)
    turn = random_rotation(3)
    moved = CoverState(np.ascontiguousarray(turn @ state.rotations), turn @ state.origin + [1.0, 2.0, 3.0])
    np.testing.assert_allclose(moved.positions(cover), state.positions(cover) @ turn.T + [1.0, 2.0, 3.0], atol=1e-12)
    basis = NullSpaceSolver(cover).basis(state.rotations)
    spun = np.einsum("ij,njk->nik", turn, basis.reshape(cover.node_count, 3, -1)).reshape(basis.shape)
    np.testing.assert_allclose(closure_matrix(cover, moved.rotations) @ spun, 0.0, atol=1e-12)
    # Motor rates are relative and in joint frames: they don't know the world.
    np.testing.assert_allclose(
        motor_rates(cover, moved.rotations, spun), motor_rates(cover, state.rotations, basis), atol=1e-12
    )


def test_fold_rates_are_derivatives_of_cosines() -> None:
    cover, state = bowl(3, 4)
    turns = np.random.default_rng(4).normal(size=(3 * cover.node_count, 1))
    joints = np.arange(cover.joint_count)
    rates = np.empty((cover.joint_count, 1))
    fill_fold_rates(state.rotations, cover.joints, cover.joint_along_column, joints, turns, 1.0, rates)
    ends = []
    for step in (1e-6, -1e-6):
        cosines = np.empty(cover.joint_count)
        fold_cosines(turned(state, step * turns[:, 0]).rotations, cover.joints, cover.joint_along_column, cosines)
        ends.append(cosines)
    np.testing.assert_allclose(rates[:, 0], (ends[0] - ends[1]) / 2e-6, atol=1e-8)


def test_joint_gap_sees_an_open_joint() -> None:
    cover, state = bowl(3, 3)
    positions = state.positions(cover)
    assert joint_gap(cover, state.rotations, positions) < 1e-8
    positions[4, 2] += 1e-3
    assert joint_gap(cover, state.rotations, positions) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"rows": 1, "cols": 1}, "rows x cols"),
        ({"rows": 0, "cols": 5}, "rows x cols"),
        ({"rows": 1000, "cols": 1000}, "rows x cols"),
        ({"rows": 2, "cols": 2, "pitch": 0.0}, "pitch"),
        ({"rows": 2, "cols": 2, "pitch": float("nan")}, "pitch"),
        ({"rows": 2, "cols": 2, "fixed_nodes": ()}, "fixed_nodes"),
        ({"rows": 2, "cols": 2, "fixed_nodes": (0, 0)}, "fixed_nodes"),
        ({"rows": 2, "cols": 2, "fixed_nodes": (4,)}, "fixed_nodes"),
        ({"rows": 2, "cols": 2, "fixed_nodes": (0, 1, 2, 3)}, "fixed_nodes"),
        ({"rows": 2, "cols": 2, "range_of_motion": 4.0}, "range_of_motion"),
        ({"rows": 2, "cols": 2, "motors": [(4, 0)]}, "motors"),
        ({"rows": 2, "cols": 2, "motors": [(0, 3)]}, "motors"),
        ({"rows": 2, "cols": 2, "motors": [(0, 1), (0, 1)]}, "motors"),
    ],
)
def test_impossible_covers_are_refused(arguments: dict, name: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Cover(**arguments)
    assert refused.value.name == name


def test_the_fold_behind_a_strip_beside_a_mount_changes_sign_where_flaps_are_flat() -> None:
    """Between the signs lies one point, the apex of a cone: docs/covers.md, the paper's third shape of 4 x 8."""
    assert least_remainder() > 0.2
    cover = beside_mount()
    # Cylinders with that fold: of 9 motions, motors for which exist, there are 11 where it is zero.
    for angle, motions in ((0.2, 9), (0.0, 11), (-0.2, 9)):
        turned = np.cumsum([0.0, 0.25, angle, 0.15])
        cylinder = np.tile(Rotation.from_rotvec(np.outer(turned, [0.0, -1.0, 0.0])).as_matrix(), (4, 1, 1))
        assert fold(cylinder) == pytest.approx(angle, abs=1e-12)
        assert NullSpaceSolver(cover).basis(cylinder).shape[1] == motions
    line = cover.T_world_base[:3, 1]
    for angle in (0.3, -0.3):
        start = roll(cover, angle)
        np.testing.assert_allclose(fold(start.rotations), angle)
        for drift in (0.0, 0.7):
            way = list(wander(cover, start, seed=1, steps=120, drift=drift))
            assert len(way) > 100
            for rotations in way:
                # The strip's middle nodes turn about the mount's line as one: what the equations stand on.
                np.testing.assert_allclose(rotations[[5, 9], :, 1], [line, line], atol=1e-6)
                assert tilt(rotations) == pytest.approx(tilt_of_flap(rotations), abs=1e-7)
                assert tilt(rotations) > -1e-8
            folds = np.array([fold(rotations) for rotations in way])
            flaps = np.array([np.linalg.norm(flap(rotations)) for rotations in way])
            if drift:
                assert np.abs(folds).min() < 0.05
                assert flaps[np.abs(folds) < 0.02].max(initial=0.0) < 0.1
            else:
                assert (np.sign(folds) == np.sign(angle)).all()
                assert flaps.max() > 0.01
