"""The command line of benchmarks/sphere_planning.py, on a scene of one box."""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks/sphere_planning.py"
START = (0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8)
GOAL = (0.6, 0.3, 0.0, -1.7, 0.0, 2.0, 0.8)


def write_problem(folder: Path) -> None:
    """A box between start and goal, as data/planning has its problems."""
    joints = [f"panda_joint{number}" for number in range(1, 8)]
    box = {"name": "box", "type": "box", "dimensions": [0.1, 0.1, 0.6], "position": [0.55, 0.1, 0.3]}
    problem = {
        "index": 1,
        "start": dict(zip(joints, START, strict=True)),
        "goal": dict(zip(joints, GOAL, strict=True)),
        "obstacles": [box | {"quaternion_xyzw": [0.0, 0.0, 0.0, 1.0]}],
    }
    (folder / "planning").mkdir()
    text = json.dumps({"robot": "panda", "problems": {"post": [problem]}})
    (folder / "planning/motionbenchmaker_panda.json.gz").write_bytes(gzip.compress(text.encode()))


@pytest.mark.slow
def test_both_evaluations_replay_each_path_that_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("coal")
    write_problem(tmp_path)
    words = ["--data", str(tmp_path), "--quick", "--json", str(tmp_path / "rows.json"), "--output", str(tmp_path)]
    monkeypatch.setattr("sys.argv", [str(SCRIPT), *words])
    assert runpy.run_path(str(SCRIPT))["main"]() == 0
    printed = capsys.readouterr().out
    assert "fewest spheres a link" in printed and "| V cover | 6 | 66 |" in printed
    assert (tmp_path / "spheres-planning.png").stat().st_size > 10_000
    rows: list[dict[str, Any]] = json.loads((tmp_path / "rows.json").read_text())["rows"]
    cells = {(row["evaluation"], row["environment"]) for row in rows}
    assert cells == {("A", "post"), ("A", "gate"), ("B", "gap 240 mm")}
    assert len(rows) == 2 * 3 * 2
    # What is proven of a proven cover holds for the meshes.
    covered = [row for row in rows if row["model"] == "V cover" and row["found"]]
    assert covered and all(row["proven"] and row["succeeded"] and row["possible"] for row in covered)
    assert all(row["possible"] for row in rows if row["evaluation"] == "B")
    assert all(row["position_error"] < 1e-6 for row in rows if row["found"])


def test_data_without_problems_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(SCRIPT), "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT))["main"]()
    assert ended.value.code == 2
