"""A stand-in for Hugging Face: repositories with files, over HTTP on this machine."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Hub:
    """The stand-in, and the requests that it got.

    Attributes:
        files: content of each file, by repository and path.
        breaks_after: bytes after which each connection breaks; None for never.
        has_ranges: whether parts of files are sent; otherwise they are always sent whole.
        states: SHA-256 that is stated in place of the right one.
        token: token that requests must carry; empty for none.
        asked: path, range and token of each request for a file.
    """

    files: dict[str, dict[str, bytes]]
    breaks_after: int | None = None
    has_ranges: bool = True
    states: str = ""
    token: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Yields the address of the stand-in."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub._answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path, token = urlsplit(request.path).path, request.headers.get("Authorization", "")
        repository, _, name = path.removeprefix("/").partition("/resolve/abc123/")
        status, data, begin = 200, b"", 0
        if self.token and token != f"Bearer {self.token}":
            status = 401
        elif name:
            asked = request.headers["Range"]
            self.asked.append((name, asked, token))
            data, begin = self.files[repository][name], int(asked[6:-1]) if self.has_ranges else 0
            status = 206 if begin else 200
        elif found := self.files.get(path.removeprefix("/api/models/")):
            data = json.dumps({"sha": "abc123", "siblings": [*map(self._file, found, found.values())]}).encode()
        else:
            status = 404
        request.send_response(status)
        request.send_header("Content-Length", str(len(data) - begin))
        if begin:
            request.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        request.end_headers()
        request.wfile.write(data[begin:][: self.breaks_after if name else None])

    def _file(self, name: str, data: bytes) -> dict[str, Any]:
        lfs = {"sha256": self.states or hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 1}
        return {"rfilename": name, "size": len(data), **({} if name.endswith(".json") else {"lfs": lfs})}
