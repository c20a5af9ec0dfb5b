"""Reads an answer while it is written: reasoning, content and tool calls, piece by piece.

A reader relies on the grammar of the answer. It reads a truncated answer as far as it goes: text up to the cut, and the
existing parts of calls.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from constrain.chat.answers.arguments import (
    end_of_element,
    end_of_python,
    json_of_python,
    json_of_xml,
    raw_arguments,
)
from constrain.chat.answers.assembly import may_begin_like
from constrain.chat.answers.choices import REFUSAL, Calls, CustomCalls, Reasoning
from constrain.chat.answers.structure import CONTENT, END, PREAMBLE, REASONING, SpecialName, Variable, structure_parts
from constrain.chat.answers.trees import answer_trees, has_preamble, steps_behind_name, value_of
from constrain.chat.families.format import ArgumentStyle
from constrain.chat.reading.events import ReasoningDelta, RefusalDelta, TextDelta
from constrain.chat.reading.incoming import Incoming, json_text
from constrain.language.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from constrain.chat.answers.choices import FunctionCalls
    from constrain.chat.answers.language import AnswerLanguage
    from constrain.chat.answers.structure import Node


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The beginning of a call. ``id`` is None if the form has no ids, or writes them behind the value."""

    index: int
    name: str
    id: str | None


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of the JSON text of a function's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class InputDelta:
    """A piece of a custom tool's input."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The end of a call."""

    index: int
    id: str | None


Event = TextDelta | ReasoningDelta | RefusalDelta | CallStarted | ArgumentsDelta | InputDelta | CallEnded


