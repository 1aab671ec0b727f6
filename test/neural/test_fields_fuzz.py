"""Damaged files of fields and recordings are read or refused with our errors, never with anything else.

Four ways: bytes of the file, bytes of a member of a sound zip file, arrays and headers that are nonsense under a right
hash. What is read must be of use: finite bounds, densities and gradients, a threshold in its range, a hull that has
room in the bounds, cameras that are somewhere near.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ball_views import ball_depths, ball_images
from field_samples import FIELDS

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.archive import read_archive, write_archive
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.neural.learning.field_file import LearnedField, load_learned_field, save_field
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.silhouette_hull import HullThreshold
from morphit_ros.neural.views.recording import Recording, load_recording, save_recording

# With all that a file can hold of what was learned.
LEARNED = LearnedField(
    FIELDS["grid"],
    HullThreshold(
        0.5, 0.4, 0.6, 0.98, VolumeMoments(0.003, np.array([0.02, -0.05, 0.1]), np.diag([1e-5, 2e-5, 1e-5])), 0.0027
    ),
    np.array([[0.4, 0.0, 0.3], [-0.4, 0.1, 0.3]]),
)
NOT_CONTENT = ("kind", "version", "shapes", "sha256")
NONSENSE: list[Any] = [None, -1, 0, 2**70, 1e308, 1e-320, True, "x", "1" * 5000, [], [1, 2], {}, {"type": "sphere"}]
REPLACED: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda array: array * np.nan,
    lambda array: array + np.inf,
    lambda array: array.astype(np.float64) * 1e300,
    lambda array: np.full(array.shape, 1e-320),
    lambda array: np.full(array.shape, -1, dtype=np.int64),
    lambda array: np.full(array.shape, 2**63, dtype=np.uint64),
    lambda array: array.astype(np.bool_),
    lambda array: array.reshape(-1),
    lambda array: array[None],
    lambda array: array[:0],
    lambda array: array[..., :1],
    lambda array: array.T,
    lambda array: np.zeros(()),
]


def field_is_sound(path: Path) -> None:
    learned = load_learned_field(path)
    field = learned.field
    low, high = field.bounds
    assert np.isfinite(field.bounds).all()
    assert (low < high).all()
    points = low + (high - low) * np.linspace(0.0, 1.0, 7)[:, None]
    densities = field.density(points)
    assert (np.isfinite(densities) & (densities >= 0.0)).all()
    assert np.isfinite(field.gradient(points)).all()
    if learned.eyes is not None:
        assert learned.eyes.shape[1:] == (3,)
        assert (np.linalg.norm(learned.eyes - low, axis=1) < 1.1e6 * np.linalg.norm(high - low)).all()
    if learned.threshold is None:
        return
    least, most = learned.threshold.range
    assert 0.0 < least <= learned.threshold.value <= most < np.inf
    assert 0.0 <= learned.threshold.agreement <= 1.0
    if isinstance(learned.threshold, HullThreshold):
        assert 0.0 <= learned.threshold.pixel < np.linalg.norm(high - low)
        hull = learned.threshold.hull
        if hull is not None:
            assert 0.0 <= hull.volume <= 1.001 * (high - low).prod()
            assert ((low <= hull.center) & (hull.center <= high)).all()
            assert np.isfinite(hull.second_moment).all()


def recording_is_sound(path: Path) -> None:
    recording = load_recording(path)
    for views in (recording.images, recording.depths):
        assert views is None or (np.isfinite(views.T_world_camera).all() and np.isfinite(views.intrinsics).all())
    assert recording.truth is None or np.isfinite(recording.truth.vertices).all()


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut short, with a part twice or missing, with flipped bytes, or with a count that became extreme."""
    place = int(rng.integers(len(data)))
    length = int(rng.integers(1, 100))
    match rng.integers(5):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + data[place + length :]
        case 2:
            return data[: place + length] + data[place:]
        case 3:
            return data[:place] + bytes(byte ^ 0x41 for byte in data[place : place + 3]) + data[place + 3 :]
        case _:
            extreme = [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"9999"][rng.integers(4)]
            return data[:place] + extreme + data[place + 4 :]


def nonsense_in(content: Any, rng: np.random.Generator) -> Any:
    """A header with one of its values, somewhere within, replaced or missing."""
    if isinstance(content, dict | list) and content and rng.random() < 0.8:
        changed = content.copy()
        keys = list(content) if isinstance(content, dict) else range(len(content))
        key = keys[int(rng.integers(len(keys)))]
        if rng.random() < 0.15:
            del changed[key]
        else:
            changed[key] = nonsense_in(content[key], rng)
        return changed
    return NONSENSE[int(rng.integers(len(NONSENSE)))]


def damaged_files(path: Path, kind: str, version: int, target: Path, rng: np.random.Generator) -> Any:
    """Writes one damaged variant of a file after the other to the target; yields how it was damaged."""
    data = path.read_bytes()
    header, arrays = read_archive(path, kind, version)
    content = {name: value for name, value in header.items() if name not in NOT_CONTENT}
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    while True:
        target.write_bytes(damaged(data, rng))
        yield "bytes"
        name = list(members)[int(rng.integers(len(members)))]
        with zipfile.ZipFile(target, "w") as archive:
            for other, member in members.items():
                archive.writestr(other, damaged(member, rng) if other == name else member)
        yield "member"
        changed = dict(arrays)
        if arrays:
            name = list(arrays)[int(rng.integers(len(arrays)))]
            with np.errstate(all="ignore"):
                changed[name] = REPLACED[int(rng.integers(len(REPLACED)))](arrays[name])
            if rng.random() < 0.1:
                del changed[name]
        write_archive(target, kind, version, content, changed)
        yield "arrays"
        # Not the words for people.
        names = [name for name in content if name != "description"] or ["field"]
        name = names[int(rng.integers(len(names)))]
        write_archive(target, kind, version, content | {name: nonsense_in(content.get(name), rng)}, arrays)
        yield "header"


@pytest.mark.parametrize("name", [*FIELDS, "learned", "recording"])
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "sound.npz"
    if name == "recording":
        save_recording(Recording(ball_images(2), ball_depths(2), box_mesh((1.0, 1.0, 1.0)), "a ball"), path)
        kind, version, read = "recording of views", 1, recording_is_sound
    else:
        learned = LEARNED if name == "learned" else LearnedField(FIELDS[name])
        save_field(learned.field, path, threshold=learned.threshold, eyes=learned.eyes)
        kind, version, read = "density field", 2, field_is_sound
    read(path)
    outcomes: Counter[tuple[str, str]] = Counter()
    target = tmp_path / "damaged.npz"
    rng = np.random.default_rng([*name.encode()])
    # A learned field's header holds the most numbers.
    count = 4 * (80 if name == "learned" else 20)
    for _, way in zip(range(count), damaged_files(path, kind, version, target, rng), strict=False):
        try:
            read(target)
        except InvalidInputError as error:
            assert str(target) in str(error)
            outcomes[way, "refused"] += 1
        else:
            outcomes[way, "read"] += 1
    assert outcomes["bytes", "refused"] > 10
    assert outcomes["member", "refused"] > 15
    if name == "learned":
        assert outcomes["header", "refused"] > 40
        assert outcomes["header", "read"] > 0
