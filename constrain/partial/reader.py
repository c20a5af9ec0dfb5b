"""``FieldReader``: from the pieces of a JSON text to events of its fields, and to the value so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from constrain.notebooks import one_line
from constrain.partial.scanner import Scanner
from constrain.partial.types import PartialType, UncertainError
from constrain.partial.written import KINDS, Whole, Written
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from constrain.language.result import ResultType
    from constrain.partial.scanner import EventKind, Path, Scanned
    from constrain.partial.types import Schema


_SHOWN_LEVELS = 50
"""Levels of objects and arrays whose parts a partial value shows while they are written; deeper parts appear when they
are complete."""


@dataclass(frozen=True, slots=True)
class FieldEvent:
    """An event of a stream: a part of a JSON value begins, grows, or is complete.

    Attributes:
        kind: ``"begin"``, ``"grow"`` (strings only) or ``"complete"``.
        path: keys and positions from the whole value to the part; ``()`` for the whole.
        text: the new characters of a string that grows; empty otherwise.
        value: the part once it is complete, validated by its type, and final. Where a union is not decided yet, and
            where a validator needs other fields, it is the JSON value. None before.
        partial: the whole value so far: an instance of the type, in which fields that have not begun are None. Complete
            fields are final, strings may grow, and items of arrays appear when they are complete. None as long as
            nothing is certain.
        call: number of the tool call whose arguments these are; None for the answer itself.
    """

    kind: EventKind
    path: Path
    text: str
    value: Any
    partial: Any
    call: int | None = None

    __repr__ = one_line


class Fields:
    """Reads one JSON text for one type.

    ``result``: the type or schema. ``call``: number of the tool call whose arguments are read. ``closed``: whether
    objects have only declared keys.
    """

    def __init__(self, result: ResultType, call: int | None = None, *, closed: bool = True) -> None:
        self._call = call
        self._type = None if result.adapter is None else PartialType(result.adapter, closed=closed)
        self._scanner = Scanner()
        self._open: list[Written] = []  # from the whole value to the part that is being written
        self._whole: Any = None
        self._is_whole = False

    def feed(self, piece: str) -> list[FieldEvent]:
        """Adds a piece of the text. Raises ValueError if the text is not JSON."""
        return self._events(self._scanner.feed(piece))

    def finish(self) -> list[FieldEvent]:
        """Ends the text."""
        return self._events(self._scanner.finish())

    def partial(self) -> Any:
        """Returns the value so far; None as long as nothing is certain."""
        if self._is_whole or not self._open:
            return self._whole
        if self._type is None:
            return None if self._open[0].kind == "other" else self._open[0].plain()
        try:
            return self._type.value(self._type.root, self._open[0])
        except UncertainError:
            return None

    def _events(self, found: list[Scanned]) -> list[FieldEvent]:
        events: list[FieldEvent] = []
        for each in found:
            value = None
            if each.kind == "begin":
                self._begin(each)
            elif each.kind == "grow":
                self._open[-1].text += each.text
            else:
                value = self._complete(each)
            events.append(FieldEvent(each.kind, each.path, each.text, value, self.partial(), self._call))
        return events

    def _begin(self, begun: Scanned) -> None:
        kind = KINDS.get(self._scanner.text[begun.begin], "other")
        written = Written(kind if len(self._open) < _SHOWN_LEVELS else "unseen")
        if self._open:
            self._open[-1].step, self._open[-1].part = begun.path[-1], written
        self._open.append(written)

    def _complete(self, ended: Scanned) -> Any:
        """Returns the value of what is complete."""
        text = self._scanner.text[ended.begin : ended.end]
        self._open.pop()
        if not self._open:
            self._is_whole = True
            self._whole = self._value(None if self._type is None else self._type.root, text)
            return self._whole
        parent = self._open[-1]
        schema = None if parent.kind == "unseen" else self._schema_of(ended.path)
        parent.complete.append(Whole(ended.path[-1], text))
        parent.step = parent.part = None
        return self._value(schema, text)

    def _value(self, schema: Schema | None, text: str) -> Any:
        if schema is not None:
            assert self._type is not None
            try:
                return self._type.complete(schema, text)
            except ValidationError:
                pass  # a validator of the type refuses it, and will refuse the whole answer with its place
        return read_answer(text)

    def _schema_of(self, path: Path) -> Schema | None:
        """Returns the schema of the part that has just ended; None if a union on the way is not decided."""
        if self._type is None:
            return None
        schema: Schema | None = self._type.root
        for written, step in zip(self._open, path, strict=True):
            assert schema is not None
            fitting = self._type.fitting(schema, written)
            if len(fitting) != 1:
                return None
            schema = self._type.part(fitting[0], step)
            if schema is None:
                return None
        return schema


class FieldReader:
    """Reads the JSON text of an answer piece by piece: which fields begin, grow and are complete, and the value so far.

    ``stream(..., partial=True)`` does so for answers of this process; this class does it for any text, such as the
    pieces of content that a client of the endpoint receives.

    Args:
        schema: type, or JSON Schema, of the answer; ``None`` for any JSON.

    >>> reader = FieldReader(dict[str, int])
    >>> [(event.kind, event.path, event.partial) for event in reader.feed('{"a": 1')]
    [('begin', (), {}), ('begin', ('a',), {})]
    >>> reader.feed("2}")[0]
    FieldEvent(kind='complete', path=('a',), text='', value=12, partial={'a': 12})
    """

    def __init__(self, schema: Any = None) -> None:
        from constrain.language.result import result_type

        self._fields = Fields(result_type(True if schema is None else schema), closed=False)

    def feed(self, text: str) -> list[FieldEvent]:
        """Adds a piece of the text, and returns what it changes. Raises ``ValueError`` if the text is not JSON."""
        return self._fields.feed(text)

    def finish(self) -> list[FieldEvent]:
        """Ends the text: only then is a number complete that is the whole value."""
        return self._fields.finish()

    @property
    def value(self) -> Any:
        """The value so far, as ``FieldEvent.partial``."""
        return self._fields.partial()
