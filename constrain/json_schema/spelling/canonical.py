"""How JSON texts are spelled under the canonical escape policy (see ``constrain.language.tree``)."""

from __future__ import annotations

import json
from json.encoder import encode_basestring

from constrain.errors import UnsupportedSchemaError


def spell_content(text: str) -> bytes | None:
    """The one spelling of what stands between the quotes of a JSON string; ``None`` if no UTF-8 text can hold it."""
    try:
        return encode_basestring(text)[1:-1].encode()
    except UnicodeEncodeError:
        return None


def read_content(content: bytes) -> str:
    """The string of which ``content`` is the spelling."""
    text: str = json.loads(b'"%b"' % content)
    return text


def spell_string(text: str) -> bytes:
    """The one spelling of a JSON string, with its quotes. Raises UnsupportedSchemaError for a lone surrogate."""
    content = spell_content(text)
    if content is None:
        raise UnsupportedSchemaError(f"{text!a:.80} holds a lone surrogate, which no UTF-8 text can hold")
    return b'"%b"' % content
