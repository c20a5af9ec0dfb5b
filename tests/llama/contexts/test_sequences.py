"""Sequences of one context: each stays as it is, in too few of them, and in a recurrent model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.generation.planning import prepare
from constrain.generation.running import Run, Running
from constrain.llama.contexts import stored_states
from constrain.llama.contexts.batch import Piece
from constrain.llama.contexts.sequences import Sequences
from constrain.llama.decoding.decode import Decoding
from tests.support.llama.prompts import prompt_tokens
from tests.support.llama.recurrent import write_mamba


@pytest.fixture
def sequences(model: constrain.Model) -> Iterator[Sequences]:
    made = Sequences(model.llama, 3, 256)
    yield made
    made.close()


def evaluate(sequences: Sequences, sequence: int, tokens: np.ndarray) -> np.ndarray:
    [row] = sequences.evaluate([Piece(sequence, sequences.length(sequence), tokens, 1)])
    return sequences.logits(row).copy()


def test_a_copy_does_not_depend_on_what_becomes_of_its_source(model: constrain.Model, sequences: Sequences) -> None:
    assert model.vocabulary.encode is not None
    ada, tom = (
        np.asarray(model.vocabulary.encode(text), np.intc)
        for text in (b"Ada is 36 years old. Her name is", b"Tom is 23 years old. His name is")
    )
    evaluate(sequences, 0, tom)
    state = sequences.save(0)
    assert state is not None
    sequences.clear(0)
    expected = evaluate(sequences, 0, ada)
    assert sequences.copy(0, 1, len(ada) - 1)
    sequences.clear(0)
    assert sequences.restore(0, state)  # before anything is evaluated
    saved = sequences.save(1)
    assert evaluate(sequences, 1, ada[-1:]) == pytest.approx(expected, abs=0.5)
    assert saved is not None
    sequences.clear(2)
    assert sequences.restore(2, saved)
    assert evaluate(sequences, 2, ada[-1:]) == pytest.approx(expected, abs=0.5)
    assert np.abs(evaluate(sequences, 0, ada[-1:]) - expected).max() > 2


def test_a_copy_that_fails_leaves_nothing(
    model: constrain.Model, sequences: Sequences, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model.vocabulary.encode is not None
    evaluate(sequences, 0, np.asarray(model.vocabulary.encode(b"Ada is 36 years old."), np.intc))
    restore = Sequences.restore
    monkeypatch.setattr(Sequences, "restore", lambda self, *given: restore(self, *given) and False)
    assert not sequences.copy(0, 1, 3)
    assert sequences.length(1) == 0


@pytest.mark.slow
def test_a_batch_is_answered_as_before_when_it_is_asked_again(tiny: Path) -> None:
    prompts = [f"{name} Lovelace, a happy mathematician from the north." for name in ("Ada", "Eve", "Ina", "Bob")]
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
    with constrain.Model(tiny, n_ctx=512, n_threads=1, parallel=4) as model:
        first, *others = (
            [answer.text for answer in constrain.complete_batch(model, prompts, schema=schema, max_tokens=80)]
            for _ in range(3)
        )
    assert others == [first, first]


SYSTEM = {"role": "system", "content": "You know all the books of the world. " * 8}
FIRST = "Tell me about the first of the great novels. " * 3
OTHER = "Tell me about the last of the old poems. " * 3


def ask(model: constrain.Model, talk: list[dict[str, str]], **options: Any) -> constrain.Completion:
    answer = constrain.complete(model, talk, max_tokens=12, temperature=0, **options)
    talk += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "And another?"}]
    return answer


def load(tiny: Path, n_ctx: int) -> constrain.Model:
    return constrain.Model(tiny, n_ctx=n_ctx, n_threads=1, prompt_cache=False)


@pytest.mark.slow
def test_alternating_conversations_evaluate_only_what_is_new(tiny: Path) -> None:
    with load(tiny, 1500) as model:
        talks = [[SYSTEM, {"role": "user", "content": text}] for text in (FIRST, OTHER)]
        shared = len(prompt_tokens(model, [SYSTEM])) - 20
        texts: list[list[str]] = [[], []]
        for turn in range(3):
            for number, talk in enumerate(talks):
                answer = ask(model, talk)
                texts[number].append(answer.text)
                new = answer.usage.prompt_tokens - answer.usage.cached_tokens
                if turn:
                    assert new < 100
                elif number:
                    assert answer.usage.cached_tokens >= shared > 200
    for number, text in enumerate((FIRST, OTHER)):
        with load(tiny, 1500) as alone:
            talk = [SYSTEM, {"role": "user", "content": text}]
            assert [ask(alone, talk).text for _ in range(3)] == texts[number]


def test_stored_states_are_bounded(tiny: Path) -> None:
    with load(tiny, 400) as model:
        for number in range(8):
            constrain.complete(model, f"{number} is a number. " * 8, max_tokens=2)
            kept = model.context._stored_states._kept
            assert sum(len(one.tokens) for one in kept) <= 400
        assert len(kept) >= 2


def test_short_states_are_not_stored(tiny: Path) -> None:
    with load(tiny, 400) as model:
        for end in ("One?", "Two?"):
            constrain.complete(model, "Hi. " * 40 + end, max_tokens=2)
        assert model.context._stored_states._kept == []


def test_a_state_that_llama_cpp_does_not_take_back_is_evaluated_again(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with load(tiny, 600) as model:
        first = constrain.complete(model, FIRST, max_tokens=8, temperature=0)
        constrain.complete(model, OTHER, max_tokens=8)
        monkeypatch.setattr(stored_states.llama_cpp, "llama_state_seq_set_data", lambda *_: 0)
        again = constrain.complete(model, FIRST, max_tokens=8, temperature=0)
    assert again.text == first.text
    assert again.usage.cached_tokens == 0


PROMPTS = [f"A long prompt of many words about {what}" for what in ("cats", "the sea", "kings", "cats", "c")]


@pytest.fixture(scope="module")
def mamba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "mamba.gguf"
    write_mamba(path)
    return path


@pytest.mark.parametrize("options", [{}, {"schema": {"type": "array", "items": {"type": "boolean"}, "maxItems": 5}}])
def test_a_batch_gives_the_answers_of_one_at_a_time(mamba: Path, options: Any) -> None:
    options = {"max_tokens": 24, "temperature": 0, **options}
    with constrain.Model(mamba, n_ctx=256, n_threads=1, parallel=3) as model:
        alone = [constrain.complete(model, prompt, **options) for prompt in PROMPTS]
        together = constrain.complete_batch(model, PROMPTS, **options)
        assert [one.tokens for one in together] == [one.tokens for one in alone]
        assert len({one.tokens for one in alone}) > 1 or "schema" in options


class TurnsBack:
    """After its first two tokens an answer begins again."""

    def __init__(self, _: Any) -> None:
        self.begun = 0

    def allows(self, *_: Any) -> bool:
        self.begun += 1
        return self.begun != 3

    def doubts(self, _: int) -> bool:
        return self.begun < 3


def test_an_answer_that_takes_tokens_back_is_the_same(mamba: Path) -> None:
    schema = {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 5}
    options: Any = {"max_tokens": 40, "temperature": 0}
    with constrain.Model(mamba, n_ctx=256, n_threads=1, parallel=2) as model:
        wanted = constrain.complete(model, PROMPTS[0], schema=schema, **options).tokens
        plan = prepare(model, PROMPTS[0], schema, options)
        plan = replace(plan, call_or_content=TurnsBack)
        run = Run(plan)
        handed: list[int] = []
        run.request.receive = handed.extend
        run.submit()
        run.request.done.result(30)
        assert tuple(handed) == run.finish()[1].tokens == wanted
        answer = Running(plan).answer
        assert tuple(Decoding(model.context, answer).steps()) == tuple(answer.tokens) == wanted


def test_sequences_that_alternate_go_on_where_they_were(mamba: Path) -> None:
    with constrain.Model(mamba, n_ctx=256, n_threads=1) as model:
        first, second = (prompt_tokens(model, prompt) for prompt in PROMPTS[:2])
        context = model.context
        assert context.prefill(first) == 0
        assert context.prefill(second) == 0
        assert context.prefill([*first, 40, 41]) == len(first)
        after = context.logits().copy()
        assert context.prefill([*second, 50, 51]) == len(second)
        assert context.prefill(first) == 0, "a state cannot be taken back"
        with constrain.Model(mamba, n_ctx=256, n_threads=1) as fresh:
            fresh.context.prefill([*first, 40, 41])
            np.testing.assert_allclose(fresh.context.logits(), after, rtol=1e-4, atol=1e-4)


def test_what_its_tokenizer_makes_something_else_of_is_spelled_byte_by_byte(mamba: Path) -> None:
    text = b"a b \xc3\n"
    with constrain.Model(mamba, n_ctx=64) as model:
        spaced = model.llama.tokenize(b"a b", add_bos=False)
        assert b"".join(map(model.vocabulary.token_bytes, spaced)) != b"a b", "it has no token for its mark of spaces"
        tokens = model.tokenizer.encode(text)
        assert b"".join(map(model.vocabulary.token_bytes, tokens)) == text


@pytest.mark.parametrize("together", [False, True])
def test_a_later_process_continues_after_the_same_beginning(mamba: Path, together: bool) -> None:
    system = {"role": "system", "content": "A long prompt of many words. " * 20}

    def ask(text: str, **about: Any) -> constrain.Completion:
        prompt = [system, {"role": "user", "content": text}]
        with constrain.Model(mamba, n_ctx=1024, n_threads=1, parallel=2, **about) as model:
            options: Any = {"max_tokens": 8, "temperature": 0, "logprobs": True}
            if together:
                found: constrain.Completion = constrain.complete_batch(model, [prompt], **options)[0]
                return found
            return constrain.complete(model, prompt, **options)

    first, second, alone = ask("One"), ask("Two"), ask("Two", prompt_cache=False)
    assert (first.usage.cached_tokens, alone.usage.cached_tokens) == (0, 0)
    assert second.usage.cached_tokens > 256
    assert second.logprobs == alone.logprobs
