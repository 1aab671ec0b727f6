"""What people are told while a command works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """What tells a bar how much is done, with a word about it, and perhaps of how much in all."""

    def __call__(self, done: float, note: str = "", total: float | None = None) -> None: ...


def say(text: str) -> None:
    """Tell on standard error what is under way."""
    print(f"morphit: {text}", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(text: str, unit: str, total: float | None = None, leave: bool = True) -> Iterator[Progress]:
    """A bar on a terminal."""
    from tqdm import tqdm

    with tqdm(desc=text, unit=unit, total=total, disable=not sys.stderr.isatty(), leave=leave) as bar:

        def progress(done: float, note: str = "", total: float | None = None) -> None:
            bar.total = bar.total if total is None else total
            bar.set_postfix_str(note, refresh=False)
            bar.update(done - bar.n)

        yield progress


@contextmanager
def link_progress(text: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal: for links done of links in all."""
    with progress_bar(text, "link") as bar:
        yield lambda link, done, total: bar(done, link, total)
