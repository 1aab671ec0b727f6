"""The front: fits of equal count of which none is better than another in all measures."""

import json

import numpy as np
import pytest

from morphit_ros.cli import main
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.spheres import SphereFitConfig, fit_spheres, measure_spheres, read_model, sphere_front
from morphit_ros.spheres.front import MEASURES, non_dominated

BOX = box_mesh([0.3, 0.2, 0.1])
QUICK = SphereFitConfig(count=6, starts=1, rounds=2)
ROBOT = """<robot name="pair">
<link name="base"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<link name="arm"><collision><origin xyz="0.2 0 0"/><geometry><box size="0.3 0.05 0.05"/></geometry></collision></link>
<joint name="j" type="fixed"><parent link="base"/><child link="arm"/></joint></robot>"""


@pytest.fixture(scope="module")
def front():
    return sphere_front(BOX, QUICK, seed=3, seeds=2)


def test_non_dominated_rows_by_brute_force():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (60, 3)).astype(float)
    expected = [
        not any((other <= row).all() and ((other < row).any() or j < i) for j, other in enumerate(values) if j != i)
        for i, row in enumerate(values)
    ]
    np.testing.assert_array_equal(non_dominated(values), expected)
    assert 0 < sum(expected) < 60


def test_members_keep_the_count_and_none_dominates_another(front):
    assert len(front) > 4
    values = [[(-1 if more else 1) * getattr(one.metrics, name) for name, more in MEASURES.items()] for one in front]
    assert non_dominated(np.array(values)).all()
    outside = [one.metrics.outside for one in front]
    assert outside == sorted(outside)
    # From spheres that stay inside to such that cover.
    assert outside[0] < 0.1
    assert front[0].metrics.inside < 0.9
    assert max(one.metrics.inside for one in front) > 0.99
    assert {len(one.radii) for one in front} == {6}


def test_a_member_is_fitted_again_with_its_weights_and_seed(front):
    one = front[len(front) // 2]
    again = fit_spheres(BOX, SphereFitConfig(count=6, starts=1, rounds=2, weights=one.weights), one.seed)
    np.testing.assert_array_equal(again.centers, one.centers)
    assert measure_spheres(BOX, one.centers, one.radii, 10000, 100000) == one.metrics


def test_threads_do_not_matter_and_given_weights_hold():
    config = SphereFitConfig(count=3, starts=1, rounds=0)
    first, second = (sphere_front(BOX, config, seeds=1, workers=workers) for workers in (1, 3))
    assert [one.content_hash for one in first] == [one.content_hash for one in second]
    assert all((one.radii == other.radii).all() for one, other in zip(first, second, strict=True))
    given = SphereFitConfig.from_flat({**config.to_flat(), "weights.coverage": 700.0})
    assert {one.weights.coverage for one in sphere_front(BOX, given, seeds=1)} == {700.0}


def test_progress_and_bad_input():
    seen = []
    sphere_front(BOX, SphereFitConfig(count=2, starts=1, rounds=0), seeds=1, progress=lambda *done: seen.append(done))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert {total for _, total in seen} == {len(seen)}
    for config in (SphereFitConfig(cover=True), SphereFitConfig(method="packing")):
        with pytest.raises(InvalidInputError, match="config"):
            sphere_front(BOX, config)
    with pytest.raises(InvalidInputError, match="seeds"):
        sphere_front(BOX, seeds=0)
    with pytest.raises(InvalidInputError, match="workers"):
        sphere_front(BOX, workers=0)


def test_command_lists_chooses_and_writes(tmp_path, capsys):
    robot, written, listed = tmp_path / "pair.urdf", tmp_path / "chosen.json", tmp_path / "front.json"
    robot.write_text(ROBOT)
    base = ["spheres", "front", str(robot), "--links", "arm", "--count", "2", "--seeds", "1", "--no-cache"]
    assert main([*base, "--choose", "2", "--output", str(written), "--json", str(listed)]) == 0
    table = capsys.readouterr().out
    members = json.loads(listed.read_text())["links"]["arm"]
    assert f"{len(members)} fits of 2 spheres" in table
    model = read_model(written)
    assert list(model.links) == ["arm"]
    np.testing.assert_allclose(model.links["arm"].centers, members[1]["centers"], atol=1e-9)
    # In the link's frame, where the box begins 50 mm from the origin.
    moved = BOX_OF_ARM.transformed(make_transform(translation=[0.2, 0.0, 0.0]))
    metrics = measure_spheres(moved, members[1]["centers"], members[1]["radii"])
    assert metrics.inside == pytest.approx(members[1]["metrics"]["inside"], abs=0.01)
    for wrong in (["--choose", "99"], ["--output", str(written)]):
        assert main([*base, *wrong]) != 0
    assert main(["spheres", "front", str(robot), "--count", "2", "--choose", "1"]) != 0


BOX_OF_ARM = box_mesh([0.3, 0.05, 0.05])
