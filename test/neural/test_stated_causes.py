"""Refusals and remarks name the cause that was found: which view, pose, line, motion, number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ball_views import BALL_CENTER, ball_depths, ball_images
from contact_samples import box_body
from identification_samples import SlidingBlock, block_experiment

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.array_faults import array_fault
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.world import Obstacle, World
from morphit_ros.neural.identification import Experiment, IdentificationConfig, PoseTrack, SimulatedMotion, Unknown
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.identification.least_squares import LeastSquaresConfig
from morphit_ros.neural.identification.residual_spectrum import Series, colored_band
from morphit_ros.neural.identification.tracks import TRACK_HEADER, read_track
from morphit_ros.neural.identification.unknowns import check_unknowns
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_failure import explain_failure
from morphit_ros.neural.trajectory_optimization.push_plan import PlanOrigin, PushPlan
from morphit_ros.neural.views.agreement import agreed_views
from morphit_ros.neural.views.consistency import check_depths, check_images, depth_bounds


def test_an_array_says_where_it_is_not_finite() -> None:
    array = np.zeros((3, 2))
    assert array_fault(array, (None, 2)) == ""
    assert array_fault(array, (3, 3)) == "shape (3, 2)"
    assert array_fault(array, (6,)) == "shape (3, 2)"
    array[2, 1] = np.nan
    assert array_fault(array, (None, 2)) == "nan at [2, 1]"


def test_views_keep_their_numbers_when_others_are_left_out() -> None:
    images, depths = ball_images(8), ball_depths(8)
    some = images.part(np.array([1, 3, 4, 6, 7]))
    assert some.numbers.tolist() == [1, 3, 4, 6, 7] and len(some.rgb) == 5
    masks = some.masks.copy()  # type: ignore[union-attr]
    masks[2, :, : int(np.quantile(np.flatnonzero(masks[2].any(axis=0)), 0.7))] = False
    cut = replace(some, masks=masks, bounds=BALL_CENTER + np.array([[-0.1] * 3, [0.1] * 3]))
    with pytest.raises(InvalidInputError, match=r"enough of every other without view 4,.*The mask of view 4 cuts"):
        check_images(cut, cut.bounds)  # type: ignore[arg-type]
    seen = depths.part(np.arange(8) != 0)
    wrong = seen.T_world_camera.copy()
    wrong[4, :3, 3] += [0.0, 0.05, 0.05]
    moved_depths = replace(seen, T_world_camera=wrong)
    with pytest.raises(InvalidInputError, match=r"view 5"):
        check_depths(moved_depths, depth_bounds(moved_depths))
    with pytest.raises(InvalidInputError, match=r"numbers: got \[0, 0\], expected 2 different"):
        replace(depths.part(np.array([0, 1])), numbers=[0, 0])


def test_views_left_out_are_named_as_they_were_counted_first() -> None:
    masks = ball_depths(16).masks.copy()  # type: ignore[union-attr]
    masks[11, :, : masks.shape[2] // 2] = False
    some = replace(ball_depths(16), masks=masks).part(np.arange(16) != 3)
    assert "left out view 11 (" in agreed_views(some).notes[-1]


def test_a_line_that_is_no_pose_is_named_and_shown(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "track.csv"
    path.write_text(f"# of a camera\n{TRACK_HEADER}\n0,0,0,0,0,0,0,1\n\n0.1,0,0,lost,0,0,0,1\n", encoding="utf-8")
    with pytest.raises(
        InvalidInputError, match=r"track.csv: line 5: got '0.1,0,0,lost,0,0,0,1', expected eight numbers"
    ):
        read_track(path)


def two_bodies(times: np.ndarray) -> Experiment:
    motion = SimulatedMotion(World([box_body(), box_body()], [Obstacle(ContactHalfSpace(), name="table")]))
    pose = np.tile([0.0, 0.0, 0.0, 1.0], (4, 1))
    first = PoseTrack(np.arange(4.0), np.zeros((4, 3)), pose)
    return Experiment(motion, (first, PoseTrack(times, np.zeros((len(times), 3)), pose[: len(times)])))


def test_tracks_of_different_times_say_where() -> None:
    with pytest.raises(InvalidInputError, match=r"3 poses of body 1, and 4 of body 0"):
        two_bodies(np.arange(3.0))
    with pytest.raises(InvalidInputError, match=r"pose 2 of body 1 at 2.5 s, and of body 0 at 2 s"):
        two_bodies(np.array([0.0, 1.0, 2.5, 3.0]))


def test_a_start_that_is_not_finite_is_not_called_misshapen() -> None:
    experiment = block_experiment(SlidingBlock(), SlidingBlock())
    start = experiment.start.copy()  # type: ignore[union-attr]
    start[0, 8] = np.nan
    with pytest.raises(InvalidInputError, match=r"start: got nan at \[0, 8\]"):
        replace(experiment, start=start)
    with pytest.raises(InvalidInputError, match=r"directions, transposed: got inf at \[1, 2\]"):
        replace(experiment, directions=np.where(np.arange(24).reshape(12, 2) == 5, np.inf, 1.0))


def test_names_that_occur_twice_are_named() -> None:
    unknowns = [Unknown("mass", 1.0), Unknown("friction", 0.2), Unknown("friction", 0.3)]
    with pytest.raises(InvalidInputError, match=r"got friction more than once"):
        check_unknowns(unknowns)


def test_a_motion_that_cannot_be_computed_says_which_when_and_why() -> None:
    motion = SimulatedMotion(World([box_body()], [Obstacle(ContactHalfSpace(), name="table")], step=0.01))
    times = np.linspace(0.0, 0.1, 6)
    track = PoseTrack(times, np.tile([0.0, 0.0, 1.0], (6, 1)), np.tile([0.0, 0.0, 0.0, 1.0], (6, 1)))
    start = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    spinning = start.copy()
    spinning[0, 12] = 2000.0
    experiments = [Experiment(motion, (track,), begin, "known") for begin in (start, spinning)]
    with pytest.raises(
        InvalidInputError, match=r"not finite at friction = 0.3: motion 1: the motion stops after 0 s: a body spins too"
    ):
        identify(experiments, Unknown("friction", 0.3, 0.0, 1.0), IdentificationConfig(scan=0, pilot=0))


def test_the_end_of_a_search_names_what_to_change() -> None:
    experiment = block_experiment(SlidingBlock(friction=0.3), SlidingBlock())
    config = IdentificationConfig(scan=0, search=LeastSquaresConfig(max_evaluations=1))
    for start in (0.9, 0.32):
        stopped = identify(experiment, Unknown("friction", start, 0.0, 1.0), config)
        assert "Stopped after 1 evaluations, before the cost fell no more" in stopped.message
    held = identify(experiment, Unknown("friction", 0.5, 0.4, 1.0), IdentificationConfig(scan=0))
    assert "At a bound: friction = 0.4; the fit may be better beyond it" in held.message


def test_correlated_residuals_say_which_and_how_slow() -> None:
    noise = np.random.default_rng(0).normal(size=(100, 6))
    noise[:, 4] += 3.0 * np.sin(2.0 * np.pi * 3.0 * np.arange(100) / 100.0)
    band = colored_band([Series(noise, np.zeros((100, 6, 1)), np.array([0]))], np.zeros((1, 1)))
    assert band is not None
    # Three waves are six halves.
    assert band.channel == 4 and band.first <= 6 < band.last and band.times > 5.0


def plan(**changed) -> PushPlan:  # type: ignore[no-untyped-def]
    states = np.zeros((4, 2, 13))
    states[:, :, 6] = 1.0
    states[:, 0, 0], states[:, 1, 0] = [0.0, 0.04, 0.08, 0.08], [-0.05, -0.01, 0.03, 0.03]
    made = PushPlan(
        TrajectoryStatus.INFEASIBLE, "12 steps were not enough", PushConfig(arrive_at_rest=True),
        np.array([0.15, 0.0, 0.0]), np.arange(4.0), states, np.zeros((3, 3)), np.zeros((3, 3, 24)), 1.0, 1.0, 1, 1.0,
        np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3),
    )  # fmt: skip
    return replace(made, **changed)


def test_a_push_that_fails_says_what_it_missed() -> None:
    assert "at rest before the sphere; the optimiser ended there: 12 steps were not enough" in explain_failure(plan())
    moving = plan().states.copy()
    moving[-1, 0, 7] = 0.5
    assert "still moves by 500 mm/s" in explain_failure(plan(states=moving))
    lost = plan().states.copy()
    lost[-1, 1, 1] = 0.08
    assert "slipped off the sphere, which is 44 mm farther" in explain_failure(plan(states=lost))
    near = plan(goal=np.array([0.081, 0.0, 0.0]), pusher_goal=np.array([0.031, 0.0, 0.0]), states=moving)
    assert "1.0 mm from the goal, but the object still moves by 500 mm/s" in explain_failure(near)
    away = plan(goal=np.array([0.081, 0.0, 0.0]), pusher_goal=np.array([0.0, 0.3, 0.0]))
    assert "the sphere is 301 mm from its own goal" in explain_failure(away)
    unjudged = plan(origin=PlanOrigin.UNJUDGED, message="the simulation refuses what is seen")
    assert "no motion to judge: the simulation refuses what is seen" in explain_failure(unjudged)
