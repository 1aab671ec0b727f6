"""Shortcuts and proofs that look at the clock: what they are where time ends, and that looking changes nothing."""

from __future__ import annotations

import threading
import time
from itertools import count, islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from drawn import drawn_arm, drawn_rows, drawn_world

from morphit_ros.motion import certificate as certificates, planner, refinement, search
from morphit_ros.motion.certificate import Certificate, Verdict, certify_path, least_clearance
from morphit_ros.motion.checks import make_room, motion_free
from morphit_ros.motion.model import ArmModel
from morphit_ros.motion.planner import PathConfig, PathStatus, plan_path
from morphit_ros.motion.proven_timing import TimingLimits, time_proven
from morphit_ros.motion.search import shorten
from morphit_ros.motion.world import World, WorldArrays

Drawn = tuple[ArmModel, World, WorldArrays, np.ndarray]


def drawn(seed: int) -> Drawn:
    """An arm among solids, and a winding path (N, 3) of it that may touch."""
    rng = np.random.default_rng(seed)
    _, model = drawn_arm(rng)
    world = drawn_world(rng, 6)
    return model, world, world.arrays_for(model.parts), drawn_rows(rng, model, 1) + rng.normal(0.0, 0.4, (8, 3))


def free_path(seed: int) -> Drawn:
    """As `drawn`, of up to eight free motions, each on from the one before."""
    model, world, solids, _ = drawn(seed)
    rng, room = np.random.default_rng(seed), make_room(model.arrays, solids)
    starts = (row for row in drawn_rows(rng, model, 100) if least_clearance(model.arrays, solids, row)[0] > 0.0)
    kept = list(islice(starts, 1))
    for _ in range(100):
        if 0 < len(kept) < 9:
            row = np.clip(kept[-1] + rng.normal(0.0, 0.4, 3), model.lower, model.upper)
            if motion_free(model.arrays, solids, kept[-1], row, 0.005, room):
                kept.append(row)
    return model, world, solids, np.array(kept)


def ticking(monkeypatch: pytest.MonkeyPatch, module: object) -> None:
    """Let a second pass from one look at the clock to the next."""
    seconds = count()
    monkeypatch.setattr(module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: float(next(seconds)))}))


def test_a_proof_in_many_pieces_is_the_same_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = set()
    for seed in range(30):
        model, _, solids, path = drawn(seed)
        for budget in (20000, 5):
            answers: list[Certificate] = []
            for looks in (10**6, 1, 3):
                monkeypatch.setattr(certificates, "_LOOKS", looks)
                answers.append(certify_path(model.arrays, solids, path, budget))
            assert answers[0] == answers[1] == answers[2]
            verdicts.add((answers[0].verdict, answers[0].segment > 0))
    # None of the ways to end is left out, in later segments too.
    assert {(Verdict.TOUCHING, True), (Verdict.FREE_AT_SAMPLES, True), (Verdict.PROVEN_FREE, False)} <= verdicts


def test_a_proof_that_runs_out_of_time_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, solids, path = next(found for found in map(free_path, range(100)) if len(found[3]) > 4)
    whole = certify_path(model.arrays, solids, path)
    assert whole.verdict is Verdict.PROVEN_FREE
    monkeypatch.setattr(certificates, "_LOOKS", 2)
    for seconds in (0, 3):
        ticking(monkeypatch, certificates)
        part = certify_path(model.arrays, solids, path, until=seconds + 0.5)
        assert part.verdict is Verdict.FREE_AT_SAMPLES
        assert part.looked_at == 2 * (seconds + 2) < whole.looked_at
        assert part.bodies is None
        assert 0 <= part.segment < len(path) - 1
        assert 0.0 < part.share < 1.0
        # What it says is proven is: all before that place.
        place = path[part.segment] + (part.share - 0.5) * (path[part.segment + 1] - path[part.segment])
        if part.share == 0.5 and part.segment > 0:
            assert np.array_equal(place, path[part.segment])
            assert certify_path(model.arrays, solids, path[: part.segment + 1]).verdict is Verdict.PROVEN_FREE


