"""What people are told while a command works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Tell on standard error what is under way."""
    print(f"morphit: {text}", file=sys.stderr, flush=True)


@contextmanager
def link_progress(text: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal: for links done of links in all."""
    from tqdm import tqdm

    with tqdm(desc=text, unit="link", disable=not sys.stderr.isatty()) as bar:

        def progress(link: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_postfix_str(link, refresh=False)
            bar.update(done - bar.n)

        yield progress
