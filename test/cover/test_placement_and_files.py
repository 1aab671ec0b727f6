"""Motor placement, start configurations, files."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from cover_samples import bowl, data_folder, published

from morphit_ros.cover import Cover, CoverController, StepStatus
from morphit_ros.cover.actuation.genetic import GeneticConfig, evolve_motors, sensitivity
from morphit_ros.cover.actuation.placement import (
    _candidates,
    candidate_rates,
    fill_torque_gains,
    judge_motors,
    neighbourhood,
    place_motors,
    worth,
)
from morphit_ros.cover.actuation.torques import holding_torques
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.files import cover_content, load_cover, read_cover, write_cover
from morphit_ros.cover.goals.targets import HeightTarget
from morphit_ros.cover.kinematics.start import lay_on_surface, roll
from morphit_ros.cover.state import flat_state, worst_gap
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError


def rows_of(cover: Cover) -> np.ndarray:
    return np.asarray(3 * cover.motors[:, 0] + cover.motors[:, 1])


@pytest.mark.parametrize("name", ["3x3", "4x8", "8x8", "20x20"])
def test_placement_beats_the_published_motors(name: str) -> None:
    cover, state = published(name)
    matrices = candidate_rates(cover, [state])
    given = judge_motors(rows_of(cover), matrices)
    placed = place_motors(cover, [state], nearby=1, starts=1 if name == "20x20" else 4)
    assert placed.spans
    assert len(placed.motors) == len(cover.motors)
    assert placed.most_on_a_joint == 1
    assert placed.log_determinants[0] > given.log_determinants[0]
    # As published: nearly all on the fold axis.
    assert placed.on_fold_axis >= len(placed.motors) - 3


@pytest.mark.parametrize(("name", "share"), [("3x3", 0.9), ("8x8", 0.9)])
def test_placement_can_weigh_what_motors_hold(name: str, share: float) -> None:
    cover, state = published(name)
    torques = []
    for weight in (0.0, 1.0):
        placed = place_motors(cover, [state], torque_weight=weight)
        assert placed.spans
        assert placed.most_on_a_joint == 1
        torques.append(holding_torques(cover.with_motors(placed.motors), state).greatest)
    assert torques[1] < share * torques[0]


def test_gains_of_a_swap_are_what_the_swap_brings() -> None:
    cover, state = bowl(3, 4)
    matrices, loads = _candidates(cover, [state])
    rates, chosen = matrices[0], rows_of(cover)
    table = np.linalg.solve(rates[chosen].T, rates.T)
    torques = np.linalg.solve(rates[chosen].T, loads[0])
    gains = np.empty_like(table)
    fill_torque_gains(np.ascontiguousarray(table), torques, gains)
    others = np.setdiff1d(np.arange(len(rates)), chosen)
    for motor, row in ((0, others[0]), (3, others[9]), (7, others[-1])):
        other = chosen.copy()
        other[motor] = row
        greatest = np.linalg.norm(np.linalg.solve(rates[other].T, loads[0]), axis=1).max()
        if abs(np.linalg.det(rates[other])) < 1e-9 * abs(np.linalg.det(rates[chosen])):
            continue
        expected = np.log(np.linalg.norm(torques, axis=1).max() / greatest)
        assert gains[motor, row] == pytest.approx(expected, abs=1e-9)


def test_large_covers_run_or_are_refused_with_the_reason() -> None:
    cover = Cover(30, 30)
    state = lay_on_surface(cover, HeightTarget("-0.27*(x**2 + 1.2*y**2)"))
    assert worst_gap(cover, state) < 1e-8
    cover = cover.with_motors(place_motors(cover, [state], nearby=0, starts=1).motors)
    found = CoverController(cover).step(state, HeightTarget("0.2*x*y"), 0.0)
    assert found.status is StepStatus.OK
    largest = Cover(60, 60)
    assert worst_gap(largest, lay_on_surface(largest, HeightTarget("-0.3*(x**2 + 1.2*y**2)"))) < 1e-6
    for rows, cols, reason in ((101, 101, "at most 10000 nodes. Time and memory"), (1, 500, "1497 motions")):
        with pytest.raises(InvalidInputError, match=reason):
            Cover(rows, cols)


@pytest.mark.parametrize("one_a_joint", [True, False])
@pytest.mark.parametrize("nearby", [0, 4])
@pytest.mark.parametrize("torque_weight", [0.0, 1.0])
def test_placement_is_the_best_of_all_choices_on_a_small_cover(
    one_a_joint: bool, nearby: int, torque_weight: float
) -> None:
    """Six motors on four joints: one a joint is two at most there."""
    for surface in ("-3*(x**2 + 1.3*y**2) + 2*x*y", "4*x*y"):
        cover = Cover(2, 2)
        state = lay_on_surface(cover, HeightTarget(surface))
        around = neighbourhood(cover, state, nearby, float(np.radians(5.0)), np.random.default_rng(0))
        matrices, loads = _candidates(cover, [state, *around])
        choices = np.array(list(combinations(range(matrices.shape[1]), cover.expected_dof)))
        if one_a_joint:
            choices = choices[[np.bincount(rows // 3).max() <= 2 for rows in choices]]
        spanning = np.linalg.slogdet(matrices[0][choices])[1] > -12.0
        best = max(worth(matrices, loads, rows, torque_weight) for rows in choices[spanning])
        placed = place_motors(
            cover, [state], one_a_joint=one_a_joint, nearby=nearby, torque_weight=torque_weight
        )  # fmt: skip
        assert worth(matrices, loads, rows_of(cover.with_motors(placed.motors)), torque_weight) == pytest.approx(
            best, abs=1e-9
        )


def test_placement_on_three_by_three_is_the_best_of_half_a_million() -> None:
    """One motor on each of the twelve joints: every choice of axes; 66 to 97 % of the best determinant before."""
    choices = np.array(list(product(range(3), repeat=10)))
    cover = Cover(3, 3)
    for surface in ("-7*(x**2 + y**2)", "-3*(x**2 + 1.3*y**2) + 2*x*y"):
        state = lay_on_surface(cover, HeightTarget(surface))
        rates = candidate_rates(cover, [state])[0]
        best = -np.inf
        for first in product(range(3), repeat=2):
            rows = 3 * np.arange(12) + np.concatenate([np.tile(first, (len(choices), 1)), choices], axis=1)
            best = max(best, float(np.linalg.slogdet(rates[rows])[1].max()))
        assert place_motors(cover, [state], nearby=0).log_determinants[0] == pytest.approx(best, abs=1e-9)


def test_genetic_algorithm_comes_near() -> None:
    cover, state = published("3x3")
    config = GeneticConfig(generations=300, patience=300, finalists=2)
    found = evolve_motors(cover, state, config, seed=1)
    again = evolve_motors(cover, state, config, seed=1)
    np.testing.assert_array_equal(found.motors, again.motors)
    assert len({tuple(motor) for motor in found.motors.tolist()}) == 12
    assert (
        found.log_determinants[0]
        > judge_motors(rows_of(cover), candidate_rates(cover, [state])).log_determinants[0] - 2
    )
    seeded = evolve_motors(cover, state, GeneticConfig(generations=20, patience=20, finalists=1, seeded=True), seed=1)
    assert seeded.log_determinants[0] >= place_motors(cover, [state], nearby=0).log_determinants[0] - 2.0


def test_sensitivity_is_the_slope_of_the_determinant() -> None:
    cover, state = bowl(3, 3)
    small, large = (sensitivity(cover, state, rows_of(cover), np.radians(angle)) for angle in (0.5, 1.0))
    assert 0.0 < small < np.inf
    assert small == pytest.approx(large, rel=0.1)


def test_neighbourhood_is_near_and_closed() -> None:
    cover, state = bowl(3, 4)
    around = neighbourhood(cover, state, 5, np.radians(5.0), np.random.default_rng(0))
    assert len(around) == 5
    for near in around:
        assert worst_gap(cover, near) < 1e-8
        turn = np.degrees(np.arccos(np.clip((near.normals() * state.normals()).sum(axis=1), -1, 1)))
        assert 0.1 < turn.max() < 40.0


def test_singular_configurations_get_no_motors() -> None:
    cover = Cover(3, 3)
    with pytest.raises(InvalidInputError, match="13 degrees of freedom"):
        place_motors(cover, [flat_state(cover)])
    with pytest.raises(InvalidInputError, match="none"):
        place_motors(cover, [])


@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (5, 4), (1, 6), (6, 1), (8, 8)])
def test_start_lies_on_its_surface(rows: int, cols: int) -> None:
    cover, surface = Cover(rows, cols), HeightTarget("-1.2*(x**2 + y**2)")
    state = lay_on_surface(cover, surface)
    assert worst_gap(cover, state) < 1e-8
    sample = surface.sample(state.positions(cover), 0.0)
    assert sample.distances.mean() < 0.01
    assert np.degrees(np.arccos(np.clip((sample.normals * state.normals()).sum(axis=1), -1, 1))).mean() < 12.0


def test_start_follows_the_base() -> None:
    base = np.eye(4)
    base[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    base[:3, 3] = [0.1, 0.2, 0.3]
    surface = HeightTarget("-2*x**2 - y**2")
    here, there = (lay_on_surface(Cover(4, 3, T_world_base=pose), surface) for pose in (np.eye(4), base))
    cover = Cover(4, 3)
    np.testing.assert_allclose(there.positions(cover), here.positions(cover) @ base[:3, :3].T + base[:3, 3], atol=1e-7)


def test_surfaces_that_hold_no_cover_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="surface"):
        lay_on_surface(Cover(4, 4), HeightTarget("sqrt(0.001 - x)"))
    with pytest.raises(InvalidInputError):
        lay_on_surface(Cover(6, 6), HeightTarget("0.1*sin(60*x)*sin(60*y)"))


def test_rolled_cover_keeps_its_mounts_straight() -> None:
    """An exact cylinder on a fixed column of four is regular: its inner neighbours are hinges (docs/covers.md)."""
    held = Cover(4, 8, 0.046, (4, 12, 20, 28))
    state = roll(held, np.radians(-45.0))
    assert candidate_rates(held, [state]).shape[2] == 21
    fixed = state.rotations[list(held.fixed_nodes)]
    np.testing.assert_array_equal(fixed, np.broadcast_to(fixed[0], fixed.shape))


@pytest.mark.parametrize("name", ["3x3", "8x8", "4x8"])
def test_cases_start_by_our_own_means(name: str) -> None:
    case = load_case(name)
    assert worst_gap(case.cover, case.state) < 1e-8
    assert len(case.cover.motors) == case.cover.expected_dof
    found = CoverController(case.cover, case.controller).step(case.state, case.target, 0.0)
    assert found.status is StepStatus.OK


def test_cases_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match="3x3"):
        load_case("9x9")
    broken = tmp_path / "broken.yaml"
    broken.write_text("cover: {rows: 3}", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="a case as in"):
        load_case(str(broken))
    with pytest.raises(InvalidInputError, match="greatest_rat"):
        load_case("3x3", overrides={"greatest_rat": 1.0})


def test_file_round_trip(tmp_path: Path) -> None:
    cover, state = bowl(3, 4, (5,))
    write_cover(cover, state, tmp_path / "cover.json")
    read, again = load_cover(tmp_path / "cover.json")
    assert (read.rows, read.cols, read.pitch, read.fixed_nodes) == (3, 4, cover.pitch, (5,))
    np.testing.assert_array_equal(read.motors, cover.motors[np.lexsort((cover.motors[:, 1], cover.motors[:, 0]))])
    np.testing.assert_allclose(again.positions(read), state.positions(cover), atol=1e-9)
    np.testing.assert_allclose(again.rotations, state.rotations, atol=1e-7)


def test_published_file_is_read_as_it_is() -> None:
    content = json.loads((data_folder() / "8x8.json").read_text(encoding="utf-8"))
    cover, state = load_cover(data_folder() / "8x8.json")
    assert cover.motor_labels[0] == "joint_1_2_z"
    assert np.abs(state.positions(cover) - content["position_m"]).max() < 5e-3


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 4},
        {"rows": "x"},
        {"position_m": [[0.0, 0.0, 0.0]]},
        {"quaternion_wxyz": [[0.0, 0.0, 0.0, 0.0]] * 9},
        {"position_m": [[float("nan")] * 3] * 9},
        {"position_m": [[0.5 * k, 0.0, 0.0] for k in range(9)]},
        {"quaternion_wxyz": [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]] * 3},
        {"fixed_nodes": []},
        {"fixed_nodes": [77]},
        {"joints": [{"parent": 1, "child": 9, "actuated_xyz": [0, 0, 1]}]},
        {"joints": [{"parent": 1, "child": 2, "actuated_xyz": [1]}]},
        {"joints": 3},
        {"pitch_m": -1.0},
    ],
)
def test_files_with_nonsense_are_refused(change: dict) -> None:
    cover, state = bowl(3, 3)
    content = {**cover_content(cover, state), **change}
    if "fixed_nodes" in change:
        content.pop("father_node")
    with pytest.raises(MorphitError):
        read_cover(content)


def test_missing_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError):
        load_cover(tmp_path / "none.json")
    (tmp_path / "broken.json").write_text("[" * 5000, encoding="utf-8")
    with pytest.raises(InvalidInputError):
        load_cover(tmp_path / "broken.json")
