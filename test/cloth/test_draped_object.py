"""A cloth over an object, as its file stands in the workcell: both cameras see it, and grasps are found on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from morphit_bench.picks.flying_gripper import flying_gripper
from morphit_bench.picks.views import look, view_of
from morphit_ros.cli import main
from morphit_ros.cloth import save_shapes
from morphit_ros.geometry.transforms import invert_transform, make_transform, transform_points
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.simulation import rendering
from morphit_ros.simulation.objects import load_object
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig
from morphit_ros.superovoid import PlacedSuperovoid, Superovoid

BOX = PlacedSuperovoid(Superovoid((0.03, 0.025, 0.06), (0.1, 0.1)), make_transform(translation=(0.0, 0.0, 0.06)))


@pytest.mark.skipif(rendering.available_backend() is None, reason="no off-screen rendering: neither EGL nor OSMesa")
def test_what_a_cloth_hangs_over_is_seen_and_grasped(tmp_path: Path) -> None:
    shapes, file = tmp_path / "box.yaml", tmp_path / "draped.stl"
    save_shapes([BOX], shapes)
    fall = ["--rows", "50", "--cols", "50", "--pitch", "0.005", "--contact", "exact", "--steps", "240"]
    assert main(["cloth", "--shapes", str(shapes), *fall, "--solid", "--output", str(file)]) == 0
    hand = Gripper.load("franka_hand")
    with Workcell(WorkcellConfig(), flying_gripper(hand), load_object(file, mass=0.3, touched=False)) as cell:
        cell.settle(0.5)
        truth, pose = cell.object.mesh, cell.object_pose()
        scene, eyes, *_ = look(cell, 0)
    assert scene.target is not None
    view = view_of(scene, scene.target, eyes)
    seen = transform_points(invert_transform(pose), view.cloud.points)
    # All of it but its foot: wider than the box, as high as the cloth.
    low, high = truth.bounds
    assert seen.max(axis=0) == pytest.approx(high, abs=0.01)
    assert seen.min(axis=0)[:2] == pytest.approx(low[:2], abs=0.01)
    assert (np.ptp(seen[:, :2], axis=0) > 0.12).all()
    grasps = plan_grasps(
        view.cloud, hand, PlannerConfig(), table=view.table, seed=0,
        obstacles=view.obstacles, viewpoints=view.viewpoints,
    ).grasps  # fmt: skip
    assert grasps
    # They close on folds, not on the box: what is gripped lies within the cloth's height.
    heights = [(invert_transform(pose) @ grasp.T_world_gripper)[2, 3] for grasp in grasps]
    assert min(heights) > 0.0
    assert max(heights) < high[2] + 0.01
