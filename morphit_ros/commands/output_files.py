"""Files that commands write: refused before the work if they cannot be written after it."""

from __future__ import annotations

import os
from pathlib import Path

from morphit_ros.errors import InvalidInputError


def check_output(option: str, file: str | None) -> None:
    """Refuse a file that cannot be written; missing folders will be made.

    Args:
        option: as it is typed, "--output".
        file: as it was typed, None if it was not.

    Raises:
        InvalidInputError: a folder, or a folder around it that is a file or must not be written.
    """
    if file is None:
        return
    path = Path(file).absolute()
    if path.is_dir():
        raise InvalidInputError(option, file, "the name of a file", "This is a folder.")
    around = path.parent
    while not around.exists():
        around = around.parent
    if not around.is_dir() or not os.access(around, os.W_OK | os.X_OK):
        raise InvalidInputError(option, file, f"a file in a folder that can be written, which {around} is not")
