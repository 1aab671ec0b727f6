"""The Multibody Sketcher's page: a session served on loopback, to as many browsers as look at it."""

from __future__ import annotations

import base64
import binascii
import contextlib
import http
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from morphit_ros.dependencies import needed_for
from morphit_ros.display.access import Access, check_address
from morphit_ros.display.sketch_session import LARGEST_UPLOAD, SketchSession
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.sketch.picture import Picture

# Files come as base64 in JSON.
_LARGEST_MESSAGE = 2 * LARGEST_UPLOAD
_LONGEST_NAME = 200
# Of meshes that are drawn over, for a page; proofs use all faces.
_MOST_FACES = 60_000


class SketchPage:
    """Serves a session until it is closed. All browsers see the same sketch, and each other's changes."""

    def __init__(
        self, session: Callable[[Callable[[], None]], SketchSession], host: str = "127.0.0.1", port: int = 8080
    ) -> None:
        """Start serving.

        Args:
            session: makes the session, given what to call when it changes.
            host: a loopback address: the page is not encrypted. Only its own page may connect (`display.access`).
            port: of HTTP and WebSocket; 0 takes a free one.

        Raises:
            InvalidInputError: a host that is not loopback, or a port that is taken or out of range.
            MissingDependencyError: websockets is not installed.
        """
        with needed_for("the sketcher"):
            from websockets.sync.server import serve
        check_address(host, port)
        self._access = Access()
        self._browsers: set[_Browser] = set()
        self._lock, self._closed = threading.Lock(), False
        self._html = (Path(__file__).parent / "sketch_page.html").read_text(encoding="utf-8")
        self.session = session(self._changed)
        # Browsers open connections that they then don't use, each of which would be a page of traces.
        logger = logging.Logger(__name__)
        logger.addHandler(logging.NullHandler())
        self._server = serve(
            self._talk,
            host,
            port,
            process_request=self._access.around(self._respond),
            max_size=_LARGEST_MESSAGE,
            logger=logger,
        )
        self._host, self._port = self._server.socket.getsockname()[:2]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}{self._access.query}"

    def close(self) -> None:
        """Stop serving; what was not saved stays in the autosave. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._server.shutdown()
        self._thread.join()
        with self._lock:
            browsers = list(self._browsers)
        for browser in browsers:
            browser.close()
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _respond(self, connection: Any, request: Any) -> Any:
        """The page; None for its WebSocket."""
        if "websocket" in request.headers.get("Upgrade", "").lower():
            return None
        if urlsplit(request.path).path not in ("/", "/index.html"):
            return connection.respond(http.HTTPStatus.NOT_FOUND, "Not here.\n")
        response = connection.respond(http.HTTPStatus.OK, self._html)
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "text/html; charset=utf-8"
        # Nothing from elsewhere, whatever names a sketch holds.
        response.headers["Content-Security-Policy"] = (
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
            "img-src data:; connect-src 'self'"
        )
        return response

    def _talk(self, connection: Any) -> None:
        """One browser, until it goes."""
        from websockets.exceptions import ConnectionClosed

        browser = _Browser(connection, self.session)
        with self._lock:
            self._browsers.add(browser)
        try:
            with contextlib.suppress(ConnectionClosed):
                for message in connection:
                    command = _command(message)
                    if command is not None:
                        self.session.do(command)
                        browser.answered()
        finally:
            with self._lock:
                self._browsers.discard(browser)
            browser.close()

    def _changed(self) -> None:
        """Have all browsers shown the session as it is now."""
        with self._lock:
            for browser in self._browsers:
                browser.stale.set()


class _Browser:
    """A connection, and what was sent over it, by a thread of its own: one that sleeps keeps no other waiting.

    Attributes:
        stale: set where it has to be shown the session again.
    """

    def __init__(self, connection: Any, session: SketchSession) -> None:
        self._connection, self._session, self._lock = connection, session, threading.Lock()
        self._meshes: int | None = None
        self._picture: Picture | None = None
        self._answers, self._closed = 0, False
        self.stale = threading.Event()
        self.stale.set()
        threading.Thread(target=self._tell, daemon=True).start()

    def close(self) -> None:
        """End the connection. May be called again."""
        self._closed = True
        self.stale.set()
        self._connection.close()

    def _tell(self) -> None:
        """Show every change; several at once where they come faster than they are shown."""
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            while True:
                self.stale.wait()
                self.stale.clear()
                if self._closed:
                    return
                self._show()

    def answered(self) -> None:
        """Count a command that was carried out: the page waits for it before it sends the next part of a drag."""
        with self._lock:
            self._answers += 1
        self.stale.set()

    def _show(self) -> None:
        """Send the state, and meshes and picture where they are others than before."""
        with self._lock:
            answers = self._answers
        # Read after the count: what was answered is in it.
        state = self._session.state() | {"answers": answers}
        if state["meshes"] != self._meshes:
            self._meshes, meshes = self._session.meshes
            content = {name: _reduced(mesh) for name, mesh in meshes.items()}
            self._connection.send(json.dumps({"kind": "meshes", "meshes": content}))
        picture = self._session.sketch.picture
        if picture is not self._picture:
            self._picture = picture
            self._connection.send(json.dumps({"kind": "picture", "picture": _shown(picture)}))
        self._connection.send(json.dumps({"kind": "state", **state}, allow_nan=False))


def _shown(picture: Picture | None) -> dict[str, Any] | None:
    """A picture for a page."""
    if picture is None:
        return None
    return {"data": picture.data, "T": picture.T_world_picture.ravel().tolist(), "width": picture.width}


def _reduced(mesh: TriangleMesh) -> dict[str, list[float] | list[int]]:
    """A mesh for a page: every so many faces of it, if there are very many."""
    step = max(1, -(-len(mesh.faces) // _MOST_FACES))
    return {
        "vertices": mesh.vertices.astype("float32").round(6).ravel().tolist(),
        "faces": mesh.faces[::step].ravel().tolist(),
    }


def _command(message: Any) -> dict[str, Any] | None:
    """A command of a page; None for what is none."""
    try:
        command = json.loads(message)
        if not isinstance(command, dict):
            return None
        if command.get("do") == "open":
            command["name"] = str(command.get("name", ""))[:_LONGEST_NAME]
            command["content"] = base64.b64decode(command.get("content", ""), validate=True)
    except (ValueError, TypeError, RecursionError, binascii.Error):
        return None
    return command
