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


VOCABULARY = byte_vocabulary()
CONSTRAINT = constrain.compile({"type": "boolean"}, VOCABULARY, cache=False)
LOGITS = np.zeros(VOCABULARY.n_vocab, np.float32)
CANDIDATES = np.zeros(VOCABULARY.n_vocab, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])

OBJECTS: dict[str, Any] = {
    "Constraint": CONSTRAINT,
    "Matcher": CONSTRAINT.matcher(),
    "Vocabulary": VOCABULARY,
    "LogitsProcessor": CONSTRAINT.logits_processor(),
}

NOT_INTEGERS: list[Any] = [None, "1", 1.0, [1], b"1", object()]
LIMITS: list[Any] = NOT_INTEGERS[1:]  # None is no limit

CASES: dict[tuple[str, str], list[tuple[dict[str, list[Any]], str]]] = {
    ("Constraint", "accepts"): [({"text": [None, 1, bytearray(b"true"), ["true"]]}, "text must be bytes or str")],
    ("Constraint", "captures"): [({"text": [None, 1, bytearray(b"true"), ["true"]]}, "text must be bytes or str")],
    ("Constraint", "allocate_bitmask"): [({"batch_size": [*NOT_INTEGERS, (1, 2)]}, "batch_size must be an integer")],
    ("Constraint", "export"): [({"to": [None, 1, b"gbnf", ["gbnf"]]}, "to must be a str")],
    ("Constraint", "matcher"): [
        ({name: LIMITS}, f"{name} must be an integer")
        for name in ("max_tokens", "max_string_tokens", "max_number_tokens", "max_reasoning_tokens")
    ],
    ("Constraint", "precompute"): [
        ({name: NOT_INTEGERS}, f"{name} must be an integer") for name in ("max_masks", "max_bytes")
    ],
    ("Matcher", "accept"): [({"token_id": NOT_INTEGERS}, "a token id must be an integer")],
    ("Matcher", "accept_many"): [
        ({"token_ids": [None, 1, 1.0, object()]}, "token_ids must be a list of token ids"),
        ({"token_ids": [[each] for each in NOT_INTEGERS]}, "a token id must be an integer"),
        ({"token_ids": ["true"]}, "a token id must be an integer"),
    ],
    ("Matcher", "diagnose"): [({"token_id": NOT_INTEGERS}, "a token id must be an integer")],
    ("Matcher", "explain"): [({"token_id": NOT_INTEGERS}, "a token id must be an integer")],
    ("Matcher", "fill_bitmask"): [
        ({"bitmask": [None, 1, "1", [0] * 9, object()]}, "bitmask must be a contiguous, writable array")
    ],
    ("Matcher", "fill_candidates"): [
        ({"logits": [None, 1, [0.0]], "candidates": [CANDIDATES]}, "logits must be a contiguous array"),
        ({"logits": [LOGITS], "candidates": [None, 1, [], b""]}, "candidates must be a contiguous, writable array"),
    ],
    ("Matcher", "forced_after"): [({"before": [None, 1, "true", ["a"]]}, "before must be bytes")],
    ("Matcher", "rollback"): [({"count": NOT_INTEGERS}, "count must be an integer")],
    ("Vocabulary", "marked_bytes"): [({"token_id": NOT_INTEGERS}, "token_id must be an integer")],
    ("Vocabulary", "token_bytes"): [({"token_id": NOT_INTEGERS}, "token_id must be an integer")],
    ("LogitsProcessor", "__call__"): [
        ({"input_ids": [[1]], "scores": [[1] * 300, [True] * 300]}, "scores are [a-z0-9]+; they must be floats")
    ],
}

WITHOUT_ARGUMENTS = {
    "Constraint": {"logits_processor"},
    "Matcher": {
        *("completion_tokens", "compute_mask", "forced_bytes", "forced_tokens", "expected", "expected_terminals"),
        *("fork", "reset", "shortest_completion"),
    },
    "LogitsProcessor": set(),
}


READINGS = constrain.compile(constrain.Lark("start: <[97]>"), VOCABULARY, cache=False).matcher()
"""A matcher for tokens by id."""


@for_each("place", CASES)
@for_each("matcher", [OBJECTS["Matcher"], READINGS])
def test_a_wrong_type_is_told_with_its_argument(place: tuple[str, str], matcher: constrain.Matcher) -> None:
    method = getattr({**OBJECTS, "Matcher": matcher}[place[0]], place[1])
    for arguments, says in CASES[place]:
        name, values = max(arguments.items(), key=lambda each: len(each[1]))
        for value in values:
            given = {**{other: others[0] for other, others in arguments.items()}, name: value}
            with pytest.raises(TypeError, match=says) as caught:
                method(**given)
            assert "incompatible" not in str(caught.value), value


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_all_public_methods_are_in_the_table(name: str) -> None:
    kind = type(OBJECTS[name])
    methods = {each for each in dir(kind) if each[0] != "_" and callable(getattr(kind, each))}
    listed = {method for owner, method in CASES if owner == name and method[0] != "_"}
    assert methods == listed | WITHOUT_ARGUMENTS[name]


def test_numbers_of_any_size_and_of_numpy_are_integers() -> None:
    assert CONSTRAINT.matcher(2**70).min_tokens_left == CONSTRAINT.matcher(np.int64(9)).min_tokens_left
    assert CONSTRAINT.precompute(max_masks=2**70, max_bytes=2**70).masks > 0
    assert CONSTRAINT.allocate_bitmask(np.int64(2)).shape == (2, (VOCABULARY.n_vocab + 31) // 32)
    matcher = CONSTRAINT.matcher()
    assert matcher.accept_many(np.array(list(b"true"), np.int32)) == 4
    with pytest.raises(ValueError, match="cannot roll back"):
        matcher.rollback(2**70)
    matcher.rollback(np.int8(4))
    assert matcher.n_accepted == 0
    assert matcher.accept(np.uint8(ord("t")))


@pytest.mark.parametrize("tokens", [[1.5], ["a"], [None]])
def test_tokens_of_a_generation_are_integers(tokens: list[Any]) -> None:
    processor = CONSTRAINT.logits_processor()
    processor([1], LOGITS)
    with pytest.raises(TypeError, match="a token of input_ids must be an integer"):
        processor([1, *tokens], LOGITS)
