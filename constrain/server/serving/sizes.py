"""Sizes of texts and tokens that can be found without a tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
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
