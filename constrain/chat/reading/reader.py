"""Reads an answer while it is written: reasoning, content and calls, piece by piece.

A reader relies on what the grammar of the answer guarantees. An answer that was cut short reads as far as it goes: text
as it is, and of calls what there is of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.chat.answers.arguments import (
    ELEMENT_BEGIN,
    end_of_element,
    end_of_python,
    json_of_python,
    json_of_xml,
    raw_arguments,
)
from constrain.chat.answers.assembly import may_begin_like
from constrain.chat.answers.choices import REFUSAL, Calls, CustomCalls, Reasoning
from constrain.chat.answers.structure import CONTENT, END, PREAMBLE, REASONING, SpecialName, Variable, structure_parts
from constrain.chat.answers.trees import answer_trees, has_preamble, value_of
from constrain.chat.families.format import ArgumentStyle
from constrain.chat.reading.events import ReasoningDelta, RefusalDelta, TextDelta
from constrain.chat.reading.incoming import Incoming
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from constrain.chat.answers.choices import FunctionCalls
    from constrain.chat.answers.language import AnswerLanguage
    from constrain.chat.answers.structure import Node


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call; ``id`` is None where the form has none, or writes it behind the value."""

    index: int
    name: str
    id: str | None


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More JSON text of a function's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class InputDelta:
    """More of a custom tool's input."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """All of a call is there."""

    index: int
    id: str | None


Event = TextDelta | ReasoningDelta | RefusalDelta | CallStarted | ArgumentsDelta | InputDelta | CallEnded


class Reader:
    """Reads pieces of one answer. Special tokens are written as between the bytes 0xFF and 0xFE, which no text has.

    ``spans``: for each ``TextDelta``, where in the answer its bytes begin and end; for whoever reads the events to take
    away.
    """

    def __init__(self, answer: AnswerLanguage) -> None:
        self._answer = answer
        self._trees = answer_trees(answer)
        self._incoming = Incoming()
        self._events: list[Event] = []
        self.spans: deque[tuple[int, int]] = deque()
        self._calls = 0
        self._behind: Node | None = None
        self._reading = self._read()
        self._go_on()

    def feed(self, piece: bytes) -> list[Event]:
        """What is known after another piece, cut anywhere."""
        self._incoming.buffer += piece
        return self._go_on()

    def finish(self) -> list[Event]:
        """What was held back, since it might have become something else."""
        self._incoming.at_end = True
        return self._go_on()

    @property
    def may_end(self) -> bool:
        """Whether a call is there, and nothing yet of another one: structure alone is missing, if anything."""
        return self._behind is not None and _leads_to_end(self._behind, bytes(self._incoming.buffer))

    def _go_on(self) -> list[Event]:
        next(self._reading, None)
        events, self._events = self._events, []
        return events

    def _emits(self, kind: type[ReasoningDelta | TextDelta | RefusalDelta]) -> Callable[[str], None]:
        def emit(text: str) -> None:
            self._events.append(kind(text))
            if kind is TextDelta:
                self.spans.append(self._incoming.span)

        return emit

    # What an answer is made of. Generators go on where ``Incoming`` does.

    def _read(self) -> Generator[None]:
        answer, thinking = self._answer, self._answer.format.thinking
        node = self._trees.first
        if thinking is not None and answer.reasoning is not Reasoning.NONE:
            if answer.reasoning is Reasoning.OPTIONAL and answer.format.content is None:
                begin = self._written(thinking.begin)
                if (yield from self._incoming.begins_with([begin])) is None:
                    yield from self._read_content(self._trees.second)
                    return
                self._incoming.take(len(begin))
            elif answer.reasoning is Reasoning.OPTIONAL:
                reached, ids = yield from self._follow(node, [])
                if reached != REASONING:
                    yield from self._read_reached(reached, ids)
                    return
            if not (yield from self._read_reasoning(self._written(thinking.end))):
                return
            node = self._trees.second
        yield from self._read_content(node)

    def _read_reasoning(self, end: bytes) -> Generator[None, None, bool]:
        if (yield from self._incoming.text([end], self._emits(ReasoningDelta))) is None:
            return False
        self._incoming.take(len(end))
        content = self._answer.content
        if isinstance(content, Source) and self._answer.calls is not Calls.REQUIRED and may_begin_like(content, b"\n"):
            return True  # then the grammar has no new lines between
        marks = [*self._trees.joined, *(step for step, _ in self._trees.second.onward)]
        if not any(_written(mark).startswith(b"\n") for mark in marks if not isinstance(mark, Variable)):
            while (yield from self._incoming.byte()) == b"\n":
                self._incoming.take(1)
        return True

    def _read_content(self, node: Node) -> Generator[None]:
        """Reads what is no reasoning."""
        answer = self._answer
        if answer.format.content is not None or answer.calls is Calls.REQUIRED:
            reached, ids = yield from self._follow(node, [])
            yield from self._read_reached(reached, ids)
            return
        if self._trees.joined:
            marks = {_written(mark): after for mark, after in self._trees.joined.items()}
            mark = yield from self._incoming.text(list(marks), self._emits(TextDelta))
            if mark is not None:
                self._incoming.take(len(mark))
                reached, ids = yield from self._follow(marks[mark], [])
                yield from self._read_reached(reached, ids)
            return
        starts = list(self._trees.beside_json) or [
            *self._trees.marks,
            *(_written(step) for step, _ in node.onward if isinstance(step, SpecialName)),
        ]
        if node.onward and (yield from self._incoming.begins_with(starts)) is not None:
            reached, ids = yield from self._follow(node, [])
            yield from self._read_reached(reached, ids)
        else:
            yield from self._read_value_or_text(b"")

    def _read_value_or_text(self, end: bytes) -> Generator[None, None, bytes | None]:
        """Reads content, or a refusal, up to what ends it."""
        stops = [end] if end else []
        refusal = REFUSAL.encode()
        if self._answer.refusal and (yield from self._incoming.begins_with([refusal])) is not None:
            self._incoming.take(len(refusal))
            return (yield from self._incoming.text(stops, self._emits(RefusalDelta)))
        return (yield from self._incoming.text(stops, self._emits(TextDelta)))

    def _read_section(self, reached: int) -> Generator[None]:
        """Reads content, or text before calls, from the begin of its section."""
        form = self._answer.format
        assert form.content is not None
        end = self._written(form.content.end) if reached == CONTENT else b""
        if self._answer.content is not None:
            yield from self._read_value_or_text(end)
            return
        stops = [end] if end else []
        preamble = b""
        if form.preamble is not None and has_preamble(self._answer):
            preamble = self._written(form.preamble.end)
            if reached == PREAMBLE or form.preamble.begin == form.content.begin:
                stops.append(preamble)
        if stops and (yield from self._incoming.text(stops, self._emits(TextDelta))) == preamble and preamble:
            self._incoming.take(len(preamble))
            reached_then, ids = yield from self._follow(self._trees.calls, [])
            yield from self._read_reached(reached_then, ids)
        elif not stops:
            yield from self._incoming.text([], self._emits(TextDelta))

    def _read_reached(self, reached: int | None, ids: list[str]) -> Generator[None]:
        """Goes on from what structure has reached."""
        if reached in (CONTENT, PREAMBLE):
            yield from self._read_section(reached)
            return
        while reached is not None and reached >= 0:
            index, self._calls = self._calls, self._calls + 1
            name = self._answer.tools[reached].name
            self._events.append(CallStarted(index, name, ids[-1] if ids else None))
            self._behind = None
            if not (yield from self._read_value(reached, index)):
                return
            node = self._trees.after[reached]
            if reached in self._trees.id_behind:
                node, ids = yield from self._follow_to_id(node)
                if not ids:
                    return
            self._events.append(CallEnded(index, ids[-1] if ids else None))
            self._behind = node
            reached, ids = yield from self._follow(node, [])

    def _read_value(self, tool: int, index: int) -> Generator[None, None, bool]:
        """Reads the value of a call; returns whether all of it was there."""
        called = self._answer.tools[tool]
        if not isinstance(called, CustomCalls):
            match self._answer.format.style:
                case ArgumentStyle.JSON:
                    return (
                        yield from self._incoming.json_object(
                            lambda text: self._events.append(ArgumentsDelta(index, text))
                        )
                    )
                case ArgumentStyle.PYTHON:
                    return (yield from self._read_python(tool, index))
                case ArgumentStyle.XML:
                    return (yield from self._read_xml(called, tool, index))
        if value_of(self._answer.format, called) is Variable.JSON_INPUT:
            return (yield from self._incoming.json_string(lambda text: self._events.append(InputDelta(index, text))))
        after = self._trees.after[tool]
        stops = [_written(step) for step in self._trees.stops(tool)]
        stop = yield from self._incoming.text(stops, lambda text: self._events.append(InputDelta(index, text)))
        return stop is not None or after.reached is not None

    # The tree of structure.

    def _follow(self, node: Node, ids: list[str]) -> Generator[None, None, tuple[int | None, list[str]]]:
        """Follows structure to what it reaches, with the ids on the way; None where the answer was cut short."""
        while node.onward:
            following = yield from self._step(node, ids)
            if following is None:
                break
            node = following
            self._behind = node if self._behind is not None else None
        return node.reached, ids

    def _follow_to_id(self, node: Node) -> Generator[None, None, tuple[Node, list[str]]]:
        """Follows structure as far as the first id; without an id, the answer was cut short."""
        ids: list[str] = []
        while not ids:
            following = yield from self._step(node, ids)
            if following is None:
                break
            node = following
        return node, ids

    def _step(self, node: Node, ids: list[str]) -> Generator[None, None, Node | None]:
        """Takes the step that is written; None if none is."""
        steps = {_written(step): after for step, after in node.onward if not isinstance(step, Variable)}
        found = yield from self._incoming.begins_with(list(steps))
        if found is not None:
            self._incoming.take(len(found))
            return steps[found]
        for step, after in node.onward:
            if isinstance(step, Variable):
                pieces: list[str] = []
                stops = [_written(each)[:1] for each, _ in after.onward if not isinstance(each, Variable)]
                stop = yield from self._incoming.text(stops, pieces.append)
                if stop is None:
                    return None
                ids.append("".join(pieces))
                return after
        return None

    # Values.

    def _read_python(self, tool: int, index: int) -> Generator[None, None, bool]:
        """Emits the JSON text of keyword arguments, once all are there."""
        stops = [_written(step)[:1] for step in self._trees.stops(tool)]
        seen = 0  # bytes with no stop outside of brackets and strings
        while True:
            buffer = self._incoming.buffer
            if any(buffer.find(stop, seen) >= 0 for stop in stops):
                end = end_of_python(buffer, stops)
                if end is not None:
                    self._events.append(ArgumentsDelta(index, json_of_python(self._incoming.take(end).decode())))
                    return True
            seen = len(buffer)
            if self._incoming.at_end:
                return False
            yield

    def _read_xml(self, called: FunctionCalls, tool: int, index: int) -> Generator[None, None, bool]:
        """Emits the JSON text of elements, once all are there."""
        written = ""
        while (yield from self._incoming.begins_with([ELEMENT_BEGIN])):
            while (end := end_of_element(self._incoming.buffer)) is None:
                if self._incoming.at_end:
                    return False
                yield
            written += self._incoming.take(end).decode()
        after = self._trees.after[tool]
        stops = [_written(step) for step in self._trees.stops(tool)]
        if self._incoming.at_end and after.reached is None and not any(map(self._incoming.buffer.startswith, stops)):
            return False
        self._events.append(ArgumentsDelta(index, json_of_xml(written, raw_arguments(self._answer, called))))
        return True

    def _written(self, structure: str) -> bytes:
        """A structure text as answers hold it."""
        return b"".join(map(_written, structure_parts(structure, frozenset(self._answer.special))))


def _leads_to_end(node: Node, begun: bytes) -> bool:
    """Whether structure behind a call, of which so much is written, may lead to the end of the answer."""
    if node.reached == END and not begun:
        return True
    return any(
        (not begun if isinstance(step, Variable) else _written(step).startswith(begun)) and _leads_to_end(after, b"")
        for step, after in node.onward
    )


def _written(part: str | bytes | SpecialName) -> bytes:
    if isinstance(part, SpecialName):
        return part.written
    return part.encode() if isinstance(part, str) else part
