"""Sizes of texts and tokens that can be found without a tokenizer, and of contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from constrain.server.http.errors import ApiError

if TYPE_CHECKING:
    from constrain.llama.model import Model
    from constrain.vocabulary.vocabulary import Vocabulary

_longest: WeakKeyDictionary[Vocabulary, int] = WeakKeyDictionary()


def longest_token(vocabulary: Vocabulary) -> int:
    """Returns the number of bytes of the longest token."""
    if vocabulary not in _longest:
        _longest[vocabulary] = max(len(vocabulary.token_bytes(token)) for token in range(vocabulary.n_vocab))
    return _longest[vocabulary]


def text_size(value: object) -> int:
    """Returns the number of bytes of all strings in a JSON value, without keys."""
    size, pending = 0, [value]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            size += len(part.encode())
        elif isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return size


def require_context(tokens: int | None, model: Model) -> None:
    """Raises ``ApiError`` for a request that needs a larger context than that of the model. ``tokens``: its size."""
    if tokens is not None and tokens > model.n_ctx:
        raise ApiError(
            f"Invalid 'options.num_ctx': {tokens} tokens, and this server runs the model with {model.n_ctx}. Leave it "
            f"out, or start the server with --ctx {tokens}.",
            param="options.num_ctx",
            code="integer_above_max_value",
        )
