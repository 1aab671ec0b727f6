"""Output of several processes on one stream: whole lines, each with the name of its process."""

from __future__ import annotations

import itertools
from typing import TextIO

# ANSI colours that read well on dark and light backgrounds.
_COLOURS = (36, 32, 35, 34, 33, 96, 92, 95)


class PrefixedOutput:
    """Writes lines of named processes, prefixed ``[name] ``, coloured on a terminal.

    Args:
        stream: where to.
        names: of all processes; prefixes are padded to the longest.
    """

    def __init__(self, stream: TextIO, names: list[str]) -> None:
        self._stream = stream
        width = max((len(name) for name in names), default=0)
        coloured = stream.isatty()
        self._prefixes = {}
        for name, colour in zip(names, itertools.cycle(_COLOURS), strict=False):
            plain = f"[{name}]".ljust(width + 2)
            self._prefixes[name] = f"\033[{colour}m{plain}\033[0m " if coloured else f"{plain} "

    def line(self, name: str, text: str) -> None:
        """Write one line at once, so that lines of different processes do not mix."""
        self._stream.write(f"{self._prefixes[name]}{text}\n")
        self._stream.flush()


class LineSplitter:
    """Cuts a byte stream into lines; of a line that overwrites itself (a progress bar) the last state stays."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete with this piece."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [_text(line) for line in lines]

    def finish(self) -> list[str]:
        """What is left at the end of the stream, if it lacks its newline."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", errors="replace")
