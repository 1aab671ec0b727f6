"""What the authors published, and files that are not that."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.neural.published import (
    load_published_body,
    load_published_trajectory,
    load_recorded_track,
    published_soap_track,
)

DATA = Path(os.environ.get("MORPHIT_DATA", Path(__file__).parents[3] / "shared" / "data")) / "neural"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"published objects are not in {DATA}")


def box_arrays(rng, count=200):
    """A body as the authors write it: a unit cube of points."""
    points = rng.uniform(-0.5, 0.5, (count, 3)) + np.array([0.1, 0.0, 0.0])
    return {
        "P": points,
        "d": np.full(count, 2.0),
        "G": 0.1 * rng.normal(size=(count, 3)),
        "m": np.float64(3.0),
        "com": np.array([0.1, 0.0, 0.0]),
        "I": 3.0 * np.diag([1.0, 2.0, 3.0]) / 12.0,
    }


def test_the_second_moment_becomes_a_tensor(tmp_path):
    arrays = box_arrays(np.random.default_rng(0))
    np.savez(tmp_path / "box.npz", **arrays)
    body = load_published_body(tmp_path / "box.npz")
    np.testing.assert_allclose(body.inertia, 3.0 * np.diag([5.0, 4.0, 3.0]) / 12.0)
    np.testing.assert_allclose(body.points, arrays["P"] - [0.1, 0.0, 0.0])
    np.testing.assert_allclose(body.masses, 3.0 / 200.0)
    np.testing.assert_allclose(body.normals * np.linalg.norm(arrays["G"], axis=1, keepdims=True), -arrays["G"])
    as_published = load_published_body(tmp_path / "box.npz", second_moment_as_inertia=True)
    np.testing.assert_allclose(as_published.inertia, arrays["I"])


def test_normals_that_were_not_published_point_outwards(tmp_path):
    rng = np.random.default_rng(1)
    arrays = box_arrays(rng, 4000)
    directions = rng.normal(size=(4000, 3))
    arrays["P"] = (
        directions / np.linalg.norm(directions, axis=1, keepdims=True) * rng.uniform(0.7, 1.0, (4000, 1)) ** (1 / 3)
    )
    arrays["G"], arrays["com"] = np.zeros((4000, 3)), np.zeros(3)
    np.savez(tmp_path / "ball.npz", **arrays)
    body = load_published_body(tmp_path / "ball.npz")
    outer = np.linalg.norm(arrays["P"], axis=1) > 0.97
    along = (body.normals * arrays["P"]).sum(axis=1)[outer]
    assert np.median(along) > 0.9 and (along > 0.0).mean() > 0.99


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"P": None}, "no array 'P'"),
        ({"I": None}, "no array 'I'"),
        ({"P": np.zeros((200, 2))}, "P.*shape"),
        ({"P": np.zeros((0, 3))}, "P.*shape"),
        ({"d": np.ones(7)}, "d.*shape"),
        ({"d": np.zeros(200)}, "d.*positive"),
        ({"m": np.float64(np.nan)}, "m.*not finite"),
        ({"m": np.float64(-1.0)}, "mass"),
        ({"I": -np.eye(3)}, "inertia"),
        ({"com": np.array(["a", "b", "c"])}, "unreadable"),
    ],
)
def test_bad_bodies_are_refused_by_name(tmp_path, change, word):
    arrays = {**box_arrays(np.random.default_rng(0)), **change}
    np.savez(tmp_path / "bad.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InvalidInputError, match=word):
        load_published_body(tmp_path / "bad.npz")


def test_files_that_are_no_archive_or_not_there(tmp_path):
    with pytest.raises(ResourceNotFoundError, match=r"none\.npz"):
        load_published_body(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(InvalidInputError, match="unreadable"):
        load_published_body(tmp_path / "text.npz")
    np.savez(tmp_path / "objects.npz", P=np.array([{}], dtype=object))
    with pytest.raises(InvalidInputError, match="unreadable"):
        load_published_body(tmp_path / "objects.npz")


@needs_data
@pytest.mark.parametrize("name", ["bunny", "bluesoap"])
def test_published_bodies_are_rigid_bodies(name):
    body = load_published_body(DATA / f"{name}.npz")
    assert body.points.shape == (5000, 3)
    # The points are a sample of the same body: their moments are near those that were published.
    second = (body.points * body.masses[:, None]).T @ body.points
    spread = np.trace(second) * np.eye(3) - second
    assert np.linalg.norm(spread - body.inertia) < 0.2 * np.linalg.norm(body.inertia)
    np.testing.assert_allclose(np.linalg.norm(body.normals, axis=1), 1.0)
    # Points farther from the middle face away from it.
    assert ((body.normals * body.points).sum(axis=1) > 0.0).mean() > 0.7


@needs_data
def test_the_bunnys_published_moment_is_that_of_no_rigid_body():
    body = load_published_body(DATA / "bunny.npz", second_moment_as_inertia=True)
    moments = np.linalg.eigvalsh(body.inertia)
    assert moments[2] > moments[0] + moments[1] and not body.rigid_inertia


@needs_data
def test_the_published_drop_starts_as_it_is_said_to():
    track = load_published_trajectory(DATA / "bunny_trajectory_0.3.csv")
    assert len(track.times) == 3500
    np.testing.assert_allclose(track.positions[0], [0.0, 0.0, 1.1])
    np.testing.assert_allclose(track.quats_xyzw[0], np.array([0.6, 0.0, 0.5, 1.0]) / np.sqrt(1.61), atol=1e-9)
    # Free fall: the second difference of the height is gravity's, h = 0.002 s.
    np.testing.assert_allclose(np.diff(track.positions[:10, 2], 2), -9.81 * 0.002**2, rtol=1e-6)


@needs_data
def test_the_soap_slides_on_a_level_table():
    track = published_soap_track(DATA / "soap_pose_track.csv")
    assert track.positions.shape == (33, 3)
    assert np.diff(track.times) == pytest.approx(0.0326, abs=1e-4)
    moved = track.positions[-1] - track.positions[0]
    assert abs(moved[2]) < 0.01 * np.linalg.norm(moved)
    speeds = np.linalg.norm(np.diff(track.positions, axis=0), axis=1)
    assert speeds[-5:].mean() < 0.5 * speeds[:5].mean()


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "1,2\n", "", "1,2,3\n4,5\n", "nan\n" * 7])
def test_tables_of_another_form_are_refused(tmp_path, text):
    (tmp_path / "bad.csv").write_text(text)
    for load in (load_published_trajectory, load_recorded_track, published_soap_track):
        with pytest.raises(InvalidInputError, match=r"bad\.csv"):
            load(tmp_path / "bad.csv")


def test_quaternions_that_are_none_are_refused(tmp_path):
    (tmp_path / "track.csv").write_text("h\n" + "0,0,0,1,1,1,1\n" * 3)
    with pytest.raises(InvalidInputError, match="quaternion"):
        load_published_trajectory(tmp_path / "track.csv")
