"""The files of the page, and a finished run as one HTML file, which opens without a server. Imports nothing of it."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "page"

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""Media types of the files that are served, by the ending of their names; other files are not."""

EXPORT = "export.html"
"""Template of the file: the page fills it in with ``DATA``, and so does ``export_run``."""

DATA = "{{data}}"
"""Text of the template in whose place the run belongs, as JSON."""

LIBRARY = "vendor/htm-preact.js"

VIEW = "view_"
"""Beginning of the names of scripts that show a run, in the order in which they are loaded."""


@cache
def read_assets() -> dict[str, bytes]:
    """Returns the contents of the files by their paths in the folder, such as ``vendor/htm-preact.js``."""
    files = sorted(path for path in FOLDER.rglob("*") if path.suffix in MEDIA_TYPES)
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in files}


def read_text(name: str) -> str:
    """Returns the text of a file."""
    return read_assets()[name].decode()


@cache
def export_template() -> str:
    """Returns the template with style and scripts in it; the policy allows only these."""
    style = read_text("style.css")
    names = [LIBRARY, *sorted(name for name in read_assets() if name.startswith(VIEW))]
    scripts = [read_text(name).replace("</script", "<\\/script") for name in names]
    allowed = " ".join(map(_digest, scripts))
    sources = f"script-src {allowed}; style-src {_digest(style)}"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    tags = "\n".join(f"<script>{script}</script>" for script in scripts)
    return read_text(EXPORT).replace("{{policy}}", policy).replace("{{style}}", style).replace("{{scripts}}", tags)


def export_run(run: Mapping[str, Any]) -> str:
    """Returns the file of a run: an object with ``request``, ``prompt``, ``tokens`` and ``done`` (see ``objects``)."""
    before, _, after = export_template().partition(DATA)
    data = json.dumps(run, separators=(",", ":"))
    for character in "<>&":  # no markup, whatever the model wrote
        data = data.replace(character, f"\\u{ord(character):04x}")
    return before + data + after


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
