"""Arguments that are of another type than they must be: each is named, before anything is generated."""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.arguments import needs_extra
from constrain.chat.prompt.messages import conversation
from constrain.errors import SchemaWarning
from constrain.generation.completion import Completion, Finished, Timings, Usage
from constrain.generation.generate import Stream
from constrain.generation.options import split_options
from tests.support import byte_vocabulary, for_each

ANSWER: Any = Completion({"name": "Ada"}, "", (), Usage(0, 0, 0), Timings(0, 0, 0, 0), "stop", None)

WRONG = [
    ("max_tokens", "5", "a whole number or None"),
    ("max_tokens", 3.5, "a whole number or None"),
    ("max_tokens", True, "a whole number or None"),
    ("max_string_tokens", [1], "a whole number or None"),
    ("seed", 1.5, "a whole number or None"),
    ("seed", "a", "a whole number or None"),
    ("top_k", 1.5, "a whole number"),
    ("top_k", None, "a whole number"),
    ("temperature", "hot", "a number"),
    ("temperature", None, "a number"),
    ("repeat_penalty", 1j, "a number"),
    ("timeout", "x", "a number or None"),
]


@for_each("name, value, what", WRONG)
def test_an_option_that_is_no_number_is_named(name: str, value: object, what: str) -> None:
    given: Any = {name: value}
    with pytest.raises(TypeError) as caught:
        split_options(given)
    assert str(caught.value) == f"{name} is {value!r}; it must be {what}"


def test_numbers_of_other_libraries_are_numbers() -> None:
    given: Any = {"max_tokens": np.int64(5), "seed": np.uint8(3), "temperature": np.float32(0.5), "timeout": 1}
    sampling, request = split_options(given)
    assert (request.max_tokens, request.timeout, sampling.seed, sampling.temperature) == (5, 1.0, 3, 0.5)


@for_each(
    "prompt, says",
    (None, "prompt must be a text or a list of messages, not NoneType"),
    (b"hi", "prompt must be a text or a list of messages, not bytes"),
    (5, "prompt must be a text or a list of messages, not int"),
    ({"role": "user", "content": "a"}, "prompt must be a text or a list of messages, not dict"),
    ("hi \ud800", "prompt: holds half of a surrogate pair (U+D800) at character 3"),
    (
        [{"role": "user", "content": "\udfff"}],
        "messages[0].content: holds half of a surrogate pair (U+DFFF) at character 0",
    ),
    ([{"role": 5, "content": "a"}], "messages[0].role: 5 is none of system, developer, user, assistant, tool"),
)
def test_a_prompt_that_is_no_text_is_refused(prompt: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        conversation(prompt)
    assert str(caught.value) == says


def test_a_model_that_is_none_is_refused() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="the model is 5; it must be a Model, the path of one"):
        constrain.generate(wrong, "hi")


CALLS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "needs a model and a prompt, in this order"),
    (("hi",), {}, "needs a model and a prompt, in this order"),
    ((None,), {"messages": []}, "needs a model and a prompt, in this order"),
    (("hi", dict), {}, "given are a text, the class dict"),
    ((dict, "hi"), {}, "given are the class dict, a text"),
    ((None, dict, "hi"), {}, "given are a NoneType, the class dict, a text"),
    ((None, "hi", dict), {}, "given are a NoneType, a text, the class dict"),
]


@for_each("call", [constrain.generate, constrain.complete, constrain.stream])
@for_each("given, named, says", CALLS)
def test_arguments_in_a_wrong_order_are_told_the_right_one(call: Any, given: Any, named: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says) as caught:
        call(*given, **named)
    assert str(caught.value).startswith(f"{call.__name__}(model, prompt, schema=...) ")


def test_a_prompt_in_place_of_the_model_is_told_the_order() -> None:
    with pytest.raises(constrain.ModelError, match="there is no such file; the first argument is the model"):
        constrain.generate("Who wrote Emma?", "hi")


def test_texts_in_place_of_messages_are_told_what_a_message_is() -> None:
    with pytest.raises(TypeError, match="several prompts go to generate_batch"):
        conversation(["hi", "ho"])


@for_each(
    "option, instead",
    ("response_format", "write schema="),
    ("regex", "constrain.Regex"),
    ("stream", "call constrain.stream"),
    ("n_ctx", "constrain.Model"),
    ("max_token", "did you mean max_tokens?"),
)
def test_an_option_of_other_programs_is_told_what_to_write(option: str, instead: str) -> None:
    given: Any = {option: 1}
    with pytest.raises(TypeError, match=re.escape(instead)) as caught:
        split_options(given)
    assert "there are" not in str(caught.value)


@pytest.mark.parametrize("stop", [5, ["a", 5]])
def test_a_stop_that_is_no_text_is_refused(stop: Any) -> None:
    with pytest.raises(TypeError, match=r"stop is .*; it must be a text or a list of texts"):
        split_options({"stop": stop})


def test_a_missing_package_is_told_with_its_extra() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match=r"nowhere is missing; pip install 'constrain-llm\[mcp\]'"),
        needs_extra("mcp"),
    ):
        importlib.import_module("nowhere")


def test_a_keyword_that_seems_misspelt_is_a_warning_in_python() -> None:
    with pytest.warns(SchemaWarning, match="'minLenght' .* did you mean minLength?"):
        constrain.compile({"type": "string", "minLenght": 3}, byte_vocabulary())
    constrain.compile({"type": "string", "note": 3, "x-note": 3}, byte_vocabulary())


@for_each(
    "ask, error, says",
    [
        (
            lambda: ANSWER.name,
            AttributeError,
            "'Completion' object has no attribute 'name'; the members .* are at .value",
        ),
        (lambda: ANSWER["name"], TypeError, "'Completion' object is not subscriptable; the members .* are at .value"),
        (lambda: Finished(ANSWER).text, AttributeError, "no attribute 'text'; the answer is at .completion"),
        (lambda: Stream(event for event in ()).value, AttributeError, "the last one has the answer: .completion.value"),
        (lambda: constrain.compile(int), TypeError, r"compile\(schema, vocab\) needs the vocabulary .* pass a Model"),
    ],
)
def test_what_has_the_answer_is_told(ask: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ask()


@for_each("prompt", ["", " \n", [{"role": "user", "content": ""}]])
def test_an_empty_prompt_is_a_warning(prompt: Any) -> None:
    with pytest.warns(UserWarning, match="the prompt is empty, so that the model makes up its answer; pass a question"):
        conversation(prompt)


def test_a_value_in_place_of_a_type_gets_one_sentence() -> None:
    with pytest.raises(constrain.SchemaError, match="no JSON Schema can be made of 5; pass the class") as caught:
        constrain.compile(5, byte_vocabulary())
    assert "\n" not in str(caught.value)
