"""Tracks of poses: what is refused, files, frames, noise."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.rotations import quats_of_rotation_vectors
from morphit_ros.geometry.transforms import matrix_from_quat_xyzw
from morphit_ros.neural.identification.tracks import TRACK_HEADER, PoseTrack, read_track, write_track


def sample(count: int = 12) -> PoseTrack:
    rng = np.random.default_rng(0)
    quats = quats_of_rotation_vectors(np.cumsum(rng.normal(0.0, 0.3, (count, 3)), axis=0))
    return PoseTrack(0.1 * np.arange(count), rng.normal(size=(count, 3)), quats)


def test_a_file_returns_the_track(tmp_path):
    track = sample()
    write_track(track, tmp_path / "track.csv")
    back = read_track(tmp_path / "track.csv")
    assert back.times == pytest.approx(track.times, abs=1e-11)
    assert back.positions == pytest.approx(track.positions, abs=1e-11)
    assert back.quats_xyzw == pytest.approx(track.quats_xyzw, abs=1e-11)


def test_signs_of_quaternions_are_made_continuous():
    track = sample()
    flipped = PoseTrack(
        track.times, track.positions, track.quats_xyzw * np.where(np.arange(12) % 3, 1.0, -1.0)[:, None]
    )
    assert (np.sum(flipped.quats_xyzw[1:] * flipped.quats_xyzw[:-1], axis=1) > 0.0).all()


def test_frame_moved_by_an_offset():
    track, offset = sample(), np.array([0.1, -0.2, 0.3])
    moved = track.moved_frame(offset)
    for index in range(len(track)):
        expected = track.positions[index] + matrix_from_quat_xyzw(track.quats_xyzw[index]) @ offset
        assert moved.positions[index] == pytest.approx(expected)


def test_noise_has_its_size_and_its_seed():
    times = 0.01 * np.arange(4000)
    still = PoseTrack(times, np.zeros((4000, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (4000, 1)))
    noisy = still.with_noise(0.003, 0.05, 7)
    assert noisy.positions.std() == pytest.approx(0.003, rel=0.03)
    assert 2.0 * noisy.quats_xyzw[:, :3].std() == pytest.approx(0.05, rel=0.03)
    assert np.array_equal(noisy.positions, still.with_noise(0.003, 0.05, 7).positions)


def broken(**changes):
    track = sample()
    values = {"times": track.times.copy(), "positions": track.positions.copy(), "quats_xyzw": track.quats_xyzw.copy()}
    for name, (index, value) in changes.items():
        values[name][index] = value
    return values


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"positions": ((4, 1), np.nan)}, "track positions.*row 4"),
        ({"quats_xyzw": ((5, 3), np.inf)}, "track quats_xyzw.*row 5"),
        ({"times": (3, np.nan)}, "track times.*row 3"),
        ({"times": (3, 0.2)}, "0.2 s after 0.2 s in row 3"),
        ({"times": (6, 0.0)}, "increasing times"),
        ({"quats_xyzw": (2, [0.0, 0.0, 0.0, 0.0])}, "length 0 in row 2"),
        ({"quats_xyzw": (2, [1.0, 1.0, 0.0, 0.0])}, "length 1.414 in row 2"),
    ],
)
def test_bad_tracks_are_refused_by_row(changes, named):
    with pytest.raises(InvalidInputError, match=named):
        PoseTrack(**broken(**changes))


def test_short_and_misshapen_tracks_are_refused():
    track = sample()
    with pytest.raises(InvalidInputError, match="1 poses"):
        track.part(0, 1)
    with pytest.raises(InvalidInputError, match="track positions"):
        PoseTrack(track.times, track.positions[:-1], track.quats_xyzw)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "header"),
        ("x,y,z\n1,2,3\n", "header"),
        (TRACK_HEADER + "\n", "0 poses"),
        (TRACK_HEADER + "\n0,0,0,0,0,0,0,1\n", "1 poses"),
        (TRACK_HEADER + "\n0,0,0,0,0,0,1\n1,0,0,0,0,0,1\n", "7 columns"),
        (TRACK_HEADER + "\n0,0,0,0,0,0,0,one\n", "eight numbers"),
        (TRACK_HEADER + "\n0,0,0,0,0,0,0,1\n1,nan,0,0,0,0,0,1\n", "row 1"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, named):
    file = tmp_path / "track.csv"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=named):
        read_track(file)


def test_comments_are_skipped_and_missing_or_binary_files_named(tmp_path):
    file = tmp_path / "track.csv"
    file.write_text(f"# a soap\n{TRACK_HEADER}\n0,0,0,0,0,0,0,1\n# lost here\n1,1,0,0,0,0,0,1\n")
    assert len(read_track(file)) == 2
    with pytest.raises(ResourceNotFoundError):
        read_track(tmp_path / "none.csv")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="not text"):
        read_track(file)
