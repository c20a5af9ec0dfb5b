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


@pytest.mark.parametrize(
    ("read", "fields"),
    [
        (completion, {"stop": ["a"] * (MAX_STOP_SEQUENCES + 1)}),
        (infill, {"input_extra": [{"text": "a"}] * (MAX_EXTRA + 1)}),
    ],
)
def test_long_lists_are_refused(read: Any, fields: dict[str, Any]) -> None:
    error = refusal(read, fields)
    assert error.param in fields
    assert "too long" in error.message


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
