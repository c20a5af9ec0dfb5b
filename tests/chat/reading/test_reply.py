"""Replies: from what a model writes, piece by piece, to events and a ``Reply``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from string import Template
from typing import Any

import pytest

from constrain import TextDelta, tool
from constrain.chat.answers.choices import Calls, CustomCalls, FunctionCalls, Reasoning, Value
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.families.format import ToolFormat
from constrain.chat.families.forms import FAMILIES, GENERIC
from constrain.chat.prompt.messages import Call, check_messages
from constrain.chat.prompt.shaping import write_calls
from constrain.chat.reading.events import StreamEvent
from constrain.chat.reading.incoming import json_text
from constrain.chat.reading.reply import MAX_SAME_CALLS, ReplyProgress
from constrain.chat.tools.calls import CustomCall, FunctionCall
from constrain.events import ArgumentsDelta, CallEnded, CallStarted, ReasoningDelta, RefusalDelta
from constrain.language.result import result_type
from constrain.language.special import mark
from constrain.results import Refusal
from constrain.tools import CustomTool, FunctionTool, Reply
from tests.support import for_each
from tests.support.chat.forms import ELEMENTS, FENCES, LIST, OBJECT, PYTHON, TAGS


def get_weather(city: str, days: int = 1) -> str:
    return f"{city} {days}"


def get(get: str) -> str:
    return get


WEATHER, NOTE = tool(get_weather), CustomTool("note", function=str.upper)
NUMBER = {"type": "integer"}


def progress(
    form: ToolFormat = TAGS,
    *,
    schema: Any = None,
    stops: Sequence[str] = (),
    prompt: Sequence[int] = (1, 2),
    number: int = 0,
    wants_reply: bool = True,
    **options: Any,
) -> ReplyProgress:
    tools = (FunctionCalls("get_weather", json.dumps(WEATHER.schema)), CustomCalls("note"))
    content = None if schema is None else Value(json.dumps(schema))
    answer = AnswerLanguage(form, tools=tools, content=content, **options)
    by_name = {"get_weather": WEATHER, "note": NOTE}
    return ReplyProgress(answer, by_name, result_type(schema), stops, prompt, number, wants_reply=wants_reply)


def read(text: str | bytes, reader: ReplyProgress, *, size: int = 1) -> tuple[list[StreamEvent], Any]:
    """The events of a text that comes in pieces of ``size`` bytes, and the value."""
    written = text.encode() if isinstance(text, str) else text
    events: list[StreamEvent] = []
    for start in range(0, len(written), size):
        reader.feed(written[start : start + size])
        events += reader.take()
    events += reader.finish()
    return joined(events), reader.outcome().value


def joined(events: list[StreamEvent]) -> list[StreamEvent]:
    """The same events with deltas of one kind that follow each other put together."""
    result: list[StreamEvent] = []
    for event in events:
        match result[-1] if result else None, event:
            case (TextDelta(before), TextDelta(text)):
                result[-1] = TextDelta(before + text)
            case (ReasoningDelta(before), ReasoningDelta(text)):
                result[-1] = ReasoningDelta(before + text)
            case (RefusalDelta(before), RefusalDelta(text)):
                result[-1] = RefusalDelta(before + text)
            case (ArgumentsDelta(index, before), ArgumentsDelta(_, text)):
                result[-1] = ArgumentsDelta(index, before + text)
            case _:
                result.append(event)
    return result


PARIS = '{"city": "Paris"}'
TWO_CALLS = (
    f'I look.\n<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}}}\n</tool_call>\n'
    '<tool_call>\n{"name": "note", "input": "\\"é\\"\\n"}\n</tool_call>'
)

# Events


@for_each("size", [1, 2, 5, 1000])
def test_events_come_in_order_however_the_text_is_cut(size: int) -> None:
    events, reply = read(TWO_CALLS, progress(), size=size)
    first, second = (call.id for call in reply)
    assert events == [
        TextDelta("I look.\n"),
        CallStarted(0, first, "get_weather"),
        ArgumentsDelta(0, PARIS),
        CallEnded(0),
        CallStarted(1, second, "note"),
        ArgumentsDelta(1, '"é"\n'),
        CallEnded(1),
    ]


def test_events_that_were_taken_are_not_given_again() -> None:
    reader = progress()
    reader.feed(b"Hello")
    assert joined(reader.take()) == [TextDelta("Hello")]
    assert reader.take() == []
    assert reader.finish() == []


def test_text_that_might_have_become_a_stop_text_comes_before_the_call() -> None:
    text = f'So STO<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}}}\n</tool_call>'
    events, reply = read(text, progress(stops=["STOP"]))
    assert events[0] == TextDelta("So STO")
    assert isinstance(events[1], CallStarted)
    assert reply.content == "So STO"


# The last call


def stopped_after(text: str, reader: ReplyProgress) -> str:
    """What was fed of a text, byte by byte, when the reader wanted the answer to end; all of it if it did not."""
    data = text.encode()
    for end in range(1, len(data) + 1):
        if reader.feed(data[end - 1 : end]):
            return data[:end].decode()
    return text


def weather_calls(form: ToolFormat, cities: Sequence[str]) -> list[str]:
    """Calls with what stands before each of them."""
    template = Template(form.call)
    calls = [
        template.substitute(name="get_weather", arguments=json.dumps({"city": city}), id=f"id{number}")
        for number, city in enumerate(cities)
    ]
    return [f"{form.between if number else form.opening}{call}" for number, call in enumerate(calls)]


@pytest.mark.parametrize("form", [TAGS, LIST], ids=lambda form: form.name)
def test_the_last_of_as_many_same_calls_as_there_may_be_ends_the_answer(form: ToolFormat) -> None:
    calls = weather_calls(form, ["Rome", *["Paris"] * (MAX_SAME_CALLS + 1)])
    stopped = stopped_after("".join(calls), progress(form))
    assert len("".join(calls[:MAX_SAME_CALLS])) < len(stopped) <= len("".join(calls[: MAX_SAME_CALLS + 1]))


def test_calls_that_differ_do_not_end_the_answer() -> None:
    text = "".join(weather_calls(TAGS, ["Paris", "Rome"] * (MAX_SAME_CALLS - 1)))
    reader = progress()
    assert stopped_after(text, reader) == text
    assert len(read("", reader)[1]) == 2 * (MAX_SAME_CALLS - 1)


def test_an_answer_does_not_end_where_the_next_call_has_begun() -> None:
    calls = weather_calls(LIST, ["Paris"] * (MAX_SAME_CALLS + 1))
    first, last = "".join(calls[:MAX_SAME_CALLS]), calls[MAX_SAME_CALLS]
    reader = progress(LIST)
    assert not reader.feed((first + LIST.between).encode())
    assert reader.feed(last.removeprefix(LIST.between).encode())


# The name of a call

FORMS = [TAGS, OBJECT, LIST, FENCES, ELEMENTS, PYTHON, GENERIC, *FAMILIES]


@for_each("form, before", [(form, text) for form in FORMS for text in ("", "Well, ")])
def test_the_tool_of_a_call_is_known_from_the_end_of_its_name_to_the_end_of_its_arguments(
    form: ToolFormat, before: str
) -> None:
    if before and (not form.text_before or form.content is not None):
        return
    tools = {"get_weather": WEATHER, "get": tool(get)}
    language = AnswerLanguage(
        form,
        tools=tuple(FunctionCalls(name, json.dumps(each.schema)) for name, each in tools.items()),
        calls=Calls.AUTO if before else Calls.REQUIRED,
    )
    named = [("get_weather", {"city": "get"}), ("get", {"get": "get_weather"})]
    calls = [Call("abc", name, json.dumps(arguments), arguments) for name, arguments in named]
    for written in [calls] if form.parallel else [calls[:1], calls[1:]]:
        reader = ReplyProgress(language, tools, result_type(None), (), (1, 2), wants_reply=True)
        text, found = before + write_calls(written, form), []
        for end in range(1, len(text) + 1):
            reader.feed(text[end - 1 : end].encode())
            if (called := reader.called) is not None and (not found or found[-1][0] != called.tool.name):
                found.append((called.tool.name, text[:end]))
        assert reader.called is None, text
        assert [name for name, _ in found] == [call.name for call in written]
        for name, begun in found:
            assert begun.endswith(name) if name == "get_weather" else begun[:-1].endswith(name), begun


# Stop texts


def test_free_text_ends_before_a_stop_text() -> None:
    reader = progress(stops=["END"])
    assert not reader.feed(b"One EN")
    assert reader.feed(b"D two")
    events, reply = read("", reader)
    assert events == [TextDelta("One ")]
    assert reply == Reply(content="One ", text="One ")


def test_stop_texts_in_arguments_stop_nothing() -> None:
    reader = progress(stops=["Paris"])
    assert not reader.feed(TWO_CALLS.encode())
    assert len(read("", reader)[1]) == 2


def test_a_value_keeps_its_stop_text() -> None:
    reader = progress(schema=NUMBER, stops=["2"])
    assert reader.feed(b"12")
    assert read("3", reader)[1].content == 123


# Ids


def ids(text: str, reader: ReplyProgress) -> list[str]:
    return [call.id for call in read(text, reader)[1]]


def test_ids_are_the_same_for_the_same_prompt_and_others_for_another() -> None:
    first, again, later = (ids(TWO_CALLS, progress(prompt=prompt)) for prompt in ((1, 2), (1, 2), (12,)))
    assert first == again
    assert len({*first, *later}) == 4


def test_ids_differ_between_answers_to_one_prompt() -> None:
    assert len({*ids(TWO_CALLS, progress(number=0)), *ids(TWO_CALLS, progress(number=1))}) == 4


LISTED = (
    f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {PARIS}, "id": "a1b"}}, '
    '{"name": "note", "input": "Hi", "id": "IDS"}]'
)
FENCED = f"<calls><call>a1b:get_weather\n```json\n{PARIS}\n```</call><call>IDS:note\n```\nHi\n```</call></calls>"


@pytest.mark.parametrize(("form", "text"), [(LIST, LISTED), (FENCES, FENCED)], ids=["behind", "in front"])
def test_ids_that_the_form_writes_are_the_ids(form: ToolFormat, text: str) -> None:
    events, reply = read(text.replace("IDS", "c2d"), progress(form))
    assert [call.id for call in reply] == ["a1b", "c2d"]
    assert events == [
        CallStarted(0, "a1b", "get_weather"),
        ArgumentsDelta(0, PARIS),
        CallEnded(0),
        CallStarted(1, "c2d", "note"),
        ArgumentsDelta(1, "Hi"),
        CallEnded(1),
    ]


@pytest.mark.parametrize(("form", "text"), [(LIST, LISTED), (FENCES, FENCED)], ids=["behind", "in front"])
def test_an_id_that_the_model_writes_twice_tells_only_one_call(form: ToolFormat, text: str) -> None:
    events, reply = read(text.replace("IDS", "a1b"), progress(form))
    first, second = (call.id for call in reply)
    assert first == "a1b" != second
    assert CallStarted(1, second, "note") in events
    answered = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in reply]
    assert len(check_messages([reply.message(), *answered])) == 3


# Values


def test_calls_have_validated_arguments_and_run() -> None:
    weather, note = read(TWO_CALLS, progress())[1]
    assert isinstance(weather, FunctionCall)
    assert (weather.arguments, weather.text, weather.call()) == ({"city": "Paris", "days": 1}, PARIS, "Paris 1")
    assert isinstance(note, CustomCall)
    assert (note.name, note.text, note.call()) == ("note", '"é"\n', '"É"\n')


IN_ELEMENTS = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
    "</function>\n</tool_call>"
)
STYLES = {"python": (PYTHON, '[get_weather(city="Paris", days=2)]'), "elements": (ELEMENTS, IN_ELEMENTS)}


@pytest.mark.parametrize(("form", "text"), STYLES.values(), ids=STYLES)
def test_arguments_in_other_styles_are_shown_as_json(form: ToolFormat, text: str) -> None:
    events, reply = read(text, progress(form))
    assert json.loads(reply[0].text) == {"city": "Paris", "days": 2}
    assert ArgumentsDelta(0, reply[0].text) in events


def test_content_is_the_value_of_the_schema() -> None:
    events, reply = read("12", progress(schema=NUMBER))
    assert (reply.content, reply.text, reply.calls) == (12, "12", ())
    assert events == [TextDelta("12")]


def test_calls_stand_in_place_of_the_value() -> None:
    reply = read(TWO_CALLS.removeprefix("I look.\n"), progress(schema=NUMBER))[1]
    assert (reply.content, len(reply)) == (None, 2)


def test_without_tools_the_value_is_what_the_schema_asks_for() -> None:
    assert read("12", progress(schema=NUMBER, wants_reply=False))[1] == 12


@pytest.mark.parametrize("wants_reply", [True, False])
def test_a_refusal_stands_in_place_of_the_value(*, wants_reply: bool) -> None:
    reader = progress(schema=NUMBER, refusal=True, wants_reply=wants_reply)
    events, value = read("Refusal: I cannot count.", reader)
    assert events == [RefusalDelta("I cannot count.")]
    expected: object = Refusal("I cannot count.")
    assert value == (Reply(refusal="I cannot count.") if wants_reply else expected)
    assert reader.outcome().text == ""


@pytest.mark.parametrize("state", [Reasoning.OPTIONAL, Reasoning.OPENED])
def test_reasoning_is_apart_from_content_and_calls(state: Reasoning) -> None:
    text = f"Paris? </think_>\n</think>{TWO_CALLS}"
    reader = progress(reasoning=state)
    events, reply = read(text if state is Reasoning.OPENED else f"<think>\n{text}", reader)
    assert events[:2] == [ReasoningDelta("Paris? </think_>\n"), TextDelta("I look.\n")]
    assert (reply.reasoning, reply.content, len(reply)) == ("Paris? </think_>\n", "I look.\n", 2)
    assert reader.outcome().reasoning == reply.reasoning


def test_special_tokens_are_no_part_of_the_text() -> None:
    reader = progress(special=("<tool_call>", "</tool_call>"))
    text = TWO_CALLS.encode()
    for tag in ("<tool_call>", "</tool_call>"):
        text = text.replace(tag.encode(), mark(tag))
    events, reply = read(text, reader)
    assert events[0] == TextDelta("I look.\n")
    assert len(reply) == 2


# Replies


def test_a_reply_is_a_sequence_of_its_calls() -> None:
    reply = read(TWO_CALLS, progress())[1]
    assert [call.name for call in reply] == ["get_weather", "note"]
    assert (reply[-1], reply[:1], len(reply)) == (reply.calls[1], reply.calls[:1], 2)
    assert reply.calls[0] in reply
    assert not Reply(content="no call", text="no call")


REPLIES = {
    "calls": TWO_CALLS,
    "calls alone": TWO_CALLS.removeprefix("I look.\n"),
    "text": "Hello",
    "nothing": "",
    "reasoning": "<think>\nHm.</think>Yes",
    "reasoning alone": "<think>\nHm.</think>",
}


@for_each("text", REPLIES.values())
def test_a_reply_is_a_message_for_the_next_turn(text: str) -> None:
    reply = read(text, progress(reasoning=Reasoning.OPTIONAL))[1]
    results = [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in reply]
    message = check_messages([reply.message(), *results])[0]
    assert (message.content, message.reasoning) == (reply.text, reply.reasoning)
    assert [call.id for call in message.calls] == [call.id for call in reply]
    assert [call.name for call in message.calls] == [call.name for call in reply]


def test_arguments_come_back_in_the_message_as_the_model_wrote_them() -> None:
    text = TWO_CALLS.replace(PARIS, '{ "city":"Paris" }')
    message = check_messages(
        [
            read(text, progress())[1].message(),
            *({"role": "tool", "tool_call_id": i, "content": ""} for i in ids(text, progress())),
        ]
    )[0]
    assert message.calls[0].text == '{ "city":"Paris" }'
    assert message.calls[1].arguments == {"input": '"é"\n'}


def test_a_refusal_is_a_message() -> None:
    message = read("Refusal: No.", progress(schema=NUMBER, refusal=True))[1].message()
    assert check_messages([message])[0].content == "No."


def test_the_printed_form_is_short() -> None:
    reply = read(TWO_CALLS, progress())[1]
    assert repr(reply) == """Reply(calls=(get_weather(city='Paris', days=1), note('"é"\\n')), content='I look.\\n')"""
    assert repr(Reply(content=3, text="3", reasoning="Hm.")) == "Reply(content=3, reasoning='Hm.')"
    assert repr(WEATHER) == "FunctionTool('get_weather')"
    assert repr(NOTE) == "CustomTool('note')"
    assert isinstance(WEATHER, FunctionTool)


def test_a_text_that_was_cut_in_half_a_character_is_read_as_far_as_it_goes() -> None:
    assert json_text(rb"a\n\ud83d") == b"a\n\xed\xa0\xbd"
    assert json_text(b'\xff<|a|>\xfe\\"') == b'\xff<|a|>\xfe"'
