"""The token table: a vocabulary as read from its source, before the kernel builds a trie from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

Encode = Callable[[bytes], list[int]]
"""A function from bytes to token ids; adds neither special tokens nor a prefix space."""

MOST_PADDING = 1 << 16
"""Ids of a model beyond the tokens of its tokenizer; known models have a few thousand, and more are a damaged file.

Without the limit, one damaged number in a small file would allocate gigabytes.
"""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """A vocabulary as read from its source: ``texts[id]`` is ``b""`` for an id without text.

    ``names``: names of special tokens, for those that have one; some may end a generation.
    """

    texts: list[bytes]
    special: frozenset[int]
    eos: tuple[int, ...]
    names: Mapping[int, str]


class Tokens(Protocol):
    """The part of a ``Vocabulary`` that a tokenizer needs."""

    special: frozenset[int]
    n_vocab: int

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token."""


def make_table(
    texts: list[bytes], *, special: Iterable[int] | Mapping[int, str], eos: Iterable[int], where: str
) -> TokenTable:
    """Checks a vocabulary and clears the texts of special ids; changes and keeps the list ``texts``."""
    ends = tuple(sorted(set(eos)))
    specials = frozenset(special).union(ends)
    for token in specials:
        if not 0 <= token < len(texts):
            kind = "end-of-generation" if token in ends else "special"
            raise ModelError(f"{where}: {kind} id {token} is out of range: there are {len(texts)} tokens")
        texts[token] = b""
    if not ends:
        raise ModelError(f"{where}: no end-of-generation token")
    if not any(texts):
        raise ModelError(f"{where}: none of the {len(texts)} tokens has a text; a vocabulary needs at least one")
    given = special if isinstance(special, Mapping) else {}
    names = {token: name for token, name in given.items() if name}
    return TokenTable(texts, specials, ends, names)
