"""YAML without trust: what is too deep, too large once written out, or no YAML at all is refused by name, at once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from morphit_ros import budgets
from morphit_ros.bringup.parameter_files import read_mapping, read_parameters, unmatched_sections
from morphit_ros.cover.cases import load_case
from morphit_ros.documents import parse_yaml, read_text, read_yaml_file
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.configuration import RobotConfiguration


def laughs(merge: bool, levels: int = 12) -> str:
    """Ten to the power of the levels, in some lines."""
    lines = ["a0: &a0 {x: 1, y: 2}"]
    for level in range(1, levels):
        ten = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {{<<: [{ten}]}}" if merge else f"a{level}: &a{level} [{ten}]")
    return "\n".join(lines)


HOSTILE = {
    "deep lists": "[" * 100_000,
    "deep closed lists": "[" * 10_000 + "]" * 10_000,
    "deep mappings": "{a: " * 5_000 + "1" + "}" * 5_000,
    "deep blocks": "\n".join(" " * level + "a:" for level in range(1_000)),
    "merge bomb": laughs(merge=True),
    "alias bomb": laughs(merge=False),
    "merge of itself": "a: &a {<<: *a}",
    "list of itself": "a: &a [*a]",
    "unknown alias": "a: *b",
    "base 60": "a: " + ":".join(["1"] * 500_000),
    "digits": "a: " + "9" * 1_000_000,
    "many": "[" + "1," * 500_000 + "]",
    "no month": "a: 2024-13-45",
    "tagged nonsense": "a: !!float ''",
    "tagged time": "a: !!timestamp x",
    "tagged flag": "a: !!bool x",
    "object": "a: !!python/object/apply:os.system ['true']",
    "unhashable": "? {a: 1}\n: 2",
    "control characters": "a: \x00\x01",
    "tab": "a:\n\t- b",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_refused_by_name_and_take_no_memory(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInputError, match="robot"):
            parse_yaml(text, "robot.yaml")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_ordinary_documents_are_read_with_their_aliases() -> None:
    text = "a: &a {x: 1, t: [1, 2.5]}\nb: {<<: *a, y: true}\nc: *a\nd: '" + "9" * 5000 + "'"
    read = parse_yaml(text, "file")
    assert read["b"] == {"x": 1, "t": [1, 2.5], "y": True} and read["c"] == read["a"]
    assert read["d"] == "9" * 5000
    assert parse_yaml("", "file") is None


READERS = {
    "robot": RobotConfiguration.load,
    "gripper": Gripper.load,
    "parameters": lambda path: read_parameters(Path(path), "node"),
    "sections": lambda path: unmatched_sections(Path(path), ["node"]),
    "mapping": lambda path: read_mapping(Path(path), "a mapping", "none"),
    "cover": load_case,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_every_reader_of_yaml_refuses_them(tmp_path: Path, read, text: str) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"hostile\.yaml"):
        read(str(path))


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with (tmp_path / "large.yaml").open("wb") as stream:
        stream.truncate(budgets.MOST_YAML_BYTES + 1)
    (tmp_path / "folder.yaml").mkdir()
    for name, error in (
        ("bytes.yaml", InvalidInputError), ("large.yaml", InvalidInputError), ("folder.yaml", ResourceNotFoundError),
        ("none.yaml", ResourceNotFoundError), ("a" * 5000, MorphitError), ("a\0b", MorphitError),
    ):  # fmt: skip
        with pytest.raises(error):
            read_yaml_file(tmp_path / name)
    with pytest.raises(MorphitError):
        read_text("/dev/zero", 100)


@pytest.mark.parametrize("change", ["duration: [1]", "duration: x", "published: [[a, b, c]]", "controller: {no: 1}"])
def test_a_case_with_values_that_are_none_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(f"cover: {{rows: 2, cols: 2, pitch: 0.1, fixed_nodes: [1]}}\ntarget: '0'\n{change}\n")
    with pytest.raises(MorphitError):
        load_case(str(path))
