"""Plans for hard contact: points all over a surface, and stages from soft to hard."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters, largest_implicit_step
from morphit_ros.neural.dynamics.state import BodyState
from morphit_ros.neural.trajectory_optimization import stiff_push
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryConfig, TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push import rest_on_plane
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.stiff_push import STAGES, plan_stiff_push, staged
from morphit_ros.neural.trajectory_optimization.surface_body import surface_body
from morphit_ros.simulation.solids import block

SIZE = np.array([0.6, 0.9, 0.4])
HALVES = [
    block([0.3, 0.9, 0.4]).pieces[0].transformed(make_transform(translation=(x, 0.0, 0.0))) for x in (-0.15, 0.15)
]
CONFIG = PushConfig(
    steps=20,
    timestep=0.03,
    friction=0.2,
    contact=ContactParameters(indicator_width=1e-3),
    optimization=TrajectoryConfig(iterations=15, cost_tolerance=1e-2, constraint_tolerance=1e-2, initial_penalty=100.0),
)
PUSHER = np.array([-0.6, 0.0, 0.25])


@pytest.fixture(scope="module")
def body() -> ContactBody:
    points = (np.random.default_rng(0).random((300, 3)) - 0.5) * SIZE
    points[:8] = SIZE * (np.indices((2, 2, 2)).reshape(3, -1).T - 0.5)
    inertia = 3.0 / 12.0 * np.diag((SIZE**2).sum() - SIZE**2)
    return ContactBody(points, np.full(300, 0.01), np.zeros((300, 3)), 3.0, inertia, np.zeros(3))


@pytest.fixture(scope="module")
def surface(body: ContactBody) -> ContactBody:
    return surface_body(body, HALVES, 1000)


def test_points_cover_the_outer_surface_only(body: ContactBody, surface: ContactBody) -> None:
    points = surface.points
    depth = (0.5 * SIZE - np.abs(points)).min(axis=1)
    # Of the faces where the halves meet, none is inside of the other.
    between = np.abs(points[:, 0]) < 1e-9
    assert np.abs(depth[~between]).max() < 1e-9
    corners = SIZE * (np.indices((2, 2, 2)).reshape(3, -1).T - 0.5)
    assert np.linalg.norm(points[:, None] - corners, axis=2).min(axis=0).max() < 1e-12
    # Even cover: on each face no circle of 10 cm is empty.
    probes = np.column_stack([np.full(200, 0.3), (np.random.default_rng(1).random((200, 2)) - 0.5) * SIZE[1:]])
    assert np.linalg.norm(points[:, None] - probes, axis=2).min(axis=0).max() < 0.1
    assert surface.mass == body.mass
    np.testing.assert_array_equal(surface.inertia, body.inertia)


def test_points_inside_of_another_piece_are_dropped(body: ContactBody) -> None:
    inner = block([0.2, 0.2, 0.2]).pieces[0]
    points = surface_body(body, [*block(SIZE).pieces, inner], 500).points
    assert np.abs(0.5 * SIZE - np.abs(points)).min(axis=1).max() < 1e-9


def test_bad_surfaces_are_refused(body: ContactBody) -> None:
    with pytest.raises(InvalidInputError, match="pieces"):
        surface_body(body, [])
    with pytest.raises(InvalidInputError, match="count"):
        surface_body(body, HALVES, 3)


def test_stages_grow_harder_and_finer() -> None:
    first, last = (staged(CONFIG, stage, 1.5) for stage in STAGES)
    assert last.contact.spring > first.contact.spring
    assert last.contact.indicator_width < first.contact.indicator_width
    assert last.substeps > first.substeps >= 1
    assert last.timestep / last.substeps <= STAGES[-1].step * largest_implicit_step(1.5)
    assert last.friction == CONFIG.friction


def test_push_is_planned_from_soft_to_hard(
    body: ContactBody, surface: ContactBody, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One stage, as hard as the last, is enough for a box; it is coarse to be quick.
    monkeypatch.setattr(stiff_push, "STAGES", [replace(STAGES[-1], step=0.25)])
    start = rest_on_plane(body, BodyState([0.0, 0.0, 0.22]), CONFIG)
    goal = np.add(start.position[:2], [0.3, 0.0])
    told: list[int] = []
    plan = plan_stiff_push(
        body, surface, start, goal, PUSHER, config=CONFIG, progress=lambda step, cost, miss: told.append(step)
    )
    assert plan.success
    assert plan.miss < 0.02
    assert plan.config.contact.spring == STAGES[-1].spring
    assert plan.config.substeps > CONFIG.substeps
    assert told == sorted(told)
    assert plan.iterations >= told[-1]


@dataclass(frozen=True)
class FakePlan:
    """As much of a plan as the stages look at; `forces` says which stage it is of."""

    status: TrajectoryStatus
    miss: float
    forces: str
    iterations: int = 10
    pusher_goal: None = None
    seconds: float = 0.0


@pytest.mark.parametrize(("second_miss", "kept"), [(0.001, 0.001), (0.2, 0.1)])
def test_where_hard_contact_is_too_much_at_once_a_stage_lies_between(
    body: ContactBody, surface: ContactBody, monkeypatch: pytest.MonkeyPatch, second_miss: float, kept: float
) -> None:
    soft, first, last = CONFIG.contact.spring, *(stage.spring for stage in STAGES)
    between = np.sqrt(first * last)
    outcomes = [(soft, 0.001), (first, 0.001), (last, 0.1), (between, 0.001), (last, second_miss)]
    asked: list[tuple[float, object]] = []

    def plan(*words: object) -> FakePlan:
        config, guess = words[5], words[6]
        assert isinstance(config, PushConfig)
        spring, miss = outcomes[len(asked)]
        asked.append((config.contact.spring, guess))
        status = TrajectoryStatus.CONVERGED if miss < 0.01 else TrajectoryStatus.INFEASIBLE
        return FakePlan(status, miss, f"{spring:.3g}")

    monkeypatch.setattr(stiff_push, "plan_push", lambda *words, progress=None: plan(*words, *[None] * (8 - len(words))))
    monkeypatch.setattr(stiff_push, "rest_on_plane", lambda _, state, __: state)
    found = plan_stiff_push(body, surface, BodyState([0.0, 0.0, 0.2]), [0.3, 0.0], PUSHER, config=CONFIG)
    assert [spring for spring, _ in asked] == pytest.approx([spring for spring, _ in outcomes])
    # Each from the one before; the one in between from what the last that reached the goal had found.
    guesses = [guess for _, guess in asked]
    assert guesses == [None, f"{soft:.3g}", f"{first:.3g}", f"{first:.3g}", f"{between:.3g}"]
    assert (found.miss, found.iterations) == (kept, 50)
