"""Forced tokens: what they change, and what they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import constrain
from constrain.llama.decoding.answer import Answer
from constrain.llama.decoding.decode import Decoding
from constrain.llama.decoding.sampler import Chain, Sampling
from tests.support.llama.prompts import prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constrain.engine.constraint import Matcher


def record(**properties: Any) -> dict[str, Any]:
    """An object that has all properties."""
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False
    }  # fmt: skip


NAMESPACES = {"enum": ["default", "système", "kube-system"]}
POD = record(
    apiVersion={"const": "v1"},
    kind={"enum": ["Pod", "Deployment", "Service"]},
    metadata=record(name={"type": "string", "maxLength": 12}, namespace=NAMESPACES),
    replicas={"type": "integer", "minimum": 0, "maximum": 99},
    paused={"type": "boolean"},
)
PLACE = record(city={"type": "string", "maxLength": 10}, unit={"enum": ["C", "F"]})
CALL = {"anyOf": [record(name={"const": "get_weather"}, arguments=PLACE), record(name={"const": "stop"})]}
CALLS = {"type": "array", "minItems": 2, "maxItems": 3, "items": CALL}


class Unforced:
    """A matcher that forces nothing."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matcher, name)

    def forced_after(self, before: bytes) -> tuple[bytes, list[int]]:  # noqa: ARG002
        return b"", []


class Watched:
    """A model's context; notes which tokens of the answer are evaluated together."""

    def __init__(self, model: constrain.Model, prompt: list[int]) -> None:
        self._context, self._prompt = model.context, prompt
        self.calls: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def prefill(self, tokens: Sequence[int], deadline: float | None = None, **options: Any) -> int:
        self.calls.append(list(tokens[len(self._prompt) :]))
        return self._context.prefill(tokens, deadline, **options)

    def decode(self, tokens: Sequence[int], read: Any = None) -> None:
        self.calls.append(list(tokens))
        self._context.decode(tokens, read)


def run(model: constrain.Model, schema: Any, space: str, *, forced: bool = True) -> tuple[Answer, list[list[int]]]:
    """An answer at temperature 0, and what was evaluated together."""
    vocabulary = model.vocabulary
    assert vocabulary.encode is not None
    start = constrain.compile(schema, vocabulary, whitespace=space).matcher
    prompt = prompt_tokens(model, "Make something up, as JSON.")
    answer = Answer(
        prompt,
        Chain(Sampling(temperature=0), vocabulary.n_vocab, 1024),
        start if forced else lambda max_tokens: Unforced(start(max_tokens)),
        eos=frozenset(vocabulary.eos),
        encode=vocabulary.encode,
        token_bytes=vocabulary.token_bytes,
        max_tokens=200,
    )
    watched = Watched(model, prompt)
    list(Decoding(watched, answer).steps())
    return answer, watched.calls


def text_of(model: constrain.Model, tokens: Sequence[int]) -> bytes:
    return b"".join(map(model.vocabulary.token_bytes, tokens))


@pytest.mark.slow
@pytest.mark.parametrize("space", ["compact", "flexible"])
@pytest.mark.parametrize("schema", [POD, CALLS], ids=["pod", "calls"])
def test_greedy_answers_are_those_without_forced_tokens(model: constrain.Model, schema: Any, space: str) -> None:
    answer, calls = run(model, schema, space)
    other, single = run(model, schema, space, forced=False)
    assert len(calls) < len(answer.tokens)
    assert len(single) == len(other.tokens)
    text, plain = text_of(model, answer.tokens), text_of(model, other.tokens)
    if text != plain:
        # From some place on the two have read different tokens for the same text: there the model chose, one token at
        # a time, a spelling that the tokenizer does not have.
        same = next(place for place, pair in enumerate(zip(text, plain, strict=False)) if pair[0] != pair[1])
        before = _tokens_within(model, other.tokens, same)
        assert before != _tokens_within(model, answer.tokens, same)
        assert before != _tokens_within(model, model.vocabulary.encode(plain), same)


def _tokens_within(model: constrain.Model, tokens: Sequence[int], size: int) -> list[int]:
    """The tokens of the first ``size`` bytes."""
    kept, end = [], 0
    for token in tokens:
        end += len(model.vocabulary.token_bytes(token))
        if end > size:
            break
        kept.append(token)
    return kept


def test_tokens_evaluated_together_say_what_they_say_one_by_one(model: constrain.Model) -> None:
    prompt = prompt_tokens(model, "Make something up, as JSON.")
    assert model.vocabulary.encode is not None
    tokens = model.vocabulary.encode(b'{"name":"Ada","age":36,"')
    with model.turn() as context:
        context.prefill(prompt)
        for token in tokens:
            context.decode([token])
        one_by_one = context.logits().copy()
        context.prefill(prompt)
        context.decode(tokens)
        together = context.logits().copy()
        context.prefill([*prompt, *tokens])
        # Quantized weights are multiplied in other ways for several tokens: the logits are not equal bit by bit.
        assert np.corrcoef(one_by_one, together)[0, 1] > 0.999
        assert one_by_one.argmax() == together.argmax() == context.logits().argmax()
        assert model.llama.input_ids[: model.llama.n_tokens].tolist() == [*prompt, *tokens]
