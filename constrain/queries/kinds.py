"""Kinds of columns: what the declared type of a column lets a query do with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Dialect: TypeAlias = Literal["sqlite", "postgresql"]

Kind: TypeAlias = Literal["exact", "float", "text", "date", "datetime", "time", "bool", "any", "plain", "other"]
"""The kind of a column: ``exact`` are whole numbers and decimals. ``any`` takes part in everything, as columns without
a type do in SQLite. ``plain`` values are only counted, grouped and ordered, and ``other`` ones only selected."""

NUMBERS: tuple[Kind, ...] = ("exact", "float", "any")
TEXTS: tuple[Kind, ...] = ("text", "any")
COMPARABLE: tuple[Kind, ...] = ("exact", "float", "text", "date", "datetime", "time", "bool", "any", "plain")

_DECLARED: Mapping[str, Kind] = {
    r"bool": "bool",
    r"datetime|timestamp": "datetime",
    r"date\b": "date",
    r"time(?!.*interval)": "time",
    r"json|xml": "other",
    r"interval|uuid|money|bytea|blob|bit\b|inet|cidr|macaddr|tsvector": "plain",
    r"int(?!erval)|serial|numeric|decimal|number": "exact",
    r"real|floa|doub": "float",
    r"char|clob|text|string": "text",
}
"""Patterns of declared types in small letters, of which the first that is found decides."""

_CLASSES: Mapping[Kind, str] = {
    "bool": "Boolean",
    "float": "Float",
    "exact": "Integer Numeric",
    "datetime": "DateTime",
    "date": "Date",
    "time": "Time",
    "plain": "Enum Uuid UUID LargeBinary Interval INTERVAL MONEY INET CIDR MACADDR BIT OID TSVECTOR",
    "text": "String",
}
"""Classes of SQLAlchemy's types, of which the first that a type is decides; values of others cannot be compared."""


def kind_of(declared: str, dialect: Dialect) -> Kind:
    """Returns the kind of a column whose type is declared with these words.

    >>> kind_of("VARCHAR(20)", "sqlite"), kind_of("timestamp with time zone", "postgresql"), kind_of("", "sqlite")
    ('text', 'datetime', 'any')
    """
    for pattern, kind in _DECLARED.items():
        if re.search(pattern, declared.lower()):
            return kind
    return "any" if dialect == "sqlite" else "plain"


def kind_of_class(declared: Any) -> Kind:
    """Returns the kind of a column with this type of SQLAlchemy; a domain is what it is made of."""
    while (inner := getattr(declared, "data_type", None)) is not None:
        declared = inner
    names = {each.__name__ for each in type(declared).__mro__}
    return next((kind for kind, known in _CLASSES.items() if names & {*known.split()}), "other")
