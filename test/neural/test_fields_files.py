"""Fields in files: what comes back is what was saved, and hostile files are refused."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from field_samples import EVERY_FIELD, points_around

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.fields.field_file import load_field, save_field
from morphit_ros.neural.fields.grid import GridField

BOUNDS = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])


@EVERY_FIELD
def test_round_trip(field, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "field.npz"
    save_field(field, file, "a test")
    loaded = load_field(file)
    assert type(loaded) is type(field)
    points = points_around(field, 500, 0.01)
    np.testing.assert_array_equal(loaded.bounds, field.bounds)
    np.testing.assert_array_equal(loaded.density(points), field.density(points))
    np.testing.assert_array_equal(loaded.gradient(points), field.gradient(points))
    again = tmp_path / "again.npz"
    save_field(loaded, again, "a test")
    assert again.read_bytes() == file.read_bytes()


def test_an_own_class_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    class Own(SphereField):
        pass

    with pytest.raises(InvalidInputError, match="Own"):
        save_field(Own(0.1), tmp_path / "field.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "field.npz"
    save_field(GridField(np.random.default_rng(0).uniform(size=(8, 8, 8)), BOUNDS), path)
    return path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, content: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy(array: np.ndarray, **options: bool) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def header_of(path: Path) -> dict:
    return json.loads(np.load(io.BytesIO(members(path)["header.npy"])).tobytes())


def with_header(path: Path, **changes: object) -> None:
    text = json.dumps(header_of(path) | changes).encode()
    rewrite(path, members(path) | {"header.npy": npy(np.frombuffer(text, dtype=np.uint8))})


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError, match="density field"):
        load_field(tmp_path / "none.npz")


@pytest.mark.parametrize("length", [0, 1, 10, 100, 1000, -30, -1])
def test_truncated(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(InvalidInputError, match="complete file"):
        load_field(file)


def test_no_field_at_all(file: Path) -> None:
    for content in (b"ply\nformat ascii", pickle.dumps({"a": 1}), b"\x00" * 500):
        file.write_bytes(content)
        with pytest.raises(InvalidInputError, match="complete file"):
            load_field(file)
    with file.open("wb") as stream:
        np.savez(stream, points=np.zeros((3, 3)))
    with pytest.raises(InvalidInputError, match="without a readable header"):
        load_field(file)


def test_flipped_bytes_never_load_silently(file: Path) -> None:
    good = file.read_bytes()
    rng = np.random.default_rng(0)
    expected = load_field(file).density(np.full((1, 3), 0.4))
    for position in rng.integers(len(good), size=150):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        file.write_bytes(bytes(bad))
        try:
            loaded = load_field(file)
        except InvalidInputError:
            continue
        # Some bytes of a zip file mean nothing (times, attributes).
        assert loaded.density(np.full((1, 3), 0.4)) == expected


def test_other_kind_or_version(file: Path) -> None:
    with_header(file, version=99)
    with pytest.raises(InvalidInputError, match="version 99"):
        load_field(file)
    with_header(file, version=1, kind="recording")
    with pytest.raises(InvalidInputError, match="kind 'recording'"):
        load_field(file)


def test_changed_array(file: Path) -> None:
    rewrite(file, members(file) | {"values.npy": npy(np.ones((8, 8, 8)))})
    with pytest.raises(InvalidInputError, match="do not match the header"):
        load_field(file)


class Trap:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was executed",))


def test_pickled_arrays_are_not_read(file: Path) -> None:
    for name in ("values.npy", "header.npy"):
        good = members(file)
        rewrite(file, good | {name: npy(np.array([Trap()], dtype=object), allow_pickle=True)})
        with pytest.raises(InvalidInputError, match="numbers or booleans"):
            load_field(file)
        rewrite(file, good)


@pytest.mark.parametrize("shape", [(10**6, 10**6, 10**6), (2**40,), (-1, -8), (8, 8, 9)])
def test_absurd_shapes_take_no_memory(file: Path, shape: tuple[int, ...]) -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)  # type: ignore[arg-type]
    rewrite(file, members(file) | {"values.npy": stream.getvalue() + b"\x00" * 4096})
    with pytest.raises(InvalidInputError):
        load_field(file)


def test_a_bomb_is_not_unpacked(file: Path) -> None:
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros.npy", "w", force_zip64=True):
        pass
    data = file.read_bytes()
    # Claims in the central directory that the added member unpacks to 3 GB.
    start = data.rindex(b"PK\x01\x02")
    file.write_bytes(data[: start + 24] + (3 << 30).to_bytes(4, "little") + data[start + 28 :])
    with pytest.raises(InvalidInputError, match=r"bytes when unpacked|cannot be read"):
        load_field(file)


def rehashed(path: Path, field: object, arrays: dict[str, np.ndarray] | None = None) -> None:
    """A file whose hash is right and whose description is not."""
    from morphit_ros.neural.archive import write_archive

    write_archive(path, "density field", 1, {"field": field}, arrays or {})


@pytest.mark.parametrize(
    ("field", "arrays"),
    [
        (None, {}),
        ([], {}),
        ({}, {}),
        ({"type": "teapot"}, {}),
        ({"type": ["sphere"]}, {}),
        ({"type": "sphere"}, {}),
        ({"type": "sphere", "radius": "1"}, {}),
        ({"type": "sphere", "radius": -1.0}, {}),
        ({"type": "sphere", "radius": 1.0, "color": 3}, {}),
        ({"type": "grid"}, {}),
        ({"type": "grid"}, {"values": np.zeros(3), "bounds": BOUNDS}),
        ({"type": "grid"}, {"values": np.full((2, 2, 2), np.nan), "bounds": BOUNDS}),
        ({"type": "network", "network": {"layers": 10**9, "output": "sigmoid"}}, {"bounds": BOUNDS}),
        ({"type": "samples", "radius": None}, {"points": np.zeros((1, 3)), "densities": np.ones(1)}),
        ({"type": "union", "fields": []}, {}),
    ],
)
def test_descriptions_that_make_no_field(tmp_path: Path, field: object, arrays: dict[str, np.ndarray]) -> None:
    file = tmp_path / "field.npz"
    rehashed(file, field, arrays)
    with pytest.raises(InvalidInputError, match=r"field\.npz"):
        load_field(file)


def test_fields_within_fields_without_end(tmp_path: Path) -> None:
    field: dict = {"type": "sphere", "radius": 1.0}
    for _ in range(20):
        field = {"type": "union", "fields": [field]}
    rehashed(tmp_path / "field.npz", field)
    with pytest.raises(InvalidInputError, match="levels"):
        load_field(tmp_path / "field.npz")
