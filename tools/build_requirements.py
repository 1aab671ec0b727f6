"""Prints what a pyproject.toml asks for to build its package, one requirement a line, as pip reads them."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> None:
    project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print("\n".join(project["build-system"]["requires"]))


if __name__ == "__main__":
    main()
