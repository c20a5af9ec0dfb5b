"""Columns: the values of one column of a table, which all grammars share, by the digest of their content."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date, time
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID
from weakref import WeakValueDictionary

from constrain import kernel
from constrain.errors import LimitError, SchemaError
from constrain.language.tree import LiteralTable
from constrain.tables.numbers import NumberTable, spell_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MAX_TABLE_VALUES = 10_000_000
"""Values of one column of a table, equal ones and gaps included. Beyond: LimitError."""

_AT_ONCE = 10_000
"""Values that are read at once: most columns have one kind of values, for which there is a short way."""

_NUMBER = re.compile(rb"^(?!-0$)-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?$", re.MULTILINE)
"""Numbers among the lines of texts that are spelled as in a ``NumberTable``; ``_OTHER_NUMBER``: others."""

_OTHER_NUMBER = re.compile(rb"^-?(?:0|[1-9][0-9]*)\.[0-9]*0$|^-0$", re.MULTILINE)
_TRUTHS = {b"true": True, b"false": False}


class Column:
    """The different values of a column, in no order; immutable.

    Attributes:
        strings: strings, as contents of JSON strings; ``None`` for none.
        listed: numbers; ``None`` for none.
        truths: booleans.
        is_text: whether the source has only texts, as CSV; those that are numbers or booleans are such values, too.
    """

    def __init__(
        self, strings: LiteralTable | None, listed: NumberTable | None, truths: frozenset[bool], *, is_text: bool
    ) -> None:
        self.strings, self.listed, self.truths, self.is_text = strings, listed, truths, is_text
        named = [strings and strings.digest, listed and listed.expression.digest, sorted(truths), is_text]
        self.digest = hashlib.sha256(repr(named).encode()).hexdigest()

    def __len__(self) -> int:
        """Returns the number of different values."""
        return len(self.strings.texts if self.strings else ()) + len(self.listed or ()) + len(self.truths)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.strings, self.listed, self.truths, self.is_text)

    @cached_property
    def numbers(self) -> NumberTable | None:
        """The numbers, those among texts included."""
        if not self.is_text or self.strings is None:
            return self.listed
        lines = self.strings.texts.lines()
        spelled = [text.decode() for text in _NUMBER.findall(lines)]
        spelled += [spell_number(Decimal(text.decode())) for text in _OTHER_NUMBER.findall(lines)]
        return NumberTable.of(spelled) if spelled else None

    @cached_property
    def booleans(self) -> frozenset[bool]:
        """The booleans, those among texts included."""
        if not self.is_text or self.strings is None:
            return self.truths
        texts = self.strings.texts
        return frozenset(truth for text, truth in _TRUTHS.items() if texts.find(text) is not None)

    def kinds(self) -> str:
        """Returns the kinds of the values, for messages."""
        there = {"strings": self.strings, "numbers": self.numbers, "booleans": self.booleans}
        return " and ".join(kind for kind, values in there.items() if values)


_columns: WeakValueDictionary[str, Column] = WeakValueDictionary()
"""By digest. Schemas name columns by their digests, so that a schema's text says all that its grammar depends on."""


def _restored(strings: LiteralTable | None, listed: NumberTable | None, truths: Any, is_text: Any) -> Column:
    return _registered(Column(strings, listed, truths, is_text=is_text))


def _registered(column: Column) -> Column:
    return _columns.setdefault(column.digest, column)


def read_column(values: Iterable[object], name: str, *, is_text: bool = False) -> Column:
    """Returns the column of some values; ``None`` among them is no value. Equal columns share their memory.

    ``name``: the column in messages. Raises SchemaError for values that no answer can contain, and LimitError.
    """
    numbers: list[str] = []
    truths: set[bool] = set()
    try:
        texts = kernel.Texts(_strings(values, name, numbers, truths))
    except UnicodeEncodeError as error:
        raise SchemaError(
            f"{name} has the value {error.object!a:.80} with a lone surrogate, which no answer can contain"
        ) from None
    except LimitError as error:
        raise LimitError(f"{name}: {error.message}") from None
    strings = LiteralTable.of(texts) if len(texts) else None
    listed = NumberTable.of(numbers) if numbers else None
    return _registered(Column(strings, listed, frozenset(truths), is_text=is_text))


def _strings(values: Iterable[object], name: str, numbers: list[str], truths: set[bool]) -> Iterator[str]:
    """Yields the strings among some values, and adds the others to their kind."""
    rest, count = iter(values), 0
    while piece := list(islice(rest, _AT_ONCE)):
        count += len(piece)
        if count > MAX_TABLE_VALUES:
            raise LimitError(
                f"there are more values than MAX_TABLE_VALUES = {MAX_TABLE_VALUES}; leave out rows that nobody names"
            )
        kinds = {*map(type, piece)}
        if kinds == {str}:
            yield from piece  # type: ignore[misc]  # all are strings
        elif kinds == {int}:
            numbers += map(str, piece)
        else:
            for value in piece:
                yield from _read_value(value, name, numbers, truths)


def _read_value(value: object, name: str, numbers: list[str], truths: set[bool]) -> tuple[str, ...]:
    """Returns a string among some values; adds a value of another kind to its kind."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        truths.add(value)
    elif isinstance(value, int | float | Decimal):
        try:
            numbers.append(spell_number(value))
        except ValueError as error:
            raise SchemaError(f"{name}: {error}") from None
    elif isinstance(value, date | time):
        return (value.isoformat(),)
    elif isinstance(value, UUID):
        return (str(value),)
    elif value is not None:
        raise SchemaError(
            f"{name} has a value of the type {type(value).__name__}, {value!r:.80}; the values of a table are strings, "
            "numbers, booleans and dates"
        )
    return ()


def json_text(value: object) -> str:
    """Returns a value of a table as JSON has it. Raises SchemaError for one that no answer can contain."""
    numbers: list[str] = []
    truths: set[bool] = set()
    strings = _read_value(value, "the table", numbers, truths)
    if strings:
        return json.dumps(strings[0], ensure_ascii=False)
    return numbers[0] if numbers else "true" if True in truths else "false" if truths else "null"


def find_column(digest: str) -> Column | None:
    """Returns the column with a digest; ``None`` if nothing in use has it."""
    return _columns.get(digest)
