"""The token table: a vocabulary as it is read, before the kernel has made a trie of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from constrain.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

Encode = Callable[[bytes], list[int]]
"""Bytes to token ids: no special tokens, no added prefix space."""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """A vocabulary as it is read: ``texts[id]`` is ``b""`` for an id without text.

    ``names``: what special tokens are called, as far as they are called anything and do not end a generation.
    """

    texts: list[bytes]
    special: frozenset[int]
    eos: tuple[int, ...]
    names: Mapping[int, str]


class Tokens(Protocol):
    """What a tokenizer needs of a ``Vocabulary``."""

    special: frozenset[int]
    n_vocab: int

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token."""


def make_table(
    texts: list[bytes], *, special: Iterable[int] | Mapping[int, str], eos: Iterable[int], where: str
) -> TokenTable:
    """Checks a vocabulary and takes the text from its special ids; ``texts`` is changed in place and kept."""
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
        raise ModelError(f"{where}: none of the {len(texts)} tokens has a text, so nothing can be written with them")
    given = special if isinstance(special, Mapping) else {}
    names = {token: name for token, name in given.items() if name and token not in ends}
    return TokenTable(texts, specials, ends, names)
