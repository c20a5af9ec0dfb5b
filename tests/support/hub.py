"""A stand-in for Hugging Face: repositories with files, over HTTP on this machine."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


@dataclass
class Hub:
    """The stand-in, and what it was asked for.

    Attributes:
        files: content of each file, by repository and path.
        breaks_after: bytes after which each connection breaks; 0 for never.
        ignores_ranges: whether files are always sent whole.
        states: SHA-256 that is stated in place of the right one.
        token: token that requests must carry; empty for none.
        asked: path, range and token of each request for a file.
    """

    files: dict[str, dict[str, bytes]]
    breaks_after: int = 0
    ignores_ranges: bool = False
    states: str = ""
    token: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def __enter__(self) -> Self:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path)
        token = request.headers.get("Authorization", "")
        if self.token and token != f"Bearer {self.token}":
            _send(request, 401, b"")
        elif path.startswith("/api/models/"):
            files = self.files.get(path.removeprefix("/api/models/"))
            _send(request, 404 if files is None else 200, json.dumps(self._listing(files or {})).encode())
        else:
            repository, _, name = path.removeprefix("/").partition("/resolve/abc123/")
            data = self.files[repository][name]
            asked = request.headers.get("Range", "")
            self.asked.append((name, asked, token))
            begin = 0 if self.ignores_ranges else int(asked.removeprefix("bytes=").removesuffix("-") or 0)
            sent = {} if begin == 0 else {"Content-Range": f"bytes {begin}-{len(data) - 1}/{len(data)}"}
            stop = self.breaks_after or len(data)
            _send(request, 206 if sent else 200, data[begin:], stop, **sent)

    def _listing(self, files: dict[str, bytes]) -> dict[str, Any]:
        def lfs(data: bytes) -> dict[str, Any]:
            return {"sha256": self.states or hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 1}

        siblings = [{"rfilename": name, "size": len(data), "lfs": lfs(data)} for name, data in files.items()]
        return {"sha": "abc123", "siblings": [*siblings, {"rfilename": "README.md", "size": 1}]}


def _send(request: BaseHTTPRequestHandler, status: int, data: bytes, stop: int | None = None, **headers: str) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(data)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(data[:stop])
