"""Conversations that alternate in too few sequences."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from constrain.llama.contexts import stored_states
from tests.support.llama.prompts import prompt_tokens

SYSTEM = {"role": "system", "content": "You know all the books of the world. " * 30}
FIRST = "Tell me about the first of the great novels. " * 5
OTHER = "Tell me about the last of the old poems. " * 5


def ask(model: constrain.Model, talk: list[dict[str, str]], **options: Any) -> constrain.Completion:
    answer = constrain.complete(model, talk, max_tokens=12, temperature=0, **options)
    talk += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "And another?"}]
    return answer


@pytest.mark.slow
def test_alternating_conversations_evaluate_only_what_is_new() -> None:
    model = constrain.Model(n_ctx=1500, n_threads=1)
    talks = [[SYSTEM, {"role": "user", "content": text}] for text in (FIRST, OTHER)]
    shared = len(prompt_tokens(model, [SYSTEM])) - 10
    texts: list[list[str]] = [[], []]
    for turn in range(3):
        for number, talk in enumerate(talks):
            answer = ask(model, talk)
            texts[number].append(answer.text)
            new = answer.usage.prompt_tokens - answer.usage.cached_tokens
            if turn:
                assert new < 30
            elif number:
                assert answer.usage.cached_tokens >= shared > 200
    for number, text in enumerate((FIRST, OTHER)):
        alone = constrain.Model(n_ctx=1500, n_threads=1)
        talk = [SYSTEM, {"role": "user", "content": text}]
        assert [ask(alone, talk).text for _ in range(3)] == texts[number]


@pytest.mark.slow
def test_more_conversations_than_slots_evaluate_only_what_is_new() -> None:
    model, other = (constrain.Model(n_ctx=600, n_threads=1, parallel=2) for _ in range(2))
    talks = [[{"role": "user", "content": f"{number}: {text}"}] for number in "12" for text in (FIRST, OTHER)]
    texts = []
    for turn in range(2):
        for talk in talks:
            [answer] = constrain.complete_batch(model, [talk], max_tokens=12, temperature=0)
            texts.append(answer.text)
            new = answer.usage.prompt_tokens - answer.usage.cached_tokens
            assert (new < 30) == (turn > 0)
            talk += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "And another?"}]
    for number, talk in enumerate(talks):
        for turn in range(2):
            [answer] = constrain.complete_batch(other, [talk[: 1 + 2 * turn]], max_tokens=12, temperature=0)
            assert answer.text == texts[4 * turn + number]


@pytest.mark.slow
def test_stored_states_are_bounded() -> None:
    model = constrain.Model(n_ctx=400, n_threads=1)
    for number in range(8):
        constrain.complete(model, f"{number} is a number. " * 15, max_tokens=2)
        kept = model.context._stored_states._kept
        assert sum(len(one.tokens) for one in kept) <= 400
    assert len(kept) >= 2


@pytest.mark.slow
def test_short_states_are_not_stored() -> None:
    model = constrain.Model(n_ctx=400, n_threads=1)
    constrain.complete(model, "Hi. " * 40 + "One?", max_tokens=2)
    constrain.complete(model, "Hi. " * 40 + "Two?", max_tokens=2)
    assert model.context._stored_states._kept == []


@pytest.mark.slow
def test_a_state_that_llama_cpp_does_not_take_back_is_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = constrain.Model(n_ctx=600, n_threads=1)
    first = constrain.complete(model, FIRST, max_tokens=8, temperature=0)
    constrain.complete(model, OTHER, max_tokens=8)
    monkeypatch.setattr(stored_states.llama_cpp, "llama_state_seq_set_data", lambda *_: 0)
    again = constrain.complete(model, FIRST, max_tokens=8, temperature=0)
    assert again.text == first.text
    assert again.usage.cached_tokens == 0
