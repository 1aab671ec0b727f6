"""`morphit neural push` refuses what it cannot do, before it plans anything."""

from __future__ import annotations

import pytest

from morphit_ros.cli import main


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["field.npz", "--arm", "panda"], "--arm"),
        (["--size", "0.06", "0.0", "0.04"], "size"),
        (["--mass", "-1"], "mass"),
        (["--duration", "0"], "duration"),
        (["no_such_field.npz"], "no_such_field.npz"),
    ],
)
def test_bad_options_are_named(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["neural", "push", *words]) == 2
    assert named in capsys.readouterr().err
