"""What every browser scene is: a server of layers behind a lock, lit, that can be closed."""

from __future__ import annotations

import threading
from typing import Self

from morphit_ros.display.layers import LayeredServer, Lights


class ServedScene:
    """A browser view on loopback, z up. Its methods may be called from any thread."""

    def __init__(self, host: str, port: int, title: str, lights: Lights) -> None:
        """Start serving.

        Raises:
            InvalidInputError: a host that is not loopback, or a port that is taken or out of range.
            MissingDependencyError: viser is not installed.
        """
        self._lock = threading.RLock()
        self._server = LayeredServer(host, port, title)
        self._closed = False
        self._server.light(lights)

    @property
    def url(self) -> str:
        """Where a browser finds the view."""
        return self._server.url

    def close(self) -> None:
        """Stop serving; browsers lose their connection. May be called again."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
