"""Pictures of a web page by headless Chromium, for tests and documentation."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, MissingDependencyError, MorphitError
from morphit_ros.resources import atomic_write

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # WebGL without a GPU.
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    # Any free port, on loopback.
    "--remote-debugging-port=0",
)
_ANNOUNCEMENT = "DevTools listening on "
# One second of the page's own clock and two frames: a page that is busy loading takes longer.
_NEXT_LOOK = "new Promise(r => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(r)), 1000))"
_LOOKS_ALIKE = 3


class ScreenshotError(MorphitError):
    """Chromium did not deliver a picture; the message ends with its own last words."""


def screenshot(
    url: str,
    path: str | Path,
    size: tuple[int, int] = (1280, 800),
    chromium: str | Path | None = None,
    settle: float = 60.0,
    timeout: float = 120.0,
) -> Path:
    """Open a page in a browser of its own and save what it shows as PNG.

    The picture is taken when the page has not changed over two seconds. (A virtual time budget, as the command
    line of Chromium offers, ends while a websocket still delivers the scene.)

    Args:
        url: http(s) address of the page.
        path: of the PNG file; its folder is made if needed.
        size: of the window [px].
        chromium: program; looked for on the search path if left out.
        settle: a page that still changes after about so long is taken as it is [s].
        timeout: wall-clock time after which the browser is ended [s].

    Returns:
        The path.

    Raises:
        MissingDependencyError: there is no Chromium, or the Python package websockets is missing.
        InvalidInputError: not an http(s) address, or a size or time that is not positive.
        ScreenshotError: the page cannot be opened, or the browser failed or took too long.
    """
    if not url.startswith(("http://", "https://")):
        raise InvalidInputError("url", repr(url), "an http(s) address")
    if min(*size, settle, timeout) <= 0:
        raise InvalidInputError("size, settle, timeout", (*size, settle, timeout), "positive numbers")
    with _browser(_chromium(chromium), timeout) as (process, expired):
        # Whatever breaks the conversation, the cause is that the browser ended or was ended.
        try:
            picture = _capture(_address(process), url, size, round(settle))
        except (OSError, EOFError) as error:
            cause = f"took longer than {timeout:g} s" if expired.is_set() else f"failed ({error})"
            raise ScreenshotError(f"Chromium {cause} at {url}") from error
    target = Path(path)
    with atomic_write(target, "wb") as stream:
        stream.write(picture)
    return target


def _chromium(given: str | Path | None) -> str:
    for name in _NAMES if given is None else (str(given),):
        found = shutil.which(name)
        if found is not None:
            return found
    remedy = "Install it with 'apt-get install chromium', or name the program."
    raise MissingDependencyError(str(given or "chromium"), "a screenshot of the browser view", remedy)


@contextlib.contextmanager
def _browser(program: str, timeout: float) -> Iterator[tuple[subprocess.Popen[str], threading.Event]]:
    """A browser with an empty profile, and whether it ran out of time; nothing of it stays behind."""
    with tempfile.TemporaryDirectory(prefix="morphit-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        expired = threading.Event()

        def end() -> None:
            # The whole session: Chromium runs its renderers as processes of their own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        def expire() -> None:
            expired.set()
            end()

        timer = threading.Timer(timeout, expire)
        timer.start()
        try:
            yield process, expired
        finally:
            timer.cancel()
            end()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def _address(process: subprocess.Popen[str]) -> str:
    """The websocket address that a browser announces; afterwards its messages are read and dropped."""
    stream = process.stderr
    if stream is None:
        raise EOFError("no output")
    last = "it said nothing"
    for line in stream:
        if line.startswith(_ANNOUNCEMENT):
            # A full pipe would block the browser.
            threading.Thread(target=_drain, args=(stream,), daemon=True).start()
            return line.removeprefix(_ANNOUNCEMENT).strip()
        last = line.strip() or last
    raise EOFError(last)


def _drain(stream: IO[str]) -> None:
    with contextlib.suppress(ValueError, OSError):
        for _ in stream:
            pass


@contextlib.contextmanager
def _opened(address: str, url: str, size: tuple[int, int]) -> Iterator[Page]:
    with needed_for("a screenshot of the browser view"):
        from websockets.exceptions import ConnectionClosed
        from websockets.sync.client import connect
    try:
        # A picture is larger than the default limit of a message; loopback needs no proxy.
        with connect(address, max_size=None, proxy=None) as connection:
            page = Page(connection, size)
            page.open(url)
            yield page
    except ConnectionClosed as error:
        raise EOFError("the connection was closed") from error


@contextlib.contextmanager
def opened_page(url: str, size: tuple[int, int] = (1280, 800), timeout: float = 300.0) -> Iterator[Page]:
    """A page in a browser of its own, to be asked and to be clicked.

    Args:
        url: http(s) address of the page.
        size: of the window [px].
        timeout: wall-clock time after which the browser is ended [s].

    Raises:
        MissingDependencyError: there is no Chromium, or the Python package websockets is missing.
        ScreenshotError: the page cannot be opened.
    """
    with _browser(_chromium(None), timeout) as (process, _), _opened(_address(process), url, size) as page:
        yield page


def _capture(address: str, url: str, size: tuple[int, int], looks: int) -> bytes:
    """PNG of a page once `_LOOKS_ALIKE` looks in a row show the same, or after so many looks."""
    with _opened(address, url, size) as page:
        pictures: list[str] = []
        for _ in range(looks):
            page.call("Runtime.evaluate", expression=_NEXT_LOOK, awaitPromise=True)
            pictures = [*pictures, page.call("Page.captureScreenshot", format="png")["data"]][-_LOOKS_ALIKE:]
            if len(pictures) == _LOOKS_ALIKE and len(set(pictures)) == 1:
                break
        return base64.b64decode(pictures[-1])


class Page:
    """A tab, spoken to over the Chrome DevTools Protocol."""

    def __init__(self, connection: Any, size: tuple[int, int]) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False
        )

    def open(self, url: str) -> None:
        """Go to a page.

        Raises:
            ScreenshotError: it cannot be reached.
        """
        problem = self.call("Page.navigate", url=url).get("errorText")
        if problem:
            raise ScreenshotError(f"{url} cannot be opened: {problem}")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command; events in between are dropped."""
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            request["sessionId"] = self._session
        self._connection.send(json.dumps(request))
        while True:
            reply = json.loads(self._connection.recv())
            if reply.get("id") != number:
                continue
            if "error" in reply:
                raise ScreenshotError(f"Chromium refused {method}: {reply['error'].get('message')}")
            return reply["result"]
