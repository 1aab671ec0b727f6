"""Uploaded robots and meshes: what is taken, and that nothing is written outside the folder."""

import errno
import io
import shutil
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot import uploads
from morphit_ros.robot.uploads import store_upload


def zipped(*files, link=None):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in files:
            archive.writestr(name, f"content of {name}")
        if link is not None:
            member = zipfile.ZipInfo(link)
            member.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(member, "/etc")
    return stream.getvalue()


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "a" / "folder"
    inside.mkdir(parents=True)
    yield inside
    assert [path for path in tmp_path.rglob("*") if path.is_file() and inside not in path.parents] == []


@pytest.mark.parametrize(
    ("name", "kept"), [("cup.STL", "cup.STL"), ("../../cup.obj", "cup.obj"), (r"C:\robots\arm.urdf", "arm.urdf")]
)
def test_a_file_is_kept_under_its_own_name(folder, name, kept):
    path = store_upload(name, b"content", folder)
    assert path == folder / kept
    assert path.read_bytes() == b"content"


def test_a_zip_is_unpacked_and_its_highest_description_found(folder):
    files = ["arm/urdf/arm.urdf", "arm/urdf/parts/finger.urdf", "arm/meshes/link.stl"]
    path = store_upload("arm.zip", zipped(*files), folder)
    assert path == folder / "arm/urdf/arm.urdf"
    assert (folder / "arm/meshes/link.stl").read_text() == "content of arm/meshes/link.stl"


@pytest.mark.parametrize("name", ["../out.stl", "arm/../../out.stl", "/tmp/out.stl", r"..\out.stl", "C:/out.stl"])
def test_a_zip_that_names_places_outside_is_refused(folder, name):
    with pytest.raises(InvalidInputError, match="inside the zip's own folder"):
        store_upload("arm.zip", zipped("arm.urdf", name), folder)
    assert list(folder.iterdir()) == []


def test_links_in_a_zip_are_refused(folder):
    with pytest.raises(InvalidInputError, match="inside the zip's own folder"):
        store_upload("arm.zip", zipped("arm.urdf", link="meshes"), folder)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("arm.txt", b"", "a zip of a URDF's folder"),
        ("arm.zip", b"no zip", "a zip that can be unpacked"),
        ("arm.zip", zipped("arm.stl", "arm.xacro"), "no .urdf"),
        ("arm.zip", zipped("a/left.urdf", "b/right.urdf"), "a/left.urdf, b/right.urdf"),
    ],
)
def test_what_cannot_be_shown_is_refused(folder, name, content, words):
    with pytest.raises(InvalidInputError, match=words):
        store_upload(name, content, folder)


def test_a_zip_that_would_fill_the_disk_is_refused_before_it_does(folder, monkeypatch):
    monkeypatch.setattr(uploads, "_LARGEST", 20)
    with pytest.raises(InvalidInputError, match="at most"):
        store_upload("arm.zip", zipped("arm.urdf", "one.stl"), folder)
    assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_is_refused_or_harmless(folder, method):
    rng = np.random.default_rng(method)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("arm/arm.urdf", "<robot/>" * 50)
        archive.writestr("arm/link.stl", rng.bytes(300))
    refused = 0
    for turn in range(150):
        damaged = bytearray(stream.getvalue())
        for place in rng.integers(0, len(damaged), 3):
            damaged[place] ^= 1 << int(rng.integers(8))
        try:
            store_upload("arm.zip", bytes(damaged[: len(damaged) - turn % 5]), folder)
        except InvalidInputError:
            refused += 1
        shutil.rmtree(folder)
        folder.mkdir()
    assert refused > 100


def test_a_file_where_a_folder_should_be_is_the_zips_fault(folder):
    with pytest.raises(InvalidInputError, match="can be unpacked"):
        store_upload("arm.zip", zipped("arm.urdf", "arm.urdf/one.stl"), folder)


def test_a_full_disk_is_not_called_a_damaged_zip(folder, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", full)
    with pytest.raises(OSError, match="No space left"):
        store_upload("arm.zip", zipped("arm.urdf"), folder)
