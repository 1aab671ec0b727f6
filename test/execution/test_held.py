"""What the hand holds as text on disk: the same after reading, refused where it is damaged."""

import json

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.held import HeldGrasp, Surroundings
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle


def held(seed=0, points=400):
    rng = np.random.default_rng(seed)
    table = TableObstacle(make_transform(translation=[0.5, 0.0, 0.01]), np.array([0.6, 0.8]))
    obstacles = (ObjectObstacle("object 1", rng.normal(size=(5, 3)), rng.uniform(0.01, 0.05, 5)),)
    pose = make_transform(matrix_from_rpy(rng.uniform(-1.0, 1.0, 3)), rng.normal(size=3))
    return HeldGrasp(
        pose, pose, 0.05, 0.012, 0.07, rng.normal(scale=0.03, size=(points, 3)), Surroundings(table, obstacles), 1.7e9
    )


@pytest.mark.parametrize("seed", range(3))
def test_it_reads_what_it_has_written(seed):
    written = held(seed)
    read = HeldGrasp.from_json(written.to_json())
    np.testing.assert_array_equal(read.T_base_gripper, written.T_base_gripper)
    np.testing.assert_allclose(read.points, written.points, atol=1e-5)
    assert (read.aperture, read.margin, read.open_aperture, read.since) == (0.05, 0.012, 0.07, 1.7e9)
    np.testing.assert_array_equal(read.around.table.size, written.around.table.size)
    np.testing.assert_array_equal(read.around.obstacles[0].centers, written.around.obstacles[0].centers)
    assert len(HeldGrasp.from_json(held(points=100_000).to_json()).points) <= 1500


@pytest.mark.parametrize(
    "change",
    [
        {"aperture": float("nan")}, {"aperture": "wide"}, {"T_base_gripper": [[1.0]]}, {"points": [[1.0, 2.0]]},
        {"points": [[1e9, 0.0, 0.0]]}, {"table": [1]}, {"obstacles": [["a", [[0.0, 0.0, 0.0]]]]}, {"margin": -1.0},
        {"obstacles": [["a", [], []]] * 1000}, {"since": None},
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused(change):
    with pytest.raises(InvalidInputError, match="held state"):
        HeldGrasp.from_json(json.dumps({**json.loads(held().to_json()), **change}))


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "[" * 100_000, " " * (5 << 20)])
def test_what_is_no_such_text_is_refused(text):
    with pytest.raises(InvalidInputError, match="held state"):
        HeldGrasp.from_json(text)


@pytest.mark.parametrize(
    ("aperture", "confirmed"), [(0.05, True), (0.0615, True), (0.0625, False), (0.037, False), (0.0, False)]
)
def test_the_fingers_confirm_or_contradict(aperture, confirmed):
    assert (held().contradiction(aperture, 0.0015) == "") is confirmed


def test_nothing_between_the_pads_is_not_held():
    thin = HeldGrasp(make_transform(), make_transform(), 0.01, 0.025, 0.03)
    assert thin.contradiction(0.001, 0.0015)
    assert not thin.contradiction(0.002, 0.0015)
