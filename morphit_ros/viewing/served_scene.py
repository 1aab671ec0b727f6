"""What every browser scene is: a server of layers behind a lock, lit, that can be closed."""

from __future__ import annotations

import threading
from typing import NamedTuple, Self

from morphit_ros.viewing.layers import LayeredServer


class Lights(NamedTuple):
    """Strengths as viser counts them.

    Attributes:
        environment: of the studio around the scene.
        ambient: from everywhere.
        sun: of the directional light.
        position: (3,) from where it shines on the origin [m].
    """

    environment: float
    ambient: float
    sun: float
    position: tuple[float, float, float] = (1.0, -1.5, 3.0)


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
        scene = self._server.scene
        scene.set_up_direction("+z")
        scene.configure_environment_map("studio", environment_intensity=lights.environment)
        scene.configure_default_lights(enabled=False)
        scene.add_light_ambient("/ambient", intensity=lights.ambient)
        scene.add_light_directional("/sun", intensity=lights.sun, position=lights.position)

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