def test_shortcuts_in_many_pieces_are_the_same_as_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    draws, shortened = np.random.default_rng(0).random((60, 2)), 0
    for seed in range(120):
        model, _, solids, path = free_path(seed)
        if len(path) < 3:
            continue
        answers = []
        for tries in (10**6, 1, 4):
            monkeypatch.setattr(search, "_TRIES", tries)
            answers.append(shorten(model.arrays, solids, path, 0.02, draws))
        assert np.array_equal(answers[0], answers[1])
        assert np.array_equal(answers[0], answers[2])
        assert np.array_equal(answers[0][[0, -1]], path[[0, -1]])
        shortened += len(answers[0]) > 2
    assert shortened > 5


def test_shortcuts_that_run_out_of_time_leave_a_free_path_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(0).random((60, 2))
    monkeypatch.setattr(search, "_TRIES", 1)
    seen = set()
    for seed in range(40):
        model, _, solids, path = free_path(seed)
        if len(path) < 3:
            continue
        length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
        assert np.array_equal(shorten(model.arrays, solids, path, 0.02, draws, until=-1.0), path)
        for tries in (1, 2, 4, 8, 16):
            ticking(monkeypatch, search)
            short = shorten(model.arrays, solids, path, 0.02, draws, until=tries - 0.5)
            assert np.array_equal(short[[0, -1]], path[[0, -1]])
            assert np.linalg.norm(np.diff(short, axis=0), axis=1).sum() <= length + 1e-9
            room = make_room(model.arrays, solids)
            for begin, end in pairwise(short):
                assert motion_free(model.arrays, solids, begin, end, 0.005, room)
            seen.add(len(short))
    assert len(seen) > 2


def test_compiling_is_no_part_of_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds in a new process: what is found then is shortened and proven as it is later."""
    loaded = []
    load = planner.load_kernels

    def slow(*arguments: object) -> None:
        load(*arguments)  # type: ignore[arg-type]
        loaded.append(arguments)

    for module in (planner, refinement):
        monkeypatch.setattr(module, "load_kernels", slow)
    # Longer than the whole limit, by the clock that all of them look at.
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 100.0 * len(loaded), process_time=time.process_time)
    for module in (planner, refinement, search, certificates):
        monkeypatch.setattr(module, "time", clock)
    model, world, _, path = next(found for found in map(free_path, range(100)) if len(found[3]) > 2)
    plan = plan_path(model, world, path[0], [path[-1]], PathConfig(timeout=60.0))
    assert loaded
    assert plan.proven
    # It is what a new process waits for.
    monkeypatch.setattr(planner, "_LOADED", threading.Event())
    monkeypatch.setattr(planner, "grow", lambda *arguments: loaded.append("grow"))
    load(model, world)
    load(model, world)
    assert loaded.count("grow") == 1


def test_a_plan_whose_time_is_over_before_its_proof_is_found_and_not_proven() -> None:
    model, world, _, path = next(found for found in map(free_path, range(100)) if len(found[3]) > 2)
    proven = plan_path(model, world, path[0], [path[-1]], PathConfig(timeout=5.0))
    assert proven.status is PathStatus.FOUND
    assert proven.proven
    late = plan_path(model, world, path[0], [path[-1]], PathConfig(timeout=5.0), until=time.monotonic())
    assert late.status is PathStatus.FOUND
    # One look at its middle may prove a short way.
    assert late.certificate is not None
    assert late.certificate.looked_at <= certificates._LOOKS
    # A motion without time for proofs of round corners stops in each, as the path that is proven does.
    three = np.ones(len(path[0]))
    trajectory, free = time_proven(model, world, proven, TimingLimits(three, three), proof_time=0.0)
    assert free
    assert np.array_equal(trajectory.positions[-1], proven.path[-1])
