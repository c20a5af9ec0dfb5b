"""The decode loop with a scripted model: what it evaluates, chooses, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.language.grammar import Grammar, GrammarBuilder
from constrain.language.tree import Literal
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from tests.support import for_each
from tests.support.llama.alone import Alone

TOKENS = [b"a", b"b", b"ab", b"c", b"abc", b"bbbb", b""]
EOS = 6
A, B, AB, C, ABC, BBBB = range(6)


def encode(text: bytes) -> list[int]:
    """One token a byte, and ``abc`` as one token."""
    tokens = []
    while text:
        token = ABC if text.startswith(b"abc") else TOKENS.index(text[:1])
        tokens.append(token)
        text = text[len(TOKENS[token]) :]
    return tokens


VOCABULARY = constrain.Vocabulary.from_tokens(TOKENS, eos=[EOS], encode=encode)


class Scripted(Alone):
    """A model whose wishes are a list: at step ``i`` it would like ``wishes[i]`` most, then the ids in order."""

    def __init__(self, wishes: Sequence[int], *, n_ctx: int = 100) -> None:
        super().__init__(len(TOKENS), n_ctx)
        self.wishes = list(wishes)
        self.step = 0

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        logits = -np.arange(len(TOKENS), dtype=np.float32)
        if self.step < len(self.wishes):
            logits[self.wishes[self.step]] = 10
        self.step += 1
        return logits


def language(*texts: bytes) -> Grammar:
    builder = GrammarBuilder()
    start = builder.rule("start")
    builder.define(start, [[builder.terminal(text.decode(), Literal(text))] for text in texts])
    return builder.build()


def repeated(least: int) -> Grammar:
    """``a`` and then at least ``least`` times ``b``, or ``c`` alone."""
    builder = GrammarBuilder()
    start, more = builder.rule("start"), builder.rule("more")
    a, b, c = (builder.terminal(name, Literal(name.encode())) for name in "abc")
    builder.define(start, [[a, *[b] * least, more], [c]])
    builder.define(more, [[], [b, more]])
    return builder.build()


def run(wishes: Sequence[int], grammar: Grammar | None, **options: Any) -> tuple[Decoding, Scripted, list[int]]:
    model = Scripted(wishes, n_ctx=options.pop("n_ctx", 100))
    start = None if grammar is None else constrain.compile(grammar, VOCABULARY).matcher
    prompt = options.pop("prompt", [A, A])
    answer = Answer(
        prompt,
        Chain(Sampling(temperature=0), len(TOKENS), 100),
        start,
        eos=VOCABULARY.eos,
        encode=encode,
        token_bytes=VOCABULARY.token_bytes,
        **options,
    )
    decoding = Decoding(model, answer)
    return decoding, model, list(decoding.steps())


def test_the_likeliest_allowed_token_is_taken() -> None:
    decoding, _, tokens = run([C, BBBB], language(b"ab", b"abc", b"bb"))
    # C is not allowed, so A, the next best; then B before BBBB, which is not allowed either; then the end.
    assert tokens[0] == A
    assert b"".join(TOKENS[token] for token in tokens) in (b"ab", b"abc")
    assert decoding.answer.finish_reason == "stop"


def test_the_end_of_generation_is_taken_where_it_is_allowed() -> None:
    decoding, _, tokens = run([A, B, EOS], repeated(1))
    assert tokens == [A, B]
    assert decoding.answer.finish_reason == "stop"
    _, _, tokens = run([EOS, EOS, EOS], language(b"c"))
    assert tokens == [C]


@for_each("max_tokens", range(1, 12))
def test_an_answer_is_always_complete_within_max_tokens(max_tokens: int) -> None:
    decoding, _, tokens = run([A] + [B] * 50, repeated(3), max_tokens=max_tokens)
    text = b"".join(TOKENS[token] for token in tokens)
    assert constrain.compile(repeated(3), VOCABULARY).accepts(text)
    assert len(tokens) <= max_tokens
    # "abbb" takes three tokens, "ab" first: with fewer, the model's wish for A leads nowhere.
    assert text == (b"c" if max_tokens < 3 else b"a" + b"b" * max(3, max_tokens - 1))
    assert decoding.answer.finish_reason == "length"


def test_a_budget_no_answer_fits_into_is_refused_with_one_that_is_enough() -> None:
    for grammar in (language(b"bbb"), language(b"bbbbb", b"abcabcabc")):
        model = Scripted([])
        with pytest.raises(constrain.BudgetError, match="max_tokens is 1") as caught:
            run([], grammar, max_tokens=1)
        assert model.evaluated == []
        _, _, tokens = run([], grammar, max_tokens=caught.value.needed)
        assert len(tokens) <= caught.value.needed


def test_the_context_is_a_budget_too() -> None:
    decoding, _, tokens = run([A] + [B] * 50, repeated(1), n_ctx=8, prompt=[A, A])
    assert len(tokens) == 6
    assert decoding.answer.finish_reason == "length"
    with pytest.raises(constrain.BudgetError, match="leaves room for 2") as caught:
        run([], language(b"bbb"), n_ctx=4, prompt=[A, A])
    assert caught.value.needed == 3


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    for grammar in (None, language(b"c")):
        with pytest.raises(constrain.ModelError, match="5 tokens, but the context holds 5"):
            run([], grammar, n_ctx=5, prompt=[A] * 5)
        with pytest.raises(constrain.ModelError, match="empty"):
            run([], grammar, prompt=[])


def test_when_time_is_up_the_shortest_end_is_written_without_the_model() -> None:
    decoding, model, tokens = run([A], repeated(3), deadline=time.monotonic() - 1)
    assert tokens == [C]
    assert model.evaluated == [A, A]
    assert decoding.answer.finish_reason == "timeout"
    decoding, _, tokens = run([A], None, deadline=time.monotonic() - 1)
    assert tokens == []
    assert decoding.answer.finish_reason == "timeout"


def test_a_stop_text_leads_to_the_shortest_end() -> None:
    decoding, _, tokens = run([A] + [B] * 50, repeated(3), wants_stop=lambda token: token == B)
    assert tokens == [A, B, B, B]
    assert decoding.answer.finish_reason == "stop"


def test_without_a_matcher_every_token_is_allowed() -> None:
    decoding, model, tokens = run([C, ABC, EOS], None)
    assert tokens == [C, ABC]
    assert model.evaluated == [A, A, C, ABC]
    assert decoding.answer.finish_reason == "stop"
    decoding, _, tokens = run([C] * 20, None, max_tokens=5)
    assert tokens == [C] * 5
    assert decoding.answer.finish_reason == "length"
    decoding, _, tokens = run([C, B, C], None, wants_stop=lambda token: token == B)
    assert tokens == [C, B]


def test_a_language_of_the_empty_text_alone_needs_no_token() -> None:
    builder = GrammarBuilder()
    builder.define(builder.rule("start"), [[]])
    decoding, _, tokens = run([A], builder.build())
    assert tokens == []
    assert decoding.answer.finish_reason == "stop"


@for_each(
    "by, wishes, grammar, options",
    ("model", [A, B, EOS], repeated(1), {}),
    ("model", [C, EOS], None, {}),
    ("grammar", [AB], language(b"ab", b"b"), {}),
    ("stop", [C, B, C], None, {"wants_stop": lambda token: token == B}),
    ("stop", [A, B, B, B], repeated(1), {"wants_stop": lambda token: token == B}),
    ("limit", [C] * 20, None, {"max_tokens": 5}),
    ("limit", [A] + [B] * 50, repeated(1), {"max_tokens": 5}),
    ("context", [C] * 20, None, {"n_ctx": 7, "max_tokens": 20}),
    ("context", [A] + [B] * 50, repeated(1), {"n_ctx": 8}),
)
def test_the_cause_of_the_end_is_told(
    by: str, wishes: list[int], grammar: constrain.Grammar | None, options: dict[str, Any]
) -> None:
    decoding, model, _ = run(wishes, grammar, **options)
    assert decoding.answer.ended_by == by
    assert decoding.prompt_seconds > 0
    assert by != "grammar" or model.step == 1, "the model was asked where nothing can follow"
