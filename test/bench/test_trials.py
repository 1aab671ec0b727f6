from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.picks.trials import TrialConfig, draw_trial, trial_object
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.simulation.objects import load_object


def test_the_same_name_and_number_give_the_same_trial() -> None:
    assert draw_trial("mug", 3) == draw_trial("mug", 3)


@pytest.mark.parametrize(("name", "number"), [("mug", 4), ("box", 3)])
def test_another_name_or_number_gives_another_trial(name: str, number: int) -> None:
    first, other = draw_trial("mug", 3), draw_trial(name, number)
    for field in ("x", "y", "yaw", "friction", "mass_factor", "seed"):
        assert getattr(first, field) != getattr(other, field)


def test_draws_fill_their_ranges_and_do_not_leave_them() -> None:
    config = TrialConfig()
    trials = [draw_trial("box", number) for number in range(400)]
    for field, low, high in (
        ("x", -config.offset_x, config.offset_x),
        ("y", -config.offset_y, config.offset_y),
        ("yaw", -np.pi, np.pi),
        ("friction", 0.4, 0.8),
        ("mass_factor", 0.8, 1.2),
        ("resting", 0.0, 1.0),
    ):
        values = np.array([getattr(trial, field) for trial in trials])
        assert low <= values.min() < low + 0.02 * (high - low)
        assert high - 0.02 * (high - low) < values.max() <= high


def test_another_range_leaves_the_other_draws_as_they_were() -> None:
    usual, slippery = draw_trial("box", 1), draw_trial("box", 1, TrialConfig(friction=(0.2, 0.2)))
    assert slippery.friction == pytest.approx(0.2)
    assert (slippery.x, slippery.yaw, slippery.mass_factor, slippery.seed) == (
        usual.x, usual.yaw, usual.mass_factor, usual.seed,
    )  # fmt: skip


def test_trial_object_has_the_drawn_mass_and_stands_as_usual_or_otherwise() -> None:
    usual = load_object("box")
    lying = 0
    trials = [draw_trial("box", number) for number in range(60)]
    for trial in trials:
        item = trial_object(usual, trial)
        assert item.mass == pytest.approx(usual.mass * trial.mass_factor)
        assert item.mesh.bounds[0, 2] == pytest.approx(0.0, abs=1e-6)
        # Principal moments belong to the body, however it lies, and grow with its mass.
        moments = np.linalg.eigvalsh(item.inertia) / trial.mass_factor
        assert np.allclose(moments, np.linalg.eigvalsh(usual.inertia), rtol=1e-6)
        stands = item.mesh.extents[2] == pytest.approx(usual.mesh.extents[2], abs=1e-6)
        assert stands or trial.resting < TrialConfig().other_pose
        lying += not stands
    assert 5 <= lying <= 30


def test_without_other_poses_every_trial_stands_as_usual() -> None:
    usual = load_object("box")
    for number in range(10):
        item = trial_object(usual, draw_trial("box", number), TrialConfig(other_pose=0.0))
        assert np.allclose(item.mesh.vertices, usual.mesh.vertices)


def test_resting_poses_of_a_box_are_its_six_faces() -> None:
    item = load_object("box")
    poses = item.resting_poses()
    assert len(poses) == 6
    # 55 × 90 × 120 mm: the two largest faces are the likeliest, the steadiest and the lowest.
    heights = [np.ptp(transform_points(pose.T_standing_mesh, item.mesh.vertices)[:, 2]) for pose in poses]
    assert heights[:2] == pytest.approx([0.055, 0.055])
    assert heights[-2:] == pytest.approx([0.120, 0.120])
    assert poses[0].tilt == pytest.approx(np.arctan2(0.045 - 0.0015, 0.0275), abs=0.01)
    # The bevelled edges take the rest.
    assert 0.9 < sum(pose.weight for pose in poses) <= 1.0
