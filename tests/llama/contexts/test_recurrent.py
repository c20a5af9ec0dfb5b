"""Recurrent models: one state for each sequence, that after its last token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.generation.job import Run
from constrain.generation.planning import prepare
from constrain.llama.decoding.decode import Decoding
from tests.support.llama.prompts import prompt_tokens
from tests.support.llama.recurrent import write_mamba

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
        job = prepare(model, PROMPTS[0], schema, options)
        job = replace(job, plan=replace(job.plan, call_or_content=TurnsBack))
        run = Run(job)
        handed: list[int] = []
        run.request.receive = handed.extend
        run.submit()
        run.request.done.result(30)
        assert tuple(handed) == run.finish()[1].tokens == wanted
        answer = job.begin().answer
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
