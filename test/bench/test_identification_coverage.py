"""The command line of benchmarks/identification_coverage.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks/identification_coverage.py"), "--correlations", "0", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_draws_are_the_same_whoever_makes_them_and_are_gone_on_with(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    for name, words in {"here": ("--workers", "1"), "processes": ("--workers", "2")}.items():
        done = run("--seeds", "2", *words, "--output", str(tmp_path / name), "--json", str(tmp_path / f"{name}.json"))
        assert "2 draws of 2 done in this run" in done.stdout, done.stderr
    here, processes = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("here", "processes"))
    for row in (*here, *processes):
        assert row.pop("seconds") > 0.0
    assert here == processes and [row["seed"] for row in here] == [0, 1]
    again = run("--seeds", "2", "--output", str(tmp_path / "here"))
    assert again.returncode == 2 and "2 finished tasks" in again.stderr
    assert "0 draws of 2 done" in run("--seeds", "2", "--output", str(tmp_path / "here"), "--resume").stdout


def test_bad_values_end_with_2() -> None:
    done = run("--workers", "0")
    assert done.returncode == 2
    assert done.stderr == "identification_coverage: --workers: got 0, expected in [1, 1024]. Without it: 1.\n"
