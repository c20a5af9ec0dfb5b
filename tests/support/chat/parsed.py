"""What a whole answer says: the events of a reader put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from constrain.chat.answers.choices import CustomCalls
from constrain.chat.answers.language import AnswerLanguage
from constrain.chat.reading.events import ReasoningDelta, RefusalDelta, TextDelta
from constrain.chat.reading.reader import ArgumentsDelta, CallEnded, CallStarted, Event, InputDelta, Reader


@dataclass(slots=True)
class Call:
    """A call: ``arguments`` is JSON text, ``input`` the text for a custom tool. ``ended``: it was not cut short."""

    name: str
    id: str | None = None
    arguments: str | None = None
    input: str | None = None
    ended: bool = False


@dataclass(slots=True)
class ParsedAnswer:
    """What an answer says. Content is empty where there is none; ``refusal`` is None where there is none."""

    content: str = ""
    reasoning: str = ""
    refusal: str | None = None
    calls: list[Call] = field(default_factory=list)


def gathered(events: Iterable[Event], answer: AnswerLanguage) -> ParsedAnswer:
    """What events say together."""
    found = ParsedAnswer()
    custom = {tool.name for tool in answer.tools if isinstance(tool, CustomCalls)}
    for event in events:
        match event:
            case ReasoningDelta(text):
                found.reasoning += text
            case TextDelta(text):
                found.content += text
            case RefusalDelta(text):
                found.refusal = (found.refusal or "") + text
            case CallStarted(_, name, identifier):
                found.calls.append(
                    Call(name, identifier, input="") if name in custom else Call(name, identifier, arguments="")
                )
            case ArgumentsDelta(index, text):
                found.calls[index].arguments = (found.calls[index].arguments or "") + text
            case InputDelta(index, text):
                found.calls[index].input = (found.calls[index].input or "") + text
            case CallEnded(index, identifier):
                found.calls[index].id, found.calls[index].ended = identifier, True
    return found


def read_answer(answer: AnswerLanguage, written: bytes) -> ParsedAnswer:
    """What a whole answer says."""
    reader = Reader(answer)
    return gathered([*reader.feed(written), *reader.finish()], answer)
