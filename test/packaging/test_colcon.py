"""colcon builds both packages, runs their tests, and installs what ros2 run and ros2 launch look for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".colcon" / "venv"
# Not part of the sources that are copied for the build.
LEFT_OUT = (".git", ".venv", ".colcon", "build", "install", "log", "__pycache__", ".mypy_cache", ".ruff_cache")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ENVIRONMENT / "bin/colcon").is_file(), reason="colcon is missing: run make .colcon/stamp"),
]


def colcon(workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        key: value
        for key, value in os.environ.items()
        # What the ROS wheels, pytest and a sourced workspace put there belongs to another environment.
        if not key.startswith(("_ROS_WHEELS", "LD_LIBRARY_PATH", "PYTEST_", "PYTHON", "AMENT_", "COLCON_", "CMAKE_"))
    }
    environment |= {
        "PATH": f"{ENVIRONMENT / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "AMENT_PREFIX_PATH": str(ENVIRONMENT),
        "CMAKE_PREFIX_PATH": str(ENVIRONMENT),
        "COLCON_DEFAULTS_FILE": str(workspace / "colcon_defaults.yaml"),
        "COLCON_HOME": str(workspace / "colcon_home"),
        "COLCON_LOG_LEVEL": "30",
        # Otherwise it compiles nothing in parallel while another worker is busy.
        "MAKEFLAGS": "-j2",
    }
    result = subprocess.run(
        [str(ENVIRONMENT / "bin/colcon"), *words],
        cwd=workspace, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, f"colcon {' '.join(words)}:\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, built."""
    import shutil

    folder = tmp_path_factory.mktemp("colcon") / "morphit_ros"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    # The wheels' CMake files need the same corrections as in pip's build; those of a ROS installation do not.
    corrections = folder / "morphit_interfaces/cmake/wheel_environment.cmake"
    python = ENVIRONMENT / "bin/python"
    colcon(
        folder, "build", "--event-handlers", "console_cohesion+", "--cmake-args", "-DBUILD_TESTING=OFF",
        f"-DCMAKE_PROJECT_INCLUDE={corrections}", f"-DPython3_EXECUTABLE={python}", f"-DPYTHON_EXECUTABLE={python}",
    )  # fmt: skip
    return folder


def test_both_packages_are_found_with_their_types(workspace: Path) -> None:
    lines = colcon(workspace, "list").stdout.splitlines()
    assert [line.split("\t")[::2] for line in lines] == [
        ["morphit_interfaces", "(ros.ament_cmake)"],
        ["morphit_ros", "(ros.ament_python)"],
    ]


def test_packages_are_found_in_a_workspace_with_src(workspace: Path) -> None:
    # As the documents say; without the nested folder colcon finds only the outer package.
    source = workspace.parent
    nested = source / "morphit_ros/morphit_interfaces"
    lines = colcon(workspace, "list", "--names-only", "--base-paths", str(source), str(nested)).stdout.split()
    assert lines == ["morphit_interfaces", "morphit_ros"]


def test_executables_are_where_ros2_run_looks(workspace: Path) -> None:
    folder = workspace / "install/lib/morphit_ros"
    nodes = {path.stem for path in (ROOT / "morphit_ros/nodes").glob("*.py")} - {"__init__"}
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


def test_colcon_test_passes_and_ran_something(workspace: Path) -> None:
    colcon(workspace, "test", "--packages-select", "morphit_ros", "--return-code-on-test-failure")
    summary = colcon(workspace, "test-result", "--all").stdout.splitlines()[-1]
    counts = dict(reversed(part.split()) for part in summary.removeprefix("Summary: ").split(", "))
    assert int(counts["tests"]) > 20
    assert counts["errors"] == counts["failures"] == "0"
