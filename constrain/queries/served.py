"""Databases of a server's operator, by name: a request names one (``"syntax": "sql"``), and brings none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrain.errors import GrammarError
from constrain.queries.source import sql
from constrain.suggestions import did_you_mean

if TYPE_CHECKING:
    from constrain.queries.source import Sql

_SERVED: dict[str, Sql] = {}


class Served:
    """Queries over a database under a name, which all requests to this process may use. Also after unpickling."""

    def __init__(self, name: str, queries: Sql) -> None:
        self._given = name, queries
        _SERVED[name] = queries

    def __reduce__(self) -> tuple[Any, ...]:
        return Served, self._given


def sql_at(source: str) -> Sql:
    """Returns the queries of a database as the command line names it: a file of SQLite, or a URL.

    A file whose name ends in ``.sql`` has ``CREATE`` statements. Raises ``GrammarError`` and ``OSError``.
    """
    if not source.lower().endswith(".sql"):
        return sql(source)
    try:
        return sql(Path(source).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise GrammarError(
            f"{source} is not UTF-8: {error.reason} at byte {error.start}; encode it as UTF-8"
        ) from error


def served_queries(name: str) -> Sql:
    """Returns the queries under a name. Raises ``GrammarError``."""
    if not _SERVED:
        raise GrammarError(
            "there is no database here: queries (the syntax 'sql') are off until the operator of the server names one, "
            "as in constrain serve --sql shop=shop.db"
        )
    if name not in _SERVED:
        near = did_you_mean(name, _SERVED) or f"; there are {', '.join(map(repr, _SERVED))}"
        raise GrammarError(f"there is no database {name!r:.80}{near}")
    return _SERVED[name]
