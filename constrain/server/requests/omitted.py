"""Contents of results that are not text."""

from __future__ import annotations

from constrain.server.http.account import warn


def omitted(kind: str) -> str:
    """Returns the text in place of a content, with a warning. ``kind``: type of the content, such as ``"image"``."""
    text = f"[{kind:.80} omitted]"
    warn(f"The model reads '{text}' in a result: it reads text only.")
    return text
