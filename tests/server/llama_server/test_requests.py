"""Which requests of llama-server's clients are refused, and what the others become, before any model is asked."""

from __future__ import annotations

from typing import Any

import pytest

from constrain.server.http.errors import ApiError
from constrain.server.llama_server.request import (
    MAX_EXTRA,
    ContinuationRequest,
    Gap,
    read_completion,
    read_detokenize,
    read_infill,
    read_tokenize,
)
from constrain.server.requests.limits import MAX_STOP_SEQUENCES
from constrain.server.settings import Settings


def completion(fields: dict[str, Any]) -> ContinuationRequest:
    return read_completion({"prompt": "One, two,", **fields}, Settings())


def infill(fields: dict[str, Any]) -> ContinuationRequest:
    return read_infill({"input_prefix": "def add(", "input_suffix": "return a + b", **fields}, Settings())


def refusal(read: Any, fields: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read(fields)
    assert caught.value.status == 400
    return caught.value


BOTH_REFUSE = [
    ({"model": 3}, "model", "a string"),
    ({"stream": "yes"}, "stream", "a boolean"),
    ({"n_predict": "all"}, "n_predict", "an integer"),
    ({"max_tokens": 1.5}, "max_tokens", "an integer"),
    ({"temperature": -1}, "temperature", ">= 0"),
    ({"stop": [""]}, "stop", "empty"),
    ({"stop": ["a"] * (MAX_STOP_SEQUENCES + 1)}, "stop", "too long"),
    ({"grammar": 'root ::= "a"', "json_schema": {}}, "grammar", "cannot be used together"),
    ({"json_schema": 3}, "json_schema", "an object"),
    ({"n_probs": 5}, "n_probs", "logprobs"),
    ({"lora": [{"id": 0, "scale": 1}]}, "lora", "weights"),
    ({"image_data": [{"data": "aGk=", "id": 1}]}, "image_data", "text only"),
    ({"ignore_eos": True}, "ignore_eos", "ends"),
    ({"n": 2}, "n", "/v1/completions"),
    ({"response_format": {"type": "json_object"}}, "response_format", "json_schema"),
    ({"return_tokens": 1}, "return_tokens", "a boolean"),
]
COMPLETION_REFUSES = [
    ({"prompt": None}, "prompt", "Missing"),
    ({"prompt": 3}, "prompt", "a string or an array"),
    ({"prompt": ["One,", "Two,"]}, "prompt", "several prompts"),
    ({"prompt": ["One,", -1]}, "prompt[1]", ">= 0"),
    ({"prompt": ["One,", True]}, "prompt[1]", "an integer"),
    ({"prompt": [None]}, "prompt[0]", "a string or an integer"),
    ({"prompt": [1.5]}, "prompt[0]", "an integer"),
    ({"messages": [{"role": "user", "content": "Hi"}]}, "messages", "/v1/chat/completions"),
]
INFILL_REFUSES = [
    ({"input_prefix": None}, "input_prefix", "a string"),
    ({"input_suffix": 3}, "input_suffix", "a string"),
    ({"input_extra": {}}, "input_extra", "an array"),
    ({"input_extra": [{"filename": "a.py"}]}, "input_extra[0].text", "Missing"),
    ({"input_extra": [{"text": "a"}] * (MAX_EXTRA + 1)}, "input_extra", "too long"),
]


@pytest.mark.parametrize("read", [completion, infill])
@pytest.mark.parametrize(("fields", "param", "says"), BOTH_REFUSE)
def test_what_cannot_be_had_is_refused_with_its_place(read: Any, fields: dict[str, Any], param: str, says: str) -> None:
    error = refusal(read, fields)
    assert error.param == param
    assert says in error.message


@pytest.mark.parametrize(
    ("read", "fields", "param", "says"),
    [*((completion, *case) for case in COMPLETION_REFUSES), *((infill, *case) for case in INFILL_REFUSES)],
)
def test_what_one_of_them_cannot_do_is_refused(read: Any, fields: dict[str, Any], param: str, says: str) -> None:
    error = refusal(read, fields)
    assert error.param == param
    assert says in error.message


@pytest.mark.parametrize("read", [completion, infill])
def test_fields_that_change_no_answer_are_accepted(read: Any) -> None:
    fields = {"id_slot": 3, "t_max_predict_ms": 500, "n_keep": 8, "n_probs": 0, "lora": []}
    assert read({**fields, "grammar": "", "stop": [], "seed": -1, "n_predict": -1, "something_new": 3}).options == {
        "stop": []
    }


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"n_predict": 5}, {"max_tokens": 5}),
        ({"n_predict": 5, "max_tokens": 3}, {"max_tokens": 3}),
        ({"n_predict": 0}, {"max_tokens": 0}),
        ({"n_predict": -2, "max_tokens": None}, {}),
        ({"seed": 2**32 - 1}, {}),
        ({"cache_prompt": True, "temperature": 3, "top_k": 5}, {"cache_prompt": True, "temperature": 3, "top_k": 5}),
    ],
)
def test_options_become_those_of_the_library(fields: dict[str, Any], options: dict[str, Any]) -> None:
    assert completion(fields).options == options


@pytest.mark.parametrize(
    ("prompt", "pieces"), [("a", ("a",)), (["a"], ("a",)), ([1, 2], (1, 2)), ([1, "a", 2], (1, "a", 2)), ([], ())]
)
def test_a_prompt_is_a_text_or_tokens_or_both(prompt: Any, pieces: tuple[Any, ...]) -> None:
    assert completion({"prompt": prompt}).pieces == pieces


def test_a_text_of_vllm_begins_with_special_tokens_unless_it_must_not() -> None:
    bodies = ({"content": "a"}, {"content": "a", "add_special": True}, {"prompt": "a"})
    found = [read_tokenize(body).adds_special for body in (*bodies, {"prompt": "a", "add_special_tokens": False})]
    assert found == [False, True, True, False]


def test_a_gap_stands_between_two_texts_and_behind_other_files() -> None:
    extra = [{"filename": "a.py", "text": "A = 1"}, {"text": "B = 2"}]
    found = infill({"prompt": "a, b", "input_extra": extra})
    files = (Gap.FILE, "a.py\nA = 1", Gap.FILE, "\nB = 2")
    assert found.pieces == (*files, Gap.PREFIX, "def add(a, b", Gap.SUFFIX, "return a + b", Gap.MIDDLE)
    assert (found.names_tokens, completion({}).names_tokens) == (False, True)


@pytest.mark.parametrize(
    ("read", "body", "param"),
    [
        (read_tokenize, {}, "content"),
        (read_tokenize, {"content": ["a"]}, "content"),
        (read_tokenize, {"prompt": 3}, "prompt"),
        (read_tokenize, {"messages": []}, "messages"),
        (read_tokenize, {"content": "a", "add_special": "no"}, "add_special"),
        (read_detokenize, {}, "tokens"),
        (read_detokenize, {"tokens": "a"}, "tokens"),
        (read_detokenize, {"tokens": [1, "a"]}, "tokens[1]"),
        (read_detokenize, {"tokens": [-1]}, "tokens[0]"),
    ],
)
def test_what_cannot_be_converted_is_refused(read: Any, body: dict[str, Any], param: str) -> None:
    assert refusal(read, body).param == param
