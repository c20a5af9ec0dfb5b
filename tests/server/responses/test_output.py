"""Finished answers as responses: OpenAI's own types judge them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter

from constrain.server.responses.output import (
    count_reasoning,
    failed_response,
    finished_response,
    response_json,
    unfinished_response,
)
from tests.support import each_row, for_each
from tests.support.server.response_answers import ANSWERS, TOOLS, Answer, completion

PREFIXES = {"message": "msg_", "function_call": "fc_", "custom_tool_call": "ctc_", "reasoning": "rs_"}
REQUIRED = """
    id object created_at error incomplete_details instructions metadata model output parallel_tool_calls temperature
    tool_choice tools top_p status text usage previous_response_id reasoning truncation store max_output_tokens
"""


def _finished(answer: Answer, reasoning_tokens: int = 0) -> dict[str, Any]:
    response = finished_response(
        answer.head, answer.completion, completed_at=1_763_800_002.0, reasoning_tokens=reasoning_tokens
    )
    return response_json(response)


def _kinds(document: dict[str, Any]) -> list[str]:
    return [item["type"] for item in document["output"]]


@for_each("name", ANSWERS)
def test_every_response_is_one_of_openais_type(name: str) -> None:
    document = _finished(ANSWERS[name])
    again = TypeAdapter(Response).validate_python(document, strict=True)
    assert response_json(again) == document
    items = document["output"]
    assert all(item["id"].startswith(PREFIXES[item["type"]]) for item in items)
    assert len({item["id"] for item in items}) == len(items)
    assert document.keys() >= set(REQUIRED.split())
    assert type(document["created_at"]) is int
    assert document.get("completed_at") == (1_763_800_002 if document["status"] == "completed" else None)


def test_text_is_a_message_with_one_part() -> None:
    (item,) = _finished(ANSWERS["text"])["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [{"type": "output_text", "text": "Héllo ☃", "annotations": [], "logprobs": []}]


def test_an_answer_of_no_text_is_an_empty_message() -> None:
    (item,) = _finished(ANSWERS["nothing"])["output"]
    assert item["content"][0]["text"] == ""


def test_items_stand_in_the_order_reasoning_message_calls() -> None:
    kinds = ["reasoning", "message", "function_call", "function_call", "custom_tool_call"]
    assert _kinds(_finished(ANSWERS["everything"])) == kinds


def test_a_function_call_has_its_arguments_as_the_model_wrote_them() -> None:
    call = _finished(ANSWERS["calls"])["output"][0]
    assert {**call, "id": ""} == {
        "id": "",
        "type": "function_call",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Oslo"}',
        "status": "completed",
    }


def test_reasoning_is_content_and_no_summary() -> None:
    item = _finished(ANSWERS["reasoning and text"])["output"][0]
    assert (item["summary"], item["content"]) == ([], [{"type": "reasoning_text", "text": "Well, well."}])


@pytest.mark.parametrize("name", ["refusal", "refusal in a reply"])
def test_a_refusal_is_a_part_of_a_message(name: str) -> None:
    (item,) = _finished(ANSWERS[name])["output"]
    assert item["content"][0]["type"] == "refusal"


@pytest.mark.parametrize("name", ["cut text", "text beside tools"])
def test_text_cut_at_the_limit_is_incomplete(name: str) -> None:
    document = _finished(ANSWERS[name])
    assert document["status"] == "incomplete"
    assert document["incomplete_details"] == {"reason": "max_output_tokens"}
    assert document["output"][-1]["status"] == "incomplete"


def test_text_out_of_time_is_incomplete_for_another_reason() -> None:
    document = _finished(ANSWERS["text out of time"])
    assert (document["status"], document["incomplete_details"]) == ("incomplete", {"reason": None})


def test_cut_reasoning_is_incomplete_and_has_no_message() -> None:
    document = _finished(ANSWERS["cut reasoning"])
    assert [(item["type"], item["status"]) for item in document["output"]] == [("reasoning", "incomplete")]


@pytest.mark.parametrize("name", ["JSON at its limit", "calls at their limit"])
def test_what_a_schema_brought_to_its_end_is_complete(name: str) -> None:
    document = _finished(ANSWERS[name])
    assert (document["status"], document["incomplete_details"]) == ("completed", None)


def test_usage_has_all_its_details() -> None:
    assert _finished(ANSWERS["reasoning and text"], reasoning_tokens=3)["usage"] == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 27,
    }


@each_row(
    "pieces, count",
    (["<think>", "Well, ", "well.", "</think>", "Yes", ".", ""], 3),
    (["Well", ", ", "we", "ll", ".", "</think>", "Yes."], 5),
    (["Well, well.</think>", "Yes", "."], 1),
)
def test_reasoning_is_counted_in_tokens(pieces: list[str], count: int) -> None:
    answer = replace(ANSWERS["reasoning and text"].completion, tokens=tuple(range(len(pieces))))
    assert count_reasoning(answer, lambda token: pieces[token].encode()) == count


def test_reasoning_that_ends_amid_a_character_is_counted() -> None:
    pieces = [b"Well \xe2", b"\x98"]
    answer = completion("", "", reasoning="Well \ufffd", finish_reason="length")
    assert count_reasoning(replace(answer, tokens=(0, 1)), lambda token: pieces[token]) == 1


def test_no_reasoning_has_no_tokens() -> None:
    assert count_reasoning(ANSWERS["text"].completion, lambda _: b"Hello") == 0


def test_the_request_is_repeated() -> None:
    answer = ANSWERS["calls"]
    body = {**answer.body, "instructions": "Be brief.", "temperature": 0.5, "metadata": {"a": "b"}}
    document = _finished(Answer(body, answer.events, answer.completion))
    assert (document["instructions"], document["temperature"], document["metadata"]) == ("Be brief.", 0.5, {"a": "b"})
    assert document["tools"] == TOOLS


def test_an_unfinished_response_has_no_output_and_no_usage() -> None:
    document = response_json(unfinished_response(ANSWERS["text"].head))
    assert (document["status"], document["output"], document["usage"]) == ("in_progress", [], None)


def test_a_failed_response_says_why() -> None:
    document = response_json(failed_response(ANSWERS["text"].head, "The model is gone.", []))
    assert (document["status"], document["error"]["message"]) == ("failed", "The model is gone.")
