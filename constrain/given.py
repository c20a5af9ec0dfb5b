"""What a call gives for the keywords of its schema: texts to quote from (``x-quote``) and tables (``x-one-of``).

A ``Given`` binds both into the root of a schema's text, so that the text says all that its grammar depends on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.language.schema_text import may_have_keyword, parse_schema
from constrain.language.stages import GIVEN as GIVEN_ROWS
from constrain.quotes.keyword import QUOTE, Texts, may_have_quotes, read_sources, sources_of, with_sources
from constrain.quotes.keyword import read_keyword as read_quote
from constrain.tables.keyword import ONE_OF, bound_tables, read_tables, with_rows, with_tables

if TYPE_CHECKING:
    from constrain.tables.columns import Column
    from constrain.tables.table import Table

GIVEN = ("sources", "tables")
"""The options that a ``Given`` holds."""

_HOLDING_NAMES = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose values have names of the author's choice as keys."""

_HOLDING_VALUES = frozenset(("const", "enum", "default", "examples"))
"""Keywords whose values are no schemas."""


@dataclass(frozen=True)
class Given:
    """Sources and tables of one call, by name.

    Attributes:
        sources: texts to quote from.
        bound: value of ``x-given-tables``.
        columns: columns that it names, which are kept here.
        tables: the tables themselves, for schemas that need rows.
        for_all: whether schemas of a registry may need them, so that every schema gets them.
    """

    sources: Mapping[str, Texts] = field(default_factory=dict)
    bound: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict, repr=False)
    for_all: bool = False

    def bind(self, schema: str) -> str:
        """Returns the text of a schema with what it needs; unchanged if it needs nothing."""
        text = schema.lstrip()
        if not text.startswith("{") or text[1:].lstrip().startswith("}"):
            return schema
        if self.bound and (self.for_all or may_name_tables(schema)):
            schema = with_tables(schema, self._bound_for(schema))
        if self.sources and (self.for_all or may_have_quotes(schema)):
            schema = with_sources(schema, self.sources)
        return schema

    def _bound_for(self, schema: str) -> Mapping[str, Any]:
        """Returns ``x-given-tables`` for a schema: with rows if it asks for them."""
        if not may_have_keyword(schema, GIVEN_ROWS):
            return self.bound
        return with_rows(self.bound, self.tables, parse_schema(schema))

    def is_for(self, schema: str) -> bool:
        """Returns whether the text of a schema may need a source or a table."""
        return self.for_all or needs_given(schema)


def read_given(options: Mapping[str, Any], own: Mapping[str, Texts] = {}) -> Given:
    """Returns what the options of a call give. Raises TypeError, ValueError, SchemaError and LimitError.

    ``own``: sources that the call has by itself.
    """
    sources, tables = (options.get(name) or {} for name in GIVEN)
    found = read_tables(tables)
    bound, columns = bound_tables(found)
    for_all = options.get("registry") is not None
    return Given({**own, **read_sources(sources)}, bound, tuple(columns), found, for_all)


def may_name_tables(schema: str) -> bool:
    """Returns whether the text of a schema may name tables."""
    return may_have_keyword(schema, ONE_OF)


def needs_given(schema: str) -> bool:
    """Returns whether the text of a schema may need a source or a table."""
    return may_have_quotes(schema) or may_name_tables(schema)


def without_given(document: Any) -> Any:
    """Returns a copy of a parsed schema without the keywords whose sources or tables only a call has.

    It is for checks: quotes of other sources than the schema's own, and values of named tables, are any values.
    """
    kept = sources_of(document)
    root = [document]
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        copied, holds_names = waiting.pop()
        if isinstance(copied, dict) and not holds_names:
            if QUOTE in copied and _quotes_others(copied[QUOTE], kept):
                del copied[QUOTE]
            if isinstance(copied.get(ONE_OF), Mapping) and "digest" not in copied[ONE_OF]:
                del copied[ONE_OF]
        for key, value in copied.items() if isinstance(copied, dict) else enumerate(copied):
            if isinstance(value, dict | list) and (holds_names or key not in _HOLDING_VALUES):
                copied[key] = value.copy()
                waiting.append((copied[key], key in _HOLDING_NAMES and not holds_names))
    return root[0]


def _quotes_others(keyword: object, kept: Mapping[str, Texts]) -> bool:
    """Returns whether a value of ``x-quote`` names no source of ``kept``; false for malformed ones."""
    try:
        return read_quote(keyword).source not in kept
    except (TypeError, ValueError):
        return False  # it stays, so that compiling the schema names its place
