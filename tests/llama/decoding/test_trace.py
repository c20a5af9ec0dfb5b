"""The recorder of traces: tokens that are removed again leave nothing behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.generation.observers.choices import Choices
from constrain.generation.observers.trace import Trace
from constrain.llama.decoding.distribution import Distribution

VOCABULARY = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def describe(token: int) -> tuple[str, bytes]:
    data = VOCABULARY.token_bytes(token)
    return data.decode("utf-8", "backslashreplace"), data


class Watched:
    """A trace, and the answer that it watches."""

    def __init__(self, start: Any) -> None:
        self.trace = Trace(start, describe, Choices())
        self.answer: Any = SimpleNamespace(tokens=[], prefix=(), closing=None, start=start, limit=50)

    def take(self, token: int, *logits: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        self.answer.tokens.append(token)
        self.trace.on_token(self.answer, len(self.answer.tokens) - 1, Distribution(*logits))

    def record(self, text: bytes, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for token in text:
            self.take(token, rng.normal(size=257).astype(np.float32))

    def cut(self, length: int) -> None:
        del self.answer.tokens[length:]
        self.trace.on_cut(length)


@pytest.mark.parametrize("is_free", [False, True])
def test_tokens_that_are_taken_back_leave_no_trace(*, is_free: bool) -> None:
    constraint = constrain.compile({"enum": ["red", "green", "grey"]}, VOCABULARY)
    start = None if is_free else constraint.matcher
    changed, fresh = Watched(start), Watched(start)
    changed.record(b'"gree', 1)
    changed.cut(3)
    changed.cut(7)
    assert len(changed.trace.tokens) == 3
    fresh.record(b'"gr', 1)
    for each in (changed, fresh):
        each.record(b'ey"', 2)
    assert changed.trace.tokens == fresh.trace.tokens
    assert [token.tokens_left for token in fresh.trace.tokens] == [50, 49, 48, 47, 46, 45]


def test_the_mass_is_that_of_the_allowed_tokens() -> None:
    watched = Watched(constrain.compile({"enum": ["a"]}, VOCABULARY).matcher)
    logits = np.zeros(257, np.float32)
    logits[ord('"')] = np.log(256.0)  # as likely as all others together
    watched.take(ord('"'), logits)
    (token,) = watched.trace.tokens
    assert token.origin == "forced"
    assert token.n_allowed == 1
    assert token.mass == pytest.approx(0.5, abs=1e-6)
    assert token.allowed_top[0].logprob == pytest.approx(0, abs=1e-6)
    assert [each.is_allowed for each in token.top] == [True] + [False] * 9
