"""One observed motion: a model, what was seen of each body, and what is known about the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import invert_quats, multiply_quats, rotation_vectors
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.array_faults import array_fault
from morphit_ros.neural.identification.motion import TANGENT, Motion, stepped
from morphit_ros.neural.identification.tracks import PoseTrack

StartKnowledge = Literal["known", "velocity_unknown", "unknown"]


@dataclass(frozen=True)
class Experiment:
    """One observed motion.

    Attributes:
        motion: the model that predicts it.
        tracks: (B) track of each body's centre of mass, None for a body that was not seen. All seen ones share times.
        start: (B, 13) state at the first time, or None: poses of the first frame, velocities estimated from the track.
            Bodies that were not seen need it.
        knowledge: what of the start is certain. "known": all of it; "velocity_unknown": poses are, velocities are
            estimated along with the parameters; "unknown": poses and velocities are estimated (for noisy tracks).
            Applies to the seen bodies; the start of the others is taken as given.
        directions: (12 B, L) tangents of the start along which it is unknown, in place of what `knowledge` says: such
            as the place on a table of what is known to lie on it. None: as `knowledge` says.

    Raises:
        InvalidInputError: no track, tracks that don't fit the model or each other, a start or directions of the wrong
            shape.
    """

    motion: Motion
    tracks: tuple[PoseTrack | None, ...]
    start: Array | None = None
    knowledge: StartKnowledge = "velocity_unknown"
    directions: Array | None = None

    def __post_init__(self) -> None:
        if self.knowledge not in ("known", "velocity_unknown", "unknown"):
            raise InvalidInputError("knowledge", repr(self.knowledge), "known, velocity_unknown or unknown")
        object.__setattr__(self, "tracks", tuple(self.tracks))
        if len(self.tracks) != self.motion.bodies:
            raise InvalidInputError("tracks", f"{len(self.tracks)}", f"one for each of {self.motion.bodies} bodies")
        if not self.seen:
            raise InvalidInputError("tracks", "none", "the track of at least one body")
        self._check_times()
        if self.start is None:
            missing = [index for index in range(len(self.tracks)) if index not in self.seen]
            if missing:
                raise InvalidInputError("start", "none", f"the state of body {missing[0]}, which was not seen")
            object.__setattr__(self, "start", np.array([first_state(self._track(i)) for i in self.seen]))
        start = np.array(self.start, dtype=np.float64)
        if fault := array_fault(start, (len(self.tracks), 13)):
            raise InvalidInputError("start", fault, f"finite numbers ({len(self.tracks)}, 13)")
        object.__setattr__(self, "start", start)
        if self.directions is not None:
            directions = np.array(self.directions, dtype=np.float64)
            rows = TANGENT * len(self.tracks)
            # Any number of columns: a row of them more would be one of the rows.
            if fault := array_fault(directions.T, (None, rows)):
                raise InvalidInputError("directions, transposed", fault, f"finite numbers (L, {rows})")
            object.__setattr__(self, "directions", directions)

    def _check_times(self) -> None:
        """Refuse tracks that were not taken at the same times."""
        first = self.seen[0]
        times = self._track(first).times
        for index in self.seen[1:]:
            other = self._track(index).times
            if len(other) != len(times):
                found = f"{len(other)} poses of body {index}, and {len(times)} of body {first}"
            elif len(apart := np.flatnonzero(np.abs(other - times) > 1e-9)):
                row = int(apart[0])
                found = f"pose {row} of body {index} at {other[row]:g} s, and of body {first} at {times[row]:g} s"
            else:
                continue
            raise InvalidInputError(
                "tracks", found, "tracks of one experiment at the same times", "Resample one to the other's times."
            )

    @property
    def seen(self) -> tuple[int, ...]:
        """Indices of the bodies with a track."""
        return tuple(index for index, track in enumerate(self.tracks) if track is not None)

    @property
    def times(self) -> Array:
        """(T,) times of the poses [s]."""
        return self._track(self.seen[0]).times

    @property
    def positions(self) -> Array:
        """(T, S, 3) positions of the seen bodies [m]."""
        return np.stack([self._track(index).positions for index in self.seen], axis=1)

    @property
    def quats_xyzw(self) -> Array:
        """(T, S, 4) orientations of the seen bodies."""
        return np.stack([self._track(index).quats_xyzw for index in self.seen], axis=1)

    @property
    def certain(self) -> bool:
        """Whether nothing of the start is unknown."""
        return self.knowledge == "known" if self.directions is None else self.directions.shape[1] == 0

    @property
    def pose_certain(self) -> bool:
        """Whether the first poses are exact."""
        if self.directions is None:
            return self.knowledge != "unknown"
        return self.certain

    def with_certain_start(self) -> Experiment:
        """The same motion, with all of its start taken as known."""
        return replace(self, knowledge="known", directions=None)

    def _track(self, index: int) -> PoseTrack:
        track = self.tracks[index]
        assert track is not None
        return track


def first_state(track: PoseTrack, frames: int = 6) -> Array:
    """(13,) state at the first pose of a track, its velocities by a parabola through the first frames."""
    count = min(frames, len(track))
    times = track.times[:count] - track.times[0]
    relative = rotation_vectors(multiply_quats(invert_quats(track.quats_xyzw[:1]), track.quats_xyzw[:count]))
    values = np.hstack([track.positions[:count] - track.positions[0], relative])
    # Through the first pose, which the start keeps.
    powers = np.column_stack([times, times**2])[1:, : min(2, count - 1)]
    rates = np.linalg.lstsq(powers, values[1:], rcond=None)[0][0]
    return np.concatenate([track.positions[0], track.quats_xyzw[0], rates])


def cut_windows(experiment: Experiment, frames: int) -> list[Experiment]:
    """The experiment cut into windows of `frames` poses, each with a start of its own (multiple shooting).

    A motion that is sensitive to its start, such as one of many impacts, is predicted only as far as it can be. The
    windows overlap in one pose; a rest of fewer than three poses is left out. All bodies must be seen.

    Raises:
        InvalidInputError: fewer than three frames, or a body that was not seen.
    """
    if frames < 3:
        raise InvalidInputError("window", frames, "three frames or more, or 0 for the whole track")
    if len(experiment.seen) != len(experiment.tracks):
        raise InvalidInputError("window", frames, "0, as not all bodies were seen: their starts would be unknown")
    count = len(experiment.times)
    if count <= frames:
        return [experiment]
    windows = []
    for first in range(0, count - 3 + 1, frames - 1):
        tracks = tuple(track.part(first, first + frames) if track is not None else None for track in experiment.tracks)
        start = experiment.start if first == 0 else None
        knowledge: StartKnowledge = experiment.knowledge if first == 0 else "unknown"
        directions = experiment.directions if first == 0 else None
        motion = stepped(experiment.motion, "window").later(float(experiment.times[first] - experiment.times[0]))
        windows.append(Experiment(motion, tracks, start, knowledge, directions))
    return windows


def check_experiments(experiments: Sequence[Experiment]) -> None:
    """Refuse an empty list.

    Raises:
        InvalidInputError: there is none.
    """
    if not experiments:
        raise InvalidInputError("experiments", "none", "at least one observed motion")
