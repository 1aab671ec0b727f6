"""``--data`` is the same folder in every benchmark: the one that holds cover/, grasp/, neural/, ..."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from morphit_bench.data_option import add_data

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_folder_without_the_part_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "neural").mkdir()
    parser = argparse.ArgumentParser()
    add_data(parser, "neural")
    assert parser.parse_args(["--data", str(tmp_path)]).data == tmp_path
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--data", str(tmp_path / "neural")])
    error = capsys.readouterr().err
    assert "'neural' was not found" in error
    assert "the folder that holds cover/" in error


def test_where_it_is_without_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_DATA", str(tmp_path))
    parser, without = argparse.ArgumentParser(), argparse.ArgumentParser()
    add_data(parser, "neural")
    add_data(without, "cover", optional=True)
    assert parser.parse_args([]).data == tmp_path
    assert without.parse_args([]).data is None


def test_no_benchmark_resolves_it_in_another_way() -> None:
    for path in BENCHMARKS.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert 'shared/data"' not in text, path.name
        assert not re.search(r"environ.get\(\"MORPHIT_DATA", text), path.name
