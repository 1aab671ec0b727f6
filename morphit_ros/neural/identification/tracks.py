"""Tracks: the pose of a body over time, as a camera or a motion capture saw it; files of them.

A file is CSV with the header ``t,x,y,z,qx,qy,qz,qw``: time [s], position in the world [m], unit quaternion of
T_world_body's rotation. Lines that start with # are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.rotations import aligned_quats, multiply_quats, rotate_by_quats
from morphit_ros.geometry.transforms import Array

TRACK_HEADER = "t,x,y,z,qx,qy,qz,qw"
# Quaternions of a file are rounded; farther from unit length than this they are something else.
_UNIT_TOLERANCE = 1e-2


@dataclass(frozen=True)
class PoseTrack:
    """Poses of a body over time.

    Attributes:
        times: (T,) increasing [s].
        positions: (T, 3) of the body frame's origin in the world [m].
        quats_xyzw: (T, 4) unit quaternions of T_world_body; normalised and of one sign here.

    Raises:
        InvalidInputError: fewer than two poses, shapes that don't fit, values that are not finite (with the row),
            times that don't increase (with the row), quaternions that are not unit (with the row).
    """

    times: Array
    positions: Array
    quats_xyzw: Array

    def __post_init__(self) -> None:
        count = len(self.times)
        if count < 2:
            raise InvalidInputError("track", f"{count} poses", "two or more", "One pose says nothing about motion.")
        for name, value, shape in (
            ("times", self.times, (count,)),
            ("positions", self.positions, (count, 3)),
            ("quats_xyzw", self.quats_xyzw, (count, 4)),
        ):
            array = np.array(value, dtype=np.float64)
            if array.shape != shape:
                raise InvalidInputError(f"track {name}", f"shape {array.shape}", f"shape {shape}")
            bad = np.flatnonzero(~np.isfinite(array.reshape(count, -1)).all(axis=1))
            if len(bad):
                raise InvalidInputError(
                    f"track {name}", f"values that are not finite in row {bad[0]} (of {len(bad)} such rows)",
                    "finite numbers", "Leave out the frames in which the tracker lost the body.",
                )  # fmt: skip
            object.__setattr__(self, name, array)
        back = np.flatnonzero(np.diff(self.times) <= 0.0)
        if len(back):
            row = int(back[0]) + 1
            raise InvalidInputError(
                "track times", f"{self.times[row]:g} s after {self.times[row - 1]:g} s in row {row}", "increasing times"
            )
        norms = np.linalg.norm(self.quats_xyzw, axis=1)
        off = np.flatnonzero(np.abs(norms - 1.0) > _UNIT_TOLERANCE)
        if len(off):
            raise InvalidInputError(
                "track quats_xyzw", f"a quaternion of length {norms[off[0]]:.4g} in row {off[0]}", "unit quaternions",
                "The order is x, y, z, w.",
            )  # fmt: skip
        object.__setattr__(self, "quats_xyzw", aligned_quats(self.quats_xyzw / norms[:, None]))

    def __len__(self) -> int:
        return len(self.times)

    @property
    def duration(self) -> float:
        """Time from the first to the last pose [s]."""
        return float(self.times[-1] - self.times[0])

    def part(self, first: int, last: int | None = None) -> PoseTrack:
        """The poses from `first` up to, not including, `last`."""
        return PoseTrack(self.times[first:last], self.positions[first:last], self.quats_xyzw[first:last])

    def moved_frame(self, offset: Array) -> PoseTrack:
        """The track of the frame that lies at (3,) `offset` in this one [m], with the same axes.

        A tracker reports the frame of the model it looks for; dynamics wants the centre of mass.
        """
        return PoseTrack(self.times, self.positions + rotate_by_quats(self.quats_xyzw, offset), self.quats_xyzw)

    def with_noise(self, position: float, rotation: float, seed: int) -> PoseTrack:
        """The track with Gaussian noise of these standard deviations, in each axis [m, rad]."""
        generator = np.random.default_rng(seed)
        turns = generator.normal(0.0, rotation, (len(self), 3))
        half = np.column_stack([0.5 * turns, np.ones(len(self))])
        half /= np.linalg.norm(half, axis=1)[:, None]
        moved = self.positions + generator.normal(0.0, position, (len(self), 3))
        return PoseTrack(self.times, moved, multiply_quats(self.quats_xyzw, half))


def read_track(path: str | Path) -> PoseTrack:
    """The track in a CSV file with the header ``t,x,y,z,qx,qy,qz,qw``.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: another header, text where numbers are expected, or what `PoseTrack` refuses.
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [str(file.parent)])
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError(str(path), "bytes that are not text", "a CSV file") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    header = lines[0].replace(" ", "").lower() if lines else ""
    if header != TRACK_HEADER:
        raise InvalidInputError(str(path), f"the header {header[:60]!r}", f"the header {TRACK_HEADER}")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#") and line != lines[0] and not _is_row(line):
            columns = line.count(",") + 1
            found = repr(line[:60]) if columns == 8 else f"{columns} columns, {line[:60]!r}"
            raise InvalidInputError(f"{path}: line {number}", found, f"eight numbers: {TRACK_HEADER}")
    rows = np.array([line.split(",") for line in lines[1:]], dtype=np.float64).reshape(-1, 8)
    return PoseTrack(rows[:, 0], rows[:, 1:4], rows[:, 4:])


def _is_row(line: str) -> bool:
    """Whether a line is eight numbers."""
    try:
        return len([float(cell) for cell in line.split(",")]) == 8
    except ValueError:
        return False


def write_track(track: PoseTrack, path: str | Path) -> None:
    """Write a track as CSV; the file appears complete or not at all."""
    from morphit_ros.resources import atomic_write

    with atomic_write(path) as stream:
        stream.write(TRACK_HEADER + "\n")
        np.savetxt(
            stream, np.column_stack([track.times, track.positions, track.quats_xyzw]), delimiter=",", fmt="%.12g"
        )


def resampled_positions(track: PoseTrack, times: Array) -> Array:
    """(N, 3) positions of a track at (N,) times [s], straight between its poses.

    Raises:
        InvalidInputError: times before the track's first or more than a frame after its last pose.
    """
    margin = float(np.diff(track.times).max())
    if times[0] < track.times[0] - 1e-9 or times[-1] > track.times[-1] + margin:
        raise InvalidInputError(
            "track times", f"[{track.times[0]:g}, {track.times[-1]:g}] s", f"all of [{times[0]:g}, {times[-1]:g}] s"
        )
    return np.column_stack([np.interp(times, track.times, track.positions[:, axis]) for axis in range(3)])
