"""The trace of answers: every token with its mask, as a matcher of one's own and log-probabilities have it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.generation.completion import Finished
from constrain.generation.observers.trace import TRACED_TOKENS
from tests.support import for_each

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "colour": {"enum": ["red", "green", "blue"]}},
    "required": ["name", "colour"],
}
LANGUAGES: dict[str, Any] = {
    "an object": PERSON,
    "a grammar": constrain.Lark('start: "SELECT " NAME ("," NAME)* ";"\nNAME: /[a-z]{1,5}/'),
    "a pattern": constrain.Regex("[0-9]{4}-[0-9]{2}"),
    "free text": None,
}


def traced(model: constrain.Model, prompt: str, schema: Any, **options: Any) -> constrain.Completion:
    asked = {"max_tokens": 60, "seed": 3, "logprobs": True, "top_logprobs": TRACED_TOKENS, "trace": True, **options}
    completion = constrain.complete(model, prompt, schema=schema, **asked)
    assert completion.trace is not None
    assert completion.logprobs is not None
    assert [each.token for each in completion.trace] == list(completion.tokens)
    return completion


@for_each("temperature", [0.0, 1.0])
@for_each("name", LANGUAGES)
def test_a_trace_has_what_the_model_and_the_matcher_say(model: constrain.Model, name: str, temperature: float) -> None:
    schema = LANGUAGES[name]
    completion = traced(model, "Describe somebody.", schema, temperature=temperature)
    assert completion.trace
    n_vocab = model.vocabulary.n_vocab
    matcher = None
    if schema is not None:
        constraint = constrain.compile(_closed(schema), model.vocabulary)
        matcher = constraint.matcher(max_tokens=60, max_number_tokens=64)
        row = constraint.allocate_bitmask()[0]
    left = 60
    for token, scored in zip(completion.trace, completion.logprobs or (), strict=True):
        assert (token.text, token.bytes, token.logprob) == (scored.text, scored.bytes, scored.logprob)
        assert [(each.token, each.text, each.logprob) for each in token.top] == [
            (each.token, each.text, each.logprob) for each in scored.top
        ]
        assert token.tokens_left == left
        left -= 1
        if matcher is None:
            assert (token.n_allowed, token.mass, token.expected, token.origin) == (n_vocab, 1.0, (), "chosen")
            assert all(each.is_allowed for each in token.top)
            continue
        matcher.fill_bitmask(row)
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[:n_vocab]
        assert token.n_allowed == allowed.sum()
        assert token.min_tokens_left == matcher.min_tokens_left
        assert token.expected == matcher.expected_terminals()
        assert all(each.is_allowed == bool(allowed[each.token]) for each in token.top)
        assert all(each.is_allowed and allowed[each.token] for each in token.allowed_top)
        assert len(token.allowed_top) == min(TRACED_TOKENS, token.n_allowed)
        _check_probabilities(token)
        assert matcher.accept(token.token)
    assert completion.log_mass is not None


def _closed(schema: Any) -> Any:
    return {**schema, "additionalProperties": False} if isinstance(schema, dict) else schema


def _check_probabilities(token: constrain.results.TokenTrace) -> None:
    """Those among the allowed tokens are those among all, divided by the mass of the allowed ones."""
    among_all = {each.token: each.logprob for each in token.top} | {token.token: token.logprob}
    for each in token.allowed_top:
        if each.token in among_all and token.mass > 1e-6:
            assert each.logprob + math.log(token.mass) == pytest.approx(among_all[each.token], abs=1e-4)


def test_origins_tell_who_wrote_a_token(model: constrain.Model) -> None:
    completion = traced(model, "Describe somebody.", PERSON, temperature=0)
    trace = completion.trace or ()
    assert {each.origin for each in trace} <= {"chosen", "forced", "healed"}
    assert "forced" in {each.origin for each in trace}
    text = "".join(each.text for each in trace)
    assert text == completion.text
    for each in trace:
        if each.n_allowed == 1:
            assert each.origin in ("forced", "healed")


def test_a_stop_text_is_followed_by_closing_tokens(model: constrain.Model) -> None:
    completion = traced(
        model, "Describe somebody.", {"type": "string", "minLength": 10}, stop=["a", "e", "i", "o", "s", "t"]
    )
    origins = [each.origin for each in completion.trace or ()]
    assert origins[-1] == "closing"
    first = origins.index("closing")
    assert set(origins[first:]) == {"closing"}


def test_a_stream_has_the_trace_in_pieces_before_the_text(model: constrain.Model) -> None:
    options: dict[str, Any] = {"max_tokens": 60, "seed": 3, "trace": True}
    *events, last = constrain.stream(model, "Describe somebody.", schema=PERSON, **options)
    assert isinstance(last, Finished)
    pieces = [event for event in events if isinstance(event, constrain.events.TraceDelta)]
    assert len(pieces) > 1
    assert tuple(token for piece in pieces for token in piece.tokens) == last.completion.trace
    traced_text = shown = ""
    for event in events:
        if isinstance(event, constrain.events.TraceDelta):
            traced_text += "".join(token.text for token in event.tokens)
        elif isinstance(event, constrain.TextDelta):
            shown += event.text
            assert traced_text.startswith(shown)


def test_answers_of_a_batch_have_traces(model: constrain.Model) -> None:
    prompts = ["Describe somebody.", "Describe somebody else."]
    completions = constrain.complete_batch(model, prompts, schema=PERSON, max_tokens=60, trace=True, temperature=0)
    for completion in completions:
        assert isinstance(completion, constrain.Completion)
        assert [each.token for each in completion.trace or ()] == list(completion.tokens)
    assert constrain.complete(model, "Hello", max_tokens=3).trace is None


@pytest.mark.slow
def test_calls_have_traces(model: constrain.Model) -> None:
    def weather(city: str) -> str:
        """Returns the weather in a city."""
        return city

    completion = traced(model, "What is the weather in Rome?", None, tools=[weather], tool_choice="auto", max_tokens=80)
    assert any(each.expected for each in completion.trace or ())


@pytest.mark.slow
def test_a_prefix_is_kept_and_gone_on_with(model: constrain.Model) -> None:
    whole = traced(model, "Describe somebody.", PERSON, temperature=0)
    for size in range(1, len(whole.tokens) + 1):
        prefix = whole.tokens[:size]
        again = traced(model, "Describe somebody.", PERSON, temperature=0, prefix=prefix)
        assert again.tokens[:size] == prefix
        assert again.text == whole.text
        assert [each.origin for each in (again.trace or ())[:size]] == ["given"] * size


def test_a_branch_takes_another_token(model: constrain.Model) -> None:
    whole = traced(model, "Describe somebody.", PERSON, temperature=0)
    trace = whole.trace or ()
    index = next(i for i, each in enumerate(trace) if each.origin == "chosen" and len(each.allowed_top) > 1)
    other = next(each for each in trace[index].allowed_top if each.token != trace[index].token)
    branch = traced(model, "Describe somebody.", PERSON, temperature=0, prefix=[*whole.tokens[:index], other.token])
    assert branch.tokens[index] == other.token
    assert set(branch.value) == {"name", "colour"}


def test_a_prefix_may_be_text(model: constrain.Model) -> None:
    found = traced(model, "Describe somebody.", PERSON, prefix='{"name": "Ada"', temperature=0)
    assert found.text.startswith('{"name": "Ada"')
    assert found.value["name"] == "Ada"
    free = traced(model, "Count.", None, prefix="One, two,", max_tokens=12, temperature=0)
    assert free.text.startswith("One, two,")


@for_each(
    "prefix, options, error, message",
    ('{"age"', {}, ValueError, "no answer begins with the prefix"),
    ([10**9], {}, ValueError, "has the token id"),
    ([2], {}, ValueError, "ends an answer"),
    ("{", {"draft": True}, ValueError, "prefix and draft exclude each other"),
    ('{"name": "Ada"', {"max_tokens": 2}, constrain.BudgetError, "the prefix of the answer alone has"),
    ([1.5], {}, TypeError, "must be an integer"),
)
def test_prefixes_that_cannot_be(
    model: constrain.Model, prefix: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        constrain.complete(model, "Describe somebody.", schema=PERSON, prefix=prefix, **options)


def test_a_budget_that_is_too_small_for_the_rest_is_told(model: constrain.Model) -> None:
    assert model.vocabulary.encode is not None
    prefix = model.vocabulary.encode(b'{"name": "Ada"')
    with pytest.raises(constrain.BudgetError, match="the shortest answer with this prefix takes") as caught:
        constrain.complete(model, "Describe somebody.", schema=PERSON, prefix=prefix, max_tokens=len(prefix) + 1)
    enough = constrain.complete(
        model, "Describe somebody.", schema=PERSON, prefix=prefix, max_tokens=caught.value.needed
    )
    assert enough.value["name"].startswith("Ada")
