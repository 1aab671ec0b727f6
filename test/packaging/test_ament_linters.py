"""ROS's linters, where they are installed: `colcon test` on a ROS machine.

In the environment of `make test` they are not, and ruff checks the same and more.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ("setup.py", "launch", "morphit_ros", "scripts")
# Of pep257's and its relatives' rules: where a summary may take two lines, end without a full stop or begin with a
# name in lower case, where quotes stand, and the sections that other conventions underline or order.
LEFT_OUT = ["D205", "D209", "D213", "D301", "D400", "D401", "D402", "D403", "D406", "D407", "D413", "D415", "D417"]


def linter(name: str) -> Any:
    return pytest.importorskip(f"{name}.main", reason=f"{name} comes with ROS 2 only")


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_flake8() -> None:
    count, errors = linter("ament_flake8").main_with_errors(
        argv=["--config", "test/packaging/ament_flake8.ini", *PYTHON]
    )
    assert count == 0, "\n".join(errors)


def test_pep257() -> None:
    paths = ("setup.py", "launch", "morphit_ros")
    assert linter("ament_pep257").main(argv=["--add-ignore", *LEFT_OUT, "--", *paths]) == 0


def test_xmllint() -> None:
    module = linter("ament_xmllint")
    if shutil.which("xmllint") is None:
        pytest.skip("xmllint is not installed (libxml2-utils)")
    files = [str(path.relative_to(ROOT)) for path in (*ROOT.glob("package.xml"), *ROOT.glob("morphit_*/*.xml"))]
    assert len(files) >= 4
    # The schema lies on a server: where that cannot be reached, nothing can be said.
    if "XML_CATALOG_FILES" not in os.environ and not _is_reachable("download.ros.org"):
        pytest.skip("download.ros.org, where package.xml has its schema, cannot be reached")
    assert module.main(argv=files) == 0


def _is_reachable(host: str) -> bool:
    try:
        socket.create_connection((host, 80), timeout=3.0).close()
    except OSError:
        return False
    return True
