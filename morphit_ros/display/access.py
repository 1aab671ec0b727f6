"""Who may use a browser view: pages that it served itself, and nobody's else.

Browsers let any page open a WebSocket to a port of this machine. Without a check, whatever page is open in another tab
receives the scene and presses the view's buttons.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import http
import ipaddress
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import cache_directory

TOKEN_VARIABLE = "MORPHIT_VIEW_TOKEN"
_LONGEST_TOKEN = 100
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# `websockets` is patched while a server starts, and one at a time.
_STARTING = threading.Lock()

Handshake = Callable[[Any, Any], Any]


class Access:
    """Access control of one server.

    A WebSocket is accepted from a page of the server's own address, a loopback one (also at the near end of an SSH
    tunnel), that carries the token. The page brings the token along as a cookie that no other page can read or send.
    With ``MORPHIT_VIEW_TOKEN`` in the environment the page itself is only given to who names that token, for machines
    with several users.
    """

    def __init__(self) -> None:
        self._asked = os.environ.get(TOKEN_VARIABLE, "")
        self._token = self._asked or _kept_token()
        # A token that people choose may hold what no cookie may.
        self._cookie_value = hashlib.sha256(self._token.encode()).hexdigest()

    @property
    def query(self) -> str:
        """What the address of the page has to end with."""
        return f"/?token={quote(self._token, safe='')}" if self._asked else ""

    def refusal(self, request: Any, port: int) -> str:
        """Why a request for the page or for a WebSocket is refused; empty if it is not."""
        host = request.headers.get("Host", "")
        if not _is_loopback(host):
            return f"the host '{host[:100]}' is no loopback address"
        opens_socket = "websocket" in request.headers.get("Upgrade", "").lower()
        origin = request.headers.get("Origin")
        if opens_socket and origin is not None and origin != f"http://{host}":
            return f"the page of '{origin[:100]}' is not this view's own"
        if opens_socket and not self._carries_cookie(request, port):
            return "the token is missing: open the page of this view first, with cookies allowed"
        if (
            self._asked
            and _is_page(request)
            and not (self._names_token(request) or self._carries_cookie(request, port))
        ):
            return f"the address must end with /?token=, and the token of {TOKEN_VARIABLE}"
        return ""

    def around(self, respond: Handshake) -> Handshake:
        """A server's answer to HTTP requests, None for a WebSocket, preceded by the checks."""

        def checked(connection: Any, request: Any) -> Any:
            port = connection.local_address[1]
            reason = self.refusal(request, port)
            if reason:
                return connection.respond(http.HTTPStatus.FORBIDDEN, f"Refused: {reason}.\n")
            response = respond(connection, request)
            if response is not None and _is_page(request):
                response.headers["Set-Cookie"] = (
                    f"{_cookie(port)}={self._cookie_value}; Path=/; HttpOnly; SameSite=Strict"
                )
                # Nor may another page show this one under a button of its own.
                response.headers["X-Frame-Options"] = "DENY"
            return response

        return checked

    def _names_token(self, request: Any) -> bool:
        given = parse_qs(urlsplit(request.path).query).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _carries_cookie(self, request: Any, port: int) -> bool:
        try:
            cookie = SimpleCookie("; ".join(request.headers.get_all("Cookie"))).get(_cookie(port))
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie_value.encode())


@contextlib.contextmanager
def controlled(access: Access) -> Iterator[None]:
    """While this lasts, WebSocket servers that start ask `access` first: viser has no way to hand it a check.

    Raises:
        RuntimeError: no server started by the function that is known; better no view than an open one.
    """
    from websockets.asyncio import server as websockets_server

    with _STARTING:
        original = websockets_server.serve
        started = False

        def serve(handler: Any, *args: Any, process_request: Handshake, **options: Any) -> Any:
            nonlocal started
            started = True
            return original(handler, *args, process_request=access.around(process_request), **options)

        vars(websockets_server)["serve"] = serve
        try:
            yield
        finally:
            vars(websockets_server)["serve"] = original
    if not started:
        raise RuntimeError("this release of viser starts its server in another way; its access cannot be controlled")


def check_address(host: str, port: int) -> None:
    """Refuse hosts that are not loopback and ports that cannot be bound."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        remedy = "The view is not encrypted; reach it from elsewhere through an SSH tunnel."
        raise InvalidInputError("host", repr(host), "a loopback address such as 127.0.0.1", remedy)
    if not 0 <= port <= 65535:
        raise InvalidInputError("port", port, "0 (any free port) to 65535")
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server does: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(address), port))
        except OSError as error:
            raise port_taken(port, error.strerror or str(error)) from error


def port_taken(port: int, reason: str) -> InvalidInputError:
    remedy = "Choose another port, 0 for any free one, or end the program that holds it."
    return InvalidInputError("port", f"{port} ({reason})", "a port that can be bound", remedy)


@functools.cache
def _kept_token() -> str:
    """The token of this user's views, in a file that only they can read.

    A browser connects again by itself when a view has been started anew: its cookie must still hold then.
    """
    fresh = secrets.token_urlsafe(24)
    try:
        path = cache_directory("views") / "token"
        with contextlib.suppress(FileExistsError), os.fdopen(os.open(path, _NEW_FILE, 0o600), "w") as stream:
            stream.write(fresh)
        with path.open() as stream:
            private = os.fstat(stream.fileno()).st_uid == os.getuid() and not os.fstat(stream.fileno()).st_mode & 0o077
            kept = stream.read(_LONGEST_TOKEN)
    except (OSError, UnicodeDecodeError):
        return fresh
    return kept if private and re.fullmatch(r"[\w-]{32}", kept) else fresh


def _cookie(port: int) -> str:
    """Cookies do not tell ports apart, and each view has a token of its own."""
    return f"morphit_view_{port}"


def _is_page(request: Any) -> bool:
    return urlsplit(request.path).path in ("/", "", "/index.html")


def _is_loopback(host: str) -> bool:
    """Whether a Host header is of this machine: a name that others chose may lead here too (DNS rebinding)."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
