"""The events of streamed messages: their orders, and that they add up to the message that is not streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from constrain import Completion, TextDelta
from constrain.chat.answers.choices import FunctionCalls, Reasoning
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import ToolFormat
from constrain.chat.reading.events import StreamEvent
from constrain.chat.reading.reply import Refusal, ReplyProgress
from constrain.chat.tools.calls import FunctionCall
from constrain.events import ArgumentsDelta, CallEnded, CallStarted, ReasoningDelta, RefusalDelta
from constrain.generation.completion import Finished
from constrain.language.result import result_type
from constrain.results import Timings, Usage
from constrain.server.http.account import Account, current
from constrain.server.http.errors import ApiError, too_busy
from constrain.server.messages.response import Heading
from constrain.server.messages.stream import MessageWriter
from constrain.tools import FunctionTool, Reply, tool_from_json
from tests.support.chat.forms import FORMS
from tests.support.chat.walks import walked
from tests.support.server.messages import Event, events_of, joined, order_of

_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = tool_from_json({"type": "function", "name": "weather", "parameters": _PARAMETERS})

PROMPT, CACHED, WRITTEN = 20, 5, 7


@dataclass(frozen=True)
class Answer:
    """``order``: the recorded order of its events between the start and the end of the message."""

    events: tuple[StreamEvent, ...]
    completion: Completion
    order: str
    heading: Heading = Heading("small", is_text=True)  # noqa: RUF009 - all may share one id


def completed(value: Any, text: str = "", **members: Any) -> Completion:
    found: dict[str, Any] = {
        "value": value,
        "text": text,
        "tokens": tuple(range(WRITTEN)),
        "usage": Usage(PROMPT, CACHED, WRITTEN),
        "timings": Timings(0, 0, 0, 0),
        "finish_reason": "stop",
        "report": None,
        **members,
    }
    return Completion(**found)


def call(identifier: str, city: str) -> FunctionCall:
    assert isinstance(WEATHER, FunctionTool)
    return FunctionCall(identifier, WEATHER, WEATHER.read(f'{{"city": "{city}"}}'))


def written(number: int, made: FunctionCall) -> tuple[StreamEvent, ...]:
    half = len(made.text) // 2
    pieces = (ArgumentsDelta(number, made.text[:half]), ArgumentsDelta(number, made.text[half:]))
    return (CallStarted(number, made.id, made.name), *pieces, CallEnded(number))


OSLO, ROME = call("call_1", "Oslo"), call("a1b2c3d4e", "Rome")
THOUGHTS = (ReasoningDelta("Well, "), ReasoningDelta("well."))
HELLO = (TextDelta("Hé"), TextDelta("llo ☃"))
ONE_TEXT = "start 0 text, text_delta 0, stop 0"
ONE_CALL = "start 0 tool_use, input_json_delta 0, stop 0"
THINKING = "start 0 thinking, thinking_delta 0, signature_delta 0, stop 0"
BY_TOOLS = Heading("small", is_text=True)

ANSWERS = {
    "text": Answer(HELLO, completed("Héllo ☃", "Héllo ☃"), f"{ONE_TEXT}, message_delta end_turn"),
    "nothing": Answer((), completed(""), "message_delta end_turn"),
    "a call": Answer(written(0, OSLO), completed(Reply((OSLO,))), f"{ONE_CALL}, message_delta tool_use"),
    "two calls": Answer(
        (*written(0, OSLO), *written(1, ROME)),
        completed(Reply((OSLO, ROME))),
        f"{ONE_CALL}, start 1 tool_use, input_json_delta 1, stop 1, message_delta tool_use",
    ),
    "calls at the limit": Answer(
        written(0, OSLO), completed(Reply((OSLO,)), finish_reason="length"), f"{ONE_CALL}, message_delta tool_use"
    ),
    "thinking and text": Answer(
        (*THOUGHTS, TextDelta("Yes.")),
        completed("Yes.", "Yes.", reasoning="Well, well."),
        f"{THINKING}, start 1 text, text_delta 1, stop 1, message_delta end_turn",
    ),
    "thinking that is not shown": Answer(
        (*THOUGHTS, TextDelta("Yes.")),
        completed("Yes.", "Yes.", reasoning="Well, well."),
        "start 0 thinking, signature_delta 0, stop 0, start 1 text, text_delta 1, stop 1, message_delta end_turn",
        Heading("small", is_text=True, shows_thinking=False),
    ),
    "thinking, text and calls": Answer(
        (*THOUGHTS, TextDelta("Let me see."), *written(0, OSLO), *written(1, ROME)),
        completed(
            Reply((OSLO, ROME), "Let me see.", "Well, well.", None, "Let me see."),
            "Let me see.",
            reasoning="Well, well.",
        ),
        f"{THINKING}, start 1 text, text_delta 1, stop 1, start 2 tool_use, input_json_delta 2, stop 2, "
        "start 3 tool_use, input_json_delta 3, stop 3, message_delta tool_use",
        BY_TOOLS,
    ),
    "a draft and a value": Answer(
        (*THOUGHTS, TextDelta("3")),
        completed(3, "3", draft="Well, well.", finish_reason="length"),
        f"{THINKING}, start 1 text, text_delta 1, stop 1, message_delta end_turn",
        Heading("small", is_text=False),
    ),
    "max_tokens": Answer(
        HELLO, completed("Héllo ☃", "Héllo ☃", finish_reason="length"), f"{ONE_TEXT}, message_delta max_tokens"
    ),
    "a full context": Answer(
        HELLO,
        completed("Héllo ☃", "Héllo ☃", finish_reason="length", ended_by="context"),
        f"{ONE_TEXT}, message_delta model_context_window_exceeded",
    ),
    "no more time": Answer(
        HELLO,
        completed("Héllo ☃", "Héllo ☃", finish_reason="timeout"),
        f"{ONE_TEXT}, message_delta max_tokens",
        BY_TOOLS,
    ),
    "thinking that is cut": Answer(
        THOUGHTS,
        completed("", reasoning="Well, well.", finish_reason="length"),
        f"{THINKING}, message_delta max_tokens",
    ),
    "a stop sequence": Answer(
        HELLO, completed("Héllo ☃", "Héllo ☃", stop="END"), f"{ONE_TEXT}, message_delta stop_sequence"
    ),
    "a refusal": Answer(
        (RefusalDelta("I will "), RefusalDelta("not.")),
        completed(Refusal("I will not.")),
        f"{ONE_TEXT}, message_delta refusal",
    ),
    "a refusal beside tools": Answer(
        (RefusalDelta("No."),), completed(Reply(refusal="No.")), f"{ONE_TEXT}, message_delta refusal"
    ),
}


@pytest.fixture(autouse=True)
def account() -> Iterator[Account]:
    """The record of a request whose prompt has been counted."""
    made = Account(0.0, asked_tokens=PROMPT)
    token = current.set(made)
    yield made
    current.reset(token)


def events_for(answer: Answer) -> list[Event]:
    writer = MessageWriter(answer.heading)
    texts = [*writer.begin(1)]
    for event in answer.events:
        texts += writer.write(0, event)
    texts += [*writer.write(0, Finished(answer.completion)), *writer.end()]
    return events_of("".join(texts))


@pytest.mark.parametrize("name", ANSWERS)
def test_events_come_in_the_recorded_order_and_add_up_to_the_message(name: str) -> None:
    answer, events = ANSWERS[name], events_for(ANSWERS[name])
    assert ", ".join(order_of(events)) == f"message_start, {answer.order}, message_stop"
    assert joined(events) == MessageWriter(answer.heading).response([answer.completion])


@pytest.mark.parametrize("name", ANSWERS)
def test_blocks_never_overlap_and_are_numbered_from_0(name: str) -> None:
    number, is_open = 0, False
    for event in events_for(ANSWERS[name]):
        if "index" not in event:
            assert not is_open
            continue
        assert event["index"] == number
        assert is_open != (event["type"] == "content_block_start")
        is_open = event["type"] != "content_block_stop"
        number += not is_open


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_streams_and_whole_answers_keep_the_order_of_writing_in_every_form(form: ToolFormat) -> None:
    assert isinstance(WEATHER, FunctionTool)
    reasoning = Reasoning.NONE if form.thinking is None else Reasoning.OPTIONAL
    language = AnswerLanguage(form, tools=(FunctionCalls(WEATHER.name, WEATHER.schema_text),), reasoning=reasoning)
    for text in walked(language, 3):
        progress = ReplyProgress(language, {WEATHER.name: WEATHER}, result_type(None), (), [1], wants_reply=True)
        progress.feed(text)
        events = (*progress.take(), *progress.finish())
        found = progress.outcome()
        completion = completed(found.value, found.text, reasoning=found.reasoning)
        answer = Answer(events, completion, "", BY_TOOLS)
        assert joined(events_for(answer)) == MessageWriter(BY_TOOLS).response([completion]), text


def test_a_stream_begins_with_an_empty_message_and_all_tokens_of_the_prompt() -> None:
    start = events_for(ANSWERS["text"])[0]["message"]
    assert (start["content"], start["stop_reason"], start["stop_sequence"]) == ([], None, None)
    assert start["usage"]["input_tokens"] == PROMPT
    assert start["id"].startswith("msg_")


def test_a_stream_ends_with_the_tokens_that_were_read_anew_those_of_the_cache_and_those_written() -> None:
    usage = events_for(ANSWERS["text"])[-2]["usage"]
    assert usage == {
        "input_tokens": PROMPT - CACHED,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": CACHED,
        "output_tokens": WRITTEN,
    }


def test_the_stop_sequence_is_named() -> None:
    delta = events_for(ANSWERS["a stop sequence"])[-2]["delta"]
    assert delta == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_ids_of_calls_are_those_of_the_model_or_begin_as_anthropics_do() -> None:
    starts = [event for event in events_for(ANSWERS["two calls"]) if event["type"] == "content_block_start"]
    assert [event["content_block"]["id"] for event in starts] == ["toolu_1", "a1b2c3d4e"]
    assert [event["content_block"]["input"] for event in starts] == [{}, {}]


def test_equal_thoughts_have_equal_signatures_and_others_have_not() -> None:
    def signature(*thoughts: str) -> str:
        completion = completed("Yes.", "Yes.", reasoning="".join(thoughts))
        answer = Answer((*map(ReasoningDelta, thoughts), TextDelta("Yes.")), completion, "")
        found = joined(events_for(answer))["content"][0]["signature"]
        assert isinstance(found, str)
        return found

    assert signature("Well, ", "well.") == signature("Well, well.") != signature("Well.")


def test_an_error_within_a_stream_is_an_event(account: Account) -> None:
    [event] = events_of("".join(MessageWriter(BY_TOOLS).fail(too_busy("why", 1))))
    assert event == {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "The server is busy: why. Please try again later."},
        "request_id": account.id,
    }


def test_a_number_that_is_too_large_for_json_is_an_error_and_no_failure_of_the_server() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    tool = tool_from_json({"type": "function", "name": "f", "parameters": schema})
    assert isinstance(tool, FunctionTool)
    made = FunctionCall("call_1", tool, tool.read('{"a": 1e400}'))
    with pytest.raises(ApiError, match="a number is too large"):
        MessageWriter(BY_TOOLS).response([completed(Reply((made,)))])
