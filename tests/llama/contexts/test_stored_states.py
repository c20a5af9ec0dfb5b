"""Conversations that alternate in too few sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.llama.contexts import stored_states
from tests.support.llama.prompts import prompt_tokens

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
