"""A field is read alike wherever it stands: in chat, responses, completions, and lines of a batch."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest

from constrain.batch.lines import LineError, read_task
from constrain.fields.thinking import ThinkingFields
from constrain.fields.values import FieldError
from constrain.generation.options import MAY_BE_NONE, ChatOptions
from constrain.llama.decoding.sampling import OPTIONS
from constrain.server.chat.request import ChatBody
from constrain.server.completions.request import CompletionBody
from constrain.server.http.errors import ApiError
from constrain.server.requests.limits import RANGES
from constrain.server.responses.request import ResponseBody
from constrain.server.settings import Settings
from tests.support import for_each

if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[dict[str, Any]], dict[str, Any]]


def read_line(fields: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps({"prompt": "a", **fields}).replace("Infinity", "1e400")
    return dict(read_task(1, text.encode(), None, {}).options)


def read_chat(fields: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": "a"}]
    return dict(ChatBody.ask({"model": "m", "messages": messages, **fields}, Settings()).question.options)


def read_response(fields: dict[str, Any]) -> dict[str, Any]:
    return dict(ResponseBody.ask({"model": "m", "input": "a", **fields}, Settings()).options)


def read_completion(fields: dict[str, Any]) -> dict[str, Any]:
    options = dict(CompletionBody.ask({"model": "m", "prompt": "a", **fields}, Settings()).question.options)
    del options["max_tokens"]  # has a default there
    return options


READERS = {"line": read_line, "chat": read_chat, "response": read_response, "completion": read_completion}

SAMPLING = {
    "temperature": 1,
    "top_p": 0.9,
    "top_k": 3,
    "min_p": 0.2,
    "repeat_penalty": 1.3,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.25,
    "seed": -2,
    "stop": ["x", "y"],
    "logit_bias": {"5": -1.5},
    "repeat_last_n": -1,
    "repetition_penalty": 1.1,
    "typical_p": 0.5,
    "top_n_sigma": 1.5,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.2,
    "dynatemp_range": 0.5,
    "dynatemp_exponent": 2.0,
    "mirostat": 2,
    "mirostat_tau": 4.0,
    "mirostat_eta": 0.2,
    "dry_multiplier": 0.8,
    "dry_base": 2.0,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 0,
    "dry_sequence_breakers": [";"],
    "samplers": ["top_k", "temperature"],
}

REFUSED = {
    "a text for a number": (
        {"temperature": "1"},
        "Invalid type for 'temperature': expected a decimal, but got a string",
    ),
    "a truth for a number": ({"top_k": True}, "Invalid type for 'top_k': expected an integer, but got a boolean"),
    "a decimal for an integer": ({"seed": 1.5}, "Invalid type for 'seed': expected an integer, but got a decimal"),
    "too large a number": ({"min_p": 10**400}, "Invalid 'min_p': the decimal is too large. Expected a finite number."),
    "an infinite number": (
        {"logit_bias": {"7": math.inf}},
        "Invalid 'logit_bias.7': the decimal is too large. Expected a finite number.",
    ),
    "a stop of another type": ({"stop": ["a", 1]}, "Invalid type for 'stop[1]': expected a string, but got an integer"),
    "an empty stop": ({"stop": [""]}, "Invalid 'stop': an empty string would end every answer at once."),
    "a version of Mirostat as a text": ({"mirostat": "2"}, "Invalid type for 'mirostat': expected an integer"),
    "a breaker of another type": (
        {"dry_sequence_breakers": ["a", 1]},
        "Invalid type for 'dry_sequence_breakers[1]': expected a string, but got an integer",
    ),
    "a long breaker": ({"dry_sequence_breakers": ["a" * 41]}, "Invalid 'dry_sequence_breakers': "),
    "too many breakers": ({"dry_sequence_breakers": ["a"] * 17}, "Invalid 'dry_sequence_breakers': "),
    "an unknown sampler": ({"samplers": ["top_z"]}, "Invalid 'samplers': samplers has 'top_z'"),
    "an unknown letter": ({"samplers": "kz"}, "Invalid 'samplers': samplers has 'z'"),
    "samplers as a number": ({"samplers": 1}, "Invalid type for 'samplers': expected an array"),
    "a bias without a token": ({"logit_bias": {"a": 1}}, "Invalid key in 'logit_bias': 'a'"),
    "a bias of another type": ({"logit_bias": {"7": "1"}}, "Invalid type for 'logit_bias.7': expected a decimal"),
    "biases in a list": ({"logit_bias": [1]}, "Invalid type for 'logit_bias': expected an object, but got an array"),
}


@for_each("reader", READERS.values())
def test_sampling_is_read_alike(reader: Reader) -> None:
    found = reader(SAMPLING)
    assert found == {**SAMPLING, "seed": 2**32 - 3, "logit_bias": {5: -1.5}}
    assert type(found["temperature"]) is float


@for_each("reader", READERS.values())
@for_each("case", REFUSED)
def test_wrong_values_are_refused_alike(reader: Reader, case: str) -> None:
    fields, message = REFUSED[case]
    with pytest.raises((ApiError, LineError)) as caught:
        reader(fields)
    assert str(caught.value).startswith(message)


@for_each("reader", READERS.values())
def test_steps_may_be_named_in_other_ways(reader: Reader) -> None:
    for given, meant in (
        ("kpt", ["top_k", "top_p", "temperature"]),
        (["typical_p", "adaptive_p", "temp"], ["typ_p", "temperature"]),
        ([], []),
    ):
        assert reader({"samplers": given})["samplers"] == meant


@for_each("reader", [read_chat, read_response, read_completion])
@for_each("name", sorted(RANGES.keys() & OPTIONS.keys()))
def test_the_ends_of_ranges_are_read_and_the_next_values_refused(reader: Reader, name: str) -> None:
    least, most = RANGES[name]
    for value in (least, most):
        assert name == "seed" or reader({name: value})[name] == value
    for value in (least - 1 - (name == "top_k"), most + 1):
        with pytest.raises(ApiError, match=r"minimum|maximum"):
            reader({name: value})


@for_each("reader", [read_line, read_chat, read_response, read_completion])
def test_unlimited_is_minus_one(reader: Reader) -> None:
    name = "max_output_tokens" if reader is read_response else "max_tokens"
    found = reader({name: -1, "top_k": -1, "stop": list("abcdefgh")})
    assert (found.get("max_tokens"), found["top_k"], len(found["stop"])) == (None, 0, 8)
    for wrong in ({name: -2}, *([] if reader is read_line else [{"top_k": -2}])):
        with pytest.raises((ApiError, LineError), match="below minimum"):
            reader(wrong)


@for_each("reader", READERS.values())
def test_null_counts_as_missing(reader: Reader) -> None:
    given = dict.fromkeys(SAMPLING)
    found = reader(given)
    assert {name: value for name, value in found.items() if value is not None} == {}


@pytest.mark.parametrize("reader", [read_line, read_chat, read_response])
def test_other_options_are_read_alike(reader: Reader) -> None:
    flag = "Invalid type for 'parallel_tool_calls': expected a boolean, but got a string instead."
    for fields, message in (
        ({"parallel_tool_calls": "no"}, flag),
        ({"show_schema": 1}, "Invalid type for 'show_schema': expected a boolean"),
        ({"draft": "yes"}, "Invalid type for 'draft': expected a boolean or an integer, but got a string instead."),
        ({"draft": 0}, "Invalid 'draft': integer below minimum value. Expected a value >= 1, but got 0 instead."),
        ({"top_logprobs": 21}, "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 20"),
    ):
        with pytest.raises((ApiError, LineError)) as caught:
            reader(fields)
        assert str(caught.value).startswith(message)
    for fields in ({"show_schema": False}, {"draft": True}, {"draft": False}, {"draft": 7}):
        assert reader(fields) == fields
    assert reader({"draft": 2**40}) == {"draft": 2**31 - 1}


@for_each("reader", READERS.values())
def test_what_is_kept_of_a_prompt_is_read_alike(reader: Reader) -> None:
    for value in (True, False, "whole"):
        assert reader({"cache_prompt": value}) == {"cache_prompt": value}
    assert reader({"cache_prompt": None}) == {}
    for wrong, message in (
        (1, "Invalid type for 'cache_prompt': expected a boolean or 'whole', but got an integer"),
        ("half", "Invalid value for 'cache_prompt': 'half'. Supported values are: 'whole'."),
    ):
        with pytest.raises((ApiError, LineError)) as caught:
            reader({"cache_prompt": wrong})
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize("reader", [read_chat, read_response, read_completion])
def test_a_retention_in_memory_keeps_a_prompt_off_the_disk(reader: Reader) -> None:
    for value in ("in_memory", "in-memory"):
        assert reader({"prompt_cache_retention": value})["cache_prompt"] is False
    assert "cache_prompt" not in reader({"prompt_cache_retention": "24h"})


@for_each("reader", READERS.values())
def test_votes_are_weighed_alike(reader: Reader) -> None:
    assert reader({"vote": True, "n": 3, "unbias": True})["unbias"] is True
    assert "unbias" not in reader({"vote": True, "n": 3, "unbias": None})
    for fields, message in (
        ({"unbias": True}, "Invalid 'unbias': it weights the answers that vote, so it needs 'vote': true."),
        ({"vote": True, "n": 3, "unbias": 1}, "Invalid type for 'unbias': expected a boolean, but got an integer"),
    ):
        with pytest.raises((ApiError, LineError)) as caught:
            reader(fields)
        assert str(caught.value).startswith(message)


def test_weighed_votes_have_no_default_of_sampling() -> None:
    defaults: Any = {"temperature": 0.5, "top_k": 3, "seed": 1, "max_tokens": 9}
    line = json.dumps({"prompt": "a", "vote": True, "n": 3, "unbias": True}).encode()
    assert read_task(1, line, None, defaults).options == {"seed": 1, "max_tokens": 9, "unbias": True}
    assert read_task(1, b'"a"', None, {**defaults, "unbias": True}).options == {**defaults, "unbias": False}


VALUES: dict[str, Any] = {
    **SAMPLING,
    "seed": 5,
    **dict.fromkeys(("max_tokens", "max_string_tokens", "max_number_tokens", "max_reasoning_tokens"), 9),
    **dict.fromkeys(("logprobs", "confidence", "parallel_tool_calls", "allow_refusal", "thinking", "strict"), True),
    "unbias": False,
    "top_logprobs": 2,
    "timeout": 1.5,
    "cache_prompt": "whole",
    "draft": 100,
    "prefix": [1, 2],
    "tools": [{"type": "function", "name": "f"}],
    "tool_choice": ["f"],
    "tools_shown": "names",
    "tool_format": "hermes",
    "reasoning_effort": "low",
    "template_variables": {"a": 1},
    "show_schema": "Like this: {schema}",
    "whitespace": "compact",
    "property_order": "any",
    "formats": "strict",
    "inexact": "refuse",
    "numbers": "any",
    "precision": "decimal",
    "escapes": "any",
    "years": "any",
    "integers": "any",
    "registry": {"urn:a": True},
    "sources": {"a": "b"},
    "tables": {"a": ["b"]},
}
"""A value of each option, as JSON."""


def test_a_line_may_have_every_option() -> None:
    assert VALUES.keys() | {"certificate", "checks", "retries", "trace"} == ChatOptions.__annotations__.keys()
    with pytest.raises(LineError, match="trace"):
        read_task(1, json.dumps({"prompt": "a", "trace": True}).encode(), None, {})
    line = json.dumps({"prompt": "a", "schema": True, **VALUES}).encode()
    assert read_task(1, line, None, {}).options == {**VALUES, "logit_bias": {5: -1.5}}


def test_null_is_none_where_an_option_may_be_none() -> None:
    """What the annotations allow is what a line can say, also over a default for all lines."""
    annotations = {name: str(each) for name, each in ChatOptions.__annotations__.items()}
    assert {name for name, each in annotations.items() if re.search("None|'Any'|'object'", each)} == MAY_BE_NONE
    line = json.dumps({"prompt": "a", "schema": True, **dict.fromkeys(VALUES)}).encode()
    found = read_task(1, line, None, VALUES).options  # type: ignore[arg-type]
    assert found == {**VALUES, **dict.fromkeys(MAY_BE_NONE)}


@for_each(
    "body, most, expected",
    ({}, None, {}),
    ({"chat_template_kwargs": {}, "enable_thinking": None, "reasoning": {"summary": "auto"}}, None, {}),
    ({"chat_template_kwargs": {"a": 1}}, None, {"template_variables": {"a": 1}}),
    ({"enable_thinking": False}, None, {"thinking": False}),
    ({"reasoning_effort": "none"}, None, {"reasoning_effort": "none"}),
    ({"reasoning_effort": "low"}, 90, {"reasoning_effort": "low", "max_reasoning_tokens": 45}),
    ({"reasoning": {"effort": "minimal"}}, None, {"reasoning_effort": "minimal", "max_reasoning_tokens": 128}),
    ({"reasoning": {"effort": "high"}}, None, {"reasoning_effort": "high"}),
    ({"think": False}, None, {"thinking": False}),
    ({"think": "high"}, None, {"reasoning_effort": "high"}),
    ({"thinking": {"type": "enabled", "budget_tokens": 9}}, None, {"thinking": True, "max_reasoning_tokens": 9}),
)
def test_fields_become_options(body: dict[str, Any], most: int | None, expected: dict[str, Any]) -> None:
    assert ThinkingFields.read(body).thinking_options(most) == expected


@for_each(
    "body, param",
    ({"chat_template_kwargs": [1]}, "chat_template_kwargs"),
    ({"enable_thinking": "no"}, "enable_thinking"),
    ({"reasoning_effort": "much"}, "reasoning_effort"),
    ({"reasoning": {"effort": 3}}, "reasoning.effort"),
    ({"reasoning": "high"}, "reasoning"),
    ({"think": "much"}, "think"),
    ({"think": 1}, "think"),
)
def test_other_values_are_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(FieldError) as caught:
        ThinkingFields.read(body).thinking_options(None)
    assert caught.value.param == param
