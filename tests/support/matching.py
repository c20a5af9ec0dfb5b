"""The protocol of a matcher, written down once, and what tests ask of anything that keeps it.

A matcher has read some tokens of a text. At each place:

1. ``fill_bitmask(row)`` sets the bits of exactly the tokens that ``accept`` would take, and clears all others, those
   beyond the vocabulary as well. It changes nothing that can be observed.
2. ``accept(token)`` reads one token and returns True; a token that is not allowed changes nothing, and it returns
   False. ``accept_many`` reads up to the first such token, and returns how many it has read.
3. ``fork()`` is a matcher at the same place that goes its own way. ``rollback(n)`` takes back the last n tokens;
   ``reset()`` takes back all of them. A place that is come back to has the mask that it had.
4. The tokens that end the generation are allowed exactly where ``is_accepting`` is true. ``is_finished`` is true once
   one of them was read, and where nothing else may follow.
5. ``shortest_completion()`` leads to a place where ``is_accepting`` is true; it begins with ``forced_bytes()``.

A budget of tokens, and limits that are met, allow less than the language does (see ``constrain.Matcher``); all five
hold for them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

import numpy as np

import constrain

STALE = 0xDEADBEEF
"""What is in a row before a mask is written to it: all of it must be overwritten."""


class AnyMatcher(Protocol):
    """What ``constrain.Matcher`` and the kernel's own matcher have in common."""

    @property
    def is_accepting(self) -> bool: ...

    @property
    def is_finished(self) -> bool: ...

    def fill_bitmask(self, row: Any, /) -> None: ...

    def accept(self, token: int, /) -> bool: ...

    def accept_many(self, tokens: Sequence[int], /) -> int: ...

    def rollback(self, count: int, /) -> None: ...

    def reset(self) -> None: ...

    def shortest_completion(self) -> bytes: ...

    def forced_bytes(self) -> bytes: ...


def bits_of(matcher: AnyMatcher, row: np.ndarray) -> np.ndarray:
    """The bits of a mask in the order of tokens, 0 or 1, as many as ``row`` has; that is written over."""
    row.fill(STALE)
    matcher.fill_bitmask(row)
    return np.unpackbits(row.view(np.uint8), bitorder="little")


def allowed(matcher: AnyMatcher, row: np.ndarray) -> np.ndarray:
    """The ids of the allowed tokens, ascending; ``row`` is written over."""
    return np.flatnonzero(bits_of(matcher, row))


def allowed_tokens(matcher: constrain.Matcher) -> set[int]:
    """The ids of the allowed tokens."""
    return set(allowed(matcher, matcher.constraint.allocate_bitmask()[0]).tolist())


def mask_of(matcher: constrain.Matcher) -> list[bool]:
    """Of every token: is it allowed?"""
    bits = bits_of(matcher, matcher.constraint.allocate_bitmask()[0])
    n_vocab = matcher.constraint.vocabulary.n_vocab
    assert not bits[n_vocab:].any(), "bits beyond the vocabulary are set"
    return bits[:n_vocab].astype(bool).tolist()


def accepted_by_forks(matcher: constrain.Matcher) -> list[bool]:
    """Of every token: does a fork take it? The mask by its definition."""
    return [matcher.fork().accept(token) for token in range(matcher.constraint.vocabulary.n_vocab)]


def require_mask(matcher: constrain.Matcher, expected: list[bool]) -> None:
    """Requires that a matcher has this mask, takes the tokens in it and no others, and is the same after all that."""
    text = matcher.constraint.vocabulary.token_bytes
    got = mask_of(matcher)
    wrong = [(token, text(token), bit) for token, bit in enumerate(got) if bit != expected[token]]
    assert not wrong, f"(token, text, is allowed): {wrong}"
    for token, fits in enumerate(expected):
        fork = matcher.fork()
        assert fork.accept(token) == fits, (token, text(token))
        if not fits:
            assert mask_of(fork) == expected, "a refused token changed the matcher"
    assert mask_of(matcher) == expected, "a fork changed the matcher"


def require_protocol(matcher: constrain.Matcher, rng: Random) -> None:
    """Requires at this place all that a matcher promises; afterwards it is at the same place."""
    mask, eos = accepted_by_forks(matcher), matcher.constraint.vocabulary.eos
    require_mask(matcher, mask)
    assert all(mask[token] == matcher.is_accepting for token in eos)
    if matcher.is_finished:
        assert {token for token, fits in enumerate(mask) if fits} <= set(eos)
        return
    assert matcher.shortest_completion().startswith(matcher.forced_bytes())
    fork = matcher.fork()
    tokens = fork.completion_tokens()
    assert fork.accept_many(tokens) == len(tokens)
    assert fork.is_accepting
    fork.rollback(len(tokens))
    assert mask_of(fork) == mask, "another mask at a place that was come back to"
    token = rng.choice([token for token, fits in enumerate(mask) if fits])
    assert matcher.accept(token)
    matcher.rollback(1)
    assert mask_of(matcher) == mask, "another mask after a token was taken back"
