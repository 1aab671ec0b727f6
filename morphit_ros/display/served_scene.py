"""What every browser scene is: a server of layers behind a lock, lit, that can be closed."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from morphit_ros.display.layers import LayeredServer, Lights
from morphit_ros.errors import InvalidInputError


class ServedScene:
    """A browser view on loopback, z up. Its methods may be called from any thread, and update in place.

    Attributes:
        layers: name → label of what can be shown and hidden.
        lights: of the scene.
        field_of_view: vertical, of the camera [rad].
        title: of the panel.
    """

    layers: ClassVar[Mapping[str, str]]
    lights: ClassVar[Lights]
    field_of_view: ClassVar[float] = 0.7
    title: ClassVar[str] = "morphit"

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        hidden: Collection[str] = (),
        page: ServedScene | None = None,
    ) -> None:
        """Start serving.

        Args:
            host: a loopback address: the view is not encrypted. Only its own page may connect (`display.access`).
            port: of HTTP and websocket; 0 takes a free one.
            hidden: layers that are not shown until their box is ticked.
            page: the layers are shown on the page of this one, whose camera, light and end count.

        Raises:
            InvalidInputError: a host that is not loopback, a port that is taken or out of range, an unknown layer.
            MissingDependencyError: viser is not installed.
        """
        for layer in hidden:
            check_layer(layer, self.layers)
        self._lock = threading.RLock()
        if page is None:
            self._server = LayeredServer(host, port, self.title)
        else:
            name = self.title.removeprefix("morphit ")
            self._server = page._server.part(name.replace(" ", "_"), name.capitalize())
        self._closed = False
        self._server.light(self.lights)
        for layer, label in self.layers.items():
            self._server.add_layer(layer, label, layer not in hidden)

    @property
    def url(self) -> str:
        """Where a browser finds the view."""
        return self._server.url

    @property
    def is_watched(self) -> bool:
        """Whether a browser shows it."""
        return self._server.has_clients

    def set_camera(self, position: ArrayLike, look_at: ArrayLike) -> None:
        """Where browsers look from and to, points (3,) [m], when they connect; those connected jump there."""
        with self._lock:
            self._server.set_camera(position, look_at, self.field_of_view)

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


def check_layer(layer: str, known: Collection[str]) -> None:
    """Refuse a layer that is not among those known.

    Raises:
        InvalidInputError: it names the layers.
    """
    if layer not in known:
        raise InvalidInputError("layer", repr(layer), f"one of {', '.join(known)}")
