"""Values of a column that stand in rows with given values of other columns, such as the cities of a country."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from constrain import kernel
from constrain.errors import SchemaError
from constrain.tables.columns import find_column, json_text, read_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from constrain.tables.columns import Column

_BETWEEN = "\x1f"
"""Character between the values of a row, which no JSON text contains."""


class Dependent:
    """The values of a column by those of other columns. Rows without one of them have no say.

    Args:
        rows: values of the other columns, and behind them that of the column.
        others: names of the other columns.
        name: the column in messages.

    Attributes:
        digest: identifies the rows, by their values and the names of the columns.
    """

    def __init__(self, rows: Iterable[Sequence[object]], others: tuple[str, ...], name: str) -> None:
        self._others, self._name = others, name
        self._shortest: dict[str, int] = {}  # bytes of the shortest value, by the values of the other columns
        self._sources: dict[str, Column] = {}
        self._texts = kernel.Texts(self._read(rows))
        self.digest = hashlib.sha256(repr((name, others)).encode() + self._texts.lines()).hexdigest()

    def _read(self, rows: Iterable[Sequence[object]]) -> Iterable[str]:
        shortest = self._shortest
        for row in rows:
            if None not in row:
                *given, value = map(json_text, row)
                key = _BETWEEN.join(given)
                size = len(value.encode())
                if size < shortest.get(key, size + 1):
                    shortest[key] = size
                yield f"{key}{_BETWEEN}{value}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._others, self._name, self._shortest, self._texts, self.digest)

    def given(self, values: Mapping[str, object]) -> Column:
        """Returns the values of the column in rows with these values of the other columns."""
        if values.keys() != {*self._others}:
            raise SchemaError(f"{self._name} needs values of {', '.join(map(repr, self._others))}")
        key = _BETWEEN.join(json_text(values[other]) for other in self._others) + _BETWEEN
        begin = json.dumps(key, ensure_ascii=False)[1:-1].encode()
        low = bisect_left(self._texts, begin)
        high = bisect_left(self._texts, begin + b"\xff", low)
        texts = (json.loads(b'"%b"' % self._texts[number]) for number in range(low, high))
        return read_column((json.loads(text.rpartition(_BETWEEN)[2]) for text in texts), self._name)

    def sources(self, other: str) -> Column:
        """Returns the values of another column for which there is a value."""
        if other not in self._sources:
            found = (values[other] for values in self.possible())
            self._sources[other] = read_column(found, f"the column {other!r}")
        return self._sources[other]

    def covers(self, earlier: Dependent, column: str) -> bool:
        """Returns whether there is a value for all rows of another column, by the columns that both know.

        ``column``: the other column, whose values ``earlier`` has.
        """
        names = (*earlier._others, column)
        places = [names.index(other) for other in self._others]
        rows = (json.loads(b'"%b"' % earlier._texts[number]).split(_BETWEEN) for number in range(len(earlier._texts)))
        return all(_BETWEEN.join(row[place] for place in places) in self._shortest for row in rows)

    def possible(self) -> list[dict[str, Any]]:
        """Returns the values of the other columns for which there is a value."""
        return [self._values(key) for key in self._shortest]

    @property
    def worst_bytes(self) -> int:
        """Bytes of the shortest value, as JSON, for the worst values of the other columns; 0 without rows."""
        return max(self._shortest.values(), default=0)

    def hardest(self) -> dict[str, Any] | None:
        """Returns the values of the other columns whose shortest value is longest; ``None`` without rows."""
        key = max(self._shortest, key=lambda one: (self._shortest[one], one), default=None)
        return None if key is None else self._values(key)

    def _values(self, key: str) -> dict[str, Any]:
        return dict(zip(self._others, map(json.loads, key.split(_BETWEEN)), strict=True))


def _restored(
    others: tuple[str, ...], name: str, shortest: dict[str, int], texts: kernel.Texts, digest: str
) -> Dependent:
    rows = Dependent.__new__(Dependent)
    rows._others, rows._name, rows._shortest, rows._texts, rows.digest = others, name, shortest, texts, digest
    rows._sources = {}
    return keep_rows(rows)


_DIGEST = re.compile(r'"digest"\s*:\s*"([0-9a-f]{64})"')

_rows: WeakValueDictionary[str, Dependent] = WeakValueDictionary()
"""Columns together with others of the same rows, by digest."""


def keep_rows(rows: Dependent) -> Dependent:
    """Lets rows be found by their digest while they are in use. Returns those with it that are there already."""
    return _rows.setdefault(rows.digest, rows)


def find_rows(digest: str) -> Dependent | None:
    """Returns the rows with a digest; ``None`` if nothing in use has it."""
    return _rows.get(digest)


def columns_in(schema: str) -> tuple[Column | Dependent, ...]:
    """Returns columns and rows that the text of a schema names by digest. Who keeps them, keeps the schema usable."""
    found = ((find_column(digest), _rows.get(digest)) for digest in dict.fromkeys(_DIGEST.findall(schema)))
    return tuple(each for pair in found for each in pair if each is not None)


def rows_in(schema: str) -> tuple[Dependent, ...]:
    """Returns the rows that the text of a schema names by digest."""
    return tuple(each for each in columns_in(schema) if isinstance(each, Dependent))
