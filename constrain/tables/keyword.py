"""The keyword ``x-one-of``, and the tables that it names.

Tables travel inside the schema as digests of their columns, in the keyword ``x-given-tables`` of its root. So a
schema's text says all that its grammar depends on, and new values make another text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from constrain.errors import ConstrainError, SchemaError, UnsatisfiableSchemaError
from constrain.language.stages import GIVEN, has_given, objects_in
from constrain.suggestions import did_you_mean
from constrain.tables.columns import Column, find_column
from constrain.tables.dependent import find_rows
from constrain.tables.table import Table

if TYPE_CHECKING:
    from constrain.language.tree import LiteralTable
    from constrain.tables.dependent import Dependent

ONE_OF, GIVEN_TABLES = "x-one-of", "x-given-tables"


class OneOfKeyword(NamedTuple):
    """The value of ``x-one-of``: a table and its column by name; or values by digest, which may have names, too.

    ``size``: how many values there are; ``None`` if the keyword only names them.
    """

    table: str | None = None
    column: str | None = None
    digest: str | None = None
    size: int | None = None

    def __str__(self) -> str:
        """Returns a name for messages."""
        table = "the table" if self.table is None else f"the table {self.table!r:.80}"
        return table if self.column is None else f"the column {self.column!r:.80} of {table}"

    def value(self) -> dict[str, Any]:
        """Returns the keyword's value in a JSON Schema."""
        return {name: given for name, given in self._asdict().items() if given is not None}


_KINDS = {"table": str, "column": str, "digest": str, "size": int}


def read_keyword(value: object) -> OneOfKeyword:
    """Returns the value of ``x-one-of``. Raises TypeError."""
    if (
        isinstance(value, Mapping)
        and value.keys() <= _KINDS.keys()
        and all(isinstance(given, _KINDS[name]) for name, given in value.items())
        and ("digest" in value) == ("size" in value)
        and ("digest" in value or "table" in value)
    ):
        return OneOfKeyword(**value)
    raise TypeError(f'{ONE_OF} must name a table, as in {{"table": "customers", "column": "name"}}, not {value!r:.80}')


def read_given(value: Any) -> tuple[OneOfKeyword, dict[str, object]]:
    """Returns a keyword with ``given``, and the pointers to the values of the columns that this names.

    Raises TypeError.
    """
    keyword = read_keyword({name: each for name, each in value.items() if name != GIVEN})
    given = value[GIVEN]
    if not isinstance(given, Mapping) or not given or keyword.table is None or keyword.column is None:
        raise TypeError(
            f'{GIVEN} needs a table, a column and another column with a pointer, as in {{"table": "places", "column": '
            f'"city", "{GIVEN}": {{"country": "1/country"}}}}, not {value!r:.80}'
        )
    return keyword, {name: given[name] for name in sorted(given)}


def read_tables(given: object) -> dict[str, Table]:
    """Returns tables by name: each is a ``Table``, or values for one. Raises TypeError, SchemaError and LimitError."""
    if not isinstance(given, Mapping):
        raise TypeError(f"tables must map the names of tables to their values, not {given!r:.80}")
    found = {}
    for name, values in given.items():
        if not isinstance(name, str):
            raise TypeError(f"tables has the name {name!r:.80}, which is not a text")
        try:
            found[name] = values if isinstance(values, Table) else Table(values)
        except ConstrainError as error:
            error.message = f"tables[{name!r}]: {error.message}"
            raise
        except TypeError as error:
            raise TypeError(f"tables[{name!r}]: {error}") from error
    return found


def bound_tables(tables: Mapping[str, Table]) -> tuple[dict[str, Any], list[Column]]:
    """Returns the value of ``x-given-tables``, and the columns that it names."""
    bound: dict[str, Any] = {}
    columns = []
    for name, table in tables.items():
        bound[name] = {}
        for column, found in table.all_columns():
            if isinstance(found, Column):
                columns.append(found)
                bound[name][column] = {"digest": found.digest, "size": len(found)}
            else:
                bound[name][column] = {"problem": found.message}
    return bound, columns


