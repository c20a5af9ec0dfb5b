"""Chromium without a window, driven through its DevTools protocol (chromedevtools.github.io/devtools-protocol)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from tests.support.server.asking import SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

_OPTIONS = (
    "--headless",
    "--no-sandbox",  # the tests may run as root, and show no page but their own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-features=LocalNetworkAccessChecks",  # asks the user first, which other browsers do not
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--host-resolver-rules=MAP *.example 127.0.0.1",
    "--remote-debugging-pipe",
)

_PAGE = "<!doctype html><title>A page</title><link rel=icon href=data:,><body>"

_LOADED = "new Promise(done => document.readyState === 'complete' ? done(origin) : onload = () => done(origin))"

Message = dict[str, Any]


def find_browser() -> str | None:
    """The program, where one is installed."""
    return next((found for name in _NAMES if (found := shutil.which(name)) is not None), None)


class Browser:
    """One tab. The browser reads messages from one pipe and writes to another; a zero byte ends each."""

    def __init__(self, commands: int, reports: int) -> None:
        self._commands, self._reports = commands, reports
        self._received = b""
        self._number = 0
        self._tab: dict[str, str] = {}
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._tab = {"sessionId": self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def visit(self, url: str) -> str:
        """Shows an empty page as if the site of the URL had sent it; the origin that the page has."""
        self._ask("Fetch.enable", patterns=[{"urlPattern": url}])
        self._send("Page.navigate", url=url)
        paused = self._until(lambda message: message.get("method") == "Fetch.requestPaused")["params"]["requestId"]
        kind = {"name": "Content-Type", "value": "text/html; charset=utf-8"}
        body = base64.b64encode(_PAGE.encode()).decode()
        self._ask("Fetch.fulfillRequest", requestId=paused, responseCode=200, responseHeaders=[kind], body=body)
        self._ask("Fetch.disable")
        return self.run(_LOADED)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; of a promise, what it becomes."""
        done = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def _ask(self, method: str, **parameters: Any) -> Message:
        number = self._send(method, **parameters)
        answer = self._until(lambda message: message.get("id") == number)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _send(self, method: str, **parameters: Any) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._tab}
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._commands, left) :]
        return self._number

    def _until(self, is_wanted: Callable[[Message], bool]) -> Message:
        while True:
            while b"\0" not in self._received:
                piece = os.read(self._reports, 1 << 16)
                assert piece, "the browser has ended"
                self._received += piece
            text, _, self._received = self._received.partition(b"\0")
            message = json.loads(text)
            if is_wanted(message):
                return message


@contextlib.contextmanager
def browsing(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own; killed at the end, with all its processes."""
    with contextlib.ExitStack() as stack:
        (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
        for end in (our_out, our_in):
            stack.callback(os.close, end)
        command = ["bash", "-c", f'exec "$@" 3<&{their_in} 4>&{their_out}', "bash", program]
        process = stack.enter_context(
            subprocess.Popen(
                [*command, *_OPTIONS, f"--user-data-dir={profile}"],
                pass_fds=(their_in, their_out),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        os.close(their_in)
        os.close(their_out)
        stack.callback(os.killpg, process.pid, signal.SIGKILL)
        watch = threading.Timer(SECONDS, process.kill)
        stack.callback(watch.cancel)
        watch.start()
        yield Browser(our_out, our_in)
