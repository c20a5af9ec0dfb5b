"""The recorder of traces: tokens that are removed again leave nothing behind."""

from __future__ import annotations

import numpy as np
import pytest

import constrain
from constrain.llama.decoding.chosen import log_sum
from constrain.llama.decoding.trace import Trace

VOCABULARY = constrain.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


def describe(token: int) -> tuple[str, bytes]:
    data = VOCABULARY.token_bytes(token)
    return data.decode("utf-8", "backslashreplace"), data


def record(trace: Trace, text: bytes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for token in text:
        logits = rng.normal(size=257).astype(np.float32)
        trace.add(token, logits, log_sum(logits), "chosen", 50)


@pytest.mark.parametrize("is_free", [False, True])
def test_tokens_that_are_taken_back_leave_no_trace(*, is_free: bool) -> None:
    constraint = constrain.compile({"enum": ["red", "green", "grey"]}, VOCABULARY)
    start = None if is_free else constraint.matcher
    changed, fresh = Trace(start, describe), Trace(start, describe)
    record(changed, b'"gree', 1)
    changed.cut(3)
    changed.cut(7)
    assert len(changed.tokens) == 3
    record(fresh, b'"gr', 1)
    for trace in (changed, fresh):
        record(trace, b'ey"', 2)
    assert changed.tokens == fresh.tokens
    assert [token.tokens_left for token in fresh.tokens] == [50, 49, 48, 47, 46, 45]


def test_the_mass_is_that_of_the_allowed_tokens() -> None:
    trace = Trace(constrain.compile({"enum": ["a"]}, VOCABULARY).matcher, describe)
    logits = np.zeros(257, np.float32)
    logits[ord('"')] = np.log(256.0)  # as likely as all others together
    trace.add(ord('"'), logits, log_sum(logits), "forced", 9)
    (token,) = trace.tokens
    assert token.n_allowed == 1
    assert token.mass == pytest.approx(0.5, abs=1e-6)
    assert token.allowed_top[0].logprob == pytest.approx(0, abs=1e-6)
    assert [each.is_allowed for each in token.top] == [True] + [False] * 9
