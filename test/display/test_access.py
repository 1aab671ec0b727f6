"""A browser view is for its own page: others that are open in the same browser neither see nor press anything."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

pytest.importorskip("viser", reason="needs viser")

import viser
import websockets
from websockets.sync.client import connect

from morphit_ros.display import access
from morphit_ros.display.layers import LayeredServer


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))
    monkeypatch.delenv(access.TOKEN_VARIABLE, raising=False)
    access._kept_token.cache_clear()
    yield
    access._kept_token.cache_clear()


@pytest.fixture
def server() -> Iterator[LayeredServer]:
    served = LayeredServer("127.0.0.1", 0, "test")
    yield served
    served.stop()


def address(server: LayeredServer) -> str:
    return urlsplit(server.url).netloc


def page(server: LayeredServer, path: str = "/", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(address(server), timeout=10)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def cookie(server: LayeredServer) -> str:
    return (page(server).getheader("Set-Cookie") or "").partition(";")[0]


def open_socket(server: LayeredServer, **headers: str) -> int:
    """Bytes of the first message that the server sends to a page of the right release."""
    subprotocol = websockets.Subprotocol(f"viser-v{viser.__version__}")
    with connect(
        f"ws://{address(server)}", additional_headers=headers, subprotocols=[subprotocol], proxy=None, max_size=None
    ) as connection:
        return len(connection.recv(timeout=10))


def refused(server: LayeredServer, **headers: str) -> str:
    with pytest.raises(websockets.InvalidStatus) as caught:
        open_socket(server, **headers)
    assert caught.value.response.status_code == 403
    return (caught.value.response.body or b"").decode()


def test_the_own_page_gets_the_scene(server: LayeredServer) -> None:
    assert open_socket(server, Origin=f"http://{address(server)}", Cookie=cookie(server)) > 0


@pytest.mark.parametrize(
    "origin", ["https://example.org", "null", "http://127.0.0.1", "http://127.0.0.1:1", "http://localhost:8080", ""]
)
def test_a_page_from_elsewhere_gets_nothing(server: LayeredServer, origin: str) -> None:
    """Even with the cookie, which a page of another port of this machine makes the browser send."""
    assert "not this view's own" in refused(server, Origin=origin, Cookie=cookie(server))


@pytest.mark.parametrize("forged", ["", "morphit_view=1", "morphit_view_{port}=", "morphit_view_{port}=x", "=;="])
def test_without_the_token_of_the_page_nobody_gets_the_scene(server: LayeredServer, forged: str) -> None:
    headers = {"Cookie": forged.format(port=urlsplit(server.url).port)} if forged else {}
    assert "token" in refused(server, **headers)
    assert "token" in refused(server, Origin=f"http://{address(server)}", **headers)


def test_a_name_that_others_let_lead_here_is_refused(server: LayeredServer) -> None:
    """DNS rebinding: the page's own name, and so its origin, is that of the attacker."""
    reply = page(server, Host="example.org:80")
    assert (reply.status, reply.getheader("Set-Cookie")) == (403, None)
    for host in ("[::1", "127.0.0.1.example.org", "", "localhost@example.org"):
        assert page(server, Host=host).status == 403


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1:9000", "[::1]:9000"])
def test_the_near_end_of_a_tunnel_is_the_own_address(server: LayeredServer, host: str) -> None:
    reply = page(server, Host=host)
    assert reply.status == 200
    words = (reply.getheader("Set-Cookie") or "").partition(";")
    assert "HttpOnly" in words[2] and "SameSite=Strict" in words[2]
    assert reply.getheader("X-Frame-Options") == "DENY"


def test_a_view_that_starts_anew_knows_the_pages_that_are_open(server: LayeredServer) -> None:
    carried = cookie(server).partition("=")[2]
    access._kept_token.cache_clear()
    other = LayeredServer("127.0.0.1", 0, "test")
    assert cookie(other).partition("=")[2] == carried and len(carried) == 64
    other.stop()


def test_a_token_that_others_can_read_is_not_used(tmp_path) -> None:
    kept = access._kept_token()
    path = tmp_path / "views" / "token"
    assert path.stat().st_mode & 0o777 == 0o600 and path.read_text() == kept
    for spoil in (lambda: path.chmod(0o644), lambda: path.chmod(0o600) or path.write_text("short")):
        spoil()
        access._kept_token.cache_clear()
        assert access._kept_token() != path.read_text()


def test_with_a_token_of_ones_own_the_page_is_for_those_who_know_it(monkeypatch) -> None:
    monkeypatch.setenv(access.TOKEN_VARIABLE, "a word/of mine")
    served = LayeredServer("127.0.0.1", 0, "test")
    try:
        assert served.url.endswith("/?token=a%20word%2Fof%20mine")
        assert page(served).status == page(served, "/?token=other").status == page(served, "/index.html").status == 403
        reply = page(served, served.url.partition(address(served))[2])
        assert reply.status == 200
        own = (reply.getheader("Set-Cookie") or "").partition(";")[0]
        assert page(served, Cookie=own).status == 200
        assert open_socket(served, Origin=f"http://{address(served)}", Cookie=own) > 0
        refused(served, Cookie="morphit_view=a")
    finally:
        served.stop()


def test_a_server_that_cannot_be_controlled_is_none() -> None:
    with pytest.raises(RuntimeError, match="viser"), access.controlled(access.Access()):
        pass
