"""The files of the page, as they lie in the folder ``page``. Imports nothing of the server."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "page"

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""Media types of the files that are served, by the ending of their names; other files are not."""


@cache
def read_assets() -> dict[str, bytes]:
    """Returns the contents of the files by their paths in the folder, such as ``vendor/htm-preact.js``."""
    files = sorted(path for path in FOLDER.rglob("*") if path.suffix in MEDIA_TYPES)
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in files}


def read_text(name: str) -> str:
    """Returns the text of a file."""
    return read_assets()[name].decode()
