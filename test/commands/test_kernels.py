"""`morphit compile` leaves nothing to compile for the commands of the README."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from morphit_ros.cli import main
from morphit_ros.commands import kernels
from morphit_ros.simulation.objects import load_object

# Runs commands, one after the other, and writes of each which kernels were compiled for it: what one of them compiles
# the next ones have.
COUNT = """
import json, sys, traceback
from numba.core import event
from morphit_ros.cli import main
results = {}
for command in sys.argv[2:]:
    with event.install_recorder("numba:compile") as recorder:
        try:
            status = main(command.split("|"))
        except BaseException:
            status = traceback.format_exc()
        names = sorted({entry.data["dispatcher"].py_func.__qualname__ for _, entry in recorder.buffer})
    results[command] = [status, names]
with open(sys.argv[1], "w") as file:
    json.dump(results, file)
"""
PAIR = ("{semi_axes: [0.03, 0.02, 0.05]}", "{semi_axes: [0.04, 0.03, 0.02], tapering: [0.1, 0.1], xyz: [0.2, 0, 0]}")
COMMANDS = (
    f"distance|{PAIR[0]}|{PAIR[1]}",
    "distance|--robot|panda|--joint|panda_joint4=-2.0",
    *(f"grasp|--cloud|cup.ply|--gripper|{name}" for name in ("franka_hand", "hande", "umi")),
    "grasp|--cloud|cup.ply|--gripper|hande|--table-height|-0.01|--picture|grasp.png",
    "spheres|fit|part.obj|--count|5|--no-cache",
    "spheres|fit|part.obj|--cover|--no-cache",
    "spheres|fit|part.obj|--count|5|--no-cache|--deviation",
    "spheres|front|part.obj|--count|3|--seeds|1|--no-cache",
    "spheres|fit|panda|--total|40|--no-cache|--output|panda.urdf|--output|panda.srdf",
    "superovoid|fit|part.obj|--output|part.yaml",
    "superovoid|fit|part.obj|--mode|outer|--link-count|part=2|--output|part.yaml",
    "superovoid|fit|panda|--links|panda_link3|panda_hand|--output|panda.yaml",
    "contact|spinner|--center|0.75|1.62|--turn|1|--count|12",
    "cover|run|8x8|--duration|0.1|--plot|cover.png",
    "cover|place|3x3",
    "neural|push|--size|0.1|0.06|0.04|--mass|0.2|--goal|0.05|0.01|--duration|0.4|--iterations|1",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cloud and a mesh, on a machine where `morphit compile` has run."""
    assert main(["compile"]) == 0
    path = tmp_path_factory.mktemp("inputs")
    part = load_object("t_block").mesh
    # As cameras see it: a cloud from all sides shows no side to stand on.
    assert main(["sample", "cup", "--output", str(path / "cup.ply")]) == 0
    lines = [f"v {x} {y} {z}" for x, y, z in part.vertices] + [f"f {a} {b} {c}" for a, b, c in part.faces + 1]
    (path / "part.obj").write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def compiled(folder: Path) -> dict[str, list[object]]:
    """Command → its status, and what was compiled for it in a process that ran them all."""
    words = [sys.executable, "-c", COUNT, "compiled.json", *COMMANDS]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads((folder / "compiled.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_of_the_readme_waits_for_a_compiler(command: str, compiled: dict[str, list[object]]) -> None:
    # One iteration finds no push, and has called every kernel.
    status = 1 if command.startswith("neural|push") else 0
    assert compiled[command] == [status, []]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Parts that would be compiled, in an empty cache."""
    calls: list[list[str]] = []
    monkeypatch.setenv("MORPHIT_KERNELS", str(tmp_path / "kernels"))
    monkeypatch.setattr(kernels, "compile_parts", lambda names, jobs: calls.append(names) or 7)
    return calls


def test_what_is_compiled_is_not_compiled_again(asked, capsys) -> None:
    assert main(["compile"]) == 0
    assert asked == [list(kernels.PARTS)]
    assert "7 kernels compiled" in capsys.readouterr().out
    assert main(["compile"]) == 0
    assert len(asked) == 1
    assert "All kernels are compiled" in capsys.readouterr().out


def test_other_sources_are_compiled_and_their_mark_is_the_only_one(asked, monkeypatch, tmp_path: Path) -> None:
    main(["compile"])
    monkeypatch.setattr(kernels, "_sources", lambda: "other")
    main(["compile"])
    assert len(asked) == 2
    assert [file.name for file in (tmp_path / "kernels").iterdir()] == ["compiled-other"]


def test_bad_jobs_are_refused(capsys) -> None:
    assert main(["compile", "--jobs", "0"]) == 2
    assert "--jobs: got 0" in capsys.readouterr().err


# A part that is compiled in two seconds. "make setup" compiles the real ones, and fails where one cannot be.
SMALL_PART = """
import numpy as np
from morphit_ros.geometry.boundary import boundary_edges

def warm_up():
    assert len(boundary_edges(np.array([[0, 1, 2], [0, 2, 3]]))) == 4
"""


def test_a_part_is_compiled_once_for_all_processes(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "small_part.py").write_text(SMALL_PART)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(kernels.PARTS, "small part", ("small_part", "warm_up"))
    monkeypatch.setenv("MORPHIT_KERNELS", str(tmp_path / "kernels"))
    assert kernels.compile_parts(["small part"], 1) > 5
    assert kernels.compile_parts(["small part"], 1) == 0
