"""xacro files that would never end or fill the memory are refused; those of robots are expanded as xacro does."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("xacro")

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot import xacro_files
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.xacro_files import expand_xacro

NAMESPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'


def written(folder: Path, content: str) -> Path:
    path = folder / "robot.urdf.xacro"
    path.write_text(f'<robot name="r" {NAMESPACE}>{content}</robot>')
    return path


HOSTILE = {
    "power": "${9**9**9}",
    "memory": "${len('x' * 10**10)}",
    "list": "${len([0] * 10**9)}",
    "loop": "${[a for a in range(10**10)][0]}",
    "digits": "${str(7**10**7)}",
    "deep": "${" + "(" * 5000 + ")" * 5000 + "}",
    "zero": "${1/0}",
    "unknown": "${nothing}",
    "no end": "${",
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_expressions_that_do_not_end_are_refused(tmp_path: Path, expression: str, monkeypatch) -> None:
    monkeypatch.setattr(xacro_files, "_PROGRAM", xacro_files._PROGRAM.replace("(resource.RLIMIT_CPU, 10)", _SHORT))
    path = written(tmp_path, f'<link name="{expression}"/>')
    with pytest.raises(InvalidInputError, match=r"robot\.urdf\.xacro: got a xacro"):
        load_robot_description(path)


_SHORT = "(resource.RLIMIT_CPU, 2)"


@pytest.mark.parametrize(
    "content",
    [
        '<xacro:macro name="a"><xacro:a/></xacro:macro><xacro:a/>',
        '<xacro:include filename="robot.urdf.xacro"/>',
        '<xacro:include filename="/dev/zero"/>',
        '<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/><link name="${a}"/>',
    ],
    ids=["macro", "include", "device", "property"],
)
def test_files_that_contain_themselves_are_refused(tmp_path: Path, content: str, monkeypatch) -> None:
    monkeypatch.setattr(xacro_files, "_PROGRAM", xacro_files._PROGRAM.replace("(resource.RLIMIT_CPU, 10)", _SHORT))
    with pytest.raises(InvalidInputError, match=r"robot\.urdf\.xacro"):
        load_robot_description(written(tmp_path, content))


def test_a_file_that_waits_is_given_up(tmp_path: Path, monkeypatch) -> None:
    import os

    monkeypatch.setattr(xacro_files, "_PATIENCE", 1.0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInputError, match="takes over"):
        expand_xacro(written(tmp_path, f'<xacro:include filename="{tmp_path}/pipe"/>'), {})


def test_a_large_robot_is_expanded_as_xacro_does(tmp_path: Path) -> None:
    """Two thousand links, thirty times those of a humanoid."""
    import xacro

    links = "".join(
        f'<xacro:l n="{number}"/>' for number in range(2000)
    )  # fmt: skip
    macro = (
        '<xacro:macro name="l" params="n"><link name="l${n}"><collision><origin xyz="0 0 ${n * 0.1}"/><geometry>'
        '<box size="1 1 ${2 * pi}"/></geometry></collision></link></xacro:macro>'
    )
    path = written(tmp_path, macro + links)
    assert expand_xacro(path, {}) == xacro.process_file(str(path)).toxml()


def test_a_module_beside_the_caller_is_not_taken_for_one_of_pythons(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "xacro.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert '<link name="a"/>' in expand_xacro(written(tmp_path, '<link name="a"/>'), {})
