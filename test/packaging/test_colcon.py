"""colcon builds both packages, runs their tests, and installs what ros2 run and ros2 launch look for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from colcon_workspace import ENVIRONMENT, ROOT, build, colcon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ENVIRONMENT / "bin/colcon").is_file(), reason="colcon is missing: run make .colcon/stamp"),
]


@pytest.fixture(scope="module")
def workspace() -> Path:
    """A copy of the sources, built."""
    return build()


@pytest.mark.usefixtures("workspace")
def test_both_packages_are_found_with_their_types() -> None:
    lines = colcon("list").stdout.splitlines()
    assert [line.split("\t")[::2] for line in lines] == [
        ["morphit_interfaces", "(ros.ament_cmake)"],
        ["morphit_ros", "(ros.ament_python)"],
    ]


def test_packages_are_found_in_a_workspace_with_src(workspace: Path) -> None:
    # As the documents say; without the nested folder colcon finds only the outer package.
    source = workspace.parent
    nested = source / "morphit_ros/morphit_interfaces"
    lines = colcon("list", "--names-only", "--base-paths", str(source), str(nested)).stdout.split()
    assert lines == ["morphit_interfaces", "morphit_ros"]


def test_executables_are_where_ros2_run_looks(workspace: Path) -> None:
    folder = workspace / "install/lib/morphit_ros"
    nodes = {path.stem for path in (ROOT / "morphit_ros/nodes").glob("[!_]*.py")}
    assert {path.name for path in folder.iterdir()} == nodes | {"morphit"}
    for path in folder.iterdir():
        assert os.access(path, os.X_OK), f"{path.name} is not executable"


def test_data_and_index_are_installed(workspace: Path) -> None:
    share = workspace / "install/share"
    for package in ("morphit_ros", "morphit_interfaces"):
        assert (share / "ament_index/resource_index/packages" / package).is_file()
        assert (share / package / "package.xml").is_file()
    for path in (ROOT / "launch").glob("*.launch.py"):
        assert (share / "morphit_ros/launch" / path.name).is_file()
    for name in ("config/robots/panda.yaml", "rviz/grasp.rviz", "urdf/panda_workcell.urdf.xacro"):
        assert (share / "morphit_ros" / name).is_file()


def test_interfaces_are_generated(workspace: Path) -> None:
    (library,) = workspace.glob("install/lib/libmorphit_interfaces__rosidl_generator_c.so")
    assert library.stat().st_size > 0
    assert list(workspace.glob("install/lib/python3*/site-packages/morphit_interfaces/action/_pick.py"))


@pytest.mark.usefixtures("workspace")
def test_colcon_test_passes_and_ran_something() -> None:
    colcon("test", "--packages-select", "morphit_ros")
    # Says which tests failed and why; ends with 1 then.
    summary = colcon("test-result", "--all", "--verbose").stdout.splitlines()[-1]
    counts = dict(reversed(part.split()) for part in summary.removeprefix("Summary: ").split(", "))
    assert int(counts["tests"]) > 20
    assert counts["errors"] == counts["failures"] == "0"
