"""Answers as a model would give them, whole and in pieces, for the tests of responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from constrain import Completion, TextDelta
from constrain.chat.reading.events import StreamEvent
from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.calls import CustomCall, FunctionCall
from constrain.events import ArgumentsDelta, CallEnded, CallStarted, ReasoningDelta, RefusalDelta
from constrain.results import Timings, Usage
from constrain.server.responses.output import ResponseHead
from constrain.server.responses.request import ResponseBody
from constrain.server.settings import Settings
from constrain.tools import tool_from_json

TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
    {
        "type": "custom",
        "name": "sum",
        "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+\\+[0-9]+"},
    },
]
WEATHER, SUM = map(tool_from_json, TOOLS)

PERSON = {
    "type": "json_schema",
    "name": "person",
    "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    },
    "strict": True,
}


@dataclass(frozen=True)
class Answer:
    body: dict[str, Any]
    events: tuple[StreamEvent, ...]
    completion: Completion

    @property
    def head(self) -> ResponseHead:
        request = ResponseBody.ask({"model": "tiny", "input": "Hello", **self.body}, Settings())
        temperature = self.body.get("temperature", 0.8)
        return ResponseHead(request, f"resp_{'0123456789ab' * 4}", 1_763_800_000.0, "tiny", temperature)


def completion(value: Any, text: str, *, finish_reason: Any = "stop", reasoning: str = "") -> Completion:
    return Completion(
        value=value,
        text=text,
        tokens=tuple(range(7)),
        usage=Usage(20, 5, 7),
        timings=Timings(0, 0, 0, 0),
        finish_reason=finish_reason,
        report=None,
        reasoning=reasoning,
    )


def weather_call(call_id: str, city: str) -> FunctionCall:
    return FunctionCall(call_id, WEATHER, WEATHER.read(f'{{"city": "{city}"}}'))


def _of_call(index: int, call: FunctionCall | CustomCall) -> tuple[StreamEvent, ...]:
    half = len(call.text) // 2
    pieces = (ArgumentsDelta(index, call.text[:half]), ArgumentsDelta(index, call.text[half:]))
    return (CallStarted(index, call.id, call.name), *pieces, CallEnded(index))


_OSLO, _ROME = weather_call("call_1", "Oslo"), weather_call("call_2", "Rome")
_SUM = CustomCall("call_3", SUM, "1+2")
_WITH_TOOLS = {"tools": TOOLS}
_THOUGHTS = (ReasoningDelta("Well, "), ReasoningDelta("well."))
_CALLS = (*_of_call(0, _OSLO), *_of_call(1, _ROME), *_of_call(2, _SUM))

ANSWERS = {
    "text": Answer({}, (TextDelta("Hé"), TextDelta("llo ☃")), completion("Héllo ☃", "Héllo ☃")),
    "nothing": Answer({}, (), completion("", "")),
    "cut text": Answer({}, (TextDelta("Once up"),), completion("Once up", "Once up", finish_reason="length")),
    "text out of time": Answer({}, (TextDelta("Once"),), completion("Once", "Once", finish_reason="timeout")),
    "JSON": Answer(
        {"text": {"format": PERSON}},
        (TextDelta('{"name"'), TextDelta(': "Ada"}')),
        completion({"name": "Ada"}, '{"name": "Ada"}'),
    ),
    "JSON at its limit": Answer(
        {"text": {"format": PERSON}, "max_output_tokens": 7},
        (TextDelta('{"name": ""}'),),
        completion({"name": ""}, '{"name": ""}', finish_reason="length"),
    ),
    "reasoning and text": Answer(
        {}, (*_THOUGHTS, TextDelta("Yes.")), completion("Yes.", "Yes.", reasoning="Well, well.")
    ),
    "reasoning and nothing": Answer({}, _THOUGHTS, completion("", "", reasoning="Well, well.")),
    "cut reasoning": Answer({}, _THOUGHTS, completion("", "", reasoning="Well, well.", finish_reason="length")),
    "refusal": Answer(
        {"text": {"format": PERSON}},
        (RefusalDelta("I will "), RefusalDelta("not.")),
        completion(Refusal("I will not."), ""),
    ),
    "refusal in a reply": Answer(
        {"text": {"format": PERSON}, **_WITH_TOOLS}, (RefusalDelta("No."),), completion(Reply(refusal="No."), "")
    ),
    "calls": Answer(_WITH_TOOLS, _CALLS, completion(Reply((_OSLO, _ROME, _SUM)), "")),
    "everything": Answer(
        _WITH_TOOLS,
        (*_THOUGHTS, TextDelta("Let me "), TextDelta("see."), *_CALLS),
        completion(
            Reply((_OSLO, _ROME, _SUM), "Let me see.", "Well, well.", None, "Let me see."),
            "Let me see.",
            reasoning="Well, well.",
        ),
    ),
    "calls at their limit": Answer(
        _WITH_TOOLS, _of_call(0, _OSLO), completion(Reply((_OSLO,)), "", finish_reason="length")
    ),
    "text beside tools": Answer(
        _WITH_TOOLS, (TextDelta("Hi"),), completion(Reply((), "Hi", text="Hi"), "Hi", finish_reason="length")
    ),
}
