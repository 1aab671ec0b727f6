"""Tells people that kernels are compiled: the first run on a machine is silent for up to a minute otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_WORDS = "compiling, up to a minute; later runs find it done"


@contextmanager
def telling_of_compilation(say: Callable[[str], None]) -> Iterator[None]:
    """Within it, the first kernel that is compiled, rather than loaded from the cache, is told of, once.

    Args:
        say: prints or logs a line.
    """
    from numba.core import event

    class Listener(event.Listener):
        told = False

        def on_start(self, _event: Any) -> None:
            if not self.told:
                self.told = True
                say(_WORDS)

        def on_end(self, _event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
