"""docs/python.md: its blocks run, in their order, in one session."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "python.md"


def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    for word in ("(12, 3) (12,)", "--unit mm", "[0.08 0.08 0.1", "watertight: True", "certified", "finger:"):
        assert word in result.stdout, result.stdout
    assert (tmp_path / "spheres.obj").is_file()
