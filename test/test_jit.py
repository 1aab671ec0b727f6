"""The cache of compiled kernels: shared by processes and checkouts, and never older than the sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DAY = 86_400.0
CALLER = """from morphit_bench.callee import twice
from morphit_ros.jit import njit

@njit(cache=True)
def kernel(x):
    return twice(x) + 1.0
"""
CALLEE = """from morphit_ros.jit import njit

@njit(cache=True)
def twice(x):
    return {factor} * x
"""
RUN = """import json
from morphit_bench.caller import kernel
print(json.dumps({"value": kernel(3.0), "hits": sum(kernel.stats.cache_hits.values())}))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a package that holds two kernels, one of which calls the other."""
    return make_checkout(tmp_path / "checkout")


def make_checkout(root: Path) -> Path:
    package = root / "morphit_bench"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)
    write_callee(root, 2.0)
    return root


def write_callee(root: Path, factor: float) -> None:
    (root / "morphit_bench" / "callee.py").write_text(CALLEE.format(factor=factor))


def call(root: Path, cache: Path) -> dict[str, Any]:
    """What the kernel of a checkout returns in a process of its own, and how often it was found in the cache."""
    paths = os.pathsep.join([str(root), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "MORPHIT_KERNELS": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def test_a_process_finds_what_another_compiled(checkout: Path, tmp_path: Path) -> None:
    assert call(checkout, tmp_path / "cache") == {"value": 7.0, "hits": 0}
    assert call(checkout, tmp_path / "cache") == {"value": 7.0, "hits": 1}


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_changes_in_another_file(
    checkout: Path, tmp_path: Path
) -> None:
    call(checkout, tmp_path / "cache")
    write_callee(checkout, 5.0)
    assert call(checkout, tmp_path / "cache") == {"value": 16.0, "hits": 0}
    # And what was compiled before serves again when the source is as it was.
    write_callee(checkout, 2.0)
    assert call(checkout, tmp_path / "cache") == {"value": 7.0, "hits": 1}


def test_another_checkout_of_the_same_content_finds_it(checkout: Path, tmp_path: Path) -> None:
    call(checkout, tmp_path / "cache")
    other = make_checkout(tmp_path / "elsewhere")
    shutil.rmtree(checkout)
    assert call(other, tmp_path / "cache") == {"value": 7.0, "hits": 1}


def test_without_a_cache_that_can_be_written_numbas_own_serves(checkout: Path, tmp_path: Path) -> None:
    # Nobody, not even root, makes a folder in a file.
    file = tmp_path / "file"
    file.touch()
    assert call(checkout, file / "cache") == {"value": 7.0, "hits": 0}
    assert call(checkout, file / "cache") == {"value": 7.0, "hits": 1}
    assert list((checkout / "morphit_bench" / "__pycache__").glob("caller.kernel*.nbi"))


def test_what_nobody_has_used_for_a_month_is_removed_when_something_is_added(checkout: Path, tmp_path: Path) -> None:
    kernels = tmp_path / "cache"
    ages = {"long_unused-0123": 31 * DAY, "used_last_month-0123": 29 * DAY}
    for name, age in ages.items():
        (kernels / name).mkdir(parents=True)
        (kernels / name / "kernel.nbc").touch()
        os.utime(kernels / name, (time.time() - age,) * 2)
    call(checkout, tmp_path / "cache")
    assert sorted(entry.name.partition("-")[0] for entry in kernels.iterdir()) == [
        "callee", "caller", "used_last_month",
    ]  # fmt: skip


def test_what_is_used_counts_as_used(checkout: Path, tmp_path: Path) -> None:
    call(checkout, tmp_path / "cache")
    (folder,) = (tmp_path / "cache").glob("caller-*")
    os.utime(folder, (time.time() - 20 * DAY,) * 2)
    assert call(checkout, tmp_path / "cache")["hits"] == 1
    assert folder.stat().st_mtime > time.time() - DAY


LEAN = """import numpy as np
from morphit_ros.jit import lean_njit, njit

@njit(cache=True)
def reserving(x):
    return np.full(3, x).sum()

@lean_njit
def lean(x):
    return reserving(x) + 1.0

@lean_njit
def reserving_itself(x):
    return np.full(3, x).sum()
"""


def test_a_lean_kernel_calls_what_reserves_memory_but_reserves_none_itself(checkout: Path, tmp_path: Path) -> None:
    """Options are inherited by what is first compiled for a call: `reserving` has to keep its own."""
    (checkout / "morphit_bench" / "lean.py").write_text(LEAN)
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(ROOT)]), "MORPHIT_KERNELS": str(tmp_path)
    }  # fmt: skip
    run = "from morphit_bench.lean import lean, reserving_itself; print(lean(2.0)); reserving_itself(2.0)"
    done = subprocess.run([sys.executable, "-c", run], cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "7.0"
    assert done.returncode != 0
    assert "Failed in nopython mode pipeline" in done.stderr and "reserving_itself" in done.stderr
