"""Grammars: ready-made ones in Lark, for common formats; built in code; and exported for other programs.

A ready-made grammar is a file ``grammars/NAME.lark`` in the sources. Its first comment describes the format, names its
definition, and ends in an example.
"""

from __future__ import annotations

import re
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from constrain.engine.export import export
from constrain.errors import GrammarError
from constrain.language.grammar import GrammarBuilder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constrain.lark.source import Lark

__all__ = ["Description", "GrammarBuilder", "describe", "export", "load", "names"]


class Description(NamedTuple):
    """The comment at the top of a grammar.

    ``about``: one line about the language; ``example``: a text of the language, perhaps of several lines.
    """

    about: str
    example: str


def names() -> tuple[str, ...]:
    """Returns the names of all grammars, sorted.

    >>> "sql_select" in names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.lark")))


def load(name: str, *, tables: Mapping[str, Sequence[str]] | None = None) -> Lark:
    """Returns the grammar with this name, usable wherever a schema is; prompts show its description.

    Args:
        name: name of the grammar.
        tables: columns of each table of a database, for ``sql_select`` alone. These names are then the only ones that a
            query may have, and prompts show them. A query over one table, or over two of up to five, has columns of
            these only. A FROM names each table once; of more than five tables it joins three at most, of more than
            twelve two. There are no aliases, WITH, set operations, CAST or EXISTS, and a few functions: COUNT, SUM,
            AVG, MIN, MAX, ABS, LENGTH, LOWER, UPPER, ROUND, TRIM. A grammar of 20 tables compiles in about a second.

    Raises ``GrammarError`` for an unknown name, and for tables and columns that no database has.

    >>> load("semver").start
    'start'
    >>> print(load("sql_select", tables={"readers": ["id", "full name"]}).description)
    One SQL query over these tables:
    - readers with the columns id, "full name"
    """
    from constrain.lark.source import Lark
    from constrain.lark.sql_tables import over_tables

    text = _read(name)
    if tables is None:
        return Lark(text, description=describe(name).about)
    if name != "sql_select":
        raise ValueError(f"tables are for the grammar 'sql_select', not for {name!r}")
    text, description = over_tables(text, tables)
    return Lark(text, description=description)


def describe(name: str) -> Description:
    """Returns the description of a grammar. Raises ``GrammarError`` for an unknown name.

    >>> describe("e164_phone").example
    '+14155552671'
    """
    lines = _read(name).splitlines()
    comment = [line.removeprefix("//") for line in lines[: lines.index("")]]
    example = textwrap.dedent("\n".join(comment[comment.index(" Example:") + 1 :]))
    return Description(comment[0].strip(), example)


@cache
def _folder() -> Path:
    """Returns the folder of the files: inside an installed package, next to the package in a checkout."""
    package = Path(__file__).parent
    installed = package / "_grammars"
    return installed if installed.is_dir() else package.parent / "grammars"


def _read(name: str) -> str:
    known = names()
    if name not in known:
        near = _near(name, known)
        raise GrammarError(
            f"there is no grammar {name!r}; {'near it are' if near else 'there are'} {', '.join(near or known)}"
        )
    return (_folder() / f"{name}.lark").read_text(encoding="utf-8")


def _near(name: str, known: tuple[str, ...]) -> list[str]:
    """Returns names that share a word with this one, or are spelled similarly."""
    from difflib import get_close_matches

    words = {word for word in re.split("[^a-z0-9]+", name.lower()) if word}
    alike = [each for each in known if words & set(each.split("_"))]
    return alike or get_close_matches(name.lower(), known)
