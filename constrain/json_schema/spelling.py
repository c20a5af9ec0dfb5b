"""How JSON texts are spelled under the canonical escape policy (see ``constrain.regex.tree``)."""

from __future__ import annotations

from json.encoder import encode_basestring

from constrain._errors import UnsupportedSchemaError


def spell_string(text: str) -> bytes:
    """The one spelling of a JSON string, with its quotes. Raises UnsupportedSchemaError for a lone surrogate."""
    try:
        return encode_basestring(text).encode()
    except UnicodeEncodeError:
        raise UnsupportedSchemaError(f"{text!a:.80} holds a lone surrogate, which no UTF-8 text can hold") from None
