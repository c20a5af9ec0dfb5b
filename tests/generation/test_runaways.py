"""Models that run away in a string or a number, on all ways to generate: each is brought to its end."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

import constrain
from constrain.chat.reading.reply import MAX_SAME_CALLS

SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "amount": {"type": "number"}, "end": {"type": "boolean"}},
    "required": ["note", "amount", "end"],
}
PROMPT = "Fill in a form."
LIMIT, DIGITS, GRACE = 9, 12, 8


@pytest.fixture(scope="module")
def options(model: constrain.Model) -> dict[str, Any]:
    """Of a model that says nothing but ``the`` and ``1`` where it may."""
    assert model.vocabulary.encode is not None
    bias = {model.vocabulary.encode(text)[0]: bias for text, bias in ((b" the", 200.0), (b"1", 100.0))}
    return {
        "schema": SCHEMA, "temperature": 0, "logit_bias": bias, "max_tokens": 300, "whitespace": "compact",
        "max_string_tokens": LIMIT, "max_number_tokens": DIGITS,
    }  # fmt: skip


@pytest.mark.slow
def test_strings_and_numbers_are_brought_to_their_ends(model: constrain.Model, options: dict[str, Any]) -> None:
    completion = constrain.complete(model, PROMPT, **options)
    jsonschema.validate(completion.value, SCHEMA)
    assert (completion.finish_reason, completion.shortened) == ("stop", 2)
    note, digits = completion.value["note"], str(completion.value["amount"])
    assert " the" * (LIMIT - 1) in note
    assert note.count(" the") in (LIMIT - 1, LIMIT)
    assert note.count("1") <= GRACE  # where no word may begin, it goes on within one
    assert digits == "1" * DIGITS
    assert len(completion.tokens) < LIMIT + DIGITS + GRACE + 20


def test_a_string_that_ended_early_is_named(model: constrain.Model, options: dict[str, Any]) -> None:
    completion = constrain.complete(model, PROMPT, **{**options, "max_string_tokens": 3, "max_number_tokens": 3})
    assert completion.ended_early == (("note",),)


@pytest.mark.slow
def test_numbers_have_a_limit_unless_it_is_taken_away(model: constrain.Model, options: dict[str, Any]) -> None:
    del options["max_number_tokens"]
    try:
        completion = constrain.complete(model, PROMPT, **options)
    finally:
        options["max_number_tokens"] = DIGITS
    assert len(str(completion.value["amount"])) == 64


@pytest.mark.parametrize("name", ["max_string_tokens", "max_number_tokens"])
def test_a_limit_is_at_least_one_token(model: constrain.Model, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0"):
        constrain.generate(model, PROMPT, schema=SCHEMA, **{name: 0})  # type: ignore[call-overload]


@pytest.mark.slow
def test_a_model_that_calls_the_same_again_and_again_is_brought_to_its_end(model: constrain.Model) -> None:
    def ping() -> str:
        """Tells whether the other side is there."""
        return "pong"

    never_ends = dict.fromkeys(model.vocabulary.eos, -100.0)
    completion = constrain.complete(
        model,
        "Ping.",
        tools=[ping],
        tool_choice="required",
        max_tokens=400,
        temperature=0,
        logit_bias=never_ends,
        whitespace="compact",
    )
    assert completion.finish_reason == "stop"
    assert [call.name for call in completion.value.calls] == ["ping"] * MAX_SAME_CALLS
    written = b"".join(map(model.vocabulary.token_bytes, completion.tokens))
    assert written.endswith(b"</tool_call>")