class Reader:
    """Reads pieces of one answer. A special token is its name between the bytes 0xFF and 0xFE, which occur in no text.

    Attributes:
        spans: for each ``TextDelta``, the positions in the answer where its bytes begin and end; the caller removes
            them.
        content: positions where a value or text of the content begins and ends; ``None`` before its end.
        arguments: positions where the arguments of a call begin and end, by its number, if they are written as JSON.
    """

    def __init__(self, answer: AnswerLanguage) -> None:
        self._answer = answer
        self._trees = answer_trees(answer)
        self._incoming = Incoming()
        self._events: list[Event] = []
        self.spans: deque[tuple[int, int]] = deque()
        self.content: tuple[int, int] | None = None
        self.arguments: dict[int, tuple[int, int]] = {}
        self._inputs: dict[int, tuple[int, int, bool]] = {}
        self._calls = 0
        self._open: tuple[int, int] | None = None  # tool of the call whose value is being read, and where that begins
        self._at: Node | None = None  # place in the structure
        self._behind: Node | None = None
        self._reading = self._read()
        self._advance()

    def feed(self, piece: bytes) -> list[Event]:
        """Returns the events after another piece; pieces may be cut anywhere."""
        self._incoming.buffer += piece
        return self._advance()

    def finish(self) -> list[Event]:
        """Returns the events for held-back bytes, after the last piece."""
        self._incoming.at_end = True
        return self._advance()

    def input(self, index: int, answer: bytes) -> bytes:
        """Returns the input of a custom call, as far as it was read, with its special tokens marked.

        ``answer``: all pieces, joined.
        """
        begin, end, is_json = self._inputs.get(index, (0, 0, False))
        return json_text(answer[begin:end]) if is_json else answer[begin:end]

    @property
    def may_end(self) -> bool:
        """Whether the answer may end here: a call is complete, no other has begun, and only structure is missing."""
        return self._behind is not None and _leads_to_end(self._behind, bytes(self._incoming.buffer))

    @property
    def called(self) -> tuple[int, int] | None:
        """The number of the tool whose call is open, once its name is written; ``None`` before that and behind it.

        With it comes the position up to which the call is structure: where its value begins, or what was read last.
        """
        node, begun, left = self._at, bytes(self._incoming.buffer), 0
        end = self._incoming.position + len(begun)
        if self._open is not None or node is None:
            return self._open
        while node.reached is None:  # there must be one way on
            ways = [(s, after) for s, after in node.onward if isinstance(s, Variable) or _to_bytes(s).startswith(begun)]
            if len(ways) != 1:
                return None
            step, node = ways[0]
            left += len(step) - len(begun) if isinstance(step, bytes) else 1
            begun = b""
        is_named = node.reached >= 0 and left <= steps_behind_name(self._answer, node.reached)
        return (node.reached, end) if is_named else None

    def _advance(self) -> list[Event]:
        next(self._reading, None)
        events, self._events = self._events, []
        return events

    def _emit_as(self, kind: type[ReasoningDelta | TextDelta | RefusalDelta]) -> Callable[[str], None]:
        def emit(text: str) -> None:
            self._events.append(kind(text))
            if kind is TextDelta:
                self.spans.append(self._incoming.span)

        return emit

    # Parts of an answer. These generators pause where ``Incoming`` does.

    def _read(self) -> Generator[None]:
        answer, thinking = self._answer, self._answer.format.thinking
        node = self._trees.first
        if thinking is not None and answer.reasoning is not Reasoning.NONE:
            if answer.reasoning is Reasoning.OPTIONAL and answer.format.content is None:
                begin = self._to_bytes(thinking.begin)
                if (yield from self._incoming.begins_with([begin])) is None:
                    yield from self._read_content(self._trees.second)
                    return
                self._incoming.take(len(begin))
            elif answer.reasoning is Reasoning.OPTIONAL:
                reached, ids = yield from self._follow(node, [])
                if reached != REASONING:
                    yield from self._read_reached(reached, ids)
                    return
            if not (yield from self._read_reasoning(self._to_bytes(thinking.end))):
                return
            node = self._trees.second
        yield from self._read_content(node)

    def _read_reasoning(self, end: bytes) -> Generator[None, None, bool]:
        if (yield from self._incoming.text([end], self._emit_as(ReasoningDelta))) is None:
            return False
        self._incoming.take(len(end))
        content = self._answer.content
        if isinstance(content, Source) and self._answer.calls is not Calls.REQUIRED and may_begin_like(content, b"\n"):
            return True  # the grammar then has no line feeds after the reasoning section
        marks = [*self._trees.joined, *(step for step, _ in self._trees.second.onward)]
        if not any(_to_bytes(mark).startswith(b"\n") for mark in marks if not isinstance(mark, Variable)):
            while (yield from self._incoming.byte()) == b"\n":
                self._incoming.take(1)
        return True

    def _read_content(self, node: Node) -> Generator[None]:
        """Reads content or calls, after any reasoning section."""
        answer = self._answer
        if answer.format.content is not None or answer.calls is Calls.REQUIRED:
            reached, ids = yield from self._follow(node, [])
            yield from self._read_reached(reached, ids)
            return
        if self._trees.joined:
            marks = {_to_bytes(mark): after for mark, after in self._trees.joined.items()}
            mark = yield from self._incoming.text(list(marks), self._emit_as(TextDelta))
            if mark is not None:
                self._incoming.take(len(mark))
                reached, ids = yield from self._follow(marks[mark], [])
                yield from self._read_reached(reached, ids)
            return
        starts = list(self._trees.beside_json) or [
            *self._trees.marks,
            *(_to_bytes(step) for step, _ in node.onward if isinstance(step, SpecialName)),
        ]
        if node.onward and (yield from self._incoming.begins_with(starts)) is not None:
            reached, ids = yield from self._follow(node, [])
            yield from self._read_reached(reached, ids)
        else:
            yield from self._read_value_or_text(b"")

    def _read_value_or_text(self, end: bytes) -> Generator[None, None, bytes | None]:
        """Reads content, or a refusal, up to the text that ends it."""
        stops = [end] if end else []
        refusal = REFUSAL.encode()
        if self._answer.refusal and (yield from self._incoming.begins_with([refusal])) is not None:
            self._incoming.take(len(refusal))
            return (yield from self._incoming.text(stops, self._emit_as(RefusalDelta)))
        begin = self._incoming.position
        stop = yield from self._incoming.text(stops, self._emit_as(TextDelta))
        self.content = begin, self._incoming.position
        return stop

    def _read_section(self, reached: int) -> Generator[None]:
        """Reads content, or text before calls, inside its section."""
        form = self._answer.format
        assert form.content is not None
        end = self._to_bytes(form.content.end) if reached == CONTENT else b""
        if self._answer.content is not None:
            yield from self._read_value_or_text(end)
            return
        stops = [end] if end else []
        preamble = b""
        if form.preamble is not None and has_preamble(self._answer):
            preamble = self._to_bytes(form.preamble.end)
            if reached == PREAMBLE or form.preamble.begin == form.content.begin:
                stops.append(preamble)
        if stops and (yield from self._incoming.text(stops, self._emit_as(TextDelta))) == preamble and preamble:
            self._incoming.take(len(preamble))
            reached_then, ids = yield from self._follow(self._trees.calls, [])
            yield from self._read_reached(reached_then, ids)
        elif not stops:
            yield from self._incoming.text([], self._emit_as(TextDelta))

    def _read_reached(self, reached: int | None, ids: list[str]) -> Generator[None]:
        """Reads on from an end of the structure tree: sections, or calls until the answer ends."""
        if reached in (CONTENT, PREAMBLE):
            yield from self._read_section(reached)
            return
        while reached is not None and reached >= 0:
            index, self._calls = self._calls, self._calls + 1
            name = self._answer.tools[reached].name
            self._events.append(CallStarted(index, name, ids[-1] if ids else None))
            self._behind, self._open = None, (reached, self._incoming.position)
            if not (yield from self._read_value(reached, index)):
                return
            node = self._trees.after[reached]
            if reached in self._trees.id_behind:
                node, ids = yield from self._follow_to_id(node)
                if not ids:
                    return
            self._events.append(CallEnded(index, ids[-1] if ids else None))
            self._behind, self._open = node, None
            reached, ids = yield from self._follow(node, [])

    def _read_value(self, tool: int, index: int) -> Generator[None, None, bool]:
        """Reads the value of a call; returns whether it is complete."""
        called = self._answer.tools[tool]
        if not isinstance(called, CustomCalls):
            match self._answer.format.style:
                case ArgumentStyle.JSON:
                    begin = self._incoming.position
                    is_whole = yield from self._incoming.json_object(
                        lambda text: self._events.append(ArgumentsDelta(index, text))
                    )
                    self.arguments[index] = begin, self._incoming.position
                    return is_whole
                case ArgumentStyle.PYTHON:
                    return (yield from self._read_python(tool, index))
                case ArgumentStyle.XML:
                    return (yield from self._read_xml(called, tool, index))
        return (yield from self._read_input(called, tool, index))

    def _read_input(self, called: CustomCalls, tool: int, index: int) -> Generator[None, None, bool]:
        """Reads the input of a custom tool; returns whether it is complete."""

        def emit(text: str) -> None:
            self._events.append(InputDelta(index, text))

        begin = self._incoming.position
        if value_of(self._answer.format, called) is Variable.JSON_INPUT:
            is_whole = yield from self._incoming.json_string(emit)
            self._inputs[index] = begin, self._incoming.position - is_whole, True
            return is_whole
        after = self._trees.after[tool]
        stops = [_to_bytes(step) for step in self._trees.stops(tool)]
        stop = yield from self._incoming.text(stops, emit)
        self._inputs[index] = begin, self._incoming.position, False
        return stop is not None or after.reached is not None

    # Steps through the structure tree.

    def _follow(self, node: Node, ids: list[str]) -> Generator[None, None, tuple[int | None, list[str]]]:
        """Follows structure to its end and collects ids on the way; the end is None if the answer was truncated."""
        while node.onward:
            self._at = node
            following = yield from self._step(node, ids)
            if following is None:
                break
            node = following
            self._behind = node if self._behind is not None else None
        self._at = None
        return node.reached, ids

    def _follow_to_id(self, node: Node) -> Generator[None, None, tuple[Node, list[str]]]:
        """Follows structure up to the first id; returns no id if the answer was truncated."""
        ids: list[str] = []
        while not ids:
            following = yield from self._step(node, ids)
            if following is None:
                break
            node = following
        return node, ids

    def _step(self, node: Node, ids: list[str]) -> Generator[None, None, Node | None]:
        """Takes the step that comes next; returns None if no step matches."""
        steps = {_to_bytes(step): after for step, after in node.onward if not isinstance(step, Variable)}
        found = yield from self._incoming.begins_with(list(steps))
        if found is not None:
            self._incoming.take(len(found))
            return steps[found]
        for step, after in node.onward:
            if isinstance(step, Variable):
                pieces: list[str] = []
                stops = [_to_bytes(each)[:1] for each, _ in after.onward if not isinstance(each, Variable)]
                stop = yield from self._incoming.text(stops, pieces.append)
                if stop is None:
                    return None
                ids.append("".join(pieces))
                return after
        return None

    # Values of calls.

    def _read_python(self, tool: int, index: int) -> Generator[None, None, bool]:
        """Emits keyword arguments as JSON text, once all have arrived."""
        stops = [_to_bytes(step)[:1] for step in self._trees.stops(tool)]
        seen = 0  # bytes searched so far, without a stop outside of brackets and strings
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
        """Emits XML elements as JSON text, once all have arrived."""
        written = ""
        element = self._answer.format.element
        while (yield from self._incoming.begins_with([element.before.encode()])):
            while (end := end_of_element(self._incoming.buffer, element)) is None:
                if self._incoming.at_end:
                    return False
                yield
            written += self._incoming.take(end).decode()
        after = self._trees.after[tool]
        stops = [_to_bytes(step) for step in self._trees.stops(tool)]
        if self._incoming.at_end and after.reached is None and not any(map(self._incoming.buffer.startswith, stops)):
            return False
        self._events.append(ArgumentsDelta(index, json_of_xml(written, raw_arguments(self._answer, called), element)))
        return True

    def _to_bytes(self, structure: str) -> bytes:
        """Returns a structure text in the bytes of an answer."""
        return b"".join(map(_to_bytes, structure_parts(structure, frozenset(self._answer.special))))


def _leads_to_end(node: Node, begun: bytes) -> bool:
    """Returns whether structure behind a call, after the bytes in ``begun``, may lead to the end of the answer."""
    if node.reached == END and not begun:
        return True
    return any(
        (not begun if isinstance(step, Variable) else _to_bytes(step).startswith(begun)) and _leads_to_end(after, b"")
        for step, after in node.onward
    )


def _to_bytes(part: str | bytes | SpecialName) -> bytes:
    if isinstance(part, SpecialName):
        return part.written
    return part.encode() if isinstance(part, str) else part
