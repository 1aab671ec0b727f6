"""`morphit contact`: what is written, and the exit status of bad input and of plans that fail."""

from __future__ import annotations

import json

import numpy as np

from morphit_ros.cli import main

DISK = ("--center", "0.75", "1.62", "--count", "12")


def test_a_plan_is_printed_and_written(tmp_path, capsys):
    csv, report = tmp_path / "plan.csv", tmp_path / "plan.json"
    assert main(["contact", "spinner", *DISK, "--turn", "1", "--trajectory", str(csv), "--json", str(report)]) == 0
    assert capsys.readouterr().out.startswith("succeeded: ")
    rows = np.loadtxt(csv, delimiter=",", skiprows=1)
    assert csv.read_text().splitlines()[0] == "time,upper,lower,spinner"
    np.testing.assert_allclose(rows[0], [0.0, 0.3, 1.5, 0.0])
    told = json.loads(report.read_text())
    assert told["status"] == "succeeded"
    np.testing.assert_allclose(told["turned"], rows[-1, 3], atol=1e-8)


def test_a_goal_that_is_missed_writes_no_trajectory(tmp_path, capsys):
    csv = tmp_path / "plan.csv"
    assert main(["contact", "spinner", *DISK, "--shape", "tip", "--turn", "60", "--trajectory", str(csv)]) == 1
    assert not capsys.readouterr().out.startswith("succeeded")
    assert not csv.exists()


def test_bad_input_has_status_2(capsys):
    assert main(["contact", "spinner", *DISK, "--joints", "0.6", "1.2"]) == 2
    assert "overlapping by" in capsys.readouterr().err
    assert main(["contact", "spinner", "--turn", "nan"]) == 2
    assert main(["contact", "push", "--mass", "0"]) == 2
    assert "mass" in capsys.readouterr().err
    assert main(["contact", "push", "--way", "0", "0"]) == 2
