"""Data files are found, and files are written whole or not at all."""

import pytest

from morphit_ros.errors import ResourceNotFoundError
from morphit_ros.resources import atomic_write, cache_directory, resource


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as stream:
        stream.write("half of the ne")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.txt"]


def test_a_complete_write_replaces_the_file(tmp_path):
    path = tmp_path / "new" / "result.bin"
    with atomic_write(path, "wb") as stream:
        stream.write(b"\x00\x01")
    assert path.read_bytes() == b"\x00\x01"


def test_a_missing_resource_names_its_siblings():
    with pytest.raises(ResourceNotFoundError, match="franka_hand"):
        resource("config/grippers/three_fingers.yaml")


def test_the_cache_follows_its_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    assert cache_directory("spheres") == tmp_path / "spheres"
