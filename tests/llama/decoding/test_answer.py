"""The decisions of one answer: what it has evaluated together, what it takes by force, and that it keeps its limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.language.grammar import GrammarBuilder
from constrain.llama.binding import Candidates
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from constrain.regex.parsing.parser import parse_pattern
from tests.support.llama.alone import Alone
from tests.support.pair_merger import PairMerger

MERGER = PairMerger(
    b'{}[]":,_0123456789abcdefghijklmnopqrstuvwxyz',
    [b'{"', b'":', b'":"', b'",', b'","', b'"}', b"id", b"na", b"me", b"name", b"ad", b"ada", b'":{"', b'"x'],
)
VOCABULARY = MERGER.vocabulary
N_VOCAB = VOCABULARY.n_vocab
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"enum": ["ada", "bo", "x"]},
        "id": {"type": "integer", "minimum": 0, "maximum": 99},
        "in": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
    },
    "required": ["name", "id", "in"],
    "additionalProperties": False,
}
CLOSED: dict[str, Any] = {**SCHEMA, "properties": {**SCHEMA["properties"], "in": {"enum": [{"a": True}, {"a": False}]}}}


class Scripted(Alone):
    """A model that likes the tokens of ``wishes`` best, one after the other."""

    def __init__(self, wishes: Sequence[bytes]) -> None:
        super().__init__(N_VOCAB, 200)
        self.wishes = [MERGER.rank[text] for text in wishes]

    def next_logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        logits = -np.arange(N_VOCAB, dtype=np.float32)
        if self.wishes:
            logits[self.wishes.pop(0)] = 10
        return logits


def make_answer(schema: Any, **options: Any) -> Answer:
    return Answer(
        [0],
        options.pop("chain", None) or Chain(Sampling(temperature=0), N_VOCAB, 200),
        constrain.compile(schema, VOCABULARY, whitespace="compact").matcher,
        eos=VOCABULARY.eos,
        encode=MERGER,
        token_bytes=VOCABULARY.token_bytes,
        **options,
    )


def run(wishes: Sequence[bytes], schema: Any, **options: Any) -> tuple[Answer, list[list[bytes]]]:
    model, answer = Scripted(wishes), make_answer(schema, **options)
    assert list(Decoding(model, answer).steps()) == answer.tokens
    calls = [call[is_first:] for is_first, call in zip((1, *[0] * len(model.calls)), model.calls, strict=False)]
    return answer, [[MERGER.tokens[token] for token in call] for call in calls]


def text_of(answer: Answer) -> bytes:
    return b"".join(MERGER.tokens[token] for token in answer.tokens)


def test_forced_tokens_are_evaluated_with_what_is_before_them() -> None:
    answer, calls = run([b'":"', b"b", b"7", b",", b"t"], CLOSED)
    assert calls[0] == [b'{"', b"name"], "with the prompt"
    # What follows the name may be ":" or ":"x, so that is sampled; a comma after the 7, too: it could be a 77.
    assert calls[1:4] == [[b'":"'], [b"b", b"o", b'","', b"id", b'":'], [b"7"]]
    assert text_of(answer) == b'{"name":"bo","id":7,"in":{"a":true}}'
    assert answer.tokens == MERGER(text_of(answer))


def test_a_text_without_a_choice_needs_no_model() -> None:
    answer, calls = run([], {"const": {"name": "ada"}})
    assert calls == []
    assert answer.is_done
    assert answer.finish_reason == "stop"
    assert answer.tokens == MERGER(b'{"name":"ada"}')


def test_a_sampled_token_is_joined_with_what_is_forced_after_it() -> None:
    # n is allowed, but the tokenizer writes "name" as one token.
    schema = {"enum": [{"name": "bo"}, {"id": "bo"}]}
    answer, calls = run([b"n"], schema)
    assert answer.tokens == MERGER(b'{"name":"bo"}')
    answer, _ = run([b"{"], {"enum": [{"name": 1}, [1]]})
    assert answer.tokens == MERGER(b'{"name":1}')
    assert len(calls) == 1


def test_a_sampled_token_stays_if_what_it_could_be_joined_to_is_open() -> None:
    # ":"x is a token, so ":" is not certain where an x may follow; ": was sampled, and " is not taken by force.
    answer, calls = run([b'":', b'"'], {"enum": [{"name": "x"}, {"name": "ada"}]})
    assert [b'":'] in calls
    assert answer.tokens != MERGER(text_of(answer))


def test_forced_tokens_count_for_penalties_and_stops() -> None:
    told: list[int] = []
    chain = Chain(Sampling(temperature=0), N_VOCAB, 200)
    chain.accept = told.append  # type: ignore[method-assign]
    heard: list[int] = []

    def listen(token: int) -> bool:
        heard.append(token)
        return False

    answer, _ = run([b'":"', b"b", b"7", b",", b"t"], CLOSED, chain=chain, wants_stop=listen)
    assert told == answer.tokens
    assert heard == answer.tokens


def test_a_stop_within_forced_tokens_ends_the_answer() -> None:
    answer, calls = run([b'":"', b"b"], CLOSED, wants_stop=lambda token: MERGER.tokens[token] == b"id")
    assert constrain.compile(CLOSED, VOCABULARY).accepts(text_of(answer))
    assert answer.finish_reason == "stop"
    assert len(calls) == 2, "nothing is evaluated after the stop"


def test_the_limit_counts_forced_tokens() -> None:
    least = constrain.compile(CLOSED, VOCABULARY, whitespace="compact")
    with pytest.raises(constrain.BudgetError) as caught:
        make_answer(CLOSED, max_tokens=3).begin(200)
    assert caught.value.needed > 3
    for max_tokens in range(caught.value.needed, caught.value.needed + 12):
        for seed in range(8):
            wishes = [Random(f"{seed} {step}").choice(MERGER.tokens) for step in range(60)]
            answer, _ = run(wishes, CLOSED, max_tokens=max_tokens)
            assert len(answer.tokens) <= max_tokens
            assert least.accepts(text_of(answer))


def test_time_is_up_while_a_mask_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: Any) -> int:
        answer.deadline = 0.0
        raise TimeoutError

    answer, model = make_answer(CLOSED), Scripted([b'":"', b"b"])
    answer.begin(200)
    answer.choose(model.logits(), model.candidates)
    monkeypatch.setattr(constrain.Matcher, "fill_candidates", give_up)
    answer.choose(model.logits(), model.candidates)
    assert answer.finish_reason == "timeout"
    assert constrain.compile(CLOSED, VOCABULARY).accepts(text_of(answer))


def test_begin_returns_what_goes_with_the_prompt_and_choose_what_comes_next() -> None:
    answer, model = make_answer(CLOSED), Scripted([b'":"', b"b"])
    assert answer.begin(200) == tuple(MERGER(b'{"name'))
    first = answer.choose(model.logits(), model.candidates)
    assert first == (MERGER.rank[b'":"'],)
    second = answer.choose(model.logits(), model.candidates)
    assert second == tuple(MERGER(b'bo","id":'))
    assert answer.tokens == [*MERGER(b'{"name'), *first, *second]
    assert not answer.is_done


def unprepared(kind: type[Answer] = Answer) -> Answer:
    """An answer over a vocabulary of its own: nothing is known of its masks."""
    merger = PairMerger(b'{}":abc', [b'{"', b"ab"])
    vocabulary = merger.vocabulary
    return kind(
        [0],
        Chain(Sampling(temperature=0), vocabulary.n_vocab, 200),
        constrain.compile({"type": "string", "pattern": "^[abc]*$"}, vocabulary).matcher,
        eos=vocabulary.eos,
        encode=merger,
        token_bytes=vocabulary.token_bytes,
    )


def test_a_mask_is_prepared_while_the_model_computes() -> None:
    answer = unprepared()

    class Waiting(Scripted):
        """Evaluates until the mask is there."""

        def prefill(self, tokens: Sequence[int], deadline: float | None = None, **_: Any) -> int:  # noqa: ARG002
            end = time.monotonic() + 20
            while not answer.is_prepared:
                assert time.monotonic() < end, "nobody prepares the mask"
            return 0

    next(Decoding(Waiting([]), answer).steps())


def test_errors_of_the_model_leave_the_answer_to_its_own_thread() -> None:
    begun = threading.Event()

    class Slow(Answer):
        def prepare(self) -> None:
            begun.set()
            time.sleep(0.05)  # slow: the model fails meanwhile
            super().prepare()

    class Broken(Scripted):
        def prefill(self, tokens: Sequence[int], deadline: float | None = None, **_: Any) -> int:  # noqa: ARG002
            assert begun.wait(20)
            raise constrain.ModelError("no room")

    answer = unprepared(Slow)
    with pytest.raises(constrain.ModelError, match="no room"):
        next(Decoding(Broken([]), answer).steps())
    assert answer.is_prepared, "the second thread has come to its end"


class NotingChain(Chain):
    """A chain that notes the temperature of each choice."""

    def choose(self, candidates: Candidates, count: int, temperature: float | None = None) -> int:
        self.temperatures = [*getattr(self, "temperatures", []), temperature]
        return super().choose(candidates, count, temperature)


def test_tokens_are_chosen_at_the_temperature_of_their_lexeme() -> None:
    builder = GrammarBuilder()
    word = builder.terminal("WORD", parse_pattern("[a-z]{3}", "rust"), temperature=1.5)
    number = builder.terminal("NUMBER", parse_pattern("[0-9]{2}", "rust"))
    exact = builder.terminal("EXACT", parse_pattern("[a-z]", "rust"), temperature=0)
    builder.define(builder.rule("start"), [[word, number, exact]])
    chain = NotingChain(Sampling(temperature=0.5, seed=1), N_VOCAB, 200)
    matcher = constrain.compile(builder.build(), VOCABULARY).matcher
    known = {"eos": VOCABULARY.eos, "encode": MERGER, "token_bytes": VOCABULARY.token_bytes}
    answer = Answer([0], chain, matcher, **known)
    list(Decoding(Scripted([b"a", b"b", b"c", b"1", b"2", b"x"]), answer).steps())
    assert text_of(answer) == b"abc12x"
    assert chain.temperatures == [1.5, 1.5, 1.5, None, None, 0]
