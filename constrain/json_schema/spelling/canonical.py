"""The one spelling of each JSON text under the canonical escape policy (``constrain.language.tree``)."""

from __future__ import annotations

import json
from json.encoder import encode_basestring

from constrain.errors import UnsupportedSchemaError


def spell_content(text: str) -> bytes | None:
    """Returns the one spelling of the content of a JSON string; ``None`` if UTF-8 cannot encode it."""
    try:
        return encode_basestring(text)[1:-1].encode()
    except UnicodeEncodeError:
        return None


def read_content(content: bytes) -> str:
    """Returns the string that ``content`` spells."""
    text: str = json.loads(b'"%b"' % content)
    return text


def spell_string(text: str) -> bytes:
    """Returns the one spelling of a JSON string, with its quotes. Raises UnsupportedSchemaError for lone surrogates."""
    content = spell_content(text)
    if content is None:
        raise UnsupportedSchemaError(f"{text!a:.80} contains a lone surrogate, which UTF-8 cannot encode")
    return b'"%b"' % content
