"""Commands where modules are not installed: each runs, or says in one line what is missing and what brings it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_output_files import NEEDED

from morphit_ros.dependencies import (
    DEPENDENCIES,
    EXTRAS,
    ONLY_IN_ROS,
    OWN_MESSAGES,
    how_to_install,
    missing_dependency,
    needed_for,
    require,
)
from morphit_ros.errors import InvalidInputError, MissingDependencyError

ROOT = Path(__file__).parents[2]
OPTIONAL = {name for entry in DEPENDENCIES if entry.extras for name in entry.modules.split()}
OPTIONAL |= {*ONLY_IN_ROS, OWN_MESSAGES, "morphit_bench"}
BASE = {name for entry in DEPENDENCIES if not entry.extras for name in entry.modules.split()}

# Runs command lines one after another in a Python that cannot find some modules, and prints what became of each.
WALK = """
import contextlib, importlib.abc, io, json, sys
hidden, lines = json.load(sys.stdin)

finders = list(sys.meta_path)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return next((spec for finder in finders if (spec := finder.find_spec(name, path, target))), None)

for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
    del sys.modules[name]
sys.meta_path[:] = [Finder()]
from morphit_ros.cli import main
results = []
for words in lines:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
        except BaseException as error:
            status = f"{type(error).__name__}: {error}"
    results.append((status, out.getvalue(), err.getvalue()))
json.dump(results, sys.stdout)
"""


def walk(hidden: set[str], lines: list[list[str]], folder: Path) -> list[tuple[int | str, str, str]]:
    """Exit status (or the error that came through), output and error output of each command line."""
    done = subprocess.run(
        [sys.executable, "-c", WALK], input=json.dumps([sorted(hidden), lines]),
        capture_output=True, text=True, check=True, cwd=folder, timeout=120,
    )  # fmt: skip
    return [tuple(result) for result in json.loads(done.stdout)]


def words_of(command: str) -> list[str]:
    return command.split()[1:]


def test_without_extras_every_help_is_printed_and_what_needs_one_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.ply").write_text("ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n0\n")
    (tmp_path / "part.off").write_text("OFF\n3 1 0\n0 0 0\n.1 0 0\n0 .1 0\n3 0 1 2\n")
    refused = {
        "up cover": "ros",
        "arm home": "ros",
        "grasp --cloud a.ply --gripper hande": "grasp",
        "sample recording": "simulation",
        "neural record --object t_block --output r.npz": "simulation",
        "spheres fit part.off": "spheres",
        "superovoid fit part.off --output part.yaml": "spheres",
        "cover run 3x3 --duration 0.1": "cover",
        "cover view 3x3 --port 0": "cover",
    }
    # The options of the comparison are those of morphit_bench.
    helped = [command for command in NEEDED if command != "morphit spheres compare"]
    run = ["up --list", "up grasp --list", "spheres library list", "cover place 3x3"]
    lines = [["--help"], *([*words_of(name), "--help"] for name in helped), *map(str.split, run)]
    results = walk(OPTIONAL, [*lines, *map(str.split, refused)], tmp_path)
    worked, named = results[: -len(refused)], results[-len(refused) :]
    for words, (status, out, err) in zip(lines, worked, strict=True):
        assert status == 0 and out, (words, status, err)
    for (words, extra), (status, _, err) in zip(refused.items(), named, strict=True):
        assert status == 2, (words, status, err)
        (line,) = err.strip().splitlines()
        assert line.startswith("morphit: ") and f"[{extra}]" in line, line


def test_without_anything_every_command_says_in_one_line_what_is_missing(tmp_path: Path) -> None:
    lines = [[*words_of(name), *words] for name, words in NEEDED.items()]
    results = walk(OPTIONAL | BASE, [["--help"], *lines], tmp_path)
    assert results[0][0] == 0
    for words, (status, _, err) in zip(lines, results[1:], strict=True):
        assert status == 2, (words, status, err)
        (line,) = err.strip().splitlines()
        assert "needs the package" in line and "pip install" in line, line


def test_a_node_says_in_one_line_what_is_missing() -> None:
    code = """
import sys
sys.modules["rclpy"] = None
from morphit_ros import nodes
nodes.start("pick_client")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("pick_client: the node pick_client needs the package 'rclpy'. ")


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("torch", "the extra [neural]"),
        ("numba.core", "pip install 'numba>="),
        ("sensor_msgs.msg", "pip install '.[ros]' ./morphit_interfaces"),
        ("morphit_interfaces.msg", "./morphit_interfaces"),
        ("moveit.planning", "ros-jazzy-moveit-py"),
        ("qpsolvers", "pip install qpsolvers"),
    ],
)
def test_the_remedy_is_what_brings_the_module(module: str, remedy: str) -> None:
    error = missing_dependency(module, "this")
    assert remedy in str(error)
    assert error.package == module.partition(".")[0]
    assert "\n" not in str(error)


def test_only_what_is_missing_is_taken_for_it() -> None:
    with (
        pytest.raises(MissingDependencyError, match="the view needs the package 'no_such_module'"),
        needed_for("the view"),
    ):
        raise ModuleNotFoundError(name="no_such_module.part")
    # Ours, misspelt: a mistake of ours, with its traceback.
    with pytest.raises(ModuleNotFoundError) as ours, needed_for("the view"):
        import morphit_ros.no_such_module  # noqa: F401
    assert not isinstance(ours.value, MissingDependencyError)
    with pytest.raises(OSError, match="disk full"), needed_for("the view"):
        raise OSError("disk full")
    with pytest.raises(InvalidInputError), needed_for("the view"):
        raise InvalidInputError("a", 1, "2")
    with (
        pytest.raises(MissingDependencyError, match=r"'libusb-1\.0\.so\.0'.*library of the system"),
        needed_for("clouds"),
    ):
        raise OSError("libusb-1.0.so.0: cannot open shared object file: No such file or directory")


def test_require_looks_without_importing() -> None:
    require("this", "antigravity", "json")
    assert "antigravity" not in sys.modules
    with pytest.raises(MissingDependencyError, match="this needs the package 'no_such_module'"):
        require("this", "json", "no_such_module")


def test_every_extra_is_named_by_something() -> None:
    first = {entry.extras.split()[0] for entry in DEPENDENCIES if entry.extras}
    for extra in EXTRAS:
        assert any(extra in entry.extras.split() for entry in DEPENDENCIES), extra
    for extra in first:
        assert any(f"[{extra}]" in how_to_install(entry.project) for entry in DEPENDENCIES)
