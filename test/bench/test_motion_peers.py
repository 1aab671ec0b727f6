"""benchmarks/motion_peers.py: planners on the same problems, and a clear message about those that are not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "benchmarks" / "motion_peers.py"
# A plane arm of three links, one above the other; its base has no geometry.
LINKS = "".join(
    f'<link name="l{n}"><collision><origin xyz="0.2 0 {0.1 * n}"/><geometry><box size="0.3 0.04 0.04"/></geometry>'
    "</collision></link>"
    for n in range(1, 4)
)
JOINTS = "".join(
    f'<joint name="j{n}" type="revolute"><parent link="l{n - 1}"/><child link="l{n}"/>'
    f'<origin xyz="{0.4 if n > 1 else 0.0} 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-2.5" upper="2.5" velocity="1" effort="1"/></joint>'
    for n in range(1, 4)
)
ARM = f'<robot name="arm"><link name="l0"/>{LINKS}{JOINTS}</robot>'
PEERS = {"ompl-spheres": "ompl", "ompl-states": "ompl", "ompl-coal": "ompl", "roboplan": "roboplan"}


def write_problems(folder: Path) -> list[str]:
    """Two problems, a post between start and goal and nothing at all, as words for the benchmark."""
    post = {"name": "post", "type": "cylinder", "dimensions": [1.0, 0.05], "position": [0.7, 0.0, 0.0]}
    ends = {"start": {"j1": -0.8, "j2": 0.0, "j3": 0.0}, "goal": {"j1": 0.8, "j2": 0.0, "j3": 0.0}}
    common = ends | {"obstacles": []}
    hard = common | {"index": 1, "obstacles": [post | {"quaternion_xyzw": [0.0, 0.0, 0.0, 1.0]}]}
    (folder / "arm.urdf").write_text(ARM, encoding="utf-8")
    document = {"robot": str(folder / "arm.urdf"), "problems": {"post": [hard, common | {"index": 2}]}}
    (folder / "problems.json").write_text(json.dumps(document), encoding="utf-8")
    return ["--problems", str(folder / "problems.json"), "--json", str(folder / "out.json")]


def run(words: list[str], *first: Path) -> subprocess.CompletedProcess[str]:
    paths = [*map(str, first), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, str(BENCHMARK), *words], capture_output=True, text=True, check=False, env=environment
    )


def runs_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "out.json").read_text())["runs"]
    return found


def test_our_planner_beside_one_that_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("coal")
    absent = tmp_path / "absent"
    (absent / "ompl").mkdir(parents=True)
    (absent / "ompl" / "__init__.py").write_text("raise ImportError('as if it were not installed')\n")
    done = run([*write_problems(tmp_path), "--planners", "ours", "ompl-spheres", "ompl-coal"], absent)
    assert done.returncode == 0, done.stderr
    left_out = "Left out: ompl-spheres, ompl-coal, for want of the package 'ompl'."
    assert done.stderr.count("pip install ompl roboplan") == 1 and left_out in done.stderr
    hard, easy = runs_of(tmp_path)
    assert (hard["planner"], hard["solved"], hard["touching"], hard["proven"]) == ("ours", True, 0, True)
    # Straight where nothing is in the way, around the post where it is.
    assert easy["length"] == pytest.approx(1.6) and hard["length"] > 1.7
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert "| 2 | 2 of 2 |" in rows[1] and "| 2 of 2 |" in rows[1][-12:]
    assert "VAMP, published" in rows[2] and len(rows) == 3
    nothing = run([*write_problems(tmp_path), "--planners", "ompl-states"], absent)
    assert nothing.returncode == 2 and "pip install ompl roboplan" in nothing.stderr


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_solves_what_we_solve(peer: str, tmp_path: Path) -> None:
    pytest.importorskip("coal")
    pytest.importorskip(PEERS[peer], reason=f"needs pip install {PEERS[peer]}")
    done = run([*write_problems(tmp_path), "--planners", peer, "--seeds", "2"])
    assert done.returncode == 0, done.stderr
    found = runs_of(tmp_path)
    assert [(row["index"], row["seed"]) for row in found] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all(row["solved"] and row["depth"] < 0.005 for row in found)
    assert all(row["length"] > 1.7 for row in found[:2])
    assert found[2]["length"] == pytest.approx(1.6, abs=0.05) and found[2]["touching"] == 0
