"""benchmarks/motion_arms.py: from a URDF to motions that are proven and touch nothing in truth."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "motion_arms.py"


def arm(joints: int, size: str = "0.12 0.04 0.04") -> str:
    text = '<robot name="arm"><link name="l0"/>'
    for j in range(joints):
        text += (
            f'<link name="l{j + 1}"><collision><origin xyz="0.1 0 0"/><geometry><box size="{size}"/></geometry>'
            f'</collision></link><joint name="j{j}" type="revolute"><parent link="l{j}"/><child link="l{j + 1}"/>'
            f'<origin xyz="0.2 0 0"/><axis xyz="0 {j % 2} {1 - j % 2}"/>'
            '<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>'
        )
    return text + "</robot>"


def test_any_urdf_is_tried(tmp_path: Path) -> None:
    for joints in (3, 4):
        (tmp_path / f"arm{joints}.urdf").write_text(arm(joints), encoding="utf-8")
    words = [
        str(tmp_path / "arm3.urdf"),
        str(tmp_path / "arm4.urdf"),
        "--problems",
        "3",
        "--json",
        str(tmp_path / "out.json"),
    ]
    done = subprocess.run([sys.executable, str(BENCHMARK), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    short, long = json.loads((tmp_path / "out.json").read_text())["robots"]
    assert "fewer than 4 joints" in short["skipped"]
    assert (long["joints"], long["problems"]) == (4, 3)
    assert long["solved"] >= 1
    assert (long["proven"], long["touching"]) == (long["solved"], 0)


def test_surfaces_call_nothing_touching_that_the_meshes_do_not(tmp_path: Path) -> None:
    (tmp_path / "arm7.urdf").write_text(arm(7, "0.18 0.08 0.08"), encoding="utf-8")
    words = [str(tmp_path / "arm7.urdf"), "--near", "1500", "--warm", "--json", str(tmp_path / "out.json")]
    done = subprocess.run([sys.executable, str(BENCHMARK), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "out.json").read_text())["robots"]
    # Four levels of covers, and the surfaces.
    assert len(row["touching"]) == 5
    assert row["touching"][0] > row["touching"][-1] == 0