def bound_expressions(tables: Mapping[str, Any]) -> Iterator[LiteralTable]:
    """Yields the spellings of strings, of numbers and of whole numbers in all columns of tables."""
    for column in bound_tables(read_tables(tables))[1]:
        if column.strings is not None:
            yield column.strings
        if column.numbers is not None:
            yield column.numbers.expression
            yield column.numbers.where(lambda value: isinstance(value, int)).expression


def with_tables(schema: str, bound: Mapping[str, Any]) -> str:
    """Returns the text of a schema, an object, with the tables of a call."""
    return f'{{"{GIVEN_TABLES}": {json.dumps(bound)}, {schema.lstrip()[1:]}'


def with_rows(bound: Mapping[str, Any], tables: Mapping[str, Table], document: object) -> Mapping[str, Any]:
    """Returns ``x-given-tables`` with the rows that a schema needs. What is wrong there, compiling the schema names."""
    found = dict(bound)
    for part in objects_in(document):
        if not has_given(part):
            continue
        try:
            keyword, given = read_given(part[ONE_OF])
            table, column = tables[str(keyword.table)], str(keyword.column)
            for name in (column, *given):
                table.column(name)
        except (TypeError, ConstrainError, KeyError):
            continue
        about = found[str(keyword.table)][column]
        rows = {**about.get(GIVEN, {}), _rows_name(given): {"digest": table.dependent(column, [*given]).digest}}
        found[str(keyword.table)] = {**found[str(keyword.table)], column: {**about, GIVEN: rows}}
    return found


def _rows_name(columns: Iterable[str]) -> str:
    return json.dumps([*columns])


def rows_of(keyword: OneOfKeyword, others: Iterable[str], root: object) -> Dependent:
    """Returns the rows of a keyword and the columns that its ``given`` names. Raises SchemaError."""
    others = tuple(others)
    for each in (keyword, *(OneOfKeyword(keyword.table, other) for other in others)):
        if not len(column_of(each, root)):
            raise UnsatisfiableSchemaError(f"{each} has no values")
    about: Any = root[GIVEN_TABLES][keyword.table][keyword.column]  # type: ignore[index]
    for name in (GIVEN, _rows_name(others)):
        about = about.get(name) if isinstance(about, Mapping) else None
    found = find_rows(str(about["digest"])) if isinstance(about, Mapping) and "digest" in about else None
    if found is None:
        raise SchemaError(f"the rows of {keyword} are no longer in use; keep the table")
    return found


def column_of(keyword: OneOfKeyword, root: object) -> Column:
    """Returns the column of a keyword. ``root``: the root of its schema. Raises SchemaError."""
    digest = keyword.digest
    if digest is None:
        given = root.get(GIVEN_TABLES, {}) if isinstance(root, Mapping) else {}
        if not _is_bound(given):
            raise SchemaError(f"{GIVEN_TABLES} is written by constrain, and must not be {given!r:.80}")
        columns = _member(given, keyword.table, f"there is no table {keyword.table!r:.80}: give it in 'tables'")
        if len(columns) == 1 and (keyword.column is None or columns.get("", {}).get("size") == 0):  # or it has no rows
            (about,) = columns.values()
        elif keyword.column is None:
            raise SchemaError(f"{keyword} has several columns: name one of {_listed(columns)}")
        else:
            message = f"the table {keyword.table!r:.80} has no column {keyword.column!r:.80}"
            about = _member(columns, keyword.column, message)
        if "problem" in about:
            raise SchemaError(about["problem"])
        digest = about["digest"]
    found = find_column(digest)
    if found is None:
        raise SchemaError(f"the values of {keyword} are no longer in use; keep the table, or the constrain.OneOf")
    return found


def _is_bound(given: object) -> bool:
    """Returns whether a value is one of ``x-given-tables``: a schema of others may have any."""
    if not isinstance(given, Mapping) or not all(isinstance(columns, Mapping) for columns in given.values()):
        return False
    found = [about for columns in given.values() for about in columns.values()]
    return all(
        isinstance(about, Mapping) and (isinstance(about.get("digest"), str) or isinstance(about.get("problem"), str))
        for about in found
    )


def _member(given: Any, name: str | None, message: str) -> Any:
    if name not in given:
        known = did_you_mean(str(name), given) or (f"; there are {_listed(given)}" if given else "")
        raise SchemaError(message + known)
    return given[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
