"""What make would run: names with spaces stay one word."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def last_command(target: str, *assignments: str) -> list[str]:
    """The words of the last line that a dry run prints."""
    result = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", target, *assignments],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return shlex.split(result.stdout.splitlines()[-1])


def test_demo_picks_the_box_unless_told_otherwise() -> None:
    assert last_command("demo") == [".venv/bin/morphit", "demo", "--object", "box", "--output", "demo-output"]


def test_demo_of_a_mesh_file_takes_its_mass_and_names_with_spaces() -> None:
    words = last_command("demo", "OBJECT=my parts/part 1.stl", "MASS=0.2", "OUTPUT=my output")
    assert words[1:] == ["demo", "--object", "my parts/part 1.stl", "--mass", "0.2", "--output", "my output"]


def test_python_may_have_a_space_in_its_path(tmp_path: Path) -> None:
    # In a copy, where nothing is set up yet.
    for name in ("Makefile", "package.xml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("morphit_interfaces", "launch", "config", "urdf", "rviz", "scripts", "resource", "tools"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / "tools/find_python.sh", tmp_path / "tools")
    command = ["make", "--no-print-directory", "--dry-run", ".venv/stamps/environment", "PYTHON=/my tools/python3"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 'tools/find_python.sh "/my tools/python3" python3.12' in result.stdout
