"""A vocabulary with *marks* beside its tokens: further ids, one for each class of tokens that a grammar tells apart.

The kernel reads a token by its bytes. Where a grammar asks for tokens by name or id, all tokens of a class are read
as one mark. The mark's bytes stand in no text, and its id is beyond those of the tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from constrain.language.special import BEGIN, END

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORD = 32
_LEAST_MARKS = 32

MARKED = BEGIN + b"\xc0"
"""The first bytes of all marks; 0xC0 stands in no name of a token, because names are UTF-8."""


class _Tokens(Protocol):
    """The part of a ``Vocabulary`` that is copied."""

    n_vocab: int
    eos: tuple[int, ...]
    special: frozenset[int]
    special_tokens: Mapping[str, int]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token."""


class MarkedVocabulary:
    """The tokens of a vocabulary and the marks, for the kernel.

    Attributes:
        first: id of the first mark, a multiple of 32, so that marks have words of their own in a bitmask.
        count: number of marks.
        longest: bytes of the longest token.
        core: the vocabulary of the kernel.
    """

    __slots__ = ("__weakref__", "core", "count", "first", "longest")

    def __init__(self, vocabulary: _Tokens, count: int) -> None:
        from constrain import kernel

        self.first = -(-vocabulary.n_vocab // _WORD) * _WORD
        self.count = count
        texts = [vocabulary.token_bytes(token) for token in range(vocabulary.n_vocab)]
        self.longest = max(map(len, texts))
        texts += [b""] * (self.first + self.count - len(texts))
        marks = range(self.first, self.first + self.count)
        names = [(token, name.encode()) for name, token in vocabulary.special_tokens.items()]
        names += [(mark, mark_of(mark - self.first)[1:-1]) for mark in marks]
        special = sorted({*vocabulary.special, *marks})
        self.core = kernel.Vocabulary(texts, special, list(vocabulary.eos), names)


def number_of_marks(classes: int) -> int:
    """The number of marks for so many classes: one of a few numbers, so that grammars share their vocabulary."""
    return max(_LEAST_MARKS, 1 << (classes - 1).bit_length())


def mark_of(number: int) -> bytes:
    """The bytes of a mark."""
    return MARKED + str(number).encode() + END
