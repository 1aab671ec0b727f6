"""Cloud and mesh files that claim more than they hold, are encrypted or unpack to gigabytes: refused before memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.array_files import read_arrays
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import load_point_cloud, save_point_cloud

MOST_MEMORY = 64 << 20


def npy(shape: tuple[int, ...], data: bytes = b"", descr: str = "<f8") -> bytes:
    """An array that claims a shape, whatever its data."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def npz(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def flagged(archive: bytes, place: int, value: int) -> bytes:
    """An archive whose headers of members, local and central, say something else."""
    changed = bytearray(archive)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = changed.find(magic)
        struct.pack_into("<H", changed, start + offset + place, value)
    return bytes(changed)


def bomb(size: int) -> bytes:
    """An archive that unpacks to a thousand times as much, and says so."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("points.npy", "w") as member:
        member.write(npy((size // 24, 3)))
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return stream.getvalue()


def claimed(archive: bytes, size: int) -> bytes:
    """An archive whose members say that they unpack to so many bytes."""
    changed = bytearray(archive)
    for magic, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", changed, changed.find(magic) + offset, size)
    return bytes(changed)


GOOD = npz(points=npy((2, 3), np.arange(6.0).tobytes()))
NPZ = {
    "rows": npz(points=npy((10**12, 3))),
    "negative": npz(points=npy((-1, 3))),
    "overflow": npz(points=npy((2**62, 2**62))),
    "nothing by much": npz(points=npy((0, 10**30))),
    "dimensions": npz(points=npy((1,) * 200, bytes(8))),
    "short": npz(points=npy((100, 3), bytes(99))),
    "long": npz(points=npy((1, 3), bytes(99))),
    "object": npz(points=npy((1, 3), bytes(24), "|O")),
    "text": npz(points=npy((1, 3), bytes(24), "<U2")),
    "no type": npz(points=npy((1, 3), bytes(24), "nonsense")),
    "encrypted": flagged(GOOD, 0, 1),
    "unknown method": flagged(GOOD, 2, 99),
    "claims gigabytes": claimed(GOOD, 2**32 - 2),
    "a number": npz(points=b"7"),
    "deep header": npz(points=b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000),
    "bare": npy((10**12, 3)),
    "no zip": b"PK\x03\x04" + bytes(100),
}


def refused(read, path: Path) -> str:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    assert path.name in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("content", NPZ.values(), ids=NPZ)
def test_archives_that_lie_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cloud.npz"
    path.write_bytes(content)
    refused(load_point_cloud, path)
    refused(read_arrays, path)


def test_a_bomb_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    # The header of the member alone tells: 6 GB need not be made to see it.
    path.write_bytes(claimed(bomb(64 << 20), 2**31 + 1))
    assert "when unpacked" in refused(load_point_cloud, path)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["f8", ">f4", "i2", "?"])
def test_honest_arrays_are_read_as_numpy_reads_them(tmp_path: Path, order: str, kind: str) -> None:
    arrays = {
        "points": np.asarray(np.arange(12).reshape(4, 3) % 5, dtype=kind, order=order),
        "one": np.array(3.0), "none": np.empty((0, 3)),
    }  # fmt: skip
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        read = read_arrays(tmp_path / "a.npz")
        assert sorted(read) == sorted(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(read[name], array)
            assert read[name].dtype == array.dtype and read[name].flags.writeable


PLY = "ply\nformat {form} 1.0\nelement {element} {count}\nproperty {kind} x\nproperty {kind} y\nproperty {kind} z\n"
PCD = (
    "VERSION .7\nFIELDS x y z\nSIZE {size} {size} {size}\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {count}\nHEIGHT 1\n"
    "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\nDATA {form}\n"
)
COUNTS = ["4000000000", "1000000000000", "9" * 5000, "50000000", "-5", "x"]


@pytest.mark.parametrize("count", COUNTS, ids=lambda count: count[:13])
@pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_ply_files_that_lie_about_their_counts_are_refused(tmp_path: Path, form: str, count: str) -> None:
    pytest.importorskip("open3d", reason="needs open3d")
    header = PLY.format(form=form, element="vertex", count=count, kind="double") + "end_header\n"
    path = tmp_path / "cloud.ply"
    path.write_bytes(header.encode() + b"1 2 3\n" * 10)
    refused(load_point_cloud, path)
    faces = PLY.format(form=form, element="vertex", count=3, kind="float")
    faces += f"element face {count}\nproperty list uchar int vertex_indices\nend_header\n"
    path.write_bytes(faces.encode() + bytes(100))
    refused(load_mesh, path)


@pytest.mark.parametrize("count", COUNTS, ids=lambda count: count[:13])
@pytest.mark.parametrize("form", ["ascii", "binary", "binary_compressed"])
def test_pcd_files_that_lie_about_their_counts_are_refused(tmp_path: Path, form: str, count: str) -> None:
    pytest.importorskip("open3d", reason="needs open3d")
    path = tmp_path / "cloud.pcd"
    data = struct.pack("<II", 60, 0xF0000000) + bytes(60) if form == "binary_compressed" else b"1 2 3\n" * 10
    path.write_bytes(PCD.format(form=form, count=count, size=4).encode() + data)
    refused(load_point_cloud, path)
    path.write_bytes(PCD.format(form=form, count=10, size=count).encode() + data)
    refused(load_point_cloud, path)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("ending", ["ply", "pcd"])
def test_honest_files_are_read(tmp_path: Path, ending: str, text: bool) -> None:
    pytest.importorskip("open3d", reason="needs open3d")
    rng = np.random.default_rng(0)
    for count in (1, 2, 1000):
        # Digits: the shortest text that a number can have.
        points = rng.integers(0, 10, (count, 3)).astype(float)
        for normals in (None, np.tile([0.0, 0.0, 1.0], (count, 1))):
            path = tmp_path / f"{count}.{ending}"
            save_point_cloud(PointCloud(points, normals), path, text)
            np.testing.assert_array_equal(load_point_cloud(path).points, points)


def test_a_header_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cloud.ply"
    path.write_bytes(b"ply\nformat ascii 1.0\n" + b"comment x\n" * 10_000)
    refused(load_point_cloud, path)
    refused(load_mesh, path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_with_any_bit_turned_over_is_read_or_refused(tmp_path: Path, method: int) -> None:
    rng = np.random.default_rng(method)
    file = tmp_path / "cloud.npz"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("points.npy", npy((40, 3), rng.normal(size=120).tobytes()))
    refused = 0
    for _ in range(300):
        damaged = bytearray(stream.getvalue())
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            load_point_cloud(file)
        except InvalidInputError:
            refused += 1
    assert refused > 150
