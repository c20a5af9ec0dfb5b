"""Vocabularies of ``tiktoken.Encoding``: byte pair encodings whose tokens are bytes already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.vocabulary.exact import ExactEncoder
from constrain.vocabulary.libraries.checks import check_texts
from constrain.vocabulary.libraries.loading import Loaded, Sizing, finish_table, require_library

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_encoding(encoding: Any, sizing: Sizing) -> Loaded:
    """Reads an encoding. Raises ``TypeError`` for another object, and ``ModelError``."""
    require_library(encoding, "tiktoken", "Encoding", "encoding")
    where = f"tiktoken.Encoding {encoding.name!r}"
    special = {encoding.encode_single_token(name): name for name in encoding.special_tokens_set}
    texts = _texts(encoding, special)

    def read(text: str) -> list[int]:
        ids: list[int] = encoding.encode_ordinary(text)
        return ids

    check_texts(read, texts, (), where=where)
    table = finish_table(texts, special, sizing, where=where)
    return Loaded(table, ExactEncoder(where, lambda text: read(text.decode())))


def _texts(encoding: Any, special: Mapping[int, str]) -> list[bytes]:
    """The bytes of each token; ``b""`` for special tokens and for ids without a token."""
    return [b"" if token in special else _text(encoding, token) for token in range(encoding.n_vocab)]


def _text(encoding: Any, token: int) -> bytes:
    try:
        text: bytes = encoding.decode_single_token_bytes(token)
    except KeyError:  # an id between the others that has no token
        return b""
    return text
