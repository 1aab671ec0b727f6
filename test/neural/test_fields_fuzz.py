"""Damaged files of fields and recordings are read or refused with our errors, never with anything else.

Four ways: bytes of the file, bytes of a member of a sound zip file, arrays and headers that are nonsense under a right
hash. What is read must be of use: finite bounds, densities and gradients.
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
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.neural.archive import read_archive, write_archive
from morphit_ros.neural.fields.field_file import load_field, save_field
from morphit_ros.neural.views.recording import Recording, load_recording, save_recording

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
    field = load_field(path)
    low, high = field.bounds
    assert np.isfinite(field.bounds).all()
    assert (low < high).all()
    points = low + (high - low) * np.linspace(0.0, 1.0, 7)[:, None]
    densities = field.density(points)
    assert (np.isfinite(densities) & (densities >= 0.0)).all()
    assert np.isfinite(field.gradient(points)).all()


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


def damaged_files(path: Path, kind: str, target: Path, rng: np.random.Generator) -> Any:
    """Writes one damaged variant of a file after the other to the target; yields how it was damaged."""
    data = path.read_bytes()
    header, arrays = read_archive(path, kind, 1)
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
        write_archive(target, kind, 1, content, changed)
        yield "arrays"
        write_archive(target, kind, 1, content | {"field": nonsense_in(content.get("field"), rng)}, arrays)
        yield "header"


@pytest.mark.parametrize("name", [*FIELDS, "recording"])
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "sound.npz"
    if name == "recording":
        save_recording(Recording(ball_images(2), ball_depths(2), box_mesh((1.0, 1.0, 1.0)), "a ball"), path)
        kind, read = "recording of views", recording_is_sound
    else:
        save_field(FIELDS[name], path)
        kind, read = "density field", field_is_sound
    read(path)
    outcomes: Counter[tuple[str, str]] = Counter()
    target = tmp_path / "damaged.npz"
    rng = np.random.default_rng([*name.encode()])
    for _, way in zip(range(4 * 20), damaged_files(path, kind, target, rng), strict=False):
        try:
            read(target)
        except InvalidInputError as error:
            assert str(target) in str(error)
            outcomes[way, "refused"] += 1
        else:
            outcomes[way, "read"] += 1
    assert outcomes["bytes", "refused"] > 10
    assert outcomes["member", "refused"] > 15
