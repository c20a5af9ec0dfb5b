"""A finished run as one HTML file, which opens without a server. Imports nothing of the server."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from constrain.server.playground.assets import read_assets, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPORT = "export.html"
"""Template of the file: the page fills it in with ``DATA``, and so does ``export_run``."""

DATA = "{{data}}"
"""Text of the template in whose place the run belongs, as JSON."""

LIBRARY = "vendor/htm-preact.js"

VIEW = "view_"
"""Beginning of the names of scripts that show a run, in the order in which they are loaded."""


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
